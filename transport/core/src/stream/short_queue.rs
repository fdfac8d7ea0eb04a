//! A queue that needs no memory of its own for one element.

use std::collections::VecDeque;

/// A queue. Most streams have one piece of data at a time: their queues never go to the allocator.
#[derive(Debug)]
pub struct ShortQueue<T> {
    first: Option<T>,
    /// The elements behind `first`; none while there is none.
    rest: VecDeque<T>,
}

impl<T> Default for ShortQueue<T> {
    fn default() -> Self {
        Self { first: None, rest: VecDeque::new() }
    }
}

impl<T> ShortQueue<T> {
    /// Returns true if it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    /// Returns the number of elements behind the first that it has memory for.
    pub fn capacity(&self) -> usize {
        self.rest.capacity()
    }

    /// The element with this index, counted from the front.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        match index.checked_sub(1) {
            None => self.first.as_ref(),
            Some(behind) => self.rest.get(behind),
        }
    }

    /// The first element.
    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.first.as_ref()
    }

    /// The first element.
    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    /// The last element.
    pub fn back(&self) -> Option<&T> {
        self.rest.back().or(self.first.as_ref())
    }

    /// The last element.
    #[inline]
    pub fn back_mut(&mut self) -> Option<&mut T> {
        self.rest.back_mut().or(self.first.as_mut())
    }

    /// Appends an element.
    #[inline]
    pub fn push_back(&mut self, element: T) {
        if self.first.is_none() {
            self.first = Some(element);
        } else {
            self.rest.push_back(element);
        }
    }

    /// Takes the first element.
    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let next = self.rest.pop_front();
        std::mem::replace(&mut self.first, next)
    }

    /// Takes all elements, and the memory for those behind the first.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Gives memory back that no element needs.
    pub fn shrink_to_fit(&mut self) {
        self.rest.shrink_to_fit();
    }

    /// The elements from `index` on.
    pub fn iter_from(&self, index: usize) -> impl Iterator<Item = &T> {
        let first = self.first.iter().filter(move |_| index == 0);
        first.chain(self.rest.range(index.saturating_sub(1).min(self.rest.len())..))
    }

    /// The index of the first element of which `is_before` does not hold; it holds of all before that and of none after.
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        match &self.first {
            Some(first) if is_before(first) => 1 + self.rest.partition_point(is_before),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_element_at_a_time_needs_no_memory() {
        let mut queue = ShortQueue::default();
        for round in 0..10 {
            queue.push_back(round);
            assert_eq!((queue.pop_front(), queue.capacity(), queue.is_empty()), (Some(round), 0, true));
        }
    }

    #[test]
    fn memory_of_more_elements_is_given_back() {
        let mut queue = ShortQueue::default();
        (0..100).for_each(|element| queue.push_back(element));
        while queue.len() > 2 {
            queue.pop_front();
        }
        let full = queue.capacity();
        queue.shrink_to_fit();
        assert!(full >= 99 && queue.capacity() < 99, "{full} and {}", queue.capacity());
        queue.clear();
        assert_eq!((queue.capacity(), queue.len(), queue.pop_front()), (0, 0, None));
    }

    proptest! {
        #[test]
        fn it_agrees_with_an_ordinary_queue(steps in proptest::collection::vec(any::<bool>(), 0..80)) {
            let (mut queue, mut model) = (ShortQueue::default(), VecDeque::new());
            for (step, pushes) in steps.into_iter().enumerate() {
                if pushes {
                    queue.push_back(step);
                    model.push_back(step);
                } else {
                    prop_assert_eq!(queue.pop_front(), model.pop_front());
                }
                prop_assert_eq!((queue.len(), queue.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!((queue.front(), queue.back()), (model.front(), model.back()));
                prop_assert_eq!(queue.back_mut().copied(), model.back().copied());
                for index in 0..model.len() + 2 {
                    prop_assert_eq!(queue.get(index), model.get(index));
                    let rest: Vec<_> = queue.iter_from(index).collect();
                    prop_assert_eq!(rest, model.iter().skip(index).collect::<Vec<_>>());
                }
                for bound in 0..=step {
                    let before = |element: &usize| *element < bound;
                    prop_assert_eq!(queue.partition_point(before), model.partition_point(before));
                }
            }
        }
    }
}
