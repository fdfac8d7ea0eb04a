//! The certificates of a run: an authority's, and the server's.

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Certificates and the server's key, in PEM files that both processes read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Material {
    /// The certificate of the authority, which clients trust.
    pub authority: PathBuf,
    /// The server's certificate.
    pub certificate: PathBuf,
    /// The private key of the server.
    pub key: PathBuf,
}

impl Material {
    /// The name that the certificate is for.
    pub const NAME: &'static str = "bench.test";

    /// Makes all of them and writes them into `folder`.
    pub fn create(folder: &Path) -> Result<Self> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        authority.distinguished_name.push(DnType::CommonName, "authority of the benchmark");
        let authority_key = KeyPair::generate()?;
        let authority_certificate = authority.self_signed(&authority_key)?;
        let key = KeyPair::generate()?;
        let issuer = Issuer::new(authority, authority_key);
        let certificate = CertificateParams::new([Self::NAME.to_owned()])?.signed_by(&key, &issuer)?;
        let [authority, leaf, private] =
            ["authority.pem", "certificate.pem", "key.pem"].map(|name| folder.join(name));
        fs::write(&authority, authority_certificate.pem())?;
        fs::write(&leaf, certificate.pem())?;
        fs::write(&private, key.serialize_pem())?;
        Ok(Self { authority, certificate: leaf, key: private })
    }

    /// The certificate's PEM.
    pub fn certificate_pem(&self) -> Result<Vec<u8>> {
        read(&self.certificate)
    }

    /// The key's PEM.
    pub fn key_pem(&self) -> Result<Vec<u8>> {
        read(&self.key)
    }

    /// A server of rustls with `ring` that speaks `alpn`.
    pub fn rustls_server(&self, alpn: &[u8]) -> Result<rustls::ServerConfig> {
        self.server(alpn, with_ring())
    }

    /// A client of rustls with `ring` that speaks `alpn` and trusts only this authority.
    pub fn rustls_client(&self, alpn: &[u8]) -> Result<rustls::ClientConfig> {
        self.client(alpn, with_ring())
    }

    /// Returns the configuration of the same server with AWS-LC.
    pub fn aws_server(&self, alpn: &[u8]) -> Result<rustls::ServerConfig> {
        self.server(alpn, with_aws_lc())
    }

    /// Returns the configuration of the same client with AWS-LC.
    pub fn aws_client(&self, alpn: &[u8]) -> Result<rustls::ClientConfig> {
        self.client(alpn, with_aws_lc())
    }

    fn server(&self, alpn: &[u8], provider: CryptoProvider) -> Result<rustls::ServerConfig> {
        let certificate = CertificateDer::from_pem_slice(&self.certificate_pem()?)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key_pem()?)?;
        let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        tls.alpn_protocols = vec![alpn.to_vec()];
        Ok(tls)
    }

    fn client(&self, alpn: &[u8], provider: CryptoProvider) -> Result<rustls::ClientConfig> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&read(&self.authority)?)?)?;
        let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.resumption = Resumption::disabled();
        tls.alpn_protocols = vec![alpn.to_vec()];
        Ok(tls)
    }
}

/// The only suite offered is AES-128-GCM, the only key exchange X25519.
fn with_ring() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![ring::kx_group::X25519],
        ..ring::default_provider()
    }
}

/// Returns the same provider with AWS-LC.
fn with_aws_lc() -> CryptoProvider {
    CryptoProvider {
        cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
        kx_groups: vec![aws_lc_rs::kx_group::X25519],
        ..aws_lc_rs::default_provider()
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}
