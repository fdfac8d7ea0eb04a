//! Certificates that the application judges itself, in place of BoringSSL.

use boring::ex_data::Index;
use boring::ssl::{Ssl, SslAlert, SslContextBuilder, SslRef, SslVerifyError, SslVerifyMode};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use std::sync::{Arc, LazyLock};

/// The certificates that a server presented.
#[derive(Clone, Copy, Debug)]
pub struct Presented<'a> {
    /// The name that the client asked for: a host name or an address.
    pub server_name: &'a str,
    /// The certificate chain, the server's own first, each in DER. Not empty.
    pub chain: &'a [Vec<u8>],
}

/// The application's verdict on a server's certificates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CertificateVerdict {
    /// The server is who it says.
    Trusted,
    /// It is not: the handshake fails with a TLS alert, such as 42 for a bad certificate (RFC 8446 §6.2).
    Refused {
        /// The alert; 0 stands for `certificate_unknown`.
        alert: u8,
    },
    /// Not known yet: the handshake waits, and the same is asked again when more arrives or when
    /// [`Connection::verify_again`](crate::connection::Connection::verify_again) is called.
    Pending,
}

/// A function that judges certificates. It is asked while a datagram of the server is taken in, and must not block.
pub type Verifier = Arc<dyn Fn(Presented<'_>) -> CertificateVerdict + Send + Sync>;

/// The index under which the server's name is kept.
static NAME: LazyLock<Index<Ssl, Box<str>>> =
    LazyLock::new(|| Ssl::new_ex_index().expect("BoringSSL has room for one more index"));

/// Has `verifier` asked in place of BoringSSL.
pub(super) fn install(context: &mut SslContextBuilder, verifier: Verifier) {
    context.set_custom_verify_callback(SslVerifyMode::PEER, move |ssl| {
        let chain = certificates(ssl);
        let server_name = ssl.ex_data(*NAME).map(Box::as_ref).unwrap_or_default();
        match verifier(Presented { server_name, chain: &chain }) {
            CertificateVerdict::Trusted if !chain.is_empty() => Ok(()),
            CertificateVerdict::Trusted => Err(SslVerifyError::Invalid(SslAlert::CERTIFICATE_UNKNOWN)),
            CertificateVerdict::Refused { alert } => Err(SslVerifyError::Invalid(alert_of(alert))),
            CertificateVerdict::Pending => Err(SslVerifyError::Retry),
        }
    });
}

/// Remembers under which name the server was asked for.
pub(super) fn remember_name(ssl: &mut Ssl, name: &str) {
    ssl.set_ex_data(*NAME, name.into());
}

/// The certificates that the peer presented, its own first, each in DER, whatever form the context keeps them in.
pub(super) fn certificates(ssl: &SslRef) -> Vec<Vec<u8>> {
    // SAFETY: `ssl` is valid; the stack and what is on it belong to it and do not change while it is borrowed. BoringSSL
    // takes a null stack for an empty one.
    unsafe {
        let stack = ffi::SSL_get0_peer_certificates(ssl.as_ptr()).cast::<ffi::OPENSSL_STACK>();
        let count = if stack.is_null() { 0 } else { ffi::OPENSSL_sk_num(stack) };
        let buffers =
            (0..count).map(|index| ffi::OPENSSL_sk_value(stack, index).cast::<ffi::CRYPTO_BUFFER>());
        let present = buffers.filter(|buffer| !buffer.is_null());
        present
            .map(|buffer| {
                let (data, length) = (ffi::CRYPTO_BUFFER_data(buffer), ffi::CRYPTO_BUFFER_len(buffer));
                if length == 0 { Vec::new() } else { std::slice::from_raw_parts(data, length).to_vec() }
            })
            .collect()
    }
}

fn alert_of(number: u8) -> SslAlert {
    let known = [
        SslAlert::BAD_CERTIFICATE,
        SslAlert::UNSUPPORTED_CERTIFICATE,
        SslAlert::CERTIFICATE_REVOKED,
        SslAlert::CERTIFICATE_EXPIRED,
        SslAlert::UNKNOWN_CA,
        SslAlert::ACCESS_DENIED,
    ];
    let numbers = [42, 43, 44, 45, 48, 49];
    let found = numbers.iter().zip(known).find(|(known, _)| **known == number).map(|(_, alert)| alert);
    found.unwrap_or(SslAlert::CERTIFICATE_UNKNOWN)
}
