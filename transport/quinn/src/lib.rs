//! The API of quinn over hvq.
//!
//! A program that was written for quinn 0.11 gets multipath QUIC by one line: `use hvq_quinn as quinn;`, or
//! `quinn = { package = "hvq-quinn", … }` among its dependencies. Types, methods and errors have quinn's names and shapes; behind
//! them are [`hvq`]'s, which [`Connection::hvq`] and [`TransportConfig::hvq`] show: paths are opened and watched there.
//!
//! TLS is BoringSSL's, and its configurations are shapes of our own in [`rustls`]: certificates and keys in DER, roots, application
//! protocols, key logs, 0-RTT. With the feature `rustls`, which is off by default, configurations of the crate rustls are taken as well, and
//! rustls does their handshakes; 0-RTT is BoringSSL's alone.

#![forbid(unsafe_code)]

mod config;
pub mod congestion;
mod connection;
mod connection_ids;
pub mod crypto;
mod endpoint;
mod error;
mod ids;
mod incoming;
mod recv_stream;
mod runtime;
pub mod rustls;
#[cfg(feature = "rustls")]
mod rustls_session;
mod send_stream;
mod stats;
mod transport;
mod varint;

pub use config::{ClientConfig, EndpointConfig, ServerConfig};
pub use connection::{Connecting, Connection, ZeroRttAccepted};
pub use connection_ids::{ConnectionId, ConnectionIdGenerator, RandomConnectionIdGenerator};
pub use endpoint::Endpoint;
pub use error::{
    ApplicationClose, ClosedStream, ConfigError, ConnectError, ConnectionClose, ConnectionError, ReadError,
    ReadExactError, ReadToEndError, ResetError, SendDatagramError, StoppedError, TransportError,
    TransportErrorCode, WriteError,
};
pub use ids::{Dir, Side, StreamId};
pub use incoming::{Incoming, IncomingFuture, RetryError};
pub use quinn_udp as udp;
pub use recv_stream::{Chunk, RecvStream};
#[cfg(feature = "runtime-smol")]
pub use runtime::SmolRuntime;
pub use runtime::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller, default_runtime};
pub use send_stream::{SendStream, Written};
pub use stats::{ConnectionStats, PathStats, UdpStats};
pub use transport::{IdleTimeout, MtuDiscoveryConfig, TransportConfig};
pub use varint::{VarInt, VarIntBoundsExceeded};

/// The guide for programs that were written for quinn, whose snippets are compiled by `cargo test`.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/from-quinn.md")]
struct Guide;
