//! The queue that a quick path may have while others are there.
//!
//! A path is worth something beside slower ones only as long as its queue is short, and a controller that does not know
//! the path's rate finds it by filling that queue. So the quicker and narrower a path is than the others, the less may be
//! in flight there: a few datagrams until its rate is known, then what it carries in an empty round trip and some
//! milliseconds, or half a round trip where that is more. An only path, the slowest and the widest are not bound, and those that hardly differ from them hardly.

use crate::path::shown::ShownRate;
use hvq_scheduler::{PathId, PathView};
use std::time::Duration;

/// Datagrams that may be in flight on a path of unknown rate, if all others are much slower: the second is acknowledged at
/// once (RFC 9000 §13.2.2), and its round trip shows the rate. At 2 Mbit/s both take 12 ms. There are more in proportion
/// where the queue may be longer than [`QUEUE`].
const DATAGRAMS: u64 = 2;

/// The queue that a path of known rate may have, if all others are much wider and much slower: this long, or half of its
/// smallest round trip where that is more.
const QUEUE: Duration = Duration::from_millis(6);

/// Datagrams that may be in flight beside: a peer acknowledges every second one (RFC 9000 §13.2.2).
const UNACKNOWLEDGED: usize = 2;

/// Datagrams that may be in flight on every path, whatever is known of it.
const ALWAYS: usize = if UNACKNOWLEDGED < DATAGRAMS as usize { UNACKNOWLEDGED } else { DATAGRAMS as usize };

/// The round trips for which the window of a path of unknown rate is taken to double. With more, a geostationary link would bind
/// a quick one beside it from its first packet on until that is acknowledged; with fewer a radio's first window would look narrow.
const DOUBLINGS: u32 = 3;

/// The whole of a share.
const WHOLE: u64 = 1024;

/// Tells whether the queue of a quick path is bounded while others are there.
///
/// The bound is this transport's and holds for every policy. Off, a path has what its congestion controller allows, as in
/// the transports that other policies come from; a rate that was promised is paced all the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueBound {
    /// It is bounded: two datagrams while the path's rate is not known, then 6 ms; more on paths whose round trip is above
    /// 12 ms.
    #[default]
    On,
    /// It is not.
    Off,
}

impl QueueBound {
    /// Limits the send allowance of each of `views`, if this is on, by the queue that its path may have, where `shown` is the
    /// rate that the path was seen to carry, whatever was promised.
    pub(super) fn apply(self, views: &mut [PathView], shown: impl Fn(PathId) -> Option<ShownRate>) {
        match self {
            Self::On => bound(views, shown),
            Self::Off => {}
        }
    }

    /// Returns true if a datagram of `size` bytes may be added to `in_flight` on any path, however quick and narrow it is beside
    /// others.
    pub(super) fn leaves_room(in_flight: usize, size: usize) -> bool {
        in_flight.saturating_add(size) <= size.saturating_mul(ALWAYS)
    }
}

/// Limits the send allowance of each of `views`. A path that carries more than the rate that it has `shown` comes to show it,
/// for more may be in flight than that rate carries.
fn bound(views: &mut [PathView], shown: impl Fn(PathId) -> Option<ShownRate>) {
    if views.len() < 2 {
        return;
    }
    let slowest = views.iter().filter_map(delay).max().unwrap_or_default();
    let widest = views.iter().map(rate).max().unwrap_or(u64::MAX);
    for view in views {
        // Nothing tells that a path is quick before its first round trip; its first flight then shows best what it carries.
        let quicker = delay(view).map_or(0, |delay| share(nanos(slowest) - nanos(delay), nanos(slowest)));
        let narrower = if view.rate.is_none() { WHOLE } else { share(widest - rate(view), widest) };
        let scarcity = quicker * narrower / WHOLE;
        if scarcity > 0 {
            limit(view, scarcity, shown(view.id));
        }
    }
}

/// Limits the send allowance of a path that is `scarcity` of [`WHOLE`] quicker and narrower than others.
fn limit(view: &mut PathView, scarcity: u64, shown: Option<ShownRate>) {
    // On a path that is not so quick itself a longer queue does as little harm.
    let least = QUEUE.max(view.rtt.minimum / 2);
    let most = match shown {
        Some(ShownRate { rate, undecided }) => {
            let queue = Duration::from_nanos((nanos(least) * WHOLE).div_ceil(scarcity));
            // As long as no queue shows, the path may carry more: its window doubles as in slow start. Round trips vary on
            // radios without one, but the variation of a quick path is its queue.
            let varied = view.rtt.variance.min(view.rtt.minimum / 2).max(queue / 2);
            let is_empty = view.rtt.latest <= view.rtt.minimum.saturating_add(varied);
            let time = if is_empty { view.rtt.minimum.saturating_mul(2) } else { view.rtt.minimum };
            let carried = rate.bytes_in(time.saturating_add(queue));
            // Twice the longest burst, too, as long as longer ones may show more.
            let carried = carried.max(undecided.unwrap_or_default().saturating_mul(2));
            let carried = usize::try_from(carried).unwrap_or(usize::MAX);
            carried.saturating_add(UNACKNOWLEDGED * view.datagram_size)
        }
        None => {
            let datagrams = DATAGRAMS * nanos(least) / nanos(QUEUE);
            (view.datagram_size as u64 * datagrams * WHOLE).div_ceil(scarcity) as usize
        }
    };
    let left = most.saturating_sub(view.in_flight);
    if left >= view.send_allowance {
        return;
    }
    view.send_allowance = left;
    if left < view.datagram_size && view.next_send.is_zero() {
        // An acknowledgement makes room.
        view.next_send =
            shown.map_or(view.rtt.smoothed, |shown| shown.rate.transmission_time(view.datagram_size));
    }
}

