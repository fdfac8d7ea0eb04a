//! WebTransport sessions (draft-ietf-webtrans-http3): the capsules on the stream of the request, and the heads of their streams.

use super::pieces;
use hvq_h3::web_transport::{Beginning, SessionCapsule, beginning};

/// Bytes that may wait for the rest of their capsule: type, length, and the longest value.
const MOST: usize = 16 + 4 + 1024;

/// Capsules come in pieces, the first of which is the head of a stream, too. What was read is written and read again as the same;
/// nothing is kept beyond one capsule.
pub(crate) fn run(bytes: &[u8]) {
    let mut capsules = SessionCapsule::reader();
    for piece in pieces(bytes) {
        capsules.push(piece);
        while let Some(capsule) = SessionCapsule::next(&mut capsules) {
            let Ok(capsule) = capsule else { continue };
            let mut again = SessionCapsule::reader();
            again.push(&capsule.encode());
            assert_eq!(SessionCapsule::next(&mut again), Some(Ok(capsule)));
            assert!(again.is_complete());
        }
        assert!(capsules.buffered() <= MOST);
    }
    head(pieces(bytes).next().unwrap_or_default());
}

/// A head that was understood needs all of its bytes.
fn head(bytes: &[u8]) {
    if let Some(Beginning::Session(session, header)) = beginning(bytes) {
        assert!(session < 1 << 62 && header <= bytes.len());
        assert!((0..header).all(|length| beginning(&bytes[..length]).is_none()));
    }
}
