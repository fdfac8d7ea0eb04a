//! Connection IDs that the peer issued, for all paths: which one is used, and which are given back (RFC 9000 §5.1.2,
//! RFC 10069 §3.2).

use crate::PathId;
use crate::error::{ErrorCode, TransportError};
use crate::flat_map::FlatMap;
use crate::path::limits::Form;
use crate::ranges::Ranges;
use crate::recovery_token::RecoveryToken;
use crate::wire::connection_id::{ConnectionId, ResetToken};
use crate::wire::frame::{Frame, NewConnectionId};
use path_ids::PathIds;
use retirements::Retirements;
use subtle::{Choice, ConstantTimeEq};

mod path_ids;
mod retirements;

/// The longest connection ID that a frame may carry (RFC 9000 §19.15).
const MAX_LENGTH: usize = 20;

/// The connection IDs of the peer.
///
/// Their number is bounded: for each path as many as this endpoint announced to store, for the connection a number of
/// retirements whose frames are not acknowledged. Frames about paths above the limit are not brought here.
#[derive(Clone, Debug)]
pub struct RemoteIds {
    form: Form,
    /// The `active_connection_id_limit` announced here; per path with multipath.
    limit: usize,
    paths: FlatMap<PathId, PathIds>,
    /// Abandoned paths, whose frames are ignored.
    dropped: Ranges,
    retirements: Retirements,
}

impl RemoteIds {
    /// No connection IDs yet, and an announced `active_connection_id_limit` (at least 2) of `limit`.
    pub fn new(limit: usize) -> Self {
        Self {
            form: Form::SinglePath,
            limit,
            paths: FlatMap::default(),
            dropped: Ranges::new(),
            retirements: Retirements::new(limit),
        }
    }

    /// Multipath was negotiated: retirements are told with a path ID from now on.
    pub fn set_multipath(&mut self) {
        self.form = Form::Multipath;
    }

    /// Uses `id` on path 0 with sequence number 0: the one the client drew, then the one of the Retry packet, then the
    /// one of the peer's first packet (RFC 9000 §7.2).
    pub fn set_initial(&mut self, id: ConnectionId) {
        let zero = self.paths.get_or_insert_with(PathId::ZERO, PathIds::default);
        zero.replace_first(id);
    }

    /// Takes the token of the first connection ID from the server's transport parameters (RFC 9000 §18.2).
    pub fn set_initial_token(&mut self, token: ResetToken) {
        if let Some(zero) = self.paths.get_mut(&PathId::ZERO) {
            zero.set_token(0, token);
        }
    }

    /// Takes the connection ID of the preferred address: sequence number 1 of path 0 (RFC 9000 §5.1.1).
    ///
    /// Errors: as [`Self::on_new`].
    pub fn set_preferred(&mut self, id: ConnectionId, token: ResetToken) -> Result<(), TransportError> {
        self.on_new(NewConnectionId { path: None, sequence: 1, retire_prior_to: 0, id, token })
    }

