//! HTTP/3 for clients (RFC 9114): requests and tunnels over one connection.
//!
//! ```
//! # async fn upload(connection: hvq::Connection, body: bytes::Bytes) -> Result<(), Box<dyn std::error::Error>> {
//! let client = hvq_h3::client::Client::new(connection, Default::default()).await?;
//! tokio::spawn(client.watch());
//! let request = http::Request::post("https://localhost/").body(())?;
//! let (mut sending, mut receiving) = client.open(&request).await?;
//! sending.data(body).await?;
//! sending.finish().await?;
//! println!("{}", receiving.response().await?.status());
//! # Ok(())
//! # }
//! ```
//!
//! [`Server`](crate::serving::Server) is the other end.

mod error;
mod response;

pub use error::RequestError;

use crate::protocol::control::Offered;
use crate::protocol::fields;
use crate::protocol::shared::{self, Shared};
use crate::{Code, Origin, Priorities, Protocol, Receiving, SendError, Sending, Settings};
use bytes::Bytes;
use http::{Method, Request, Response};
use hvq::tls::ServerNames;
use hvq::{ConnectionError, Priority, StreamId, WriteError};
use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;

/// A connection to a server. Dropping it closes the connection with H3_NO_ERROR.
#[derive(Debug)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
}

impl Drop for Client {
    fn drop(&mut self) {
        // RFC 9114 §6.2.1: the control stream must not be seen to end before the connection does.
        self.shared.connection.close(Code::H3_NO_ERROR.value(), b"");
    }
}

impl Client {
    /// HTTP/3 on `connection`, whose handshake agreed on the application protocol [`ALPN`](crate::ALPN), or is under way with
    /// 0-RTT: requests are early data then (RFC 9114 §7.2.4.2).
    ///
    /// # Errors
    /// The connection ended.
    pub async fn new(connection: hvq::Connection, settings: Settings) -> Result<Self, ConnectionError> {
        Ok(Self { shared: Shared::begin(connection, settings).await? })
    }

