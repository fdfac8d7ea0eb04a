//! The parts of a route whose addresses may not be reached.

use super::DestinationPolicy;
use super::addresses::{borders, is_private};
use ipnet::IpNet;

/// The extent to which the addresses of a route may be reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Coverage {
    /// All of them, but for those of this machine and of clouds.
    Whole,
    /// All but those in these networks, each of which is a private one.
    Without(Vec<IpNet>),
    /// None of them.
    Nothing,
}

impl DestinationPolicy {
    /// Returns the extent to which the addresses of `route`, which is one of `routes`, may be reached. Networks that are neither
    /// public nor private do not count in a route that leads elsewhere, too.
    pub(crate) fn coverage(&self, route: &IpNet, routes: &[IpNet]) -> Coverage {
        let dividing: Vec<_> =
            borders().into_iter().chain(self.networks.iter().chain(routes).copied()).collect();
        let mut refused = Vec::new();
        divide(route.trunc(), &dividing, &mut |network| {
            let address = network.addr();
            let is_single = network.prefix_len() == network.max_prefix_len();
            let is_reached =
                if is_single { self.allows_by(address, routes) } else { self.leads_to(address, routes) };
            refused.extend((!is_reached).then_some(network));
        });
        if IpNet::aggregate(&refused) == [route.trunc()] {
            return Coverage::Nothing;
        }
        refused.retain(is_private);
        if refused.is_empty() { Coverage::Whole } else { Coverage::Without(IpNet::aggregate(&refused)) }
    }
}

/// Visits the parts of `network` that hold none of `borders`, or are one.
fn divide(network: IpNet, borders: &[IpNet], visit: &mut impl FnMut(IpNet)) {
    let inside = |border: &IpNet| network.contains(border) && network != border.trunc();
    let inner: Vec<_> = borders.iter().filter(|border| inside(border)).copied().collect();
    if inner.is_empty() {
        return visit(network);
    }
    let halves = network.subnets(network.prefix_len() + 1).expect("what holds another network can be halved");
    halves.for_each(|half| divide(half, &inner, visit));
}

#[cfg(test)]
mod tests {
    use super::super::is_public;
    use super::*;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn coverage(reach: &[&str], routes: &[&str]) -> Coverage {
        let routes = nets(routes);
        DestinationPolicy::new(nets(reach)).coverage(&routes[0], &routes)
    }

    #[test]
    fn a_route_is_covered_by_what_is_public_private_and_named() {
        for (reach, routes, expected) in [
            (&[][..], &["10.0.0.0/8"][..], Coverage::Whole),
            (&[], &["1.1.1.0/24"], Coverage::Whole),
            (&[], &["169.254.7.0/24"], Coverage::Nothing),
            (&["169.254.7.0/24"], &["169.254.7.0/24"], Coverage::Whole),
            (&[], &["127.0.0.0/8"], Coverage::Nothing),
            (&[], &["169.254.169.254/32"], Coverage::Nothing),
            (&["169.254.0.0/16"], &["169.254.169.254/32"], Coverage::Nothing),
            (&["169.254.169.254/32"], &["169.254.169.254/32"], Coverage::Whole),
            (&[], &["fe80::/10"], Coverage::Nothing),
            (&["fe80::/10"], &["fe80::/10"], Coverage::Whole),
            (&[], &["fd00::/8"], Coverage::Whole),
            (&[], &["2606:4700::/32"], Coverage::Whole),
            // Wider than the private network in it.
            (&[], &["10.0.0.0/7"], Coverage::Without(nets(&["10.0.0.0/8"]))),
            (&["10.0.0.0/8"], &["10.0.0.0/7"], Coverage::Whole),
            (&[], &["10.0.0.0/7", "10.0.0.0/8"], Coverage::Whole),
            (&["10.0.0.0/9"], &["10.0.0.0/7"], Coverage::Without(nets(&["10.128.0.0/9"]))),
            (&[], &["240.0.0.0/4"], Coverage::Nothing),
        ] {
            assert_eq!(coverage(reach, routes), expected, "{reach:?} {routes:?}");
        }
        let everywhere = coverage(&["10.0.0.0/8", "192.0.0.0/16"], &["0.0.0.0/0"]);
        let without = [
            "100.64.0.0/10",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
        ];
        assert_eq!(everywhere, Coverage::Without(nets(&without)));
        assert_eq!(coverage(&[], &["::/0"]), Coverage::Without(nets(&["2001:db8::/32", "fc00::/7"])));
    }

    #[test]
    fn all_addresses_of_a_network_without_borders_are_alike() {
        let borders = borders();
        let mut parts = Vec::new();
        for all in ["0.0.0.0/0", "::/0"] {
            divide(all.parse().unwrap(), &borders, &mut |part| parts.push(part));
        }
        let check = |address: IpAddr| {
            let part = parts[parts.partition_point(|part| part.addr() <= address) - 1];
            assert!(part.contains(&address));
            let first = part.addr();
            assert_eq!(is_public(address), is_public(first), "{address} in {part}");
            assert_eq!(is_private(&address.into()), is_private(&first.into()), "{address} in {part}");
        };
        // A prefix of 16 bits each, and of 24 where borders are that fine; of IPv6, too, and as addresses of IPv4 in it.
        let coarse = (0..=u16::MAX).map(|high| u32::from(high) << 16);
        let fine = [[192, 0], [198, 51], [203, 0]].map(u16::from_be_bytes);
        let fine =
            fine.into_iter().flat_map(|high| (0..256).map(move |low| u32::from(high) << 16 | low << 8));
        for prefix in coarse.chain(fine) {
            let v4 = Ipv4Addr::from(prefix | 5);
            let [a, b] = [(prefix >> 16) as u16, prefix as u16 | 5];
            check(v4.into());
            check(v4.to_ipv6_mapped().into());
            check(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a, b).into());
            check(Ipv6Addr::new(0x2002, a, b, 0, 0, 0, 0, 1).into());
            for second in [0, 0x1ff, 0x200, 0xdb8, 0xdb9] {
                check(Ipv6Addr::new(a, second, 9, 9, 9, 9, 9, 9).into());
            }
        }
    }
}
