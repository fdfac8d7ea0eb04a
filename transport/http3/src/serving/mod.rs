//! HTTP/3 for servers (RFC 9114).
//!
//! A request that came whole is read at once, and a
//! response that is there goes out whole. Dynamic tables compress fields both ways (RFC 9204). There is no push. Clients may ask for any protocol with
//! extended CONNECT.
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
//! [`Client`](crate::client::Client) is the other end.

mod running;
mod settled;

use crate::protocol::request;
use crate::protocol::sessions::Unsorted;
use crate::protocol::shared::{self, Shared};
use crate::{Code, Origin, Priorities, ReceiveError, Receiving, Sending, Settings, qpack};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use hvq::{ConnectionError, StreamId};
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::timeout;

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
    /// The first ID beyond those of requests that were accepted.
    next: u64,
    /// Streams that may belong to WebTransport sessions.
    unsorted: Unsorted,
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
        Ok(Self {
            shared: Shared::begin(connection, settings).await?,
            next: 0,
            unsorted: Unsorted::default(),
        })
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

    /// Tells the client that it may ask for `origins` over this connection, beside the one that it was made for (ORIGIN frame, RFC 9412);
    /// none says that there are no others. A client that takes the frame asks for those alone whose host the certificate is for. To be
    /// called before requests are answered, and again when there are more.
    pub fn announce(&self, origins: &[Origin]) {
        self.shared.announce(origins);
    }

    /// The next request.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn accept(&mut self) -> Result<Incoming, ConnectionError> {
        let (send, receive, begun) = if self.shared.web_transport().is_none() {
            let (send, receive) = self.shared.connection.accept_bi().await?;
            (send, receive, Bytes::new())
        } else {
            let Self { shared, unsorted, .. } = self;
            poll_fn(|context| unsorted.poll_request(shared, context)).await?
        };
        self.next = self.next.max(send.id().0.saturating_add(4));
        let sending = Sending::new(send, self.shared.clone());
        Ok(Incoming { sending, receiving: Receiving::begun(receive, begun, self.shared.clone()) })
    }

    /// Tells the client that no more requests are accepted than were (GOAWAY, RFC 9114 §5.2).
    pub fn go_away(&self) {
        //= https://www.rfc-editor.org/rfc/rfc9114#section-5.2
        //# An endpoint MAY send multiple GOAWAY frames indicating different identifiers, but the identifier in
        //# each frame MUST NOT be greater than the identifier in any previous frame, since clients might
        //# already have retried unprocessed requests on another HTTP connection.
        self.shared.go_away(self.next);
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
        //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1.1
        //# Servers MUST NOT use the H3_REQUEST_REJECTED error code for requests that were partially or fully
        //# processed.
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
        let head = poll_fn(|context| receiving.poll_request(context));
        let late = ReceiveError::Malformed(Code::H3_REQUEST_INCOMPLETE, "the header section took too long");
        match timeout(patience, head).await.unwrap_or(Err(late)) {
            Ok(request) => {
                sending.apply_priority(request.headers());
                Ok((request, sending, receiving))
            }
            Err(error) => {
                match &error {
                    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1.2
                    //# Malformed requests or responses that are detected MUST be treated as a stream error of type
                    //# H3_MESSAGE_ERROR.
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
                    ReceiveError::WrongLength { .. } => sending.reset(Code::H3_MESSAGE_ERROR),
                    ReceiveError::Lost(_) | ReceiveError::Violation(..) | ReceiveError::Refused => {}
                }
                Err(error)
            }
        }
    }
}

impl Receiving {
    /// The request, and what came with it.
    fn poll_request(&mut self, context: &mut Context<'_>) -> Poll<Result<Request<()>, ReceiveError>> {
        let section = ready!(self.poll_section(context))?;
        let request = request::request(section)?;
        // The bytes of a tunnel have no length in advance (RFC 9110 §8.6).
        if request.method() != Method::CONNECT {
            self.expect_length(request.headers())?;
        }
        self.peek(context)?;
        Poll::Ready(Ok(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_of_a_section_is_read_or_refused_with_its_code() {
        // RFC 9204 §4.5 and appendix A: a prefix without a dynamic table, GET, https, `/` and an authority.
        let get = [&[0, 0, 0xd1, 0xd7, 0xc1, 0x50, 9][..], b"localhost"].concat();
        let read = |section: &[u8], limit| request(Bytes::copy_from_slice(section), limit);
        let request = read(&get, 1_000).expect("it is one");
        assert_eq!(
            (request.method(), request.uri().to_string().as_str()),
            (&Method::GET, "https://localhost/")
        );
        for (section, limit, code) in [
            (&get[..], 100, Code::H3_EXCESSIVE_LOAD),
            (&get[..10], 1_000, Code::QPACK_DECOMPRESSION_FAILED),
            (&get[..4], 1_000, Code::H3_MESSAGE_ERROR),
        ] {
            assert_eq!(read(section, limit).err(), Some(code), "{section:?}");
        }
    }
}
