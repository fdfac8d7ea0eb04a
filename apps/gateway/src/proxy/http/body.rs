//! Bodies on their way, as fast as whoever receives them takes them.

use crate::proxy::link::Session;
use bytes::Bytes;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hvq_h3::{Code, ReceiveError, Receiving, Sending};
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Sends a request's body. A program that gives up, or goes, does not look as if it were done.
pub(super) async fn upload(mut content: Incoming, mut send: Sending) {
    while let Some(frame) = content.frame().await {
        let sent = match frame.map(Frame::into_data) {
            Ok(Ok(data)) => send.data(data).await,
            Ok(Err(frame)) => match frame.into_trailers() {
                Ok(trailers) => send.trailers(&trailers).await,
                Err(_) => Ok(()),
            },
            Err(_) => {
                send.reset(Code::H3_REQUEST_CANCELLED);
                return;
            }
        };
        // RFC 9114 §4.1: a gateway that has answered may want no more; its answer counts.
        if sent.is_err() {
            return;
        }
    }
    let _ended = send.finish().await;
}

/// A response's body.
pub(super) struct Download {
    receive: Receiving,
    stage: Stage,
    /// Keeps the connection.
    _session: Arc<Session>,
}

enum Stage {
    Data,
    Trailers,
    Over,
}

impl Download {
    pub(super) fn new(receive: Receiving, session: Arc<Session>) -> Self {
        Self { receive, stage: Stage::Data, _session: session }
    }
}

impl Body for Download {
    type Data = Bytes;
    type Error = ReceiveError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ReceiveError>>> {
        let this = self.get_mut();
        if matches!(this.stage, Stage::Data) {
            if let Some(data) = ready!(this.receive.poll_data(context))? {
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            this.stage = Stage::Trailers;
        }
        if matches!(this.stage, Stage::Trailers) {
            let trailers = ready!(this.receive.poll_trailers(context))?;
            this.stage = Stage::Over;
            return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
        }
        Poll::Ready(None)
    }
}
