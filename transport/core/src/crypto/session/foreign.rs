//! Contexts of BoringSSL that the program made itself, as a browser does.

use super::callbacks::keep_ticket;
use super::{TlsConfigError, encode_alpn};
use boring::ssl::{Ssl, SslContext, SslRef, SslSessionRef, SslVersion};
use boring_sys as ffi;
use foreign_types::{ForeignType, ForeignTypeRef};
use std::ffi::c_void;
use std::ptr::NonNull;

/// The settings that each session of a foreign context is given, since the context itself is left alone.
#[derive(Clone, Debug)]
pub(super) struct Imposed {
    /// The application protocols of a client, as TLS encodes them; empty leaves those of the context.
    alpn: Vec<u8>,
}

impl Imposed {
    /// Makes the settings with a client's application protocols, which may be none.
    pub(super) fn new(alpn: &[Vec<u8>]) -> Result<Self, TlsConfigError> {
        Ok(Self { alpn: if alpn.is_empty() { Vec::new() } else { encode_alpn(alpn)? } })
    }

    /// Makes `ssl` fit for QUIC.
    pub(super) fn apply(&self, ssl: &mut Ssl) -> Result<(), TlsConfigError> {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-4.2
        //# Clients MUST NOT offer TLS versions older than 1.3
        ssl.set_min_proto_version(Some(SslVersion::TLS1_3))?;
        ssl.set_max_proto_version(Some(SslVersion::TLS1_3))?;
        if !self.alpn.is_empty() {
            ssl.set_alpn_protos(&self.alpn)?;
        }
        Ok(())
    }
}

/// A reference of ours to the context at `pointer`.
///
/// # Safety
///
/// `pointer` is a valid `SSL_CTX` of the BoringSSL that this crate is linked with.
pub(super) unsafe fn adopt(pointer: NonNull<c_void>) -> SslContext {
    let pointer = pointer.as_ptr().cast::<ffi::SSL_CTX>();
    // SAFETY: the caller says that it is valid; one reference more is taken, which the result gives back.
    unsafe {
        ffi::SSL_CTX_up_ref(pointer);
        SslContext::from_ptr(pointer)
    }
}

/// Keeps a ticket for a connection that was made with a context of the program, which calls this in the context's callback
/// for new sessions (`SSL_CTX_sess_set_new_cb`) and keeps ownership of the session. `false` if the `SSL` is of no connection
/// of this crate, whose tickets are then the program's business.
///
/// # Safety
///
/// `ssl` and `session` are what BoringSSL passed to that callback, which has not returned yet.
pub unsafe fn keep_session(ssl: NonNull<c_void>, session: NonNull<c_void>) -> bool {
    // SAFETY: the caller says that both are valid, and nobody else uses the `SSL` while BoringSSL calls back.
    let (ssl, session) = unsafe {
        (SslRef::from_ptr_mut(ssl.as_ptr().cast()), SslSessionRef::from_ptr(session.as_ptr().cast()))
    };
    keep_ticket(ssl, session)
}
