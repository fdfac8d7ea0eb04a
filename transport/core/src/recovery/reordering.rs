//! The reordering of a route, and the patience with which packets are declared lost (RFC 9002 §6.1).
//!
//! A radio link that repeats a frame delivers what follows before it: with the RFC's initial thresholds most losses that
//! such a link "has" are none. RFC 9002 §6.1 permits thresholds that adapt; how far and how long they do follows RFC 8985
//! §6.2 (RACK), which widens its window when a loss turns out spurious and narrows it after 16 recoveries.

use crate::recovery::rtt::GRANULARITY;
use crate::time::Instant;
use std::time::Duration;

/// A packet is lost when one this many numbers later is acknowledged (RFC 9002 §6.1.1, kPacketThreshold).
pub const PACKET_THRESHOLD: u64 = 3;
/// The packet threshold grows no further: whatever is late by more is found by time.
const LARGEST_PACKET_THRESHOLD: u64 = 1024;
/// The time threshold is eight eighths of the round-trip time and one (RFC 9002 §6.1.2, kTimeThreshold).
const LEAST_EIGHTHS: u32 = 1;
/// It grows to two round-trip times (RFC 8985 §6.2 limits the reordering window to one).
const MOST_EIGHTHS: u32 = 8;
/// Loss events without a spurious loss after which half of what was learnt is forgotten (RFC 8985 §6.2: 16 recoveries).
const MEMORY: u32 = 16;

/// The thresholds from which on packets sent before an acknowledged one are lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thresholds {
    /// The packet threshold: the distance to the number of a later packet that is acknowledged.
    pub packets: u64,
    /// The time threshold: the time since they left.
    pub delay: Duration,
}

impl Thresholds {
    /// The packet threshold of RFC 9002 §6.1.1 with the time threshold `delay`.
    pub const fn initial(delay: Duration) -> Self {
        Self { packets: PACKET_THRESHOLD, delay }
    }
}

/// A loss that was none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lateness {
    /// Numbers by which the packet was behind the largest acknowledged one when its acknowledgement came.
    pub packets: u64,
    /// The time from sending it to its acknowledgement.
    pub time: Duration,
}

/// The reordering that a route has shown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reordering {
    packets: u64,
    eighths: u32,
    /// Loss events since the last spurious loss.
    events: u32,
    /// The time at which the current loss event began: packets sent before belong to it.
    event_began: Option<Instant>,
}

impl Default for Reordering {
    fn default() -> Self {
        Self { packets: PACKET_THRESHOLD, eighths: LEAST_EIGHTHS, events: 0, event_began: None }
    }
}

impl Reordering {
    /// The thresholds, given the delay of the RFC's time threshold, 9/8 of a round-trip time.
    pub fn thresholds(&self, usual_delay: Duration) -> Thresholds {
        let delay = usual_delay.saturating_mul(8 + self.eighths) / 9;
        Thresholds { packets: self.packets, delay: delay.max(GRANULARITY) }
    }

    /// A packet that counted as lost was late by `lateness`: next time it would not be lost, within limits.
    pub fn on_spurious(&mut self, lateness: Lateness, usual_delay: Duration) {
        self.events = 0;
        let packets = lateness.packets.saturating_add(1).min(LARGEST_PACKET_THRESHOLD);
        self.packets = self.packets.max(packets);
        while self.eighths < MOST_EIGHTHS && self.thresholds(usual_delay).delay < lateness.time {
            self.eighths += 1;
        }
    }

    /// Packets were lost at `now`, the newest of which left at `sent_at`.
    pub fn on_lost(&mut self, now: Instant, sent_at: Instant) {
        if self.event_began.is_some_and(|began| sent_at <= began) {
            return;
        }
        self.event_began = Some(now);
        self.events += 1;
        if self.events >= MEMORY {
            self.events = 0;
            self.packets = PACKET_THRESHOLD.max(self.packets / 2);
            self.eighths = LEAST_EIGHTHS.max(self.eighths / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 9/8 of 80 ms.
    const USUAL: Duration = Duration::from_millis(90);

    fn late(packets: u64, milliseconds: u64) -> Lateness {
        Lateness { packets, time: Duration::from_millis(milliseconds) }
    }

    fn lose(reordering: &mut Reordering, events: u64) {
        for event in 0..events {
            let at = Instant::from_nanos(1_000_000 * (event + 1));
            reordering.on_lost(at, at);
            // A second loss of the same flight is no event of its own.
            reordering.on_lost(at, Instant::from_nanos(1));
        }
    }

    #[test]
    fn the_thresholds_start_as_in_the_rfc() {
        // RFC 9002 §6.1.1, §6.1.2.
        assert_eq!(Reordering::default().thresholds(USUAL), Thresholds::initial(USUAL));
        let least = Reordering::default().thresholds(Duration::ZERO);
        assert_eq!(least.delay, GRANULARITY);
    }

    #[test]
    fn what_was_late_once_is_not_lost_again() {
        let mut reordering = Reordering::default();
        reordering.on_spurious(late(40, 95), USUAL);
        let thresholds = reordering.thresholds(USUAL);
        assert!(thresholds.packets > 40 && thresholds.delay >= Duration::from_millis(95), "{thresholds:?}");
        assert!(thresholds.delay < Duration::from_millis(110), "no more patience than was needed");
        reordering.on_spurious(late(4, 20), USUAL);
        assert_eq!(reordering.thresholds(USUAL), thresholds, "a smaller lateness takes nothing back");
        let mut punctual = Reordering::default();
        punctual.on_spurious(late(2, 90), USUAL);
        assert_eq!(punctual, Reordering::default(), "its patience was enough");
    }

    #[test]
    fn patience_ends_at_two_round_trips_whatever_the_peer_does() {
        // attacks.md C14: acknowledgements are hostile input.
        let mut reordering = Reordering::default();
        reordering.on_spurious(Lateness { packets: u64::MAX, time: Duration::MAX }, USUAL);
        let thresholds = reordering.thresholds(USUAL);
        assert_eq!(
            thresholds,
            Thresholds { packets: LARGEST_PACKET_THRESHOLD, delay: Duration::from_millis(160) }
        );
        assert_eq!(reordering.thresholds(Duration::MAX).delay, Duration::MAX / 9);
    }

    #[test]
    fn sixteen_loss_events_without_a_spurious_loss_halve_what_was_learnt() {
        // RFC 8985 §6.2.
        let mut reordering = Reordering::default();
        reordering.on_spurious(late(99, 1000), USUAL);
        lose(&mut reordering, 15);
        assert_eq!(reordering.thresholds(USUAL).packets, 100);
        lose(&mut reordering, 1);
        assert_eq!(reordering.thresholds(USUAL).packets, 100, "the same event");
        let at = Instant::from_nanos(1_000_000_000);
        reordering.on_lost(at, at);
        assert_eq!(
            reordering.thresholds(USUAL),
            Thresholds { packets: 50, delay: Duration::from_millis(120) }
        );
        for event in 1..200 {
            let at = Instant::from_nanos(1_000_000_000 + event);
            reordering.on_lost(at, at);
        }
        assert_eq!(reordering.thresholds(USUAL), Thresholds::initial(USUAL));
    }
}
