//! Taking a datagram apart into packets (RFC 9000 §12.2).

use super::{
    Incoming, LONG, LongType, MAX_VERSIONS, MIN_SHORT_PACKET, PROTECTED_PART, PacketKind, ProtectedPacket,
    ShortPacket,
};
use crate::error::Dropped;
use crate::wire::connection_id::ConnectionId;
use crate::wire::cursor::{Reader, SliceReader, Truncated};
use crate::wire::grease::QuicBit;
use crate::wire::version::Version;
use bytes::{Bytes, BytesMut};

/// Splits the first packet off a datagram; what is left may be more packets (RFC 9000 §12.2).
///
/// `short_id_length` is the length of the connection IDs that this endpoint issues: short headers do not say. On
/// error nothing is left of the datagram. The packet is [`Dropped::Malformed`] if its header ends early, a connection
/// ID has more than 20 bytes in version 1 or 2, `quic_bit` does not permit that bit, Length exceeds the datagram, or a Retry
/// has no token.
/// Checks that need keys or the connection, among them that a short packet is long enough for its sample, are not
/// made here, so that a stateless reset can still be recognised in [`ProtectedPacket::bytes`].
pub fn next_packet(
    datagram: &mut BytesMut,
    short_id_length: usize,
    quic_bit: QuicBit,
) -> Result<Incoming, Dropped> {
    let packet = split_packet(datagram, short_id_length, quic_bit);
    if packet.is_err() {
        datagram.clear();
    }
    packet
}

/// The destination connection ID of the first packet, `None` if there is none or it has more than 20 bytes. Reads no
/// more than that: a datagram that has a destination can still be malformed.
pub fn destination_of(datagram: &[u8], short_id_length: usize) -> Option<ConnectionId> {
    let mut reader = SliceReader::new(datagram);
    let first = reader.u8().ok()?;
    let length = if first & LONG == 0 {
        short_id_length
    } else {
        reader.u32().ok()?;
        usize::from(reader.u8().ok()?)
    };
    ConnectionId::new(reader.bytes(length).ok()?)
}

impl From<Truncated> for Dropped {
    fn from(_: Truncated) -> Self {
        Self::Malformed
    }
}

fn split_packet(
    datagram: &mut BytesMut,
    short_id_length: usize,
    quic_bit: QuicBit,
) -> Result<Incoming, Dropped> {
    let mut reader = SliceReader::new(datagram);
    let first = reader.u8()?;
    if first & LONG == 0 {
        let short = split_short(datagram, short_id_length, quic_bit)?;
        return Ok(Incoming::Protected(short.into()));
    }
    let version = Version(reader.u32()?);
    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
    //# Clients MUST ignore the value of this field
    if version == Version::NEGOTIATION {
        return version_negotiation(datagram.split().freeze());
    }
    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
    //# Version- specific rules for the connection ID therefore MUST NOT influence a decision about whether to
    //# send a Version Negotiation packet.
    if !version.is_known() {
        return unsupported_version(datagram.split().freeze());
    }
    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2
    //# Packets containing a zero value for this bit are not valid packets in this version and MUST be
    //# discarded
    if !quic_bit.permits(first) {
        return Err(Dropped::Malformed);
    }
    match LongType::of(first, version) {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5
        //# The value in the Unused field is set to an arbitrary value by the server; a client MUST ignore
        //# these bits
        LongType::Retry => retry(datagram.split().freeze()),
        _ => split_long(datagram),
    }
}

/// Takes a datagram whose packet has a short header, `None` if the first packet has a long one. Does the same as
/// [`next_packet`], without the way through everything that a packet could be.
#[inline]
pub fn short_packet(
    datagram: &mut BytesMut,
    short_id_length: usize,
    quic_bit: QuicBit,
) -> Option<Result<ShortPacket, Dropped>> {
    if datagram.first()? & LONG != 0 {
        return None;
    }
    let packet = split_short(datagram, short_id_length, quic_bit);
    if packet.is_err() {
        datagram.clear();
    }
    Some(packet)
}

#[inline]
fn split_short(
    datagram: &mut BytesMut,
    short_id_length: usize,
    quic_bit: QuicBit,
) -> Result<ShortPacket, Dropped> {
    let mut reader = SliceReader::new(datagram);
    let first = reader.u8()?;
    let destination = connection_id(reader.bytes(short_id_length)?)?;
    //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3
    //# Endpoints MUST discard packets that are too small to be valid QUIC packets
    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.3.1
    //# Packets containing a zero value for this bit are not valid packets in this version and MUST be
    //# discarded
    if !quic_bit.permits(first) || datagram.len() < MIN_SHORT_PACKET {
        return Err(Dropped::Malformed);
    }
    let number_offset = 1 + destination.len();
    // All of it, without making it shared.
    Ok(ShortPacket { destination, number_offset, bytes: std::mem::take(datagram) })
}

