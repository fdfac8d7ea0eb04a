//! Errors in quinn's shapes.

use crate::VarInt;
use bytes::Bytes;
use hvq::transport::datagram::DatagramError;
use hvq::transport::endpoint::ConnectError as Refusal;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// The code of a transport error (RFC 9000 §20.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransportErrorCode(u64);

impl From<TransportErrorCode> for u64 {
    fn from(code: TransportErrorCode) -> Self {
        code.0
    }
}

impl fmt::Display for TransportErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        hvq::ErrorCode(self.0).fmt(f)
    }
}

/// A violation that this end found.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct TransportError {
    /// The code.
    pub code: TransportErrorCode,
    /// The explanation.
    pub reason: String,
}

/// The end of a connection by the peer's transport.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionClose {
    /// The code.
    pub error_code: TransportErrorCode,
    /// The explanation.
    pub reason: Bytes,
}

impl fmt::Display for ConnectionClose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.error_code, String::from_utf8_lossy(&self.reason))
    }
}

/// The end of a connection by the peer's application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApplicationClose {
    /// The application's code.
    pub error_code: VarInt,
    /// The explanation.
    pub reason: Bytes,
}

impl fmt::Display for ApplicationClose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", String::from_utf8_lossy(&self.reason), self.error_code)
    }
}

/// The reason for which a connection ended.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The peer speaks no version that this end does.
    #[error("the peer speaks no version in common")]
    VersionMismatch,
    /// This end found a violation.
    #[error(transparent)]
    TransportError(#[from] TransportError),
    /// The peer's transport ended it.
    #[error("closed by the peer: {0}")]
    ConnectionClosed(ConnectionClose),
    /// The peer's application ended it.
    #[error("closed by the peer's application: {0}")]
    ApplicationClosed(ApplicationClose),
    /// The peer has lost its state.
    #[error("reset by the peer")]
    Reset,
    /// Nothing was heard for too long.
    #[error("timed out")]
    TimedOut,
    /// The application ended it here.
    #[error("closed")]
    LocallyClosed,
    /// No more connections are possible here.
    #[error("no more connections are possible")]
    CidsExhausted,
}

impl From<hvq::ConnectionError> for ConnectionError {
    fn from(error: hvq::ConnectionError) -> Self {
        use hvq::ConnectionError as Error;
        match error {
            Error::LocallyClosed { .. } => Self::LocallyClosed,
            Error::Transport(error) => Self::TransportError(TransportError {
                code: TransportErrorCode(error.code.0),
                reason: error.reason.into_owned(),
            }),
            Error::PeerTransport(error) => Self::ConnectionClosed(ConnectionClose {
                error_code: TransportErrorCode(error.code.0),
                reason: error.reason.into_owned().into(),
            }),
            Error::PeerApplication { code, reason } => Self::ApplicationClosed(ApplicationClose {
                error_code: VarInt::carried(code),
                reason: reason.into(),
            }),
            Error::IdleTimeout | Error::HandshakeTimeout => Self::TimedOut,
            Error::StatelessReset => Self::Reset,
            Error::VersionMismatch => Self::VersionMismatch,
        }
    }
}

