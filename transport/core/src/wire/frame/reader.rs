//! Reading the frames of a packet.

use super::decode_error::DecodeError;
use super::{Frame, Stream, types};
use crate::error::{ErrorCode, TransportError};
use crate::wire::cursor::Reader;
use crate::wire::varint;
use bytes::Bytes;

/// The frames of a payload, in order. After an error there are no more.
///
/// FRAME_ENCODING_ERROR if a frame ends early or its type is unknown, PROTOCOL_VIOLATION if the type is not in its shortest
/// form (RFC 9000 §12.4); errors of single frames are listed with them. Errors carry the type of their frame. A payload without frames gives
/// none, which is a PROTOCOL_VIOLATION that the caller has to see (RFC 9000 §12.4), as it is with
/// [`Frame::permitted_in`].
#[derive(Clone, Debug)]
pub struct FrameReader {
    reader: Reader,
}

impl FrameReader {
    /// Reads the frames of `payload`.
    pub fn new(payload: Bytes) -> Self {
        Self { reader: Reader::new(payload) }
    }

    /// Bytes that were not read yet.
    pub fn remaining(&self) -> usize {
        self.reader.remaining()
    }

    /// A run of PADDING as one frame, `None` if there is no PADDING next.
    fn padding(&mut self) -> Option<Frame> {
        let left = self.reader.as_slice();
        if left.first() != Some(&0) {
            return None;
        }
        self.reader.bytes(zeros(left)).ok().map(|bytes| Frame::Padding(bytes.len()))
    }

    fn frame_type(&mut self) -> Result<u64, DecodeError> {
        let before = self.reader.remaining();
        let frame_type = self.reader.varint()?;
        if before - self.reader.remaining() != varint::size(frame_type) {
            return Err(DecodeError::violation("frame type is not in its shortest form"));
        }
        Ok(frame_type)
    }

    /// The error, and the end of the payload.
    fn fail(&mut self, error: DecodeError, frame_type: u64) -> TransportError {
        self.reader.rest();
        let DecodeError { code, reason } = error;
        ErrorCode::because(code, reason).in_frame(frame_type)
    }
}

impl Iterator for FrameReader {
    type Item = Result<Frame, TransportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        if let Some(padding) = self.padding() {
            return Some(Ok(padding));
        }
        let frame_type = match self.frame_type() {
            Ok(frame_type) => frame_type,
            Err(error) => return Some(Err(self.fail(error, 0))),
        };
        if let types::STREAM..=types::STREAM_LAST = frame_type {
            // Most frames of a transfer: straight to where the caller wants it.
            return Some(match Stream::read(frame_type, &mut self.reader) {
                Ok(stream) => Ok(Frame::Stream(stream)),
                Err(error) => Err(self.fail(error, frame_type)),
            });
        }
        Some(Frame::read(frame_type, &mut self.reader).map_err(|error| self.fail(error, frame_type)))
    }
}

impl std::iter::FusedIterator for FrameReader {}

/// Returns the number of zeros that `bytes` begin with. Most of a client's first datagram is PADDING, so that they are
/// counted by the word.
fn zeros(bytes: &[u8]) -> usize {
    let (words, _) = bytes.as_chunks::<16>();
    let whole = 16 * words.iter().take_while(|word| u128::from_ne_bytes(**word) == 0).count();
    let rest = bytes.get(whole..).unwrap_or_default();
    whole + rest.iter().take_while(|byte| **byte == 0).count()
}