    /// Reads the server's control streams until the connection ends; to be run beside the rest. A server that breaks the protocol
    /// there loses the connection. Once the server has said that it goes away (GOAWAY) and no request is under way any more, it
    /// closes the connection with H3_NO_ERROR (RFC 9114 §5.2).
    pub fn watch(&self) -> impl Future<Output = ()> + Send + 'static {
        shared::watch(self.shared.clone())
    }

    /// The QUIC connection.
    pub fn connection(&self) -> &hvq::Connection {
        &self.shared.connection
    }

    /// Returns the handle that sets the priorities of what is sent on the streams of requests.
    pub fn priorities(&self) -> Priorities {
        self.shared.priorities.clone()
    }

    /// Returns true once the server has said that it goes away (GOAWAY, RFC 9114 §5.2): requests that it had accepted go on, and
    /// further ones fail with [`RequestError::GoingAway`].
    pub fn is_going_away(&self) -> bool {
        self.shared.is_going_away()
    }

    /// Returns true if requests for `origin` may go over this connection beside those for the server that it was made to: the server
    /// named the origin (ORIGIN frame, RFC 9412), and its certificate is for the host. Whoever does not ask DNS whether the host is at
    /// the server's address relies on that certificate alone (RFC 8336 §4). Of no use at a proxy, whose ORIGIN frames count for nothing.
    pub fn serves(&self, origin: &Origin) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc8336#section-2.4
        //# Specifically, such clients MUST NOT consider a connection to be authoritative for an origin not
        //# present in the Origin Set
        let is_named = self.shared.origins().is_some_and(|origins| origins.contains(origin));
        is_named
            && self.shared.connection.peer_certificates().first().is_some_and(|own| {
                ServerNames::of_certificate(own)
                    .is_some_and(|names| names.covers(ServerNames::DEFAULT, origin.host()))
            })
    }

    //= https://www.rfc-editor.org/rfc/rfc8336#section-2.3
    //# Upon receipt of a response with this status code, implementing clients MUST create the ASCII
    //# serialization of the corresponding request's origin (as per [RFC6454], Section 6.2) and remove it from
    //# the connection's Origin Set, if present.
    /// Asks for `origin` over this connection no more: to be called when a request for it was answered with 421 (Misdirected Request,
    /// RFC 9110 §15.5.20), upon which it may be made again over another one.
    pub fn misdirected(&self, origin: &Origin) {
        if let Some(mut origins) = self.shared.origins() {
            origins.remove(origin);
        }
    }

    //= https://www.rfc-editor.org/rfc/rfc9218#section-7.2
    //= type=implication
    //= reason=The stream is one of those that requests have: only they have responses.
    //# The request-stream variant of PRIORITY_UPDATE (type=0xF0700) MUST reference a request stream.
    //= https://www.rfc-editor.org/rfc/rfc9218#section-7.2
    //= type=implication
    //= reason=The transport opens no stream beyond the limit of the server.
    //# The stream ID MUST be within the client-initiated bidirectional stream limit.
    //= https://www.rfc-editor.org/rfc/rfc9218#section-7.2
    //= type=implication
    //= reason=Only clients have this method.
    //# Servers MUST NOT send PRIORITY_UPDATE frames of either type.
    /// Asks for another priority of the response on stream `id` (PRIORITY_UPDATE, RFC 9218 §7.1), which is advice to the server.
    /// An urgency above 7 counts as 7.
    pub fn reprioritize(&self, id: StreamId, priority: Priority) {
        self.shared.reprioritize(id.0, priority);
    }

    /// Sends the header section of `request` on a new stream; the body, if there is one, and the end are to be sent on the half
    /// that is returned. An extended CONNECT has a [`Protocol`] among its extensions, and waits for the server's SETTINGS (RFC
    /// 9220 §3). All protocols but `websocket` need HTTP datagrams, too.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub async fn open(&self, request: &Request<()>) -> Result<(Sending, Receiving), RequestError> {
        let pseudo = self.pseudo(request).await?;
        let (mut sending, receiving) = self.stream(request).await?;
        told(sending.ask(&pseudo.lines(), request.headers()).await)?;
        Ok((sending, receiving))
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1
    //= type=implication
    //= reason=The stream ends with the request, whatever the server does.
    //# Unless using the CONNECT method (see Section 4.4), clients MUST NOT make stream closure dependent on
    //# receiving a response to their request.
    /// Sends a whole request: `body` may be empty. Its header section says no `content-length` of its own accord.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub async fn whole(
        &self,
        request: &Request<()>,
        body: Bytes,
    ) -> Result<(Sending, Receiving), RequestError> {
        let pseudo = self.pseudo(request).await?;
        let (mut sending, receiving) = self.stream(request).await?;
        //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1
        //# After sending a request, a client MUST close the stream for sending.
        told(sending.ask_whole(&pseudo.lines(), request.headers(), body).await)?;
        Ok((sending, receiving))
    }

    /// Asks with `request`, whose method is of no account, for a tunnel of `protocol`, and waits for the answer, which may be
    /// a refusal.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub async fn tunnel(
        &self,
        request: &Request<()>,
        protocol: &str,
    ) -> Result<(Response<()>, Sending, Receiving), RequestError> {
        let mut asked = Request::new(());
        *asked.method_mut() = Method::CONNECT;
        *asked.uri_mut() = request.uri().clone();
        *asked.headers_mut() = request.headers().clone();
        asked.extensions_mut().insert(Protocol::new(protocol));
        let (sending, mut receiving) = self.open(&asked).await?;
        Ok((receiving.response().await?, sending, receiving))
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1
    //= type=implication
    //= reason=Each request opens a stream of its own.
    //# A client MUST send only a single request on a given stream.
    /// A stream for `request`.
    async fn stream(&self, request: &Request<()>) -> Result<(Sending, Receiving), RequestError> {
        //= https://www.rfc-editor.org/rfc/rfc9114#section-5.2
        //# Endpoints MUST NOT initiate new requests or promise new pushes on the connection after receipt of a
        //# GOAWAY frame from the peer.
        if self.is_going_away() {
            return Err(RequestError::GoingAway);
        }
        let (send, receive) = self.shared.connection.open_bi().await?;
        let mut receiving = Receiving::new(receive, self.shared.clone());
        receiving.asked(request.method());
        Ok((Sending::new(send, self.shared.clone()), receiving))
    }

    /// The pseudo-header fields of `request` (RFC 9114 §4.3.1), once it may be sent.
    async fn pseudo<'a>(&self, request: &'a Request<()>) -> Result<Pseudo<'a>, RequestError> {
        // RFC 9114 §4.2: what has such fields is malformed.
        //= https://www.rfc-editor.org/rfc/rfc9114#section-4.2
        //= type=implication
        //= reason=A `HeaderName` has lower case alone.
        //# Characters in field names MUST be converted to lowercase prior to their encoding.
        fields::check(request.headers()).map_err(|_| RequestError::Malformed)?;
        let protocol = request.extensions().get::<Protocol>();
        if let Some(protocol) = protocol {
            let offers = self.shared.offers().await?;
            // RFC 9220 §3: not before the setting was received, and not without it.
            let lacks_datagrams = offers.datagrams == Offered::No && protocol.has_datagrams();
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4.2
            //# An HTTP implementation MUST NOT send frames or requests that would be invalid based on its current
            //# understanding of the peer's settings.
            if offers.extended_connect == Offered::No || lacks_datagrams {
                return Err(RequestError::NotOffered);
            }
        }
        Pseudo::of(request, protocol).ok_or(RequestError::NoUri)
    }
}

