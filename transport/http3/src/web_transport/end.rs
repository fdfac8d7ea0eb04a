//! Ends of sessions, of their streams, and of attempts to begin one.

use super::codes;
use crate::client::RequestError;
use crate::{Code, SendError};
use hvq::{ConnectionError, ReadError, WriteError};

/// The end of a session.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SessionEnd {
    /// The peer closed it, with a code and a reason of its application; 0 and an empty one if it gave none.
    #[error("the peer closed the session (code {code}): {reason}")]
    ClosedByPeer {
        /// The application's code.
        code: u32,
        /// The application's reason.
        reason: String,
    },
    /// It was closed here, or all that could use it was dropped.
    #[error("the session was closed here")]
    ClosedHere,
    /// The stream of its request was reset, with this HTTP/3 code.
    #[error("the peer gave the session up ({0})")]
    Reset(Code),
    /// The peer broke the protocol of the session, which was reset.
    #[error("the peer broke the protocol of the session: {0}")]
    Broken(&'static str),
    /// The connection ended.
    #[error("the connection ended: {0}")]
    ConnectionLost(ConnectionError),
}

/// The reason for which nothing is read from, or written to, a stream of a session.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StreamError {
    /// The peer reset the stream or stopped reading it, with this code if it was one of its application.
    #[error("the peer gave the stream up (code {0:?})")]
    GivenUp(Option<u32>),
    /// The stream was finished, reset or stopped here.
    #[error("the stream has ended here")]
    Closed,
    /// The stream has more bytes than were to be read.
    #[error("the stream is longer than was expected")]
    TooLong,
    /// The session has ended, and its streams with it.
    #[error("the session has ended")]
    SessionEnded,
    /// The connection ended.
    #[error("the connection ended: {0}")]
    ConnectionLost(ConnectionError),
}

impl StreamError {
    fn given_up(code: u64) -> Self {
        if code == Code::WT_SESSION_GONE.value() {
            return Self::SessionEnded;
        }
        Self::GivenUp(codes::from_http(code))
    }
}

impl From<WriteError> for StreamError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(code) => Self::given_up(code),
            WriteError::Closed => Self::Closed,
            WriteError::ConnectionLost(lost) => Self::ConnectionLost(lost),
        }
    }
}

impl From<ReadError> for StreamError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Reset(code) => Self::given_up(code),
            ReadError::Stopped | ReadError::Unordered => Self::Closed,
            ReadError::ConnectionLost(lost) => Self::ConnectionLost(lost),
        }
    }
}

/// The reason for which there is no session.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SessionError {
    /// The connection has as many sessions as it may have at a time: one, unless both ends declare limits for each
    /// (draft-ietf-webtrans-http3 §5.1).
    #[error("the connection has as many sessions as it may have")]
    TooMany,
    /// The other end, or this one, does not say in its SETTINGS that it takes WebTransport sessions.
    #[error("WebTransport is not offered on this connection")]
    NotOffered,
    /// The request is none for a session, or its URI has another scheme than `https`: it was answered with 405.
    #[error("the request is none for a session")]
    NoSession,
    /// The page that asks comes from an origin that is not permitted: it was answered with 403.
    #[error("pages of {0} may not begin a session")]
    Origin(String),
    /// The server answered with this status.
    #[error("the server refuses the session with status {0}")]
    Refused(http::StatusCode),
    /// The server chose an application protocol that was not offered: the session was closed with WT_ALPN_ERROR.
    #[error("the server chose an application protocol that was not offered")]
    Protocol,
    /// The request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The response could not be sent.
    #[error(transparent)]
    Send(#[from] SendError),
}
