//! rustls, for the peers that use it.

use crate::identity::Identity;
use anyhow::Result;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::version::TLS13;
use std::sync::Arc;

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// A server that speaks `alpn`.
///
/// # Errors
/// The certificate is refused.
pub fn server(identity: &Identity, alpn: &[u8]) -> Result<rustls::ServerConfig> {
    let chain = vec![CertificateDer::from(identity.certificate_der.clone())];
    let key = PrivatePkcs8KeyDer::from(identity.key_der.clone());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key.into())?;
    tls.alpn_protocols = vec![alpn.to_vec()];
    Ok(tls)
}

/// A client that speaks `alpn` and trusts only `identity`.
///
/// # Errors
/// The certificate is refused.
pub fn client(identity: &Identity, alpn: &[u8]) -> Result<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from(identity.certificate_der.clone()))?;
    let mut tls = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![alpn.to_vec()];
    Ok(tls)
}
