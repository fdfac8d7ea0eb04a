//! DATAGRAM (RFC 9221 §4).

use super::decode_error::DecodeError;
use super::types;
use crate::wire::cursor::Reader;
use crate::wire::varint;
use bytes::Bytes;

/// The size of a DATAGRAM frame with `length` bytes of data, as [`super::Frame::put`] writes it.
pub fn encoded_size(length: usize) -> usize {
    1 + varint::size(length as u64) + length
}

/// Returns the number of bytes of data that fit in a frame of `room` bytes, 0 if none do.
pub fn data_room(room: usize) -> usize {
    varint::prefixed_room(room.saturating_sub(1))
}

/// Reads what follows a `frame_type` that is one of the two.
pub(super) fn read(frame_type: u64, reader: &mut Reader) -> Result<Bytes, DecodeError> {
    match frame_type {
        types::DATAGRAM_WITH_LENGTH => Ok(reader.prefixed()?),
        _ => Ok(reader.rest()),
    }
}
