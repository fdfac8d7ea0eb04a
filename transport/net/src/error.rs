//! Errors of operations: one small enum per operation, each convertible to [`io::Error`].

use crate::{LocalAddress, PathId};
use hvq_transport::datagram::DatagramError;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

pub use hvq_transport::connection::PathCommandError;
pub use hvq_transport::error::ConnectionError;

/// The reason for which a connection could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
    /// The local address cannot be used.
    #[error("cannot bind {local}: {source}")]
    Bind {
        /// The address.
        local: LocalAddress,
        /// The error of the system.
        source: io::Error,
    },
    /// The server's name or the number of connections.
    #[error(transparent)]
    Transport(#[from] hvq_transport::endpoint::ConnectError),
}

/// The reason for which nothing was written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// The peer wants no more, and said so with this code (RFC 9000 §3.5).
    #[error("the peer stopped reading (code {0:#x})")]
    Stopped(u64),
    /// The stream was finished or reset here.
    #[error("the stream is already finished or reset")]
    Closed,
    /// The connection ended.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

/// The reason for which nothing was read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// The peer reset the stream with this code (RFC 9000 §19.4).
    #[error("the peer reset the stream (code {0:#x})")]
    Reset(u64),
    /// Reading was stopped here.
    #[error("reading was stopped")]
    Stopped,
    /// The stream was read in any order before, so that bytes may be missing.
    #[error("the stream was read in any order")]
    Unordered,
    /// The connection ended.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

/// The reason for which a stream could not be read to its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadToEndError {
    /// Reading failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is more than the limit.
    #[error("the stream is longer than {0} bytes")]
    TooLong(usize),
}

/// The reason for which a datagram was not queued.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendDatagramError {
    /// The peer accepts none, or none so large (RFC 9221 §3).
    #[error(transparent)]
    Refused(#[from] DatagramError),
    /// The connection ended.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

/// The reason for which a path was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenPathError {
    /// The connection cannot have another path, or the time for the peer to permit it was over.
    #[error(transparent)]
    Refused(#[from] hvq_transport::connection::OpenPathError),
    /// The local address cannot be used.
    #[error("cannot bind {local}: {source}")]
    Bind {
        /// The address.
        local: LocalAddress,
        /// The error of the system.
        source: io::Error,
    },
    /// Nothing came back over the path, and it was abandoned (RFC 9000 §8.2.4).
    #[error("path {0} could not be validated: nothing came back over it")]
    Unreachable(PathId),
    /// The peer gave the path up with this error code (RFC 10069 §3.4).
    #[error("path {path} was abandoned (code {code:#x})")]
    Abandoned {
        /// The path.
        path: PathId,
        /// The code of its PATH_ABANDON frame.
        code: u64,
    },
    /// Validation did not end in this time.
    #[error("path {path} was not validated within {after:?}")]
    TimedOut {
        /// The path, which stays open.
        path: PathId,
        /// The time that was waited.
        after: Duration,
    },
    /// The connection ended.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

/// The reason for which a path was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MigratePathError {
    /// The path cannot be moved.
    #[error(transparent)]
    Refused(#[from] hvq_transport::connection::MigrateError),
    /// The local address cannot be used.
    #[error("cannot bind {local}: {source}")]
    Bind {
        /// The address.
        local: LocalAddress,
        /// The error of the system.
        source: io::Error,
    },
    /// Nothing came back from the server there, and the path is where it was (RFC 9000 §9.3.2).
    #[error("path {0} could not be moved: nothing came back over the new addresses")]
    Unreachable(PathId),
    /// The connection ended.
    #[error("connection lost: {0}")]
    ConnectionLost(#[from] ConnectionError),
}

/// The reason for which a socket was not removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RemoveSocketError {
    /// No socket is bound to this address.
    #[error("the endpoint has no socket at {0}")]
    Unknown(SocketAddr),
    /// An endpoint without a socket would hear nothing any more: add another one before, or close it.
    #[error(
        "the socket at {0} is the last one of the endpoint: add another one before, or close the endpoint"
    )]
    Last(SocketAddr),
    /// Workers share the address, and the kernel shares out what comes there by the places of their sockets.
    #[error("workers share the address of the socket at {0}")]
    Shared(SocketAddr),
}

