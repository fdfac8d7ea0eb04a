//! Time passes: each component's deadline, folded into one, and what happens when it is reached.

use crate::PathId;
use crate::connection::lifecycle::{Lifecycle, Milestone};
use crate::connection::send::long_packets::LEAST_LONG;
use crate::connection::{Connection, Event, Role};
use crate::error::ConnectionError;
use crate::time::{Deadline, Instant, TimerReason};
use crate::wire::level::Level;
use std::time::Duration;

impl Connection {
    /// Does everything that is due at `now`.
    pub(super) fn run_timers(&mut self, now: Instant) {
        match self.lifecycle {
            Lifecycle::Closed => return,
            Lifecycle::Closing(until) | Lifecycle::Draining(until) => {
                if until <= now {
                    self.expire();
                }
                return;
            }
            Lifecycle::Handshaking if self.handshake.deadline <= now => {
                return self.end_silently(ConnectionError::HandshakeTimeout);
            }
            Lifecycle::Handshaking | Lifecycle::Connected | Lifecycle::Confirmed => {}
        }
        if self.idle_at().is_some_and(|at| at <= now) {
            return self.end_silently(ConnectionError::IdleTimeout);
        }
        self.run_recovery_timers(now);
        self.keys.expire(now);
        self.expire_zero_rtt(now);
        self.run_path_timers(now);
        self.keep_alive(now);
        self.keep_paths_alive(now);
        self.consider_preferred(now);
    }

    fn run_recovery_timers(&mut self, now: Instant) {
        for level in [Level::Initial, Level::Handshake] {
            let due = self.handshake.space(level).and_then(|space| space.sent.loss_time());
            if due.is_some_and(|at| at <= now) {
                self.detect_long_lost(level, now);
            }
        }
        if self.handshake_probe_at().is_some_and(|at| at <= now) {
            self.probe_handshake(now);
        }
        for id in self.paths.ids() {
            let Some(path) = self.paths.get(id) else { continue };
            if path.sent.loss_time().is_some_and(|at| at <= now) {
                self.detect_lost(id, now);
            }
            let delay = self.peer.max_ack_delay(self.lifecycle);
            let due = self.paths.get(id).and_then(|path| path.probe_at(delay));
            if self.may_probe() && due.is_some_and(|at| at <= now) {
                self.probe_path(id, now);
            }
            if let Some(path) = self.paths.get_mut(id) {
                path.expire_size_probe(now);
            }
            self.watch(id, now);
        }
    }

