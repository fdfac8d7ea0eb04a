//! A server of content over HTTP/3, without the rest of a gateway: requests in, answers out, and an orderly end.

use crate::announced;
use crate::content::{self, Answer, Body, Content};
use crate::quota::{Preemption, Quota};
use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Request, StatusCode};
use hvq::tls::ServerNames;
use hvq_h3::Code;
use hvq_h3::serving::{Incoming, Server};
use hvq_h3::{Origin, SendError, Sending, Settings};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Bytes of a file that are read at a time.
const PIECE: usize = 64 << 10;
/// The maximum number of requests that are served at a time, as of the gateway. One client may have them all until others ask.
const REQUESTS: usize = 10_000;

/// The times that clients of a server may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// For the header section of a request, from its first byte on.
    pub header: Duration,
    /// Without taking anything of a response.
    pub idle: Duration,
    /// For requests under way once the server is to stop.
    pub end: Duration,
}

impl Default for Patience {
    /// 10 s, 60 s and 10 s.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { header: seconds(10), idle: seconds(60), end: seconds(10) }
    }
}

/// The state that all connections of a server share.
#[derive(Debug)]
pub struct Service {
    content: Box<dyn Content>,
    patience: Patience,
    /// The order to stop.
    stop: watch::Sender<bool>,
    /// The requests under way, shared out between clients.
    requests: Arc<Quota>,
    /// Requests that were answered.
    answered: AtomicU64,
    /// The number of answers after which the server stops.
    limit: Option<u64>,
    /// The hosts that clients are told they may ask for over their connection.
    announced: Vec<String>,
}

impl Service {
    /// A server of `content` that stops after `limit` answers, if there is a limit.
    pub fn new(content: impl Content, limit: Option<u64>) -> Arc<Self> {
        Self::announcing(content, limit, &ServerNames::default())
    }

    /// The same, which tells clients of the hosts that its certificate, of which these are the `names`, is for, if there are several and
    /// no wildcard is among them (ORIGIN frame, RFC 9412): all have the same content.
    pub fn announcing(content: impl Content, limit: Option<u64>, names: &ServerNames) -> Arc<Self> {
        let (stop, answered) = (watch::Sender::new(false), AtomicU64::new(0));
        let (content, patience, requests) = (Box::new(content), Patience::default(), Quota::new(REQUESTS));
        let announced = announced::of_all(names);
        Arc::new(Self { content, patience, stop, requests, answered, limit, announced })
    }

    /// Has the server stop: no new requests; those under way are finished.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until the server is to stop.
    pub async fn stopped(&self) {
        let mut stop = self.stop.subscribe();
        // The sender is here, so that waiting cannot fail.
        let _stopped = stop.wait_for(|stop| *stop).await;
    }

    /// Accepts and serves connections until the server is to stop and they have ended.
    pub async fn run(self: Arc<Self>, endpoint: &hvq::Endpoint, watch: impl Fn(&hvq::Connection)) {
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

    /// The origins that the client of `connection` may ask for over it.
    fn origins(&self, connection: &hvq::Connection) -> Vec<Origin> {
        match self.announced.is_empty() {
            true => Vec::new(),
            false => announced::origins(&self.announced, announced::port(connection)),
        }
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
    let origins = service.origins(&connection);
    let server = match Server::new(connection, Settings::default()).await {
        Ok(server) => server,
        Err(error) => return tracing::debug!(%remote, %error, "no HTTP/3"),
    };
    if !origins.is_empty() {
        server.announce(&origins);
    }
    let each = service.clone();
    let answer = move |incoming| take(each.clone(), remote.ip(), incoming);
    server.run(service.stopped(), || service.patience.end, answer).await;
}

/// Takes one request of `client` and answers it, unless others need its place. Its body, which no answer depends on, is asked no more
/// for once the answer is sent.
async fn take(service: Arc<Service>, client: IpAddr, incoming: Incoming) {
    let (request, mut sending, _body) = match incoming.request(service.patience.header).await {
        Ok(request) => request,
        Err(error) => return tracing::debug!(%error, "no request"),
    };
    sending.may_pause(service.patience.idle);
    let notice = Arc::new(Preemption::default());
    let place = service.requests.take(None, client, &notice);
    let answer = match place {
        Some(_) => content::answer(&request, |path| service.content.answer(path, &request)),
        None => {
            let soon = HeaderValue::from_static("1");
            Answer::error(StatusCode::SERVICE_UNAVAILABLE).with(RETRY_AFTER, soon)
        }
    };
    tokio::select! {
        () = respond(&service, &request, answer, sending) => {}
        () = notice.given() => tracing::debug!("a request gave way to one of another client"),
    }
}

/// Sends `answer` to `request`.
async fn respond(service: &Service, request: &Request<()>, answer: Answer, mut sending: Sending) {
    tracing::info!(method = %request.method(), path = request.uri().path(), status = answer.head.status().as_u16());
    if !answer.wait.is_zero() {
        tokio::time::sleep(answer.wait).await;
    }
    if let Err(error) = send(answer, &mut sending).await {
        tracing::debug!(%error, path = request.uri().path(), "no response");
        // RFC 9114 §4.1: a response that is not complete is reset, so that it is not taken for whole.
        sending.reset(Code::H3_REQUEST_CANCELLED);
    }
    service.count();
}

async fn send(answer: Answer, sending: &mut Sending) -> Result<(), SendError> {
    let Answer { head, mut body, .. } = answer;
    match &body {
        Body::Empty => return sending.whole(&head, Bytes::new()).await,
        Body::Text(text) => return sending.whole(&head, text.clone()).await,
        Body::File(_, range) | Body::Pattern(_, range) => {
            sending.head(&head).await?;
            sending.announce(range.end - range.start).await?;
        }
    }
    loop {
        // What the client does not take is not read; the mere end needs no room.
        let room = if body.is_at_end() { 0 } else { sending.room(PIECE).await? };
        match body.next_within(room).await {
            Ok(Some(chunk)) => sending.data(chunk).await?,
            Ok(None) => return sending.finish().await,
            Err(error) => {
                tracing::warn!(%error, "cannot read what is to be sent");
                sending.reset(Code::H3_INTERNAL_ERROR);
                return Ok(());
            }
        }
    }
}
