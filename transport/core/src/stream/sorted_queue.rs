//! A small ordered set in one piece of memory.

use std::collections::VecDeque;

/// Distinct elements in ascending order. They mostly come at the end and go at the front, where that costs next to nothing;
/// elsewhere it costs as much as there are elements to the nearer end.
#[derive(Debug)]
pub struct SortedQueue<T> {
    elements: VecDeque<T>,
}

impl<T> Default for SortedQueue<T> {
    fn default() -> Self {
        Self { elements: VecDeque::new() }
    }
}

impl<T: Ord + Copy> SortedQueue<T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Returns true if it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// The smallest element.
    #[inline]
    pub fn first(&self) -> Option<T> {
        self.elements.front().copied()
    }

    /// The smallest element that is larger than `other`.
    pub fn next(&self, other: T) -> Option<T> {
        self.elements.get(self.elements.partition_point(|element| *element <= other)).copied()
    }

    /// Adds an element, unless it is there.
    pub fn insert(&mut self, element: T) {
        if self.elements.back().is_none_or(|last| *last < element) {
            return self.elements.push_back(element);
        }
        if let Err(index) = self.elements.binary_search(&element) {
            self.elements.insert(index, element);
        }
    }

    /// Removes an element, if it is there.
    pub fn remove(&mut self, element: T) {
        if self.elements.front() == Some(&element) {
            self.elements.pop_front();
        } else if let Ok(index) = self.elements.binary_search(&element) {
            self.elements.remove(index);
        }
        if self.elements.is_empty() && self.elements.capacity() > SPARE {
            self.elements = VecDeque::new();
        }
    }
}

/// Places that are kept when the last element is gone.
const SPARE: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_agrees_with_a_tree(steps in proptest::collection::vec((0u32..40, any::<bool>()), 0..120)) {
            let (mut queue, mut model) = (SortedQueue::default(), BTreeSet::new());
            for (element, inserts) in steps {
                if inserts {
                    queue.insert(element);
                    model.insert(element);
                } else {
                    queue.remove(element);
                    model.remove(&element);
                }
                prop_assert_eq!((queue.len(), queue.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!(queue.first(), model.first().copied());
                prop_assert_eq!(queue.next(element), model.range(element + 1..).next().copied());
            }
        }
    }
}
