//! The competing backlog: the queue of others at a bottleneck that a path shares with them.

use crate::Bandwidth;
use crate::time::Instant;
use std::time::Duration;

/// The queue of others, as the latest round trip showed it.
///
/// A round trip on an empty channel takes the path's smallest one and the time in which the channel carries what the
/// sender itself had in flight. The packet spent the time beyond that behind others. All that was in flight counts
/// as queued, so that a sender never takes its own packets for those of others; some of theirs may be missed for it.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompetingBacklog {
    queue: Duration,
    at: Instant,
}

impl CompetingBacklog {
    /// A packet took `rtt` where an empty path takes `base`; `in_flight` bytes of the sender's, its own included, were on
    /// their way over a bottleneck of `rate`.
    pub fn on_sample(&mut self, [rtt, base]: [Duration; 2], in_flight: usize, rate: Bandwidth, now: Instant) {
        let own = base.saturating_add(rate.transmission_time(in_flight));
        *self = Self { queue: rtt.saturating_sub(own), at: now };
    }

    /// Returns the time from `now` until the queue is empty. It drains as the time passes: were it not for that, a path
    /// that is avoided for its queue would be avoided for ever, for nothing would show that the queue is gone.
    pub fn left(&self, now: Instant) -> Duration {
        self.queue.saturating_sub(now.since(self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(5);

    fn seen(rtt: u64, in_flight: usize) -> CompetingBacklog {
        let mut competing = CompetingBacklog::default();
        let rtts = [Duration::from_millis(rtt), BASE];
        competing.on_sample(rtts, in_flight, Bandwidth::from_mbit(2), Instant::ZERO);
        competing
    }

    #[test]
    fn what_the_sender_has_in_flight_is_no_queue_of_others() {
        // 3000 bytes take 12 ms.
        for rtt in [5, 6, 17] {
            assert_eq!(seen(rtt, 3000).left(Instant::ZERO), Duration::ZERO, "{rtt} ms");
        }
        assert_eq!(seen(47, 3000).left(Instant::ZERO), Duration::from_millis(30));
    }

    #[test]
    fn the_queue_drains_and_a_later_round_trip_replaces_it() {
        let mut competing = seen(47, 3000);
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert_eq!(competing.left(at(20)), Duration::from_millis(10));
        assert_eq!(competing.left(at(30)), Duration::ZERO);
        competing.on_sample([BASE, BASE], 40, Bandwidth::from_mbit(2), at(1));
        assert_eq!(competing.left(at(1)), Duration::ZERO);
    }
}
