//! Writing a field section.

use super::static_table::{Known, find};
use bytes::{BufMut, BytesMut};
use http::{HeaderName, HeaderValue};

/// Begins a field section: nothing of it refers to a dynamic table (RFC 9204 §4.5.1).
pub(crate) fn begin(to: &mut BytesMut) {
    to.put_slice(&[0, 0]);
}

/// The line of a pseudo-header field (RFC 9114 §4.3).
pub(crate) fn pseudo(name: &str, value: &[u8], to: &mut BytesMut) {
    line(name, value, 0, to);
}

/// The line of a field. One that is sensitive is marked so that nobody ever puts it into a table (RFC 9204 §7.1.3).
pub(crate) fn field(name: &HeaderName, value: &HeaderValue, to: &mut BytesMut) {
    line(name.as_str(), value.as_bytes(), u8::from(value.is_sensitive()), to);
}

fn line(name: &str, value: &[u8], never: u8, to: &mut BytesMut) {
    match find(name, value) {
        Some(Known::Field(index)) if never == 0 => return integer(index.into(), 6, 0b1100_0000, to),
        Some(Known::Field(index) | Known::Name(index)) => {
            integer(index.into(), 4, 0b0101_0000 | never << 5, to);
        }
        None => {
            integer(name.len() as u64, 3, 0b0010_0000 | never << 4, to);
            to.put_slice(name.as_bytes());
        }
    }
    integer(value.len() as u64, 7, 0, to);
    to.put_slice(value);
}

/// An integer with a prefix of `bits`, below the bits of `first` (RFC 9204 §4.1.1).
fn integer(value: u64, bits: u32, first: u8, to: &mut BytesMut) {
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

#[cfg(test)]
mod tests {
    use super::super::{Field, read};
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read_again() {
        let long = "x".repeat(300);
        let said = [
            ("content-type", "text/css"),
            ("content-length", "1024"),
            ("x-own", "value"),
            ("x-a-name-that-is-rather-long", long.as_str()),
            ("accept-ranges", "bytes"),
            ("etag", ""),
        ];
        let mut block = BytesMut::new();
        begin(&mut block);
        pseudo(":status", b"200", &mut block);
        pseudo(":status", b"418", &mut block);
        pseudo(":path", b"/.well-known/", &mut block);
        for (name, value) in said {
            let mut value = HeaderValue::from_str(value).unwrap();
            field(&HeaderName::from_static(name), &value, &mut block);
            value.set_sensitive(true);
            field(&HeaderName::from_static(name), &value, &mut block);
        }
        let line =
            |name: &str, value: &str| Field { name: name.to_owned().into(), value: value.to_owned().into() };
        let mut expected =
            vec![line(":status", "200"), line(":status", "418"), line(":path", "/.well-known/")];
        expected.extend(said.iter().flat_map(|(name, value)| [line(name, value), line(name, value)]));
        assert_eq!(read(block.freeze(), 10_000).unwrap(), expected);
    }

    #[test]
    fn common_fields_take_a_byte_and_sensitive_ones_stay_out_of_tables() {
        let written = |name: &'static str, value: &HeaderValue| {
            let mut block = BytesMut::new();
            field(&HeaderName::from_static(name), value, &mut block);
            block.to_vec()
        };
        let mut bytes = HeaderValue::from_static("bytes");
        assert_eq!(written("accept-ranges", &bytes), [0b1100_0000 | 32]);
        bytes.set_sensitive(true);
        assert_eq!(written("accept-ranges", &bytes)[0] & 0b1111_0000, 0b0111_0000);
        assert_eq!(written("x-token", &bytes)[0] & 0b1111_0000, 0b0011_0000);
    }

    proptest! {
        #[test]
        fn no_section_waits_for_a_table_and_all_are_read_as_they_were(
            fields in proptest::collection::vec(
                (prop_oneof![Just("accept-ranges".to_owned()), "[a-z][a-z0-9-]{0,20}"], "[ -~]{0,300}", any::<bool>()),
                0..20,
            ),
        ) {
            // attacks.md H10, H13: an encoder that keeps nothing needs no word from the other end.
            let mut block = BytesMut::new();
            begin(&mut block);
            pseudo(":status", b"200", &mut block);
            let mut expected = vec![Field { name: ":status".into(), value: "200".into() }];
            for (name, value, sensitive) in fields {
                let mut said = HeaderValue::from_str(&value).unwrap();
                said.set_sensitive(sensitive);
                field(&HeaderName::from_bytes(name.as_bytes()).unwrap(), &said, &mut block);
                expected.push(Field { name: name.into(), value: value.into() });
            }
            // RFC 9204 §4.5.1: the required insert count.
            prop_assert_eq!(block[0], 0);
            prop_assert_eq!(read(block.freeze(), 1 << 20).unwrap(), expected);
        }
    }
}