/// The kind of an [`io::Error`] that stands for the end of a connection.
fn kind_of(error: &ConnectionError) -> io::ErrorKind {
    match error {
        ConnectionError::LocallyClosed { .. } | ConnectionError::Transport(_) => io::ErrorKind::NotConnected,
        ConnectionError::PeerTransport(_) | ConnectionError::PeerApplication { .. } => {
            io::ErrorKind::ConnectionAborted
        }
        ConnectionError::StatelessReset => io::ErrorKind::ConnectionReset,
        ConnectionError::IdleTimeout | ConnectionError::HandshakeTimeout => io::ErrorKind::TimedOut,
        ConnectionError::VersionMismatch => io::ErrorKind::Unsupported,
    }
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        let kind = match &error {
            ConnectError::EndpointClosed => io::ErrorKind::NotConnected,
            ConnectError::Bind { source, .. } => source.kind(),
            ConnectError::Transport(_) => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match &error {
            WriteError::Stopped(_) => io::ErrorKind::ConnectionReset,
            WriteError::Closed => io::ErrorKind::BrokenPipe,
            WriteError::ConnectionLost(lost) => kind_of(lost),
        };
        Self::new(kind, error)
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match &error {
            ReadError::Reset(_) => io::ErrorKind::ConnectionReset,
            ReadError::Stopped => io::ErrorKind::NotConnected,
            ReadError::Unordered => io::ErrorKind::InvalidInput,
            ReadError::ConnectionLost(lost) => kind_of(lost),
        };
        Self::new(kind, error)
    }
}

impl From<ReadToEndError> for io::Error {
    fn from(error: ReadToEndError) -> Self {
        match error {
            ReadToEndError::Read(error) => error.into(),
            ReadToEndError::TooLong(_) => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}

impl From<SendDatagramError> for io::Error {
    fn from(error: SendDatagramError) -> Self {
        let kind = match &error {
            SendDatagramError::Refused(DatagramError::Unsupported) => io::ErrorKind::Unsupported,
            SendDatagramError::Refused(DatagramError::TooLarge { .. }) => io::ErrorKind::InvalidInput,
            SendDatagramError::ConnectionLost(lost) => kind_of(lost),
        };
        Self::new(kind, error)
    }
}

impl From<OpenPathError> for io::Error {
    fn from(error: OpenPathError) -> Self {
        let kind = match &error {
            OpenPathError::Refused(_) => io::ErrorKind::Unsupported,
            OpenPathError::Bind { source, .. } => source.kind(),
            OpenPathError::Unreachable(_) => io::ErrorKind::HostUnreachable,
            OpenPathError::Abandoned { .. } => io::ErrorKind::ConnectionAborted,
            OpenPathError::TimedOut { .. } => io::ErrorKind::TimedOut,
            OpenPathError::ConnectionLost(lost) => kind_of(lost),
        };
        Self::new(kind, error)
    }
}

impl From<MigratePathError> for io::Error {
    fn from(error: MigratePathError) -> Self {
        let kind = match &error {
            MigratePathError::Refused(_) => io::ErrorKind::Unsupported,
            MigratePathError::Bind { source, .. } => source.kind(),
            MigratePathError::Unreachable(_) => io::ErrorKind::HostUnreachable,
            MigratePathError::ConnectionLost(lost) => kind_of(lost),
        };
        Self::new(kind, error)
    }
}

impl From<RemoveSocketError> for io::Error {
    fn from(error: RemoveSocketError) -> Self {
        let kind = match &error {
            RemoveSocketError::Unknown(_) => io::ErrorKind::AddrNotAvailable,
            RemoveSocketError::Last(_) => io::ErrorKind::InvalidInput,
            RemoveSocketError::Shared(_) => io::ErrorKind::Unsupported,
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_text_and_get_a_kind_as_io_errors() {
        let error = io::Error::from(WriteError::Stopped(0x10c));
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert!(error.to_string().contains("0x10c"));
        let error = io::Error::from(ReadError::ConnectionLost(ConnectionError::IdleTimeout));
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let error = io::Error::from(ReadToEndError::TooLong(5));
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let error = io::Error::from(SendDatagramError::Refused(DatagramError::TooLarge { max: 9, later: 9 }));
        assert!(error.to_string().contains("9 bytes"));
    }
}
