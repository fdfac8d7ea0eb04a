//! Packets declared lost are remembered for a while: an acknowledgement that arrives after all tells that the loss was
//! spurious (RFC 9002 §7.3.2 leaves the reaction to the controller; RFC 9438 §4.9.2 undoes the reduction).

use crate::recovery::sent_packet::SentPacket;
use crate::recovery_token::RecoveryTokens;
use crate::time::Instant;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Packets remembered per space.
const MOST_REMEMBERED: usize = 1024;

/// A packet is remembered for this many loss delays.
const MEMORY: u32 = 8;

/// A packet was declared lost and acknowledged later.
#[derive(Clone, PartialEq, Debug)]
pub struct SpuriousLoss {
    /// Its number.
    pub number: u64,
    /// The time at which it left.
    pub sent_at: Instant,
    /// The time at which it was declared lost.
    pub lost_at: Instant,
    /// Bytes that it counted in flight.
    pub bytes: usize,
    /// The distance to the largest acknowledged number when it was declared lost.
    pub distance: u64,
    /// The tokens of its frames, which did arrive.
    pub tokens: RecoveryTokens,
}

/// Recently lost packets, by ascending number.
#[derive(Clone, Debug, Default)]
pub struct LostPackets {
    remembered: VecDeque<(SpuriousLoss, Instant)>,
}

impl LostPackets {
    /// Remembers `packet`, lost at `now` for being `distance` numbers behind, or older by `loss_delay`, than an
    /// acknowledged one. Numbers must ascend.
    pub fn remember(&mut self, packet: &SentPacket, now: Instant, distance: u64, loss_delay: Duration) {
        if self.remembered.len() >= MOST_REMEMBERED {
            self.remembered.pop_front();
        }
        let loss = SpuriousLoss {
            number: packet.number,
            sent_at: packet.sent_at,
            lost_at: now,
            bytes: packet.bytes_in_flight(),
            distance,
            tokens: packet.tokens.clone(),
        };
        self.remembered.push_back((loss, now + loss_delay.saturating_mul(MEMORY)));
    }

    /// Forgets what was lost too long ago.
    pub fn forget(&mut self, now: Instant) {
        while self.remembered.front().is_some_and(|(_, until)| *until <= now) {
            self.remembered.pop_front();
        }
    }

    /// Takes the remembered packets with numbers in `range`: they were acknowledged.
    #[inline]
    pub fn take(&mut self, range: &RangeInclusive<u64>, taken: &mut Vec<SpuriousLoss>) {
        if !self.remembered.is_empty() {
            self.take_some(range, taken);
        }
    }

    fn take_some(&mut self, range: &RangeInclusive<u64>, taken: &mut Vec<SpuriousLoss>) {
        let start = self.remembered.partition_point(|(loss, _)| loss.number < *range.start());
        let end = self.remembered.partition_point(|(loss, _)| loss.number <= *range.end());
        taken.extend(self.remembered.drain(start..end).map(|(loss, _)| loss));
    }

    /// The smallest number remembered.
    pub fn smallest(&self) -> Option<u64> {
        self.remembered.front().map(|(loss, _)| loss.number)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.remembered.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::sent_packet::PacketClass;

    fn remember(lost: &mut LostPackets, number: u64, now: Instant) {
        let packet = SentPacket::new(number, now, 1200, PacketClass::AckEliciting);
        lost.remember(&packet, now, 3, Duration::from_millis(10));
    }

    #[test]
    fn each_packet_is_taken_once() {
        let mut lost = LostPackets::default();
        for number in [3, 4, 7, 9] {
            remember(&mut lost, number, Instant::ZERO);
        }
        let mut taken = Vec::new();
        lost.take(&(4..=8), &mut taken);
        lost.take(&(0..=8), &mut taken);
        assert_eq!(taken.iter().map(|loss| loss.number).collect::<Vec<_>>(), [4, 7, 3]);
        assert_eq!(lost.smallest(), Some(9));
    }

    #[test]
    fn memory_is_bounded_in_number_and_time() {
        let mut lost = LostPackets::default();
        for number in 0..5000 {
            remember(&mut lost, number, Instant::ZERO);
        }
        assert_eq!(lost.smallest(), Some(5000 - MOST_REMEMBERED as u64));
        lost.forget(Instant::ZERO + Duration::from_millis(80));
        assert_eq!(lost.smallest(), None);
        remember(&mut lost, 5000, Instant::ZERO);
        lost.clear();
        assert_eq!(lost.smallest(), None);
    }
}
