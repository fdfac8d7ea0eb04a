//! A strike register: which tickets opened 0-RTT lately, so that none does twice (RFC 8446 §8.1, RFC 9001 §9.2).

#[cfg(test)]
mod races;
mod strike;

use crate::time::Instant;
use ring::hmac;
use std::fmt;
use std::sync::atomic;
use strike::{SECOND_BITS, SECOND_MASK, Slot, strike};

/// Tickets remembered at most. Each takes eight bytes.
const SLOTS: usize = 1 << 14;
/// Places where a ticket may be remembered.
const WAYS: usize = 8;

/// Remembers the tickets that opened 0-RTT within the last minutes. Space is fixed, and there are no locks.
///
/// Once others have taken the places of a ticket, 0-RTT is refused with it: the handshake only takes a round trip longer
/// (RFC 8446 §8.2). Tickets name the guard under which they were issued, so that several servers with the same keys, or
/// one that was restarted, do not accept the same data once each.
pub struct ReplayGuard {
    key: hmac::Key,
    identity: [u8; 16],
    slots: Box<[Slot]>,
}

impl ReplayGuard {
    /// An empty register. `secret` is random: its first half keeps strangers from choosing places, and its second half
    /// tells this register from others.
    pub fn new(secret: &[u8; 32]) -> Self {
        let (key, identity) = secret.split_at(16);
        let mut own = [0; 16];
        own.copy_from_slice(identity);
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
            identity: own,
            slots: (0..SLOTS).map(|_| Slot::new(0)).collect(),
        }
    }

    /// Returns the identity that distinguishes this register from all others.
    pub fn identity(&self) -> [u8; 16] {
        self.identity
    }

    /// Returns true if `ticket` may open 0-RTT at `now`; from then on it may not again.
    pub fn admit(&self, ticket: &[u8], now: Instant) -> bool {
        let tag = hmac::sign(&self.key, ticket);
        let word = |at: usize| {
            let bytes = tag.as_ref().get(at..).and_then(<[u8]>::first_chunk::<8>);
            bytes.map_or(0, |bytes| u64::from_be_bytes(*bytes))
        };
        let fingerprint = (word(8) | 1 << 63) >> SECOND_BITS;
        let second = (now.as_nanos() / 1_000_000_000) & SECOND_MASK;
        let first = usize::try_from(word(0) % (SLOTS / WAYS) as u64).unwrap_or(0) * WAYS;
        let places = self.slots.get(first..first + WAYS).unwrap_or_default();
        // Another endpoint's thread may take the free place first, at most once for each place.
        (0..=WAYS).find_map(|_| strike(places, fingerprint, second)).unwrap_or(false)
    }
}

impl fmt::Debug for ReplayGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayGuard").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::strike::WINDOW;
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    //= https://www.rfc-editor.org/rfc/rfc9001#section-9.2
    //= type=test
    //# Endpoints MUST implement and use the replay protections described in [TLS13], however it is recognized
    //# that these protections are imperfect
    #[test]
    fn a_ticket_is_admitted_once_while_copies_of_it_could_be_accepted() {
        // RFC 8446 §8.1, attacks F12.
        let guard = ReplayGuard::new(&[7; 32]);
        assert!(guard.admit(b"ticket", at(10)));
        for second in [10, 11, 70, 130, 10 + WINDOW - 1] {
            assert!(!guard.admit(b"ticket", at(second)), "{second}");
        }
        assert!(guard.admit(b"another", at(10)));
        assert!(guard.admit(b"ticket", at(10 + WINDOW)), "TLS refuses it by its age from here on");
    }

    #[test]
    fn a_flood_admits_no_more_than_there_is_space_for_and_forgets_nobody() {
        // RFC 8446 §8.2.
        let guard = ReplayGuard::new(&[8; 32]);
        assert!(guard.admit(b"first", at(0)));
        let admitted = (0..4 * SLOTS as u64).filter(|n| guard.admit(&n.to_be_bytes(), at(1))).count();
        assert!(admitted < SLOTS && admitted > SLOTS / 2, "{admitted}");
        assert!(!guard.admit(b"first", at(2)));
        assert!((0..100_u64).all(|n| !guard.admit(&n.to_be_bytes(), at(2))));
        assert!((0..100_u64).all(|n| guard.admit(&n.to_be_bytes(), at(2 + WINDOW))));
    }

    #[test]
    fn registers_have_names_of_their_own() {
        let mut secret = [7; 32];
        let first = ReplayGuard::new(&secret);
        secret[31] = 8;
        assert_ne!(first.identity(), ReplayGuard::new(&secret).identity());
        assert_eq!(format!("{first:?}"), "ReplayGuard { .. }");
    }
}
