//! Header fields that concern one connection of HTTP/1.1, which whoever passes messages on takes out.

use http::header::{CONNECTION, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName};

/// Fields that an HTTP/3 message must not have (RFC 9114 §4.2).
pub const CONNECTION_SPECIFIC: [HeaderName; 5] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Takes them out of `fields`, and whatever else `connection` names (RFC 9110 §7.6.1).
pub fn strip(fields: &mut HeaderMap) {
    let nominated: Vec<HeaderName> = fields
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in nominated.iter().chain(&CONNECTION_SPECIFIC) {
        fields.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn what_concerns_a_connection_alone_is_taken_out_with_what_it_names() {
        // RFC 9110 §7.6.1, RFC 9114 §4.2.
        let lines = [
            ("connection", "close, X-Named ,x-other"),
            ("connection", "x-third"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "close"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("x-named", "1"),
            ("x-other", "2"),
            ("x-third", "3"),
            ("x-kept", "4"),
            ("x-kept", "5"),
        ];
        let mut fields = HeaderMap::new();
        for (name, value) in lines {
            fields.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        strip(&mut fields);
        let left: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(left, [("x-kept", &b"4"[..]), ("x-kept", b"5")]);
    }
}
