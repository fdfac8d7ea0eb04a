//! The choice of a server's context by the ClientHello: certificate chain, key, staple, and the tickets that it resumes from.

use super::callbacks::STATE;
use super::early_data::{permit, refuse_replay};
use super::server_names::ServerNames;
use super::{bind_tickets, check};
use boring::ssl::{ClientHello, NameType, SelectCertError, SslContext, SslRef};
use boring::x509::X509;
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use ring::digest::{SHA256, digest};
use std::sync::Arc;

/// Bytes by which the tickets of a certificate are told from those of others: with the version of QUIC they make up the 32 bytes that
/// BoringSSL has room for.
const MARK: usize = 28;

/// The contexts of a server's certificates.
pub(super) struct Selection {
    names: Arc<ServerNames>,
    /// The default's mark first, then the other contexts, with theirs.
    default: [u8; MARK],
    others: Vec<(SslContext, [u8; MARK])>,
}

impl Selection {
    pub(super) fn new(
        names: Arc<ServerNames>,
        default: [u8; MARK],
        others: Vec<(SslContext, [u8; MARK])>,
    ) -> Self {
        Self { names, default, others }
    }

    /// Before a server looks at a ClientHello: chooses its context, and refuses 0-RTT that may be a copy.
    pub(super) fn apply(&self, mut hello: ClientHello<'_>) -> Result<(), SelectCertError> {
        let number = self.names.choose(hello.servername(NameType::HOST_NAME));
        let chosen = number.checked_sub(1).and_then(|other| self.others.get(other));
        let mark = chosen.map_or(&self.default, |(_, mark)| mark);
        let ssl = hello.ssl_mut();
        // A new context brings its own, which is empty.
        let context = [&version(ssl), &mark[..]].concat();
        if let Some((context, _)) = chosen {
            ssl.set_ssl_context(context).map_err(|_| SelectCertError::ERROR)?;
            // BoringSSL takes the new context's setting of 0-RTT, which is that of no session.
            if ssl.ex_data(*STATE).is_some_and(|state| state.replay.is_some()) {
                permit(ssl);
            }
        }
        // RFC 8446 §4.6.1: who resumes is shown no certificate, so that a ticket stands for the one that was shown before.
        bind_tickets(ssl, &context).map_err(|_| SelectCertError::ERROR)?;
        refuse_replay(hello);
        Ok(())
    }
}

/// The mark of the tickets of sessions in which `certificate` was shown.
pub(super) fn mark(certificate: &X509) -> Result<[u8; MARK], super::TlsConfigError> {
    let hash = digest(&SHA256, &certificate.to_der()?);
    Ok(*hash.as_ref().first_chunk().expect("SHA-256 has 32 bytes"))
}

/// The bytes of the version that tickets were bound to before the ClientHello came; none if they were not.
fn version(ssl: &SslRef) -> Vec<u8> {
    let mut length = 0;
    // SAFETY: `ssl` is valid in the callback that it was passed to, and the length is written before it is read.
    let bytes = unsafe { ffi::SSL_get0_session_id_context(ssl.as_ptr(), &mut length) };
    if bytes.is_null() || length == 0 {
        return Vec::new();
    }
    // SAFETY: BoringSSL gave out that many bytes, which nothing changes before they are copied.
    unsafe { std::slice::from_raw_parts(bytes, length) }.to_vec()
}

/// Has sessions of `context` present `response`, the answer of an OCSP responder, to clients that ask for one (RFC 6066 §8).
pub(super) fn staple(
    context: &boring::ssl::SslContextBuilder,
    response: &[u8],
) -> Result<(), super::TlsConfigError> {
    // SAFETY: the context is valid, and BoringSSL copies the response before it returns.
    check(unsafe { ffi::SSL_CTX_set_ocsp_response(context.as_ptr(), response.as_ptr(), response.len()) })
}
