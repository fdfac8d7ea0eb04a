//! The version that a connection speaks: servers that choose, clients that follow, and second attempts (RFC 9368, RFC
//! 9369).

use crate::connection::handshake::establish::HandshakeDriver;
use crate::connection::handshake::setup::{
    FirstIds, InitialIds, LocalParameters, client_parameters, first_handshake,
};
use crate::connection::{Connection, Role};
use crate::crypto::session::Session;
use crate::error::{ConnectionError, Dropped, ErrorCode, PacketError, TransportError};
use crate::handshake::hello::Hello;
use crate::handshake::negotiation::{Negotiation, Refusal};
use crate::time::Instant;
use crate::wire::client_hello::{self, Extent};
use crate::wire::connection_id::ConnectionId;
use crate::wire::level::Level;
use crate::wire::transport_parameters::TransportParameters;
use crate::wire::version::Version;
use bytes::Bytes;

impl Connection {
    /// The version in use. It may change while the handshake goes on.
    pub fn version(&self) -> Version {
        self.handshake.version()
    }

    /// Version Negotiation: the server does not speak the client's version (RFC 9000 §6.2, RFC 9368 §2.1).
    pub(in crate::connection) fn on_version_negotiation(
        &mut self,
        source: ConnectionId,
        versions: &[Version],
        now: Instant,
    ) -> Result<(), PacketError> {
        match self.handshake_driver().on_version_negotiation(source, versions, now)? {
            NextAttempt::Another => self.collect_tls(now)?,
            NextAttempt::Impossible => self.end_silently(ConnectionError::VersionMismatch),
        }
        Ok(())
    }
}

/// The attempt that follows Version Negotiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::connection) enum NextAttempt {
    /// Another one was begun, in a version that both speak.
    Another,
    /// There is no such version.
    Impossible,
}

