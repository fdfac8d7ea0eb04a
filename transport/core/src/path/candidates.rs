//! Addresses of a path beside the ones in use: probed by an endpoint, or left behind by a migration (RFC 9000 §9).

use crate::path::amplification::Amplification;
use crate::path::liveness::Contact;
use crate::path::route::{FourTuple, Route};
use crate::path::validation::{ChallengeData, Validation};
use crate::recovery::delay::PathRtts;
use crate::recovery::persistent::PersistentCongestion;
use crate::time::Instant;
use smallvec::SmallVec;

/// 4-tuples beside the one in use at most: two that are probed, and the one that was left.
const MOST: usize = 3;

/// The reason for which a 4-tuple that is not in use is remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CandidatePurpose {
    /// The peer sent from there: it probes, or its packet was not the newest (RFC 9000 §9.1).
    Probing,
    /// This endpoint moves there when it is validated (RFC 9000 §9.2).
    Pending,
    /// It was in use before, and validated: what a migration that turns out to be forged returns to (RFC 9000 §9.3.2).
    Previous,
    /// Its validation failed at this time. It keeps its connection ID, because the peer may have no other to show or to
    /// take, until the peer answers on any path; when it is heard it is validated again.
    Failed(Instant),
}

/// The measurements on a route, put aside while the path has another address (RFC 9000 §9.4).
#[derive(Debug)]
pub struct Measurements {
    /// The route. Its addresses mean nothing.
    pub route: Route,
    /// Its round-trip times.
    pub rtts: PathRtts,
    /// Its persistent congestion.
    pub persistent: PersistentCongestion,
}

/// A 4-tuple of a path beside the one in use.
#[derive(Debug)]
pub struct CandidateAddress {
    /// The addresses.
    pub tuple: FourTuple,
    /// The limit on the bytes that may be sent there (RFC 9000 §8.1).
    pub amplification: Amplification,
    /// The proof that the peer receives there.
    pub validation: Validation,
    /// The sequence number of the peer's connection ID that goes there, `None` for the one of the path. A peer that
    /// moves on purpose gets a connection ID of its own (RFC 9000 §9.5); one that was moved by a NAT keeps its, which then
    /// several addresses have.
    pub destination: Option<u64>,
    /// The sequence number of this endpoint's connection ID that the peer last used from there.
    pub heard_with: u64,
    /// The reason for which it is remembered.
    pub purpose: CandidatePurpose,
    /// The time at which it is forgotten.
    pub until: Instant,
    /// The measurements there, if the route in use has measurements of its own.
    pub measurements: Option<Box<Measurements>>,
}

impl CandidateAddress {
    /// A 4-tuple that is not validated, forgotten at `until`.
    pub fn new(tuple: FourTuple, purpose: CandidatePurpose, until: Instant) -> Self {
        Self {
            tuple,
            amplification: Amplification::default(),
            validation: Validation::default(),
            destination: None,
            heard_with: 0,
            purpose,
            until,
            measurements: None,
        }
    }

    /// Nothing limits what is sent there (RFC 9000 §8.1): the address is known to be the peer's.
    pub fn lift_limit(&mut self) {
        self.amplification = Amplification::Validated;
    }

    /// Packets there show the peer's connection ID with this sequence number, or the one of the path.
    pub fn send_to(&mut self, destination: Option<u64>) {
        self.destination = destination;
    }

    /// A packet came from there, to this endpoint's connection ID with this sequence number.
    pub fn on_heard(&mut self, id_sequence: u64) {
        self.heard_with = id_sequence;
    }

    /// It is remembered until `until`.
    pub fn keep_until(&mut self, until: Instant) {
        self.until = until;
    }

    /// Nothing came back from there by `now`: it keeps its connection ID and the limit on what is sent there.
    pub fn fail(&mut self, now: Instant) {
        self.purpose = CandidatePurpose::Failed(now);
        self.validation = Validation::default();
        self.measurements = None;
    }

    /// Returns true if its time is over. One that failed is kept until the peer has answered since, on whichever path: a
    /// path that lacks a connection ID cannot find out itself where its peer is, and another one has it replaced.
    fn is_over(&mut self, contact: Contact, now: Instant) -> bool {
        let failed = self.validation.failed(now);
        match self.purpose {
            CandidatePurpose::Failed(at) => contact.acknowledged_at() > at,
            CandidatePurpose::Probing | CandidatePurpose::Pending | CandidatePurpose::Previous => {
                failed || self.until <= now
            }
        }
    }

