//! Packet headers (RFC 9000 §17, RFC 8999): taken apart up to the protected part, and written.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub use decode::{destination_of, next_packet, short_packet};
pub use encode::{patch_length, put_retry_without_tag, put_version_negotiation};

use super::connection_id::ConnectionId;
use super::version::Version;
use bytes::{Bytes, BytesMut};

/// The bit that is set in long headers (RFC 8999 §5.1).
pub const LONG: u8 = 0x80;
/// The QUIC bit: set in every packet but Version Negotiation (RFC 9000 §17.2, §17.3.1), unless the receiver lets it vary
/// (RFC 9287).
pub const FIXED: u8 = 0x40;

/// The most versions that are taken from a Version Negotiation packet.
pub const MAX_VERSIONS: usize = 256;

/// The shortest packet with a short header: 5 bytes of header and 16 of tag, which is also the shortest stateless
/// reset (RFC 9000 §10.3).
pub const MIN_SHORT_PACKET: usize = 21;

/// The bytes from the packet number on that removing header protection needs: 4 of packet number, 16 of sample
/// (RFC 9001 §5.4.2).
pub const PROTECTED_PART: usize = 4 + 16;

/// The kind of a protected packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// Initial (RFC 9000 §17.2.2).
    Initial {
        /// From a Retry packet or a NEW_TOKEN frame; empty if there is none.
        token: Bytes,
    },
    /// 0-RTT (RFC 9000 §17.2.3).
    ZeroRtt,
    /// Handshake (RFC 9000 §17.2.4).
    Handshake,
    /// 1-RTT, the packet with a short header (RFC 9000 §17.3.1).
    OneRtt,
}

/// A packet whose protection is still on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProtectedPacket {
    /// The kind of packet.
    pub kind: PacketKind,
    /// The version; that of a short header is not on the wire and given as [`Version::V1`].
    pub version: Version,
    /// The destination connection ID.
    pub destination: ConnectionId,
    /// The source connection ID, empty in a short header.
    pub source: ConnectionId,
    /// This packet only, with its header. After a long header at least [`PROTECTED_PART`] bytes follow
    /// `number_offset`; a short packet may be a stateless reset and only has [`MIN_SHORT_PACKET`] bytes.
    pub bytes: BytesMut,
    /// The offset of the packet number in `bytes`.
    pub number_offset: usize,
}

/// A packet with a short header whose protection is still on: all of its datagram (RFC 9000 §12.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShortPacket {
    /// The destination connection ID.
    pub destination: ConnectionId,
    /// The packet with its header; it may be a stateless reset and only has [`MIN_SHORT_PACKET`] bytes.
    pub bytes: BytesMut,
    /// The offset of the packet number in `bytes`.
    pub number_offset: usize,
}

impl From<ShortPacket> for ProtectedPacket {
    fn from(short: ShortPacket) -> Self {
        let ShortPacket { destination, bytes, number_offset } = short;
        let source = ConnectionId::EMPTY;
        Self { kind: PacketKind::OneRtt, version: Version::V1, destination, source, bytes, number_offset }
    }
}

impl From<ProtectedPacket> for ShortPacket {
    /// Keeps the parts of a packet of kind [`PacketKind::OneRtt`] that a short header has.
    fn from(packet: ProtectedPacket) -> Self {
        let ProtectedPacket { destination, bytes, number_offset, .. } = packet;
        Self { destination, bytes, number_offset }
    }
}

/// The first packet of a datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Incoming {
    /// A packet with protection.
    Protected(ProtectedPacket),
    /// Retry (RFC 9000 §17.2.5). Its token is not empty.
    Retry {
        /// The version.
        version: Version,
        /// The destination connection ID.
        destination: ConnectionId,
        /// The source connection ID.
        source: ConnectionId,
        /// The token that the client has to return.
        token: Bytes,
        /// The integrity tag (RFC 9001 §5.8).
        tag: [u8; 16],
        /// The whole packet, tag included.
        bytes: Bytes,
    },
    /// Version Negotiation (RFC 9000 §17.2.1).
    VersionNegotiation {
        /// The destination connection ID.
        destination: ConnectionId,
        /// The source connection ID.
        source: ConnectionId,
        /// The versions that the server speaks: at least one and the first [`MAX_VERSIONS`] of them at most.
        versions: Vec<Version>,
    },
    /// A long header of a version that this endpoint does not speak (RFC 8999 §5.1).
    UnsupportedVersion {
        /// The version.
        version: Version,
        /// The destination connection ID, up to 255 bytes.
        destination: Bytes,
        /// The source connection ID, up to 255 bytes.
        source: Bytes,
    },
}

