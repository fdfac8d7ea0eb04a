//! A gateway: it terminates multipath QUIC with HTTP/3, and hands requests on to origins over HTTP/1.1, HTTP/2 without TLS
//! (h2c) or TLS, serves files itself, and lets those who show a token go through it to other hosts.
//!
//! [`proxy`] is the other end, on the user's machine. `hvq_program::server` serves content without the rest of a gateway.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let config = hvq_gateway::Config::load(Some("gateway.toml".as_ref()), &Default::default())?;
//! let gateway = hvq_gateway::Gateway::start(config).await?;
//! println!("listening on {:?}", gateway.local_addrs());
//! gateway.stop().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Over TCP
//! With `[tcp]` it takes HTTP/2 and HTTP/1.1 over TLS, too, for the same hosts, and announces HTTP/3 there (RFC 7838). What follows is true of
//! all protocols, but for going through.
//!
//! # What an origin is told
//! - `host`: what the client asked for, or with `host_header = "origin"` the host of the origin's URL.
//! - `forwarded` (RFC 7239), `x-forwarded-for`, `x-forwarded-host`, `x-forwarded-proto`: the client's address is that of its
//!   open path of smallest ID. A connection may have several, all proved to be the same client's. Fields of these names
//!   that clients send are dropped.
//! - `via` (RFC 9110 §7.6.3), which nginx takes as a reason not to compress unless `gzip_proxied any` is set.
//! - `priority` (RFC 9218) as the client sent it; a `priority` in the response goes before it.
//! - `early-data: 1` with requests that came in 0-RTT (RFC 8470); methods that are not safe wait for the handshake.
//!
//! # What is not carried
//! Interim responses other than `100 Continue`, upgrades other than to WebSocket, `te`, and trailers of requests that no `trailer` field announces.
//!
//! # One of many
//! With `workers`, several endpoints share the addresses: the kernel gives each datagram to the one that its connection ID
//! belongs to, so that all paths of a connection meet. With `[quic_lb]`, connection IDs tell load balancers which machine they
//! belong to (draft-ietf-quic-load-balancers).
//!
//! # Who gives way
//! Connections, handshakes under way, requests and tunnels are limited over all clients together (`[limits]`). As long as there are
//! enough, any client has as many as it likes, as those of a company or of a provider behind one address may. Once all are taken, a
//! newcomer that has less takes one of the network that has the most (a /24 of IPv4, a /56 of IPv6), and there of the address (of IPv6
//! the /64) that has the most: requests end with H3_EXCESSIVE_LOAD, connections with CONNECTION_REFUSED. Requests and
//! tunnels that go through count to the token or the certificate in place of the network, wherever it is shown. A
//! newcomer that has the most itself gets 503, or no answer to its handshake.
//!
//! # Going through
//! `CONNECT` (RFC 9114 §4.4), UDP (RFC 9298), and requests for `http` URLs of hosts that are not configured, are for those who show a token
//! of the file in `proxy-authorization: Bearer TOKEN`, and for those whose certificate, shown in the handshake, goes back to
//! `proxy.client_ca` and has one of the names in `proxy.clients`. With `[tunnel]` they get IP packets through too (RFC 9484), to the
//! networks that it names, by a TUN device of this machine (Linux, root). Nobody gets to loopback, private, link-local and other addresses
//! that are not of the public internet unless the network is named in `proxy.reach`.

mod acceptor;
mod access;
mod admin;
mod announced;
mod clients;
mod compression;
pub mod configuration;
#[cfg_attr(not(target_os = "linux"), path = "connect_ip_elsewhere.rs")]
mod connect_ip;
mod connection;
pub mod destination_policy;
mod fields;
mod gateway;
mod health;
pub mod keys;
mod listening;
mod metrics;
mod origin;
pub mod proxy;
mod request;
pub mod service;
#[cfg_attr(not(target_os = "linux"), path = "service_manager_elsewhere.rs")]
pub mod service_manager;
mod tcp;
mod tokens;
mod tunnel;
mod udp;
mod virtual_host;
mod websocket;

pub use acceptor::AcceptorError;
pub use clients::Clients;
pub use compression::ContentCoding;
pub use configuration::{Config, ConfigError, Overrides};
pub use gateway::{Gateway, Pulse, StartError, check};
pub use health::Broken;
pub use tokens::Tokens;
