//! Limits that an endpoint sets on the sessions of its peer (draft-ietf-webtrans-http3 §5).

/// The kinds of streams of a session, whose numbers are limited apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SessionStreams {
    /// Unidirectional.
    Unidirectional,
    /// Bidirectional. The stream of the session's request is none of them.
    Bidirectional,
}

impl SessionStreams {
    pub(crate) fn of(id: hvq::StreamId) -> Self {
        match id.direction() {
            hvq::Direction::Unidirectional => Self::Unidirectional,
            hvq::Direction::Bidirectional => Self::Bidirectional,
        }
    }
}

/// The limits of a peer in its sessions (draft-ietf-webtrans-http3 §5). Flow control of sessions is in force if both ends set a limit
/// other than 0; otherwise a connection has one session at a time, and its streams have the limits of the transport alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionLimits {
    /// Sessions of a connection at a time, of both ends, if flow control of sessions is in force; otherwise there is one. Default: 16.
    pub sessions: usize,
    /// Bytes that the peer may send on all streams of a session before they are read; the transport's windows apply as well.
    /// Default: 16 MiB.
    pub data: u64,
    /// Unidirectional streams that the peer may have open in a session at a time. Default: 100.
    pub uni: u64,
    /// Bidirectional streams that the peer may have open in a session at a time. Default: 100.
    pub bidi: u64,
}

impl Default for SessionLimits {
    /// 16 sessions, each with 16 MiB, and 100 streams of each kind.
    fn default() -> Self {
        Self { sessions: 16, data: 16 << 20, uni: 100, bidi: 100 }
    }
}

impl SessionLimits {
    /// No flow control of sessions.
    pub const NONE: Self = Self { sessions: 1, data: 0, uni: 0, bidi: 0 };

    pub(crate) fn streams(self, kind: SessionStreams) -> u64 {
        match kind {
            SessionStreams::Unidirectional => self.uni,
            SessionStreams::Bidirectional => self.bidi,
        }
    }

    /// Returns true if flow control is declared (§5.1).
    pub(crate) fn is_declared(self) -> bool {
        self.data > 0 || self.uni > 0 || self.bidi > 0
    }
}
