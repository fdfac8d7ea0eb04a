//! Sessions of another library in the place of BoringSSL's.

use super::{
    BoringSession, ClientTls, PostHandshake, Retention, ServerTls, SessionOutput, Ticket, TlsConfigError,
};
use crate::crypto::keys::Suite;
use crate::crypto::replay::ReplayGuard;
use crate::error::TransportError;
use crate::time::Instant;
use crate::wire::level::Level;
use crate::wire::version::Version;
use boring::ssl::SslContext;
use std::fmt;
use std::sync::Arc;

/// A TLS 1.3 handshake for QUIC (RFC 9001 §4) by a library of the program, and what comes after it.
///
/// It begins with [`start`](Self::start) at a client, and with the first bytes at a server. Its outputs are taken after each call; a
/// server's secret for reading 1-RTT packets comes once its handshake is complete (RFC 9001 §5.7), and each other one as soon as it is known. QUIC's
/// rules for the messages of TLS are the session's to keep, among them that CRYPTO bytes come at the level at which TLS reads.
pub trait TlsSession: fmt::Debug + Send + Sync {
    /// Begins a client's handshake: the ClientHello is the first output. Later on, does nothing.
    ///
    /// # Errors
    /// The handshake failed.
    fn start(&mut self) -> Result<(), TransportError>;

    /// Takes in the next CRYPTO bytes of `level` and drives the handshake with them.
    ///
    /// # Errors
    /// The handshake failed: alerts are the codes of [`ErrorCode::crypto`](crate::error::ErrorCode::crypto) (RFC 9001 §4.8). Called again, it fails again.
    fn provide(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError>;

    /// Returns the next thing that TLS wants done.
    fn poll(&mut self) -> Option<SessionOutput>;

    /// Replaces the transport parameters of a server that was given no bytes yet.
    ///
    /// # Errors
    /// It was.
    fn set_transport_parameters(&mut self, parameters: &[u8]) -> Result<(), TlsConfigError>;

    /// Returns true if the handshake is not complete yet (RFC 9001 §4.1.1).
    fn is_handshaking(&self) -> bool;

    /// The peer's transport parameters as it encoded them, once they arrived.
    fn peer_transport_parameters(&self) -> Option<Vec<u8>>;

    /// The application protocol agreed on (RFC 7301).
    fn alpn(&self) -> Option<Vec<u8>>;

    /// The host name that the client asked for (RFC 6066 §3).
    fn server_name(&self) -> Option<String>;

    /// The peer's certificates, its own first, each in DER.
    fn peer_certificates(&self) -> Vec<Vec<u8>>;

    /// Returns true if the handshake resumed an earlier session.
    fn is_resumed(&self) -> bool;

    /// Fills `out` with keying material (RFC 8446 §7.5).
    ///
    /// # Errors
    /// The handshake is not complete, or there is not that much.
    fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), TlsConfigError>;
}

type Begun = Result<Box<dyn TlsSession>, TlsConfigError>;
type BeginClient = dyn Fn(&str, &[u8]) -> Begun + Send + Sync;
type BeginServer = dyn Fn(&[u8]) -> Begun + Send + Sync;

/// The library that makes a client's sessions.
#[derive(Clone)]
pub(super) enum ClientEngine {
    BoringSsl(SslContext),
    Provided(Arc<BeginClient>),
}

/// The library that makes a server's sessions.
#[derive(Clone)]
pub(super) enum ServerEngine {
    BoringSsl(SslContext),
    Provided(Arc<BeginServer>),
}

/// One TLS handshake, and what comes after it.
#[derive(Debug)]
pub struct Session(Engine);

#[derive(Debug)]
enum Engine {
    BoringSsl(BoringSession),
    Provided(Box<dyn TlsSession>),
}

impl Session {
    /// A client's session with the server of this name: a host name, which is also sent (RFC 6066 §3), or an IP address.
    pub fn client(
        tls: &ClientTls,
        server_name: &str,
        transport_parameters: &[u8],
    ) -> Result<Self, TlsConfigError> {
        Ok(Self(match tls.engine() {
            ClientEngine::BoringSsl(context) => {
                let session = BoringSession::client(tls, context, server_name, transport_parameters)?;
                Engine::BoringSsl(session)
            }
            ClientEngine::Provided(begin) => Engine::Provided(begin(server_name, transport_parameters)?),
        }))
    }

    /// A server's session.
    pub fn server(tls: &ServerTls, transport_parameters: &[u8]) -> Result<Self, TlsConfigError> {
        Ok(Self(match tls.engine() {
            ServerEngine::BoringSsl(context) => {
                Engine::BoringSsl(BoringSession::server(tls, context, transport_parameters)?)
            }
            ServerEngine::Provided(begin) => Engine::Provided(begin(transport_parameters)?),
        }))
    }

    /// BoringSSL's session, if it is one.
    pub(super) fn boring(&mut self) -> Option<&mut BoringSession> {
        match &mut self.0 {
            Engine::BoringSsl(session) => Some(session),
            Engine::Provided(_) => None,
        }
    }

    /// Replaces the transport parameters of a server that has not answered yet.
    pub fn set_transport_parameters(&mut self, parameters: &[u8]) -> Result<(), TlsConfigError> {
        match &mut self.0 {
            Engine::BoringSsl(session) => session.set_transport_parameters(parameters),
            Engine::Provided(session) => session.set_transport_parameters(parameters),
        }
    }

    /// Has a server issue and accept session tickets of `version` only (RFC 9369 §5). To be called before it answers. Tickets of another
    /// library are that library's.
    pub fn bind_tickets(&mut self, version: Version) -> Result<(), TlsConfigError> {
        self.boring().map_or(Ok(()), |session| session.bind_tickets(version))
    }

