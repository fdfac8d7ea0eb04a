//! The packets that arrived in a packet number space: duplicates are refused, and acknowledgements scheduled and
//! written (RFC 9000 §13.2).

use crate::PathId;
use crate::error::Dropped;
use crate::ranges::Ranges;
use crate::recovery::ecn::{Ecn, EcnCounter};
use crate::time::Instant;
use crate::wire::frame::{Ack, Frame};
use std::time::Duration;

/// Ranges kept for acknowledgements; older ones are not acknowledged again (RFC 9000 §13.2.3).
const MOST_REPORTED: usize = 64;

/// Ranges from which on it is worth a packet that asks the peer whether it has seen them.
const MANY: usize = 32;

/// Ranges kept to recognise duplicates; numbers below the oldest count as duplicates (RFC 9000 §12.3).
const MOST_SEEN: usize = 256;

/// Tells whether a packet asks for an acknowledgement (RFC 9002 §2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AckEliciting {
    /// It contains a frame other than ACK, PADDING and CONNECTION_CLOSE.
    Yes,
    /// It does not.
    No,
}

impl From<bool> for AckEliciting {
    fn from(elicits: bool) -> Self {
        if elicits { Self::Yes } else { Self::No }
    }
}

/// The policy of acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckPolicy {
    /// The number of ack-eliciting packets that are acknowledged at once (RFC 9000 §13.2.2); 0 counts as 1. Default: 2.
    pub threshold: u64,
    /// The longest time that an acknowledgement waits: max_ack_delay (RFC 9000 §18.2). Default: 25 ms.
    pub max_delay: Duration,
    /// The gap in packet numbers from which on a packet out of order is acknowledged at once; 1 is every gap, 0 is none
    /// (draft-ietf-quic-ack-frequency-14 §6.2). Default: 1.
    pub reordering: u64,
}

impl AckPolicy {
    /// Every ack-eliciting packet at once: Initial and Handshake packets (RFC 9000 §13.2.1).
    pub const IMMEDIATE: Self = Self { threshold: 1, max_delay: Duration::ZERO, reordering: 1 };
}

impl Default for AckPolicy {
    /// Every second ack-eliciting packet, after 25 ms at most (RFC 9000 §13.2.2, §18.2).
    fn default() -> Self {
        Self { threshold: 2, max_delay: Duration::from_millis(25), reordering: 1 }
    }
}

/// An acknowledgement that is owed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Owed {
    #[default]
    Nothing,
    /// `packets` ack-eliciting packets are unreported; the acknowledgement is due at `at`.
    Packets { packets: u64, at: Instant },
}

/// The received packets of one packet number space.
#[derive(Clone, Debug, Default)]
pub struct Received {
    policy: AckPolicy,
    /// The numbers to acknowledge: shrinks when the peer has seen an acknowledgement.
    report: Ranges,
    /// The numbers that were processed: shrinks only at its limit.
    seen: Ranges,
    /// Numbers below count as processed.
    floor: u64,
    largest_at: Instant,
    /// The largest number that an acknowledgement reported.
    largest_reported: Option<u64>,
    owed: Owed,
    /// The peer asked for the acknowledgement that is owed.
    asked: bool,
    unreported: u64,
    ecn: EcnCounter,
}

impl Received {
    /// Nothing arrived yet; acknowledges as `policy` says.
    pub fn new(policy: AckPolicy) -> Self {
        Self { policy, ..Self::default() }
    }

    /// Acknowledges as `policy` says from the next packet on: a receiver of bulk data may thin its acknowledgements.
    pub fn set_policy(&mut self, policy: AckPolicy) {
        self.policy = policy;
    }

    /// Returns true if `number` was processed, or is so old that nobody knows any more.
    pub fn contains(&self, number: u64) -> bool {
        number < self.floor || self.seen.contains(number)
    }

    /// The largest number that arrived.
    pub fn largest(&self) -> Option<u64> {
        self.seen.largest()
    }

