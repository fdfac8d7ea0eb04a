//! Names of streams.

use std::fmt;

/// An end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The end that began it.
    Client,
    /// The end that accepted it.
    Server,
}

impl Side {
    /// Returns true for a client.
    pub fn is_client(self) -> bool {
        self == Self::Client
    }

    /// Returns true for a server.
    pub fn is_server(self) -> bool {
        self == Self::Server
    }
}

impl From<hvq::Role> for Side {
    fn from(role: hvq::Role) -> Self {
        match role {
            hvq::Role::Client => Self::Client,
            hvq::Role::Server => Self::Server,
        }
    }
}

/// The directions of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dir {
    /// Both ends send.
    Bi,
    /// The end that opened it sends.
    Uni,
}

/// The ID of a stream (RFC 9000 §2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StreamId(pub(crate) hvq::StreamId);

impl StreamId {
    /// The end that opened the stream.
    pub fn initiator(self) -> Side {
        self.0.initiator().into()
    }

    /// The directions of the stream.
    pub fn dir(self) -> Dir {
        match self.0.direction() {
            hvq::Direction::Bidirectional => Dir::Bi,
            hvq::Direction::Unidirectional => Dir::Uni,
        }
    }

    /// The number of the stream among those of its kind.
    pub fn index(self) -> u64 {
        self.0.index()
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
