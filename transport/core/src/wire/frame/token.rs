//! NEW_TOKEN (RFC 9000 §19.7).

use super::decode_error::DecodeError;
use crate::wire::cursor::Reader;
use bytes::Bytes;

/// Reads the token, which is not empty.
pub(super) fn read(reader: &mut Reader) -> Result<Bytes, DecodeError> {
    let token = reader.prefixed()?;
    //= https://www.rfc-editor.org/rfc/rfc9000#section-19.7
    //# A client MUST treat receipt of a NEW_TOKEN frame with an empty Token field as a connection error of
    //# type FRAME_ENCODING_ERROR.
    if token.is_empty() { Err(DecodeError::encoding("empty token")) } else { Ok(token) }
}
