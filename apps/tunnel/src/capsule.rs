//! Capsules of tunnels (RFC 9484 §4.7): messages that the ends send reliably, on the stream of the request.

use crate::prefix::Prefix;
use bytes::{Buf, Bytes};
use hvq::transport::wire::varint;
use hvq_h3::capsules::{self, DATAGRAM, RawCapsule};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// RFC 9484 §4.7.1.
const ADDRESS_ASSIGN: u64 = 0x01;
/// RFC 9484 §4.7.3.
const ROUTE_ADVERTISEMENT: u64 = 0x03;

/// No capsule of a type that is known is longer: the longest IP packet and what is in front of it.
const LONGEST: u64 = 66_000;
/// Addresses or routes in one capsule at most.
const MOST_ENTRIES: usize = 256;

/// A capsule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Capsule {
    /// A datagram that did not fit into a QUIC datagram.
    Datagram(Bytes),
    /// The receiver may send from these addresses and no others (RFC 9484 §4.7.1).
    AddressAssign(Vec<Prefix>),
    /// The sender takes packets to these (RFC 9484 §4.7.3).
    RouteAdvertisement(Vec<Prefix>),
}

/// The reason for which a stream of capsules cannot go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CapsuleError {
    /// One is longer than any can be.
    #[error("a capsule is too long")]
    TooLong,
    /// The content of one is not what its type says.
    #[error("a capsule is malformed")]
    Malformed,
}

impl Capsule {
    /// Appends it to `buffer`.
    pub fn put(&self, buffer: &mut Vec<u8>) {
        let (kind, value) = match self {
            Self::Datagram(payload) => (DATAGRAM, payload.clone()),
            Self::AddressAssign(addresses) => (ADDRESS_ASSIGN, assigned(addresses).into()),
            Self::RouteAdvertisement(routes) => (ROUTE_ADVERTISEMENT, advertised(routes).into()),
        };
        RawCapsule { kind, value }.put(buffer);
    }

    /// The capsule as bytes.
    pub fn bytes(&self) -> Bytes {
        let mut buffer = Vec::new();
        self.put(&mut buffer);
        buffer.into()
    }
}

fn assigned(addresses: &[Prefix]) -> Vec<u8> {
    let mut value = Vec::new();
    for prefix in addresses {
        // Request ID 0: nobody asked for it.
        varint::put(&mut value, 0);
        value.push(version(prefix.address()));
        put_address(&mut value, prefix.address());
        value.push(prefix.bits());
    }
    value
}

fn advertised(routes: &[Prefix]) -> Vec<u8> {
    let mut ordered = routes.to_vec();
    // RFC 9484 §4.7.3: by version, then by address, and no two overlap.
    ordered.sort_by_key(|route| (route.address(), route.last()));
    let mut value = Vec::new();
    let mut last: Option<IpAddr> = None;
    for route in ordered {
        if last.is_some_and(|last| last >= route.address() && last.is_ipv4() == route.address().is_ipv4()) {
            continue;
        }
        value.push(version(route.address()));
        put_address(&mut value, route.address());
        put_address(&mut value, route.last());
        // All protocols.
        value.push(0);
        last = Some(route.last());
    }
    value
}

const fn version(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 4,
        IpAddr::V6(_) => 6,
    }
}

fn put_address(value: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(address) => value.extend(address.octets()),
        IpAddr::V6(address) => value.extend(address.octets()),
    }
}

/// Takes capsules out of a stream that comes in pieces. Its memory is bounded, whatever lengths say.
#[derive(Debug)]
pub struct Capsules(capsules::Capsules);

impl Default for Capsules {
    fn default() -> Self {
        Self(capsules::Capsules::of(&[DATAGRAM, ADDRESS_ASSIGN, ROUTE_ADVERTISEMENT], LONGEST))
    }
}

impl Capsules {
    /// Adds what arrived.
    pub fn push(&mut self, piece: &[u8]) {
        self.0.push(piece);
    }

    /// The next whole capsule of a type that is known; `None` until more arrives. Others are passed over without being
    /// kept (RFC 9297 §3.2).
    ///
    /// # Errors
    /// The stream makes no sense.
    pub fn next_capsule(&mut self) -> Result<Option<Capsule>, CapsuleError> {
        match self.0.next_capsule() {
            None => Ok(None),
            Some(Err(_)) => Err(CapsuleError::TooLong),
            Some(Ok(RawCapsule { kind, value })) => {
                read(kind, value).map(Some).ok_or(CapsuleError::Malformed)
            }
        }
    }
}

