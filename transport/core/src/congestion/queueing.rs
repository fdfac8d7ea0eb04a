//! Queueing delays told apart from the delays of return paths.
//!
//! A round-trip time is the delay of the data path, its queue and the delay of the return path. The excess over the
//! smallest one over the *same* return path is queueing; of several return paths the one that shows the least is right,
//! for the queue of the data path is in all of them. Acknowledgements that change their path change neither.
//!
//! A window is a rate times a round trip, and counts what was delivered but not yet acknowledged, too. It is therefore
//! kept for the longest return path in use, and may be exceeded by what one acknowledgement covers: those of a longer
//! path may all be overtaken by a later one of a shorter path. Otherwise the sender would run dry each time
//! they turn to the longer one. While they are so uneven it is the pace, and not the window, that keeps the rate.
//!
//! The first round trip over a return path says how long that path is only if nothing was in the way: of one that turns up
//! as an outage ends it is the outage. Such a path is known from the first packet on that left after its first
//! acknowledgement arrived; until then its samples are evidence neither of queueing nor of a longer path. Only the first
//! return path of a flow is taken at its word, for there is nothing else to go by.
//!
//! Vegas and Copa use all of this, Copa with minima of its own; Vivace asks for one [`Reading`] at a time, and the
//! controllers that slow down for losses only, HyStart++ and BBR for none of it.

use super::Sample;
use crate::Bandwidth;
use crate::PathId;
use crate::time::Instant;
use smallvec::SmallVec;
use std::time::Duration;

/// Return paths remembered; the one without samples for the longest time gives way.
const MOST_RETURN_PATHS: usize = 16;
/// Round trips after which a return path without samples is no longer in use; large acknowledgements are forgotten after
/// that or twice that.
const MEMORY: u32 = 8;
/// Acknowledgements of more than this share of the window, and of more than this many bytes (an initial window,
/// RFC 9002 §7.2), set no pace.
const LARGE_SHARE: f64 = 1.0 / 8.0;
const LARGE: usize = 14_720;

/// The two parts of a round-trip time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reading {
    /// The smallest round-trip time over the return path of the sample.
    pub base: Duration,
    /// The queueing delay: the excess of the sample over it.
    pub queueing: Duration,
}

impl Reading {
    /// The parts of `sample`'s round-trip time, if it has one.
    pub(super) fn of(sample: &Sample) -> Option<Self> {
        let rtt = sample.rtt?;
        let base = sample.min_rtt.min(rtt);
        Some(Self { base, queueing: rtt - base })
    }
}

/// The measurements of one round trip.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Round {
    /// The least queueing delay seen: jitter and delayed acknowledgements only add to it.
    pub least: Duration,
    /// The largest queueing delay seen.
    pub most: Duration,
    /// The base of the longest return path in use.
    pub base: Duration,
    /// The ratio of `base` to that of the round before: more than 1 after acknowledgements moved to a longer path. The
    /// window has to follow for the rate to stay.
    pub shift: f64,
}

impl Round {
    /// Returns the number of `window` bytes in the queue: (expected − actual rate) × base, as Vegas defines it.
    pub(super) fn queued(&self, window: f64) -> f64 {
        let (base, queue) = (self.base.as_secs_f64(), self.least.as_secs_f64());
        if base + queue > 0.0 { window * queue / (base + queue) } else { 0.0 }
    }
}

/// A return path that was ever in use.
#[derive(Clone, Copy, Debug)]
struct ReturnPath {
    over: PathId,
    base: Duration,
    /// The time of its first sample, while its base is no more than that of one moment.
    unknown_since: Option<Instant>,
    /// True if it counted for the base of the round trip before.
    counted: bool,
    /// Round trips since its latest sample.
    unused: u32,
}

impl ReturnPath {
    fn is_used(&self) -> bool {
        self.unused <= MEMORY
    }

    fn counts(&self) -> bool {
        self.unknown_since.is_none() && self.is_used()
    }
}