/// The delay of a path, if that was measured or promised.
fn delay(view: &PathView) -> Option<Duration> {
    let is_known = !view.rtt.minimum.is_zero() || view.hints.delay.is_some();
    is_known.then_some(view.delay)
}

/// The rate of a path in bits per second. One that is not known may be whatever the window comes to carry in a few round trips, and
/// any before the first of them.
fn rate(view: &PathView) -> u64 {
    let unknown = || {
        let bits = (view.window as u64).saturating_mul(8_000_000_000 << DOUBLINGS);
        bits.checked_div(nanos(view.rtt.minimum)).unwrap_or(u64::MAX)
    };
    view.rate.map_or_else(unknown, |rate| rate.bits_per_second())
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / WHOLE).min(u64::MAX / WHOLE)
}

/// `part` of `whole` in units of 1/[`WHOLE`].
fn share(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * u128::from(WHOLE) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(WHOLE).min(WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_scheduler::{Bandwidth, Hints, Rtt};
    use proptest::prelude::*;

    const ROOM: usize = 1_000_000;

    fn path(id: u32, mbit: Option<u64>, delay: u64) -> PathView {
        let delay = Duration::from_millis(delay);
        PathView {
            rate: mbit.map(Bandwidth::from_mbit),
            delay,
            send_allowance: ROOM,
            window: ROOM,
            rtt: Rtt { smoothed: delay * 2, minimum: delay * 2, latest: delay * 4, ..Rtt::ZERO },
            ..PathView::new(PathId(id))
        }
    }

    /// The send allowances of `views`, in the order of their IDs.
    fn allowances(mut views: Vec<PathView>, measured: bool) -> Vec<usize> {
        let rates: Vec<_> = views.iter().map(|view| (view.id, view.rate)).collect();
        let rate = |id| rates.iter().find(|(known, _)| *known == id).and_then(|(_, rate)| *rate);
        QueueBound::On.apply(&mut views, |id| {
            rate(id).filter(|_| measured).map(|rate| ShownRate { rate, undecided: None })
        });
        views.sort_by_key(|view| view.id);
        views.iter().map(|view| view.send_allowance).collect()
    }

    #[test]
    fn an_only_path_is_not_bound() {
        assert_eq!(allowances(vec![path(0, None, 2)], false), [ROOM]);
    }

    #[test]
    fn a_quick_path_of_unknown_rate_has_two_datagrams_beside_a_slow_one() {
        let allowed = allowances(vec![path(0, None, 1), path(1, None, 100)], false);
        assert!((2 * 1200..3 * 1200).contains(&allowed[0]), "{allowed:?}");
        assert_eq!(allowed[1], ROOM);
    }

    #[test]
    fn a_path_is_not_taken_for_a_quick_one_before_its_first_round_trip() {
        let unmeasured = PathView { rtt: Rtt::ZERO, ..path(0, None, 2) };
        assert_eq!(allowances(vec![unmeasured, path(1, Some(50), 100)], false)[0], ROOM);
        let hints = Hints { delay: Some(unmeasured.delay), ..Hints::NONE };
        let promised = PathView { hints, ..unmeasured };
        assert!(allowances(vec![promised, path(1, Some(50), 100)], false)[0] < 3 * 1200);
    }

    #[test]
    fn a_link_that_shows_more_than_a_slow_one_could_come_to_carry_is_not_bound_beside_it() {
        // Ten packets in 600 ms, doubled three times, are 1.5 Mbit/s; in 50 ms they are 18.
        for (delay, is_bound) in [(300, false), (25, true)] {
            let unknown = PathView { window: 14_000, ..path(1, None, delay) };
            let allowed = allowances(vec![path(0, Some(10), 1), unknown], true);
            assert_eq!(allowed[0] < ROOM, is_bound, "beside {delay} ms");
        }
    }

    #[test]
    fn nothing_is_bound_where_it_is_off() {
        let mut views = vec![path(0, None, 1), path(1, None, 100)];
        let before = views.clone();
        QueueBound::Off.apply(&mut views, |_| None);
        assert_eq!(views, before);
    }

    #[test]
    fn nothing_is_left_while_they_are_in_flight() {
        let mut views = vec![PathView { in_flight: 3 * 1200, ..path(0, None, 1) }, path(1, None, 100)];
        QueueBound::On.apply(&mut views, |_| None);
        assert_eq!(views[0].send_allowance, 0);
        assert!(!views[0].next_send.is_zero(), "room comes with the next acknowledgement");
    }

    #[test]
    fn an_ordinary_link_beside_a_satellite_begins_with_more_datagrams_than_a_quick_one() {
        let first = |delay| allowances(vec![path(0, None, delay), path(1, None, 300)], false)[0];
        // A round trip of 30 ms: 15 ms of queue, and five datagrams by the tenth that the path is not quicker.
        assert!((5 * 1200..6 * 1200).contains(&first(15)), "{}", first(15));
        assert!(first(1) < 3 * 1200, "{}", first(1));
    }

    #[test]
    fn a_round_trip_that_varies_shows_no_queue() {
        let varied = |variance| {
            let rtt = Rtt { latest: Duration::from_millis(40), variance, ..path(0, Some(20), 15).rtt };
            allowances(vec![PathView { rtt, ..path(0, Some(20), 15) }, path(1, None, 300)], true)[0]
        };
        // 20 Mbit/s carry 75 kB in an empty round trip of 30 ms: twice that may be in flight while no queue shows.
        let (steady, radio) = (varied(Duration::from_millis(2)), varied(Duration::from_millis(10)));
        assert!(steady < 130_000 && radio > 180_000, "{steady} {radio}");
    }

    #[test]
    fn bursts_may_be_twice_as_long_as_the_longest_while_longer_ones_may_show_more() {
        let after = |undecided| {
            let mut views = vec![path(0, Some(1), 8), path(1, None, 300)];
            let rate = Bandwidth::from_mbit(1);
            QueueBound::On.apply(&mut views, |_| Some(ShownRate { rate, undecided }));
            views[0].send_allowance
        };
        assert!(after(None) < 6_000, "{}", after(None));
        assert_eq!(after(Some(6_000)), 12_000 + 2 * 1200);
    }

    #[test]
    fn a_promised_rate_is_not_relied_on_before_anything_was_measured() {
        let promised = |measured| allowances(vec![path(0, Some(10), 2), path(1, None, 100)], measured)[0];
        assert!(promised(false) < 3 * 1200, "{}", promised(false));
        // 10 ms at 10 Mbit/s, two datagrams.
        assert!((12_000..16_000).contains(&promised(true)), "{}", promised(true));
    }

    #[test]
    fn links_of_one_kind_are_not_bound() {
        assert_eq!(allowances(vec![path(0, None, 10), path(1, None, 10)], false), [ROOM, ROOM]);
        assert_eq!(allowances(vec![path(0, Some(50), 5), path(1, Some(50), 20)], true), [ROOM, ROOM]);
        let alike = allowances(vec![path(0, Some(90), 18), path(1, Some(100), 20)], true);
        assert!(alike[0] > 500_000, "{alike:?}: 600 ms at 90 Mbit/s and more");
    }

    proptest! {
        #[test]
        fn with_a_datagram_in_flight_another_may_leave_on_every_path(
            paths in proptest::collection::vec((proptest::option::of(1u64..200), 1u64..300), 2..5),
            in_flight in 0usize..4000,
            measured: bool,
        ) {
            let views = (0..).zip(&paths).map(|(id, &(mbit, delay))| path(id, mbit, delay));
            let views: Vec<_> = views.map(|view| PathView { in_flight, ..view }).collect();
            let size = views[0].datagram_size;
            let every = allowances(views, measured).iter().all(|&bytes| bytes >= size);
            prop_assert!(every || !QueueBound::leaves_room(in_flight, size));
            prop_assert_eq!(QueueBound::leaves_room(in_flight, size), in_flight <= size);
        }

        #[test]
        fn the_order_and_the_names_of_paths_change_nothing(
            paths in proptest::collection::vec((proptest::option::of(1u64..200), 1u64..300), 1..5),
            measured: bool,
        ) {
            let views = |names: Vec<u32>| {
                paths.iter().zip(names).map(|(&(mbit, delay), id)| path(id, mbit, delay)).collect::<Vec<_>>()
            };
            let count = paths.len() as u32;
            let straight = allowances(views((0..count).collect()), measured);
            let mut renamed = allowances(views((0..count).rev().collect()), measured);
            renamed.reverse();
            prop_assert_eq!(&straight, &renamed);
            let mut exchanged = views((0..count).collect());
            exchanged.reverse();
            prop_assert_eq!(straight, allowances(exchanged, measured));
        }

        #[test]
        fn no_more_is_allowed_than_without_a_bound_and_some_path_has_all_of_its_room(
            paths in proptest::collection::vec((proptest::option::of(0u64..200), 1u64..300), 1..5),
            measured: bool,
        ) {
            let views = (0..).zip(&paths).map(|(id, &(mbit, delay))| path(id, mbit, delay)).collect();
            let allowed = allowances(views, measured);
            prop_assert!(allowed.iter().all(|&bytes| bytes <= ROOM));
            prop_assert!(allowed.contains(&ROOM));
        }
    }
}
