//! Freezes: when a viewer sees the picture stand still, by the definition of `freezeCount` in the W3C's Identifiers for
//! WebRTC's Statistics API.

use std::collections::VecDeque;
use std::time::Duration;

/// Intervals of which the average is taken.
const WINDOW: usize = 30;
/// The least excess of an interval over the average that makes it a freeze.
const EXCESS: Duration = Duration::from_millis(150);

/// Counts freezes as frames are shown.
///
/// The interval between two frames is a freeze if it is at least max(3 × average, average + 150 ms), the average being that
/// of the last 30 intervals before it.
#[derive(Clone, Debug, Default)]
pub struct Freezes {
    count: u32,
    total: Duration,
    last: Option<Duration>,
    recent: VecDeque<Duration>,
}

impl Freezes {
    /// A frame is shown at `at`; times do not run backwards.
    pub fn on_shown(&mut self, at: Duration) {
        let Some(last) = self.last.replace(at) else { return };
        let interval = at.saturating_sub(last);
        let known = u32::try_from(self.recent.len()).unwrap_or(u32::MAX);
        let average = self.recent.iter().sum::<Duration>().checked_div(known);
        if average.is_some_and(|average| interval >= (average * 3).max(average + EXCESS)) {
            self.count += 1;
            self.total += interval;
        }
        if self.recent.len() == WINDOW {
            self.recent.pop_front();
        }
        self.recent.push_back(interval);
    }

    /// Returns the number of freezes.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns their total duration (`totalFreezesDuration`).
    pub fn total(&self) -> Duration {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(times: impl IntoIterator<Item = u64>) -> (u32, u128) {
        let mut freezes = Freezes::default();
        times.into_iter().for_each(|at| freezes.on_shown(Duration::from_millis(at)));
        (freezes.count(), freezes.total().as_millis())
    }

    #[test]
    fn an_interval_is_a_freeze_from_150_ms_above_the_average_on() {
        let even = || (0..40).map(|index| index * 33);
        let last = 39 * 33;
        assert_eq!(count(even()), (0, 0));
        assert_eq!(count(even().chain([last + 182])), (0, 0));
        assert_eq!(count(even().chain([last + 183])), (1, 183));
    }

    #[test]
    fn of_slow_video_an_interval_of_three_times_the_average_is_a_freeze() {
        let even = || (0..40).map(|index| index * 200);
        let last = 39 * 200;
        assert_eq!(count(even().chain([last + 599])), (0, 0));
        assert_eq!(count(even().chain([last + 600])), (1, 600));
    }

    #[test]
    fn the_average_is_that_of_the_last_thirty() {
        // After thirty slow ones the fast beginning is forgotten.
        let slow = |index: u64| 330 + index * 300;
        let times = (0..10).map(|index| index * 33).chain((0..31).map(slow));
        assert_eq!(count(times.clone().chain([slow(30) + 890])).0, count(times.clone()).0);
        assert_eq!(count(times.clone().chain([slow(30) + 900])).0, count(times).0 + 1);
    }

    #[test]
    fn without_frames_nothing_freezes() {
        assert_eq!((count([]), count([5])), ((0, 0), (0, 0)));
        assert_eq!(count([0, 5000]), (0, 0), "there is no average yet");
    }
}
