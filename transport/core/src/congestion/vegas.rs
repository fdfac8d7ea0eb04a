//! Vegas as published (Brakmo and Peterson, IEEE JSAC 13(8), 1995): the window is kept where two to four datagrams of the
//! flow wait in the queue.
//!
//! The paper leaves some numbers open; they are those of the authors or of Linux (net/ipv4/tcp_vegas.c), whose α, β and γ
//! these are. As in Linux the queue of a round trip is the least that it showed, and the window after slow start is what
//! the path carries and a datagram. As in the authors' sender (its port to ns-2) a loss takes a quarter of the window in
//! congestion avoidance.
//!
//! Three things differ because this is QUIC over several paths. The smallest round-trip time is that of each return path,
//! and the window is kept for the longest one in use (see `queueing`). Where one acknowledgement covers more than a
//! quarter of the window, as much may be in flight beyond it, or the sender would run dry in between. All that
//! Vegas does not define is as in NewReno (RFC 9002 §7): recovery, persistent congestion, marks, a window that is not used.
//! Its own check for losses at the first duplicate acknowledgement (§III) is that of RFC 9002 §6.
//!
//! [`Vegas::for_radios`] is the variant for channels whose delay varies by itself. Four things differ from the paper, all ours.
//! The part of the delay that a radio varies by is no queue (see `variation`). Before that is learnt, slow start ends only for
//! a delay that HyStart++ would end it for (RFC 9406). What slow start left in the queue is taken back until it is less than
//! that. And growth without a queue becomes faster (see `Climb`).

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
use crate::time::Instant;
use std::time::Duration;

/// Datagrams in the queue below which the window grows (α; §III).
const ALPHA: f64 = 2.0;
/// Datagrams in the queue above which it shrinks (β).
const BETA: f64 = 4.0;
/// Datagrams in the queue that end slow start (γ; §III).
const GAMMA: f64 = 1.0;
/// The share of the window that losses of a round trip leave in congestion avoidance, and in slow start (RFC 9002
/// §7.3.2), whose window may be twice what the path carries.
const REMAINING: f64 = 0.75;
const REMAINING_OF_SLOW_START: f64 = 0.5;
/// For radios, round trips of growth before its steps double, and the share of the window (one over this) that none exceeds.
const STEADY_ROUNDS: u32 = 3;
const BRISK: f64 = 8.0;
/// Acknowledgements of up to this share of the window set the pace. If the sender runs dry between them no queue is
/// seen, and the window grows until it no longer does; flight beyond the window for their sake would all stand in the
/// queue.
const LARGE_SHARE: f64 = 1.0 / 4.0;
/// Windows do not grow beyond this.
const LARGEST_WINDOW: f64 = (1u64 << 48) as f64;

/// The phase of the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Slow start, in a round trip in which the window doubles.
    Doubling,
    /// Slow start, in a round trip without growth, so that rates can be compared (§III).
    Holding,
    /// For radios, the round trip in which what slow start left in the queue empties: its samples are from before.
    Draining,
    /// For radios, the round trip after it, which shows what is left.
    Drained,
    /// A datagram more or less each round trip (§III).
    Avoidance,
}

/// Round trips in a row in which the window grew.
#[derive(Clone, Copy, Debug, Default)]
struct Climb {
    rounds: u32,
    /// Bytes of the last step.
    step: f64,
}

impl Climb {
    /// The next step: a datagram, and after three round trips twice as much in each as in the one before, as Copa has it
    /// (§2.1 of its paper). The authors' step alone is for channels whose rate stays.
    fn step(&mut self, window: f64, datagram: f64) -> f64 {
        let doublings = self.rounds.saturating_sub(STEADY_ROUNDS).min(48);
        self.rounds = self.rounds.saturating_add(1);
        self.step = (datagram * (1u64 << doublings) as f64).min((window / BRISK).max(datagram));
        self.step
    }

    /// There is a queue. The effect of the last step shows a round trip later: two steps may have gone too far.
    fn turn(&mut self) -> f64 {
        2.0 * std::mem::take(self).step
    }
}

/// The controller of Brakmo and Peterson.
#[derive(Clone, Debug)]
pub struct Vegas {
    datagram_size: usize,
    /// Bytes; fractions accumulate.
    window: f64,
    phase: Phase,
    rounds: Rounds,
    tolerance: Tolerance,
    /// Stays at its beginning without tolerance.
    climb: Climb,
    recovery: Period<Before>,
    smoothed_rtt: Option<Duration>,
    /// The queueing delay of the last round trip.
    queueing: Duration,
}

/// The state that a reduction changes, so that a spurious one can be undone.
#[derive(Clone, Copy, Debug)]
struct Before {
    window: f64,
    phase: Phase,
    climb: Climb,
}

impl Vegas {
    /// The initial state for datagrams of `datagram_size` bytes, as published.
    pub fn new(datagram_size: usize) -> Self {
        Self::with(datagram_size, Tolerance::None)
    }

    /// The initial state for datagrams of `datagram_size` bytes, for channels whose delay varies by itself.
    pub fn for_radios(datagram_size: usize) -> Self {
        Self::with(datagram_size, Tolerance::Radio(Variation::remembering()))
    }