    /// Takes a packet that authenticated; a duplicate is refused and changes nothing (RFC 9000 §12.3).
    pub fn on_packet(
        &mut self,
        number: u64,
        elicits: AckEliciting,
        ecn: Ecn,
        now: Instant,
    ) -> Result<(), Dropped> {
        if self.contains(number) {
            return Err(Dropped::Duplicate);
        }
        let expected = self.seen.largest().map_or(0, |largest| largest.saturating_add(1));
        self.remember(number);
        if number >= expected {
            self.largest_at = now;
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-13.4.1
        //# Even if an endpoint does not set an ECT field in packets it sends, the endpoint MUST provide
        //# feedback about ECN markings it receives, if these are accessible
        self.ecn.on_packet(ecn);
        self.unreported = self.unreported.saturating_add(1);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
        //# An endpoint MUST NOT send a non-ack-eliciting packet in response to a non-ack-eliciting packet,
        //# even if there are packet gaps that precede the received packet
        if elicits == AckEliciting::Yes {
            // RFC 9000 §13.2.1: reordered packets, gaps and congestion marks are reported at once.
            let urgent = ecn == Ecn::Ce || self.is_out_of_order(number, expected);
            //= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
            //# Every packet SHOULD be acknowledged at least once, and ack-eliciting packets MUST be
            //# acknowledged at least once within the maximum delay an endpoint communicated using the
            //# max_ack_delay transport
            self.owe(if urgent { Duration::ZERO } else { self.policy.max_delay }, now);
        }
        Ok(())
    }

    /// Returns true if an acknowledgement must be sent at `now`.
    pub fn ack_due(&self, now: Instant) -> bool {
        self.ack_deadline().is_some_and(|at| at <= now)
    }

    /// Returns the time at which an acknowledgement must be sent, if one is owed.
    pub fn ack_deadline(&self) -> Option<Instant> {
        match self.owed {
            Owed::Nothing => None,
            Owed::Packets { at, .. } => Some(at),
        }
    }

    /// Returns true if an ack-eliciting packet is unreported: a packet that leaves anyway may take the acknowledgement
    /// along.
    pub fn pending(&self) -> bool {
        self.owed != Owed::Nothing
    }

    /// Returns true if the peer asked for the acknowledgement that is owed.
    pub fn is_asked(&self) -> bool {
        self.asked
    }

    /// Packets that arrived since the last acknowledgement was built, ack-eliciting or not.
    #[cfg(test)]
    pub fn unreported(&self) -> u64 {
        self.unreported
    }

    /// The peer wants an acknowledgement of the packet that was just taken in, at `now`.
    pub fn acknowledge_at_once(&mut self, now: Instant) {
        if let Owed::Packets { at, .. } = &mut self.owed {
            *at = (*at).min(now);
            self.asked = true;
        }
    }

    /// Acknowledgements of late most likely went nowhere: the next packet takes one along.
    pub fn repeat(&mut self, now: Instant) {
        if self.owed == Owed::Nothing && self.report.largest().is_some() {
            self.owe(Duration::ZERO, now);
        }
    }

    /// Builds an acknowledgement of at most `room` bytes, and considers it sent. See [`Self::report`].
    pub fn build(
        &mut self,
        now: Instant,
        ack_delay_exponent: u8,
        room: usize,
        form: Option<PathId>,
    ) -> Option<Frame> {
        let frame = self.report(now, ack_delay_exponent, room, form)?;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
        //# Since packets containing only ACK frames are not congestion controlled, an endpoint MUST NOT send
        //# more than one such packet in response to receiving an ack-eliciting packet.
        self.owed = Owed::Nothing;
        self.asked = false;
        self.unreported = 0;
        self.largest_reported = self.largest_reported.max(self.report.largest());
        Some(frame)
    }

    /// Builds an acknowledgement of at most `room` bytes for a packet that elicits one itself; what is owed stays owed.
    ///
    /// `form` is the path that a PATH_ACK names (RFC 10069 §4.1), or `None` for an ACK frame. `None` if there is nothing
    /// to report or no room; when there is little room the oldest ranges are left out (RFC 9000 §13.2.3).
    pub fn report(
        &self,
        now: Instant,
        ack_delay_exponent: u8,
        room: usize,
        form: Option<PathId>,
    ) -> Option<Frame> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.5
        //# An endpoint MUST NOT include delays that it does not control when populating the ACK Delay field
        //# in an ACK frame
        let delay = now.since(self.largest_at).as_micros().min(u128::from(u64::MAX)) as u64;
        // RFC 9000 §18.2: exponents above 20 are invalid.
        let delay = (delay >> ack_delay_exponent.min(20)).min((1 << 62) - 1);
        Ack::from_ranges(form, &self.report, delay, self.ecn.report(), room).map(Frame::Ack)
    }

