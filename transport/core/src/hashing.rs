//! Maps whose keys peers may choose: their hash has a secret of its own in every process, and is a cheap one.

use std::collections::{HashMap, HashSet};

/// A map that a peer cannot fill with colliding keys (attacks of the kind of CVE-2025-24946).
pub type KeyedMap<K, V> = HashMap<K, V, ahash::RandomState>;

/// A set that a peer cannot fill with colliding keys.
pub type KeyedSet<K> = HashSet<K, ahash::RandomState>;

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
}