impl HandshakeDriver<'_> {
    /// Gives TLS the next CRYPTO bytes of `level`. A server that may choose the version sees the whole ClientHello first,
    /// since TLS answers at once.
    pub fn provide(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError> {
        let Some(mut hello) = self.owners.handshake.take_hello(level) else {
            return self.owners.handshake.session.provide(level, data);
        };
        if hello.push(data) == Extent::Partial {
            self.owners.handshake.await_hello(hello);
            return Ok(());
        }
        self.choose_version(&hello)?;
        self.owners.handshake.session.provide(level, hello.bytes())
    }

    /// Moves the connection to the version that this server prefers (RFC 9368 §2.3).
    fn choose_version(&mut self, hello: &Hello) -> Result<(), TransportError> {
        let parameters = client_hello::transport_parameters(hello.bytes());
        let parameters = parameters.and_then(|bytes| TransportParameters::decode(Role::Client, bytes).ok());
        let client = parameters.and_then(|parameters| parameters.version_information);
        let original = self.owners.handshake.version();
        if self.owners.handshake.negotiation.choose(client.as_ref()).is_none() {
            return Ok(());
        }
        let information =
            self.owners.handshake.negotiation.information(self.config.greasing.draw(self.rng.get()));
        let parameters =
            TransportParameters { version_information: Some(information), ..hello.parameters.clone() };
        let encoded = parameters.encode(Role::Server, self.config.greasing, self.rng.get());
        let Some(session) = self.owners.handshake.session.session() else { return Ok(()) };
        // RFC 9369 §5: tickets belong to the version that the connection moves to.
        let set = session
            .set_transport_parameters(&encoded)
            .and_then(|()| session.bind_tickets(self.owners.handshake.negotiation.current()));
        set.map_err(|error| ErrorCode::INTERNAL_ERROR.because(error.to_string()))?;
        let keys = self.owners.handshake.initial_keys_of(self.role, self.owners.handshake.version());
        if let Some(space) = self.owners.handshake.space(Level::Initial) {
            space.change_version(original, keys);
        }
        Ok(())
    }

    /// Version Negotiation: the server does not speak the client's version (RFC 9000 §6.2, RFC 9368 §2.1).
    pub fn on_version_negotiation(
        &mut self,
        source: ConnectionId,
        versions: &[Version],
        now: Instant,
    ) -> Result<NextAttempt, PacketError> {
        let unexpected = self.role == Role::Server
            //= https://www.rfc-editor.org/rfc/rfc9000#section-6.2
            //# A client MUST discard any Version Negotiation packet if it has received and successfully
            //# processed any other packet, including an earlier Version Negotiation packet
            || self.owners.handshake.ids.is_remote_final()
            || self.owners.handshake.seen.has_retry()
            || source != self.owners.handshake.ids.remote();
        if unexpected {
            return Err(Dropped::Unexpected.into());
        }
        match self.owners.handshake.negotiation.retried_with(versions) {
            Ok(negotiation) => self.begin_again(negotiation, now).map(|()| NextAttempt::Another),
            Err(Refusal::Ignored) => Err(Dropped::Unexpected.into()),
            //= https://www.rfc-editor.org/rfc/rfc9000#section-6.2
            //# A client that supports only this version of QUIC MUST abandon the current connection attempt
            //# if it receives a Version Negotiation packet, with the following two exceptions
            Err(Refusal::NothingShared) => Ok(NextAttempt::Impossible),
        }
    }

    /// A second attempt in another version. To the application it is the same connection.
    fn begin_again(&mut self, negotiation: Negotiation, now: Instant) -> Result<(), PacketError> {
        let attempt = self.owners.handshake.take_attempt().ok_or(Dropped::Unexpected)?;
        let destination = ConnectionId::random(self.rng.get(), self.owners.handshake.ids.remote().len());
        let local = self.owners.handshake.ids.local;
        let own =
            LocalParameters { config: self.config, id: local, max_data: self.owners.streams.credit_limit() };
        let encoded = client_parameters(own, &negotiation, self.rng.get());
        let session = Session::client(&attempt.tls, &attempt.server_name, &encoded)
            .map_err(|error| ErrorCode::INTERNAL_ERROR.because(error.to_string()))?;
        let ids = FirstIds { local, initial: InitialIds { destination, source: ConnectionId::EMPTY } };
        let deadline = self.owners.handshake.deadline();
        self.owners.handshake.begin_again(first_handshake(self.role, session, ids, deadline, negotiation));
        self.begin_again_without_zero_rtt(now);
        if let Some(path) = self.owners.paths.get_mut(crate::PathId::ZERO) {
            path.on_answer();
        }
        Ok(self.owners.handshake.session.start()?)
    }

    /// A Retry: the Initial starts anew with the server's token and connection ID (RFC 9000 §17.2.5).
    pub fn on_retry(
        &mut self,
        source: ConnectionId,
        token: Bytes,
        packet: &[u8],
        now: Instant,
    ) -> Result<(), PacketError> {
        let unexpected = self.role == Role::Server
            //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
            //# After the client has received and processed an Initial or Retry packet from the server, it
            //# MUST discard any subsequent Retry packets that it receives.
            || self.owners.handshake.ids.is_remote_final()
            //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
            //# A client MUST accept and process at most one Retry packet for each connection attempt
            || self.owners.handshake.seen.has_retry()
            || token.is_empty()
            //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.1
            //# A client MUST discard a Retry packet that contains a Source Connection ID field that is
            //# identical to the Destination Connection ID field of its Initial packet
            || source == self.owners.handshake.ids.remote();
        if unexpected {
            return Err(Dropped::Unexpected.into());
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
        //# Clients MUST discard Retry packets that have a Retry Integrity Tag that cannot be validated; see
        //# Section 5.8 of [QUIC-TLS]
        crate::crypto::retry::verify(
            self.owners.handshake.version(),
            &self.owners.handshake.seen.original_destination(),
            packet,
        )?;
        self.owners.handshake.on_retry(self.role, source, token);
        self.owners.repeat_zero_rtt(now);
        Ok(())
    }
}
