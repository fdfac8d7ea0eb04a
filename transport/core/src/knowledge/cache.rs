//! An endpoint's knowledge of paths, and the account of what its connections have in flight on each.

use super::received::{Arrival, ReceivedRates};
use super::{PathKey, PathKnowledge};
use crate::Bandwidth;
use crate::hashing::KeyedMap;
use crate::time::Instant;
use hvq_scheduler::Hints;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Paths that are remembered at most; the one that was of no use for the longest gives way.
const CAPACITY: usize = 4096;

/// Knowledge of the paths of an endpoint's connections, for later ones: of 4096 paths at most, of which the least recently used
/// gives way.
///
/// Its times are dated as tokens are, by [`EndpointConfig::set_epoch`](crate::endpoint::EndpointConfig::set_epoch), so that they mean
/// something to another process.
#[derive(Debug, Default)]
pub struct Knowledge {
    known: KeyedMap<PathKey, Entry>,
    /// The keys by their latest use.
    pub(super) uses: BTreeMap<u64, PathKey>,
    next_use: u64,
    /// Bytes that open paths have in flight or may at once, for those that have any.
    pub(super) in_flight: KeyedMap<PathKey, u64>,
    received: ReceivedRates,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    knowledge: PathKnowledge,
    used: u64,
}

/// The part of a path in the account of its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    /// The key.
    pub key: PathKey,
    /// Bytes that were entered.
    pub bytes: u64,
}

impl Knowledge {
    /// The number of paths that are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Returns what is known at `now` of the path `key`, if it is no older than `lifetime`; what is older is forgotten.
    pub fn get(&mut self, key: &PathKey, lifetime: Duration, now: Instant) -> Option<PathKnowledge> {
        let knowledge = self.known.get(key)?.knowledge;
        if now.since(knowledge.measured_at) > lifetime {
            self.forget(key);
            return None;
        }
        self.put(key, knowledge);
        Some(knowledge)
    }

    /// A connection measured `newer` on the path `key`, where older measurements count for `lifetime`.
    pub fn learn(&mut self, key: &PathKey, newer: PathKnowledge, lifetime: Duration) {
        let known = self.known.get(key).map(|entry| entry.knowledge);
        let known = known.filter(|known| newer.measured_at.since(known.measured_at) <= lifetime);
        self.put(key, known.map_or(newer, |known| known.updated(newer)));
    }

    /// Nothing that is known of the path `key` holds.
    pub fn forget(&mut self, key: &PathKey) {
        if let Some(entry) = self.known.remove(key) {
            self.uses.remove(&entry.used);
        }
    }

    pub(super) fn put(&mut self, key: &PathKey, knowledge: PathKnowledge) {
        self.forget(key);
        if self.known.len() >= CAPACITY
            && let Some((_, oldest)) = self.uses.pop_first()
        {
            self.known.remove(&oldest);
        }
        let used = self.next_use;
        self.next_use += 1;
        self.uses.insert(used, key.clone());
        self.known.insert(key.clone(), Entry { knowledge, used });
    }

    /// Every path that is known, the latest used last.
    pub(super) fn entries(&self) -> impl DoubleEndedIterator<Item = (&PathKey, &PathKnowledge)> {
        self.uses.values().filter_map(|key| Some((key, &self.known.get(key)?.knowledge)))
    }

    /// A connection begins, or has a path, on the channel of `local`, of which these hints are known.
    pub(crate) fn watch(&mut self, local: SocketAddr, hints: &Hints) {
        self.received.watch(local, hints);
    }

    /// A datagram arrived. Returns true if another rate is believed of its channel from now on.
    pub(crate) fn on_arrival(&mut self, arrival: Arrival, now: Instant) -> bool {
        self.received.on_arrival(arrival, now)
    }

    /// Returns the rate at which packets arrive at `local`, if that refutes what was promised of the channel.
    pub(crate) fn received_rate(&self, local: SocketAddr) -> Option<Bandwidth> {
        self.received.shown(local)
    }

    /// Bytes that open paths with `key` have in flight, but for the `own` of one of them.
    pub(crate) fn in_flight_beside(&self, key: &PathKey, own: u64) -> u64 {
        self.in_flight.get(key).copied().unwrap_or(0).saturating_sub(own)
    }

    /// The path of `claim` has `bytes` in flight, or may at once.
    pub(crate) fn enter(&mut self, claim: &mut Claim, bytes: u64) {
        if bytes == claim.bytes {
            return;
        }
        let total = self.in_flight_beside(&claim.key, claim.bytes).saturating_add(bytes);
        claim.bytes = bytes;
        if total == 0 {
            self.in_flight.remove(&claim.key);
        } else {
            self.in_flight.insert(claim.key.clone(), total);
        }
    }
}
