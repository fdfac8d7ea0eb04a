//! How much the delay of a channel varies by itself, so that a radio's delays are not taken for a queue.
//!
//! The smallest round trip over a radio is that of a lucky moment: over 5G in a moving car half of the round trips take more
//! than twice as long, with nothing in the queue. What a sender has in the queue changes from one round trip to the next by
//! as much as its window did, and no more; the rest of the change is the channel's, or that of others. Of such changes a few
//! times the average is taken for the channel's own delay, as RFC 6298 §2.3 does for timers. Where the delay of the channel
//! is constant that is nothing, and a queue shows at once. The idea is ours; Proteus (Meng et al., SIGCOMM 2020) learns in a
//! like manner which slopes of the delay are noise.

use super::queueing::Round;
use std::time::Duration;

/// How many average changes are taken for the channel's. RFC 6298 has four; but what varies is the least of a round trip here,
/// and the delay of a radio goes up and down for several round trips.
const TOLERATED: f64 = 8.0;
/// And how many times that can only be a queue.
const CERTAIN: f64 = 3.0;
/// Smaller changes do not count: they are those of timers and of acknowledgements that wait for one another (kGranularity of
/// RFC 9002 §6.1.2).
const GRANULARITY: f64 = 0.001;
/// The delay of a channel varies if one of so many round trips, the last, showed a change.
const REMEMBERED: u32 = 256;
/// The weight of the newest change; and what a sender that remembers gives one that is less than the average, for conditions
/// that change the delay of a radio come again within seconds.
const GAIN: f64 = 1.0 / 16.0;
const DECAY: f64 = 1.0 / 64.0;
/// No more than so many times the smallest round trip is tolerated: however others change the queue, this sender adds no more
/// than that to it.
const MOST: f64 = 2.0;
/// For so many round trips a change of the window may show, or a part of it.
const LAG: usize = 3;

/// What the round trips of a flow showed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Variation {
    /// The least delay of the round trip before, in seconds.
    before: Option<f64>,
    /// The windows of the round trips before, the newest last.
    windows: [f64; LAG],
    /// The average change that the sender did not cause, in seconds.
    average: f64,
    /// Whether quiet round trips are slow to bring it down.
    remembers: bool,
    /// Round trips since the last such change, if there was one.
    unvaried: Option<u32>,
    /// What is tolerated.
    tolerated: Duration,
    /// What drifts.
    drift: Duration,
}

impl Variation {
    /// For a sender that leaves a queue slowly as long as a delay is tolerated, and adds none to it: what varied is slow to be
    /// forgotten.
    pub(super) fn remembering() -> Self {
        Self { remembers: true, ..Self::default() }
    }

    /// Takes a round trip that began with a `window`, and what one acknowledgement may have put in flight beyond it.
    pub(super) fn on_round(&mut self, round: &Round, window: f64, lump: f64) {
        let (least, base) = (round.least.as_secs_f64(), round.base.as_secs_f64());
        let [_, kept @ ..] = self.windows;
        let windows = std::mem::replace(&mut self.windows, [kept[0], kept[1], window]);
        let Some(before) = self.before.replace(least) else { return };
        let own = windows.map(|then| (window - then) / window.max(1.0) * (base + least));
        let (low, high) =
            own.iter().fold((0.0f64, 0.0f64), |(low, high), own| (low.min(*own), high.max(*own)));
        let lump = lump / window.max(1.0) * (base + least);
        let change = least - before;
        let foreign = (change - change.clamp(low - lump, high + lump)).abs();
        let foreign = if foreign < GRANULARITY { 0.0 } else { foreign };
        let more = foreign - self.average;
        self.average += more * if self.remembers && more < 0.0 { DECAY } else { GAIN };
        self.unvaried =
            if foreign > 0.0 { Some(0) } else { self.unvaried.map(|rounds| rounds.saturating_add(1)) };
        self.tolerated = Duration::from_secs_f64((self.average * TOLERATED).min(base * MOST));
        let varies = self.unvaried.is_some_and(|rounds| rounds < REMEMBERED);
        self.drift = Duration::from_secs_f64(if varies { GRANULARITY.min(base * MOST) } else { 0.0 });
    }

