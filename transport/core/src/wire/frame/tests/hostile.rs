//! Payloads that a peer should not send.

use super::*;
use crate::wire::varint;
use proptest::prelude::*;

fn bytes_of(values: &[u64]) -> Vec<u8> {
    let mut buf = Vec::new();
    values.iter().for_each(|&value| varint::put(&mut buf, value));
    buf
}

fn assert_encoding_error(payload: &[u8], frame_type: u64) {
    let error = error_of(payload);
    assert_eq!(
        (error.code, error.frame_type),
        (ErrorCode::FRAME_ENCODING_ERROR, frame_type),
        "{payload:02x?}"
    );
    assert!(!error.reason.is_empty());
}

#[test]
fn a_frame_truncated_at_any_byte_is_an_error() {
    for (frame_type, frame) in every_frame() {
        let bytes = encoded(&frame);
        for end in 1..bytes.len() {
            // A type that is cut is not known yet.
            let known = end >= varint::size(frame_type);
            assert_encoding_error(&bytes[..end], if known { frame_type } else { 0 });
        }
    }
}

#[test]
fn after_an_error_there_is_nothing() {
    let mut reader = FrameReader::new(Bytes::from_static(&[0x01, 0x21, 0x01, 0x01]));
    assert_eq!(reader.next(), Some(Ok(Frame::Ping)));
    assert!(matches!(reader.next(), Some(Err(_))));
    assert_eq!((reader.next(), reader.remaining()), (None, 0));
}

