//! Configurations of endpoints, clients and servers.

use crate::connection_ids::GeneratedIds;
use crate::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use crate::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use crate::rustls::{self, RootCertStore};
use crate::{ConfigError, ConnectionIdGenerator, TransportConfig};
use hvq::Verify;
use hvq::admission::Admission;
use hvq::config::{Greasing, Migration, PreferredAddresses};
use std::fmt;
use std::net::{SocketAddrV4, SocketAddrV6};
use std::sync::Arc;

/// The configuration of an endpoint.
#[derive(Clone, Debug, Default)]
pub struct EndpointConfig {
    settings: hvq::EndpointConfig,
    max_udp_payload: Option<u16>,
    greasing: Option<bool>,
}

impl EndpointConfig {
    /// The settings as hvq has them.
    pub fn hvq(&mut self) -> &mut hvq::EndpointConfig {
        &mut self.settings
    }

    /// The connection IDs that the endpoint gives out. Default: random ones of 8 bytes.
    pub fn cid_generator<F>(&mut self, factory: F) -> &mut Self
    where
        F: Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
    {
        let generator = factory();
        self.settings.set_id_length(generator.cid_len()).set_ids(GeneratedIds::of(generator));
        self
    }

    /// The largest UDP payload that is accepted, in bytes. Default: 65,527.
    ///
    /// # Errors
    /// It is below 1,200 or above 65,527.
    pub fn max_udp_payload_size(&mut self, value: u16) -> Result<&mut Self, ConfigError> {
        if !(1_200..=65_527).contains(&value) {
            return Err(ConfigError);
        }
        self.max_udp_payload = Some(value);
        Ok(self)
    }

    /// Greases the QUIC bit (RFC 9287), which is the default.
    pub fn grease_quic_bit(&mut self, value: bool) -> &mut Self {
        self.greasing = Some(value);
        self
    }

    /// hvq's settings of the endpoint.
    pub(crate) fn to_hvq(&self) -> hvq::EndpointConfig {
        self.settings.clone()
    }

    /// The settings of a connection with what the endpoint says of all.
    pub(crate) fn apply(&self, transport: &TransportConfig) -> Arc<hvq::TransportConfig> {
        let mut transport = (*transport.to_hvq()).clone();
        if let Some(payload) = self.max_udp_payload {
            transport.set_max_udp_payload(payload.into());
        }
        if self.greasing == Some(false) {
            transport.set_greasing(Greasing::Off);
        }
        Arc::new(transport)
    }
}

/// The configuration of clients' connections.
#[derive(Clone)]
pub struct ClientConfig {
    crypto: Arc<QuicClientConfig>,
    transport: Arc<TransportConfig>,
}

impl ClientConfig {
    /// A client with this TLS and the default settings.
    pub fn new(crypto: Arc<QuicClientConfig>) -> Self {
        Self { crypto, transport: Arc::default() }
    }

    /// A client that trusts servers whose certificates go back to these.
    ///
    /// # Errors
    /// A certificate cannot be used.
    pub fn with_root_certificates(roots: Arc<RootCertStore>) -> Result<Self, rustls::Error> {
        let tls = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Ok(Self::new(Arc::new(tls.try_into()?)))
    }

    /// A client that trusts servers whose certificates go back to the system's roots.
    ///
    /// # Errors
    /// The system has none where they usually are.
    pub fn try_with_platform_verifier() -> Result<Self, rustls::Error> {
        let tls = hvq::ClientTls::builder().alpn([rustls::NO_PROTOCOL]).verify(Verify::SystemRoots);
        Ok(Self::new(Arc::new(tls.exportable().build()?.into())))
    }

    /// The settings of connections.
    pub fn transport_config(&mut self, transport: Arc<TransportConfig>) -> &mut Self {
        self.transport = transport;
        self
    }

    /// The settings of connections, to be changed by who did not make them.
    pub fn hvq(&mut self) -> &mut hvq::TransportConfig {
        Arc::make_mut(&mut self.transport).hvq()
    }

    /// hvq's configuration.
    pub(crate) fn to_hvq(&self, endpoint: &EndpointConfig) -> hvq::ClientConfig {
        hvq::ClientConfig::new(self.crypto.0.clone(), endpoint.apply(&self.transport))
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientConfig").finish_non_exhaustive()
    }
}

/// The configuration of a server's connections.
#[derive(Clone)]
pub struct ServerConfig {
    /// The settings of connections.
    pub transport: Arc<TransportConfig>,
    /// The TLS of connections.
    pub crypto: Arc<QuicServerConfig>,
    migration: bool,
    preferred: PreferredAddresses,
}

impl ServerConfig {
    /// A server with this TLS and the default settings.
    pub fn with_crypto(crypto: Arc<QuicServerConfig>) -> Self {
        Self { transport: Arc::default(), crypto, migration: true, preferred: PreferredAddresses::default() }
    }

    /// A server with this certificate, those that vouch for it, and the key of the first.
    ///
    /// # Errors
    /// There is none, one cannot be used, or the key is not that of the first.
    pub fn with_single_cert(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, rustls::Error> {
        let tls = rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
        Ok(Self::with_crypto(Arc::new(tls.try_into()?)))
    }

    /// The settings of connections.
    pub fn transport_config(&mut self, transport: Arc<TransportConfig>) -> &mut Self {
        self.transport = transport;
        self
    }

    /// Permits clients to move to other addresses, which is the default.
    pub fn migration(&mut self, value: bool) -> &mut Self {
        self.migration = value;
        self
    }

    /// The settings of connections, to be changed by who did not make them.
    pub fn hvq(&mut self) -> &mut hvq::TransportConfig {
        Arc::make_mut(&mut self.transport).hvq()
    }

    /// The address that clients over IPv4 are asked to move to (RFC 9000 §9.6). Default: none.
    pub fn preferred_address_v4(&mut self, address: Option<SocketAddrV4>) -> &mut Self {
        self.preferred.ipv4 = address;
        self
    }

    /// The address that clients over IPv6 are asked to move to. Default: none.
    pub fn preferred_address_v6(&mut self, address: Option<SocketAddrV6>) -> &mut Self {
        self.preferred.ipv6 = address;
        self
    }

    /// hvq's configuration: the application decides about each client.
    pub(crate) fn to_hvq(&self, endpoint: &EndpointConfig) -> hvq::ServerConfig {
        let mut transport = (*endpoint.apply(&self.transport)).clone();
        if !self.migration {
            transport.set_migration(Migration::Refused);
        }
        if !self.preferred.is_empty() {
            transport.set_preferred_addresses(self.preferred);
        }
        let mut config = hvq::ServerConfig::new(self.crypto.0.clone(), Arc::new(transport));
        config.set_retry(hvq::admission::RetryPolicy::Never).set_admission(Some(Admission::deferred()));
        config
    }
}

impl fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerConfig").finish_non_exhaustive()
    }
}
