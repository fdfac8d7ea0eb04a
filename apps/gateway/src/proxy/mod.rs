//! A proxy on the user's machine: it takes HTTP requests, CONNECT, SOCKS5 and, with a certificate, all of that over TLS and
//! HTTP/2, on one port, and carries it to a gateway over all channels.
//!
//! Browsers send the `priority` header (RFC 9218) over HTTP/2 only, so a proxy that is asked over TLS learns how urgent each
//! request is; the gateway's scheduler heeds it. The content of a tunnel is encrypted, and its requests are not seen.

mod carry;
mod http;
mod link;
mod listener;
mod metrics;
mod pac;
mod socks;

pub use link::{GatewayAddress, Link, LinkError, LinkOptions, TokenError, token};
pub use listener::{Proxy, ProxyError, ProxyOptions, TlsIdentity};
