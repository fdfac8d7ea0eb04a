//! The setup of connections, and the packets that can only come at the beginning: Retry and Version Negotiation.

use crate::connection::ack_frequency::AckFrequencies;
use crate::connection::control::ControlFrames;
use crate::connection::events::EventQueue;
use crate::connection::handshake::key_update::TrafficKeys;
use crate::connection::handshake::zero_rtt::Resumption;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::memory::Memory;
use crate::connection::new_token::{NewTokens, TokenSource};
use crate::connection::observe::Observer;
use crate::connection::paths::preferred::preferred_address;
use crate::connection::send::transmit_queue::TransmitQueue;
use crate::connection::{Activity, Connection, Peer, Role, SchedulerSlot, TransportConfig};
use crate::crypto::replay::ReplayGuard;
use crate::crypto::session::{ClientTls, EarlyData as Choice, ServerTls, Session, TlsConfigError};
use crate::datagram::Datagrams;
use crate::handshake::Handshake;
use crate::handshake::hello::{Attempt, Hello};
use crate::handshake::ids::HandshakeIds;
use crate::handshake::negotiation::Negotiation;
use crate::handshake::parameters::SeenIds;
use crate::handshake::zero_rtt::ZeroRtt;

use crate::memory::{MemoryAccount, MemoryQuota};
use crate::path::amplification::Amplification;
use crate::path::local_ids::{IdSource, LocalIds};
use crate::path::path::Path;
use crate::path::paths::{FirstConnectionIds, Paths};
use crate::path::remote_ids::RemoteIds;
use crate::path::route::FourTuple;
use crate::stream::Streams;
use crate::time::Instant;
use crate::trace::Subject;
use crate::wire::connection_id::{ConnectionId, ResetToken};
use crate::wire::level::Level;
use crate::wire::transport_parameters::TransportParameters;
use crate::wire::version::Version;
use bytes::Bytes;
use rand::rngs::StdRng;
use std::sync::Arc;

/// Bytes of the random destination that a client's first Initial carries (RFC 9000 §7.2: at least 8).
const INITIAL_DESTINATION: usize = 12;

/// The endpoint's part in a new connection.
pub struct ConnectionSetup {
    /// The addresses of path 0.
    pub tuple: FourTuple,
    /// Now.
    pub now: Instant,
    /// The connection's first own connection ID.
    pub first_id: ConnectionId,
    /// Its reset token.
    pub first_token: ResetToken,
    /// The source of further ones.
    pub ids: Box<dyn IdSource + Send>,
    /// The source of a server's tokens for later connections.
    pub tokens: Box<dyn TokenSource + Send>,
    /// Randomness.
    pub rng: StdRng,
    /// The register of tickets that opened 0-RTT lately, at a server that accepts it.
    pub replay: Option<Arc<ReplayGuard>>,
    /// The bound of memory that connections hold together.
    pub memory: Arc<MemoryQuota>,
}

/// The connection IDs of a client's first Initial.
#[derive(Clone, Copy, Debug)]
pub struct InitialIds {
    /// The ID that the client chose for the server.
    pub destination: ConnectionId,
    /// The client's own.
    pub source: ConnectionId,
}

/// The first connection IDs of a connection: the one of this endpoint, and those of the client's first Initial.
#[derive(Clone, Copy, Debug)]
pub(in crate::connection) struct FirstIds {
    /// The ID of this endpoint.
    pub local: ConnectionId,
    /// The IDs of the client's first Initial.
    pub initial: InitialIds,
}

/// Tells whether somebody showed that the client receives at its address (RFC 9000 §8.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientAddress {
    /// Nobody showed it: the server may send three times the bytes that it received.
    Unproven,
    /// A token did.
    Proven,
}

