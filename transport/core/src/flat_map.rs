//! A small ordered map in one piece of memory.

/// Values by ascending keys, for a few of them: a node of a tree would have room for eleven whatever there is.
#[derive(Clone, Debug)]
pub struct FlatMap<K, V> {
    entries: Vec<(K, V)>,
}

/// Up to so many entries memory grows by one at a time.
const FEW: usize = 8;

impl<K, V> Default for FlatMap<K, V> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<K: Ord, V> FlatMap<K, V> {
    /// A map of one entry.
    pub fn of(key: K, value: V) -> Self {
        let mut map = Self::default();
        map.insert(key, value);
        map
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns true if `key` has a value.
    pub fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_ok()
    }

    /// The value of `key`.
    #[inline]
    pub fn get(&self, key: &K) -> Option<&V> {
        let index = self.find(key).ok()?;
        self.entries.get(index).map(|(_, value)| value)
    }

    /// The value of `key`.
    #[inline]
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let index = self.find(key).ok()?;
        self.entries.get_mut(index).map(|(_, value)| value)
    }

    /// The value of `key`, which is made if there is none.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let index = match self.find(&key) {
            Ok(index) => index,
            Err(index) => {
                self.insert_at(index, key, make());
                index
            }
        };
        &mut self.entries[index].1
    }

    /// Gives `key` a value, and returns what it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(index) => self.entries.get_mut(index).map(|(_, known)| std::mem::replace(known, value)),
            Err(index) => {
                self.insert_at(index, key, value);
                None
            }
        }
    }

    /// Takes the value of `key` away.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let index = self.find(key).ok()?;
        Some(self.entries.remove(index).1)
    }

    /// All entries, by ascending keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// All keys, ascending.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// All values, by ascending keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    fn find(&self, key: &K) -> Result<usize, usize> {
        self.entries.binary_search_by(|(known, _)| known.cmp(key))
    }

    fn insert_at(&mut self, index: usize, key: K, value: V) {
        if self.entries.len() < FEW {
            self.entries.reserve_exact(1);
        }
        self.entries.insert(index, (key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_agrees_with_a_tree(steps in proptest::collection::vec((0u32..20, 0u8..3), 0..100)) {
            let (mut map, mut model) = (FlatMap::default(), BTreeMap::new());
            for (step, (key, what)) in steps.into_iter().enumerate() {
                match what {
                    0 => prop_assert_eq!(map.insert(key, step), model.insert(key, step)),
                    1 => prop_assert_eq!(map.remove(&key), model.remove(&key)),
                    _ => {
                        let made = *model.entry(key).or_insert(step);
                        prop_assert_eq!(*map.get_or_insert_with(key, || step), made);
                    }
                }
                prop_assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!((map.get(&key), map.contains_key(&key)), (model.get(&key), model.contains_key(&key)));
                prop_assert_eq!(map.get_mut(&key), model.get_mut(&key));
                prop_assert!(map.keys().eq(model.keys()) && map.values().eq(model.values()));
                prop_assert!(map.iter().eq(model.iter()));
            }
        }
    }
}
