//! The traits of web-transport-trait over hvq.
//!
//! A [`Session`] is a connection of hvq whose streams and datagrams are used as those of WebTransport, without HTTP/3 around them: raw QUIC, with
//! the protocol that ALPN agreed on. Protocols that were written against [`web_transport_trait`] take it as it is; paths are opened and watched by
//! [`Session::hvq`]. Priorities reach the scheduler, and so do messages with deadlines, of which the traits know nothing:
//! [`SendStream::end_message`].

#![forbid(unsafe_code)]

mod error;
mod recv_stream;
mod send_stream;
mod session;

pub use error::Error;
pub use recv_stream::RecvStream;
pub use send_stream::SendStream;
pub use session::{Session, SessionStats};

/// The traits.
pub use web_transport_trait;

/// The snippet of the README, compiled by `cargo test`.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