    /// Has a client offer to resume the session of `ticket`. To be called before [`Session::start`].
    pub fn resume(&mut self, ticket: &Ticket) -> Result<(), TlsConfigError> {
        self.boring().map_or(Err(TlsConfigError::Ticket), |session| session.resume(ticket))
    }

    /// Has a server accept 0-RTT, each ticket once. To be called before the first [`Session::provide`].
    ///
    /// `context` stands for the limits that 0-RTT data relies on: tickets that were issued under other ones, or by
    /// another guard's server, do not open 0-RTT (RFC 9001 §4.6.1).
    pub fn accept_early_data(
        &mut self,
        context: &[u8],
        guard: &Arc<ReplayGuard>,
        now: Instant,
    ) -> Result<(), TlsConfigError> {
        self.boring().map_or(Ok(()), |session| session.accept_early_data(context, guard, now))
    }

    /// Has a client send 0-RTT if the ticket that it resumes permits it. To be called before [`Session::start`].
    pub fn offer_early_data(&mut self) {
        if let Some(session) = self.boring() {
            session.offer_early_data();
        }
    }

    /// Returns true if the server accepted 0-RTT. On a client only known once the server's flight arrived.
    pub fn is_early_data_accepted(&self) -> bool {
        match &self.0 {
            Engine::BoringSsl(session) => session.is_early_data_accepted(),
            Engine::Provided(_) => false,
        }
    }

    /// Begins a client's handshake: the ClientHello is the first output. Later on, goes on where a verifier had it wait.
    pub fn start(&mut self) -> Result<(), TransportError> {
        match &mut self.0 {
            Engine::BoringSsl(session) => session.start(),
            Engine::Provided(session) => session.start(),
        }
    }

    /// Takes in the next CRYPTO bytes of `level` and drives the handshake with them.
    ///
    /// TLS alerts come back as CRYPTO_ERROR codes with a reason that people can read (RFC 9001 §4.8).
    pub fn provide(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError> {
        match &mut self.0 {
            Engine::BoringSsl(session) => session.provide(level, data),
            Engine::Provided(session) => session.provide(level, data),
        }
    }

    /// The next thing that TLS wants done.
    pub fn poll(&mut self) -> Option<SessionOutput> {
        match &mut self.0 {
            Engine::BoringSsl(session) => session.poll(),
            Engine::Provided(session) => session.poll(),
        }
    }

    /// Frees room that only the handshake needed.
    pub fn settle(&mut self) {
        if let Some(session) = self.boring() {
            session.settle();
        }
    }

    /// Returns true if the handshake is not complete yet (RFC 9001 §4.1.1).
    pub fn is_handshaking(&self) -> bool {
        match &self.0 {
            Engine::BoringSsl(session) => session.is_handshaking(),
            Engine::Provided(session) => session.is_handshaking(),
        }
    }

    /// The peer's transport parameters as it encoded them, once they arrived: not authenticated before the handshake is
    /// complete (RFC 9001 §8.2). Empty ones count as none.
    pub fn peer_transport_parameters(&self) -> Option<Vec<u8>> {
        match &self.0 {
            Engine::BoringSsl(session) => session.peer_transport_parameters(),
            Engine::Provided(session) => {
                session.peer_transport_parameters().filter(|encoded| !encoded.is_empty())
            }
        }
    }

    /// The application protocol agreed on (RFC 7301).
    pub fn alpn(&self) -> Option<Vec<u8>> {
        match &self.0 {
            Engine::BoringSsl(session) => session.alpn(),
            Engine::Provided(session) => session.alpn(),
        }
    }

    /// The host name that the client asked for (RFC 6066 §3).
    pub fn server_name(&self) -> Option<String> {
        match &self.0 {
            Engine::BoringSsl(session) => session.server_name(),
            Engine::Provided(session) => session.server_name(),
        }
    }

    /// The peer's certificates, its own first, each in DER.
    pub fn peer_certificates(&self) -> Vec<Vec<u8>> {
        match &self.0 {
            Engine::BoringSsl(session) => session.peer_certificates(),
            Engine::Provided(session) => session.peer_certificates(),
        }
    }

    /// Returns how long the session is of use.
    pub(crate) fn retention(&self) -> Retention {
        match &self.0 {
            Engine::BoringSsl(session) => session.retention(),
            Engine::Provided(_) => Retention::Connection,
        }
    }

    /// Returns how far the peer's messages are, where BoringSSL reads them.
    pub(crate) fn messages(&self) -> PostHandshake {
        match &self.0 {
            Engine::BoringSsl(session) => session.messages(),
            Engine::Provided(_) => PostHandshake::default(),
        }
    }

    /// Fills `out` with keying material (RFC 8446 §7.5).
    pub fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), TlsConfigError> {
        match &self.0 {
            Engine::BoringSsl(session) => session.export_keying_material(out, label, context),
            Engine::Provided(session) => session.export_keying_material(out, label, context),
        }
    }

    /// The cipher suite agreed on, where BoringSSL did; the secrets of another library name theirs.
    pub fn cipher_suite(&self) -> Option<Suite> {
        match &self.0 {
            Engine::BoringSsl(session) => session.cipher_suite(),
            Engine::Provided(_) => None,
        }
    }

    /// Returns true if the handshake resumed an earlier session.
    pub fn is_resumed(&self) -> bool {
        match &self.0 {
            Engine::BoringSsl(session) => session.is_resumed(),
            Engine::Provided(session) => session.is_resumed(),
        }
    }

    /// Takes the session tickets that arrived, at most eight, oldest first; none if the configuration has no store
    /// for them, and none of another library, which keeps its own.
    pub fn take_tickets(&mut self) -> Vec<Ticket> {
        self.boring().map(BoringSession::take_tickets).unwrap_or_default()
    }
}
