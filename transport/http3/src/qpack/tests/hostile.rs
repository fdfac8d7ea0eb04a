//! Peers that break the rules of RFC 9204, or keep them and mean harm: attacks.md H8 to H13, K16.

use super::*;
use crate::qpack::errors::{DecoderStreamError, EncoderStreamError};

/// Insertions of `count` entries with these values, behind a capacity of 4096 bytes.
fn insertions(count: usize, value: &str) -> Vec<u8> {
    let mut bytes = vec![0x3f, 0xe1, 0x1f];
    for _ in 0..count {
        bytes.extend_from_slice(&[0xc0, value.len() as u8]);
        bytes.extend_from_slice(value.as_bytes());
    }
    bytes
}

//= https://www.rfc-editor.org/rfc/rfc9204#section-2.2.3
//= type=test
//# it MUST treat this as a connection error of type QPACK_ENCODER_STREAM_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9204#section-3.1
//= type=test
//# this MUST be treated as a connection error of type QPACK_ENCODER_STREAM_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9204#section-3.2.2
//= type=test
//# the decoder MUST treat this as a connection error of type QPACK_ENCODER_STREAM_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9204#section-4.3.1
//= type=test
//# The decoder MUST treat a new dynamic table capacity value that exceeds this limit as a connection
//# error of type QPACK_ENCODER_STREAM_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9204#section-7.4
//= type=test
//# this MUST be treated as a stream error of type QPACK_DECOMPRESSION_FAILED if on a request stream or
//# a connection error of the appropriate type if on the encoder or decoder stream.
#[test]
fn instructions_that_cannot_be_followed_are_errors_of_the_encoder_stream() {
    // RFC 9204 §2.2.3, §3.2.2, §4.3.1, §6.
    let cases: [(&str, &[u8]); 7] = [
        ("a capacity above the limit", &[0x3f, 0xe2, 0x1f]),
        ("an entry without a capacity", &[0xc0, 1, b'a']),
        ("an index beyond the static table", &[0x3f, 0xe1, 0x1f, 0xff, 36, 1, b'a']),
        ("a name that is not there", &[0x3f, 0xe1, 0x1f, 0x80, 1, b'a']),
        ("a duplicate of nothing", &[0x3f, 0xe1, 0x1f, 0x00]),
        ("an entry larger than the table", &[0x3f, 0x02, 0xc0, 1, b'a']),
        ("a wrong Huffman code", &[0x3f, 0xe1, 0x1f, 0xc0, 0x81, 0x18]),
    ];
    for (name, bytes) in cases {
        let whole = Decoder::new(limits(4096, 0)).receive(bytes);
        assert!(matches!(whole, Err(EncoderStreamError(_))), "{name}");
        let mut decoder = Decoder::new(limits(4096, 0));
        let single = bytes.iter().try_for_each(|byte| decoder.receive(&[*byte]).map(drop));
        assert_eq!(single.err(), whole.err(), "{name}, byte by byte");
    }
}

#[test]
fn a_string_that_no_table_holds_is_refused_before_it_is_there() {
    let mut decoder = Decoder::new(limits(4096, 0));
    // A value of 2^20 bytes.
    assert!(decoder.receive(&[0x3f, 0xe1, 0x1f, 0xc0, 0x7f, 0x81, 0xff, 0x3f]).is_err());
    let mut decoder = Decoder::new(limits(4096, 0));
    decoder.receive(&[0x3f, 0xe1, 0x1f, 0xc0, 0x7f, 0x81, 0x1f]).unwrap();
    // A value of 4096 bytes: one byte is left out.
    decoder.receive(&[b'a'; 4095]).unwrap();
    assert!(decoder.instruction.len() < 4096 + 10);
    assert!(decoder.receive(b"a").is_err(), "with 32 bytes more than there is room for");
}

