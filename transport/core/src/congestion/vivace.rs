//! PCC Vivace as published (Dong et al., NSDI 2018), with the latency utility: the rate climbs the gradient of a utility
//! that experiments measure.
//!
//! Time is cut into monitor intervals of a round trip. A pair of them tries a rate a little above and one a little below the
//! present one; the utility of each, which rewards rate and punishes losses and growing delay, says which way to go and how
//! far (§4.2). If the higher rate seems to lose less, where a twentieth is lost, a second pair checks that (§4.3).
//!
//! Some things differ because this is QUIC: delays are compared only among samples of one return path (see `monitor`).
//! Intervals that the application left idle say nothing. Two round trips' worth may be in flight, so that a path which
//! stops answering is not flooded; its probe timeouts and persistent congestion take the place of the paper's timeout of an
//! interval (RFC 9002 §6.2, §7.6). In the starting phase a queue that empties is no merit: it is that of the initial window,
//! which leaves in a burst (§7.2). A mark counts as a loss (§7.1). A loss that turns out spurious is taken off its
//! interval while that is not judged yet; a judgement stands, for the next trials correct what it changed.
//!
//! [`VivaceRadio`](super::vivace_radio::VivaceRadio) is the variant for channels whose delay varies by itself.

pub(in crate::congestion) mod monitor;
pub(in crate::congestion) mod rate;
pub(in crate::congestion) mod step;

use super::{Controller, LossSample, MarkSample, Sample, Sending, SpuriousSample};
use crate::Bandwidth;
use crate::recovery::persistent::Persistence;
use crate::time::Instant;
use monitor::{Monitor, Monitors, Purpose};
use rate::SendingRate;
use step::RateStep;

/// Trials are this share above and below the rate (ε; §4.2).
pub(in crate::congestion) const TRIAL: f64 = 0.05;
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

/// The controller of Dong et al.
#[derive(Clone, Debug)]
pub struct Vivace {
    rate: SendingRate,
    phase: Phase,
    step: RateStep,
    monitors: Monitors,
    /// Counts pairs of trials: every other one begins with the lower rate.
    pairs: u32,
}

impl Vivace {
    /// The initial state for datagrams of `datagram_size` bytes.
    pub fn new(datagram_size: usize) -> Self {
        Self::with(SendingRate::new(datagram_size))
    }

    fn with(rate: SendingRate) -> Self {
        Self {
            rate,
            phase: Phase::Starting { before: None },
            step: RateStep::default(),
            monitors: Monitors::default(),
            pairs: 0,
        }
    }

    /// The next interval and its rate: a trial if one is due, else one at the rate itself until the results are in.
    fn next(&mut self, rate: f64) -> (f64, Purpose) {
        let begins_above = self.pairs.is_multiple_of(2);
        match &mut self.phase {
            Phase::Starting { .. } if self.monitors.awaits_nothing() => (rate, Purpose::Start),
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

    fn begin_interval(&mut self, now: Instant) {
        let Some(rate) = self.rate.get() else { return };
        let (rate, purpose) = self.next(rate);
        self.monitors.begin(Monitor::new(purpose, rate, now, self.rate.interval(rate)));
    }

    /// Learns from an interval all of whose packets are accounted for.
    fn learn(&mut self, monitor: &Monitor) {
        let Some(rate) = self.rate.get() else { return };
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
                    self.rate.set(rate / 2.0);
                    self.try_anew(None);
                } else {
                    *before = Some(utility);
                    self.rate.set(rate * 2.0);
                    self.monitors.discard();
                }
            }
            (Purpose::Above, Phase::Trying { pair, .. }) if trial.is_some() => pair.above = trial,
            (Purpose::Below, Phase::Trying { pair, .. }) if trial.is_some() => pair.below = trial,
            (Purpose::Above | Purpose::Below, Phase::Trying { .. }) => self.try_anew(None),
            _ => {}
        }
        self.decide(rate);
    }

    /// Changes the rate once both trials are in, or has them checked.
    fn decide(&mut self, rate: f64) {
        let Phase::Trying { pair: Pair { above: Some(above), below: Some(below) }, doubted, .. } = self.phase
        else {
            return;
        };
        let difference = above.utility - below.utility;
        let difference = match doubted {
            None if above.is_abnormal_beside(&below) => return self.try_anew(Some(difference)),
            None => difference,
            // Confirmed: the mean of both. Otherwise it was noise.
            Some(first) if (first < 0.0) == (difference < 0.0) => f64::midpoint(first, difference),
            Some(_) => return self.try_anew(None),
        };
        let change = self.step.change(rate / 1e6, difference, TRIAL) * 1e6;
        self.rate.set(rate + change);
        self.try_anew(None);
    }

    /// Goes on with the next pair of trials.
    fn try_anew(&mut self, doubted: Option<f64>) {
        self.pairs = self.pairs.wrapping_add(1);
        self.phase = Phase::Trying { left: 2, pair: Pair::default(), doubted };
        self.monitors.discard();
    }
}

impl Controller for Vivace {
    fn on_sent(&mut self, sending: &Sending) {
        if self.rate.get().is_some() && self.monitors.is_over(sending.now) {
            self.begin_interval(sending.now);
        }
        self.monitors.on_sent(sending.bytes);
    }

    fn on_acknowledged(&mut self, sample: &Sample) {
        if !self.rate.on_sample(sample) {
            return;
        }
        self.monitors.on_sample(sample);
        // Losses show up to an eighth of a round trip after what was sent next (RFC 9002 §6.1.2).
        while let Some(monitor) = self.monitors.complete(sample.sent_at, sample.smoothed_rtt / 8) {
            self.learn(&monitor);
        }
    }

    fn on_lost(&mut self, sample: &LossSample) {
        if sample.persistent == Persistence::Persistent {
            // RFC 9002 §7.6.2: two datagrams, and then from the beginning as if nothing were known.
            *self = Self::with(self.rate.collapsed());
            return;
        }
        self.monitors.on_lost(sample.largest_sent_at, sample.bytes);
    }

    fn on_ecn_ce(&mut self, sample: &MarkSample) {
        self.monitors.on_lost(sample.sent_at, self.rate.datagram_size());
    }

    fn on_spurious(&mut self, sample: &SpuriousSample) {
        self.monitors.on_spurious(sample.sent_at, sample.bytes);
    }

    fn window(&self) -> usize {
        self.rate.window()
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        let rate = self.monitors.rate().or(self.rate.get())?;
        Some(Bandwidth::from_bits_per_second(rate as u64))
    }

    fn name(&self) -> &'static str {
        "vivace"
    }

    fn in_slow_start(&self) -> bool {
        matches!(self.phase, Phase::Starting { .. })
    }

    fn set_datagram_size(&mut self, datagram_size: usize) {
        self.rate.set_datagram_size(datagram_size);
    }
}

#[cfg(test)]
mod tests;
