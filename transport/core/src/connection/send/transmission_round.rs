//! A transmission round: one turn over what wants to be sent: snapshots of the paths, and the packets that are built.

use crate::PathId;
use crate::connection::send::packet_builder::PacketBuilder;
use crate::time::Instant;
use hvq_scheduler::{Bandwidth, Content, Item, PathSet, PathState, PathView, proven, usable};
use smallvec::SmallVec;
use std::time::Duration;

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
    pub views: SmallVec<[PathView; 2]>,
    /// The paths that a policy may name: the silent ones only if no other is there.
    pub usable: PathSet,
    /// Bytes of the largest frame that a packet of any of them holds.
    pub largest_frame: usize,
    /// The packet builders, one for each.
    pub builders: SmallVec<[PacketBuilder; 2]>,
    /// Packets sealed.
    pub sealed: usize,
    /// Bytes of them.
    pub sealed_bytes: usize,
    /// True if anything was placed.
    pub placed: bool,
}

impl TransmissionRound {
    /// A round at `now` over `views`.
    pub fn new(views: SmallVec<[PathView; 2]>, now: Instant) -> Self {
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

    /// The path of an open packet with room for `bytes` that takes along what a policy placed on path `index`: that path itself, or
    /// a proven one of the same kind. The scarcer of two paths never stands in for the other.
    pub fn leaving_like(&self, index: usize, bytes: usize) -> Option<usize> {
        let leaves = |index: &usize| {
            let builder = self.builders.get(*index);
            builder.is_some_and(|builder| builder.open.is_some() && builder.room() >= bytes)
        };
        let chosen = self.views.get(index)?;
        let is_like = |other: &usize| self.views.get(*other).is_some_and(|other| stands_in(other, chosen));
        Some(index).filter(leaves).or_else(|| {
            proven(&self.views, self.usable)
                .iter()
                .filter(|other| *other != index)
                .filter(is_like)
                .find(leaves)
        })
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

/// Returns true if what would go on `chosen` may as well ride on `other`: links of one kind, whose smallest round trips and rates are
/// within a quarter of each other, and at no price, with no more loss and no later by more than a quarter now.
fn stands_in(other: &PathView, chosen: &PathView) -> bool {
    let arrival = |path: &PathView| {
        let queue = path.rate.map_or(Duration::ZERO, |rate| rate.transmission_time(path.backlog));
        path.delay.saturating_add(queue)
    };
    let is_within = |one: Duration, than: Duration| !one.is_zero() && one <= than.saturating_add(than / 4);
    let (own, its) = (other.rtt.minimum, chosen.rtt.minimum);
    let rates = (other.rate.map(Bandwidth::bits_per_second), chosen.rate.map(Bandwidth::bits_per_second));
    let is_as_wide = match rates {
        (Some(other), Some(chosen)) => other >= chosen - chosen / 4,
        (other, chosen) => other.is_none() && chosen.is_none(),
    };
    is_as_wide
        && is_within(own, its)
        && is_within(its, own)
        && is_within(arrival(other), arrival(chosen))
        && other.hints.price_per_byte <= chosen.hints.price_per_byte
        && other.loss <= chosen.loss
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

#[cfg(test)]
mod tests {
    use super::*;
    use hvq_scheduler::{PerMille, Rtt};

    fn path(mbit: Option<u64>, round_trip: u64) -> PathView {
        let round_trip = Duration::from_millis(round_trip);
        let rtt = Rtt { minimum: round_trip, ..Rtt::ZERO };
        let (rate, delay) = (mbit.map(Bandwidth::from_mbit), round_trip / 2);
        PathView { rate, delay, rtt, ..PathView::new(PathId::ZERO) }
    }

    #[test]
    fn a_link_of_the_same_kind_stands_in_for_another() {
        for (other, chosen, stands) in [
            (path(Some(50), 20), path(Some(50), 20), true),
            (path(Some(40), 25), path(Some(50), 20), true),
            (path(None, 20), path(None, 25), true),
            (path(None, 0), path(None, 0), false),
            (path(Some(50), 26), path(Some(50), 20), false),
            (path(Some(50), 20), path(Some(50), 26), false),
            (path(Some(37), 20), path(Some(50), 20), false),
            (path(Some(2), 5), path(Some(60), 50), false),
            (path(Some(60), 50), path(Some(2), 5), false),
            (path(None, 20), path(Some(60), 20), false),
            (path(Some(60), 20), path(None, 20), false),
        ] {
            assert_eq!(stands_in(&other, &chosen), stands, "{other:?} for {chosen:?}");
        }
    }

    #[test]
    fn a_path_that_queues_costs_or_loses_stands_in_for_none_that_does_not() {
        let plain = path(Some(8), 20);
        let queueing = PathView { backlog: 6_000, ..plain };
        let late = PathView { delay: plain.delay * 2, ..plain };
        let mut dear = plain;
        dear.hints.price_per_byte = Some(1);
        let lossy = PathView { loss: PerMille::of(1, 100), ..plain };
        for worse in [queueing, late, dear, lossy] {
            assert!(!stands_in(&worse, &plain) && stands_in(&plain, &worse), "{worse:?}");
        }
    }
}
