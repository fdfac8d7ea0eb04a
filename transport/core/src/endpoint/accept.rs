//! Datagrams that find their connection, start one, or are answered without one.

use crate::connection::{
    ClientAddress, Connection, ConnectionSetup, Datagram, Event, FourTuple, IncomingConnection, InitialIds,
    Step,
};
use crate::crypto::token::Fingerprint;
use crate::endpoint::answers::OUTBOX_LIMIT;
use crate::endpoint::clients::{Client, Short};
use crate::endpoint::deferred::at_once;
use crate::endpoint::gate::{FirstInitial, GateDecision};
use crate::endpoint::ids::IssuedIds;
use crate::endpoint::tokens::Issuer;
use crate::endpoint::turns::Place;
use crate::endpoint::{
    Candidate, ConnectionHandle, Decision, Endpoint, RetryPolicy, ServerConfig, Strays, replay_guard,
};
use crate::error::{Dropped, ErrorCode};
use crate::knowledge::Arrival;
use crate::path::local_ids::IdSource;
use crate::path::route::MINIMUM_DATAGRAM;
use crate::seed::Seed;
use crate::time::Instant;
use crate::wire::header::{Incoming, PacketKind, destination_of, next_packet};
use crate::wire::version::Version;
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::net::SocketAddr;

/// The shortest destination connection ID of a client's first Initial (RFC 9000 §7.2).
const LEAST_INITIAL_ID: usize = 8;
/// Packets for no connection that are kept at most until somebody asks for them.
const MOST_STRAYS: usize = 64;
/// The largest of them, in bytes: a stateless reset is smaller than the packet that it answers (RFC 9000 §10.3).
const LARGEST_STRAY: usize = 1_500;
/// Events and datagrams at most that a connection has left when it gives way.
const LAST_STEPS: usize = 32;

/// The outcome for a client that may have a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Admitted {
    /// Its handshake began.
    Begun,
    /// It waits for its turn.
    Waiting,
}

impl Endpoint {
    /// Hands a datagram to its connection, or starts one.
    pub(super) fn route(&mut self, datagram: Datagram, now: Instant) -> Result<(), Dropped> {
        let first = *datagram.bytes.first().ok_or(Dropped::Malformed)?;
        let known =
            destination_of(&datagram.bytes, self.config.id_length).and_then(|id| self.router.find(&id));
        //= https://www.rfc-editor.org/rfc/rfc9000#section-11
        //# A stateless reset MUST NOT be used by an endpoint that has the state necessary to send a frame on
        //# the connection.
        if let Some(handle) = known {
            // A stranger who guesses addresses does not know connection IDs.
            let (local, bytes, of_handshake) = (datagram.local, datagram.bytes.len(), first & 0x80 != 0);
            let arrival = Arrival { local, bytes, connection: handle.0, of_handshake };
            if self.knowledge.on_arrival(arrival, now) {
                self.tell_received_rate(local);
            }
            let connection = self.connections.get_mut(&handle).ok_or(Dropped::UnknownConnection)?;
            connection.exchange_pool(&mut self.pool);
            connection.attach_blocks(&mut self.blocks);
            connection.receive(datagram, now);
            // The next datagram may be for another connection, whose short messages lie beside those of this one.
            connection.detach_blocks(&mut self.blocks);
            connection.exchange_pool(&mut self.pool);
            self.schedule.touch(handle);
            return Ok(());
        }
        if self.is_reset(&datagram) {
            return Ok(());
        }
        if first & 0x80 == 0 {
            // RFC 9000 §10.3: whoever still writes to a connection that is gone is told.
            self.send_reset(&datagram, now);
            self.keep_stray(datagram, now);
            return Err(Dropped::UnknownConnection);
        }
        self.without_connection(datagram, now)
    }

    /// Keeps a packet for no connection, if others are to see it.
    fn keep_stray(&mut self, datagram: Datagram, now: Instant) {
        let wanted = self.config.strays == Strays::Kept && datagram.bytes.len() <= LARGEST_STRAY;
        if wanted && self.strays.len() < MOST_STRAYS && self.budgets.strays.take(now) {
            self.strays.push(datagram);
        }
    }

    /// Packets for no connection that came since the last call, a few at most. They may be stateless resets of connections at
    /// endpoints that share the addresses, which are to be asked with [`on_stray`](Self::on_stray).
    pub fn take_strays(&mut self) -> Vec<Datagram> {
        std::mem::take(&mut self.strays)
    }

