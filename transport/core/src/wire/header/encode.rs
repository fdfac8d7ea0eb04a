//! Writing headers.

use super::{FIXED, HeaderLayout, KeyPhase, LONG, LongHeader, LongKind, LongType, ShortHeader};
use crate::wire::connection_id::{self, ConnectionId};
use crate::wire::version::Version;
use crate::wire::{packet_number, varint};

/// The largest Length that its two bytes can state.
const MAX_LENGTH: usize = 0x3fff;

impl LongHeader<'_> {
    /// Appends the header with the last `number_length` (1 to 4) bytes of `number`. Two bytes are kept free for
    /// Length: see [`patch_length`].
    pub fn put(&self, buf: &mut Vec<u8>, number: u64, number_length: usize) -> HeaderLayout {
        let number_length = number_length.clamp(1, 4);
        let kind = match self.kind {
            LongKind::Initial => LongType::Initial,
            LongKind::ZeroRtt => LongType::ZeroRtt,
            LongKind::Handshake => LongType::Handshake,
        };
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2
        //# The value included prior to protection MUST be set to 0
        buf.push(LONG | FIXED | kind.bits(self.version) | (number_length - 1) as u8);
        buf.extend_from_slice(&self.version.0.to_be_bytes());
        put_connection_id(buf, &self.destination);
        put_connection_id(buf, &self.source);
        if self.kind == LongKind::Initial {
            varint::put(buf, self.token.len() as u64);
            buf.extend_from_slice(self.token);
        }
        let length_offset = Some(buf.len());
        buf.extend_from_slice(&[0x40, 0x00]);
        let number_offset = buf.len();
        packet_number::put(buf, number, number_length);
        HeaderLayout { length_offset, number_offset, number_length }
    }

    /// The size of the header, packet number included.
    pub fn size(&self, number_length: usize) -> usize {
        let token = match self.kind {
            LongKind::Initial => varint::size(self.token.len() as u64) + self.token.len(),
            LongKind::ZeroRtt | LongKind::Handshake => 0,
        };
        1 + 4 + 1 + self.destination.len() + 1 + self.source.len() + token + 2 + number_length.clamp(1, 4)
    }
}

impl ShortHeader {
    /// Appends the header with the last `number_length` (1 to 4) bytes of `number`.
    pub fn put(&self, buf: &mut Vec<u8>, number: u64, number_length: usize) -> HeaderLayout {
        let number_length = number_length.clamp(1, 4);
        let spin = if self.spin { 0x20 } else { 0 };
        let key_phase = match self.key_phase {
            KeyPhase::Zero => 0,
            KeyPhase::One => KeyPhase::BIT,
        };
        // Put together first and appended in one piece: every packet of a transfer has one of these.
        let mut header = [0; 1 + connection_id::MAX_LENGTH + 4];
        let [first, rest @ ..] = &mut header;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.3.1
        //# The value included prior to protection MUST be set to 0
        *first = FIXED | spin | key_phase | (number_length - 1) as u8;
        if let Some(place) = rest.first_chunk_mut() {
            *place = *self.destination.padded();
        }
        let length = self.destination.len();
        if let Some(place) = rest.get_mut(length..).and_then(<[u8]>::first_chunk_mut) {
            *place = ((number as u32) << (8 * (4 - number_length))).to_be_bytes();
        }
        let number_offset = buf.len() + 1 + length;
        buf.extend_from_slice(header.get(..1 + length + number_length).unwrap_or_default());
        HeaderLayout { length_offset: None, number_offset, number_length }
    }

    /// The size of the header, packet number included.
    pub fn size(&self, number_length: usize) -> usize {
        1 + self.destination.len() + number_length.clamp(1, 4)
    }
}

fn put_connection_id(buf: &mut Vec<u8>, id: &ConnectionId) {
    buf.push(id.len() as u8);
    buf.extend_from_slice(id.as_slice());
}

/// Writes the Length of the packet that started at `start`, is the last in `buf`, and will get a tag of `tag_length`
/// bytes: packet number, payload and tag (RFC 9000 §17.2). Does nothing for a short header.
///
/// Length has two bytes, so that a packet with a long header must stay below 16,384 bytes.
pub fn patch_length(buf: &mut [u8], layout: &HeaderLayout, start: usize, tag_length: usize) {
    let length = buf.len().saturating_sub(layout.number_offset) + tag_length;
    let Some(offset) = layout.length_offset else { return };
    debug_assert!(start < offset && offset < layout.number_offset, "the layout belongs to another packet");
    debug_assert!(length <= MAX_LENGTH, "a long header packet of {length} bytes");
    if let Some(place) = buf.get_mut(offset..).and_then(<[u8]>::first_chunk_mut) {
        *place = (0x4000 | length.min(MAX_LENGTH) as u16).to_be_bytes();
    }
}

/// Appends a Version Negotiation packet (RFC 9000 §17.2.1).
///
/// `destination` and `source` are the source and destination of the packet that it answers, at most 255 bytes each;
/// the free bits of the first byte are those of `first_byte_random`.
pub fn put_version_negotiation(
    buf: &mut Vec<u8>,
    destination: &[u8],
    source: &[u8],
    versions: &[Version],
    first_byte_random: u8,
) {
    // The bit where others have their fixed bit SHOULD be set, for those who share the port (RFC 9000 §17.2.1).
    buf.push(LONG | FIXED | first_byte_random);
    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
    //# The Version field of a Version Negotiation packet MUST be set to 0x00000000.
    buf.extend_from_slice(&Version::NEGOTIATION.0.to_be_bytes());
    for id in [destination, source] {
        let id = id.get(..usize::from(u8::MAX)).unwrap_or(id);
        buf.push(id.len() as u8);
        buf.extend_from_slice(id);
    }
    for version in versions {
        buf.extend_from_slice(&version.0.to_be_bytes());
    }
}

/// Appends a Retry packet up to its integrity tag (RFC 9000 §17.2.5).
pub fn put_retry_without_tag(
    buf: &mut Vec<u8>,
    version: Version,
    destination: &ConnectionId,
    source: &ConnectionId,
    token: &[u8],
) {
    // The four unused bits are arbitrary; these are those of the examples in RFC 9001 §A.4 and RFC 9369 §A.4.
    buf.push(LONG | FIXED | LongType::Retry.bits(version) | 0x0f);
    buf.extend_from_slice(&version.0.to_be_bytes());
    put_connection_id(buf, destination);
    put_connection_id(buf, source);
    buf.extend_from_slice(token);
}
