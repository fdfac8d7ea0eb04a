//! Rules for header fields on their way from HTTP/3 to an origin and back: what is malformed, what concerns one hop only,
//! and what the gateway says itself.

use crate::configuration::Underscores;
use crate::destination_policy::port_of;
use http::header::{COOKIE, EXPECT, FORWARDED, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, VIA};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, response};
use hvq_h3::content_length;
use hvq_h3::hop_by_hop::{self, CONNECTION_SPECIFIC};
use std::net::IpAddr;

/// Fields that say where a request came from, which the gateway says itself: what a client says there is not believed.
const PROVENANCE: [HeaderName; 6] = [
    FORWARDED,
    X_FORWARDED_FOR,
    X_FORWARDED_HOST,
    X_FORWARDED_PROTO,
    HeaderName::from_static("x-real-ip"),
    EARLY_DATA,
];
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

/// The gateway's pseudonym in `via` (RFC 9110 §7.6.3).
const PSEUDONYM: &str = "hvq-gateway";
/// The number of times that a request may have come through a gateway of this name: more is a loop.
const PASSES: usize = 8;

/// The reason for which a request is not served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FieldError {
    /// It is malformed, and its stream is reset (RFC 9114 §4.1.2).
    Malformed(&'static str),
    /// It is answered with an error.
    Refused(StatusCode, &'static str),
}

/// Checks the fields of `request`; returns the length of its body, if it says one.
///
/// # Errors
/// The request must not go on: it is malformed, or would mean something else in HTTP/1.1.
pub(crate) fn check(request: &Request<()>) -> Result<Option<u64>, FieldError> {
    let fields = request.headers();
    // RFC 9114 §4.2: what has such a field is malformed.
    if CONNECTION_SPECIFIC.iter().any(|name| fields.contains_key(name)) {
        return Err(FieldError::Malformed("a field about a connection of HTTP/1.1"));
    }
    if fields.get_all(TE).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"trailers")) {
        return Err(FieldError::Malformed("te says more than trailers"));
    }
    if fields.get_all(HOST).iter().count() > 1 {
        return Err(FieldError::Malformed("several hosts"));
    }
    let uri = request.uri();
    // RFC 9114 §4.3.1: no user information in :authority.
    if uri.authority().is_none_or(|authority| authority.as_str().contains('@') || authority.host().is_empty())
    {
        return Err(FieldError::Malformed("the authority is no host"));
    }
    if uri.authority().is_some_and(|authority| port_of(authority).is_err()) {
        return Err(FieldError::Malformed("the authority's port is no number of 16 bits"));
    }
    // Extended CONNECT has a path, too (RFC 8441 §4).
    if request.method() != Method::CONNECT || uri.path_and_query().is_some() {
        let path = uri.path_and_query().map_or("", |path| path.as_str());
        // RFC 9114 §4.3.1: a path begins with a slash; only OPTIONS may ask for the server as a whole.
        let whole = path == "*" && request.method() == Method::OPTIONS;
        if !whole && !path.starts_with('/') {
            return Err(FieldError::Malformed("the path does not begin with a slash"));
        }
        if path.bytes().any(|byte| !(0x21..=0x7e).contains(&byte)) {
            return Err(FieldError::Refused(
                StatusCode::BAD_REQUEST,
                "the path has bytes that belong percent-encoded",
            ));
        }
    }
    content_length(fields).map_err(|_| FieldError::Malformed("the content length is no number"))
}

/// Fields that do not go on: they concern one hop, or the gateway says them itself.
const KEPT_BACK: [HeaderName; 4] = [HOST, TE, EXPECT, PROXY_AUTHORIZATION];
/// Fields that the gateway adds at most.
const ADDED: usize = 6;

/// The gateway's description of the origin of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Provenance {
    forwarded: HeaderValue,
    address: HeaderValue,
    authority: HeaderValue,
}

impl Provenance {
    /// Describes the origin of a request for `authority` by the client at `address`, that of its open path of smallest
    /// ID: paths of one connection are one client's.
    pub(crate) fn new(address: IpAddr, authority: &Authority) -> Self {
        let node = if address.is_ipv6() { format!("\"[{address}]\"") } else { address.to_string() };
        let value =
            |text: String| HeaderValue::from_str(&text).expect("addresses and authorities are visible ASCII");
        Self {
            forwarded: value(format!("for={node};host=\"{authority}\";proto=https")),
            address: value(address.to_string()),
            authority: value(authority.to_string()),
        }
    }
}

