//! Paths come and go (RFC 10069 §3): opening, accepting, validating, abandoning, and the frames that say so.

use crate::PathId;
use crate::connection::paths::maintenance::PathMaintenance;
use crate::connection::receive::Origin;
use crate::connection::{Connection, Event, FourTuple, OpenPathError, PathEvent, Role};
use crate::error::{Dropped, PacketError, TransportError};
use crate::path::amplification::Amplification;
use crate::path::lifecycle::{AbandonReason, LifecycleEvent};
use crate::path::path::Path;
use crate::path::route::{MINIMUM_DATAGRAM, Route};
use crate::recovery::rtt::INITIAL_RTT;
use crate::time::Instant;
use crate::wire::frame::{PathFrame, Status};
use std::time::Duration;

/// Paths that a server validates at the same time at most (RFC 10069 §7).
pub(in crate::connection) const VALIDATIONS: usize = 8;

/// The longest transmission time of a datagram of padding.
const NEGLIGIBLE: Duration = Duration::from_millis(1);

impl Connection {
    /// Takes the changes of addressing that the endpoint's router has to know, if there are any.
    #[inline]
    pub(crate) fn take_id_changes(&mut self) -> Option<IdChanges> {
        let is_unchanged = !self.paths.has_changes_of_ids() && !self.handshake.ids.has_chosen_by_peer();
        if is_unchanged { None } else { collect_id_changes(self) }
    }
}

fn collect_id_changes(of: &mut Connection) -> Option<IdChanges> {
    let mut new = of.paths.local_ids.take_new();
    new.append(&mut of.handshake.ids.take_chosen_by_peer());
    let changes = IdChanges { new, gone: of.paths.local_ids.take_gone(), remotes: of.paths.take_remotes() };
    (changes != IdChanges::default()).then_some(changes)
}

