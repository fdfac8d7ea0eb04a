//! A budget of answers that an endpoint gives to strangers in a second.

use crate::time::Instant;
use std::time::Duration;

/// The time over which a rate is counted, and so the largest burst.
const PERIOD: Duration = Duration::from_secs(1);

/// A token bucket: so many a second, and as many at once after a second of silence.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// The price of one, in time; none at all is given out if there is no price.
    price: Option<Duration>,
    /// The time that was saved up, at most [`PERIOD`].
    credit: Duration,
    counted: Instant,
}

impl Budget {
    /// `rate` a second.
    pub fn per_second(rate: u32) -> Self {
        Self { price: PERIOD.checked_div(rate), credit: PERIOD, counted: Instant::from_nanos(0) }
    }

    /// Returns true if there is one for `now`; if so it is spent.
    pub fn take(&mut self, now: Instant) -> bool {
        let Some(price) = self.price else { return false };
        self.credit = (self.credit + now.since(self.counted)).min(PERIOD);
        self.counted = self.counted.max(now);
        let Some(left) = self.credit.checked_sub(price) else { return false };
        self.credit = left;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(budget: &mut Budget, milliseconds: u64) -> usize {
        let now = Instant::from_nanos(milliseconds * 1_000_000);
        (0..10_000).take_while(|_| budget.take(now)).count()
    }

    #[test]
    fn a_second_of_silence_saves_up_a_burst_and_no_more() {
        let mut budget = Budget::per_second(100);
        assert_eq!(taken(&mut budget, 60_000), 100);
        assert_eq!(taken(&mut budget, 60_000), 0);
        assert_eq!(taken(&mut budget, 60_250), 25);
        assert_eq!(taken(&mut budget, 100_000), 100);
    }

    #[test]
    fn a_rate_of_nothing_gives_nothing() {
        assert_eq!(taken(&mut Budget::per_second(0), 60_000), 0);
    }
}
