//! The error of sessions and streams.

use hvq::ConnectionError;

/// The reason for which an operation of a session or of one of its streams failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The session ended.
    #[error("session lost: {0}")]
    Session(#[from] ConnectionError),
    /// The peer reset the stream with this code.
    #[error("the peer reset the stream (code {0})")]
    Reset(u64),
    /// The peer reads no more, and said so with this code.
    #[error("the peer stopped reading (code {0})")]
    Stopped(u64),
    /// The stream was finished, reset or stopped here.
    #[error("the stream is closed")]
    Closed,
    /// The datagram is larger than a packet or than what the peer takes, if it takes any.
    #[error("the datagram cannot be sent: {0}")]
    Datagram(String),
}

impl web_transport_trait::Error for Error {
    fn session_error(&self) -> Option<(u32, String)> {
        match self {
            Self::Session(ConnectionError::PeerApplication { code, reason }) => {
                Some((u32::try_from(*code).ok()?, reason.clone()))
            }
            _ => None,
        }
    }

    fn stream_error(&self) -> Option<u32> {
        match self {
            Self::Reset(code) | Self::Stopped(code) => u32::try_from(*code).ok(),
            _ => None,
        }
    }
}

impl From<hvq::WriteError> for Error {
    fn from(error: hvq::WriteError) -> Self {
        match error {
            hvq::WriteError::Stopped(code) => Self::Stopped(code),
            hvq::WriteError::Closed => Self::Closed,
            hvq::WriteError::ConnectionLost(lost) => Self::Session(lost),
        }
    }
}

impl From<hvq::ReadError> for Error {
    fn from(error: hvq::ReadError) -> Self {
        match error {
            hvq::ReadError::Reset(code) => Self::Reset(code),
            hvq::ReadError::ConnectionLost(lost) => Self::Session(lost),
            hvq::ReadError::Stopped | hvq::ReadError::Unordered => Self::Closed,
        }
    }
}

impl From<hvq::SendDatagramError> for Error {
    fn from(error: hvq::SendDatagramError) -> Self {
        match error {
            hvq::SendDatagramError::Refused(refused) => Self::Datagram(refused.to_string()),
            hvq::SendDatagramError::ConnectionLost(lost) => Self::Session(lost),
        }
    }
}
