//! Maps by handles of connections, which are looked up with every call of an application.

use crate::endpoint::ConnectionHandle;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

/// A map by handles. The endpoint gives them out itself, one after the other, so that no peer can choose some that collide: their
/// hash needs no secret.
pub type HandleMap<V> = HashMap<ConnectionHandle, V, HandleHash>;

/// The hash of a handle: a multiplication (Knuth, The Art of Computer Programming, volume 3, §6.4), by which consecutive numbers lie
/// apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct HandleHash;

/// The state of [`HandleHash`].
#[derive(Clone, Copy, Debug, Default)]
pub struct HandleHasher(u64);

impl BuildHasher for HandleHash {
    type Hasher = HandleHasher;

    #[inline]
    fn build_hasher(&self) -> HandleHasher {
        HandleHasher::default()
    }
}

impl HandleHasher {
    /// 2^64 divided by the golden ratio, odd.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
}

impl Hasher for HandleHasher {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(Self::FACTOR);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn handles_given_out_in_turn_spread_over_buckets_and_over_tags() {
        let hashes: Vec<u64> =
            (0..1_024).map(|number| HandleHash.hash_one(ConnectionHandle(number))).collect();
        let buckets: HashSet<u64> = hashes.iter().map(|hash| hash % 1_024).collect();
        // A hash map compares the highest seven bits before it looks at keys.
        let tags: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        assert_eq!((buckets.len(), tags.len()), (1_024, 128));
    }
}
