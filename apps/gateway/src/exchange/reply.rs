//! The response to a client.

use bytes::Bytes;
use h3::error::Code;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hvq_h3::serving::{SendError, Sending};
use std::time::Duration;
use tokio::time::timeout;

/// Why a response did not get to the client.
#[derive(Debug)]
pub(crate) enum Unsent {
    /// The client or the network ended it.
    Stream(SendError),
    /// The client did not take anything for too long.
    Stalled,
}

impl From<SendError> for Unsent {
    fn from(error: SendError) -> Self {
        Self::Stream(error)
    }
}

/// The response to a client. One that is dropped before its end is reset, so that it is never taken for whole
/// (RFC 9114 §4.1).
pub(crate) struct Reply {
    stream: Sending,
    stage: Stage,
    idle: Duration,
    /// The status, once it was sent.
    pub(crate) status: Option<StatusCode>,
    /// Bytes of the body that were sent.
    pub(crate) bytes: u64,
    /// Whether the request asks for no body.
    bodiless: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Open,
    Over,
}

impl Reply {
    /// The response to a request of `method` on `stream`, to a client that may pause for `idle`.
    pub(crate) fn new(stream: Sending, method: &Method, idle: Duration) -> Self {
        Self { stream, stage: Stage::Open, idle, status: None, bytes: 0, bodiless: *method == Method::HEAD }
    }

    /// Sends status and fields.
    pub(crate) async fn head(&mut self, head: Response<()>) -> Result<(), Unsent> {
        let status = head.status();
        timeout(self.idle, self.stream.head(&head)).await.map_err(|_| Unsent::Stalled)??;
        if !status.is_informational() {
            self.status = Some(status);
        }
        Ok(())
    }

    /// Sends a response that is there as a whole.
    pub(crate) async fn whole(&mut self, head: Response<()>, body: Bytes) -> Result<(), Unsent> {
        let length = body.len() as u64;
        timeout(self.idle, self.stream.whole(&head, body)).await.map_err(|_| Unsent::Stalled)??;
        (self.status, self.bytes, self.stage) = (Some(head.status()), length, Stage::Over);
        Ok(())
    }

    /// Says how many bytes of the body will come: they are sent in one frame.
    pub(crate) async fn announce(&mut self, length: u64) -> Result<(), Unsent> {
        timeout(self.idle, self.stream.announce(length)).await.map_err(|_| Unsent::Stalled)??;
        Ok(())
    }

    /// Sends a piece of the body, as fast as the client takes it.
    pub(crate) async fn data(&mut self, data: Bytes) -> Result<(), Unsent> {
        let length = data.len() as u64;
        timeout(self.idle, self.stream.data(data)).await.map_err(|_| Unsent::Stalled)??;
        self.bytes += length;
        Ok(())
    }

    /// Sends trailers.
    pub(crate) async fn trailers(&mut self, trailers: HeaderMap) -> Result<(), Unsent> {
        timeout(self.idle, self.stream.trailers(&trailers)).await.map_err(|_| Unsent::Stalled)??;
        Ok(())
    }

    /// Ends the response.
    pub(crate) async fn finish(&mut self) -> Result<(), Unsent> {
        timeout(self.idle, self.stream.finish()).await.map_err(|_| Unsent::Stalled)??;
        self.stage = Stage::Over;
        Ok(())
    }

    /// Ends the stream with `code`.
    pub(crate) fn abort(&mut self, code: Code) {
        self.stage = Stage::Over;
        self.stream.reset(code);
    }

    /// Ends the stream with `code`, unless it is over.
    pub(crate) fn cut(&mut self, code: Code) {
        if self.stage == Stage::Open {
            self.abort(code);
        }
    }

    /// Answers with an error, said in words too, and `field` if there is one.
    pub(crate) async fn refuse(
        &mut self,
        status: StatusCode,
        text: &str,
        field: Option<(http::HeaderName, HeaderValue)>,
    ) -> Result<(), Unsent> {
        let body = Bytes::from(format!("{status}: {text}\n"));
        let mut head = Response::new(());
        *head.status_mut() = status;
        head.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        head.headers_mut().insert(CONTENT_LENGTH, body.len().into());
        head.headers_mut().extend(field.map(|(name, value)| (Some(name), value)));
        self.whole(head, if self.bodiless { Bytes::new() } else { body }).await
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.stage == Stage::Open {
            self.stream.reset(Code::H3_INTERNAL_ERROR);
        }
    }
}
