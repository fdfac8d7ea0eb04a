//! Origins: where answers come from, over connections that are kept and used again.

mod balance;
mod connector;
mod failure;
mod pool;
mod standing;
mod switch;
mod wire;

pub(crate) use balance::{OriginState, Origins, UnderWay};
pub(crate) use connector::{Direct, Filtered};
pub(crate) use failure::Failure;

use crate::configuration::{HostHeader, OriginUrl, Protocol, Underscores};
use crate::request::Upload;
use http::header::{CONTENT_LENGTH, HOST};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use pool::Pool;
use std::fmt;
use std::time::Duration;

/// The time for which a connection that nobody uses is kept: less than nginx keeps them (75 s), so that it is seldom
/// the origin that closes one just when it is used again.
const KEPT: Duration = Duration::from_secs(30);
/// Connections that are kept while nobody uses them.
const SPARE: usize = 1024;
/// Bytes of a response's head, or of a piece of its body, that are read at most.
const BUFFER: usize = 128 << 10;

/// An origin with its connections.
#[derive(Debug)]
pub(crate) struct Origin {
    url: OriginUrl,
    habits: Habits,
    way: Way,
    connector: Direct,
}

/// The form in which an origin gets requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Habits {
    /// The host that it is asked for.
    pub(crate) host_header: HostHeader,
    /// Tells whether it gets fields whose names have underscores.
    pub(crate) underscores: Underscores,
}

/// The client that asks an origin.
#[derive(Debug)]
enum Way {
    /// Over HTTP/1.1.
    Plain(Pool),
    /// Over HTTP/2, or whatever TLS agrees on.
    Other(Box<Client<Direct, Upload>>),
}

/// The head of a request to an origin.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) method: Method,
    pub(crate) authority: Authority,
    pub(crate) path: PathAndQuery,
    pub(crate) fields: HeaderMap,
    /// True if it asks for another protocol on its connection.
    pub(crate) switches: bool,
}

impl Head {
    /// RFC 9110 §8.6: a method that anticipates a body says that there is none.
    pub(crate) fn say_that_nothing_follows(&mut self) {
        if matches!(self.method, Method::POST | Method::PUT | Method::PATCH) {
            self.fields.insert(CONTENT_LENGTH, 0.into());
        }
    }
}

impl Origin {
    /// The origin at `url`, whose certificate goes back to one in `ca` (PEM) or of the system.
    pub(crate) fn new(
        url: OriginUrl,
        ca: Option<&[u8]>,
        habits: Habits,
        patience: Duration,
    ) -> Result<Self, String> {
        let connector = Direct::new(&url, ca, patience)?;
        let way = match url.protocol {
            Protocol::Http1 => Way::Plain(Pool::new(connector.clone())),
            Protocol::Http2 => Way::Other(Box::new(client(connector.clone(), true))),
            Protocol::Tls => Way::Other(Box::new(client(connector.clone(), false))),
        };
        Ok(Self { way, url, habits, connector })
    }

    /// Returns the setting of underscores: tells whether it gets fields whose names have underscores.
    pub(crate) fn underscores(&self) -> Underscores {
        self.habits.underscores
    }

    /// Sends the request, and waits for the head of the response.
    pub(crate) async fn send(&self, mut head: Head, body: Upload) -> Result<Response<Incoming>, Failure> {
        if self.habits.host_header == HostHeader::Origin {
            head.authority = self.url.authority.clone();
        }
        match &self.way {
            Way::Other(_) if head.switches && self.url.protocol == Protocol::Http2 => Err(Failure::NoUpgrade),
            _ if head.switches => switch::send(&self.connector, relative(head, body)).await,
            Way::Plain(pool) => pool.send(relative(head, body)).await,
            // HTTP/2 must not say the host twice.
            Way::Other(client) => {
                let scheme = if self.url.protocol == Protocol::Tls { Scheme::HTTPS } else { Scheme::HTTP };
                client.request(whole(scheme, head, body)).await.map_err(Failure::from)
            }
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

/// The way to whatever host a client names, as far as it may be reached.
#[derive(Debug)]
pub(crate) struct Anywhere {
    client: Client<Filtered, Upload>,
    underscores: Underscores,
}

impl Anywhere {
    /// Through `connector`, with or without fields whose names have underscores.
    pub(crate) fn new(connector: Filtered, underscores: Underscores) -> Self {
        Self { client: client(connector, false), underscores }
    }

    /// Returns the setting of underscores: tells whether hosts get fields whose names have underscores.
    pub(crate) fn underscores(&self) -> Underscores {
        self.underscores
    }

    /// Sends the request to the host that it names, over HTTP/1.1, and waits for the head of the response.
    pub(crate) async fn send(&self, head: Head, body: Upload) -> Result<Response<Incoming>, Failure> {
        self.client.request(whole(Scheme::HTTP, head, body)).await.map_err(Failure::from)
    }
}

fn client<C>(connector: C, prior_knowledge: bool) -> Client<C, Upload>
where
    C: hyper_util::client::legacy::connect::Connect + Clone,
{
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .pool_idle_timeout(KEPT)
        .pool_max_idle_per_host(SPARE)
        .http1_max_buf_size(BUFFER)
        .http2_only(prior_knowledge)
        .build(connector)
}

/// A request that names its host in a field.
fn relative(mut head: Head, body: Upload) -> Request<Upload> {
    let host = HeaderValue::from_str(head.authority.as_str());
    head.fields.insert(HOST, host.expect("an authority is visible ASCII"));
    let target = Uri::from(head.path.clone());
    request(target, head, body)
}

/// A request that names its host in the target.
fn whole(scheme: Scheme, head: Head, body: Upload) -> Request<Upload> {
    let target = Uri::builder().scheme(scheme).authority(head.authority.clone());
    let target = target.path_and_query(head.path.clone()).build();
    request(target.expect("scheme, authority and path are a URL"), head, body)
}

fn request(target: Uri, head: Head, body: Upload) -> Request<Upload> {
    let mut request = Request::new(body);
    *request.method_mut() = head.method;
    *request.uri_mut() = target;
    *request.headers_mut() = head.fields;
    request
}
