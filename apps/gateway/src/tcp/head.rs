//! The head of a request over TCP, made one like that of HTTP/3: its host and path in the target, no fields about the connection.

use http::header::{CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Method, Request, StatusCode, Uri, Version};
use hvq_h3::hop_by_hop;

/// Bytes that each field counts for besides its name and value (RFC 9113 §6.5.2, RFC 9114 §4.2.2).
const OF_A_FIELD: usize = 32;

/// The reason for which a request is refused before anybody looks at what it asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) text: &'static str,
}

const fn refusal(status: StatusCode, text: &'static str) -> Refusal {
    Refusal { status, text }
}

/// Makes `head`, as it came over HTTP/1.1 or HTTP/2, one whose target names scheme, host and path, and whose fields are for the whole way.
///
/// # Errors
/// It is malformed, has more than `limit` bytes, or is in an encoding that is not spoken here.
pub(super) fn canonical(mut head: Request<()>, limit: u64) -> Result<Request<()>, Refusal> {
    if size(&head) > limit {
        return Err(refusal(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "the header section is larger than the limit",
        ));
    }
    let authority = match head.version() {
        Version::HTTP_2 => http2(&head)?,
        _ => http1(&mut head)?,
    };
    if head.method() == Method::CONNECT {
        return Ok(head);
    }
    let mut parts = head.uri().clone().into_parts();
    parts.path_and_query.get_or_insert_with(|| PathAndQuery::from_static("/"));
    (parts.scheme, parts.authority) = (Some(Scheme::HTTPS), Some(authority));
    *head.uri_mut() =
        Uri::from_parts(parts).map_err(|_| refusal(StatusCode::BAD_REQUEST, "the target is no URL"))?;
    Ok(head)
}

/// Bytes of a header section, counted as those of HTTP/2 and HTTP/3 are, with three fields for the request line.
fn size(head: &Request<()>) -> u64 {
    let fields = head.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + OF_A_FIELD);
    let uri = head.uri();
    let target = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let line = head.method().as_str().len() + target + 3 * OF_A_FIELD;
    (fields.sum::<usize>() + line) as u64
}

/// The authority that a request of HTTP/2 asks for (RFC 9113 §8.3.1).
fn http2(head: &Request<()>) -> Result<Authority, Refusal> {
    let said = host(head.headers())?;
    if head.uri().scheme().is_some_and(|scheme| *scheme != Scheme::HTTPS) {
        return Err(refusal(StatusCode::MISDIRECTED_REQUEST, "only https is served over TLS"));
    }
    match (head.uri().authority(), said) {
        // RFC 9113 §8.3.1: both, if they are there, are the same.
        (Some(authority), Some(said)) if !authority.as_str().eq_ignore_ascii_case(said.as_str()) => {
            Err(refusal(StatusCode::BAD_REQUEST, ":authority and host differ"))
        }
        (Some(authority), _) => Ok(authority.clone()),
        (None, Some(said)) => Ok(said),
        (None, None) => Err(refusal(StatusCode::BAD_REQUEST, "there is no host")),
    }
}

/// The authority that a request of HTTP/1.1 asks for, whose fields about the connection are taken out.
fn http1(head: &mut Request<()>) -> Result<Authority, Refusal> {
    // RFC 9112 §6.1: a coding that is not understood is answered with 501. What is left of it would reach the origin without a name.
    let codings: Vec<_> = head.headers().get_all(TRANSFER_ENCODING).iter().collect();
    let is_chunked =
        |coding: &&http::HeaderValue| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    if codings.len() > 1 || !codings.iter().all(is_chunked) {
        return Err(refusal(StatusCode::NOT_IMPLEMENTED, "only the transfer coding chunked is understood"));
    }
    // RFC 9112 §6.3: a length beside chunks may be an attempt at smuggling. hyper reads the chunks and takes out the length; should it not,
    // nobody behind here is to choose.
    if !codings.is_empty() && head.headers().contains_key(CONTENT_LENGTH) {
        return Err(refusal(StatusCode::BAD_REQUEST, "content-length beside transfer-encoding"));
    }
    // RFC 9112 §3.2: exactly one host.
    let said = host(head.headers())?.ok_or(refusal(StatusCode::BAD_REQUEST, "there is no host"))?;
    hop_by_hop::strip(head.headers_mut());
    head.headers_mut().remove(TE);
    match (head.uri().scheme(), head.uri().authority()) {
        // RFC 9112 §3.2.2: the target goes before the host.
        (Some(scheme), Some(authority)) if *scheme == Scheme::HTTPS => Ok(authority.clone()),
        (Some(_), _) => Err(refusal(StatusCode::MISDIRECTED_REQUEST, "only https is served over TLS")),
        (None, _) => Ok(said),
    }
}

