//! One request and its response.

use super::session::Session;
use super::sink::Sink;
use super::target::Target;
use crate::failure::{Exit, Failure, OrFail, exit_of};
use crate::output::Console;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING, UPGRADE, USER_AGENT};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use hvq::WriteError;
use hvq_h3::client::RequestError;
use hvq_h3::{ReceiveError, Receiving, SendError, Sending};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::pin::pin;
use std::time::{Duration, Instant};

/// A header of the request.
pub type Header = (HeaderName, HeaderValue);

/// Reads `NAME: VALUE`.
pub fn header(text: &str) -> Result<Header, String> {
    let (name, value) = text.split_once(':').ok_or_else(|| format!("{text:?} is not NAME: VALUE"))?;
    let name: HeaderName =
        name.trim().parse().map_err(|_| format!("{name:?} is not the name of a header"))?;
    let read: HeaderValue =
        value.trim().parse().map_err(|_| format!("{value:?} is not the value of a header"))?;
    // RFC 9114 §4.2: a request with one of these is malformed.
    let of_connections = [CONNECTION, TRANSFER_ENCODING, UPGRADE].contains(&name)
        || ["keep-alive", "proxy-connection"].contains(&name.as_str())
        || (name == TE && !read.as_bytes().eq_ignore_ascii_case(b"trailers"));
    if of_connections {
        return Err(format!("{name} is of connections of HTTP/1.1: HTTP/3 has no such header"));
    }
    let is_host = || Authority::try_from(read.as_bytes()).is_ok_and(|host| !host.as_str().contains('@'));
    if name == HOST && !is_host() {
        return Err(format!("{value:?} is no host"));
    }
    Ok((name, read))
}

/// Reads a method.
pub fn method(text: &str) -> Result<Method, String> {
    match text.parse() {
        Ok(Method::CONNECT) => Err("CONNECT asks for a tunnel and not for a URL: see hvq proxy".to_owned()),
        method => method.map_err(|_| format!("{text:?} is no method")),
    }
}

/// The treatment of responses with an error status (400 and above).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ErrorStatus {
    /// They are responses like others.
    #[default]
    Accepted,
    /// They are failures, and their bodies are not written.
    Fails,
}

/// The request for a URL, apart from the URL.
#[derive(Clone, Debug, Default)]
pub struct RequestOptions {
    /// The method; by default GET, and POST with a body.
    pub method: Option<Method>,
    /// Fields of the header section. They replace those of the same name that are sent anyway.
    pub headers: Vec<Header>,
    /// The value of the field `priority` (RFC 9218 §5); by default there is none.
    pub priority: Option<HeaderValue>,
    /// The content; by default there is none.
    pub body: Option<Bytes>,
    /// The treatment of error statuses. Default: they are accepted.
    pub error_status: ErrorStatus,
}

impl RequestOptions {
    /// The method that is sent.
    pub fn method(&self) -> Method {
        let default = if self.body.is_some() { Method::POST } else { Method::GET };
        self.method.clone().unwrap_or(default)
    }

    /// Returns true for methods that are safe (RFC 9110 §9.2.1) and bring no content: it does no harm when such a request
    /// arrives twice (RFC 8470).
    pub fn is_repeatable(&self) -> bool {
        self.body.is_none() && matches!(self.method(), Method::GET | Method::HEAD)
    }

    fn wants(&self, status: StatusCode) -> bool {
        self.error_status == ErrorStatus::Accepted || status.as_u16() < 400
    }
}

/// The result of a request.
#[derive(Debug)]
pub struct Fetched {
    /// The status of the response.
    pub status: StatusCode,
    /// Bytes of its body.
    pub bytes: u64,
    /// From the request to the headers of the response.
    pub first_byte: Duration,
    /// From the request to the end of the response.
    pub total: Duration,
}

impl Fetched {
    /// Checks the status of the response.
    ///
    /// # Errors
    /// It is an error status, and `options` say that this fails ([`Exit::HttpStatus`]).
    pub fn judge(&self, options: &RequestOptions, url: &url::Url) -> Result<(), Failure> {
        match options.wants(self.status) {
            true => Ok(()),
            false => {
                Err(Failure::new(Exit::HttpStatus, format!("{url}: the server answered {}", self.status)))
            }
        }
    }
}

/// Sends the request for `target` and writes the body of the response to `sink`. Nothing is written if the server of a session that was
/// made to another one does not serve the target (421): [`Session::serves`] is false then.
///
/// # Errors
/// The connection or the request fails ([`exit_of`] says with which exit code), the body is shorter or longer than it was
/// announced, or it cannot be written ([`Exit::Runtime`]).
pub async fn fetch(
    session: &Session,
    target: &Target,
    options: &RequestOptions,
    sink: Sink,
    console: Console,
) -> Result<Fetched, Failure> {
    let request = request(target, options)?;
    say_request(&request, console);
    let start = Instant::now();
    let explain = |error: RequestError| explain(session, target, error);
    let Some(body) = &options.body else {
        let (_sent, receiving) = session.http.whole(&request, Bytes::new()).await.map_err(explain)?;
        return Download { receiving, sink, start }.run(session, target, options, console).await;
    };
    let (sending, receiving) = session.http.open(&request).await.map_err(explain)?;
    let mut download = pin!(Download { receiving, sink, start }.run(session, target, options, console));
    tokio::select! {
        // RFC 9114 §4.1: an answer that is whole counts, whatever became of the request's body.
        fetched = &mut download => fetched,
        sent = upload(sending, body.clone()) => {
            sent.map_err(|error| explain(error.into()))?;
            download.await
        }
    }
}

