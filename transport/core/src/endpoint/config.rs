//! What an endpoint and its connections are made from.

use crate::connection::TransportConfig;
use crate::crypto::session::{ClientTls, ServerTls};
use std::sync::Arc;

/// Limits of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Bytes of the connection IDs that this endpoint issues, 4 to 20.
    pub id_length: usize,
    /// Connections at most.
    pub max_connections: usize,
    /// Connections at most whose handshake is not complete; Initials beyond it are ignored.
    pub max_handshaking: usize,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self { id_length: 8, max_connections: 100_000, max_handshaking: 1_000 }
    }
}

/// What a server's connections are made from.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Certificate, key and application protocols.
    pub tls: ServerTls,
    /// Limits and the scheduler.
    pub transport: Arc<TransportConfig>,
}

/// What a client's connection is made from.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Verification and application protocols.
    pub tls: ClientTls,
    /// Limits and the scheduler.
    pub transport: Arc<TransportConfig>,
}

impl ServerConfig {
    /// A server with this TLS and this transport, and the defaults for everything else.
    pub fn new(tls: ServerTls, transport: Arc<TransportConfig>) -> Self {
        Self { tls, transport }
    }
}

impl ClientConfig {
    /// A client with this TLS and this transport, and the defaults for everything else.
    pub fn new(tls: ClientTls, transport: Arc<TransportConfig>) -> Self {
        Self { tls, transport }
    }
}
