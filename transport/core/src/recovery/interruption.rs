//! Interruptions: losses that show that a path was cut off, not what it can carry.
//!
//! A bottleneck that is overloaded still delivers what its queue holds: some packets of a flight arrive, and late. A path that
//! is cut off delivers nothing, and the first packet after that takes as long as those before. RFC 9002 takes both for
//! congestion, and so the window is reduced for both. What slow start had found out about the path remains with CUBIC, and
//! policies are not told that the path loses packets. In doubt it was congestion.

use crate::recovery::rtt::{INITIAL_RTT, Rtt};
use crate::recovery::sent_packet::Lost;
use crate::recovery::sent_packet::SentPacket;
use crate::time::Instant;
use std::ops::Range;
use std::time::Duration;

/// The packets of a whole flight whose loss shows an interruption: one or two may be lost at random.
const FLIGHT: usize = 3;

/// The cause of losses, as far as it can be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cause {
    /// The path is overloaded, or loses packets at random.
    #[default]
    Congestion,
    /// The path delivered nothing for a time.
    Interruption,
}

/// Follows the gaps between the packets of a path that arrive.
#[derive(Clone, Debug, Default)]
pub struct Interruptions {
    gap: Gap,
    /// The time at which the newest packet left that arrived.
    arrived: Option<Instant>,
    /// The cause of the losses in the gap.
    cause: Cause,
    /// Packets lost in interruptions.
    packets: u64,
}

/// Consecutive packets of which none arrived.
#[derive(Clone, Debug, Default)]
struct Gap {
    numbers: Range<u64>,
    /// The time at which the packet before it left.
    after: Option<Instant>,
    /// The smoothed round-trip time before it; zero if none was known.
    smoothed: Duration,
    /// The time that a packet before it took at most to be acknowledged; the initial round-trip time if none was known.
    spread: Duration,
}

impl Interruptions {
    /// `packets` arrived, by ascending number; the largest that arrived before is `largest`. The newest took `rtt`, packets
    /// before it what `before` says, if that was measured. One that took longer shows a queue.
    pub fn on_acknowledged(
        &mut self,
        packets: &[SentPacket],
        largest: Option<u64>,
        rtt: Option<Duration>,
        before: Option<Rtt>,
    ) {
        let mut next = largest.map_or(0, |largest| largest + 1);
        let mut gap = (0..0, None);
        for packet in packets.iter().filter(|packet| largest.is_none_or(|largest| packet.number > largest)) {
            let numbers = next..packet.number;
            next = packet.number + 1;
            let after = self.arrived.replace(packet.sent_at);
            // What arrived just before a path was cut off is often acknowledged only with what arrives after that.
            if numbers.end - numbers.start > gap.0.end - gap.0.start {
                gap = (numbers, after);
            }
        }
        let (numbers, after) = gap;
        if numbers.is_empty() {
            return;
        }
        let known = |rtt: Rtt| (rtt.smoothed(), rtt.spread());
        let (smoothed, spread) = before.map_or((Duration::ZERO, INITIAL_RTT), known);
        let is_late = before.is_some() && rtt.is_none_or(|rtt| rtt > spread);
        let numbers = if is_late { 0..0 } else { numbers };
        self.gap = Gap { numbers, after, smoothed, spread };
        self.cause = Cause::Congestion;
    }

    /// The cause of the losses of `lost`.
    pub fn on_lost(&mut self, lost: &Lost) -> Cause {
        let (Some(first), Some(last)) = (lost.packets.first(), lost.packets.last()) else {
            return Cause::Congestion;
        };
        if !self.gap.numbers.contains(&first.number) || !self.gap.numbers.contains(&last.number) {
            return Cause::Congestion;
        }
        let outlasts = last.sent_at.since(first.sent_at) >= self.gap.spread;
        // A path on which nothing ever arrived was not there yet: there is nothing to judge.
        let is_flight = self.gap.after.is_none_or(|after| {
            first.sent_at.since(after) > self.gap.smoothed && lost.packets.len() >= FLIGHT
        });
        if outlasts || is_flight {
            self.cause = Cause::Interruption;
        }
        if self.cause == Cause::Interruption {
            self.packets += lost.packets.len() as u64;
        }
        self.cause
    }

