//! Capsules (RFC 9297 §3.2): messages on the stream of a request. Datagrams, and whatever protocols add.

use bytes::{Buf, Bytes, BytesMut};
use hvq::transport::wire::varint;

/// The type of a capsule that is a datagram (RFC 9297 §3.5).
pub const DATAGRAM: u64 = 0;
/// Bytes of a datagram in a capsule: no packet holds more.
const LARGEST: u64 = 65_535;

/// A capsule: a type and a value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawCapsule {
    /// Its type (the registry "HTTP Capsule Types").
    pub kind: u64,
    /// Its value.
    pub value: Bytes,
}

impl RawCapsule {
    /// Appends it to `buffer`, with its type and its length in front.
    pub fn put(&self, buffer: &mut Vec<u8>) {
        varint::put(buffer, self.kind);
        varint::put(buffer, self.value.len() as u64);
        buffer.extend_from_slice(&self.value);
    }
}

/// A capsule of a known type that is longer than it may be. It is skipped without being kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a capsule of type {kind} has {length} bytes")]
pub struct CapsuleTooLong {
    /// Its type.
    pub kind: u64,
    /// The length that it claims, in bytes.
    pub length: u64,
}

/// Takes the bytes of a stream apart. Capsules of unknown types are skipped without being kept, so that its memory is bounded
/// whatever lengths claim.
#[derive(Debug)]
pub struct Capsules {
    known: &'static [u64],
    longest: u64,
    buffer: BytesMut,
    /// Bytes still to be skipped.
    skip: u64,
}

impl Default for Capsules {
    /// Knows datagrams of up to 65,535 bytes.
    fn default() -> Self {
        Self::of(&[DATAGRAM], LARGEST)
    }
}

impl Capsules {
    /// Knows the types `known`, with values of up to `longest` bytes.
    pub fn of(known: &'static [u64], longest: u64) -> Self {
        Self { known, longest, buffer: BytesMut::new(), skip: 0 }
    }

    /// The next bytes of the stream came.
    pub fn push(&mut self, data: &[u8]) {
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(data.len());
        self.skip -= skipped as u64;
        self.buffer.extend_from_slice(data.get(skipped..).unwrap_or_default());
    }

    /// The next datagram that is there whole. Other capsules, and datagrams that are too large, are passed over.
    pub fn datagram(&mut self) -> Option<Bytes> {
        loop {
            if let Ok(RawCapsule { kind: DATAGRAM, value }) = self.next_capsule()? {
                return Some(value);
            }
        }
    }

    /// The next capsule of a known type that is there whole; `None` until more comes (RFC 9297 §3.2).
    ///
    /// # Errors
    /// It is too long. What follows it can be read all the same.
    pub fn next_capsule(&mut self) -> Option<Result<RawCapsule, CapsuleTooLong>> {
        loop {
            let (kind, first) = varint::get(&self.buffer)?;
            let (length, second) = varint::get(self.buffer.get(first..)?)?;
            let (head, known) = (first + second, self.known.contains(&kind));
            if !known || length > self.longest {
                self.buffer.advance(head);
                let here = usize::try_from(length).unwrap_or(usize::MAX).min(self.buffer.len());
                self.buffer.advance(here);
                self.skip = length - here as u64;
                match known {
                    true => return Some(Err(CapsuleTooLong { kind, length })),
                    false => continue,
                }
            }
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if self.buffer.len() < head + length {
                return None;
            }
            self.buffer.advance(head);
            return Some(Ok(RawCapsule { kind, value: self.buffer.split_to(length).freeze() }));
        }
    }

    /// Bytes that are kept until their capsule is whole.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Returns true if the stream may end here (RFC 9297 §3.3: a capsule that is cut short is malformed).
    pub fn is_complete(&self) -> bool {
        self.buffer.is_empty() && self.skip == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_found_among_others_however_the_bytes_come() {
        let bytes = [0, 2, b'a', b'b', 0x17, 3, 1, 2, 3, 0, 0, 0x40, 0, 1, b'c'];
        // The 0x40 0x00 is a type 0 written in two bytes.
        for size in 1..=bytes.len() {
            let (mut capsules, mut found) = (Capsules::default(), Vec::new());
            for part in bytes.chunks(size) {
                capsules.push(part);
                found.extend(std::iter::from_fn(|| capsules.datagram()));
            }
            assert_eq!(found, [&b"ab"[..], b"", b"c"], "{size}");
            assert!(capsules.is_complete());
        }
    }

    #[test]
    fn an_unknown_capsule_of_a_terabyte_is_skipped_without_being_kept() {
        // H23.
        let mut capsules = Capsules::default();
        let mut head = vec![0x17];
        varint::put(&mut head, 1 << 40);
        capsules.push(&head);
        for _ in 0..1000 {
            assert_eq!(capsules.datagram(), None);
            capsules.push(&[0; 16_384]);
        }
        assert!(capsules.buffer.capacity() < 65_536 && !capsules.is_complete());
        let mut capsules = Capsules::default();
        capsules.push(&[0, 0x80, 1, 0, 0]);
        capsules.push(&[7; 65_536]);
        assert_eq!(capsules.datagram(), None);
        capsules.push(&[0, 1, 9]);
        assert_eq!(capsules.datagram().unwrap(), &[9][..]);
    }

    #[test]
    fn a_capsule_of_the_longest_value_is_kept_until_it_is_whole_and_no_longer_one() {
        for (length, kept) in [(4, 3), (5, 0)] {
            let mut bytes = Vec::new();
            RawCapsule { kind: 7, value: vec![1; length].into() }.put(&mut bytes);
            let mut capsules = Capsules::of(&[7], 4);
            capsules.push(&bytes[..3]);
            let first = capsules.next_capsule();
            assert_eq!(capsules.buffered(), kept, "{length} bytes");
            capsules.push(&bytes[3..]);
            match length {
                4 => assert_eq!(
                    capsules.next_capsule().map(|whole| whole.map(|it| it.value.len())),
                    Some(Ok(4))
                ),
                _ => assert_eq!(first, Some(Err(CapsuleTooLong { kind: 7, length: 5 }))),
            }
            assert!(capsules.is_complete());
        }
    }
}
