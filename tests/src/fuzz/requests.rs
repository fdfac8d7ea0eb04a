//! Field sections of HTTP/3 requests (RFC 9204, RFC 9114).

use bytes::Bytes;
use hvq_h3::serving;

/// Bytes that a field section may have.
const LIMIT: u64 = 4096;

/// A request that was read is within the limit, and has a method and a target.
pub(crate) fn run(bytes: &[u8]) {
    let Ok(request) = serving::request(Bytes::copy_from_slice(bytes), LIMIT) else { return };
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 32);
    assert!(fields.sum::<usize>() as u64 <= LIMIT);
    assert!(request.uri().authority().is_some());
}
