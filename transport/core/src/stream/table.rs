//! The streams of a connection by ID.

use super::id::StreamId;
use crate::hashing::KeyedMap;
use std::cell::Cell;

/// Values of one block: as many as its map of used places has bits.
const BLOCK: usize = u16::BITS as usize;
/// Places of the index that are kept when the last stream is gone.
const SPARE: usize = 128;

/// Values by stream ID. The one that was asked for last is found at once: frames of a stream come in rows.
///
/// Values lie in blocks: none moves when others come, and a block that holds none takes no memory.
#[derive(Debug)]
pub struct Table<T> {
    blocks: Vec<Block<T>>,
    /// No block before this one has room.
    first_free: usize,
    /// Where each value is, by a hash that the peer cannot predict.
    index: KeyedMap<StreamId, Place>,
    latest: Cell<Option<(StreamId, Place)>>,
}

/// A few places.
#[derive(Debug)]
struct Block<T> {
    places: Vec<Option<(StreamId, T)>>,
    /// Which of them hold a value, the lowest bit the first.
    used: u16,
}

/// Where a value is: its block, and the place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Place {
    block: usize,
    place: usize,
}

impl<T> Default for Block<T> {
    fn default() -> Self {
        Self { places: Vec::new(), used: 0 }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { blocks: Vec::new(), first_free: 0, index: KeyedMap::default(), latest: Cell::new(None) }
    }
}

impl<T> Block<T> {
    fn is_full(&self) -> bool {
        self.used == u16::MAX
    }

    /// Makes room for one more value, if the block is not full, and returns its place.
    fn vacate(&mut self) -> usize {
        let place = self.used.trailing_ones() as usize;
        self.used |= 1 << place.min(BLOCK - 1);
        if place == self.places.len() {
            self.places.push(None);
        }
        place
    }

    fn remove(&mut self, place: usize) {
        self.used &= !(1 << place);
        if let Some(slot) = self.places.get_mut(place) {
            *slot = None;
        }
        if self.used == 0 {
            self.places = Vec::new();
        }
    }
}

impl<T> Table<T> {
    /// How many values there are.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// How many values there is memory for.
    pub fn capacity(&self) -> usize {
        self.blocks.iter().map(|block| block.places.capacity()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Whether `id` has a value.
    pub fn contains(&self, id: StreamId) -> bool {
        self.place(id).is_some()
    }

    /// The value of `id`.
    #[inline]
    pub fn get(&self, id: StreamId) -> Option<&T> {
        let Place { block, place } = self.place(id)?;
        self.blocks.get(block)?.places.get(place)?.as_ref().map(|(_, value)| value)
    }

    /// The value of `id`.
    #[inline]
    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut T> {
        let Place { block, place } = self.place(id)?;
        self.blocks.get_mut(block)?.places.get_mut(place)?.as_mut().map(|(_, value)| value)
    }

    /// Gives `id` a value, in place of what it had, and returns where it is.
    #[inline]
    pub fn insert(&mut self, id: StreamId, value: T) -> &mut T {
        let at = self.place(id).unwrap_or_else(|| self.vacate());
        self.index.insert(id, at);
        self.latest.set(Some((id, at)));
        let (_, value) = self.blocks[at.block].places[at.place].insert((id, value));
        value
    }

    /// Drops the value of `id`; whether there was one.
    pub fn remove(&mut self, id: StreamId) -> bool {
        let Some(at) = self.index.remove(&id) else { return false };
        if self.latest.get().is_some_and(|(latest, _)| latest == id) {
            self.latest.set(None);
        }
        if let Some(block) = self.blocks.get_mut(at.block) {
            block.remove(at.place);
            self.first_free = self.first_free.min(at.block);
        }
        if self.index.is_empty() {
            // An idle connection keeps no memory of its busy times.
            self.blocks = Vec::new();
            self.first_free = 0;
            if self.index.capacity() > SPARE {
                self.index = KeyedMap::default();
            }
        }
        true
    }

    /// All IDs that have values, in no order.
    pub fn ids(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.iter().map(|(id, _)| id)
    }

    /// All values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (StreamId, &T)> + '_ {
        let places = self.blocks.iter().flat_map(|block| &block.places);
        places.flatten().map(|(id, value)| (*id, value))
    }

    #[inline]
    fn place(&self, id: StreamId) -> Option<Place> {
        if let Some((latest, place)) = self.latest.get()
            && latest == id
        {
            return Some(place);
        }
        let place = *self.index.get(&id)?;
        self.latest.set(Some((id, place)));
        Some(place)
    }

    /// Makes room for one more value.
    fn vacate(&mut self) -> Place {
        while self.blocks.get(self.first_free).is_some_and(Block::is_full) {
            self.first_free += 1;
        }
        let block = self.first_free;
        if block == self.blocks.len() {
            self.blocks.push(Block::default());
        }
        let Some(chosen) = self.blocks.get_mut(block) else { return Place::default() };
        if block > 0 && chosen.used == 0 {
            // One block that is not the first is rarely the last.
            chosen.places.reserve_exact(BLOCK);
        }
        Place { block, place: chosen.vacate() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn places_are_used_again_and_blocks_are_given_back_when_their_last_value_goes() {
        let mut table = Table::default();
        for id in 0..100 {
            table.insert(StreamId(id), id);
        }
        let full = table.capacity();
        assert!((100..=112).contains(&full));
        assert!(table.remove(StreamId(40)) && !table.remove(StreamId(40)));
        table.insert(StreamId(200), 200);
        assert_eq!((table.len(), table.capacity()), (100, full));
        for id in 3..100 {
            assert_eq!(table.remove(StreamId(id)), id != 40);
        }
        assert!(table.capacity() <= 2 * BLOCK, "long-lived streams keep only their own blocks");
        assert_eq!((table.get(StreamId(2)), table.get(StreamId(200))), (Some(&2), Some(&200)));
        for id in [0, 1, 2, 200] {
            assert!(table.remove(StreamId(id)));
        }
        assert_eq!((table.is_empty(), table.capacity()), (true, 0));
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_map(steps in proptest::collection::vec((0u64..60, 0u8..3), 0..300)) {
            let (mut table, mut model) = (Table::default(), BTreeMap::new());
            for (step, (id, what)) in steps.into_iter().enumerate() {
                match what {
                    0 => {
                        table.insert(StreamId(id), step);
                        model.insert(id, step);
                    }
                    1 => prop_assert_eq!(table.remove(StreamId(id)), model.remove(&id).is_some()),
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
