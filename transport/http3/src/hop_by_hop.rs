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
