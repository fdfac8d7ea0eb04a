//! The gateway over TCP: TLS with HTTP/2 and HTTP/1.1, for clients that do not know yet that there is HTTP/3, and those that UDP does
//! not reach.
//!
//! A request becomes one like those of HTTP/3 ([`head`]) and goes the same way ([`crate::request`]): hosts, files, origins, limits, log and
//! metrics are the same. Responses announce HTTP/3 (RFC 7838), so that browsers come back over it. Tunnels and going through the gateway
//! are for HTTP/3 alone.

mod connection;
mod head;
mod listener;
mod plain;
mod tls;

pub(crate) use listener::{TcpListeners, TcpState};
