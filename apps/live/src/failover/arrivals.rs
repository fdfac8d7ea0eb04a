//! The times at which something arrived, and the longest gap between them.

use std::time::{Duration, Instant};

/// The silence at the end from which on nothing is expected any more.
const SILENT: Duration = Duration::from_millis(1_000);

/// Times in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    times: Vec<Instant>,
}

impl Arrivals {
    /// Returns true if nothing arrived so far.
    pub(super) const fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Something arrived now.
    pub(super) fn note(&mut self) {
        self.times.push(Instant::now());
    }

    /// Adds `times`, which are in order.
    ///
    /// # Errors
    /// They are before the last so far.
    pub(super) fn extend(&mut self, times: Vec<Instant>) -> Result<(), String> {
        if self.times.last().is_some_and(|last| times.first().is_some_and(|first| first < last)) {
            return Err("times that are not in order".to_owned());
        }
        self.times.extend(times);
        Ok(())
    }

    /// The longest time without any between `from` and `until`, the gap that `from` falls into included; `None` if they ceased.
    pub(super) fn longest(&self, from: Instant, until: Instant) -> Option<Duration> {
        let before = self.times.iter().copied().take_while(|at| *at <= from).last();
        let after = self.times.iter().copied().filter(|at| *at > from && *at <= until);
        let all: Vec<Instant> = before.into_iter().chain(after).collect();
        let last = *all.last()?;
        if until.saturating_duration_since(last) >= SILENT {
            return None;
        }
        let gaps = all.windows(2).map(|pair| pair[1] - pair[0]);
        gaps.chain([until - last]).max()
    }

    /// The time from `at` to the first from there on.
    pub(super) fn first_since(&self, at: Instant) -> Option<Duration> {
        self.times.iter().find(|time| **time >= at).map(|time| *time - at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn the_gap_that_the_fault_falls_into_counts_whole_and_earlier_ones_do_not() {
        let start = Instant::now();
        let times = [0, 700, 720, 900, 920, 1_400].map(|at| start + ms(at)).to_vec();
        let arrivals = Arrivals { times };
        assert_eq!(arrivals.longest(start + ms(730), start + ms(1_000)), Some(ms(180)));
        assert_eq!(arrivals.longest(start + ms(730), start + ms(1_500)), Some(ms(480)));
        assert_eq!(
            arrivals.longest(start + ms(730), start + ms(2_300)),
            Some(ms(900)),
            "silence at the end is a gap"
        );
        assert_eq!(arrivals.longest(start + ms(730), start + ms(2_400)), None, "they ceased");
        assert_eq!(arrivals.first_since(start + ms(901)), Some(ms(19)));
        assert_eq!(arrivals.first_since(start + ms(1_401)), None);
    }
}
