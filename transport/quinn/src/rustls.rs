//! The shapes of rustls that programs for quinn name, over BoringSSL: roots, certificates and keys in DER, application protocols,
//! key logs, 0-RTT. There are no cryptography providers and no versions to choose: it is TLS 1.3 by BoringSSL.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hvq::tls::KeyLog as Log;
use hvq::transport::crypto::session::{CertificateVerdict, Verifier};
use hvq::{ClientTls, EarlyData, Identity, ServerTls, TlsConfigError, Verify};
use pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

pub use self::{TlsClientConfig as ClientConfig, TlsServerConfig as ServerConfig};
pub use rustls_pki_types as pki_types;

/// The protocol that is agreed on between programs that name none: QUIC needs one (RFC 9001 §8.1).
pub(crate) const NO_PROTOCOL: &[u8] = b"hvq-quinn";

/// The reason for which a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A certificate, a key or a protocol is not usable.
    #[error("{0}")]
    General(String),
}

impl From<TlsConfigError> for Error {
    fn from(error: TlsConfigError) -> Self {
        Self::General(error.to_string())
    }
}

/// Certificates that others' certificates go back to.
#[derive(Clone, Debug, Default)]
pub struct RootCertStore {
    pem: Vec<u8>,
    count: usize,
}

impl RootCertStore {
    /// A store without certificates.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Adds a certificate.
    ///
    /// # Errors
    /// There is none in it. What it says is looked at when a configuration is made.
    pub fn add(&mut self, certificate: CertificateDer<'_>) -> Result<(), Error> {
        if certificate.is_empty() {
            return Err(Error::General("an empty certificate".to_owned()));
        }
        self.pem.extend(pem("CERTIFICATE", &certificate));
        self.count += 1;
        Ok(())
    }

    /// The number of certificates.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns true if there is no certificate.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Called with the secrets of connections, in lines of NSS's format.
pub trait KeyLog: fmt::Debug + Send + Sync {
    /// Takes a line, without its break.
    fn log_line(&self, line: &str);
}

/// A key log that keeps nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoKeyLog;

impl KeyLog for NoKeyLog {
    fn log_line(&self, _line: &str) {}
}

/// A key log in the file that the environment variable SSLKEYLOGFILE names, if there is one.
#[derive(Debug)]
pub struct KeyLogFile(Option<Mutex<File>>);

impl KeyLogFile {
    /// Opens the file, to append to it.
    pub fn new() -> Self {
        let path = std::env::var_os("SSLKEYLOGFILE").filter(|path| !path.is_empty());
        let open = |path| OpenOptions::new().append(true).create(true).open(path).ok();
        Self(path.and_then(open).map(Mutex::new))
    }
}

impl Default for KeyLogFile {
    fn default() -> Self {
        Self::new()
    }
}

impl KeyLog for KeyLogFile {
    fn log_line(&self, line: &str) {
        let Some(file) = &self.0 else { return };
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written must not stop a connection.
        let _written = writeln!(file, "{line}");
    }
}

/// Judges the certificates of servers in place of BoringSSL, which still checks that the server has the key of its own.
pub trait ServerCertVerifier: fmt::Debug + Send + Sync {
    /// Judges the server's own certificate and those that it sent with it, in DER, for the name that was asked for.
    ///
    /// # Errors
    /// The server is not trusted.
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &str,
    ) -> Result<(), Error>;
}

/// The trust of a client in servers.
#[derive(Clone, Debug)]
enum Trust {
    Roots(Arc<RootCertStore>),
    Judge(Arc<dyn ServerCertVerifier>),
}

/// The certificates and the key of an end, the own certificate first.
#[derive(Clone, Debug)]
pub(crate) struct Credentials(Identity);

impl Credentials {
    fn new(chain: &[CertificateDer<'_>], key: &PrivateKeyDer<'_>) -> Self {
        let label = match key {
            PrivateKeyDer::Pkcs1(_) => "RSA PRIVATE KEY",
            PrivateKeyDer::Sec1(_) => "EC PRIVATE KEY",
            _ => "PRIVATE KEY",
        };
        let chain = chain.iter().flat_map(|certificate| pem("CERTIFICATE", certificate)).collect();
        Self(Identity::Pem { chain, key: pem(label, key.secret_der()) })
    }
}

/// The TLS of a client.
#[derive(Clone, Debug)]
pub struct TlsClientConfig {
    trust: Trust,
    credentials: Option<Credentials>,
    /// Application protocols to offer, the preferred one first.
    pub alpn_protocols: Vec<Vec<u8>>,
    /// Called with secrets.
    pub key_log: Arc<dyn KeyLog>,
    /// Sends 0-RTT where a ticket permits it. Default: true; the application decides for each connection.
    pub enable_early_data: bool,
}

/// A client's TLS that lacks its trust.
#[derive(Clone, Copy, Debug)]
pub struct ClientConfigBuilder(());

/// A client's TLS that lacks a certificate of its own, or the word that it has none.
#[derive(Clone, Debug)]
pub struct ClientConfigBuilderWithTrust(Trust);

/// Trust that is not in roots.
#[derive(Clone, Copy, Debug)]
pub struct DangerousClientConfigBuilder(());

impl TlsClientConfig {
    /// Begins a configuration.
    pub fn builder() -> ClientConfigBuilder {
        ClientConfigBuilder(())
    }

