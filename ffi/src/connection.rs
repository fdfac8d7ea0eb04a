//! Connections.
//!
//! A connection is named by the number that hvq_endpoint_connect() wrote or that came with HVQ_EVENT_CONNECTED. Numbers
//! of connections that are gone are answered with `HVQ_ERR_UNKNOWN_CONNECTION`, by every function that takes one.

use crate::address::{hvq_buffer, hvq_route};
use crate::bridge::nanos;
use crate::error::{Failure, HVQ_ERR_NONE, HVQ_ERR_NOT_CONNECTED, HVQ_ERR_TOO_SMALL, hvq_result};
use crate::guard;
use crate::session::*;
use crate::state::{hvq_endpoint, look, with_connection};
use hvq_transport::connection::Lifecycle;
use hvq_transport::connection::{EarlyDataState, Role};
use hvq_transport::time::Instant;
use std::ffi::c_char;

/// Keys are being agreed on.
pub const HVQ_STATE_HANDSHAKING: u32 = 0;
/// The handshake is complete.
pub const HVQ_STATE_CONNECTED: u32 = 1;
/// The handshake is confirmed: the peer is known to have completed it too.
pub const HVQ_STATE_CONFIRMED: u32 = 2;
/// This end closed, and says so to what still arrives.
pub const HVQ_STATE_CLOSING: u32 = 3;
/// The peer closed.
pub const HVQ_STATE_DRAINING: u32 = 4;
/// Nothing is left to do; the connection is forgotten with the next poll.
pub const HVQ_STATE_CLOSED: u32 = 5;

/// A snapshot of a connection.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct hvq_connection_info {
    /// HVQ_STATE_...
    pub state: u32,
    /// 1 if this end is the server.
    pub is_server: u32,
    /// 1 if several paths were negotiated.
    pub is_multipath: u32,
    /// Open paths.
    pub paths: u32,
    /// Packets ignored.
    pub packets_dropped: u64,
    /// Bytes of the largest datagram that can be sent now, 0 if the peer accepts none.
    pub max_datagram_size: u64,
    /// The addresses of the open path with the smallest number; zeros if there is none.
    pub route: hvq_route,
    /// The version of QUIC in use. It may change until the handshake is complete.
    pub version: u32,
    /// 1 if the handshake resumed an earlier session, once it is complete.
    pub is_resumed: u32,
    /// HVQ_EARLY_...: what became of 0-RTT.
    pub early_data: u32,
    /// 1 while a client sends or a server takes data before the handshake is complete.
    pub is_early_data: u32,
    /// The number of key updates, by either side.
    pub key_updates: u64,
    /// Addresses of the peer, on all paths, that are being validated.
    pub pending_validations: u64,
    /// Datagrams of this end that were dropped because the queue was full.
    pub datagrams_displaced: u64,
    /// Datagrams of this end that were dropped because their deadline had passed.
    pub datagrams_expired: u64,
    /// Datagrams of this end that were refused or dropped because no path carries one so large.
    pub datagrams_too_large: u64,
}

/// Writes a snapshot of a connection.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_connection_get_info(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    info: *mut hvq_connection_info,
) -> hvq_result {
    look_at!(endpoint, connection, |core| {
        let (ids, stats) = (core.path_ids(), core.stats());
        let first = ids.iter().min().and_then(|id| core.path_stats(*id));
        let shown = hvq_connection_info {
            state: match core.lifecycle() {
                Lifecycle::Handshaking => HVQ_STATE_HANDSHAKING,
                Lifecycle::Connected => HVQ_STATE_CONNECTED,
                Lifecycle::Confirmed => HVQ_STATE_CONFIRMED,
                Lifecycle::Closing(_) => HVQ_STATE_CLOSING,
                Lifecycle::Draining(_) => HVQ_STATE_DRAINING,
                Lifecycle::Closed => HVQ_STATE_CLOSED,
            },
            is_server: (core.role() == Role::Server).into(),
            is_multipath: core.is_multipath().into(),
            paths: u32::try_from(ids.len()).unwrap_or(u32::MAX),
            packets_dropped: stats.dropped,
            max_datagram_size: core.max_datagram_size().unwrap_or(0) as u64,
            route: first.map(|path| path.tuple.into()).unwrap_or_default(),
            version: core.version().0,
            is_resumed: core.is_resumed().into(),
            early_data: match core.early_data() {
                EarlyDataState::Unused => HVQ_EARLY_UNUSED,
                EarlyDataState::Offered => HVQ_EARLY_OFFERED,
                EarlyDataState::Accepted => HVQ_EARLY_ACCEPTED,
                EarlyDataState::Rejected => HVQ_EARLY_REJECTED,
            },
            is_early_data: core.is_early_data().into(),
            key_updates: core.key_updates(),
            pending_validations: core.pending_validations() as u64,
            datagrams_displaced: stats.datagrams.displaced,
            datagrams_expired: stats.datagrams.expired,
            datagrams_too_large: stats.datagrams.too_large,
        };
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(info, shown) }
    })
}

