//! The use of open paths beside carrying data: they are kept warm, marked, and seen under changing connection IDs.

use crate::PathId;
use crate::connection::{Connection, Dscp, PathCommandError, Role};
use crate::path::rotation::Destination;
use crate::time::Instant;
use crate::wire::connection_id::ConnectionId;
use hvq_scheduler::PathState;
use std::time::Duration;

impl Connection {
    /// Has a PING sent on path `id` after each `period` in which nothing arrives there and nothing is sent that the peer
    /// must acknowledge; `None` lets it fall silent.
    pub fn set_path_keep_alive(
        &mut self,
        id: PathId,
        period: Option<Duration>,
    ) -> Result<(), PathCommandError> {
        let path = self.paths.get_mut(id).ok_or(PathCommandError::UnknownPath)?;
        path.keep_alive = period;
        Ok(())
    }

    /// Marks the packets of path `id` with a Differentiated Services codepoint from here on (RFC 10069 §5.2).
    pub fn set_dscp(&mut self, id: PathId, dscp: Dscp) -> Result<(), PathCommandError> {
        let path = self.paths.get_mut(id).ok_or(PathCommandError::UnknownPath)?;
        path.dscp = dscp;
        Ok(())
    }

    /// Uses another connection ID of the peer on path `id` from here on, and retires the one before (RFC 9000 §5.1.2).
    /// The peer answers with one to replace it. A server keeps its last unused one for a client that moves (§9.5).
    pub fn rotate_connection_id(&mut self, id: PathId, now: Instant) -> Result<(), PathCommandError> {
        let path = self.paths.get(id).ok_or(PathCommandError::UnknownPath)?;
        let next = path.sent.next_unused();
        if self.rotate(id, next, now).is_none() {
            return Err(PathCommandError::NoConnectionId);
        }
        Ok(())
    }

    /// Asks the peer to retire the connection IDs of this endpoint on path `id`, for new ones (RFC 9000 §5.1.2): from then
    /// on what arrives shows other connection IDs. Ignored while an earlier request is not fulfilled.
    pub fn retire_connection_ids(&mut self, id: PathId) -> Result<(), PathCommandError> {
        self.paths.get(id).ok_or(PathCommandError::UnknownPath)?;
        if !self.paths.local_ids.request_retirement(id) {
            return Err(PathCommandError::NoConnectionId);
        }
        Ok(())
    }

    fn rotate(&mut self, id: PathId, next: u64, now: Instant) -> Option<ConnectionId> {
        let reserve = match self.role {
            Role::Client => 0,
            // The client may move at any time, and wants to see another one then (RFC 9000 §9.5).
            Role::Server => 1,
        };
        let destination = self.paths.remote_ids.rotate(id, reserve);
        let path = self.paths.get_mut(id)?;
        // Without a spare it is tried again as if there had been one: not with every packet.
        path.destination = Destination { since: next, at: now, carried: false };
        if destination.is_some() {
            // RFC 9000 §17.4: the spin bit starts anew with another connection ID.
            path.spin.reset();
        } else {
            let next = self.paths.remote_ids.next_expected_sequence(id);
            self.paths.limits.on_ids_exhausted(id, next);
        }
        destination
    }

    /// Changes connection IDs that were used for as long as the configuration permits, before anything is sent.
    pub(in crate::connection) fn rotate_due(&mut self, now: Instant) {
        let rotation = self.config.rotation;
        if !rotation.is_set() || !self.is_confirmed() {
            return;
        }
        for id in self.paths.ids() {
            let Some(path) = self.paths.get(id) else { continue };
            let next = path.sent.next_unused();
            // Who is not heard may not learn which connection IDs are retired, nor issue others: the last ones are needed
            // should the peer turn out to be elsewhere (RFC 9000 §9.5).
            let answers = matches!(path.scheduling_state(), PathState::Available | PathState::Backup);
            let heard = path.liveness.was_heard_since(path.destination.at);
            if answers && heard && path.destination.is_due(&rotation, next, path.active_at, now) {
                let _unchanged_without_a_spare = self.rotate(id, next, now);
            }
        }
    }

    /// Path `id` carries data of the application, one way or the other.
    pub(in crate::connection) fn note_carried(&mut self, id: PathId) {
        if self.config.rotation.is_set()
            && let Some(path) = self.paths.get_mut(id)
        {
            path.destination.carried = true;
        }
    }

    /// Asks paths that were silent for as long as they may be whether they still answer.
    pub(in crate::connection) fn keep_paths_alive(&mut self, now: Instant) {
        if !self.lifecycle.is_connected() {
            return;
        }
        for id in self.paths.ids() {
            let Some(path) = self.paths.get_mut(id) else { continue };
            if path.keep_alive_at().is_some_and(|at| at <= now) {
                path.active_at = now;
                path.liveness.ask(now);
            }
        }
    }
}
