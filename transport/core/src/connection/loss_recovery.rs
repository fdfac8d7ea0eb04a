//! Loss recovery: acknowledgements, lost packets and probe timeouts of all packet number spaces (RFC 9002).

use crate::PathId;
use crate::connection::Connection;
use crate::connection::Role;
use crate::connection::events::EventQueue;
use crate::connection::frame_owners::{FrameOwners, frame_owners};
use crate::connection::handshake::key_update::TrafficKeys;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::observe::Observer;
use crate::connection::send::buffer_pool::BufferPool;
use crate::connection::send::long_packets::LEAST_LONG;
use crate::connection::terms::{Terms, terms};
use crate::handshake::Handshake;
use crate::handshake::space::HandshakeSpace;
use crate::handshake::zero_rtt::ZeroRtt;
use crate::path::paths::Paths;
use crate::time::Instant;
use crate::wire::level::Level;
use std::time::Duration;

/// The part of a connection that learns what became of packets.
pub(in crate::connection) struct LossRecovery<'a> {
    pub terms: Terms<'a>,
    pub owners: FrameOwners<'a>,
    pub zero_rtt: &'a mut ZeroRtt,
    pub keys: &'a mut TrafficKeys,
    pub pool: &'a mut BufferPool,
    pub observer: &'a mut Observer,
    pub events: &'a mut EventQueue,
}

impl Connection {
    /// The part that learns what became of packets.
    pub(in crate::connection) fn loss_recovery(&mut self) -> LossRecovery<'_> {
        LossRecovery {
            terms: terms!(self),
            owners: frame_owners!(self),
            zero_rtt: &mut self.zero_rtt,
            keys: &mut self.keys,
            pool: self.queue.pool(),
            observer: &mut self.observer,
            events: &mut self.events,
        }
    }
}

impl LossRecovery<'_> {
    /// Does what is due at `now`.
    pub fn run_timers(&mut self, now: Instant) {
        if self.owners.handshake.existing().next().is_some() {
            self.run_handshake_timers(now);
        }
        for id in self.owners.paths.ids() {
            let Some(path) = self.owners.paths.get(id) else { continue };
            if path.sent.loss_time().is_some_and(|at| at <= now) {
                self.detect_lost(id, now);
            }
            let delay = self.terms.max_ack_delay();
            let due = self.owners.paths.get(id).and_then(|path| path.probe_at(delay));
            if self.may_probe() && due.is_some_and(|at| at <= now) {
                self.probe_path(id, now);
            }
            if let Some(path) = self.owners.paths.get_mut(id) {
                path.expire_size_probe(now);
            }
            self.watch(id, now);
        }
    }

    /// Does what is due at `now` of the packets of the handshake.
    fn run_handshake_timers(&mut self, now: Instant) {
        for level in [Level::Initial, Level::Handshake] {
            let due = self.owners.handshake.space(level).and_then(|space| space.sent.loss_time());
            if due.is_some_and(|at| at <= now) {
                self.detect_long_lost(level, now);
            }
        }
        if handshake_probe_at(self.owners.handshake, self.owners.paths, self.terms.role)
            .is_some_and(|at| at <= now)
        {
            self.probe_handshake(now);
        }
    }

    /// Returns true if the probe timeout of path `id` runs: on the path of the handshake not before that is confirmed,
    /// so that the backoff is the handshake's (RFC 9002 §6.2.1).
    pub(super) fn may_probe(&self) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# An endpoint MUST NOT set its PTO timer for the Application Data packet number space until the
        //# handshake is confirmed
        self.terms.lifecycle == Lifecycle::Confirmed
    }

    fn probe_handshake(&mut self, now: Instant) {
        let Some(path) = self.owners.paths.get_mut(PathId::ZERO) else { return };
        path.on_handshake_timeout();
        let role = self.terms.role;
        let handshake_has_keys =
            self.owners.handshake.space(Level::Handshake).is_some_and(|space| space.has_keys());
        for (level, space) in self.owners.handshake.spaces() {
            if !space.has_keys() {
                continue;
            }
            let in_flight = space.sent.has_ack_eliciting_in_flight();
            //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1
            //# Specifically, the client MUST send an Initial packet in a UDP datagram that contains at least
            //# 1200 bytes if it does not have Handshake keys, and otherwise send a Handshake packet.
            //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2.1
            //# When the PTO fires, the client MUST send a Handshake packet if it has Handshake keys,
            //# otherwise it MUST send an Initial packet in a UDP datagram with a payload of at least 1200
            //# bytes.
            let anti_deadlock = role == Role::Client && (level == Level::Handshake) == handshake_has_keys;
            if in_flight || anti_deadlock {
                space.probe(now);
            }
        }
    }
}

/// Returns the time at which Initial or Handshake packets are probed. A client that may be waiting for a server
/// that is not allowed to send probes even with nothing in flight (RFC 9002 §6.2.2.1).
pub(in crate::connection) fn handshake_probe_at(
    handshake: &Handshake,
    paths: &Paths,
    role: Role,
) -> Option<Instant> {
    let path = paths.get(PathId::ZERO)?;
    let mut base = None;
    //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2.1
    //# If no additional data can be sent, the server's PTO timer MUST NOT be armed until datagrams have been
    //# received from the client
    if handshake.awaits_loss() || path.route.amplification.allowance() < LEAST_LONG {
        return None;
    }
    for space in handshake.existing() {
        if space.sent.has_ack_eliciting_in_flight() {
            //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
            //# When ack-eliciting packets in multiple packet number spaces are in flight, the timer MUST be
            //# set to the earlier value of the Initial and Handshake packet number spaces.
            base = base.into_iter().chain(space.last_eliciting()).min();
        }
    }
    let exists = handshake.existing().any(HandshakeSpace::has_keys);
    //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1
    //# To prevent this deadlock, clients MUST send a packet on a Probe Timeout (PTO); see Section 6.2 of
    //# [QUIC-RECOVERY]
    //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2.1
    //# That is, the client MUST set the PTO timer if the client has not received an acknowledgment for
    //# any of its Handshake packets and the handshake is not confirmed (see Section 4.1.2 of [QUIC-TLS])
    if base.is_none() && role == Role::Client && exists {
        base = handshake.existing().filter_map(HandshakeSpace::last_eliciting).max();
    }
    Some(base? + path.pto().period(path.probe_period(Duration::ZERO)))
}
