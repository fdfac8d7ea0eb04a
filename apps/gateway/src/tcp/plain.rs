//! HTTP without TLS: it sends browsers to https, and shows authorities the answers to their challenges (ACME, RFC 8555 §8.3).

use crate::gateway::Shared;
use crate::virtual_host::Route;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, LOCATION};
use http::uri::Authority;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The path under which authorities ask (RFC 8555 §8.3).
const CHALLENGES: &str = "/.well-known/acme-challenge/";
/// Characters of a token, and bytes of its answer, at most: a token and a thumbprint are some 90.
const LONGEST: usize = 256;
/// The port of https (RFC 9110 §4.2.2).
const HTTPS: u16 = 443;

/// The answers of HTTP without TLS.
pub(super) struct PlainService {
    pub(super) shared: Arc<Shared>,
    /// The port that browsers are sent to.
    pub(super) port: u16,
    /// The folder above `.well-known`, if there are answers to challenges.
    pub(super) challenges: Option<PathBuf>,
}

/// Serves one request of a connection.
pub(super) async fn serve(plain: Arc<PlainService>, stream: TcpStream) {
    let patience = plain.shared.virtual_hosts().timeouts.header;
    let service = service_fn(move |request| {
        let plain = plain.clone();
        async move { Ok::<_, Infallible>(plain.answer(&request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(patience).keep_alive(false);
    let served = builder.serve_connection(TokioIo::new(stream), service);
    if let Ok(Err(error)) = timeout(patience * 2, served).await {
        tracing::debug!(%error, "a request without TLS");
    }
}

impl PlainService {
    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if let Some(token) = request.uri().path().strip_prefix(CHALLENGES)
            && self.challenges.is_some()
        {
            return match self.challenge(token).await {
                Some(answer) => text(StatusCode::OK, answer),
                None => text(StatusCode::NOT_FOUND, "there is no such challenge\n"),
            };
        }
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
        let Some(host) = host else { return text(StatusCode::BAD_REQUEST, "there is no host\n") };
        if matches!(self.shared.virtual_hosts().route(host.host(), Some("https")), Route::Nowhere) {
            return text(StatusCode::MISDIRECTED_REQUEST, "this host is not served here\n");
        }
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let location = HeaderValue::try_from(location(host.host(), self.port, path));
        let Ok(location) = location else { return text(StatusCode::BAD_REQUEST, "the path is no path\n") };
        // RFC 9110 §15.4.2, §15.4.9: only 308 keeps the method.
        let status = match *request.method() {
            Method::GET | Method::HEAD => StatusCode::MOVED_PERMANENTLY,
            _ => StatusCode::PERMANENT_REDIRECT,
        };
        let mut response = text(status, "this is served over https\n");
        response.headers_mut().insert(LOCATION, location);
        response
    }

    /// The answer to the challenge that `token` names.
    async fn challenge(&self, token: &str) -> Option<Bytes> {
        // RFC 8555 §8.1: of base64url, so that it names nothing above the folder.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        let sound = (1..=LONGEST).contains(&token.len()) && token.bytes().all(plain);
        let folder = self.challenges.as_ref().filter(|_| sound)?;
        let path = folder.join(CHALLENGES.trim_start_matches('/')).join(token);
        let answer = tokio::fs::read(path).await.ok()?;
        Some(answer.into()).filter(|answer: &Bytes| answer.len() <= LONGEST)
    }
}

fn location(host: &str, port: u16, path: &str) -> String {
    let path = if path.starts_with('/') { path } else { "/" };
    if port == HTTPS { format!("https://{host}{path}") } else { format!("https://{host}:{port}{path}") }
}

fn text(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_sent_to_the_same_page_over_https() {
        assert_eq!(location("example.org", 443, "/a?b"), "https://example.org/a?b");
        assert_eq!(location("[::1]", 8443, "/"), "https://[::1]:8443/");
        assert_eq!(location("example.org", 443, "*"), "https://example.org/");
    }
}
