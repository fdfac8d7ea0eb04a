//! The spare rate of a scarce channel: a little of it is lent to bulk while nothing latency-critical wants it.

use std::time::Duration;

use super::comparison::ComparisonUnit;
use super::cost::{NEVER, PathEstimate, WHOLE, available, nanos, narrowness, scarcity, transmission};
use super::tuning::{ALPHA, BURST, CALM, LEAST_LENT, LENT_QUEUE, LENT_SHARE, SPARE_HOLD};
use crate::{Bandwidth, Content, Item, PathId, PathView, Sharing};

/// The quota that was lent, and the time at which a latency-critical frame last wanted the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpareCapacity {
    /// The scarce path.
    path: Option<PathId>,
    /// The time until which the lent quota is paid out at its share of the rate, in nanoseconds.
    lent_until: u64,
    /// The time at which a latency-critical frame was last placed on a scarce path.
    wanted: Option<Duration>,
}

impl SpareCapacity {
    /// Something latency-critical goes on a scarce path at `now`.
    pub(super) fn on_wanted(&mut self, now: Duration) {
        self.wanted = Some(now);
    }

    /// Forgets what was lent on a path that is gone.
    pub(super) fn forget(&mut self, path: PathId) {
        if self.path == Some(path) {
            (self.path, self.lent_until) = (None, 0);
        }
    }

    /// Returns the part of `item`, which the bulk path won, that may go on the `scarce` path all the same.
    ///
    /// The rate of the scarce path is promised to this connection and costs nothing, its queue is empty, and nothing
    /// latency-critical used it of late; the `unit` is more than the bulk path takes at once, so that it ends
    /// earlier by the piece, and the piece is there before that.
    pub(super) fn lend(
        &mut self,
        item: &Item,
        unit: ComparisonUnit,
        bulk: &PathView,
        scarce: &PathView,
    ) -> LentQuota {
        if scarce.hints.rate.is_none() {
            return self.lend_unpromised(item, unit, bulk, scarce);
        }
        let (Some(rate), ComparisonUnit::Whole(whole)) = (promised(scarce, bulk), unit) else {
            return LentQuota::None;
        };
        let since = self.wanted.map_or(Duration::MAX, |last| item.now.saturating_sub(last));
        let quiet = since > SPARE_HOLD;
        if !quiet || !is_long(item, unit, bulk) {
            return LentQuota::None;
        }
        let around = scarce.overhead + item.header;
        let burst = usize::try_from(rate.bytes_in(BURST)).unwrap_or(usize::MAX);
        let most = burst.min(scarce.datagram_size).saturating_sub(around).min(item.bytes);
        let in_time =
            || PathEstimate::of(0, scarce, most).arrival <= PathEstimate::of_whole(0, bulk, whole).arrival;
        if most < LEAST_LENT || !in_time() {
            return LentQuota::None;
        }
        let bytes = scarce.send_allowance.saturating_sub(around).min(most);
        let now = nanos(item.now);
        let paid = if self.path == Some(scarce.id) { self.lent_until.saturating_sub(now) } else { 0 };
        let wait = paid.max(transmission(scarce.backlog, Some(rate)));
        if wait > 0 || bytes < LEAST_LENT {
            // Without room the window waits for acknowledgements, or the pacer is ahead of the empty queue: not for long.
            return LentQuota::In(Duration::from_nanos(wait).max(BURST / 4));
        }
        self.path = Some(scarce.id);
        let share = if since > CALM { 1 } else { LENT_SHARE };
        // What is lent of a whole rate has to leave room for all headers, or a queue would grow.
        let whole = bytes + around + scarce.lower_headers;
        self.lent_until = now + nanos(rate.transmission_time(whole)) * share;
        LentQuota::Now(bytes)
    }
}

