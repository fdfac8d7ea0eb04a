//! The decisions of Vivace for radios, which do not take what a channel's delay varies by for a queue.
//!
//! Six things differ from the paper. As in a later sender of the authors' (PCC-Uspace) the rate changes only if two pairs of
//! trials agree, a queue that empties is no merit, and slopes of less than 0.03 are noise (PCC-Kernel). The queue that the
//! starting phase left is emptied before the first trials. And three things are ours: while the delay is no more than it
//! varies by (see `noise`) slopes do not count, and the rate climbs without trials. If a queue must be there the rate becomes at
//! once a little less than what is delivered, and half of that until the queue is gone. And a queue does not count for how much
//! may be in flight.

use super::monitor::{IntervalStats, Monitor, Purpose};
use super::step::RateStep;
use super::{Decisions, Intervals, TRIAL};
use crate::congestion::queueing::Reading;
use crate::congestion::{Sample, Sending};
use crate::time::Instant;
use noise::Noise;
use phase::{PAIRS, Pair, Phase};

mod noise;
mod phase;

/// Slopes smaller than this are noise, as in the authors' kernel module (PCC-Kernel); their sender of 2018 (PCC-Uspace,
/// branch NSDI-2018) cuts slopes to steps of 0.02.
const LEAST_SLOPE: f64 = 0.03;
/// The share of the rate that is sent while the queue of the starting phase empties, the share of a round trip that it may
/// keep, and how many round trips it is given.
const DRAIN: f64 = 0.5;
const DRAINED: u32 = 16;
const DRAIN_ROUNDS: u32 = 8;
/// The share of what is delivered that is sent where a queue stands on a radio, and by how much the rate may climb at once.
const RELIEF: f64 = 0.9;
const CLIMB: f64 = 0.5;

/// The decisions of Dong et al., for radios.
#[derive(Clone, Debug)]
pub struct Radio {
    phase: Phase,
    noise: Noise,
    /// Counts rounds of trials: every other one begins with the lower rate.
    rounds: u32,
}

impl Default for Radio {
    fn default() -> Self {
        Self { phase: Phase::Starting { before: None }, noise: Noise::default(), rounds: 0 }
    }
}

impl Decisions for Radio {
    const NAME: &'static str = "vivace-radio";

    fn is_starting(&self) -> bool {
        matches!(self.phase, Phase::Starting { .. })
    }

    fn on_sending(&mut self, intervals: &mut Intervals, sending: &Sending) {
        if matches!(self.phase, Phase::Draining { flight, .. } if sending.in_flight <= flight) {
            self.start_trials(intervals);
        }
    }

    fn on_sample(&mut self, intervals: &mut Intervals) {
        intervals.rate.limit_flight(self.noise.longest());
    }

    /// Goes on with trials as soon as the queue of the starting phase is gone.
    fn on_sampled(&mut self, intervals: &mut Intervals, sample: &Sample) {
        let Phase::Draining { until, .. } = self.phase else { return };
        let is_empty = |reading: Reading| reading.queueing <= reading.base / DRAINED;
        if sample.now >= until || Reading::of(sample).is_some_and(is_empty) {
            self.start_trials(intervals);
        }
    }

    fn next(&mut self, intervals: &Intervals, rate: f64) -> (f64, Purpose) {
        match &mut self.phase {
            Phase::Starting { .. } if intervals.monitors.awaits_nothing() => (rate, Purpose::Start),
            Phase::Climbing { .. } if intervals.monitors.awaits_nothing() => (rate, Purpose::Climb),
            Phase::Draining { .. } => (rate * DRAIN, Purpose::Fill),
            Phase::Trying { left, .. } if *left > 0 => {
                // Above, below, below, above, or the other way round.
                let is_inner = (1..2 * PAIRS - 1).contains(&(*left - 1));
                *left -= 1;
                if is_inner == self.rounds.is_multiple_of(2) {
                    (rate * (1.0 + TRIAL), Purpose::Above)
                } else {
                    (rate * (1.0 - TRIAL), Purpose::Below)
                }
            }
            _ => (rate, Purpose::Fill),
        }
    }

