//! Queueing delays told apart from the delays of return paths.
//!
//! A round-trip time is the delay of the data path, its queue and the delay of the return path. What it exceeds the
//! smallest one over the *same* return path is queueing; of several return paths the one that shows the least is right,
//! for the queue of the data path is in all of them. Acknowledgements that change their path change neither.

use super::Sample;
use crate::PathId;
use crate::time::Instant;
use smallvec::SmallVec;
use std::time::Duration;

/// Return paths remembered in one round; samples over more of them do not count.
const MOST_RETURN_PATHS: usize = 16;

/// The two parts of a round-trip time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reading {
    /// The smallest round-trip time over the return path of the sample.
    pub base: Duration,
    /// What the sample exceeds it by.
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

/// What one round trip showed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Round {
    /// The least queueing delay seen: jitter and delayed acknowledgements only add to it.
    pub least: Duration,
    /// The largest queueing delay seen.
    pub most: Duration,
    /// The mean of the return paths' bases, weighted by what they carried.
    pub base: Duration,
    /// The same divided by what the mix of the round before would give: more than 1 after acknowledgements moved to slower
    /// paths. A window is a rate times a round trip, so that it has to follow for the rate to stay.
    pub shift: f64,
}

impl Round {
    /// How many of `window` bytes are in the queue: (expected − actual rate) × base, as Vegas defines it.
    pub(super) fn queued(&self, window: f64) -> f64 {
        let (base, queue) = (self.base.as_secs_f64(), self.least.as_secs_f64());
        if base + queue > 0.0 { window * queue / (base + queue) } else { 0.0 }
    }
}

/// One return path's share of the samples.
#[derive(Clone, Copy, Debug)]
struct Share {
    over: PathId,
    base: Duration,
    /// Samples of this round and of the last.
    now: u32,
    before: u32,
}

/// Cuts a flow into round trips and measures each.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    started: Option<Instant>,
    least: Option<Duration>,
    most: Duration,
    shares: SmallVec<[Share; 2]>,
}

impl Rounds {
    /// Takes a sample; returns the round that it ends, if it does.
    pub(super) fn on_sample(&mut self, sample: &Sample) -> Option<Round> {
        if let Some(reading) = Reading::of(sample) {
            self.least = Some(self.least.map_or(reading.queueing, |least| least.min(reading.queueing)));
            self.most = self.most.max(reading.queueing);
            self.count(sample.acknowledged_over, reading.base);
        }
        let Some(started) = self.started else {
            self.started = Some(sample.now);
            return None;
        };
        // The first packet that left after the round began is acknowledged.
        if sample.sent_at <= started {
            return None;
        }
        let least = self.least.take()?;
        let base = self.mean(|share| share.now).unwrap_or_default();
        let shift = match self.mean(|share| share.before) {
            Some(before) if !before.is_zero() && !base.is_zero() => base.as_secs_f64() / before.as_secs_f64(),
            _ => 1.0,
        };
        let round = Round { least, most: self.most, base, shift };
        for share in &mut self.shares {
            share.before = std::mem::take(&mut share.now);
        }
        self.shares.retain(|share| share.before > 0);
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

    fn count(&mut self, over: PathId, base: Duration) {
        if let Some(share) = self.shares.iter_mut().find(|share| share.over == over) {
            share.base = base;
            share.now = share.now.saturating_add(1);
        } else if self.shares.len() < MOST_RETURN_PATHS {
            self.shares.push(Share { over, base, now: 1, before: 0 });
        }
    }

    fn mean(&self, weight: impl Fn(&Share) -> u32) -> Option<Duration> {
        let total: u128 = self.shares.iter().map(|share| u128::from(weight(share))).sum();
        let sum: u128 =
            self.shares.iter().map(|share| share.base.as_nanos() * u128::from(weight(share))).sum();
        let mean = sum.checked_div(total)?;
        Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }
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
        rounds.on_sample(&sample(120, 1, 28, 28));
        let round = rounds.on_sample(&sample(160, 0, 50, 50)).expect("a packet of the round came back");
        assert_eq!((round.least, round.most), (Duration::ZERO, Duration::ZERO));
        assert_eq!(round.base, ms(128) / 3);
    }

    #[test]
    fn the_queue_is_what_every_return_path_shows() {
        let mut rounds = Rounds::default();
        rounds.on_sample(&sample(100, 0, 50, 50));
        rounds.on_sample(&sample(110, 0, 62, 50));
        rounds.restart(at(110));
        rounds.on_sample(&sample(130, 1, 37, 27));
        let round = rounds.on_sample(&sample(175, 0, 62, 50)).expect("a round");
        assert_eq!((round.least, round.most), (ms(10), ms(12)));
    }

    #[test]
    fn a_window_follows_the_mix_of_return_paths_and_nothing_else() {
        let mut rounds = Rounds::default();
        rounds.on_sample(&sample(100, 0, 50, 50));
        assert_eq!(rounds.on_sample(&sample(151, 0, 50, 50)).map(|round| round.shift), Some(1.0));
        // A smaller minimum over the same path is better knowledge, not another path.
        assert_eq!(rounds.on_sample(&sample(202, 0, 40, 40)).map(|round| round.shift), Some(1.0));
        assert_eq!(rounds.on_sample(&sample(260, 1, 20, 20)).map(|round| round.shift), Some(0.5));
        let back = rounds.on_sample(&sample(310, 0, 40, 40)).map(|round| round.shift);
        assert_eq!(back, Some(2.0), "what comes back to a path comes back to its window");
    }
}
