//! The body of a request on its way to an origin: read from the client only as fast as the origin takes it.

use super::progress::{Progress, Trouble};
use super::receive::Receive;
use crate::configuration::Underscores;
use crate::fields;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Sleep, sleep};

/// The bounds of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The length that the request said.
    pub(crate) declared: Option<u64>,
    /// Bytes at most.
    pub(crate) limit: u64,
    /// The time for which the client may pause.
    pub(crate) idle: Duration,
    /// Tells whether trailers go on whose names have underscores.
    pub(crate) underscores: Underscores,
}

/// A request's body.
pub(crate) struct Upload {
    /// `None` if there is no body, or no more of it.
    source: Option<Source>,
    progress: Arc<Progress>,
}

struct Source {
    receive: Receive,
    bounds: Bounds,
    /// Bytes that came.
    count: u64,
    /// The bytes that came and were not handed on.
    held: Option<Bytes>,
    /// True once all data came, and only trailers may follow.
    complete: bool,
    /// The time at which the client's patience is over, once it was waited for.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Upload {
    /// No body.
    pub(crate) fn empty() -> Self {
        Self { source: None, progress: Arc::default() }
    }

    /// The body that comes from `receive`. Without a declared length its first piece, or its end, is waited for, because
    /// a request without a body is another request in HTTP/1.1 than one with an empty body of unknown length.
    pub(crate) async fn begin(
        receive: Receive,
        bounds: Bounds,
        progress: Arc<Progress>,
    ) -> Result<Self, Trouble> {
        if bounds.declared.is_some_and(|declared| declared > bounds.limit) {
            return Err(Trouble::TooLarge);
        }
        let mut source = Source { receive, bounds, count: 0, held: None, complete: false, pause: None };
        if bounds.declared.is_none_or(|declared| declared == 0) {
            match poll_fn(|context| source.poll_data(context)).await? {
                Some(first) => source.held = Some(first),
                None => return Ok(Self { source: None, progress }),
            }
        }
        Ok(Self { source: Some(source), progress })
    }

    /// Returns true if there is no body.
    pub(crate) fn is_empty(&self) -> bool {
        self.source.is_none()
    }
}

impl Source {
    /// The next data from the client; `None` at their end.
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Trouble>> {
        loop {
            let received = match self.receive.poll_data(context) {
                Poll::Ready(received) => received?,
                Poll::Pending => {
                    let idle = self.bounds.idle;
                    ready!(self.pause.get_or_insert_with(|| Box::pin(sleep(idle))).as_mut().poll(context));
                    return Poll::Ready(Err(Trouble::TimedOut));
                }
            };
            let Some(data) = received else {
                self.complete = true;
                return Poll::Ready(Ok(None));
            };
            self.count = self.count.saturating_add(data.len() as u64);
            self.pause = None;
            if self.count > self.bounds.limit {
                return Poll::Ready(Err(Trouble::TooLarge));
            }
            if !data.is_empty() {
                return Poll::Ready(Ok(Some(data)));
            }
        }
    }

    /// The next frame for the origin; `None` at the end.
    ///
    /// The last bytes of a declared length are held back until the stream ends: an origin must not take for whole what is
    /// not, and go on to read another request where this one goes on.
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Trouble>>> {
        while !self.complete {
            let last = self.bounds.declared == Some(self.count);
            if let Some(held) = self.held.take_if(|_| !last) {
                return Poll::Ready(Some(Ok(Frame::data(held))));
            }
            match ready!(self.poll_data(context)) {
                Ok(Some(data)) => self.held = Some(data),
                Ok(None) => {}
                Err(trouble) => return Poll::Ready(Some(Err(trouble))),
            }
        }
        if let Some(held) = self.held.take() {
            return Poll::Ready(Some(Ok(Frame::data(held))));
        }
        match ready!(self.receive.poll_trailers(context)) {
            Ok(Some(trailers)) => {
                let onward = fields::trailers(&trailers, self.bounds.underscores);
                Poll::Ready(Some(Ok(Frame::trailers(onward))))
            }
            Ok(None) => Poll::Ready(None),
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Trouble;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Trouble>>> {
        let this = self.get_mut();
        let Some(source) = &mut this.source else { return Poll::Ready(None) };
        let frame = ready!(source.poll_frame(context));
        match &frame {
            Some(Ok(frame)) => this.progress.moved(frame.data_ref().map_or(0, Bytes::len)),
            Some(Err(trouble)) => {
                this.progress.fail(*trouble);
                this.source = None;
            }
            None => {
                this.progress.moved(0);
                this.source = None;
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.source.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            None => SizeHint::with_exact(0),
            Some(source) => match source.bounds.declared {
                Some(declared) => {
                    let held = source.held.as_ref().map_or(0, Bytes::len) as u64;
                    SizeHint::with_exact(declared - source.count + held)
                }
                None => SizeHint::default(),
            },
        }
    }
}
