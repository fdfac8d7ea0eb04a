//! Copa as published (Arun and Balakrishnan, NSDI 2018): the window moves towards the rate of one datagram per δ times the
//! queueing delay, and beside flows that fill the queue δ adapts (mode switching, §2.2).
//!
//! The paper leaves open how a sender recovers, and QUIC asks for more. So: the smallest and the standing round-trip time
//! are those of each return path, and the window is kept for the longest one in use (see `queueing`). Marks halve the
//! window once a round trip (RFC 9002 §7.1), as does a loss in slow start (§7.3.1). In the default mode, in which the paper
//! takes no notice of losses, more than a tenth of the window lost in a round trip halves it too (RFC 8085 §3.1): a queue of
//! less than two datagrams shows no delay. Persistent congestion leads back to slow start (RFC 9002 §7.6.2), a window
//! that is not used does not grow (§7.8), and the effect of losses that were none is undone. The velocity changes the window
//! by no more than itself in a round trip, as in the authors' sender (genericCC).
//!
//! [`CopaRadio`](super::copa_radio::CopaRadio) is the variant for channels whose delay varies by itself.

pub(in crate::congestion) mod bases;
pub(in crate::congestion) mod competition;

use super::period::Period;
use super::queueing::{Round, Rounds};
use super::{
    Controller, LossSample, MarkSample, Sample, SpuriousSample, initial_window, minimum_window,
    slow_start_rate,
};
use crate::Bandwidth;
use crate::recovery::persistent::Persistence;
use crate::recovery::windowed::Recent;
use bases::Bases;
use competition::{Competition, Mode};
use std::time::Duration;

/// Round trips in one direction before the velocity doubles (§2.1).
const STEADY_ROUNDS: u32 = 3;
/// The divisor of the round trip that gives the spans of which the last one to two give the standing round-trip time: half
/// a round trip at most (τ; §2).
const STANDING_SPANS: u32 = 4;
/// The share of the window whose loss within a round trip counts in the default mode.
const LOST_SHARE: f64 = 0.1;
/// Windows do not grow beyond this.
const LARGEST_WINDOW: f64 = (1u64 << 48) as f64;

/// The direction in which the window moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Heading {
    Up,
    Down,
}

/// The state that a reduction changes, so that a spurious one can be undone.
#[derive(Clone, Copy, Debug)]
struct Before {
    slow_start: bool,
    mode: Mode,
    heading: Heading,
}

/// The controller of Arun and Balakrishnan.
#[derive(Clone, Debug)]
pub struct Copa {
    datagram_size: usize,
    /// Bytes; fractions accumulate.
    window: f64,
    slow_start: bool,
    competition: Competition,
    /// v of §2.1.
    velocity: f64,
    heading: Heading,
    /// Round trips since the heading changed.
    steady: u32,
    /// The window when the round trip began.
    window_before: f64,
    rounds: Rounds,
    bases: Bases,
    /// Queueing delays of the last half round trip, of which the smallest counts (RTTstanding − RTTmin; §2).
    standing: Recent<Duration>,
    recovery: Period<Before>,
    /// Bytes lost in it.
    lost: usize,
    /// The window that they halved.
    halved: Option<f64>,
    /// The standing round-trip time, with which the rate is computed.
    rtt: Option<Duration>,
}

impl Copa {
    /// The initial state for datagrams of `datagram_size` bytes.
    pub fn new(datagram_size: usize) -> Self {
        let window = initial_window(datagram_size) as f64;
        Self {
            datagram_size,
            window,
            slow_start: true,
            competition: Competition::default(),
            velocity: 1.0,
            heading: Heading::Up,
            steady: 0,
            window_before: window,
            rounds: Rounds::default(),
            bases: Bases::default(),
            standing: Recent::default(),
            recovery: Period::default(),
            lost: 0,
            halved: None,
            rtt: None,
        }
    }

    fn datagram(&self) -> f64 {
        self.datagram_size.max(1) as f64
    }

    fn set_window(&mut self, window: f64) {
        self.window = window.min(LARGEST_WINDOW).max(minimum_window(self.datagram_size) as f64);
    }

    /// The heading that §2.1 asks for: up while the current rate, a window per standing round-trip time, is at most the
    /// target, 1/(δ × queueing delay).
    fn wanted(&self, base: Duration, queueing: Duration) -> Heading {
        let (base, queueing) = (base.as_secs_f64(), queueing.as_secs_f64());
        let current = self.window / self.datagram() * queueing;
        if current <= self.competition.datagrams() * (base + queueing) { Heading::Up } else { Heading::Down }
    }

