//! The sending half of a response over TCP: whoever answers puts pieces in at one end, hyper takes them out as a body at the other.

use super::reply::Unsent;
use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::{Body, Frame, SizeHint};
use hvq_program::quota::{Preemption, Quota};
use std::fmt;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::timeout;

/// A part of a response.
enum Part {
    /// Status and fields; a body follows.
    Head(Response<()>),
    /// All of it.
    Whole(Response<()>, Bytes),
    Data(Bytes),
    Trailers(HeaderMap),
    End,
}

/// The terms on which a response waits while its client takes nothing.
#[derive(Clone)]
pub(crate) struct Waiting {
    /// Places for responses of all clients that wait.
    pub(crate) quota: Arc<Quota>,
    /// The client.
    pub(crate) client: IpAddr,
    /// The time for which it may take nothing.
    pub(crate) patience: Duration,
    /// Told when it took nothing for longer: the connection has to end then, for hyper does not watch a response that waits.
    pub(crate) stalled: Arc<Notify>,
}

/// The sending half. Without [`ResponseSender::finish`] the response is cut short, and looks so.
pub(crate) struct ResponseSender {
    /// `None` once the response is over.
    parts: Option<mpsc::Sender<Part>>,
    waiting: Waiting,
    notice: Arc<Preemption>,
}

/// The receiving half, until the head is there.
pub(crate) struct ResponseReceiver {
    parts: mpsc::Receiver<Part>,
    open: watch::Sender<()>,
}

/// The body of a response over TCP.
pub(crate) struct ResponseBody {
    whole: Option<Bytes>,
    /// `None` once it is over.
    rest: Option<mpsc::Receiver<Part>>,
    /// Dropped with this, which tells whoever answers that the client is gone.
    _open: Option<watch::Sender<()>>,
}

/// The response was cut short.
#[derive(Debug)]
pub(crate) struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the response was cut short")
    }
}

impl std::error::Error for Cut {}

/// Makes both halves of a response, and the news of the receiving half's end. `notice` is that of the request, which gives way when
/// other clients need its place.
pub(crate) fn channel(
    waiting: Waiting,
    notice: Arc<Preemption>,
) -> (ResponseSender, ResponseReceiver, watch::Receiver<()>) {
    // One part: whatever is further along is the affair of hyper's buffers, which have bounds of their own.
    let (sender, parts) = mpsc::channel(1);
    let (open, gone) = watch::channel(());
    (ResponseSender { parts: Some(sender), waiting, notice }, ResponseReceiver { parts, open }, gone)
}

impl ResponseSender {
    /// Sends status and fields.
    pub(crate) async fn head(&mut self, head: Response<()>) -> Result<(), Unsent> {
        self.put(Part::Head(head)).await
    }

    /// Sends a response that is there as a whole.
    pub(crate) async fn whole(&mut self, head: Response<()>, body: Bytes) -> Result<(), Unsent> {
        self.put(Part::Whole(head, body)).await?;
        self.parts = None;
        Ok(())
    }

    /// Waits until a piece is taken at once.
    pub(crate) async fn room(&mut self) -> Result<(), Unsent> {
        self.permit().await.map(drop)
    }

    /// Sends a piece of the body.
    pub(crate) async fn data(&mut self, data: Bytes) -> Result<(), Unsent> {
        self.put(Part::Data(data)).await
    }

    /// Sends trailers.
    pub(crate) async fn trailers(&mut self, trailers: HeaderMap) -> Result<(), Unsent> {
        self.put(Part::Trailers(trailers)).await
    }

    /// Ends the response.
    pub(crate) async fn finish(&mut self) -> Result<(), Unsent> {
        self.put(Part::End).await?;
        self.parts = None;
        Ok(())
    }

    /// Cuts the response short.
    pub(crate) fn reset(&mut self) {
        self.parts = None;
    }

    async fn put(&mut self, part: Part) -> Result<(), Unsent> {
        self.permit().await?.send(part);
        Ok(())
    }

    /// A place for a part, waited for as long as the client may pause, and as long as there is a place to wait in.
    async fn permit(&self) -> Result<mpsc::Permit<'_, Part>, Unsent> {
        let parts = self.parts.as_ref().ok_or(Unsent::Gone)?;
        match parts.try_reserve() {
            Ok(permit) => return Ok(permit),
            Err(mpsc::error::TrySendError::Closed(())) => return Err(Unsent::Gone),
            Err(mpsc::error::TrySendError::Full(())) => {}
        }
        let waiting = &self.waiting;
        let _place = waiting.quota.take(None, waiting.client, &self.notice).ok_or(Unsent::Crowded)?;
        match timeout(waiting.patience, parts.reserve()).await {
            Ok(permit) => permit.map_err(|_| Unsent::Gone),
            Err(_) => {
                waiting.stalled.notify_one();
                Err(Unsent::Stalled)
            }
        }
    }
}

impl ResponseReceiver {
    /// Waits for the head of the response.
    ///
    /// # Errors
    /// [`Cut`] if there will be none.
    pub(crate) async fn response(mut self) -> Result<Response<ResponseBody>, Cut> {
        match self.parts.recv().await {
            Some(Part::Head(head)) => {
                let body = ResponseBody { whole: None, rest: Some(self.parts), _open: Some(self.open) };
                Ok(head.map(|()| body))
            }
            Some(Part::Whole(head, body)) => {
                let whole = Some(body).filter(|body| !body.is_empty());
                Ok(head.map(|()| ResponseBody { whole, rest: None, _open: None }))
            }
            _ => Err(Cut),
        }
    }
}

impl ResponseBody {
    /// A body that is there as a whole.
    pub(crate) fn of(body: impl Into<Bytes>) -> Self {
        Self { whole: Some(body.into()), rest: None, _open: None }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = self.get_mut();
        if let Some(whole) = this.whole.take() {
            return Poll::Ready(Some(Ok(Frame::data(whole))));
        }
        let Some(rest) = &mut this.rest else { return Poll::Ready(None) };
        match ready!(rest.poll_recv(context)) {
            Some(Part::Data(data)) => Poll::Ready(Some(Ok(Frame::data(data)))),
            Some(Part::Trailers(trailers)) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
            Some(Part::End) => {
                this.rest = None;
                Poll::Ready(None)
            }
            None | Some(Part::Head(_) | Part::Whole(..)) => {
                this.rest = None;
                Poll::Ready(Some(Err(Cut)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.whole.is_none() && self.rest.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.whole, &self.rest) {
            (Some(whole), _) => SizeHint::with_exact(whole.len() as u64),
            (None, None) => SizeHint::with_exact(0),
            (None, Some(_)) => SizeHint::default(),
        }
    }
}
