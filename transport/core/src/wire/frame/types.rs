//! Frame types: the registry (RFC 9000 §19, RFC 9221 §4, RFC 10069 §4).

#![expect(missing_docs, reason = "each constant is the type of the frame of that name")]

pub const PADDING: u64 = 0x00;
pub const PING: u64 = 0x01;
pub const ACK: u64 = 0x02;
pub const ACK_ECN: u64 = 0x03;
pub const RESET_STREAM: u64 = 0x04;
pub const STOP_SENDING: u64 = 0x05;
pub const CRYPTO: u64 = 0x06;
pub const NEW_TOKEN: u64 = 0x07;
/// The first of eight: the three low bits say which fields are there (RFC 9000 §19.8).
pub const STREAM: u64 = 0x08;
/// The last of the eight.
pub const STREAM_LAST: u64 = 0x0f;
pub const MAX_DATA: u64 = 0x10;
pub const MAX_STREAM_DATA: u64 = 0x11;
pub const MAX_STREAMS_BIDI: u64 = 0x12;
pub const MAX_STREAMS_UNI: u64 = 0x13;
pub const DATA_BLOCKED: u64 = 0x14;
pub const STREAM_DATA_BLOCKED: u64 = 0x15;
pub const STREAMS_BLOCKED_BIDI: u64 = 0x16;
pub const STREAMS_BLOCKED_UNI: u64 = 0x17;
pub const NEW_CONNECTION_ID: u64 = 0x18;
pub const RETIRE_CONNECTION_ID: u64 = 0x19;
pub const PATH_CHALLENGE: u64 = 0x1a;
pub const PATH_RESPONSE: u64 = 0x1b;
pub const CONNECTION_CLOSE_TRANSPORT: u64 = 0x1c;
pub const CONNECTION_CLOSE_APPLICATION: u64 = 0x1d;
pub const HANDSHAKE_DONE: u64 = 0x1e;
/// Draft-ietf-quic-ack-frequency-14 §5.
pub const IMMEDIATE_ACK: u64 = 0x1f;
/// Draft-ietf-quic-ack-frequency-14 §4.
pub const ACK_FREQUENCY: u64 = 0xaf;
/// A DATAGRAM that ends with the packet.
pub const DATAGRAM: u64 = 0x30;
pub const DATAGRAM_WITH_LENGTH: u64 = 0x31;
pub const PATH_ACK: u64 = 0x3e;
pub const PATH_ACK_ECN: u64 = 0x3f;
pub const PATH_ABANDON: u64 = 0x3e75;
pub const PATH_STATUS_BACKUP: u64 = 0x3e76;
pub const PATH_STATUS_AVAILABLE: u64 = 0x3e77;
pub const PATH_NEW_CONNECTION_ID: u64 = 0x3e78;
pub const PATH_RETIRE_CONNECTION_ID: u64 = 0x3e79;
pub const MAX_PATH_ID: u64 = 0x3e7a;
pub const PATHS_BLOCKED: u64 = 0x3e7b;
pub const PATH_CIDS_BLOCKED: u64 = 0x3e7c;

/// Every name that [`name`] gives to a frame that is known, in alphabetical order.
pub const NAMES: [&str; 32] = [
    "ack",
    "ack_frequency",
    "connection_close",
    "crypto",
    "data_blocked",
    "datagram",
    "handshake_done",
    "immediate_ack",
    "max_data",
    "max_path_id",
    "max_stream_data",
    "max_streams",
    "new_connection_id",
    "new_token",
    "padding",
    "path_abandon",
    "path_ack",
    "path_challenge",
    "path_cids_blocked",
    "path_new_connection_id",
    "path_response",
    "path_retire_connection_id",
    "path_status_available",
    "path_status_backup",
    "paths_blocked",
    "ping",
    "reset_stream",
    "retire_connection_id",
    "stop_sending",
    "stream",
    "stream_data_blocked",
    "streams_blocked",
];

/// The name of a frame type for logs, `unknown` if it is none of these.
///
/// Never inlined, so that a name has one address: who counts by names need not compare their letters.
#[inline(never)]
pub fn name(frame_type: u64) -> &'static str {
    match frame_type {
        PADDING => "padding",
        PING => "ping",
        ACK | ACK_ECN => "ack",
        RESET_STREAM => "reset_stream",
        STOP_SENDING => "stop_sending",
        CRYPTO => "crypto",
        NEW_TOKEN => "new_token",
        STREAM..=STREAM_LAST => "stream",
        MAX_DATA => "max_data",
        MAX_STREAM_DATA => "max_stream_data",
        MAX_STREAMS_BIDI | MAX_STREAMS_UNI => "max_streams",
        DATA_BLOCKED => "data_blocked",
        STREAM_DATA_BLOCKED => "stream_data_blocked",
        STREAMS_BLOCKED_BIDI | STREAMS_BLOCKED_UNI => "streams_blocked",
        NEW_CONNECTION_ID => "new_connection_id",
        RETIRE_CONNECTION_ID => "retire_connection_id",
        PATH_CHALLENGE => "path_challenge",
        PATH_RESPONSE => "path_response",
        CONNECTION_CLOSE_TRANSPORT | CONNECTION_CLOSE_APPLICATION => "connection_close",
        HANDSHAKE_DONE => "handshake_done",
        IMMEDIATE_ACK => "immediate_ack",
        ACK_FREQUENCY => "ack_frequency",
        DATAGRAM | DATAGRAM_WITH_LENGTH => "datagram",
        PATH_ACK | PATH_ACK_ECN => "path_ack",
        PATH_ABANDON => "path_abandon",
        PATH_STATUS_BACKUP => "path_status_backup",
        PATH_STATUS_AVAILABLE => "path_status_available",
        PATH_NEW_CONNECTION_ID => "path_new_connection_id",
        PATH_RETIRE_CONNECTION_ID => "path_retire_connection_id",
        MAX_PATH_ID => "max_path_id",
        PATHS_BLOCKED => "paths_blocked",
        PATH_CIDS_BLOCKED => "path_cids_blocked",
        _ => "unknown",
    }
}