fn read(kind: u64, mut value: Bytes) -> Option<Capsule> {
    match kind {
        DATAGRAM => Some(Capsule::Datagram(value)),
        ADDRESS_ASSIGN => {
            let mut addresses = Vec::new();
            while !value.is_empty() && addresses.len() < MOST_ENTRIES {
                let (_request, size) = varint::get(&value)?;
                value.advance(size);
                let version = take(&mut value)?;
                let address = address(&mut value, version)?;
                addresses.push(Prefix::new(address, take(&mut value)?)?);
            }
            value.is_empty().then_some(Capsule::AddressAssign(addresses))
        }
        _ => {
            let mut routes = Vec::new();
            while !value.is_empty() && routes.len() < MOST_ENTRIES {
                let version = take(&mut value)?;
                let (start, end) = (address(&mut value, version)?, address(&mut value, version)?);
                let _protocol = take(&mut value)?;
                // RFC 9484 §4.7.3: a range that ends before it starts is an error.
                routes.extend((start <= end).then(|| cover(start, end))?);
            }
            value.is_empty().then_some(Capsule::RouteAdvertisement(routes))
        }
    }
}

fn take(value: &mut Bytes) -> Option<u8> {
    (!value.is_empty()).then(|| value.get_u8())
}

fn address(value: &mut Bytes, version: u8) -> Option<IpAddr> {
    let size = match version {
        4 => 4,
        6 => 16,
        _ => return None,
    };
    if value.len() < size {
        return None;
    }
    Some(match version {
        4 => Ipv4Addr::from_bits(value.get_u32()).into(),
        _ => Ipv6Addr::from_bits(value.get_u128()).into(),
    })
}

/// The network from `start` to `end`, if they are one; else its first address only, so that nothing is taken that was not
/// offered.
fn cover(start: IpAddr, end: IpAddr) -> Option<Prefix> {
    let widest = if start.is_ipv4() { 32 } else { 128 };
    let network = (0..=widest)
        .filter_map(|bits| Prefix::new(start, bits))
        .find(|prefix| prefix.address() == start && prefix.last() == end);
    Some(network.unwrap_or_else(|| Prefix::only(start)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefixes(texts: &[&str]) -> Vec<Prefix> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn capsules_survive_being_cut_into_pieces() {
        let sent = [
            Capsule::AddressAssign(prefixes(&["100.64.0.2/32", "fd68::2/128"])),
            Capsule::Datagram(Bytes::from_static(b"packet")),
            Capsule::RouteAdvertisement(prefixes(&["0.0.0.0/0", "::/0"])),
        ];
        let mut stream = Vec::new();
        sent.iter().for_each(|capsule| capsule.put(&mut stream));
        for size in 1..stream.len() {
            let mut capsules = Capsules::default();
            let mut received = Vec::new();
            for piece in stream.chunks(size) {
                capsules.push(piece);
                while let Some(capsule) = capsules.next_capsule().unwrap() {
                    received.push(capsule);
                }
            }
            assert_eq!(received, sent);
        }
    }

    #[test]
    fn an_unknown_capsule_of_a_terabyte_is_passed_over_without_being_kept() {
        // Attack H23.
        let mut header = Vec::new();
        varint::put(&mut header, 0x1234);
        varint::put(&mut header, 1 << 40);
        let mut capsules = Capsules::default();
        capsules.push(&header);
        for _ in 0..1_000 {
            capsules.push(&[7; 10_000]);
            assert_eq!(capsules.next_capsule(), Ok(None));
            assert_eq!(capsules.0.buffered(), 0);
        }
        assert!(!capsules.0.is_complete());
    }

    #[test]
    fn a_known_capsule_of_a_terabyte_is_an_error_at_once() {
        let mut header = Vec::new();
        varint::put(&mut header, DATAGRAM);
        varint::put(&mut header, 1 << 40);
        let mut capsules = Capsules::default();
        capsules.push(&header);
        assert_eq!(capsules.next_capsule(), Err(CapsuleError::TooLong));
    }

    #[test]
    fn addresses_and_ranges_that_make_no_sense_are_errors() {
        for value in [&[0, 5, 1][..], &[0, 4, 10, 0, 0, 1, 33], &[0, 4, 10, 0, 0]] {
            let mut bytes = vec![ADDRESS_ASSIGN as u8, value.len() as u8];
            bytes.extend(value);
            let mut capsules = Capsules::default();
            capsules.push(&bytes);
            assert_eq!(capsules.next_capsule(), Err(CapsuleError::Malformed), "{value:?}");
        }
        let backwards = [3, 10, 4, 10, 0, 0, 9, 10, 0, 0, 1, 0];
        let mut capsules = Capsules::default();
        capsules.push(&backwards);
        assert_eq!(capsules.next_capsule(), Err(CapsuleError::Malformed));
    }

    #[test]
    fn routes_are_sorted_and_do_not_overlap() {
        let sent = Capsule::RouteAdvertisement(prefixes(&["10.1.0.0/16", "::/0", "10.0.0.0/8"]));
        let mut capsules = Capsules::default();
        capsules.push(&sent.bytes());
        let wanted = Capsule::RouteAdvertisement(prefixes(&["10.0.0.0/8", "::/0"]));
        assert_eq!(capsules.next_capsule(), Ok(Some(wanted)));
    }

    proptest! {
        #[test]
        fn no_bytes_upset_it(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..50), 0..20)) {
            let mut capsules = Capsules::default();
            for piece in pieces {
                capsules.push(&piece);
                while let Ok(Some(_)) = capsules.next_capsule() {}
                prop_assert!(capsules.0.buffered() <= 2_000);
            }
        }
    }
}
