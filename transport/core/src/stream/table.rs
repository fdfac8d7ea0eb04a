//! The streams of a connection by ID.

use crate::hashing::KeyedMap;
use crate::wire::stream_id::StreamId;
use std::cell::Cell;

/// Values of one block: as many as its map of used places has bits.
const BLOCK: usize = u16::BITS as usize;
/// Places that are kept for the next streams until the connection rests.
const SPARE: usize = 128;

/// Values by stream ID. The one that was asked for last is found at once: frames of a stream come in rows.
///
/// Values lie in blocks: none moves when others come, and of blocks that hold none only the first few keep their memory, until
/// [`Self::hibernate`].
#[derive(Debug)]
pub struct Table<T> {
    blocks: Vec<Block<T>>,
    /// No block before this one has room.
    first_free: usize,
    /// The place of each value, by a hash that the peer cannot predict.
    index: KeyedMap<StreamId, Place>,
    latest: Cell<Option<(StreamId, Place)>>,
}

/// A few places.
#[derive(Debug)]
struct Block<T> {
    places: Vec<Option<(StreamId, T)>>,
    /// The set of places that hold a value, the lowest bit the first.
    used: u16,
}

/// The place of a value: its block, and the index in it.
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
    }

    fn is_unused(&self) -> bool {
        self.used == 0
    }
}

impl<T> Table<T> {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns the number of values that there is memory for.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.blocks.iter().map(|block| block.places.capacity()).sum()
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns true if `id` has a value.
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
        let (blocks, first_free) = (&mut self.blocks, &mut self.first_free);
        let at = *self.index.entry(id).or_insert_with(|| vacate(blocks, first_free));
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
            if block.is_unused() && at.block >= SPARE / BLOCK {
                block.places = Vec::new();
            }
            self.first_free = self.first_free.min(at.block);
        }
        true
    }

    /// Gives back all memory that no value needs: an idle connection keeps none of its busy times.
    pub fn hibernate(&mut self) {
        for block in self.blocks.iter_mut().filter(|block| block.is_unused()) {
            block.places = Vec::new();
        }
        if self.index.is_empty() {
            self.blocks = Vec::new();
            self.first_free = 0;
        }
        if self.index.capacity() > SPARE.max(4 * self.index.len()) {
            self.index.shrink_to_fit();
        }
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
}

/// Makes room for one more value in `blocks`, of which none before `first_free` has any.
fn vacate<T>(blocks: &mut Vec<Block<T>>, first_free: &mut usize) -> Place {
    while blocks.get(*first_free).is_some_and(Block::is_full) {
        *first_free += 1;
    }
    let block = *first_free;
    if block == blocks.len() {
        blocks.push(Block::default());
    }
    let Some(chosen) = blocks.get_mut(block) else { return Place::default() };
    if block > 0 && chosen.places.capacity() == 0 {
        // One block that is not the first is rarely the last.
        chosen.places.reserve_exact(BLOCK);
    }
    Place { block, place: chosen.vacate() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn places_are_used_again_and_blocks_without_values_are_given_back_at_rest() {
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
        assert_eq!(table.capacity(), full, "the next streams find memory");
        table.hibernate();
        assert!(table.capacity() <= 2 * BLOCK, "long-lived streams keep only their own blocks");
        assert_eq!((table.get(StreamId(2)), table.get(StreamId(200))), (Some(&2), Some(&200)));
        for id in [0, 1, 2, 200] {
            assert!(table.remove(StreamId(id)));
        }
        table.hibernate();
        assert_eq!((table.is_empty(), table.capacity()), (true, 0));
    }

    #[test]
    fn a_value_that_was_asked_for_last_is_gone_once_it_was_removed() {
        let mut table = Table::default();
        table.insert(StreamId(1), 1);
        assert!(table.contains(StreamId(1)) && table.remove(StreamId(1)));
        assert!(!table.contains(StreamId(1)));
    }

    #[test]
    fn a_crowd_of_streams_leaves_memory_for_a_few_behind() {
        let mut table = Table::default();
        for id in 0..10_000 {
            table.insert(StreamId(id), id);
        }
        for id in 1..10_000 {
            assert!(table.remove(StreamId(id)));
        }
        assert!(table.capacity() <= SPARE, "{}", table.capacity());
        table.hibernate();
        assert!(table.capacity() <= BLOCK && table.index.capacity() <= SPARE, "{}", table.index.capacity());
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_map(steps in proptest::collection::vec((0u64..60, 0u8..4), 0..300)) {
            let (mut table, mut model) = (Table::default(), BTreeMap::new());
            for (step, (id, what)) in steps.into_iter().enumerate() {
                match what {
                    0 => {
                        table.insert(StreamId(id), step);
                        model.insert(id, step);
                    }
                    1 => prop_assert_eq!(table.remove(StreamId(id)), model.remove(&id).is_some()),
                    2 if id == 0 => table.hibernate(),
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
