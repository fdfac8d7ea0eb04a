//! The part of a path in its endpoint's knowledge: the measurements of earlier connections, and its own for later ones.

use crate::knowledge::{Claim, Knowledge, PathKey, PathKnowledge, WindowExtent};
use crate::path::amplification::Amplification;
use crate::path::careful_resume::{CarefulResume, ResumeSample};
use crate::path::path::Path;
use crate::time::Instant;
use hvq_scheduler::PerMille;
use std::time::Duration;

/// The relation of a path to the knowledge of its endpoint. An idle path keeps two words of it.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    lookup: Lookup,
    /// The part in the account of bytes in flight, if it has any.
    claim: Option<Box<Claim>>,
}

/// The state of a path in the knowledge of its endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Lookup {
    /// Nobody looked it up yet; what it claims is that of other addresses.
    #[default]
    Due,
    /// It cannot be told from another path, or the connection has no memory.
    Never,
    /// It has a key.
    Known,
}

impl Path {
    /// Returns true if nobody looked it up in the endpoint's knowledge. A path that somebody may have opened in the name of another
    /// is not looked up, nor does it take memory.
    pub(crate) fn is_lookup_due(&self) -> bool {
        self.remembered.lookup == Lookup::Due && self.route.amplification == Amplification::Validated
    }

    /// Returns true if it has a question to the endpoint's knowledge.
    pub(crate) fn asks_knowledge(&self) -> bool {
        self.is_lookup_due() || self.route.careful_resume().is_some_and(CarefulResume::asks)
    }

    /// It moved to other addresses: what is known of the former does not hold there.
    pub(in crate::path) fn on_other_addresses(&mut self) {
        self.remembered.lookup = Lookup::Due;
    }

    /// Returns true if it has no part in the endpoint's knowledge, or none any more.
    pub(crate) fn is_without_memory(&self) -> bool {
        self.remembered.lookup == Lookup::Never
    }

    /// It has no part in the endpoint's knowledge.
    pub(crate) fn forgo_memory(&mut self) {
        self.remembered.lookup = Lookup::Never;
    }

    /// It has a key, of which `before` is known for `lifetime` from `now` on. Returns true if it resumes that.
    pub(crate) fn remember(
        &mut self,
        before: Option<PathKnowledge>,
        lifetime: Duration,
        now: Instant,
    ) -> bool {
        let before = before.filter(|_| self.lost_to_congestion() == 0);
        let until = now + lifetime;
        let resume = before.and_then(|before| CarefulResume::new(before, until, self.route.datagram_size));
        let resumes = resume.is_some();
        self.route.resume(resume);
        self.remembered.lookup = Lookup::Known;
        if let Some((_, rtt)) = self.rtts.best().filter(|_| resumes) {
            // The acknowledgement that proved the peer's address is one of initial data.
            let (delivered, in_flight) = (self.route.rate.delivered(), self.sent.in_flight());
            let sample = ResumeSample { bytes: 0, largest: None, delivered, min_rtt: rtt.min() };
            self.route.resume_acknowledged(sample, self.sent.next_unused(), in_flight, now);
        }
        resumes
    }

    /// Gives Careful Resume the part of what is remembered of `key` that other connections have not in flight, until it uses it.
    pub(crate) fn claim_window(&mut self, key: &PathKey, knowledge: &Knowledge, now: Instant) {
        let Some(resume) = self.route.careful_resume().filter(|resume| resume.asks()) else { return };
        let allowance = resume.allowance();
        if !self.is_known() {
            return;
        }
        let own = self.remembered.claim.as_ref().map_or(0, |claim| claim.bytes);
        let left = allowance.saturating_sub(knowledge.in_flight_beside(key, own));
        let Some((_, rtt)) = self.rtts.best() else { return };
        // More than the first bursts show the bottleneck to carry only queues there (RFC 9959 leaves out such evidence).
        let shown = self.route.rate.capacity().zip(rtt.min());
        let carried = shown.map_or(u64::MAX, |(rate, base)| rate.bytes_in(base));
        self.route.grant(left.min(carried), self.sent.in_flight(), now);
        self.route.pace(rtt.smoothed(), now);
    }

    /// Returns true if it can be told from others in the endpoint's knowledge.
    pub(crate) fn is_known(&self) -> bool {
        self.remembered.lookup == Lookup::Known
    }

    /// Returns true if the account of bytes in flight says that it has some, though it has none; or does not know yet of those
    /// that it may have for what is remembered.
    pub(crate) fn is_account_wrong(&self) -> bool {
        match (self.remembered.lookup, &self.remembered.claim) {
            (Lookup::Known, Some(_)) => self.claimed() == 0,
            (Lookup::Known, None) => self.route.careful_resume().is_some_and(|resume| resume.claims() > 0),
            (Lookup::Due | Lookup::Never, claim) => claim.is_some(),
        }
    }

