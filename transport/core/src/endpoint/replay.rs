//! Tokens that were used: a token proves an address once (RFC 9000 §8.1.4).

use crate::crypto::token::Fingerprint;
use crate::time::Instant;
use std::collections::HashSet;
use std::fmt;

/// Fingerprints of one generation at most, of which two are remembered: some 2 MiB. At a thousand a second, a Retry token (15
/// seconds) is never too old to be told from one that was used.
const CAPACITY: usize = 32_768;

/// A register in which several endpoints with the same key remember together the tokens that were used, so that one
/// proves an address once to all of them (RFC 9000 §8.1.4). Endpoints of several threads may use one.
pub trait TokenRegister: fmt::Debug + Send + Sync {
    /// Returns true if the token with this fingerprint, made at `issued`, was not used yet.
    fn is_fresh(&self, token: &Fingerprint, issued: Instant) -> bool;

    /// Takes note that a token was used at `now`.
    fn note(&self, token: Fingerprint, now: Instant);
}

/// The used tokens, in bounded memory.
///
/// Once there is no more room, the older half is forgotten and no token made before the younger half began is accepted
/// any more: a client that has one then is treated like one without a token.
#[derive(Debug)]
pub struct ReplayFilter {
    /// The tokens of the current generation.
    used: HashSet<Fingerprint>,
    /// The tokens of the one before.
    before: HashSet<Fingerprint>,
    capacity: usize,
    /// The beginning of the current generation.
    began: Instant,
    /// Tokens made before this are not accepted.
    oldest: Instant,
}

impl Default for ReplayFilter {
    fn default() -> Self {
        let start = Instant::from_nanos(0);
        Self { used: HashSet::new(), before: HashSet::new(), capacity: CAPACITY, began: start, oldest: start }
    }
}

impl ReplayFilter {
    /// Returns true if the token with this fingerprint, made at `issued`, was not used yet.
    pub fn is_fresh(&self, token: &Fingerprint, issued: Instant) -> bool {
        issued >= self.oldest && !self.used.contains(token) && !self.before.contains(token)
    }

    /// Takes note that a token was used at `now`.
    pub fn note(&mut self, token: Fingerprint, now: Instant) {
        if self.used.len() >= self.capacity {
            self.before = std::mem::take(&mut self.used);
            (self.oldest, self.began) = (self.began, now);
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
        for n in 0..9 {
            filter.note(Fingerprint([n; 16]), at(100 + u64::from(n)));
        }
        assert_eq!((filter.used.len(), filter.before.len()), (1, 4));
        assert!((0..9).all(|n| !filter.is_fresh(&Fingerprint([n; 16]), at(99 + u64::from(n)))));
        // Tokens of clients that are about to use them count on, however many others were used since.
        assert!(filter.is_fresh(&Fingerprint([9; 16]), at(104)));
        assert!(!filter.is_fresh(&Fingerprint([9; 16]), at(103)));
    }
}