    /// A packet that an endpoint at the same addresses knows no connection for: it ends the connection here that it is the
    /// stateless reset of (RFC 9000 §10.3.1), and means nothing else. Returns true if it did.
    pub fn on_stray(&mut self, datagram: &Datagram) -> bool {
        self.is_reset(datagram)
    }

    /// Returns true if the datagram was a stateless reset of a connection's peer.
    fn is_reset(&mut self, datagram: &Datagram) -> bool {
        for handle in self.router.at_remote(&datagram.remote) {
            let connection = self.connections.get_mut(&handle);
            if connection.is_some_and(|connection| connection.on_possible_reset(&datagram.bytes)) {
                self.schedule.touch(handle);
                return true;
            }
        }
        false
    }

    fn without_connection(&mut self, datagram: Datagram, now: Instant) -> Result<(), Dropped> {
        let Some(server) = &self.server else { return Err(Dropped::UnknownConnection) };
        if is_reflector(datagram.remote.port()) {
            return Err(Dropped::Reflector);
        }
        let size = datagram.bytes.len();
        let mut copy = datagram.bytes.clone();
        match next_packet(&mut copy, self.config.id_length, server.transport.greasing.quic_bit())? {
            Incoming::Protected(packet) => {
                if !server.transport.versions.contains(packet.version) {
                    let ids = (packet.destination.as_slice(), packet.source.as_slice());
                    return Err(self.on_unsupported_version(&datagram, packet.version, ids, now));
                }
                if !self.deferred.is_empty() && self.deferred.take_in(&datagram, &packet.destination) {
                    return Ok(());
                }
                //= https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2
                //# Servers MUST drop incoming packets under all other circumstances.
                let PacketKind::Initial { token } = packet.kind else {
                    return Err(Dropped::UnknownConnection);
                };
                //= https://www.rfc-editor.org/rfc/rfc9000#section-14.1
                //# A server MUST discard an Initial packet that is carried in a UDP datagram with a payload
                //# that is smaller than the smallest allowed maximum datagram size of 1200 bytes
                // RFC 9000 §14.1: an Initial in a smaller datagram is not a client's.
                if size < MINIMUM_DATAGRAM {
                    //= https://www.rfc-editor.org/rfc/rfc9000#section-14
                    //# Therefore, an endpoint MUST NOT close a connection when it receives a datagram that
                    //# does not meet size constraints; the endpoint MAY discard such datagrams.
                    return Err(Dropped::SmallInitial);
                }
                if packet.destination.len() < LEAST_INITIAL_ID {
                    return Err(Dropped::Malformed);
                }
                let ids = InitialIds { destination: packet.destination, source: packet.source };
                let from = datagram.remote;
                let initial = FirstInitial { version: packet.version, ids, token: &token, from };
                self.judge(datagram, &initial, now)
            }
            Incoming::UnsupportedVersion { version, destination, source } => {
                Err(self.on_unsupported_version(&datagram, version, (&destination, &source), now))
            }
            //= https://www.rfc-editor.org/rfc/rfc9000#section-6.1
            //= reason=Incoming::VersionNegotiation { .. } => Err(Dropped::Unexpected),
            //# An endpoint MUST NOT send a Version Negotiation packet in response to receiving a Version
            //# Negotiation packet.
            Incoming::Retry { .. } | Incoming::VersionNegotiation { .. } => Err(Dropped::Unexpected),
        }
    }

    /// Tells the sender of a packet of `version` which ones are supported, if it may be told.
    fn on_unsupported_version(
        &mut self,
        datagram: &Datagram,
        version: Version,
        ids: (&[u8], &[u8]),
        now: Instant,
    ) -> Dropped {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2
        //# Servers MUST drop smaller packets that specify unsupported versions.
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
        //= type=implication
        //= reason=Only the first packet of a datagram without a connection is looked at.
        //# A server MUST NOT send more than one Version Negotiation packet in response to a single UDP
        //# datagram.
        // RFC 9000 §5.2.2, §6.1: large datagrams are answered, Version Negotiation never.
        if datagram.bytes.len() >= MINIMUM_DATAGRAM && version != Version::NEGOTIATION {
            self.negotiate_version(datagram, ids, now);
        }
        Dropped::UnsupportedVersion
    }

