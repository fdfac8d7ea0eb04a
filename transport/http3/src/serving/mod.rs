//! HTTP/3 for servers that have much to do: requests and responses without `h3`.
//!
//! It does what [`h3::server`] does, in the same order, with fewer steps: a request that came whole is read at once, and a
//! response that is there goes out whole. Dynamic tables compress fields both ways (RFC 9204). There is no push. Clients may ask for any protocol with
//! extended CONNECT (`h3` 0.0.8 knows two).
//!
//! ```
//! # async fn serve(connection: hvq::Connection) -> Result<(), Box<dyn std::error::Error>> {
//! # use std::future::pending;
//! # use std::time::Duration;
//! # const PATIENCE: Duration = Duration::from_secs(10);
//! let server = hvq_h3::serving::Server::new(connection, Default::default()).await?;
//! let answer = |incoming: hvq_h3::serving::Incoming| async move {
//!     let Ok((request, mut sending, _body)) = incoming.request(PATIENCE).await else { return };
//!     println!("{}", request.uri());
//!     sending.may_pause(PATIENCE);
//!     let _gone = sending.whole(&http::Response::new(()), "hello".into()).await;
//! };
//! server.run(pending(), || PATIENCE, answer).await;
//! # Ok(())
//! # }
//! ```
//!
//! [`ExtendedConnect`](crate::client::ExtendedConnect) is the other end of such a tunnel: one extended CONNECT for a protocol of any name.

mod compression;
pub(crate) mod control;
pub(crate) mod receiving;
mod request;
pub(crate) mod response;
mod running;
pub(crate) mod sending;
pub(crate) mod shared;

pub use receiving::{ReceiveError, Receiving};
pub use request::Protocol;
pub use sending::{SendError, Sending};

use crate::{Priorities, priority, qpack};
use bytes::Bytes;
use h3::error::Code;
use h3::quic::StreamId;
use http::{Request, Response, StatusCode};
use hvq::transport::wire::varint;
use hvq::{ConnectionError, WriteError};
use shared::Shared;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Tells whether tunnels are taken: extended CONNECT (RFC 9220) and HTTP datagrams (RFC 9297).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tunnels {
    /// No.
    #[default]
    None,
    /// Yes.
    Taken,
}

/// The settings that an endpoint announces (RFC 9114 §7.2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The largest field section that is accepted, in bytes: names, values and 32 for each field (RFC 9114 §4.2.2).
    /// Default: 32 KiB.
    pub max_field_section_size: u64,
    /// The maximum number of encoded bytes that a connection may have sent of field sections that are not whole or not
    /// read yet, over all its requests. A request that goes beyond is reset with H3_REQUEST_REJECTED. Default: 512 KiB.
    pub max_unread_fields: u64,
    /// Acceptance of tunnels: extended CONNECT and HTTP datagrams. Default: none.
    pub tunnels: Tunnels,
    /// The dynamic table that the peer may fill, and the streams that it may block (RFC 9204 §5). Default: 4096 bytes, which take
    /// up to 16 KiB of the connection's account of memory once the peer sets a capacity, and 16 streams.
    pub qpack: qpack::Limits,
    /// The use of the table that the peer offers. Default: up to 4096 bytes, with no reference that could block a stream.
    pub encoder: qpack::Policy,
}

impl Default for Settings {
    /// Field sections of 32 KiB, 512 KiB of them unread, no tunnels, and dynamic tables of 4096 bytes.
    fn default() -> Self {
        Self {
            max_field_section_size: 32 << 10,
            max_unread_fields: 512 << 10,
            tunnels: Tunnels::None,
            qpack: qpack::Limits { max_table_capacity: 4096, max_blocked_streams: 16 },
            encoder: qpack::Policy::default(),
        }
    }
}

impl Settings {
    /// The beginning of the control stream: its type and SETTINGS. `chance` selects what is said only so that peers stay used
    /// to what they do not know (RFC 9114 §7.2.4.1, §7.2.8): a reserved setting, and a reserved frame behind.
    fn stream(self, chance: u64) -> Vec<u8> {
        let [setting, value, kind, ..] = chance.to_be_bytes().map(u64::from);
        let mut payload = Vec::new();
        let mut say = |identifier: u64, value: u64| {
            varint::put(&mut payload, identifier);
            varint::put(&mut payload, value);
        };
        say(0x06, self.max_field_section_size.min(varint::MAX));
        if self.qpack.max_table_capacity > 0 {
            say(0x01, self.qpack.max_table_capacity.min(varint::MAX));
            say(0x07, self.qpack.max_blocked_streams.min(varint::MAX));
        }
        if self.tunnels == Tunnels::Taken {
            say(0x08, 1);
            say(0x33, 1);
        }
        say(reserved(setting), value);
        let mut stream = vec![0x00, 0x04];
        varint::put(&mut stream, payload.len() as u64);
        stream.append(&mut payload);
        varint::put(&mut stream, reserved(kind));
        varint::put(&mut stream, 0);
        stream
    }
}

/// An identifier without a meaning.
const fn reserved(number: u64) -> u64 {
    0x1f * number + 0x21
}

