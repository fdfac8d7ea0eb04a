//! The response to a client.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hvq_h3::Code;
use hvq_h3::{SendError, Sending};
use std::time::Duration;

/// Bytes of a body that are read at a time.
const PIECE: usize = 64 << 10;

/// The response to a client. One that is dropped before its end is reset, so that it is never taken for whole
/// (RFC 9114 §4.1).
pub(crate) struct Reply {
    stream: Sending,
    stage: Stage,
    /// The status, once it was sent.
    pub(crate) status: Option<StatusCode>,
    /// Bytes of the body that were sent.
    pub(crate) bytes: u64,
    /// True if the request asks for no body.
    bodiless: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Open,
    Over,
}

impl Reply {
    /// The response to a request of `method` on `stream`, to a client that may pause for `idle`.
    pub(crate) fn new(mut stream: Sending, method: &Method, idle: Duration) -> Self {
        stream.may_pause(idle);
        Self { stream, stage: Stage::Open, status: None, bytes: 0, bodiless: *method == Method::HEAD }
    }

    /// Sends status and fields.
    pub(crate) async fn head(&mut self, head: Response<()>) -> Result<(), SendError> {
        let status = head.status();
        self.stream.head(&head).await?;
        if !status.is_informational() {
            self.status = Some(status);
        }
        Ok(())
    }

    /// Sends a response that is there as a whole.
    pub(crate) async fn whole(&mut self, head: Response<()>, body: Bytes) -> Result<(), SendError> {
        let length = body.len() as u64;
        self.stream.whole(&head, body).await?;
        (self.status, self.bytes, self.stage) = (Some(head.status()), length, Stage::Over);
        Ok(())
    }

    /// Says how many bytes of the body will come: they are sent in one frame.
    pub(crate) async fn announce(&mut self, length: u64) -> Result<(), SendError> {
        self.stream.announce(length).await?;
        Ok(())
    }

    /// Returns true if the client takes `bytes` now.
    pub(crate) async fn has_room(&mut self, bytes: usize) -> bool {
        self.stream.has_room(bytes).await
    }

    /// Waits until the client takes a part of the body, and returns how many bytes, a piece at most.
    pub(crate) async fn room(&mut self) -> Result<usize, SendError> {
        self.stream.room(PIECE).await
    }

    /// Sends a piece of the body, as fast as the client takes it.
    pub(crate) async fn data(&mut self, data: Bytes) -> Result<(), SendError> {
        let length = data.len() as u64;
        self.stream.data(data).await?;
        self.bytes += length;
        Ok(())
    }

    /// Sends trailers.
    pub(crate) async fn trailers(&mut self, trailers: HeaderMap) -> Result<(), SendError> {
        self.stream.trailers(&trailers).await?;
        Ok(())
    }

    /// Ends the response.
    pub(crate) async fn finish(&mut self) -> Result<(), SendError> {
        self.stream.finish().await?;
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
    ) -> Result<(), SendError> {
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
