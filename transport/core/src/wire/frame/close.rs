//! CONNECTION_CLOSE (RFC 9000 §19.19).

use super::decode_error::DecodeError;
use super::sink::Sink;
use super::types;
use crate::error::ErrorCode;
use crate::wire::cursor::Reader;
use bytes::Bytes;

/// The peer's close of the connection, with its reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectionClose {
    /// Type 0x1c: the transport does.
    Transport {
        /// The error.
        code: ErrorCode,
        /// The type of the frame that caused it, 0 if unknown.
        frame_type: u64,
        /// For people; should be UTF-8.
        reason: Bytes,
    },
    /// Type 0x1d: the application does.
    Application {
        /// The application's code.
        code: u64,
        /// For people; should be UTF-8.
        reason: Bytes,
    },
}

impl ConnectionClose {
    pub(super) fn frame_type(&self) -> u64 {
        match self {
            Self::Transport { .. } => types::CONNECTION_CLOSE_TRANSPORT,
            Self::Application { .. } => types::CONNECTION_CLOSE_APPLICATION,
        }
    }

    /// Reads what follows a `frame_type` that is one of the two.
    pub(super) fn read(frame_type: u64, reader: &mut Reader) -> Result<Self, DecodeError> {
        let code = reader.varint()?;
        if frame_type == types::CONNECTION_CLOSE_APPLICATION {
            return Ok(Self::Application { code, reason: reader.prefixed()? });
        }
        Ok(Self::Transport {
            code: ErrorCode(code),
            frame_type: reader.varint()?,
            reason: reader.prefixed()?,
        })
    }

    pub(super) fn write(&self, sink: &mut impl Sink) {
        match self {
            Self::Transport { code, frame_type, reason } => {
                sink.varints(&[code.0, *frame_type]);
                sink.prefixed(reason);
            }
            Self::Application { code, reason } => {
                sink.varint(*code);
                sink.prefixed(reason);
            }
        }
    }
}