    /// BoringSSL's configuration, with the tickets of `sessions`.
    pub(crate) fn build(&self, sessions: Arc<hvq::tls::MemorySessions>) -> Result<ClientTls, Error> {
        let mut tls =
            ClientTls::builder().alpn(protocols(&self.alpn_protocols)).sessions(sessions).exportable();
        tls = match &self.trust {
            Trust::Roots(roots) => tls.verify(Verify::CaPem(roots.pem.clone())),
            Trust::Judge(judge) => tls.verifier(asking(Arc::clone(judge))),
        };
        if let Some(Credentials(identity)) = &self.credentials {
            tls = tls.identity(identity.clone());
        }
        let early = if self.enable_early_data { EarlyData::On } else { EarlyData::Off };
        Ok(tls.early_data(early).keylog(logging(&self.key_log)).build()?)
    }
}

impl ClientConfigBuilder {
    /// Trusts servers whose certificates go back to these.
    pub fn with_root_certificates(
        self,
        roots: impl Into<Arc<RootCertStore>>,
    ) -> ClientConfigBuilderWithTrust {
        ClientConfigBuilderWithTrust(Trust::Roots(roots.into()))
    }

    /// Trust that is not in roots.
    pub fn dangerous(self) -> DangerousClientConfigBuilder {
        DangerousClientConfigBuilder(())
    }
}

impl DangerousClientConfigBuilder {
    /// Trusts the servers that `verifier` does.
    pub fn with_custom_certificate_verifier(
        self,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> ClientConfigBuilderWithTrust {
        ClientConfigBuilderWithTrust(Trust::Judge(verifier))
    }
}

impl ClientConfigBuilderWithTrust {
    /// A client that has no certificate.
    pub fn with_no_client_auth(self) -> TlsClientConfig {
        TlsClientConfig {
            trust: self.0,
            credentials: None,
            alpn_protocols: Vec::new(),
            key_log: Arc::new(NoKeyLog),
            enable_early_data: true,
        }
    }

    /// A client that has a certificate for servers that ask.
    ///
    /// # Errors
    /// There is no certificate. Whether the key belongs to it is looked at when the configuration is used.
    pub fn with_client_auth_cert(
        self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<TlsClientConfig, Error> {
        present(&chain)?;
        Ok(TlsClientConfig {
            credentials: Some(Credentials::new(&chain, &key)),
            ..self.with_no_client_auth()
        })
    }
}

/// The TLS of a server.
#[derive(Clone, Debug)]
pub struct TlsServerConfig {
    credentials: Credentials,
    /// Application protocols that are spoken, the preferred one first.
    pub alpn_protocols: Vec<Vec<u8>>,
    /// Called with secrets.
    pub key_log: Arc<dyn KeyLog>,
    /// Bytes of 0-RTT that are accepted: 0 for none, anything else for as many as flow control permits. Default: 2^32 - 1.
    pub max_early_data_size: u32,
}

/// A server's TLS that does not say yet what it asks of clients.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfigBuilder(());

/// A server's TLS that lacks its certificate.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfigBuilderWithClients(());

impl TlsServerConfig {
    /// Begins a configuration.
    pub fn builder() -> ServerConfigBuilder {
        ServerConfigBuilder(())
    }

    /// BoringSSL's configuration.
    pub(crate) fn build(&self) -> Result<ServerTls, Error> {
        let early = if self.max_early_data_size > 0 { EarlyData::On } else { EarlyData::Off };
        let tls = ServerTls::builder(self.credentials.0.clone()).alpn(protocols(&self.alpn_protocols));
        Ok(tls.early_data(early).keylog(logging(&self.key_log)).exportable().build()?)
    }
}

impl ServerConfigBuilder {
    /// Asks clients for no certificate. Servers that ask have hvq's own TLS:
    /// [`QuicServerConfig::from`](crate::crypto::rustls::QuicServerConfig) a `ServerTls`.
    pub fn with_no_client_auth(self) -> ServerConfigBuilderWithClients {
        ServerConfigBuilderWithClients(())
    }
}

impl ServerConfigBuilderWithClients {
    /// A server with this certificate, those that vouch for it, and the key of the first.
    ///
    /// # Errors
    /// There is no certificate. Whether the key belongs to it is looked at when the configuration is used.
    pub fn with_single_cert(
        self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<TlsServerConfig, Error> {
        present(&chain)?;
        Ok(TlsServerConfig {
            credentials: Credentials::new(&chain, &key),
            alpn_protocols: Vec::new(),
            key_log: Arc::new(NoKeyLog),
            max_early_data_size: u32::MAX,
        })
    }
}

fn present(chain: &[CertificateDer<'_>]) -> Result<(), Error> {
    if chain.is_empty() { Err(Error::General("no certificate".to_owned())) } else { Ok(()) }
}

fn protocols(named: &[Vec<u8>]) -> Vec<Vec<u8>> {
    if named.is_empty() { vec![NO_PROTOCOL.to_vec()] } else { named.to_vec() }
}

fn logging(log: &Arc<dyn KeyLog>) -> Log {
    let log = Arc::clone(log);
    Box::new(move |line| log.log_line(line))
}

fn asking(judge: Arc<dyn ServerCertVerifier>) -> Verifier {
    Arc::new(move |presented| {
        let chain: Vec<CertificateDer<'_>> =
            presented.chain.iter().map(|der| CertificateDer::from(der.as_slice())).collect();
        let Some((own, others)) = chain.split_first() else {
            return CertificateVerdict::Refused { alert: 0 };
        };
        match judge.verify_server_cert(own, others, presented.server_name) {
            Ok(()) => CertificateVerdict::Trusted,
            Err(_) => CertificateVerdict::Refused { alert: 0 },
        }
    })
}

/// `der` in PEM, as BoringSSL takes it.
fn pem(label: &str, der: &[u8]) -> Vec<u8> {
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in STANDARD.encode(der).as_bytes().chunks(64) {
        text.extend(line.iter().map(|byte| char::from(*byte)));
        text.push('\n');
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text.into_bytes()
}
