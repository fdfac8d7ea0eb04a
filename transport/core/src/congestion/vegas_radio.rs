//! Vegas for radios: [`Vegas`](super::vegas::Vegas) that does not take what a channel's delay varies by for a queue.
//!
//! Four things differ from the paper, all ours. The part of the delay that a radio varies by is no queue (see
//! `variation`). Before that is learnt, slow start ends only for a delay that HyStart++ would end it for (RFC 9406). What
//! slow start left in the queue is taken back until it is less than that. And growth without a queue becomes faster
//! (see `Climb`).

use super::hystart;
use super::period::Period;
use super::queueing::{Round, Rounds};
use super::variation::Variation;
use super::{
    Controller, LossSample, MarkSample, Sample, SpuriousSample, initial_window, minimum_window,
    slow_start_rate,
};
use crate::Bandwidth;
use crate::recovery::persistent::Persistence;
use crate::time::Instant;
use std::time::Duration;

/// Datagrams in the queue below which the window grows (α; JSAC §III-C).
const ALPHA: f64 = 2.0;
/// Datagrams in the queue above which it shrinks (β).
const BETA: f64 = 4.0;
/// Datagrams in the queue that end slow start (γ; JSAC §III-D), if round trips are as much longer as HyStart++ asks for.
const GAMMA: f64 = 1.0;
/// The share of the window that losses of a round trip leave. RFC 8511 has more than half for marks, too.
const REMAINING: f64 = 0.75;
/// Round trips of growth before its steps double, and the share of the window (one over this) that none exceeds.
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
    /// Slow start, in a round trip without growth, so that rates can be compared (JSAC §III-D).
    Holding,
    /// The round trip in which what slow start left in the queue empties: its samples are from before.
    Draining,
    /// The round trip after it, which shows what is left.
    Drained,
    /// A datagram more or less each round trip (JSAC §III-C).
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

