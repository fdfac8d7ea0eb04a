//! Packets that fit in no datagram: fragments of them, or the answer that a router gives (RFC 1191, RFC 8201).

use hvq_emulation::tun::packet::{Header, Transport};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// The smallest MTU of a link that carries IPv6 (RFC 8200 §5).
pub(crate) const IPV6_MINIMUM: usize = 1280;
/// An IPv4 header without options, in bytes (RFC 791 §3.1).
const IPV4_HEADER: usize = 20;
/// An IPv6 header, in bytes (RFC 8200 §3).
const IPV6_HEADER: usize = 40;
/// The header of an ICMP or ICMPv6 message of these types, in bytes (RFC 1191 §4, RFC 4443 §3.2).
const ICMP_HEADER: usize = 8;
/// An ICMP message quotes no more than keeps its packet within this size (RFC 1812 §4.3.2.3).
const IPV4_ANSWER: usize = 576;
/// The flag of IPv4 that forbids fragments, in the seventh byte.
const DO_NOT_FRAGMENT: u8 = 0x40;
/// The flag of IPv4 that says that more fragments follow, in the seventh byte.
const MORE_FRAGMENTS: u8 = 0x20;
/// The hops that an answer may take.
const HOPS: u8 = 64;
/// Answers that may be sent at once, and in each second after that (RFC 4443 §2.4 f, RFC 1812 §4.3.2.8).
const ANSWERS_A_SECOND: u32 = 100;

/// Bytes of an IP packet that a datagram holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// The bytes now.
    pub(crate) now: usize,
    /// The bytes once the sizes that are being tried turn out to be carried.
    pub(crate) later: usize,
}

/// The treatment of a packet that fits in no datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Remedy {
    /// It must be carried, or may fit soon: it goes on the stream, for those who read capsules.
    Capsule,
    /// These go in its place.
    Fragments(Vec<Vec<u8>>),
    /// This packet goes back to the sender, which is told the largest size.
    Answer(Vec<u8>),
    /// Nothing can be said.
    Drop,
}

/// Judges `packet`, of which datagrams hold no more than `room.now` bytes.
pub(crate) fn judge(packet: &[u8], header: Option<&Header>, room: Room) -> Remedy {
    let Some(header) = header else { return Remedy::Drop };
    let six = header.destination.is_ipv6();
    // RFC 8200 §5: a link that cannot carry 1280 bytes in one piece has to take them apart below IPv6.
    if packet.len() <= room.later || six && packet.len() <= IPV6_MINIMUM {
        return Remedy::Capsule;
    }
    if !six && packet.get(6).is_some_and(|flags| flags & DO_NOT_FRAGMENT == 0) {
        return fragments(packet, room.now).map_or(Remedy::Drop, Remedy::Fragments);
    }
    let largest = if six { room.later.max(IPV6_MINIMUM) } else { room.later };
    answer(packet, header, largest).map_or(Remedy::Drop, Remedy::Answer)
}

/// The fragments of an IPv4 packet, none larger than `most` bytes (RFC 791 §2.3); `None` if it has options, of which some stand in
/// the first only, or if fragments that small carry nothing.
fn fragments(packet: &[u8], most: usize) -> Option<Vec<Vec<u8>>> {
    let head: &[u8; IPV4_HEADER] = packet.first_chunk()?;
    let total = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let data = packet.get(IPV4_HEADER..total).filter(|_| head[0] & 15 == 5)?;
    let piece = most.checked_sub(IPV4_HEADER)? & !7;
    if piece == 0 {
        return None;
    }
    let (more, before) = (head[6] & MORE_FRAGMENTS, u16::from_be_bytes([head[6] & 0x1f, head[7]]));
    let count = data.len().div_ceil(piece);
    let made = data.chunks(piece).enumerate().map(|(index, data)| {
        let offset = usize::from(before) + index * piece / 8;
        let [high, low] = u16::try_from(offset).ok()?.to_be_bytes();
        let follows = if index + 1 < count { MORE_FRAGMENTS } else { more };
        let mut head = *head;
        [head[2], head[3]] = u16::try_from(IPV4_HEADER + data.len()).ok()?.to_be_bytes();
        (head[6], head[7]) = (follows | high, low);
        Some([&summed(head)[..], data].concat())
    });
    made.collect()
}

