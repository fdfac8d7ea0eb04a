//! The receiver's window: data on a slow path holds up what the others may send until it is there.

use std::time::Duration;

use super::cost::{PathEstimate, nanos};
use super::tuning::{CONGESTED, DOUBLINGS, WINDOW_LIMITED};
use crate::{Content, History, Item, PathSet, PathView};

/// Returns `set` without the paths on which the item would close the receiver's window to another for more than they carry.
///
/// A receiver reads a stream in order and admits more as it reads (RFC 9000 §4.2). An item on a slow path is read when it is
/// there, and until then the others send what was admitted before. If they could send more than that, and more of it is
/// missed than the slow path carries in the meantime, the item is worth more on one of them. That is the blocking of BLEST
/// (Ferlin et al., IFIP Networking 2016), weighed against what the slow path adds. The path on which the item arrives first
/// always stays, and a path is not left alone for one on which a byte costs more.
pub(super) fn open(item: &Item, paths: &[PathView], set: PathSet) -> PathSet {
    let is_data = matches!((item.content, item.history), (Content::Stream { .. }, History::Fresh));
    if set.len() < 2 || !is_data || item.credit == u64::MAX {
        return set;
    }
    let closes_any =
        |slow: usize| set.iter().any(|quick| quick != slow && closes(item, &paths[slow], &paths[quick]));
    set.iter().filter(|&slow| !closes_any(slow)).collect()
}

/// Returns true if the item on `slow` would keep `quick` from sending more than `slow` carries in the meantime.
fn closes(item: &Item, slow: &PathView, quick: &PathView) -> bool {
    let arrival = |path| PathEstimate::of(0, path, item.bytes).arrival;
    let price = |path: &PathView| path.hints.price_per_byte.unwrap_or(0);
    let there = arrival(slow);
    if arrival(quick) >= there || price(quick) > price(slow) {
        return false;
    }
    // What the receiver admits then is known after one more delay of the quick path.
    let carried = carries(quick, there + nanos(quick.delay));
    let remaining = item.message.map_or(u64::MAX, |message| message.remaining as u64);
    let missed = carried.min(remaining).saturating_sub(item.credit);
    missed > slow.window.max(slow.datagram_size) as u64
}

/// The bytes that `path` may send in `time`, in nanoseconds: at its rate, or more if its window is what limits it. That one may
/// double with each round trip as long as no queue shows, for a few of them.
fn carries(path: &PathView, time: u64) -> u64 {
    let rtt = nanos(path.rtt.smoothed).max(1);
    let in_flight = path.rate.map(|rate| rate.bytes_in(path.rtt.minimum));
    let is_growing = path.hints.rate.is_none()
        && path.rtt.smoothed <= path.rtt.minimum.saturating_mul(CONGESTED.0) / CONGESTED.1
        && in_flight.is_none_or(|bytes| path.window as u64 <= bytes.saturating_mul(WINDOW_LIMITED));
    let steadily = path.rate.map_or(0, |rate| rate.bytes_in(Duration::from_nanos(time)));
    let rounds = if is_growing { (time / rtt).min(DOUBLINGS) } else { 0 };
    steadily.max((path.window as u64).saturating_mul((1 << rounds) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bandwidth, PathId, Rtt};

    fn path(id: u32, delay: u64, mbit: Option<u64>, window: usize) -> PathView {
        let rtt = Duration::from_millis(2 * delay);
        PathView {
            delay: rtt / 2,
            rate: mbit.map(Bandwidth::from_mbit),
            window,
            send_allowance: window,
            rtt: Rtt { smoothed: rtt, minimum: rtt, latest: rtt, ..Rtt::ZERO },
            ..PathView::new(PathId(id))
        }
    }

    fn left(credit: u64, paths: &[PathView]) -> Vec<usize> {
        let item = Item { credit, ..Item::new(Content::Stream { id: 0 }, 1200) };
        open(&item, paths, (0..paths.len()).collect()).iter().collect()
    }

    #[test]
    fn a_slow_path_is_left_alone_while_the_window_is_too_small_for_the_quick_one() {
        let paths = [path(0, 300, None, 14_520), path(1, 25, Some(30), 200_000)];
        // In 325 ms there are six round trips; in three of them 200 kB grow to 1.4 MB.
        assert_eq!(left(1_000_000, &paths), [1]);
        assert_eq!(left(20_000_000, &paths), [0, 1]);
        assert_eq!(left(u64::MAX, &paths), [0, 1]);
    }

    #[test]
    fn a_path_with_a_queue_of_its_own_does_not_grow() {
        let queue = Rtt { smoothed: Duration::from_millis(90), ..path(1, 25, None, 0).rtt };
        let paths = [path(0, 300, None, 14_520), PathView { rtt: queue, ..path(1, 25, Some(20), 200_000) }];
        // 325 ms at 20 Mbit/s are 810 kB.
        assert_eq!((left(700_000, &paths), left(800_000, &paths)), (vec![1], vec![0, 1]));
    }

    #[test]
    fn a_wide_path_that_carries_more_than_is_missed_stays() {
        // URLLC cannot send more than a few packets while eMBB delivers.
        let paths = [path(0, 40, Some(100), 800_000), path(1, 3, Some(2), 14_520)];
        assert_eq!(left(3_000, &paths), [0, 1]);
    }

    #[test]
    fn a_slow_path_is_not_left_alone_for_one_that_costs_more() {
        let mut paths = [path(0, 300, None, 14_520), path(1, 25, Some(30), 200_000)];
        paths[1].hints.price_per_byte = Some(2);
        assert_eq!(left(1_000_000, &paths), [0, 1]);
        paths[0].hints.price_per_byte = Some(2);
        assert_eq!(left(1_000_000, &paths), [1]);
    }

    #[test]
    fn other_frames_and_repetitions_go_anywhere() {
        let paths = [path(0, 300, None, 14_520), path(1, 25, Some(30), 200_000)];
        let all: PathSet = (0..2).collect();
        let item = Item { credit: 0, ..Item::new(Content::Control, 50) };
        assert_eq!(open(&item, &paths, all), all);
        let history = History::Lost { on: PathId(0) };
        let item = Item { credit: 0, history, ..Item::new(Content::Stream { id: 0 }, 50) };
        assert_eq!(open(&item, &paths, all), all);
    }
}
