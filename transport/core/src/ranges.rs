//! A set of integers kept as sorted, disjoint, inclusive ranges.

use std::collections::VecDeque;
use std::fmt;
use std::ops::RangeInclusive;

/// A set of `u64`, cheap when its members are mostly consecutive: packet numbers received, bytes acknowledged.
///
/// Ranges that touch are merged. Appending at the large end and removing at the small end take constant time; other
/// changes take time in proportion to the number of ranges, which a set that the peer can grow bounds with
/// [`Ranges::limit`].
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Ranges {
    /// `(first, last)` of each range, ascending, with at least one missing integer between neighbours.
    ranges: VecDeque<(u64, u64)>,
}

impl Ranges {
    /// The empty set. Allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `n`. True if it was not there before.
    pub fn insert(&mut self, n: u64) -> bool {
        // Nearly always `n` continues the largest range.
        match self.ranges.back_mut() {
            Some((_, last)) if last.checked_add(1) == Some(n) => *last = n,
            Some((_, last)) if n <= *last => {
                if self.contains(n) {
                    return false;
                }
                self.insert_range(n..=n);
            }
            _ => self.ranges.push_back((n, n)),
        }
        true
    }

    /// Adds every integer of `range`. An empty range changes nothing.
    pub fn insert_range(&mut self, range: RangeInclusive<u64>) {
        let (mut first, mut last) = range.into_inner();
        if first > last {
            return;
        }
        let touched = self.overlapping(first.saturating_sub(1), last.saturating_add(1));
        if let Some(&(lowest, _)) = self.ranges.get(touched.start).filter(|_| !touched.is_empty()) {
            let (_, highest) = self.ranges[touched.end - 1];
            first = first.min(lowest);
            last = last.max(highest);
            self.ranges.drain(touched.start + 1..touched.end);
            self.ranges[touched.start] = (first, last);
        } else {
            self.ranges.insert(touched.start, (first, last));
        }
    }

    /// Removes every integer of `range`. An empty range changes nothing.
    pub fn remove_range(&mut self, range: RangeInclusive<u64>) {
        let (first, last) = range.into_inner();
        if first > last {
            return;
        }
        let touched = self.overlapping(first, last);
        if touched.is_empty() {
            return;
        }
        let (lowest, _) = self.ranges[touched.start];
        let (_, highest) = self.ranges[touched.end - 1];
        let at = touched.start;
        self.ranges.drain(touched);
        if highest > last {
            self.ranges.insert(at, (last + 1, highest));
        }
        if lowest < first {
            self.ranges.insert(at, (lowest, first - 1));
        }
    }

    /// Removes every integer below `n`.
    pub fn remove_below(&mut self, n: u64) {
        while let Some((first, last)) = self.ranges.front_mut() {
            if *last >= n {
                *first = n.max(*first);
                return;
            }
            self.ranges.pop_front();
        }
    }

    /// Removes and returns the range of the smallest integers.
    pub fn pop_first(&mut self) -> Option<RangeInclusive<u64>> {
        self.ranges.pop_front().map(|(first, last)| first..=last)
    }

    /// Drops the smallest ranges until at most `max_ranges` are left.
    pub fn limit(&mut self, max_ranges: usize) {
        let excess = self.ranges.len().saturating_sub(max_ranges);
        self.ranges.drain(..excess);
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Returns true if `n` is in the set.
    pub fn contains(&self, n: u64) -> bool {
        // Nearly always `n` is new, or of the largest range.
        match self.ranges.back() {
            None => false,
            Some((first, last)) if n >= *first => n <= *last,
            Some(_) => !self.overlapping(n, n).is_empty(),
        }
    }

    /// The largest integer.
    pub fn largest(&self) -> Option<u64> {
        self.ranges.back().map(|&(_, last)| last)
    }

    /// First and last of the largest integers without a gap.
    pub fn newest(&self) -> Option<(u64, u64)> {
        self.ranges.back().copied()
    }

    /// The smallest integer.
    pub fn smallest(&self) -> Option<u64> {
        self.ranges.front().map(|&(first, _)| first)
    }

    /// The ranges, ascending; `rev()` gives them descending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = RangeInclusive<u64>> + ExactSizeIterator + '_ {
        self.ranges.iter().map(|&(first, last)| first..=last)
    }

    /// Returns the number of ranges (not that of integers).
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns true if no integer is in the set.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Indices of the ranges that share an integer with `first..=last`; if there are none, an empty range of indices
    /// at the place where they would be.
    fn overlapping(&self, first: u64, last: u64) -> std::ops::Range<usize> {
        let start = self.ranges.partition_point(|&(_, end)| end < first);
        let end = self.ranges.partition_point(|&(begin, _)| begin <= last);
        start..end
    }
}

impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromIterator<RangeInclusive<u64>> for Ranges {
    fn from_iter<T: IntoIterator<Item = RangeInclusive<u64>>>(iter: T) -> Self {
        let mut ranges = Self::new();
        for range in iter {
            ranges.insert_range(range);
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[derive(Clone, Debug)]
    enum Change {
        Insert(u64),
        InsertRange(u64, u64),
        RemoveRange(u64, u64),
        RemoveBelow(u64),
        Limit(usize),
        PopFirst,
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let n = || 0..64_u64;
        let change = prop_oneof![
            4 => n().prop_map(Change::Insert),
            4 => (n(), n()).prop_map(|(a, b)| Change::InsertRange(a, b)),
            2 => (n(), n()).prop_map(|(a, b)| Change::RemoveRange(a, b)),
            1 => n().prop_map(Change::RemoveBelow),
            1 => (1..8_usize).prop_map(Change::Limit),
            1 => Just(Change::PopFirst),
        ];
        proptest::collection::vec(change, 1..60)
    }

    /// The maximal runs of consecutive integers of the model.
    fn runs(model: &BTreeSet<u64>) -> Vec<RangeInclusive<u64>> {
        let mut runs: Vec<RangeInclusive<u64>> = Vec::new();
        for &n in model {
            match runs.pop() {
                Some(run) if *run.end() + 1 == n => runs.push(*run.start()..=n),
                other => {
                    runs.extend(other);
                    runs.push(n..=n);
                }
            }
        }
        runs
    }

    fn apply(ranges: &mut Ranges, model: &mut BTreeSet<u64>, change: &Change) {
        match *change {
            Change::Insert(n) => assert_eq!(ranges.insert(n), model.insert(n)),
            Change::InsertRange(a, b) => {
                ranges.insert_range(a..=b);
                model.extend(a..=b);
            }
            Change::RemoveRange(a, b) => {
                ranges.remove_range(a..=b);
                model.retain(|n| !(a..=b).contains(n));
            }
            Change::RemoveBelow(n) => {
                ranges.remove_below(n);
                model.retain(|&m| m >= n);
            }
            Change::Limit(most) => {
                ranges.limit(most);
                let runs = runs(model);
                let kept = runs.get(runs.len().saturating_sub(most)).map(|run| *run.start());
                model.retain(|&m| kept.is_some_and(|kept| m >= kept));
            }
            Change::PopFirst => {
                let first = runs(model).first().cloned();
                assert_eq!(ranges.pop_first(), first);
                model.retain(|m| !first.as_ref().is_some_and(|first| first.contains(m)));
            }
        }
    }

    proptest! {
        #[test]
        fn ranges_agree_with_a_set_of_integers(changes in changes()) {
            let (mut ranges, mut model) = (Ranges::new(), BTreeSet::new());
            for change in &changes {
                apply(&mut ranges, &mut model, change);
                prop_assert_eq!(ranges.iter().collect::<Vec<_>>(), runs(&model));
                prop_assert_eq!(ranges.len(), runs(&model).len());
                prop_assert_eq!(ranges.is_empty(), model.is_empty());
                prop_assert_eq!(ranges.largest(), model.last().copied());
                prop_assert_eq!(ranges.smallest(), model.first().copied());
                for n in 0..66 {
                    prop_assert_eq!(ranges.contains(n), model.contains(&n));
                }
            }
        }
    }

    #[test]
    fn the_ends_of_the_integers_do_not_overflow() {
        let mut ranges = Ranges::new();
        assert!(ranges.insert(u64::MAX));
        assert!(!ranges.insert(u64::MAX));
        assert!(ranges.insert(0));
        ranges.insert_range(1..=u64::MAX - 1);
        assert_eq!(ranges.iter().collect::<Vec<_>>(), vec![0..=u64::MAX]);
        ranges.remove_range(u64::MAX..=u64::MAX);
        ranges.remove_range(0..=0);
        assert_eq!(ranges.iter().rev().collect::<Vec<_>>(), vec![1..=u64::MAX - 1]);
        ranges.remove_below(u64::MAX);
        assert!(ranges.is_empty());
    }

    #[test]
    fn the_limit_drops_the_smallest_ranges() {
        let mut ranges: Ranges = [1..=1, 3..=4, 9..=10].into_iter().collect();
        ranges.limit(2);
        assert_eq!(ranges.iter().collect::<Vec<_>>(), vec![3..=4, 9..=10]);
        ranges.clear();
        assert_eq!(ranges, Ranges::new());
    }
}
