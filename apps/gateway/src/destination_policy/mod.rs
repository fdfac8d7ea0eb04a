//! The destinations that clients may reach through the gateway: hosts and ports, and the addresses behind their names.

mod addresses;
mod coverage;
mod own;

use addresses::is_of_a_cloud;
pub use addresses::is_public;
pub(crate) use coverage::Coverage;

use crate::configuration::Pattern;
use http::uri::Authority;
use ipnet::IpNet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Addresses of one name that are tried.
const TRIED: usize = 4;

/// Hosts and ports that may be asked for: `example.org:443`, `*.example.org:443`, `*:443`, `[2001:db8::1]:*`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destination {
    host: Pattern,
    /// `None` stands for all ports.
    port: Option<u16>,
}

impl Destination {
    /// Returns true if `host`, in lower case and with brackets around an IPv6 address, and `port` are among them.
    pub fn matches(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|allowed| allowed == port) && self.host.matches(host)
    }
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || {
            format!(
                "{text:?} is no destination: expected HOST:PORT such as \"example.org:443\", \"*.example.org:443\" or \"*:443\""
            )
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(wanted)?;
        let port = match port {
            "*" => None,
            port => Some(port.parse().map_err(|_| wanted())?),
        };
        Ok(Self { host: host.parse().map_err(|_| wanted())?, port })
    }
}

/// The error of a port that is no number of 16 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoPort;

/// The port that `authority` names, which has no user information; `None` if it names none or ends in a colon, which both
/// stand for the default of the scheme (RFC 3986 §3.2.3).
///
/// # Errors
/// The text behind the colon is no decimal number of 16 bits.
pub fn port_of(authority: &Authority) -> Result<Option<u16>, NoPort> {
    let behind = authority.as_str().strip_prefix(authority.host()).ok_or(NoPort)?;
    match behind.strip_prefix(':') {
        None | Some("") => Ok(None),
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().map(Some).map_err(|_| NoPort)
        }
        Some(_) => Err(NoPort),
    }
}

/// Host and port of `authority`, the host in lower case; `None` if there is no host, or user information, or no port and
/// no `default`.
pub fn host_and_port(authority: &Authority, default: Option<u16>) -> Option<(String, u16)> {
    let host = authority.host();
    if host.is_empty() || authority.as_str().contains('@') {
        return None;
    }
    let port = port_of(authority).ok()?.or(default)?;
    (port != 0).then(|| (host.to_ascii_lowercase(), port))
}

/// The addresses that may be reached: public ones, and those of networks that were named.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DestinationPolicy {
    networks: Vec<IpNet>,
}