impl PathMaintenance<'_> {
    /// A client starts the next path over `tuple`.
    pub(in crate::connection) fn start_path(
        &mut self,
        tuple: FourTuple,
        now: Instant,
    ) -> Result<PathId, OpenPathError> {
        let highest = self.owners.paths.limits.highest();
        //= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# To open a new path, an endpoint MUST use a new connection ID associated with an unused path ID
        let Some(id) = self.owners.paths.lifecycles.unused(highest).next() else {
            self.owners.paths.limits.on_paths_exhausted();
            return Err(OpenPathError::LimitReached);
        };
        // RFC 10069 §3.1: both endpoints have issued a connection ID for the path.
        if self.owners.paths.remote_ids.current(id).is_none() || !self.owners.paths.local_ids.has_issued(id) {
            let next = self.owners.paths.remote_ids.next_expected_sequence(id);
            self.owners.paths.limits.on_ids_exhausted(id, next);
            return Err(OpenPathError::NoConnectionId);
        }
        self.owners.paths.apply(id, LifecycleEvent::Opened, now);
        let mut path = self.new_path(id, tuple, Amplification::Validated, now);
        path.open_with(if is_narrow(&path) { 0 } else { self.terms.config.opening_datagrams });
        self.owners.paths.insert(path);
        self.observer.on_event(&Event::Path(PathEvent::Opened(id)), self.owners.paths, now);
        Ok(id)
    }

    /// A server finds an authentic packet on a path that is not open: the client opens it (RFC 10069 §3.1).
    pub(in crate::connection) fn accept_path(
        &mut self,
        origin: &Origin,
        now: Instant,
    ) -> Result<(), PacketError> {
        if !self.is_multipath() || origin.path > self.owners.paths.limits.highest() {
            return Err(Dropped::PathGone.into());
        }
        if self.owners.paths.lifecycles.unvalidated() >= VALIDATIONS {
            let keep = self.owners.paths.longest_probe_timeout(self.terms.max_ack_delay()) * 3;
            let reason = AbandonReason::ResourceLimit;
            self.owners.paths.apply(origin.path, LifecycleEvent::Abandon { reason, keep }, now);
            return Err(Dropped::Limit.into());
        }
        self.owners.paths.apply(origin.path, LifecycleEvent::Heard, now);
        //= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# After receiving packets from the client on a new path, if the server decides to use the new path,
        //# the server MUST validate the peer's address before sending any data as described in
        let known = self.owners.paths.is_validated(origin.tuple);
        let mut amplification = if known { Amplification::Validated } else { Amplification::default() };
        // The datagram was credited already if another path has the same addresses.
        if !self.owners.paths.counts(origin.tuple) {
            amplification.on_received(origin.bytes);
        }
        let mut path = self.new_path(origin.path, origin.tuple, amplification, now);
        path.count_received(origin.bytes);
        path.on_peer_status(self.owners.paths.status.remote(origin.path));
        if known {
            path.route.validation.presume();
            self.owners.paths.apply(origin.path, LifecycleEvent::Validated, now);
        }
        self.owners.paths.insert(path);
        self.events.push(Event::Path(PathEvent::Opened(origin.path)));
        self.take_early_hints(origin.path);
        Ok(())
    }

    fn new_path(&mut self, id: PathId, tuple: FourTuple, amplification: Amplification, now: Instant) -> Path {
        let mut route = self.new_route(tuple, amplification, now);
        //= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# A client that wants to use a new path MUST validate the peer's address as described in Section 8.2
        //# of [QUIC-TRANSPORT], unless it has previously validated the 4-tuple used for that path.
        route.validation.start_within(now, self.rng.get(), INITIAL_RTT, self.terms.config.validation_timeout);
        let mut path = Path::new(id, route, self.owners.control.ack_frequencies.policy());
        path.set_hints(self.terms.config.hints_for(tuple.local));
        self.terms.config.configure(&mut path, self.terms.role, self.rng.get(), now);
        path
    }

    /// A route over `tuple` of which nothing is known.
    pub(in crate::connection) fn new_route(
        &self,
        tuple: FourTuple,
        amplification: Amplification,
        now: Instant,
    ) -> Route {
        let limit = usize::try_from(self.terms.peer.parameters().max_udp_payload_size).unwrap_or(usize::MAX);
        let mut route = self.terms.config.route(tuple, amplification, now);
        route.limit_datagram_size(limit);
        route
    }

    /// Gives up path `id` and tells the peer so (RFC 10069 §3.4).
    pub(in crate::connection) fn abandon(&mut self, id: PathId, code: u64, now: Instant) {
        let reason = match code {
            0 => AbandonReason::NoError,
            0x3e75 => AbandonReason::ResourceLimit,
            0x3e76 => AbandonReason::UnstableOrPoor,
            0x3e77 => AbandonReason::NoConnectionId,
            _ => AbandonReason::Application,
        };
        self.end_path(
            id,
            LifecycleEvent::Abandon {
                reason,
                keep: self.owners.paths.longest_probe_timeout(self.terms.max_ack_delay()) * 3,
            },
            now,
        );
        self.events.push(Event::Path(PathEvent::Abandoned { path: id, code: reason.code() }));
    }

    /// Moves a path to its end; packets in flight on it count as lost, so that other paths carry their content.
    fn end_path(&mut self, id: PathId, event: LifecycleEvent, now: Instant) -> bool {
        let transition = self.owners.paths.apply(id, event, now);
        if !transition.abandons() {
            return false;
        }
        //= https://www.rfc-editor.org/rfc/rfc10069#section-3.4.3
        //# When an endpoint finally deletes all state associated with the path, the packets sent over the
        //# path and not yet acknowledged MUST be considered lost
        let unresolved = self.owners.paths.any_mut(id).map(|path| path.sent.drain_all()).unwrap_or_default();
        for packet in &unresolved {
            self.owners.on_packet_lost(id, packet, now);
        }
        self.owners.scheduler.observe(&hvq_scheduler::Observation::PathGone { path: id });
        true
    }

    /// Frames about paths and their connection IDs.
    pub(in crate::connection) fn on_path_frame(
        &mut self,
        origin: &Origin,
        frame: PathFrame,
        now: Instant,
    ) -> Result<(), TransportError> {
        match frame {
            PathFrame::PathChallenge(data) => {
                self.on_challenge(origin, data);
                Ok(())
            }
            PathFrame::PathResponse(data) => {
                self.on_response(origin, data, now);
                Ok(())
            }
            PathFrame::NewConnectionId(new) => {
                let path = new.path.unwrap_or(PathId::ZERO);
                //= https://www.rfc-editor.org/rfc/rfc10069#section-4
                //# If an endpoint receives a multipath-specific frame with a path ID that it cannot process
                //# anymore (e.g., because the path might have been abandoned), it MUST silently ignore the
                //# frame.
                if new.path.is_some() && !self.is_current(path)? {
                    return Ok(());
                }
                let could_open = self.can_open();
                self.owners.paths.remote_ids.on_new(new)?;
                self.owners.paths.limits.clear_ids_exhausted(path);
                self.announce_available(could_open);
                Ok(())
            }
            PathFrame::RetireConnectionId { path, sequence } => {
                if path.is_some_and(|path| self.is_current(path).is_ok_and(|current| !current)) {
                    return Ok(());
                }
                if let Some(path) = path {
                    self.check_multipath(path)?;
                }
                let used = (origin.path, origin.id_sequence);
                self.owners.paths.local_ids.on_retire(path.unwrap_or(PathId::ZERO), sequence, used)
            }
            PathFrame::PathAbandon { path, error } => self.on_path_abandon(path, error, now),
            PathFrame::PathStatus { path, sequence, status } => self.on_path_status(path, sequence, status),
            PathFrame::PathHints(told) => self.on_path_hints(&told),
            PathFrame::MaxPathId(value) => {
                let could_open = self.can_open();
                if self.owners.paths.limits.on_max_path_id(value)?.is_some() {
                    self.owners.paths.follow_limits();
                    self.announce_available(could_open);
                }
                Ok(())
            }
            PathFrame::PathsBlocked(value) => self.owners.paths.limits.on_paths_blocked(value),
            PathFrame::PathCidsBlocked { path, next_sequence } => {
                if !self.is_current(path)? {
                    return Ok(());
                }
                let issued = self.owners.paths.local_ids.next_sequence(path);
                self.owners.paths.limits.on_path_cids_blocked(path, next_sequence, issued)
            }
        }
    }

    /// Returns true if frames about `path` still mean something; PROTOCOL_VIOLATION if its ID is above the limit.
    fn is_current(&self, path: PathId) -> Result<bool, TransportError> {
        self.check_multipath(path)?;
        Ok(self.owners.paths.lifecycles.accepts(path))
    }

    /// The path ID of a multipath frame is within what this endpoint announced (RFC 10069 §4).
    pub(in crate::connection) fn check_multipath(&self, path: PathId) -> Result<(), TransportError> {
        self.owners.paths.limits.validate(path)
    }

    fn on_path_abandon(&mut self, id: PathId, error: u64, now: Instant) -> Result<(), TransportError> {
        self.check_multipath(id)?;
        let keep = self.owners.paths.longest_probe_timeout(self.terms.max_ack_delay()) * 3;
        let ended = self.end_path(id, LifecycleEvent::PeerAbandon { keep }, now);
        if ended {
            self.events.push(Event::Path(PathEvent::Abandoned { path: id, code: error }));
        }
        Ok(())
    }

    fn on_path_status(&mut self, id: PathId, sequence: u64, status: Status) -> Result<(), TransportError> {
        if !self.is_current(id)? {
            return Ok(());
        }
        if let Some(news) = self.owners.paths.status.on_frame(id, sequence, status) {
            if let Some(path) = self.owners.paths.get_mut(id) {
                path.on_peer_status(Some(news));
            }
            self.events.push(Event::Path(PathEvent::PeerStatus(id, news)));
        }
        Ok(())
    }

    /// Returns true if a client could open a path now.
    fn can_open(&self) -> bool {
        let next = self.owners.paths.lifecycles.unused(self.owners.paths.limits.highest()).next();
        self.terms.role == Role::Client
            && next.is_some_and(|id| self.owners.paths.remote_ids.current(id).is_some())
    }

    fn announce_available(&mut self, could_open: bool) {
        if !could_open && self.can_open() && self.is_multipath() {
            self.events.push(Event::Path(PathEvent::Available));
        }
    }

    /// Paths whose validation failed, and abandoned ones whose time is over.
    pub(in crate::connection) fn run_path_timers(&mut self, now: Instant) {
        for id in self.owners.paths.ids() {
            if self.owners.paths.get(id).is_some_and(|path| !path.elsewhere.is_empty()) {
                self.expire_candidates(id, now);
            }
            let failed = self.owners.paths.get_mut(id).is_some_and(|path| path.route.validation.failed(now));
            //= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
            //# If validation fails, the client MUST NOT use the path and can remove any status associated to
            //# the path initiation attempt
            //= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
            //# As the used path ID is consumed either way, the endpoint MUST explicitly close the path, as
            //# specified in Section 3.4.
            //= https://www.rfc-editor.org/rfc/rfc9000#section-9.3.2
            //= type=implication
            //= reason=The address of the handshake is validated before anything can move, so that a path
            //= reason=always remembers one that was.
            //# If an endpoint has no state about the last validated peer address, it MUST close the
            //# connection silently by discarding all connection state
            //= https://www.rfc-editor.org/rfc/rfc9000#section-14.2
            //# it MUST immediately cease sending QUIC packets, except for those in PMTU probes or those containing
            //# CONNECTION_CLOSE frames, on the affected path
            if failed && !self.revert_migration(id, now) && (id != PathId::ZERO || self.is_narrow(id)) {
                // RFC 10069 §3.1: the ID is spent; PATH_ABANDON says so.
                let keep = self.owners.paths.longest_probe_timeout(self.terms.max_ack_delay()) * 3;
                self.end_path(
                    id,
                    LifecycleEvent::Abandon { reason: AbandonReason::UnstableOrPoor, keep },
                    now,
                );
                self.events.push(Event::Path(PathEvent::ValidationFailed(id)));
            }
        }
        for id in self.owners.paths.expire(now) {
            self.observer.close_path(id);
            if let Some(keys) = self.keys.current_mut() {
                keys.forget_path(id);
            }
        }
    }

    fn is_narrow(&self, id: PathId) -> bool {
        self.owners.paths.get(id).is_some_and(|path| path.route.validation.is_narrow())
    }
}

/// Returns true if the channel promises so little that padding would be in the way of data: the server's allowance is
/// worth less there than the time that it takes.
fn is_narrow(path: &Path) -> bool {
    path.hints.rate.is_some_and(|rate| rate.transmission_time(MINIMUM_DATAGRAM) > NEGLIGIBLE)
}

/// The changes in the addressing of a connection.
#[derive(PartialEq, Eq, Debug, Default)]
pub(crate) struct IdChanges {
    /// Connection IDs issued.
    pub new: Vec<crate::wire::connection_id::ConnectionId>,
    /// Connection IDs retired.
    pub gone: Vec<crate::wire::connection_id::ConnectionId>,
    /// Remote addresses in use, if they changed.
    pub remotes: Option<Vec<std::net::SocketAddr>>,
}
