//! CRYPTO (RFC 9000 §19.6).

use super::decode_error::DecodeError;
use super::sink::Sink;
use crate::wire::cursor::Reader;
use crate::wire::varint;
use bytes::Bytes;

/// Bytes of the TLS handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Crypto {
    /// The offset of the bytes in the stream of the encryption level. `offset` plus the length is at most 2^62-1.
    pub offset: u64,
    /// The bytes.
    pub data: Bytes,
}

impl Crypto {
    /// The size of everything but the data, for `length` bytes of it.
    pub fn header_size(offset: u64, length: usize) -> usize {
        1 + varint::size(offset) + varint::size(length as u64)
    }

    /// Returns the number of bytes of data that fit in a frame of `room` bytes, 0 if none do.
    pub fn data_room(offset: u64, room: usize) -> usize {
        varint::prefixed_room(room.saturating_sub(1 + varint::size(offset)))
    }

    pub(super) fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        let offset = reader.varint()?;
        let data = reader.prefixed()?;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.6
        //# Receipt of a frame that exceeds this limit MUST be treated as a connection error of type
        //# FRAME_ENCODING_ERROR or CRYPTO_BUFFER_EXCEEDED.
        check_end(offset, &data)?;
        Ok(Self { offset, data })
    }

    pub(super) fn write(&self, sink: &mut impl Sink) {
        sink.varint(self.offset);
        sink.prefixed(&self.data);
    }
}

/// The last byte of a stream of any kind has an offset below 2^62-1 (RFC 9000 §19.6, §19.8).
pub(super) fn check_end(offset: u64, data: &Bytes) -> Result<(), DecodeError> {
    match offset.checked_add(data.len() as u64) {
        Some(end) if end <= varint::MAX => Ok(()),
        _ => Err(DecodeError::encoding("data beyond offset 2^62-1")),
    }
}
