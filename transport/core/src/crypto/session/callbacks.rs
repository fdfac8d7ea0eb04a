//! Callbacks of BoringSSL during the handshake, and the state that they write to.

use super::{MAX_TICKETS, SessionOutput, Ticket};
use crate::crypto::keys::{Secret, Suite};
use crate::crypto::replay::ReplayGuard;
use crate::time::Instant;
use crate::wire::level::Level;
use boring::ex_data::Index;
use boring::ssl::{Ssl, SslRef, SslSessionRef};
use boring_sys as ffi;
use bytes::Bytes;
use foreign_types::ForeignTypeRef;
use std::collections::VecDeque;
use std::ffi::c_int;
use std::sync::{Arc, LazyLock};

/// The state that callbacks leave for the session. BoringSSL owns it, beside the connection that it belongs to.
#[derive(Default)]
pub(super) struct CallbackState {
    pub(super) outputs: VecDeque<SessionOutput>,
    pub(super) alert: Option<u8>,
    /// Tickets that arrived, of a client who keeps them somewhere.
    pub(super) tickets: Option<VecDeque<Ticket>>,
    /// The register that tells a server whether a ticket was used, and the time that counts for it.
    pub(super) replay: Option<(Arc<ReplayGuard>, Instant)>,
}

/// The index under which the state is kept.
pub(super) static STATE: LazyLock<Index<Ssl, CallbackState>> =
    LazyLock::new(|| Ssl::new_ex_index().expect("BoringSSL has room for one more index"));

/// The callbacks.
pub(super) static METHOD: ffi::SSL_QUIC_METHOD = ffi::SSL_QUIC_METHOD {
    set_read_secret: Some(set_read_secret),
    set_write_secret: Some(set_write_secret),
    add_handshake_data: Some(add_handshake_data),
    flush_flight: Some(flush_flight),
    send_alert: Some(send_alert),
};

/// BoringSSL's name of a level.
pub(super) fn to_ffi(level: Level) -> ffi::ssl_encryption_level_t {
    match level {
        Level::Initial => ffi::ssl_encryption_level_t::ssl_encryption_initial,
        Level::ZeroRtt => ffi::ssl_encryption_level_t::ssl_encryption_early_data,
        Level::Handshake => ffi::ssl_encryption_level_t::ssl_encryption_handshake,
        Level::OneRtt => ffi::ssl_encryption_level_t::ssl_encryption_application,
    }
}

/// Keeps a ticket of a client's session; `false` if nobody wants it, or `ssl` is of no connection of ours.
pub(super) fn keep_ticket(ssl: &mut SslRef, session: &SslSessionRef) -> bool {
    let Some(state) = ssl.ex_data_mut(*STATE) else { return false };
    // What nobody keeps is not worth writing down.
    let Some(tickets) = &mut state.tickets else { return false };
    let Ok(bytes) = session.to_der() else { return false };
    if tickets.len() >= MAX_TICKETS {
        tickets.pop_front();
    }
    tickets.push_back(Ticket(bytes));
    state.outputs.push_back(SessionOutput::Ticket);
    true
}

fn from_ffi(level: ffi::ssl_encryption_level_t) -> Option<Level> {
    [Level::Initial, Level::ZeroRtt, Level::Handshake, Level::OneRtt]
        .into_iter()
        .find(|name| to_ffi(*name) == level)
}

/// Adds to the state of `ssl` what `output` makes; 1 on success, as BoringSSL wants it.
///
/// # Safety
///
/// `ssl` is a connection that BoringSSL passed to a callback, and nothing else borrows its state.
unsafe fn push(ssl: *mut ffi::SSL, output: impl FnOnce() -> Option<SessionOutput>) -> c_int {
    // SAFETY: the caller says so.
    let ssl = unsafe { SslRef::from_ptr_mut(ssl) };
    match (ssl.ex_data_mut(*STATE), output()) {
        (Some(state), Some(output)) => {
            state.outputs.push_back(output);
            1
        }
        _ => 0,
    }
}

/// The suite and the secret that BoringSSL passed to a callback.
///
/// # Safety
///
/// `cipher` is valid, and so are `length` bytes at `secret`.
unsafe fn read_secret(
    cipher: *const ffi::SSL_CIPHER,
    secret: *const u8,
    length: usize,
) -> Option<(Suite, Secret)> {
    // SAFETY: the caller says so.
    let (code_point, secret) =
        unsafe { (ffi::SSL_CIPHER_get_protocol_id(cipher), std::slice::from_raw_parts(secret, length)) };
    Some((Suite::from_code_point(code_point)?, Secret::new(secret)?))
}

unsafe extern "C" fn set_read_secret(
    ssl: *mut ffi::SSL,
    level: ffi::ssl_encryption_level_t,
    cipher: *const ffi::SSL_CIPHER,
    secret: *const u8,
    length: usize,
) -> c_int {
    // SAFETY: BoringSSL passes valid pointers, and the session lends its state to nobody while it calls BoringSSL.
    unsafe {
        push(ssl, || {
            let (suite, secret) = read_secret(cipher, secret, length)?;
            Some(SessionOutput::ReadSecret { level: from_ffi(level)?, suite, secret })
        })
    }
}

unsafe extern "C" fn set_write_secret(
    ssl: *mut ffi::SSL,
    level: ffi::ssl_encryption_level_t,
    cipher: *const ffi::SSL_CIPHER,
    secret: *const u8,
    length: usize,
) -> c_int {
    // SAFETY: BoringSSL passes valid pointers, and the session lends its state to nobody while it calls BoringSSL.
    unsafe {
        push(ssl, || {
            let (suite, secret) = read_secret(cipher, secret, length)?;
            Some(SessionOutput::WriteSecret { level: from_ffi(level)?, suite, secret })
        })
    }
}

unsafe extern "C" fn add_handshake_data(
    ssl: *mut ffi::SSL,
    level: ffi::ssl_encryption_level_t,
    data: *const u8,
    length: usize,
) -> c_int {
    if length == 0 {
        return 1;
    }
    // SAFETY: BoringSSL passes valid pointers, and the session lends its state to nobody while it calls BoringSSL.
    unsafe {
        push(ssl, || {
            let data = Bytes::copy_from_slice(std::slice::from_raw_parts(data, length));
            Some(SessionOutput::Send { level: from_ffi(level)?, data })
        })
    }
}

/// Nothing waits for a flush: outputs are taken after each call.
unsafe extern "C" fn flush_flight(_ssl: *mut ffi::SSL) -> c_int {
    1
}

unsafe extern "C" fn send_alert(ssl: *mut ffi::SSL, _level: ffi::ssl_encryption_level_t, alert: u8) -> c_int {
    // SAFETY: BoringSSL passes a valid pointer, and the session lends its state to nobody while it calls BoringSSL.
    let ssl = unsafe { SslRef::from_ptr_mut(ssl) };
    match ssl.ex_data_mut(*STATE) {
        Some(state) => {
            state.alert = Some(alert);
            1
        }
        None => 0,
    }
}
