//! Reasons for which there is no answer to a request.

use crate::{Code, ReceiveError, SendError};
use hvq::{ConnectionError, ReadError, WriteError};

/// The reason for which there is no answer to a request.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RequestError {
    /// The connection ended.
    #[error("the connection ended: {0}")]
    Connection(#[from] ConnectionError),
    /// The server goes away: nothing was sent, or nothing of it was processed, and the request may be made again on another
    /// connection (RFC 9114 §5.2).
    #[error("the server goes away and takes no more requests on this connection")]
    GoingAway,
    /// The server does not say that it takes tunnels (RFC 9220 §3, RFC 9297 §2.1.1): nothing was asked.
    #[error(
        "the server offers no tunnels (extended CONNECT, and HTTP datagrams where the protocol has them)"
    )]
    NotOffered,
    /// The server reset the request, as those do that do not know what it asks for.
    #[error("the server gave the request up with code {0:#x}")]
    Reset(u64),
    /// The request has no URI with scheme, authority and path.
    #[error("the request has no whole URI")]
    NoUri,
    /// The request has a field that is about a connection of HTTP/1.1, or `te` with more than `trailers` (RFC 9114 §4.2).
    #[error("the request has a field that HTTP/3 does not have")]
    Malformed,
    /// It could not be sent.
    #[error(transparent)]
    Send(SendError),
    /// The bytes that came are no response.
    #[error(transparent)]
    Receive(ReceiveError),
}

impl RequestError {
    /// Returns true if the server says that it has not processed the request, so that even one that changes something may be made
    /// again (RFC 9114 §4.1.1, §5.2).
    pub fn is_unprocessed(&self) -> bool {
        match self {
            Self::GoingAway => true,
            //= https://www.rfc-editor.org/rfc/rfc9114#section-5.4
            //# If a connection terminates without a GOAWAY frame, clients MUST assume that any request that was
            //# sent, whether in whole or in part, might have been processed.
            Self::Reset(code) => *code == Code::H3_REQUEST_REJECTED.value(),
            Self::Connection(_)
            | Self::NotOffered
            | Self::NoUri
            | Self::Malformed
            | Self::Send(_)
            | Self::Receive(_) => false,
        }
    }
}

impl From<SendError> for RequestError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Lost(WriteError::ConnectionLost(lost)) => Self::Connection(lost),
            SendError::Lost(WriteError::Stopped(code)) => Self::Reset(code),
            other => Self::Send(other),
        }
    }
}

impl From<ReceiveError> for RequestError {
    fn from(error: ReceiveError) -> Self {
        match error {
            ReceiveError::Lost(ReadError::ConnectionLost(lost)) => Self::Connection(lost),
            ReceiveError::Lost(ReadError::Reset(code)) => Self::Reset(code),
            ReceiveError::Refused => Self::GoingAway,
            other => Self::Receive(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= https://www.rfc-editor.org/rfc/rfc9114#section-5.4
    //= type=test
    //# If a connection terminates without a GOAWAY frame, clients MUST assume that any request that was
    //# sent, whether in whole or in part, might have been processed.
    #[test]
    fn a_request_may_be_made_again_if_the_server_says_that_nothing_was_done() {
        assert!(RequestError::from(ReceiveError::Refused).is_unprocessed());
        let reset = |code: Code| RequestError::from(ReceiveError::Lost(ReadError::Reset(code.value())));
        assert!(reset(Code::H3_REQUEST_REJECTED).is_unprocessed());
        assert!(!reset(Code::H3_REQUEST_CANCELLED).is_unprocessed());
        assert!(!RequestError::from(ConnectionError::IdleTimeout).is_unprocessed());
    }
}