/// The transport parameters of the peer, as it said in the handshake (RFC 9000 §18.2). Limits are those at the
/// beginning; times are in nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct hvq_peer {
    /// Silence after which it ends the connection; 0 for never.
    pub idle_timeout: u64,
    /// The largest UDP payload that it accepts, in bytes.
    pub max_udp_payload: u64,
    /// Bytes on all streams together.
    pub max_data: u64,
    /// Bytes on each bidirectional stream that it opens.
    pub stream_data_bidi_local: u64,
    /// Bytes on each bidirectional stream that this end opens.
    pub stream_data_bidi_remote: u64,
    /// Bytes on each unidirectional stream.
    pub stream_data_uni: u64,
    /// Bidirectional streams that this end may open.
    pub max_streams_bidi: u64,
    /// Unidirectional streams that this end may open.
    pub max_streams_uni: u64,
    /// The largest DATAGRAM frame that it accepts, in bytes; 0 for none.
    pub max_datagram_frame: u64,
    /// The longest time by which it delays acknowledgements.
    pub ack_delay: u64,
    /// The least delay of acknowledgements that it can keep; 0 if it cannot be asked.
    pub least_ack_delay: u64,
    /// Connection IDs that it keeps, for each path.
    pub connection_ids: u64,
    /// Paths that it permits at first; 0 if it does not know the multipath extension.
    pub paths: u32,
    /// 1 if clients may move to other addresses.
    pub migration: u32,
}

/// Writes what the peer said in the handshake.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_NONE` before the handshake is complete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_connection_get_peer(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    peer: *mut hvq_peer,
) -> hvq_result {
    look_at!(endpoint, connection, |core| {
        guard::check(peer)?;
        let said = core.peer_parameters().ok_or(HVQ_ERR_NONE)?;
        let shown = hvq_peer {
            idle_timeout: nanos(said.max_idle_timeout),
            max_udp_payload: said.max_udp_payload_size,
            max_data: said.initial_max_data,
            stream_data_bidi_local: said.initial_max_stream_data_bidi_local,
            stream_data_bidi_remote: said.initial_max_stream_data_bidi_remote,
            stream_data_uni: said.initial_max_stream_data_uni,
            max_streams_bidi: said.initial_max_streams_bidi,
            max_streams_uni: said.initial_max_streams_uni,
            max_datagram_frame: said.max_datagram_frame_size,
            ack_delay: nanos(said.max_ack_delay),
            least_ack_delay: said.min_ack_delay.map_or(0, nanos),
            connection_ids: said.active_connection_id_limit,
            paths: said.initial_max_path_id.map_or(0, |highest| highest.0.saturating_add(1)),
            migration: (!said.disable_active_migration).into(),
        };
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(peer, shown) }
    })
}

/// Closes a connection with a code of the application and a reason for people, which may be NULL. Unsent data is
/// dropped. `HVQ_EVENT_CLOSED` follows, and `HVQ_EVENT_FORGOTTEN` after a while; closing again does nothing.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_connection_close(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    code: u64,
    reason: *const c_char,
    now: u64,
) -> hvq_result {
    on_connection!(endpoint, connection, |core| {
        // SAFETY: the caller passes text or NULL.
        let reason = unsafe { guard::optional_text(reason) }?.unwrap_or_default();
        core.close(code, reason.as_bytes(), Instant::from_nanos(now));
        Ok(())
    })
}

/// Has a verify callback that answered `HVQ_VERIFY_PENDING` asked again. Does nothing if none waits.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_connection_verify_again(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    now: u64,
) -> hvq_result {
    on_connection!(endpoint, connection, |core| {
        core.verify_again(Instant::from_nanos(now));
        Ok(())
    })
}

/// Has the keys of a connection updated (RFC 9001 §6), which happens by itself before they wear out.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_NOT_CONNECTED` if it is not possible now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_connection_update_keys(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    now: u64,
) -> hvq_result {
    on_connection!(endpoint, connection, |core| {
        let updated = core.update_keys(Instant::from_nanos(now));
        updated.map_err(|error| Failure::because(HVQ_ERR_NOT_CONNECTED, error))
    })
}

/// The application protocol that was agreed on, in the form of hvq_connection_server_name().
///
/// Errors: those of hvq_connection_server_name().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_connection_alpn(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    buffer: *mut c_char,
    capacity: usize,
) -> hvq_result {
    look_at!(endpoint, connection, |core| {
        let alpn = core.alpn().ok_or(HVQ_ERR_NONE)?;
        guard::check(buffer)?;
        // SAFETY: the caller gives that many bytes.
        let needed = unsafe { guard::put_text(&String::from_utf8_lossy(&alpn), buffer, capacity) };
        if needed > capacity { Err(HVQ_ERR_TOO_SMALL.into()) } else { Ok(()) }
    })
}

/// The name that the client asked for, as text with a zero byte into `buffer`. 256 bytes are always enough.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_NONE` if it is not known or there is none,
/// `HVQ_ERR_TOO_SMALL`; what fits was written then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_connection_server_name(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    buffer: *mut c_char,
    capacity: usize,
) -> hvq_result {
    look_at!(endpoint, connection, |core| {
        let name = core.server_name().ok_or(HVQ_ERR_NONE)?;
        guard::check(buffer)?;
        // SAFETY: the caller gives that many bytes.
        let needed = unsafe { guard::put_text(&name, buffer, capacity) };
        if needed > capacity { Err(HVQ_ERR_TOO_SMALL.into()) } else { Ok(()) }
    })
}

/// Copies certificate number `index` of the peer's chain, its own being number 0, in DER into the room of `buffer`.
///
/// Errors: `HVQ_ERR_NULL`, `HVQ_ERR_BUSY`, `HVQ_ERR_UNKNOWN_CONNECTION`, `HVQ_ERR_NONE` beyond the last; with
/// `HVQ_ERR_TOO_SMALL` only `length` of `buffer` was written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_connection_certificate(
    endpoint: *mut hvq_endpoint,
    connection: u64,
    index: usize,
    buffer: *mut hvq_buffer,
) -> hvq_result {
    look_at!(endpoint, connection, |core| {
        let chain = core.peer_certificates();
        let der = chain.get(index).ok_or(HVQ_ERR_NONE)?;
        // SAFETY: the caller passes a struct that points to its room.
        unsafe { hvq_buffer::fill(buffer, der) }
    })
}
