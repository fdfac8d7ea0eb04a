//! Connection IDs and stateless reset tokens (RFC 9000 §5.1, §10.3).

use rand::RngCore;
use std::fmt;
use subtle::ConstantTimeEq;

/// The longest connection ID of QUIC v1, in bytes (RFC 9000 §17.2).
pub const MAX_LENGTH: usize = 20;

/// A connection ID of 0 to 20 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ConnectionId {
    length: u8,
    /// Zero from `length` on, so that equality of all bytes is equality of the connection ID.
    bytes: [u8; MAX_LENGTH],
}

impl ConnectionId {
    /// The connection ID of no bytes.
    pub const EMPTY: Self = Self { length: 0, bytes: [0; MAX_LENGTH] };

    /// The connection ID with these bytes, `None` if there are more than 20.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut id = Self { length: u8::try_from(bytes.len()).ok()?, bytes: [0; MAX_LENGTH] };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(id)
    }

    /// A random connection ID of `length` bytes, at most 20.
    pub fn random(rng: &mut impl RngCore, length: usize) -> Self {
        let mut id = Self::EMPTY;
        let length = length.min(MAX_LENGTH);
        if let Some(bytes) = id.bytes.get_mut(..length) {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-5.1
            //# Connection IDs MUST NOT contain any information that can be used by an external observer (that
            //# is
            rng.fill_bytes(bytes);
        }
        id.length = length as u8;
        id
    }

    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len()).unwrap_or_default()
    }

    /// Its bytes, and zeros behind them.
    pub(crate) fn padded(&self) -> &[u8; MAX_LENGTH] {
        &self.bytes
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        usize::from(self.length)
    }

    /// Returns true if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConnectionId({self})")
    }
}

/// A stateless reset token (RFC 9000 §10.3). Comparison takes the same time whatever the tokens are, and the token is
/// not shown in logs: whoever knows it can end the connection.
#[derive(Clone, Copy)]
pub struct ResetToken(pub [u8; 16]);

impl PartialEq for ResetToken {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for ResetToken {}

impl fmt::Debug for ResetToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ResetToken(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2
    //= type=test
    //# In QUIC version 1, this value MUST NOT exceed 20 bytes
    #[test]
    fn a_connection_id_has_at_most_twenty_bytes() {
        for length in 0..=20 {
            let bytes = vec![7; length];
            let id = ConnectionId::new(&bytes).unwrap();
            assert_eq!((id.as_slice(), id.len(), id.is_empty()), (&bytes[..], length, length == 0));
        }
        assert_eq!(ConnectionId::new(&[7; 21]), None);
        assert_eq!(ConnectionId::new(&[7; 300]), None);
    }

    #[test]
    fn connection_ids_that_differ_in_length_differ() {
        assert_ne!(ConnectionId::new(&[0]), ConnectionId::new(&[0, 0]));
        assert_eq!(ConnectionId::new(&[]), Some(ConnectionId::EMPTY));
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-5.1
    //= type=test
    //# Connection IDs MUST NOT contain any information that can be used by an external observer (that is
    #[test]
    fn random_connection_ids_have_the_length_asked_for() {
        let mut rng = StdRng::seed_from_u64(1);
        let ids = [8, 20, 99].map(|length| ConnectionId::random(&mut rng, length));
        assert_eq!(ids.map(|id| id.len()), [8, 20, 20]);
        assert_ne!(ids[1], ids[2]);
        assert_eq!(ConnectionId::new(ids[0].as_slice()), Some(ids[0]));
    }

    #[test]
    fn a_connection_id_is_shown_in_hexadecimal() {
        let id = ConnectionId::new(&[0x0a, 0xff]).unwrap();
        assert_eq!((id.to_string(), format!("{id:?}")), ("0aff".into(), "ConnectionId(0aff)".into()));
    }

    #[test]
    fn reset_tokens_are_compared_and_never_shown() {
        let token = ResetToken([9; 16]);
        assert_eq!(token, ResetToken([9; 16]));
        assert_ne!(token, ResetToken([9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 8]));
        assert_eq!(format!("{token:?}"), "ResetToken(..)");
    }
}
