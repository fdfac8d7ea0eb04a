//! The delays of a radio, told from those of a queue that the rate has built.
//!
//! If rate and delay of a channel are constant, the delay grows only while more is sent than is delivered at most, and
//! by the excess. Over a radio it also grows while less is sent. The part of an interval's slope that the rate cannot
//! have caused is the channel's, and eight times its average is taken for the radio's own delay, as in
//! [`variation`](crate::congestion::variation), which knows windows and no rates. On a constant channel that is
//! nothing, however long its queue, and all is as in the paper.
//!
//! All of this is ours. Proteus (Meng et al., SIGCOMM 2020, §5) learns which slopes are noise from how well a line fits an
//! interval, and from the slopes before; but a radio's delay is smooth within a round trip, and a slope that is forgiven
//! because it is small can build a queue of any length.

use crate::congestion::variation::{CERTAIN, MOST, TOLERATED};
use crate::congestion::vivace::monitor::IntervalStats;
use crate::recovery::windowed::Recent;
use crate::time::Instant;
use std::time::Duration;

/// A queue of less than this share of the smallest round trip is no concern.
const SHORT: f64 = 0.25;
/// Smaller changes, in seconds, are those of timers and of the pacer.
const GRANULARITY: f64 = 0.0005;
/// The weight of the newest change.
const GAIN: f64 = 1.0 / 16.0;
/// The relative error that a measured rate may have.
const INACCURACY: f64 = 0.05;
/// The time of which one to two give the fastest delivery.
const RECENT: Duration = Duration::from_secs(1);
/// The time of which one to two give the least delay: the path may have become longer.
const LONG_AGO: Duration = Duration::from_secs(5);
/// The least number of round trips in that time: a queue that a slower radio left takes as long to empty.
const ROUNDS_AGO: u32 = 10;
/// More losses than this are no accident (§3.1: the utility tolerates as many).
const LOSSES: f64 = 0.05;

impl IntervalStats {
    /// Bits per second that arrived: what left within a second did so within a second and its growth of delay.
    pub(super) fn delivery(&self) -> f64 {
        self.rate * (1.0 - self.loss) / (1.0 + self.slope).max(0.1)
    }
}

/// The noise in the measurements of intervals.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Noise {
    fastest: Recent<f64>,
    least: Recent<f64>,
    /// The average growth in an interval that the rate did not cause, in seconds.
    average: f64,
    /// The delay of the last interval beyond the least, in seconds.
    delay: f64,
    /// The part of the delay that is the radio's, in seconds: zero where the delay is constant.
    tolerated: f64,
    /// The delay beyond which it is a queue for certain, in seconds.
    limit: f64,
    /// The least round trip, in seconds.
    floor: f64,
}

impl Noise {
    /// Takes the next interval.
    pub(super) fn learn(&mut self, seen: &IntervalStats, now: Instant) {
        let fastest = self.fastest.offer(seen.delivery(), now, RECENT, f64::max).max(1.0);
        let long_ago = LONG_AGO.max(Duration::from_secs_f64((seen.base + seen.delay).min(60.0)) * ROUNDS_AGO);
        let least = self.least.offer(seen.delay, now, long_ago, f64::min);
        self.delay = seen.delay - least;
        let own = (seen.rate * (1.0 + INACCURACY) / fastest - 1.0).max(0.0);
        let foreign = (seen.slope - own).max(0.0) * seen.length;
        let foreign = if foreign < GRANULARITY { 0.0 } else { foreign };
        self.average += (foreign - self.average) * GAIN;
        let tolerated = (self.average * TOLERATED).min(seen.base * MOST);
        self.tolerated = if tolerated < GRANULARITY { 0.0 } else { tolerated };
        self.floor = seen.base + least;
        self.limit = (self.tolerated * CERTAIN).max(seen.base * SHORT);
    }

    /// Returns true if the delay of the last interval may be the radio's, so that its slope says nothing.
    pub(super) fn forgives(&self) -> bool {
        self.tolerated > 0.0 && self.delay <= self.tolerated
    }

