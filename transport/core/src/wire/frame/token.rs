//! NEW_TOKEN (RFC 9000 §19.7).

use super::fault::Fault;
use crate::wire::cursor::Reader;
use bytes::Bytes;

/// Reads the token, which is not empty.
pub(super) fn read(reader: &mut Reader) -> Result<Bytes, Fault> {
    let token = reader.prefixed()?;
    if token.is_empty() { Err(Fault::encoding("empty token")) } else { Ok(token) }
}
