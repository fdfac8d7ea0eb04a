//! Reading a field section.

use super::static_table::FIELDS;
use super::{FIELD_OVERHEAD, huffman};
use bytes::Bytes;

/// The reason for which a field section is not read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// It is none, or refers to a dynamic table, which there is not: QPACK_DECOMPRESSION_FAILED (RFC 9204 §6).
    Malformed,
    /// It is larger than the limit (RFC 9114 §4.2.2).
    TooLarge,
}

/// A field line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Field {
    pub(crate) name: Bytes,
    pub(crate) value: Bytes,
}

/// The lines of the field section `block`, names and values and 32 bytes for each together no more than `limit` bytes.
/// A section that is too large is noticed before it is there (attacks.md H7).
pub(crate) fn read(block: Bytes, limit: u64) -> Result<Vec<Field>, Refused> {
    let mut reader = Reader { block, left: limit };
    // RFC 9204 §4.5.1: no insertion is required, as there are none. The base is of no use then.
    if reader.integer(8)? != 0 {
        return Err(Refused::Malformed);
    }
    reader.integer(7)?;
    let mut fields = Vec::with_capacity(12);
    while let Some(first) = reader.block.first().copied() {
        fields.push(reader.line(first)?);
    }
    Ok(fields)
}

struct Reader {
    block: Bytes,
    /// Bytes that fields may have.
    left: u64,
}

impl Reader {
    /// The line that begins with the byte `first` (RFC 9204 §4.5.2 to §4.5.6).
    fn line(&mut self, first: u8) -> Result<Field, Refused> {
        let (name, value) = match first {
            0b1100_0000.. => {
                let (name, value) = self.known(6)?;
                (self.fixed(name)?, self.fixed(value)?)
            }
            0b0101_0000..=0b0101_1111 | 0b0111_0000..=0b0111_1111 => {
                let (name, _) = self.known(4)?;
                (self.fixed(name)?, self.string(7)?)
            }
            0b0010_0000..=0b0011_1111 => (self.string(3)?, self.string(7)?),
            // What is left refers to the dynamic table.
            _ => return Err(Refused::Malformed),
        };
        self.left = self.left.checked_sub(FIELD_OVERHEAD).ok_or(Refused::TooLarge)?;
        Ok(Field { name, value })
    }

    /// The row of the static table whose index has a prefix of `bits`.
    fn known(&mut self, bits: u32) -> Result<(&'static str, &'static str), Refused> {
        let index = usize::try_from(self.integer(bits)?).map_err(|_| Refused::Malformed)?;
        FIELDS.get(index).copied().ok_or(Refused::Malformed)
    }

    fn fixed(&mut self, text: &'static str) -> Result<Bytes, Refused> {
        self.left = self.left.checked_sub(text.len() as u64).ok_or(Refused::TooLarge)?;
        Ok(Bytes::from_static(text.as_bytes()))
    }

    /// A string whose length has a prefix of `bits`, behind the bit that says that it is coded (RFC 9204 §4.1.2).
    fn string(&mut self, bits: u32) -> Result<Bytes, Refused> {
        let is_coded = self.block.first().is_some_and(|first| first & (1 << bits) != 0);
        let length = self.integer(bits)?;
        let length = usize::try_from(length).ok().filter(|length| *length <= self.block.len());
        let text = self.block.split_to(length.ok_or(Refused::Malformed)?);
        let text = if is_coded { self.decoded(&text)? } else { text };
        self.left = self.left.checked_sub(text.len() as u64).ok_or(Refused::TooLarge)?;
        Ok(text)
    }

    fn decoded(&self, text: &[u8]) -> Result<Bytes, Refused> {
        // A code has five bits at least.
        let most = text.len().saturating_mul(8) / 5;
        let limit = usize::try_from(self.left).unwrap_or(usize::MAX);
        let mut decoded = Vec::with_capacity(most.min(limit));
        match huffman::read(text, limit, &mut decoded) {
            Some(()) => Ok(decoded.into()),
            None if decoded.len() >= limit => Err(Refused::TooLarge),
            None => Err(Refused::Malformed),
        }
    }

    /// An integer with a prefix of `bits` (RFC 9204 §4.1.1): up to 62 bits.
    fn integer(&mut self, bits: u32) -> Result<u64, Refused> {
        let mut byte = || {
            let first = self.block.first().copied().ok_or(Refused::Malformed)?;
            let _taken = self.block.split_to(1);
            Ok(first)
        };
        let most = (1 << bits) - 1;
        let mut value = u64::from(byte()?) & most;
        if value < most {
            return Ok(value);
        }
        for shift in (0..=56).step_by(7) {
            let next = byte()?;
            value += u64::from(next & 0x7f) << shift;
            if next & 0x80 == 0 {
                return if value < 1 << 62 { Ok(value) } else { Err(Refused::Malformed) };
            }
        }
        Err(Refused::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(block: &[u8]) -> Result<Vec<(String, String)>, Refused> {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let fields = read(Bytes::copy_from_slice(block), 1000)?;
        Ok(fields.iter().map(|field| (text(&field.name), text(&field.value))).collect())
    }

    #[test]
    fn the_example_of_the_rfc_is_read() {
        // RFC 9204 §B.1: a literal with a name of the static table.
        let block = b"\x00\x00\x51\x0b/index.html";
        assert_eq!(lines(block).unwrap(), [(":path".to_owned(), "/index.html".to_owned())]);
    }

    #[test]
    fn every_form_of_a_line_is_read() {
        let block = [&[0, 0, 0xc0 | 17, 0xff, 35][..], b"\x37\x00custom-\x01x", b"\x29\x1f\x01y"].concat();
        let expected = [(":method", "GET"), ("x-frame-options", "sameorigin"), ("custom-", "x"), ("a", "y")];
        assert_eq!(lines(&block).unwrap(), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn what_refers_to_a_dynamic_table_is_refused() {
        // attacks.md H8, H9: there is no such table.
        for block in [&[1, 0][..], &[0, 0, 0x80], &[0, 0, 0x10], &[0, 0, 0x00, 0], &[0, 0, 0x40, 0]] {
            assert_eq!(lines(block), Err(Refused::Malformed), "{block:x?}");
        }
    }

    #[test]
    fn an_index_beyond_the_table_and_strings_beyond_the_end_are_refused() {
        // attacks.md H8, H12.
        assert_eq!(lines(&[0, 0, 0xff, 36]), Err(Refused::Malformed), "index 99");
        assert!(lines(&[0, 0, 0xff, 35]).is_ok(), "index 98");
        assert_eq!(lines(b"\x00\x00\x51\x0c/index.html"), Err(Refused::Malformed));
        assert_eq!(
            lines(&[0, 0, 0x51, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            Err(Refused::Malformed)
        );
        assert_eq!(lines(&[0]), Err(Refused::Malformed));
    }

    #[test]
    fn a_small_block_does_not_become_large() {
        // attacks.md H7: each byte stands for a field of many.
        let block = [vec![0, 0], vec![0xc0 | 29; 10_000]].concat();
        assert_eq!(read(block.into(), 32 << 10), Err(Refused::TooLarge));
        let coded = [&[0, 0, 0x51, 0xff, 0xe9, 0x06][..], &[0x00; 1000]].concat();
        assert_eq!(read(coded.into(), 500), Err(Refused::TooLarge));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(block: Vec<u8>) {
            let _either = read(block.into(), 4096);
        }
    }
}
