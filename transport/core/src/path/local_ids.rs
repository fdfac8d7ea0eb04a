//! Connection IDs that this endpoint issues, for all paths (RFC 9000 §5.1, RFC 10069 §3.2).

use crate::PathId;
use crate::error::{ErrorCode, TransportError};
use crate::flat_map::FlatMap;
use crate::path::limits::Form;
use crate::ranges::Ranges;
use crate::recovery_token::{RecoveryToken, TransmissionState};
use crate::wire::connection_id::{ConnectionId, ResetToken};
use crate::wire::frame::{Frame, NewConnectionId};
use std::collections::{BTreeSet, VecDeque};

/// Connection IDs that the peer holds for a path in use at most, whatever it is ready to store.
const IDS_PER_PATH: u64 = 3;
/// Paths with connection IDs at most, whatever both limits allow.
const MAX_PATHS: usize = 64;
/// Retired connection IDs of a path that are still recognized: all that the peer may retire at once. RETIRE_CONNECTION_ID may travel on a fast path and
/// overtake packets that were sent before it on a slow one.
const LINGERING: usize = IDS_PER_PATH as usize;
/// Attempts to get a connection ID that is not in use already.
const DRAWS: usize = 8;

/// Makes connection IDs with their stateless reset tokens, in the way that the endpoint routes by them.
pub trait IdSource {
    /// A new connection ID and its token, different from all that it gave before.
    fn issue(&mut self) -> (ConnectionId, ResetToken);
}

/// A connection ID that the peer may use.
#[derive(Clone, Copy, Debug)]
struct Issued {
    id: ConnectionId,
    /// The token; the first connection ID of a client has none.
    token: Option<ResetToken>,
    /// The sequence number below which the peer retires others when it learns of this one.
    retire_prior_to: u64,
    progress: TransmissionState,
}

/// The need of a path for connection IDs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Need {
    /// One, so that the peer can open the path.
    Opening,
    /// Enough to fill the peer's store, so that it can change them.
    Spares,
    /// None: the path is abandoned.
    None,
}

#[derive(Clone, Debug)]
struct PathIds {
    need: Need,
    next_sequence: u64,
    /// The peer is asked to retire those below (RFC 9000 §5.1.2).
    retire_prior_to: u64,
    active: FlatMap<u64, Issued>,
    /// Retired, with their sequence numbers, the oldest first.
    lingering: VecDeque<(ConnectionId, u64)>,
}

impl PathIds {
    /// All that are recognized, with their sequence numbers.
    fn all(&self) -> impl Iterator<Item = (ConnectionId, u64)> + '_ {
        let active = self.active.iter().map(|(sequence, issued)| (issued.id, *sequence));
        active.chain(self.lingering.iter().copied())
    }
}

/// The connection IDs of this endpoint.
///
/// Every path in use has as many as the peer stores, at most three; every unused path up to the highest has one, without
/// holes. Frames about paths above the limit are not brought here.
#[derive(Clone, Debug)]
pub struct LocalIds {
    form: Form,
    /// Connection IDs per path that the peer stores, at most [`IDS_PER_PATH`].
    per_path: u64,
    /// The highest path that gets connection IDs.
    highest: PathId,
    /// The smallest path ID that was never given a connection ID.
    next_path: u64,
    paths: FlatMap<PathId, PathIds>,
    /// Paths that were dropped: they get no connection IDs any more.
    dropped: Ranges,
    /// The ID that was looked up last: packets to one connection ID come in rows.
    latest: Option<(ConnectionId, (PathId, u64))>,
    /// Paths that may lack connection IDs.
    short: BTreeSet<PathId>,
    /// To be sent again.
    lost: BTreeSet<(PathId, u64)>,
    new: Vec<ConnectionId>,
    gone: Vec<ConnectionId>,
}

impl LocalIds {
    /// The connection IDs of a connection whose first one, of path 0 and with sequence number 0, is `initial`. If that
    /// is empty no others are issued (RFC 9000 §5.1.1).
    pub fn new(initial: ConnectionId) -> Self {
        let first = Issued {
            id: initial,
            token: None,
            retire_prior_to: 0,
            progress: TransmissionState::Acknowledged,
        };
        let zero = PathIds {
            need: Need::Spares,
            next_sequence: 1,
            retire_prior_to: 0,
            active: FlatMap::of(0, first),
            lingering: VecDeque::new(),
        };
        Self {
            form: Form::SinglePath,
            per_path: 1,
            highest: PathId::ZERO,
            next_path: 1,
            paths: FlatMap::of(PathId::ZERO, zero),
            dropped: Ranges::new(),
            latest: None,
            short: BTreeSet::new(),
            lost: BTreeSet::new(),
            new: vec![initial],
            gone: Vec::new(),
        }
    }

