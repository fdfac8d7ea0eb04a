//! Offloads of TUN devices: packets of a flow that cross the device in one piece (TSO, USO, GRO), and checksums that nobody has to compute.

use std::io;
use std::num::NonZeroU16;

use bytes::{Bytes, BytesMut};
use tun_rs::{
    GROTable, VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP_L4,
    VIRTIO_NET_HDR_LEN, VirtioNetHdr, checksum, gso_split,
};

/// The size of a buffer that every read fits into: the longest packet, and the header in front of it.
pub const LONGEST: usize = VIRTIO_NET_HDR_LEN + 65_535;
/// Flags of the header (virtio 1.2 §5.1.6): the checksum is that of the pseudo-header, and the rest is to be added …
const NEEDS_CSUM: u8 = 1;
/// … or the kernel has compared it with the packet.
const DATA_VALID: u8 = 2;
/// The type of a packet that is not to be divided.
const GSO_NONE: u8 = 0;
/// A bit of the type: the segment has marks of congestion.
const GSO_ECN: u8 = 0x80;
/// The checksum's place in the header of TCP (RFC 9293 §3.1).
const TCP_CHECKSUM: u16 = 16;
/// The protocol number of TCP.
const TCP: u8 = 6;

/// A packet of the namespace, or several of one flow in one piece: their headers once, then all that they carry.
#[derive(Debug)]
pub struct Segment<'a> {
    header: VirtioNetHdr,
    packet: &'a mut [u8],
}

impl<'a> Segment<'a> {
    /// A packet as it is, of a device without offloads.
    pub(super) fn plain(packet: &'a mut [u8]) -> Self {
        Self { header: VirtioNetHdr::default(), packet }
    }

    /// Reads what came from a device with offloads.
    pub(super) fn read(bytes: &'a mut [u8]) -> io::Result<Self> {
        let header = VirtioNetHdr::decode(bytes)?;
        Ok(Self { header, packet: bytes.get_mut(VIRTIO_NET_HDR_LEN..).unwrap_or_default() })
    }

    /// The piece as the kernel left it: an IP packet, but for its checksum and for its length, which may be far beyond the MTU.
    pub fn bytes(&self) -> &[u8] {
        self.packet
    }

    /// Returns true if it is one of TCP whose bytes are those of its sender: they were made on this machine, the kernel has compared
    /// them with their checksum, or they agree with it.
    pub fn is_sound_tcp(&self) -> bool {
        let is_known = self.header.flags & (NEEDS_CSUM | DATA_VALID) != 0 || self.header.gso_type != GSO_NONE;
        Tcp::of(self.packet).is_some_and(|tcp| is_known || tcp.sum(self.packet) == Some(u16::MAX))
    }

    /// The packets that it consists of, with checksums. `pieces` holds those of a long one.
    ///
    /// # Errors
    /// It makes no sense. The kernel leaves nothing of that kind.
    pub fn split(self, pieces: &'a mut Pieces) -> io::Result<impl Iterator<Item = &'a [u8]>> {
        let Self { mut header, packet } = self;
        let is_long = header.gso_type != GSO_NONE;
        let mut count = 0;
        if is_long {
            header.hdr_len = headers(header, packet)?;
            count = pieces.split(header, packet)?;
        } else if header.flags & NEEDS_CSUM != 0 {
            finish(header, packet).ok_or(io::ErrorKind::InvalidData)?;
        }
        let whole = (!is_long).then_some(&*packet);
        let divided = pieces.buffers.iter().zip(&pieces.sizes).take(count);
        Ok(whole.into_iter().chain(divided.map(|(buffer, size)| buffer.get(..*size).unwrap_or_default())))
    }
}

/// Completes the checksum of a packet.
fn finish(header: VirtioNetHdr, packet: &mut [u8]) -> Option<()> {
    let start = usize::from(header.csum_start);
    let at = start + usize::from(header.csum_offset);
    let sum = match !checksum(packet.get(start..)?, 0) {
        // RFC 768: a datagram without a checksum has 0 in its place. To TCP both are the same.
        0 => u16::MAX,
        sum => sum,
    };
    packet.get_mut(at..at + 2)?.copy_from_slice(&sum.to_be_bytes());
    Some(())
}

/// The size of the headers of a long `packet`. What the kernel says of it is no more than a hint.
fn headers(header: VirtioNetHdr, packet: &[u8]) -> io::Result<u16> {
    let transport = match header.gso_type & !GSO_ECN {
        VIRTIO_NET_HDR_GSO_UDP_L4 => 8,
        _ => packet.get(usize::from(header.csum_start) + 12).map_or(0, |offset| u16::from(offset >> 4) * 4),
    };
    header.csum_start.checked_add(transport).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Room for the packets of a long segment.
#[derive(Debug, Default)]
pub struct Pieces {
    buffers: Vec<Vec<u8>>,
    sizes: Vec<usize>,
}

impl Pieces {
    fn split(&mut self, header: VirtioNetHdr, packet: &mut [u8]) -> io::Result<usize> {
        let around = usize::from(header.hdr_len);
        let piece = usize::from(header.gso_size.max(1));
        let count = packet.len().saturating_sub(around).div_ceil(piece);
        let size = around + piece.min(packet.len());
        if self.buffers.len() < count {
            self.buffers.resize(count, Vec::new());
            self.sizes.resize(count, 0);
        }
        self.buffers
            .iter_mut()
            .take(count)
            .filter(|buffer| buffer.len() < size)
            .for_each(|buffer| buffer.resize(size, 0));
        let is_v6 = packet.first().is_some_and(|first| first >> 4 == 6);
        gso_split(packet, header, &mut self.buffers, &mut self.sizes, 0, is_v6)
    }
}

/// Room to bring packets of a flow together that follow each other, so that one call hands many of them to the kernel.
#[derive(Default)]
pub struct Coalescer {
    pub(super) table: GROTable,
    pub(super) packets: Vec<BytesMut>,
}

impl std::fmt::Debug for Coalescer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Coalescer").field("room", &self.packets.len()).finish_non_exhaustive()
    }
}

