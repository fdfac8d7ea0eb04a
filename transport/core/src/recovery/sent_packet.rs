//! The record of a sent packet, and the packets that were declared lost.

use crate::recovery::ecn::Ecn;
use crate::recovery::rate::DeliveryState;
use crate::recovery_token::RecoveryTokens;
use crate::time::Instant;
use smallvec::SmallVec;

/// Skipped packet numbers that are remembered; they are at least half a window apart, so these cover several windows.
pub const MOST_SKIPPED: usize = 8;

/// The class of a packet (RFC 9002 §2): each includes the properties of the one before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PacketClass {
    /// Only ACK and CONNECTION_CLOSE frames: not congestion controlled.
    AckOnly,
    /// With PADDING: it counts as in flight but elicits no acknowledgement.
    InFlight,
    /// In flight, and the peer must acknowledge it, but a timer of its own watches over it: a liveness probe.
    Asking,
    /// In flight, the peer must acknowledge it, and the probe timeout runs until it has.
    AckEliciting,
}

impl PacketClass {
    /// Returns true if the packet counts as bytes in flight.
    pub fn in_flight(self) -> bool {
        self != Self::AckOnly
    }

    /// Returns true if the peer must acknowledge it within its max_ack_delay.
    pub fn is_ack_eliciting(self) -> bool {
        self >= Self::Asking
    }

    /// Returns true if the probe timeout runs for the packet (RFC 9002 §6.2.1).
    pub fn arms_timeout(self) -> bool {
        self == Self::AckEliciting
    }
}

/// A packet that was sent.
#[derive(Clone, PartialEq, Debug)]
pub struct SentPacket {
    /// Its number in the space.
    pub number: u64,
    /// The time at which it left.
    pub sent_at: Instant,
    /// Its size, header and tag included.
    pub bytes: usize,
    /// The class of the packet.
    pub class: PacketClass,
    /// Its ECN codepoint.
    pub ecn: Ecn,
    /// The flow when it left, for rate samples.
    pub delivery: DeliveryState,
    /// The tokens by which the owners of its frames learn of its fate.
    pub tokens: RecoveryTokens,
}

impl SentPacket {
    /// A packet without tokens and marks.
    pub fn new(number: u64, sent_at: Instant, bytes: usize, class: PacketClass) -> Self {
        let (ecn, delivery) = (Ecn::NotEct, DeliveryState::default());
        Self { number, sent_at, bytes, class, ecn, delivery, tokens: RecoveryTokens::new() }
    }

    /// Bytes that it adds to what is in flight.
    pub fn bytes_in_flight(&self) -> usize {
        if self.class.in_flight() { self.bytes } else { 0 }
    }
}

/// Packets declared lost.
#[derive(Clone, Debug, Default)]
pub struct Lost {
    /// The packets, by ascending number.
    pub packets: Vec<SentPacket>,
    /// Numbers that were never used, as far as remembered.
    pub skipped: SmallVec<[u64; MOST_SKIPPED]>,
}

impl Lost {
    /// Bytes lost that were in flight.
    pub fn bytes(&self) -> usize {
        self.packets.iter().map(SentPacket::bytes_in_flight).sum()
    }

    /// Returns the time at which the newest of the lost packets that were in flight left.
    pub fn largest_sent_at(&self) -> Option<Instant> {
        self.packets.iter().rev().find(|packet| packet.class.in_flight()).map(|packet| packet.sent_at)
    }

    /// Returns true if no packet was sent between `earlier` and `later`.
    pub fn follows(&self, earlier: u64, later: u64) -> bool {
        let mut next = earlier.saturating_add(1);
        while self.skipped.contains(&next) {
            next += 1;
        }
        next == later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_counted_of_packets_that_were_in_flight() {
        let at = |number| Instant::from_nanos(1000 * number);
        let packet = |(number, class)| SentPacket::new(number, at(number), 100, class);
        let classes = [(1, PacketClass::AckEliciting), (2, PacketClass::InFlight), (3, PacketClass::AckOnly)];
        let lost = Lost { packets: classes.map(packet).into(), ..Lost::default() };
        assert_eq!((lost.bytes(), lost.largest_sent_at()), (200, Some(at(2))));
        let nothing = Lost::default();
        assert_eq!((nothing.bytes(), nothing.largest_sent_at()), (0, None));
    }
}
