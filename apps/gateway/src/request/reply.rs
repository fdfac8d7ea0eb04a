//! The response to a client.

use super::channel::ResponseSender;
use bytes::Bytes;
use http::header::{ALT_SVC, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hvq_h3::Code;
use hvq_h3::{SendError, Sending};
use std::io;
use std::time::Duration;

/// Bytes of a body that are read at a time.
const PIECE: usize = 64 << 10;

/// The reason for which nothing more of a response is sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsent {
    /// HTTP/3 says so.
    #[error(transparent)]
    Http3(#[from] SendError),
    /// The client wants no more, or its connection ended.
    #[error("the client is gone")]
    Gone,
    /// The client took nothing for as long as it may pause.
    #[error("the client takes nothing")]
    Stalled,
    /// The body cannot be compressed.
    #[error("the body cannot be compressed: {0}")]
    Encoder(#[from] io::Error),
    /// Too many responses wait for their clients, and no client has more of them.
    #[error("too many responses wait for their clients")]
    Crowded,
}

impl Unsent {
    /// Returns true if the header section has more bytes than the client takes: nothing was sent.
    pub(crate) fn is_too_large(&self) -> bool {
        matches!(self, Self::Http3(SendError::HeaderTooLarge))
    }
}

/// The sending half of a response, over the transport of its request.
enum Outlet {
    /// A stream of HTTP/3.
    Http3(Sending),
    /// HTTP/1.1 or HTTP/2, with the field that announces HTTP/3.
    Tcp(ResponseSender, Option<HeaderValue>),
}

/// The response to a client. One that is dropped before its end is reset, so that it is never taken for whole
/// (RFC 9114 §4.1).
pub(crate) struct Reply {
    outlet: Outlet,
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
        Self::over(Outlet::Http3(stream), method)
    }

    /// The response to a request of `method` that came over TCP; `alt_svc` announces HTTP/3 (RFC 7838 §3).
    pub(crate) fn over_tcp(sender: ResponseSender, method: &Method, alt_svc: Option<HeaderValue>) -> Self {
        Self::over(Outlet::Tcp(sender, alt_svc), method)
    }

    fn over(outlet: Outlet, method: &Method) -> Self {
        Self { outlet, stage: Stage::Open, status: None, bytes: 0, bodiless: *method == Method::HEAD }
    }

    /// Sends status and fields. Over TCP hyper sends the interim response `100 Continue` by itself, and no other is sent.
    pub(crate) async fn head(&mut self, mut head: Response<()>) -> Result<(), Unsent> {
        let status = head.status();
        match &mut self.outlet {
            Outlet::Http3(stream) => stream.head(&head).await?,
            Outlet::Tcp(..) if status.is_informational() => {}
            Outlet::Tcp(sender, alt_svc) => {
                announce(&mut head, alt_svc.as_ref());
                sender.head(head).await?;
            }
        }
        if !status.is_informational() {
            self.status = Some(status);
        }
        Ok(())
    }

    /// Sends the head of a response behind which the stream is one of another protocol. Over TCP that is the affair of whoever has the
    /// client's end from then on.
    pub(crate) async fn switch(&mut self, head: Response<()>) -> Result<(), Unsent> {
        let status = head.status();
        match &mut self.outlet {
            Outlet::Http3(stream) => stream.head(&head).await?,
            Outlet::Tcp(sender, _) => {
                sender.whole(head, Bytes::new()).await?;
                self.stage = Stage::Over;
            }
        }
        self.status = Some(status);
        Ok(())
    }

    /// Sends a response that is there as a whole.
    pub(crate) async fn whole(&mut self, mut head: Response<()>, body: Bytes) -> Result<(), Unsent> {
        let (status, length) = (head.status(), body.len() as u64);
        match &mut self.outlet {
            Outlet::Http3(stream) => stream.whole(&head, body).await?,
            Outlet::Tcp(sender, alt_svc) => {
                announce(&mut head, alt_svc.as_ref());
                sender.whole(head, body).await?;
            }
        }
        (self.status, self.bytes, self.stage) = (Some(status), length, Stage::Over);
        Ok(())
    }

    /// Says how many bytes of the body will come: over HTTP/3 they are sent in one frame.
    pub(crate) async fn announce(&mut self, length: u64) -> Result<(), Unsent> {
        match &mut self.outlet {
            Outlet::Http3(stream) => Ok(stream.announce(length).await?),
            Outlet::Tcp(..) => Ok(()),
        }
    }

    /// Returns true if the client takes `bytes` now. Over TCP nobody knows before something waits: a place is taken then.
    pub(crate) async fn has_room(&mut self, bytes: usize) -> bool {
        match &mut self.outlet {
            Outlet::Http3(stream) => stream.has_room(bytes).await,
            Outlet::Tcp(..) => true,
        }
    }

    /// Waits until the client takes a part of the body, and returns how many bytes, a piece at most.
    pub(crate) async fn room(&mut self) -> Result<usize, Unsent> {
        match &mut self.outlet {
            Outlet::Http3(stream) => Ok(stream.room(PIECE).await?),
            Outlet::Tcp(sender, _) => sender.room().await.map(|()| PIECE),
        }
    }

    /// Sends a piece of the body, as fast as the client takes it.
    pub(crate) async fn data(&mut self, data: Bytes) -> Result<(), Unsent> {
        let length = data.len() as u64;
        match &mut self.outlet {
            Outlet::Http3(stream) => stream.data(data).await?,
            Outlet::Tcp(sender, _) => sender.data(data).await?,
        }
        self.bytes += length;
        Ok(())
    }

    /// Sends trailers.
    pub(crate) async fn trailers(&mut self, trailers: HeaderMap) -> Result<(), Unsent> {
        match &mut self.outlet {
            Outlet::Http3(stream) => Ok(stream.trailers(&trailers).await?),
            Outlet::Tcp(sender, _) => sender.trailers(trailers).await,
        }
    }

    /// Ends the response.
    pub(crate) async fn finish(&mut self) -> Result<(), Unsent> {
        match &mut self.outlet {
            Outlet::Http3(stream) => stream.finish().await?,
            Outlet::Tcp(sender, _) => sender.finish().await?,
        }
        self.stage = Stage::Over;
        Ok(())
    }

    /// Ends the stream with `code`, which only HTTP/3 tells the client: over TCP the response is cut short.
    pub(crate) fn abort(&mut self, code: Code) {
        self.stage = Stage::Over;
        match &mut self.outlet {
            Outlet::Http3(stream) => stream.reset(code),
            Outlet::Tcp(sender, _) => sender.reset(),
        }
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
        self.cut(Code::H3_INTERNAL_ERROR);
    }
}

/// Says in `head` that HTTP/3 is spoken, too, in place of an announcement of the origin.
fn announce(head: &mut Response<()>, alt_svc: Option<&HeaderValue>) {
    if let Some(alt_svc) = alt_svc {
        head.headers_mut().insert(ALT_SVC, alt_svc.clone());
    }
}
