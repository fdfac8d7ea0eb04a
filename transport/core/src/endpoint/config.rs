//! The configuration of an endpoint and of its connections.

use crate::connection::TransportConfig;
use crate::crypto::replay::ReplayGuard;
use crate::crypto::reset::ResetKey;
use crate::crypto::session::{ClientTls, ServerTls};
use crate::crypto::token::TokenKey;
use crate::endpoint::Admission;
use crate::endpoint::ids::ConnectionIds;
use crate::endpoint::replay::TokenRegister;
use crate::memory::MemoryQuota;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// Limits of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Bytes of the connection IDs that this endpoint issues, 4 to 20.
    pub id_length: usize,
    /// The generator of connection IDs, of its own length; `None` draws random ones of `id_length` bytes.
    pub ids: Option<Arc<dyn ConnectionIds>>,
    /// The register of the tickets that opened 0-RTT, for several servers with the same TLS configuration, so that no
    /// two of them accept the same data (RFC 9001 §9.2); `None` gives a server that accepts 0-RTT one of its own.
    pub replay: Option<Arc<ReplayGuard>>,
    /// The maximum number of connections whose handshake is complete. Default: 20,000, of which idle ones take some 500
    /// MiB. Once there are as many, one to a network (a /24 of IPv4, a /56 of IPv6) that has few takes the place of one
    /// to the network that has the most.
    pub max_connections: usize,
    /// The maximum number of connections of peers whose handshake is not complete, beside those. Default: 1,000. Once
    /// there are as many, one with a network that has few takes the place of the oldest with the network that has the
    /// most, and any takes that of one that lasts for more than a second; other Initials are ignored.
    pub max_handshaking: usize,
    /// The key of stateless reset tokens (RFC 9000 §10.3.2); `None` draws one from the endpoint's seed. A server that keeps
    /// its key over a restart tells the clients of before at once that their connections are gone.
    pub reset_key: Option<ResetKey>,
    /// The key of address validation tokens (RFC 9000 §8.1); `None` draws one from the endpoint's seed. Servers that share
    /// or keep it accept each other's tokens, each of them once, or all together once with `used_tokens`.
    pub token_key: Option<TokenKey>,
    /// The register of the tokens that were used, for several servers with the same key; `None` remembers those of this
    /// endpoint's clients.
    pub used_tokens: Option<Arc<dyn TokenRegister>>,
    /// The time at the endpoint's first instant, since the Unix epoch: tokens are dated by it. Default: zero.
    pub epoch: Duration,
    /// The maximum number of stateless resets sent in a second (RFC 9000 §10.3.3); 0 sends none. Default: 100.
    pub resets_per_second: u32,
    /// The maximum number of Version Negotiation packets sent in a second (RFC 9000 §6.1); 0 sends none. Default:
    /// 1,000.
    pub negotiations_per_second: u32,
    /// The treatment of packets for no connection of this endpoint. Default: they are forgotten.
    pub strays: Strays,
    /// The bound of memory that connections hold together, for several endpoints that share one; `None` gives the endpoint
    /// one of its own, of [`MemoryQuota::DEFAULT`] bytes. While it is short, peers are granted less credit than
    /// [`StreamLimits`](crate::stream::StreamLimits) say, packets with more data than there is room for are dropped, and connections
    /// in which data lies unread for 10 s are closed, the one with the most first.
    pub memory: Option<Arc<MemoryQuota>>,
}

/// The treatment of packets with a short header for no connection of an endpoint, beside the answer that they get.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Strays {
    /// Nothing.
    #[default]
    Forgotten,
    /// Some are kept for [`Endpoint::take_strays`](super::Endpoint::take_strays): other endpoints share the addresses, and a
    /// stateless reset has no connection ID that would tell whose it is (RFC 9000 §10.3).
    Kept,
}

impl EndpointConfig {
    /// The connections that can be told apart: without connection IDs, one.
    pub(super) fn most_connections(&self) -> usize {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-5.1
        //# An endpoint MUST NOT use the same IP address and port for multiple concurrent connections with
        //# zero-length connection IDs
        if self.id_length == 0 { self.max_connections.min(1) } else { self.max_connections }
    }
}

impl Default for EndpointConfig {
    fn default() -> Self {
        Self {
            id_length: 8,
            ids: None,
            replay: None,
            max_connections: 20_000,
            max_handshaking: 1_000,
            reset_key: None,
            token_key: None,
            used_tokens: None,
            epoch: Duration::ZERO,
            resets_per_second: 100,
            negotiations_per_second: 1_000,
            strays: Strays::default(),
            memory: None,
        }
    }
}

/// The cases in which a server has clients prove their address before it spends anything on them, at the cost of a
/// round trip (RFC 9000 §8.1.2). Clients that come with a valid token have done so already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetryPolicy {
    /// Never.
    Never,
    /// Always.
    Always,
    /// While at least so many handshakes are not complete, or there are as many of them or of connections as there may be.
    WhenBusy(usize),
}

impl Default for RetryPolicy {
    /// From 250 handshakes on: a quarter of what an endpoint admits by default.
    fn default() -> Self {
        Self::WhenBusy(250)
    }
}

/// The configuration of a server's connections.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Certificate, key and application protocols.
    pub tls: ServerTls,
    /// Limits and the scheduler.
    pub transport: Arc<TransportConfig>,
    /// The cases in which clients have to prove their address first.
    pub retry: RetryPolicy,
    /// The application's decision about each client, if it makes one; `retry` then is a proposal.
    pub admission: Option<Admission>,
}

/// The configuration of a client's connection.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Verification and application protocols.
    pub tls: ClientTls,
    /// Limits and the scheduler.
    pub transport: Arc<TransportConfig>,
    /// A token of an earlier connection to the same server that this endpoint does not know of (RFC 9000 §8.1.3). Those
    /// of its own connections it keeps and uses by itself.
    pub token: Option<Bytes>,
}

impl ServerConfig {
    /// A server with this TLS and this transport, and the defaults for everything else.
    pub fn new(tls: ServerTls, transport: Arc<TransportConfig>) -> Self {
        Self { tls, transport, retry: RetryPolicy::default(), admission: None }
    }
}

impl ClientConfig {
    /// A client with this TLS and this transport, and the defaults for everything else.
    pub fn new(tls: ClientTls, transport: Arc<TransportConfig>) -> Self {
        Self { tls, transport, token: None }
    }
}