impl From<ConnectionError> for io::Error {
    fn from(error: ConnectionError) -> Self {
        let kind = match error {
            ConnectionError::TimedOut => io::ErrorKind::TimedOut,
            ConnectionError::Reset => io::ErrorKind::ConnectionReset,
            ConnectionError::ApplicationClosed(_) | ConnectionError::ConnectionClosed(_) => {
                io::ErrorKind::ConnectionAborted
            }
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// The reason for which a connection was not begun.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    EndpointStopping,
    /// The endpoint has as many connections as it may.
    #[error("no more connections are possible")]
    CidsExhausted,
    /// The name of the server is neither a host name nor an address.
    #[error("invalid server name: {0}")]
    InvalidServerName(String),
    /// The address cannot be connected to.
    #[error("invalid remote address: {0}")]
    InvalidRemoteAddress(SocketAddr),
    /// There is no default configuration: see [`Endpoint::set_default_client_config`](crate::Endpoint::set_default_client_config).
    #[error("no default client configuration")]
    NoDefaultClientConfig,
    /// The configuration cannot be used.
    #[error("the configuration cannot be used: {0}")]
    Unusable(String),
}

impl ConnectError {
    /// The error of an attempt to connect to `remote` under `name`.
    pub(crate) fn of(error: &hvq::ConnectError, remote: SocketAddr, name: &str) -> Self {
        match error {
            hvq::ConnectError::EndpointClosed => Self::EndpointStopping,
            hvq::ConnectError::Bind { .. } => Self::InvalidRemoteAddress(remote),
            hvq::ConnectError::Transport(Refusal::TooManyConnections) => Self::CidsExhausted,
            hvq::ConnectError::Transport(Refusal::Tls(hvq::TlsConfigError::ServerName(_))) => {
                Self::InvalidServerName(name.to_owned())
            }
            other => Self::Unusable(other.to_string()),
        }
    }
}

/// A setting that is out of its range.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the setting is out of its range")]
pub struct ConfigError;

/// The stream was finished, reset or stopped before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("closed stream")]
pub struct ClosedStream;

impl From<ClosedStream> for io::Error {
    fn from(error: ClosedStream) -> Self {
        Self::new(io::ErrorKind::NotConnected, error)
    }
}

/// The reason for which nothing was written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// The peer wants no more, with its code.
    #[error("the peer stopped reading: code {0}")]
    Stopped(VarInt),
    /// The connection ended.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was finished or reset before.
    #[error("closed stream")]
    ClosedStream,
    /// Not told here: data of a 0-RTT stream that the server rejected is sent again.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

impl From<hvq::WriteError> for WriteError {
    fn from(error: hvq::WriteError) -> Self {
        match error {
            hvq::WriteError::Stopped(code) => Self::Stopped(VarInt::carried(code)),
            hvq::WriteError::Closed => Self::ClosedStream,
            hvq::WriteError::ConnectionLost(lost) => Self::ConnectionLost(lost.into()),
        }
    }
}

impl From<ClosedStream> for WriteError {
    fn from(_: ClosedStream) -> Self {
        Self::ClosedStream
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match error {
            WriteError::Stopped(_) | WriteError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            WriteError::ConnectionLost(_) | WriteError::ClosedStream => io::ErrorKind::NotConnected,
        };
        Self::new(kind, error)
    }
}

/// The reason for which the end of a stream is not known.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoppedError {
    /// The connection ended.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
    /// Not told here: data of a 0-RTT stream that the server rejected is sent again.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

impl From<StoppedError> for WriteError {
    fn from(error: StoppedError) -> Self {
        match error {
            StoppedError::ConnectionLost(lost) => Self::ConnectionLost(lost),
            StoppedError::ZeroRttRejected => Self::ZeroRttRejected,
        }
    }
}

/// The reason for which nothing was read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// The peer reset the stream, with its code.
    #[error("the peer reset the stream: code {0}")]
    Reset(VarInt),
    /// The connection ended.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
    /// The stream was stopped before.
    #[error("closed stream")]
    ClosedStream,
    /// The stream was read in any order before.
    #[error("an ordered read behind an unordered one")]
    IllegalOrderedRead,
    /// Not told here: data of a 0-RTT stream that the server rejected is sent again.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

impl From<hvq::ReadError> for ReadError {
    fn from(error: hvq::ReadError) -> Self {
        match error {
            hvq::ReadError::Reset(code) => Self::Reset(VarInt::carried(code)),
            hvq::ReadError::Stopped => Self::ClosedStream,
            hvq::ReadError::Unordered => Self::IllegalOrderedRead,
            hvq::ReadError::ConnectionLost(lost) => Self::ConnectionLost(lost.into()),
        }
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match error {
            ReadError::Reset(_) | ReadError::ZeroRttRejected => io::ErrorKind::ConnectionReset,
            ReadError::ConnectionLost(_) | ReadError::ClosedStream => io::ErrorKind::NotConnected,
            ReadError::IllegalOrderedRead => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

/// The reason for which a stream was not read to its end.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadToEndError {
    /// Reading failed.
    #[error("read error: {0}")]
    Read(#[from] ReadError),
    /// There is more than the limit.
    #[error("stream too long")]
    TooLong,
}

/// The reason for which a buffer was not filled.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadExactError {
    /// The stream ended after so many bytes.
    #[error("the stream ended after {0} bytes")]
    FinishedEarly(usize),
    /// Reading failed.
    #[error(transparent)]
    ReadError(#[from] ReadError),
}

/// The reason for which it is not known whether the peer reset a stream.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ResetError {
    /// The connection ended.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
    /// Not told here: data of a 0-RTT stream that the server rejected is sent again.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
}

/// The reason for which a datagram was not queued.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendDatagramError {
    /// The peer takes none.
    #[error("the peer takes no datagrams")]
    UnsupportedByPeer,
    /// Not told here: who takes no datagrams may send them.
    #[error("datagrams are disabled")]
    Disabled,
    /// The datagram is larger than a packet or than what the peer takes.
    #[error("datagram too large")]
    TooLarge,
    /// The connection ended.
    #[error("connection lost")]
    ConnectionLost(#[from] ConnectionError),
}

impl From<hvq::SendDatagramError> for SendDatagramError {
    fn from(error: hvq::SendDatagramError) -> Self {
        match error {
            hvq::SendDatagramError::Refused(DatagramError::Unsupported) => Self::UnsupportedByPeer,
            hvq::SendDatagramError::Refused(DatagramError::TooLarge { .. }) => Self::TooLarge,
            hvq::SendDatagramError::ConnectionLost(lost) => Self::ConnectionLost(lost.into()),
        }
    }
}