/// Cuts a flow into round trips and measures each.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    started: Option<Instant>,
    least: Option<Duration>,
    most: Duration,
    paths: SmallVec<[ReturnPath; 2]>,
    largest: Largest,
    /// The share of the window beyond which an acknowledgement is large.
    large_share: f64,
}

impl Default for Rounds {
    fn default() -> Self {
        Self::with_large_share(LARGE_SHARE)
    }
}

impl Rounds {
    /// For a sender that acknowledgements of up to `large_share` of the window are even enough for.
    pub(super) fn with_large_share(large_share: f64) -> Self {
        Self {
            started: None,
            least: None,
            most: Duration::ZERO,
            paths: SmallVec::new(),
            largest: Largest::default(),
            large_share,
        }
    }

    /// Takes a sample; returns the round that it ends, if it does.
    pub(super) fn on_sample(&mut self, sample: &Sample) -> Option<Round> {
        self.largest.on_sample(sample);
        if let Some(Reading { base, queueing }) = Reading::of(sample)
            && self.count(sample, base)
        {
            self.least = Some(self.least.map_or(queueing, |least| least.min(queueing)));
            self.most = self.most.max(queueing);
        }
        let Some(started) = self.started else {
            self.started = Some(sample.now);
            return None;
        };
        // The first packet that left after the round began is acknowledged, and could have been over any path.
        let least_length = self.longest().unwrap_or_default();
        if sample.sent_at <= started || sample.now.since(started) < least_length {
            return None;
        }
        let least = self.least.take()?;
        let before = longest(self.paths.iter().filter(|path| path.counted));
        for path in &mut self.paths {
            path.unused = path.unused.saturating_add(1);
            path.counted = path.counts();
        }
        self.largest.on_round();
        let base = self.longest().unwrap_or_default();
        let shift = match before {
            Some(before) if !before.is_zero() && !base.is_zero() => base.as_secs_f64() / before.as_secs_f64(),
            _ => 1.0,
        };
        let round = Round { least, most: self.most, base, shift };
        self.started = Some(sample.now);
        self.most = Duration::ZERO;
        Some(round)
    }

    /// The round under way says nothing: a loss or a new start interrupted it. The mix of return paths is kept.
    pub(super) fn restart(&mut self, now: Instant) {
        self.started = Some(now);
        self.least = None;
        self.most = Duration::ZERO;
    }

    /// The base of the longest return path in use, if one is known.
    pub(super) fn longest(&self) -> Option<Duration> {
        longest(self.paths.iter().filter(|path| path.counts()))
    }

    /// A `window` each round trip over the longest return path, on which `queueing` comes; `None` if acknowledgements are
    /// even enough to set the pace themselves.
    pub(super) fn pace(&self, window: f64, queueing: Duration) -> Option<Bandwidth> {
        let seconds = self.longest()?.saturating_add(queueing).as_secs_f64().max(1e-6);
        self.is_uneven(window)
            .then(|| Bandwidth::from_bits_per_second(((window * 8.0 / seconds) as u64).max(1)))
    }

    /// Returns the bytes that may be in flight so that a `window` is delivered each round trip: more if
    /// acknowledgements come in lumps.
    pub(super) fn flight(&self, window: f64) -> f64 {
        let lump = if self.is_uneven(window) { self.largest.bytes() as f64 } else { 0.0 };
        window + lump.min(window)
    }

    /// Returns true if acknowledgements come over several paths, or in lumps: they set no pace then.
    pub(super) fn is_uneven(&self, window: f64) -> bool {
        let largest = self.largest.bytes();
        let paths = self.paths.iter().filter(|path| path.is_used()).count();
        paths > 1 || (largest > LARGE && largest as f64 > window * self.large_share)
    }

