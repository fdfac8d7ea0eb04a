//! STREAM, RESET_STREAM and STOP_SENDING (RFC 9000 §19.4, §19.5, §19.8), and RESET_STREAM_AT.

use super::crypto::check_end;
use super::decode_error::DecodeError;
use super::sink::{Head, Sink};
use super::types;
use crate::wire::cursor::Reader;
use crate::wire::stream_id::StreamId;
use crate::wire::varint;
use bytes::Bytes;

/// The Offset field is there.
const OFFSET: u64 = 0x04;
/// The Length field is there.
const LENGTH: u64 = 0x02;
/// The stream ends with this frame.
const FIN: u64 = 0x01;

/// Data of a stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stream {
    /// The stream.
    pub id: StreamId,
    /// The offset of the data in it. `offset` plus the length is at most 2^62-1.
    pub offset: u64,
    /// The data, which may be empty.
    pub data: Bytes,
    /// True if the stream ends after the data.
    pub fin: bool,
}

impl Stream {
    /// Type, ID, offset and length in bytes at most (RFC 9000 §19.8, §16).
    pub const LARGEST_HEADER: usize = 1 + 3 * 8;

    /// The size of everything but the data: with a Length field for `length` bytes, or without one.
    pub fn header_size(id: StreamId, offset: u64, length: Option<usize>) -> usize {
        let offset_size = if offset == 0 { 0 } else { varint::size(offset) };
        1 + varint::size(id.0) + offset_size + length.map_or(0, |length| varint::size(length as u64))
    }

    /// Returns the number of bytes of data that fit in a frame of `room` bytes that has a Length field, 0 if none do.
    pub fn data_room(id: StreamId, offset: u64, room: usize) -> usize {
        varint::prefixed_room(room.saturating_sub(Self::header_size(id, offset, None)))
    }

    pub(super) fn frame_type(&self) -> u64 {
        let offset = if self.offset == 0 { 0 } else { OFFSET };
        let fin = if self.fin { FIN } else { 0 };
        types::STREAM | LENGTH | offset | fin
    }

    /// Reads what follows a `frame_type` that is one of the eight.
    pub(super) fn read(frame_type: u64, reader: &mut Reader) -> Result<Self, DecodeError> {
        let id = StreamId(reader.varint()?);
        let offset = if frame_type & OFFSET == 0 { 0 } else { reader.varint()? };
        let data = if frame_type & LENGTH == 0 { reader.rest() } else { reader.prefixed()? };
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.8
        //# Receipt of a frame that exceeds this limit MUST be treated as a connection error of type
        //# FRAME_ENCODING_ERROR or FLOW_CONTROL_ERROR.
        check_end(offset, &data)?;
        Ok(Self { id, offset, data, fin: frame_type & FIN != 0 })
    }

    pub(super) fn write(&self, sink: &mut impl Sink) {
        self.write_head(sink);
        sink.bytes(&self.data);
    }

    /// Appends the frame: as [`Self::write`] behind the type, but with the small fields in one piece.
    pub(super) fn put(&self, buf: &mut Vec<u8>) {
        let mut head = Head::default();
        head.varint(self.frame_type());
        self.write_head(&mut head);
        buf.extend_from_slice(head.as_slice());
        buf.extend_from_slice(&self.data);
    }

    #[inline]
    fn write_head(&self, sink: &mut impl Sink) {
        sink.varint(self.id.0);
        if self.offset != 0 {
            sink.varint(self.offset);
        }
        sink.varint(self.data.len() as u64);
    }
}

/// The sender gives up a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResetStream {
    /// The stream.
    pub id: StreamId,
    /// The application's code.
    pub error: u64,
    /// The number of bytes that the stream had, for flow control.
    pub final_size: u64,
}

impl ResetStream {
    pub(super) fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self { id: StreamId(reader.varint()?), error: reader.varint()?, final_size: reader.varint()? })
    }
}

/// The sender gives up a stream, and delivers its first bytes all the same (draft-ietf-quic-reliable-stream-reset §4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResetStreamAt {
    /// The stream.
    pub id: StreamId,
    /// The application's code.
    pub error: u64,
    /// The number of bytes that the stream had, for flow control.
    pub final_size: u64,
    /// The number of bytes from its start that are delivered, at most `final_size`.
    pub reliable_size: u64,
}

impl ResetStreamAt {
    pub(super) fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        let ResetStream { id, error, final_size } = ResetStream::read(reader)?;
        let reliable_size = reader.varint()?;
        // Draft-ietf-quic-reliable-stream-reset §4: a larger one is a FRAME_ENCODING_ERROR.
        if reliable_size > final_size {
            return Err(DecodeError::encoding("the reliable size of a stream is above its final size"));
        }
        Ok(Self { id, error, final_size, reliable_size })
    }
}

/// The receiver of a stream does not want the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StopSending {
    /// The stream.
    pub id: StreamId,
    /// The application's code.
    pub error: u64,
}

impl StopSending {
    pub(super) fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self { id: StreamId(reader.varint()?), error: reader.varint()? })
    }
}
