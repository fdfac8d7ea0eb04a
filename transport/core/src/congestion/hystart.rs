//! HyStart++ (RFC 9406): leaves slow start when round trips become longer, before the bottleneck's queue overflows.
//!
//! Rounds are told apart by the time at which packets left instead of by their numbers. Round-trip times of different
//! return paths are never compared: samples count for one return path, and when that falls silent for a round the next
//! one starts afresh. One rule is added: while round trips take twice as long as before the increase, conservative slow
//! start does not grow. If that is a queue, two bandwidth-delay products are in flight already, and five rounds of growth
//! would only overflow a deep one: holding the window adds as little to it as leaving slow start would. If it is the delay
//! of a radio link, it passes within the five rounds, and slow start goes on where it was.

use crate::PathId;
use crate::time::Instant;
use std::time::Duration;

/// The smallest and the largest increase of the round-trip time that counts (RFC 9406 §4.3).
const LEAST_THRESHOLD: Duration = Duration::from_millis(4);
const MOST_THRESHOLD: Duration = Duration::from_millis(16);
/// The increase that counts is this part of the round-trip time.
const THRESHOLD_DIVISOR: u32 = 8;
/// Samples of a round before it is judged.
const LEAST_SAMPLES: u32 = 8;
/// Conservative slow start grows this many times slower.
const GROWTH_DIVISOR: usize = 4;
/// Rounds of conservative slow start before congestion avoidance begins.
const CONSERVATIVE_ROUNDS: u32 = 5;

/// Returns the difference from which on a round trip counts as longer than `rtt` (RFC 9406 §4.3).
pub(super) fn threshold(rtt: Duration) -> Duration {
    (rtt / THRESHOLD_DIVISOR).clamp(LEAST_THRESHOLD, MOST_THRESHOLD)
}

/// The advice of a sample about slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// Grow by this many bytes.
    Grow(usize),
    /// The path is full: slow start is over.
    Leave,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Slow,
    /// Conservative slow start since a round whose minimum was `baseline`, after one with `before`.
    Conservative {
        baseline: Duration,
        before: Duration,
        rounds: u32,
    },
}

/// The state of HyStart++ during one slow start.
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    phase: Phase,
    over: Option<PathId>,
    last_min: Option<Duration>,
    current_min: Option<Duration>,
    samples: u32,
    round_started: Option<Instant>,
}

impl Default for HyStart {
    fn default() -> Self {
        Self {
            phase: Phase::Slow,
            over: None,
            last_min: None,
            current_min: None,
            samples: 0,
            round_started: None,
        }
    }
}

impl HyStart {
    /// `bytes`, the newest of them sent at `sent_at`, are acknowledged over the path `over`, perhaps with a sample of
    /// the round-trip time (RFC 9406 §4.2).
    pub fn on_acknowledged(
        &mut self,
        now: Instant,
        sent_at: Instant,
        bytes: usize,
        rtt: Option<(PathId, Duration)>,
    ) -> Advice {
        if self.round_started.is_none_or(|started| sent_at > started) {
            self.start_round(now);
            if let Phase::Conservative { rounds, .. } = &mut self.phase {
                *rounds += 1;
                if *rounds > CONSERVATIVE_ROUNDS {
                    return Advice::Leave;
                }
            }
        }
        if let Some((over, rtt)) = rtt {
            self.on_sample(over, rtt);
        }
        match self.phase {
            Phase::Slow => Advice::Grow(bytes),
            Phase::Conservative { before, .. } if self.is_at_least(before.saturating_mul(2)) => {
                Advice::Grow(0)
            }
            Phase::Conservative { .. } => Advice::Grow(bytes / GROWTH_DIVISOR),
        }
    }

    fn start_round(&mut self, now: Instant) {
        if self.samples == 0 {
            self.over = None;
        }
        self.round_started = Some(now);
        self.last_min = self.current_min.take().filter(|_| self.over.is_some());
        self.samples = 0;
    }

    /// Returns true if all samples of this round reach `rtt`; those of the last one until there are enough.
    fn is_at_least(&self, rtt: Duration) -> bool {
        let judged = if self.samples >= LEAST_SAMPLES { self.current_min } else { self.last_min };
        judged.is_some_and(|min| min >= rtt)
    }

