//! TLS of servers over TCP, by BoringSSL through `tokio-boring`.
//!
//! The library is the one that QUIC's handshake is made with, which each program has anyway: certificates and keys are read alike on
//! both transports, and what has to be trusted and updated stays one library (`deny.toml` refuses `rustls` and OpenSSL for that reason).

use boring::pkey::PKey;
use boring::ssl::{AlpnError, SslAcceptor, SslAcceptorBuilder, SslMethod, select_next_proto};
use boring::x509::X509;

/// HTTP/2 first: only there do browsers say how urgent a request is, and ask for many things at a time.
const PROTOCOLS: &[u8] = b"\x02h2\x08http/1.1";

/// The reason for which TLS does not take a certificate and its key.
#[derive(Debug, thiserror::Error)]
pub enum AcceptorError {
    /// The chain is not PEM.
    #[error("there is no certificate in PEM")]
    Chain,
    /// The key is not PEM.
    #[error("there is no private key in PEM")]
    Key,
    /// Chain and key are of different certificates.
    #[error("the private key does not belong to the certificate")]
    OtherKey,
    /// TLS does not take them.
    #[error("TLS: {0}")]
    Tls(#[from] boring::error::ErrorStack),
}

/// An acceptor of HTTP/2 and HTTP/1.1 with the certificate `chain` and its `key`, both PEM: TLS 1.3, and 1.2 with cipher suites that are
/// forward-secret and authenticated (Mozilla's intermediate configuration), as servers of browsers have it. A client that offers
/// protocols and none of the two is told so (RFC 7301 §3.2), lest it speaks another one here.
pub(crate) fn acceptor(chain: &[u8], key: &[u8]) -> Result<SslAcceptorBuilder, AcceptorError> {
    let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls())?;
    let chain = X509::stack_from_pem(chain).map_err(|_| AcceptorError::Chain)?;
    let (own, issuers) = chain.split_first().ok_or(AcceptorError::Chain)?;
    builder.set_certificate(own)?;
    for certificate in issuers {
        builder.add_extra_chain_cert(certificate.clone())?;
    }
    let key = PKey::private_key_from_pem(key).map_err(|_| AcceptorError::Key)?;
    builder.set_private_key(&key).map_err(|_| AcceptorError::OtherKey)?;
    builder.check_private_key().map_err(|_| AcceptorError::OtherKey)?;
    builder.set_alpn_select_callback(|_, offered| {
        select_next_proto(PROTOCOLS, offered).ok_or(AlpnError::ALERT_FATAL)
    });
    Ok(builder)
}
