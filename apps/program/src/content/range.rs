//! The `range` header (RFC 9110 §14.2).

use std::ops::Range;

/// The range that a request wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    /// All of it.
    Everything,
    /// These bytes, at least one.
    Stretch(Range<u64>),
    /// Bytes that it does not have.
    Nothing,
}

/// Reads `header`, asked of what has `length` bytes.
///
/// A server may ignore the header (RFC 9110 §14.2); this one does so if it makes no sense, is not in bytes or asks for
/// several stretches.
pub(super) fn read(header: &[u8], length: u64) -> Wanted {
    let stretch = std::str::from_utf8(header).ok().and_then(|text| text.trim().strip_prefix("bytes="));
    let ends = stretch.and_then(|stretch| stretch.trim().split_once('-'));
    let (first, last) = match ends.map(|(first, last)| (number(first), number(last))) {
        Some((Number::Is(first), Number::Is(last))) if first <= last => (first, last),
        Some((Number::Is(first), Number::Absent)) => (first, u64::MAX),
        Some((Number::Absent, Number::Is(0))) => return Wanted::Nothing,
        Some((Number::Absent, Number::Is(count))) => (length.saturating_sub(count), u64::MAX),
        _ => return Wanted::Everything,
    };
    if first >= length { Wanted::Nothing } else { Wanted::Stretch(first..last.saturating_add(1).min(length)) }
}

/// One end of a stretch.
enum Number {
    Is(u64),
    Absent,
    Nonsense,
}

fn number(text: &str) -> Number {
    if text.is_empty() {
        return Number::Absent;
    }
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    // A number beyond 64 bits is beyond any end.
    if digits { Number::Is(text.parse().unwrap_or(u64::MAX)) } else { Number::Nonsense }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_cut_to_what_is_there() {
        for (header, wanted) in [
            ("bytes=0-0", Wanted::Stretch(0..1)),
            ("bytes=10-19", Wanted::Stretch(10..20)),
            ("bytes=90-", Wanted::Stretch(90..100)),
            ("bytes=90-500", Wanted::Stretch(90..100)),
            ("bytes=-5", Wanted::Stretch(95..100)),
            ("bytes=-500", Wanted::Stretch(0..100)),
            ("bytes=0-99999999999999999999999", Wanted::Stretch(0..100)),
        ] {
            assert_eq!(read(header.as_bytes(), 100), wanted, "{header}");
        }
    }

    #[test]
    fn what_lies_behind_the_end_is_not_there() {
        for header in ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=99999999999999999999999-"] {
            assert_eq!(read(header.as_bytes(), 100), Wanted::Nothing, "{header}");
        }
        assert_eq!(read(b"bytes=0-", 0), Wanted::Nothing);
    }

    #[test]
    fn what_makes_no_sense_is_ignored() {
        for header in
            ["", "bytes=", "bytes=-", "bytes=9-1", "lines=0-1", "bytes=0-1,5-6", "bytes=a-b", "bytes=+1-2"]
        {
            assert_eq!(read(header.as_bytes(), 100), Wanted::Everything, "{header}");
        }
        assert_eq!(read(&[0xff, 0xfe], 100), Wanted::Everything);
    }
}
