//! IP and UDP headers (RFC 791, RFC 8200, RFC 768).

use super::Datagram;
use super::file::Record;
use super::link::{Link, ip_packet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const UDP: u8 = 17;
/// Extension headers of IPv6 that may stand before UDP, in the form of RFC 6564.
const EXTENSIONS: [u8; 3] = [0, 43, 60];
const FRAGMENT: u8 = 44;
/// Extension headers that are passed over.
const MOST_EXTENSIONS: usize = 8;

/// The reason for which there is no datagram in a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoDatagram {
    /// Another protocol, or a header that is cut off.
    Other,
    /// A fragment.
    Fragment,
    /// The link type is not known here.
    UnknownLink,
}

/// The UDP datagram in `record`.
pub(super) fn datagram(record: &Record) -> Result<Datagram, NoDatagram> {
    let packet = match ip_packet(record.link, &record.bytes) {
        Link::Ip(packet) => packet,
        Link::Other => return Err(NoDatagram::Other),
        Link::Unknown => return Err(NoDatagram::UnknownLink),
    };
    let (source, destination, transport) = match packet.first().map(|first| first >> 4) {
        Some(4) => ipv4(packet)?,
        Some(6) => ipv6(packet)?,
        _ => return Err(NoDatagram::Other),
    };
    let (source_port, destination_port, payload) = udp(transport).ok_or(NoDatagram::Other)?;
    Ok(Datagram {
        at: record.at,
        source: SocketAddr::new(source, source_port),
        destination: SocketAddr::new(destination, destination_port),
        payload: payload.to_vec(),
    })
}

type Addressed<'a> = (IpAddr, IpAddr, &'a [u8]);

fn ipv4(packet: &[u8]) -> Result<Addressed<'_>, NoDatagram> {
    let header = packet.first_chunk::<20>().ok_or(NoDatagram::Other)?;
    let [first, _, l0, l1, _, _, f0, f1, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = *header;
    if protocol != UDP {
        return Err(NoDatagram::Other);
    }
    // More fragments, or an offset.
    if u16::from_be_bytes([f0, f1]) & 0x3fff != 0 {
        return Err(NoDatagram::Fragment);
    }
    let start = usize::from(first & 0x0f) * 4;
    // A length of 0 is what a network card that segments itself leaves.
    let end = match usize::from(u16::from_be_bytes([l0, l1])) {
        0 => packet.len(),
        total => total.min(packet.len()),
    };
    let transport = packet.get(start.max(20)..end).ok_or(NoDatagram::Other)?;
    let (source, destination) = (Ipv4Addr::new(s0, s1, s2, s3), Ipv4Addr::new(d0, d1, d2, d3));
    Ok((source.into(), destination.into(), transport))
}

fn ipv6(packet: &[u8]) -> Result<Addressed<'_>, NoDatagram> {
    let (header, mut rest) = packet.split_first_chunk::<40>().ok_or(NoDatagram::Other)?;
    let address = |at: usize| -> Option<Ipv6Addr> {
        let bytes: [u8; 16] = header.get(at..at + 16)?.try_into().ok()?;
        Some(bytes.into())
    };
    let (source, destination) = address(8).zip(address(24)).ok_or(NoDatagram::Other)?;
    let mut next = header.get(6).copied().ok_or(NoDatagram::Other)?;
    for _ in 0..MOST_EXTENSIONS {
        match next {
            UDP => return Ok((source.into(), destination.into(), rest)),
            FRAGMENT => return Err(NoDatagram::Fragment),
            extension if EXTENSIONS.contains(&extension) => {
                let [following, length] = *rest.first_chunk().ok_or(NoDatagram::Other)?;
                rest = rest.get((usize::from(length) + 1) * 8..).ok_or(NoDatagram::Other)?;
                next = following;
            }
            _ => break,
        }
    }
    Err(NoDatagram::Other)
}

/// Both ports, and the payload as far as it is there.
fn udp(bytes: &[u8]) -> Option<(u16, u16, &[u8])> {
    let (header, payload) = bytes.split_first_chunk::<8>()?;
    let [s0, s1, d0, d1, l0, l1, _, _] = *header;
    let length = usize::from(u16::from_be_bytes([l0, l1]));
    // A length of 0 is a datagram that the system would have cut into segments later.
    let payload = match length.checked_sub(8) {
        Some(length) => payload.get(..length).unwrap_or(payload),
        None => payload,
    };
    Some((u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]), payload))
}