    /// Takes the peer's `active_connection_id_limit`, which counts per path with multipath (RFC 10069 §2.2).
    pub fn set_peer_limit(&mut self, active_connection_id_limit: u64) {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
        //# An endpoint MUST NOT provide more connection IDs than the peer's limit
        self.per_path = active_connection_id_limit.clamp(1, IDS_PER_PATH);
        self.short.extend(self.paths.keys());
    }

    /// Multipath was negotiated, or a limit rose: paths up to `highest`, the smaller of both limits, get connection IDs.
    pub fn set_multipath(&mut self, highest: PathId) {
        self.form = Form::Multipath;
        self.highest = self.highest.max(highest);
    }

    /// Registers the connection ID of the preferred address: sequence number 1 of path 0 (RFC 9000 §5.1.1). Called
    /// before any other is issued.
    pub fn set_preferred(&mut self, id: ConnectionId, token: ResetToken) {
        if let Some(zero) = self.paths.get_mut(&PathId::ZERO).filter(|zero| zero.next_sequence == 1) {
            zero.next_sequence = 2;
            let (token, progress) = (Some(token), TransmissionState::Acknowledged);
            zero.active.insert(1, Issued { id, token, retire_prior_to: 0, progress });
            self.new.push(id);
        }
    }

    /// `path` is in use: the peer gets connection IDs to change to.
    pub fn open_path(&mut self, path: PathId) {
        if let Some(ids) = self.paths.get_mut(&path).filter(|ids| ids.need == Need::Opening) {
            ids.need = Need::Spares;
            self.short.insert(path);
        }
    }

    /// `path` is abandoned: it gets no further connection IDs, and those it has are recognized until
    /// [`Self::drop_path`] (RFC 10069 §3.4). A path that never had any gets none.
    pub fn close_path(&mut self, path: PathId) {
        match self.paths.get_mut(&path) {
            Some(ids) => {
                ids.need = Need::None;
                self.short.remove(&path);
                self.lost.retain(|(lost, _)| *lost != path);
            }
            None => {
                self.dropped.insert(u64::from(path.0));
            }
        }
    }

    /// `path` is freed: packets to its connection IDs do not belong to this connection any more.
    pub fn drop_path(&mut self, path: PathId) {
        self.close_path(path);
        self.dropped.insert(u64::from(path.0));
        let Some(ids) = self.paths.remove(&path) else { return };
        for (id, _) in ids.all() {
            self.forget(id);
        }
    }

    /// The path and sequence number of a connection ID of this endpoint.
    pub fn lookup(&mut self, id: &ConnectionId) -> Option<(PathId, u64)> {
        match &self.latest {
            Some((latest, found)) if latest == id => Some(*found),
            _ => {
                // There are a few for each path.
                let (_, path, sequence) = self.known().find(|(known, ..)| known == id)?;
                let found = (path, sequence);
                self.latest = Some((*id, found));
                Some(found)
            }
        }
    }

    /// Returns true if the peer was given a connection ID for `path` that it has not retired.
    pub fn has_issued(&self, path: PathId) -> bool {
        self.paths.get(&path).is_some_and(|ids| !ids.active.is_empty())
    }

    /// The sequence number of the next connection ID issued for `path`.
    pub fn next_sequence(&self, path: PathId) -> u64 {
        self.paths.get(&path).map_or(0, |ids| ids.next_sequence)
    }

    /// The next connection ID to send: lost ones first, then one for each unused path, then spares for paths in use.
    #[inline]
    pub fn next_frame(&mut self, source: &mut dyn IdSource) -> Option<(Frame, RecoveryToken)> {
        if self.may_have_frame() { self.issue(source) } else { None }
    }

    /// Returns true if the peer may lack a connection ID. Most have all that they may have.
    #[inline]
    pub fn may_have_frame(&self) -> bool {
        let has_unserved = self.next_path <= u64::from(self.highest.0);
        has_unserved || !self.short.is_empty() || !self.lost.is_empty()
    }

