//! Beginnings of sessions: a request of extended CONNECT, and its answer (draft-ietf-webtrans-http3 §3).

use super::Session;
use super::end::SessionError;
use crate::client::{Client, RequestError};
use crate::protocol::control::{Offered, Offers, Sessions};
use crate::protocol::sessions::TooManySessions;
use crate::{Code, Protocol, Receiving, Sending};
use bytes::Bytes;
use http::header::{HeaderName, ORIGIN};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use sfv::{BareItem, Item, List, ListEntry, Parser};
use std::time::Duration;
use tokio::time::timeout;

/// The time that a client has for its SETTINGS.
const PATIENCE: Duration = Duration::from_secs(10);
/// The upgrade token of the current draft (§9.1).
const TOKEN: &str = "webtransport-h3";
/// The upgrade token of drafts before.
const EARLY_TOKEN: &str = "webtransport";
/// The application protocols that a client offers (§3.3).
const OFFERED: HeaderName = HeaderName::from_static("wt-available-protocols");
/// The one that the server chose (§3.3).
const CHOSEN: HeaderName = HeaderName::from_static("wt-protocol");

/// The pages that may begin sessions, by their origin (RFC 6454 §6.2). Other programs say none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Origins {
    /// None: programs alone, not browsers.
    #[default]
    None,
    /// Those listed, as in `https://example.org` or `https://example.org:8443`.
    Listed(Vec<String>),
    /// All.
    Any,
}

impl Origins {
    fn permit(&self, origin: &str) -> bool {
        match self {
            Self::None => false,
            Self::Listed(listed) => listed.iter().any(|permitted| permitted.eq_ignore_ascii_case(origin)),
            Self::Any => true,
        }
    }
}

/// The terms on which a server takes sessions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Terms {
    /// The pages that may begin one. Default: none.
    pub origins: Origins,
    /// The application protocols that the server speaks; of those that the client offers, the first of these is chosen (§3.3).
    /// Default: none.
    pub protocols: Vec<String>,
}

/// A request for a session, at a server.
#[derive(Debug)]
pub struct SessionRequest {
    request: Request<()>,
    sending: Sending,
    receiving: Receiving,
}

/// Returns true if `request` is one for a session.
pub fn asks_for_session(request: &Request<()>) -> bool {
    let protocol = request.extensions().get::<Protocol>().map(Protocol::as_str);
    let is_https = request.uri().scheme_str() == Some("https");
    is_https && matches!(protocol, Some(TOKEN | EARLY_TOKEN))
}

impl SessionRequest {
    /// The request that [`Incoming::request`](crate::serving::Incoming::request) returned, with the halves of its stream.
    pub fn new(request: Request<()>, sending: Sending, receiving: Receiving) -> Self {
        Self { request, sending, receiving }
    }

    /// The address that is asked for.
    pub fn uri(&self) -> &Uri {
        self.request.uri()
    }

    /// The fields of the request.
    pub fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// The application protocols that the client offers, the one it likes best first.
    pub fn protocols(&self) -> Vec<String> {
        offered(self.request.headers())
    }

    /// Begins the session, if it meets the `terms`; answers with an error otherwise.
    ///
    /// # Errors
    /// See [`SessionError`].
    pub async fn accept(self, terms: &Terms) -> Result<Session, SessionError> {
        let shared = self.receiving.shared().clone();
        let Some(web_transport) = shared.web_transport().filter(|_| asks_for_session(&self.request)) else {
            self.refuse(StatusCode::METHOD_NOT_ALLOWED).await?;
            return Err(SessionError::NoSession);
        };
        let peer = match timeout(PATIENCE, shared.offers()).await {
            Ok(peer) => peer.map_err(RequestError::from)?,
            Err(_late) => Offers::default(),
        };
        // §3.1: what was asked for before these came is malformed without them.
        if peer.sessions == Sessions::None || peer.datagrams == Offered::No {
            let Self { mut sending, mut receiving, .. } = self;
            receiving.stop(Code::H3_MESSAGE_ERROR);
            sending.reset(Code::H3_MESSAGE_ERROR);
            return Err(SessionError::NotOffered);
        }
        // §3.2: a page says where it comes from.
        if let Some(origin) = self.request.headers().get(ORIGIN) {
            let origin = origin.to_str().unwrap_or("null").to_owned();
            if !terms.origins.permit(&origin) {
                self.refuse(StatusCode::FORBIDDEN).await?;
                return Err(SessionError::Origin(origin));
            }
        }
        let offered = self.protocols();
        let protocol = offered.into_iter().find(|offered| terms.protocols.contains(offered));
        let Self { mut sending, mut receiving, .. } = self;
        let Ok(arrivals) = web_transport.open(sending.id().0) else {
            // §5.1: without flow control there is one session at a time, and with it a number of them.
            receiving.stop(Code::H3_REQUEST_REJECTED);
            sending.reset(Code::H3_REQUEST_REJECTED);
            return Err(SessionError::TooMany);
        };
        let mut head = Response::new(());
        if let Some(protocol) = protocol.as_deref().and_then(quoted) {
            head.headers_mut().insert(CHOSEN, protocol);
        }
        if let Err(error) = sending.head(&head).await {
            web_transport.close(sending.id().0);
            return Err(error.into());
        }
        Ok(Session::begin(sending, receiving, arrivals, protocol))
    }

