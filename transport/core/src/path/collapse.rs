//! A path whose delivery has collapsed: it answers, but what is in flight takes many times as long as when it left.
//!
//! The link has hardly any of its rate left, and what was queued for it before waits there. A stream that is read in order
//! waits with it. No packet is lost, and acknowledgements keep coming, so neither loss detection nor liveness sees anything.

use crate::path::path::{LatePacket, Path};
use crate::ranges::Ranges;
use crate::recovery::sent_packet::SentPacket;
use crate::time::Instant;
use hvq_scheduler::Bandwidth;
use std::time::Duration;

/// One over the share of its rate that a collapsed path delivers at most.
const SHARE: u64 = 4;
/// Fewer packets in flight than this are no queue: the peer may hold their acknowledgement back.
const SEVERAL: usize = 4;
/// Fewer bytes in flight than this, of an application that has no more to send, are a trickle: less than an initial window (RFC
/// 9002 §7.2).
const TRICKLE: usize = 12_000;
/// The time by which the oldest packet is late at least, beyond a quarter of what it should have taken: acknowledgements are
/// delayed by as much (RFC 9000 §13.2.1).
const LEAST_MARGIN: Duration = Duration::from_millis(25);

/// The packets of a path that were copied to others although it answers. Most paths never have any.
#[derive(Clone, Debug, Default)]
pub struct Copies(Option<Box<Copied>>);

/// Packets that were copied.
#[derive(Clone, Debug, Default)]
struct Copied {
    /// Those that are in flight.
    numbers: Ranges,
    /// Bytes of all since the path was opened.
    bytes: u64,
}

impl Copies {
    /// Returns true if packet `number` was copied.
    pub fn has(&self, number: u64) -> bool {
        self.0.as_ref().is_some_and(|copied| copied.numbers.contains(number))
    }

    /// Bytes that were copied since the path was opened.
    pub fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, |copied| copied.bytes)
    }

    /// Packet `number` of `bytes` was copied; those below `oldest` are not in flight any more.
    pub fn note(&mut self, number: u64, bytes: usize, oldest: u64) {
        let copied = self.0.get_or_insert_default();
        copied.numbers.remove_below(oldest);
        copied.numbers.insert(number);
        copied.bytes += bytes as u64;
    }

    /// Withdraws offers that were not sent elsewhere yet: they may be made again.
    pub fn withdraw(&mut self) {
        if let Some(copied) = &mut self.0 {
            copied.numbers.clear();
        }
    }

    /// Returns true if a packet from `oldest` on was copied: the collapse goes on.
    fn go_on(&self, oldest: u64) -> bool {
        let largest = self.0.as_ref().and_then(|copied| copied.numbers.largest());
        largest.is_some_and(|largest| largest >= oldest)
    }
}

/// A packet in flight, and the bytes of the path up to its end.
#[derive(Clone, Debug)]
pub struct Overdue {
    /// The number of the packet.
    pub number: u64,
    /// The packet.
    pub packet: LatePacket,
    /// Bytes in flight up to the end of the packet.
    pub ahead: usize,
}

impl Path {
    /// The rate at which a path delivers whose delivery has collapsed; `None` of any other.
    ///
    /// The oldest of several packets is overdue by what its queue should have taken when it left, and less than a quarter of
    /// its rate arrived of late: of what it delivered before, or of what its bursts showed where the application sent a trickle.
    /// A path on which nothing arrives at all is [silent](crate::path::liveness) before long.
    pub fn collapsed_rate(&self, now: Instant) -> Option<Bandwidth> {
        if self.sent.ack_eliciting_in_flight() < SEVERAL || self.liveness.is_silent() {
            return None;
        }
        let oldest = self.sent.unacknowledged().find(|packet| packet.class.is_ack_eliciting())?;
        let age = now.since(oldest.sent_at);
        if age <= LEAST_MARGIN {
            return None;
        }
        let usual = self.route.rate.estimate()?;
        let recent = self.route.rate.recent(oldest, now);
        // An application that sends little shows little of what the path carries.
        let carried = match oldest.delivery.app_limited && self.sent.in_flight() < TRICKLE {
            true => self.route.rate.capacity().max(self.route.rate.shown_by_handshake()).max(Some(usual))?,
            false => usual,
        };
        if recent.at_most.bits_per_second().saturating_mul(SHARE) >= carried.bits_per_second() {
            return None;
        }
        let is_overdue = || {
            let expected = self.expected_round_trip(oldest, usual)?;
            Some(recent.moves && age > expected + (expected / 4).max(LEAST_MARGIN))
        };
        (self.copies.go_on(oldest.number) || is_overdue()?).then_some(recent.at_most)
    }

    /// The round trip of `packet` behind the bytes that were in flight when it left, at `rate`.
    fn expected_round_trip(&self, packet: &SentPacket, rate: Bandwidth) -> Option<Duration> {
        let before = usize::try_from(packet.delivery.in_flight).unwrap_or(usize::MAX);
        let queue = rate.transmission_time(before.saturating_add(packet.bytes));
        Some(self.rtts.longest_base()? + queue)
    }

    /// Packets in flight that were not copied, the oldest first.
    pub fn overdue(&self, now: Instant) -> impl Iterator<Item = Overdue> {
        let mut ahead = 0_usize;
        let counted = self.sent.unacknowledged().map(move |packet| {
            ahead = ahead.saturating_add(packet.bytes_in_flight());
            (packet, ahead)
        });
        let is_open =
            |packet: &SentPacket| packet.class.is_ack_eliciting() && !self.copies.has(packet.number);
        counted.filter(move |(packet, _)| is_open(packet)).map(move |(packet, ahead)| Overdue {
            number: packet.number,
            packet: LatePacket::of(packet, now),
            ahead,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collapse_goes_on_while_packets_that_were_copied_are_in_flight() {
        let mut copies = Copies::default();
        assert!(!copies.go_on(0));
        for number in [11, 12, 10] {
            copies.note(number, 100, 9);
        }
        assert_eq!([9, 10, 12, 13].map(|number| copies.has(number)), [false, true, true, false]);
        assert_eq!([12, 13].map(|oldest| copies.go_on(oldest)), [true, false]);
        copies.note(20, 50, 12);
        assert!(!copies.has(11) && copies.has(12));
        copies.withdraw();
        assert!(!copies.has(20) && !copies.go_on(0));
        assert_eq!(copies.bytes(), 350);
    }
}
