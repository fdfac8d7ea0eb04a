//! The extreme value of a sliding window, in constant space.

use crate::time::Instant;
use std::time::Duration;

/// The largest of the values that were offered within the last `length` units of a clock that never runs backwards.
///
/// Three candidates are kept: the best, the best since, and the best since that one, each replaced before the oldest
/// leaves the window (the filter of Kathleen Nichols, as in draft-cardwell-iccrg-bbr §5.5). The result may forget a
/// value that was never among the three; it never reports one older than the window.
#[derive(Clone, Copy, Debug)]
pub struct WindowedMax<T> {
    best: [Option<(u64, T)>; 3],
    length: u64,
}

impl<T: Copy + PartialOrd> WindowedMax<T> {
    /// An empty window over `length` units.
    pub const fn new(length: u64) -> Self {
        Self { best: [None; 3], length }
    }

    /// The largest value, if any was offered.
    #[inline]
    pub fn get(&self) -> Option<T> {
        self.best[0].map(|(_, value)| value)
    }

    /// Offers `value` at the time `at`.
    pub fn offer(&mut self, at: u64, value: T) {
        let sample = Some((at, value));
        let stale =
            |entry: Option<(u64, T)>| entry.is_none_or(|(then, _)| at.saturating_sub(then) > self.length);
        if stale(self.best[2]) || self.best[0].is_none_or(|(_, best)| value >= best) {
            self.best = [sample; 3];
            return;
        }
        if self.best[1].is_none_or(|(_, second)| value >= second) {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].is_none_or(|(_, third)| value >= third) {
            self.best[2] = sample;
        }
        while stale(self.best[0]) {
            self.best = [self.best[1], self.best[2], sample];
        }
        self.refresh(at, sample);
    }

    /// Replaces candidates that entered together with the best, so that a successor is there when it leaves.
    fn refresh(&mut self, at: u64, sample: Option<(u64, T)>) {
        let [Some((first, _)), Some((second, _)), Some((third, _))] = self.best else { return };
        let age = at.saturating_sub(first);
        if second == first && age > self.length / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if third == second && age > self.length / 2 {
            self.best[2] = sample;
        }
    }
}

/// The best of the values that were offered within the last one to two spans of time, whose length may change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recent<T> {
    current: Option<T>,
    previous: Option<T>,
    since: Option<Instant>,
}

impl<T: Copy> Recent<T> {
    /// Offers `value` at `now`, where a span lasts `span`, and returns the value that is `better` than all others.
    pub fn offer(&mut self, value: T, now: Instant, span: Duration, better: fn(T, T) -> T) -> T {
        if now.since(*self.since.get_or_insert(now)) >= span {
            self.previous = self.current.take();
            self.since = Some(now);
        }
        let current = self.current.map_or(value, |current| better(current, value));
        self.current = Some(current);
        self.previous.map_or(current, |previous| better(current, previous))
    }

    /// The value that is `better` than all others, if there is any.
    pub fn get(&self, better: fn(T, T) -> T) -> Option<T> {
        self.current.into_iter().chain(self.previous).reduce(better)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_best_value_leaves_after_one_to_two_spans() {
        let mut recent = Recent::default();
        let mut offer = |at: u64, value: u32| {
            let now = Instant::from_nanos(at * 1_000_000);
            recent.offer(value, now, Duration::from_millis(10), u32::min)
        };
        assert_eq!(
            [(5, 3), (8, 7), (15, 8), (24, 9), (25, 9)].map(|(at, value)| offer(at, value)),
            [3, 3, 3, 3, 8]
        );
    }

    #[test]
    fn the_largest_value_leaves_with_the_window() {
        let mut window = WindowedMax::new(10);
        window.offer(0, 100);
        for at in 1..=10 {
            window.offer(at, 50);
            assert_eq!(window.get(), Some(100));
        }
        window.offer(11, 50);
        assert_eq!(window.get(), Some(50));
    }

    #[test]
    fn a_smaller_value_since_the_largest_takes_its_place_when_that_leaves() {
        let mut window = WindowedMax::new(10);
        let offers = [(0, 100), (3, 80), (6, 60), (10, 10), (11, 10), (13, 10), (14, 10), (16, 10), (17, 10)];
        let largest = offers.map(|(at, value)| {
            window.offer(at, value);
            window.get()
        });
        assert_eq!(largest, [100, 100, 100, 100, 80, 80, 60, 60, 10].map(Some));
    }

    #[test]
    fn where_nothing_was_offered_for_a_window_the_next_value_is_the_largest() {
        let mut window = WindowedMax::new(10);
        assert_eq!(window.get(), None);
        for (at, value) in [(0, 100), (4, 90), (8, 80), (19, 1)] {
            window.offer(at, value);
        }
        assert_eq!(window.get(), Some(1));
    }

    #[test]
    fn what_is_best_of_nothing_and_of_two_spans() {
        let mut recent = Recent::default();
        assert_eq!(recent.get(u32::min), None);
        for (at, value) in [(0, 3), (10, 5)] {
            recent.offer(value, Instant::from_nanos(at * 1_000_000), Duration::from_millis(10), u32::min);
        }
        assert_eq!((recent.get(u32::min), recent.get(u32::max)), (Some(3), Some(5)));
    }

    proptest! {
        #[test]
        fn it_never_reports_less_than_the_newest_or_more_than_the_true_maximum(
            steps in prop::collection::vec((0u64..4, 0u32..100), 1..200)
        ) {
            let mut window = WindowedMax::new(10);
            let (mut at, mut history) = (0, Vec::new());
            for (step, value) in steps {
                at += step;
                history.push((at, value));
                window.offer(at, value);
                let truth = history.iter().filter(|(then, _)| at - then <= 10).map(|(_, v)| *v).max();
                prop_assert!(window.get() >= Some(value));
                prop_assert!(window.get() <= truth);
            }
        }
    }
}
