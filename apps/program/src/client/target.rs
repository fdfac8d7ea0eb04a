//! A URL and the addresses that it stands for.

use crate::failure::{Exit, Failure, OrFail};
use crate::names::Names;
use crate::path_choice::{Approach, ApproachError, PathChoice};
use hvq::DestinationError;
use std::net::SocketAddr;
use url::{Host, Url};

/// The target of a fetch: URL and server.
#[derive(Clone, Debug)]
pub struct Target {
    /// The URL, complete.
    pub url: Url,
    /// The host name or address, an IPv6 address without brackets.
    pub host: String,
    /// The UDP port.
    pub port: u16,
}

impl Target {
    /// Reads a URL; `https://` may be left out.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let whole = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
        let url = Url::parse(&whole).or_fail(Exit::Usage, || format!("{text:?} is no URL"))?;
        if url.scheme() != "https" {
            let text = format!("{text}: HTTP/3 fetches https:// only, not {}://", url.scheme());
            return Err(Failure::new(Exit::Usage, text));
        }
        // RFC 9114 §4.3.1 forbids to send them as part of the URL.
        if !url.username().is_empty() || url.password().is_some() {
            let problem = "a URL with a user name or password is not fetched: say -H 'authorization: …'";
            return Err(Failure::new(
                Exit::Usage,
                format!("{}: {problem}", url.host_str().unwrap_or_default()),
            ));
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(address)) => address.to_string(),
            Some(Host::Ipv6(address)) => address.to_string(),
            None => return Err(Failure::new(Exit::Usage, format!("{text}: there is no host"))),
        };
        let port = url.port_or_known_default().expect("https has a default port");
        if port == 0 {
            return Err(Failure::new(Exit::Usage, format!("{text}: nothing listens on port 0")));
        }
        Ok(Self { url, host, port })
    }

    /// Returns the ways of connections over `paths` to the host, whose addresses `names` finds.
    pub async fn approach(&self, names: &Names, paths: &PathChoice) -> Result<Approach, Failure> {
        paths.toward(names, &self.host, self.port).await.map_err(unreachable)
    }

    /// Returns the ways of connections to a host over `paths` that has `addresses`: its name is not resolved.
    pub async fn approach_known(
        &self,
        paths: &PathChoice,
        addresses: &[SocketAddr],
    ) -> Result<Approach, Failure> {
        paths.toward_known(addresses).await.map_err(unreachable)
    }

    /// Returns true if one connection serves both.
    pub fn same_server(&self, other: &Self) -> bool {
        self.host == other.host && self.port == other.port
    }

    /// The last part of the URL's path, if it is a name for a file.
    pub fn file_name(&self) -> Result<String, Failure> {
        let last = self.url.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default();
        let name = percent_encoding::percent_decode_str(last).decode_utf8_lossy().into_owned();
        if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0']) {
            let text = format!("{}: --remote-name needs a URL that ends in the name of a file", self.url);
            return Err(Failure::new(Exit::Usage, text));
        }
        Ok(name)
    }
}

/// The failure to find a way.
fn unreachable(error: ApproachError) -> Failure {
    let exit = match &error {
        ApproachError::Destination(DestinationError::Version { .. }) => Exit::Usage,
        ApproachError::Destination(DestinationError::Resolve { .. }) | ApproachError::NoLink(_) => {
            Exit::Connection
        }
    };
    Failure::new(exit, error.to_string())
}