    /// Returns true if its connection ID may be missed: nothing shows at `now` that the peer answers, so that it may not
    /// learn that it is given back and issues no other.
    fn is_needed(&self, contact: Contact, now: Instant) -> bool {
        // Without a connection ID of its own an address needs no memory.
        self.destination.is_some()
            && match self.purpose {
                CandidatePurpose::Probing => self.until > now || contact.is_lost(),
                CandidatePurpose::Previous => contact.is_lost(),
                CandidatePurpose::Pending | CandidatePurpose::Failed(_) => false,
            }
    }
}

/// The 4-tuples of a path beside the one in use: a few, whatever arrives from wherever.
#[derive(Debug, Default)]
pub struct Candidates {
    all: Vec<CandidateAddress>,
}

impl Candidates {
    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &CandidateAddress> {
        self.all.iter()
    }

    /// All of them.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut CandidateAddress> {
        self.all.iter_mut()
    }

    /// Their addresses.
    pub fn tuples(&self) -> SmallVec<[FourTuple; MOST]> {
        self.all.iter().map(|candidate| candidate.tuple).collect()
    }

    /// The one at `tuple`.
    pub fn get(&self, tuple: FourTuple) -> Option<&CandidateAddress> {
        self.all.iter().find(|candidate| candidate.tuple == tuple)
    }

    /// The one at `tuple`.
    pub fn get_mut(&mut self, tuple: FourTuple) -> Option<&mut CandidateAddress> {
        self.all.iter_mut().find(|candidate| candidate.tuple == tuple)
    }

    /// The one that was left by a migration.
    pub fn left(&self) -> Option<&CandidateAddress> {
        self.all.iter().find(|candidate| candidate.purpose == CandidatePurpose::Previous)
    }

    /// The one that was left by a migration.
    pub fn previous_mut(&mut self) -> Option<&mut CandidateAddress> {
        self.all.iter_mut().find(|candidate| candidate.purpose == CandidatePurpose::Previous)
    }

    /// Takes the one at `tuple` out.
    pub fn take(&mut self, tuple: FourTuple) -> Option<CandidateAddress> {
        let index = self.all.iter().position(|candidate| candidate.tuple == tuple)?;
        Some(self.all.remove(index))
    }

    /// Takes the one out that this endpoint moves to.
    pub fn take_pending(&mut self) -> Option<CandidateAddress> {
        let tuple = self.all.iter().find(|one| one.purpose == CandidatePurpose::Pending)?.tuple;
        self.take(tuple)
    }

    /// Adds one. Returns those that give way: the one with the same addresses, a former [`CandidatePurpose::Previous`], or the
    /// oldest that the peer only probes, or that failed. Those with a connection ID of their own stay if they can: a forger
    /// has none to show, and the peer's supply is small.
    pub fn add(&mut self, candidate: CandidateAddress) -> SmallVec<[CandidateAddress; 2]> {
        let mut gone: SmallVec<[CandidateAddress; 2]> = self.take(candidate.tuple).into_iter().collect();
        if candidate.purpose == CandidatePurpose::Previous
            && let Some(before) = self.left().map(|left| left.tuple)
        {
            gone.extend(self.take(before));
        }
        if self.all.len() >= MOST {
            let probed = || self.all.iter().filter(|known| known.purpose == CandidatePurpose::Probing);
            let failed =
                || self.all.iter().find(|known| matches!(known.purpose, CandidatePurpose::Failed(_)));
            let oldest = probed().find(|known| known.destination.is_none()).or_else(failed);
            let oldest = oldest.or(probed().next()).or(self.all.first()).map(|known| known.tuple);
            gone.extend(oldest.and_then(|tuple| self.take(tuple)));
        }
        self.all.push(candidate);
        gone
    }

    /// Returns true if the peer's connection ID with this sequence number goes to one of them.
    pub fn uses(&self, sequence: u64) -> bool {
        self.all.iter().any(|candidate| candidate.destination == Some(sequence))
    }

    /// The lent connection ID `taken` is that of the path now, and the one of the path is lent: `left`.
    pub fn on_exchanged(&mut self, taken: u64, left: u64) {
        for candidate in &mut self.all {
            candidate.destination = match candidate.destination {
                None => Some(left),
                Some(sequence) if sequence == taken => None,
                other => other,
            };
        }
    }

    /// Takes PATH_RESPONSE, wherever it came from (RFC 9000 §8.2.3). Returns the address that it validates.
    pub fn on_response(&mut self, data: ChallengeData) -> Option<FourTuple> {
        let answered = self
            .all
            .iter_mut()
            .find_map(|candidate| candidate.validation.on_response(data).then_some(candidate))?;
        answered.amplification.validate();
        if let CandidatePurpose::Failed(_) = answered.purpose {
            answered.purpose = CandidatePurpose::Probing;
        }
        Some(answered.tuple)
    }

    /// Returns the number that are being validated.
    pub fn pending(&self) -> usize {
        self.all.iter().filter(|candidate| candidate.validation.is_pending()).count()
    }

    /// Removes and returns those whose validation failed or whose time is over, given the `contact` with the peer. Those
    /// whose connection ID could not be replaced stay as [`CandidatePurpose::Failed`].
    pub fn expire(&mut self, contact: Contact, now: Instant) -> SmallVec<[CandidateAddress; 2]> {
        let mut gone = SmallVec::new();
        if self.all.is_empty() {
            return gone;
        }
        for tuple in self.tuples() {
            let over = self.get_mut(tuple).is_some_and(|one| one.is_over(contact, now));
            match self.get_mut(tuple).filter(|one| over && one.is_needed(contact, now)) {
                Some(needed) => needed.fail(now),
                None if over => gone.extend(self.take(tuple)),
                None => {}
            }
        }
        gone
    }

    /// Returns the time at which the next of them is due for something, given the `contact` with the peer.
    pub fn deadline(&self, contact: Contact, now: Instant) -> Option<Instant> {
        let due = |one: &CandidateAddress| {
            let validation = one.validation.deadline(now).map(|deadline| deadline.at);
            let over = match one.purpose {
                CandidatePurpose::Failed(at) => (contact.acknowledged_at() > at).then_some(now),
                CandidatePurpose::Probing | CandidatePurpose::Pending | CandidatePurpose::Previous => {
                    Some(one.until)
                }
            };
            validation.into_iter().chain(over).min()
        };
        self.all.iter().filter_map(due).min()
    }

    /// The one at `tuple` is heard at `now`, to the connection ID with sequence number `id_sequence`: it is remembered until
    /// `until`.
    pub fn heard(&mut self, tuple: FourTuple, id_sequence: u64, until: Instant, now: Instant) {
        if let Some(candidate) = self.get_mut(tuple) {
            candidate.validation.on_heard(now);
            candidate.heard_with = candidate.heard_with.max(id_sequence);
            candidate.until = until;
        }
    }

    /// Returns the one at `tuple` if it failed and is not being validated again.
    pub fn failed_mut(&mut self, tuple: FourTuple) -> Option<&mut CandidateAddress> {
        let failed = |one: &&mut CandidateAddress| matches!(one.purpose, CandidatePurpose::Failed(_));
        self.get_mut(tuple).filter(failed).filter(|one| !one.validation.is_pending())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::liveness::Liveness;
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use std::net::SocketAddr;
    use std::time::Duration;

    fn tuple(port: u16) -> FourTuple {
        let address = |port| SocketAddr::from(([10, 0, 0, 1], port));
        FourTuple { local: address(443), remote: address(port) }
    }

    /// The contact of a connection with one path.
    fn alone(liveness: &Liveness) -> Contact {
        Contact::over([liveness])
    }

    fn candidate(port: u16, purpose: CandidatePurpose) -> CandidateAddress {
        CandidateAddress::new(tuple(port), purpose, Instant::from_nanos(1_000))
    }

    #[test]
    fn however_many_addresses_are_heard_a_few_are_remembered_and_the_one_that_was_left_stays() {
        let mut candidates = Candidates::default();
        candidates.add(candidate(1, CandidatePurpose::Previous));
        for port in 2..1000 {
            let gone = candidates.add(candidate(port, CandidatePurpose::Probing));
            assert_eq!(gone.len(), usize::from(port > 3), "the oldest gives way");
        }
        assert_eq!(candidates.tuples().as_slice(), [tuple(1), tuple(998), tuple(999)]);
    }

    #[test]
    fn only_one_address_is_the_one_that_was_left() {
        let mut candidates = Candidates::default();
        candidates.add(candidate(1, CandidatePurpose::Previous));
        let gone = candidates.add(candidate(2, CandidatePurpose::Previous));
        assert_eq!(gone.iter().map(|one| one.tuple).collect::<Vec<_>>(), [tuple(1)]);
        assert_eq!(candidates.left().map(|left| left.tuple), Some(tuple(2)));
    }

    #[test]
    fn one_that_failed_is_kept_until_the_path_has_answered_since() {
        let (failed, before, after) =
            (Instant::from_nanos(500), Instant::from_nanos(499), Instant::from_nanos(501));
        for (answered, is_over) in [(before, false), (failed, false), (after, true)] {
            let mut candidates = Candidates::default();
            assert!(candidates.is_empty());
            candidates.add(candidate(1, CandidatePurpose::Failed(failed)));
            assert!(!candidates.is_empty());
            let mut liveness = Liveness::default();
            liveness.on_acknowledged(answered);
            let now = Instant::from_nanos(9_000);
            assert_eq!(candidates.deadline(alone(&liveness), now), is_over.then_some(now));
            assert_eq!(candidates.expire(alone(&liveness), now).len(), usize::from(is_over));
        }
    }

    #[test]
    fn each_purpose_finds_its_own_address() {
        let mut candidates = Candidates::default();
        for (port, purpose) in
            [(1, CandidatePurpose::Probing), (2, CandidatePurpose::Previous), (3, CandidatePurpose::Pending)]
        {
            candidates.add(candidate(port, purpose));
        }
        assert_eq!(candidates.previous_mut().map(|left| left.tuple), Some(tuple(2)));
        assert_eq!(candidates.take_pending().map(|one| one.tuple), Some(tuple(3)));
        assert_eq!(candidates.take_pending().map(|one| one.tuple), None);
        assert_eq!(candidates.tuples().as_slice(), [tuple(1), tuple(2)]);
    }

    #[test]
    fn an_address_that_is_heard_lives_on_with_the_newest_connection_id_that_it_was_heard_with() {
        let mut candidates = Candidates::default();
        candidates.add(candidate(1, CandidatePurpose::Probing));
        candidates.add(candidate(2, CandidatePurpose::Probing));
        for (sequence, until) in [(5, 2_000), (3, 3_000)] {
            candidates.heard(tuple(1), sequence, Instant::from_nanos(until), Instant::ZERO);
        }
        let known = |port| candidates.get(tuple(port)).map(|one| (one.heard_with, one.until));
        assert_eq!(known(1), Some((5, Instant::from_nanos(3_000))));
        assert_eq!(known(2), Some((0, Instant::from_nanos(1_000))));
    }

    #[test]
    fn an_address_with_a_connection_id_of_its_own_outlives_those_without() {
        let mut candidates = Candidates::default();
        let mut own = candidate(1, CandidatePurpose::Probing);
        own.destination = Some(1);
        candidates.add(own);
        for port in 2..100 {
            candidates.add(candidate(port, CandidatePurpose::Probing));
        }
        assert_eq!(candidates.tuples().as_slice(), [tuple(1), tuple(98), tuple(99)]);
    }

    #[test]
    fn addresses_keep_their_connection_ids_when_the_path_takes_one_of_them() {
        let mut candidates = Candidates::default();
        for (port, destination) in [(1, None), (2, Some(5)), (3, Some(7))] {
            let mut one = candidate(port, CandidatePurpose::Probing);
            one.destination = destination;
            candidates.add(one);
        }
        candidates.on_exchanged(5, 4);
        let of = |port| candidates.get(tuple(port)).unwrap().destination;
        assert_eq!([of(1), of(2), of(3)], [Some(4), None, Some(7)]);
        assert!(candidates.uses(4) && candidates.uses(7) && !candidates.uses(5));
    }

    #[test]
    fn a_response_validates_the_address_whose_challenge_it_answers_and_no_other() {
        let (mut rng, start) = (StdRng::seed_from_u64(1), Instant::from_nanos(1));
        let mut candidates = Candidates::default();
        candidates.add(candidate(1, CandidatePurpose::Probing));
        candidates.add(candidate(2, CandidatePurpose::Probing));
        let mut challenge = |port| {
            let one = candidates.get_mut(tuple(port)).unwrap();
            one.validation.start(start, &mut rng, Duration::from_secs(1));
            one.validation.next_challenge(start, &mut rng).unwrap()
        };
        let (_first, second) = (challenge(1), challenge(2));
        assert_eq!(candidates.on_response([0; 8]), None);
        assert_eq!(candidates.on_response(second), Some(tuple(2)));
        assert!(!candidates.get(tuple(1)).unwrap().validation.is_validated());
        assert_eq!(
            (candidates.pending(), candidates.get(tuple(2)).unwrap().amplification.allowance()),
            (1, usize::MAX)
        );
    }

    #[test]
    fn an_address_that_failed_keeps_its_connection_id_until_the_path_answers_elsewhere() {
        let (mut rng, start) = (StdRng::seed_from_u64(1), Instant::from_nanos(1));
        let (mut candidates, mut liveness) = (Candidates::default(), Liveness::default());
        let mut own = candidate(1, CandidatePurpose::Probing);
        own.destination = Some(1);
        own.validation.start(start, &mut rng, Duration::from_nanos(100));
        candidates.add(own);
        let failed = start + Duration::from_nanos(300);
        assert_eq!(candidates.expire(alone(&liveness), failed).len(), 0);
        assert!(candidates.uses(1) && candidates.pending() == 0);
        assert_eq!(candidates.deadline(alone(&liveness), failed), None);
        // However often it fails again.
        let again = candidates.failed_mut(tuple(1)).unwrap();
        again.validation.start(failed, &mut rng, Duration::from_nanos(100));
        assert!(candidates.failed_mut(tuple(1)).is_none(), "one attempt at a time");
        assert_eq!(candidates.expire(alone(&liveness), Instant::from_nanos(5_000)).len(), 0);
        liveness.on_acknowledged(Instant::from_nanos(6_000));
        let later = Instant::from_nanos(7_000);
        assert_eq!(candidates.deadline(alone(&liveness), later), Some(later));
        assert_eq!(candidates.expire(alone(&liveness), later).len(), 1);
    }

    #[test]
    fn an_address_that_failed_gives_its_connection_id_back_if_another_path_answers() {
        let failed = Instant::from_nanos(500);
        let (mut candidates, mut silent) = (Candidates::default(), Liveness::default());
        silent.on_unanswered(failed);
        let mut own = candidate(1, CandidatePurpose::Failed(failed));
        own.destination = Some(1);
        candidates.add(own);
        let now = Instant::from_nanos(9_000);
        assert_eq!(candidates.expire(alone(&silent), now).len(), 0, "the peer would not learn of it");
        let mut other = Liveness::default();
        other.on_acknowledged(Instant::from_nanos(501));
        let contact = Contact::over([&silent, &other]);
        assert_eq!(candidates.deadline(contact, now), Some(now));
        assert_eq!(candidates.expire(contact, now).len(), 1);
        // Nor is it kept in the first place.
        for purpose in [CandidatePurpose::Probing, CandidatePurpose::Previous] {
            for (contact, is_kept) in [(alone(&silent), true), (contact, false)] {
                let mut own = candidate(2, purpose);
                own.destination = Some(2);
                candidates.add(own);
                assert_eq!(candidates.expire(contact, now).is_empty(), is_kept, "{purpose:?}");
                assert_eq!(candidates.take(tuple(2)).is_some(), is_kept, "{purpose:?}");
            }
        }
    }

    #[test]
    fn an_address_with_a_connection_id_is_forgotten_when_its_time_is_over() {
        let mut candidates = Candidates::default();
        let mut own = candidate(1, CandidatePurpose::Probing);
        own.destination = Some(1);
        own.keep_until(Instant::from_nanos(2_000));
        own.on_heard(7);
        candidates.add(own);
        let liveness = Liveness::default();
        assert_eq!(candidates.expire(alone(&liveness), Instant::from_nanos(1_999)).len(), 0);
        let gone = candidates.expire(alone(&liveness), Instant::from_nanos(2_000));
        assert_eq!(gone.iter().map(|one| one.heard_with).collect::<Vec<_>>(), [7]);
    }

    #[test]
    fn an_address_is_forgotten_when_its_validation_fails_or_its_time_is_over() {
        let (mut rng, start) = (StdRng::seed_from_u64(1), Instant::from_nanos(1));
        let mut candidates = Candidates::default();
        candidates.add(candidate(1, CandidatePurpose::Probing));
        let mut slow = candidate(2, CandidatePurpose::Pending);
        slow.validation.start(start, &mut rng, Duration::from_nanos(100));
        candidates.add(slow);
        let liveness = Liveness::default();
        assert_eq!(candidates.expire(alone(&liveness), start).len(), 0);
        assert_eq!(candidates.expire(alone(&liveness), start + Duration::from_nanos(300)).len(), 1);
        assert_eq!(candidates.deadline(alone(&liveness), start), Some(Instant::from_nanos(1_000)));
        assert_eq!(candidates.expire(alone(&liveness), Instant::from_nanos(1_000)).len(), 1);
        assert_eq!(candidates.deadline(alone(&liveness), start), None);
    }
}