//= https://www.rfc-editor.org/rfc/rfc9204#section-4.4.1
//= type=test
//# this MUST be treated as a connection error of type QPACK_DECODER_STREAM_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9204#section-4.4.3
//= type=test
//# An encoder that receives an Increment field equal to zero, or one that increases the Known Received
//# Count beyond what the encoder has sent, MUST treat this as a connection error of type
//# QPACK_DECODER_STREAM_ERROR.
#[test]
fn what_a_decoder_says_of_sections_that_there_are_not_is_an_error_of_the_decoder_stream() {
    // RFC 9204 §4.4.1, §4.4.3.
    let mut encoder = Encoder::new(Policy { blocking: Blocking::Permitted, ..Policy::default() });
    encoder.set_peer_limits(limits(4096, 16));
    let mut fails =
        |bytes: &[u8]| assert!(matches!(encoder.receive(bytes), Err(DecoderStreamError(_))), "{bytes:?}");
    fails(&[0x80]);
    fails(&[0x00]);
    fails(&[0x01]);
    fails(&[0xff; 12]);
    section(&mut encoder, 0, &[field("x-own", "value")]);
    assert!(encoder.receive(&[0x02]).is_err(), "more than was inserted");
    encoder.receive(&[0x80]).unwrap();
    assert!(encoder.receive(&[0x80]).is_err(), "twice");
    assert!(encoder.receive(&[0x01]).is_err(), "an acknowledgement told of the insertion");
    // §4.4.2: a stream without sections may be cancelled, and that is not kept.
    encoder.receive(&[0x44; 1000]).unwrap();
}

//= https://www.rfc-editor.org/rfc/rfc9204#section-2.1.2
//= type=test
//# If a decoder encounters more blocked streams than it promised to support, it MUST treat this as a
//# connection error of type QPACK_DECOMPRESSION_FAILED.
#[test]
fn more_streams_than_were_announced_cannot_be_blocked() {
    // attacks.md H9, K16, RFC 9204 §2.1.2.
    let mut decoder = Decoder::new(limits(4096, 2));
    let waits = Bytes::from_static(&[2, 0, 0x80]);
    assert_eq!(decoder.section(0, waits.clone(), LIMIT), Ok(Section::Blocked));
    assert_eq!(decoder.section(4, waits.clone(), LIMIT), Ok(Section::Blocked));
    assert_eq!(decoder.section(4, waits.clone(), LIMIT), Ok(Section::Blocked), "the same");
    assert_eq!(decoder.section(8, waits.clone(), LIMIT), Err(SectionError::Malformed));
    decoder.cancel(4);
    assert_eq!(decoder.section(8, waits.clone(), LIMIT), Ok(Section::Blocked));
    let mut unblocked = decoder.receive(&insertions(1, "a")).unwrap();
    unblocked.sort_unstable();
    assert_eq!((unblocked, decoder.blocked.len()), (vec![0, 8], 0));
}

//= https://www.rfc-editor.org/rfc/rfc9204#section-2.2.3
//= type=test
//# it MUST treat this as a connection error of type QPACK_DECOMPRESSION_FAILED.
//= https://www.rfc-editor.org/rfc/rfc9204#section-2.2.1
//= type=test
//# If it encounters a Required Insert Count smaller than expected, it MUST treat this as a connection
//# error of type QPACK_DECOMPRESSION_FAILED;
//= https://www.rfc-editor.org/rfc/rfc9204#section-3.1
//= type=test
//# it MUST treat this as a connection error of type QPACK_DECOMPRESSION_FAILED.
#[test]
fn sections_that_refer_to_what_is_not_theirs_are_malformed() {
    // attacks.md H8, RFC 9204 §2.2.3.
    let mut decoder = Decoder::new(limits(4096, 2));
    decoder.receive(&insertions(3, "value")).unwrap();
    let cases: [(&str, &[u8]); 6] = [
        ("an entry at or beyond the required count", &[3, 0x01, 0x80]),
        ("an entry behind the base that is not required", &[2, 0x00, 0x10]),
        ("an index before the first", &[3, 0x00, 0x82]),
        ("a base below nothing", &[2, 0x81, 0x80]),
        ("a count beyond the range", &[0xff, 0x02, 0x00, 0x80]),
        ("a name that is not there", &[3, 0x00, 0x42, 0]),
    ];
    for (name, block) in cases {
        let block = Bytes::copy_from_slice(block);
        assert_eq!(decoder.section(0, block, LIMIT), Err(SectionError::Malformed), "{name}");
    }
    let zero = Bytes::from_static(&[0, 0, 0x80]);
    assert_eq!(decoder.section(0, zero, LIMIT), Err(SectionError::Malformed), "a count of nothing");
}

#[test]
fn a_small_section_of_large_entries_does_not_become_large() {
    // attacks.md H7, K16: a byte stands for a field of the table.
    let mut decoder = Decoder::new(limits(4096, 0));
    decoder.receive(&insertions(1, &"v".repeat(120))).unwrap();
    let block = [vec![2, 0], vec![0x80; 10_000]].concat();
    assert_eq!(decoder.section(0, block.into(), 32 << 10), Err(SectionError::TooLarge));
}

