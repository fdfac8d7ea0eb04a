//! Sections that refer to the dynamic table and were not acknowledged (RFC 9204 §2.1.1).

use std::collections::{BTreeMap, HashMap, VecDeque};

/// Sections that may wait for their acknowledgement: further ones do without the table (attacks.md H10, K16).
const MOST_SECTIONS: usize = 256;

/// The entries that a section refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reference {
    /// The insertions that it needs (Required Insert Count).
    pub(super) required: u64,
    /// The least absolute index.
    pub(super) least: u64,
}

/// The sections of all streams.
#[derive(Debug, Default)]
pub(super) struct References {
    /// By stream, in the order of their sections.
    streams: HashMap<u64, VecDeque<Reference>>,
    /// The number of sections by their least index.
    least: BTreeMap<u64, usize>,
    sections: usize,
}

impl References {
    /// Returns true if no further section may refer to the table.
    pub(super) fn is_full(&self) -> bool {
        self.sections >= MOST_SECTIONS
    }

    /// The least index that any section refers to: it cannot be evicted, and neither can what came later.
    pub(super) fn least(&self) -> Option<u64> {
        self.least.first_key_value().map(|(least, _)| *least)
    }

    pub(super) fn add(&mut self, stream: u64, reference: Reference) {
        self.streams.entry(stream).or_default().push_back(reference);
        *self.least.entry(reference.least).or_default() += 1;
        self.sections += 1;
    }

    /// Takes the first section of `stream` out, and returns the insertions that it needed; `None` if there is none.
    pub(super) fn acknowledge(&mut self, stream: u64) -> Option<u64> {
        let sections = self.streams.get_mut(&stream)?;
        let reference = sections.pop_front()?;
        if sections.is_empty() {
            self.streams.remove(&stream);
        }
        self.forget(reference);
        Some(reference.required)
    }

    /// Takes all sections of `stream` out.
    pub(super) fn cancel(&mut self, stream: u64) {
        for reference in self.streams.remove(&stream).unwrap_or_default() {
            self.forget(reference);
        }
    }

    /// Returns true if `stream` may be blocked by insertions beyond those that are `known` to the peer.
    pub(super) fn is_blocked(&self, stream: u64, known: u64) -> bool {
        self.streams.get(&stream).is_some_and(|sections| is_blocked(sections, known))
    }

    /// The number of streams that may be blocked.
    pub(super) fn blocked(&self, known: u64) -> u64 {
        self.streams.values().filter(|sections| is_blocked(sections, known)).count() as u64
    }

    fn forget(&mut self, reference: Reference) {
        self.sections -= 1;
        if let Some(count) = self.least.get_mut(&reference.least) {
            *count -= 1;
            if *count == 0 {
                self.least.remove(&reference.least);
            }
        }
    }
}

fn is_blocked(sections: &VecDeque<Reference>, known: u64) -> bool {
    sections.iter().any(|section| section.required > known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_referred_to_is_known_until_its_section_is_acknowledged_or_cancelled() {
        let mut references = References::default();
        references.add(0, Reference { required: 5, least: 2 });
        references.add(0, Reference { required: 9, least: 1 });
        references.add(4, Reference { required: 7, least: 3 });
        assert_eq!((references.least(), references.blocked(6), references.blocked(7)), (Some(1), 2, 1));
        assert!(references.is_blocked(0, 8) && !references.is_blocked(0, 9) && !references.is_blocked(8, 0));
        assert_eq!((references.acknowledge(0), references.least()), (Some(5), Some(1)));
        references.cancel(0);
        assert_eq!((references.acknowledge(0), references.least()), (None, Some(3)));
        assert_eq!((references.acknowledge(4), references.least()), (Some(7), None));
        assert_eq!(references.sections, 0);
    }
}
