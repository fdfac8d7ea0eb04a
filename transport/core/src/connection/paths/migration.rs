//! Paths that move to other addresses: on purpose, by a NAT, or by an attacker's forgery (RFC 9000 §9).
//!
//! A path moves, its ID and packet numbers stay (RFC 10069 §5.1). Measurements on the old addresses go, unless only a
//! port changed. The old addresses are kept until the new ones have proven themselves.

use crate::PathId;
use crate::congestion::Congestion;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::paths::maintenance::PathMaintenance;
use crate::connection::paths::multipath::VALIDATIONS;
use crate::connection::receive::Origin;
use crate::connection::terms::Terms;
use crate::connection::{Connection, Event, FourTuple, PathEvent, Role};
use crate::error::{Dropped, PacketError};
use crate::path::amplification::Amplification;
use crate::path::candidates::{CandidateAddress, CandidatePurpose, Measurements};
use crate::path::lifecycle::LifecycleEvent;
use crate::path::path::Path;
use crate::path::paths::Paths;
use crate::recovery::delay::PathRtts;
use crate::recovery::persistent::PersistentCongestion;
use crate::recovery::rtt::INITIAL_RTT;
use crate::seed::Randomness;
use crate::time::Instant;
use crate::wire::level::Level;
use crate::wire::transport_parameters::TransportParameters;
use std::time::Duration;

/// Tells whether a server lets clients move their paths (RFC 9000 §9).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Migration {
    /// They may.
    #[default]
    Allowed,
    /// They are asked not to (`disable_active_migration`, RFC 9000 §18.2), and what comes from another IP address is
    /// ignored. Another port is followed nevertheless: the client knows nothing of what its NAT does.
    Refused,
}

/// The time at which a client's path that it moves takes the new addresses into use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moving {
    /// Once the server has answered there (RFC 9000 §9.2); until then the old ones are used.
    Validated,
    /// Now, because the old ones are gone.
    AtOnce,
}

/// The reason for which a path cannot be moved now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MigrateError {
    /// Only a client moves paths (RFC 9000 §9).
    #[error("only a client moves paths")]
    NotClient,
    /// The handshake is not confirmed, or the connection is closing (RFC 9000 §9).
    #[error("the handshake is not confirmed")]
    NotConfirmed,
    /// No open path has this ID.
    #[error("no such path")]
    UnknownPath,
    /// The path is there already.
    #[error("the path has these addresses already")]
    SameAddresses,
    /// The server asked its clients not to move (`disable_active_migration`, RFC 9000 §18.2).
    #[error("the server permits no migration")]
    Disabled,
    /// The server has issued no spare connection ID for the path (RFC 9000 §9.5).
    #[error("the peer has issued no connection ID for another address")]
    NoConnectionId,
}

impl Connection {
    /// A client moves path `id` to `tuple` (RFC 9000 §9.2). [`PathEvent::Migrated`] tells of success,
    /// [`PathEvent::MigrationFailed`] that the path is where it was. It replaces a move that is not validated yet.
    pub fn migrate(
        &mut self,
        id: PathId,
        tuple: FourTuple,
        moving: Moving,
        now: Instant,
    ) -> Result<(), MigrateError> {
        self.path_maintenance().start_migration(id, tuple, moving, now)
    }

    /// Addresses of the peer, on all paths, that are being validated.
    pub fn pending_validations(&self) -> usize {
        let routes = self.paths.open().filter(|path| path.route.validation.is_pending()).count();
        routes + self.paths.pending_candidates()
    }
}