    /// Moves the window by v/(δ × window) datagrams for each that is acknowledged (§2.1).
    fn step(&mut self, sample: &Sample, wanted: Heading) {
        let datagram = self.datagram();
        let acknowledged = (sample.bytes as f64).min(self.window) / datagram;
        let speed = (self.velocity * self.competition.datagrams()).min(self.window / datagram);
        let change = speed * acknowledged * datagram * datagram / self.window;
        match wanted {
            Heading::Up if sample.app_limited => {}
            Heading::Up => self.set_window(self.window + change),
            Heading::Down => self.set_window(self.window - change),
        }
    }

    /// Updates velocity (§2.1) and mode (§2.2), once a round trip.
    fn on_round(&mut self, round: Round) {
        let heading = if self.window > self.window_before { Heading::Up } else { Heading::Down };
        if heading == self.heading {
            self.steady = self.steady.saturating_add(1);
            if self.steady >= STEADY_ROUNDS {
                let fastest = self.window / self.datagram() / self.competition.datagrams();
                self.velocity = (self.velocity * 2.0).min(fastest.max(1.0));
            }
        } else {
            (self.velocity, self.steady, self.heading) = (1.0, 0, heading);
        }
        self.set_window(self.window * round.shift);
        self.window_before = self.window;
        if self.slow_start {
            self.competition.on_slow_start_round(round);
        } else {
            self.competition.on_round(round);
        }
    }

    fn halve(&mut self) {
        self.set_window(self.window / 2.0);
        self.window_before = self.window;
        (self.velocity, self.steady, self.heading) = (1.0, 0, Heading::Down);
        self.slow_start = false;
    }
}

impl Controller for Copa {
    fn on_acknowledged(&mut self, sample: &Sample) {
        let reading = self.bases.read(sample);
        if let Some(reading) = reading {
            let span = sample.smoothed_rtt / STANDING_SPANS;
            self.standing.offer(reading.queueing, sample.now, span, Duration::min);
        }
        let rounded = Sample { min_rtt: reading.map_or(sample.min_rtt, |reading| reading.base), ..*sample };
        let round = self.rounds.on_sample(&rounded);
        let Some(standing) = self.standing.get(Duration::min) else { return };
        let base = self.rounds.longest().unwrap_or(sample.min_rtt);
        self.rtt = Some(base.saturating_add(standing));
        let wanted = self.wanted(base, standing);
        if self.slow_start && wanted == Heading::Down {
            self.slow_start = false;
            self.heading = Heading::Down;
        }
        if !self.slow_start {
            self.step(sample, wanted);
        } else if !sample.app_limited && !self.recovery.covers(sample.sent_at) {
            self.set_window(self.window + sample.bytes as f64);
        }
        if let Some(round) = round {
            self.on_round(round);
        }
    }

    fn on_lost(&mut self, sample: &LossSample) {
        if sample.persistent == Persistence::Persistent {
            // RFC 9002 §7.6.2.
            *self = Self::new(self.datagram_size);
            self.set_window(0.0);
            self.window_before = self.window;
            return;
        }
        if sample.bytes == 0 {
            return;
        }
        let mode = self.competition.mode();
        let state = Before { slow_start: self.slow_start, mode, heading: self.heading };
        let repeated = !self.recovery.on_lost(sample, state);
        let before = if repeated { self.lost } else { 0 };
        self.lost = before.saturating_add(sample.bytes);
        let enough = self.window * LOST_SHARE;
        let crosses = before as f64 <= enough && self.lost as f64 > enough;
        if !repeated {
            self.halved = None;
            self.competition.on_loss();
        }
        if self.slow_start || (mode == Mode::Default && crosses) {
            self.halved = Some(self.window);
            self.halve();
        }
    }

    fn on_ecn_ce(&mut self, sample: &MarkSample) {
        if self.recovery.on_mark(sample) {
            self.lost = 0;
            self.halve();
        }
    }

    fn on_spurious(&mut self, sample: &SpuriousSample) {
        let Some(before) = self.recovery.on_spurious(sample) else { return };
        self.lost = 0;
        self.competition.on_spurious(before.mode);
        if let Some(window) = self.halved.take() {
            self.set_window(self.window.max(window));
            self.window_before = self.window;
            (self.slow_start, self.heading) = (before.slow_start, before.heading);
        }
    }

    fn window(&self) -> usize {
        self.rounds.flight(self.window) as usize
    }

    /// Two windows a standing round-trip time (§2.1), so that datagrams are spread and acknowledgements still set the
    /// pace; one while they cannot, because they change their path.
    fn pacing_rate(&self) -> Option<Bandwidth> {
        let even = self.rounds.pace(self.window, self.standing.get(Duration::min).unwrap_or_default());
        even.filter(|_| !self.slow_start).or_else(|| slow_start_rate(self.window as usize, self.rtt))
    }

    fn name(&self) -> &'static str {
        "copa"
    }

    fn in_slow_start(&self) -> bool {
        self.slow_start
    }

    fn set_datagram_size(&mut self, datagram_size: usize) {
        self.datagram_size = datagram_size;
        self.set_window(self.window);
    }
}

#[cfg(test)]
mod tests;
