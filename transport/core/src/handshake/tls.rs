//! TLS as a connection sees it: a session, and what is left of it when nothing more can come.

use crate::Role;
use crate::crypto::session::{
    PostHandshake, Retention, Session, SessionOutput, Stage, Ticket, TlsConfigError,
};
use crate::error::TransportError;
use crate::wire::level::Level;

/// A TLS session, or what it agreed on.
#[derive(Debug)]
pub enum Tls {
    /// The handshake is under way, or the peer may send session tickets.
    Session(Session),
    /// The handshake is confirmed, and nothing that TLS could still say is of use: its memory, a large part of what an idle
    /// connection takes, is free.
    Over(Box<Agreement>),
}

/// The agreement of a session.
#[derive(Debug)]
pub struct Agreement {
    role: Role,
    messages: PostHandshake,
    alpn: Option<Vec<u8>>,
    server_name: Option<String>,
    peer_certificates: Vec<Vec<u8>>,
    resumption: Resumption,
}

/// Tells whether a handshake resumed an earlier session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Resumption {
    Full,
    Resumed,
}

impl Tls {
    /// Frees what an endpoint of `role` needs no more once its handshake is confirmed and its outputs are all taken.
    pub fn finish(&mut self, role: Role) {
        let Self::Session(session) = self else { return };
        if session.retention() == Retention::Connection {
            session.settle();
        } else {
            let resumption = if session.is_resumed() { Resumption::Resumed } else { Resumption::Full };
            *self = Self::Over(Box::new(Agreement {
                role,
                messages: session.messages(),
                alpn: session.alpn(),
                server_name: session.server_name(),
                peer_certificates: session.peer_certificates(),
                resumption,
            }));
        }
    }

    /// The session, while there is one.
    pub fn session(&mut self) -> Option<&mut Session> {
        match self {
            Self::Session(session) => Some(session),
            Self::Over(_) => None,
        }
    }

    /// Begins a client's handshake: the ClientHello is the first output.
    pub fn start(&mut self) -> Result<(), TransportError> {
        self.session().map_or(Ok(()), Session::start)
    }

    /// Takes in bytes of the peer like [`Session::provide`]. After the end a client skips tickets, and anything else is
    /// unexpected.
    pub fn provide(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError> {
        match self {
            Self::Session(session) => session.provide(level, data),
            Self::Over(agreement) => agreement.messages.take(data, agreement.role, Stage::Freed),
        }
    }

    /// The next thing that TLS wants done.
    pub fn poll(&mut self) -> Option<SessionOutput> {
        self.session()?.poll()
    }

    /// Returns true if the handshake is not complete yet (RFC 9001 §4.1.1).
    pub fn is_handshaking(&self) -> bool {
        match self {
            Self::Session(session) => session.is_handshaking(),
            Self::Over(_) => false,
        }
    }

    /// The peer's parameters, from [`Session::peer_transport_parameters`]; `None` after the end.
    pub fn peer_transport_parameters(&self) -> Option<Vec<u8>> {
        match self {
            Self::Session(session) => session.peer_transport_parameters(),
            Self::Over(_) => None,
        }
    }

    /// The application protocol agreed on (RFC 7301).
    pub fn alpn(&self) -> Option<Vec<u8>> {
        match self {
            Self::Session(session) => session.alpn(),
            Self::Over(agreement) => agreement.alpn.clone(),
        }
    }

    /// The host name that the client asked for (RFC 6066 §3).
    pub fn server_name(&self) -> Option<String> {
        match self {
            Self::Session(session) => session.server_name(),
            Self::Over(agreement) => agreement.server_name.clone(),
        }
    }

    /// The peer's certificates, its own first, each in DER.
    pub fn peer_certificates(&self) -> Vec<Vec<u8>> {
        match self {
            Self::Session(session) => session.peer_certificates(),
            Self::Over(agreement) => agreement.peer_certificates.clone(),
        }
    }

    /// Returns true if the handshake resumed an earlier session.
    pub fn is_resumed(&self) -> bool {
        match self {
            Self::Session(session) => session.is_resumed(),
            Self::Over(agreement) => agreement.resumption == Resumption::Resumed,
        }
    }

    /// Fills `out` with keying material (RFC 8446 §7.5), while there is a session.
    pub fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), TlsConfigError> {
        match self {
            Self::Session(session) if !session.is_handshaking() => {
                session.export_keying_material(out, label, context)
            }
            Self::Session(_) => Err(TlsConfigError::Tls("the handshake is not complete".to_owned())),
            Self::Over(_) => Err(TlsConfigError::Tls("the session was not kept".to_owned())),
        }
    }

    /// Takes the session tickets that arrived, oldest first.
    pub fn take_tickets(&mut self) -> Vec<Ticket> {
        self.session().map(Session::take_tickets).unwrap_or_default()
    }
}
