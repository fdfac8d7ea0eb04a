//! Stateless resets: tokens that need no state, and the packets that carry them (RFC 9000 §10.3).

use crate::wire::connection_id::{ConnectionId, ResetToken};
use rand::RngCore;
use ring::hmac;
use std::fmt;
use std::sync::Arc;

/// The fewest bytes of a stateless reset that can pass for a packet (RFC 9000 §10.3).
const SHORTEST: usize = 21;
/// The bytes of a stateless reset. Shorter packets are not answered, nor therefore is a reset that is one byte shorter
/// (RFC 9000 §10.3.3): two endpoints that do not know each other fall silent after one reset each.
const USUAL: usize = 43;

/// The static key from which the reset token of each connection ID follows (RFC 9000 §10.3.2).
///
/// Endpoints that share the key must not share connection IDs in use: the token would end the connection.
#[derive(Clone)]
pub struct ResetKey(Arc<hmac::Key>);

impl ResetKey {
    /// The key with these bytes, which are secret and random.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// The token of `id`.
    pub fn token(&self, id: &ConnectionId) -> ResetToken {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
        //# The stateless reset token MUST be difficult to guess
        let tag = hmac::sign(&self.0, id.as_slice());
        ResetToken(*tag.as_ref().first_chunk().expect("an HMAC with SHA-256 has 32 bytes"))
    }
}

impl fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetKey(..)")
    }
}

/// Returns the length of the reset in answer to a packet of `received` bytes; `None` if there is to be none.
///
/// It is shorter than the packet, so that two endpoints that answer each other's resets fall silent (RFC 9000 §10.3.3).
pub(crate) fn reset_length(received: usize) -> Option<usize> {
    //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3
    //# An endpoint MUST NOT send a Stateless Reset that is three times or more larger than the packet it
    //# receives to avoid being used for amplification
    //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.3
    //# An endpoint MUST ensure that every Stateless Reset that it sends is smaller than the packet that
    //# triggered it, unless it maintains state sufficient to prevent looping
    (received >= USUAL).then(|| (received - 1).min(USUAL))
}

/// Appends a stateless reset of `length` bytes, at least 21: a short header, random bytes and `token`.
pub(crate) fn put_stateless_reset(
    buf: &mut Vec<u8>,
    rng: &mut impl RngCore,
    token: &ResetToken,
    length: usize,
) {
    let start = buf.len();
    let random = length.max(SHORTEST) - token.0.len();
    buf.resize(start + random, 0);
    if let Some(random) = buf.get_mut(start..) {
        rng.fill_bytes(random);
    }
    if let Some(first) = buf.get_mut(start) {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3
        //= reason=0x40;
        //# Endpoints MUST send Stateless Resets formatted as a packet with a short header
        // A short header with the fixed bit (RFC 9000 §17.3.1).
        *first = *first & 0x3f | 0x40;
    }
    buf.extend_from_slice(&token.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
    //= type=test
    //# The stateless reset token MUST be difficult to guess
    //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
    //= type=test
    //# This method for choosing the stateless reset token means that the combination of connection ID and
    //# static key MUST NOT be used for another connection
    //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
    //= type=test
    //# The same stateless reset token MUST NOT be used for multiple connection IDs
    #[test]
    fn a_token_depends_on_the_key_and_the_connection_id_only() {
        let id = |byte| ConnectionId::new(&[byte; 8]).unwrap();
        let key = ResetKey::new(&[1; 32]);
        assert_eq!(key.token(&id(1)), ResetKey::new(&[1; 32]).token(&id(1)));
        assert_ne!(key.token(&id(1)), key.token(&id(2)));
        assert_ne!(key.token(&id(1)), ResetKey::new(&[2; 32]).token(&id(1)));
        assert_eq!(format!("{key:?}"), "ResetKey(..)");
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3
    //= type=test
    //# Endpoints MUST send Stateless Resets formatted as a packet with a short header
    #[test]
    fn a_reset_looks_like_a_short_packet_and_ends_with_the_token() {
        let mut rng = StdRng::seed_from_u64(7);
        let token = ResetKey::new(&[1; 32]).token(&ConnectionId::new(&[9; 8]).unwrap());
        let mut lengths = Vec::new();
        for length in [0, 21, 22, 43, 100] {
            let mut buf = vec![0xee; 5];
            put_stateless_reset(&mut buf, &mut rng, &token, length);
            let packet = &buf[5..];
            assert_eq!(packet[0] & 0xc0, 0x40);
            assert_eq!(packet[packet.len() - 16..], token.0);
            lengths.push(packet.len());
        }
        assert_eq!(lengths, [21, 21, 22, 43, 100]);
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3
    //= type=test
    //# An endpoint MUST NOT send a Stateless Reset that is three times or more larger than the packet it
    //# receives to avoid being used for amplification
    //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.3
    //= type=test
    //# An endpoint MUST ensure that every Stateless Reset that it sends is smaller than the packet that
    //# triggered it, unless it maintains state sufficient to prevent looping
    #[test]
    fn resets_that_answer_resets_die_out() {
        assert_eq!(reset_length(1200), Some(43));
        assert_eq!(reset_length(0), None);
        let mut length = 1200;
        let mut answers = 0;
        while let Some(next) = reset_length(length) {
            assert!(next < length);
            length = next;
            answers += 1;
        }
        assert_eq!((length, answers), (42, 2));
    }
}
