//! The receiving half of a request, over whichever transport it came.

use super::Trouble;
use bytes::Bytes;
use http::HeaderMap;
use hvq_h3::{Code, ReceiveError, Receiving};
use hyper::body::{Body, Incoming};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The receiving half of a request. Dropping it says that no more is wanted.
pub(crate) enum Receive {
    /// A stream of HTTP/3.
    Http3(Receiving),
    /// A body of HTTP/1.1 or HTTP/2.
    Tcp(TcpBody),
}

/// A body that comes over TCP.
pub(crate) struct TcpBody {
    /// `None` at its end, or once it was stopped.
    body: Option<Incoming>,
    trailers: Option<HeaderMap>,
}

impl From<Receiving> for Receive {
    fn from(stream: Receiving) -> Self {
        Self::Http3(stream)
    }
}

impl From<Incoming> for Receive {
    fn from(body: Incoming) -> Self {
        Self::Tcp(TcpBody { body: Some(body), trailers: None })
    }
}

impl Receive {
    /// The next data; `None` at their end.
    ///
    /// # Errors
    /// [`Trouble::Aborted`] if the client gave up, [`Trouble::Mismatch`] if the body has another length than it said.
    pub(crate) fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Trouble>> {
        match self {
            Self::Http3(stream) => stream.poll_data(context).map_err(trouble),
            Self::Tcp(body) => body.poll_data(context),
        }
    }

    /// The trailers behind the data, if there are any.
    ///
    /// # Errors
    /// Those of [`Receive::poll_data`].
    pub(crate) fn poll_trailers(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, Trouble>> {
        match self {
            Self::Http3(stream) => stream.poll_trailers(context).map_err(trouble),
            Self::Tcp(body) => Poll::Ready(Ok(body.trailers.take())),
        }
    }

    /// Says that no more is wanted, for the reason `code`, which only HTTP/3 tells the client.
    pub(crate) fn stop(&mut self, code: Code) {
        match self {
            Self::Http3(stream) => stream.stop(code),
            Self::Tcp(body) => body.body = None,
        }
    }
}

/// The trouble that an error of the client's stream is. RFC 9114 §4.1.2: a body of another length than it said is malformed.
fn trouble(error: ReceiveError) -> Trouble {
    match error {
        ReceiveError::WrongLength { .. } => Trouble::Mismatch,
        _ => Trouble::Aborted,
    }
}

impl TcpBody {
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Trouble>> {
        while let Some(body) = &mut self.body {
            // A body that is cut short, or has another length than it said, is an error of hyper's, too.
            let frame = match ready!(Pin::new(body).poll_frame(context)) {
                Some(frame) => frame.map_err(|_| Trouble::Aborted)?,
                None => break,
            };
            match frame.into_data() {
                Ok(data) => return Poll::Ready(Ok(Some(data))),
                Err(frame) => self.trailers = frame.into_trailers().ok(),
            }
        }
        self.body = None;
        Poll::Ready(Ok(None))
    }
}