    /// Notes a sample; returns whether its return path is known, and with it what of the sample is queueing.
    fn count(&mut self, sample: &Sample, base: Duration) -> bool {
        let over = sample.acknowledged_over;
        if let Some(path) = self.paths.iter_mut().find(|path| path.over == over) {
            path.unknown_since = path.unknown_since.filter(|first| sample.sent_at < *first);
            (path.base, path.unused) = (base, 0);
            return path.unknown_since.is_none();
        }
        if self.paths.len() >= MOST_RETURN_PATHS {
            let oldest = self.paths.iter().enumerate().max_by_key(|(_, path)| path.unused);
            let oldest = oldest.map_or(0, |(index, _)| index);
            self.paths.swap_remove(oldest);
        }
        let unknown_since = (!self.paths.is_empty()).then_some(sample.now);
        self.paths.push(ReturnPath { over, base, unknown_since, counted: false, unused: 0 });
        unknown_since.is_none()
    }
}

/// The most bytes that one acknowledgement covered of late.
#[derive(Clone, Copy, Debug, Default)]
struct Largest {
    /// In this memory, in the one before, and how many round trips this one has lasted.
    current: usize,
    previous: usize,
    rounds: u32,
}

impl Largest {
    fn on_sample(&mut self, sample: &Sample) {
        self.current = self.current.max(sample.bytes);
    }

    fn on_round(&mut self) {
        self.rounds += 1;
        if self.rounds >= MEMORY {
            (self.previous, self.current, self.rounds) = (self.current, 0, 0);
        }
    }

    fn bytes(&self) -> usize {
        self.current.max(self.previous)
    }
}

