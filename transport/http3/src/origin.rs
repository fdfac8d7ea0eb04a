//! Origins, as the ORIGIN frame names them (RFC 9412, RFC 8336).

use http::uri::Authority;
use std::fmt;
use std::str::FromStr;

/// The port of `https` that an origin does not name.
const DEFAULT_PORT: u16 = 443;
/// Bytes of a host name, at most (RFC 1035 §2.3.4).
const LONGEST_HOST: usize = 253;

/// An origin whose scheme is `https` (RFC 6454 §4): a host and a port. Its text is its ASCII serialization (§6.2), such as
/// `https://example.org` or `https://example.org:8443`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Origin {
    /// In lower case; an IPv6 address is in brackets.
    host: String,
    port: u16,
}

/// The text is not an origin whose scheme is `https`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no origin of https")]
pub struct InvalidOrigin;

impl Origin {
    /// The origin of `host`, a name or an address, IPv6 addresses in brackets, at `port`.
    ///
    /// # Errors
    /// There is no such host; a wildcard is none (RFC 8336 §2.2).
    pub fn new(host: &str, port: u16) -> Result<Self, InvalidOrigin> {
        let authority: Authority = host.parse().map_err(|_| InvalidOrigin)?;
        let is_host = authority.host() == host && !host.contains('*') && host.len() <= LONGEST_HOST;
        match is_host && port > 0 {
            true => Ok(Self { host: host.to_ascii_lowercase(), port }),
            false => Err(InvalidOrigin),
        }
    }

    /// The host, in lower case.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        match *port {
            DEFAULT_PORT => write!(f, "https://{host}"),
            port => write!(f, "https://{host}:{port}"),
        }
    }
}

impl FromStr for Origin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<Self, InvalidOrigin> {
        let authority: Authority =
            text.strip_prefix("https://").and_then(|rest| rest.parse().ok()).ok_or(InvalidOrigin)?;
        match authority.port_u16() {
            Some(port) if authority.as_str() == format!("{}:{port}", authority.host()) => {
                Self::new(authority.host(), port)
            }
            _ => Self::new(authority.as_str(), DEFAULT_PORT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_host_and_a_port_and_nothing_else() {
        for (text, host, port) in [
            ("https://a.test", "a.test", 443),
            ("https://a.test:443", "a.test", 443),
            ("https://A.Test:8443", "a.test", 8443),
            ("https://[::1]:8443", "[::1]", 8443),
            ("https://127.0.0.1", "127.0.0.1", 443),
        ] {
            let origin: Origin = text.parse().unwrap();
            assert_eq!((origin.host(), origin.port()), (host, port), "{text}");
            assert_eq!(origin.to_string().parse(), Ok(origin), "{text}");
        }
        assert_eq!(Origin::new("a.test", 443).unwrap().to_string(), "https://a.test");
        assert_eq!(Origin::new("a.test", 8443).unwrap().to_string(), "https://a.test:8443");
        let long = format!("https://{}", "a".repeat(254));
        for text in [
            "",
            "https://",
            "a.test",
            "http://a.test",
            "https://a.test/",
            "https://a.test?b",
            "https://a.test#b",
            "https://ann@a.test",
            "https://a.test:",
            "https://a.test:0",
            "https://a.test:65536",
            "https://*.test",
            "https://a test",
            "https://a.test:08443",
            "null",
            &long,
        ] {
            assert_eq!(text.parse::<Origin>(), Err(InvalidOrigin), "{text}");
        }
    }
}
