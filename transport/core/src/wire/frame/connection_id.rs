//! NEW_CONNECTION_ID and RETIRE_CONNECTION_ID (RFC 9000 §19.15, §19.16) with their PATH_ forms (RFC 10069 §4.4, §4.5).

use super::decode_error::DecodeError;
use super::sink::Sink;
use super::{path, types};
use crate::PathId;
use crate::wire::connection_id::{ConnectionId, ResetToken};
use crate::wire::cursor::Reader;

/// A connection ID that the peer may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewConnectionId {
    /// The path that it is for; `None` is the frame of RFC 9000, which means path 0.
    pub path: Option<PathId>,
    /// Its sequence number, counted per path.
    pub sequence: u64,
    /// Connection IDs of the same path with a smaller sequence number must be retired; at most `sequence`.
    pub retire_prior_to: u64,
    /// The connection ID, of 1 to 20 bytes.
    pub id: ConnectionId,
    /// The token of a stateless reset of it.
    pub token: ResetToken,
}

impl NewConnectionId {
    /// Reads what follows a `frame_type` that is one of the two.
    pub(super) fn read(frame_type: u64, reader: &mut Reader) -> Result<Self, DecodeError> {
        let path = path_of(frame_type, reader)?;
        let sequence = reader.varint()?;
        let retire_prior_to = reader.varint()?;
        let length = usize::from(reader.u8()?);
        let id = ConnectionId::new(&reader.bytes(length)?);
        let id =
            //= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
            //# Values less than 1 and greater than 20 are invalid and MUST be treated as a connection error
            //# of type FRAME_ENCODING_ERROR.
            id.filter(|id| !id.is_empty()).ok_or(DecodeError::encoding("connection ID of 0 or over 20 bytes"))?;
        let token = ResetToken(reader.array()?);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
        //# The value in the Retire Prior To field MUST be less than or equal to the value in the Sequence
        //# Number field
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
        //# Receiving a value in the Retire Prior To field that is greater than that in the Sequence Number
        //# field MUST be treated as a connection error of type FRAME_ENCODING_ERROR.
        if retire_prior_to > sequence {
            return Err(DecodeError::encoding("retire prior to exceeds the sequence number"));
        }
        Ok(Self { path, sequence, retire_prior_to, id, token })
    }

    pub(super) fn write(&self, sink: &mut impl Sink) {
        sink.path(self.path);
        sink.varints(&[self.sequence, self.retire_prior_to]);
        sink.bytes(&[self.id.len() as u8]);
        sink.bytes(self.id.as_slice());
        sink.bytes(&self.token.0);
    }
}

/// Reads the path ID of a frame of `frame_type` if it is one of the multipath extension.
pub(super) fn path_of(frame_type: u64, reader: &mut Reader) -> Result<Option<PathId>, DecodeError> {
    match frame_type {
        types::PATH_NEW_CONNECTION_ID | types::PATH_RETIRE_CONNECTION_ID => path::id(reader).map(Some),
        _ => Ok(None),
    }
}
