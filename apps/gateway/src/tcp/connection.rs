//! One connection over TLS: its requests in, and an orderly end.

use super::head::{self, Refusal};
use crate::connection::{Peer, ShownCertificate};
use crate::gateway::Shared;
use crate::request::{ActiveRequest, Cut, Exchange, Gone, Reply, ResponseBody, Waiting, channel};
use crate::virtual_host::VirtualHosts;
use crate::websocket::ClientEnd;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, Version};
use hvq_program::quota::Preemption;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};
use tokio_boring::SslStream;

/// Bytes of a response that wait in hyper for the client, each stream of HTTP/2.
const SEND_BUFFER: usize = 32 << 10;
/// Bytes of a message of HTTP/1.1 that are read or written at a time at most.
const BUFFER: usize = 64 << 10;
/// Streams of HTTP/2 that a client may reset before they were looked at, and that were reset for errors of its own: a connection
/// with more ends (rapid reset, CVE-2023-44487). hyper has the same by default; they are said here because the gateway relies on them.
const RESETS: usize = 20;
const ERRORS: usize = 1024;

/// A client over TCP, and what its responses need.
struct Client {
    peer: Arc<Peer>,
    alt_svc: Option<HeaderValue>,
    /// Told when a response waited for too long.
    stalled: Arc<Notify>,
    open: OpenRequests,
    /// Lasts as long as the connection may: what it became another protocol for ends with it.
    time: watch::Sender<()>,
}

/// The number of requests under way, and since when there is none.
#[derive(Clone)]
struct OpenRequests(Arc<Mutex<(usize, Instant)>>);

/// A request that is under way until this is dropped.
struct Open(OpenRequests);

impl OpenRequests {
    fn begin(&self) -> Open {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).0 += 1;
        Open(self.clone())
    }

    /// The time since which nothing is under way; `None` if something is.
    fn idle_since(&self) -> Option<Instant> {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(open.1).filter(|_| open.0 == 0)
    }

    /// Waits until nothing was under way for `limit`.
    async fn idle(&self, limit: Duration) {
        loop {
            let until = self.idle_since().unwrap_or_else(Instant::now) + limit;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let mut open = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        *open = (open.0 - 1, Instant::now());
    }
}

/// The connection of a client, as its listener has it.
pub(super) struct Accepted {
    pub(super) stream: SslStream<TcpStream>,
    pub(super) address: IpAddr,
    pub(super) alt_svc: Option<HeaderValue>,
    /// The silence after which it ends.
    pub(super) idle: Duration,
    /// Tells when it gives way to another client's.
    pub(super) notice: Arc<Preemption>,
    pub(super) shown: ShownCertificate,
}

/// Serves a connection until it ends, gives way, or the gateway stops.
pub(super) async fn serve(shared: Arc<Shared>, accepted: Accepted) {
    let Accepted { stream, address, alt_svc, idle, notice, shown } = accepted;
    let is_http2 = stream.ssl().selected_alpn_protocol() == Some(b"h2");
    let _counted = shared.metrics.tcp_connection(is_http2);
    let virtual_hosts = shared.virtual_hosts();
    let open = OpenRequests(Arc::new(Mutex::new((0, Instant::now()))));
    let stalled = Arc::new(Notify::new());
    let peer = Arc::new(Peer::new(shared.clone(), address, None, shown));
    let time = watch::Sender::new(());
    let client =
        Arc::new(Client { peer, alt_svc, stalled: stalled.clone(), open: open.clone(), time: time.clone() });
    let service = service_fn(move |request| respond(client.clone(), request));
    let terms = Terms { shared: shared.clone(), virtual_hosts, idle, notice, stalled, open, time };
    let stream = TokioIo::new(stream);
    if is_http2 {
        let connection = http2(&terms.virtual_hosts).serve_connection(stream, service);
        terms.serve(connection, |connection| connection.graceful_shutdown()).await;
    } else {
        let connection = http1(&terms.virtual_hosts).serve_connection(stream, service).with_upgrades();
        terms.serve(connection, |connection| connection.graceful_shutdown()).await;
    }
}

/// The terms on which a connection is served.
struct Terms {
    shared: Arc<Shared>,
    virtual_hosts: Arc<VirtualHosts>,
    /// The silence after which it ends.
    idle: Duration,
    notice: Arc<Preemption>,
    stalled: Arc<Notify>,
    open: OpenRequests,
    time: watch::Sender<()>,
}

