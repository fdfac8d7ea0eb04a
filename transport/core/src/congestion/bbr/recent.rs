//! Losses over the time that a round trip would take if acknowledgements returned over the path of the data.
//!
//! The draft judges the losses of a round trip. While acknowledgements return over a quicker path a round trip is short and
//! few packets make it, of which chance loses too many more often: of 145, at a loss rate of 1 %, three or more (over 2 %)
//! in 18 of 100 round trips, of 268 six or more in 6. The path that returns acknowledgements says nothing about
//! congestion, so losses are excessive then only if they are so over the longer time, too. Nobody measures it while no
//! acknowledgement returns that way; the way back is taken to be no longer than what was measured in all.

use super::Report;
use crate::time::Instant;
use std::time::Duration;

/// The number of round trips over another return path that make one over the path of the data.
const ROUND_TRIPS: u32 = 2;

/// The bytes that were lost and delivered in the last one to two spans of time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentLosses {
    current: Resolved,
    previous: Resolved,
    started: Instant,
    way_back: WayBack,
}

/// The path that the last acknowledgement came from, compared with that of the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum WayBack {
    /// The path that carried the data: the losses of a round trip tell all.
    #[default]
    Same,
    /// Another path.
    Other,
}

/// Bytes that are no longer in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Resolved {
    lost: u64,
    all: u64,
}

impl RecentLosses {
    /// Takes an acknowledgement; the longest round trip known takes `longest`.
    pub(super) fn on_acknowledged(&mut self, report: &Report, longest: Duration) {
        self.way_back = if report.over == report.data_path { WayBack::Same } else { WayBack::Other };
        self.on_delivered(
            report.delivery.newly_acknowledged,
            report.now,
            longest.saturating_mul(ROUND_TRIPS),
        );
    }

    /// `bytes` were delivered by `now`, in spans of `span`.
    fn on_delivered(&mut self, bytes: u64, now: Instant, span: Duration) {
        if now.since(self.started) >= span {
            self.previous = std::mem::take(&mut self.current);
            self.started = now;
        }
        self.current.all = self.current.all.saturating_add(bytes);
    }

    /// `bytes` were lost.
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.current.all = self.current.all.saturating_add(bytes);
        self.current.lost = self.current.lost.saturating_add(bytes);
    }

    /// Returns true if a round trip with too many losses is one of several, as `too_high` judges bytes lost, and lost
    /// or delivered.
    pub(super) fn confirms(&self, too_high: fn(u64, u64) -> bool) -> bool {
        self.way_back == WayBack::Same || too_high(self.lost(), self.all())
    }

    /// Bytes lost in the last one to two spans.
    fn lost(&self) -> u64 {
        self.current.lost.saturating_add(self.previous.lost)
    }

    /// Bytes lost or delivered in them.
    fn all(&self) -> u64 {
        self.current.all.saturating_add(self.previous.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_two_spans_ago_is_forgotten() {
        let span = Duration::from_millis(50);
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut recent = RecentLosses::default();
        recent.on_delivered(1000, at(100), span);
        recent.on_lost(200);
        recent.on_delivered(1000, at(140), span);
        assert_eq!((recent.lost(), recent.all()), (200, 2200));
        recent.on_delivered(500, at(150), span);
        assert_eq!((recent.lost(), recent.all()), (200, 2700));
        recent.on_delivered(500, at(200), span);
        assert_eq!((recent.lost(), recent.all()), (0, 1000));
    }

    #[test]
    fn extremes_do_not_overflow() {
        // attacks.md C14.
        let mut recent = RecentLosses::default();
        recent.on_delivered(u64::MAX, Instant::FAR_FUTURE, Duration::ZERO);
        recent.on_lost(u64::MAX);
        recent.on_delivered(u64::MAX, Instant::ZERO, Duration::MAX);
        recent.on_lost(u64::MAX);
        assert_eq!((recent.lost(), recent.all()), (u64::MAX, u64::MAX));
    }
}