#[test]
fn an_empty_payload_has_no_frames() {
    assert_eq!(read(&[]), []);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-12.4
//= type=test
//# An endpoint MUST treat the receipt of a frame of unknown type as a connection error of type
//# FRAME_ENCODING_ERROR.
#[test]
fn an_unknown_type_is_an_error() {
    let unknown = [0x20, 0x2f, 0x32, 0x3d, 0x40, 0xae, 0xb0, 0x3e74, 0x3e7d, 0x1522_8c05, varint::MAX];
    for frame_type in unknown {
        assert_encoding_error(&bytes_of(&[frame_type, 0, 0, 0, 0]), frame_type);
    }
}

#[test]
fn hints_of_no_known_kind_and_more_losses_than_packets_are_encoding_errors() {
    // docs/spec/path-hints.md §4: a receiver that does not know a flag cannot tell which fields follow.
    let sample = |flags, fields: &[u64]| {
        let head = [types::PATH_HINTS, 3, 5, flags];
        bytes_of(&[&head[..], fields].concat())
    };
    assert_encoding_error(&sample(0x200, &[]), types::PATH_HINTS);
    assert_encoding_error(&sample(varint::MAX, &[1, 2, 3, 4, 5]), types::PATH_HINTS);
    assert_encoding_error(&sample(0x180, &[]), types::PATH_HINTS);
    assert_encoding_error(&sample(0x08, &[1_000_001]), types::PATH_HINTS);
    for fine in [sample(0x00, &[]), sample(0x08, &[1_000_000]), sample(0x17f, &[0, 0, 0, 0, 0])] {
        assert!(read(&fine).iter().all(Result::is_ok), "{fine:02x?}");
    }
    let error = error_of(&bytes_of(&[types::PATH_HINTS, 1 << 32, 0, 0]));
    assert_eq!((error.code, error.frame_type), (ErrorCode::PROTOCOL_VIOLATION, types::PATH_HINTS));
}

#[test]
fn a_type_longer_than_necessary_is_a_violation() {
    // RFC 9000 §12.4, attacks.md A14: PING, PADDING, STREAM and PATH_ABANDON in forms that are too long.
    for payload in [
        &[0x40, 0x01][..],
        &[0x80, 0, 0, 0x01],
        &[0xc0, 0, 0, 0, 0, 0, 0, 0x01],
        &[0x40, 0x00],
        &[0x40, 0x0a, 4, 0],
        &[0x80, 0, 0x3e, 0x75, 3, 0],
    ] {
        let error = error_of(payload);
        assert_eq!((error.code, error.frame_type), (ErrorCode::PROTOCOL_VIOLATION, 0), "{payload:02x?}");
    }
}

#[test]
fn other_integers_may_be_longer_than_necessary() {
    assert_eq!(read(&[0x10, 0x40, 0x05]), [Ok(Frame::MaxData(5))]);
    let long = read(&[0x02, 0x40, 9, 5, 0x80, 0, 0, 1, 0x40, 2, 2, 0x40, 2]);
    assert_eq!(long, [Ok(ack(None, &[1..=3, 7..=9], None))]);
    let Some(Ok(frame)) = long.first() else { panic!("not read") };
    assert_eq!(read(&encoded(frame)), long);
}

#[test]
fn padding_of_a_whole_datagram_is_one_frame() {
    assert_eq!(read(&[0; 65_527]), [Ok(Frame::Padding(65_527))]);
    assert_eq!(
        read(&[0, 0, 1, 0, 1]),
        [Ok(Frame::Padding(2)), Ok(Frame::Ping), Ok(Frame::Padding(1)), Ok(Frame::Ping)]
    );
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.3.1
//= type=test
//# If any computed packet number is negative, an endpoint MUST generate a connection error of type
//# FRAME_ENCODING_ERROR.
#[test]
fn acknowledged_numbers_below_zero_are_an_error() {
    for (frame_type, path) in [(0x02, None), (0x03, None), (0x3e, Some(3)), (0x3f, Some(3))] {
        let payload = |fields: &[u64]| {
            let mut values = vec![frame_type];
            values.extend(path);
            values.extend(fields);
            values.extend([0, 0, 0]);
            bytes_of(&values)
        };
        // Largest, delay, count, first range, (gap, range).
        assert_encoding_error(&payload(&[9, 0, 0, 10]), frame_type);
        assert_encoding_error(&payload(&[9, 0, 1, 9, 0, 0]), frame_type);
        assert_encoding_error(&payload(&[9, 0, 1, 8, 0, 0]), frame_type);
        assert_encoding_error(&payload(&[9, 0, 1, 7, 0, 1]), frame_type);
        assert_encoding_error(&payload(&[9, 0, 1, 7, varint::MAX, 0]), frame_type);
        assert_encoding_error(&payload(&[9, 0, 1, 7, 0, varint::MAX]), frame_type);
        assert!(read(&payload(&[9, 0, 1, 7, 0, 0])).first().is_some_and(Result::is_ok));
        assert!(read(&payload(&[9, 0, 0, 9])).first().is_some_and(Result::is_ok));
    }
}

#[test]
fn a_huge_range_count_costs_nothing() {
    for count in [2, 1 << 32, varint::MAX] {
        assert_encoding_error(&bytes_of(&[0x02, varint::MAX, 0, count, 0, 0, 0]), 0x02);
        assert_encoding_error(&bytes_of(&[0x3f, 3, varint::MAX, 0, count, 0, 0, 0]), 0x3f);
    }
    // As many ranges as fit in the largest datagram are read in one pass.
    let mut payload = bytes_of(&[0x02, varint::MAX, 0, 32_000, 0]);
    payload.resize(payload.len() + 64_000, 0);
    let results = read(&payload);
    let Some(Ok(Frame::Ack(ack))) = results.first() else { panic!("not an acknowledgement") };
    assert_eq!((results.len(), ack.ranges.count(), ack.ranges.iter().count()), (1, 32_001, 32_001));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.6
//= type=test
//# Receipt of a frame that exceeds this limit MUST be treated as a connection error of type
//# FRAME_ENCODING_ERROR or CRYPTO_BUFFER_EXCEEDED.
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.8
//= type=test
//# Receipt of a frame that exceeds this limit MUST be treated as a connection error of type
//# FRAME_ENCODING_ERROR or FLOW_CONTROL_ERROR.
#[test]
fn data_beyond_the_last_offset_is_an_error() {
    let last = varint::MAX;
    assert_encoding_error(&[&bytes_of(&[0x0e, 4, last, 1])[..], b"x"].concat(), 0x0e);
    assert_encoding_error(&[&bytes_of(&[0x0c, 4, last])[..], b"x"].concat(), 0x0c);
    assert_encoding_error(&[&bytes_of(&[0x06, last, 1])[..], b"x"].concat(), 0x06);
    for payload in [bytes_of(&[0x0f, 4, last, 0]), bytes_of(&[0x06, last, 0])] {
        assert!(read(&payload).iter().all(Result::is_ok));
    }
    assert!(read(&[&bytes_of(&[0x0e, 4, last - 1, 1])[..], b"x"].concat()).iter().all(Result::is_ok));
}

#[test]
fn a_length_beyond_the_packet_is_an_error() {
    for (frame_type, fields) in
        [(0x06, vec![0]), (0x07, vec![]), (0x0a, vec![4]), (0x31, vec![]), (0x1d, vec![0])]
    {
        for length in [2, 1 << 20, varint::MAX] {
            let payload = [bytes_of(&[frame_type]), bytes_of(&fields), bytes_of(&[length]), vec![7]].concat();
            assert_encoding_error(&payload, frame_type);
        }
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.11
//= type=test
//# Receipt of a frame that permits opening of a stream larger than this limit MUST be treated as a connection
//# error of type FRAME_ENCODING_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.14
//= type=test
//# Receipt of a frame that encodes a larger stream ID MUST be treated as a connection error of type
//# STREAM_LIMIT_ERROR or FRAME_ENCODING_ERROR.
#[test]
fn more_streams_than_there_are_ids_is_an_error() {
    for frame_type in [0x12, 0x13, 0x16, 0x17] {
        assert_encoding_error(&bytes_of(&[frame_type, (1 << 60) + 1]), frame_type);
        assert!(read(&bytes_of(&[frame_type, 1 << 60])).iter().all(Result::is_ok));
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.15
//= type=test
//# Values less than 1 and greater than 20 are invalid and MUST be treated as a connection error of type
//# FRAME_ENCODING_ERROR.
#[test]
fn a_new_connection_id_has_one_to_twenty_bytes() {
    for (frame_type, head) in [(0x18, vec![0x18]), (0x3e78, vec![0x7e, 0x78, 3])] {
        for length in 0..=255_u8 {
            let payload = [head.clone(), vec![1, 0, length], vec![7; usize::from(length) + 16]].concat();
            if (1..=20).contains(&length) {
                assert!(read(&payload).iter().all(Result::is_ok));
            } else {
                assert_encoding_error(&payload, frame_type);
            }
        }
        let retires_itself = [head.clone(), vec![1, 2, 1], vec![7; 17]].concat();
        assert_encoding_error(&retires_itself, frame_type);
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.7
//= type=test
//# A client MUST treat receipt of a NEW_TOKEN frame with an empty Token field as a connection error of type
//# FRAME_ENCODING_ERROR.
#[test]
fn an_empty_token_is_an_error() {
    assert_encoding_error(&[0x07, 0], 0x07);
}

#[test]
fn a_path_id_that_cannot_exist_is_a_protocol_violation() {
    for frame_type in [0x3e, 0x3f, 0x3e75, 0x3e76, 0x3e77, 0x3e78, 0x3e79, 0x3e7c] {
        let payload = |path| [bytes_of(&[frame_type, path, 9, 0, 1]), vec![0; 20]].concat();
        let error = error_of(&payload(1 << 32));
        assert_eq!((error.code, error.frame_type), (ErrorCode::PROTOCOL_VIOLATION, frame_type));
        assert!(read(&payload(u64::from(u32::MAX))).iter().all(Result::is_ok), "{frame_type:#x}");
    }
    // These two are the owner's to judge.
    for frame in [Frame::MaxPathId(1 << 32), Frame::PathsBlocked(1 << 32)] {
        assert_eq!(read(&encoded(&frame)), [Ok(frame)]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_never_panic(payload in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut reader = FrameReader::new(Bytes::from(payload));
        let mut before = usize::MAX;
        while let Some(result) = reader.next() {
            // Every frame takes at least a byte, and what was read can be written and read again.
            prop_assert!(reader.remaining() < before);
            before = reader.remaining();
            if let Ok(frame) = result {
                prop_assert_eq!(read(&encoded(&frame)), [Ok(frame)]);
            }
        }
    }

    #[test]
    fn random_fields_of_known_types_never_panic(
        index in 0..38_usize,
        fields in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let (frame_type, _) = every_frame().swap_remove(index);
        let payload = [bytes_of(&[frame_type]), fields].concat();
        for frame in read(&payload).into_iter().flatten() {
            prop_assert_eq!(encoded(&frame).len(), frame.encoded_size());
            prop_assert_eq!(read(&encoded(&frame)), [Ok(frame)]);
        }
    }
}

#[test]
fn a_reset_promises_no_more_than_the_stream_has() {
    // Draft-ietf-quic-reliable-stream-reset §4.
    assert_encoding_error(&bytes_of(&[0x24, 4, 7, 9, 10]), 0x24);
    let whole = ResetStreamAt { id: StreamId(4), error: 7, final_size: 9, reliable_size: 9 };
    assert_eq!(read(&bytes_of(&[0x24, 4, 7, 9, 9])), [Ok(Frame::ResetStreamAt(whole))]);
}
