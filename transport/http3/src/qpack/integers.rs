//! Integers and strings with a prefix (RFC 9204 §4.1), which sections and instructions are made of.

use super::huffman;
use bytes::{BufMut, Bytes, BytesMut};

/// Bytes of an integer after its prefix at most: 62 bits, seven in each.
const LONGEST: u32 = 9;
/// A Huffman code has no more than so many times the bytes of its text: the longest code of a byte has 30 bits.
pub(super) const LONGEST_CODE: u64 = 4;

/// The reason for which an integer or a string is not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReadFailure {
    /// The bytes end within it.
    Incomplete,
    /// It is none: more than 62 bits, or a wrong Huffman code.
    Invalid,
    /// A string has more bytes than the limit.
    TooLong,
}

/// Bytes that are read from their front.
#[derive(Clone, Debug)]
pub(super) struct Input(pub(super) Bytes);

/// A string as it came.
pub(super) struct Encoded {
    bytes: Bytes,
    is_huffman: bool,
}

impl Input {
    pub(super) fn first(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// An integer with a prefix of `bits` (RFC 9204 §4.1.1), of up to 62 bits.
    pub(super) fn integer(&mut self, bits: u32) -> Result<u64, ReadFailure> {
        let most = (1 << bits) - 1;
        let mut value = u64::from(self.byte()?) & most;
        if value < most {
            return Ok(value);
        }
        for shift in (0..LONGEST).map(|byte| byte * 7) {
            let next = self.byte()?;
            value += u64::from(next & 0x7f) << shift;
            if next & 0x80 == 0 {
                //= https://www.rfc-editor.org/rfc/rfc9204#section-4.1.1
                //# QPACK implementations MUST be able to decode integers up to and including 62 bits long.
                return if value < 1 << 62 { Ok(value) } else { Err(ReadFailure::Invalid) };
            }
        }
        Err(ReadFailure::Invalid)
    }

    /// A string whose length has a prefix of `bits`, behind the bit that says that it is a Huffman code (RFC 9204 §4.1.2).
    /// One that cannot have as few as `limit` bytes is refused before it is there.
    pub(super) fn string(&mut self, bits: u32, limit: u64) -> Result<Encoded, ReadFailure> {
        let is_huffman = self.first().is_some_and(|first| first & (1 << bits) != 0);
        let length = self.integer(bits)?;
        let most = if is_huffman { limit.saturating_mul(LONGEST_CODE) } else { limit };
        if length > most {
            return Err(ReadFailure::TooLong);
        }
        let length = usize::try_from(length).ok().filter(|length| *length <= self.0.len());
        Ok(Encoded { bytes: self.0.split_to(length.ok_or(ReadFailure::Incomplete)?), is_huffman })
    }

    fn byte(&mut self) -> Result<u8, ReadFailure> {
        let first = self.first().ok_or(ReadFailure::Incomplete)?;
        let _taken = self.0.split_to(1);
        Ok(first)
    }
}

impl Encoded {
    /// The text of `limit` bytes at most.
    pub(super) fn decode(self, limit: u64) -> Result<Bytes, ReadFailure> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if !self.is_huffman {
            return if self.bytes.len() <= limit { Ok(self.bytes) } else { Err(ReadFailure::TooLong) };
        }
        // A code has five bits at least.
        let most = self.bytes.len().saturating_mul(8) / 5;
        let mut text = Vec::with_capacity(most.min(limit));
        match huffman::read(&self.bytes, limit, &mut text) {
            Some(()) => Ok(text.into()),
            None if text.len() >= limit => Err(ReadFailure::TooLong),
            None => Err(ReadFailure::Invalid),
        }
    }
}

/// Writes an integer with a prefix of `bits`, below the bits of `first` (RFC 9204 §4.1.1).
pub(super) fn put_integer(value: u64, bits: u32, first: u8, to: &mut BytesMut) {
    let most = (1 << bits) - 1;
    if value < most {
        return to.put_u8(first | (value & 0xff) as u8);
    }
    to.put_u8(first | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        to.put_u8(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.put_u8(rest as u8);
}

/// Writes a string whose length has a prefix of `bits`, below the bits of `first` and the bit that says that it is a
/// Huffman code (RFC 9204 §4.1.2), which it is if that is shorter.
pub(super) fn put_string(text: &[u8], bits: u32, first: u8, to: &mut BytesMut) {
    let length = huffman::length(text);
    if length < text.len() {
        put_integer(length as u64, bits, first | 1 << bits, to);
        return huffman::write(text, to);
    }
    put_integer(text.len() as u64, bits, first, to);
    to.put_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    //= https://www.rfc-editor.org/rfc/rfc9204#section-4.1.1
    //= type=test
    //# QPACK implementations MUST be able to decode integers up to and including 62 bits long.
    #[test]
    fn the_examples_of_integers_are_written_and_read() {
        // RFC 7541 §C.1: 10 and 1337 with a prefix of 5 bits, 42 with one of 8.
        for (value, bits, bytes) in [(10, 5, &[10][..]), (1337, 5, &[31, 154, 10]), (42, 8, &[42])] {
            let mut written = BytesMut::new();
            put_integer(value, bits, 0, &mut written);
            assert_eq!(written, bytes);
            assert_eq!(Input(written.freeze()).integer(bits), Ok(value));
        }
        for value in [(1 << 62) - 1, 1 << 62] {
            let mut written = BytesMut::new();
            put_integer(value, 5, 0, &mut written);
            let read = Input(written.freeze()).integer(5);
            assert_eq!(read, if value < 1 << 62 { Ok(value) } else { Err(ReadFailure::Invalid) });
        }
        let endless = Bytes::from_static(&[0xff; 12]);
        assert_eq!(Input(endless.clone()).integer(5), Err(ReadFailure::Invalid));
        assert_eq!(Input(endless.slice(..4)).integer(5), Err(ReadFailure::Incomplete));
    }

    #[test]
    fn a_string_beyond_the_limit_is_refused_before_it_is_there() {
        let mut claim = BytesMut::new();
        put_integer(101, 7, 0, &mut claim);
        assert_eq!(Input(claim.clone().freeze()).string(7, 100).err(), Some(ReadFailure::TooLong));
        assert_eq!(Input(claim.freeze()).string(7, 101).err(), Some(ReadFailure::Incomplete));
    }

    proptest! {
        #[test]
        fn strings_are_read_as_they_were_written_and_take_no_more_than_their_text(
            text: Vec<u8>,
            bits in 3u32..8,
        ) {
            let mut written = BytesMut::new();
            put_string(&text, bits, 0, &mut written);
            prop_assert!(written.len() <= text.len() + 4);
            let mut input = Input(written.freeze());
            let limit = text.len() as u64;
            let read = input.string(bits, limit).unwrap().decode(limit).unwrap();
            prop_assert_eq!((&read[..], input.0.len()), (&text[..], 0));
        }
    }
}
