//! Maps whose keys peers may choose: their hash has a secret of its own in every process, and is a cheap one. And maps whose keys
//! nobody chooses, with the cheapest.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};

/// A map that a peer cannot fill with colliding keys (attacks of the kind of CVE-2025-24946).
pub type KeyedMap<K, V> = HashMap<K, V, ahash::RandomState>;

/// A set that a peer cannot fill with colliding keys.
pub(crate) type KeyedSet<K> = HashSet<K, ahash::RandomState>;

/// A map by numbers that this process gives out itself, one after the other, such as handles: no peer can choose them so that they
/// collide.
pub type NumberedMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// The hash of a number by multiplication (Knuth, The Art of Computer Programming, volume 3, §6.4): consecutive numbers lie apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct NumberHasher(u64);

impl NumberHasher {
    /// 2^64 divided by the golden ratio, odd.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
}

impl Hasher for NumberHasher {
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

/// Places that a map may keep for nothing: giving fewer back is not worth the work.
const SPARE: usize = 64;

/// Gives places of `map` back, which keeps as many as it ever had entries, once hardly an eighth are in use. To be called
/// when an entry was removed. At least about as many entries are removed as ever move.
pub fn shrink<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>) {
    let used = map.len();
    if map.capacity() > SPARE.max(used.saturating_mul(8)) {
        map.shrink_to(used.saturating_mul(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_collides_in_one_map_does_not_in_another() {
        // attacks.md D13: whoever chooses keys cannot know which share a bucket.
        let (one, other) = (KeyedSet::<u64>::default(), KeyedSet::<u64>::default());
        let bucket = |set: &KeyedSet<u64>, key: u64| set.hasher().hash_one(key) % 1_024;
        let colliding: Vec<u64> = (0..100_000).filter(|key| bucket(&one, *key) == 0).collect();
        assert!(colliding.len() > 50);
        let still =
            colliding.iter().filter(|key| bucket(&other, **key) == bucket(&other, colliding[0])).count();
        assert!(still < 10, "{still} of {}", colliding.len());
    }

    #[test]
    fn numbers_given_out_in_turn_spread_over_buckets_and_over_tags() {
        let hashes: Vec<u64> = (0..1_024u64)
            .map(|number| BuildHasherDefault::<NumberHasher>::default().hash_one(number))
            .collect();
        let buckets: HashSet<u64> = hashes.iter().map(|hash| hash % 1_024).collect();
        let tags: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
        assert_eq!((buckets.len(), tags.len()), (1_024, 128));
    }

    #[test]
    fn a_map_that_was_large_once_gives_its_places_back_and_moves_entries_seldom() {
        let mut map: KeyedMap<u64, u64> = (0..10_000).map(|key| (key, key)).collect();
        let mut moves = 0;
        for key in 10..10_000 {
            map.remove(&key);
            let before = map.capacity();
            shrink(&mut map);
            moves += usize::from(map.capacity() < before);
        }
        assert!(map.capacity() <= 2 * SPARE, "{}", map.capacity());
        assert!(moves <= 6, "{moves}");
        assert_eq!(map.len(), 10);
    }
}
