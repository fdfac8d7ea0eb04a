//! The frames that set limits and those that say that a limit blocks (RFC 9000 §19.9 to §19.14).

use super::Frame;
use super::fault::Fault;
use super::types;
use crate::stream::{Direction, StreamId};
use crate::wire::cursor::Reader;
use crate::wire::transport_parameters::MAX_STREAMS;

/// Reads what follows a `frame_type` that is one of MAX_DATA to STREAMS_BLOCKED.
pub(super) fn read(frame_type: u64, reader: &mut Reader) -> Result<Frame, Fault> {
    Ok(match frame_type {
        types::MAX_DATA => Frame::MaxData(reader.varint()?),
        types::MAX_STREAM_DATA => {
            Frame::MaxStreamData { id: StreamId(reader.varint()?), limit: reader.varint()? }
        }
        types::MAX_STREAMS_BIDI => {
            Frame::MaxStreams { direction: Direction::Bidirectional, limit: stream_count(reader)? }
        }
        types::MAX_STREAMS_UNI => {
            Frame::MaxStreams { direction: Direction::Unidirectional, limit: stream_count(reader)? }
        }
        types::DATA_BLOCKED => Frame::DataBlocked(reader.varint()?),
        types::STREAM_DATA_BLOCKED => {
            Frame::StreamDataBlocked { id: StreamId(reader.varint()?), limit: reader.varint()? }
        }
        types::STREAMS_BLOCKED_BIDI => {
            Frame::StreamsBlocked { direction: Direction::Bidirectional, limit: stream_count(reader)? }
        }
        _ => Frame::StreamsBlocked { direction: Direction::Unidirectional, limit: stream_count(reader)? },
    })
}

/// More than 2^60 streams cannot have an ID (RFC 9000 §19.11, §19.14).
fn stream_count(reader: &mut Reader) -> Result<u64, Fault> {
    let count = reader.varint()?;
    //= https://www.rfc-editor.org/rfc/rfc9000#section-4.6
    //# If either is received, the connection MUST be closed immediately with a connection error of type
    //# TRANSPORT_PARAMETER_ERROR
    //= https://www.rfc-editor.org/rfc/rfc9000#section-19.11
    //# Receipt of a frame that permits opening of a stream larger than this limit MUST be treated as a
    //# connection error of type FRAME_ENCODING_ERROR.
    //= https://www.rfc-editor.org/rfc/rfc9000#section-19.14
    //# Receipt of a frame that encodes a larger stream ID MUST be treated as a connection error of type
    //# STREAM_LIMIT_ERROR or FRAME_ENCODING_ERROR.
    if count <= MAX_STREAMS { Ok(count) } else { Err(Fault::encoding("more than 2^60 streams")) }
}
