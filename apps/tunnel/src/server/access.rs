//! Who may have a tunnel, and where it leads.

use crate::prefix::Prefix;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use subtle::ConstantTimeEq;

/// Tunnels at one time: addresses end in 2 to 254.
const HOSTS: std::ops::RangeInclusive<u8> = 2..=254;
/// A shorter token could be guessed.
const SHORTEST_TOKEN: usize = 16;

/// What would leave a server open to everyone, or of no use.
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

/// What a server of tunnels permits.
#[derive(Clone)]
pub struct ServerOptions {
    tokens: Vec<String>,
    /// Where packets may go.
    pub(super) routes: Vec<Prefix>,
    network: (Ipv4Addr, Ipv6Addr),
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Tokens stay secret.
        formatter.debug_struct("ServerOptions").field("routes", &self.routes).finish_non_exhaustive()
    }
}

impl ServerOptions {
    /// Whoever has one of `tokens` may send to `routes`. Addresses are those of the networks of 24 and 64 bits that
    /// `network` is in, of which the server itself has the first.
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
        if routes.is_empty() {
            return Err(TooOpen::NoRoute);
        }
        Ok(Self { tokens, routes, network })
    }

    /// For a program that lets clients in itself: whoever it grants a tunnel may send to `routes`. Nobody gets one by a token.
    ///
    /// # Errors
    /// There is no route.
    pub fn trusting(routes: Vec<Prefix>, network: (Ipv4Addr, Ipv6Addr)) -> Result<Self, TooOpen> {
        if routes.is_empty() {
            return Err(TooOpen::NoRoute);
        }
        Ok(Self { tokens: Vec::new(), routes, network })
    }

    /// Whether a request with these fields has a token (RFC 6750 §2.1).
    pub(super) fn admits(&self, fields: &HeaderMap) -> bool {
        let mut values = fields.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        let Some((scheme, given)) = value.as_bytes().split_at_checked(7) else { return false };
        if !scheme.eq_ignore_ascii_case(b"bearer ") {
            return false;
        }
        // All are compared, and each in constant time, so that the time tells nothing about them.
        let found = self.tokens.iter().map(|token| token.as_bytes().ct_eq(given));
        found.fold(subtle::Choice::from(0), |all, one| all | one).into()
    }

    /// The addresses that tunnels may have, by version.
    pub(super) fn candidates(&self) -> [Vec<IpAddr>; 2] {
        let (v4, v6) = self.network;
        let [a, b, c, _] = v4.octets();
        let [first, second, third, fourth, ..] = v6.segments();
        [
            HOSTS.map(|host| Ipv4Addr::new(a, b, c, host).into()).collect(),
            HOSTS
                .map(|host| Ipv6Addr::new(first, second, third, fourth, 0, 0, 0, host.into()).into())
                .collect(),
        ]
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
        assert!(options.admits(&fields(&["Bearer a token of some length"])));
        assert!(options.admits(&fields(&["bearer another one, just as long"])));
        for bad in [
            &[][..],
            &["Bearer a token of some lengt"],
            &["Bearer a token of some length "],
            &["Basic a token of some length"],
            &["Bearer "],
            &["B"],
            &["Bearer a token of some length", "Bearer a token of some length"],
        ] {
            assert!(!options.admits(&fields(bad)), "{bad:?}");
        }
        assert!(!format!("{options:?}").contains("some length"));
    }

    #[test]
    fn addresses_are_of_the_servers_networks_and_not_its_own() {
        let [v4, v6] = options().candidates();
        assert_eq!((v4.len(), v6.len()), (253, 253));
        assert_eq!((v4[0], v6[0]), ([100, 64, 0, 2].into(), "fd68::2".parse().unwrap()));
    }
}
