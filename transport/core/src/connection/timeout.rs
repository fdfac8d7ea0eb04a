//! Time passes: each component's deadline, folded into one, and what happens when it is reached.

use crate::connection::lifecycle::{Lifecycle, Milestone};
use crate::connection::loss_recovery::handshake_probe_at;
use crate::connection::paths::failover::has_to_carry;
use crate::connection::paths::maintenance::{keep_paths_alive, longest_silence};
use crate::connection::{Connection, Event};
use crate::error::ConnectionError;
use crate::error::ErrorCode;
use crate::time::{Deadline, Instant, TimerReason};

impl Connection {
    /// Does everything that is due at `now`.
    pub(super) fn run_timers(&mut self, now: Instant) {
        match self.lifecycle {
            Lifecycle::Closed => return,
            Lifecycle::Closing(until) | Lifecycle::Draining(until) => {
                if until <= now {
                    expire(self);
                }
                return;
            }
            Lifecycle::Handshaking if self.handshake.deadline() <= now => {
                return self.end_silently(ConnectionError::HandshakeTimeout);
            }
            Lifecycle::Handshaking | Lifecycle::Connected | Lifecycle::Confirmed => {}
        }
        // Probe timeouts need not be looked at before.
        let theirs = self.peer.parameters().max_idle_timeout;
        if self.activity.may_be_over(self.config.idle_timeout, theirs, now)
            && idle_at(self).is_some_and(|at| at <= now)
        {
            return self.end_silently(ConnectionError::IdleTimeout);
        }
        self.loss_recovery().run_timers(now);
        self.keys.expire(now);
        self.zero_rtt.expire(now);
        if self.paths.may_have_due(now) {
            self.path_maintenance().run_path_timers(now);
        }
        if self.paths.lifecycles.forsaken_at().is_some_and(|at| at <= now) {
            let reason = ErrorCode::NO_VIABLE_PATH.because("no path is left");
            self.end_silently(ConnectionError::Transport(reason));
        }
        let keep_alive_at = self.activity.keep_alive_at(self.config.keep_alive);
        if keep_alive_at.is_some_and(|at| at <= now) && self.lifecycle.is_connected() {
            self.control.push(crate::wire::frame::Frame::Ping, None);
            self.activity.on_keep_alive(now);
        }
        if self.lifecycle.is_connected() {
            keep_paths_alive(&mut self.paths, longest_silence(&self.config, &self.peer), now);
        }
        self.paths.review_reliefs(now);
        if self.paths.is_preferred_due() {
            self.path_maintenance().consider_preferred(now);
        }
    }

    /// Ends the connection without a word to the peer (RFC 9000 §10.1, §10.3.1).
    pub(super) fn end_silently(&mut self, error: ConnectionError) {
        if self.lifecycle.is_open() {
            self.events.push(Event::Closed(error));
        }
        self.queue.clear();
        expire(self);
    }
}

/// The earliest deadline of all components.
pub(super) fn deadline(of: &Connection, now: Instant) -> Option<Deadline> {
    let mut earliest: Option<Deadline> = None;
    let mut fold = |at, reason| put_forward(&mut earliest, at, reason);
    match of.lifecycle {
        Lifecycle::Closed => return None,
        Lifecycle::Closing(until) | Lifecycle::Draining(until) => {
            return Some(Deadline::new(until, TimerReason::Closing));
        }
        Lifecycle::Handshaking => fold(Some(of.handshake.deadline()), TimerReason::Handshake),
        Lifecycle::Connected | Lifecycle::Confirmed => {}
    }
    fold(idle_at(of), TimerReason::Idle);
    fold(of.activity.keep_alive_at(of.config.keep_alive), TimerReason::KeepAlive);
    fold(of.keys.discard_at(), TimerReason::KeyDiscard);
    fold(of.zero_rtt.discard_at(), TimerReason::KeyDiscard);
    fold(of.activity.hibernate_at(), TimerReason::Hibernation);
    fold(of.scheduler.wake_at(), TimerReason::Scheduler);
    if of.handshake.existing().next().is_some() {
        fold(handshake_probe_at(&of.handshake, &of.paths, of.role), TimerReason::ProbeTimeout);
    }
    for space in of.handshake.existing() {
        fold(space.sent.loss_time(), TimerReason::LossTime);
        fold(space.received.ack_deadline().filter(|at| *at > now), TimerReason::AckDelay);
    }
    let path_deadline = path_deadline(of, now);
    Deadline::earliest(earliest, path_deadline)
}

/// Takes `at` for the earliest deadline if it is earlier.
#[inline]
fn put_forward(earliest: &mut Option<Deadline>, at: Option<Instant>, reason: TimerReason) {
    if let Some(at) = at
        && earliest.is_none_or(|earliest| at < earliest.at)
    {
        *earliest = Some(Deadline::new(at, reason));
    }
}

/// The effective idle timeout ends a connection at this instant.
fn idle_at(of: &Connection) -> Option<Instant> {
    let least = || of.paths.longest_probe_timeout(of.peer.max_ack_delay(of.lifecycle)) * 3;
    of.activity.idle_at(of.config.idle_timeout, of.peer.parameters().max_idle_timeout, least)
}

fn expire(connection: &mut Connection) {
    if connection.lifecycle != Lifecycle::Closed {
        connection.lifecycle = connection.lifecycle.after(Milestone::Expired);
        connection.events.push(Event::Forgotten);
    }
}

fn path_deadline(of: &Connection, now: Instant) -> Option<Deadline> {
    let mut earliest = of.paths.deadline();
    let max_ack_delay = of.peer.max_ack_delay(of.lifecycle);
    let carries = of.paths.open().any(|path| path.liveness.is_silent())
        && has_to_carry(&of.streams, &of.datagrams, &of.control, &of.paths);
    let contact = of.paths.contact();
    let most = longest_silence(&of.config, &of.peer);
    let wants = of.streams.has_sendable() || of.datagrams.has_waiting() || !of.control.is_empty();
    let mut fold = |at, reason| put_forward(&mut earliest, at, reason);
    // RFC 10069 §3.4: there is no open path then.
    fold(of.paths.lifecycles.forsaken_at(), TimerReason::PathAbandoned);
    fold(of.paths.relief_deadline(), TimerReason::Relief);
    for path in of.paths.all() {
        // One that is due and found no path (RFC 9000 §8.1) waits for input, not for time.
        fold(path.received.ack_deadline().filter(|at| *at > now), TimerReason::AckDelay);
    }
    for path in of.paths.open() {
        fold(path.sent.loss_time(), TimerReason::LossTime);
        fold(path.route.mtu.overdue_at(), TimerReason::LossTime);
        fold(path.route.validation.deadline(now).map(|deadline| deadline.at), TimerReason::PathValidation);
        // Before the handshake is complete nothing keeps a path alive, and a timer for it would never be served.
        let warm = path.keep_alive_at(most).filter(|_| of.lifecycle.is_connected());
        fold(warm, TimerReason::KeepAlive);
        fold(path.elsewhere.deadline(contact, now), TimerReason::PathValidation);
        if of.lifecycle.is_confirmed() {
            fold(path.probe_at(max_ack_delay), TimerReason::ProbeTimeout);
            fold(of.paths.overdue_at(path, max_ack_delay), TimerReason::Silence);
            if path.liveness.is_silent() && carries {
                fold(of.paths.ask_at(path, max_ack_delay), TimerReason::Silence);
            }
        }
        if wants {
            fold(
                path.route.paced_until(path.route.datagram_size, path.sent.in_flight(), now),
                TimerReason::Pacing,
            );
        }
    }
    earliest
}
