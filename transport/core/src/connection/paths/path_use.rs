//! The use of open paths beside carrying data: they are kept warm, marked, and seen under changing connection IDs.

use crate::PathId;
use crate::connection::{Connection, Dscp, PathCommandError, Role};
use crate::time::Instant;
use std::time::Duration;

impl Connection {
    /// Has a PING sent on path `id` after each `period` in which nothing arrives there and nothing is sent that the peer
    /// must acknowledge; `None` lets it fall silent. Longer silences are tried up to
    /// [`path_keep_alive_limit`](crate::connection::TransportConfig::set_path_keep_alive_limit), if that is set.
    pub fn set_path_keep_alive(
        &mut self,
        id: PathId,
        period: Option<Duration>,
    ) -> Result<(), PathCommandError> {
        let path = self.paths.get_mut(id).ok_or(PathCommandError::UnknownPath)?;
        path.set_keep_alive(self.config.keep_alive_of(period, self.role));
        Ok(())
    }

    /// Has a PING sent on path `id` now, which tells whether the path answers.
    ///
    /// # Errors
    /// There is no such path ([`PathCommandError::UnknownPath`]).
    pub fn ping_path(&mut self, id: PathId, now: Instant) -> Result<(), PathCommandError> {
        let path = self.paths.get_mut(id).ok_or(PathCommandError::UnknownPath)?;
        path.liveness.ask(now);
        Ok(())
    }

    /// Marks the packets of path `id` with a Differentiated Services codepoint from here on (RFC 10069 §5.2).
    pub fn set_dscp(&mut self, id: PathId, dscp: Dscp) -> Result<(), PathCommandError> {
        let path = self.paths.get_mut(id).ok_or(PathCommandError::UnknownPath)?;
        path.set_dscp(dscp);
        Ok(())
    }

    /// Uses another connection ID of the peer on path `id` from here on, and retires the one before (RFC 9000 §5.1.2).
    /// The peer answers with one to replace it. A server keeps its last unused one for a client that moves (§9.5).
    pub fn rotate_connection_id(&mut self, id: PathId, now: Instant) -> Result<(), PathCommandError> {
        self.paths.get(id).ok_or(PathCommandError::UnknownPath)?;
        let rotated = self.paths.rotate(id, id_reserve(self.role), now);
        rotated.map(|_| ()).ok_or(PathCommandError::NoConnectionId)
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
}

/// The number of the peer's connection IDs that a rotation leaves unused.
pub(in crate::connection) fn id_reserve(role: Role) -> usize {
    match role {
        Role::Client => 0,
        // The client may move at any time, and wants to see another one then (RFC 9000 §9.5).
        Role::Server => 1,
    }
}
