//! Values over disjoint half-open ranges of offsets.

use std::collections::BTreeMap;
use std::ops::Range;

/// A map from offsets to values, stored as ranges: adjacent ranges with equal values are one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeMap<T> {
    /// Start to end and value; ranges are not empty and do not overlap.
    ranges: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for RangeMap<T> {
    fn default() -> Self {
        Self { ranges: BTreeMap::new() }
    }
}

impl<T: Copy + PartialEq> RangeMap<T> {
    /// Whether no offset has a value.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of ranges.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The range with the smallest offsets.
    pub fn first(&self) -> Option<(Range<u64>, T)> {
        self.ranges.first_key_value().map(|(&start, &(end, value))| (start..end, value))
    }

    /// Gives every offset in `range` this value, in place of what it had.
    pub fn set(&mut self, range: Range<u64>, value: T) {
        if range.is_empty() {
            return;
        }
        self.clear(range.clone());
        let Range { mut start, mut end } = range;
        if let Some((&before, &(before_end, before_value))) = self.ranges.range(..start).next_back()
            && before_end == start
            && before_value == value
        {
            start = before;
        }
        if let Some(&(after_end, after_value)) = self.ranges.get(&end)
            && after_value == value
        {
            self.ranges.remove(&end);
            end = after_end;
        }
        self.ranges.insert(start, (end, value));
    }

    /// Takes the values of all offsets in `range` away.
    pub fn clear(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        if let Some((&start, &(end, value))) = self.ranges.range(..range.start).next_back()
            && end > range.start
        {
            self.ranges.insert(start, (range.start, value));
            if end > range.end {
                self.ranges.insert(range.end, (end, value));
            }
        }
        while let Some((&start, &(end, value))) = self.ranges.range(range.clone()).next() {
            self.ranges.remove(&start);
            if end > range.end {
                self.ranges.insert(range.end, (end, value));
            }
        }
    }

    /// `range` cut into the longest pieces that have one value, or none, in ascending order.
    pub fn pieces(&self, range: Range<u64>) -> Vec<(Range<u64>, Option<T>)> {
        let mut pieces = Vec::new();
        let mut at = range.start;
        let first = self.ranges.range(..=range.start).next_back().map_or(range.start, |(&start, _)| start);
        for (&start, &(end, value)) in self.ranges.range(first..range.end.max(first)) {
            let (from, to) = (start.max(range.start), end.min(range.end));
            if from >= to {
                continue;
            }
            if at < from {
                pieces.push((at..from, None));
            }
            pieces.push((from..to, Some(value)));
            at = to;
        }
        if at < range.end {
            pieces.push((at..range.end, None));
        }
        pieces
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
                let part: Vec<_> = map.pieces(30..50).into_iter().flat_map(|(r, v)| r.map(move |_| v)).collect();
                prop_assert_eq!(&part[..], &model[30..50]);
                let runs = map.pieces(0..100);
                prop_assert!(runs.windows(2).all(|pair| pair[0].1 != pair[1].1), "not merged: {:?}", runs);
            }
        }
    }
}
