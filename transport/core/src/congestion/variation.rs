//! Variation of a channel's delay by itself, so that a radio's delays are not taken for a queue.
//!
//! The smallest round trip over a radio is that of a lucky moment: over 5G in a moving car half of the round trips take more
//! than twice as long, with nothing in the queue. The part of a sender in the queue changes from one round trip to the
//! next by as much as its window did, and no more; the rest of the change is the channel's, or that of others. A few
//! times the average of such changes is taken for the channel's own delay, as RFC 6298 §2.3 does for timers. If the
//! delay of the channel is constant that is nothing, and a queue shows at once. The idea is ours; Proteus (Meng et al.,
//! SIGCOMM 2020) learns in a like manner which slopes of the delay are noise.

use super::queueing::Round;
use std::time::Duration;

/// The number of average changes that are taken for the channel's. RFC 6298 has four; but what varies is the least of a
/// round trip here, and the delay of a radio goes up and down for several round trips.
pub(super) const TOLERATED: f64 = 8.0;
/// The number of average changes that can only be a queue.
pub(super) const CERTAIN: f64 = 3.0;
/// Smaller changes do not count: they are those of timers and of acknowledgements that wait for one another (kGranularity of
/// RFC 9002 §6.1.2).
const GRANULARITY: f64 = 0.001;
/// The delay of a channel varies if one of so many round trips, the last, showed a change.
const REMEMBERED: u32 = 256;
/// The weight of the newest change; and of one that is less than the average, for conditions that change the delay of a radio
/// come again within seconds.
const GAIN: f64 = 1.0 / 16.0;
const DECAY: f64 = 1.0 / 64.0;
/// The tolerance's limit in multiples of the smallest round trip: however others change the queue, this sender adds no
/// more than that to it.
pub(super) const MOST: f64 = 2.0;
/// The tolerance's limit for a sender that grows faster and faster as long as a delay is tolerated: its queue becomes
/// as long as that.
const MOST_IN_GROWTH: f64 = 1.5;
/// The part of the round trip up to which a change does not count for such a sender, whose own bursts change the delay
/// by so much.
const SMALL_IN_GROWTH: f64 = 1.0 / 8.0;
/// The number of round trips for which a change of the window may show, or a part of it.
const LAG: usize = 3;

/// The variation that the round trips of a flow showed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variation {
    /// The least delay of the round trip before, in seconds.
    before: Option<f64>,
    /// The windows of the round trips before, the newest last.
    windows: [f64; LAG],
    /// The average change that the sender did not cause, in seconds.
    average: f64,
    /// The weight of a change that is less than that.
    decay: f64,
    /// The limit of the tolerance, in multiples of the smallest round-trip time.
    most: f64,
    /// Changes of less than this share of the smallest round trip do not count.
    small: f64,
    /// Round trips since the last such change, if there was one.
    unvaried: Option<u32>,
    /// The tolerated delay.
    tolerated: Duration,
}

impl Variation {
    /// For a sender that leaves a queue slowly as long as a delay is tolerated, and adds none to it.
    pub(super) fn remembering() -> Self {
        Self::new(DECAY, MOST, 0.0)
    }

    /// For one that goes on growing as long as a delay is tolerated.
    pub(super) fn growing() -> Self {
        Self::new(DECAY, MOST_IN_GROWTH, SMALL_IN_GROWTH)
    }

    fn new(decay: f64, most: f64, small: f64) -> Self {
        Self {
            before: None,
            windows: [0.0; LAG],
            average: 0.0,
            decay,
            most,
            small,
            unvaried: None,
            tolerated: Duration::ZERO,
        }
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
        let foreign = if foreign < GRANULARITY.max(base * self.small) { 0.0 } else { foreign };
        let more = foreign - self.average;
        self.average += more * if more < 0.0 { self.decay } else { GAIN };
        self.unvaried =
            if foreign > 0.0 { Some(0) } else { self.unvaried.map(|rounds| rounds.saturating_add(1)) };
        let varies = self.unvaried.is_some_and(|rounds| rounds < REMEMBERED);
        let drift = if varies { GRANULARITY } else { 0.0 };
        let tolerated = (self.average * TOLERATED).max(drift);
        self.tolerated = Duration::from_secs_f64(tolerated.min(base * self.most));
    }

