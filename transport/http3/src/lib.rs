//! HTTP/3 over hvq: the h3 traits, with RFC 9218 priorities mapped onto the scheduler.
//!
//! A program written for hyperium's `h3` runs on hvq by changing the line that wraps the QUIC connection:
//!
//! ```
//! # async fn requests(connection: hvq::Connection) -> Result<(), h3::error::ConnectionError> {
//! // With quinn this line is `h3_quinn::Connection::new(connection)`.
//! let connection = hvq_h3::Connection::new(connection);
//! let (driver, requests) = h3::client::new(connection).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The QUIC connection must have agreed on the application protocol [`ALPN`].
//!
//! # Priorities
//! On a server, [`server::resolve`] (or [`Priorities::apply`]) gives a response the urgency that its request asks for with a
//! `priority` header (RFC 9218 §5); the scheduler then decides which channel carries it. The control stream and the QPACK
//! streams have urgency 0. PRIORITY_UPDATE frames (RFC 9218 §7) are ignored, because `h3` drops frames that it does not
//! know (RFC 9114 §9) without showing them to the layer below.
//!
//! # Messages
//! The end of a request or response is the end of a stream, and the transport takes the end of a stream as the end of a
//! message, known as soon as `finish` is called. A `content-length` is not declared to the scheduler in advance: `h3` hands
//! over frames, not headers.
//!
//! # How streams end when they are dropped
//! - A receiving half that is dropped before its end sends STOP_SENDING: with H3_NO_ERROR from a server, which may answer
//!   without reading the request (RFC 9114 §4.1), and with H3_REQUEST_CANCELLED from a client (§4.1.1). Never code 0.
//! - A sending half that is dropped without `finish` is finished if whole frames were written. It is reset with
//!   H3_REQUEST_CANCELLED if nothing was written or a frame is incomplete, which the peer would have to punish by closing
//!   the connection (§7.1), and with H3_INTERNAL_ERROR if its thread panics, so that half a response never looks whole.
//! - A dropped [`Connection`] is closed with H3_NO_ERROR, because HTTP/3 cannot go on without its control stream
//!   (§6.2.1). `h3` owns it: for a client it lives as long as the driver that [`h3::client::new`] returns.
//!
//! # Datagrams
//! HTTP datagrams (RFC 9297) are [`Datagrams`] and [`Capsules`], beside `h3`, whose builders say in SETTINGS that they are taken.
//! (`h3-datagram` 0.0.2 writes quarter stream ID 0 into all of them, whatever their stream.)
//!
//! # Without `h3`
//! [`serving`] is HTTP/3 for servers that answer many requests, with fewer steps for each. It takes part in priorities and
//! datagrams in the same way.
//!
//! # Absent
//! Server push, which `h3` does not have. 0-RTT.

mod bidi_stream;
pub mod capsules;
pub mod client;
mod connection;
mod datagrams;
mod error;
pub mod hop_by_hop;
mod priorities;
pub mod priority;
pub mod qpack;
mod recv_stream;
mod send_stream;
pub mod server;
pub mod serving;

pub use bidi_stream::BidiStream;
pub use capsules::Capsules;
pub use connection::{Connection, OpenStreams};
pub use datagrams::{Datagrams, Flow, Outcome};
pub use priorities::{Priorities, UnknownStream};
pub use recv_stream::RecvStream;
pub use send_stream::{SendStream, Unsent};

pub use hvq;
pub use hvq::Priority;

/// The application protocol of HTTP/3 (RFC 9114 §3.1).
pub const ALPN: &[u8] = b"h3";