    fn learn(&mut self, intervals: &mut Intervals, monitor: &Monitor, now: Instant) {
        let Some(rate) = intervals.rate.get() else { return };
        if let Some(seen) = monitor.seen() {
            self.noise.learn(&seen, now);
            if self.relieve(intervals, rate, &seen, now) {
                return;
            }
        }
        let is_noise = self.noise.forgives();
        // A queue that empties is no merit of the rate: the authors' sender (PCC-Uspace) does not reward it either.
        let slope = monitor.slope();
        let utility = monitor.utility(if slope < LEAST_SLOPE || is_noise { 0.0 } else { slope });
        let may_climb = is_noise && utility.is_some() && monitor.loss() <= 0.0;
        match (monitor.purpose, &mut self.phase) {
            (Purpose::Start, Phase::Starting { before }) => {
                let Some(utility) = utility else { return };
                if before.is_some_and(|before| utility < before) {
                    self.phase =
                        Phase::Draining { until: now + intervals.rate.rtt() * DRAIN_ROUNDS, flight: 0 };
                    intervals.monitors.discard();
                    self.set_rate(intervals, rate / 2.0);
                } else {
                    *before = Some(utility);
                    self.set_rate(intervals, rate * 2.0);
                    intervals.monitors.discard();
                }
            }
            (Purpose::Climb, Phase::Climbing { .. }) | (Purpose::Above, Phase::Trying { .. })
                if may_climb =>
            {
                self.climb(intervals, rate);
            }
            (Purpose::Climb, Phase::Climbing { before }) => {
                let before = *before;
                if utility.is_some() {
                    self.set_rate(intervals, before);
                }
                intervals.step = RateStep::default();
                self.start_trials(intervals);
            }
            (Purpose::Above, Phase::Trying { pairs, .. }) if utility.is_some() => {
                if let Some(pair) = pairs.iter_mut().find(|pair| pair.above.is_none()) {
                    pair.above = utility;
                }
            }
            (Purpose::Below, Phase::Trying { pairs, .. }) if utility.is_some() => {
                if let Some(pair) = pairs.iter_mut().find(|pair| pair.below.is_none()) {
                    pair.below = utility;
                }
            }
            (Purpose::Above | Purpose::Below, Phase::Trying { .. }) => self.start_trials(intervals),
            _ => {}
        }
        self.decide(intervals, rate);
    }
}

impl Radio {
    fn set_rate(&self, intervals: &mut Intervals, rate: f64) {
        // When a radio becomes slower that is learnt too late: what is in flight may be a queue already.
        intervals.rate.limit_flight(self.noise.longest());
        intervals.rate.set(rate);
    }

    /// Goes on at a higher rate: by the boundary of steps, which widens from one to the next (§4.2).
    fn climb(&mut self, intervals: &mut Intervals, rate: f64) {
        let change = intervals.step.change(rate / 1e6, f64::MAX, TRIAL) * 1e6;
        self.set_rate(intervals, rate + change.min(rate * CLIMB));
        self.phase = Phase::Climbing { before: rate };
        intervals.monitors.discard();
    }

    /// Sends less than is delivered where a queue stands on a radio; whether it does.
    fn relieve(&mut self, intervals: &mut Intervals, rate: f64, seen: &IntervalStats, now: Instant) -> bool {
        let is_tried = matches!(self.phase, Phase::Trying { .. } | Phase::Climbing { .. });
        let relieved = seen.delivery() * RELIEF;
        if !is_tried || !self.noise.is_queue(seen) {
            return false;
        }
        intervals.step = RateStep::default();
        self.set_rate(intervals, relieved.min(rate));
        let flight = (seen.delivery() / 8.0 * self.noise.usual()) as usize;
        self.phase = Phase::Draining { until: now + intervals.rate.rtt() * DRAIN_ROUNDS, flight };
        intervals.monitors.discard();
        true
    }

    /// Changes the rate once all trials are in and agree.
    fn decide(&mut self, intervals: &mut Intervals, rate: f64) {
        let Phase::Trying { pairs, .. } = self.phase else { return };
        let [Some(first), Some(second)] = pairs.map(Pair::difference) else { return };
        if (first < 0.0) == (second < 0.0) {
            let change = intervals.step.change(rate / 1e6, f64::midpoint(first, second), TRIAL) * 1e6;
            self.set_rate(intervals, rate + change);
        }
        self.start_trials(intervals);
    }

    fn start_trials(&mut self, intervals: &mut Intervals) {
        self.rounds = self.rounds.wrapping_add(1);
        self.phase = Phase::Trying { pairs: [Pair::default(); PAIRS], left: 2 * PAIRS };
        intervals.monitors.discard();
    }
}

#[cfg(test)]
mod tests;
