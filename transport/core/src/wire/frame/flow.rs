//! The frames that set limits and those that say that a limit blocks (RFC 9000 §19.9 to §19.14).

use super::decode_error::DecodeError;
use super::types;
use crate::wire::cursor::Reader;
use crate::wire::stream_id::Direction;
use crate::wire::transport_parameters::MAX_STREAMS;

/// Returns the type for streams of `direction`, of two that follow each other and begin with that for bidirectional ones.
pub(super) fn of_direction(direction: Direction, bidirectional: u64) -> u64 {
    match direction {
        Direction::Bidirectional => bidirectional,
        Direction::Unidirectional => bidirectional + 1,
    }
}

/// Returns the direction of the streams that a MAX_STREAMS or STREAMS_BLOCKED frame of `frame_type` is about.
pub(super) fn direction(frame_type: u64) -> Direction {
    match frame_type {
        types::MAX_STREAMS_BIDI | types::STREAMS_BLOCKED_BIDI => Direction::Bidirectional,
        _ => Direction::Unidirectional,
    }
}

/// Reads a number of streams: more than 2^60 cannot have an ID (RFC 9000 §19.11, §19.14).
pub(super) fn stream_count(reader: &mut Reader) -> Result<u64, DecodeError> {
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
    if count <= MAX_STREAMS { Ok(count) } else { Err(DecodeError::encoding("more than 2^60 streams")) }
}
