//! The version that a connection speaks: servers that choose, clients that follow, and second attempts (RFC 9368, RFC
//! 9369).

use crate::connection::handshake::setup::{FirstIds, InitialIds, client_parameters, first_handshake};
use crate::connection::{Connection, Role};
use crate::crypto::initial::initial_keys;
use crate::crypto::session::Session;
use crate::error::{ConnectionError, Dropped, ErrorCode, PacketError, TransportError};
use crate::handshake::LevelKeys;
use crate::handshake::hello::Hello;
use crate::handshake::negotiation::{Negotiation, Refusal};
use crate::time::Instant;
use crate::wire::client_hello::{self, Extent};
use crate::wire::connection_id::ConnectionId;
use crate::wire::level::Level;
use crate::wire::transport_parameters::TransportParameters;
use crate::wire::version::Version;

impl Connection {
    /// The version in use. It may change while the handshake goes on.
    pub fn version(&self) -> Version {
        self.handshake.version()
    }

    /// Gives TLS the next CRYPTO bytes of `level`. A server that may choose the version sees the whole ClientHello first,
    /// since TLS answers at once.
    pub(in crate::connection) fn provide(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError> {
        let Some(mut hello) = self.handshake.hello.take_if(|_| level == Level::Initial) else {
            return self.handshake.session.provide(level, data);
        };
        if hello.push(data) == Extent::Partial {
            self.handshake.hello = Some(hello);
            return Ok(());
        }
        self.choose_version(&hello)?;
        self.handshake.session.provide(level, hello.bytes())
    }

    /// Moves the connection to the version that this server prefers (RFC 9368 §2.3).
    fn choose_version(&mut self, hello: &Hello) -> Result<(), TransportError> {
        let parameters = client_hello::transport_parameters(hello.bytes());
        let parameters = parameters.and_then(|bytes| TransportParameters::decode(Role::Client, bytes).ok());
        let client = parameters.and_then(|parameters| parameters.version_information);
        let original = self.handshake.version();
        if self.handshake.negotiation.choose(client.as_ref()).is_none() {
            return Ok(());
        }
        let information = self.handshake.negotiation.information(self.config.greasing.draw(self.rng.get()));
        let parameters =
            TransportParameters { version_information: Some(information), ..hello.parameters.clone() };
        let encoded = parameters.encode(Role::Server, self.config.greasing, self.rng.get());
        let Some(session) = self.handshake.session.session() else { return Ok(()) };
        // RFC 9369 §5: tickets belong to the version that the connection moves to.
        let set = session
            .set_transport_parameters(&encoded)
            .and_then(|()| session.bind_tickets(self.handshake.negotiation.current()));
        set.map_err(|error| ErrorCode::INTERNAL_ERROR.because(error.to_string()))?;
        let keys = self.initial_keys_of(self.handshake.version());
        if let Some(space) = self.handshake.initial.as_mut() {
            // RFC 9369 §4.1: until the client follows, its Initial packets are of the original version.
            space.former = space.keys.replace(keys).map(|keys| (original, keys.open));
        }
        Ok(())
    }

    fn initial_keys_of(&self, version: Version) -> LevelKeys {
        let destination = self.handshake.seen.client_destination();
        let (seal, open) = initial_keys(version, &destination, self.role);
        LevelKeys { seal, open }
    }

    /// Keys for a packet that shows that the server moved the connection to `version`, if that may be (RFC 9369 §4.1).
    pub(in crate::connection) fn keys_to_follow(&self, level: Level, version: Version) -> Option<LevelKeys> {
        let may_follow = self.role == Role::Client
            && level == Level::Initial
            && self.handshake.negotiation.may_become(version);
        may_follow.then(|| self.initial_keys_of(version))
    }

    /// The server moved the connection to `version`: a packet that `keys` opened said so.
    pub(in crate::connection) fn follow_version(&mut self, version: Version, keys: LevelKeys) {
        self.handshake.negotiation.become_version(version);
        if let Some(space) = self.handshake.initial.as_mut() {
            space.keys = Some(keys);
        }
    }

    /// Version Negotiation: the server does not speak the client's version (RFC 9000 §6.2, RFC 9368 §2.1).
    pub(in crate::connection) fn on_version_negotiation(
        &mut self,
        source: ConnectionId,
        versions: &[Version],
        now: Instant,
    ) -> Result<(), PacketError> {
        let unexpected = self.role == Role::Server
            //= https://www.rfc-editor.org/rfc/rfc9000#section-6.2
            //# A client MUST discard any Version Negotiation packet if it has received and successfully
            //# processed any other packet, including an earlier Version Negotiation packet
            || self.handshake.ids.is_remote_final()
            || self.handshake.seen.retry_source.is_some()
            || source != self.handshake.ids.remote();
        if unexpected {
            return Err(Dropped::Unexpected.into());
        }
        match self.handshake.negotiation.retried_with(versions) {
            Ok(negotiation) => self.begin_again(negotiation, now),
            Err(Refusal::Ignored) => Err(Dropped::Unexpected.into()),
            //= https://www.rfc-editor.org/rfc/rfc9000#section-6.2
            //# A client that supports only this version of QUIC MUST abandon the current connection attempt
            //# if it receives a Version Negotiation packet, with the following two exceptions
            Err(Refusal::NothingShared) => {
                self.end_silently(ConnectionError::VersionMismatch);
                Ok(())
            }
        }
    }

    /// A second attempt in another version. To the application it is the same connection.
    fn begin_again(&mut self, negotiation: Negotiation, now: Instant) -> Result<(), PacketError> {
        let attempt = self.handshake.attempt.take().ok_or(Dropped::Unexpected)?;
        let destination = ConnectionId::random(self.rng.get(), self.handshake.ids.remote().len());
        let local = self.handshake.ids.local;
        let encoded = client_parameters(&self.config, local, &negotiation, self.rng.get());
        let session = Session::client(&attempt.tls, &attempt.server_name, &encoded)
            .map_err(|error| ErrorCode::INTERNAL_ERROR.because(error.to_string()))?;
        let ids = FirstIds { local, initial: InitialIds { destination, source: ConnectionId::EMPTY } };
        let deadline = self.handshake.deadline;
        let undecryptable = std::mem::take(&mut self.handshake.undecryptable);
        self.handshake = first_handshake(self.role, session, ids, deadline, negotiation);
        self.handshake.undecryptable = undecryptable;
        self.begin_again_without_zero_rtt(now);
        if let Some(path) = self.paths.get_mut(crate::PathId::ZERO) {
            path.pto.reset();
        }
        self.handshake.session.start()?;
        Ok(self.collect_tls(now)?)
    }
}
