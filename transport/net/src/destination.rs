//! The remote ends of the paths to a host: an address of a path's own, or one that the host's name resolves to.

use crate::dialer::resolve;
use crate::runtime;
use crate::{LocalAddress, PathOptions};
use std::future::Future;
use std::io;
use std::net::SocketAddr;

/// The reason for which there is no way to a host over the paths that were named.
#[derive(Debug, thiserror::Error)]
pub enum DestinationError {
    /// The host's name does not resolve.
    #[error("cannot resolve {host}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// The error of the resolver.
        source: io::Error,
    },
    /// The host has no address of the IP version of a path.
    #[error("path {path} starts at {local}, an IPv{version} address, and {host} has no IPv{version} address")]
    Version {
        /// The name of the path.
        path: String,
        /// The local end of the path.
        local: LocalAddress,
        /// The IP version of that.
        version: u8,
        /// The name of the host.
        host: String,
    },
}

/// An address of a host, and the paths to the host with a remote address each.
#[derive(Clone, PartialEq, Debug)]
pub struct Destination {
    /// The address of a connection that has no path options.
    pub address: SocketAddr,
    /// The paths in the order in which they were named.
    pub paths: Vec<PathOptions>,
}

impl Destination {
    /// The destinations that `host` stands for over `paths`, in the order in which to try them. A path without a remote
    /// address goes to an address of the host that has the IP version of its local address; one that starts at an interface
    /// goes to each address in turn. The name is not resolved if every path has a remote address; else its IPv6 and IPv4 addresses
    /// are asked for at the same time, take turns, and are sixteen at most (RFC 8305 §3, §4).
    ///
    /// # Errors
    /// See [`DestinationError`]; also if a name is to be resolved outside of tokio's runtime and of smol.
    pub async fn resolve(
        host: &str,
        port: u16,
        paths: &[PathOptions],
    ) -> Result<Vec<Self>, DestinationError> {
        Self::resolved(host, paths, resolve(runtime::current, host, port)).await
    }

    /// The destinations at which `host` may offer HTTP/3 over `paths`, in the order in which to try them: as
    /// [`resolve`](Self::resolve) does, with HTTPS records (RFC 9460), whose targets, ports and addresses come first. The
    /// certificate is still to be for `host`.
    ///
    /// # Errors
    /// See [`DestinationError`].
    #[cfg(feature = "dns")]
    pub async fn resolve_https(
        resolver: &crate::dns::Resolver,
        host: &str,
        port: u16,
        paths: &[PathOptions],
    ) -> Result<Vec<Self>, DestinationError> {
        Self::resolved(host, paths, resolver.resolve(host, port)).await
    }

    /// The destinations at the addresses that `resolving` finds, if those are needed.
    pub(crate) async fn resolved(
        host: &str,
        paths: &[PathOptions],
        resolving: impl Future<Output = io::Result<Vec<SocketAddr>>>,
    ) -> Result<Vec<Self>, DestinationError> {
        let failed = |source| DestinationError::Resolve { host: host.to_owned(), source };
        let own = paths.first().and_then(|path| path.remote);
        if let Some(address) = own.filter(|_| paths.iter().all(|path| path.remote.is_some())) {
            return Ok(vec![Self { address, paths: paths.to_vec() }]);
        }
        let addresses = resolving.await.map_err(failed)?;
        Self::among(host, &addresses, paths)
    }

    /// The destinations over `paths` to a host with these addresses, each once.
    fn among(
        host: &str,
        addresses: &[SocketAddr],
        paths: &[PathOptions],
    ) -> Result<Vec<Self>, DestinationError> {
        let mut destinations: Vec<Self> = Vec::new();
        for &address in addresses {
            let toward = |path: &PathOptions| toward(path, address, addresses, host);
            let paths = paths.iter().map(toward).collect::<Result<Vec<_>, _>>()?;
            // Addresses of the other IP version change nothing for paths that cannot use them.
            let known = destinations.iter().any(|known| !paths.is_empty() && known.paths == paths);
            if !known {
                destinations.push(Self { address, paths });
            }
        }
        Ok(destinations)
    }
}