impl Coalescer {
    /// The bytes in front of a packet.
    pub(super) const AHEAD: usize = VIRTIO_NET_HDR_LEN;

    /// Takes packets; returns how many.
    pub(super) fn fill(&mut self, packets: &[Bytes]) -> usize {
        if self.packets.len() < packets.len() {
            self.packets.resize(packets.len(), BytesMut::new());
        }
        for (buffer, packet) in self.packets.iter_mut().zip(packets) {
            buffer.clear();
            buffer.extend_from_slice(&[0; VIRTIO_NET_HDR_LEN]);
            buffer.extend_from_slice(packet);
        }
        packets.len()
    }
}

/// The header in front of a packet that is as it is.
pub(super) fn plain() -> [u8; VIRTIO_NET_HDR_LEN] {
    encoded(VirtioNetHdr::default())
}

/// Prepares a TCP packet without a checksum for a device with offloads, to be divided into pieces of `piece` bytes if that is
/// given; returns the header in front of it, or `None` if the packet is none of TCP.
pub(super) fn unfinished(packet: &mut [u8], piece: Option<NonZeroU16>) -> Option<[u8; VIRTIO_NET_HDR_LEN]> {
    let tcp = Tcp::of(packet)?;
    let at = tcp.start + usize::from(TCP_CHECKSUM);
    // RFC 9293 §3.1: that of the pseudo-header, to which the kernel adds the rest.
    let sum = tcp.pseudo(packet)?;
    packet.get_mut(at..at + 2)?.copy_from_slice(&sum.to_be_bytes());
    let headers = tcp.start + usize::from(packet.get(tcp.start + 12)? >> 4) * 4;
    let divided = piece.filter(|piece| packet.len() > headers + usize::from(piece.get()));
    Some(encoded(VirtioNetHdr {
        flags: NEEDS_CSUM,
        gso_type: divided.map_or(GSO_NONE, |_| tcp.kind),
        hdr_len: u16::try_from(headers).ok()?,
        gso_size: divided.map_or(0, NonZeroU16::get),
        csum_start: u16::try_from(tcp.start).ok()?,
        csum_offset: TCP_CHECKSUM,
    }))
}

/// The place of TCP in an IP packet without extension headers.
#[derive(Clone, Copy, Debug)]
struct Tcp {
    start: usize,
    /// The place of both addresses.
    addresses: (usize, usize),
    /// The type of a packet that is to be divided.
    kind: u8,
}

impl Tcp {
    fn of(packet: &[u8]) -> Option<Self> {
        let first = packet.first()?;
        let (tcp, protocol) = match first >> 4 {
            4 => {
                let start = usize::from(first & 15) * 4;
                (Self { start, addresses: (12, 20), kind: VIRTIO_NET_HDR_GSO_TCPV4 }, 9)
            }
            6 => (Self { start: 40, addresses: (8, 40), kind: VIRTIO_NET_HDR_GSO_TCPV6 }, 6),
            _ => return None,
        };
        (packet.get(protocol) == Some(&TCP)).then_some(tcp)
    }

    /// The sum of the pseudo-header.
    fn pseudo(self, packet: &[u8]) -> Option<u16> {
        let length = u32::try_from(packet.len().checked_sub(self.start)?).ok()?;
        let addresses = packet.get(self.addresses.0..self.addresses.1)?;
        Some(checksum(addresses, u64::from(length) + u64::from(TCP)))
    }

    /// The sum of pseudo-header, header and payload, which is all ones if the checksum is right.
    fn sum(self, packet: &[u8]) -> Option<u16> {
        Some(checksum(packet.get(self.start..)?, self.pseudo(packet)?.into()))
    }
}

fn encoded(header: VirtioNetHdr) -> [u8; VIRTIO_NET_HDR_LEN] {
    let mut bytes = [0; VIRTIO_NET_HDR_LEN];
    header.encode(&mut bytes).expect("the room is that of a header");
    bytes
}

#[cfg(test)]
mod tests;
