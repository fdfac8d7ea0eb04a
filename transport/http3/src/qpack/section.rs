//! Reading a field section (RFC 9204 §4.5).

use super::dynamic_table::DynamicTable;
use super::errors::SectionError;
use super::integers::{Input, ReadFailure};
use super::static_table::FIELDS;
use super::{FIELD_OVERHEAD, Field};
use bytes::Bytes;

impl From<ReadFailure> for SectionError {
    fn from(unread: ReadFailure) -> Self {
        match unread {
            ReadFailure::Incomplete | ReadFailure::Invalid => Self::Malformed,
            ReadFailure::TooLong => Self::TooLarge,
        }
    }
}

/// Returns true if the section `block` refers to no dynamic table, so that [`read`] is enough.
pub(crate) fn is_static(block: &[u8]) -> bool {
    block.first().is_none_or(|required| *required == 0)
}

/// The lines of the field section `block`, which refers to no dynamic table: names and values and 32 bytes for each together
/// no more than `limit` bytes. A section that is too large is noticed before it is there (attacks.md H7).
///
/// # Errors
/// See [`SectionError`].
pub fn read(block: Bytes, limit: u64) -> Result<Vec<Field>, SectionError> {
    let mut input = Input(block);
    Prefix::read(&mut input, 0, 0)?;
    Reader::new(input, limit, None).lines()
}

/// The prefix of a section (RFC 9204 §4.5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prefix {
    /// Insertions that have to be there (Required Insert Count).
    pub(super) required: u64,
    /// The absolute index that relative ones count from.
    base: u64,
}

impl Prefix {
    /// Reads the prefix where the largest capacity of the table is `max_capacity` and `inserted` entries came so far.
    pub(super) fn read(input: &mut Input, max_capacity: u64, inserted: u64) -> Result<Self, SectionError> {
        let encoded = input.integer(8)?;
        let required = required(encoded, max_capacity / FIELD_OVERHEAD, inserted);
        //= https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.1
        //# it MUST treat this as a connection error of type QPACK_DECOMPRESSION_FAILED.
        let required = required.ok_or(SectionError::Malformed)?;
        let is_beyond = input.first().is_some_and(|first| first & 0b1000_0000 != 0);
        let delta = input.integer(7)?;
        // RFC 9204 §4.5.1.2: below the required count with a sign, which may not make it negative.
        //= https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.2
        //# The value of Base MUST NOT be negative.
        //= https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.2
        //# An endpoint MUST treat a field block with a Sign bit of 1 as invalid if the value of
        //# Required Insert Count is less than or equal to the value of Delta Base.
        let base = if is_beyond {
            delta.checked_add(1).and_then(|below| required.checked_sub(below))
        } else {
            required.checked_add(delta)
        };
        Ok(Self { required, base: base.ok_or(SectionError::Malformed)? })
    }
}

/// The Required Insert Count that is `encoded` modulo twice the entries that fit (RFC 9204 §4.5.1.1).
fn required(encoded: u64, max_entries: u64, inserted: u64) -> Option<u64> {
    let range = 2 * max_entries;
    if encoded == 0 {
        return Some(0);
    }
    if encoded > range {
        return None;
    }
    let most = inserted + max_entries;
    let required = most / range * range + encoded - 1;
    let required = if required <= most { required } else { required.checked_sub(range)? };
    (required > 0).then_some(required)
}

