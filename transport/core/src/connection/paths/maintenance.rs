//! Maintenance of paths: what arrives about them, and what is due.

use crate::connection::Connection;
use crate::connection::Peer;
use crate::connection::Role;
use crate::connection::TransportConfig;
use crate::connection::control::ControlFrames;
use crate::connection::events::EventQueue;
use crate::connection::handshake::key_update::TrafficKeys;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::observe::Observer;
use crate::connection::send::scheduler_slot::SchedulerSlot;
use crate::datagram::Datagrams;
use crate::handshake::Handshake;
use crate::path::paths::Paths;
use crate::seed::Randomness;
use crate::stream::Streams;
use crate::time::Instant;
use std::time::Duration;

/// The part of a connection that opens, moves, watches and ends paths.
pub(in crate::connection) struct PathMaintenance<'a> {
    pub role: Role,
    pub config: &'a TransportConfig,
    pub lifecycle: Lifecycle,
    pub handshake: &'a mut Handshake,
    pub keys: &'a mut TrafficKeys,
    pub peer: &'a Peer,
    pub paths: &'a mut Paths,
    pub streams: &'a mut Streams,
    pub datagrams: &'a mut Datagrams,
    pub control: &'a mut ControlFrames,
    pub scheduler: &'a mut SchedulerSlot,
    pub observer: &'a mut Observer,
    pub events: &'a mut EventQueue,
    pub rng: &'a mut Randomness,
}

impl Connection {
    /// The part that opens, moves, watches and ends paths.
    pub(in crate::connection) fn path_maintenance(&mut self) -> PathMaintenance<'_> {
        PathMaintenance {
            role: self.role,
            config: &self.config,
            lifecycle: self.lifecycle,
            handshake: &mut self.handshake,
            keys: &mut self.keys,
            peer: &self.peer,
            paths: &mut self.paths,
            streams: &mut self.streams,
            datagrams: &mut self.datagrams,
            control: &mut self.control,
            scheduler: &mut self.scheduler,
            observer: &mut self.observer,
            events: &mut self.events,
            rng: &mut self.rng,
        }
    }
}

impl PathMaintenance<'_> {
    /// Returns true if frames about several paths may be sent (RFC 10069 §2).
    pub fn is_multipath(&self) -> bool {
        self.lifecycle.is_connected() && self.paths.limits.is_negotiated()
    }

    /// Asks paths that were silent for as long as they may be whether they still answer.
    pub(in crate::connection) fn keep_paths_alive(&mut self, now: Instant) {
        if self.lifecycle.is_connected() {
            let most = longest_silence(self.config, self.peer);
            self.paths.open_mut().for_each(|path| path.keep_alive(most, now));
        }
    }
}

/// The longest silence of a path that endangers no connection: half of what ends it (RFC 9000 §10.1.2).
pub(in crate::connection) fn longest_silence(config: &TransportConfig, peer: &Peer) -> Duration {
    let ends = [config.idle_timeout, peer.parameters().max_idle_timeout];
    ends.into_iter().filter(|timeout| !timeout.is_zero()).min().map_or(Duration::MAX, |least| least / 2)
}
