//! The sink that frames are written to: a buffer, or a counter of bytes, so that size and content cannot disagree.

use crate::PathId;
use crate::wire::varint;

/// Takes the fields of a frame.
pub(super) trait Sink {
    fn bytes(&mut self, bytes: &[u8]);
    fn varint(&mut self, value: u64);
    fn zeros(&mut self, count: usize);

    fn varints(&mut self, values: &[u64]) {
        values.iter().for_each(|&value| self.varint(value));
    }

    fn prefixed(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.bytes(bytes);
    }

    /// The path ID of a frame of the multipath extension; frames of RFC 9000 have none.
    fn path(&mut self, path: Option<PathId>) {
        if let Some(path) = path {
            self.varint(path.0.into());
        }
    }
}

impl Sink for Vec<u8> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn varint(&mut self, value: u64) {
        varint::put(self, value);
    }

    fn zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }
}

/// The fields in front of a frame's data: of a few bytes each, and together at most as many as this holds.
#[derive(Default)]
pub(super) struct Head {
    bytes: [u8; 32],
    length: usize,
}

impl Head {
    pub(super) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl Sink for Head {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        let place = self.bytes.get_mut(self.length..self.length + bytes.len());
        debug_assert!(place.is_some(), "the head of a frame is longer than any");
        if let Some(place) = place {
            place.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }

    #[inline]
    fn varint(&mut self, value: u64) {
        varint::encode(value, |bytes| self.bytes(bytes));
    }

    fn zeros(&mut self, count: usize) {
        (0..count).for_each(|_| self.bytes(&[0]));
    }
}

/// Counts what it is given.
#[derive(Default)]
pub(super) struct Counter {
    pub(super) bytes: usize,
}

impl Sink for Counter {
    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
    }

    fn varint(&mut self, value: u64) {
        self.bytes += varint::size(value);
    }

    fn zeros(&mut self, count: usize) {
        self.bytes += count;
    }
}