    /// Packets lost in interruptions.
    pub fn packets(&self) -> u64 {
        self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::sent_packet::PacketClass;

    const RTT: Duration = Duration::from_millis(50);

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Packets with these numbers that left at these times, in milliseconds.
    fn packets(packets: &[(u64, u64)]) -> Vec<SentPacket> {
        let packet = |&(number, ms)| SentPacket::new(number, at(ms), 1200, PacketClass::AckEliciting);
        packets.iter().map(packet).collect()
    }

    fn lost(numbers: &[(u64, u64)]) -> Lost {
        Lost { packets: packets(numbers), ..Lost::default() }
    }

    /// A path with a round trip of 50 ms, give or take 100. Packet 4, which left at 1 s, arrived, and then `next`, which left
    /// at 3 s and took `rtt`.
    fn after_gap(next: u64, rtt: Duration) -> Interruptions {
        let mut path = Interruptions::default();
        path.on_acknowledged(&packets(&[(4, 1000)]), Some(3), Some(RTT), None);
        path.on_acknowledged(&packets(&[(next, 3000)]), Some(4), Some(rtt), Some(Rtt::new(RTT)));
        path
    }

    #[test]
    fn a_silence_of_several_round_trips_is_an_interruption() {
        let mut path = after_gap(9, RTT);
        assert_eq!(path.on_lost(&lost(&[(5, 1001), (8, 1400)])), Cause::Interruption);
        assert_eq!(path.packets(), 2);
        // The rest of the same gap, whenever it counts as lost.
        assert_eq!(path.on_lost(&lost(&[(7, 1300)])), Cause::Interruption);
    }

    #[test]
    fn the_loss_of_a_whole_flight_is_one_and_that_of_the_end_of_a_flight_is_none() {
        let flight = [(5, 1100), (6, 1100), (7, 1100)];
        assert_eq!(after_gap(8, RTT).on_lost(&lost(&flight)), Cause::Interruption);
        assert_eq!(after_gap(8, RTT).on_lost(&lost(&flight[..2])), Cause::Congestion, "two may be chance");
        // What left with packet 4, which arrived, overflowed a queue.
        let end = [(5, 1001), (6, 1001), (7, 1001)];
        let mut path = after_gap(8, RTT);
        assert_eq!((path.on_lost(&lost(&end)), path.packets()), (Cause::Congestion, 0));
    }

    #[test]
    fn a_queue_is_no_interruption() {
        let silence = lost(&[(5, 1001), (8, 1400)]);
        assert_eq!(after_gap(9, RTT * 4).on_lost(&silence), Cause::Congestion);
        let mut unknown = Interruptions::default();
        unknown.on_acknowledged(&packets(&[(9, 3000)]), Some(4), None, Some(Rtt::new(RTT)));
        assert_eq!(unknown.on_lost(&silence), Cause::Congestion, "nobody knows how late the answer is");
    }

    #[test]
    fn what_arrived_before_an_interruption_may_be_acknowledged_after_it() {
        let mut path = after_gap(5, RTT);
        let arrived = packets(&[(6, 3001), (7, 3001), (12, 3500), (14, 3501)]);
        path.on_acknowledged(&arrived, Some(5), Some(RTT), Some(Rtt::new(RTT)));
        assert_eq!(path.on_lost(&lost(&[(8, 3010), (11, 3400)])), Cause::Interruption);
        assert_eq!(path.on_lost(&lost(&[(13, 3500)])), Cause::Congestion, "it is not in the widest gap");
    }

    #[test]
    fn the_widest_gap_is_the_first_of_equals() {
        // What arrived behind packet 4, and whether the losses are in the gap that counts.
        let cases: [(&[u64], &[u64], Cause); 4] = [
            (&[6, 9], &[7, 8], Cause::Interruption),
            (&[6, 9], &[5], Cause::Congestion),
            (&[8, 12], &[5, 7], Cause::Interruption),
            (&[8, 12], &[9, 11], Cause::Congestion),
        ];
        for (arrived, gone, cause) in cases {
            let mut path = after_gap(4, RTT);
            let left = |number: &u64| (*number, 3000 + 200 * *number);
            let arrived = packets(&arrived.iter().map(left).collect::<Vec<_>>());
            path.on_acknowledged(&arrived, Some(4), Some(RTT), Some(Rtt::new(RTT)));
            let gone: Vec<_> = gone.iter().map(left).collect();
            assert_eq!(path.on_lost(&lost(&gone)), cause, "{gone:?}");
        }
    }

    #[test]
    fn an_answer_that_is_just_in_time_is_not_late() {
        let silence = lost(&[(5, 1001), (8, 1400)]);
        let longest = Rtt::new(RTT).spread();
        assert_eq!(after_gap(9, longest).on_lost(&silence), Cause::Interruption);
        let later = longest + Duration::from_nanos(1);
        assert_eq!(after_gap(9, later).on_lost(&silence), Cause::Congestion);
    }

    #[test]
    fn what_left_within_a_round_trip_of_what_arrived_is_of_the_same_flight() {
        let flight = |ms| lost(&[(5, ms), (6, ms), (7, ms)]);
        assert_eq!(after_gap(8, RTT).on_lost(&flight(1050)), Cause::Congestion);
        assert_eq!(after_gap(8, RTT).on_lost(&flight(1051)), Cause::Interruption);
    }

    #[test]
    fn losses_on_both_sides_of_an_arrival_are_no_interruption() {
        assert_eq!(after_gap(8, RTT).on_lost(&lost(&[(5, 1001), (9, 1400)])), Cause::Congestion);
        let mut path = after_gap(5, RTT);
        path.on_acknowledged(&packets(&[(7, 3000), (9, 3000)]), Some(5), Some(RTT), Some(Rtt::new(RTT)));
        assert_eq!(path.on_lost(&lost(&[(6, 1001), (8, 1400)])), Cause::Congestion);
        assert_eq!(after_gap(9, RTT).on_lost(&Lost::default()), Cause::Congestion);
    }

    #[test]
    fn what_is_lost_before_anything_arrived_says_nothing_about_the_path() {
        let mut path = Interruptions::default();
        path.on_acknowledged(&packets(&[(4, 3000)]), None, None, None);
        assert_eq!(path.on_lost(&lost(&[(1, 10), (2, 10)])), Cause::Interruption);
        // Over another way back nothing was measured yet, but packets arrived before: the initial round-trip time decides.
        let other = |numbers: &[(u64, u64)]| {
            let mut path = after_gap(5, RTT);
            path.on_acknowledged(&packets(&[(9, 4000)]), Some(5), None, None);
            path.on_lost(&lost(numbers))
        };
        assert_eq!(other(&[(6, 3001), (8, 3333)]), Cause::Congestion);
        assert_eq!(other(&[(6, 3001), (8, 3334)]), Cause::Interruption);
    }
}