/// The phase of the keys that protect a 1-RTT packet: it alternates with every key update (RFC 9001 §6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum KeyPhase {
    /// The bit is 0, as with the first keys.
    #[default]
    Zero,
    /// The bit is 1.
    One,
}

impl KeyPhase {
    /// Its bit in the first byte of a short header.
    pub const BIT: u8 = 0x04;

    /// The phase in `first`, the first byte of a short header without its protection.
    pub const fn of(first: u8) -> Self {
        if first & Self::BIT == 0 { Self::Zero } else { Self::One }
    }

    /// The phase after the next key update.
    pub const fn next(self) -> Self {
        match self {
            Self::Zero => Self::One,
            Self::One => Self::Zero,
        }
    }
}

/// Returns true if a reserved bit is set in `first`, the first byte of a packet without its header protection. The peer
/// must not set them, but that is an error only in a packet that authenticates (RFC 9000 §17.2, §17.3.1).
pub const fn has_reserved_bits(first: u8) -> bool {
    let reserved = if first & LONG == 0 { 0x18 } else { 0x0c };
    first & reserved != 0
}

/// The kind of a long header that is followed by a packet number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LongKind {
    /// Initial (RFC 9000 §17.2.2).
    Initial,
    /// 0-RTT (RFC 9000 §17.2.3).
    ZeroRtt,
    /// Handshake (RFC 9000 §17.2.4).
    Handshake,
}

/// The packet types of long headers, which versions number differently.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LongType {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
}

impl LongType {
    /// Their place in the first byte.
    const MASK: u8 = 0x30;

    /// The types in the order of version 1 (RFC 9000 §17.2). In version 2 each number is one higher, and that of Retry
    /// is 0 (RFC 9369 §3.2).
    const ALL: [Self; 4] = [Self::Initial, Self::ZeroRtt, Self::Handshake, Self::Retry];

    fn bits(self, version: Version) -> u8 {
        let number = match self {
            Self::Initial => 0,
            Self::ZeroRtt => 1,
            Self::Handshake => 2,
            Self::Retry => 3,
        };
        let number = if version == Version::V2 { number + 1 } else { number };
        number << 4 & Self::MASK
    }

    /// The type of a packet of `version` that starts with `first`.
    fn of(first: u8, version: Version) -> Self {
        let same = |kind: &Self| kind.bits(version) == first & Self::MASK;
        Self::ALL.into_iter().find(same).unwrap_or(Self::Retry)
    }
}

/// A long header to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LongHeader<'a> {
    /// The kind of packet.
    pub kind: LongKind,
    /// The version.
    pub version: Version,
    /// The destination connection ID.
    pub destination: ConnectionId,
    /// The source connection ID.
    pub source: ConnectionId,
    /// The token of an Initial packet, ignored in others.
    pub token: &'a [u8],
}

/// A short header to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShortHeader {
    /// The destination connection ID.
    pub destination: ConnectionId,
    /// The phase of the keys that protect the packet.
    pub key_phase: KeyPhase,
    /// The latency spin bit (RFC 9000 §17.4).
    pub spin: bool,
}

/// The layout of a header that was written: offsets from the start of the buffer, which may hold other packets before
/// this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeaderLayout {
    /// The offset of the two bytes of Length; a short header has none.
    pub length_offset: Option<usize>,
    /// The offset of the packet number. The payload follows it.
    pub number_offset: usize,
    /// The size of the packet number, 1 to 4 bytes.
    pub number_length: usize,
}

impl HeaderLayout {
    /// Returns the offset of the payload.
    pub fn payload_offset(&self) -> usize {
        self.number_offset + self.number_length
    }
}
