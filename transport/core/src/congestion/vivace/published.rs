//! The decisions of Vivace as published.

use super::monitor::{Monitor, Purpose};
use super::{Decisions, Intervals, TRIAL};
use crate::time::Instant;

/// Slopes of the delay closer to zero than this are noise (the low-pass filter of §4.3).
const LEAST_SLOPE: f64 = 0.01;
/// The share of packets that may be lost at random without a cost (§3.2).
const TOLERATED_LOSS: f64 = 0.05;

/// The phase of the controller.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    /// The rate doubles until utility falls (§4).
    Starting {
        /// The utility of the rate before.
        before: Option<f64>,
    },
    /// A trial above the rate and one below it run.
    Trying {
        /// The trials that are yet to begin.
        left: u8,
        /// The results.
        pair: Pair,
        /// The difference of utility that the first pair showed, if this one checks it (§4.3).
        doubted: Option<f64>,
    },
}

/// The results of two trials.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Pair {
    above: Option<Trial>,
    below: Option<Trial>,
}

/// The result of a trial.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Trial {
    utility: f64,
    loss: f64,
}

impl Trial {
    /// Returns true if this trial, at a higher rate than `lower`, lost less. It is unlikely that the rate was the cause (§4.3).
    ///
    /// Chance makes every second pair so where packets are lost at random. Like the authors' sender (PCC-Uspace, branch
    /// NSDI-2018) this one doubts only where more is lost than the utility tolerates.
    fn is_abnormal_beside(&self, lower: &Self) -> bool {
        let lost = f64::midpoint(self.loss, lower.loss);
        self.utility > lower.utility && self.loss < lower.loss && lost >= TOLERATED_LOSS
    }
}

/// The decisions of Dong et al.
#[derive(Clone, Debug)]
pub struct Published {
    phase: Phase,
    /// Counts pairs of trials: every other one begins with the lower rate.
    pairs: u32,
}

impl Default for Published {
    fn default() -> Self {
        Self { phase: Phase::Starting { before: None }, pairs: 0 }
    }
}

impl Decisions for Published {
    const NAME: &'static str = "vivace";

    fn is_starting(&self) -> bool {
        matches!(self.phase, Phase::Starting { .. })
    }

    fn next(&mut self, intervals: &Intervals, rate: f64) -> (f64, Purpose) {
        let begins_above = self.pairs.is_multiple_of(2);
        match &mut self.phase {
            Phase::Starting { .. } if intervals.monitors.awaits_nothing() => (rate, Purpose::Start),
            Phase::Trying { left, .. } if *left > 0 => {
                *left -= 1;
                if begins_above == (*left == 1) {
                    (rate * (1.0 + TRIAL), Purpose::Above)
                } else {
                    (rate * (1.0 - TRIAL), Purpose::Below)
                }
            }
            _ => (rate, Purpose::Fill),
        }
    }

    fn learn(&mut self, intervals: &mut Intervals, monitor: &Monitor, _now: Instant) {
        let Some(rate) = intervals.rate.get() else { return };
        let slope = monitor.slope();
        // The queue that the burst of the initial window left empties without any merit of the first rate.
        let is_merit = !matches!(self.phase, Phase::Starting { .. });
        let is_noise = slope.abs() < LEAST_SLOPE || (slope < 0.0 && !is_merit);
        let slope = if is_noise { 0.0 } else { slope };
        let trial = monitor.utility(slope).map(|utility| Trial { utility, loss: monitor.loss() });
        match (monitor.purpose, &mut self.phase) {
            (Purpose::Start, Phase::Starting { before }) => {
                let Some(Trial { utility, .. }) = trial else { return };
                if before.is_some_and(|before| utility < before) {
                    intervals.rate.set(rate / 2.0);
                    self.try_anew(intervals, None);
                } else {
                    *before = Some(utility);
                    intervals.rate.set(rate * 2.0);
                    intervals.monitors.discard();
                }
            }
            (Purpose::Above, Phase::Trying { pair, .. }) if trial.is_some() => pair.above = trial,
            (Purpose::Below, Phase::Trying { pair, .. }) if trial.is_some() => pair.below = trial,
            (Purpose::Above | Purpose::Below, Phase::Trying { .. }) => self.try_anew(intervals, None),
            _ => {}
        }
        self.decide(intervals, rate);
    }
}

impl Published {
    /// Changes the rate once both trials are in, or has them checked.
    fn decide(&mut self, intervals: &mut Intervals, rate: f64) {
        let Phase::Trying { pair: Pair { above: Some(above), below: Some(below) }, doubted, .. } = self.phase
        else {
            return;
        };
        let difference = above.utility - below.utility;
        let difference = match doubted {
            None if above.is_abnormal_beside(&below) => return self.try_anew(intervals, Some(difference)),
            None => difference,
            // Confirmed: the mean of both. Otherwise it was noise.
            Some(first) if (first < 0.0) == (difference < 0.0) => f64::midpoint(first, difference),
            Some(_) => return self.try_anew(intervals, None),
        };
        let change = intervals.step.change(rate / 1e6, difference, TRIAL) * 1e6;
        intervals.rate.set(rate + change);
        self.try_anew(intervals, None);
    }

    /// Goes on with the next pair of trials.
    fn try_anew(&mut self, intervals: &mut Intervals, doubted: Option<f64>) {
        self.pairs = self.pairs.wrapping_add(1);
        self.phase = Phase::Trying { left: 2, pair: Pair::default(), doubted };
        intervals.monitors.discard();
    }
}

#[cfg(test)]
mod tests;
