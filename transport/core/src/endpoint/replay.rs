//! Tokens that were used: a token proves an address once (RFC 9000 §8.1.4).

use crate::crypto::token::Fingerprint;
use crate::time::Instant;
use std::collections::HashSet;
use std::fmt;

/// Fingerprints that are remembered at most: some 2 MiB.
const CAPACITY: usize = 65_536;

/// Where several endpoints with the same key remember together which tokens were used, so that one proves an address once to
/// all of them (RFC 9000 §8.1.4). Whoever keeps one sees to it that endpoints of several threads may use it.
pub trait TokenRegister: fmt::Debug + Send + Sync {
    /// Whether the token with this fingerprint, made at `issued`, was not used yet.
    fn is_fresh(&self, token: &Fingerprint, issued: Instant) -> bool;

    /// Takes note that a token was used at `now`.
    fn note(&self, token: Fingerprint, now: Instant);
}

/// The used tokens, in bounded memory.
///
/// When there is no more room, all are forgotten and no token made before is accepted any more: who has one then is
/// treated like a client without a token.
#[derive(Debug)]
pub struct ReplayFilter {
    used: HashSet<Fingerprint>,
    capacity: usize,
    /// Tokens made before this are not accepted.
    oldest: Instant,
}

impl Default for ReplayFilter {
    fn default() -> Self {
        Self { used: HashSet::new(), capacity: CAPACITY, oldest: Instant::from_nanos(0) }
    }
}

impl ReplayFilter {
    /// Whether the token with this fingerprint, made at `issued`, was not used yet.
    pub fn is_fresh(&self, token: &Fingerprint, issued: Instant) -> bool {
        issued >= self.oldest && !self.used.contains(token)
    }

    /// Takes note that a token was used at `now`.
    pub fn note(&mut self, token: Fingerprint, now: Instant) {
        if self.used.len() >= self.capacity {
            self.used.clear();
            self.oldest = now;
        }
        self.used.insert(token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn a_token_is_fresh_once() {
        let mut filter = ReplayFilter::default();
        let token = Fingerprint([1; 16]);
        assert!(filter.is_fresh(&token, at(5)));
        filter.note(token, at(10));
        assert!(!filter.is_fresh(&token, at(5)));
        assert!(filter.is_fresh(&Fingerprint([2; 16]), at(5)));
    }

    #[test]
    fn a_full_filter_refuses_all_older_tokens_and_not_one_twice() {
        let mut filter = ReplayFilter { capacity: 4, ..ReplayFilter::default() };
        for n in 0..5 {
            filter.note(Fingerprint([n; 16]), at(100 + u64::from(n)));
        }
        assert_eq!(filter.used.len(), 1);
        assert!((0..5).all(|n| !filter.is_fresh(&Fingerprint([n; 16]), at(99))));
        assert!(filter.is_fresh(&Fingerprint([9; 16]), at(105)));
    }
}