/// `path` to `address`, or to the first of `addresses` that it can reach.
fn toward(
    path: &PathOptions,
    address: SocketAddr,
    addresses: &[SocketAddr],
    host: &str,
) -> Result<PathOptions, DestinationError> {
    let version = match &path.local {
        LocalAddress::Ip(local) => Some(if local.is_ipv4() { 4 } else { 6 }),
        LocalAddress::Socket(local) => Some(if local.is_ipv4() { 4 } else { 6 }),
        LocalAddress::Link(local) => Some(if local.address.is_ipv4() { 4 } else { 6 }),
        LocalAddress::Interface(_) => None,
    };
    let fits = |remote: &SocketAddr| version.is_none_or(|version| remote.is_ipv4() == (version == 4));
    let resolved = std::iter::once(&address).chain(addresses).copied().find(fits);
    match (path.remote.or(resolved), version) {
        (Some(remote), _) => Ok(path.clone().to(remote)),
        (None, version) => Err(DestinationError::Version {
            path: path.name.clone(),
            local: path.local.clone(),
            version: version.unwrap_or_default(),
            host: host.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> PathOptions {
        text.parse().unwrap()
    }

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn remotes(paths: &[&str], host: &[&str]) -> Vec<Vec<String>> {
        let paths: Vec<_> = paths.iter().map(|text| path(text)).collect();
        let found = Destination::among("host", &addresses(host), &paths).unwrap();
        let remote = |path: &PathOptions| path.remote.unwrap().to_string();
        found.iter().map(|found| found.paths.iter().map(remote).collect()).collect()
    }

    #[test]
    fn a_path_without_a_remote_goes_to_the_host_and_not_where_another_goes() {
        let paths = ["urllc=127.0.0.1>127.0.0.9:1", "embb=127.0.0.2"];
        assert_eq!(remotes(&paths, &["127.0.0.3:443"]), [["127.0.0.9:1", "127.0.0.3:443"]]);
        let paths = ["embb=127.0.0.2", "urllc=127.0.0.1>127.0.0.9:1"];
        assert_eq!(remotes(&paths, &["127.0.0.3:443"]), [["127.0.0.3:443", "127.0.0.9:1"]]);
    }

    #[test]
    fn each_path_goes_to_an_address_of_its_own_ip_version() {
        let paths = ["four=127.0.0.1:0", "six=::1", "device=eth0"];
        let host = ["[2001:db8::1]:443", "192.0.2.1:443"];
        let expected = [
            ["192.0.2.1:443", "[2001:db8::1]:443", "[2001:db8::1]:443"],
            ["192.0.2.1:443", "[2001:db8::1]:443", "192.0.2.1:443"],
        ];
        assert_eq!(remotes(&paths, &host), expected);
        assert_eq!(remotes(&paths[..2], &host), [expected[0][..2].to_vec()], "the same twice is tried once");
    }

    #[test]
    fn a_host_without_an_address_of_the_version_of_a_path_is_an_error_that_names_both() {
        let error = Destination::among("host", &addresses(&["192.0.2.1:443"]), &[path("cell=2001:db8::2")]);
        let text = error.unwrap_err().to_string();
        assert_eq!(text, "path cell starts at 2001:db8::2, an IPv6 address, and host has no IPv6 address");
    }

    #[test]
    fn without_paths_every_address_is_a_destination() {
        let host = addresses(&["[2001:db8::1]:443", "192.0.2.1:443"]);
        let found = Destination::among("host", &host, &[]).unwrap();
        assert_eq!(found.iter().map(|found| found.address).collect::<Vec<_>>(), host);
    }

    #[tokio::test]
    async fn a_name_is_not_resolved_if_every_path_has_a_remote() {
        let paths = [path("a=127.0.0.1>127.0.0.9:1"), path("b=127.0.0.2>127.0.0.9:2")];
        let found = Destination::resolve("name.invalid", 443, &paths).await.unwrap();
        assert_eq!(found, [Destination { address: paths[0].remote.unwrap(), paths: paths.to_vec() }]);
        let missing = Destination::resolve("name.invalid", 443, &[path("a=127.0.0.1")]).await;
        assert!(matches!(missing, Err(DestinationError::Resolve { .. })), "{missing:?}");
    }
}
