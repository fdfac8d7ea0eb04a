//! The server's preferred address: offered in the handshake, taken by the client afterwards (RFC 9000 §9.6).

use crate::PathId;
use crate::connection::paths::maintenance::PathMaintenance;
use crate::connection::{ConnectionSetup, FourTuple, Moving, Role, TransportConfig};
use crate::time::Instant;
use crate::wire::transport_parameters::PreferredAddress;
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// A server's preferred addresses, at most one of each IP version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PreferredAddresses {
    /// For clients that came over IPv4.
    pub ipv4: Option<SocketAddrV4>,
    /// For clients that came over IPv6.
    pub ipv6: Option<SocketAddrV6>,
}

impl PreferredAddresses {
    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.ipv4.is_none() && self.ipv6.is_none()
    }

    /// Returns true if `address` is one of them.
    pub fn contains(&self, address: SocketAddr) -> bool {
        self.ipv4.map(SocketAddr::V4) == Some(address) || self.ipv6.map(SocketAddr::V6) == Some(address)
    }
}

/// Tells whether a client moves to the preferred address of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preference {
    /// It does, if it is an address that the server could be at, and answers there.
    #[default]
    Followed,
    /// It stays where it is.
    Ignored,
}

/// The transport parameter of a server, with a connection ID of its own, if it prefers an address.
pub(in crate::connection) fn preferred_address(
    config: &TransportConfig,
    setup: &mut ConnectionSetup,
) -> Option<PreferredAddress> {
    let addresses = config.preferred_addresses;
    //= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
    //# A server that chooses a zero-length connection ID MUST NOT provide a preferred address
    //= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
    //# Similarly, a server MUST NOT include a zero- length connection ID in this transport parameter
    // RFC 9000 §18.2: a server whose connection IDs are empty offers none.
    if addresses.is_empty() || setup.first_id.is_empty() {
        return None;
    }
    let (connection_id, stateless_reset_token) = setup.ids.issue();
    Some(PreferredAddress {
        ipv4: addresses.ipv4,
        ipv6: addresses.ipv6,
        connection_id,
        stateless_reset_token,
    })
}

impl PathMaintenance<'_> {
    /// A client whose handshake is confirmed moves path 0 to the server's preferred address, once it has answered there
    /// (RFC 9000 §9.6.1). If it does not, the path stays.
    pub(in crate::connection) fn consider_preferred(&mut self, now: Instant) {
        if !self.terms.lifecycle.is_confirmed()
            || self.terms.role == Role::Server
            || !self.owners.paths.take_preferred_due()
        {
            return;
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-9.6.2
        //= type=implication
        //= reason=A preferred address is part of the parameters of one connection, which are not kept.
        //# A client MUST NOT use these for other connections, including connections that are resumed from the
        //# current connection.
        let Some(preferred) = &self.terms.peer.parameters().preferred_address else { return };
        // Path 0 may be abandoned meanwhile.
        let Some(path) = self.owners.paths.get(PathId::ZERO) else { return };
        let current = path.route.tuple;
        let remote = match current.remote {
            SocketAddr::V4(_) => preferred.ipv4.map(SocketAddr::V4),
            SocketAddr::V6(_) => preferred.ipv6.map(SocketAddr::V6),
        };
        let acceptable = |remote: &SocketAddr| is_acceptable(*remote, current.remote.ip());
        let Some(remote) = remote.filter(acceptable) else { return };
        if self.terms.config.preference == Preference::Followed {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-9.6.2
            //# A client that migrates to a preferred address MUST validate the address it chooses before
            //# migrating; see Section 21.5.3.
            // What keeps it from moving is no reason to end anything: the first address serves as well.
            let _stays = self.start_migration(
                PathId::ZERO,
                FourTuple { local: current.local, remote },
                Moving::Validated,
                now,
            );
        }
    }
}

/// Returns true if a client may be sent to `preferred` by a server at `current`: never to itself or into its own
/// network from outside (RFC 9000 §21.5.3), nor to many hosts at once.
fn is_acceptable(preferred: SocketAddr, current: IpAddr) -> bool {
    let reach = Reach::of(preferred.ip());
    preferred.port() != 0
        && reach != Reach::Nowhere
        && (reach == Reach::Global || reach == Reach::of(current))
}

/// The extent of the network from which an address can be reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reach {
    Host,
    Link,
    Site,
    Global,
    /// No single host has it.
    Nowhere,
}

impl Reach {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(v4) if v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast() => Self::Nowhere,
            IpAddr::V4(v4) if v4.is_loopback() => Self::Host,
            IpAddr::V4(v4) if v4.is_link_local() => Self::Link,
            // RFC 1918 and RFC 6598.
            IpAddr::V4(v4) if v4.is_private() || v4.octets()[0] == 100 && v4.octets()[1] & 0xc0 == 64 => {
                Self::Site
            }
            IpAddr::V6(v6) if v6.is_unspecified() || v6.is_multicast() => Self::Nowhere,
            IpAddr::V6(v6) if v6.is_loopback() => Self::Host,
            IpAddr::V6(v6) if v6.is_unicast_link_local() => Self::Link,
            IpAddr::V6(v6) if v6.is_unique_local() => Self::Site,
            IpAddr::V4(_) | IpAddr::V6(_) => Self::Global,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acceptable(preferred: &str, current: &str) -> bool {
        is_acceptable(preferred.parse().unwrap(), current.parse().unwrap())
    }

    // Attack D11, RFC 9000 §21.5.3.
    #[test]
    fn a_server_on_the_internet_sends_nobody_to_private_loopback_or_multicast_addresses() {
        for inside in [
            "127.0.0.1:443",
            "10.0.0.1:443",
            "192.168.1.1:443",
            "172.16.0.1:443",
            "100.64.0.1:443",
            "169.254.1.1:443",
            "224.0.0.1:443",
            "255.255.255.255:443",
            "0.0.0.0:443",
            "198.51.100.1:0",
        ] {
            assert!(!acceptable(inside, "198.51.100.7"), "{inside}");
        }
        for inside in
            ["[::1]:443", "[fc00::1]:443", "[fe80::1]:443", "[ff02::1]:443", "[::ffff:127.0.0.1]:443"]
        {
            assert!(!acceptable(inside, "2001:db8::1"), "{inside}");
        }
        assert!(acceptable("198.51.100.1:443", "198.51.100.7"));
        assert!(acceptable("[2001:db8::2]:443", "2001:db8::1"));
    }

    #[test]
    fn a_server_inside_may_prefer_an_address_inside() {
        assert!(acceptable("10.0.0.1:443", "192.168.1.1"));
        assert!(acceptable("127.0.0.1:444", "127.0.0.1"));
        assert!(acceptable("198.51.100.1:443", "10.0.0.1"), "out of the network is no harm");
        assert!(!acceptable("127.0.0.1:444", "10.0.0.1"));
        assert!(!acceptable("224.0.0.1:443", "127.0.0.1"));
    }
}
