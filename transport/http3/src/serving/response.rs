//! A response from its field section (RFC 9114 §4.3.2).

use super::request::{Malformed, split};
use crate::qpack::Field;
use http::{Response, StatusCode, Version};

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
    let mut response = Response::new(());
    *response.status_mut() = status.ok_or(Malformed("no status"))?;
    *response.headers_mut() = fields;
    *response.version_mut() = Version::HTTP_3;
    Ok(response)
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
        ] {
            assert!(of(lines).is_err(), "{lines:?}");
        }
    }
}
