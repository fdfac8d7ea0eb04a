//! A tunnel for IP packets over all channels of a multipath QUIC connection: CONNECT-IP (RFC 9484) with HTTP datagrams.
//!
//! What DChannel does below the transport (NSDI 2023), as a product: programs need not know. Each packet is a datagram, and
//! the connection's scheduler gives it to a channel; [`importance`] recognises what is small and waited for, SYN, ACK, name
//! lookups and short exchanges, and makes it urgent; [`order`] numbers packets by flow and puts them in order again.
//!
//! Closed by default: a [`server::Server`] has no token and no route unless it is given some.
//!
//! # Where it differs from RFC 9484
//! The `:protocol` of requests is `connect-udp`, because the HTTP/3 library refuses `connect-ip`; the path, which begins
//! with `/.well-known/masque/ip/`, tells them apart. Tunnels of other makers do not understand this.
//!
//! Linux only.
#![cfg(target_os = "linux")]

pub mod capsule;
pub mod client;
pub mod device;
pub mod importance;
pub mod order;
mod outbound;
pub mod prefix;
pub mod server;
mod session;

pub use client::{Client, ClientError};
pub use device::AsyncDevice;
pub use prefix::Prefix;
pub use server::{Server, ServerOptions};
