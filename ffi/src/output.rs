//! Outputs of an endpoint that is polled.

use crate::address::{hvq_bytes, hvq_route};

/// Nothing until something arrives or `deadline` passes.
pub const HVQ_OUTPUT_IDLE: u32 = 0;
/// Send `transmit`.
pub const HVQ_OUTPUT_TRANSMIT: u32 = 1;
/// Look at `event`.
pub const HVQ_OUTPUT_EVENT: u32 = 2;

/// UDP payloads for the network: one, or several of equal size to one address.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_transmit {
    /// The address to send from, which names the socket, and the address to send to.
    pub route: hvq_route,
    /// The payloads, back to back. Valid until the next poll of the endpoint.
    pub bytes: *const u8,
    /// Bytes of all payloads.
    pub length: usize,
    /// The size of each payload but the last if there are several (UDP_SEGMENT), else 0. There are several only if
    /// `segments` of the configuration is above 1.
    pub segment: usize,
    /// The ECN bits to set, if the configuration switches ECN on.
    pub ecn: u32,
    /// The Differentiated Services codepoint to set.
    pub dscp: u32,
}

/// The handshake is complete: the peer is authenticated and data flows. The first event of a connection that a peer
/// started; it is how a server learns of it.
pub const HVQ_EVENT_CONNECTED: u32 = 1;
/// The handshake is confirmed. A client may open more paths from here on; HVQ_EVENT_PATH_AVAILABLE tells when.
pub const HVQ_EVENT_CONFIRMED: u32 = 2;
/// The connection ended: `closed` tells how, `code` with which code, and `bytes` why, for people. Nothing but
/// HVQ_EVENT_FORGOTTEN follows.
pub const HVQ_EVENT_CLOSED: u32 = 3;
/// The connection's number is not known any more.
pub const HVQ_EVENT_FORGOTTEN: u32 = 4;
/// The peer opened streams of `direction`: accept them until there are none.
pub const HVQ_EVENT_STREAM_OPENED: u32 = 5;
/// Data, the end or a reset is there on `stream`: read until that blocks or ends.
pub const HVQ_EVENT_STREAM_READABLE: u32 = 6;
/// There is room again on `stream`, after a write that blocked.
pub const HVQ_EVENT_STREAM_WRITABLE: u32 = 7;
/// The peer has everything that was written to `stream`, the end included.
pub const HVQ_EVENT_STREAM_FINISHED: u32 = 8;
/// The peer wants no more of `stream`, with `code` of its application.
pub const HVQ_EVENT_STREAM_STOPPED: u32 = 9;
/// More streams of `direction` may be opened, after an attempt that failed.
pub const HVQ_EVENT_STREAMS_AVAILABLE: u32 = 10;
/// Datagrams wait: receive them until there are none.
pub const HVQ_EVENT_DATAGRAM: u32 = 11;
/// The peer opened `path`.
pub const HVQ_EVENT_PATH_OPENED: u32 = 12;
/// The peer answered over `path`.
pub const HVQ_EVENT_PATH_VALIDATED: u32 = 13;
/// Nothing came back over `path`; it is abandoned.
pub const HVQ_EVENT_PATH_FAILED: u32 = 14;
/// `path` has moved to other addresses.
pub const HVQ_EVENT_PATH_MIGRATED: u32 = 15;
/// `path` could not move, and is where it was.
pub const HVQ_EVENT_PATH_MIGRATION_FAILED: u32 = 16;
/// `path` does not answer any more. Data in flight on it goes over others.
pub const HVQ_EVENT_PATH_SILENT: u32 = 17;
/// `path` answers again.
pub const HVQ_EVENT_PATH_ANSWERING: u32 = 18;
/// The peer advises HVQ_STATUS_... (`status`) for `path`.
pub const HVQ_EVENT_PATH_STATUS: u32 = 19;
/// `path` was given up, by the peer or by command, with `code`.
pub const HVQ_EVENT_PATH_ABANDONED: u32 = 20;
/// A client may open at least one more path now.
pub const HVQ_EVENT_PATH_AVAILABLE: u32 = 21;
/// A server accepted 0-RTT: streams may be used before the handshake is complete. The first event of such a connection.
/// hvq_stream_is_early() tells what an attacker may have copied.
pub const HVQ_EVENT_EARLY_DATA: u32 = 22;
/// The server gave a token (`bytes`) that spares a round trip when it is busy. The endpoint has it already; `token` of
/// hvq_client_options takes it to another endpoint.
pub const HVQ_EVENT_TOKEN: u32 = 23;
/// The peer told or took back hints about `path`: hvq_path_get_peer_hints() has them.
pub const HVQ_EVENT_PATH_HINTS: u32 = 24;

/// The program closed it.
pub const HVQ_CLOSED_LOCALLY: u32 = 1;
/// This endpoint found a violation; `code` is a QUIC error code (RFC 9000 §20.1; TLS alert N is 0x100 + N).
pub const HVQ_CLOSED_BY_ERROR: u32 = 2;
/// The peer found one; `code` is a QUIC error code.
pub const HVQ_CLOSED_BY_PEER_ERROR: u32 = 3;
/// The peer's application closed it, with its own `code`.
pub const HVQ_CLOSED_BY_PEER: u32 = 4;
/// Nothing arrived for the idle timeout.
pub const HVQ_CLOSED_IDLE: u32 = 5;
/// The handshake did not finish in time.
pub const HVQ_CLOSED_HANDSHAKE_TIMEOUT: u32 = 6;
/// The peer lost its state.
pub const HVQ_CLOSED_RESET: u32 = 7;
/// The peer speaks no version of QUIC that the library speaks.
pub const HVQ_CLOSED_VERSION: u32 = 8;

/// Something happened on a connection. Fields that the kind does not name are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_event {
    /// HVQ_EVENT_... Ignore kinds that you do not know: later versions have more.
    pub kind: u32,
    /// The number of the path.
    pub path: u32,
    /// The number of the connection.
    pub connection: u64,
    /// The number of the stream.
    pub stream: u64,
    /// A code of the peer or of the protocol.
    pub code: u64,
    /// HVQ_BIDIRECTIONAL or HVQ_UNIDIRECTIONAL.
    pub direction: u32,
    /// HVQ_STATUS_AVAILABLE or HVQ_STATUS_BACKUP.
    pub status: u32,
    /// HVQ_CLOSED_...
    pub closed: u32,
    /// 0.
    pub reserved: u32,
    /// A reason for people, in UTF-8 and without a zero byte at its end, or a token. Valid until the next poll of the endpoint.
    pub bytes: hvq_bytes,
}

/// An output of an endpoint.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_output {
    /// HVQ_OUTPUT_...
    pub kind: u32,
    /// 0.
    pub reserved: u32,
    /// For HVQ_OUTPUT_IDLE: when to poll again at the latest; HVQ_NEVER for no such time. It may have passed already.
    pub deadline: u64,
    /// For HVQ_OUTPUT_TRANSMIT.
    pub transmit: hvq_transmit,
    /// For HVQ_OUTPUT_EVENT.
    pub event: hvq_event,
}
