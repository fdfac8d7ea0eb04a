//! A packet under way, ordered by when it leaves and then by when it came.

use std::cmp::Ordering;

use super::Departure;

#[derive(Debug)]
pub(super) struct Flying<T> {
    pub(super) departure: Departure<T>,
    /// Distinct for each packet of a link.
    pub(super) sequence: u64,
}

impl<T> Ord for Flying<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.departure.at, self.sequence).cmp(&(other.departure.at, other.sequence))
    }
}

impl<T> PartialOrd for Flying<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Flying<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Flying<T> {}