    /// Returns true if the probe timeout of path `id` runs: on the path of the handshake not before that is confirmed,
    /// so that the backoff is the handshake's (RFC 9002 §6.2.1).
    pub(super) fn may_probe(&self) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# An endpoint MUST NOT set its PTO timer for the Application Data packet number space until the
        //# handshake is confirmed
        self.lifecycle == Lifecycle::Confirmed
    }

    /// Returns the time at which Initial or Handshake packets are probed. A client that may be waiting for a server
    /// that is not allowed to send probes even with nothing in flight (RFC 9002 §6.2.2.1).
    pub(super) fn handshake_probe_at(&self) -> Option<Instant> {
        let path = self.paths.get(PathId::ZERO)?;
        let mut base = None;
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2.1
        //# If no additional data can be sent, the server's PTO timer MUST NOT be armed until datagrams have been
        //# received from the client
        if self.handshake.awaits_loss() || path.route.amplification.allowance() < LEAST_LONG {
            return None;
        }
        for space in self.handshake.existing() {
            if space.sent.has_ack_eliciting_in_flight() {
                //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
                //# When ack-eliciting packets in multiple packet number spaces are in flight, the timer MUST be
                //# set to the earlier value of the Initial and Handshake packet number spaces.
                base = base.into_iter().chain(space.last_eliciting).min();
            }
        }
        let exists = self.handshake.existing().any(|space| space.keys.is_some());
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1
        //# To prevent this deadlock, clients MUST send a packet on a Probe Timeout (PTO); see Section 6.2 of
        //# [QUIC-RECOVERY]
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2.1
        //# That is, the client MUST set the PTO timer if the client has not received an acknowledgment for
        //# any of its Handshake packets and the handshake is not confirmed (see Section 4.1.2 of [QUIC-TLS])
        if base.is_none() && self.role == Role::Client && exists {
            base = self.handshake.existing().filter_map(|space| space.last_eliciting).max();
        }
        Some(base? + path.pto.period(path.probe_period(Duration::ZERO)))
    }

    fn probe_handshake(&mut self, now: Instant) {
        let Some(path) = self.paths.get_mut(PathId::ZERO) else { return };
        path.pto.on_timeout();
        path.route.ecn.on_probe_timeout();
        path.counters.probe_timeouts += 1;
        let role = self.role;
        let handshake_has_keys = self.handshake.handshake.as_ref().is_some_and(|space| space.keys.is_some());
        for (level, space) in self.handshake.spaces() {
            if space.keys.is_none() {
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
                space.probe();
                space.last_eliciting = Some(now);
            }
        }
    }

    /// The effective idle timeout ends the connection at this instant (RFC 9000 §10.1: at least three PTOs).
    fn idle_at(&self) -> Option<Instant> {
        let ours = self.config.idle_timeout;
        let theirs = self.peer.parameters().max_idle_timeout;
        let effective = match (ours.is_zero(), theirs.is_zero()) {
            (true, true) => return None,
            (true, false) => theirs,
            (false, true) => ours,
            (false, false) => ours.min(theirs),
        };
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.1
        //# To avoid excessively small idle timeout periods, endpoints MUST increase the idle timeout period
        //# to be at least three times the current Probe Timeout (PTO)
        Some(
            self.activity.last()
                + effective
                    .max(self.paths.longest_probe_timeout(self.peer.max_ack_delay(self.lifecycle)) * 3),
        )
    }

    fn keep_alive(&mut self, now: Instant) {
        let due = self.activity.keep_alive_at(self.config.keep_alive).is_some_and(|at| at <= now);
        if due && self.lifecycle.is_connected() {
            self.control.push(crate::wire::frame::Frame::Ping, None);
            self.activity.on_keep_alive(now);
        }
    }

    fn expire(&mut self) {
        if self.lifecycle != Lifecycle::Closed {
            self.lifecycle = self.lifecycle.after(Milestone::Expired);
            self.events.push(Event::Forgotten);
        }
    }

    /// Ends the connection without a word to the peer (RFC 9000 §10.1, §10.3.1).
    pub(super) fn end_silently(&mut self, error: ConnectionError) {
        if self.lifecycle.is_open() {
            self.events.push(Event::Closed(error));
        }
        self.queue.clear();
        self.expire();
    }

    /// The earliest deadline of all components.
    pub(super) fn deadline(&self, now: Instant) -> Option<Deadline> {
        let mut earliest: Option<Deadline> = None;
        let mut fold = |at: Option<Instant>, reason: TimerReason| {
            let next = at.map(|at| Deadline::new(at, reason));
            earliest = Deadline::earliest(earliest, next);
        };
        match self.lifecycle {
            Lifecycle::Closed => return None,
            Lifecycle::Closing(until) | Lifecycle::Draining(until) => {
                return Some(Deadline::new(until, TimerReason::Closing));
            }
            Lifecycle::Handshaking => fold(Some(self.handshake.deadline), TimerReason::Handshake),
            Lifecycle::Connected | Lifecycle::Confirmed => {}
        }
        fold(self.idle_at(), TimerReason::Idle);
        fold(self.activity.keep_alive_at(self.config.keep_alive), TimerReason::KeepAlive);
        fold(self.keys.discard_at(), TimerReason::KeyDiscard);
        fold(self.zero_rtt.discard_at, TimerReason::KeyDiscard);
        fold(self.activity.hibernate_at(), TimerReason::Hibernation);
        fold(self.scheduler.wake_at(), TimerReason::Scheduler);
        fold(self.handshake_probe_at(), TimerReason::ProbeTimeout);
        for space in
            [self.handshake.initial.as_ref(), self.handshake.handshake.as_ref()].into_iter().flatten()
        {
            fold(space.sent.loss_time(), TimerReason::LossTime);
            fold(space.received.ack_deadline().filter(|at| *at > now), TimerReason::AckDelay);
        }
        let path_deadline = self.path_deadline(now);
        Deadline::earliest(earliest, path_deadline)
    }

    fn path_deadline(&self, now: Instant) -> Option<Deadline> {
        let mut earliest = self.paths.deadline();
        let max_ack_delay = self.peer.max_ack_delay(self.lifecycle);
        let carries = self.paths.open().any(|path| path.liveness.is_silent()) && self.has_to_carry();
        let wants = self.streams.has_sendable() || self.datagrams.has_waiting() || !self.control.is_empty();
        let mut fold = |at: Option<Instant>, reason: TimerReason| {
            let next = at.map(|at| Deadline::new(at, reason));
            earliest = Deadline::earliest(earliest, next);
        };
        // RFC 10069 §3.4: there is no open path then.
        fold(self.paths.lifecycles.forsaken_at(), TimerReason::PathAbandoned);
        for path in self.paths.all() {
            // One that is due and found no path (RFC 9000 §8.1) waits for input, not for time.
            fold(path.received.ack_deadline().filter(|at| *at > now), TimerReason::AckDelay);
        }
        for path in self.paths.open() {
            fold(path.sent.loss_time(), TimerReason::LossTime);
            fold(path.route.mtu.overdue_at(), TimerReason::LossTime);
            fold(
                path.route.validation.deadline(now).map(|deadline| deadline.at),
                TimerReason::PathValidation,
            );
            // Before the handshake is complete nothing keeps a path alive, and a timer for it would never be served.
            let warm = path.keep_alive_at().filter(|_| self.lifecycle.is_connected());
            fold(warm, TimerReason::KeepAlive);
            fold(path.elsewhere.deadline(&path.liveness, now), TimerReason::PathValidation);
            if self.may_probe() {
                fold(path.probe_at(max_ack_delay), TimerReason::ProbeTimeout);
            }
            fold(self.overdue_at(path), TimerReason::Silence);
            if path.liveness.is_silent() && carries {
                fold(self.ask_at(path), TimerReason::Silence);
            }
            if wants {
                fold(path.route.paced_until(path.sent.in_flight(), now), TimerReason::Pacing);
            }
        }
        earliest
    }
}