    /// Decides about a client that is not known yet.
    fn judge(&mut self, datagram: Datagram, initial: &FirstInitial<'_>, now: Instant) -> Result<(), Dropped> {
        let (incoming, token) = match self.gate.judge(initial, now + self.config.epoch) {
            GateDecision::Admit(incoming, token) => (incoming, token),
            GateDecision::InvalidToken => {
                self.send_refusal(&datagram, initial, ErrorCode::INVALID_TOKEN);
                return Err(Dropped::InvalidToken);
            }
            GateDecision::Ignore => return Err(Dropped::Unexpected),
        };
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.1
        //= type=implication
        //= reason=Only the first packet of a datagram without a connection is looked at.
        //# A server MUST NOT send more than one Retry packet in response to a single UDP datagram.
        self.deferred.expire(now);
        let candidate = self.candidate(&datagram, &incoming);
        match self.decide(&candidate, &incoming) {
            Decision::Accept => {}
            Decision::Defer => {
                let is_kept = self.deferred.insert(&datagram, initial, candidate, now);
                return if is_kept { Ok(()) } else { Err(Dropped::Limit) };
            }
            Decision::Retry => {
                self.send_retry(&datagram, initial, now);
                return Err(Dropped::Unproven);
            }
            Decision::Refuse => {
                self.send_refusal(&datagram, initial, ErrorCode::CONNECTION_REFUSED);
                return Err(Dropped::Unwanted);
            }
            Decision::Ignore => return Err(Dropped::Unwanted),
        }
        if self.accept(datagram, incoming, now)? == Admitted::Begun {
            self.note_token(token, now);
        }
        Ok(())
    }

    /// A client that could start a connection, as the application sees it.
    fn candidate(&self, datagram: &Datagram, incoming: &IncomingConnection) -> Candidate {
        let unproven = incoming.address == ClientAddress::Unproven;
        let proposal = if unproven && self.wants_proof() { Decision::Retry } else { Decision::Accept };
        Candidate {
            local: datagram.local,
            remote: datagram.remote,
            address: incoming.address,
            version: incoming.version,
            connections: self.connections.len(),
            handshaking: self.clients.handshaking(),
            number: 0,
            proposal,
        }
    }

    /// Decides about a client that could start a connection.
    fn decide(&self, candidate: &Candidate, incoming: &IncomingConnection) -> Decision {
        let Some(admission) = self.server.as_ref().and_then(|server| server.admission.as_ref()) else {
            return candidate.proposal;
        };
        let decision = match admission.decide(candidate) {
            Decision::Defer => at_once(candidate, self.deferred.is_crowded()),
            decision => decision,
        };
        match decision {
            // RFC 9000 §17.2.5.2: a client that followed a Retry follows no second one.
            Decision::Retry if incoming.retried_from.is_some() => Decision::Accept,
            decision => decision,
        }
    }

    /// Returns true if clients have to prove their addresses now.
    fn wants_proof(&self) -> bool {
        match self.server.as_ref().map(|server| server.retry) {
            None | Some(RetryPolicy::Never) => false,
            Some(RetryPolicy::Always) => true,
            Some(RetryPolicy::WhenBusy(handshakes)) => {
                self.clients.handshaking() >= handshakes || self.clients.is_full()
            }
        }
    }

    /// Begins a handshake, or has it wait for its turn.
    fn accept(
        &mut self,
        datagram: Datagram,
        incoming: IncomingConnection,
        now: Instant,
    ) -> Result<Admitted, Dropped> {
        let (client, displaced) = self.room(datagram.remote, incoming.address, now)?;
        if !self.turns.take() {
            return self.wait(client, &datagram, now);
        }
        let server = self.server.clone().ok_or(Dropped::UnknownConnection)?;
        let handle = self.begin(datagram, incoming, server, now)?;
        self.enter(handle, client, displaced, now);
        Ok(Admitted::Begun)
    }

    /// The room that a client of this address has, and the handshake that gives way to it.
    fn room(
        &mut self,
        remote: SocketAddr,
        address: ClientAddress,
        now: Instant,
    ) -> Result<(Client, Option<ConnectionHandle>), Dropped> {
        // RFC 9000 §5.1: without connection IDs a second connection could not be told from the first.
        if self.config.id_length == 0 && !self.connections.is_empty() {
            return Err(Dropped::Limit);
        }
        let client = self.clients.client(remote, address);
        let displaced = self.clients.room(client, now).map_err(|short| self.on_short(short))?;
        Ok((client, displaced))
    }

