//! The propagation delay of a link: the time that a packet is under way once it has been sent.

use std::f64::consts::TAU;
use std::sync::Arc;
use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;

use crate::spec::Replay;
use crate::trace::{DelayTrace, TraceError, TraceSource};

/// The one-way delay of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// Always the same.
    Constant(Duration),
    /// Drawn for each packet from a normal distribution; negative draws count as zero.
    Normal {
        /// The mean before negative draws are cut off.
        mean: Duration,
        /// The standard deviation as a multiple of the mean.
        variation: f64,
    },
    /// Drawn for each packet, uniformly.
    Uniform {
        /// The least.
        low: Duration,
        /// The most.
        high: Duration,
    },
    /// Read from a trace at the moment the packet was sent.
    Trace {
        /// The CSV.
        source: TraceSource,
        /// The meaning of its values.
        reading: Reading,
    },
}

impl Default for Delay {
    fn default() -> Self {
        Self::Constant(Duration::ZERO)
    }
}

/// The meaning of the values of a delay trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Round-trip times: half of it for each direction.
    RoundTrip,
    /// One-way delays.
    OneWay,
}

/// A delay ready for use.
#[derive(Clone, Debug)]
pub(crate) enum DelayModel {
    Constant(Duration),
    Normal { mean: Duration, variation: f64 },
    Uniform { low: Duration, high: Duration },
    Trace { trace: Arc<DelayTrace>, reading: Reading, replay: Replay },
}

impl DelayModel {
    pub(crate) fn load(delay: &Delay, replay: Replay) -> Result<Self, TraceError> {
        Ok(match delay {
            Delay::Constant(delay) => Self::Constant(*delay),
            Delay::Normal { mean, variation } => Self::Normal { mean: *mean, variation: *variation },
            Delay::Uniform { low, high } => Self::Uniform { low: *low, high: *high },
            Delay::Trace { source, reading } => {
                Self::Trace { trace: source.delay()?, reading: *reading, replay }
            }
        })
    }

    /// The delay of a packet that was sent at `now`.
    pub(crate) fn at(&self, now: Duration, chance: &mut StdRng) -> Duration {
        match self {
            Self::Constant(delay) => *delay,
            Self::Normal { mean, variation } => {
                let factor = (1.0 + variation * standard_normal(chance)).max(0.0);
                Duration::from_nanos((mean.as_nanos() as f64 * factor).round() as u64)
            }
            Self::Uniform { low, high } => {
                let span = high.saturating_sub(*low).as_nanos() as f64;
                *low + Duration::from_nanos((span * chance.random::<f64>()).round() as u64)
            }
            Self::Trace { .. } => self.expected(now),
        }
    }

    /// The delay of a packet that was sent at `now`; of a drawn one, the mean.
    pub(crate) fn expected(&self, now: Duration) -> Duration {
        match self {
            Self::Constant(delay) | Self::Normal { mean: delay, .. } => *delay,
            Self::Uniform { low, high } => (*low + *high) / 2,
            Self::Trace { trace, reading, replay } => {
                let value = trace.at(now.saturating_add(replay.offset), replay.end);
                match reading {
                    Reading::RoundTrip => value / 2,
                    Reading::OneWay => value,
                }
            }
        }
    }
}

/// A draw from the normal distribution with mean 0 and variance 1 (Box and Muller's method).
fn standard_normal(chance: &mut StdRng) -> f64 {
    let radius = (-2.0 * (1.0 - chance.random::<f64>()).ln()).sqrt();
    radius * (TAU * chance.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn draws(delay: Delay) -> Vec<f64> {
        let model = DelayModel::load(&delay, Replay::default()).unwrap();
        let mut chance = StdRng::seed_from_u64(7);
        (0..50_000).map(|_| model.at(Duration::ZERO, &mut chance).as_secs_f64() * 1e3).collect()
    }

    fn mean_and_deviation(draws: &[f64]) -> (f64, f64) {
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn a_normal_delay_has_its_mean_and_variation() {
        let draws = draws(Delay::Normal { mean: Duration::from_millis(5), variation: 0.2 });
        let (mean, deviation) = mean_and_deviation(&draws);
        assert!((mean - 5.0).abs() < 0.05 && (deviation - 1.0).abs() < 0.03, "{mean} {deviation}");
    }

    #[test]
    fn negative_draws_of_a_wide_normal_delay_count_as_zero() {
        let draws = draws(Delay::Normal { mean: Duration::from_millis(5), variation: 2.0 });
        // P(Z < −1/2) = 30.85 %.
        let zeros = draws.iter().filter(|draw| **draw == 0.0).count() as f64 / draws.len() as f64;
        assert!((zeros - 0.3085).abs() < 0.01, "{zeros}");
    }

    #[test]
    fn a_uniform_delay_fills_its_interval() {
        let draws = draws(Delay::Uniform { low: Duration::from_millis(2), high: Duration::from_millis(4) });
        let (mean, deviation) = mean_and_deviation(&draws);
        assert!(draws.iter().all(|draw| (2.0..=4.0).contains(draw)));
        assert!(
            (mean - 3.0).abs() < 0.02 && (deviation - 2.0 / 12f64.sqrt()).abs() < 0.02,
            "{mean} {deviation}"
        );
    }
}
