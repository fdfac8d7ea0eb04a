//! Header fields on their way from a local program to the gateway and back.

use http::header::{HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE};
use http::{HeaderMap, Request, Response, StatusCode, request};
use hvq_h3::hop_by_hop;

/// Takes out what concerns one hop only.
fn strip(fields: &mut HeaderMap) {
    hop_by_hop::strip(fields);
    for name in [TE, PROXY_AUTHORIZATION] {
        fields.remove(name);
    }
}

/// The head that the gateway gets. The authority of the URL counts, whatever `host` says (RFC 9112 §3.2.2).
pub(super) fn request(parts: request::Parts) -> Request<()> {
    let mut fields = parts.headers;
    strip(&mut fields);
    fields.remove(HOST);
    let mut request = Request::new(());
    *request.method_mut() = parts.method;
    *request.uri_mut() = parts.uri;
    *request.headers_mut() = fields;
    request
}

/// The head that the program gets.
pub(super) fn response(response: Response<()>) -> Response<()> {
    let (parts, ()) = response.into_parts();
    let mut fields = parts.headers;
    strip(&mut fields);
    fields.remove(PROXY_AUTHENTICATE);
    let mut response = Response::new(());
    *response.status_mut() = status(parts.status);
    *response.headers_mut() = fields;
    response
}

/// The status that a program gets. A program can do nothing about a gateway that wants another token.
pub(super) fn status(status: StatusCode) -> StatusCode {
    if status == StatusCode::PROXY_AUTHENTICATION_REQUIRED { StatusCode::BAD_GATEWAY } else { status }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    #[test]
    fn what_concerns_one_hop_stays_here() {
        let asked = Request::get("http://a.example/b?c")
            .header("host", "other.example")
            .header("connection", "keep-alive, x-hop")
            .header("proxy-connection", "keep-alive")
            .header("proxy-authorization", "Basic x")
            .header("x-hop", "1")
            .header("te", "trailers")
            .header("priority", "u=1")
            .body(())
            .unwrap();
        let head = request(asked.into_parts().0);
        assert_eq!(head.uri(), "http://a.example/b?c");
        assert_eq!(head.headers().keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["priority"]);
        let answered =
            Response::builder().status(407).header("proxy-authenticate", "Bearer").body(()).unwrap();
        let head = response(answered);
        assert_eq!((head.status(), head.headers().len()), (StatusCode::BAD_GATEWAY, 0));
    }
}
