//! The doubt that a silent path casts on the others: small messages go on all of them for a while.

use std::time::Duration;

use super::cost::nanos;
use super::tuning::{DOUBTED_COPIES, DOUBTED_ROUND_TRIPS, LEAST_DOUBT, LONGEST_DOUBT};
use crate::{Content, History, Item, PathSet, PathState, PathView, Placement, usable};

/// The time from which a path is silent to the time by which the others have shown that they are not.
///
/// A path also falls silent when the acknowledgements of what it carried come back over another one, which is dead. Then the
/// dead path is the one that is left, until its own probe timeout tells. While that may be so, messages of streams that fit into a
/// packet go on every path that was ever validated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubt {
    /// The end of the doubt, in nanoseconds.
    until: u64,
    /// The number of silent paths that were last seen, of [`PathSet::CAPACITY`] at most.
    silent: u8,
    /// The items that were copied in it.
    copied: u8,
}

impl Doubt {
    /// Takes note of the states of `paths` at `now`.
    pub(super) fn note(&mut self, paths: &[PathView], now: Duration) {
        let silent = paths.iter().filter(|path| path.state == PathState::Silent).count() as u8;
        if silent > self.silent {
            let slowest = paths.iter().map(|path| path.rtt.smoothed).max().unwrap_or_default();
            let length = slowest.saturating_mul(DOUBTED_ROUND_TRIPS).clamp(LEAST_DOUBT, LONGEST_DOUBT);
            *self = Self { silent, until: nanos(now.saturating_add(length)), copied: 0 };
        }
        self.silent = silent;
    }

    /// `placement` of `item`, or a copy on each validated path with room, if it is small and no path is above doubt.
    pub(super) fn spread(&mut self, item: &Item, paths: &[PathView], placement: Placement) -> Placement {
        if nanos(item.now) >= self.until || self.copied >= DOUBTED_COPIES || !is_small(item) {
            return placement;
        }
        let takes =
            |path: &PathView| path.state != PathState::Unvalidated && path.send_allowance >= item.bytes;
        let each: PathSet = (0..paths.len()).filter(|&index| takes(&paths[index])).collect();
        if each.intersection(usable(paths)).is_empty() {
            return placement;
        }
        self.copied += 1;
        Placement::OnEach(each)
    }
}

/// Returns true if all that stands or falls with the item is in it.
fn is_small(item: &Item) -> bool {
    let is_whole = item.message.is_some_and(|message| message.remaining <= item.bytes);
    item.history == History::Fresh
        && match item.content {
            Content::Stream { .. } => is_whole,
            // A copy of a datagram would reach the application, too (RFC 9221 §5).
            Content::Datagram | Content::Control | Content::Handshake | Content::Acknowledgement { .. } => {
                false
            }
        }
}
