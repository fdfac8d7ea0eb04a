//! The paths of a connection, and what they share: connection IDs, limits, statuses and delays.

use crate::PathId;
use crate::path::candidates::{CandidateAddress, Measurements};
use crate::path::hints::EarlyHints;
use crate::path::lifecycle::{LifecycleEvent, Lifecycles, Transition};
use crate::path::limits::PathLimits;
use crate::path::liveness::{Company, Contact};
use crate::path::local_ids::{IdSource, LocalIds};
use crate::path::path::Path;
use crate::path::relief::Reliefs;
use crate::path::remote_ids::RemoteIds;
use crate::path::rotation::Rotation;
use crate::path::route::FourTuple;
use crate::path::status::Statuses;
use crate::recovery::delay::{PathRtts, one_way, one_way_alone};
use crate::recovery_token::{RecoveryToken, TransmissionState};
use crate::time::{Deadline, Instant};
use crate::wire::connection_id::ConnectionId;
use crate::wire::frame::Frame;
use crate::wire::transport_parameters::TransportParameters;
use hvq_scheduler::PathState;
use smallvec::SmallVec;
use std::net::SocketAddr;
use std::time::Duration;

/// The relation of a 1-RTT packet to the paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathMatch {
    /// To an open path, or one that was abandoned lately, over its addresses.
    Known,
    /// To an open path, from other addresses.
    OtherAddress,
    /// To a path that the peer opens with it.
    Fresh,
    /// To a path that is over.
    Gone,
}

/// Tells whether a client has considered the preferred address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum PreferredAddressState {
    /// Not yet: the handshake is not confirmed.
    #[default]
    Due,
    /// It has.
    Done,
}

/// All paths of one connection.
pub struct Paths {
    /// Open paths, ascending.
    open: Vec<Path>,
    /// Abandoned paths whose late packets are still acknowledged (RFC 10069 §3.4).
    abandoned: Vec<Path>,
    /// The estimated one-way delay of each open path.
    delays: SmallVec<[(PathId, Duration); 4]>,
    /// Connection IDs that this endpoint issued.
    pub local_ids: LocalIds,
    /// Connection IDs that the peer issued.
    pub remote_ids: RemoteIds,
    /// Path ID limits.
    pub limits: PathLimits,
    /// Advice about the use of paths.
    pub status: Statuses,
    /// The peer's hints about paths that are not open yet.
    pub(crate) early_hints: EarlyHints,
    /// States of all path IDs.
    pub lifecycles: Lifecycles,
    /// Narrow paths that the peer fills. `None` if it can be told that they are narrow.
    pub(in crate::path) reliefs: Option<Box<Reliefs>>,
    /// The source of connection IDs that this endpoint issues.
    id_source: Box<dyn IdSource + Send>,
    /// The addresses of the handshake.
    handshake_tuple: FourTuple,
    preferred: PreferredAddressState,
    /// True if the router has to be told about remote addresses.
    moved: bool,
    /// The time at which the endpoint's knowledge last learned of them, in milliseconds that begin anew after 49 days.
    learned_at: u32,
}

/// The connection IDs of a connection, at its start.
pub struct FirstConnectionIds {
    /// Connection IDs that this endpoint issues.
    pub local: LocalIds,
    /// Connection IDs that the peer issues.
    pub remote: RemoteIds,
    /// The source of further ones of this endpoint.
    pub source: Box<dyn IdSource + Send>,
}

impl Paths {
    /// A connection's paths before the handshake: path 0 alone.
    pub fn new(first: Path, ids: FirstConnectionIds, limit: Option<PathId>) -> Self {
        let FirstConnectionIds { local: local_ids, remote: remote_ids, source: id_source } = ids;
        Self {
            handshake_tuple: first.route.tuple,
            preferred: PreferredAddressState::default(),
            id_source,
            open: vec![first],
            abandoned: Vec::new(),
            delays: SmallVec::new(),
            local_ids,
            remote_ids,
            limits: PathLimits::new(limit),
            status: Statuses::default(),
            early_hints: EarlyHints::default(),
            lifecycles: Lifecycles::new(),
            reliefs: None,
            moved: true,
            learned_at: 0,
        }
    }

    /// The addresses of the handshake.
    pub fn handshake_tuple(&self) -> FourTuple {
        self.handshake_tuple
    }

