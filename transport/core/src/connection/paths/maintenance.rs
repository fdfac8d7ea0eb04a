//! Maintenance of paths: what arrives about them, and what is due.

use crate::connection::Connection;
use crate::connection::Peer;
use crate::connection::TransportConfig;
use crate::connection::events::EventQueue;
use crate::connection::frame_owners::{FrameOwners, frame_owners};
use crate::connection::handshake::key_update::TrafficKeys;
use crate::connection::observe::Observer;
use crate::connection::terms::{Terms, terms};
use crate::path::paths::Paths;
use crate::seed::Randomness;
use crate::time::Instant;
use std::time::Duration;

/// The part of a connection that opens, moves, watches and ends paths.
pub(in crate::connection) struct PathMaintenance<'a> {
    pub terms: Terms<'a>,
    pub owners: FrameOwners<'a>,
    pub keys: &'a mut TrafficKeys,
    pub observer: &'a mut Observer,
    pub events: &'a mut EventQueue,
    pub rng: &'a mut Randomness,
}

impl Connection {
    /// The part that opens, moves, watches and ends paths.
    pub(in crate::connection) fn path_maintenance(&mut self) -> PathMaintenance<'_> {
        PathMaintenance {
            terms: terms!(self),
            owners: frame_owners!(self),
            keys: &mut self.keys,
            observer: &mut self.observer,
            events: &mut self.events,
            rng: &mut self.rng,
        }
    }
}

impl PathMaintenance<'_> {
    /// Returns true if frames about several paths may be sent (RFC 10069 §2).
    pub fn is_multipath(&self) -> bool {
        self.terms.lifecycle.is_connected() && self.owners.paths.limits.is_negotiated()
    }
}

/// Asks paths that were silent for as long as they may be, `most` at the longest, whether they still answer.
#[inline]
pub(in crate::connection) fn keep_paths_alive(paths: &mut Paths, most: Duration, now: Instant) {
    paths.open_mut().for_each(|path| path.keep_alive(most, now));
}

/// The longest silence of a path that endangers no connection: half of what ends it (RFC 9000 §10.1.2).
pub(in crate::connection) fn longest_silence(config: &TransportConfig, peer: &Peer) -> Duration {
    let ends = [config.idle_timeout, peer.parameters().max_idle_timeout];
    ends.into_iter().filter(|timeout| !timeout.is_zero()).min().map_or(Duration::MAX, |least| least / 2)
}
