//! The requests by which flows get their streams.

use crate::importance;
use crate::server::TCP;
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use hvq::{Priority, StreamId};
use hvq_h3::client::Client as Http;
use hvq_h3::{Receiving, Sending};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The time within which the server has to permit a further stream: flows above its limit go as packets.
const ROOM: Duration = Duration::from_millis(500);
/// The time within which the server has to reach a host.
const PATIENCE: Duration = Duration::from_secs(30);

/// The server's answer to a flow.
#[derive(Debug)]
pub(crate) enum Answer {
    /// It has reached the host.
    Open(Box<Opened>),
    /// The host refuses, or may not be reached.
    Refused,
    /// There is no room for a flow more.
    NoRoom,
    /// Nothing was heard of the host, or of the server.
    Silence,
}

/// A stream to the host of a flow.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) sending: Sending,
    pub(crate) receiving: Receiving,
}

/// Asks the server of a tunnel for streams to hosts.
#[derive(Debug)]
pub(crate) struct Requests {
    http: Arc<Http>,
    authorization: Option<HeaderValue>,
}

impl Requests {
    /// Asks by `http`, with the value of `authorization` that opened the tunnel.
    pub(crate) fn new(http: Arc<Http>, authorization: Option<HeaderValue>) -> Self {
        Self { http, authorization }
    }

    /// Asks for a stream to `destination`, with CONNECT (RFC 9114 §4.4).
    pub(crate) async fn open(&self, destination: SocketAddr) -> Answer {
        let request = self.request(destination);
        let (sending, mut receiving) = match timeout(ROOM, self.http.open(&request)).await {
            Ok(Ok(halves)) => halves,
            Ok(Err(error)) => {
                tracing::debug!(%error, %destination, "no stream for a flow");
                return Answer::Silence;
            }
            Err(_) => return Answer::NoRoom,
        };
        sending.set_priority(importance::SHORT);
        match timeout(PATIENCE, receiving.response()).await {
            Ok(Ok(head)) => match answer(head.status()) {
                Ok(()) => Answer::Open(Box::new(Opened { sending, receiving })),
                Err(answer) => answer,
            },
            Ok(Err(error)) => {
                tracing::debug!(%error, %destination, "no answer for a flow");
                Answer::Silence
            }
            Err(_) => Answer::Silence,
        }
    }

    /// Tells the server how urgent the bytes are that it sends on stream `id`.
    pub(crate) fn reprioritize(&self, id: StreamId, priority: Priority) {
        self.http.reprioritize(id, priority);
    }

    fn request(&self, destination: SocketAddr) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = Uri::builder()
            .authority(destination.to_string())
            .build()
            .expect("an address with a port is an authority, and alone what CONNECT asks for");
        let fields = request.headers_mut();
        fields.insert(TCP, HeaderValue::from_static("?1"));
        fields.insert("priority", HeaderValue::from_static("u=2"));
        if let Some(authorization) = &self.authorization {
            fields.insert("authorization", authorization.clone());
        }
        request
    }
}

/// Tells what a status says about the host, if it is not that it was reached.
fn answer(status: StatusCode) -> Result<(), Answer> {
    match status {
        status if status.is_success() => Ok(()),
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::NOT_FOUND
        | StatusCode::NOT_IMPLEMENTED => Err(Answer::NoRoom),
        StatusCode::GATEWAY_TIMEOUT => Err(Answer::Silence),
        _ => Err(Answer::Refused),
    }
}
