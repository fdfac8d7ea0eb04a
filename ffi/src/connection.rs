//! Connections.
//!
//! A connection is named by the number that hvq_endpoint_connect() wrote or that came with HVQ_EVENT_CONNECTED. Numbers
//! of connections that are gone are answered with `HVQ_ERR_UNKNOWN_CONNECTION`, by every function that takes one.

use crate::address::{hvq_buffer, hvq_route};
use crate::error::{Failure, HVQ_ERR_NONE, HVQ_ERR_NOT_CONNECTED, HVQ_ERR_TOO_SMALL, hvq_result};
use crate::guard;
use crate::state::{hvq_endpoint, look, with_connection};
use hvq_transport::connection::Role;
use hvq_transport::connection::lifecycle::Lifecycle;
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
        let ids = core.path_ids();
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
            packets_dropped: core.stats().dropped,
            max_datagram_size: core.max_datagram_size().unwrap_or(0) as u64,
            route: first.map(|path| path.tuple.into()).unwrap_or_default(),
        };
        // SAFETY: the caller lets it be written.
        unsafe { guard::put(info, shown) }
    })
}

/// Closes a connection with a code of the application and a reason for people, which may be NULL. What was
/// not sent is dropped. `HVQ_EVENT_CLOSED` follows, and `HVQ_EVENT_FORGOTTEN` after a while; closing again does nothing.
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

/// The application protocol that was agreed on. As hvq_connection_server_name().
///
/// Errors: as there.
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