    /// Whether `delay`, seen beyond the smallest round trip, is so long that most of it is a queue.
    pub(super) fn is_exceeded(&self, delay: Duration) -> bool {
        delay > self.tolerated.mul_f64(CERTAIN)
    }

    /// The part of `delay`, seen beyond the smallest round trip, that is a queue.
    pub(super) fn queueing(&self, delay: Duration) -> Duration {
        delay.saturating_sub(self.tolerated)
    }

    /// The same for a sender that wants so few datagrams in the queue that they take less than the granularity. Where the
    /// delay varies it also drifts, by changes that are each too small to count; that much is no queue, either.
    pub(super) fn steady_queueing(&self, delay: Duration) -> Duration {
        delay.saturating_sub(self.tolerated.max(self.drift))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(40);

    /// What is left of a delay of 20 ms after round trips with these least delays, in ms, and windows.
    fn left(rounds: impl IntoIterator<Item = (u64, f64)>) -> Duration {
        after(rounds).queueing(Duration::from_millis(20))
    }

    /// What is known after such round trips.
    fn after(rounds: impl IntoIterator<Item = (u64, f64)>) -> Variation {
        let mut variation = Variation::default();
        for (least, window) in rounds {
            let least = Duration::from_millis(least);
            variation.on_round(&Round { least, most: least, base: BASE, shift: 1.0 }, window, 0.0);
        }
        variation
    }

    #[test]
    fn a_delay_that_varies_by_itself_is_no_queue() {
        assert_eq!(left((0..64).map(|round| ([0, 7, 3, 12][round % 4], 1e5))), Duration::ZERO);
    }

    #[test]
    fn a_constant_delay_is_a_queue_and_so_is_one_that_follows_the_window() {
        let all = Duration::from_millis(20);
        assert_eq!(left([(0, 1e5); 64]), all);
        assert_eq!(left([(20, 1e5); 64]), all);
        // A window of 100 kB that grows by a twentieth each round trip where the queue is full: 2 ms more each time.
        let mut window = 1e5;
        let growing = (0..10).map(|round| {
            window *= 1.05;
            (2 * round, window)
        });
        assert_eq!(left(growing), all);
    }

    #[test]
    fn what_varied_once_is_forgotten() {
        let varying = (0..64).map(|round| ([0, 12][round % 2], 1e5));
        assert!(left(varying.chain([(20, 1e5); 64])) > Duration::from_millis(18));
    }

    #[test]
    fn what_varies_now_and_then_is_remembered_in_between() {
        // Eight round trips of different delays, and 32 alike, of which these are the last.
        let left = |mut variation: Variation| {
            for round in 0..240 {
                let least = Duration::from_millis(if round % 40 < 8 { [0, 9][round % 2] } else { 5 });
                variation.on_round(&Round { least, most: least, base: BASE, shift: 1.0 }, 1e5, 0.0);
            }
            variation.queueing(Duration::from_millis(12))
        };
        assert_eq!(left(Variation::remembering()), Duration::ZERO);
        assert!(left(Variation::default()) > Duration::from_millis(4));
    }

    #[test]
    fn a_millisecond_is_no_steady_queue_where_the_delay_varied_of_late() {
        // Every other round trip 12 ms longer, and then for long only as much as does not count.
        let varying = || (0..64).map(|round| ([0, 12][round % 2], 1e5));
        let left = |variation: Variation| variation.steady_queueing(Duration::from_millis(20));
        assert_eq!(left(after(varying().chain([(1, 1e5); 250]))), Duration::from_millis(19));
        assert!(left(after(varying().chain([(1, 1e5); 257]))) > Duration::from_micros(19_999));
        assert_eq!(left(after([(1, 1e5); 250])), Duration::from_millis(20), "this delay never varied");
    }

    #[test]
    fn no_more_than_two_round_trips_are_tolerated() {
        let mut variation = Variation::default();
        for round in 0..64u64 {
            let least = Duration::from_millis(round % 2 * 900);
            variation.on_round(&Round { least, most: least, base: BASE, shift: 1.0 }, 1e5, 0.0);
        }
        assert_eq!(variation.queueing(Duration::from_millis(100)), Duration::from_millis(20));
        assert!(!variation.is_exceeded(Duration::from_millis(240)));
        assert!(variation.is_exceeded(Duration::from_millis(241)));
    }
}