    fn issue(&mut self, source: &mut dyn IdSource) -> Option<(Frame, RecoveryToken)> {
        while let Some((path, sequence)) = self.lost.pop_first() {
            let issued = self.paths.get_mut(&path).and_then(|ids| ids.active.get_mut(&sequence));
            if let Some(issued) = issued.filter(|issued| issued.token.is_some()) {
                issued.progress = TransmissionState::Sent;
                let issued = *issued;
                return self.frame(path, sequence, &issued);
            }
        }
        let path = self.next_unserved().or_else(|| self.next_short())?;
        let (id, token) = self.draw(source)?;
        let next_path = &mut self.next_path;
        let ids = self.paths.get_or_insert_with(path, || {
            *next_path = u64::from(path.0) + 1;
            PathIds {
                need: Need::Opening,
                next_sequence: 0,
                retire_prior_to: 0,
                active: FlatMap::default(),
                lingering: VecDeque::new(),
            }
        });
        let sequence = ids.next_sequence;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
        //# The sequence number on each newly issued connection ID MUST increase by 1
        ids.next_sequence += 1;
        let retire_prior_to = ids.retire_prior_to;
        let issued = Issued { id, token: Some(token), retire_prior_to, progress: TransmissionState::Sent };
        ids.active.insert(sequence, issued);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
        //# When an endpoint issues a connection ID, it MUST accept packets that carry this connection ID for
        //# the duration of the connection or until its peer invalidates the connection ID via a
        self.new.push(id);
        self.frame(path, sequence, &issued)
    }

    /// Asks the peer to retire all connection IDs of `path` that it has, for new ones (RFC 9000 §5.1.2); whether there
    /// are any to ask for. Asking again before the peer has retired what it was asked for changes nothing.
    pub fn request_retirement(&mut self, path: PathId) -> bool {
        if self.is_nameless() {
            return false;
        }
        let Some(ids) = self.paths.get_mut(&path).filter(|ids| ids.need == Need::Spares) else {
            return false;
        };
        // RFC 9000 §5.1.2: no more may be outstanding than the peer can retire at a time.
        if ids.active.keys().all(|sequence| *sequence >= ids.retire_prior_to) {
            ids.retire_prior_to = ids.next_sequence;
            self.short.insert(path);
        }
        true
    }

    /// Takes RETIRE_CONNECTION_ID or PATH_RETIRE_CONNECTION_ID, which came in a packet to the connection ID
    /// `carried_by` (path and sequence number). A repetition is ignored.
    ///
    /// Errors: PROTOCOL_VIOLATION if the sequence number was not issued, names the packet's own connection ID, or the
    /// connection IDs of this endpoint are empty (RFC 9000 §19.16, RFC 10069 §4.5).
    pub fn on_retire(
        &mut self,
        path: PathId,
        sequence: u64,
        carried_by: (PathId, u64),
    ) -> Result<(), TransportError> {
        if self.is_nameless() {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-19.16
            //# An endpoint that provides a zero- length connection ID MUST treat receipt of a
            //# RETIRE_CONNECTION_ID frame as a connection error of type PROTOCOL_VIOLATION.
            return Err(violation("a connection ID of zero length was retired"));
        }
        let Some(ids) = self.paths.get_mut(&path) else {
            // RFC 10069 §4: what concerns a path that is gone is ignored.
            if self.dropped.contains(u64::from(path.0)) {
                return Ok(());
            }
            return Err(violation("a connection ID was retired that was not issued"));
        };
        if ids.need == Need::None {
            return Ok(());
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.16
        //# Receipt of a RETIRE_CONNECTION_ID frame containing a sequence number greater than any previously
        //# sent to the peer MUST be treated as a connection error of type PROTOCOL_VIOLATION.
        if sequence >= ids.next_sequence {
            return Err(violation("a connection ID was retired that was not issued"));
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.16
        //# The sequence number specified in a RETIRE_CONNECTION_ID frame MUST NOT refer to the Destination
        //# Connection ID field of the packet in which the frame is contained
        if carried_by == (path, sequence) {
            return Err(violation("a packet retired its own connection ID"));
        }
        if let Some(issued) = ids.active.remove(&sequence) {
            ids.lingering.push_back((issued.id, sequence));
            let overdue = if ids.lingering.len() > LINGERING { ids.lingering.pop_front() } else { None };
            self.short.insert(path);
            self.lost.remove(&(path, sequence));
            if let Some((id, _)) = overdue {
                self.forget(id);
            }
        }
        Ok(())
    }

    /// The frame with connection ID `sequence` of `path` arrived.
    pub fn on_acknowledged(&mut self, path: PathId, sequence: u64) {
        if let Some(issued) = self.issued(path, sequence) {
            issued.progress = TransmissionState::Acknowledged;
            self.lost.remove(&(path, sequence));
        }
    }

    /// The frame with connection ID `sequence` of `path` was lost: it is sent again, unchanged, unless it was retired
    /// or a copy arrived (RFC 9000 §13.3).
    pub fn on_lost(&mut self, path: PathId, sequence: u64) {
        let Some(ids) = self.paths.get_mut(&path).filter(|ids| ids.need != Need::None) else { return };
        if let Some(Issued { progress: progress @ TransmissionState::Sent, .. }) =
            ids.active.get_mut(&sequence)
        {
            *progress = TransmissionState::Queued;
            self.lost.insert((path, sequence));
        }
    }

    /// Connection IDs that came to be since the last call, the first one included, for the endpoint's router.
    pub fn take_new(&mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.new)
    }

    /// Returns true if [`Self::take_new`] or [`Self::take_gone`] has any.
    #[inline]
    pub fn has_changes(&self) -> bool {
        !self.new.is_empty() || !self.gone.is_empty()
    }

    /// Connection IDs that ceased to be since the last call, for the endpoint's router.
    pub fn take_gone(&mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.gone)
    }

