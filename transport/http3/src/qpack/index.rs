//! Places of fields in the encoder's dynamic table, and the decision for which fields a place is worth its bytes.

use super::Field;
use super::dynamic_table::DynamicTable;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

/// Fields whose values differ from message to message.
const UNSTABLE: [&str; 16] = [
    ":path",
    "age",
    "content-length",
    "content-range",
    "date",
    "etag",
    "expires",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "last-modified",
    "location",
    "range",
    "set-cookie",
    "traceparent",
    "x-request-id",
];

/// Fields that are remembered as seen once.
const REMEMBERED: usize = 64;

/// The entries that hold one field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// The absolute index of the newest.
    pub(super) newest: u64,
    /// The index of the entry of which it is a duplicate.
    pub(super) original: Option<u64>,
}

/// Absolute indices by the hashes of fields and of names.
#[derive(Debug, Default)]
pub(super) struct Index {
    hasher: RandomState,
    fields: HashMap<u64, Place>,
    names: HashMap<u64, u64>,
    /// Hashes of fields that were seen once.
    seen: VecDeque<u64>,
}

impl Index {
    /// The entries of `table` that have this name and value.
    pub(super) fn field(&self, table: &DynamicTable, name: &[u8], value: &[u8]) -> Option<Place> {
        let place = *self.fields.get(&self.hasher.hash_one((name, value)))?;
        let field = table.get(place.newest)?;
        (field.name == name && field.value == value).then_some(place)
    }

    /// The newest entry of `table` that has this name.
    pub(super) fn name(&self, table: &DynamicTable, name: &[u8]) -> Option<u64> {
        let newest = *self.names.get(&self.hasher.hash_one(name))?;
        (table.get(newest)?.name == name).then_some(newest)
    }

    /// Notes that the entry `newest` holds `field`, which that of `original` holds, too.
    pub(super) fn add(&mut self, field: &Field, newest: u64, original: Option<u64>) {
        let hash = self.hasher.hash_one((&field.name[..], &field.value[..]));
        self.fields.insert(hash, Place { newest, original });
        self.names.insert(self.hasher.hash_one(&field.name[..]), newest);
    }

    /// Notes that the entry `absolute`, which held `field`, was evicted.
    pub(super) fn remove(&mut self, field: &Field, absolute: u64) {
        let hash = self.hasher.hash_one((&field.name[..], &field.value[..]));
        if self.fields.get(&hash).is_some_and(|place| place.newest == absolute) {
            self.fields.remove(&hash);
        }
        let hash = self.hasher.hash_one(&field.name[..]);
        if self.names.get(&hash) == Some(&absolute) {
            self.names.remove(&hash);
        }
    }

    /// Returns true if a field that is not in `table` is likely to come again. A field whose value tends to change, by its name
    /// or because the table has another value of the name, is so when it comes for the second time.
    pub(super) fn is_worth(&mut self, table: &DynamicTable, name: &str, value: &[u8]) -> bool {
        if !UNSTABLE.contains(&name) && self.name(table, name.as_bytes()).is_none() {
            return true;
        }
        let hash = self.hasher.hash_one((name.as_bytes(), value));
        if self.seen.contains(&hash) {
            return true;
        }
        if self.seen.len() >= REMEMBERED {
            self.seen.pop_front();
        }
        self.seen.push_back(hash);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_whose_value_changes_has_to_come_twice() {
        let (mut index, mut table) = (Index::default(), DynamicTable::default());
        table.set_capacity(1000);
        assert!(!index.is_worth(&table, ":path", b"/a") && index.is_worth(&table, ":path", b"/a"));
        assert!(index.is_worth(&table, "cookie", b"a=1"));
        let field = Field { name: "cookie".into(), value: "a=1".into() };
        table.insert(field.clone()).unwrap();
        index.add(&field, 0, None);
        assert!(!index.is_worth(&table, "cookie", b"a=2") && index.is_worth(&table, "cookie", b"a=2"));
        for number in 0..1000u32 {
            assert!(!index.is_worth(&table, ":path", &number.to_be_bytes()));
        }
        assert_eq!(index.seen.len(), REMEMBERED);
    }
}