/// Returns true if a field of a client's request goes on to an origin, in the head or among trailers. CGI, WSGI and PHP
/// write `-` and `_` of names alike: `x_real_ip` would become the `HTTP_X_REAL_IP` of what the gateway says itself.
fn goes_on(name: &HeaderName, underscores: Underscores) -> bool {
    let is_plain = underscores == Underscores::Keep || !name.as_str().contains('_');
    is_plain && !PROVENANCE.contains(name) && !KEPT_BACK.contains(name)
}

/// The trailers that an origin gets of those that a client sent.
pub(crate) fn trailers(fields: &HeaderMap, underscores: Underscores) -> HeaderMap {
    let onward = fields.iter().filter(|(name, _)| goes_on(name, underscores));
    onward.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Circumstances of a request that decide which fields an origin gets.
#[derive(Clone, Debug)]
pub(crate) struct Circumstances {
    /// The client's address and the host that was asked.
    pub(crate) provenance: Provenance,
    /// Tells whether the origin gets names with underscores.
    pub(crate) underscores: Underscores,
    /// The version of HTTP that the client speaks.
    pub(crate) version: Version,
    /// True if the request came before the handshake was complete (RFC 8470 §5.1).
    pub(crate) early: bool,
}

/// The fields that an origin gets with a request that passed [`check`] and has `fields`, without `host`.
///
/// # Errors
/// The request goes in circles.
pub(crate) fn inbound(fields: &HeaderMap, circumstances: Circumstances) -> Result<HeaderMap, FieldError> {
    let Circumstances { provenance, underscores, version, early } = circumstances;
    let passes = fields.get_all(VIA).iter().filter_map(|via| via.to_str().ok());
    if passes.map(|via| via.matches(PSEUDONYM).count()).sum::<usize>() >= PASSES {
        return Err(FieldError::Refused(StatusCode::LOOP_DETECTED, "the request goes in circles"));
    }
    let mut onward = HeaderMap::with_capacity(fields.len() + ADDED);
    for (name, value) in fields {
        if goes_on(name, underscores) {
            onward.append(name, value.clone());
        }
    }
    join_cookies(&mut onward);
    onward.insert(FORWARDED, provenance.forwarded);
    onward.insert(X_FORWARDED_FOR, provenance.address);
    onward.insert(X_FORWARDED_HOST, provenance.authority);
    onward.insert(X_FORWARDED_PROTO, HeaderValue::from_static("https"));
    onward.append(VIA, HeaderValue::from_static(via(version)));
    if early {
        onward.insert(EARLY_DATA, HeaderValue::from_static("1"));
    }
    Ok(onward)
}

/// The value of `via` (RFC 9110 §7.6.3): the version that the request came by, and the pseudonym.
fn via(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0 hvq-gateway",
        Version::HTTP_11 => "1.1 hvq-gateway",
        Version::HTTP_2 => "2 hvq-gateway",
        _ => "3 hvq-gateway",
    }
}

/// RFC 9114 §4.2.1: crumbs of a cookie become one field before they go on.
fn join_cookies(fields: &mut HeaderMap) {
    if fields.get_all(COOKIE).iter().count() < 2 {
        return;
    }
    let crumbs: Vec<&[u8]> = fields.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    let joined = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])).expect("joined values are a value");
    fields.insert(COOKIE, joined);
}

/// The head of an origin's response as the client gets it.
///
/// # Errors
/// It is a response to something that the gateway did not ask for.
pub(crate) fn outbound(parts: response::Parts) -> Result<Response<()>, FieldError> {
    // Nothing was asked that switches protocols (RFC 9110 §15.2.2); other interim responses never get here.
    if parts.status.is_informational() {
        return Err(FieldError::Refused(StatusCode::BAD_GATEWAY, "the origin switched protocols, unasked"));
    }
    let mut fields = parts.headers;
    hop_by_hop::strip(&mut fields);
    fields.remove(PROXY_AUTHENTICATE);
    let mut response = Response::new(());
    *response.status_mut() = parts.status;
    *response.headers_mut() = fields;
    Ok(response)
}

#[cfg(test)]
mod tests;
