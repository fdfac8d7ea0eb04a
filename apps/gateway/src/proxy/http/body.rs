//! Bodies on their way, as fast as whoever receives them takes them.

use crate::proxy::link::Session;
use bytes::{Buf, Bytes};
use h3::client::RequestStream;
use h3::error::{Code, StreamError};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// Sends a request's body. A program that gives up, or goes, does not look as if it were done.
pub(super) async fn upload(mut content: Incoming, mut send: RequestStream<hvq_h3::SendStream<Bytes>, Bytes>) {
    while let Some(frame) = content.frame().await {
        let sent = match frame.map(Frame::into_data) {
            Ok(Ok(data)) => send.send_data(data).await,
            Ok(Err(frame)) => match frame.into_trailers() {
                Ok(trailers) => send.send_trailers(trailers).await,
                Err(_) => Ok(()),
            },
            Err(_) => {
                send.stop_stream(Code::H3_REQUEST_CANCELLED);
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
    receive: RequestStream<hvq_h3::RecvStream, Bytes>,
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
    pub(super) fn new(receive: RequestStream<hvq_h3::RecvStream, Bytes>, session: Arc<Session>) -> Self {
        Self { receive, stage: Stage::Data, _session: session }
    }
}

impl Body for Download {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let this = self.get_mut();
        if matches!(this.stage, Stage::Data) {
            if let Some(mut data) = ready!(this.receive.poll_recv_data(context))? {
                return Poll::Ready(Some(Ok(Frame::data(data.copy_to_bytes(data.remaining())))));
            }
            this.stage = Stage::Trailers;
        }
        if matches!(this.stage, Stage::Trailers) {
            let trailers = ready!(this.receive.poll_recv_trailers(context))?;
            this.stage = Stage::Over;
            return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
        }
        Poll::Ready(None)
    }
}
