//! The streams of a connection by ID.

use super::id::StreamId;
use crate::hashing::KeyedMap;
use std::cell::Cell;

/// Empty slots that are kept when the last stream is gone.
const SPARE: usize = 32;

/// Values by stream ID. The one that was asked for last is found at once: frames of a stream come in rows.
#[derive(Debug)]
pub struct Table<T> {
    slots: Vec<Option<(StreamId, T)>>,
    /// Slots without a value.
    free: Vec<usize>,
    /// Where each value is, by a hash that the peer cannot predict.
    index: KeyedMap<StreamId, usize>,
    latest: Cell<usize>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), index: KeyedMap::default(), latest: Cell::new(0) }
    }
}

impl<T> Table<T> {
    /// How many values there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// How many values there is memory for.
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Whether `id` has a value.
    pub fn contains(&self, id: StreamId) -> bool {
        self.slot(id).is_some()
    }

    /// The value of `id`.
    #[inline]
    pub fn get(&self, id: StreamId) -> Option<&T> {
        let slot = self.slot(id)?;
        self.slots.get(slot)?.as_ref().map(|(_, value)| value)
    }

    /// The value of `id`.
    #[inline]
    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut T> {
        let slot = self.slot(id)?;
        self.slots.get_mut(slot)?.as_mut().map(|(_, value)| value)
    }

    /// Gives `id` a value, in place of what it had.
    pub fn insert(&mut self, id: StreamId, value: T) {
        let slot = self.slot(id).or_else(|| self.free.pop()).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some((id, value));
        self.index.insert(id, slot);
    }

    /// Takes the value of `id` away.
    pub fn remove(&mut self, id: StreamId) -> Option<T> {
        let slot = self.index.remove(&id)?;
        let (_, value) = self.slots.get_mut(slot)?.take()?;
        if self.index.is_empty() && self.slots.len() > SPARE {
            // An idle connection keeps no memory of its busy times.
            *self = Self::default();
        } else {
            self.free.push(slot);
        }
        Some(value)
    }

    /// All IDs that have values, in no order.
    pub fn ids(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.iter().map(|(id, _)| id)
    }

    /// All values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (StreamId, &T)> + '_ {
        self.slots.iter().flatten().map(|(id, value)| (*id, value))
    }

    #[inline]
    fn slot(&self, id: StreamId) -> Option<usize> {
        let latest = self.latest.get();
        if let Some(Some((found, _))) = self.slots.get(latest)
            && *found == id
        {
            return Some(latest);
        }
        let slot = *self.index.get(&id)?;
        self.latest.set(slot);
        Some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn slots_are_used_again_and_given_back_when_the_last_value_goes() {
        let mut table = Table::default();
        for id in 0..100 {
            table.insert(StreamId(id), id);
        }
        assert_eq!(table.remove(StreamId(40)), Some(40));
        table.insert(StreamId(200), 200);
        assert_eq!((table.len(), table.slots.len()), (100, 100));
        for id in (0..100).chain([200]) {
            assert_eq!(table.remove(StreamId(id)).is_some(), id != 40);
        }
        assert_eq!((table.is_empty(), table.capacity()), (true, 0));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_map(steps in proptest::collection::vec((0u64..20, 0u8..3), 0..200)) {
            let (mut table, mut model) = (Table::default(), BTreeMap::new());
            for (step, (id, what)) in steps.into_iter().enumerate() {
                match what {
                    0 => {
                        table.insert(StreamId(id), step);
                        model.insert(id, step);
                    }
                    1 => prop_assert_eq!(table.remove(StreamId(id)), model.remove(&id)),
                    _ => {
                        prop_assert_eq!(table.get(StreamId(id)), model.get(&id));
                        prop_assert_eq!(table.get_mut(StreamId(id)), model.get_mut(&id));
                    }
                }
                prop_assert_eq!(table.len(), model.len());
            }
            let mut all: Vec<_> = table.iter().map(|(id, value)| (id.0, *value)).collect();
            all.sort_unstable();
            prop_assert_eq!(all, model.into_iter().collect::<Vec<_>>());
        }
    }
}
