//! Variable-length integers (RFC 9000 §16) and packet numbers (RFC 9000 §17.1, appendices A.2 and A.3).

use crate::wire::{packet_number, varint};

/// The values around each power of two, where encodings change.
fn edges() -> impl Iterator<Item = u64> {
    let around = |power: u32| {
        let middle = 1_u64 << power;
        middle.saturating_sub(300)..=middle.saturating_add(300)
    };
    (0..62).flat_map(around).chain(varint::MAX - 300..=varint::MAX)
}

#[test]
fn every_small_integer_and_every_edge_survives_its_shortest_encoding() {
    let mut bytes = Vec::new();
    for value in (0..1 << 18).chain(edges()).filter(|value| *value <= varint::MAX) {
        bytes.clear();
        varint::put(&mut bytes, value);
        let shortest = [1, 2, 4, 8].into_iter().find(|size| value >> (8 * size - 2) == 0);
        assert_eq!((Some(bytes.len()), Some(varint::size(value))), (shortest, shortest), "{value}");
        assert_eq!(varint::get(&bytes), Some((value, bytes.len())));
        assert_eq!(varint::get(&bytes[..bytes.len() - 1]), None, "{value} cut off");
    }
}

#[test]
fn every_two_bytes_are_read_as_the_definition_says() {
    for both in 0..=u16::MAX {
        let bytes = both.to_be_bytes();
        let read = match bytes[0] >> 6 {
            0 => Some((u64::from(bytes[0]), 1)),
            1 => Some((u64::from(both & 0x3fff), 2)),
            _ => None,
        };
        assert_eq!(varint::get(&bytes), read, "{bytes:?}");
    }
}

/// The number closest to `expected` whose last byte is `byte`, by looking at all (RFC 9000, appendix A.3).
fn closest(byte: u8, expected: u64) -> u64 {
    let near = expected.saturating_sub(600)..=(expected + 600).min(varint::MAX);
    let candidates = near.filter(|number| *number as u8 == byte);
    // Of two at the same distance the larger one: the window is (expected - half, expected + half].
    candidates.min_by_key(|number| (number.abs_diff(expected), u64::MAX - number)).expect("there is one")
}

#[test]
fn a_byte_becomes_the_closest_packet_number_wherever_the_next_is_expected() {
    let last = varint::MAX - 1;
    for largest in (0..2000).chain((1 << 32) - 400..(1 << 32) + 400).chain(last - 700..=last) {
        for byte in 0..=u8::MAX {
            let number = packet_number::expand(u32::from(byte), 1, Some(largest));
            assert_eq!(number, closest(byte, largest + 1), "{byte} after {largest}");
        }
    }
}

/// Encodes `number` for a peer that acknowledged `acknowledged` and decodes it for one that received up to `received`.
fn round_trip(number: u64, acknowledged: Option<u64>, received: Option<u64>) -> u64 {
    let length = packet_number::length(number, acknowledged);
    let mut bytes = Vec::new();
    packet_number::put(&mut bytes, number, length);
    let truncated = bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte));
    packet_number::expand(truncated, length, received)
}

#[test]
fn a_receiver_gets_every_number_back_whatever_it_received_meanwhile() {
    for acknowledged in (0..3).chain([254, 255, 256, 65_535, (1 << 24) - 1, (1 << 32) - 7, varint::MAX - 400])
    {
        for number in acknowledged + 1..=(acknowledged + 390).min(varint::MAX) {
            for received in acknowledged..number {
                assert_eq!(round_trip(number, Some(acknowledged), Some(received)), number);
            }
        }
    }
    for number in 0..400 {
        assert_eq!(round_trip(number, None, None), number, "the first to arrive");
    }
}

/// At each change of length the distance is the greatest that the shorter encoding carries.
#[test]
fn a_receiver_gets_the_number_back_at_every_change_of_length() {
    for (edge, acknowledged) in
        [0x80_u64, 0x8000, 0x80_0000].into_iter().flat_map(|edge| [(edge, 0), (edge, 77)])
    {
        for distance in edge - 3..edge + 3 {
            let number = acknowledged + distance;
            for received in [acknowledged, acknowledged + distance / 2, number - 1] {
                assert_eq!(round_trip(number, Some(acknowledged), Some(received)), number);
            }
        }
    }
}

#[test]
#[ignore = "takes long: make prove"]
fn two_bytes_carry_every_distance_that_they_are_chosen_for() {
    let acknowledged = 1_000_000;
    for distance in 0x80..0x8000 {
        for received in (acknowledged..acknowledged + distance).step_by(7) {
            assert_eq!(
                round_trip(acknowledged + distance, Some(acknowledged), Some(received)),
                acknowledged + distance
            );
        }
    }
}