/// Sends all of a request's body. A server that has answered may want no more of it (RFC 9114 §4.1): its answer says the rest.
async fn upload(mut sending: Sending, body: Bytes) -> Result<(), SendError> {
    let sent = async {
        sending.data(body).await?;
        sending.finish().await
    };
    match sent.await {
        Err(SendError::Lost(WriteError::Stopped(_))) => Ok(()),
        sent => sent,
    }
}

/// A response on its way to its sink.
struct Download {
    receiving: Receiving,
    sink: Sink,
    /// The moment of the request.
    start: Instant,
}

impl Download {
    async fn run(
        mut self,
        session: &Session,
        target: &Target,
        options: &RequestOptions,
        console: Console,
    ) -> Result<Fetched, Failure> {
        let explain = |error: ReceiveError| explain(session, target, error.into());
        let response = self.receiving.response().await.map_err(explain)?;
        let first_byte = self.start.elapsed();
        say_response(&response, console);
        let wanted = options.wants(response.status()) && !session.is_misdirected(response.status(), target);
        let bar = bar(response.headers(), &self.sink, console);
        let mut bytes = 0;
        while let Some(part) = self.receiving.data().await.map_err(explain)? {
            bytes += part.len() as u64;
            bar.set_position(bytes);
            if wanted {
                self.sink.write(&part).await?;
            }
        }
        bar.finish_and_clear();
        if wanted {
            self.sink.finish().await?;
        }
        Ok(Fetched { status: response.status(), bytes, first_byte, total: self.start.elapsed() })
    }
}

fn length_of(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn request(target: &Target, asked: &RequestOptions) -> Result<Request<()>, Failure> {
    let mut url = target.url.clone();
    // RFC 9114 §4.3.1: neither user information nor a fragment is part of what is sent.
    url.set_fragment(None);
    let mut uri = url.as_str().parse::<Uri>()?.into_parts();
    // RFC 9114 §4.3.1: `:authority` is what `host` is in HTTP/1.1, and the two must not differ.
    if let Some((_, host)) = asked.headers.iter().rfind(|(name, _)| name == HOST) {
        uri.authority = Some(Authority::try_from(host.as_bytes())?);
    }
    let mut request = Request::builder().method(asked.method()).uri(Uri::from_parts(uri)?).body(())?;
    let headers = request.headers_mut();
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("hvq/", env!("CARGO_PKG_VERSION"))));
    if let Some(priority) = &asked.priority {
        headers.insert(hvq_h3::priority::PRIORITY, priority.clone());
    }
    if let Some(body) = &asked.body {
        headers.insert(CONTENT_LENGTH, body.len().into());
    }
    // What the caller says replaces a default, and may be said several times.
    asked.headers.iter().for_each(|(name, _)| drop(headers.remove(name)));
    for (name, value) in asked.headers.iter().filter(|(name, _)| name != HOST) {
        headers.append(name, value.clone());
    }
    Ok(request)
}

/// Converts an error of HTTP/3 into a failure; the end of the connection says more than HTTP/3 does.
fn explain(session: &Session, target: &Target, error: RequestError) -> Failure {
    let said = || target.url.to_string();
    match session.connection.close_reason() {
        Some(reason) => {
            let exit = exit_of(&reason);
            let lost: Result<(), _> = Err(reason);
            lost.or_fail(exit, said).expect_err("it is an error")
        }
        None => {
            let failed: Result<(), _> = Err(error);
            failed.or_fail(Exit::Runtime, said).expect_err("it is an error")
        }
    }
}

fn bar(headers: &HeaderMap, sink: &Sink, console: Console) -> ProgressBar {
    let shown = console == Console::Normal && !sink.is_output() && std::io::stderr().is_terminal();
    let bar = match (shown, length_of(headers)) {
        (false, _) => return ProgressBar::hidden(),
        (true, Some(length)) => ProgressBar::new(length),
        (true, None) => ProgressBar::no_length(),
    };
    let style = "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    bar.with_style(ProgressStyle::with_template(style).expect("the template is constant and valid"))
}

fn say_request(request: &Request<()>, console: Console) {
    console.detail(|| {
        format!("> {} {} HTTP/3{}", request.method(), request.uri(), lines('>', request.headers()))
    });
}

fn say_response(response: &http::Response<()>, console: Console) {
    console.detail(|| format!("< HTTP/3 {}{}", response.status(), lines('<', response.headers())));
}

fn lines(mark: char, headers: &HeaderMap) -> String {
    let line = |(name, value): (&HeaderName, &HeaderValue)| {
        format!("\n{mark} {name}: {}", String::from_utf8_lossy(value.as_bytes()))
    };
    headers.iter().map(line).collect()
}