impl PathMaintenance<'_> {
    /// A client moves path `id` to `tuple`, in place of a move that is not validated yet.
    pub(in crate::connection) fn start_migration(
        &mut self,
        id: PathId,
        tuple: FourTuple,
        moving: Moving,
        now: Instant,
    ) -> Result<(), MigrateError> {
        self.may_migrate(id, tuple)?;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-9.5
        //# An endpoint MUST NOT reuse a connection ID when sending from more than one local address -- for
        //# example, when initiating connection migration as described in Section 9.2 or
        let Some(sequence) = self.owners.paths.remote_ids.lend(id) else {
            let next = self.owners.paths.remote_ids.next_expected_sequence(id);
            self.owners.paths.limits.on_ids_exhausted(id, next);
            return Err(MigrateError::NoConnectionId);
        };
        let mut candidate =
            CandidateAddress::new(tuple, CandidatePurpose::Pending, now + self.candidate_lifetime());
        // Who moves elsewhere does not move where it meant to before: each address costs the server a connection ID.
        let before = self.owners.paths.get_mut(id).and_then(|path| path.elsewhere.take_pending());
        self.owners.paths.forget_candidates(id, before);
        // A server's address needs no protection from its client (RFC 9000 §8.1), and only challenges go there first.
        candidate.lift_limit();
        candidate.send_to(Some(sequence));
        //= https://www.rfc-editor.org/rfc/rfc9000#section-21.5.3
        //# A client MUST NOT send non-probing frames to a preferred address prior to validating that address;
        //# see Section 8
        candidate.validation.start_within(
            now,
            self.rng.get(),
            INITIAL_RTT,
            self.terms.config.validation_timeout,
        );
        self.owners.paths.add_candidate(id, candidate);
        if moving == Moving::AtOnce {
            self.migrate_to(id, tuple, now);
            self.show(id, now);
        }
        Ok(())
    }

    fn may_migrate(&self, id: PathId, tuple: FourTuple) -> Result<(), MigrateError> {
        if self.terms.role != Role::Client {
            return Err(MigrateError::NotClient);
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-9
        //# An endpoint MUST NOT initiate connection migration before the handshake is confirmed, as defined
        //# in Section 4.1.2 of [QUIC-TLS].
        if self.terms.lifecycle != Lifecycle::Confirmed {
            return Err(MigrateError::NotConfirmed);
        }
        let path = self.owners.paths.get(id).ok_or(MigrateError::UnknownPath)?;
        if path.route.tuple == tuple {
            return Err(MigrateError::SameAddresses);
        }
        if is_bound_to(self.terms.peer.parameters(), self.owners.paths, tuple) {
            return Err(MigrateError::Disabled);
        }
        Ok(())
    }

    /// Returns the time for which an address beside the one in use is remembered: longer than its validation takes.
    fn candidate_lifetime(&self) -> Duration {
        self.terms.config.validation_timeout * 2
    }

    /// A packet of a known path came from elsewhere. A client takes it only where it sent a probe (RFC 9000 §9: servers
    /// do not move).
    pub(in crate::connection) fn arrive_elsewhere(&mut self, origin: &Origin) -> Result<(), PacketError> {
        let (role, migration) = (self.terms.role, self.terms.config.migration);
        let preferred = self.terms.config.preferred_addresses;
        let path = self.owners.paths.any_mut(origin.path).expect("only its address is another");
        let known = path.elsewhere.get(origin.tuple).is_some();
        let refused = match role {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-9
            //# If a client receives packets from an unknown server address, the client MUST discard these
            //# packets.
            Role::Client => !known,
            // RFC 9000 §18.2: who was sent to the preferred address may come from anywhere.
            Role::Server => {
                //= https://www.rfc-editor.org/rfc/rfc9000#section-9
                //# If the peer violates this requirement, the endpoint MUST either drop the incoming packets
                //# on that path without generating a Stateless Reset or proceed with path validation and
                //# allow the peer to
                migration == Migration::Refused
                    && !path.route.tuple.has_addresses_of(&origin.tuple)
                    && !preferred.contains(origin.tuple.local)
            }
        };
        if refused {
            return Err(Dropped::Unexpected.into());
        }
        path.count_received(origin.bytes);
        Ok(())
    }

    /// Takes note of where a packet that is no duplicate came from, before its frames are read.
    pub(in crate::connection) fn hear_elsewhere(&mut self, origin: &Origin, now: Instant) {
        // Packets of the handshake move nothing, nor do late ones of an abandoned path.
        let path = self.owners.paths.get_mut(origin.path).filter(|_| origin.level == Level::OneRtt);
        let Some(path) = path else { return };
        if path.elsewhere.get(origin.tuple).is_some() {
            let until = now + self.candidate_lifetime();
            if let Some(path) = self.owners.paths.get_mut(origin.path) {
                path.elsewhere.heard(origin.tuple, origin.id_sequence, until, now);
            }
            self.validate_again(origin, now);
        } else if self.terms.role == Role::Server {
            self.find_candidate(origin, now);
        }
    }

    /// A server hears path `origin.path` from an address whose validation has failed: it works now, perhaps. One attempt is
    /// made at a time, and the limit on what is sent there counts on (RFC 9000 §8.1).
    fn validate_again(&mut self, origin: &Origin, now: Instant) {
        // RFC 10069 §7.2: however many paths seem to move at once, few addresses are validated at a time.
        if self.terms.role != Role::Server || self.owners.paths.pending_candidates() >= VALIDATIONS {
            return;
        }
        self.owners.paths.renew_destination(origin.path, origin.tuple);
        let path = self.owners.paths.get_mut(origin.path);
        if let Some(failed) = path.and_then(|path| path.elsewhere.failed_mut(origin.tuple)) {
            // RFC 9000 §9.5: the connection ID that it has may be used again, for the address is the same.
            let patience = self.terms.config.validation_timeout;
            failed.validation.start_within(now, self.rng.get(), INITIAL_RTT, patience);
        }
    }

    /// A server hears path `origin.path` from a new address, which it validates (RFC 9000 §9.3).
    fn find_candidate(&mut self, origin: &Origin, now: Instant) {
        // RFC 10069 §7.2: however many paths seem to move at once, few addresses are validated at a time.
        if self.owners.paths.pending_candidates() >= VALIDATIONS {
            return;
        }
        let path = self.owners.paths.get(origin.path).expect("an open path was heard");
        let mut candidate =
            CandidateAddress::new(origin.tuple, CandidatePurpose::Probing, now + self.candidate_lifetime());
        candidate.on_heard(origin.id_sequence);
        let empty = self.owners.paths.remote_ids.current(origin.path).is_none_or(|id| id.is_empty());
        let known = path.elsewhere.iter().find(|one| one.heard_with == origin.id_sequence);
        let known = known.filter(|one| self.owners.paths.destination(origin.path, one.tuple).is_some());
        if path.heard_with() == origin.id_sequence || empty {
            candidate.send_to(None);
        } else if let Some(known) = known {
            // A NAT moves the peer while it moves on purpose: it shows what it showed there, and so may this end.
            candidate.send_to(known.destination);
        } else {
            //= https://www.rfc-editor.org/rfc/rfc10069#section-3.1.2
            //# This MUST be treated as path migration, as specified in Section 9.3 of [QUIC-TRANSPORT], with
            //# the constraint that all connection IDs used during path migration MUST be associated with the
            //# current
            //= https://www.rfc-editor.org/rfc/rfc9000#section-9.5
            //# Similarly, an endpoint MUST NOT reuse a connection ID when sending to more than one
            //# destination address
            // RFC 9000 §9.5: the peer shows another connection ID, so it shall see another one too. Without one nothing
            // can be sent there, and the path stays where it is.
            let Some(sequence) = self.owners.paths.remote_ids.lend(origin.path) else {
                let next = self.owners.paths.remote_ids.next_expected_sequence(origin.path);
                return self.owners.paths.limits.on_ids_exhausted(origin.path, next);
            };
            candidate.send_to(Some(sequence));
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-9
        //# An endpoint MUST perform path validation (Section 8.2) if it detects any change to a peer's
        //# address, unless it has previously validated that address.
        if self.owners.paths.is_validated(origin.tuple) {
            candidate.lift_limit();
            candidate.validation.presume();
        } else {
            if !self.owners.paths.counts(origin.tuple) {
                //= https://www.rfc-editor.org/rfc/rfc9000#section-9.3
                //# An endpoint MAY send data to an unvalidated peer address, but it MUST protect against
                //# potential attacks as described in Sections 9.3.1 and 9.3.2
                //= https://www.rfc-editor.org/rfc/rfc9000#section-9.6.3
                //# the server MUST protect against potential attacks as described in Sections 9.3.1 and 9.3.2
                candidate.amplification.on_received(origin.bytes);
            }
            //= https://www.rfc-editor.org/rfc/rfc9000#section-9.4
            //# This timer SHOULD be set as described in Section 6.2.1 of [QUIC-RECOVERY] and MUST NOT be more
            //# aggressive.
            //= https://www.rfc-editor.org/rfc/rfc9000#section-9.6.2
            //# The server MUST probe on the path toward the client from its preferred address
            candidate.validation.start_within(
                now,
                self.rng.get(),
                INITIAL_RTT,
                self.terms.config.validation_timeout,
            );
        }
        self.owners.paths.add_candidate(origin.path, candidate);
    }

    /// The newest packet of a path, which does more than probe, says where its client is (RFC 9000 §9.3).
    pub(in crate::connection) fn follow(&mut self, origin: &Origin, now: Instant) {
        if self.terms.role == Role::Client || origin.level != Level::OneRtt || !self.terms.lifecycle.is_open()
        {
            return;
        }
        // A frame of the packet may have abandoned the path.
        let path = self.owners.paths.get(origin.path);
        if path.is_none_or(|path| path.elsewhere.get(origin.tuple).is_none()) {
            return;
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-9.3
        //# If the recipient permits the migration, it MUST send subsequent packets to the new peer address
        //# and MUST initiate path validation
        //= https://www.rfc-editor.org/rfc/rfc9000#section-9.6.2
        //# The server MUST send non- probing packets from its original address until it receives a non-
        //# probing packet from the client at its preferred address and until the server has validated the new
        //# path.
        self.migrate_to(origin.path, origin.tuple, now);
    }

    /// Takes `tuple`, an address of path `id` beside the one in use, into use.
    fn migrate_to(&mut self, id: PathId, tuple: FourTuple, now: Instant) {
        let path = self.owners.paths.get(id).expect("an open path moves");
        let to = path.elsewhere.get(tuple).expect("it moves to an address of its own");
        let returns = to.measurements.is_some();
        let forged = to.purpose == CandidatePurpose::Previous && !path.route.validation.is_validated();
        let same_network = path.route.tuple.has_addresses_of(&tuple);
        let (since, next) = (path.route.since, path.sent.next_unused());
        let congestion = path.route.congestion().clone();
        //= https://www.rfc-editor.org/rfc/rfc9000#section-9.4
        //# On confirming a peer's ownership of its new address, an endpoint MUST immediately reset the
        //# congestion controller and round-trip time estimator for the new path to initial values
        let fresh =
            (!returns && !same_network).then(|| self.fresh_measurements(tuple, congestion, next, now));
        self.owners.paths.migrate_to(id, tuple, fresh, now);
        if returns {
            // What went to the wrong address did not arrive, which says nothing about this one.
            self.owners.resend(id, |sent| sent.drain(since..next), now);
        }
        let lifetime = self.candidate_lifetime();
        let path = self.owners.paths.get_mut(id).expect("an open path moved");
        if let Some(left) = path.elsewhere.previous_mut() {
            left.keep_until(now + lifetime);
        }
        start_validations(path, &self.terms, self.rng, now);
        path.on_migrated(now);
        if path.route.validation.is_validated() && !forged {
            self.settle_in(id, now);
        }
    }

    /// A route over `tuple` of which nothing is known but the congestion control of the path.
    fn fresh_measurements(
        &self,
        tuple: FourTuple,
        congestion: Congestion,
        since: u64,
        now: Instant,
    ) -> Box<Measurements> {
        let mut route = self.new_route(tuple, Amplification::default(), now);
        route.set_congestion(congestion);
        route.measure_from(since);
        Box::new(Measurements {
            route,
            rtts: PathRtts::default(),
            persistent: PersistentCongestion::default(),
        })
    }

    /// The peer is proven to receive where path `id` has moved to.
    fn settle_in(&mut self, id: PathId, now: Instant) {
        let since = self.owners.paths.get(id).map_or(0, |path| path.route.since);
        // What is still in flight to the old address is sent again: it most likely went nowhere.
        self.owners.resend(id, |sent| sent.drain(0..since), now);
        self.events.push(Event::Path(PathEvent::Migrated(id)));
    }

    /// The next packets of path `id` shall show the peer where it is.
    fn show(&mut self, id: PathId, now: Instant) {
        if let Some(path) = self.owners.paths.get_mut(id) {
            path.liveness.ask(now);
        }
    }

    /// Validation of the address that path `id` moved to has failed: it returns to the last that was validated (RFC
    /// 9000 §9.3.2). False if there is none.
    pub(in crate::connection) fn revert_migration(&mut self, id: PathId, now: Instant) -> bool {
        let left = self.owners.paths.get(id).and_then(|path| path.elsewhere.left());
        //= https://www.rfc-editor.org/rfc/rfc9000#section-9.3.2
        //# To protect the connection from failing due to such a spurious migration, an endpoint MUST revert
        //# to using the last validated peer address when validation of a new peer address fails
        let Some(tuple) = left.map(|left| left.tuple) else { return false };
        self.migrate_to(id, tuple, now);
        // Acknowledgements went to the other address. The probe that takes them along is no bare acknowledgement (RFC 9000
        // §13.2.1).
        if let Some(path) = self.owners.paths.get_mut(id) {
            path.received.repeat(now);
        }
        self.show(id, now);
        self.events.push(Event::Path(PathEvent::MigrationFailed(id)));
        true
    }

    /// Forgets addresses of path `id` whose time is over.
    pub(in crate::connection) fn expire_candidates(&mut self, id: PathId, now: Instant) {
        let contact = self.owners.paths.contact();
        let path = self.owners.paths.get_mut(id).expect("timers are those of open paths");
        //= https://www.rfc-editor.org/rfc/rfc9000#section-9.6.1
        //# If path validation fails, the client MUST continue sending all future packets to the server's
        //# original IP address.
        let gone = path.elsewhere.expire(contact, now);
        if gone.iter().any(|candidate| candidate.purpose == CandidatePurpose::Pending) {
            self.events.push(Event::Path(PathEvent::MigrationFailed(id)));
        }
        self.owners.paths.forget_candidates(id, gone);
    }

    /// PATH_CHALLENGE: the answer goes out where the challenge came in (RFC 9000 §8.2.2).
    pub(in crate::connection) fn on_challenge(&mut self, origin: &Origin, data: [u8; 8]) {
        // A frame before this one in the packet may have abandoned the path, which then owes nothing.
        let Some(path) = self.owners.paths.get_mut(origin.path) else { return };
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
        //# Unlike other cases where datagrams are expanded, endpoints MUST NOT discard datagrams that appear
        //# to be too small when they contain PATH_CHALLENGE or PATH_RESPONSE.
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
        //# A PATH_RESPONSE frame MUST be sent on the network path where the PATH_CHALLENGE frame was received
        if path.route.tuple == origin.tuple {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-19.17
            //# The recipient of this frame MUST generate a PATH_RESPONSE frame (Section 19.18) containing the
            //# same Data value.
            path.on_challenge(data);
        } else if let Some(candidate) = path.elsewhere.get_mut(origin.tuple) {
            candidate.validation.on_challenge(data);
        }
    }

    /// PATH_RESPONSE: it validates the address that the challenge went to, wherever it comes from (RFC 9000 §8.2.3), as
    /// long as it is on the same path.
    pub(in crate::connection) fn on_response(&mut self, origin: &Origin, data: [u8; 8], now: Instant) {
        // A frame before this one in the packet may have abandoned the path.
        let Some(path) = self.owners.paths.get_mut(origin.path) else { return };
        let was_validated = path.route.validation.is_validated();
        if path.route.validation.on_response(data) {
            if was_validated {
                return;
            }
            if path.on_validated(now) {
                self.owners.on_answering(origin.path, now);
                self.events.push(Event::Path(PathEvent::Answering(origin.path)));
            }
            if self.owners.paths.apply(origin.path, LifecycleEvent::Validated, now).opens() {
                self.events.push(Event::Path(PathEvent::Validated(origin.path)));
            } else {
                self.settle_in(origin.path, now);
            }
            return;
        }
        let answering = path.elsewhere.on_response(data).and_then(|tuple| path.elsewhere.get(tuple));
        //= https://www.rfc-editor.org/rfc/rfc9000#section-9.6.3
        //# If path validation of the server's preferred address succeeds, the client MUST abandon validation
        //# of the original address and migrate to using the server's preferred address
        if let Some(CandidateAddress { tuple, purpose: CandidatePurpose::Pending, .. }) = answering {
            let tuple = *tuple;
            self.migrate_to(origin.path, tuple, now);
            self.show(origin.path, now);
        }
    }
}

/// Both the new address of `path` and the one left are validated: the packet that moved the path may have been forwarded by
/// somebody in between (RFC 9000 §9.3.3).
fn start_validations(path: &mut Path, terms: &Terms<'_>, rng: &mut Randomness, now: Instant) {
    let patience = terms.config.validation_timeout;
    if let Some(left) = path.elsewhere.previous_mut() {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-9.3.3
        //# In response to an apparent migration, endpoints MUST validate the previously active path using
        //# a PATH_CHALLENGE frame
        if terms.role == Role::Server && !left.validation.is_pending() {
            left.validation.start_within(now, rng.get(), INITIAL_RTT, patience);
        }
    }
    let validation = &mut path.route.validation;
    if !validation.is_validated() && !validation.is_pending() {
        validation.start_within(now, rng.get(), INITIAL_RTT, patience);
    }
}

/// Returns true if the server forbids to use `tuple`: another local address towards the address of the handshake
/// (RFC 9000 §18.2).
pub(in crate::connection) fn is_bound_to(
    peer: &TransportParameters,
    paths: &Paths,
    tuple: FourTuple,
) -> bool {
    //= https://www.rfc-editor.org/rfc/rfc9000#section-9
    //# If the peer sent the disable_active_migration transport parameter, an endpoint also MUST NOT send
    //# packets (including probing packets
    //= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
    //# An endpoint that receives this transport parameter MUST NOT use a new local address when sending
    //# to the address that the peer used during the handshake
    peer.disable_active_migration
        && tuple.remote == paths.handshake_tuple().remote
        && tuple.local != paths.handshake_tuple().local
}
