//! TLS of the implementations that use rustls.

use crate::arguments::Arguments;
use anyhow::{Context, Result};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The protocol of both ends.
pub const PROTOCOL: &[u8] = b"hvq-failover";

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// The configuration of the server.
pub fn server(arguments: &Arguments) -> Result<ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(&read(&arguments.chain)?)?;
    let key = PrivateKeyDer::from_pem_slice(&read(&arguments.key)?)?;
    let mut tls = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(tls)
}

/// The configuration of a client, which trusts the server's certificate alone.
pub fn client(arguments: &Arguments) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&read(&arguments.chain)?)?)?;
    let mut tls = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(tls)
}