    fn with(datagram_size: usize, tolerance: Tolerance) -> Self {
        Self {
            datagram_size,
            window: initial_window(datagram_size) as f64,
            phase: Phase::Doubling,
            rounds: Rounds::with_large_share(LARGE_SHARE),
            tolerance,
            climb: Climb::default(),
            recovery: Period::default(),
            smoothed_rtt: None,
            queueing: Duration::ZERO,
        }
    }

    fn datagram(&self) -> f64 {
        self.datagram_size.max(1) as f64
    }

    fn set_window(&mut self, window: f64) {
        self.window = window.min(LARGEST_WINDOW).max(minimum_window(self.datagram_size) as f64);
    }

    /// Adjusts the window, once a round trip (§III).
    fn adjust(&mut self, round: &Round, sample: &Sample) {
        let lump = self.rounds.flight(self.window) - self.window;
        self.tolerance.on_round(round, self.window, lump);
        self.queueing = round.least;
        self.set_window(self.window * round.shift);
        let is_long = self.tolerance.is_long(round.least, round.base);
        let round = Round { least: self.tolerance.queueing(round.least), ..*round };
        let (datagram, queued) = (self.datagram(), round.queued(self.window));
        match self.phase {
            Phase::Doubling => self.phase = Phase::Holding,
            Phase::Holding | Phase::Drained if is_long && queued > GAMMA * datagram => {
                self.end_slow_start(queued);
            }
            Phase::Holding => self.phase = Phase::Doubling,
            Phase::Draining => self.phase = Phase::Drained,
            Phase::Drained => self.phase = Phase::Avoidance,
            Phase::Avoidance if queued > BETA * datagram => {
                let excess = self.climb.turn().min(queued - ALPHA * datagram);
                self.set_window(self.window - excess.max(datagram));
            }
            Phase::Avoidance if queued < ALPHA * datagram && !sample.app_limited => {
                let step = match self.tolerance {
                    Tolerance::None => datagram,
                    Tolerance::Radio(_) => self.climb.step(self.window, datagram),
                };
                self.set_window(self.window + step);
            }
            Phase::Avoidance => self.climb = Climb::default(),
        }
    }

    /// Takes back what slow start left in the queue, `queued` bytes.
    fn end_slow_start(&mut self, queued: f64) {
        let (datagram, left) = (self.datagram(), self.window - queued);
        match self.tolerance {
            Tolerance::None => {
                self.set_window(self.window.min(left + datagram));
                self.phase = Phase::Avoidance;
            }
            // What is beyond the path's own capacity would stay in the queue for many round trips.
            Tolerance::Radio(_) => {
                self.set_window(left + ALPHA * datagram);
                self.phase = Phase::Draining;
            }
        }
    }

    fn reduce(&mut self, now: Instant) {
        let remaining = if self.in_slow_start() { REMAINING_OF_SLOW_START } else { REMAINING };
        self.set_window(self.window * remaining);
        self.phase = Phase::Avoidance;
        self.climb = Climb::default();
        self.rounds.restart(now);
    }
}

impl Controller for Vegas {
    fn on_acknowledged(&mut self, sample: &Sample) {
        self.smoothed_rtt = Some(sample.smoothed_rtt);
        let round = self.rounds.on_sample(sample);
        if self.recovery.covers(sample.sent_at) {
            return;
        }
        // RFC 9002 §7.8: a window that is not used does not grow.
        if self.phase == Phase::Doubling && !sample.app_limited {
            self.set_window(self.window + sample.bytes as f64);
        }
        if let Some(round) = round {
            self.adjust(&round, sample);
        }
    }

    fn on_lost(&mut self, sample: &LossSample) {
        let before = Before { window: self.window, phase: self.phase, climb: self.climb };
        if self.recovery.on_lost(sample, before) {
            self.reduce(sample.now);
        }
        if sample.persistent == Persistence::Persistent {
            // RFC 9002 §7.6.2.
            self.set_window(0.0);
            self.rounds = Rounds::with_large_share(LARGE_SHARE);
            self.recovery = Period::default();
            self.phase = Phase::Doubling;
        }
    }

    fn on_ecn_ce(&mut self, sample: &MarkSample) {
        if self.recovery.on_mark(sample) {
            self.reduce(sample.now);
        }
    }

    fn on_spurious(&mut self, sample: &SpuriousSample) {
        let Some(before) = self.recovery.on_spurious(sample) else { return };
        self.window = self.window.max(before.window);
        (self.phase, self.climb) = (before.phase, before.climb);
    }

    fn window(&self) -> usize {
        self.rounds.flight(self.window) as usize
    }

    fn pacing_rate(&self) -> Option<Bandwidth> {
        match self.phase {
            Phase::Doubling => slow_start_rate(self.window as usize, self.smoothed_rtt),
            _ => self.rounds.pace(self.window, self.queueing),
        }
    }

    fn name(&self) -> &'static str {
        if self.tolerance.is_radio() { "vegas-radio" } else { "vegas" }
    }

    fn in_slow_start(&self) -> bool {
        matches!(self.phase, Phase::Doubling | Phase::Holding)
    }

    fn set_datagram_size(&mut self, datagram_size: usize) {
        self.datagram_size = datagram_size;
        self.set_window(self.window);
    }
}

#[cfg(test)]
mod tests;
