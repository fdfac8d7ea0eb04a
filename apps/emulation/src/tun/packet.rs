//! IP packets: which flow one belongs to, and what it is for.

mod checksum;
#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::steer::Flow;
use checksum::adjust;

/// Protocol numbers (IANA).
mod protocol {
    pub(super) const ICMP: u8 = 1;
    pub(super) const TCP: u8 = 6;
    pub(super) const UDP: u8 = 17;
    pub(super) const ICMPV6: u8 = 58;
}

/// Extension headers before it is given up to look for the payload of an IPv6 packet.
const MOST_EXTENSIONS: usize = 8;

/// The flags of a TCP segment that matter to a steerer (RFC 9293 §3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct TcpFlags(u8);

impl TcpFlags {
    const LETTERS: [(u8, char); 6] = [(2, 'S'), (16, 'A'), (8, 'P'), (1, 'F'), (4, 'R'), (32, 'U')];

    /// Returns true if it opens the connection: SYN.
    pub const fn opens(self) -> bool {
        self.0 & 2 != 0
    }

    /// Returns true if it acknowledges something: ACK.
    pub const fn acknowledges(self) -> bool {
        self.0 & 16 != 0
    }

    /// Returns true if it ends the connection: FIN or RST.
    pub const fn ends(self) -> bool {
        self.0 & 5 != 0
    }
}

impl fmt::Display for TcpFlags {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (_, letter) in Self::LETTERS.iter().filter(|(bit, _)| self.0 & bit != 0) {
            write!(formatter, "{letter}")?;
        }
        Ok(())
    }
}

/// The transport protocol that an IP packet carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// A TCP segment.
    Tcp {
        /// Source and destination.
        ports: (u16, u16),
        /// Its flags.
        flags: TcpFlags,
    },
    /// A UDP datagram.
    Udp {
        /// Source and destination.
        ports: (u16, u16),
    },
    /// ICMP or ICMPv6.
    Icmp,
    /// A fragment: its ports may be in another.
    Fragment(u8),
    /// Another protocol, by its number.
    Other(u8),
}

impl Transport {
    /// Its name for people.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Tcp { .. } => "tcp",
            Self::Udp { .. } => "udp",
            Self::Icmp => "icmp",
            Self::Fragment(_) => "fragment",
            Self::Other(_) => "other",
        }
    }

    /// Source and destination port, if there are any.
    pub const fn ports(&self) -> Option<(u16, u16)> {
        match self {
            Self::Tcp { ports, .. } | Self::Udp { ports } => Some(*ports),
            _ => None,
        }
    }

    fn number(&self) -> u8 {
        match self {
            Self::Tcp { .. } => protocol::TCP,
            Self::Udp { .. } => protocol::UDP,
            Self::Icmp => protocol::ICMP,
            Self::Fragment(number) | Self::Other(number) => *number,
        }
    }
}

/// The header of an IP packet, as far as steering wants it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The sender.
    pub source: IpAddr,
    /// The receiver.
    pub destination: IpAddr,
    /// The transport protocol that it carries.
    pub transport: Transport,
    /// Bytes of application data: what follows the TCP or UDP header, or else the IP header.
    pub payload: usize,
}

impl Header {
    /// Reads the header of `packet` (RFC 791, RFC 8200); `None` if it is no whole IP packet.
    pub fn read(packet: &[u8]) -> Option<Self> {
        match packet.first()? >> 4 {
            4 => Self::read_v4(packet),
            6 => Self::read_v6(packet),
            _ => None,
        }
    }

