//! The configuration of an endpoint and of its connections.

use crate::connection::TransportConfig;
use crate::connection::config::settings::{readable, settings};
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

/// The limits and the keys of an endpoint. Each has a default and a setter.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    pub(super) id_length: usize,
    pub(super) ids: Option<Arc<dyn ConnectionIds>>,
    pub(super) replay: Option<Arc<ReplayGuard>>,
    pub(super) max_connections: usize,
    pub(super) max_handshaking: usize,
    pub(super) reset_key: Option<ResetKey>,
    pub(super) token_key: Option<TokenKey>,
    pub(super) used_tokens: Option<Arc<dyn TokenRegister>>,
    pub(super) epoch: Duration,
    pub(super) resets_per_second: u32,
    pub(super) negotiations_per_second: u32,
    pub(super) strays: Strays,
    pub(super) memory: Option<Arc<MemoryQuota>>,
}

settings! { EndpointConfig:
    /// The length of the connection IDs that this endpoint issues, in bytes: 4 to 20, or 0 at a client of one connection. Default: 8.
    set_id_length(id_length: usize);

    /// The generator of connection IDs, of its own length. Default: `None`, which draws random ones of the length that
    /// [`Self::set_id_length`] sets.
    set_ids(ids: Option<Arc<dyn ConnectionIds>>);

    /// The register of the tickets that opened 0-RTT, for several servers with the same TLS configuration, so that no
    /// two of them accept the same data (RFC 9001 §9.2). Default: `None`, which gives a server that accepts 0-RTT one of its own.
    set_replay(replay: Option<Arc<ReplayGuard>>);

    /// The maximum number of connections whose handshake is complete. Default: 20,000, of which idle ones take some 500
    /// MiB. Once there are as many, one to a network (a /24 of IPv4, a /56 of IPv6) that has few takes the place of one
    /// to the network that has the most.
    set_max_connections(max_connections: usize);

    /// The maximum number of connections of peers whose handshake is not complete, beside those. Default: 1,000. Once
    /// there are as many, one with a network that has few takes the place of the oldest with the network that has the
    /// most, and any takes that of one that lasts for more than a second; other Initials are ignored.
    set_max_handshaking(max_handshaking: usize);

    /// The key of stateless reset tokens (RFC 9000 §10.3.2). Default: `None`, which draws one from the endpoint's seed. A server
    /// that keeps its key over a restart tells the clients of before at once that their connections are gone.
    set_reset_key(reset_key: Option<ResetKey>);

    /// The key of address validation tokens (RFC 9000 §8.1). Default: `None`, which draws one from the endpoint's seed. Servers
    /// that share or keep it accept each other's tokens, each of them once, or all together once with
    /// [`Self::set_used_tokens`].
    set_token_key(token_key: Option<TokenKey>);

    /// The register of the tokens that were used, for several servers with the same key. Default: `None`, which remembers those
    /// of this endpoint's clients.
    set_used_tokens(used_tokens: Option<Arc<dyn TokenRegister>>);

    /// The time at the endpoint's first instant, since the Unix epoch: tokens are dated by it. Default: zero.
    set_epoch(epoch: Duration);

    /// The maximum number of stateless resets sent in a second (RFC 9000 §10.3.3); 0 sends none. Default: 100.
    set_resets_per_second(resets_per_second: u32);

    /// The maximum number of Version Negotiation packets sent in a second (RFC 9000 §6.1); 0 sends none. Default:
    /// 1,000.
    set_negotiations_per_second(negotiations_per_second: u32);

    /// The treatment of packets for no connection of this endpoint. Default: they are forgotten.
    set_strays(strays: Strays);

    /// The bound of memory that connections hold together, for several endpoints that share one. Default: `None`, which gives the
    /// endpoint one of its own, of [`MemoryQuota::DEFAULT`] bytes. While it is short, peers are granted less credit than
    /// [`StreamLimits`](crate::stream::StreamLimits) say, packets with more data than there is room for are dropped, and
    /// connections in which data lies unread for 10 s are closed, the one with the most first.
    set_memory(memory: Option<Arc<MemoryQuota>>);
}

