//! Proof that the peer receives at an address: challenges sent and answers owed on one 4-tuple (RFC 9000 §8.2).

use crate::time::{Deadline, Instant, TimerReason};
use rand::RngCore;
use std::collections::VecDeque;
use std::time::Duration;

/// The data of a PATH_CHALLENGE or PATH_RESPONSE frame.
pub type ChallengeData = [u8; 8];

/// Challenges whose answer is accepted at most; beyond that the oldest are forgotten.
const MAX_OUTSTANDING: usize = 8;
/// Answers owed at most. Beyond that the oldest are dropped: the peer repeats what it still wants to know.
const MAX_RESPONSES: usize = 8;
/// An attempt fails after this many probe timeouts (RFC 9000 §8.2.4).
#[cfg(test)]
const PATIENCE: u32 = 3;
/// The first challenge waits for the queue of other connections so long at most, in all, and at a time: a path that is to
/// stand in for another is there soon, and what happens to the others is noticed.
const MOST_WAIT: Duration = Duration::from_millis(500);
const WAIT_AT_A_TIME: Duration = Duration::from_millis(50);
/// The interval between challenges doubles this often at most.
const MAX_BACKOFF: u32 = 6;

/// Tells whether the datagram of a challenge had the 1200 bytes that every path must carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Breadth {
    Full,
    Cut,
}

/// The purpose of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// It is to prove that the peer receives at the address.
    Address,
    /// It is to prove that datagrams of 1200 bytes reach it there, too: the first challenge was smaller.
    Size,
}

/// The knowledge of the address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Proof {
    #[default]
    Missing,
    Given,
    Refused,
    /// The peer is there, but the path carries small datagrams only.
    Narrow,
}

/// One attempt to validate.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    /// The time at which the next challenge is due.
    next_at: Instant,
    /// The time at which the latest challenge was sent.
    asked_at: Instant,
    /// The interval before the first repetition.
    interval: Duration,
    /// Challenges sent.
    sent: u32,
    /// The time at which the attempt fails.
    fails_at: Instant,
    /// The time that it may take.
    patience: Duration,
    /// The property that it is to prove.
    purpose: Purpose,
    /// The time by which the first challenge may still be put off.
    may_wait: Duration,
    /// Data for the first challenge.
    first: ChallengeData,
}

/// The validation of one 4-tuple of a path, in both directions.
#[derive(Clone, Debug, Default)]
pub struct Validation {
    proof: Proof,
    attempt: Option<Attempt>,
    outstanding: VecDeque<(ChallengeData, Breadth)>,
    responses: VecDeque<ChallengeData>,
}

impl Validation {
    /// Starts an attempt that fails after three probe timeouts (RFC 9000 §8.2.4). `pto` is the larger of the path's
    /// probe timeout and the initial one, because the new address may be farther away.
    #[cfg(test)]
    pub fn start(&mut self, now: Instant, rng: &mut impl RngCore, pto: Duration) {
        self.start_within(now, rng, pto, pto * PATIENCE);
    }

    /// Starts an attempt that repeats its challenge after `pto`, then with doubling intervals (RFC 9000 §8.2.1: no
    /// more often than an Initial), and fails after `patience`.
    pub fn start_within(&mut self, now: Instant, rng: &mut impl RngCore, pto: Duration, patience: Duration) {
        let first = draw(rng);
        let fails_at = now + patience;
        if matches!(self.proof, Proof::Refused | Proof::Narrow) {
            self.proof = Proof::Missing;
        }
        let purpose = Purpose::Address;
        self.attempt = Some(Attempt {
            next_at: now,
            asked_at: now,
            interval: pto,
            sent: 0,
            fails_at,
            patience,
            purpose,
            may_wait: MOST_WAIT,
            first,
        });
    }

    /// Puts the first challenge off by `wait`, or by what is left of half a second if that is less; the attempt lasts as much
    /// longer. Returns false if it is not put off: nothing is left, or something was sent.
    pub fn put_off(&mut self, wait: Duration, now: Instant) -> bool {
        let Some(attempt) = self.attempt.as_mut().filter(|attempt| attempt.sent == 0) else { return false };
        let wait = wait.min(WAIT_AT_A_TIME).min(attempt.may_wait);
        attempt.may_wait -= wait;
        attempt.next_at = now + wait;
        attempt.fails_at += wait;
        !wait.is_zero()
    }

