//! HTTP/3 over hvq (RFC 9114): clients and servers, with priorities that the scheduler heeds.
//!
//! [`client`] asks and [`serving`] answers. Both compress fields with dynamic tables both ways (RFC 9204), take HTTP datagrams
//! ([`Datagrams`], [`Capsules`]; RFC 9297) and extended CONNECT for protocols of any name (RFC 9220). There is no server push.
//! [`web_transport`] has sessions of WebTransport over HTTP/3.
//! A program written for hyperium's crate `h3` finds its traits in [`adapter`].
//!
//! ```
//! # async fn requests(connection: hvq::Connection) -> Result<(), Box<dyn std::error::Error>> {
//! let client = hvq_h3::client::Client::new(connection, Default::default()).await?;
//! tokio::spawn(client.watch());
//! let request = http::Request::get("https://localhost/").body(())?;
//! let (_sending, mut receiving) = client.whole(&request, Default::default()).await?;
//! println!("{}", receiving.response().await?.status());
//! while let Some(data) = receiving.data().await? {
//!     println!("{} bytes", data.len());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Priorities
//! A response has the urgency that its request asks for with a `priority` header (RFC 9218 §5), or later with a PRIORITY_UPDATE
//! frame (§7); the scheduler then decides which channel carries it. The control stream and the QPACK streams have urgency 0.
//!
//! # Several origins
//! A server names the origins that its connection is for beside the one that it was made for ([`Server::announce`](serving::Server::announce),
//! the ORIGIN frame of RFC 9412), and a client asks [`Client::serves`](client::Client::serves) before it uses the connection for them.
//!
//! # How streams end when they are dropped
//! - A [`Receiving`] that is dropped before its end sends STOP_SENDING: with H3_NO_ERROR from a server, which may answer
//!   without reading the request (RFC 9114 §4.1), and with H3_REQUEST_CANCELLED from a client (§4.1.1). Never code 0.
//! - A [`Sending`] that is dropped without `finish` is finished if whole frames were written. It is reset with
//!   H3_REQUEST_CANCELLED if nothing was written or a frame is incomplete, which the peer would have to punish by closing
//!   the connection (§7.1), and with H3_INTERNAL_ERROR if its thread panics, so that half a message never looks whole.
//! - A dropped [`Client`](client::Client) or [`Server`](serving::Server) closes the connection with H3_NO_ERROR, because HTTP/3
//!   cannot go on without its control stream (§6.2.1).

pub mod adapter;
pub mod capsules;
pub mod client;
mod code;
mod datagrams;
pub mod hop_by_hop;
mod origin;
pub mod priority;
mod protocol;
pub mod qpack;
pub mod serving;
pub mod web_transport;

pub use capsules::Capsules;
pub use code::Code;
pub use datagrams::{Datagrams, Flow, Outcome};
pub use origin::{InvalidOrigin, Origin};
pub use protocol::fields::{InvalidLength, content_length};
pub use protocol::priorities::{Priorities, UnknownStream};
pub use protocol::receiving::{ReceiveError, Receiving};
pub use protocol::request::Protocol;
pub use protocol::sending::{SendError, Sending};
pub use protocol::settings::{Settings, Tunnels};

pub use hvq;
pub use hvq::Priority;

/// The application protocol of HTTP/3 (RFC 9114 §3.1).
pub const ALPN: &[u8] = b"h3";
