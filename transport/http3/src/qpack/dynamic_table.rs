//! The dynamic table (RFC 9204 §3.2): what was inserted last, within a capacity.

use super::{FIELD_OVERHEAD, Field};
use std::collections::VecDeque;

/// Fields by their absolute index: that of the first that was ever inserted is 0 (RFC 9204 §3.2.4).
#[derive(Debug, Default)]
pub(super) struct DynamicTable {
    entries: VecDeque<Field>,
    /// The sum of the sizes of the entries, in bytes.
    size: u64,
    capacity: u64,
    inserted: u64,
}

/// An entry is larger than the capacity of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TooLarge;

/// The bytes that a field takes of the capacity (RFC 9204 §3.2.1).
pub(super) fn size(name: &[u8], value: &[u8]) -> u64 {
    name.len() as u64 + value.len() as u64 + FIELD_OVERHEAD
}

impl DynamicTable {
    /// The number of insertions since the beginning (Insert Count).
    pub(super) fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The absolute index of the oldest entry, or of the next insertion if there is none.
    pub(super) fn oldest(&self) -> u64 {
        self.inserted - self.entries.len() as u64
    }

    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// The entry with an absolute index, unless it was evicted or is not there yet.
    pub(super) fn get(&self, absolute: u64) -> Option<&Field> {
        let place = absolute.checked_sub(self.oldest())?;
        self.entries.get(usize::try_from(place).ok()?)
    }

    /// Sets the capacity, and evicts what has no room in it (RFC 9204 §3.2.2).
    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        while self.size > capacity && self.evict().is_some() {}
        if capacity == 0 {
            self.entries = VecDeque::new();
        }
    }

    /// Inserts an entry, and evicts the oldest for it; they remain as they are if it is larger than the capacity.
    pub(super) fn insert(&mut self, field: Field) -> Result<u64, TooLarge> {
        let size = size(&field.name, &field.value);
        let room = self.capacity.checked_sub(size).ok_or(TooLarge)?;
        while self.size > room && self.evict().is_some() {}
        self.size += size;
        self.entries.push_back(field);
        self.inserted += 1;
        Ok(self.inserted - 1)
    }

    /// Takes the oldest entry out.
    pub(super) fn evict(&mut self) -> Option<Field> {
        let field = self.entries.pop_front()?;
        self.size -= size(&field.name, &field.value);
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &'static str, value: &'static str) -> Field {
        Field { name: name.into(), value: value.into() }
    }

    #[test]
    fn the_oldest_entries_give_way() {
        let mut table = DynamicTable::default();
        assert_eq!(table.insert(field("", "")), Err(TooLarge));
        table.set_capacity(80);
        assert_eq!(table.insert(field("a", "1")), Ok(0));
        assert_eq!(table.insert(field("b", "22")), Ok(1));
        assert_eq!((table.size(), table.oldest(), table.inserted()), (34 + 35, 0, 2));
        assert_eq!(table.insert(field("c", "")), Ok(2));
        assert_eq!((table.size(), table.oldest()), (35 + 33, 1));
        assert_eq!((table.get(0), table.get(1), table.get(3)), (None, Some(&field("b", "22")), None));
        // RFC 9204 §3.2.2: an entry that is too large leaves the table as it is.
        assert_eq!(
            table.insert(field("", "a value of forty-nine bytes, which is one too many")),
            Err(TooLarge)
        );
        assert_eq!(table.oldest(), 1);
        table.set_capacity(33);
        assert_eq!((table.oldest(), table.size()), (2, 33));
        table.set_capacity(0);
        assert_eq!((table.oldest(), table.size()), (3, 0));
    }
}
