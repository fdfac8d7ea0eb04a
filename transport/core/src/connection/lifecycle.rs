//! The life of a connection as a table (RFC 9000 §10).

use crate::time::Instant;

/// The state of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lifecycle {
    /// Keys are being agreed on.
    Handshaking,
    /// The TLS handshake is complete.
    Connected,
    /// The handshake is confirmed: the peer is known to have completed it.
    Confirmed,
    /// This endpoint sent CONNECTION_CLOSE and repeats it on input, until the instant (RFC 9000 §10.2.1).
    Closing(Instant),
    /// The peer closed: nothing is sent any more, until the instant (RFC 9000 §10.2.2).
    Draining(Instant),
    /// Nothing is left to do.
    Closed,
}

/// An event that moves a connection to its next state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Milestone {
    /// TLS finished.
    HandshakeComplete,
    /// HANDSHAKE_DONE was sent or received.
    HandshakeConfirmed,
    /// This endpoint closes and keeps its state until the instant.
    LocalClose(Instant),
    /// The peer closed; the state is kept until the instant.
    PeerClose(Instant),
    /// The closing or draining period is over, or the connection timed out silently.
    Expired,
}

impl Lifecycle {
    /// The state after `milestone`.
    #[must_use]
    pub fn after(self, milestone: Milestone) -> Self {
        use Lifecycle::{Closed, Closing, Confirmed, Connected, Draining, Handshaking};
        match (self, milestone) {
            (Closed, _) | (_, Milestone::Expired) => Closed,
            (Draining(until), _) => Draining(until),
            (Closing(_) | Handshaking | Connected | Confirmed, Milestone::PeerClose(until)) => {
                Draining(until)
            }
            (Closing(until), _) => Closing(until),
            (Handshaking | Connected | Confirmed, Milestone::LocalClose(until)) => Closing(until),
            (Handshaking, Milestone::HandshakeComplete) => Connected,
            (Handshaking | Connected | Confirmed, Milestone::HandshakeConfirmed) => Confirmed,
            (Connected | Confirmed, Milestone::HandshakeComplete) => self,
        }
    }

    /// Returns true if the handshake is confirmed and the connection is open.
    pub fn is_confirmed(self) -> bool {
        self == Self::Confirmed
    }

    /// Returns true if data may still flow.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Handshaking | Self::Connected | Self::Confirmed)
    }

    /// Returns true if the TLS handshake is complete and the connection open.
    pub fn is_connected(self) -> bool {
        matches!(self, Self::Connected | Self::Confirmed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_close_ends_closing_and_nothing_revives_a_connection() {
        let until = Instant::from_nanos(5);
        let closing = Lifecycle::Confirmed.after(Milestone::LocalClose(until));
        assert_eq!(closing, Lifecycle::Closing(until));
        assert_eq!(closing.after(Milestone::HandshakeConfirmed), closing);
        let draining = closing.after(Milestone::PeerClose(until));
        assert_eq!(draining, Lifecycle::Draining(until));
        assert_eq!(draining.after(Milestone::LocalClose(until)), draining);
        assert_eq!(draining.after(Milestone::Expired), Lifecycle::Closed);
        assert_eq!(Lifecycle::Closed.after(Milestone::HandshakeComplete), Lifecycle::Closed);
    }

    #[test]
    fn confirmation_implies_completion() {
        assert!(Lifecycle::Handshaking.after(Milestone::HandshakeConfirmed).is_connected());
    }
}