//= https://www.rfc-editor.org/rfc/rfc9204#section-3.2
//= type=test
//# duplicate entries MUST NOT be treated as an error by the decoder.
#[test]
fn chains_of_duplicates_and_floods_of_insertions_stay_within_the_capacity_and_copy_nothing() {
    // attacks.md K16.
    let mut decoder = Decoder::new(limits(4096, 0));
    decoder.receive(&insertions(1, &"v".repeat(120))).unwrap();
    let first = decoder.table.get(0).unwrap().value.as_ptr();
    for _ in 0..100 {
        decoder.receive(&[0x00; 1400]).unwrap();
        assert!(decoder.table.size() <= 4096);
    }
    let newest = decoder.table.get(decoder.table.inserted() - 1).unwrap();
    assert_eq!(newest.value.as_ptr(), first, "a duplicate shares the bytes of its original");
    decoder.receive(&insertions(20_000, "v")).unwrap();
    assert!(decoder.table.size() <= 4096 && decoder.table.inserted() - decoder.table.oldest() <= 128);
    assert!(decoder.pending().len() < 1_000, "{}", decoder.pending().len());
}

#[test]
fn a_peer_that_acknowledges_nothing_costs_little_and_is_written_to_without_the_table() {
    // attacks.md H10, K16.
    let mut encoder = Encoder::new(Policy { blocking: Blocking::Permitted, ..Policy::default() });
    encoder.set_peer_limits(limits(1 << 30, 1 << 30));
    assert_eq!(encoder.capacity(), 4096, "no more than the policy has");
    let fields = |number: u64| [field("user-agent", "a browser"), field(&format!("x-{number}"), "a value")];
    let mut last = Bytes::new();
    for number in 0..10_000 {
        last = section(&mut encoder, number * 4, &fields(number));
    }
    assert!(encoder.references.is_full());
    assert_eq!(last[0], 0, "RFC 9204 §4.5.1: no insertion is required");
    assert_eq!(read(last, LIMIT).unwrap(), fields(9_999));
    assert!(encoder.table.size() <= 4096 && encoder.pending().len() < 20 << 10);
    // Cancellations set everything free.
    for number in 0..10_000u64 {
        let mut cancellation = BytesMut::new();
        integers::put_integer(number * 4, 6, 0b0100_0000, &mut cancellation);
        encoder.receive(&cancellation).unwrap();
    }
    assert_eq!(encoder.references.least(), None);
}

#[test]
fn instructions_that_nobody_takes_do_not_grow() {
    // attacks.md K16: a peer that permits no bytes on the encoder stream, yet acknowledges.
    let mut encoder = Encoder::new(Policy::default());
    encoder.set_peer_limits(limits(1 << 30, 0));
    for number in 0..100_000u64 {
        section(&mut encoder, number * 4, &[field(&format!("x-{number}"), &"v".repeat(500))]);
        let inserted = encoder.table.inserted();
        if inserted > encoder.known {
            encoder.receive(&[(inserted - encoder.known) as u8]).unwrap();
        }
    }
    assert!(encoder.pending().len() < 20 << 10, "{}", encoder.pending().len());
}

proptest! {
    #[test]
    fn a_decoder_follows_or_refuses_whatever_comes_and_stays_small(
        pieces in proptest::collection::vec(
            (any::<bool>(), prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..60),
                proptest::collection::vec(prop_oneof![Just(0u8), Just(0x80), Just(0xc0), Just(0x3f), 0u8..4], 0..60),
            ]),
            0..60,
        ),
        capacity in 0u64..300,
    ) {
        let mut decoder = Decoder::new(limits(capacity, 3));
        for (number, (is_section, bytes)) in pieces.into_iter().enumerate() {
            if is_section {
                let _either = decoder.section(number as u64, bytes.into(), 4096);
            } else if decoder.receive(&bytes).is_err() {
                break;
            }
            prop_assert!(decoder.table.size() <= capacity);
            prop_assert!(decoder.blocked.len() <= 3);
            prop_assert!(decoder.instruction.len() as u64 <= 8 * capacity + 30);
        }
    }

    #[test]
    fn an_encoder_follows_or_refuses_whatever_a_decoder_says(
        pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..30),
    ) {
        let mut encoder = Encoder::new(Policy { blocking: Blocking::Permitted, ..Policy::default() });
        encoder.set_peer_limits(limits(300, 100));
        for (number, bytes) in pieces.into_iter().enumerate() {
            section(&mut encoder, number as u64 % 7, &[field("x-own", &"v".repeat(number))]);
            if encoder.receive(&bytes).is_err() {
                break;
            }
            prop_assert!(encoder.known <= encoder.table.inserted());
            prop_assert!(encoder.instruction.len() <= 10);
        }
    }
}
