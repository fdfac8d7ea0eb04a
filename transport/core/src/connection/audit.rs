//! Invariants of a connection between any two steps, for tests that check it against random interactions.

use crate::connection::Connection;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::loss_recovery::handshake_probe_at;
use crate::connection::timeout;
use crate::stream::streams::Accounts;
use crate::time::Instant;

impl Connection {
    /// Recounts what the connection keeps running totals of, and says what is wrong first.
    ///
    /// `Ok` has the flow control accounts, which can be compared with those of the peer. To be called after a poll that
    /// ended in [`Step::Idle`](crate::connection::Step::Idle).
    #[doc(hidden)]
    pub fn audit(&self, now: Instant) -> Result<Accounts, String> {
        for path in self.paths.all() {
            path.sent.audit().map_err(|problem| format!("path {}: {problem}", path.id))?;
        }
        for space in self.handshake.existing() {
            space.sent.audit().map_err(|problem| format!("handshake: {problem}"))?;
        }
        audit_timers(self, now)?;
        self.streams.audit()
    }
}

/// Work that nothing would ever resume is a stall (RFC 9002 §6.2).
fn audit_timers(connection: &Connection, now: Instant) -> Result<(), String> {
    if connection.lifecycle == Lifecycle::Closed {
        return Ok(());
    }
    let Some(deadline) = timeout::deadline(connection, now) else {
        return Err(format!("no timer at all: {:?}", connection.lifecycle));
    };
    // RFC 9002 §6.2.1: of the two timers one runs at most.
    if connection.handshake.awaits_loss()
        && handshake_probe_at(&connection.handshake, &connection.paths, connection.role).is_some()
    {
        return Err("a probe of the handshake while packets of it may be lost".to_owned());
    }
    if connection.lifecycle != Lifecycle::Confirmed {
        return Ok(());
    }
    let max_ack_delay = connection.peer.max_ack_delay(connection.lifecycle);
    for path in connection.paths.open().filter(|path| path.sent.has_ack_eliciting_in_flight()) {
        let probe = match (path.probe_at(max_ack_delay), path.sent.loss_time()) {
            (Some(at), None) | (None, Some(at)) => at,
            (Some(_), Some(_)) => return Err(format!("two timers for path {}", path.id)),
            (None, None) => return Err(format!("no probe for path {}", path.id)),
        };
        if probe <= now || deadline.at > probe {
            return Err(format!("path {} is probed at {probe:?}, but {deadline:?} at {now:?}", path.id));
        }
    }
    Ok(())
}