    /// Takes NEW_CONNECTION_ID, which means path 0, or PATH_NEW_CONNECTION_ID. Repetitions, and frames for abandoned
    /// paths, are ignored.
    ///
    /// Errors (RFC 9000 §5.1.1, §19.15; per path, RFC 10069 §4.4):
    /// - FRAME_ENCODING_ERROR: a length of 0 or above 20, or `retire_prior_to` above the sequence number;
    /// - PROTOCOL_VIOLATION: a sequence number or a connection ID (on any path) that was used for something else, or the
    ///   peer's connection IDs are empty;
    /// - CONNECTION_ID_LIMIT_ERROR: more active connection IDs than the limit, or too many retirements outstanding.
    pub fn on_new(&mut self, frame: NewConnectionId) -> Result<(), TransportError> {
        check_fields(&frame)?;
        let path = frame.path.unwrap_or(PathId::ZERO);
        if self.dropped.contains(u64::from(path.0)) {
            return Ok(());
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
        //# An endpoint that is sending packets with a zero-length Destination Connection ID MUST treat
        //# receipt of a NEW_CONNECTION_ID frame as a connection error of type PROTOCOL_VIOLATION.
        if self.known().any(|(id, ..)| id.is_empty()) {
            return Err(violation("a new connection ID from a peer whose connection IDs are empty"));
        }
        if !self.is_news(path, &frame)? {
            return Ok(());
        }
        let ids = self.paths.get_or_insert_with(path, PathIds::default);
        ids.add(frame.sequence, frame.id, frame.token);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.2
        //# Upon receipt of an increased Retire Prior To field, the peer MUST stop using the corresponding
        //# connection IDs and retire them with RETIRE_CONNECTION_ID frames before adding the newly provided
        for retired in ids.retire_below(frame.retire_prior_to) {
            self.retirements.add(path, retired.sequence, retired.id);
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
        //# an endpoint MUST close the connection with an error of type CONNECTION_ID_LIMIT_ERROR.
        if ids.len() > self.limit {
            return Err(
                ErrorCode::CONNECTION_ID_LIMIT_ERROR.because("more active connection IDs than permitted")
            );
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.2
        //# An endpoint MUST NOT forget a connection ID without retiring it, though it MAY choose to treat
        //# having connection IDs in need of retirement that exceed this limit as a connection error of type
        if ids.is_fragmented() || self.retirements.exceed_bounds(path) {
            // RFC 9000 §5.1.2 asks to bound the retirements that are not acknowledged.
            return Err(ErrorCode::CONNECTION_ID_LIMIT_ERROR.because("too many connection IDs retired"));
        }
        Ok(())
    }

    /// Returns true if the frame brings a connection ID that is not known; an error if it contradicts those that are.
    fn is_news(&self, path: PathId, frame: &NewConnectionId) -> Result<bool, TransportError> {
        let (id, place) = (frame.id, (path, frame.sequence));
        if self.known().any(|(known, path, sequence)| known == id && (path, sequence) != place) {
            return Err(violation("a connection ID was issued twice"));
        }
        let Some(ids) = self.paths.get(&path) else { return Ok(true) };
        let of_sequence = ids.id_of(frame.sequence).or_else(|| self.retirements.id_of(path, frame.sequence));
        match of_sequence {
            Some(id) if id != frame.id => Err(violation("a sequence number was used for two connection IDs")),
            Some(_) if ids.has_other_token(frame.sequence, &frame.token) => {
                Err(violation("a connection ID was issued with two tokens"))
            }
            //= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
            //# Receipt of the same frame multiple times MUST NOT be treated as a connection error
            Some(_) => Ok(false),
            None => Ok(!ids.was_retired(frame.sequence)),
        }
    }

    /// The connection ID to use on `path`; if the path is not open yet, the one it would be opened with.
    pub fn current(&self, path: PathId) -> Option<ConnectionId> {
        self.paths.get(&path)?.current()
    }

    /// `path` is in use from now on, with [`Self::current`]: its reset token counts, and that connection ID is no
    /// longer unused.
    pub fn open_path(&mut self, path: PathId) {
        if let Some(ids) = self.paths.get_mut(&path) {
            ids.open();
        }
    }

    /// Returns true if there is a connection ID for `path` that was never used: to open it, or to change to.
    #[cfg(test)]
    pub fn has_unused(&self, path: PathId) -> bool {
        self.paths.get(&path).is_some_and(|ids| ids.has_unused())
    }

    /// Changes to another connection ID of the same path (RFC 10069 §3.2) and retires the one in use. `None`, and no
    /// change, if there is no other, or fewer than `reserve` unused ones would be left.
    pub fn rotate(&mut self, path: PathId, reserve: usize) -> Option<ConnectionId> {
        let ids = self.paths.get_mut(&path)?;
        //= https://www.rfc-editor.org/rfc/rfc10069#section-3.2.2
        //# For the extension specified in this document, endpoints MUST only rotate to another connection ID
        //# associated with the same path ID
        let retired = ids.rotate(reserve)?;
        self.retirements.add(path, retired.sequence, retired.id);
        ids.current()
    }

    /// Takes a connection ID of `path` that was never used, for an address other than the path's own, so that nobody can
    /// tell from it that both belong together (RFC 9000 §9.5). Returns its sequence number; `None` if there is none.
    pub fn lend(&mut self, path: PathId) -> Option<u64> {
        self.paths.get_mut(&path)?.lend()
    }

    /// The connection ID of `path` with this sequence number, if it is not retired.
    pub fn id_of(&self, path: PathId, sequence: u64) -> Option<ConnectionId> {
        self.paths.get(&path)?.id_of(sequence)
    }

    /// `path` moves to the address that the lent connection ID `sequence` goes to: the two change their places. Returns
    /// the sequence number of the one that was in use.
    pub fn exchange(&mut self, path: PathId, sequence: u64) -> Option<u64> {
        self.paths.get_mut(&path)?.exchange(sequence)
    }

    /// Retires the lent connection ID `sequence`: nothing is sent any more to where it went.
    pub fn give_back(&mut self, path: PathId, sequence: u64) {
        if let Some(retired) = self.paths.get_mut(&path).and_then(|ids| ids.give_back(sequence)) {
            self.retirements.add(path, retired.sequence, retired.id);
        }
    }

    /// The sequence number of the next connection ID that the peer is expected to issue for `path`.
    pub fn next_expected_sequence(&self, path: PathId) -> u64 {
        self.paths.get(&path).map_or(0, |ids| ids.next_sequence())
    }

    /// The next RETIRE_CONNECTION_ID or PATH_RETIRE_CONNECTION_ID to send.
    #[inline]
    pub fn next_frame(&mut self) -> Option<(Frame, RecoveryToken)> {
        if self.has_retirements() { self.next_retirement() } else { None }
    }

    /// Returns true if a retirement is to be sent.
    #[inline]
    pub fn has_retirements(&self) -> bool {
        !self.retirements.is_empty()
    }

    fn next_retirement(&mut self) -> Option<(Frame, RecoveryToken)> {
        let (path, sequence) = self.retirements.next()?;
        let frame = Frame::RetireConnectionId { path: self.form.field(path), sequence };
        Some((frame, RecoveryToken::RetireConnectionId { path, sequence }))
    }

    /// The retirement of `sequence` of `path` arrived.
    pub fn on_acknowledged(&mut self, path: PathId, sequence: u64) {
        self.retirements.on_acknowledged(path, sequence);
    }

    /// The retirement of `sequence` of `path` was lost: it is sent again (RFC 9000 §13.3).
    pub fn on_lost(&mut self, path: PathId, sequence: u64) {
        self.retirements.on_lost(path, sequence);
    }

    /// `path` is abandoned: all its connection IDs are retired at once, without frames (RFC 10069 §3.4), their tokens
    /// mean nothing any more, and further ones are ignored.
    pub fn drop_path(&mut self, path: PathId) {
        self.dropped.insert(u64::from(path.0));
        self.retirements.drop_path(path);
        self.paths.remove(&path);
    }

    /// Every connection ID that is active or whose retirement is not acknowledged, with its path and sequence number. They
    /// are few, and looked through only when the peer issues another.
    fn known(&self) -> impl Iterator<Item = (ConnectionId, PathId, u64)> + '_ {
        let active = self
            .paths
            .iter()
            .flat_map(|(path, ids)| ids.known().map(move |known| (known.id, *path, known.sequence)));
        active.chain(self.retirements.unconfirmed())
    }

    /// Returns true if `token` is the stateless reset token of a connection ID in use. Those never used and those
    /// retired do not count (RFC 9000 §10.3.1). Takes the same time wherever and whether it matches.
    pub fn is_reset_token(&self, token: &[u8; 16]) -> bool {
        let tokens = self.paths.values().flat_map(|ids| ids.tokens_in_use());
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1
        //= reason=known.0.ct_eq(token)).into()
        //# When comparing a datagram to stateless reset token values, endpoints MUST perform the comparison
        //# without leaking information about the value of the token
        tokens.fold(Choice::from(0), |found, known| found | known.0.ct_eq(token)).into()
    }
}

fn check_fields(frame: &NewConnectionId) -> Result<(), TransportError> {
    if frame.id.is_empty() || frame.id.len() > MAX_LENGTH {
        return Err(ErrorCode::FRAME_ENCODING_ERROR.because("a connection ID of invalid length"));
    }
    if frame.retire_prior_to > frame.sequence {
        return Err(ErrorCode::FRAME_ENCODING_ERROR.because("retire_prior_to above the sequence number"));
    }
    Ok(())
}

fn violation(reason: &'static str) -> TransportError {
    ErrorCode::PROTOCOL_VIOLATION.because(reason)
}

#[cfg(test)]
mod exchange;
#[cfg(test)]
mod tests;