    fn read_v4(packet: &[u8]) -> Option<Self> {
        let fixed: &[u8; 20] = packet.first_chunk()?;
        let length = usize::from(fixed[0] & 15) * 4;
        let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        if length < 20 || total < length || total > packet.len() {
            return None;
        }
        // RFC 791 §3.1: more fragments, or an offset.
        let fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0;
        let payload = packet.get(length..total)?;
        let (transport, payload) = match fragment {
            true => (Transport::Fragment(fixed[9]), payload.len()),
            false => transport(fixed[9], payload),
        };
        let address = |at: usize| Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]);
        Some(Self { source: address(12).into(), destination: address(16).into(), transport, payload })
    }

    fn read_v6(packet: &[u8]) -> Option<Self> {
        let fixed: &[u8; 40] = packet.first_chunk()?;
        let total = 40 + usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
        let mut rest = packet.get(40..total)?;
        let address = |at: usize| -> Option<Ipv6Addr> {
            fixed.get(at..at + 16)?.first_chunk::<16>().map(|bytes| Ipv6Addr::from(*bytes))
        };
        let (source, destination) = (address(8)?.into(), address(24)?.into());
        let mut next = fixed[6];
        for _ in 0..MOST_EXTENSIONS {
            match next {
                // RFC 8200 §4.3, §4.4, §4.6: hop-by-hop options, routing, destination options.
                0 | 43 | 60 => {
                    let length = 8 + 8 * usize::from(*rest.get(1)?);
                    next = *rest.first()?;
                    rest = rest.get(length..)?;
                }
                // §4.5: a fragment.
                44 => {
                    let transport = Transport::Fragment(*rest.first()?);
                    let payload = rest.len().saturating_sub(8);
                    return Some(Self { source, destination, transport, payload });
                }
                _ => {
                    let (transport, payload) = transport(next, rest);
                    return Some(Self { source, destination, transport, payload });
                }
            }
        }
        None
    }

    /// Returns true if it belongs to a name lookup.
    pub fn is_name_lookup(&self) -> bool {
        matches!(self.transport.ports(), Some((53, _) | (_, 53)))
    }
}

/// Returns the transport header of `payload` of protocol `number`, and its bytes of application data.
fn transport(number: u8, payload: &[u8]) -> (Transport, usize) {
    let ports = || payload.first_chunk().map(|b: &[u8; 4]| (port(b[0], b[1]), port(b[2], b[3])));
    let found = match (number, ports()) {
        (protocol::TCP, Some(ports)) => payload.first_chunk().map(|segment: &[u8; 20]| {
            let header = usize::from(segment[12] >> 4) * 4;
            (Transport::Tcp { ports, flags: TcpFlags(segment[13]) }, payload.len().saturating_sub(header))
        }),
        (protocol::UDP, Some(ports)) => Some((Transport::Udp { ports }, payload.len().saturating_sub(8))),
        (protocol::ICMP | protocol::ICMPV6, _) => Some((Transport::Icmp, payload.len())),
        _ => None,
    };
    found.unwrap_or((Transport::Other(number), payload.len()))
}

const fn port(high: u8, low: u8) -> u16 {
    u16::from_be_bytes([high, low])
}

/// Tells flows apart by addresses, ports and protocol, with a key that senders do not know. There are so many flows at
/// most as [`Flows::MOST`]: more share numbers, which costs order between them and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    key: RandomState,
}

impl Flows {
    /// The number of flows that are told apart.
    pub const MOST: u64 = 1 << 14;

    /// The flow of a packet, of either direction on its own. All that is no IP packet is one flow.
    pub fn of(&self, header: Option<&Header>) -> Flow {
        let tuple = header.map(|header| {
            (header.source, header.destination, header.transport.number(), header.transport.ports())
        });
        Flow(self.key.hash_one(tuple) % Self::MOST)
    }
}

/// Sets the mark of congestion (RFC 3168 §5) on a packet that is ECN-capable; leaves others alone.
pub fn mark_congestion(packet: &mut [u8]) {
    match packet.first().map(|first| first >> 4) {
        Some(4) => {
            let Some(fixed) = packet.first_chunk_mut::<20>() else { return };
            if fixed[1] & 3 == 0 {
                return;
            }
            let old = u16::from_be_bytes([fixed[0], fixed[1]]);
            fixed[1] |= 3;
            let new = u16::from_be_bytes([fixed[0], fixed[1]]);
            let sum = adjust(u16::from_be_bytes([fixed[10], fixed[11]]), old, new);
            [fixed[10], fixed[11]] = sum.to_be_bytes();
        }
        // RFC 8200 §7: the traffic class is across two bytes, ECN in the upper half of the second.
        Some(6) => {
            let Some(fixed) = packet.first_chunk_mut::<40>() else { return };
            if fixed[1] & 0x30 != 0 {
                fixed[1] |= 0x30;
            }
        }
        _ => {}
    }
}