/// The result of sending a request that the server may stop: its reason comes on the other half.
fn told(sent: Result<(), SendError>) -> Result<(), RequestError> {
    match sent {
        //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1
        //# Clients MUST NOT discard complete responses as a result of having their request terminated abruptly,
        //# though clients can always discard responses at their discretion for other reasons.
        Err(SendError::Lost(WriteError::Stopped(_))) => Ok(()),
        sent => Ok(sent?),
    }
}

/// The pseudo-header fields of a request.
struct Pseudo<'a> {
    method: &'a str,
    authority: &'a str,
    /// Scheme and path, which a plain CONNECT does not have (RFC 9114 §4.4).
    target: Option<(&'a str, Cow<'a, str>)>,
    protocol: Option<&'a str>,
}

impl<'a> Pseudo<'a> {
    /// Those of `request`; `None` if its URI lacks a part.
    fn of(request: &'a Request<()>, protocol: Option<&'a Protocol>) -> Option<Self> {
        let uri = request.uri();
        //= https://www.rfc-editor.org/rfc/rfc9114#section-4.4
        //# A CONNECT request MUST be constructed as follows:
        let is_tunnel = request.method() == Method::CONNECT && protocol.is_none();
        let target = match is_tunnel {
            true => None,
            false => {
                //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
                //# This pseudo-header field MUST NOT be empty for "http" or "https" URIs; "http" or "https" URIs that
                //# do not contain a path component MUST include a value of / (ASCII 0x2f).
                let path = match uri.path_and_query().map_or("", |path| path.as_str()) {
                    path if path.starts_with(['/', '*']) => path.into(),
                    query => format!("/{query}").into(),
                };
                Some((uri.scheme_str()?, path))
            }
        };
        Some(Self {
            method: request.method().as_str(),
            //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
            //= type=implication
            //= reason=Requests without an authority are not sent.
            //# If the scheme does not have a mandatory authority component and none is provided in the request
            //# target, the request MUST NOT contain the :authority pseudo-header or Host header fields.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
            //# The authority MUST NOT include the deprecated userinfo subcomponent for URIs of scheme "http" or
            //# "https".
            authority: without_user(uri.authority()?.as_str()),
            target,
            protocol: protocol.map(Protocol::as_str),
        })
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3
    //= type=implication
    //= reason=These are all that are written.
    //# Endpoints MUST NOT generate pseudo-header fields other than those defined in this document.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.5
    //= type=implication
    //= reason=Nothing writes the frame.
    //# A client MUST NOT send a PUSH_PROMISE frame.
    fn lines(&self) -> Vec<(&'static str, &[u8])> {
        let lines = [
            (":method", Some(self.method)),
            (":protocol", self.protocol),
            (":scheme", self.target.as_ref().map(|(scheme, _)| *scheme)),
            (":authority", Some(self.authority)),
            (":path", self.target.as_ref().map(|(_, path)| path.as_ref())),
        ];
        lines.into_iter().filter_map(|(name, value)| Some((name, value?.as_bytes()))).collect()
    }
}

/// `authority` without user information.
fn without_user(authority: &str) -> &str {
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Uri;
    use http::uri::PathAndQuery;

    fn lines(request: &Request<()>) -> Option<Vec<(&'static str, String)>> {
        let pseudo = Pseudo::of(request, request.extensions().get::<Protocol>())?;
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        Some(pseudo.lines().into_iter().map(|(name, value)| (name, text(value))).collect())
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
    //= type=test
    //# This pseudo-header field MUST NOT be empty for "http" or "https" URIs; "http" or "https" URIs that
    //# do not contain a path component MUST include a value of / (ASCII 0x2f).
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.4
    //= type=test
    //# A CONNECT request MUST be constructed as follows:
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
    //= type=test
    //# The authority MUST NOT include the deprecated userinfo subcomponent for URIs of scheme "http" or
    //# "https".
    #[test]
    fn requests_have_the_pseudo_header_fields_of_their_kind() {
        // RFC 9114 §4.3.1, §4.4; RFC 9220 §3.
        let of = |method: &str, uri: &str| Request::builder().method(method).uri(uri).body(()).unwrap();
        let names = |request: &Request<()>| {
            let lines = lines(request).unwrap();
            lines.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
        };
        let get = names(&of("GET", "https://a.example:8443/b?c"));
        assert_eq!(get, ":method=GET :scheme=https :authority=a.example:8443 :path=/b?c");
        let get = names(&of("GET", "https://ann:secret@a.example/"));
        assert_eq!(get, ":method=GET :scheme=https :authority=a.example :path=/");
        for (uri, path) in [("https://a.example", "/"), ("https://a.example?c", "/?c")] {
            let get = names(&of("GET", uri));
            assert_eq!(get, format!(":method=GET :scheme=https :authority=a.example :path={path}"));
        }
        let mut server = http::uri::Parts::from(Uri::from_static("https://a.example/"));
        server.path_and_query = Some(PathAndQuery::from_static("*"));
        let whole =
            Request::builder().method("OPTIONS").uri(Uri::from_parts(server).unwrap()).body(()).unwrap();
        assert_eq!(names(&whole), ":method=OPTIONS :scheme=https :authority=a.example :path=*");
        assert_eq!(names(&of("CONNECT", "a.example:22")), ":method=CONNECT :authority=a.example:22");
        let mut extended = of("CONNECT", "https://a.example/b");
        extended.extensions_mut().insert(Protocol::new("connect-udp"));
        assert_eq!(
            names(&extended),
            ":method=CONNECT :protocol=connect-udp :scheme=https :authority=a.example :path=/b"
        );
        for relative in [of("GET", "/a"), of("GET", "a.example:1"), of("CONNECT", "/a")] {
            assert_eq!(lines(&relative), None, "{relative:?}");
        }
    }

    #[test]
    fn a_server_that_stops_a_request_may_answer_it_all_the_same() {
        // RFC 9114 §4.1.
        assert_eq!(told(Err(SendError::Lost(WriteError::Stopped(0x100)))), Ok(()));
        assert_eq!(told(Ok(())), Ok(()));
        assert_eq!(told(Err(SendError::Stalled)), Err(RequestError::Send(SendError::Stalled)));
    }
}
