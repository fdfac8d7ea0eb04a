//! The cost of a path: arrival and price in saturating nanoseconds, without allocation or floating point.

use std::time::Duration;

use crate::{Bandwidth, PathSet, PathView};

/// The time that stands for never: 13 days, small enough that sums and weighted prices stay within 64 bits.
pub(super) const NEVER: u64 = 1 << 50;

/// A transmission cost is weighted in units of this share of it.
pub(super) const WEIGHT_UNIT: u64 = 64 * WHOLE;

/// `time` in nanoseconds, at most [`NEVER`].
pub(super) fn nanos(time: Duration) -> u64 {
    let seconds = time.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(time.subsec_nanos().into()).min(NEVER)
}

/// Returns the transmission time of `bytes` at `rate`; zero at an unknown rate, as in DChannel's listing for the HBC.
pub(super) fn transmission(bytes: usize, rate: Option<Bandwidth>) -> u64 {
    // The product of 2 GB and 8e9 is the largest that fits; more than 2 GB of backlog is beyond any decision.
    const MOST: u64 = 2_000_000_000;
    let Some(rate) = rate else { return 0 };
    let bits = (bytes as u64).min(MOST) * 8_000_000_000;
    if bits == 0 { 0 } else { bits.checked_div(rate.bits_per_second()).unwrap_or(NEVER).min(NEVER) }
}

/// One path, and what it would mean to send on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathEstimate {
    /// The path's index.
    pub(super) index: usize,
    /// From now until the last byte arrives.
    pub(super) arrival: u64,
    /// DChannel's transmission cost: how long the bottleneck is busy with these bytes and those before them (equation 3).
    pub(super) cost: u64,
}

impl PathEstimate {
    /// The estimate of `bytes` that are sent in one go as soon as `path`, at `index`, has room (equation 1).
    pub(super) fn of(index: usize, path: &PathView, bytes: usize) -> Self {
        let cost = transmission(path.backlog.saturating_add(bytes), path.rate);
        // While the sender waits for room the queue drains, so the two waits overlap.
        let sent = match next_send(path) {
            0 => cost,
            wait => cost.max(wait + transmission(bytes, path.rate)),
        };
        let arrival = nanos(path.delay) + sent + repair(path);
        Self { index, arrival: arrival.min(NEVER), cost }
    }

    /// The estimate of `bytes` that may exceed the congestion window: each window more than fits now takes a round trip.
    pub(super) fn of_whole(index: usize, path: &PathView, bytes: usize) -> Self {
        let estimate = Self::of(index, path, bytes);
        let excess = bytes.saturating_sub(available(path));
        if excess == 0 {
            return estimate;
        }
        let window = path.window.max(path.datagram_size).max(1);
        // Without room the first of these rounds is the wait that `of` has counted.
        let rounds = (excess - 1) / window + usize::from(path.can_send());
        let rounds_take = nanos(path.rtt.smoothed).saturating_mul(rounds as u64).min(NEVER);
        // Either the window or the bottleneck limits the message, not both in turn.
        let windowed = rounds_take + next_send(path) + nanos(path.delay);
        Self { arrival: estimate.arrival.max(windowed).min(NEVER), ..estimate }
    }

    /// Returns the time at which the receiver can use the estimate's bytes: not before `head_of_line_delay`, the arrival of
    /// the data that it must have first (equation 2).
    pub(super) fn completion(self, head_of_line_delay: u64) -> u64 {
        self.arrival.max(head_of_line_delay)
    }

    /// The transmission cost at this weight.
    pub(super) fn price(self, weight: u64) -> u64 {
        self.cost.saturating_mul(weight) / WEIGHT_UNIT
    }

    /// Completion and weighted transmission cost: the smallest wins.
    pub(super) fn sum(self, head_of_line_delay: u64, weight: u64) -> u64 {
        self.completion(head_of_line_delay) + self.price(weight)
    }
}