/// A server's knowledge of a connection before it has one.
#[derive(Clone, Copy, Debug)]
pub struct IncomingConnection {
    /// The version of the client's first Initial packet.
    pub version: Version,
    /// The connection IDs of the client's first Initial packet, after a Retry of the second.
    pub ids: InitialIds,
    /// The destination of the client's very first Initial packet, if a Retry answered it.
    pub retried_from: Option<ConnectionId>,
    /// Tells whether the client's address is proven.
    pub address: ClientAddress,
}

impl Connection {
    /// A client's connection to `server_name`; its first Initial is ready to be polled.
    pub fn client(
        tls: &ClientTls,
        config: Arc<TransportConfig>,
        mut setup: ConnectionSetup,
        server_name: &str,
        resumption: Resumption,
    ) -> Result<Self, TlsConfigError> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
        //# This Destination Connection ID MUST be at least 8 bytes in length
        let destination = ConnectionId::random(&mut setup.rng, INITIAL_DESTINATION);
        let negotiation = Negotiation::new(config.versions.clone(), config.versions.first());
        let credit = first_credit(&config, &setup.memory);
        let local = LocalParameters { config: &config, id: setup.first_id, max_data: credit };
        let encoded = client_parameters(local, &negotiation, &mut setup.rng);
        let mut session = Session::client(tls, server_name, &encoded)?;
        let early_data = match resumption {
            Resumption::Latest => ZeroRtt::resume(tls, &mut session, server_name, negotiation.original()),
            Resumption::Withheld => ZeroRtt::keep(tls, server_name),
        };
        let ids = InitialIds { destination, source: ConnectionId::EMPTY };
        let deadline = setup.now + config.handshake_timeout;
        let mut handshake = first_handshake(
            Role::Client,
            session,
            FirstIds { local: setup.first_id, initial: ids },
            deadline,
            negotiation,
        );
        handshake.allow_another(Attempt { tls: tls.clone(), server_name: server_name.into() });
        let mut connection = Self::assemble(Role::Client, config, setup, ids, handshake);
        connection.zero_rtt = early_data;
        connection.streams.begin_with_credit(credit);
        let now = connection.scheduler.epoch();
        if let Err(error) = connection.handshake.session.start().and_then(|()| connection.collect_tls(now)) {
            connection.fail(error, now);
        }
        Ok(connection)
    }

    /// Has a client's Initial packets carry `token`, from an earlier connection to the same server, none if it is empty
    /// (RFC 9000 §8.1.3). To be called before the first poll; a Retry replaces it.
    pub fn present_token(&mut self, token: Bytes) {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
        //# The client MUST include the token in all Initial packets it sends, unless a Retry replaces the
        //# token with a newer one
        self.handshake.present_token(token);
    }

    /// A server's connection to the client that opened it so.
    pub fn server(
        tls: &ServerTls,
        config: Arc<TransportConfig>,
        mut setup: ConnectionSetup,
        incoming: IncomingConnection,
    ) -> Result<Self, TlsConfigError> {
        let credit = match tls.early_data() {
            // Clients come back with what they were told before, and 0-RTT is for those to whom the same is said again.
            Choice::On => config.streams.max_data,
            Choice::Off => first_credit(&config, &setup.memory),
        };
        let local = LocalParameters { config: &config, id: setup.first_id, max_data: credit };
        let mut parameters = own_parameters(local);
        if incoming.ids.source.is_empty() {
            parameters.initial_max_path_id = None;
        }
        // RFC 9000 §7.3: after a Retry both of the client's destinations are authenticated.
        let destination = incoming.ids.destination;
        parameters.original_destination_connection_id = Some(incoming.retried_from.unwrap_or(destination));
        parameters.retry_source_connection_id = incoming.retried_from.map(|_| destination);
        parameters.stateless_reset_token = Some(setup.first_token);
        parameters.preferred_address = preferred_address(&config, &mut setup).map(Box::new);
        let preferred = parameters.preferred_address.clone();
        let negotiation = Negotiation::new(config.versions.clone(), incoming.version);
        parameters.version_information = Some(negotiation.information(config.greasing.draw(&mut setup.rng)));
        let encoded = parameters.encode(Role::Server, config.greasing, &mut setup.rng);
        let mut session = Session::server(tls, &encoded)?;
        session.bind_tickets(incoming.version)?;
        if let Some(replay) = setup.replay.as_ref().filter(|_| tls.early_data() == Choice::On) {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
            //# If 0-RTT data is accepted by the server, the server MUST NOT reduce any limits or alter any
            //# values that might be violated by the client with its 0-RTT data
            //= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
            //# In particular, a server that accepts 0-RTT data MUST NOT set values for the following
            //# parameters (Section 18.2) that are smaller than the remembered values of the parameters.
            //= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
            //# A server MUST reject 0-RTT data if the restored values for transport parameters cannot be
            //# supported.
            //= https://www.rfc-editor.org/rfc/rfc9221#section-3
            //# When servers decide to accept 0-RTT data, they MUST send a max_datagram_frame_size transport
            //# parameter greater than or equal to the value they sent to the client in the connection where
            //# they sent
            // RFC 9001 §4.6.1: 0-RTT is accepted under the limits that the ticket was issued under, and no others.
            let context = [tls.early_data_context(), &parameters.encode_remembered()].concat();
            session.accept_early_data(&context, replay, setup.now)?;
        }
        let deadline = setup.now + config.handshake_timeout;
        let mut handshake = first_handshake(
            Role::Server,
            session,
            FirstIds { local: setup.first_id, initial: incoming.ids },
            deadline,
            negotiation,
        );
        if handshake.negotiation.awaits_hello() {
            handshake.await_hello(Box::new(Hello::new(parameters)));
        }
        let mut connection = Self::assemble(Role::Server, config, setup, incoming.ids, handshake);
        connection.streams.begin_with_credit(credit);
        if let Some(preferred) = preferred {
            connection
                .paths
                .local_ids
                .set_preferred(preferred.connection_id, preferred.stateless_reset_token);
        }
        if incoming.address == ClientAddress::Proven
            && let Some(path) = connection.paths.get_mut(crate::PathId::ZERO)
        {
            path.route.amplification.validate();
            path.route.validation.presume();
        }
        Ok(connection)
    }

    fn assemble(
        role: Role,
        config: Arc<TransportConfig>,
        mut setup: ConnectionSetup,
        ids: InitialIds,
        handshake: Handshake,
    ) -> Self {
        let first = first_path(role, &config, &mut setup);
        let max_data = config.streams.max_data;
        let parameters = own_parameters(LocalParameters { config: &config, id: setup.first_id, max_data });
        let limit = usize::try_from(parameters.active_connection_id_limit).unwrap_or(usize::MAX);
        let (own, peers) = (LocalIds::new(setup.first_id), RemoteIds::new(limit));
        let path_ids = FirstConnectionIds { local: own, remote: peers, source: setup.ids };
        let paths = Paths::new(first, path_ids, parameters.initial_max_path_id);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.7
        //# Clients MUST NOT send NEW_TOKEN frames
        let tokens = Some(setup.tokens).filter(|_| role == Role::Server);
        let FourTuple { local, remote } = setup.tuple;
        let subject = Subject { role, original_destination: ids.destination, local, remote };
        let observer = Observer::begin(&config, &subject, setup.first_id, setup.now);
        Self {
            role,
            lifecycle: Lifecycle::Handshaking,
            handshake,
            keys: TrafficKeys::new(config.aead_limits),
            zero_rtt: ZeroRtt::default(),
            peer: Peer::default(),
            paths,
            streams: Streams::new(role, config.streams),
            datagrams: Datagrams::new(config.max_datagram_frame, config.datagram_queue),
            scheduler: SchedulerSlot::new((config.scheduler)(), role, setup.now),
            control: ControlFrames::new(
                AckFrequencies::new(config.ack_requests, config.acknowledge),
                NewTokens::new(tokens),
            ),
            closing: None,
            activity: Activity::new(setup.now),
            events: EventQueue::default(),
            memory: Memory::new(MemoryAccount::new(setup.memory, config.memory)),
            queue: TransmitQueue::default(),
            observer,
            rng: setup.rng.into(),
            config,
        }
    }

    /// Returns true if the address of path 0 is known to be the peer's, so that nothing limits the bytes that are sent
    /// there (RFC 9000 §8.1).
    pub fn is_address_proven(&self) -> bool {
        let first = self.paths.get(crate::PathId::ZERO);
        first.is_some_and(|path| path.route.amplification == Amplification::Validated)
    }

    /// Returns true if any packet of the peer authenticated.
    pub fn has_authenticated(&self) -> bool {
        self.handshake.ids.is_remote_final()
    }
}

