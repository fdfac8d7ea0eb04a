//! PCC Vivace (Dong et al., NSDI 2018): the rate climbs the gradient of a utility that experiments measure.
//!
//! Time is cut into monitor intervals of a round trip. Pairs of them try rates a little above and below the present one; the
//! utility of each, which rewards rate and punishes losses and growing delay, says which way to go. Delays are compared
//! only among samples of one return path (see `monitor`). Intervals that the application left idle say nothing. A loss that
//! turns out spurious is taken off its interval while that is not judged yet; a judgement stands, for the next trials correct
//! what it changed.
//!
//! Over a radio, whose delay varies without a queue, three things differ, all ours. While the delay is no more than it varies by
//! (see `noise`) slopes do not count, and the rate climbs without trials. If a queue must be there the rate becomes at
//! once a little less than what is delivered, and half of that until the queue is gone. And a queue does not count for how much
//! may be in flight.

use super::queueing::Reading;
use super::{
    Controller, LossSample, MarkSample, Sample, Sending, SpuriousSample, initial_window, minimum_window,
};
use crate::Bandwidth;
use crate::recovery::persistent::Persistence;
use crate::time::Instant;
use monitor::{Monitor, Monitors};
use noise::{Noise, Seen};
use phase::{PAIRS, Pair, Phase, Purpose};
use std::time::Duration;
use step::Step;

mod monitor;
mod noise;
mod phase;
mod step;

/// Trials are this share above and below the rate (ε; §4.1).
const TRIAL: f64 = 0.05;
/// Rates stay within these, in bits per second, so that arithmetic on them cannot overflow.
const LEAST_RATE: f64 = 8_000.0;
const MOST_RATE: f64 = 1e12;
/// The share of the rate that is sent while the queue of the starting phase empties, the share of a round trip that it may
/// keep, and how many round trips it is given.
const DRAIN: f64 = 0.5;
const DRAINED: u32 = 16;
const DRAIN_ROUNDS: u32 = 8;
/// The share of what is delivered that is sent where a queue stands on a radio, and by how much the rate may climb at once.
const RELIEF: f64 = 0.9;
const CLIMB: f64 = 0.5;
/// Round trips' worth of data that may be in flight: only a path that stops answering reaches this.
const FLIGHT: f64 = 2.0;

/// The controller of Dong et al.
#[derive(Clone, Debug)]
pub struct Vivace {
    datagram_size: usize,
    /// Bits per second, once a round trip was measured.
    rate: Option<f64>,
    window: usize,
    phase: Phase,
    step: Step,
    monitors: Monitors,
    noise: Noise,
    /// Counts rounds of trials: every other one begins with the lower rate.
    rounds: u32,
    /// The smoothed round-trip time, but no more than the latest: after an outage it would be that of the outage for long.
    rtt: Duration,
    /// The average over all return paths, in proportion to what they carry: this bounds what is in flight.
    mixed_rtt: Duration,
}

impl Vivace {
    /// The initial state for datagrams of `datagram_size` bytes.
    pub fn new(datagram_size: usize) -> Self {
        Self {
            datagram_size,
            rate: None,
            window: initial_window(datagram_size),
            phase: Phase::Starting { before: None },
            step: Step::default(),
            monitors: Monitors::default(),
            noise: Noise::default(),
            rounds: 0,
            rtt: Duration::ZERO,
            mixed_rtt: Duration::ZERO,
        }
    }

    fn seconds(&self) -> f64 {
        self.rtt.as_secs_f64().max(1e-6)
    }

    fn set_rate(&mut self, rate: f64) {
        let least = minimum_window(self.datagram_size) as f64 * 8.0 / self.seconds();
        let rate = rate.max(least.min(MOST_RATE)).clamp(LEAST_RATE, MOST_RATE);
        self.rate = Some(rate);
        self.bound_flight(rate);
    }

    /// The first rate is an initial window for each round trip: of fewer packets an interval would last for many, and learn
    /// little. The rest of the window after persistent congestion grows until then as in slow start (RFC 9002 §7.3.1).
    /// The latest round trip counts, for the smoothed one may still be that of an outage.
    fn find_first_rate(&mut self, rtt: Duration, acknowledged: usize) {
        let initial = initial_window(self.datagram_size);
        if self.window < initial {
            self.window = self.window.saturating_add(acknowledged).min(initial);
        }
        if self.window >= initial {
            self.set_rate(initial as f64 * 8.0 / rtt.as_secs_f64().max(1e-6));
        }
    }