/// Returns the delay that loss adds to the arrival of a packet on average: one that is lost is there a round trip and
/// its detection later (RFC 9002 §6.1.2: 9/8 of a round trip), if it is not lost again.
fn repair(path: &PathView) -> u64 {
    let rtt = nanos(path.rtt.smoothed);
    (rtt + rtt / 8).saturating_mul(path.loss.get().into()) / 1000
}

/// From now until the path has room, zero if it has; a round trip where the transport could not say.
pub(super) fn next_send(path: &PathView) -> u64 {
    if path.can_send() {
        return 0;
    }
    match nanos(path.next_send) {
        0 => nanos(path.rtt.smoothed).max(1_000_000),
        wait => wait,
    }
}

/// Returns the bytes that the path can take before an acknowledgement must return: the pacer's share may be less.
pub(super) fn available(path: &PathView) -> usize {
    if path.can_send() { path.send_allowance.max(path.window.saturating_sub(path.in_flight)) } else { 0 }
}

/// The whole of a share.
pub(super) const WHOLE: u64 = 1024;

/// The share of 1/[`WHOLE`] by which `path` is narrower than `other`, to which it is the alternative. An unknown rate of the
/// other may be any.
pub(super) fn narrowness(path: &PathView, other: &PathView) -> u64 {
    let Some(rate) = path.rate else { return 0 };
    let Some(wide) = other.rate else { return WHOLE };
    share(wide.bits_per_second(), rate.bits_per_second())
}

/// The share of 1/[`WHOLE`] by which `path` is narrower and quicker than `other`: what is lost if its queue grows.
pub(super) fn scarcity(path: &PathView, other: &PathView) -> u64 {
    narrowness(path, other) * share(nanos(other.delay), nanos(path.delay)) / WHOLE
}

/// The share of `great` by which `small` is less, in units of 1/[`WHOLE`].
fn share(great: u64, small: u64) -> u64 {
    let share = u128::from(great.saturating_sub(small)) * u128::from(WHOLE) / u128::from(great.max(1));
    u64::try_from(share).unwrap_or(WHOLE)
}

