//! Session tickets: the state that a client keeps of a connection, so that a later one resumes it.

use super::Ticket;
use crate::wire::version::Version;
use std::fmt;

/// The form of [`SessionTicket::to_bytes`].
const FORMAT: u8 = 2;

/// A session ticket with what else 0-RTT relies on (RFC 9000 §7.4.1, RFC 9001 §4.6). It is as secret as the session
/// was.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionTicket {
    /// The ticket of TLS.
    pub tls: Ticket,
    /// The QUIC version of the session: the ticket is of no use in another (RFC 9369 §5).
    pub version: Version,
    /// The application protocol of the session.
    pub alpn: Vec<u8>,
    /// The server's transport parameters that are remembered, as they are encoded on the wire.
    pub parameters: Vec<u8>,
}

impl SessionTicket {
    /// The ticket as bytes, for storage.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend_from_slice(&self.version.0.to_be_bytes());
        for part in [&self.tls.0, &self.alpn, &self.parameters] {
            let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }

    /// The ticket that [`Self::to_bytes`] made `bytes` of, `None` if it did not.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (format, rest) = bytes.split_first()?;
        let (version, mut rest) = rest.split_first_chunk::<4>()?;
        let version = Version(u32::from_be_bytes(*version));
        let mut part = || {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let (part, after) = after.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
            rest = after;
            Some(part.to_vec())
        };
        let ticket = Self { tls: Ticket(part()?), version, alpn: part()?, parameters: part()? };
        (*format == FORMAT && rest.is_empty()).then_some(ticket)
    }
}

impl fmt::Debug for SessionTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionTicket({})", String::from_utf8_lossy(&self.alpn))
    }
}

/// A client's store of tickets. An implementation is bounded, and shared by connections of several threads.
pub trait SessionStore: Send + Sync + fmt::Debug {
    /// Keeps a ticket of the server of this name.
    fn put(&self, server_name: &str, ticket: SessionTicket);

    /// Takes the latest ticket of the server of this name whose protocol is among `protocols`. A ticket is used once, so
    /// that nobody can tell that two connections are of the same client (RFC 8446 §C.4).
    fn take(&self, server_name: &str, protocols: &[Vec<u8>]) -> Option<SessionTicket>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_survives_storage_and_damaged_ones_are_refused() {
        let ticket = SessionTicket {
            tls: Ticket(vec![1; 300]),
            version: Version::V2,
            alpn: b"h3".to_vec(),
            parameters: vec![4, 1, 9],
        };
        let bytes = ticket.to_bytes();
        assert_eq!(SessionTicket::from_bytes(&bytes), Some(ticket.clone()));
        for length in 0..bytes.len() {
            assert_eq!(SessionTicket::from_bytes(&bytes[..length]), None);
        }
        assert_eq!(SessionTicket::from_bytes(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(format!("{ticket:?}"), "SessionTicket(h3)");
    }
}
