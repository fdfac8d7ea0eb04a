//! Errors of the transport as `h3` wants them.

use h3::quic::{ConnectionErrorIncoming, StreamErrorIncoming};
use hvq::{ConnectionError, ReadError, WriteError};
use std::sync::Arc;

/// The end of a connection: an HTTP/3 error code is shown if the peer's HTTP layer sent one; causes that `h3` has no
/// name for are kept as they are, to be downcast to [`ConnectionError`].
pub(crate) fn connection_error(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::PeerApplication { code, .. } => {
            ConnectionErrorIncoming::ApplicationClose { error_code: code }
        }
        ConnectionError::IdleTimeout | ConnectionError::HandshakeTimeout => ConnectionErrorIncoming::Timeout,
        error @ (ConnectionError::LocallyClosed { .. }
        | ConnectionError::Transport(_)
        | ConnectionError::PeerTransport(_)
        | ConnectionError::StatelessReset
        | ConnectionError::VersionMismatch) => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}

/// The end of the connection as seen from a stream.
pub(crate) fn connection_lost(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: connection_error(error) }
}

/// Converts a write error into the error of an HTTP/3 stream.
pub(crate) fn write_error(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated { error_code: code },
        WriteError::ConnectionLost(lost) => connection_lost(lost),
        WriteError::Closed => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

/// Converts a read error into the error of an HTTP/3 stream.
pub(crate) fn read_error(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => StreamErrorIncoming::StreamTerminated { error_code: code },
        ReadError::ConnectionLost(lost) => connection_lost(lost),
        ReadError::Stopped | ReadError::Unordered => StreamErrorIncoming::Unknown(Box::new(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_the_peers_application_is_kept() {
        let closed = ConnectionError::PeerApplication { code: 0x101, reason: "no".into() };
        let error = connection_error(closed);
        assert!(
            matches!(error, ConnectionErrorIncoming::ApplicationClose { error_code: 0x101 }),
            "{error:?}"
        );
    }

    #[test]
    fn both_timeouts_are_timeouts() {
        for error in [ConnectionError::IdleTimeout, ConnectionError::HandshakeTimeout] {
            assert!(matches!(connection_error(error), ConnectionErrorIncoming::Timeout));
        }
    }

    #[test]
    fn a_cause_without_a_name_in_h3_can_be_downcast() {
        let ConnectionErrorIncoming::Undefined(cause) = connection_error(ConnectionError::StatelessReset)
        else {
            panic!("a stateless reset is nothing that HTTP/3 knows");
        };
        assert_eq!(cause.downcast_ref(), Some(&ConnectionError::StatelessReset));
    }

    #[test]
    fn codes_of_stop_sending_and_reset_stream_are_kept() {
        let stopped = write_error(WriteError::Stopped(0x100));
        assert!(matches!(stopped, StreamErrorIncoming::StreamTerminated { error_code: 0x100 }), "{stopped}");
        let reset = read_error(ReadError::Reset(0x10c));
        assert!(matches!(reset, StreamErrorIncoming::StreamTerminated { error_code: 0x10c }), "{reset}");
    }

    #[test]
    fn what_this_endpoint_ended_itself_is_unknown_to_h3() {
        assert!(matches!(write_error(WriteError::Closed), StreamErrorIncoming::Unknown(_)));
        assert!(matches!(read_error(ReadError::Stopped), StreamErrorIncoming::Unknown(_)));
    }

    #[test]
    fn a_lost_connection_is_told_on_every_stream() {
        for error in [
            write_error(WriteError::ConnectionLost(ConnectionError::IdleTimeout)),
            read_error(ReadError::ConnectionLost(ConnectionError::IdleTimeout)),
        ] {
            let StreamErrorIncoming::ConnectionErrorIncoming { connection_error } = error else {
                panic!("not an error of the connection: {error}");
            };
            assert!(matches!(connection_error, ConnectionErrorIncoming::Timeout));
        }
    }
}
