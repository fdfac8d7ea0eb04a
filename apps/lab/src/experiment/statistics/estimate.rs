//! A number with its confidence interval.

use hvq_emulation::samples::quantile;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Resamples of the bootstrap.
const RESAMPLES: usize = 1000;

/// A number with its 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Estimate {
    /// `statistic` of `units`, which are independent of each other. The interval is that of the percentile bootstrap over
    /// the units; with a single one it is a point. `None` if the statistic is not defined.
    pub(super) fn of<U>(units: &[U], statistic: impl Fn(&[&U]) -> Option<f64>) -> Option<Self> {
        let all: Vec<&U> = units.iter().collect();
        let value = statistic(&all).filter(|value| value.is_finite())?;
        let mut dice = StdRng::seed_from_u64(1);
        let resample = |_| {
            let drawn: Vec<&U> = all.iter().map(|_| all[dice.random_range(0..all.len())]).collect();
            statistic(&drawn).filter(|value| value.is_finite())
        };
        let mut drawn: Vec<f64> = (0..RESAMPLES).filter_map(resample).collect();
        drawn.sort_by(f64::total_cmp);
        let at = |share| quantile(&drawn, share).unwrap_or(value);
        Some(Self { value, low: at(0.025).min(value), high: at(0.975).max(value) })
    }

    /// A number that is known exactly.
    pub const fn exactly(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// It times a factor and plus a number.
    pub(super) fn scaled(self, times: f64, plus: f64) -> Self {
        let scaled = |value: f64| value * times + plus;
        let (one, other) = (scaled(self.low), scaled(self.high));
        Self { value: scaled(self.value), low: one.min(other), high: one.max(other) }
    }

    /// Half the width of the interval.
    pub fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }
}
