//! A request from its field section (RFC 9114 §4.3).

use super::fields::{Malformed, split};
use crate::qpack::Field;
use bytes::Bytes;
use http::uri::{Authority, Parts, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, Uri, Version};
use std::sync::Arc;

/// The protocol that an extended CONNECT request asks to be spoken on its stream (RFC 9220), among the extensions of a
/// request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Protocol(Arc<str>);

impl Protocol {
    /// A protocol by its name, such as `connect-udp` (RFC 9298).
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name that the request says, such as `connect-udp` or `connect-ip`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if the protocol has HTTP datagrams, as far as is known: WebSocket is on its stream alone (RFC 9220).
    pub(crate) fn has_datagrams(&self) -> bool {
        !self.0.eq_ignore_ascii_case("websocket")
    }
}

/// Pseudo-header fields of requests.
#[derive(Default)]
struct Pseudo {
    method: Option<Bytes>,
    scheme: Option<Bytes>,
    authority: Option<Bytes>,
    path: Option<Bytes>,
    protocol: Option<Bytes>,
}

impl Pseudo {
    /// RFC 9114 §4.3: each at most once, and no others.
    fn take(&mut self, Field { name, value }: Field) -> Result<(), Malformed> {
        let place = match &name[..] {
            b":method" => &mut self.method,
            b":scheme" => &mut self.scheme,
            b":authority" => &mut self.authority,
            b":path" => &mut self.path,
            b":protocol" => &mut self.protocol,
            //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3
            //# Pseudo-header fields defined for requests MUST NOT appear in responses; pseudo-header fields defined
            //# for responses MUST NOT appear in requests.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3
            //# Endpoints MUST treat a request or response that contains undefined or invalid pseudo-header fields
            //# as malformed.
            _ => return Err(Malformed("a pseudo-header field that requests do not have")),
        };
        //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
        //# All HTTP/3 requests MUST include exactly one value for the :method, :scheme, and :path pseudo-header
        //# fields, unless the request is a CONNECT request; see Section 4.4.
        match place.replace(value) {
            None => Ok(()),
            Some(_) => Err(Malformed("a pseudo-header field twice")),
        }
    }
}

/// The request that `section` is of.
pub(crate) fn request(section: Vec<Field>) -> Result<Request<()>, Malformed> {
    let mut pseudo = Pseudo::default();
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1.2
    //# Intermediaries that process HTTP requests or responses (i.e., any intermediary not acting as a
    //# tunnel) MUST NOT forward a malformed request or response.
    let fields = split(section, |field| pseudo.take(field))?;
    let method = pseudo.method.as_deref().ok_or(Malformed("no method"))?;
    let method = Method::from_bytes(method).map_err(|_| Malformed("a method that is none"))?;
    let protocol = pseudo.protocol.take().map(protocol).transpose()?;
    if protocol.is_some() && method != Method::CONNECT {
        // RFC 8441 §4, as RFC 9220 §3 has it.
        return Err(Malformed("a protocol without CONNECT"));
    }
    let uri = uri(pseudo, &fields, method == Method::CONNECT && protocol.is_none())?;
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = fields;
    *request.version_mut() = Version::HTTP_3;
    if let Some(protocol) = protocol {
        request.extensions_mut().insert(protocol);
    }
    Ok(request)
}

fn protocol(text: Bytes) -> Result<Protocol, Malformed> {
    match std::str::from_utf8(&text) {
        Ok(text) if !text.is_empty() => Ok(Protocol(text.into())),
        _ => Err(Malformed("a protocol that is none")),
    }
}

