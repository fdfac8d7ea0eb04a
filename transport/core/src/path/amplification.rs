//! The limit on the bytes that may be sent to an address that nobody has proven to be the peer's (RFC 9000 §8.1, §9.3).

/// Bytes that may be sent for each byte received (RFC 9000 §8.1).
const FACTOR: u64 = 3;

/// The anti-amplification limit of one 4-tuple. A server's address counts as validated for the client (RFC 9000 §8.1).
///
/// Each datagram received is credited to one 4-tuple only, so that several paths from one address share what arrived
/// from there and cannot multiply it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amplification {
    /// The address is not validated: at most three times what was received may be sent.
    Limited {
        /// Bytes of UDP payload received.
        received: u64,
        /// Bytes of UDP payload sent.
        sent: u64,
    },
    /// The address is validated: nothing is limited.
    Validated,
}

impl Default for Amplification {
    fn default() -> Self {
        Self::Limited { received: 0, sent: 0 }
    }
}

impl Amplification {
    /// Counts `bytes` of UDP payload received from the address, padding and undecryptable packets included.
    pub fn on_received(&mut self, bytes: usize) {
        if let Self::Limited { received, .. } = self {
            *received = received.saturating_add(bytes as u64);
        }
    }

    /// Counts `bytes` of UDP payload sent to the address.
    pub fn on_sent(&mut self, bytes: usize) {
        if let Self::Limited { sent, .. } = self {
            *sent = sent.saturating_add(bytes as u64);
        }
    }

    /// Bytes of UDP payload that may still be sent, `usize::MAX` once the address is validated.
    pub fn allowance(&self) -> usize {
        match self {
            Self::Limited { received, sent } => {
                //= https://www.rfc-editor.org/rfc/rfc9000#section-8
                //# Therefore, after receiving packets from an address that is not yet validated, an endpoint
                //# MUST limit the amount of data it sends to the unvalidated address to three times the
                //# amount of data received
                let left = received.saturating_mul(FACTOR).saturating_sub(*sent);
                usize::try_from(left).unwrap_or(usize::MAX)
            }
            Self::Validated => usize::MAX,
        }
    }

    /// Returns true if nothing is limited.
    pub fn is_validated(&self) -> bool {
        *self == Self::Validated
    }

    /// The address is the peer's; there is no way back.
    pub fn validate(&mut self) {
        *self = Self::Validated;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    //= https://www.rfc-editor.org/rfc/rfc9000#section-8
    //= type=test
    //# Therefore, after receiving packets from an address that is not yet validated, an endpoint MUST limit
    //# the amount of data it sends to the unvalidated address to three times the amount of data received
    #[test]
    fn an_unvalidated_address_is_sent_at_most_three_times_what_came_from_it() {
        let mut limit = Amplification::default();
        assert_eq!(limit.allowance(), 0);
        limit.on_received(1200);
        assert_eq!(limit.allowance(), 3600);
        limit.on_sent(3000);
        assert_eq!(limit.allowance(), 600);
        limit.on_sent(1200);
        assert_eq!(limit.allowance(), 0);
        limit.on_received(300);
        assert_eq!(limit.allowance(), 300);
    }

    #[test]
    fn a_validated_address_is_not_limited_and_stays_so() {
        let mut limit = Amplification::default();
        limit.validate();
        limit.on_sent(usize::MAX);
        limit.on_received(1);
        assert_eq!((limit, limit.allowance()), (Amplification::Validated, usize::MAX));
    }

    #[test]
    fn counters_saturate() {
        let mut limit = Amplification::Limited { received: u64::MAX - 1, sent: 0 };
        limit.on_received(usize::MAX);
        assert_eq!(limit.allowance(), usize::MAX);
        limit.on_sent(usize::MAX);
        limit.on_sent(usize::MAX);
        assert_eq!(limit.allowance(), 0);
    }
}