impl SpareCapacity {
    /// Returns the part of `item` that may go on a path whose rate nobody promised, so that it was measured, and may be
    /// greater: what is lent finds that out.
    ///
    /// The scarcer the path, the longer it is left alone after something latency-critical used it, and the less may be in
    /// flight there. A path that is not quicker than the `bulk` path, or not narrower, takes all that arrives in time. Of a
    /// unit that the bulk path takes at once a part goes there only if the bulk path is spared more time than that costs.
    fn lend_unpromised(
        &self,
        item: &Item,
        unit: ComparisonUnit,
        bulk: &PathView,
        scarce: &PathView,
    ) -> LentQuota {
        let (Some(rate), ComparisonUnit::Whole(whole)) = (scarce.rate, unit) else { return LentQuota::None };
        let is_free = price(scarce) <= price(bulk) && !is_shared(scarce);
        let is_worth_it = || is_long(item, unit, bulk) || relieves(item, bulk, scarce);
        if !is_free || !scarce.can_send() || !is_worth_it() {
            return LentQuota::None;
        }
        let scarcity = scarcity(scarce, bulk);
        let since = self.wanted.map_or(u64::MAX, |last| nanos(item.now.saturating_sub(last)));
        // A window grows, so that a rate that is known says better than it how long the whole takes.
        let [by_window, by_rate] = [PathEstimate::of_whole(0, bulk, whole), PathEstimate::of(0, bulk, whole)]
            .map(|whole| whole.arrival);
        let soon = if bulk.rate.is_some() { by_rate.min(by_window) } else { by_window };
        let in_time = PathEstimate::of(0, scarce, item.bytes).arrival <= soon;
        if since <= nanos(SPARE_HOLD) * scarcity / WHOLE || !in_time {
            return LentQuota::None;
        }
        // Where nothing is scarce the division says for ever.
        let queue = (nanos(LENT_QUEUE) * WHOLE).checked_div(scarcity).unwrap_or(NEVER);
        let carried = rate.bytes_in(scarce.rtt.minimum.saturating_add(Duration::from_nanos(queue)));
        let most = usize::try_from(carried).unwrap_or(usize::MAX).saturating_add(scarce.datagram_size);
        if scarce.in_flight.saturating_add(item.bytes) > most {
            return LentQuota::In(rate.transmission_time(scarce.datagram_size).max(BURST / 4));
        }
        LentQuota::Now(item.bytes)
    }
}

/// The share of a scarce path that bulk may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LentQuota {
    /// Nothing.
    None,
    /// Nothing yet: it may ask again after this time.
    In(Duration),
    /// This many bytes.
    Now(usize),
}

/// The rate that was promised to this connection on `scarce`, if it may be used up.
fn promised(scarce: &PathView, bulk: &PathView) -> Option<Bandwidth> {
    scarce.hints.rate.filter(|_| price(scarce) <= price(bulk) && !is_shared(scarce))
}

/// Returns true if the `bulk` path is busy with the item for longer than its weighted transmission cost on `scarce`.
fn relieves(item: &Item, bulk: &PathView, scarce: &PathView) -> bool {
    let weight = ALPHA * narrowness(scarce, bulk) / WHOLE;
    let cost = PathEstimate::of(0, scarce, item.bytes).price(weight);
    item.content.is_divisible() && cost < transmission(item.bytes, bulk.rate)
}

/// The hinted price of a byte.
fn price(path: &PathView) -> u64 {
    path.hints.price_per_byte.unwrap_or(0)
}

/// Returns true if others are known to use the channel.
const fn is_shared(path: &PathView) -> bool {
    matches!(path.hints.shared, Sharing::Shared | Sharing::Endpoint)
}

/// Returns true if `item` belongs to more than the bulk path takes at once.
pub(super) fn is_long(item: &Item, unit: ComparisonUnit, bulk: &PathView) -> bool {
    let ComparisonUnit::Whole(whole) = unit else { return false };
    matches!(item.content, Content::Stream { .. }) && whole > available(bulk)
}
