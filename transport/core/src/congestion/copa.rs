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
//! [`Copa::for_radios`] is the variant for channels whose delay varies by itself. Four things differ from the paper, all ours.
//! The part of the delay that a radio varies by is no queue (see `variation`). Before that is learnt, slow start ends only for
//! a delay that HyStart++ would end it for (RFC 9406). The standing delay is that of the last half to whole round trip. And
//! a round trip takes no more than an eighth of the window away, while the velocity changes the window by a quarter a round
//! trip at most, a sixteenth where acknowledgements are uneven, and begins anew as soon as the direction turns.

pub(in crate::congestion) mod bases;
pub(in crate::congestion) mod competition;

use super::period::Period;
use super::queueing::{Round, Rounds};
use super::tolerance::Tolerance;
use super::variation::Variation;
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
/// The same for radios. Of thinned acknowledgements that share a narrow return path with others, so few fall into half a round
/// trip that each of them may have waited; jitter and delayed acknowledgements only add to the delay.
const STANDING_SPANS_OF_RADIO: u32 = 2;
/// For radios, the divisor of the window that limits the change by the velocity in a round trip, lest the next steps go too
/// far: the effect of a step shows a round trip later, and later still while acknowledgements are uneven. (The authors'
/// sender, genericCC, permits a whole window.)
const BRISK: f64 = 4.0;
const CAREFUL: f64 = 16.0;
/// For radios, the divisor of the window that limits its decrease in a round trip: in the competitive mode 1/δ goes on
/// growing while the velocity stays.
const LEAVING: f64 = 8.0;
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
    /// Queueing delays of the last half round trip, of which the smallest counts (RTTstanding − RTTmin; §2). For radios, of
    /// the last half to whole round trip.
    standing: Recent<Duration>,
    tolerance: Tolerance,
    recovery: Period<Before>,
    /// Bytes lost in it.
    lost: usize,
    /// The window that they halved.
    halved: Option<f64>,
    /// The round-trip time that the rate is computed with: the standing one, or for radios the smoothed one.
    rtt: Option<Duration>,
}

impl Copa {
    /// The initial state for datagrams of `datagram_size` bytes, as published.
    pub fn new(datagram_size: usize) -> Self {
        Self::with(datagram_size, Tolerance::None)
    }

    /// The initial state for datagrams of `datagram_size` bytes, for channels whose delay varies by itself.
    pub fn for_radios(datagram_size: usize) -> Self {
        Self::with(datagram_size, Tolerance::Radio(Variation::growing()))
    }

    fn with(datagram_size: usize, tolerance: Tolerance) -> Self {
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
            tolerance,
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
        if self.tolerance.is_radio() && wanted != self.heading && self.velocity > 1.0 {
            // Waiting for the end of the round trip would overshoot by what the velocity has become.
            (self.velocity, self.steady) = (1.0, 0);
            self.heading = wanted;
        }
        let datagram = self.datagram();
        let acknowledged = (sample.bytes as f64).min(self.window) / datagram;
        // No more than slow start would grow, a doubling a round trip; and down, no more than shows a round trip later.
        let most = match wanted {
            Heading::Down if self.tolerance.is_radio() => self.window / LEAVING,
            Heading::Up | Heading::Down => self.window,
        };
        let speed = (self.velocity * self.competition.datagrams()).min(most / datagram);
        let change = speed * acknowledged * datagram * datagram / self.window;
        match wanted {
            Heading::Up if sample.app_limited => {}
            Heading::Up => self.set_window(self.window + change),
            Heading::Down => self.set_window(self.window - change),
        }
    }

    /// The largest velocity: changes are 1/δ times as many datagrams a round trip.
    fn fastest(&self) -> f64 {
        let fastest = self.window / self.datagram() / self.competition.datagrams();
        if !self.tolerance.is_radio() {
            return fastest.max(1.0);
        }
        // A radio whose delay may have become longer for a moment is not left in a hurry.
        let standing = self.standing.get(Duration::min);
        let is_certain = standing.is_some_and(|standing| self.tolerance.is_exceeded(standing));
        if self.heading == Heading::Down && !is_certain {
            return 1.0;
        }
        let share = if self.rounds.is_uneven(self.window) { CAREFUL } else { BRISK };
        (fastest / share).max(1.0)
    }

    /// Updates velocity (§2.1) and mode (§2.2), once a round trip.
    fn on_round(&mut self, round: Round) {
        let lump = self.rounds.flight(self.window) - self.window;
        self.tolerance.on_round(&round, self.window, lump);
        let heading = if self.window > self.window_before { Heading::Up } else { Heading::Down };
        if heading == self.heading {
            self.steady = self.steady.saturating_add(1);
            if self.steady >= STEADY_ROUNDS {
                self.velocity = (self.velocity * 2.0).min(self.fastest());
            }
        } else {
            (self.velocity, self.steady, self.heading) = (1.0, 0, heading);
        }
        self.set_window(self.window * round.shift);
        self.window_before = self.window;
        let round = Round { least: self.tolerance.queueing(round.least), ..round };
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
            let spans = if self.tolerance.is_radio() { STANDING_SPANS_OF_RADIO } else { STANDING_SPANS };
            let span = sample.smoothed_rtt / spans;
            self.standing.offer(reading.queueing, sample.now, span, Duration::min);
        }
        let rounded = Sample { min_rtt: reading.map_or(sample.min_rtt, |reading| reading.base), ..*sample };
        let round = self.rounds.on_sample(&rounded);
        let Some(standing) = self.standing.get(Duration::min) else { return };
        let base = self.rounds.longest().unwrap_or(sample.min_rtt);
        self.rtt = Some(match self.tolerance {
            Tolerance::None => base.saturating_add(standing),
            Tolerance::Radio(_) => sample.smoothed_rtt,
        });
        let wanted = self.wanted(base, self.tolerance.queueing(standing));
        if self.slow_start && wanted == Heading::Down && self.tolerance.is_long(standing, base) {
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
            *self = if self.tolerance.is_radio() { Self::for_radios } else { Self::new }(self.datagram_size);
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
        if self.tolerance.is_radio() { "copa-radio" } else { "copa" }
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