    /// Enters the bytes that it has in flight, or may at once, at its `key`.
    fn enter_flight(&mut self, key: &PathKey, knowledge: &mut Knowledge) {
        let claimed = self.claimed();
        if claimed == 0 || !self.is_known() {
            self.withdraw(knowledge);
        } else {
            let claim =
                self.remembered.claim.get_or_insert_with(|| Box::new(Claim { key: key.clone(), bytes: 0 }));
            knowledge.enter(claim, claimed);
        }
    }

    fn claimed(&self) -> u64 {
        let granted = self.route.careful_resume().map_or(0, CarefulResume::claims);
        self.sent.in_flight().max(granted) as u64
    }

    /// Leaves its measurements at its `key` to later connections, which count for `lifetime`; `dated` is the time of the
    /// knowledge.
    pub(crate) fn leave_knowledge(
        &mut self,
        key: &PathKey,
        knowledge: &mut Knowledge,
        lifetime: Duration,
        dated: Instant,
    ) {
        self.enter_flight(key, knowledge);
        if let Some(measured) = self.measured(dated).filter(|_| self.is_known()) {
            knowledge.learn(key, measured, lifetime);
        }
    }

    /// The path is over: it has nothing in flight.
    pub(crate) fn release_claim(&mut self, knowledge: &mut Knowledge) {
        self.withdraw(knowledge);
        self.remembered.lookup = Lookup::Never;
    }

    /// Takes its bytes out of the account.
    fn withdraw(&mut self, knowledge: &mut Knowledge) {
        if let Some(mut claim) = self.remembered.claim.take() {
            knowledge.enter(&mut claim, 0);
        }
    }

