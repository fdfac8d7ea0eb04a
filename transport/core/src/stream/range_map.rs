//! Values over disjoint half-open ranges of offsets.

use std::collections::VecDeque;
use std::ops::Range;

/// A range that has one value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry<T> {
    start: u64,
    end: u64,
    value: T,
}

/// A map from offsets to values, stored as ranges: adjacent ranges with equal values are one.
///
/// Nearly always there are none or a few, and they change at the front or the back: a flat queue is faster than a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeMap<T> {
    /// Ascending; ranges are not empty and do not overlap.
    ranges: VecDeque<Entry<T>>,
}

impl<T> Default for RangeMap<T> {
    fn default() -> Self {
        Self { ranges: VecDeque::new() }
    }
}

impl<T: Copy + PartialEq> RangeMap<T> {
    /// Returns true if no offset has a value.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of ranges.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The range with the smallest offsets.
    pub fn first(&self) -> Option<(Range<u64>, T)> {
        self.ranges.front().map(|entry| (entry.start..entry.end, entry.value))
    }

    /// Gives every offset in `range` this value, in place of what it had.
    pub fn set(&mut self, range: Range<u64>, value: T) {
        if range.is_empty() {
            return;
        }
        self.clear(range.clone());
        let at = self.first_behind(range.start);
        let joins_before = at
            .checked_sub(1)
            .and_then(|before| self.ranges.get(before))
            .is_some_and(|before| before.end == range.start && before.value == value);
        let joins_after =
            self.ranges.get(at).is_some_and(|after| after.start == range.end && after.value == value);
        match (joins_before, joins_after) {
            (true, true) => {
                let after = self.ranges.remove(at).map_or(range.end, |after| after.end);
                self.ranges[at - 1].end = after;
            }
            (true, false) => self.ranges[at - 1].end = range.end,
            (false, true) => self.ranges[at].start = range.start,
            (false, false) => {
                self.ranges.insert(at, Entry { start: range.start, end: range.end, value });
            }
        }
    }

    /// Takes the values of all offsets in `range` away.
    pub fn clear(&mut self, range: Range<u64>) {
        if range.is_empty() || self.ranges.is_empty() {
            return;
        }
        let mut from = self.first_behind(range.start);
        let Some(first) = self.ranges.get_mut(from).filter(|first| first.start < range.end) else { return };
        if first.start < range.start {
            let rest = Entry { start: range.end, ..*first };
            first.end = range.start;
            from += 1;
            if rest.start < rest.end {
                return self.ranges.insert(from, rest);
            }
        }
        let to = from + self.ranges.range(from..).take_while(|entry| entry.end <= range.end).count();
        if let Some(last) = self.ranges.get_mut(to) {
            last.start = last.start.max(range.end);
        }
        self.ranges.drain(from..to);
    }

    /// `range` cut into the longest pieces that have one value, or none, in ascending order.
    pub fn pieces(&self, range: Range<u64>) -> Vec<(Range<u64>, Option<T>)> {
        let mut pieces = Vec::new();
        let mut at = range.start;
        for entry in self.ranges.range(self.first_behind(range.start)..) {
            let (from, to) = (entry.start.max(range.start), entry.end.min(range.end));
            if from >= to {
                break;
            }
            if at < from {
                pieces.push((at..from, None));
            }
            pieces.push((from..to, Some(entry.value)));
            at = to;
        }
        if at < range.end {
            pieces.push((at..range.end, None));
        }
        pieces
    }

    /// The index of the first range that ends behind `offset`.
    fn first_behind(&self, offset: u64) -> usize {
        match self.ranges.front() {
            None => 0,
            Some(first) if first.end > offset => 0,
            Some(_) => self.ranges.partition_point(|entry| entry.end <= offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_neighbours_become_one_range() {
        let mut map = RangeMap::default();
        map.set(0..10, 'a');
        map.set(20..30, 'a');
        map.set(10..20, 'a');
        assert_eq!((map.len(), map.first()), (1, Some((0..30, 'a'))));
        map.set(5..8, 'b');
        assert_eq!(
            map.pieces(0..40),
            [(0..5, Some('a')), (5..8, Some('b')), (8..30, Some('a')), (30..40, None)]
        );
    }

    proptest! {
        #[test]
        fn it_agrees_with_an_array(steps in proptest::collection::vec((0u64..64, 0u64..20, 0u8..4), 0..60)) {
            let mut map = RangeMap::default();
            let mut model = [None; 100];
            for (start, length, value) in steps {
                let cells = &mut model[start as usize..(start + length) as usize];
                if value == 0 {
                    map.clear(start..start + length);
                    cells.fill(None);
                } else {
                    map.set(start..start + length, value);
                    cells.fill(Some(value));
                }
                let mut flat = Vec::new();
                for (range, value) in map.pieces(0..100) {
                    flat.extend(range.map(|_| value));
                }
                prop_assert_eq!(&flat[..], &model[..]);
                prop_assert_eq!(map.is_empty(), model.iter().all(Option::is_none));
                let part: Vec<_> = map.pieces(30..50).into_iter().flat_map(|(r, v)| r.map(move |_| v)).collect();
                prop_assert_eq!(&part[..], &model[30..50]);
                prop_assert!(map.pieces(30..50).iter().all(|(range, _)| !range.is_empty()));
                let runs = map.pieces(0..100);
                prop_assert!(runs.windows(2).all(|pair| pair[0].1 != pair[1].1), "not merged: {:?}", runs);
            }
        }
    }
}