    /// Returns true if the first challenge is put off at `now`.
    pub fn is_put_off(&self, now: Instant) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.sent == 0 && now < attempt.next_at)
    }

    /// Takes the address as validated without a challenge: the handshake proved it, or another path did (RFC 9000
    /// §8.1, RFC 10069 §3.1).
    pub fn presume(&mut self) {
        self.proof = Proof::Given;
        self.attempt = None;
        self.outstanding.clear();
    }

    /// Returns true if the peer is known to receive at the address.
    pub fn is_validated(&self) -> bool {
        self.proof == Proof::Given
    }

    /// Returns true if an attempt is under way.
    pub fn is_pending(&self) -> bool {
        self.attempt.is_some()
    }

    /// The data of a PATH_CHALLENGE to send at `now`, if one is due. Each challenge has data of its own (RFC 9000
    /// §8.2.1), and the frame is to be sent now, in a datagram of at least 1200 bytes if the limits allow that.
    pub fn next_challenge(&mut self, now: Instant, rng: &mut impl RngCore) -> Option<ChallengeData> {
        let attempt = self.attempt.as_mut()?;
        if now < attempt.next_at || now >= attempt.fails_at {
            return None;
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
        //# The endpoint MUST use unpredictable data in every PATH_CHALLENGE frame so that it can associate
        //# the peer's response with the corresponding PATH_CHALLENGE.
        let data = if attempt.sent == 0 { attempt.first } else { draw(rng) };
        attempt.next_at = now + attempt.interval * (1 << attempt.sent.min(MAX_BACKOFF));
        attempt.asked_at = now;
        attempt.sent += 1;
        if self.outstanding.len() == MAX_OUTSTANDING {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back((data, Breadth::Full));
        Some(data)
    }

    /// An authentic packet arrived over this 4-tuple, which works now, one way at least: the next challenge is due at once, if
    /// the latest was sent as long ago as the first repetition waits (RFC 9000 §8.2.1: no more often than an Initial).
    pub fn on_heard(&mut self, now: Instant) {
        if let Some(attempt) = &mut self.attempt
            && attempt.asked_at + attempt.interval <= now
        {
            attempt.next_at = attempt.next_at.min(now);
        }
    }

    /// Takes PATH_RESPONSE. True if it answers a challenge of this 4-tuple, which is thereby validated; other
    /// responses change nothing (RFC 9000 §8.2.3).
    pub fn on_response(&mut self, data: ChallengeData) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
        //# This requirement MUST NOT be enforced by the endpoint that initiates path validation, as that
        //# would enable an attack on migration; see Section 9.3.3.
        let answered = self.outstanding.iter().find(|(challenge, _)| *challenge == data);
        let Some((_, breadth)) = answered.copied() else { return false };
        let attempt = self.attempt.take();
        self.presume();
        if let (Breadth::Cut, Some(attempt)) = (breadth, attempt) {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.3
            //# However, the endpoint MUST initiate another path validation with an expanded datagram to verify
            //# that the path supports the required MTU.
            let fails_at = attempt.fails_at + attempt.patience;
            self.attempt =
                Some(Attempt { next_at: Instant::ZERO, fails_at, purpose: Purpose::Size, ..attempt });
        }
        true
    }

    /// Says that the challenge which was just drawn leaves in a datagram of less than 1200 bytes, because the peer's
    /// address may be sent no more: its answer proves the address, and a larger one has to prove the path.
    pub fn on_cut(&mut self) {
        if let Some((_, breadth)) = self.outstanding.back_mut() {
            *breadth = Breadth::Cut;
        }
    }

    /// Returns true if validation has failed by `now` (RFC 9000 §8.2.4). An address that was validated before stays so,
    /// unless it turns out that the path does not carry 1200 bytes (RFC 9000 §14.2).
    pub fn failed(&mut self, now: Instant) -> bool {
        if let Some(attempt) = self.attempt.take_if(|attempt| now >= attempt.fails_at) {
            self.outstanding.clear();
            self.proof = match (attempt.purpose, self.proof) {
                (Purpose::Size, _) => Proof::Narrow,
                (Purpose::Address, Proof::Missing) => Proof::Refused,
                (Purpose::Address, proof) => proof,
            };
        }
        matches!(self.proof, Proof::Refused | Proof::Narrow)
    }

    /// Returns true if [`Self::failed`] would, or if it ends the attempt.
    #[inline]
    pub fn may_have_failed(&self, now: Instant) -> bool {
        matches!(self.proof, Proof::Refused | Proof::Narrow)
            || self.attempt.as_ref().is_some_and(|attempt| now >= attempt.fails_at)
    }

    /// Returns true if validation has failed because datagrams of 1200 bytes do not arrive.
    pub fn is_narrow(&self) -> bool {
        self.proof == Proof::Narrow
    }

    /// Returns the time at which a challenge is due or the attempt fails, whichever is first. A challenge that was due
    /// and could not be sent does not ask for a timer: it leaves with the next room there is.
    pub fn deadline(&self, now: Instant) -> Option<Deadline> {
        let attempt = self.attempt?;
        let at = if attempt.next_at > now { attempt.next_at.min(attempt.fails_at) } else { attempt.fails_at };
        Some(Deadline::new(at, TimerReason::PathValidation))
    }

    /// Takes PATH_CHALLENGE: an answer is owed on this 4-tuple (RFC 9000 §8.2.2).
    pub fn on_challenge(&mut self, data: ChallengeData) {
        if self.responses.contains(&data) {
            return;
        }
        if self.responses.len() == MAX_RESPONSES {
            self.responses.pop_front();
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
        //# On receiving a PATH_CHALLENGE frame, an endpoint MUST respond by echoing the data contained in the
        //# PATH_CHALLENGE frame in a PATH_RESPONSE frame
        self.responses.push_back(data);
    }

    /// Returns true if an answer is owed.
    pub fn owes_response(&self) -> bool {
        !self.responses.is_empty()
    }

    /// Returns true if a challenge or an answer is to be sent at `now`.
    pub fn has_interest(&self, now: Instant) -> bool {
        let is_due = |attempt: &Attempt| attempt.next_at <= now && now < attempt.fails_at;
        self.owes_response() || self.attempt.as_ref().is_some_and(is_due)
    }

    /// The data of the next PATH_RESPONSE to send. Responses are not repeated when lost (RFC 9000 §13.3).
    pub fn next_response(&mut self) -> Option<ChallengeData> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
        //# An endpoint MUST NOT send more than one PATH_RESPONSE frame in response to one PATH_CHALLENGE
        //# frame; see Section 13.3
        self.responses.pop_front()
    }
}

#[cfg(test)]
impl Validation {
    /// The data of the challenges whose answer would be accepted.
    pub(crate) fn unanswered(&self) -> Vec<ChallengeData> {
        self.outstanding.iter().map(|(data, _)| *data).collect()
    }
}

/// Data that cannot be guessed (RFC 9000 §8.2.1).
fn draw(rng: &mut impl RngCore) -> ChallengeData {
    let mut data = ChallengeData::default();
    rng.fill_bytes(&mut data);
    data
}

#[cfg(test)]
mod tests;
