//! The addresses that belong to everybody's internet.

use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses at which clouds tell their machines who they are, with the keys to show for it: AWS, Google, Azure and
/// others; AWS over IPv6; Alibaba; Azure's agent.
const CLOUDS: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
];

/// Networks of one's own (RFC 1918, RFC 4193), shared by customers of a provider (RFC 6598), for benchmarks (RFC 2544) and
/// documentation (RFC 5737, RFC 3849): address and bits.
const PRIVATE: [(IpAddr, u8); 10] = [
    (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8),
    (IpAddr::V4(Ipv4Addr::new(172, 16, 0, 0)), 12),
    (IpAddr::V4(Ipv4Addr::new(192, 168, 0, 0)), 16),
    (IpAddr::V4(Ipv4Addr::new(100, 64, 0, 0)), 10),
    (IpAddr::V4(Ipv4Addr::new(198, 18, 0, 0)), 15),
    (IpAddr::V4(Ipv4Addr::new(192, 0, 2, 0)), 24),
    (IpAddr::V4(Ipv4Addr::new(198, 51, 100, 0)), 24),
    (IpAddr::V4(Ipv4Addr::new(203, 0, 113, 0)), 24),
    (IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), 7),
    (IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0)), 32),
];

/// Networks that are not of the public internet: address and bits. Those of IPv4, in whatever way they are written, and the
/// rest of [`BORDERS_V6`] are where [`is_public`] changes its answer.
const BORDERS_V4: [(Ipv4Addr, u8); 13] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// Networks of IPv6 inside which other addresses are public than around them.
const BORDERS_V6: [(Ipv6Addr, u8); 4] = [
    (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 16),
];

/// Networks of IPv6 whose next bits are an address of IPv4: mapped, translated, 6to4.
const EMBEDDING: [(Ipv6Addr, u8); 3] = [
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
];

/// Returns true if clouds tell their machines secrets at `address`.
pub(super) fn is_of_a_cloud(address: IpAddr) -> bool {
    CLOUDS.contains(&address)
}

/// Returns true if all of `network` is of a private one, so that whoever names it means that.
pub(super) fn is_private(network: &IpNet) -> bool {
    let private = PRIVATE.iter().filter_map(|(address, bits)| IpNet::new(*address, *bits).ok());
    private.into_iter().any(|private| private.contains(network))
}

/// Returns the networks at whose borders [`is_public`] and membership of a private network change: all addresses of a network
/// that holds none of them are alike.
pub(super) fn borders() -> Vec<IpNet> {
    let embedded = EMBEDDING.iter().flat_map(|(prefix, bits)| {
        let all = std::iter::once((*prefix, *bits));
        all.chain(BORDERS_V4.iter().map(move |(address, more)| {
            let inner = u128::from(u32::from(*address)) << (96 - bits);
            (Ipv6Addr::from(u128::from(*prefix) | inner), bits + more)
        }))
    });
    let v4 = BORDERS_V4.iter().map(|(address, bits)| (IpAddr::V4(*address), *bits));
    let v6 = BORDERS_V6.iter().copied().chain(embedded).map(|(address, bits)| (IpAddr::V6(address), bits));
    let all = v4.chain(v6).chain(PRIVATE);
    all.map(|(address, bits)| IpNet::new(address, bits).expect("no prefix is longer than its address"))
        .collect()
}

/// Returns true if `address` is one of the public internet: not of this host, of a private, shared or local network,
/// for documentation, benchmarks or multicast, reserved (RFC 6890 and its registries), or a way of writing one of
/// those.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || a == 0
        || a >= 240
        // Shared by customers of a provider (RFC 6598), protocol assignments (RFC 6890), benchmarks (RFC 2544).
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (b == 18 || b == 19));
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let inner = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // IPv4 in IPv6: mapped (RFC 4291 §2.5.5.2), translated (RFC 6052 §2.1), 6to4 (RFC 3056).
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => inner(high, low),
        [0x2002, high, low, ..] => inner(high, low),
        // Documentation (RFC 3849, RFC 9637), Teredo and what else is below 2001::/23 (RFC 2928).
        [0x2001, 0xdb8, ..] | [0x3fff, ..] => false,
        [0x2001, second, ..] if second < 0x200 => false,
        // Only global unicast is assigned (RFC 4291 §2.4).
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_host_and_of_closed_networks_are_not_public_however_they_are_written() {
        for address in [
            "0.0.0.0",
            "127.0.0.1",
            "127.9.9.9",
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "::127.0.0.1",
            "3fff::1",
            "fec0::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450::1",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
            "::ffff:8.8.8.8",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
