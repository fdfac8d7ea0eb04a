//! Maps whose keys peers may choose: their hash has a secret of its own in every process, and is a cheap one.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

/// A map that a peer cannot fill with colliding keys (attacks of the kind of CVE-2025-24946).
pub type KeyedMap<K, V> = HashMap<K, V, ahash::RandomState>;

/// A set that a peer cannot fill with colliding keys.
pub(crate) type KeyedSet<K> = HashSet<K, ahash::RandomState>;

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
