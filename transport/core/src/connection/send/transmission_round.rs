//! A transmission round: one turn over what wants to be sent: snapshots of the paths, and the packets that are built.

use crate::PathId;
use crate::connection::send::packet_builder::PacketBuilder;
use crate::time::Instant;
use hvq_scheduler::{Content, Item, PathSet, PathState, PathView, proven, usable};
use smallvec::SmallVec;

/// Packets that one round seals at most, so that input is read between rounds.
const PACKET_BUDGET: usize = 40;
/// Bytes after which a round ends: they leave while they are in the processor's cache. Only paths that carry datagrams of many
/// kilobytes come to it.
const BYTE_BUDGET: usize = 128 << 10;
/// A STREAM frame smaller than this is not worth starting at the end of a packet, unless it is all there is.
pub const LEAST_ROOM: usize = 32;

/// Snapshots and builders of one round. Index `i` of both is the same path.
pub struct TransmissionRound {
    /// Now.
    pub now: Instant,
    /// Paths that may send, as the scheduler sees them.
    pub views: SmallVec<[PathView; 4]>,
    /// The paths that a policy may name: the silent ones only if no other is there.
    pub usable: PathSet,
    /// Bytes of the largest frame that a packet of any of them holds.
    pub largest_frame: usize,
    /// The packet builders, one for each.
    pub builders: SmallVec<[PacketBuilder; 4]>,
    /// Packets sealed.
    pub sealed: usize,
    /// Bytes of them.
    pub sealed_bytes: usize,
    /// True if anything was placed.
    pub placed: bool,
}

impl TransmissionRound {
    /// A round at `now` over `views`.
    pub fn new(views: SmallVec<[PathView; 4]>, now: Instant) -> Self {
        let mut builders = SmallVec::new();
        // One after the other: faster than to collect them, and nearly always there is one.
        views.iter().for_each(|view| builders.push(PacketBuilder::new(view.id, view.datagram_size)));
        let usable = usable(&views);
        let largest_frame = views.iter().map(|view| view.datagram_size.saturating_sub(view.overhead)).max();
        let largest_frame = largest_frame.unwrap_or(0);
        Self { now, views, usable, largest_frame, builders, sealed: 0, sealed_bytes: 0, placed: false }
    }

    /// The index of `path`, if it may send.
    pub fn index(&self, path: PathId) -> Option<usize> {
        self.views.iter().position(|view| view.id == path)
    }

    /// Returns true if a policy may name path `index` for `content`: a usable one, and for an acknowledgement of
    /// another path one that is known to reach the peer.
    pub fn may_name(&self, index: usize, content: Content) -> bool {
        let Some(view) = self.views.get(index).filter(|_| self.usable.contains(index)) else { return false };
        match content {
            Content::Acknowledgement { of } => of == view.id || view.state != PathState::Unvalidated,
            _ => true,
        }
    }

    /// Returns true if a policy may name path `index` for one of several copies of `content`: a usable one, or one that was validated,
    /// though it is silent or a backup.
    pub fn may_copy(&self, index: usize, content: Content) -> bool {
        let is_validated = self.views.get(index).is_some_and(|view| view.state != PathState::Unvalidated);
        self.may_name(index, content) || is_validated
    }

    /// The path for an acknowledgement of path `of` that the policy does not place: its own if that is usable and known to
    /// reach the peer, else the fastest that is.
    pub fn way_back(&self, of: PathId) -> Option<usize> {
        let proven = proven(&self.views, self.usable);
        let own = self.index(of).filter(|index| proven.contains(*index));
        own.or_else(|| proven.iter().min_by_key(|index| self.views.get(*index).map(|view| view.rtt.smoothed)))
    }

    /// Returns true if the round may go on.
    pub fn has_budget(&self) -> bool {
        self.sealed < PACKET_BUDGET && self.sealed_bytes < BYTE_BUDGET
    }

    /// Returns true if any path can take `bytes` of congestion-controlled content.
    pub fn has_room(&self, bytes: usize) -> bool {
        (0..self.views.len()).any(|index| self.can_take(index, bytes))
    }

    /// The paths that can take `bytes` of congestion-controlled content, by index.
    #[inline]
    pub fn able(&self, bytes: usize) -> PathSet {
        if let [_] = self.views.as_slice() {
            return if self.can_take(0, bytes) { PathSet::first(1) } else { PathSet::EMPTY };
        }
        let mut able = PathSet::EMPTY;
        for index in 0..self.views.len() {
            if self.can_take(index, bytes) {
                able.insert(index);
            }
        }
        able
    }

    /// The paths whose packets hold all of `item`, by index: a DATAGRAM frame is never divided (RFC 9221 §5).
    pub fn wide(&self, item: &Item) -> PathSet {
        if item.content != Content::Datagram {
            return PathSet::first(self.views.len());
        }
        let frame = item.bytes + item.header;
        let holds = |view: &PathView| view.datagram_size.saturating_sub(view.overhead) >= frame;
        self.views.iter().enumerate().filter(|(_, view)| holds(view)).map(|(index, _)| index).collect()
    }

    /// Returns true if one of the paths that are to be used holds all of `item` in a packet. A path that is not must
    /// not carry it, only because it is wider: a backup, say, beside an available one (RFC 10069 §3.3).
    pub fn carries(&self, item: &Item) -> bool {
        let Some(foremost) = foremost(self.views.iter().map(|view| view.state)) else { return false };
        let wide = self.wide(item);
        wide.iter().any(|index| self.views.get(index).is_some_and(|view| view.state == foremost))
    }

    /// Returns true if path `index` can take `bytes` of congestion-controlled content, in its open packet or a new one.
    pub fn can_take(&self, index: usize, bytes: usize) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9221#section-5.4
        //# The sender MUST either delay sending the frame until the controller allows it or drop the frame
        //# without sending it (at which point it MAY notify the application)
        let (Some(view), Some(builder)) = (self.views.get(index), self.builders.get(index)) else {
            return false;
        };
        let used = builder.used();
        if used > 0 && builder.room() >= bytes.min(LEAST_ROOM) {
            return used + bytes.min(builder.room()) <= view.send_allowance;
        }
        // Full datagrams while others are in flight; a smaller one only if the item needs no more.
        let need = (bytes + view.overhead).min(view.datagram_size);
        view.send_allowance >= used + need
    }
}

/// Returns the state of the paths that are to be used first, of `states`.
pub fn foremost(states: impl Iterator<Item = PathState>) -> Option<PathState> {
    states.min_by_key(|state| match state {
        PathState::Available => 0,
        PathState::Backup => 1,
        PathState::Unvalidated => 2,
        PathState::Silent => 3,
    })
}
