//! Retirements of the peer's connection IDs that it has not confirmed, in bounded number.

use crate::PathId;
use crate::wire::connection_id::ConnectionId;
use std::collections::{BTreeMap, BTreeSet};

/// Retirements of one path at most, in multiples of the connection ID limit. RFC 9000 §5.1.2 asks for at least 2.
const PER_LIMIT: usize = 10;
/// Retirements of all paths at most.
const MAX_TOTAL: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct Retirements {
    most_per_path: usize,
    /// All that are not acknowledged.
    unconfirmed: BTreeMap<(PathId, u64), ConnectionId>,
    /// The retirements of these that are to be sent.
    queued: BTreeSet<(PathId, u64)>,
}

impl Retirements {
    /// For an announced `active_connection_id_limit` of `limit`.
    pub(super) fn new(limit: usize) -> Self {
        let most_per_path = limit.saturating_mul(PER_LIMIT).min(MAX_TOTAL);
        Self { most_per_path, unconfirmed: BTreeMap::new(), queued: BTreeSet::new() }
    }

    pub(super) fn add(&mut self, path: PathId, sequence: u64, id: ConnectionId) {
        self.unconfirmed.insert((path, sequence), id);
        self.queued.insert((path, sequence));
    }

    /// Returns true if there are more than are kept, for `path` or in all.
    pub(super) fn exceed_bounds(&self, path: PathId) -> bool {
        self.unconfirmed.len() > MAX_TOTAL
            || self.unconfirmed.range((path, 0)..=(path, u64::MAX)).count() > self.most_per_path
    }

    pub(super) fn id_of(&self, path: PathId, sequence: u64) -> Option<ConnectionId> {
        self.unconfirmed.get(&(path, sequence)).copied()
    }

    /// Returns true if none is to be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    pub(super) fn next(&mut self) -> Option<(PathId, u64)> {
        self.queued.pop_first()
    }

    pub(super) fn on_acknowledged(&mut self, path: PathId, sequence: u64) {
        self.queued.remove(&(path, sequence));
        self.unconfirmed.remove(&(path, sequence));
    }

    /// All that are not acknowledged: connection ID, path and sequence number.
    pub(super) fn unconfirmed(&self) -> impl Iterator<Item = (ConnectionId, PathId, u64)> + '_ {
        self.unconfirmed.iter().map(|((path, sequence), id)| (*id, *path, *sequence))
    }

    pub(super) fn on_lost(&mut self, path: PathId, sequence: u64) {
        if self.unconfirmed.contains_key(&(path, sequence)) {
            self.queued.insert((path, sequence));
        }
    }

    pub(super) fn drop_path(&mut self, path: PathId) {
        self.unconfirmed.retain(|(of, _), _| *of != path);
        self.queued.retain(|(of, _)| *of != path);
    }
}