/// Reads the lines behind the prefix.
pub(super) struct Reader<'a> {
    input: Input,
    /// Bytes that fields may have.
    left: u64,
    table: Option<(&'a DynamicTable, Prefix)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(input: Input, limit: u64, table: Option<(&'a DynamicTable, Prefix)>) -> Self {
        Self { input, left: limit, table }
    }

    pub(super) fn lines(mut self) -> Result<Vec<Field>, SectionError> {
        let mut fields = Vec::with_capacity(12);
        while let Some(first) = self.input.first() {
            //= https://www.rfc-editor.org/rfc/rfc9204#section-2.2
            //# The decoder MUST emit field lines in the order their representations appear in the
            //# encoded field section.
            fields.push(self.line(first)?);
        }
        Ok(fields)
    }

    /// The line that begins with the byte `first` (RFC 9204 §4.5.2 to §4.5.6).
    fn line(&mut self, first: u8) -> Result<Field, SectionError> {
        let field = match first {
            0b1100_0000.. => {
                let (name, value) = self.known(6)?;
                Field { name: self.fixed(name)?, value: self.fixed(value)? }
            }
            0b1000_0000..=0b1011_1111 => {
                let index = self.input.integer(6)?;
                self.entry(self.relative(index)?)?
            }
            0b0101_0000..=0b0101_1111 | 0b0111_0000..=0b0111_1111 => {
                let (name, _) = self.known(4)?;
                Field { name: self.fixed(name)?, value: self.string(7)? }
            }
            0b0100_0000..=0b0100_1111 | 0b0110_0000..=0b0110_1111 => {
                let index = self.input.integer(4)?;
                self.named(self.relative(index)?)?
            }
            0b0010_0000..=0b0011_1111 => Field { name: self.string(3)?, value: self.string(7)? },
            0b0001_0000..=0b0001_1111 => {
                let index = self.input.integer(4)?;
                self.entry(self.post_base(index)?)?
            }
            0b0000_0000..=0b0000_1111 => {
                let index = self.input.integer(3)?;
                self.named(self.post_base(index)?)?
            }
        };
        self.take(FIELD_OVERHEAD)?;
        Ok(field)
    }

    /// The absolute index before the base (RFC 9204 §3.2.5).
    fn relative(&self, index: u64) -> Result<u64, SectionError> {
        let (_, prefix) = self.table.ok_or(SectionError::Malformed)?;
        prefix.base.checked_sub(1).and_then(|last| last.checked_sub(index)).ok_or(SectionError::Malformed)
    }

    /// The absolute index from the base on (RFC 9204 §3.2.6).
    fn post_base(&self, index: u64) -> Result<u64, SectionError> {
        let (_, prefix) = self.table.ok_or(SectionError::Malformed)?;
        prefix.base.checked_add(index).ok_or(SectionError::Malformed)
    }

    /// The entry with an absolute index, which is below the required count and not evicted (RFC 9204 §2.2.3).
    fn get(&self, absolute: u64) -> Result<&'a Field, SectionError> {
        let (table, prefix) = self.table.ok_or(SectionError::Malformed)?;
        //= https://www.rfc-editor.org/rfc/rfc9204#section-2.2.3
        //# it MUST treat this as a connection error of type QPACK_DECOMPRESSION_FAILED.
        //= https://www.rfc-editor.org/rfc/rfc9204#section-2.2.1
        //# If it encounters a Required Insert Count smaller than expected, it MUST treat this as a
        //# connection error of type QPACK_DECOMPRESSION_FAILED;
        let permitted = Some(absolute).filter(|absolute| *absolute < prefix.required);
        permitted.and_then(|absolute| table.get(absolute)).ok_or(SectionError::Malformed)
    }

    fn entry(&mut self, absolute: u64) -> Result<Field, SectionError> {
        let field = self.get(absolute)?;
        self.take(field.name.len() as u64)?;
        self.take(field.value.len() as u64)?;
        Ok(field.clone())
    }

    fn named(&mut self, absolute: u64) -> Result<Field, SectionError> {
        let name = self.get(absolute)?.name.clone();
        self.take(name.len() as u64)?;
        Ok(Field { name, value: self.string(7)? })
    }

    /// The row of the static table whose index has a prefix of `bits`.
    fn known(&mut self, bits: u32) -> Result<(&'static str, &'static str), SectionError> {
        let index = usize::try_from(self.input.integer(bits)?).map_err(|_| SectionError::Malformed)?;
        //= https://www.rfc-editor.org/rfc/rfc9204#section-3.1
        //# it MUST treat this as a connection error of type QPACK_DECOMPRESSION_FAILED.
        FIELDS.get(index).copied().ok_or(SectionError::Malformed)
    }

    fn fixed(&mut self, text: &'static str) -> Result<Bytes, SectionError> {
        self.take(text.len() as u64)?;
        Ok(Bytes::from_static(text.as_bytes()))
    }

    fn string(&mut self, bits: u32) -> Result<Bytes, SectionError> {
        // A string that claims more than there is left is malformed rather than large.
        let text = self.input.string(bits, u64::MAX)?.decode(self.left)?;
        self.take(text.len() as u64)?;
        Ok(text)
    }

    /// Counts `bytes` of fields.
    fn take(&mut self, bytes: u64) -> Result<(), SectionError> {
        self.left = self.left.checked_sub(bytes).ok_or(SectionError::TooLarge)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(block: &[u8]) -> Result<Vec<(String, String)>, SectionError> {
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
    fn what_refers_to_a_dynamic_table_is_refused_without_one() {
        // attacks.md H8, H9.
        for block in [&[1, 0][..], &[0, 0, 0x80], &[0, 0, 0x10], &[0, 0, 0x00, 0], &[0, 0, 0x40, 0]] {
            assert_eq!(lines(block), Err(SectionError::Malformed), "{block:x?}");
        }
    }

    #[test]
    fn an_index_beyond_the_table_and_strings_beyond_the_end_are_refused() {
        // attacks.md H8, H12.
        assert_eq!(lines(&[0, 0, 0xff, 36]), Err(SectionError::Malformed), "index 99");
        assert!(lines(&[0, 0, 0xff, 35]).is_ok(), "index 98");
        assert_eq!(lines(b"\x00\x00\x51\x0c/index.html"), Err(SectionError::Malformed));
        assert_eq!(
            lines(&[0, 0, 0x51, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            Err(SectionError::Malformed)
        );
        assert_eq!(lines(&[0]), Err(SectionError::Malformed));
    }

    #[test]
    fn a_small_block_does_not_become_large() {
        // attacks.md H7: each byte stands for a field of many.
        let block = [vec![0, 0], vec![0xc0 | 29; 10_000]].concat();
        assert_eq!(read(block.into(), 32 << 10), Err(SectionError::TooLarge));
        let coded = [&[0, 0, 0x51, 0xff, 0xe9, 0x06][..], &[0x00; 1000]].concat();
        assert_eq!(read(coded.into(), 500), Err(SectionError::TooLarge));
    }

    //= https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.1
    //= type=test
    //# it MUST treat this as a connection error of type QPACK_DECOMPRESSION_FAILED.
    #[test]
    fn required_insert_counts_wrap_at_twice_what_fits() {
        // RFC 9204 §4.5.1.1: the example with a capacity of 100 bytes, 10 insertions, and an encoded 4.
        assert_eq!(required(4, 3, 10), Some(9));
        assert_eq!(required(0, 3, 10), Some(0));
        assert_eq!(required(7, 3, 10), None, "beyond the range");
        assert_eq!(required(5, 3, 0), None, "a count that nobody can have");
        for inserted in 0..100 {
            for needed in 1..=inserted + 5 {
                let encoded = needed % 10 + 1;
                if needed + 5 > inserted {
                    assert_eq!(required(encoded, 5, inserted), Some(needed), "{needed} of {inserted}");
                }
            }
        }
    }

    //= https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.2
    //= type=test
    //# The value of Base MUST NOT be negative.
    //= https://www.rfc-editor.org/rfc/rfc9204#section-4.5.1.2
    //= type=test
    //# An endpoint MUST treat a field block with a Sign bit of 1 as invalid if the value of Required
    //# Insert Count is less than or equal to the value of Delta Base.
    #[test]
    fn a_base_below_nothing_is_refused() {
        // RFC 9204 §4.5.1.2.
        let read = |bytes: &'static [u8]| Prefix::read(&mut Input(Bytes::from_static(bytes)), 100, 3);
        assert_eq!(read(&[3, 0x81]), Ok(Prefix { required: 2, base: 0 }));
        assert_eq!(read(&[3, 0x82]), Err(SectionError::Malformed));
        assert_eq!(read(&[3, 1]), Ok(Prefix { required: 2, base: 3 }));
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_refused(block: Vec<u8>) {
            let _either = read(block.into(), 4096);
        }
    }
}