    /// Returns true if `delay`, seen beyond the smallest round trip, is so long that most of it is a queue.
    pub(super) fn is_exceeded(&self, delay: Duration) -> bool {
        delay > self.tolerated.mul_f64(CERTAIN)
    }

    /// The part of `delay`, seen beyond the smallest round trip, that is a queue. A delay that varies also drifts, by
    /// changes that are each too small to count; that much is no queue, either, for few datagrams take less than it.
    pub(super) fn queueing(&self, delay: Duration) -> Duration {
        delay.saturating_sub(self.tolerated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(40);

    /// Forgets as fast as it learns.
    fn forgetting() -> Variation {
        Variation::new(GAIN, MOST, 0.0)
    }

    /// Returns the part that is left of a delay of 20 ms after round trips with these least delays, in ms, and windows.
    fn left(rounds: impl IntoIterator<Item = (u64, f64)>) -> Duration {
        after(rounds).queueing(Duration::from_millis(20))
    }

    /// Returns the variation after such round trips.
    fn after(rounds: impl IntoIterator<Item = (u64, f64)>) -> Variation {
        let mut variation = forgetting();
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
        assert!(left(forgetting()) > Duration::from_millis(4));
    }

    #[test]
    fn a_sender_that_grows_remembers_too_and_tolerates_less() {
        // `more` ms more and less by turns, and then 32 round trips alike, which leave 0.6 of the average.
        let tolerated = |mut variation: Variation, more: u64| {
            for round in 0..288 {
                let least = Duration::from_millis(if round < 256 { round % 2 * more } else { 0 });
                variation.on_round(&Round { least, most: least, base: BASE, shift: 1.0 }, 1e5, 0.0);
            }
            (Duration::from_secs(1) - variation.queueing(Duration::from_secs(1))).as_millis()
        };
        assert_eq!([5, 90].map(|more| tolerated(Variation::growing(), more)), [24, 60]);
        assert_eq!([5, 90].map(|more| tolerated(Variation::remembering(), more)), [24, 80]);
    }

    #[test]
    fn small_changes_are_those_of_a_sender_that_grows() {
        // An eighth of 40 ms are 5.
        let tolerated = |mut variation: Variation, more: u64| {
            for round in 0..64 {
                let least = Duration::from_millis(round % 2 * more);
                variation.on_round(&Round { least, most: least, base: BASE, shift: 1.0 }, 1e5, 0.0);
            }
            Duration::from_secs(1) - variation.queueing(Duration::from_secs(1))
        };
        assert_eq!(tolerated(Variation::growing(), 4), Duration::ZERO);
        assert!(tolerated(Variation::growing(), 6) > Duration::from_millis(40));
        assert!(tolerated(Variation::remembering(), 4) > Duration::from_millis(28));
    }

    #[test]
    fn a_millisecond_is_no_steady_queue_where_the_delay_varied_of_late() {
        // Every other round trip 12 ms longer, and then for long only as much as does not count.
        let varying = || (0..64).map(|round| ([0, 12][round % 2], 1e5));
        let left = |variation: Variation| variation.queueing(Duration::from_millis(20));
        assert_eq!(left(after(varying().chain([(1, 1e5); 250]))), Duration::from_millis(19));
        assert!(left(after(varying().chain([(1, 1e5); 257]))) > Duration::from_micros(19_999));
        assert_eq!(left(after([(1, 1e5); 250])), Duration::from_millis(20), "this delay never varied");
    }

    #[test]
    fn no_more_than_two_round_trips_are_tolerated() {
        let mut variation = forgetting();
        for round in 0..64u64 {
            let least = Duration::from_millis(round % 2 * 900);
            variation.on_round(&Round { least, most: least, base: BASE, shift: 1.0 }, 1e5, 0.0);
        }
        assert_eq!(variation.queueing(Duration::from_millis(100)), Duration::from_millis(20));
        assert!(!variation.is_exceeded(Duration::from_millis(240)));
        assert!(variation.is_exceeded(Duration::from_millis(241)));
    }
}
