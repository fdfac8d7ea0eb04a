//! Writing the lines of a field section (RFC 9204 §4.5).

use super::integers::{put_integer, put_string};
use super::static_table::{Known, find};
use bytes::{BufMut, BytesMut};

/// A field line to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line<'a> {
    /// The name, in lower case.
    pub name: &'a str,
    /// The value.
    pub value: &'a [u8],
    /// True for a line that nobody ever puts into a table (RFC 9204 §7.1.3).
    pub is_sensitive: bool,
}

impl<'a> Line<'a> {
    /// A line that tables may hold.
    pub fn new(name: &'a str, value: &'a [u8]) -> Self {
        Self { name, value, is_sensitive: false }
    }

    /// The bit that keeps the line out of tables.
    fn never(self) -> u8 {
        u8::from(self.is_sensitive)
    }
}

/// Writes a field section without the dynamic table, prefix included.
pub fn write<'a>(lines: impl IntoIterator<Item = Line<'a>>, to: &mut BytesMut) {
    begin(to);
    lines.into_iter().for_each(|each| line(each, to));
}

/// Writes the prefix of a section that refers to no dynamic table (RFC 9204 §4.5.1).
pub(super) fn begin(to: &mut BytesMut) {
    to.put_slice(&[0, 0]);
}

/// Writes a line without the dynamic table.
pub(super) fn line(line: Line<'_>, to: &mut BytesMut) {
    match find(line.name, line.value) {
        Some(Known::Field(index)) if !line.is_sensitive => indexed(index, to),
        Some(Known::Field(index) | Known::Name(index)) => with_static_name(index, line, to),
        None => literal(line, to),
    }
}

/// Writes the row `index` of the static table.
pub(super) fn indexed(index: u8, to: &mut BytesMut) {
    put_integer(index.into(), 6, 0b1100_0000, to);
}

/// Writes a line with the name of the row `index` of the static table.
pub(super) fn with_static_name(index: u8, line: Line<'_>, to: &mut BytesMut) {
    put_integer(index.into(), 4, 0b0101_0000 | line.never() << 5, to);
    put_string(line.value, 7, 0, to);
}

/// Writes a line in full.
pub(super) fn literal(line: Line<'_>, to: &mut BytesMut) {
    put_string(line.name.as_bytes(), 3, 0b0010_0000 | line.never() << 4, to);
    put_string(line.value, 7, 0, to);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_fields_take_a_byte_and_sensitive_ones_stay_out_of_tables() {
        let written = |name: &'static str, value: &'static str, is_sensitive: bool| {
            let mut block = BytesMut::new();
            line(Line { name, value: value.as_bytes(), is_sensitive }, &mut block);
            block.to_vec()
        };
        assert_eq!(written("accept-ranges", "bytes", false), [0b1100_0000 | 32]);
        assert_eq!(written("accept-ranges", "bytes", true)[0] & 0b1111_0000, 0b0111_0000);
        assert_eq!(written("x-token", "bytes", true)[0] & 0b1111_0000, 0b0011_0000);
    }
}
