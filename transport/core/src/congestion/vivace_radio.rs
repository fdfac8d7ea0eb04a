//! PCC Vivace for radios: [`Vivace`](super::vivace::Vivace) that does not take what a channel's delay varies by for a queue.
//!
//! Six things differ from the paper. As in a later sender of the authors' (PCC-Uspace) the rate changes only if two pairs of
//! trials agree, a queue that empties is no merit, and slopes of less than 0.03 are noise (PCC-Kernel). The queue that the
//! starting phase left is emptied before the first trials. And three things are ours: while the delay is no more than it
//! varies by (see `noise`) slopes do not count, and the rate climbs without trials. If a queue must be there the rate becomes at
//! once a little less than what is delivered, and half of that until the queue is gone. And a queue does not count for how much
//! may be in flight.

use super::queueing::Reading;
use super::vivace::TRIAL;
use super::vivace::monitor::{IntervalStats, Monitor, Monitors, Purpose};
use super::vivace::rate::SendingRate;
use super::vivace::step::RateStep;
use super::{Controller, LossSample, MarkSample, Sample, Sending, SpuriousSample};
use crate::Bandwidth;
use crate::recovery::persistent::Persistence;
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

/// The controller of Dong et al., for radios.
#[derive(Clone, Debug)]
pub struct VivaceRadio {
    rate: SendingRate,
    phase: Phase,
    step: RateStep,
    monitors: Monitors,
    noise: Noise,
    /// Counts rounds of trials: every other one begins with the lower rate.
    rounds: u32,
}

impl VivaceRadio {
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
            noise: Noise::default(),
            rounds: 0,
        }
    }

    fn set_rate(&mut self, rate: f64) {
        // When a radio becomes slower that is learnt too late: what is in flight may be a queue already.
        self.rate.limit_flight(self.noise.longest());
        self.rate.set(rate);
    }

    /// The next interval and its rate: a trial if one is due, else one at the rate itself until the results are in.
    fn next(&mut self, rate: f64) -> (f64, Purpose) {
        match &mut self.phase {
            Phase::Starting { .. } if self.monitors.awaits_nothing() => (rate, Purpose::Start),
            Phase::Climbing { .. } if self.monitors.awaits_nothing() => (rate, Purpose::Climb),
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

    fn begin_interval(&mut self, now: Instant) {
        let Some(rate) = self.rate.get() else { return };
        let (rate, purpose) = self.next(rate);
        self.monitors.begin(Monitor::new(purpose, rate, now, self.rate.interval(rate)));
    }

    /// Learns from an interval all of whose packets are accounted for.
    fn learn(&mut self, monitor: &Monitor, now: Instant) {
        let Some(rate) = self.rate.get() else { return };
        if let Some(seen) = monitor.seen() {
            self.noise.learn(&seen, now);
            if self.relieve(rate, &seen, now) {
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
                    self.phase = Phase::Draining { until: now + self.rate.rtt() * DRAIN_ROUNDS, flight: 0 };
                    self.monitors.discard();
                    self.set_rate(rate / 2.0);
                } else {
                    *before = Some(utility);
                    self.set_rate(rate * 2.0);
                    self.monitors.discard();
                }
            }
            (Purpose::Climb, Phase::Climbing { .. }) | (Purpose::Above, Phase::Trying { .. })
                if may_climb =>
            {
                self.climb(rate);
            }
            (Purpose::Climb, Phase::Climbing { before }) => {
                let before = *before;
                if utility.is_some() {
                    self.set_rate(before);
                }
                self.step = RateStep::default();
                self.start_trials();
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
            (Purpose::Above | Purpose::Below, Phase::Trying { .. }) => self.start_trials(),
            _ => {}
        }
        self.decide(rate);
    }

    /// Goes on at a higher rate: by the boundary of steps, which widens from one to the next (§4.2).
    fn climb(&mut self, rate: f64) {
        let change = self.step.change(rate / 1e6, f64::MAX, TRIAL) * 1e6;
        self.set_rate(rate + change.min(rate * CLIMB));
        self.phase = Phase::Climbing { before: rate };
        self.monitors.discard();
    }

    /// Sends less than is delivered where a queue stands on a radio; whether it does.
    fn relieve(&mut self, rate: f64, seen: &IntervalStats, now: Instant) -> bool {
        let is_tried = matches!(self.phase, Phase::Trying { .. } | Phase::Climbing { .. });
        let relieved = seen.delivery() * RELIEF;
        if !is_tried || !self.noise.is_queue(seen) {
            return false;
        }
        self.step = RateStep::default();
        self.set_rate(relieved.min(rate));
        let flight = (seen.delivery() / 8.0 * self.noise.usual()) as usize;
        self.phase = Phase::Draining { until: now + self.rate.rtt() * DRAIN_ROUNDS, flight };
        self.monitors.discard();
        true
    }

    /// Changes the rate once all trials are in and agree.
    fn decide(&mut self, rate: f64) {
        let Phase::Trying { pairs, .. } = self.phase else { return };
        let [Some(first), Some(second)] = pairs.map(Pair::difference) else { return };
        if (first < 0.0) == (second < 0.0) {
            let change = self.step.change(rate / 1e6, f64::midpoint(first, second), TRIAL) * 1e6;
            self.set_rate(rate + change);
        }
        self.start_trials();
    }

    /// Goes on with trials as soon as the queue of the starting phase is gone.
    fn watch_drain(&mut self, sample: &Sample) {
        let Phase::Draining { until, .. } = self.phase else { return };
        let is_empty = |reading: Reading| reading.queueing <= reading.base / DRAINED;
        if sample.now >= until || Reading::of(sample).is_some_and(is_empty) {
            self.start_trials();
        }
    }

    fn start_trials(&mut self) {
        self.rounds = self.rounds.wrapping_add(1);
        self.phase = Phase::Trying { pairs: [Pair::default(); PAIRS], left: 2 * PAIRS };
        self.monitors.discard();
    }
}

impl Controller for VivaceRadio {
    fn on_sent(&mut self, sending: &Sending) {
        if matches!(self.phase, Phase::Draining { flight, .. } if sending.in_flight <= flight) {
            self.start_trials();
        }
        if self.rate.get().is_some() && self.monitors.is_over(sending.now) {
            self.begin_interval(sending.now);
        }
        self.monitors.on_sent(sending.bytes);
    }

    fn on_acknowledged(&mut self, sample: &Sample) {
        self.rate.limit_flight(self.noise.longest());
        if !self.rate.on_sample(sample) {
            return;
        }
        self.monitors.on_sample(sample);
        // Losses show up to an eighth of a round trip after what was sent next (RFC 9002 §6.1.2).
        while let Some(monitor) = self.monitors.complete(sample.sent_at, sample.smoothed_rtt / 8) {
            self.learn(&monitor, sample.now);
        }
        self.watch_drain(sample);
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
        // RFC 9002 §7.1: a mark counts as a loss.
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
        "vivace-radio"
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