    /// Begins a handshake.
    fn begin(
        &mut self,
        datagram: Datagram,
        incoming: IncomingConnection,
        server: ServerConfig,
        now: Instant,
    ) -> Result<ConnectionHandle, Dropped> {
        let tuple = FourTuple { local: datagram.local, remote: datagram.remote };
        let setup = self.setup(tuple, now);
        let mut connection = Connection::server(&server.tls, server.transport, setup, incoming)
            .map_err(|_| Dropped::Unexpected)?;
        connection.receive(datagram, now);
        if !connection.has_authenticated() {
            // Nothing in the datagram could be opened: no state for it (a forged or damaged Initial).
            return Err(Dropped::Undecryptable);
        }
        Ok(self.insert(connection))
    }

    /// Takes note of a handshake that began, and ends the one in whose place it is.
    fn enter(
        &mut self,
        handle: ConnectionHandle,
        client: Client,
        displaced: Option<ConnectionHandle>,
        now: Instant,
    ) {
        if let Some(displaced) = displaced {
            self.stats.slots.displaced_handshakes += 1;
            self.displace(displaced, now);
        }
        self.clients.begin(handle, client, now);
    }

    /// The next client about which the application decides later ([`Decision::Defer`]). To be asked after datagrams were taken in.
    pub fn next_deferred(&mut self) -> Option<Candidate> {
        self.deferred.next()
    }

    /// Begins the handshake of the deferred client `number`, with `server` in place of the endpoint's own configuration if it is
    /// given.
    ///
    /// # Errors
    /// The client is gone, its token was used meanwhile, its datagrams do not decrypt, or the endpoint is full or accepts nobody.
    pub fn accept_deferred(
        &mut self,
        number: u64,
        server: Option<ServerConfig>,
        now: Instant,
    ) -> Result<ConnectionHandle, Dropped> {
        let client = self.deferred.remove(number).ok_or(Dropped::Unwanted)?;
        let own = self.server.as_ref().ok_or(Dropped::Unwanted)?;
        let server = server.unwrap_or_else(|| own.clone());
        if self.replay.is_none() {
            self.replay = replay_guard(&server, &mut self.rng);
        }
        // Again: a token of it may have been used since.
        let judged = self.gate.judge(&client.initial(), now + self.config.epoch);
        let GateDecision::Admit(incoming, token) = judged else { return Err(Dropped::InvalidToken) };
        let (holder, displaced) = self.room(client.candidate.remote, incoming.address, now)?;
        let mut datagrams = client.datagrams.into_iter();
        let first = datagrams.next().ok_or(Dropped::Unwanted)?;
        let handle = self.begin(first, incoming, server, now)?;
        self.enter(handle, holder, displaced, now);
        self.note_token(token, now);
        datagrams.for_each(|datagram| self.handle(datagram, now));
        Ok(handle)
    }

    /// Has the deferred client `number` prove its address, be refused or be ignored, as `decision` says. Returns false if that
    /// cannot be, and the client waits on: it followed a Retry and accepts no second one (RFC 9000 §17.2.5.2), or `decision` is
    /// none of these. A client that is gone counts as ignored.
    pub fn turn_away(&mut self, number: u64, decision: Decision, now: Instant) -> bool {
        let Some(client) = self.deferred.remove(number) else { return true };
        let initial = client.initial();
        let judged = self.gate.judge(&initial, now + self.config.epoch);
        let is_retried =
            matches!(judged, GateDecision::Admit(incoming, _) if incoming.retried_from.is_some());
        match (client.datagrams.first(), decision) {
            (_, Decision::Accept | Decision::Defer) => self.deferred.put_back(client),
            (_, Decision::Retry) if is_retried => self.deferred.put_back(client),
            (Some(datagram), Decision::Retry) => self.send_retry(datagram, &initial, now),
            (Some(datagram), Decision::Refuse) => {
                self.send_refusal(datagram, &initial, ErrorCode::CONNECTION_REFUSED);
            }
            (_, Decision::Ignore) | (None, _) => {}
        }
        !self.deferred.has(number)
    }

