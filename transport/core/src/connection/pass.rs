//! One pass over what wants to be sent: snapshots of the paths, and the lanes that fill up.

use crate::PathId;
use crate::connection::lane::{Lane, TAG};
use crate::time::Instant;
use hvq_scheduler::{PathSet, PathView};
use smallvec::SmallVec;

/// Packets that one pass seals at most, so that input is read between passes.
const PACKET_BUDGET: usize = 40;
/// Bytes after which a pass ends: they leave while they are in the processor's cache. Only paths that carry datagrams of many
/// kilobytes come to it.
const BYTE_BUDGET: usize = 128 << 10;
/// A STREAM frame smaller than this is not worth starting at the end of a packet, unless it is all there is.
pub const LEAST_ROOM: usize = 32;

/// Snapshots and lanes of one pass. Index `i` of both is the same path.
pub struct Pass {
    /// Now.
    pub now: Instant,
    /// Paths that may send, as the scheduler sees them.
    pub views: SmallVec<[PathView; 4]>,
    /// What is being built for each.
    pub lanes: SmallVec<[Lane; 4]>,
    /// Packets sealed.
    pub sealed: usize,
    /// Bytes of them.
    pub sealed_bytes: usize,
    /// Whether anything was placed.
    pub placed: bool,
}

impl Pass {
    /// A pass at `now` over `views`.
    pub fn new(views: SmallVec<[PathView; 4]>, now: Instant) -> Self {
        let lanes = views.iter().map(|view| Lane::new(view.id, view.datagram_size)).collect();
        Self { now, views, lanes, sealed: 0, sealed_bytes: 0, placed: false }
    }

    /// The index of `path`, if it may send.
    pub fn index(&self, path: PathId) -> Option<usize> {
        self.views.iter().position(|view| view.id == path)
    }

    /// Whether the pass may go on.
    pub fn has_budget(&self) -> bool {
        self.sealed < PACKET_BUDGET && self.sealed_bytes < BYTE_BUDGET
    }

    /// Whether any path can take `bytes` of congestion-controlled content.
    pub fn has_room(&self, bytes: usize) -> bool {
        (0..self.views.len()).any(|index| self.can_take(index, bytes))
    }

    /// The paths that can take `bytes` of congestion-controlled content, by index.
    #[inline]
    pub fn able(&self, bytes: usize) -> PathSet {
        let mut able = PathSet::EMPTY;
        for index in 0..self.views.len() {
            if self.can_take(index, bytes) {
                able.insert(index);
            }
        }
        able
    }

    /// Whether path `index` can take `bytes` of congestion-controlled content, in its open packet or a new one.
    pub fn can_take(&self, index: usize, bytes: usize) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9221#section-5.4
        //# The sender MUST either delay sending the frame until the controller allows it or drop the frame
        //# without sending it (at which point it MAY notify the application)
        let (Some(view), Some(lane)) = (self.views.get(index), self.lanes.get(index)) else { return false };
        let overhead = TAG + 25;
        let used = lane.used();
        if used > 0 && lane.room() >= bytes.min(LEAST_ROOM) {
            return used + bytes.min(lane.room()) <= view.room;
        }
        // Full datagrams while others are in flight; a smaller one only if the item needs no more.
        let need = (bytes + overhead).min(view.datagram_size);
        view.room >= used + need
    }
}
