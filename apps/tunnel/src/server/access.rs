//! The access to a server of tunnels: the tokens of its clients, and the routes that it permits.

use super::Destinations;
use super::leases::Allotment;
use super::ledger::{Ledger, Meter};
use crate::lane::TcpLane;
use crate::prefix::Prefix;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// A shorter token could be guessed.
const SHORTEST_TOKEN: usize = 16;

/// The error of options that would leave a server open to everyone, or of no use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TooOpen {
    /// There is no token.
    #[error("a tunnel server needs a token, or anybody could use it")]
    NoToken,
    /// A token can be guessed.
    #[error("a token has at least 16 characters")]
    ShortToken,
    /// There is no route.
    #[error("a tunnel server needs a route that it permits, such as 10.0.0.0/8")]
    NoRoute,
}

/// The permissions of a server of tunnels.
#[derive(Clone)]
pub struct ServerOptions {
    tokens: Vec<String>,
    /// The networks to which packets may go.
    pub(super) routes: Vec<Prefix>,
    network: (Ipv4Addr, Ipv6Addr),
    pub(super) allotment: Allotment,
    pub(super) lane: TcpLane,
    /// The addresses among those of the routes that clients may reach.
    pub(super) destinations: Destinations,
    ledger: Option<Arc<Ledger>>,
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Tokens stay secret.
        formatter.debug_struct("ServerOptions").field("routes", &self.routes).finish_non_exhaustive()
    }
}

impl ServerOptions {
    /// Makes the options of a server where the holder of one of `tokens` may send to `routes`. Addresses are those of
    /// the networks of 24 and 64 bits that `network` is in, of which the server itself has the first.
    ///
    /// # Errors
    /// See [`TooOpen`].
    pub fn new(
        tokens: Vec<String>,
        routes: Vec<Prefix>,
        network: (Ipv4Addr, Ipv6Addr),
    ) -> Result<Self, TooOpen> {
        if tokens.is_empty() {
            return Err(TooOpen::NoToken);
        }
        if tokens.iter().any(|token| token.len() < SHORTEST_TOKEN) {
            return Err(TooOpen::ShortToken);
        }
        Ok(Self { tokens, ..Self::trusting(routes, network)? })
    }

    /// For a program that lets clients in itself: whoever it grants a tunnel may send to `routes`. Nobody gets one by a token.
    ///
    /// # Errors
    /// There is no route.
    pub fn trusting(routes: Vec<Prefix>, network: (Ipv4Addr, Ipv6Addr)) -> Result<Self, TooOpen> {
        if routes.is_empty() {
            return Err(TooOpen::NoRoute);
        }
        let (allotment, lane) = (Allotment::default(), TcpLane::Off);
        let destinations = Destinations::all();
        Ok(Self { tokens: Vec::new(), routes, network, allotment, lane, destinations, ledger: None })
    }

    /// Sets whether TCP flows may ride streams, which this process then connects to hosts. Default: off.
    pub fn with_tcp_lane(self, lane: TcpLane) -> Self {
        Self { lane, ..self }
    }

    /// Sets the addresses that clients may reach, by packets and by flows, among those of the routes. Default: all.
    pub fn with_destinations(self, destinations: Destinations) -> Self {
        Self { destinations, ..self }
    }

    /// Sets the accounts of the users, whose places are those of their tokens. Default: nothing is counted.
    pub fn with_ledger(self, ledger: Arc<Ledger>) -> Self {
        Self { ledger: Some(ledger), ..self }
    }

    /// The meter of whoever has the token at the place `token`.
    pub(super) fn meter(&self, token: usize) -> Meter {
        self.ledger.as_ref().map_or_else(Meter::default, |ledger| Meter::of(ledger, token))
    }

    /// Sets the limits of giving out addresses.
    pub fn with_allotment(self, allotment: Allotment) -> Self {
        Self { allotment, ..self }
    }

