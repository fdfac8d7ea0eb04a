//! Path limits: the numbers of paths that both endpoints permit, and the frames about them (RFC 10069 §2.1, §4.6,
//! §4.7).

use crate::PathId;
use crate::error::{ErrorCode, TransportError};
use crate::recovery_token::{RecoveryToken, TransmissionState};
use crate::wire::frame::Frame;
use std::collections::BTreeMap;

/// Paths for which a lack of connection IDs is reported at most.
const MAX_REPORTS: usize = 64;

/// The form of the frames that speak of connection IDs: those of RFC 9000, or those of RFC 10069 with a path ID.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// NEW_CONNECTION_ID and RETIRE_CONNECTION_ID; there is no path but 0.
    #[default]
    SinglePath,
    /// PATH_NEW_CONNECTION_ID and PATH_RETIRE_CONNECTION_ID, for path 0 too (RFC 10069 §3.2).
    Multipath,
}

impl Form {
    /// The path field of a frame about `path` in this form.
    pub fn field(self, path: PathId) -> Option<PathId> {
        match self {
            Self::SinglePath => None,
            Self::Multipath => Some(path),
        }
    }
}

/// The end that keeps another path from being opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockedBy {
    /// This endpoint's own limit; raising it is the remedy.
    Local,
    /// The peer's limit; PATHS_BLOCKED tells it, once.
    Peer,
}

/// The path ID limits of a connection. A limit is inclusive: 0 allows path 0 alone.
#[derive(Clone, Debug, Default)]
pub struct PathLimits {
    /// The limit that this endpoint announced last, `None` if it does not offer multipath.
    local: Option<PathId>,
    /// The peer's transport parameter, `None` if it does not offer multipath.
    peer_initial: Option<PathId>,
    /// The limit that the peer announced last.
    peer: PathId,
    /// The way of MAX_PATH_ID with the value `local`, if it was raised.
    max_path_id: Option<TransmissionState>,
    /// PATHS_BLOCKED, with the limit it names.
    paths_blocked: Option<(PathId, TransmissionState)>,
    /// PATH_CIDS_BLOCKED by path, with the sequence number it names.
    ids_blocked: BTreeMap<PathId, (u64, TransmissionState)>,
}

impl PathLimits {
    /// Limits of a connection whose transport parameter `initial_max_path_id` is `local`, absent if `None`.
    pub fn new(local: Option<PathId>) -> Self {
        Self { local, ..Self::default() }
    }

    /// Takes the peer's transport parameter, `None` if it was absent. The decoder has checked its range.
    pub fn set_peer(&mut self, initial: Option<PathId>) {
        self.peer_initial = initial;
        self.peer = initial.unwrap_or_default();
    }