readable! { EndpointConfig:
    id_length: usize;
    max_connections: usize;
    max_handshaking: usize;
    epoch: Duration;
    resets_per_second: u32;
    negotiations_per_second: u32;
    strays: Strays;
}

/// Makes a method of each setting that there may be none of.
macro_rules! optional {
    ($($name:ident: $type:ty;)*) => {
        impl EndpointConfig {
            $(
                #[doc = concat!("The value that [`Self::set_", stringify!($name), "`] sets, if any.")]
                pub fn $name(&self) -> Option<&$type> {
                    self.$name.as_ref()
                }
            )*
        }
    };
}

optional! {
    ids: Arc<dyn ConnectionIds>;
    replay: Arc<ReplayGuard>;
    reset_key: ResetKey;
    token_key: TokenKey;
    used_tokens: Arc<dyn TokenRegister>;
    memory: Arc<MemoryQuota>;
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
    pub(super) tls: ServerTls,
    pub(super) transport: Arc<TransportConfig>,
    pub(super) retry: RetryPolicy,
    pub(super) admission: Option<Admission>,
}

settings! { ServerConfig:
    /// The certificate, its key and the application protocols.
    set_tls(tls: ServerTls);

    /// The settings of connections, the scheduler among them.
    set_transport(transport: Arc<TransportConfig>);

    /// The cases in which clients have to prove their address first. Default: from 250 handshakes on.
    set_retry(retry: RetryPolicy);

    /// The application's decision about each client; what [`Self::set_retry`] sets then is a proposal. Default: `None`, which
    /// accepts all.
    set_admission(admission: Option<Admission>);
}

/// The configuration of a client's connection.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    pub(super) tls: ClientTls,
    pub(super) transport: Arc<TransportConfig>,
    pub(super) token: Option<Bytes>,
}

settings! { ClientConfig:
    /// The verification of servers and the application protocols.
    set_tls(tls: ClientTls);

    /// The settings of connections, the scheduler among them.
    set_transport(transport: Arc<TransportConfig>);

    /// The token of an earlier connection to the same server that this endpoint does not know of (RFC 9000 §8.1.3). Those
    /// of its own connections it keeps and uses by itself. Default: `None`.
    set_token(token: Option<Bytes>);
}

impl ServerConfig {
    /// A server with this TLS and this transport, and the defaults for everything else.
    pub fn new(tls: ServerTls, transport: Arc<TransportConfig>) -> Self {
        Self { tls, transport, retry: RetryPolicy::default(), admission: None }
    }

    /// The certificate, its key and the application protocols.
    pub fn tls(&self) -> &ServerTls {
        &self.tls
    }

    /// The settings of connections.
    pub fn transport(&self) -> &Arc<TransportConfig> {
        &self.transport
    }

    /// The settings of connections, to be changed one by one: those of this configuration alone.
    pub fn transport_mut(&mut self) -> &mut TransportConfig {
        Arc::make_mut(&mut self.transport)
    }
}

impl ClientConfig {
    /// A client with this TLS and this transport, and the defaults for everything else.
    pub fn new(tls: ClientTls, transport: Arc<TransportConfig>) -> Self {
        Self { tls, transport, token: None }
    }

    /// The verification of servers and the application protocols.
    pub fn tls(&self) -> &ClientTls {
        &self.tls
    }

    /// The settings of connections.
    pub fn transport(&self) -> &Arc<TransportConfig> {
        &self.transport
    }

    /// The settings of connections, to be changed one by one: those of this configuration alone.
    pub fn transport_mut(&mut self) -> &mut TransportConfig {
        Arc::make_mut(&mut self.transport)
    }
}