    /// The place of the token that a request with these fields has (RFC 6750 §2.1), `None` if it has none.
    pub(super) fn token(&self, fields: &HeaderMap) -> Option<usize> {
        let mut values = fields.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return None };
        let (scheme, given) = value.as_bytes().split_at_checked(7)?;
        if !scheme.eq_ignore_ascii_case(b"bearer ") {
            return None;
        }
        // All are compared, and each in constant time, so that the time tells nothing about them.
        let mut found = None;
        for (place, token) in self.tokens.iter().enumerate() {
            if token.as_bytes().ct_eq(given).into() {
                found = Some(place);
            }
        }
        found
    }

    /// The addresses of the tunnel that has the number `host`, one of each version.
    pub(super) fn addresses(&self, host: u8) -> [IpAddr; 2] {
        let (v4, v6) = self.network;
        let [a, b, c, _] = v4.octets();
        let [first, second, third, fourth, ..] = v6.segments();
        [
            Ipv4Addr::new(a, b, c, host).into(),
            Ipv6Addr::new(first, second, third, fourth, 0, 0, 0, host.into()).into(),
        ]
    }

    /// The number of the tunnel that has `address`, if it is one of a tunnel.
    pub(super) fn host(&self, address: IpAddr) -> Option<u8> {
        let host = match address {
            IpAddr::V4(address) => address.octets()[3],
            IpAddr::V6(address) => u8::try_from(address.segments()[7]).ok()?,
        };
        self.addresses(host).contains(&address).then_some(host)
    }

    /// Returns true if a TCP flow may be connected to `destination`, by the rules for packets. Addresses by which this process
    /// alone is reached are left out, since no packet from a tunnel would get there.
    pub(super) fn takes_flows_to(&self, destination: IpAddr) -> bool {
        let address = destination.to_canonical();
        let here = address.is_loopback() || address.is_unspecified() || address.is_multicast();
        !here
            && address != IpAddr::V4(Ipv4Addr::BROADCAST)
            && self.leads_to(address)
            && self.destinations.include(address)
    }

    /// Returns true if packets may go to `destination`: somewhere on the routes, and to no other tunnel.
    pub(super) fn leads_to(&self, destination: IpAddr) -> bool {
        let (v4, v6) = self.network;
        let of_tunnels = match destination {
            IpAddr::V4(address) => address != v4 && address.octets()[..3] == v4.octets()[..3],
            IpAddr::V6(address) => address != v6 && address.segments()[..4] == v6.segments()[..4],
        };
        !of_tunnels && self.routes.iter().any(|route| route.contains(destination))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> (Ipv4Addr, Ipv6Addr) {
        (Ipv4Addr::new(100, 64, 0, 1), "fd68::1".parse().unwrap())
    }

    fn options() -> ServerOptions {
        let tokens = ["a token of some length", "another one, just as long"].map(str::to_owned).to_vec();
        ServerOptions::new(tokens, vec!["10.0.0.0/8".parse().unwrap()], network()).unwrap()
    }

    fn fields(values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (AUTHORIZATION, value.parse().unwrap())).collect()
    }

    #[test]
    fn a_server_is_closed_unless_it_is_opened() {
        let route = || vec!["10.0.0.0/8".parse().unwrap()];
        let token = || vec!["a token of some length".to_owned()];
        let error = |tokens, routes| ServerOptions::new(tokens, routes, network()).unwrap_err();
        assert_eq!(error(Vec::new(), route()), TooOpen::NoToken);
        assert_eq!(error(vec!["short".to_owned()], route()), TooOpen::ShortToken);
        assert_eq!(error(token(), Vec::new()), TooOpen::NoRoute);
    }

    #[test]
    fn a_token_is_taken_whole_once_and_as_bearer_only() {
        let options = options();
        assert_eq!(options.token(&fields(&["Bearer a token of some length"])), Some(0));
        assert_eq!(options.token(&fields(&["bearer another one, just as long"])), Some(1));
        for bad in [
            &[][..],
            &["Bearer a token of some lengt"],
            &["Bearer a token of some length "],
            &["Basic a token of some length"],
            &["Bearer "],
            &["B"],
            &["Bearer a token of some length", "Bearer a token of some length"],
        ] {
            assert_eq!(options.token(&fields(bad)), None, "{bad:?}");
        }
        assert!(!format!("{options:?}").contains("some length"));
    }

    #[test]
    fn addresses_are_of_the_servers_networks_and_known_again() {
        let options = options();
        assert_eq!(options.addresses(2), [[100, 64, 0, 2].into(), "fd68::2".parse::<IpAddr>().unwrap()]);
        for (address, host) in [
            ("100.64.0.2", Some(2)),
            ("100.64.0.254", Some(254)),
            ("fd68::fe", Some(254)),
            ("fd68::1:2", None),
            ("fd68:0:0:1::2", None),
            ("100.64.1.2", None),
            ("10.0.0.2", None),
        ] {
            assert_eq!(options.host(address.parse().unwrap()), host, "{address}");
        }
    }

    #[test]
    fn no_tunnel_leads_to_another_whatever_the_routes_are() {
        // K20.
        let routes = ["0.0.0.0/0", "::/0"].map(|route| route.parse().unwrap()).to_vec();
        let options = ServerOptions::trusting(routes, network()).unwrap();
        for other in ["100.64.0.2", "100.64.0.254", "100.64.0.255", "100.64.0.0", "fd68::2", "fd68::1234:5"] {
            assert!(!options.leads_to(other.parse().unwrap()), "{other}");
        }
        for there in ["100.64.0.1", "fd68::1", "100.64.1.2", "192.0.2.1", "fd69::2"] {
            assert!(options.leads_to(there.parse().unwrap()), "{there}");
        }
        assert!(!self::options().leads_to([192, 0, 2, 1].into()), "off the routes");
        for nowhere in [
            "127.0.0.1",
            "0.0.0.0",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:100.64.0.2",
            "224.0.0.1",
            "255.255.255.255",
            "100.64.0.2",
        ] {
            assert!(!options.takes_flows_to(nowhere.parse().unwrap()), "{nowhere}");
        }
        assert!(
            options.takes_flows_to([192, 0, 2, 1].into()) && options.takes_flows_to([100, 64, 0, 1].into())
        );
    }
}
