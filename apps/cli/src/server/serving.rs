//! Serving connections: requests in, answers out, and an orderly end.

use super::Site;
use bytes::Bytes;
use h3::error::Code;
use h3::server::{RequestResolver, RequestStream};
use hvq_h3::Priorities;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long requests under way may take once the server is to stop.
const PATIENCE: Duration = Duration::from_secs(10);

/// What all connections of a server share.
#[derive(Debug)]
pub(crate) struct Service {
    site: Site,
    /// Whether the server is to stop.
    stop: watch::Sender<bool>,
    /// Requests that were answered.
    answered: AtomicU64,
    /// After how many answers the server stops.
    limit: Option<u64>,
}

impl Service {
    /// A server of `site` that stops after `limit` answers, if there is a limit.
    pub(crate) fn new(site: Site, limit: Option<u64>) -> Arc<Self> {
        Arc::new(Self { site, stop: watch::Sender::new(false), answered: AtomicU64::new(0), limit })
    }

    /// Has the server stop: no new requests; those under way are finished.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until the server is to stop.
    pub(crate) async fn stopped(&self) {
        let mut stop = self.stop.subscribe();
        // The sender is here, so that waiting cannot fail.
        let _stopped = stop.wait_for(|stop| *stop).await;
    }

    /// Accepts and serves connections until the server is to stop and they have ended.
    pub(crate) async fn run(self: Arc<Self>, endpoint: &hvq::Endpoint, watch: impl Fn(&hvq::Connection)) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = endpoint.accept() => match accepted {
                    Some(connection) => {
                        watch(&connection);
                        connections.spawn(serve(self.clone(), connection));
                    }
                    None => break,
                },
                () = self.stopped() => break,
                Some(_) = connections.join_next() => {}
            }
        }
        self.stop();
        while connections.join_next().await.is_some() {}
    }

    fn count(&self) {
        let answered = self.answered.fetch_add(1, Ordering::Relaxed) + 1;
        if self.limit.is_some_and(|limit| answered >= limit) {
            self.stop();
        }
    }
}

/// Serves one connection until it ends or the server stops.
async fn serve(service: Arc<Service>, connection: hvq::Connection) {
    let remote = connection.remote_address();
    let transport = hvq_h3::Connection::new(connection.clone());
    let priorities = transport.priorities();
    let mut h3 = match h3::server::Connection::<_, Bytes>::new(transport).await {
        Ok(h3) => h3,
        Err(error) => return tracing::debug!(%remote, %error, "no HTTP/3"),
    };
    let mut requests = JoinSet::new();
    loop {
        tokio::select! {
            accepted = h3.accept() => match accepted {
                Ok(Some(resolver)) => {
                    requests.spawn(respond(service.clone(), resolver, priorities.clone()));
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%remote, %error, "connection ended");
                    break;
                }
            },
            () = service.stopped() => break,
            Some(_) = requests.join_next() => {}
        }
    }
    // GOAWAY (RFC 9114 §5.2), which a client that is gone does not miss.
    let _gone = h3.shutdown(0).await;
    let finished = timeout(PATIENCE, async { while requests.join_next().await.is_some() {} }).await;
    if finished.is_err() || timeout(PATIENCE, hvq_h3::server::settled(&connection)).await.is_err() {
        tracing::debug!(%remote, "requests under way are abandoned");
    }
    connection.close(Code::H3_NO_ERROR.value(), b"");
}

/// Answers one request.
async fn respond(
    service: Arc<Service>,
    resolver: RequestResolver<hvq_h3::Connection, Bytes>,
    priorities: Priorities,
) {
    let (request, mut stream) = match hvq_h3::server::resolve(resolver, &priorities).await {
        Ok(resolved) => resolved,
        Err(error) => return tracing::debug!(%error, "no request"),
    };
    let mut answer = service.site.answer(&request);
    tracing::info!(method = %request.method(), path = request.uri().path(), status = answer.head.status().as_u16());
    if !answer.wait.is_zero() {
        tokio::time::sleep(answer.wait).await;
    }
    if let Err(error) = send(&mut answer, &mut stream).await {
        tracing::debug!(%error, path = request.uri().path(), "no response");
    }
    service.count();
}

async fn send(
    answer: &mut super::Answer,
    stream: &mut RequestStream<hvq_h3::BidiStream<Bytes>, Bytes>,
) -> Result<(), h3::error::StreamError> {
    let head = std::mem::replace(&mut answer.head, http::Response::new(()));
    stream.send_response(head).await?;
    loop {
        match answer.body.next().await {
            Ok(Some(chunk)) => stream.send_data(chunk).await?,
            Ok(None) => return stream.finish().await,
            Err(error) => {
                // RFC 9114 §4.1: a response that cannot be completed is reset, so that it is not taken for whole.
                tracing::warn!(%error, "cannot read what is to be sent");
                stream.stop_stream(Code::H3_INTERNAL_ERROR);
                return Ok(());
            }
        }
    }
}