/// The paths of `set` on which a byte may have a price: all but the widest, and but the cheapest where prices are hinted.
///
/// A path is among them if its rate is less than the greatest (a path of unknown rate and longer delay counts as great), or
/// if its hinted price is above the lowest. How much a byte costs there is a matter of [`scarcity`]: on a path that is hardly
/// narrower, or not quicker, hardly anything.
pub(super) fn scarce(paths: &[PathView], set: PathSet) -> PathSet {
    let (mut greatest, mut slowest_unknown, mut cheapest) = (0, None, u64::MAX);
    for index in set.iter() {
        let path = &paths[index];
        match path.rate {
            Some(rate) => greatest = rate.bits_per_second().max(greatest),
            None => slowest_unknown = slowest_unknown.max(Some(path.delay)),
        }
        cheapest = path.hints.price_per_byte.unwrap_or(0).min(cheapest);
    }
    let is_scarce = |path: &PathView| {
        let narrow = path
            .rate
            .is_some_and(|rate| rate.bits_per_second() < greatest || slowest_unknown > Some(path.delay));
        narrow || path.hints.price_per_byte.unwrap_or(0) > cheapest
    };
    set.iter().filter(|&index| is_scarce(&paths[index])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hints, PathId, Rtt};

    fn path(mbit: Option<u64>, delay: u64) -> PathView {
        PathView {
            rate: mbit.map(Bandwidth::from_mbit),
            delay: Duration::from_millis(delay),
            send_allowance: 12_000,
            window: 12_000,
            rtt: Rtt { smoothed: Duration::from_millis(2 * delay), ..Rtt::ZERO },
            ..PathView::new(PathId(0))
        }
    }

    fn scarce_among(paths: &[PathView]) -> Vec<usize> {
        scarce(paths, (0..paths.len()).collect()).iter().collect()
    }

    #[test]
    fn every_path_but_the_widest_may_have_a_price() {
        assert_eq!(scarce_among(&[path(Some(100), 20), path(Some(2), 2), path(Some(25), 9)]), [1, 2]);
        assert_eq!(scarce_among(&[path(None, 20), path(Some(2), 2)]), [1]);
        assert!(scarce_among(&[path(Some(100), 20), path(None, 2)]).is_empty());
        assert!(scarce_among(&[path(Some(100), 20), path(Some(100), 2)]).is_empty());
        assert!(scarce_among(&[path(Some(2), 2)]).is_empty());
    }

    #[test]
    fn a_path_is_as_scarce_as_it_is_narrower_and_quicker() {
        let wide = path(Some(100), 20);
        let among = |mbit, delay| {
            let narrow = path(Some(mbit), delay);
            (narrowness(&narrow, &wide) * 100 / WHOLE, scarcity(&narrow, &wide) * 100 / WHOLE)
        };
        assert_eq!([among(2, 2), among(50, 2), among(50, 10)], [(97, 88), (50, 44), (50, 25)]);
        assert_eq!([among(100, 2), among(50, 20), among(200, 2)], [(0, 0), (50, 0), (0, 0)]);
        let unknown = path(None, 20);
        assert_eq!((narrowness(&wide, &unknown), narrowness(&unknown, &wide)), (WHOLE, 0));
    }

    #[test]
    fn a_path_is_scarce_if_it_costs_more_than_the_cheapest() {
        let priced = |price| {
            let hints = Hints { price_per_byte: Some(price), ..Hints::NONE };
            PathView { hints, ..path(Some(50), 20) }
        };
        assert_eq!(scarce_among(&[priced(2), priced(1), priced(3)]), [0, 2]);
        assert_eq!(scarce_among(&[priced(1), path(Some(50), 20)]), [0]);
    }

    #[test]
    fn arrival_is_delay_and_the_time_at_the_bottleneck() {
        let urllc = PathView { backlog: 1000, ..path(Some(2), 2) };
        let estimate = PathEstimate::of(0, &urllc, 1000);
        assert_eq!((estimate.arrival, estimate.cost), (10_000_000, 8_000_000));
        // 6 ms until there is room: of the queue's 4 ms nothing is left by then.
        let full = PathView { send_allowance: 0, next_send: Duration::from_millis(6), ..urllc };
        assert_eq!(PathEstimate::of(0, &full, 1000).arrival, 12_000_000);
    }

    #[test]
    fn a_message_beyond_the_window_takes_round_trips() {
        let embb = path(None, 20);
        let milliseconds =
            |path: &PathView, bytes| PathEstimate::of_whole(0, path, bytes).arrival / 1_000_000;
        assert_eq!(milliseconds(&embb, 12_000), 20);
        assert_eq!(milliseconds(&embb, 12_001), 60);
        assert_eq!(milliseconds(&embb, 36_001), 140);
        let full =
            PathView { send_allowance: 0, in_flight: 12_000, next_send: Duration::from_millis(30), ..embb };
        assert_eq!(milliseconds(&full, 12_000), 50);
        assert_eq!(milliseconds(&full, 12_001), 90);
    }

    #[test]
    fn extremes_saturate() {
        assert_eq!(nanos(Duration::MAX), NEVER);
        assert_eq!(transmission(usize::MAX, Some(Bandwidth::default())), NEVER);
        assert_eq!(transmission(usize::MAX, Some(Bandwidth::from_bits_per_second(1))), NEVER);
        assert_eq!(transmission(0, Some(Bandwidth::default())), 0);
        assert_eq!(transmission(usize::MAX, Some(Bandwidth::from_bits_per_second(u64::MAX))), 0);
        let worst = PathView {
            delay: Duration::MAX,
            next_send: Duration::MAX,
            backlog: usize::MAX,
            rate: Some(Bandwidth::default()),
            ..PathView::new(PathId(0))
        };
        let estimate = PathEstimate::of_whole(0, &worst, usize::MAX);
        assert_eq!((estimate.arrival, estimate.cost), (NEVER, NEVER));
        assert!(estimate.sum(NEVER, 1 << 10) > NEVER);
    }
}