/// The URI that is asked for, of the authority alone if `tunnel` (RFC 9114 §4.4). There scheme and path are passed over, though
/// they may not be there: `h3` 0.0.8 says them of every request.
fn uri(pseudo: Pseudo, fields: &HeaderMap, tunnel: bool) -> Result<Uri, Malformed> {
    let Pseudo { scheme, authority, path, .. } = pseudo;
    let host = fields.get(http::header::HOST).map(|host| Bytes::copy_from_slice(host.as_bytes()));
    // RFC 9114 §4.3.1: one of both, with the same value if there are both.
    let authority = match (authority, host) {
        //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
        //# If both fields are present, they MUST contain the same value.
        (Some(authority), Some(host)) if authority != host => {
            return Err(Malformed("authority and host differ"));
        }
        (Some(authority), _) | (None, Some(authority)) => authority,
        //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
        //# If the :scheme pseudo-header field identifies a scheme that has a mandatory authority component
        //# (including "http" and "https"), the request MUST contain either an :authority pseudo-header field or
        //# a Host header field.
        (None, None) => return Err(Malformed("no authority")),
    };
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
    //# If these fields are present, they MUST NOT be empty.
    let authority =
        Authority::from_maybe_shared(authority).map_err(|_| Malformed("an authority that is none"))?;
    let mut parts = Parts::default();
    parts.authority = Some(authority);
    match (scheme, path) {
        _ if tunnel => {}
        (Some(scheme), Some(path)) if !tunnel => {
            let scheme = Scheme::try_from(&scheme[..]).map_err(|_| Malformed("a scheme that is none"))?;
            // RFC 9114 §4.3.1: path and query. `PathAndQuery` would cut a fragment off, unseen.
            if path.contains(&b'#') {
                return Err(Malformed("a path with a fragment"));
            }
            let path = PathAndQuery::from_maybe_shared(path).map_err(|_| Malformed("a path that is none"))?;
            (parts.scheme, parts.path_and_query) = (Some(scheme), Some(path));
        }
        _ => return Err(Malformed("no scheme or no path")),
    }
    Uri::from_parts(parts).map_err(|_| Malformed("no URI"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[(&str, &str)]) -> Result<Request<()>, Malformed> {
        let field = |(name, value): &(&str, &str)| Field {
            name: Bytes::copy_from_slice(name.as_bytes()),
            value: Bytes::copy_from_slice(value.as_bytes()),
        };
        request(lines.iter().map(field).collect())
    }

    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "https"), (":authority", "example.org"), (":path", "/a?b")];

    #[test]
    fn a_request_has_what_its_fields_say() {
        let request =
            of(&[&GET[..], &[("accept", "*/*"), ("cookie", "a"), ("cookie", "b")]].concat()).unwrap();
        assert_eq!((request.method(), request.version()), (&Method::GET, Version::HTTP_3));
        assert_eq!(request.uri(), "https://example.org/a?b");
        assert_eq!(request.headers().get_all("cookie").iter().count(), 2);
        let by_host = of(&[GET[0], GET[1], GET[3], ("host", "example.org")]).unwrap();
        assert_eq!(by_host.uri(), "https://example.org/a?b");
    }

    #[test]
    fn connect_has_an_authority_and_nothing_else() {
        // RFC 9114 §4.4.
        let request = of(&[(":method", "CONNECT"), (":authority", "example.org:443")]).unwrap();
        assert_eq!(request.uri().authority().unwrap(), "example.org:443");
        let as_h3_does =
            [(":method", "CONNECT"), (":authority", "a:1"), (":path", "/"), (":scheme", "https")];
        assert_eq!(of(&as_h3_does).unwrap().uri(), "a:1");
        assert!(of(&as_h3_does[..1]).is_err());
    }

    #[test]
    fn extended_connect_names_any_protocol() {
        // RFC 9484 §4.3: `connect-ip` too.
        let asked = [&[(":method", "CONNECT"), (":protocol", "connect-ip")], &GET[1..]].concat();
        let request = of(&asked).unwrap();
        assert_eq!(request.extensions().get::<Protocol>().unwrap().as_str(), "connect-ip");
        assert!(of(&[&[(":method", "GET"), (":protocol", "connect-ip")], &GET[1..]].concat()).is_err());
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1.2
    //= type=test
    //# Intermediaries that process HTTP requests or responses (i.e., any intermediary not acting as a
    //# tunnel) MUST NOT forward a malformed request or response.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
    //= type=test
    //# All HTTP/3 requests MUST include exactly one value for the :method, :scheme, and :path pseudo-header
    //# fields, unless the request is a CONNECT request; see Section 4.4.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
    //= type=test
    //# If the :scheme pseudo-header field identifies a scheme that has a mandatory authority component
    //# (including "http" and "https"), the request MUST contain either an :authority pseudo-header field or
    //# a Host header field.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
    //= type=test
    //# If both fields are present, they MUST contain the same value.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3
    //= type=test
    //# Pseudo-header fields defined for requests MUST NOT appear in responses; pseudo-header fields defined
    //# for responses MUST NOT appear in requests.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3
    //= type=test
    //# Endpoints MUST treat a request or response that contains undefined or invalid pseudo-header fields
    //# as malformed.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3
    //= type=test
    //# All pseudo-header fields MUST appear in the header section before regular header fields.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3
    //= type=test
    //# Any request or response that contains a pseudo-header field that appears in a header section after a
    //# regular header field MUST be treated as malformed.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.1
    //= type=test
    //# If these fields are present, they MUST NOT be empty.
    #[test]
    fn malformed_requests_are_refused() {
        // attacks.md H2, I1, I3, I5.
        for (index, _) in GET.iter().enumerate() {
            let mut lines = GET.to_vec();
            lines.remove(index);
            assert!(of(&lines).is_err(), "without {:?}", GET[index]);
            assert!(of(&[&GET[..], &[GET[index]]].concat()).is_err(), "twice {:?}", GET[index]);
        }
        let more = [
            (":status", "200"),
            (":own", "a"),
            ("Accept", "a"),
            ("", "a"),
            ("a b", "a"),
            ("accept", "a\r\nb: c"),
            ("accept", "a\0"),
            ("host", "example.com"),
        ];
        for line in more {
            assert!(of(&[&GET[..], &[line]].concat()).is_err(), "{line:?}");
        }
        assert!(of(&[GET[0], ("accept", "*/*"), GET[1], GET[2], GET[3]]).is_err(), "behind other fields");
        for line in [
            (":method", "G T"),
            (":scheme", "ht tp"),
            (":authority", "a b"),
            (":authority", ""),
            (":path", "/a b\0"),
            (":path", "/a#b"),
            (":path", "/a?b#"),
            (":path", "#"),
        ] {
            let mut lines = GET.to_vec();
            lines.retain(|(name, _)| *name != line.0);
            assert!(of(&[&lines[..], &[line]].concat()).is_err(), "{line:?}");
        }
    }

    #[test]
    fn more_fields_than_a_map_holds_are_refused() {
        // attacks.md H7: who raises the limit of field sections to megabytes lets them have so many.
        let name = |number: u32| format!("x-{number}");
        let names: Vec<_> = (0..40_000).map(name).collect();
        let lines: Vec<_> = GET.into_iter().chain(names.iter().map(|name| (name.as_str(), ""))).collect();
        assert!(of(&lines).is_err());
        assert!(of(&lines[..1_000]).is_ok());
    }
}
