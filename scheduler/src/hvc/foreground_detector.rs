//! Tells whether a connection serves the foreground, or the background alone.

use std::time::Duration;

use super::is_data;
use super::tuning::{BACKGROUND, FOREGROUND_PRESENT};
use crate::{Item, PathSet, PathView, Sharing};

/// The times at which data of either kind was last asked about.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ForegroundDetector {
    foreground: Option<Duration>,
    background: Option<Duration>,
}

impl ForegroundDetector {
    /// Takes note of `item`, if it is data.
    pub(super) fn note(&mut self, item: &Item) {
        if is_background(item) {
            self.background = Some(item.now);
        } else if is_data(item) {
            self.foreground = Some(item.now);
        }
    }

    /// Returns true if there was background data and of late no other: acknowledgements are background, too, then.
    pub(super) fn is_on_background(&self, now: Duration) -> bool {
        let present = self.foreground.is_some_and(|last| now.saturating_sub(last) <= FOREGROUND_PRESENT);
        self.background.is_some() && !present
    }
}

/// Returns those of the `scarce` paths that are closed to `item`: it is background data, and others send there, whose
/// foreground nobody here can see.
pub(super) fn closed(item: &Item, paths: &[PathView], scarce: PathSet) -> PathSet {
    if !is_background(item) {
        return PathSet::EMPTY;
    }
    let is_shared = |path: &PathView| matches!(path.hints.shared, Sharing::Shared | Sharing::Endpoint);
    scarce.iter().filter(|&index| is_shared(&paths[index])).collect()
}

/// Returns true if `item` is data that nobody waits for.
pub(super) fn is_background(item: &Item) -> bool {
    is_data(item) && item.priority.urgency >= BACKGROUND
}