impl Terms {
    /// Serves a connection, and what it became another protocol for. `drain` has it take no more requests.
    async fn serve<C: Future<Output = hyper::Result<()>>>(&self, connection: C, drain: fn(Pin<&mut C>)) {
        let Self { shared, virtual_hosts, open, .. } = self;
        let mut connection = pin!(connection);
        // True once another protocol has its stream.
        let mut is_switched = false;
        // Set once no more requests are taken.
        let mut end = None;
        loop {
            tokio::select! {
                ended = connection.as_mut(), if !is_switched => {
                    if let Err(error) = ended {
                        return tracing::debug!(%error, "a connection over TCP");
                    }
                    if self.time.receiver_count() == 0 {
                        return;
                    }
                    is_switched = true;
                }
                () = self.time.closed(), if is_switched => return,
                () = self.notice.given() => return tracing::debug!("a connection over TCP gave way"),
                () = self.stalled.notified() => return tracing::debug!("a client takes nothing"),
                () = shared.stopping(), if end.is_none() => {
                    if !is_switched {
                        drain(connection.as_mut());
                    }
                    end = Some(Instant::now() + shared.patience());
                }
                () = open.idle(self.idle), if end.is_none() && !is_switched => {
                    drain(connection.as_mut());
                    end = Some(Instant::now() + virtual_hosts.timeouts.idle);
                }
                () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => return,
            }
        }
    }
}

/// Sets hyper's bounds for HTTP/1.1. Its timeout of headers counts from the start of a connection, too, and from the end of the response
/// before.
fn http1(virtual_hosts: &VirtualHosts) -> http1::Builder {
    let mut builder = http1::Builder::new();
    let header = usize::try_from(virtual_hosts.limits.header).unwrap_or(usize::MAX);
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(virtual_hosts.timeouts.header)
        .max_buf_size(header.saturating_add(BUFFER));
    builder
}

/// Sets hyper's bounds for HTTP/2.
fn http2(virtual_hosts: &VirtualHosts) -> http2::Builder<TokioExecutor> {
    let limits = virtual_hosts.limits;
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.header).unwrap_or(u32::MAX))
        .max_concurrent_streams(u32::try_from(limits.requests_per_connection).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(ERRORS)
        .max_send_buf_size(SEND_BUFFER);
    if virtual_hosts.has_origins() {
        // RFC 8441 §3.
        builder.enable_connect_protocol();
    }
    builder
}

/// Answers one request.
async fn respond(client: Arc<Client>, mut request: Request<Incoming>) -> Result<Response<ResponseBody>, Cut> {
    let gateway = &client.peer.gateway;
    let virtual_hosts = gateway.virtual_hosts();
    let websocket = ClientEnd::of(&mut request, &client.time);
    let (is_http2, (parts, body)) = (request.version() == Version::HTTP_2, request.into_parts());
    let mut head = match head::canonical(Request::from_parts(parts, ()), virtual_hosts.limits.header) {
        Ok(head) => head,
        Err(refusal) => {
            gateway.metrics.malformed();
            return Ok(refused(refusal, is_http2));
        }
    };
    if let Some(websocket) = websocket {
        head.extensions_mut().insert(websocket);
    }
    let waiting = Waiting {
        quota: gateway.waiting.clone(),
        client: client.peer.address(),
        patience: virtual_hosts.timeouts.idle,
        stalled: client.stalled.clone(),
    };
    let notice = Arc::<Preemption>::default();
    let (sender, receiver, gone) = channel(waiting, notice.clone());
    let reply = Reply::over_tcp(sender, head.method(), client.alt_svc.clone());
    let exchange = Exchange { request: head, receive: body.into(), reply, gone: Gone::Tcp(gone), notice };
    let active = ActiveRequest::new(client.peer.clone(), virtual_hosts, exchange);
    let open = client.open.begin();
    // A task of its own: hyper does not look after a response whose client takes nothing, and timeouts have to go on.
    tokio::spawn(async move {
        active.serve(false).await;
        drop(open);
    });
    receiver.response().await
}

/// The response to a request that is refused as it stands. A connection of HTTP/1.1 ends with it: where the next request begins is not
/// certain (RFC 9112 §6.3).
fn refused(Refusal { status, text }: Refusal, is_http2: bool) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::of(format!("{status}: {text}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if !is_http2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