/// The origin of an endpoint's transport parameters.
#[derive(Clone, Copy)]
pub(in crate::connection) struct LocalParameters<'a> {
    /// The configuration.
    pub config: &'a TransportConfig,
    /// The first connection ID.
    pub id: ConnectionId,
    /// The first limit of the connection (initial_max_data).
    pub max_data: u64,
}

/// Returns the first limit of a connection: the configured one, or less while memory is short.
fn first_credit(config: &TransportConfig, memory: &MemoryQuota) -> u64 {
    config.streams.max_data.min(memory.first_credit() as u64)
}

/// Returns the transport parameters of an endpoint.
fn own_parameters(local: LocalParameters<'_>) -> TransportParameters {
    let parameters = local.config.parameters();
    //= https://www.rfc-editor.org/rfc/rfc10069#section-2.1
    //# When advertising the initial_max_path_id transport parameter, endpoints MUST use Source and
    //# Destination Connection IDs with non-zero lengths
    let initial_max_path_id = parameters.initial_max_path_id.filter(|_| !local.id.is_empty());
    TransportParameters {
        initial_source_connection_id: Some(local.id),
        initial_max_path_id,
        initial_max_data: local.max_data,
        ..parameters
    }
}

/// Returns the encoded transport parameters of a client.
pub(in crate::connection) fn client_parameters(
    local: LocalParameters<'_>,
    negotiation: &Negotiation,
    rng: &mut StdRng,
) -> Vec<u8> {
    let mut parameters = own_parameters(local);
    let greasing = local.config.greasing;
    parameters.version_information = Some(negotiation.information(greasing.draw(rng)));
    parameters.encode(Role::Client, greasing, rng)
}