fn host(fields: &HeaderMap) -> Result<Option<Authority>, Refusal> {
    let mut said = fields.get_all(HOST).iter();
    let (Some(host), more) = (said.next(), said.next()) else { return Ok(None) };
    let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    let host = host.filter(|host| more.is_none() && !host.as_str().contains('@') && !host.host().is_empty());
    host.map(Some).ok_or(refusal(StatusCode::BAD_REQUEST, "the host is no host, or there are several"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 4096;

    fn head(version: Version, target: &str, fields: &[(&str, &str)]) -> Request<()> {
        let mut head = Request::builder().version(version).uri(target);
        for (name, value) in fields {
            head = head.header(*name, *value);
        }
        head.body(()).unwrap()
    }

    fn target(version: Version, target: &str, fields: &[(&str, &str)]) -> Result<String, u16> {
        let canonical = canonical(head(version, target, fields), LIMIT);
        canonical.map(|head| head.uri().to_string()).map_err(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn a_request_of_http1_names_its_host_in_the_field_or_in_the_target() {
        let of = |path, fields: &[_]| target(Version::HTTP_11, path, fields);
        assert_eq!(
            of("/a?b", &[("host", "example.org:8443")]).as_deref(),
            Ok("https://example.org:8443/a?b")
        );
        assert_eq!(of("https://a.example/x", &[("host", "b.example")]).as_deref(), Ok("https://a.example/x"));
        assert_eq!(of("http://a.example/x", &[("host", "a.example")]), Err(421));
        for hosts in [
            &[][..],
            &[("host", "")],
            &[("host", "a@b")],
            &[("host", "a"), ("host", "a")],
            &[("host", "a/b")],
        ] {
            assert_eq!(of("/", hosts), Err(400), "{hosts:?}");
        }
    }

    #[test]
    fn a_request_of_http2_has_one_host() {
        let of = |path, fields: &[_]| target(Version::HTTP_2, path, fields);
        assert_eq!(of("https://a.example/x", &[]).as_deref(), Ok("https://a.example/x"));
        assert_eq!(of("https://a.example/x", &[("host", "A.example")]).as_deref(), Ok("https://a.example/x"));
        assert_eq!(of("https://a.example/x", &[("host", "b.example")]), Err(400));
        assert_eq!(of("/x", &[("host", "b.example")]).as_deref(), Ok("https://b.example/x"));
        assert_eq!((of("/x", &[]), of("http://a.example/x", &[])), (Err(400), Err(421)));
    }

    #[test]
    fn fields_about_the_connection_end_here() {
        let fields = [
            ("host", "a.example"),
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "gzip"),
            ("x-end", "1"),
        ];
        let canonical = canonical(head(Version::HTTP_11, "/", &fields), LIMIT).unwrap();
        let mut names: Vec<_> = canonical.headers().keys().map(|name| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["host", "x-end"]);
    }

    #[test]
    fn bodies_whose_end_may_be_argued_about_are_refused() {
        let of = |fields: &[(&'static str, &'static str)]| {
            target(Version::HTTP_11, "/", &[&[("host", "a.example")], fields].concat())
        };
        assert!(of(&[("transfer-encoding", "chunked")]).is_ok());
        assert_eq!(of(&[("transfer-encoding", "gzip, chunked")]), Err(501));
        assert_eq!(of(&[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")]), Err(501));
        assert_eq!(of(&[("transfer-encoding", "chunked"), ("content-length", "3")]), Err(400));
    }

    #[test]
    fn a_header_section_is_bounded_as_over_http3() {
        let long = "x".repeat(LIMIT as usize);
        assert_eq!(target(Version::HTTP_11, "/", &[("host", "a.example"), ("x", &long)]), Err(431));
        let many: Vec<_> = (0..200).map(|_| ("x", "")).collect();
        assert_eq!(target(Version::HTTP_2, "https://a.example/", &many), Err(431));
    }
}