    /// Returns true if [`Self::take_preferred_due`] was not called yet.
    #[inline]
    pub fn is_preferred_due(&self) -> bool {
        self.preferred == PreferredAddressState::Due
    }

    /// Returns true once: a client considers the preferred address of its server when the handshake is confirmed.
    pub fn take_preferred_due(&mut self) -> bool {
        std::mem::replace(&mut self.preferred, PreferredAddressState::Done) == PreferredAddressState::Due
    }

    /// Returns true if [`Self::next_frame`] or [`Self::next_hints`] may have a frame.
    #[inline]
    pub fn may_have_frame(&self) -> bool {
        self.lifecycles.has_announcements()
            || self.local_ids.may_have_frame()
            || self.remote_ids.has_retirements()
            || self.limits.may_have_frame()
            || self.status.has_advice()
            || self.open.iter().any(Path::may_have_hints)
    }

    /// The next frame about paths and their connection IDs, with the token by which it comes back.
    pub fn next_frame(&mut self) -> Option<(Frame, RecoveryToken)> {
        self.lifecycles
            .next_frame()
            .or_else(|| self.local_ids.next_frame(self.id_source.as_mut()))
            .or_else(|| self.remote_ids.next_frame())
            .or_else(|| self.limits.next_frame())
            .or_else(|| self.status.next_frame())
    }

    /// Takes what the peer's transport parameters say about paths and datagrams.
    pub fn on_peer_parameters(&mut self, parameters: &TransportParameters) {
        self.limits.set_peer(parameters.initial_max_path_id);
        self.local_ids.set_peer_limit(parameters.active_connection_id_limit);
        let limit = usize::try_from(parameters.max_udp_payload_size).unwrap_or(usize::MAX);
        for path in &mut self.open {
            path.route.limit_datagram_size(limit);
        }
    }

    /// Connection IDs are issued for all paths that both limits permit (RFC 10069 §3.2). Without multipath, for path 0.
    pub fn follow_limits(&mut self) {
        if self.limits.is_negotiated() {
            self.local_ids.set_multipath(self.limits.highest());
            self.remote_ids.set_multipath();
        }
    }

    /// Open paths, ascending.
    pub fn open(&self) -> impl Iterator<Item = &Path> {
        self.open.iter()
    }

    /// Gives up the memory that only paths in use have use for.
    pub fn hibernate(&mut self) {
        for path in &mut self.open {
            path.route.rate.hibernate();
            path.sent.hibernate();
        }
    }

