//! The bytes around frames: of a packet, and of what carries its datagram. No other place states them.

/// Bytes that every AEAD of QUIC adds (RFC 9001 §5.3).
pub const TAG: usize = 16;
/// Bytes of the longest packet number (RFC 9000 §17.1).
const LONGEST_NUMBER: usize = 4;
/// Bytes of the Length field as this implementation writes it (RFC 9000 §17.2).
const LENGTH: usize = 2;
/// Bytes of a UDP header (RFC 768).
const UDP: usize = 8;
/// Bytes of an IPv4 header without options (RFC 791 §3.1).
const IPV4: usize = 20;
/// Bytes of an IPv6 header without extensions (RFC 8200 §3).
const IPV6: usize = 40;
/// Bytes of an IP packet that Ethernet carries.
const ETHERNET: usize = 1500;

/// Returns the most bytes that a packet with a short header to a connection ID of `destination` bytes has beside its
/// frames: first byte, connection ID, packet number and tag (RFC 9000 §17.3.1).
pub const fn short(destination: usize) -> usize {
    1 + destination + LONGEST_NUMBER + TAG
}

/// Returns the most bytes that a packet with a long header and connection IDs of `destination` and `source` bytes has beside
/// its frames, and beside the token of an Initial packet (RFC 9000 §17.2).
pub const fn long(destination: usize, source: usize) -> usize {
    let version_and_lengths = 4 + 1 + 1;
    // The length of the token, which is 0 or counted with the token but for this byte.
    let token = 1;
    1 + version_and_lengths + destination + source + token + LENGTH + LONGEST_NUMBER + TAG
}

/// Returns the bytes of the IP and UDP headers of a datagram over IPv4 or IPv6, as `remote` is.
pub const fn lower_headers(remote: std::net::IpAddr) -> usize {
    match remote {
        std::net::IpAddr::V4(_) => IPV4 + UDP,
        std::net::IpAddr::V6(_) => IPV6 + UDP,
    }
}

/// The largest UDP payload over Ethernet, whatever version of IP carries it.
pub const ETHERNET_PAYLOAD: usize = ETHERNET - IPV6 - UDP;
/// The largest UDP payload over IPv4 without fragments.
pub const LARGEST_PAYLOAD: usize = 65_535 - IPV4 - UDP;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::connection_id::ConnectionId;
    use crate::wire::header::{KeyPhase, LongHeader, LongKind, ShortHeader};
    use crate::wire::version::Version;

    #[test]
    fn no_header_is_longer_than_what_is_stated_and_the_longest_has_just_so_many_bytes() {
        for length in [0, 4, 8, 20] {
            let id = ConnectionId::new(&vec![7; length]).expect("at most 20 bytes");
            let mut bytes = Vec::new();
            ShortHeader { destination: id, key_phase: KeyPhase::Zero, spin: false }.put(&mut bytes, 9, 4);
            assert_eq!(bytes.len() + TAG, short(length));
            let header =
                |kind| LongHeader { kind, version: Version::V1, destination: id, source: id, token: &[] };
            let size = |kind| {
                let mut bytes = Vec::new();
                header(kind).put(&mut bytes, 9, 4);
                bytes.len() + TAG
            };
            assert_eq!(size(LongKind::Initial), long(length, length));
            assert!(size(LongKind::ZeroRtt) < long(length, length));
        }
    }

    #[test]
    fn ethernet_carries_1452_bytes_and_the_largest_datagram_has_65507() {
        assert_eq!((ETHERNET_PAYLOAD, LARGEST_PAYLOAD), (1452, 65_507));
        assert_eq!(lower_headers([192, 0, 2, 1].into()), 28);
        assert_eq!(lower_headers(std::net::Ipv6Addr::LOCALHOST.into()), 48);
    }
}