/// Splits off an Initial, 0-RTT or Handshake packet of version 1 or 2 whose QUIC bit was checked.
fn split_long(datagram: &mut BytesMut) -> Result<Incoming, Dropped> {
    let mut reader = SliceReader::new(datagram);
    let first = reader.u8()?;
    let version = Version(reader.u32()?);
    let destination = short_prefixed_id(&mut reader)?;
    let source = short_prefixed_id(&mut reader)?;
    let kind = match LongType::of(first, version) {
        LongType::Initial => PacketKind::Initial { token: Bytes::copy_from_slice(reader.prefixed()?) },
        LongType::ZeroRtt => PacketKind::ZeroRtt,
        _ => PacketKind::Handshake,
    };
    let length = usize::try_from(reader.varint()?).map_err(|_| Dropped::Malformed)?;
    if length > reader.remaining() || length < PROTECTED_PART {
        return Err(Dropped::Malformed);
    }
    let number_offset = datagram.len() - reader.remaining();
    // Within the datagram: `length` is at most what follows `number_offset`.
    let bytes = datagram.split_to(number_offset + length);
    Ok(Incoming::Protected(ProtectedPacket { kind, version, destination, source, bytes, number_offset }))
}

/// The form that all versions share (RFC 8999 §5.1), after the first byte: version and both connection IDs.
fn invariant_header(reader: &mut Reader) -> Result<(Version, Bytes, Bytes), Truncated> {
    reader.u8()?;
    let version = Version(reader.u32()?);
    let length = usize::from(reader.u8()?);
    let destination = reader.bytes(length)?;
    let length = usize::from(reader.u8()?);
    let source = reader.bytes(length)?;
    Ok((version, destination, source))
}

fn unsupported_version(datagram: Bytes) -> Result<Incoming, Dropped> {
    let (version, destination, source) = invariant_header(&mut Reader::new(datagram))?;
    Ok(Incoming::UnsupportedVersion { version, destination, source })
}

/// A Version Negotiation packet takes the whole datagram (RFC 9000 §17.2.1). Connection IDs of more than 20 bytes
/// are none of ours, which have to be echoed.
fn version_negotiation(datagram: Bytes) -> Result<Incoming, Dropped> {
    let mut reader = Reader::new(datagram);
    let (_, destination, source) = invariant_header(&mut reader)?;
    let (destination, source) = (connection_id(&destination)?, connection_id(&source)?);
    if reader.is_empty() || !reader.remaining().is_multiple_of(4) {
        return Err(Dropped::Malformed);
    }
    let count = (reader.remaining() / 4).min(MAX_VERSIONS);
    let versions = (0..count).map(|_| reader.u32().map(Version)).collect::<Result<_, _>>()?;
    Ok(Incoming::VersionNegotiation { destination, source, versions })
}

/// A Retry packet takes the whole datagram: it has no Length (RFC 9000 §12.2, §17.2.5).
fn retry(datagram: Bytes) -> Result<Incoming, Dropped> {
    let bytes = datagram.clone();
    let mut reader = Reader::new(datagram);
    let (version, destination, source) = invariant_header(&mut reader)?;
    let (destination, source) = (connection_id(&destination)?, connection_id(&source)?);
    let token_length = reader.remaining().checked_sub(16).ok_or(Dropped::Malformed)?;
    let token = reader.bytes(token_length)?;
    let tag = reader.array()?;
    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
    //# A client MUST discard a Retry packet with a zero-length Retry Token field.
    if token.is_empty() {
        // RFC 9000 §17.2.5.2: a client MUST discard it.
        return Err(Dropped::Malformed);
    }
    Ok(Incoming::Retry { version, destination, source, token, tag, bytes })
}

fn connection_id(bytes: &[u8]) -> Result<ConnectionId, Dropped> {
    ConnectionId::new(bytes).ok_or(Dropped::Malformed)
}

fn short_prefixed_id(reader: &mut SliceReader<'_>) -> Result<ConnectionId, Dropped> {
    let length = usize::from(reader.u8()?);
    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2
    //# In QUIC version 1, this value MUST NOT exceed 20 bytes
    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2
    //# Endpoints that receive a version 1 long header with a value larger than 20 MUST drop the packet
    connection_id(reader.bytes(length)?)
}