    /// Open paths, ascending.
    pub fn open_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.open.iter_mut()
    }

    /// Open and lately abandoned paths.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        self.open.iter().chain(&self.abandoned)
    }

    /// Lately abandoned paths.
    pub(crate) fn abandoned_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.abandoned.iter_mut()
    }

    /// Returns true once in every `interval`: the endpoint's knowledge learns of the paths.
    pub(crate) fn is_learning_due(&mut self, interval: Duration, now: Instant) -> bool {
        let now = (now.as_nanos() / 1_000_000) as u32;
        let is_due = u128::from(now.wrapping_sub(self.learned_at)) >= interval.as_millis();
        if is_due {
            self.learned_at = now;
        }
        is_due
    }

    /// IDs of the open paths, ascending.
    #[inline]
    pub fn ids(&self) -> SmallVec<[PathId; 4]> {
        if let [only] = self.open.as_slice() {
            return SmallVec::from_buf_and_len([only.id; 4], 1);
        }
        let mut ids = SmallVec::new();
        // One after the other: faster than to collect them, and nearly always there is one.
        self.open.iter().for_each(|path| ids.push(path.id));
        ids
    }

    /// The open path `id`.
    #[inline]
    pub fn get(&self, id: PathId) -> Option<&Path> {
        self.open.iter().find(|path| path.id == id)
    }

    /// The open path `id`.
    #[inline]
    pub fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.open.iter_mut().find(|path| path.id == id)
    }

    /// The path `id`, open or lately abandoned.
    #[inline]
    pub fn any(&self, id: PathId) -> Option<&Path> {
        self.all().find(|path| path.id == id)
    }

    /// The path `id`, open or lately abandoned.
    #[inline]
    pub fn any_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.open.iter_mut().chain(&mut self.abandoned).find(|path| path.id == id)
    }

    /// The estimated one-way delay of path `id`.
    #[inline]
    pub fn delay(&self, id: PathId) -> Duration {
        let known = self.delays.iter().find(|entry| entry.0 == id).map(|entry| entry.1);
        known.unwrap_or_else(|| self.get(id).map_or(Duration::ZERO, |path| path.rtt().smoothed() / 2))
    }

    /// Derives the one-way delays anew if samples of late change them.
    pub fn follow_samples(&mut self) {
        if self.open.iter_mut().fold(false, |news, path| path.rtts.take_news() | news) {
            self.refresh_delays();
        }
    }

    /// Derives the one-way delays anew.
    fn refresh_delays(&mut self) {
        if let ([path], [known]) = (self.open.as_slice(), self.delays.as_mut_slice()) {
            *known = (path.id, one_way_alone(path.id, &path.rtts));
            return;
        }
        let rtts: SmallVec<[(PathId, &PathRtts); 4]> =
            self.open.iter().map(|path| (path.id, &path.rtts)).collect();
        self.delays = one_way(&rtts);
    }

    /// The largest PTO of all open paths, without backoff, for a peer that delays acknowledgements by `max_ack_delay` at
    /// most; a second if none is open.
    pub fn longest_probe_timeout(&self, max_ack_delay: Duration) -> Duration {
        if let [only] = self.open.as_slice() {
            return only.probe_period(max_ack_delay);
        }
        let periods = self.open.iter().map(|path| path.probe_period(max_ack_delay));
        periods.max().unwrap_or(Duration::from_secs(1))
    }

    /// The shortest round trip that was seen on any open path, zero before the first.
    pub fn shortest_round_trip(&self) -> Duration {
        let sampled = self.open.iter().filter(|path| path.rtts.is_sampled());
        sampled.filter_map(|path| path.rtt().min()).min().unwrap_or_default()
    }

    /// Bytes that paths other than `id` which answer could carry at `now`.
    pub fn room_beside(&self, id: PathId, now: Instant) -> usize {
        self.open
            .iter()
            .filter(|path| path.id != id && !path.liveness.is_silent())
            .map(|path| path.route.room(path.sent.in_flight(), now))
            .fold(0, usize::saturating_add)
    }

    /// Changes connection IDs that were used for as long as `rotation` permits; `reserve` of the peer's IDs stay unused.
    pub fn rotate_due(&mut self, rotation: &Rotation, reserve: usize, now: Instant) {
        for id in self.ids() {
            let path = self.get(id).expect("the path is open");
            // Who is not heard may not learn which connection IDs are retired, nor issue others: the last ones are needed
            // should the peer turn out to be elsewhere (RFC 9000 §9.5).
            let answers = matches!(path.scheduling_state(), PathState::Available | PathState::Backup);
            if answers && path.is_rotation_due(rotation, now) {
                let _unchanged_without_a_spare = self.rotate(id, reserve, now);
            }
        }
    }

    /// Takes another connection ID of the peer into use on path `id` and retires the one before; `None` if there is no
    /// spare one beside `reserve`.
    pub fn rotate(&mut self, id: PathId, reserve: usize, now: Instant) -> Option<ConnectionId> {
        let destination = self.remote_ids.rotate(id, reserve);
        let path = self.get_mut(id)?;
        // Without a spare it is tried again as if there had been one: not with every packet.
        path.on_destination(now);
        if destination.is_some() {
            // RFC 9000 §17.4: the spin bit starts anew with another connection ID.
            path.spin.reset();
        } else {
            let next = self.remote_ids.next_expected_sequence(id);
            self.limits.on_ids_exhausted(id, next);
        }
        destination
    }

    /// Returns the time at which `path` counts as silent though its probe timeout does not fire; only if another path
    /// could take over, for it answers or was heard.
    pub fn overdue_at(&self, path: &Path, max_ack_delay: Duration) -> Option<Instant> {
        if path.liveness.is_silent() || path.rtts.is_sampled() && !path.sent.has_ack_eliciting_in_flight() {
            return None;
        }
        let takes_over =
            |other: &&Path| other.id != path.id && (other.is_answering() || other.liveness.is_heard());
        let beside = self.open.iter().filter(takes_over).map(|other| other.rtt().smoothed()).max()?;
        path.silent_at(max_ack_delay, beside)
    }

    /// Returns the time at which `path` is to be asked whether it is back, if it is silent.
    pub fn ask_at(&self, path: &Path, max_ack_delay: Duration) -> Option<Instant> {
        if !path.liveness.is_silent() {
            return None;
        }
        let company = if self.are_silent_everywhere() { Company::Alone } else { Company::Beside };
        path.ask_at(max_ack_delay, company)
    }

    /// Returns true if no path answers that is known to reach the peer.
    pub fn are_silent_everywhere(&self) -> bool {
        !self.open.iter().any(Path::is_answering)
    }

    /// The contact with the peer over all open paths.
    pub fn contact(&self) -> Contact {
        Contact::over(self.open.iter().map(|path| &path.liveness))
    }

    /// The liveness of path `id` changed: the peer, which may not know it yet, is advised to use another path while this one is silent
    /// (RFC 10069 §3.3). Whoever notices first that a path is dead tells the other.
    pub fn advise(&mut self, id: PathId) {
        let Some(path) = self.get(id).filter(|_| self.limits.is_negotiated()) else { return };
        match path.advice() {
            Some(status) => self.status.set_local(id, status),
            None => self.status.withdraw(id),
        }
    }

    /// Returns the relation to the paths of a packet that named path `id` and came over `tuple`.
    pub fn arrival(&self, id: PathId, tuple: FourTuple) -> PathMatch {
        match self.any(id) {
            Some(path) if path.route.tuple == tuple => PathMatch::Known,
            Some(_) => PathMatch::OtherAddress,
            None if self.lifecycles.accepts(id) => PathMatch::Fresh,
            None => PathMatch::Gone,
        }
    }

    /// A datagram of `bytes` came over `tuple`: it widens what may be sent there before validation (RFC 9000 §8.1).
    pub fn on_datagram(&mut self, tuple: FourTuple, bytes: usize) {
        let is_limited = |path: &Path| !path.route.amplification.is_validated() || !path.elsewhere.is_empty();
        if !self.open.iter().any(is_limited) {
            return;
        }
        // One 4-tuple's bytes count once, even if several paths share it.
        let limits = self.open.iter_mut().flat_map(|path| {
            let route = (path.route.tuple == tuple).then_some(&mut path.route.amplification);
            let elsewhere = path.elsewhere.iter_mut().filter(|candidate| candidate.tuple == tuple);
            route.into_iter().chain(elsewhere.map(|candidate| &mut candidate.amplification))
        });
        if let Some(limit) = limits.min_by_key(|limit| limit.allowance()) {
            limit.on_received(bytes);
        }
    }

    /// Returns true if datagrams that arrive over `tuple` are counted by [`Self::on_datagram`].
    pub fn counts(&self, tuple: FourTuple) -> bool {
        self.open.iter().any(|path| path.route.tuple == tuple || path.elsewhere.get(tuple).is_some())
    }

    /// Returns true if some open path has proven that the peer receives at the remote address of `tuple`, seen from the
    /// same local one.
    pub fn is_validated(&self, tuple: FourTuple) -> bool {
        self.open.iter().any(|path| {
            let elsewhere = path.elsewhere.get(tuple).is_some_and(|one| one.validation.is_validated());
            elsewhere || path.route.tuple == tuple && path.route.validation.is_validated()
        })
    }

    /// Addresses beside those in use that are being validated, on all paths.
    pub fn pending_candidates(&self) -> usize {
        self.open.iter().map(|path| path.elsewhere.pending()).sum()
    }

    /// Remembers an address of path `id` beside the one in use.
    pub fn add_candidate(&mut self, id: PathId, candidate: CandidateAddress) {
        if let Some(path) = self.get_mut(id) {
            let gone = path.elsewhere.add(candidate);
            self.forget_candidates(id, gone);
        }
    }

    /// Gives back the connection IDs that went to addresses of path `id` which are not needed any more.
    pub fn forget_candidates(&mut self, id: PathId, gone: impl IntoIterator<Item = CandidateAddress>) {
        for sequence in gone.into_iter().filter_map(|candidate| candidate.destination) {
            if !self.get(id).is_some_and(|path| path.elsewhere.uses(sequence)) {
                self.remote_ids.give_back(id, sequence);
            }
        }
    }

    /// The connection ID of the peer for `tuple`, an address of path `id` beside the one in use.
    pub fn destination(&self, id: PathId, tuple: FourTuple) -> Option<ConnectionId> {
        match self.get(id)?.elsewhere.get(tuple)?.destination {
            Some(sequence) => self.remote_ids.id_of(id, sequence),
            None => self.remote_ids.current(id),
        }
    }

    /// Lends another connection ID to `tuple`, an address of path `id` beside the one in use, if the peer had that which it
    /// has retired (RFC 9000 §5.1.2).
    pub fn renew_destination(&mut self, id: PathId, tuple: FourTuple) {
        if self.destination(id, tuple).is_some() {
            return;
        }
        let path = self.open.iter_mut().find(|path| path.id == id);
        if let Some(candidate) = path.and_then(|path| path.elsewhere.get_mut(tuple)) {
            candidate.destination = self.remote_ids.lend(id).or(candidate.destination);
        }
    }

    /// Moves path `id` to `tuple`, one of its addresses beside the one in use, as [`Path::migrate_to`] does. The peer's
    /// connection IDs move along: none is ever seen at two addresses by this endpoint's choice (RFC 9000 §9.5).
    pub fn migrate_to(
        &mut self,
        id: PathId,
        tuple: FourTuple,
        fresh: Option<Box<Measurements>>,
        now: Instant,
    ) {
        let path = self.open.iter_mut().find(|path| path.id == id).expect("an open path moves");
        let mut to = path.elsewhere.take(tuple).expect("it moves to an address of its own");
        if let Some(taken) = to.destination {
            // The peer may have had it retired meanwhile (RFC 9000 §5.1.2).
            let is_known = self.remote_ids.id_of(id, taken).is_some();
            let taken = if is_known { taken } else { self.remote_ids.lend(id).unwrap_or(taken) };
            to.destination = self.remote_ids.exchange(id, taken);
            if let Some(left) = to.destination {
                path.elsewhere.on_exchanged(taken, left);
            }
        }
        let gone = path.migrate_to(to, fresh, now);
        self.forget_candidates(id, gone);
        self.moved = true;
        self.refresh_delays();
    }

    /// Adds an open path.
    pub fn insert(&mut self, path: Path) {
        let index = self.open.partition_point(|other| other.id < path.id);
        self.local_ids.open_path(path.id);
        self.remote_ids.open_path(path.id);
        self.open.insert(index, path);
        self.moved = true;
        self.refresh_delays();
    }

    /// Applies `event` to the life of `id`. An open path that ends moves to the abandoned ones.
    pub fn apply(&mut self, id: PathId, event: LifecycleEvent, now: Instant) -> Transition {
        let transition = self.lifecycles.apply(id, event, now);
        if transition.abandons() {
            self.retire(id);
        }
        transition
    }

    fn retire(&mut self, id: PathId) {
        if let Some(index) = self.open.iter().position(|path| path.id == id) {
            let path = self.open.remove(index);
            self.abandoned.push(path);
        }
        for path in &mut self.open {
            path.rtts.forget(id);
        }
        self.local_ids.close_path(id);
        //= https://www.rfc-editor.org/rfc/rfc10069#section-3.4
        //# Endpoints that send a PATH_ABANDON frame MUST treat all connection IDs received from the peer for
        //# the path ID indicated in the PATH_ABANDON as immediately retired
        self.remote_ids.drop_path(id);
        self.status.drop_path(id);
        if let Some(reliefs) = &mut self.reliefs {
            reliefs.forget(id);
        }
        // What was said of an open path goes with it.
        self.early_hints.take(id);
        self.limits.clear_ids_exhausted(id);
        self.moved = true;
        self.refresh_delays();
    }

    /// Returns true if validation may have failed by `now`, on the addresses in use or on others, or something is to be freed.
    pub fn may_have_due(&self, now: Instant) -> bool {
        let is_concerned =
            |path: &Path| !path.elsewhere.is_empty() || path.route.validation.may_have_failed(now);
        self.lifecycles.may_expire() || self.open.iter().any(is_concerned)
    }

    /// Frees what is due, and returns the IDs of paths that are over for good.
    pub fn expire(&mut self, now: Instant) -> Vec<PathId> {
        let freed = self.lifecycles.expire(now);
        for id in &freed {
            self.abandoned.retain(|path| path.id != *id);
            self.local_ids.drop_path(*id);
        }
        let credit = self.lifecycles.take_reclaimed();
        if credit > 0 {
            self.limits.return_credit(credit);
            self.follow_limits();
        }
        freed
    }

    /// Returns true if a path may have a packet to send at `now` of its own accord; an abandoned one an acknowledgement.
    pub fn have_interest(&self, now: Instant) -> bool {
        self.open.iter().any(|path| path.has_interest(now))
            || self.abandoned.iter().any(|path| path.received.ack_due(now))
    }

    /// The next deadline of abandoned paths.
    pub fn deadline(&self) -> Option<Deadline> {
        self.lifecycles.deadline()
    }

    /// The path that most likely delivers a CONNECTION_CLOSE: a validated one that answers, the fastest of them.
    pub fn best_for_close(&self) -> Option<PathId> {
        let usable = |path: &&Path| self.remote_ids.current(path.id).is_some();
        let rank = |path: &&Path| (path.scheduling_state() as u8, path.rtt().smoothed());
        self.open.iter().filter(usable).min_by_key(rank).map(|path| path.id)
    }

    /// Remote addresses in use, if they changed since the last call.
    pub fn take_remotes(&mut self) -> Option<Vec<SocketAddr>> {
        if !std::mem::take(&mut self.moved) {
            return None;
        }
        let mut remotes: Vec<SocketAddr> = self.open.iter().map(|path| path.route.tuple.remote).collect();
        remotes.sort_unstable();
        remotes.dedup();
        Some(remotes)
    }

    /// Returns true if the router has to be told of connection IDs or remote addresses.
    #[inline]
    pub fn has_changes_of_ids(&self) -> bool {
        self.moved || self.local_ids.has_changes()
    }

    /// Hands an acknowledged token to its owner; false if it is none of the paths'.
    pub fn on_acknowledged(&mut self, token: &RecoveryToken) -> bool {
        match token {
            RecoveryToken::NewConnectionId { path, sequence } => {
                self.local_ids.on_acknowledged(*path, *sequence)
            }
            RecoveryToken::RetireConnectionId { path, sequence } => {
                self.remote_ids.on_acknowledged(*path, *sequence)
            }
            RecoveryToken::PathAbandon(path) => self.lifecycles.on_acknowledged(*path),
            RecoveryToken::PathStatus { path, sequence } => self.status.on_acknowledged(*path, *sequence),
            RecoveryToken::PathHints { path, sequence } => {
                self.settle_hints(*path, *sequence, TransmissionState::Acknowledged);
            }
            RecoveryToken::MaxPathId(_)
            | RecoveryToken::PathsBlocked(_)
            | RecoveryToken::PathCidsBlocked(_) => {
                self.limits.on_acknowledged(token);
            }
            _ => return false,
        }
        true
    }

    /// The next hints for the peer: about each open path only the newest.
    pub(crate) fn next_hints(&mut self) -> Option<(Frame, RecoveryToken)> {
        let frame = self.open.iter_mut().find_map(Path::next_hints)?;
        let token = RecoveryToken::PathHints { path: frame.path, sequence: frame.sequence };
        Some((Frame::PathHints(frame), token))
    }

    fn settle_hints(&mut self, path: PathId, sequence: u64, progress: TransmissionState) {
        if let Some(path) = self.get_mut(path) {
            path.settle_hints(sequence, progress);
        }
    }

    /// Hands a lost token to its owner, which may want to send again; false if it is none of the paths'.
    pub fn on_lost(&mut self, token: &RecoveryToken) -> bool {
        match token {
            RecoveryToken::NewConnectionId { path, sequence } => self.local_ids.on_lost(*path, *sequence),
            RecoveryToken::RetireConnectionId { path, sequence } => self.remote_ids.on_lost(*path, *sequence),
            RecoveryToken::PathAbandon(path) => self.lifecycles.on_lost(*path),
            RecoveryToken::PathStatus { path, sequence } => self.status.on_lost(*path, *sequence),
            RecoveryToken::PathHints { path, sequence } => {
                self.settle_hints(*path, *sequence, TransmissionState::Queued)
            }
            RecoveryToken::MaxPathId(_)
            | RecoveryToken::PathsBlocked(_)
            | RecoveryToken::PathCidsBlocked(_) => {
                self.limits.on_lost(token);
            }
            _ => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests;
