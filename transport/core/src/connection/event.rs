//! Events that a connection reports to its application.

use crate::PathId;
use crate::error::ConnectionError;
use crate::stream::StreamEvent;
use crate::wire::frame::Status;

/// Something happened on a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The handshake is complete: the peer is authenticated and data flows.
    Connected,
    /// A server accepted 0-RTT: streams may be read and written before the handshake is complete, with the reservations of
    /// [`Connection::is_early_data`](crate::connection::Connection::is_early_data).
    EarlyData,
    /// The handshake is confirmed (RFC 9001 §4.1.2); a client may open more paths from here on.
    Confirmed,
    /// A stream changed.
    Stream(StreamEvent),
    /// A datagram waits to be received (RFC 9221).
    DatagramReceived,
    /// The server gave a token for a later connection (RFC 9000 §8.1.3). The endpoint has it already; applications that
    /// start again later may keep it.
    NewToken(bytes::Bytes),
    /// A path changed.
    Path(PathEvent),
    /// The connection ended; nothing but this event follows for it until it is forgotten.
    Closed(ConnectionError),
    /// The connection's state is freed and its handle is void.
    Forgotten,
}

/// Something happened to a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PathEvent {
    /// The peer opened the path.
    Opened(PathId),
    /// The peer's address on the path is validated (RFC 9000 §8.2).
    Validated(PathId),
    /// The path could not be validated and was abandoned.
    ValidationFailed(PathId),
    /// The path has moved to other addresses, and the peer has been proven to receive there (RFC 9000 §9).
    Migrated(PathId),
    /// The path did not move, or moved back: nothing was heard from the other address (RFC 9000 §9.3.2).
    MigrationFailed(PathId),
    /// The path does not answer any more: its probe timeout fired.
    Silent(PathId),
    /// The path answers again.
    Answering(PathId),
    /// The peer changed its advice about the path (RFC 10069 §3.3).
    PeerStatus(PathId, Status),
    /// The peer told or took back hints about the path's channel (docs/spec/path-hints.md):
    /// [`Connection::peer_hints`](crate::connection::Connection::peer_hints) has them.
    PeerHints(PathId),
    /// The path was abandoned, by the peer or after a command, with this error code (RFC 10069 §3.4).
    Abandoned {
        /// The path.
        path: PathId,
        /// The code of the PATH_ABANDON frame.
        code: u64,
    },
    /// A client may open at least one more path now.
    Available,
}
