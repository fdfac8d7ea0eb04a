//! Reading from a buffer that may end at any byte.

use super::varint;
use bytes::{Buf, Bytes};

/// The bytes ended before the value did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("truncated")]
pub struct Truncated;

/// Takes values off the front of a buffer that is shared, not copied. A read that fails consumes nothing, except that
/// [`Reader::prefixed`] may have consumed its length.
#[derive(Clone, Debug)]
pub struct Reader {
    bytes: Bytes,
}

impl Reader {
    /// Reads from `bytes`.
    pub fn new(bytes: Bytes) -> Self {
        Self { bytes }
    }

    /// Bytes that are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if no byte is left.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes that are left, without consuming them.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        self.borrowed(|reader| reader.u8())
    }

    /// A 16-bit integer, big endian.
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        self.array().map(u16::from_be_bytes)
    }

    /// A 32-bit integer, big endian.
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_be_bytes)
    }

    /// A variable-length integer (RFC 9000 §16), in any of its forms.
    pub fn varint(&mut self) -> Result<u64, Truncated> {
        self.borrowed(|reader| reader.varint())
    }

    /// The next `n` bytes, without copying them.
    pub fn bytes(&mut self, n: usize) -> Result<Bytes, Truncated> {
        if n > self.bytes.len() {
            return Err(Truncated);
        }
        Ok(self.bytes.split_to(n))
    }

    /// A variable-length integer and as many bytes as it says, without copying them.
    pub fn prefixed(&mut self) -> Result<Bytes, Truncated> {
        let length = self.varint()?;
        self.bytes(usize::try_from(length).map_err(|_| Truncated)?)
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        self.borrowed(|reader| reader.array())
    }

    /// Reads with a [`SliceReader`] and consumes what that consumed, unless it failed.
    fn borrowed<T>(
        &mut self,
        read: impl FnOnce(&mut SliceReader<'_>) -> Result<T, Truncated>,
    ) -> Result<T, Truncated> {
        let mut slice = SliceReader::new(&self.bytes);
        let value = read(&mut slice)?;
        let consumed = self.bytes.len() - slice.remaining();
        self.bytes.advance(consumed);
        Ok(value)
    }
}

/// Takes values off the front of a borrowed slice. A read that fails consumes nothing, except that
/// [`SliceReader::prefixed`] may have consumed its length.
#[derive(Clone, Copy, Debug)]
pub struct SliceReader<'a> {
    bytes: &'a [u8],
}

impl<'a> SliceReader<'a> {
    /// Reads from `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Bytes that are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Returns true if no byte is left.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8, Truncated> {
        self.array().map(|[byte]| byte)
    }

    /// A 16-bit integer, big endian.
    pub fn u16(&mut self) -> Result<u16, Truncated> {
        self.array().map(u16::from_be_bytes)
    }

    /// A 32-bit integer, big endian.
    pub fn u32(&mut self) -> Result<u32, Truncated> {
        self.array().map(u32::from_be_bytes)
    }

    /// A variable-length integer (RFC 9000 §16), in any of its forms.
    pub fn varint(&mut self) -> Result<u64, Truncated> {
        let (value, size) = varint::get(self.bytes).ok_or(Truncated)?;
        self.bytes(size)?;
        Ok(value)
    }

    /// The next `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], Truncated> {
        let (taken, rest) = self.bytes.split_at_checked(n).ok_or(Truncated)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// A variable-length integer and as many bytes as it says.
    pub fn prefixed(&mut self) -> Result<&'a [u8], Truncated> {
        let length = self.varint()?;
        self.bytes(usize::try_from(length).map_err(|_| Truncated)?)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Truncated> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(Truncated)?;
        self.bytes = rest;
        Ok(*taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_come_off_the_front_in_order() {
        let mut reader =
            Reader::new(Bytes::from_static(&[1, 0, 2, 0, 0, 0, 3, 0x7b, 0xbd, 2, 8, 9, 7, 6, 5]));
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(reader.u16(), Ok(2));
        assert_eq!(reader.u32(), Ok(3));
        assert_eq!(reader.varint(), Ok(15_293));
        assert_eq!(reader.prefixed(), Ok(Bytes::from_static(&[8, 9])));
        assert_eq!(reader.array(), Ok([7]));
        assert_eq!(reader.as_slice(), [6, 5]);
        assert_eq!(reader.rest(), Bytes::from_static(&[6, 5]));
        assert!(reader.is_empty());
        assert_eq!(reader.u8(), Err(Truncated));
    }

    #[test]
    fn a_failed_read_consumes_nothing() {
        let mut reader = Reader::new(Bytes::from_static(&[0xc0, 1, 2]));
        assert_eq!(reader.varint(), Err(Truncated));
        assert_eq!(reader.u32(), Err(Truncated));
        assert_eq!(reader.bytes(4), Err(Truncated));
        assert_eq!(reader.bytes(usize::MAX), Err(Truncated));
        assert_eq!(reader.array::<4>(), Err(Truncated));
        assert_eq!(reader.remaining(), 3);
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), kinds in proptest::collection::vec(0..6_u8, 0..40)) {
            let mut reader = Reader::new(Bytes::from(bytes));
            for kind in kinds {
                let before = reader.remaining();
                let _: Result<(), Truncated> = match kind {
                    0 => reader.u8().map(drop),
                    1 => reader.u16().map(drop),
                    2 => reader.u32().map(drop),
                    3 => reader.varint().map(drop),
                    4 => reader.prefixed().map(drop),
                    _ => reader.array::<5>().map(drop),
                };
                prop_assert!(reader.remaining() <= before);
            }
        }
    }
}