fn longest<'a>(paths: impl Iterator<Item = &'a ReturnPath>) -> Option<Duration> {
    paths.map(|path| path.base).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    const fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn sample(now: u64, over: u32, rtt: u64, min: u64) -> Sample {
        let (acknowledged_over, sent_at) = (PathId(over), at(now - rtt));
        let (rtt, min_rtt) = (Some(ms(rtt)), ms(min));
        Sample { acknowledged_over, sent_at, rtt, min_rtt, ..super::super::tests::sample(at(now)) }
    }

    #[test]
    fn another_return_path_is_no_queue() {
        let mut rounds = Rounds::default();
        rounds.on_sample(&sample(100, 0, 50, 50));
        rounds.on_sample(&sample(110, 1, 28, 28));
        rounds.on_sample(&sample(140, 1, 28, 28));
        let round = rounds.on_sample(&sample(160, 0, 50, 50)).expect("a packet of the round came back");
        assert_eq!((round.least, round.most), (Duration::ZERO, Duration::ZERO));
        assert_eq!(round.base, ms(50));
    }

    #[test]
    fn the_queue_is_what_every_known_return_path_shows() {
        let mut rounds = Rounds::default();
        rounds.on_sample(&sample(100, 0, 50, 50));
        rounds.restart(at(100));
        // The first round trip over another path.
        assert_eq!(rounds.on_sample(&sample(120, 1, 27, 27)), None);
        let round = rounds.on_sample(&sample(165, 0, 62, 50)).expect("that of path 0 alone");
        assert_eq!((round.least, round.most), (ms(12), ms(12)));
        rounds.on_sample(&sample(170, 0, 62, 50));
        rounds.on_sample(&sample(175, 1, 37, 27));
        let round = rounds.on_sample(&sample(230, 0, 62, 50)).expect("a round");
        assert_eq!((round.least, round.most), (ms(10), ms(12)));
    }

    #[test]
    fn a_window_is_for_the_longest_return_path_in_use() {
        let mut rounds = Rounds::default();
        let mut shift =
            |now, over, rtt| rounds.on_sample(&sample(now, over, rtt, rtt)).map(|round| round.shift);
        assert_eq!(shift(100, 1, 20), None);
        assert_eq!(shift(121, 1, 20), Some(1.0));
        // The longer path is known from its second round trip on.
        assert_eq!((shift(172, 0, 50), shift(222, 0, 50)), (None, Some(2.5)));
        // A smaller minimum over the same path is better knowledge, not another path.
        assert_eq!(shift(273, 0, 40), Some(1.0));
        // Acknowledgements turn to the shorter path and back: nothing changes.
        assert_eq!((shift(294, 1, 20), shift(315, 1, 20), shift(356, 0, 40)), (None, Some(1.0), Some(1.0)));
        // For eight round trips without it, with that in which it was last used, the longer one is counted on.
        let shifts: Vec<_> = (1..=9).filter_map(|round| shift(356 + 41 * round, 1, 20)).collect();
        assert_eq!(shifts, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 1.0]);
        // It is known still, and counts at once when it is back.
        assert_eq!((shift(780, 0, 40), shift(801, 1, 20)), (Some(2.0), None));
        let shifts: Vec<_> = (1..=9).filter_map(|round| shift(801 + 41 * round, 1, 20)).collect();
        assert_eq!(shifts, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 1.0]);
        assert_eq!(rounds.pace(1e4, ms(0)), None, "one return path sets the pace");
    }

    #[test]
    fn an_outage_is_not_the_length_of_the_return_path_that_shows_it() {
        let mut rounds = Rounds::default();
        rounds.on_sample(&sample(100, 0, 20, 20));
        assert_eq!(rounds.on_sample(&sample(121, 0, 20, 20)).map(|round| round.shift), Some(1.0));
        // Packets from before and from the midst of it, acknowledged over another path within a moment.
        for (now, rtt) in [(2900, 2770), (2905, 1500), (2910, 300)] {
            assert_eq!(rounds.on_sample(&sample(now, 1, rtt, rtt)), None);
            assert_eq!(rounds.longest(), Some(ms(20)));
        }
        let round = rounds.on_sample(&sample(2930, 0, 25, 20)).expect("a round");
        assert_eq!((round.least, round.base, round.shift), (ms(5), ms(20), 1.0));
        // What leaves after that shows how long the path is.
        rounds.on_sample(&sample(2940, 1, 40, 40));
        assert_eq!(rounds.longest(), Some(ms(40)));
        let round = rounds.on_sample(&sample(2980, 1, 45, 40)).expect("a round");
        assert_eq!((round.base, round.shift), (ms(40), 2.0));
    }

    #[test]
    fn of_too_many_return_paths_the_one_unused_for_longest_is_forgotten() {
        let mut rounds = Rounds::default();
        for over in 0..=20 {
            let now = 1000 * (u64::from(over) + 1);
            for round in 0..4 {
                rounds.on_sample(&sample(now + 51 * round, over, 50, 50));
            }
        }
        assert_eq!(rounds.paths.len(), MOST_RETURN_PATHS);
        assert!(rounds.paths.iter().any(|path| path.over == PathId(20) && path.counted));
        assert!(rounds.paths.iter().all(|path| path.over >= PathId(5)));
    }

    #[test]
    fn the_pace_over_several_return_paths_is_that_of_the_longest() {
        let mut rounds = Rounds::default();
        assert_eq!(rounds.pace(1e4, ms(0)), None);
        rounds.on_sample(&sample(100, 1, 30, 20));
        rounds.on_sample(&sample(110, 0, 50, 40));
        rounds.on_sample(&sample(170, 0, 50, 40));
        // 80 kbit in 40 ms, and with a queue of 10 ms.
        assert_eq!(rounds.pace(1e4, ms(0)), Some(Bandwidth::from_mbit(2)));
        assert_eq!(rounds.pace(1e4, ms(10)), Some(Bandwidth::from_bits_per_second(1_600_000)));
    }

    #[test]
    fn what_one_acknowledgement_covers_may_be_in_flight_beyond_the_window() {
        let covering = |bytes| {
            let mut rounds = Rounds::default();
            rounds.on_sample(&Sample { bytes, ..sample(100, 0, 40, 40) });
            (rounds.flight(80_000.0), rounds.pace(80_000.0, ms(0)))
        };
        let pace = Some(Bandwidth::from_mbit(16));
        assert_eq!(covering(9_000), (80_000.0, None));
        assert_eq!(covering(20_000), (100_000.0, pace));
        assert_eq!(covering(200_000), (160_000.0, pace));
    }
}
