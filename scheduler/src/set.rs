//! A set of paths, small enough to copy.

/// A set of indices into the `paths` slice of one [`place`](crate::Scheduler::place) call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PathSet(u64);

impl PathSet {
    /// The maximum number of paths in a slice.
    pub const CAPACITY: usize = 64;
    /// No path.
    pub const EMPTY: Self = Self(0);

    /// The set as a bit mask, bit 0 for index 0.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The first `count` paths; a count of more than [`Self::CAPACITY`] is that.
    pub const fn first(count: usize) -> Self {
        if count >= Self::CAPACITY { Self(u64::MAX) } else { Self((1 << count) - 1) }
    }

    /// Adds the path at `index`; an index of [`Self::CAPACITY`] or more is ignored.
    pub const fn insert(&mut self, index: usize) {
        if index < Self::CAPACITY {
            self.0 |= 1 << index;
        }
    }

    /// Returns true if the path at `index` is in the set.
    pub const fn contains(self, index: usize) -> bool {
        index < Self::CAPACITY && self.0 & (1 << index) != 0
    }

    /// The paths in either set.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The paths in both sets.
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The paths of this set that are not in the other.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Number of paths in the set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns true if the set holds no path.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The indices in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let index = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (index < Self::CAPACITY).then_some(index)
        })
    }
}

impl FromIterator<usize> for PathSet {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Self {
        let mut set = Self::EMPTY;
        for index in indices {
            set.insert(index);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_lists_what_was_inserted_in_order() {
        let set: PathSet = [63, 0, 7, 7, 64, 1000].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 7, 63]);
        assert_eq!(set.len(), 3);
        assert!(set.contains(63) && !set.contains(64) && !set.contains(1));
        assert!(PathSet::EMPTY.is_empty() && PathSet::EMPTY.iter().next().is_none());
        assert_eq!(set.bits(), 1 | 1 << 7 | 1 << 63);
    }

    #[test]
    fn the_first_paths_are_those_with_the_smallest_indices() {
        for count in [0, 1, 2, 63, 64, 1000] {
            assert_eq!(PathSet::first(count), (0..count).collect(), "{count}");
        }
    }
}
