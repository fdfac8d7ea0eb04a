//! Fields of messages that hold for requests and responses alike (RFC 9114 §4.2, §4.3).

use crate::hop_by_hop::CONNECTION_SPECIFIC;
use crate::qpack::Field;
use http::header::{CONTENT_LENGTH, TE};
use http::{HeaderMap, HeaderName, HeaderValue};

/// A message is malformed: H3_MESSAGE_ERROR (RFC 9114 §4.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Malformed(pub(super) &'static str);

/// The fields of `section` that are no pseudo-header fields, which `pseudo` gets.
pub(super) fn split(
    section: Vec<Field>,
    mut pseudo: impl FnMut(Field) -> Result<(), Malformed>,
) -> Result<HeaderMap, Malformed> {
    let too_many = Malformed("more fields than can be");
    let mut fields = HeaderMap::try_with_capacity(section.len()).map_err(|_| too_many)?;
    for field in section {
        if field.name.first() == Some(&b':') {
            // RFC 9114 §4.3: they go first.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3
            //# All pseudo-header fields MUST appear in the header section before regular header fields.
            //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3
            //# Any request or response that contains a pseudo-header field that appears in a header section after a
            //# regular header field MUST be treated as malformed.
            if !fields.is_empty() {
                return Err(Malformed("a pseudo-header field behind others"));
            }
            pseudo(field)?;
            continue;
        }
        // RFC 9114 §4.2: names are lower case.
        //= https://www.rfc-editor.org/rfc/rfc9114#section-10.3
        //# Requests or responses containing invalid field names MUST be treated as malformed.
        //= https://www.rfc-editor.org/rfc/rfc9114#section-4.2
        //# A request or response containing uppercase characters in field names MUST be treated as malformed.
        let name = HeaderName::from_lowercase(&field.name).map_err(|_| Malformed("a name that is none"))?;
        //= https://www.rfc-editor.org/rfc/rfc9114#section-10.3
        //# Any request or response that contains a character not permitted in a field value MUST be treated as
        //# malformed.
        let value =
            HeaderValue::from_maybe_shared(field.value).map_err(|_| Malformed("a value that is none"))?;
        fields.try_append(name, value).map_err(|_| too_many)?;
    }
    check(&fields)?;
    Ok(fields)
}

/// Trailers, which have no pseudo-header fields (RFC 9114 §4.3).
pub(super) fn trailers(section: Vec<Field>) -> Result<HeaderMap, Malformed> {
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1
    //# On a given stream, receipt of multiple requests or receipt of an additional HTTP response following
    //# a final HTTP response MUST be treated as malformed.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3
    //# Pseudo-header fields MUST NOT appear in trailer sections.
    split(section, |_| Err(Malformed("a pseudo-header field among trailers")))
}

/// Refuses fields that are about a connection of HTTP/1.1 (RFC 9114 §4.2).
pub(crate) fn check(fields: &HeaderMap) -> Result<(), Malformed> {
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1
    //# Transfer codings (see Section 7 of [HTTP/1.1]) are not defined for HTTP/3; the Transfer-Encoding
    //# header field MUST NOT be used.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.2
    //# An endpoint MUST NOT generate an HTTP/3 field section containing connection-specific fields; any
    //# message containing connection-specific fields MUST be treated as malformed.
    if CONNECTION_SPECIFIC.iter().any(|name| fields.contains_key(name)) {
        return Err(Malformed("a field about a connection of HTTP/1.1"));
    }
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.2
    //# The only exception to this is the TE header field, which MAY be present in an HTTP/3 request header;
    //# when it is, it MUST NOT contain any value other than "trailers".
    if fields.get_all(TE).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"trailers")) {
        return Err(Malformed("te says more than trailers"));
    }
    Ok(())
}

/// A `content-length` that is not one number, said once: its message is malformed (RFC 9110 §8.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the content length is no number")]
pub struct InvalidLength;

impl From<InvalidLength> for Malformed {
    fn from(InvalidLength: InvalidLength) -> Self {
        Self("the content length is no number")
    }
}

/// The `content-length` among `fields` in bytes, if there is one (RFC 9110 §8.6).
///
/// # Errors
/// It is said twice, or is not a number in digits of up to 64 bits.
pub fn content_length(fields: &HeaderMap) -> Result<Option<u64>, InvalidLength> {
    let mut said = fields.get_all(CONTENT_LENGTH).iter();
    let (Some(value), more) = (said.next(), said.next()) else { return Ok(None) };
    let digits = !value.is_empty() && value.as_bytes().iter().all(u8::is_ascii_digit);
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    match (digits, number, more) {
        (true, Some(number), None) => Ok(Some(number)),
        _ => Err(InvalidLength),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn of(lines: &[(&'static str, &'static str)]) -> Result<HeaderMap, Malformed> {
        let field = |(name, value): &(&'static str, &'static str)| Field {
            name: Bytes::from_static(name.as_bytes()),
            value: Bytes::from_static(value.as_bytes()),
        };
        trailers(lines.iter().map(field).collect())
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1
    //= type=test
    //# On a given stream, receipt of multiple requests or receipt of an additional HTTP response following
    //# a final HTTP response MUST be treated as malformed.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.3
    //= type=test
    //# Pseudo-header fields MUST NOT appear in trailer sections.
    #[test]
    fn trailers_have_no_pseudo_header_fields() {
        assert_eq!(of(&[("digest", "")]).unwrap().len(), 1);
        assert!(of(&[(":path", "")]).is_err());
    }

    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1
    //= type=test
    //# Transfer codings (see Section 7 of [HTTP/1.1]) are not defined for HTTP/3; the Transfer-Encoding
    //# header field MUST NOT be used.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.2
    //= type=test
    //# An endpoint MUST NOT generate an HTTP/3 field section containing connection-specific fields; any
    //# message containing connection-specific fields MUST be treated as malformed.
    //= https://www.rfc-editor.org/rfc/rfc9114#section-4.2
    //= type=test
    //# The only exception to this is the TE header field, which MAY be present in an HTTP/3 request header;
    //# when it is, it MUST NOT contain any value other than "trailers".
    #[test]
    fn fields_about_connections_are_refused() {
        // RFC 9114 §4.2.
        let names = ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
        for name in names {
            assert!(of(&[(name, "x")]).is_err(), "{name}");
        }
        assert!(of(&[("te", "gzip")]).is_err() && of(&[("te", "Trailers")]).is_ok());
    }

    #[test]
    fn a_content_length_is_one_number() {
        assert_eq!(content_length(&of(&[("content-length", "17")]).unwrap()), Ok(Some(17)));
        assert_eq!(content_length(&of(&[]).unwrap()), Ok(None));
        for values in [&["+1"][..], &["-1"], &[""], &["1 "], &["1", "1"], &["18446744073709551616"]] {
            let lines: Vec<_> = values.iter().map(|value| ("content-length", *value)).collect();
            assert!(content_length(&of(&lines).unwrap()).is_err(), "{values:?}");
        }
    }
}
