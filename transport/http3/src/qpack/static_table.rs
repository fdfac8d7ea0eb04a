//! The static table (RFC 9204 Appendix A).

/// Names and values by index.
pub(super) const FIELDS: [(&str, &str); 99] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    ("strict-transport-security", "max-age=31536000; includesubdomains"),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload"),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

/// Names in order, each with the indices that it has.
const NAMES: [(&str, &[u8]); 52] = [
    (":authority", &[0]),
    (":method", &[15, 16, 17, 18, 19, 20, 21]),
    (":path", &[1]),
    (":scheme", &[22, 23]),
    (":status", &[24, 25, 26, 27, 28, 63, 64, 65, 66, 67, 68, 69, 70, 71]),
    ("accept", &[29, 30]),
    ("accept-encoding", &[31]),
    ("accept-language", &[72]),
    ("accept-ranges", &[32]),
    ("access-control-allow-credentials", &[73, 74]),
    ("access-control-allow-headers", &[33, 34, 75]),
    ("access-control-allow-methods", &[76, 77, 78]),
    ("access-control-allow-origin", &[35]),
    ("access-control-expose-headers", &[79]),
    ("access-control-request-headers", &[80]),
    ("access-control-request-method", &[81, 82]),
    ("age", &[2]),
    ("alt-svc", &[83]),
    ("authorization", &[84]),
    ("cache-control", &[36, 37, 38, 39, 40, 41]),
    ("content-disposition", &[3]),
    ("content-encoding", &[42, 43]),
    ("content-length", &[4]),
    ("content-security-policy", &[85]),
    ("content-type", &[44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54]),
    ("cookie", &[5]),
    ("date", &[6]),
    ("early-data", &[86]),
    ("etag", &[7]),
    ("expect-ct", &[87]),
    ("forwarded", &[88]),
    ("if-modified-since", &[8]),
    ("if-none-match", &[9]),
    ("if-range", &[89]),
    ("last-modified", &[10]),
    ("link", &[11]),
    ("location", &[12]),
    ("origin", &[90]),
    ("purpose", &[91]),
    ("range", &[55]),
    ("referer", &[13]),
    ("server", &[92]),
    ("set-cookie", &[14]),
    ("strict-transport-security", &[56, 57, 58]),
    ("timing-allow-origin", &[93]),
    ("upgrade-insecure-requests", &[94]),
    ("user-agent", &[95]),
    ("vary", &[59, 60]),
    ("x-content-type-options", &[61]),
    ("x-forwarded-for", &[96]),
    ("x-frame-options", &[97, 98]),
    ("x-xss-protection", &[62]),
];

/// The entry of the static table that matches a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    /// Name and value.
    Field(u8),
    /// The name.
    Name(u8),
}

/// Finds the entry of the static table that matches a field, with its value or by its name alone.
pub(super) fn find(name: &str, value: &[u8]) -> Option<Known> {
    let at = NAMES.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    let (_, indices) = NAMES.get(at)?;
    let has_value =
        |index: &&u8| FIELDS.get(usize::from(**index)).is_some_and(|(_, known)| known.as_bytes() == value);
    match indices.iter().find(has_value) {
        Some(index) => Some(Known::Field(*index)),
        None => indices.first().copied().map(Known::Name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_where_it_is() {
        for (index, (name, value)) in FIELDS.iter().enumerate() {
            assert_eq!(find(name, value.as_bytes()), Some(Known::Field(index as u8)), "{name}");
            assert!(matches!(find(name, b"no such value"), Some(Known::Name(_))), "{name}");
        }
        assert_eq!(find("x-unknown", b""), None);
        // RFC 9204 Appendix A, rows 17, 25 and 98.
        assert_eq!((FIELDS[17], FIELDS[25]), ((":method", "GET"), (":status", "200")));
        assert_eq!(FIELDS[98], ("x-frame-options", "sameorigin"));
    }
}
