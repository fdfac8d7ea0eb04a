//! A response from its field section (RFC 9114 §4.3.2).

use super::fields::{Malformed, split};
use crate::qpack::Field;
use http::{Method, Response, StatusCode, Version};

/// The response that `section` is of, final or interim.
pub(crate) fn response(section: Vec<Field>) -> Result<Response<()>, Malformed> {
    let mut status = None;
    let fields = split(section, |Field { name, value }| {
        let code = StatusCode::from_bytes(&value).map_err(|_| Malformed("a status that is none"));
        if name != ":status" || status.replace(code?).is_some() {
            return Err(Malformed("a pseudo-header field that responses do not have, or twice"));
        }
        Ok(())
    })?;
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1.2
    //# Clients MUST NOT accept a malformed response.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.2
    //# This pseudo-header field MUST be included in all responses; otherwise, the response is malformed
    //# (see Section 4.1.2).
    let status = status.ok_or(Malformed("no status"))?;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        // RFC 9114 §4.5.
        return Err(Malformed("a switch of protocols, which there is none of"));
    }
    let mut response = Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    *response.version_mut() = Version::HTTP_3;
    Ok(response)
}

/// The content that the response to a request may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Asked {
    /// Content as the header section says.
    #[default]
    Content,
    /// None, whatever the header section says: HEAD.
    Head,
    /// The bytes of a tunnel, if the server agrees: CONNECT.
    Tunnel,
}

impl Asked {
    pub(crate) fn by(method: &Method) -> Self {
        match *method {
            Method::HEAD => Self::Head,
            Method::CONNECT => Self::Tunnel,
            _ => Self::Content,
        }
    }

    /// Returns true if the `content-length` of a response with this `status` is the length of what follows (RFC 9110 §8.6).
    pub(crate) fn has_length(self, status: StatusCode) -> bool {
        match (self, status) {
            (_, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) | (Self::Head, _) => false,
            (Self::Tunnel, status) => !status.is_success(),
            (Self::Content, _) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn of(lines: &[(&'static str, &'static str)]) -> Result<Response<()>, Malformed> {
        let field = |(name, value): &(&'static str, &'static str)| Field {
            name: Bytes::from_static(name.as_bytes()),
            value: Bytes::from_static(value.as_bytes()),
        };
        response(lines.iter().map(field).collect())
    }

    #[test]
    fn a_response_has_a_status_and_what_its_fields_say() {
        let response = of(&[(":status", "407"), ("proxy-authenticate", "Bearer")]).unwrap();
        assert_eq!(
            (response.status(), response.version()),
            (StatusCode::from_u16(407).unwrap(), Version::HTTP_3)
        );
        assert_eq!(response.headers()["proxy-authenticate"], "Bearer");
    }

    #[test]
    fn the_length_of_a_response_is_that_of_its_content_unless_there_is_none() {
        // RFC 9110 §8.6, §9.3.6.
        let has =
            |method: Method, status| Asked::by(&method).has_length(StatusCode::from_u16(status).unwrap());
        assert!(has(Method::GET, 200) && has(Method::POST, 404) && has(Method::CONNECT, 407));
        assert!(!has(Method::HEAD, 200) && !has(Method::GET, 304) && !has(Method::GET, 204));
        assert!(!has(Method::CONNECT, 200));
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3.2
    //= type=test
    //# This pseudo-header field MUST be included in all responses; otherwise, the response is malformed
    //# (see Section 4.1.2).
    #[test]
    fn malformed_responses_are_refused() {
        // attacks.md H2.
        for lines in [
            &[][..],
            &[("server", "a")],
            &[(":status", "200"), (":status", "200")],
            &[(":status", "20")],
            &[(":status", "OK")],
            &[(":status", "200"), (":path", "/")],
            &[("server", "a"), (":status", "200")],
            &[(":status", "200"), ("Server", "a")],
            &[(":status", "101")],
            &[(":status", "200"), ("transfer-encoding", "chunked")],
        ] {
            assert!(of(lines).is_err(), "{lines:?}");
        }
    }
}