    /// Answers with an error.
    ///
    /// # Errors
    /// See [`SendError`](crate::SendError).
    pub async fn refuse(mut self, status: StatusCode) -> Result<(), crate::SendError> {
        let mut head = Response::new(());
        *head.status_mut() = status;
        self.sending.whole(&head, Bytes::new()).await
    }
}

impl Client {
    /// Asks with `request`, whose URI has the scheme `https` and whose method is of no account, for a WebTransport session in which
    /// one of `protocols` is spoken, if any are named: printable ASCII, the best first. The [`Settings`](crate::Settings) of both
    /// ends have to say [`Tunnels::WebTransport`](crate::Tunnels::WebTransport).
    ///
    /// # Errors
    /// See [`SessionError`].
    pub async fn web_transport(
        &self,
        request: &Request<()>,
        protocols: &[&str],
    ) -> Result<Session, SessionError> {
        let web_transport = self.shared.web_transport().ok_or(SessionError::NotOffered)?;
        let token = match self.shared.offers().await.map_err(RequestError::from)?.sessions {
            Sessions::None => return Err(SessionError::NotOffered),
            Sessions::Early => EARLY_TOKEN,
            Sessions::Current => TOKEN,
        };
        if !web_transport.has_room() {
            return Err(SessionError::TooMany);
        }
        let mut request = request.clone();
        let list: Vec<_> = protocols.iter().filter_map(|protocol| quoted(protocol)).collect();
        for protocol in list {
            request.headers_mut().append(OFFERED, protocol);
        }
        let (head, mut sending, mut receiving) = self.tunnel(&request, token).await?;
        if !head.status().is_success() {
            return Err(SessionError::Refused(head.status()));
        }
        let protocol = chosen(head.headers());
        if protocol.as_deref().is_some_and(|chosen| !protocols.contains(&chosen)) {
            receiving.stop(Code::WT_ALPN_ERROR);
            sending.reset(Code::WT_ALPN_ERROR);
            return Err(SessionError::Protocol);
        }
        let arrivals = web_transport.open(sending.id().0).map_err(|TooManySessions| SessionError::TooMany)?;
        Ok(Session::begin(sending, receiving, arrivals, protocol))
    }
}

/// The protocols of `wt-available-protocols`; none if the field is not a list of strings (§3.3).
fn offered(headers: &HeaderMap) -> Vec<String> {
    let lines: Vec<_> = headers.get_all(OFFERED).iter().filter_map(|line| line.to_str().ok()).collect();
    let Ok(list) = Parser::new(&lines.join(", ")).parse::<List>() else { return Vec::new() };
    let text = |entry: ListEntry| match entry {
        ListEntry::Item(Item { bare_item: BareItem::String(text), .. }) => Some(text.as_str().to_owned()),
        ListEntry::Item(_) | ListEntry::InnerList(_) => None,
    };
    list.into_iter().map(text).collect::<Option<_>>().unwrap_or_default()
}

/// The protocol of `wt-protocol`, unless the field is not a string (§3.3).
fn chosen(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(CHOSEN)?.to_str().ok()?;
    match Parser::new(text).parse::<Item>().ok()?.bare_item {
        BareItem::String(text) => Some(text.as_str().to_owned()),
        _ => None,
    }
}

/// `text` as a string of a structured field (RFC 9651 §3.3.3); `None` if it is not printable ASCII.
fn quoted(text: &str) -> Option<HeaderValue> {
    if !text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return None;
    }
    HeaderValue::from_str(&format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_strings_of_structured_fields() {
        let mut headers = HeaderMap::new();
        for protocol in ["moqt-16", "a \"b\" \\c"] {
            headers.append(OFFERED, quoted(protocol).unwrap());
        }
        assert_eq!(offered(&headers), ["moqt-16", "a \"b\" \\c"]);
        headers.append(OFFERED, HeaderValue::from_static("token"));
        assert_eq!(offered(&headers), Vec::<String>::new(), "one that is no string voids the field");
        assert_eq!(quoted("ü"), None);
        let answer = HeaderMap::from_iter([(CHOSEN, HeaderValue::from_static("\"a\";b=1"))]);
        assert_eq!(chosen(&answer), Some("a".to_owned()));
        assert_eq!(chosen(&HeaderMap::from_iter([(CHOSEN, HeaderValue::from_static("a"))])), None);
    }

    #[test]
    fn pages_begin_sessions_if_their_origin_is_listed() {
        let listed = Origins::Listed(vec!["https://a.example".to_owned()]);
        assert!(listed.permit("https://a.example") && !listed.permit("https://b.example"));
        assert!(!Origins::default().permit("https://a.example") && Origins::Any.permit("null"));
    }
}