    /// Returns true if an acknowledgement has many ranges, most of which the peer has seen.
    pub fn has_many_ranges(&self) -> bool {
        self.report.len() > MANY
    }

    /// The peer has an acknowledgement of `largest`: packets up to it need no report any more (RFC 9000 §13.2.4).
    pub fn on_ack_acknowledged(&mut self, largest: u64) {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.3
        //# A receiver MUST retain an ACK Range unless it can ensure that it will not subsequently accept
        //# packets with numbers in that range
        // The largest stays, so that a later frame still has something to say.
        let keep = self.report.largest().map_or(largest, |newest| newest.min(largest.saturating_add(1)));
        self.report.remove_below(keep);
    }

    /// Packet `number` came where `expected` was next: does the peer want to know now (RFC 9000 §13.2.1,
    /// draft-ietf-quic-ack-frequency-14 §6.2)?
    fn is_out_of_order(&self, number: u64, expected: u64) -> bool {
        match self.policy.reordering {
            0 => false,
            1 => number != expected,
            threshold => {
                // Numbers up to here were reported missing, or counted as lost by the peer.
                let settled = self.largest_reported.and_then(|largest| largest.checked_sub(threshold));
                let largest = self.report.largest().unwrap_or(number);
                number < expected && settled.is_some_and(|settled| number <= settled)
                    || self.smallest_missing(settled).is_some_and(|missing| largest - missing >= threshold)
            }
        }
    }

    /// The smallest number above `settled` and below the largest that has not arrived.
    fn smallest_missing(&self, settled: Option<u64>) -> Option<u64> {
        let largest = self.seen.largest()?;
        let next = settled.map_or(0, |settled| settled + 1).max(self.floor);
        if self.seen.newest().is_some_and(|(first, _)| first <= next) {
            return None;
        }
        // From the newest down: only a few ranges are above what was reported.
        let lowest = self.seen.iter().rev().take_while(|range| *range.end() >= next).last();
        let missing = match lowest {
            Some(range) if *range.start() <= next => range.end() + 1,
            _ => next,
        };
        (missing < largest).then_some(missing)
    }

    fn remember(&mut self, number: u64) {
        self.seen.insert(number);
        if self.seen.len() > MOST_SEEN {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.3
            //# Receivers can discard all ACK Ranges, but they MUST retain the largest packet number that has
            //# been successfully processed, as that is used to recover packet numbers from subsequent packets
            self.seen.limit(MOST_SEEN);
            self.floor = self.seen.smallest().unwrap_or(self.floor);
        }
        self.report.insert(number);
        if self.report.len() > MOST_REPORTED {
            self.report.limit(MOST_REPORTED);
        }
    }

    fn owe(&mut self, delay: Duration, now: Instant) {
        let due = now + delay;
        let (packets, at) = match self.owed {
            Owed::Nothing => (1, due),
            Owed::Packets { packets, at } => (packets.saturating_add(1), at.min(due)),
        };
        let at = if packets >= self.policy.threshold { at.min(now) } else { at };
        self.owed = Owed::Packets { packets, at };
    }
}

#[cfg(test)]
mod tests;
