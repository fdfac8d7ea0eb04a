//! PCC Vivace (Dong et al., NSDI 2018): the rate climbs the gradient of a utility that experiments measure.
//!
//! Time is cut into monitor intervals of a round trip. Pairs of them try rates a little above and below the present one; the
//! utility of each, which rewards rate and punishes losses and growing delay, says which way to go. Delays are compared
//! only among samples of one return path (see [`monitor`]). Intervals that the application left idle say nothing. A loss that
//! turns out spurious is taken off its interval while that is not judged yet; a judgement stands, for the next trials correct
//! what it changed.

use super::queueing::Reading;
use super::{
    Controller, LossSample, MarkSample, Sample, Sending, SpuriousSample, initial_window, minimum_window,
};
use crate::Bandwidth;
use crate::recovery::persistent::Persistence;
use crate::time::Instant;
use monitor::{Monitor, Monitors};
use std::time::Duration;
use step::Step;

mod monitor;
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
/// Round trips' worth of data that may be in flight: only a path that stops answering reaches this.
const FLIGHT: f64 = 2.0;

/// What the controller is doing.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Phase {
    /// The rate doubles until utility falls (§4.1).
    Starting {
        /// The utility of the rate before.
        before: Option<f64>,
    },
    /// The queue that doubling the rate left empties. The paper has no such phase; but no utility rewards a rate for emptying a
    /// queue, so that it would stay for seconds.
    Draining {
        /// When it is given up: the path may have become longer.
        until: Instant,
    },
    /// Two pairs of trials run, one above the rate and one below it each.
    Trying {
        /// What the pairs have shown.
        pairs: [Pair; PAIRS],
        /// Trials yet to begin.
        left: usize,
    },
}

/// Pairs of trials before the rate changes: only if all agree on the direction, as in the authors' sender (PCC-Uspace). The
/// second has the trials of the first the other way round, so that trends fall on both alike and two lossy intervals in a row
/// decide nothing.
const PAIRS: usize = 2;

/// The utilities of two trials.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Pair {
    above: Option<f64>,
    below: Option<f64>,
}

impl Pair {
    /// How much better the trial above the rate was.
    fn difference(self) -> Option<f64> {
        Some(self.above? - self.below?)
    }
}

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
    /// little. What persistent congestion left of the window grows until then as in slow start (RFC 9002 §7.3.1). The
    /// latest round trip counts, for the smoothed one may still be that of an outage.
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
        let (Some(rate), utility) = (self.rate, monitor.utility()) else { return };
        match (monitor.purpose, &mut self.phase) {
            (Purpose::Start, Phase::Starting { before }) => {
                let Some(utility) = utility else { return };
                if before.is_some_and(|before| utility < before) {
                    self.phase = Phase::Draining { until: now + self.rtt * DRAIN_ROUNDS };
                    self.monitors.discard();
                    self.set_rate(rate / 2.0);
                } else {
                    *before = Some(utility);
                    self.set_rate(rate * 2.0);
                    self.monitors.discard();
                }
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
        let Phase::Draining { until } = self.phase else { return };
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

/// What an interval is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// It measures a rate of the starting phase.
    Start,
    /// It is the trial above the rate.
    Above,
    /// It is the trial below.
    Below,
    /// It fills the time until results are in.
    Fill,
}

impl Controller for Vivace {
    fn on_sent(&mut self, sending: &Sending) {
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

    fn reset(&mut self, datagram_size: usize) {
        *self = Self::new(datagram_size);
    }

    fn set_datagram_size(&mut self, datagram_size: usize) {
        self.datagram_size = datagram_size;
        self.set_window(self.window as f64);
    }
}

#[cfg(test)]
mod tests;