/// A handshake of which nothing was sent or received.
pub(in crate::connection) fn first_handshake(
    role: Role,
    session: Session,
    ids: FirstIds,
    deadline: Instant,
    negotiation: Negotiation,
) -> Handshake {
    let FirstIds { local, initial: InitialIds { destination, source } } = ids;
    let ids = match role {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
        //# Until a packet is received from the server, the client MUST use the same Destination Connection ID
        //# value on all packets in this connection.
        Role::Client => HandshakeIds::new(local, destination, Vec::new()),
        // The client's own choice of a destination leads here too (RFC 9000 §7.2).
        Role::Server => HandshakeIds::new(local, source, vec![destination]),
    };
    let mut handshake = Handshake::new(session, ids, SeenIds::new(destination), negotiation, deadline);
    let keys = handshake.initial_keys_of(role, handshake.version());
    handshake.install(Level::Initial, keys);
    handshake
}

fn first_path(role: Role, config: &TransportConfig, setup: &mut ConnectionSetup) -> Path {
    // RFC 9000 §8.1: the server's address counts as validated for the client, not the other way round.
    let amplification = match role {
        Role::Client => Amplification::Validated,
        Role::Server => Amplification::default(),
    };
    let mut route = config.route(setup.tuple, amplification, setup.now);
    if role == Role::Client {
        route.validation.presume();
    }
    let mut path = Path::new(crate::PathId::ZERO, route, config.acknowledge);
    path.set_hints(config.hints_for(setup.tuple.local));
    config.configure(&mut path, role, &mut setup.rng, setup.now);
    path
}
