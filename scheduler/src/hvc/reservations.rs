//! Reservations: data that was told to wait for a path, behind which stands whoever asks later at the same moment.

use std::time::Duration;

use super::cost::{NEVER, nanos, transmission};
use crate::{PathId, PathView};

/// Paths that are remembered: of more the reservations are forgotten, which is what no policy but this knows anyway.
const SLOTS: usize = 4;

/// Bytes that wait for each path, as the answers of one moment have it.
///
/// The transport asks about everything that waits, in order, whenever something changed. Each item that is told to wait
/// for a path takes the place there that the next one would count on: were that not so, all of them would wait for one
/// place, and all but one again for the next, for longer than another path would have taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reservations {
    at: Duration,
    bytes: [(PathId, usize); SLOTS],
    used: usize,
}

impl Reservations {
    /// `bytes` wait for `path` from `now` on.
    pub(super) fn add(&mut self, path: PathId, bytes: usize, now: Duration) {
        if self.at != now {
            *self = Self { at: now, ..Self::default() };
        }
        if let Some(known) = self.bytes[..self.used].iter_mut().find(|known| known.0 == path) {
            known.1 = known.1.saturating_add(bytes);
        } else if self.used < SLOTS {
            self.bytes[self.used] = (path, bytes);
            self.used += 1;
        }
    }

    /// Bytes that wait for `path` at `now`.
    pub(super) fn of(&self, path: PathId, now: Duration) -> usize {
        if self.at != now {
            return 0;
        }
        let known = self.bytes[..self.used].iter().find(|known| known.0 == path);
        known.map_or(0, |known| known.1)
    }

    /// `path` as an item finds it that stands behind all of them; `None` if there are none.
    pub(super) fn behind(&self, path: &PathView, now: Duration) -> Option<PathView> {
        let bytes = self.of(path.id, now);
        if bytes == 0 {
            return None;
        }
        let sent = match path.rate {
            Some(_) => transmission(bytes, path.rate),
            // As far as is known the window is what limits the path.
            None => {
                nanos(path.rtt.smoothed).saturating_mul(bytes as u64)
                    / path.window.max(path.datagram_size).max(1) as u64
            }
        };
        let sent = Duration::from_nanos(sent.min(NEVER));
        Some(PathView {
            backlog: path.backlog.saturating_add(bytes),
            next_send: path.next_send.saturating_add(sent),
            ..*path
        })
    }
}