    /// Returns true if a queue stands on a radio, by the measurements of the last interval, `seen`.
    pub(super) fn is_queue(&self, seen: &IntervalStats) -> bool {
        let is_full = seen.loss > LOSSES && self.delay > self.tolerated;
        self.tolerated > 0.0 && (is_full || self.delay > self.limit)
    }

    /// The round trip in seconds that is a radio's at most, if there is no queue.
    pub(super) fn usual(&self) -> f64 {
        self.floor + self.tolerated
    }

    /// The round trip in seconds beyond which a queue stands on a radio.
    pub(super) fn longest(&self) -> Option<f64> {
        (self.tolerated > 0.0).then_some(self.floor + self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intervals of 50 ms at `rate` Mbit/s with these slopes and the delays that they add up to.
    fn after(noise: &mut Noise, from: u64, intervals: impl IntoIterator<Item = (f64, f64)>) -> IntervalStats {
        let mut seen =
            IntervalStats { rate: 0.0, loss: 0.0, slope: 0.0, length: 0.05, delay: noise.delay, base: 0.04 };
        for (index, (rate, slope)) in intervals.into_iter().enumerate() {
            (seen.rate, seen.slope) = (rate * 1e6, slope);
            seen.delay = (seen.delay + slope * seen.length).max(0.0);
            noise.learn(&seen, Instant::from_nanos((from + index as u64) * 50_000_000));
        }
        seen
    }

    /// Rates that try what a channel of 20 Mbit/s bears, and what that does to its delay.
    fn constant(rounds: usize) -> impl Iterator<Item = (f64, f64)> {
        (0..rounds).map(|round| {
            let rate = [19.0, 21.0, 25.0, 40.0, 22.0, 12.0, 18.0][round % 7];
            (rate, if rate > 18.5 || round % 7 == 5 { rate / 20.0 - 1.0 } else { 0.0 })
        })
    }

    /// A rate that stays while the delay goes up and down.
    fn radio(rounds: usize) -> impl Iterator<Item = (f64, f64)> {
        (0..rounds).map(|round| (20.0, [0.1, -0.04, 0.04, -0.1][round % 4]))
    }

    #[test]
    fn where_the_channel_is_constant_nothing_is_tolerated() {
        let mut noise = Noise::default();
        let seen = after(&mut noise, 0, constant(500));
        assert!(noise.delay > 0.04, "{} s of queue", noise.delay);
        assert!(!noise.forgives() && !noise.is_queue(&IntervalStats { loss: 0.5, ..seen }), "{noise:?}");
    }

    #[test]
    fn the_delay_of_a_radio_is_forgiven_and_a_queue_on_it_is_seen() {
        let mut noise = Noise::default();
        let seen = after(&mut noise, 0, radio(100));
        assert!(noise.forgives() && !noise.is_queue(&seen), "{noise:?}");
        let full = after(&mut noise, 100, [(30.0, 0.5)]);
        assert!(!noise.forgives(), "{noise:?}");
        assert!(!noise.is_queue(&full) && noise.is_queue(&IntervalStats { loss: 0.1, ..full }), "{noise:?}");
        let long = after(&mut noise, 101, [(30.0, 0.5); 2]);
        assert!(noise.is_queue(&long), "{noise:?}");
        assert!((long.delivery() / 20e6 - 1.0).abs() < 1e-6, "{}", long.delivery());
    }

    #[test]
    fn a_path_that_has_become_longer_is_no_queue_for_ever() {
        let mut noise = Noise::default();
        after(&mut noise, 0, radio(100));
        after(&mut noise, 100, [(20.0, 8.0)]);
        let seen = after(&mut noise, 101, radio(41));
        assert!(noise.is_queue(&seen), "{noise:?}");
        let seen = after(&mut noise, 142, radio(200));
        assert!(!noise.is_queue(&seen) && noise.forgives(), "{noise:?}");
    }
}
