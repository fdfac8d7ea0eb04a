//! Session tickets.
//!
//! A server gives its clients tickets, with which a later connection resumes the session: the handshake is shorter, and with
//! 0-RTT a client sends data with its first datagram. A program that wants this keeps tickets in a store of its own, a table
//! of two functions, and names it in `hvq_client_options`. Servers need nothing but `early_data` for 0-RTT.
//!
//! Data in 0-RTT can be copied by an attacker and arrive twice (RFC 8446 §8): send only what does no harm twice, and have
//! servers ask hvq_stream_is_early() before they act upon anything else.

use crate::address::{hvq_buffer, hvq_bytes};
use crate::error::{Failure, HVQ_ERR_NULL, hvq_result};
use crate::guard::{self, Versioned};
use hvq_transport::crypto::session::{SessionStore, SessionTicket, keep_session};
use std::ffi::{CString, c_char, c_void};
use std::ptr::NonNull;
use std::{fmt, mem, ptr};

/// No 0-RTT, or the server has not decided yet.
pub const HVQ_EARLY_UNUSED: u32 = 0;
/// A client sends it and does not know whether the server accepts it.
pub const HVQ_EARLY_OFFERED: u32 = 1;
/// The server accepted it.
pub const HVQ_EARLY_ACCEPTED: u32 = 2;
/// The server rejected it: the client sends everything again when the handshake is complete.
pub const HVQ_EARLY_REJECTED: u32 = 3;

/// A client's store of tickets, as a table of functions. They are called within calls on endpoints, on their thread,
/// also of several threads if several endpoints use the table, and must not call the library for the same endpoint.
/// Tickets are as secret as the sessions are. The program has to bound how many it keeps.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hvq_session_store {
    /// The size of this struct, as the caller was compiled: sizeof(hvq_session_store).
    pub size: usize,
    /// Passed to both functions; must be valid as long as connections of the configuration exist.
    pub user: *mut c_void,
    /// Keeps a ticket of the server of this name, for connections that speak `protocol`. The bytes are valid during the call.
    pub put: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            server_name: *const c_char,
            protocol: hvq_bytes,
            ticket: hvq_bytes,
        ),
    >,
    /// Takes the latest ticket of the server of this name whose protocol is one of these `count`: copies it to the room of
    /// `ticket`, sets its `length` and returns 1; or returns 0. There is room for 65536 bytes, and tickets have some 2000.
    /// A ticket should be used once, so that nobody can tell that two connections are of the same client.
    pub take: Option<
        unsafe extern "C" fn(
            user: *mut c_void,
            server_name: *const c_char,
            protocols: *const hvq_bytes,
            count: usize,
            ticket: *mut hvq_buffer,
        ) -> i32,
    >,
}

/// Keeps a ticket of a connection whose configuration has an `ssl_ctx` of the program, as the library does without being
/// asked for its own contexts. The program calls it in the context's callback for new sessions, which BoringSSL calls if the
/// cache mode includes SSL_SESS_CACHE_CLIENT, and returns 0 from there, since the ticket is copied:
///
/// ```c
/// static int new_session(SSL *ssl, SSL_SESSION *session) {
///     uint32_t is_kept;
///     if (hvq_session_keep(ssl, session, &is_kept) != HVQ_OK || !is_kept)
///         keep_of_another_kind(ssl, session);
///     return 0;
/// }
/// ```
///
/// `is_kept` becomes 1 if the `SSL` is of a connection of the library: the ticket goes to the store of its configuration, if
/// that has one, with what 0-RTT needs to know beside it; and 0 if not. Both pointers must be those that BoringSSL passed.
/// This function may be called in the middle of a call on the endpoint.
///
/// Errors: `HVQ_ERR_NULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hvq_session_keep(
    ssl: *mut c_void,
    session: *mut c_void,
    is_kept: *mut u32,
) -> hvq_result {
    guard::entry(|| {
        guard::check(is_kept)?;
        let (Some(ssl), Some(session)) = (NonNull::new(ssl), NonNull::new(session)) else {
            return Err(HVQ_ERR_NULL.into());
        };
        // SAFETY: the program passes on what BoringSSL passed to its callback.
        let kept = unsafe { keep_session(ssl, session) };
        // SAFETY: `is_kept` may be written.
        unsafe { guard::put(is_kept, u32::from(kept)) }
    })
}

/// Bytes of the largest ticket.
const LARGEST: usize = 1 << 16;

// SAFETY: the struct begins with its size and holds pointers and functions, for which zeros are NULL.
unsafe impl Versioned for hvq_session_store {
    const FIRST_SIZE: usize = mem::size_of::<Self>();

    fn defaults() -> Self {
        Self { size: mem::size_of::<Self>(), user: ptr::null_mut(), put: None, take: None }
    }
}

/// A table whose functions may be called from any thread, as its documentation says.
pub(crate) struct Store(hvq_session_store);

// SAFETY: what `user` points to stands calls from several threads: the documentation of the table asks for it.
unsafe impl Send for Store {}
// SAFETY: as above.
unsafe impl Sync for Store {}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}

impl Store {
    /// The table, if it has both functions.
    pub(crate) fn new(table: hvq_session_store) -> Result<Self, Failure> {
        if table.put.is_none() || table.take.is_none() {
            return Err(Failure::because(HVQ_ERR_NULL, "a store of tickets needs put and take"));
        }
        Ok(Self(table))
    }
}

fn bytes(of: &[u8]) -> hvq_bytes {
    hvq_bytes { data: of.as_ptr(), length: of.len() }
}

impl SessionStore for Store {
    fn put(&self, server_name: &str, ticket: SessionTicket) {
        let (Some(put), Ok(name)) = (self.0.put, CString::new(server_name)) else { return };
        let whole = ticket.to_bytes();
        if whole.len() <= LARGEST {
            // SAFETY: the function may be called with its `user`, and everything else is valid during the call.
            unsafe { put(self.0.user, name.as_ptr(), bytes(&ticket.alpn), bytes(&whole)) };
        }
    }

    fn take(&self, server_name: &str, protocols: &[Vec<u8>]) -> Option<SessionTicket> {
        let (take, name) = (self.0.take?, CString::new(server_name).ok()?);
        let names: Vec<hvq_bytes> = protocols.iter().map(|protocol| bytes(protocol)).collect();
        let mut room = vec![0u8; LARGEST];
        let mut buffer = hvq_buffer { data: room.as_mut_ptr(), capacity: room.len(), length: 0 };
        // SAFETY: as above.
        let found = unsafe { take(self.0.user, name.as_ptr(), names.as_ptr(), names.len(), &mut buffer) };
        // What is no ticket, or one of another protocol, is as good as none.
        let ticket = SessionTicket::from_bytes(room.get(..buffer.length).filter(|_| found == 1)?)?;
        protocols.contains(&ticket.alpn).then_some(ticket)
    }
}
