//! Metrics and health over HTTP/1.1, for those who watch the gateway.

use crate::gateway::Shared;
use crate::health::Broken;
use crate::keys::TakeOver;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::uri::Authority;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hvq::Endpoint;
use hvq::stats::SlotStats;
use hvq_program::quota::Shortage;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Connections that are served at a time; others wait.
const CONNECTIONS: usize = 32;
/// The time that a request may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

/// The interval at which an address is tried that somebody else has.
const AGAIN: Duration = Duration::from_millis(100);

/// The source of the figures.
#[derive(Clone)]
pub(crate) struct MetricsSource {
    pub(crate) shared: Arc<Shared>,
    /// One each worker.
    pub(crate) endpoints: Vec<Endpoint>,
}

impl MetricsSource {
    fn metrics(&self) -> String {
        let shared = &self.shared;
        let mut slots = SlotStats::default();
        for endpoint in &self.endpoints {
            slots += endpoint.stats().slots;
        }
        let handshakes =
            Shortage { refused: slots.refused_handshakes, displaced: slots.displaced_handshakes };
        let connections =
            Shortage { refused: slots.refused_connections, displaced: slots.displaced_connections };
        let shortages = [
            ("handshake", handshakes),
            ("turn", Shortage { refused: 0, displaced: slots.displaced_initials }),
            ("connection", connections),
            ("request", shared.requests.shortage()),
            ("tcp_handshake", shared.tcp.handshakes.shortage()),
            ("tcp_connection", shared.tcp.connections.shortage()),
            ("waiting", shared.waiting.shortage()),
            ("tunnel", shared.tunnelling.shortage()),
        ];
        let origins = shared.virtual_hosts().states();
        shared.metrics.text(shared.log.dropped(), &shortages, &shared.memory.usage(), &origins)
    }

    /// The health of a gateway that serves: of origins that are ejected there is a line each, which is no reason to start it again.
    fn health(&self) -> String {
        let states = self.shared.virtual_hosts().states();
        let down = states.values().filter(|state| !state.is_up);
        let lines = down.map(|state| format!("origin {} is ejected\n", state.name));
        std::iter::once("ok\n".to_owned()).chain(lines).collect()
    }
}

/// The server at the admin address, which answers until this is dropped.
pub(crate) struct Admin {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Admin {
    /// Listens at `address`, for requests that name it by an IP address, as localhost or as one of `hosts`; where a gateway has it
    /// that this one takes over from, once that has ended.
    pub(crate) async fn start(
        address: SocketAddr,
        hosts: Vec<String>,
        source: MetricsSource,
        take_over: TakeOver,
    ) -> io::Result<Self> {
        let listener = match TcpListener::bind(address).await {
            Ok(listener) => Some(listener),
            // The gateway that is there has it until it ends.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && take_over == TakeOver::IfThere => None,
            Err(error) => return Err(error),
        };
        let address = listener.as_ref().map_or(Ok(address), TcpListener::local_addr)?;
        let alarm = source.shared.health.alarm(Broken::Admin);
        let accepting = tokio::spawn(async move {
            let _alarm = alarm;
            let listener = match listener {
                Some(listener) => listener,
                None => freed(address).await,
            };
            accept(listener, Arc::new(hosts), source).await;
        });
        Ok(Self { address, accepting })
    }

    /// Returns the address on which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A listener at `address`, once whoever has it ends.
async fn freed(address: SocketAddr) -> TcpListener {
    loop {
        if let Ok(listener) = TcpListener::bind(address).await {
            return listener;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn accept(listener: TcpListener, hosts: Arc<Vec<String>>, source: MetricsSource) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Mostly no file descriptors: trying again at once would only burn time.
                tracing::warn!(%error, "cannot accept at the admin address");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (hosts, source) = (hosts.clone(), source.clone());
        tokio::spawn(async move {
            serve(stream, &hosts, &source).await;
            drop(permit);
        });
    }
}

async fn serve(stream: TcpStream, hosts: &[String], source: &MetricsSource) {
    let service =
        service_fn(async |request: Request<Incoming>| Ok::<_, Infallible>(answer(&request, hosts, source)));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false);
    let served = builder.serve_connection(TokioIo::new(stream), service);
    if let Ok(Err(error)) = tokio::time::timeout(PATIENCE * 2, served).await {
        tracing::debug!(%error, "a request at the admin address");
    }
}

fn answer(request: &Request<Incoming>, hosts: &[String], source: &MetricsSource) -> Response<Full<Bytes>> {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    // I12: a page in somebody's browser whose name suddenly means this address.
    if !host.is_some_and(|host| is_ours(host, hosts)) {
        return text(StatusCode::FORBIDDEN, "this is not a name of the admin address\n".to_owned());
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/metrics") => text(StatusCode::OK, source.metrics()),
        (&Method::GET, "/health") if source.shared.health.is_broken() => {
            text(StatusCode::SERVICE_UNAVAILABLE, "broken\n".to_owned())
        }
        (&Method::GET, "/health") if source.shared.is_stopping() => {
            text(StatusCode::SERVICE_UNAVAILABLE, "stopping\n".to_owned())
        }
        (&Method::GET, "/health") => text(StatusCode::OK, source.health()),
        (&Method::GET, _) => text(StatusCode::NOT_FOUND, "there are /metrics and /health\n".to_owned()),
        _ => text(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned()),
    }
}

/// Returns true if `host`, as a request has it, is an address, localhost or one of `hosts`.
fn is_ours(host: &str, hosts: &[String]) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host();
    name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_known_names_are_answered() {
        let hosts = ["metrics.example.org".to_owned()];
        for ours in ["127.0.0.1:9433", "[::1]:9433", "localhost", "Metrics.Example.Org:80"] {
            assert!(is_ours(ours, &hosts), "{ours}");
        }
        for other in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b"] {
            assert!(!is_ours(other, &hosts), "{other}");
        }
    }
}
