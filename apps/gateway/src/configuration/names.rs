//! Names of hosts, and where origins are.

use http::Uri;
use http::uri::Authority;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Names of hosts: one, all below one (`*.example.org`), or all (`*`). Ports do not count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// All.
    Any,
    /// All below this name.
    Below(String),
    /// This one, in lower case.
    Exactly(String),
}

impl Pattern {
    /// Returns true if `host`, in lower case and without a port, is among them.
    pub fn matches(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Below(parent) => host
                .strip_suffix(parent.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.') && !rest.starts_with('.')),
            Self::Exactly(name) => host == name,
        }
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (below, name) = match text.strip_prefix("*.") {
            Some(parent) => (true, parent),
            None => (false, text),
        };
        let plain =
            name.parse::<Authority>().is_ok_and(|name| name.port().is_none() && name.host() == name.as_str());
        if !plain || name.contains('*') {
            return Err(format!(
                "{text:?} is no name of a host: expected one such as \"example.org\", \"*.example.org\" or \"*\""
            ));
        }
        let name = name.to_ascii_lowercase();
        Ok(if below { Self::Below(name) } else { Self::Exactly(name) })
    }
}

/// The protocol that an origin speaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Protocol {
    /// HTTP/1.1 over TCP (`http://`).
    Http1,
    /// HTTP/2 over TCP with prior knowledge (`h2c://`, RFC 9113 §3.3).
    Http2,
    /// HTTP/2 or HTTP/1.1 over TLS (`https://`).
    Tls,
}

/// The address of an origin: `http://HOST[:PORT]`, `h2c://HOST[:PORT]`, `https://HOST[:PORT]`, or `unix:/PATH` for HTTP/1.1 over a socket of
/// this machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OriginUrl {
    /// The protocol that it speaks.
    pub protocol: Protocol,
    /// The name or address of its host, IPv6 addresses without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Host and port as the URL has them; `localhost` for a socket of this machine.
    pub authority: Authority,
    /// The path of the socket, if it is one of this machine, in place of host and port.
    pub socket: Option<PathBuf>,
}

impl FromStr for OriginUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || {
            format!(
                "{text:?} is no origin: expected http://HOST:PORT, h2c://HOST:PORT or https://HOST:PORT, without a path, or unix:/PATH"
            )
        };
        if let Some(path) = text.strip_prefix("unix:") {
            return Self::local(path).ok_or_else(|| {
                format!("{text:?} is no origin: expected unix: and the whole path of a socket, on a system that has them")
            });
        }
        let uri: Uri = text.parse().map_err(|_| wanted())?;
        let (protocol, port) = match uri.scheme_str() {
            Some("http") => (Protocol::Http1, 80),
            Some("h2c") => (Protocol::Http2, 80),
            Some("https") => (Protocol::Tls, 443),
            _ => return Err(wanted()),
        };
        let authority =
            uri.authority().filter(|authority| !authority.as_str().contains('@')).ok_or_else(wanted)?;
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() || authority.host().is_empty() {
            return Err(wanted());
        }
        Ok(Self {
            protocol,
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: match authority.port() {
                Some(port) if port.as_u16() > 0 => port.as_u16(),
                None if authority.as_str() == authority.host() => port,
                // Empty, zero, or more than 16 bits.
                _ => return Err(wanted()),
            },
            authority: authority.clone(),
            socket: None,
        })
    }
}

impl OriginUrl {
    /// The origin behind the socket at `path`.
    fn local(path: &str) -> Option<Self> {
        (cfg!(unix) && path.starts_with('/') && path.len() > 1).then(|| Self {
            protocol: Protocol::Http1,
            host: "localhost".to_owned(),
            port: 80,
            authority: Authority::from_static("localhost"),
            socket: Some(path.into()),
        })
    }
}

impl fmt::Display for OriginUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.socket {
            return write!(f, "unix:{}", path.display());
        }
        let scheme = match self.protocol {
            Protocol::Http1 => "http",
            Protocol::Http2 => "h2c",
            Protocol::Tls => "https",
        };
        write!(f, "{scheme}://{}", self.authority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_exactly_below_or_always() {
        let matches = |pattern: &str, host: &str| pattern.parse::<Pattern>().unwrap().matches(host);
        assert!(matches("Example.org", "example.org") && matches("*", "anything"));
        assert!(matches("*.example.org", "www.example.org") && matches("*.example.org", "a.b.example.org"));
        for host in ["example.org", ".example.org", "wwwexample.org", "example.org.evil"] {
            assert!(!matches("*.example.org", host), "{host}");
        }
        assert!(!matches("example.org", "www.example.org"));
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["", "a b", "www.*.org", "example.org:443", "https://example.org", "*.*"] {
            assert!(text.parse::<Pattern>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn origins_have_a_protocol_and_a_port() {
        let origin: OriginUrl = "http://127.0.0.1:8080".parse().unwrap();
        assert_eq!(
            (origin.protocol, origin.host.as_str(), origin.port),
            (Protocol::Http1, "127.0.0.1", 8080)
        );
        let origin: OriginUrl = "https://[::1]/".parse().unwrap();
        assert_eq!((origin.protocol, origin.host.as_str(), origin.port), (Protocol::Tls, "::1", 443));
        assert_eq!("h2c://backend:81".parse::<OriginUrl>().unwrap().to_string(), "h2c://backend:81");
        let origin: OriginUrl = "unix:/run/app.sock".parse().unwrap();
        assert_eq!(
            (origin.protocol, origin.socket.as_deref()),
            (Protocol::Http1, Some("/run/app.sock".as_ref()))
        );
        assert_eq!(
            (origin.to_string(), origin.authority.as_str()),
            ("unix:/run/app.sock".to_owned(), "localhost")
        );
        for text in [
            "",
            "unix:",
            "unix:/",
            "unix:app.sock",
            "127.0.0.1:80",
            "ftp://a",
            "http://",
            "http://a/path",
            "http://u:p@a",
            "http://a?q",
            "http://a:0",
            "https://a:65536",
            "h2c://[::1]:99999",
            "http://a:",
        ] {
            assert!(text.parse::<OriginUrl>().is_err(), "{text:?}");
        }
    }
}
