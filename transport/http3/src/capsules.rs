//! Capsules (RFC 9297 §3.2): what is said on the stream of a request beside its datagrams.

use bytes::{Buf, Bytes, BytesMut};
use hvq::transport::wire::varint;

/// The type of a capsule that is a datagram (RFC 9297 §3.5).
const DATAGRAM: u64 = 0;
/// Bytes of a datagram in a capsule: no packet holds more.
const LARGEST: u64 = 65_535;

/// Takes the bytes of a stream apart. Capsules of unknown types, and datagrams that are too large, are skipped without being
/// kept.
#[derive(Debug, Default)]
pub struct Capsules {
    buffer: BytesMut,
    /// Bytes still to be skipped.
    skip: u64,
}

impl Capsules {
    /// The next bytes of the stream came.
    pub fn push(&mut self, data: &[u8]) {
        let skipped = usize::try_from(self.skip).unwrap_or(usize::MAX).min(data.len());
        self.skip -= skipped as u64;
        self.buffer.extend_from_slice(data.get(skipped..).unwrap_or_default());
    }

    /// The next datagram that is there whole.
    pub fn datagram(&mut self) -> Option<Bytes> {
        loop {
            let (kind, first) = varint::get(&self.buffer)?;
            let (length, second) = varint::get(self.buffer.get(first..)?)?;
            let head = first + second;
            if kind != DATAGRAM || length > LARGEST {
                self.buffer.advance(head);
                let here = usize::try_from(length).unwrap_or(usize::MAX).min(self.buffer.len());
                self.buffer.advance(here);
                self.skip = length - here as u64;
                continue;
            }
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if self.buffer.len() < head + length {
                return None;
            }
            self.buffer.advance(head);
            return Some(self.buffer.split_to(length).freeze());
        }
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
}
