//! The groups that addresses belong to: what one subscriber or one site is usually given.

use std::net::{IpAddr, Ipv6Addr};

/// The network that an address counts to: a /24 of IPv4, a /56 of IPv6, which is what one customer of a provider usually
/// has (RFC 6177 §2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Prefix {
    /// The first three bytes.
    V4([u8; 3]),
    /// The first seven bytes.
    V6([u8; 7]),
}

impl Prefix {
    /// The network of `address`; an IPv4 address that is written as one of IPv6 counts as what it is.
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                Self::V4([a, b, c])
            }
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, ..] = address.octets();
                Self::V6([a, b, c, d, e, f, g])
            }
        }
    }
}

/// The host that `address` counts to within its [`Prefix`]: itself for IPv4, its /64 for IPv6, in which a host has as many
/// addresses as it likes (RFC 8981).
pub fn host(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_of_one_network_count_together_however_they_are_written() {
        let of = |text| Prefix::of(address(text));
        assert_eq!(of("192.0.2.1"), of("192.0.2.254"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.9"));
        assert_ne!(of("192.0.2.1"), of("192.0.3.1"));
        assert_eq!(of("2001:db8:0:ff00::1"), of("2001:db8:0:ffff::2"));
        assert_ne!(of("2001:db8:0:fe00::1"), of("2001:db8:0:ff00::1"));
    }

    #[test]
    fn a_host_is_an_address_of_ipv4_and_a_64_of_ipv6() {
        assert_eq!(host(address("192.0.2.1")), address("192.0.2.1"));
        assert_eq!(host(address("::ffff:192.0.2.1")), address("192.0.2.1"));
        assert_eq!(host(address("2001:db8::1")), host(address("2001:db8::ffff:2")));
        assert_ne!(host(address("2001:db8:0:1::1")), host(address("2001:db8:0:2::1")));
    }
}