/// `head` with its checksum.
fn summed(mut head: [u8; IPV4_HEADER]) -> [u8; IPV4_HEADER] {
    [head[10], head[11]] = [0, 0];
    [head[10], head[11]] = checksum(&[&head]);
    head
}

/// The message that `packet` is too big for a link that carries `largest` bytes, as if its destination sent it: that is the one
/// address of which the sender's system believes that it comes through the tunnel. `None` where nobody may be answered
/// (RFC 1812 §4.3.2.7, RFC 4443 §2.4 e).
fn answer(packet: &[u8], header: &Header, largest: usize) -> Option<Vec<u8>> {
    let nobody =
        |address: IpAddr| address.is_unspecified() || address.is_multicast() || address.is_loopback();
    let is_first = !matches!(header.transport, Transport::Fragment(_));
    if nobody(header.source) || nobody(header.destination) || !is_first || is_error(packet, header) {
        return None;
    }
    match (header.destination, header.source) {
        (IpAddr::V4(from), IpAddr::V4(to)) => answer_v4(packet, (from, to), largest),
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let quoted = packet.get(..packet.len().min(IPV6_MINIMUM - IPV6_HEADER - ICMP_HEADER))?;
            let length = u32::try_from(ICMP_HEADER + quoted.len()).ok()?;
            let mut message =
                [&[2, 0, 0, 0][..], &u32::try_from(largest).ok()?.to_be_bytes(), quoted].concat();
            // RFC 8200 §8.1: the pseudo-header.
            let pseudo = [&from.octets()[..], &to.octets(), &length.to_be_bytes(), &[0, 0, 0, 58]].concat();
            let sum = checksum(&[&pseudo, &message]);
            message.get_mut(2..4)?.copy_from_slice(&sum);
            let [high, low] = u16::try_from(length).ok()?.to_be_bytes();
            let head = [0x60, 0, 0, 0, high, low, 58, HOPS];
            Some([&head[..], &from.octets(), &to.octets(), &message].concat())
        }
        _ => None,
    }
}

fn answer_v4(packet: &[u8], (from, to): (Ipv4Addr, Ipv4Addr), largest: usize) -> Option<Vec<u8>> {
    if to.is_broadcast() || from.is_broadcast() {
        return None;
    }
    let quoted = packet.get(..packet.len().min(IPV4_ANSWER - IPV4_HEADER - ICMP_HEADER))?;
    let [high, low] = u16::try_from(largest).unwrap_or(u16::MAX).to_be_bytes();
    let mut message = [&[3, 4, 0, 0, 0, 0, high, low][..], quoted].concat();
    let sum = checksum(&[&message]);
    message.get_mut(2..4)?.copy_from_slice(&sum);
    let mut head = [0; IPV4_HEADER];
    (head[0], head[8], head[9]) = (0x45, HOPS, 1);
    [head[2], head[3]] = u16::try_from(IPV4_HEADER + message.len()).ok()?.to_be_bytes();
    head[12..16].copy_from_slice(&from.octets());
    head[16..20].copy_from_slice(&to.octets());
    Some([&summed(head)[..], &message].concat())
}

/// Returns true if `packet` says that another could not be delivered.
fn is_error(packet: &[u8], header: &Header) -> bool {
    if header.transport != Transport::Icmp {
        return false;
    }
    let at = packet.len().saturating_sub(header.payload);
    packet.get(at).is_some_and(|kind| match header.source {
        IpAddr::V4(_) => matches!(kind, 3 | 4 | 5 | 11 | 12),
        IpAddr::V6(_) => *kind < 128,
    })
}

/// The checksum of the Internet (RFC 1071) over `parts`, of which all but the last have an even length.
fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |pair: &[u8]| {
        u64::from(pair.first().copied().unwrap_or(0)) << 8 | u64::from(pair.get(1).copied().unwrap_or(0))
    };
    let mut sum: u64 = words.map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

/// Bounds the rate of answers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answers {
    second: u64,
    sent: u32,
}

impl Answers {
    /// Returns true if one more may be sent at `now`.
    pub(crate) fn permit(&mut self, now: Duration) -> bool {
        if self.second != now.as_secs() {
            *self = Self { second: now.as_secs(), sent: 0 };
        }
        self.sent += 1;
        self.sent <= ANSWERS_A_SECOND
    }
}

#[cfg(test)]
mod tests;