    /// All connection IDs that are recognized now.
    pub fn all(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.known().map(|(id, ..)| id)
    }

    fn known(&self) -> impl Iterator<Item = (ConnectionId, PathId, u64)> + '_ {
        self.paths.iter().flat_map(|(path, ids)| ids.all().map(move |(id, sequence)| (id, *path, sequence)))
    }

    /// Returns true if the peer sends to this endpoint without connection IDs.
    fn is_nameless(&self) -> bool {
        self.known().any(|(id, ..)| id.is_empty())
    }

    fn issued(&mut self, path: PathId, sequence: u64) -> Option<&mut Issued> {
        self.paths.get_mut(&path)?.active.get_mut(&sequence)
    }

    /// The smallest path that never had a connection ID, if it shall have one (RFC 10069 §3.2: no holes).
    fn next_unserved(&mut self) -> Option<PathId> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
        //# An endpoint MUST NOT send this frame if it currently requires that its peer send packets with a
        //# zero-length Destination Connection ID
        if self.paths.len() >= MAX_PATHS {
            return None;
        }
        if let Some(range) = self.dropped.iter().find(|range| range.contains(&self.next_path)) {
            self.next_path = range.end() + 1;
        }
        //= https://www.rfc-editor.org/rfc/rfc10069#section-3.2.1
        //# Endpoints MUST NOT issue new connection IDs with path IDs greater than the Maximum Path Identifier
        //# field in MAX_PATH_ID frames
        let next = u32::try_from(self.next_path).ok().map(PathId).filter(|path| *path <= self.highest);
        next.filter(|_| !self.is_nameless())
    }

    /// A path that has fewer connection IDs than it needs.
    fn next_short(&mut self) -> Option<PathId> {
        if self.short.is_empty() || self.is_nameless() {
            return None;
        }
        while let Some(&path) = self.short.first() {
            let wanted = match self.paths.get(&path).map(|ids| ids.need) {
                Some(Need::Spares) => self.per_path,
                Some(Need::Opening) => 1,
                Some(Need::None) | None => 0,
            };
            // RFC 9000 §5.1.1: those that the peer is told to retire may exceed its limit for a time.
            let lasting = |ids: &PathIds| {
                ids.active.keys().filter(|sequence| **sequence >= ids.retire_prior_to).count() as u64
            };
            if self.paths.get(&path).is_some_and(|ids| lasting(ids) < wanted) {
                return Some(path);
            }
            self.short.pop_first();
        }
        None
    }

    fn draw(&mut self, source: &mut dyn IdSource) -> Option<(ConnectionId, ResetToken)> {
        let mut draws = (0..DRAWS).map(|_| source.issue());
        //= https://www.rfc-editor.org/rfc/rfc9000#section-5.1
        //# As a trivial example, this means the same connection ID MUST NOT be issued more than once on the
        //# same connection.
        // RFC 9000 §5.1: the same connection ID is not issued more than once on a connection.
        draws.find(|(id, _)| !id.is_empty() && self.all().all(|known| known != *id))
    }

    fn frame(&self, path: PathId, sequence: u64, issued: &Issued) -> Option<(Frame, RecoveryToken)> {
        let (form, Issued { id, retire_prior_to, .. }) = (self.form.field(path), *issued);
        let frame = NewConnectionId { path: form, sequence, retire_prior_to, id, token: issued.token? };
        Some((Frame::NewConnectionId(frame), RecoveryToken::NewConnectionId { path, sequence }))
    }

    fn forget(&mut self, id: ConnectionId) {
        self.latest = None;
        // The router need not hear of what it never heard of.
        match self.new.iter().position(|new| *new == id) {
            Some(at) => {
                self.new.swap_remove(at);
            }
            None => self.gone.push(id),
        }
    }
}

fn violation(reason: &'static str) -> TransportError {
    ErrorCode::PROTOCOL_VIOLATION.because(reason)
}

#[cfg(test)]
mod tests;
