//! One connection over TLS: its requests in, and an orderly end.

use super::head::{self, Refusal};
use crate::connection::{Peer, ShownCertificate};
use crate::gateway::Shared;
use crate::quota::Notice;
use crate::request::{ActiveRequest, Cut, Exchange, Gone, Reply, ResponseBody, Waiting, channel};
use crate::virtual_host::VirtualHosts;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Notify;
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
    pub(super) notice: Arc<Notice>,
    pub(super) shown: ShownCertificate,
}

/// Serves a connection until it ends, gives way, or the gateway stops.
pub(super) async fn serve(shared: Arc<Shared>, accepted: Accepted) {
    let Accepted { stream, address, alt_svc, idle, notice, shown } = accepted;
    let is_http2 = stream.ssl().selected_alpn_protocol() == Some(b"h2");
    let _counted = shared.metrics.tcp_connection(is_http2);
    let virtual_hosts = shared.virtual_hosts();
    let builder = builder(&virtual_hosts, is_http2);
    let open = OpenRequests(Arc::new(Mutex::new((0, Instant::now()))));
    let stalled = Arc::new(Notify::new());
    let peer = Arc::new(Peer::new(shared.clone(), address, None, shown));
    let client = Arc::new(Client { peer, alt_svc, stalled: stalled.clone(), open: open.clone() });
    let service = service_fn(move |request| respond(client.clone(), request));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // Set once no more requests are taken.
    let mut end = None;
    loop {
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection over TCP");
                }
                return;
            }
            () = notice.given() => return tracing::debug!("a connection over TCP gave way"),
            () = stalled.notified() => return tracing::debug!("a client takes nothing"),
            () = shared.stopping(), if end.is_none() => {
                connection.as_mut().graceful_shutdown();
                end = Some(Instant::now() + shared.patience());
            }
            () = open.idle(idle), if end.is_none() => {
                connection.as_mut().graceful_shutdown();
                end = Some(Instant::now() + virtual_hosts.timeouts.idle);
            }
            () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => return,
        }
    }
}

/// Sets hyper's bounds. Its timeout of headers counts from the start of a connection, too, and from the end of the response before.
fn builder(virtual_hosts: &VirtualHosts, is_http2: bool) -> auto::Builder<TokioExecutor> {
    let (limits, timeouts) = (virtual_hosts.limits, virtual_hosts.timeouts);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    let header = usize::try_from(limits.header).unwrap_or(usize::MAX);
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(timeouts.header)
        .max_buf_size(header.saturating_add(BUFFER));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(limits.header).unwrap_or(u32::MAX))
        .max_concurrent_streams(u32::try_from(limits.requests_per_connection).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(ERRORS)
        .max_send_buf_size(SEND_BUFFER);
    if is_http2 { builder.http2_only() } else { builder.http1_only() }
}

/// Answers one request.
async fn respond(client: Arc<Client>, request: Request<Incoming>) -> Result<Response<ResponseBody>, Cut> {
    let gateway = &client.peer.gateway;
    let virtual_hosts = gateway.virtual_hosts();
    let (is_http2, (parts, body)) = (request.version() == Version::HTTP_2, request.into_parts());
    let head = match head::canonical(Request::from_parts(parts, ()), virtual_hosts.limits.header) {
        Ok(head) => head,
        Err(refusal) => {
            gateway.metrics.malformed();
            return Ok(refused(refusal, is_http2));
        }
    };
    let waiting = Waiting {
        quota: gateway.waiting.clone(),
        client: client.peer.address(),
        patience: virtual_hosts.timeouts.idle,
        stalled: client.stalled.clone(),
    };
    let notice = Arc::<Notice>::default();
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
