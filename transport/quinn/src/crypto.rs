//! The TLS that connections are made with.

/// TLS in the shapes of rustls.
pub mod rustls {
    use crate::rustls::Error;
    use hvq::tls::MemorySessions;
    use hvq::{ClientTls, ServerTls};
    use std::sync::Arc;

    /// The TLS of clients, which keeps tickets of servers in memory for connections to come.
    #[derive(Clone, Debug)]
    pub struct QuicClientConfig(pub(crate) ClientTls);

    impl TryFrom<crate::rustls::ClientConfig> for QuicClientConfig {
        type Error = Error;

        fn try_from(config: crate::rustls::ClientConfig) -> Result<Self, Error> {
            config.build(Arc::new(MemorySessions::default())).map(Self)
        }
    }

    /// The configuration has no cipher suite of TLS 1.3 that QUIC could use.
    #[cfg(feature = "rustls")]
    #[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
    #[error("no cipher suite for QUIC's Initial packets is configured")]
    pub struct NoInitialCipherSuite(());

    #[cfg(feature = "rustls")]
    impl NoInitialCipherSuite {
        /// Refuses a provider that lacks TLS_AES_128_GCM_SHA256, the one suite that every end of a connection has (RFC 8446 §9.1).
        fn unless_in(provider: &::rustls::crypto::CryptoProvider) -> Result<(), Self> {
            let is_there = provider
                .cipher_suites
                .iter()
                .any(|suite| suite.suite() == ::rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
            if is_there { Ok(()) } else { Err(Self(())) }
        }
    }

    #[cfg(feature = "rustls")]
    impl TryFrom<::rustls::ClientConfig> for QuicClientConfig {
        type Error = NoInitialCipherSuite;

        fn try_from(config: ::rustls::ClientConfig) -> Result<Self, NoInitialCipherSuite> {
            Arc::new(config).try_into()
        }
    }

    #[cfg(feature = "rustls")]
    impl TryFrom<Arc<::rustls::ClientConfig>> for QuicClientConfig {
        type Error = NoInitialCipherSuite;

        fn try_from(config: Arc<::rustls::ClientConfig>) -> Result<Self, NoInitialCipherSuite> {
            NoInitialCipherSuite::unless_in(config.crypto_provider())?;
            Ok(Self(crate::rustls_session::client(&config)))
        }
    }

    impl From<ClientTls> for QuicClientConfig {
        fn from(tls: ClientTls) -> Self {
            Self(tls)
        }
    }

    /// The TLS of servers.
    #[derive(Clone, Debug)]
    pub struct QuicServerConfig(pub(crate) ServerTls);

    impl TryFrom<crate::rustls::ServerConfig> for QuicServerConfig {
        type Error = Error;

        fn try_from(config: crate::rustls::ServerConfig) -> Result<Self, Error> {
            config.build().map(Self)
        }
    }

    #[cfg(feature = "rustls")]
    impl TryFrom<::rustls::ServerConfig> for QuicServerConfig {
        type Error = NoInitialCipherSuite;

        fn try_from(config: ::rustls::ServerConfig) -> Result<Self, NoInitialCipherSuite> {
            Arc::new(config).try_into()
        }
    }

    #[cfg(feature = "rustls")]
    impl TryFrom<Arc<::rustls::ServerConfig>> for QuicServerConfig {
        type Error = NoInitialCipherSuite;

        fn try_from(config: Arc<::rustls::ServerConfig>) -> Result<Self, NoInitialCipherSuite> {
            NoInitialCipherSuite::unless_in(config.crypto_provider())?;
            Ok(Self(crate::rustls_session::server(&config)))
        }
    }

    impl From<ServerTls> for QuicServerConfig {
        fn from(tls: ServerTls) -> Self {
            Self(tls)
        }
    }

    /// The facts that the handshake settled.
    #[derive(Clone, Debug)]
    #[non_exhaustive]
    pub struct HandshakeData {
        /// The application protocol, if both ends named some.
        pub protocol: Option<Vec<u8>>,
        /// The name that the client asked for.
        pub server_name: Option<String>,
    }

    impl HandshakeData {
        /// The facts about `connection`; none before its handshake is complete.
        pub(crate) fn of(connection: &hvq::Connection) -> Option<Self> {
            let protocol = connection.alpn()?;
            let protocol = Some(protocol).filter(|protocol| protocol != crate::rustls::NO_PROTOCOL);
            Some(Self { protocol, server_name: connection.server_name() })
        }
    }
}

/// Keying material was not exported: the handshake is not complete, or the connection is gone.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no keying material can be exported")]
pub struct ExportKeyingMaterialError;