    fn bound_flight(&mut self, rate: f64) {
        let seconds = self.mixed_rtt.as_secs_f64().max(self.seconds());
        // When a radio becomes slower that is learnt too late: what is in flight may be a queue already.
        let seconds = self.noise.longest().map_or(seconds, |longest| longest.min(seconds));
        self.set_window(rate * seconds / 8.0 * FLIGHT);
    }

    fn set_window(&mut self, window: f64) {
        let smallest = minimum_window(self.datagram_size);
        self.window = (window.min((1u64 << 48) as f64) as usize).max(smallest);
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
        let Some(rate) = self.rate else { return };
        let (rate, purpose) = self.next(rate);
        // An interval of few packets measures nothing: at least ten, and at least a round trip.
        let ten = self.datagram_size as f64 * 80.0 / rate;
        let length = Duration::from_secs_f64(self.seconds().max(ten).min(10.0));
        self.monitors.begin(Monitor::new(purpose, rate, now, length));
    }

    /// Learns from an interval all of whose packets are accounted for.
    fn learn(&mut self, monitor: &Monitor, now: Instant) {
        let Some(rate) = self.rate else { return };
        if let Some(seen) = monitor.seen() {
            self.noise.learn(&seen, now);
            if self.relieve(rate, &seen, now) {
                return;
            }
        }
        let is_noise = self.noise.forgives();
        let utility = monitor.utility(is_noise);
        let may_climb = is_noise && utility.is_some() && monitor.loss() <= 0.0;
        match (monitor.purpose, &mut self.phase) {
            (Purpose::Start, Phase::Starting { before }) => {
                let Some(utility) = utility else { return };
                if before.is_some_and(|before| utility < before) {
                    self.phase = Phase::Draining { until: now + self.rtt * DRAIN_ROUNDS, flight: 0 };
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
                self.step = Step::default();
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
    fn relieve(&mut self, rate: f64, seen: &Seen, now: Instant) -> bool {
        let is_tried = matches!(self.phase, Phase::Trying { .. } | Phase::Climbing { .. });
        let relieved = seen.delivery() * RELIEF;
        if !is_tried || !self.noise.is_queue(seen) {
            return false;
        }
        self.step = Step::default();
        self.set_rate(relieved.min(rate));
        let flight = (seen.delivery() / 8.0 * self.noise.usual()) as usize;
        self.phase = Phase::Draining { until: now + self.rtt * DRAIN_ROUNDS, flight };
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

impl Controller for Vivace {
    fn on_sent(&mut self, sending: &Sending) {
        if matches!(self.phase, Phase::Draining { flight, .. } if sending.in_flight <= flight) {
            self.start_trials();
        }
        if self.rate.is_some() && self.monitors.is_over(sending.now) {
            self.begin_interval(sending.now);
        }
        self.monitors.on_sent(sending.bytes);
    }

    fn on_acknowledged(&mut self, sample: &Sample) {
        self.rtt = sample.rtt.map_or(sample.smoothed_rtt, |latest| latest.min(sample.smoothed_rtt));
        let rtt = sample.rtt.unwrap_or(self.mixed_rtt);
        self.mixed_rtt = self.mixed_rtt.mul_f64(0.875).saturating_add(rtt / 8);
        match (self.rate, sample.rtt) {
            (None, Some(rtt)) => self.find_first_rate(rtt, sample.bytes),
            (None, None) => return,
            (Some(rate), _) => self.bound_flight(rate),
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
            let rtt = self.rtt;
            *self = Self { rtt, ..Self::new(self.datagram_size) };
            self.set_window(0.0);
            return;
        }
        self.monitors.on_lost(sample.largest_sent_at, sample.bytes);
    }

    fn on_ecn_ce(&mut self, sample: &MarkSample) {
        // RFC 9002 §7.1: a mark counts as a loss.
        self.monitors.on_lost(sample.sent_at, self.datagram_size);
    }

    fn on_spurious(&mut self, sample: &SpuriousSample) {
        self.monitors.on_spurious(sample.sent_at, sample.bytes);
    }

    fn window(&self) -> usize {
        self.window
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        let rate = self.monitors.rate().or(self.rate)?;
        Some(Bandwidth::from_bits_per_second(rate as u64))
    }

    fn name(&self) -> &'static str {
        "vivace"
    }

    fn in_slow_start(&self) -> bool {
        matches!(self.phase, Phase::Starting { .. })
    }

    fn set_datagram_size(&mut self, datagram_size: usize) {
        self.datagram_size = datagram_size;
        self.set_window(self.window as f64);
    }
}

#[cfg(test)]
mod tests;