    /// A token proved an address, and counts as used.
    fn note_token(&mut self, token: Option<Fingerprint>, now: Instant) {
        if let Some(token) = token {
            self.stats.proven_addresses += 1;
            self.gate.note_used(token, now + self.config.epoch);
        }
    }

    /// Has a client wait for its turn, or another give way to it.
    fn wait(&mut self, client: Client, datagram: &Datagram, now: Instant) -> Result<Admitted, Dropped> {
        let place = self.turns.wait(client, datagram, now);
        self.stats.slots.displaced_initials += u64::from(place != Place::Free);
        if place == Place::None { Err(Dropped::Limit) } else { Ok(Admitted::Waiting) }
    }

    fn on_short(&mut self, short: Short) -> Dropped {
        match short {
            Short::Handshakes => self.stats.slots.refused_handshakes += 1,
            Short::Connections => self.stats.slots.refused_connections += 1,
        }
        Dropped::Limit
    }

    /// Begins handshakes that wait for their turn, a few. Returns true if there were any.
    pub(super) fn begin_waiting(&mut self, now: Instant) -> bool {
        let is_awaited = self.turns.begin();
        while let Some(datagram) = self.turns.next(|client| self.clients.load(client)) {
            self.handle(datagram, now);
        }
        is_awaited
    }

    /// A peer's handshake is complete: its connection counts from now on.
    pub(super) fn complete_handshake(&mut self, handle: ConnectionHandle, now: Instant) {
        // Usually there is a slot for it.
        let Some(gone) = self.clients.complete(handle, now) else { return };
        if gone == handle {
            self.stats.slots.refused_connections += 1;
        } else {
            self.stats.slots.displaced_connections += 1;
        }
        self.displace(gone, now);
    }

    /// Ends a connection at once, whose slot others need more: its peer is told once, and nothing is kept.
    fn displace(&mut self, handle: ConnectionHandle, now: Instant) {
        let Some(connection) = self.connections.get_mut(&handle) else { return };
        connection.give_way(now);
        for _ in 0..LAST_STEPS {
            match connection.poll(now) {
                Step::Transmit(transmit) if self.transmits.len() < OUTBOX_LIMIT => {
                    self.transmits.push_back(transmit)
                }
                Step::Transmit(_) => {}
                Step::Event(event) => self.last_words.push_back((handle, event)),
                Step::Idle(_) => break,
            }
        }
        self.last_words.push_back((handle, Event::Forgotten));
        self.forget(handle);
    }

    /// Returns the endpoint's part in a new connection.
    pub(super) fn setup(&mut self, tuple: FourTuple, now: Instant) -> ConnectionSetup {
        let mut ids = IssuedIds {
            seed: Seed::from_rng(&mut self.rng),
            key: self.reset_key.clone(),
            ids: self.ids.clone(),
        };
        let (first_id, first_token) = ids.issue();
        let tokens = Issuer {
            key: self.gate.key().clone(),
            epoch: self.config.epoch,
            seed: Seed::from_rng(&mut self.rng),
        };
        ConnectionSetup {
            tuple,
            now,
            first_id,
            first_token,
            ids: Box::new(ids),
            tokens: Box::new(tokens),
            rng: StdRng::from_rng(&mut self.rng),
            replay: self.replay.clone(),
            memory: self.memory.clone(),
        }
    }
}

/// Returns true if UDP services at `port` answer more than they are asked, and can be made to ask by a forged source
/// address: a datagram from there starts no connection (RFC 9000 §21.5, attacks.md A20).
const fn is_reflector(port: u16) -> bool {
    matches!(
        port,
        // No port at all; echo, discard, daytime, quote of the day, chargen.
        0 | 7 | 9 | 13 | 17 | 19
        // DNS, TFTP, portmapper, NTP, NetBIOS, SNMP, CLDAP, RIP, IPMI.
        | 53 | 69 | 111 | 123 | 137 | 138 | 161 | 389 | 520 | 623
        // MS SQL, SSDP, CoAP, WS-Discovery, mDNS, STUN's port of games, memcached.
        | 1434 | 1900 | 3702 | 5353 | 5683 | 11211 | 27015
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_services_that_reflect_start_nothing_and_those_of_clients_do() {
        for port in [0, 19, 53, 123, 1900, 11211] {
            assert!(is_reflector(port), "{port}");
        }
        for port in [443, 1024, 4433, 32768, 65535] {
            assert!(!is_reflector(port), "{port}");
        }
    }
}