/// The request of an encoded field section (RFC 9204 §4.5, RFC 9114 §4.3), as [`Incoming::request`] has it from a stream.
///
/// # Errors
/// The code that ends the stream or the connection: the section refers to a dynamic table or is none, is larger than `limit`
/// bytes (RFC 9114 §4.2.2), or is no request.
pub fn request(section: Bytes, limit: u64) -> Result<Request<()>, Code> {
    let fields = qpack::read(section, limit).map_err(|error| match error {
        qpack::SectionError::Malformed => Code::QPACK_DECOMPRESSION_FAILED,
        qpack::SectionError::TooLarge => Code::H3_EXCESSIVE_LOAD,
    })?;
    request::request(fields).map_err(|_| Code::H3_MESSAGE_ERROR)
}

/// A client's connection. Dropping it closes the connection with H3_NO_ERROR.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    control: hvq::SendStream,
    /// The first ID beyond those of requests that were accepted.
    next: u64,
}

impl Drop for Server {
    fn drop(&mut self) {
        // RFC 9114 §6.2.1: the control stream, which is dropped next, must not be seen to end before the connection does.
        self.shared.connection.close(Code::H3_NO_ERROR.value(), b"");
    }
}

impl Server {
    /// HTTP/3 on `connection`, whose handshake agreed on the application protocol [`ALPN`](crate::ALPN).
    ///
    /// # Errors
    /// The connection ended.
    pub async fn new(connection: hvq::Connection, settings: Settings) -> Result<Self, ConnectionError> {
        let (shared, control) = Shared::begin(connection, settings).await?;
        Ok(Self { shared, control, next: 0 })
    }

    /// Reads the client's control streams until the connection ends; to be run beside the rest. A client that breaks the
    /// protocol there loses the connection.
    pub fn watch(&self) -> impl Future<Output = ()> + Send + 'static {
        shared::watch(self.shared.clone())
    }

    /// Returns the handle that sets the priorities of responses.
    pub fn priorities(&self) -> Priorities {
        self.shared.priorities.clone()
    }

    /// The next request.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn accept(&mut self) -> Result<Incoming, ConnectionError> {
        let (send, receive) = self.shared.connection.accept_bi().await?;
        self.next = self.next.max(send.id().0.saturating_add(4));
        let sending = Sending::new(send, self.shared.clone());
        Ok(Incoming { sending, receiving: Receiving::new(receive, self.shared.clone()) })
    }

    /// Tells the client that no more requests are accepted than were (GOAWAY, RFC 9114 §5.2).
    ///
    /// # Errors
    /// The connection ended.
    pub async fn go_away(&mut self) -> Result<(), WriteError> {
        let mut id = Vec::new();
        varint::put(&mut id, self.next);
        let frame = [&[0x07, id.len() as u8][..], &id].concat();
        self.control.write_all(&frame).await
    }
}

/// A request that begins.
#[derive(Debug)]
pub struct Incoming {
    sending: Sending,
    receiving: Receiving,
}

impl Incoming {
    /// The stream's ID.
    pub fn id(&self) -> StreamId {
        self.sending.id()
    }

    /// Refuses the request without having looked at it, so that it may be made again elsewhere (RFC 9114 §4.1.1).
    pub fn reject(mut self) {
        self.receiving.stop(Code::H3_REQUEST_REJECTED);
        self.sending.reset(Code::H3_REQUEST_REJECTED);
    }

    /// Receives the header section, for which the client has as long as `patience`, and gives the response the priority that
    /// it asks for (RFC 9218 §5).
    ///
    /// # Errors
    /// There is no request: the stream was reset, or answered with 431, or the connection closed, as RFC 9114 §4.1.2 and
    /// §4.2.2 have it. A header section that is late is reset with H3_REQUEST_INCOMPLETE.
    pub async fn request(
        self,
        patience: Duration,
    ) -> Result<(Request<()>, Sending, Receiving), ReceiveError> {
        let Self { mut sending, mut receiving } = self;
        let section = poll_fn(|context| receiving.poll_head(context));
        let late = ReceiveError::Malformed(Code::H3_REQUEST_INCOMPLETE, "the header section took too long");
        let section = timeout(patience, section).await.unwrap_or(Err(late));
        let request = section.and_then(|section| Ok(request::request(section)?));
        match request {
            Ok(request) => {
                if request.headers().contains_key(priority::PRIORITY) {
                    sending.set_priority(priority::parse(request.headers()));
                }
                Ok((request, sending, receiving))
            }
            Err(error) => {
                match &error {
                    ReceiveError::Malformed(code, _) => {
                        receiving.stop(*code);
                        sending.reset(*code);
                    }
                    ReceiveError::TooLarge => {
                        let mut head = Response::new(());
                        *head.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
                        // Who does not take it is none the wiser.
                        let _gone = sending.whole(&head, Bytes::new()).await;
                    }
                    ReceiveError::Lost(_) | ReceiveError::Violation(..) => {}
                }
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_reserved_ones_and_a_reserved_frame_follows() {
        for (chance, said) in [
            (0, &[0x00, 0x04, 12, 0x06, 0x80, 0, 0x80, 0, 0x01, 0x50, 0, 0x07, 16, 0x21, 0][..]),
            (
                0x01_02_03 << 40,
                &[0x00, 0x04, 13, 0x06, 0x80, 0, 0x80, 0, 0x01, 0x50, 0, 0x07, 16, 0x40, 0x40, 2],
            ),
        ] {
            let frame: &[u8] = if chance == 0 { &[0x21, 0] } else { &[0x40, 0x7e, 0] };
            assert_eq!(Settings::default().stream(chance), [said, frame].concat());
        }
    }
}
