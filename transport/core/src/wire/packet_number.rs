//! Packet numbers: how many bytes to send, and how to get the rest back (RFC 9000 §17.1, §A.2, §A.3).

use super::varint;

/// Returns the number of bytes of `number` to send, 1 to 4, when the peer has acknowledged up to
/// `largest_acknowledged`.
///
/// The bytes represent more than twice the range of the packets not yet acknowledged (RFC 9000 §17.1). Four bytes are
/// the most there are, so that no more than 2^31 packets may be unacknowledged.
pub fn length(number: u64, largest_acknowledged: Option<u64>) -> usize {
    let unacknowledged = match largest_acknowledged {
        Some(largest) => number.saturating_sub(largest),
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.1
        //# Prior to receiving an acknowledgment for a packet number space, the full packet number MUST be
        //# included; it is not to be truncated, as described below.
        None => number.saturating_add(1),
    };
    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.1
    //# After an acknowledgment is received for a packet number space, the sender MUST use a packet number
    //# size able to represent more than twice as large a range as the difference between the largest
    match unacknowledged {
        0..0x80 => 1,
        0x80..0x8000 => 2,
        0x8000..0x80_0000 => 3,
        _ => 4,
    }
}

/// Appends the `length` (1 to 4) least significant bytes of `number`.
pub fn put(buf: &mut Vec<u8>, number: u64, length: usize) {
    let bytes = (number as u32).to_be_bytes();
    buf.extend_from_slice(bytes.get(4_usize.saturating_sub(length)..).unwrap_or_default());
}

/// The packet number closest to the one expected next whose last `length` bytes (1 to 4) are `truncated`
/// (RFC 9000 §A.3).
pub fn expand(truncated: u32, length: usize, largest_received: Option<u64>) -> u64 {
    let window = 1_u64 << (8 * length.clamp(1, 4));
    let half = window / 2;
    let expected = largest_received.map_or(0, |largest| largest.saturating_add(1));
    let candidate = (expected & !(window - 1)) | (u64::from(truncated) & (window - 1));
    let number =
        if candidate.saturating_add(half) <= expected && candidate.saturating_add(window) <= varint::MAX {
            candidate + window
        } else if candidate > expected.saturating_add(half) && candidate >= window {
            candidate - window
        } else {
            candidate
        };
    // Beyond the last packet number there is only a duplicate of it.
    number.min(varint::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.1
    //= type=test
    //# After an acknowledgment is received for a packet number space, the sender MUST use a packet number
    //# size able to represent more than twice as large a range as the difference between the largest
    #[test]
    fn the_examples_of_the_rfc_hold() {
        // RFC 9000 §A.2.
        assert_eq!(length(0xac5c02, Some(0xabe8b3)), 2);
        assert_eq!(length(0xace8fe, Some(0xabe8b3)), 3);
        // RFC 9000 §A.3.
        assert_eq!(expand(0x9b32, 2, Some(0xa82f_30ea)), 0xa82f_9b32);
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.1
    //= type=test
    //# Prior to receiving an acknowledgment for a packet number space, the full packet number MUST be
    //# included; it is not to be truncated, as described below.
    #[test]
    fn the_first_packets_take_one_byte() {
        assert_eq!(length(0, None), 1);
        assert_eq!(length(126, None), 1);
        // 128 unacknowledged packets need more than 256 values.
        assert_eq!(length(127, None), 2);
        assert_eq!(expand(0, 1, None), 0);
        assert_eq!(expand(255, 1, None), 255);
    }

    #[test]
    fn the_closest_number_is_meant_and_of_two_at_the_same_distance_the_larger_one() {
        // RFC 9000 §A.3: the window reaches from beyond expected - half up to expected + half.
        for (truncated, largest, number) in
            [(0x80, 0x1ff, 0x280), (0x81, 0x1ff, 0x181), (0x7f, 0x2fe, 0x37f), (0x80, 0x2fe, 0x280)]
        {
            assert_eq!(expand(truncated, 1, Some(largest)), number, "{truncated:#x} after {largest:#x}");
        }
    }

    #[test]
    fn the_bytes_are_the_least_significant_ones() {
        for (length, expected) in [(1, vec![4]), (2, vec![3, 4]), (3, vec![2, 3, 4]), (4, vec![1, 2, 3, 4])] {
            let mut buf = Vec::new();
            put(&mut buf, 0xff_0102_0304, length);
            assert_eq!(buf, expected);
        }
    }

    proptest! {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.1
        //= type=test
        //# Prior to receiving an acknowledgment for a packet number space, the full packet number MUST be
        //# included; it is not to be truncated, as described below.
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.1
        //= type=test
        //# After an acknowledgment is received for a packet number space, the sender MUST use a packet number
        //# size able to represent more than twice as large a range as the difference between the largest
        #[test]
        fn the_receiver_gets_the_number_back(
            acknowledged in proptest::option::of(0..varint::MAX - (1 << 32)),
            beyond in 1..(1_u64 << 31),
            shift in 0..31_u32,
            received in 0.0..1.0_f64,
        ) {
            // The receiver has received at least what it acknowledged, and anything up to the packet before this one.
            let beyond = (beyond >> shift).max(1);
            let (number, received) = match acknowledged {
                Some(acknowledged) => {
                    let largest = acknowledged + ((beyond - 1) as f64 * received) as u64;
                    (acknowledged + beyond, Some(largest))
                }
                None => (beyond - 1, (beyond > 1).then(|| ((beyond - 2) as f64 * received) as u64)),
            };
            let length = length(number, acknowledged);
            let mut buf = Vec::new();
            put(&mut buf, number, length);
            prop_assert_eq!(buf.len(), length);
            let truncated = buf.iter().fold(0_u32, |value, &byte| value << 8 | u32::from(byte));
            prop_assert_eq!(expand(truncated, length, received), number);
        }

        #[test]
        fn every_input_gives_a_valid_number(truncated: u32, length: usize, largest in proptest::option::of(0..=varint::MAX)) {
            prop_assert!(expand(truncated, length, largest) <= varint::MAX);
        }
    }
}
