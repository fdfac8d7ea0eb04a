//! HTTP/1.1 and HTTP/2 from local programs: requests for URLs, CONNECT, and what the proxy says about itself.

mod body;
mod fields;

use crate::proxy::carry::{TunnelAnswer, carry, tunnel};
use crate::proxy::link::{Link, Open};
use crate::proxy::metrics;
use crate::proxy::pac::{self, Offer};
use ::http::header::{CONTENT_TYPE, HOST};
use ::http::uri::Authority;
use ::http::{HeaderValue, Method, Request, Response, StatusCode};
use body::{Download, upload};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// The time that a program may take for the head of a request.
const PATIENCE: Duration = Duration::from_secs(30);
/// Requests that a program may have under way on one connection of HTTP/2.
const STREAMS: u32 = 256;

type Content = UnsyncBoxBody<Bytes, hvq_h3::ReceiveError>;

/// The state that all local connections share.
pub(crate) struct LocalService {
    pub(crate) link: Arc<Link>,
    /// The address on which the proxy listens.
    pub(crate) address: SocketAddr,
    pub(crate) offer: Offer,
}

/// Serves one connection to its end.
pub(crate) async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    service: Arc<LocalService>,
) -> io::Result<()> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS);
    let answer = service_fn(move |request| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(service.answer(request).await) }
    });
    let served = builder.serve_connection_with_upgrades(TokioIo::new(stream), answer).await;
    served.map_err(|error| io::Error::other(error.to_string()))
}

impl LocalService {
    async fn answer(&self, request: Request<Incoming>) -> Response<Content> {
        if request.method() == Method::CONNECT {
            return self.connect(request).await;
        }
        match (request.uri().scheme(), request.uri().authority()) {
            // Over HTTP/2 a request for the proxy itself looks like any other.
            (Some(_), Some(authority)) if !self.is_own(authority) => self.carry(request).await,
            _ => self.own(&request),
        }
    }

    /// Returns true if `authority` is the proxy's own address.
    fn is_own(&self, authority: &Authority) -> bool {
        let name = authority.host().trim_matches(['[', ']']);
        let here = name.eq_ignore_ascii_case("localhost")
            || name
                .parse::<IpAddr>()
                .is_ok_and(|address| address == self.address.ip() || address.is_loopback());
        here && authority.port_u16() == Some(self.address.port())
    }

    /// Answers a request about the proxy itself. I12: not to a page whose name suddenly means this address.
    fn own<B>(&self, request: &Request<B>) -> Response<Content> {
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let host = host.or_else(|| request.uri().authority().cloned());
        if !host.is_some_and(|host| self.is_own(&host)) {
            return text(
                StatusCode::FORBIDDEN,
                "this is a proxy: ask it for a whole URL, or by CONNECT\n".to_owned(),
            );
        }
        match (request.method(), request.uri().path()) {
            (&Method::GET, "/proxy.pac" | "/wpad.dat") => {
                let mut response = text(StatusCode::OK, pac::file(self.address, self.offer));
                let kind = HeaderValue::from_static("application/x-ns-proxy-autoconfig");
                response.headers_mut().insert(CONTENT_TYPE, kind);
                response
            }
            (&Method::GET, "/metrics") => text(StatusCode::OK, metrics::text(&self.link.datagrams())),
            _ => text(StatusCode::NOT_FOUND, "there are /proxy.pac and /metrics\n".to_owned()),
        }
    }

    /// Opens a tunnel.
    async fn connect(&self, mut request: Request<Incoming>) -> Response<Content> {
        let Some(authority) =
            request.uri().authority().filter(|authority| authority.port().is_some()).cloned()
        else {
            return text(StatusCode::BAD_REQUEST, "CONNECT needs a host and a port\n".to_owned());
        };
        match tunnel(&self.link, authority).await {
            Ok(TunnelAnswer::Open(open)) => {
                let upgrade = hyper::upgrade::on(&mut request);
                tokio::spawn(async move {
                    match upgrade.await {
                        Ok(local) => carry(TokioIo::new(local), *open).await,
                        Err(error) => tracing::debug!(%error, "a tunnel that nobody came for"),
                    }
                });
                Response::new(Full::default().map_err(|never| match never {}).boxed_unsync())
            }
            Ok(TunnelAnswer::Refused(status)) => {
                text(fields::status(status), format!("the gateway answered {status}\n"))
            }
            Err(error) => text(StatusCode::BAD_GATEWAY, format!("{error}\n")),
        }
    }

    /// Carries a request to the gateway, and its response back.
    async fn carry(&self, request: Request<Incoming>) -> Response<Content> {
        let (parts, content) = request.into_parts();
        let head = fields::request(parts);
        let Open { sending, mut receiving, session } = match self.link.open(head).await {
            Ok(open) => open,
            Err(error) => return text(StatusCode::BAD_GATEWAY, format!("{error}\n")),
        };
        tokio::spawn(upload(content, sending));
        match receiving.response().await {
            Ok(response) => {
                let content = Download::new(receiving, session);
                fields::response(response).map(|()| content.boxed_unsync())
            }
            Err(error) => text(StatusCode::BAD_GATEWAY, format!("the gateway gave no answer: {error}\n")),
        }
    }
}

fn text(status: StatusCode, body: String) -> Response<Content> {
    let content = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(content);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