impl DestinationPolicy {
    /// Public addresses, and those in `networks`.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self { networks }
    }

    /// Returns true if `address` may be reached.
    pub fn allows(&self, address: IpAddr) -> bool {
        self.allows_by(address, &[])
    }

    /// Returns true if `address` may be reached over `routes`, each of which names its network if that is a private
    /// one. Addresses of this machine and of what clouds tell their machines have to be named one by one.
    pub fn allows_by(&self, address: IpAddr, routes: &[IpNet]) -> bool {
        let address = address.to_canonical();
        if self.names(address) {
            return true;
        }
        if is_of_a_cloud(address) || own::is_own(address) && !address.is_loopback() {
            return false;
        }
        self.leads_to(address, routes)
    }

    /// Returns true if `address` alone was named, and not only a network around it.
    pub(crate) fn names(&self, address: IpAddr) -> bool {
        self.networks.contains(&IpNet::from(address))
    }

    /// Returns true if `address`, which is neither one of this machine nor of what clouds tell theirs, may be reached over
    /// `routes`.
    fn leads_to(&self, address: IpAddr, routes: &[IpNet]) -> bool {
        let routed = |route: &IpNet| route.contains(&address) && addresses::is_private(route);
        is_public(address)
            || self.networks.iter().any(|network| network.contains(&address))
            || routes.iter().any(routed)
    }

    /// The addresses of `host` that may be reached, a few at most. They are to be connected to without another look at the
    /// name, which may mean something else a moment later.
    ///
    /// # Errors
    /// The name has no address, or none that may be reached ([`io::ErrorKind::PermissionDenied`]).
    pub async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let name = host.trim_matches(['[', ']']);
        let found: Vec<SocketAddr> = match name.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => tokio::net::lookup_host((name, port)).await?.collect(),
        };
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        let allowed: Vec<_> = found.into_iter().filter(|found| self.allows(found.ip())).take(TRIED).collect();
        if allowed.is_empty() {
            let text = "the address is not public, and no network that may be reached has it";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_are_a_host_and_a_port() {
        let matches = |text: &str, host: &str, port| text.parse::<Destination>().unwrap().matches(host, port);
        assert!(matches("example.org:443", "example.org", 443) && matches("*:443", "10.0.0.1", 443));
        assert!(matches("*.example.org:*", "a.example.org", 22) && matches("[::1]:80", "[::1]", 80));
        assert!(
            !matches("example.org:443", "example.org", 80) && !matches("*.example.org:*", "example.org", 22)
        );
        for text in ["", "example.org", "example.org:", "example.org:65536", ":443", "a b:1"] {
            assert!(text.parse::<Destination>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn authorities_with_users_ports_that_are_none_or_no_host_lead_nowhere() {
        let read = |text: &str, default| host_and_port(&text.parse().unwrap(), default);
        assert_eq!(read("Example.org:443", None), Some(("example.org".to_owned(), 443)));
        assert_eq!(read("example.org", Some(80)), Some(("example.org".to_owned(), 80)));
        assert_eq!(read("[::1]:8", None), Some(("[::1]".to_owned(), 8)));
        assert_eq!(read("example.org:", Some(80)), Some(("example.org".to_owned(), 80)));
        for text in [
            "example.org",
            "user@example.org:443",
            "example.org:0",
            "example.org:99999",
            "example.org:65536",
            "example.org:+443",
            "example.org:",
        ] {
            assert_eq!(read(text, None), None, "{text}");
        }
        assert_eq!(port_of(&"example.org:99999".parse().unwrap()), Err(NoPort));
    }

    #[test]
    fn tunnels_lead_to_what_is_public_or_named_and_not_to_this_machine() {
        // K20.
        let allows = |reach: &[&str], routes: &[&str], address: &str| {
            let nets =
                |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<IpNet>>();
            DestinationPolicy::new(nets(reach)).allows_by(address.parse().unwrap(), &nets(routes))
        };
        // A route names a private network; one to everywhere names none.
        assert!(allows(&[], &["10.0.0.0/8"], "10.1.2.3") && allows(&[], &["fd00::/8"], "fd00::5"));
        assert!(
            allows(&[], &["0.0.0.0/0"], "1.1.1.1") && allows(&["10.0.0.0/8"], &["0.0.0.0/0"], "10.1.2.3")
        );
        for address in ["10.1.2.3", "192.168.1.1", "127.0.0.1", "169.254.169.254", "100.64.9.9", "224.0.0.1"]
        {
            assert!(!allows(&[], &["0.0.0.0/0"], address), "{address}");
        }
        for address in ["::1", "fe80::1", "fd00:ec2::254", "::ffff:10.1.2.3"] {
            assert!(!allows(&[], &["::/0"], address), "{address}");
        }
        // What clouds tell their machines, even where the network around it is named.
        for (network, address) in [
            ("169.254.0.0/16", "169.254.169.254"),
            ("100.64.0.0/10", "100.100.100.200"),
            ("168.63.0.0/16", "168.63.129.16"),
            ("fd00::/8", "fd00:ec2::254"),
        ] {
            assert!(!allows(&[network], &[network], address), "{address}");
            let exact =
                if address.contains(':') { format!("{address}/128") } else { format!("{address}/32") };
            assert!(allows(&[&exact], &[network], address), "{address}");
            assert!(!allows(&[], &[&exact], address), "a route alone does not do");
        }
        assert!(
            !allows(&[], &["169.254.0.0/16"], "169.254.1.1") && !allows(&[], &["127.0.0.0/8"], "127.0.0.1")
        );
    }

    #[test]
    fn addresses_of_this_machine_have_to_be_named_one_by_one() {
        for own in own::look() {
            if own.is_loopback() {
                continue;
            }
            let around = IpNet::new(own, if own.is_ipv4() { 8 } else { 16 }).unwrap().trunc();
            assert!(!DestinationPolicy::new(vec![around]).allows_by(own, &[around]), "{own}");
            assert!(DestinationPolicy::new(vec![IpNet::from(own)]).allows(own), "{own}");
        }
    }

    #[tokio::test]
    async fn loopback_and_metadata_addresses_are_refused_until_a_network_is_named() {
        // I11: the gateway is asked for itself, its neighbours and the metadata service of a cloud.
        let closed = DestinationPolicy::default();
        for host in [
            "127.0.0.1",
            "localhost",
            "169.254.169.254",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "10.1.2.3",
            "0.0.0.0",
        ] {
            let refused = closed.resolve(host, 80).await.unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{host}");
        }
        let open = DestinationPolicy::new(vec!["127.0.0.0/8".parse().unwrap()]);
        assert_eq!(open.resolve("127.0.0.1", 80).await.unwrap(), [SocketAddr::from(([127, 0, 0, 1], 80))]);
        assert!(
            open.allows("::ffff:127.0.0.1".parse().unwrap()) && !open.allows("10.1.2.3".parse().unwrap())
        );
    }
}
