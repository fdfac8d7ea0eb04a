//! Maps whose keys peers may choose: their hash has a secret of its own in every process, and is a cheap one.

use std::collections::{HashMap, HashSet};

/// A map that a peer cannot fill with colliding keys (attacks of the kind of CVE-2025-24946).
pub type KeyedMap<K, V> = HashMap<K, V, ahash::RandomState>;

/// A set that a peer cannot fill with colliding keys.
pub type KeyedSet<K> = HashSet<K, ahash::RandomState>;
