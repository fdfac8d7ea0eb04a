//! Variable-length integers (RFC 9000 §16).

/// The largest value that can be encoded: 2^62-1.
pub const MAX: u64 = (1 << 62) - 1;

/// The size of `v` in bytes: 1, 2, 4 or 8.
#[inline]
pub fn size(v: u64) -> usize {
    match v {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// Gives the shortest form of `v` to `take`. A value above [`MAX`] is written as `MAX`, so that a code chosen by an
/// application cannot corrupt a packet.
#[inline]
pub fn encode<T>(v: u64, take: impl FnOnce(&[u8]) -> T) -> T {
    match v {
        0..0x40 => take(&[v as u8]),
        0x40..0x4000 => take(&(v as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => take(&(v as u32 | 0x8000_0000).to_be_bytes()),
        _ => take(&(v.min(MAX) | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Appends the shortest form of `v`, or of [`MAX`] if `v` is larger.
#[inline]
pub fn put(buf: &mut Vec<u8>, v: u64) {
    encode(v, |bytes| buf.extend_from_slice(bytes));
}

/// The value at the start of `bytes` and its size, `None` if the bytes end before it does. Takes every form, also one
/// that is longer than necessary.
#[inline]
pub fn get(bytes: &[u8]) -> Option<(u64, usize)> {
    Some(match bytes.first()? >> 6 {
        0 => (u64::from(*bytes.first()?), 1),
        1 => (u64::from(u16::from_be_bytes(*bytes.first_chunk()?) & 0x3fff), 2),
        2 => (u64::from(u32::from_be_bytes(*bytes.first_chunk()?) & 0x3fff_ffff), 4),
        _ => (u64::from_be_bytes(*bytes.first_chunk()?) & MAX, 8),
    })
}

/// The largest length `n` such that `n` as a varint and `n` bytes after it fit in `room` bytes, 0 if nothing does.
pub fn prefixed_room(room: usize) -> usize {
    // Each form can state lengths up to its own maximum; the best of those that fit is the answer.
    match room {
        0..=0x40 => room.saturating_sub(1),
        // One byte more of room does not pay for a longer form.
        0x41 => 0x3f,
        0x42..=0x4001 => room - 2,
        0x4002..=0x4003 => 0x3fff,
        _ => (room - 4).min(0x3fff_ffff),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes_of(v: u64) -> Vec<u8> {
        let mut buf = Vec::new();
        put(&mut buf, v);
        buf
    }

    #[test]
    fn the_examples_of_the_rfc_hold() {
        // RFC 9000 §A.1.
        let examples: [(u64, &[u8]); 4] = [
            (151_288_809_941_952_652, &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (15_293, &[0x7b, 0xbd]),
            (37, &[0x25]),
        ];
        for (value, bytes) in examples {
            assert_eq!(bytes_of(value), bytes);
            assert_eq!(get(bytes), Some((value, bytes.len())));
        }
        // A form longer than necessary is decoded as well.
        assert_eq!(get(&[0x40, 0x25]), Some((37, 2)));
    }

    #[test]
    fn a_truncated_integer_is_refused() {
        assert_eq!(get(&[]), None);
        for v in [0x40, 0x4000, 0x4000_0000] {
            let bytes = bytes_of(v);
            for end in 0..bytes.len() {
                assert_eq!(get(&bytes[..end]), None);
            }
        }
    }

    #[test]
    fn a_value_that_is_too_large_becomes_the_largest() {
        assert_eq!(get(&bytes_of(u64::MAX)), Some((MAX, 8)));
    }

    proptest! {
        #[test]
        fn integers_survive_encoding(bits in 0_u32..62, seed: u64, tail in proptest::collection::vec(any::<u8>(), 0..4)) {
            let v = seed & (MAX >> bits);
            let mut bytes = bytes_of(v);
            prop_assert_eq!(bytes.len(), size(v));
            bytes.extend(tail);
            prop_assert_eq!(get(&bytes), Some((v, size(v))));
        }
    }

    #[test]
    fn the_room_for_a_prefixed_value_is_the_most_that_fits() {
        for room in 0..20_000 {
            let n = prefixed_room(room);
            assert!(n == 0 || size(n as u64) + n <= room, "{n} in {room}");
            assert!(size(n as u64 + 1) + n + 1 > room, "{n} in {room}");
        }
    }
}