    /// Returns true if both endpoints announced the extension (RFC 10069 §2).
    pub fn is_negotiated(&self) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc10069#section-2
        //# If either of the endpoints does not advertise the initial_max_path_id transport parameter, then
        //# both endpoints MUST NOT use any frame or mechanism defined in this document
        self.local.is_some() && self.peer_initial.is_some()
    }

    /// The form of frames about connection IDs.
    #[cfg(test)]
    pub fn form(&self) -> Form {
        if self.is_negotiated() { Form::Multipath } else { Form::SinglePath }
    }

    /// The highest path ID that this endpoint accepts.
    pub fn local(&self) -> PathId {
        self.local.unwrap_or_default()
    }

    /// The highest path ID that the peer accepts.
    #[cfg(test)]
    pub fn peer(&self) -> PathId {
        self.peer
    }

    /// The highest path ID that may be used: the smaller of both limits, 0 without multipath.
    pub fn highest(&self) -> PathId {
        if self.is_negotiated() { self.local().min(self.peer) } else { PathId::ZERO }
    }

    /// Checks the path ID of a received multipath frame, whatever the state of that path.
    ///
    /// Errors: FRAME_ENCODING_ERROR if multipath was not negotiated, for then the frame type is unknown (RFC 9000
    /// §12.4); PROTOCOL_VIOLATION above the limit announced here (RFC 10069 §4).
    pub fn validate(&self, path: PathId) -> Result<(), TransportError> {
        self.require_negotiated()?;
        //= https://www.rfc-editor.org/rfc/rfc10069#section-4
        //# if no MAX_PATH_ID frame was received yet, MUST be treated as a connection error of type
        //# PROTOCOL_VIOLATION.
        if path > self.local() {
            return Err(violation("a path ID above the announced limit"));
        }
        Ok(())
    }

    /// Takes MAX_PATH_ID. Returns the new limit if it rose; what does not raise it is ignored (RFC 10069 §4.6).
    ///
    /// Errors: PROTOCOL_VIOLATION above 2^32-1 or below the peer's transport parameter; FRAME_ENCODING_ERROR if
    /// multipath was not negotiated.
    pub fn on_max_path_id(&mut self, value: u64) -> Result<Option<PathId>, TransportError> {
        self.require_negotiated()?;
        //= https://www.rfc-editor.org/rfc/rfc10069#section-4.6
        //# Receipt of an invalid Maximum Path Identifier value MUST be treated as a connection error of type
        //# PROTOCOL_VIOLATION.
        let Ok(value) = u32::try_from(value).map(PathId) else {
            return Err(violation("MAX_PATH_ID above 2^32-1"));
        };
        if Some(value) < self.peer_initial {
            return Err(violation("MAX_PATH_ID below initial_max_path_id"));
        }
        //= https://www.rfc-editor.org/rfc/rfc10069#section-4.6
        //# MAX_PATH_ID frames that do not increase the path limit MUST be ignored.
        if value <= self.peer {
            return Ok(None);
        }
        self.peer = value;
        self.paths_blocked = None;
        Ok(Some(value))
    }

    /// Takes PATHS_BLOCKED, which informs only: nothing is sent in return.
    ///
    /// Errors: PROTOCOL_VIOLATION above the limit announced here (RFC 10069 §4.7); FRAME_ENCODING_ERROR if multipath
    /// was not negotiated.
    pub fn on_paths_blocked(&self, value: u64) -> Result<(), TransportError> {
        self.require_negotiated()?;
        //= https://www.rfc-editor.org/rfc/rfc10069#section-4.7
        //# Receipt of a value of Maximum Path Identifier or Path Identifier that is higher than the local
        //# maximum value MUST be treated as a connection error of type PROTOCOL_VIOLATION.
        if value > u64::from(self.local().0) {
            return Err(violation("PATHS_BLOCKED above the announced limit"));
        }
        Ok(())
    }

    /// Takes PATH_CIDS_BLOCKED, which informs only. `issued_next` is the sequence number of the connection ID that this
    /// endpoint issues next for the path. Frames about abandoned paths are not to be brought here, but
    /// [`Self::validate`] applies to them too.
    ///
    /// Errors: PROTOCOL_VIOLATION if the path or the sequence number is too high (RFC 10069 §4.7); FRAME_ENCODING_ERROR
    /// if multipath was not negotiated.
    pub fn on_path_cids_blocked(
        &self,
        path: PathId,
        next_sequence: u64,
        issued_next: u64,
    ) -> Result<(), TransportError> {
        self.validate(path)?;
        //= https://www.rfc-editor.org/rfc/rfc10069#section-4.7
        //# of the next expected to be issued connection ID for this path MUST be treated as a connection
        //# error of type PROTOCOL_VIOLATION.
        if next_sequence > issued_next {
            return Err(violation("PATH_CIDS_BLOCKED expects a sequence number that is not next"));
        }
        Ok(())
    }

    /// Lets the peer use path IDs up to `limit`, if that raises the limit.
    pub fn raise(&mut self, limit: PathId) {
        //= https://www.rfc-editor.org/rfc/rfc10069#section-4.6
        //# The Maximum Path Identifier value MUST NOT be lower than the value advertised in the
        //# initial_max_path_id transport parameter.
        if self.local.is_some_and(|local| limit > local) {
            self.local = Some(limit);
            self.max_path_id = Some(TransmissionState::Queued);
        }
    }

    /// Raises the limit by as many paths as were freed, up to 2^32-1, where it stops for good (RFC 10069 §2.1).
    ///
    /// A path that comes to its end takes three probe timeouts to be freed, which limits the rate.
    pub fn return_credit(&mut self, freed: u32) {
        //= https://www.rfc-editor.org/rfc/rfc10069#section-4.6
        //# This value MUST NOT exceed 2^32-1, which is the maximum allowed value for the path ID due to
        //# restrictions on the nonce calculation (see Section 2.4)
        self.raise(PathId(self.local().0.saturating_add(freed)));
    }

    /// Notes that no unused path ID is left though one is wanted, and says whose limit is in the way.
    pub fn on_paths_exhausted(&mut self) -> BlockedBy {
        if self.local() < self.peer {
            return BlockedBy::Local;
        }
        if self.is_negotiated() && self.paths_blocked.is_none_or(|(limit, _)| limit != self.peer) {
            self.paths_blocked = Some((self.peer, TransmissionState::Queued));
        }
        BlockedBy::Peer
    }

    /// Notes that an unused connection ID is wanted for `path` but the peer issued none; the next that it issues has
    /// the sequence number `next_sequence`.
    pub fn on_ids_exhausted(&mut self, path: PathId, next_sequence: u64) {
        if path > self.highest() || !self.is_negotiated() {
            return;
        }
        let known = self.ids_blocked.get(&path);
        if known.is_some_and(|(sequence, _)| *sequence == next_sequence) {
            return;
        }
        if known.is_some() || self.ids_blocked.len() < MAX_REPORTS {
            self.ids_blocked.insert(path, (next_sequence, TransmissionState::Queued));
        }
    }

    /// Forgets that `path` lacked connection IDs: some arrived, or the path is gone.
    pub fn clear_ids_exhausted(&mut self, path: PathId) {
        self.ids_blocked.remove(&path);
    }

    /// The next of MAX_PATH_ID, PATHS_BLOCKED and PATH_CIDS_BLOCKED to send, each once unless lost.
    pub fn next_frame(&mut self) -> Option<(Frame, RecoveryToken)> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.21
        //# An extension to QUIC that wishes to use a new type of frame MUST first ensure that a peer is able
        //# to understand the frame
        if self.is_negotiated() && self.may_have_frame() { self.next_of_some() } else { None }
    }

    /// Returns true if the peer was told of a limit, or is to be.
    #[inline]
    pub fn may_have_frame(&self) -> bool {
        self.max_path_id.is_some() || self.paths_blocked.is_some() || !self.ids_blocked.is_empty()
    }

    fn next_of_some(&mut self) -> Option<(Frame, RecoveryToken)> {
        let local = self.local();
        if let Some(progress @ TransmissionState::Queued) = &mut self.max_path_id {
            *progress = TransmissionState::Sent;
            return Some((Frame::MaxPathId(u64::from(local.0)), RecoveryToken::MaxPathId(local)));
        }
        if let Some((limit, progress @ TransmissionState::Queued)) = &mut self.paths_blocked {
            *progress = TransmissionState::Sent;
            return Some((Frame::PathsBlocked(u64::from(limit.0)), RecoveryToken::PathsBlocked(*limit)));
        }
        let queued =
            self.ids_blocked.iter_mut().find(|(_, (_, progress))| *progress == TransmissionState::Queued);
        let (&path, (next_sequence, progress)) = queued?;
        *progress = TransmissionState::Sent;
        let frame = Frame::PathCidsBlocked { path, next_sequence: *next_sequence };
        Some((frame, RecoveryToken::PathCidsBlocked(path)))
    }

    /// The frame of `token` arrived: it is not repeated.
    pub fn on_acknowledged(&mut self, token: &RecoveryToken) {
        self.settle(token, TransmissionState::Acknowledged);
    }

    /// The frame of `token` was lost: it is repeated if what it says still holds (RFC 10069 §4.6, §4.7).
    pub fn on_lost(&mut self, token: &RecoveryToken) {
        self.settle(token, TransmissionState::Queued);
    }

    fn settle(&mut self, token: &RecoveryToken, fate: TransmissionState) {
        let local = self.local();
        let progress = match token {
            RecoveryToken::MaxPathId(value) if *value == local => self.max_path_id.as_mut(),
            RecoveryToken::PathsBlocked(value) => match &mut self.paths_blocked {
                Some((limit, progress)) if limit == value => Some(progress),
                _ => None,
            },
            RecoveryToken::PathCidsBlocked(path) => {
                self.ids_blocked.get_mut(path).map(|(_, progress)| progress)
            }
            _ => None,
        };
        if let Some(progress @ TransmissionState::Sent) = progress {
            *progress = fate;
        }
    }

    fn require_negotiated(&self) -> Result<(), TransportError> {
        if self.is_negotiated() {
            return Ok(());
        }
        Err(ErrorCode::FRAME_ENCODING_ERROR.because("a multipath frame, but multipath was not negotiated"))
    }
}

fn violation(reason: &'static str) -> TransportError {
    ErrorCode::PROTOCOL_VIOLATION.because(reason)
}

#[cfg(test)]
mod tests;