    /// Its measurements, at the time `dated`; `None` while there are none.
    fn measured(&self, dated: Instant) -> Option<PathKnowledge> {
        let rtt = self.rtts.best().map(|(_, rtt)| rtt)?;
        let (min_rtt, delivered) = (rtt.min()?, self.route.rate.estimate()?);
        // What arrives in an empty round trip, queues of the path's own not counted.
        let window = delivered.bytes_in(min_rtt).min(self.route.controller.window() as u64);
        let (counters, lost) = (self.counters(), self.lost_to_congestion());
        let slow_start = self.route.controller.in_slow_start();
        Some(PathKnowledge {
            rate: self.route.rate.capacity().map(|burst| burst.max(delivered)),
            bursts: self.route.rate.bursts(),
            min_rtt,
            smoothed_rtt: rtt.smoothed().max(min_rtt),
            window,
            loss: PerMille::of(lost, counters.packets_acknowledged + lost),
            extent: if slow_start { WindowExtent::AtLeast } else { WindowExtent::Whole },
            measured_at: dated,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathId;
    use crate::Role;
    use crate::congestion::Algorithm;
    use crate::connection::{AckPolicy, DatagramSizing};
    use crate::four_tuple::FourTuple;
    use crate::knowledge::Knowledge;
    use crate::path::candidates::{CandidateAddress, CandidatePurpose, Measurements};
    use crate::path::route::Route;
    use crate::recovery::rate::AckSample;
    use crate::recovery::sent_packet::{PacketClass, SentPacket};
    use crate::trace::{ResumePhase, ResumeTrigger};
    use std::net::SocketAddr;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// The 4-tuple of host number `host`, as a server sees it.
    fn tuple(host: u8) -> FourTuple {
        let address = |host| SocketAddr::from(([192, 0, 2, host], 443));
        FourTuple { local: address(1), remote: address(host) }
    }

    fn route(host: u8, amplification: Amplification) -> Route {
        let congestion = Algorithm::Cubic.into();
        Route::new(tuple(host), congestion, amplification, DatagramSizing::default(), at(0))
    }

    /// A megabyte in flight.
    fn large() -> PathKnowledge {
        let rtt = Duration::from_millis(50);
        PathKnowledge::of_window(1_000_000, rtt, at(0))
    }

    #[test]
    fn nothing_is_remembered_towards_an_address_before_it_is_validated() {
        // attacks.md K15.
        let spoofed = route(66, Amplification::default());
        let mut path = Path::new(PathId(0), spoofed, AckPolicy::default());
        assert!(!path.asks_knowledge(), "somebody may have opened it in the name of another");
        path.route.amplification = Amplification::Validated;
        assert!(path.is_lookup_due());
    }

    #[test]
    fn a_path_that_moves_leaves_its_memory_where_it_was() {
        // attacks.md K15.
        let mut path = Path::new(PathId(0), route(2, Amplification::Validated), AckPolicy::default());
        assert!(path.remember(Some(large()), HOUR, at(1)));
        let to = CandidateAddress::new(tuple(66), CandidatePurpose::Previous, at(9_000));
        let fresh = Measurements {
            route: route(66, Amplification::default()),
            rtts: Default::default(),
            persistent: Default::default(),
        };
        path.migrate_to(to, Some(Box::new(fresh)), at(2));
        path.on_migrated(at(2));
        assert!(path.route.careful_resume().is_none() && !path.asks_knowledge());
        assert!(path.route.window() <= 10 * 1_200, "{} bytes", path.route.window());
        path.route.amplification = Amplification::Validated;
        assert!(path.is_lookup_due(), "it may be known there, too");
    }

    #[test]
    fn an_idle_path_keeps_nothing_of_the_account() {
        let mut path = Path::new(PathId(0), route(2, Amplification::Validated), AckPolicy::default());
        let mut knowledge = Knowledge::default();
        let key = PathKey::new(None, tuple(2).local.ip(), tuple(2).remote.ip(), Role::Server);
        path.remember(None, HOUR, at(1));
        assert!(path.is_known() && path.remembered.claim.is_none());
        path.sent.on_sent(sent(0, 1_000));
        path.leave_knowledge(&key, &mut knowledge, HOUR, at(3));
        assert_eq!(knowledge.in_flight_beside(&key, 0), 1_000);
        let _arrived = path.sent.drain(0..1);
        assert!(path.is_account_wrong());
        path.leave_knowledge(&key, &mut knowledge, HOUR, at(4));
        assert_eq!(knowledge.in_flight_beside(&key, 0), 0);
        assert!(path.is_known() && path.remembered.claim.is_none());
    }

    /// A path with a round trip of 50 ms that was seen before, and its key.
    fn remembering() -> (Path, PathKey) {
        let mut path = Path::new(PathId(0), route(2, Amplification::Validated), AckPolicy::default());
        path.rtts.sample(PathId(0), Duration::from_millis(50), Duration::ZERO, at(0));
        assert!(!path.is_known());
        assert!(path.remember(Some(large()), HOUR, at(1)) && path.is_known());
        (path, PathKey::new(None, tuple(2).local.ip(), tuple(2).remote.ip(), Role::Server))
    }

    fn granted(path: &Path) -> usize {
        path.route.careful_resume().map_or(0, CarefulResume::granted)
    }

    fn sent(number: u64, bytes: usize) -> SentPacket {
        SentPacket::new(number, at(2), bytes, PacketClass::AckEliciting)
    }

    #[test]
    fn half_of_what_is_remembered_may_be_in_flight_on_all_connections_together() {
        let (mut path, key) = remembering();
        assert!(path.asks_knowledge());
        path.claim_window(&key, &Knowledge::default(), at(2));
        assert_eq!(granted(&path), 500_000);
        let mut knowledge = Knowledge::default();
        let (mut other, _) = remembering();
        other.sent.on_sent(sent(0, 1_000));
        other.leave_knowledge(&key, &mut knowledge, HOUR, at(2));
        let (mut path, _) = remembering();
        path.claim_window(&key, &knowledge, at(2));
        assert_eq!(granted(&path), 499_000);
        other.release_claim(&mut knowledge);
        assert_eq!(knowledge.in_flight_beside(&key, 0), 0);
        assert!(other.is_without_memory(), "it is over");
    }

    #[test]
    fn what_is_remembered_may_be_used_for_its_lifetime_and_is_entered_into_the_account() {
        let (mut path, key) = remembering();
        let mut knowledge = Knowledge::default();
        assert!(!path.is_account_wrong(), "it uses nothing yet");
        path.claim_window(&key, &knowledge, at(2));
        assert!(!path.is_account_wrong(), "it may, and did not yet");
        let beyond = path.route.controller.window() + 1;
        path.route.resume_sent(&sent(9, 1_200), Duration::from_millis(50), beyond);
        let (changes, _) = path.route.take_resume_changes();
        assert_eq!(changes.as_slice(), [(ResumePhase::Unvalidated, ResumeTrigger::WindowLimited)]);
        assert!(path.is_account_wrong());
        path.leave_knowledge(&key, &mut knowledge, HOUR, at(3));
        assert_eq!(knowledge.in_flight_beside(&key, 0), 500_000);
        assert!(!path.is_account_wrong());
    }

    #[test]
    fn a_path_may_have_no_part_in_what_is_remembered() {
        let mut path = Path::new(PathId(0), route(2, Amplification::Validated), AckPolicy::default());
        assert!(!path.is_without_memory() && path.is_lookup_due());
        path.forgo_memory();
        assert!(path.is_without_memory() && !path.asks_knowledge());
    }

    #[test]
    fn the_losses_of_a_path_are_remembered_as_a_share_of_its_packets() {
        let (mut path, _) = remembering();
        assert_eq!(path.measured(at(9)), None, "nothing was delivered");
        let mut packet = sent(0, 1_200);
        packet.delivery = path.route.rate.on_sent(at(2), 0);
        let arrival = AckSample { now: at(52), over: PathId(0), rtts: &path.rtts, rtt: None };
        path.route.rate.on_acknowledged(arrival, &[packet]).expect("it was in flight");
        path.counters.packets_acknowledged = 90;
        path.counters.packets_lost = 10;
        let measured = path.measured(at(9)).expect("a packet was delivered");
        assert_eq!((measured.loss, measured.measured_at), (PerMille::new(100), at(9)));
    }
}