/// The controller of Brakmo and Peterson, for radios.
#[derive(Clone, Debug)]
pub struct VegasRadio {
    datagram_size: usize,
    /// Bytes; fractions accumulate.
    window: f64,
    phase: Phase,
    rounds: Rounds,
    variation: Variation,
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

impl VegasRadio {
    /// The initial state for datagrams of `datagram_size` bytes.
    pub fn new(datagram_size: usize) -> Self {
        Self {
            datagram_size,
            window: initial_window(datagram_size) as f64,
            phase: Phase::Doubling,
            rounds: Rounds::with_large_share(LARGE_SHARE),
            variation: Variation::remembering(),
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

    /// Adjusts the window, once a round trip (JSAC §III-C).
    fn adjust(&mut self, round: &Round, sample: &Sample) {
        let lump = self.rounds.flight(self.window) - self.window;
        self.variation.on_round(round, self.window, lump);
        self.queueing = round.least;
        let is_long = round.least >= hystart::threshold(round.base);
        let round = Round { least: self.variation.queueing(round.least), ..*round };
        self.set_window(self.window * round.shift);
        let (datagram, queued) = (self.datagram(), round.queued(self.window));
        match self.phase {
            Phase::Doubling => self.phase = Phase::Holding,
            Phase::Holding | Phase::Drained if is_long && queued > GAMMA * datagram => {
                // What is beyond the path's own capacity would stay in the queue for many round trips.
                self.set_window(self.window - queued + ALPHA * datagram);
                self.phase = Phase::Draining;
            }
            Phase::Holding => self.phase = Phase::Doubling,
            Phase::Draining => self.phase = Phase::Drained,
            Phase::Drained => self.phase = Phase::Avoidance,
            Phase::Avoidance if queued > BETA * datagram => {
                let excess = self.climb.turn().min(queued - ALPHA * datagram);
                self.set_window(self.window - excess.max(datagram));
            }
            Phase::Avoidance if queued < ALPHA * datagram && !sample.app_limited => {
                let step = self.climb.step(self.window, datagram);
                self.set_window(self.window + step);
            }
            Phase::Avoidance => self.climb = Climb::default(),
        }
    }

    /// Reduces the window (RFC 9002 §7.3.2): by half in slow start, whose window may be twice what the path carries.
    fn reduce(&mut self, now: Instant) {
        let remaining = if self.in_slow_start() { 0.5 } else { REMAINING };
        self.set_window(self.window * remaining);
        self.phase = Phase::Avoidance;
        self.climb = Climb::default();
        self.rounds.restart(now);
    }
}

impl Controller for VegasRadio {
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
        "vegas-radio"
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
mod tests {
    use super::*;
    use crate::congestion::tests::{at, lost, marked, sample, spurious};

    const DATAGRAM: usize = 1200;

    /// A controller in congestion avoidance with a window of `datagrams`.
    fn avoiding(datagrams: usize) -> VegasRadio {
        let mut vegas = VegasRadio::new(DATAGRAM);
        vegas.set_window((datagrams * DATAGRAM) as f64);
        vegas.phase = Phase::Avoidance;
        vegas
    }

    /// Round trips of 100 ms and what `queue` ms add, each with one sample.
    fn rounds(vegas: &mut VegasRadio, from: u64, count: u64, queue: u64) {
        for round in 0..count {
            let now = at(from + round * (100 + queue));
            vegas.on_acknowledged(&Sample {
                rtt: Some(Duration::from_millis(100 + queue)),
                min_rtt: Duration::from_millis(100),
                sent_at: at((from + round * (100 + queue)).saturating_sub(99 + queue)),
                ..sample(now)
            });
        }
    }

    #[test]
    fn the_window_follows_the_datagrams_in_the_queue() {
        // 100 datagrams: 3.8 of them wait at 4 ms, 9 at 10 ms.
        for (queue, expected) in [(0, 104), (3, 100), (10, 96)] {
            let mut vegas = avoiding(100);
            rounds(&mut vegas, 1000, 5, queue);
            assert_eq!(vegas.window(), expected * DATAGRAM, "{queue} ms of queueing");
        }
    }

    #[test]
    fn flight_exceeds_the_window_for_acknowledgements_of_a_quarter_of_it_only() {
        // Of 100 datagrams.
        let flight = |covered: usize| {
            let mut vegas = avoiding(100);
            vegas.on_acknowledged(&Sample { bytes: covered * DATAGRAM, ..sample(at(1000)) });
            vegas.window() / DATAGRAM
        };
        assert_eq!([9, 15, 24, 30].map(flight), [100, 100, 100, 130]);
    }

    #[test]
    fn slow_start_does_not_end_for_a_delay_that_may_be_a_radios() {
        // An eighth of 100 ms; 250 datagrams would be 28 in the queue.
        let mut vegas = VegasRadio::new(DATAGRAM);
        vegas.set_window((250 * DATAGRAM) as f64);
        rounds(&mut vegas, 1000, 1, 0);
        rounds(&mut vegas, 1200, 6, 12);
        assert!(vegas.in_slow_start());
        rounds(&mut vegas, 2000, 3, 13);
        assert!(!vegas.in_slow_start());
    }

    #[test]
    fn what_slow_start_left_in_the_queue_is_taken_back_every_other_round_trip() {
        let (mut vegas, mut now) = (avoiding(200), 1000);
        let mut round = |vegas: &mut VegasRadio, queue| {
            now += 1000;
            rounds(vegas, now, 1, queue);
        };
        round(&mut vegas, 0);
        round(&mut vegas, 0);
        vegas.phase = Phase::Holding;
        // 40 of 140 ms are a queue, and 20 of 120 ms of what is left; two datagrams may stay.
        for (queue, window, phase) in [
            (40, 145, Phase::Draining),
            (40, 145, Phase::Drained),
            (20, 123, Phase::Draining),
            (20, 123, Phase::Drained),
            (0, 123, Phase::Avoidance),
        ] {
            round(&mut vegas, queue);
            assert_eq!((vegas.window() / DATAGRAM, vegas.phase), (window, phase), "{queue} ms");
        }
    }

    #[test]
    fn slow_start_ends_with_the_first_datagram_in_the_queue() {
        let mut vegas = VegasRadio::new(DATAGRAM);
        rounds(&mut vegas, 1000, 3, 0);
        assert!(vegas.in_slow_start());
        rounds(&mut vegas, 2000, 3, 40);
        assert!(!vegas.in_slow_start());
    }

    #[test]
    fn losses_of_one_round_trip_and_a_mark_take_a_quarter_of_the_window_once() {
        let mut vegas = avoiding(100);
        vegas.on_lost(&lost(1000, 1100, DATAGRAM));
        vegas.on_lost(&lost(1050, 1110, DATAGRAM));
        vegas.on_ecn_ce(&marked(1080, 1120));
        assert_eq!(vegas.window(), 75 * DATAGRAM);
        vegas.on_ecn_ce(&marked(1150, 1200));
        assert_eq!(vegas.window(), 75 * 3 * DATAGRAM / 4);
    }

    #[test]
    fn a_loss_in_slow_start_halves_the_window() {
        // RFC 9002 §7.3.2: half of it may be more than the path carries.
        let mut vegas = VegasRadio::new(DATAGRAM);
        vegas.set_window((100 * DATAGRAM) as f64);
        vegas.on_lost(&lost(1000, 1100, DATAGRAM));
        assert_eq!((vegas.window(), vegas.in_slow_start()), (50 * DATAGRAM, false));
    }

    #[test]
    fn losses_that_were_none_take_nothing_from_the_window() {
        let mut vegas = avoiding(100);
        vegas.on_lost(&lost(1000, 1100, DATAGRAM));
        vegas.on_spurious(&spurious(1100, 1110, DATAGRAM));
        assert_eq!((vegas.window(), vegas.phase), (100 * DATAGRAM, Phase::Avoidance));
        let mut vegas = VegasRadio::new(DATAGRAM);
        vegas.on_lost(&lost(1000, 1100, DATAGRAM));
        vegas.on_spurious(&spurious(1100, 1110, DATAGRAM));
        assert_eq!((vegas.window(), vegas.in_slow_start()), (10 * DATAGRAM, true));
    }

    #[test]
    fn persistent_congestion_leads_back_to_slow_start() {
        let mut vegas = avoiding(100);
        vegas.on_lost(&LossSample { persistent: Persistence::Persistent, ..lost(1000, 3000, DATAGRAM) });
        assert_eq!((vegas.window(), vegas.in_slow_start()), (2 * DATAGRAM, true));
    }
}
