//! The bytes that a route delivered of late: those of one to two intervals of about a round trip.

use crate::time::Instant;
use std::time::Duration;

/// The shortest interval: a link of 200 kbit/s carries a packet in it.
const SHORTEST: Duration = Duration::from_millis(50);
/// The longest interval.
const LONGEST: Duration = Duration::from_millis(250);

/// A moment, and the bytes that had been delivered by then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mark {
    /// The moment.
    pub at: Instant,
    /// Bytes delivered since the route exists.
    pub delivered: u64,
}

/// The marks of the latest two intervals.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecentDelivery {
    before: Mark,
    since: Mark,
    width: Duration,
}

impl RecentDelivery {
    /// `now` was reached, of a route whose empty round trip is `base` if that is known.
    pub fn on_delivered(&mut self, now: Mark, base: Option<Duration>) {
        self.width = base.unwrap_or_default().clamp(SHORTEST, LONGEST);
        if now.at.since(self.since.at) >= self.width {
            (self.before, self.since) = (self.since, now);
        }
    }

    /// The latest mark that is an interval old; `None` before the first acknowledgement.
    pub fn mark(&self, now: Instant) -> Option<Mark> {
        let is_long = now.since(self.since.at) >= self.width;
        (!self.width.is_zero()).then_some(if is_long { self.since } else { self.before })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(millis: u64, delivered: u64) -> Mark {
        Mark { at: Instant::ZERO + Duration::from_millis(millis), delivered }
    }

    #[test]
    fn the_mark_is_one_to_two_intervals_old_while_something_arrives_and_older_when_nothing_does() {
        let mut recent = RecentDelivery::default();
        assert_eq!(recent.mark(mark(10, 0).at), None);
        for millis in (1_000..=1_400).step_by(10) {
            recent.on_delivered(mark(millis, millis), Some(Duration::from_millis(100)));
        }
        assert_eq!(recent.mark(mark(1_405, 0).at), Some(mark(1_300, 1_300)));
        assert_eq!(recent.mark(mark(1_499, 0).at), Some(mark(1_300, 1_300)));
        assert_eq!(recent.mark(mark(1_900, 0).at), Some(mark(1_400, 1_400)));
    }
}
