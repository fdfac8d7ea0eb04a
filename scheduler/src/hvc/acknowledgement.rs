//! Acknowledgements: on the low-latency path within a budget, otherwise on their own.

use std::time::Duration;

use super::cost::{PathEstimate, nanos, transmission};
use super::tuning::{ACK_DEPTH, ACK_SHARE, ACK_SHARE_OF_MANY, ALPHA, ASSUMED_RATE};
use crate::usable::named;
use crate::{Item, PathId, PathSet, PathView, proven};

/// The budget of acknowledgements: a token bucket, kept as the time until which it is paid out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Budget {
    path: Option<PathId>,
    spent_until: u64,
}

impl Budget {
    /// Takes the time of `bytes` at the path's share, if there is enough left.
    fn take(&mut self, path: &PathView, bytes: usize, now: Duration) -> bool {
        let now = nanos(now);
        if self.path != Some(path.id) {
            *self = Self { path: Some(path.id), spent_until: now };
        }
        if self.spent_until > now + ACK_DEPTH {
            return false;
        }
        let rate = path.rate.or(Some(ASSUMED_RATE));
        let share = if path.others.is_some() { ACK_SHARE_OF_MANY } else { ACK_SHARE };
        // It may travel in a packet of its own.
        let around = path.overhead + path.lower_headers;
        let cost = transmission(bytes.saturating_add(around), rate) * share;
        self.spent_until = self.spent_until.max(now) + cost;
        true
    }

    /// Forgets what was spent on a path that is gone.
    pub(super) fn forget(&mut self, path: PathId) {
        if self.path == Some(path) {
            *self = Self::default();
        }
    }

    /// The path for an acknowledgement of path `of`; `None` only if `usable` is empty.
    ///
    /// Its own path, unless another has room, arrives earlier by more than α times its transmission cost (so it is neither
    /// slower nor queueing), is proven, and has budget left. If its own path is not usable: the earliest.
    pub(super) fn path<'a>(
        &mut self,
        item: &Item,
        of: PathId,
        paths: &'a [PathView],
        usable: PathSet,
    ) -> Option<&'a PathView> {
        let proven = proven(paths, usable);
        let Some(own) = named(paths, usable, of) else {
            return earliest(item, paths, proven.iter()).map(|estimate| &paths[estimate.index]);
        };
        let others = proven.iter().filter(|&index| paths[index].id != of && paths[index].can_send());
        let Some(low) = earliest(item, paths, others) else { return Some(own) };
        let other = &paths[low.index];
        let gains = low.arrival + low.price(ALPHA) < at_once(0, own, item.bytes).arrival;
        if gains && self.take(other, item.bytes, item.now) { Some(other) } else { Some(own) }
    }
}

/// The estimate that arrives first; the first of equals.
fn earliest(item: &Item, paths: &[PathView], indices: impl Iterator<Item = usize>) -> Option<PathEstimate> {
    indices.map(|index| at_once(index, &paths[index], item.bytes)).min_by_key(|estimate| estimate.arrival)
}

/// The estimate of an acknowledgement, which does not wait for the congestion window (RFC 9002 §7).
fn at_once(index: usize, path: &PathView, bytes: usize) -> PathEstimate {
    let cost = transmission(path.backlog.saturating_add(bytes), path.rate);
    PathEstimate { index, arrival: nanos(path.delay) + cost, cost }
}
