//! The traits of hyperium's `h3` over hvq, for programs that were written for it.
//!
//! A program written for hyperium's `h3` runs on hvq by changing the line that wraps the QUIC connection:
//!
//! ```
//! # async fn requests(connection: hvq::Connection) -> Result<(), h3::error::ConnectionError> {
//! // With quinn this line is `h3_quinn::Connection::new(connection)`.
//! let connection = hvq_h3::adapter::Connection::new(connection);
//! let (driver, requests) = h3::client::new(connection).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The QUIC connection must have agreed on the application protocol [`ALPN`](crate::ALPN).
//!
//! # Priorities
//! On a server, [`resolve`] (or [`Priorities::apply`]) gives a response the urgency that its request asks for with a
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
//!
//! # Absent
//! Server push, which `h3` does not have. 0-RTT. Dynamic tables of QPACK.

mod bidi_stream;
mod connection;
mod error;
mod recv_stream;
mod send_stream;
mod server;

pub use crate::{Priorities, UnknownStream};
pub use bidi_stream::BidiStream;
pub use connection::{Connection, OpenStreams};
pub use recv_stream::RecvStream;
pub use send_stream::{SendStream, Unsent};
pub use server::resolve;