    fn on_sample(&mut self, over: PathId, rtt: Duration) {
        if *self.over.get_or_insert(over) != over {
            return;
        }
        self.samples = self.samples.saturating_add(1);
        let current = self.current_min.map_or(rtt, |min| min.min(rtt));
        self.current_min = Some(current);
        if self.samples < LEAST_SAMPLES {
            return;
        }
        match (self.phase, self.last_min) {
            (Phase::Slow, Some(last)) if current >= last.saturating_add(threshold(last)) => {
                self.phase = Phase::Conservative { baseline: current, before: last, rounds: 0 };
            }
            // The increase was a passing disturbance (RFC 9406 §4.2).
            (Phase::Conservative { baseline, .. }, _) if current < baseline => self.phase = Phase::Slow,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// One sample of `rtt` ms, of what was sent at `sent`.
    fn one_sample(hystart: &mut HyStart, sent: u64, rtt: u64) -> Advice {
        let sample = Some((PathId(0), Duration::from_millis(rtt)));
        hystart.on_acknowledged(at(sent + 90), at(sent), 1000, sample)
    }

    /// Ten samples of one round that starts at `start`, all `rtt` ms over `over`; returns the last advice.
    fn round(hystart: &mut HyStart, start: u64, over: u32, rtt: u64) -> Advice {
        let mut advice = Advice::Grow(0);
        for n in 0..10 {
            let sent = start + n;
            let sample = Some((PathId(over), Duration::from_millis(rtt)));
            advice = hystart.on_acknowledged(at(sent + 90), at(sent), 1000, sample);
            if advice == Advice::Leave {
                break;
            }
        }
        advice
    }

    #[test]
    fn growing_round_trips_end_slow_start_after_five_conservative_rounds() {
        let mut hystart = HyStart::default();
        assert_eq!(round(&mut hystart, 0, 0, 50), Advice::Grow(1000));
        assert_eq!(round(&mut hystart, 100, 0, 52), Advice::Grow(1000));
        assert_eq!(round(&mut hystart, 200, 0, 60), Advice::Grow(250));
        for n in 3..8 {
            assert_eq!(round(&mut hystart, n * 100, 0, 62), Advice::Grow(250));
        }
        assert_eq!(round(&mut hystart, 800, 0, 62), Advice::Leave);
    }

    #[test]
    fn a_round_trip_twice_as_long_halts_growth_until_the_conservative_rounds_are_over() {
        let mut hystart = HyStart::default();
        round(&mut hystart, 0, 0, 50);
        assert_eq!(round(&mut hystart, 100, 0, 60), Advice::Grow(250));
        assert_eq!(round(&mut hystart, 200, 0, 99), Advice::Grow(250));
        assert_eq!(round(&mut hystart, 300, 0, 100), Advice::Grow(0));
        // The first samples of a round do not tell yet, and those of the last one still count.
        assert_eq!(one_sample(&mut hystart, 400, 60), Advice::Grow(0));
        assert_eq!(round(&mut hystart, 401, 0, 110), Advice::Grow(250), "one of them was shorter");
        for n in 5..7 {
            assert_eq!(round(&mut hystart, n * 100, 0, 110), Advice::Grow(0));
        }
        assert_eq!(round(&mut hystart, 700, 0, 110), Advice::Leave);
    }

    #[test]
    fn a_delay_of_the_radio_that_is_twice_as_long_and_passes_does_not_end_it() {
        let mut hystart = HyStart::default();
        round(&mut hystart, 0, 0, 25);
        assert_eq!(round(&mut hystart, 100, 0, 70), Advice::Grow(0));
        assert_eq!(round(&mut hystart, 200, 0, 65), Advice::Grow(1000));
        assert_eq!(round(&mut hystart, 300, 0, 27), Advice::Grow(1000));
    }

    #[test]
    fn a_passing_increase_returns_to_slow_start() {
        let mut hystart = HyStart::default();
        round(&mut hystart, 0, 0, 50);
        assert_eq!(round(&mut hystart, 100, 0, 60), Advice::Grow(250));
        assert_eq!(round(&mut hystart, 200, 0, 50), Advice::Grow(1000));
    }

    #[test]
    fn a_slower_return_path_is_no_congestion() {
        let mut hystart = HyStart::default();
        round(&mut hystart, 0, 1, 30);
        // Acknowledgements move from the path 1 to the path 0, and back.
        for (n, (over, rtt)) in [(0, 60), (0, 60), (1, 30), (1, 30), (0, 60)].into_iter().enumerate() {
            let start = (n as u64 + 1) * 100;
            assert_eq!(round(&mut hystart, start, over, rtt), Advice::Grow(1000), "round {n}");
        }
    }
}
