//! Frames against the registries, against each other and against garbage.

mod acknowledged;
mod hostile;
mod permitted;
mod round_trip;

use super::samples::{ack, every_frame, new_connection_id};
use super::*;
use crate::PathId;
use crate::error::{ErrorCode, TransportError};
use crate::ranges::Ranges;
use crate::wire::connection_id::{ConnectionId, ResetToken};
use crate::wire::stream_id::{Direction, StreamId};
use bytes::Bytes;
use hvq_scheduler::Hints;

fn encoded(frame: &Frame) -> Vec<u8> {
    let mut buf = Vec::new();
    frame.put(&mut buf);
    buf
}

/// Everything that a reader gives for `payload`.
fn read(payload: &[u8]) -> Vec<Result<Frame, TransportError>> {
    FrameReader::new(Bytes::copy_from_slice(payload)).collect()
}

/// The only error that a reader gives for `payload`, after any number of frames.
fn error_of(payload: &[u8]) -> TransportError {
    let mut results = read(payload);
    let error = results.pop().expect("something was read").expect_err("the last frame is wrong");
    assert!(results.iter().all(Result::is_ok));
    error
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-12.4
//= type=test
//# To ensure simple and efficient implementations of frame parsing, a frame type MUST use the shortest
//# possible encoding
#[test]
fn every_frame_has_its_registered_type_and_a_name() {
    for (frame_type, frame) in every_frame() {
        assert_eq!(frame.frame_type(), frame_type);
        assert_eq!(crate::wire::varint::get(&encoded(&frame)).unwrap().0, frame_type);
        assert_ne!(frame.kind(), "unknown");
    }
    assert_eq!(types::name(0x21), "unknown");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-9.1
//= type=test
//# PATH_CHALLENGE, PATH_RESPONSE, NEW_CONNECTION_ID, and PADDING frames are "probing frames", and all other
//# frames are "non-probing frames".
#[test]
fn four_types_of_frames_only_probe_an_address() {
    let of_rfc_9000 = every_frame().into_iter().filter(|(frame_type, _)| *frame_type <= 0x1e);
    let probing: Vec<u64> =
        of_rfc_9000.filter(|(_, frame)| frame.is_probing()).map(|(frame_type, _)| frame_type).collect();
    assert_eq!(probing, [0x00, 0x18, 0x1a, 0x1b]);
}

#[test]
fn the_names_are_those_of_all_types() {
    let all = (0..=u64::from(u16::MAX)).chain([types::PATH_HINTS]);
    let given: std::collections::BTreeSet<_> =
        all.map(types::name).filter(|name| *name != "unknown").collect();
    assert_eq!(given, types::names());
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-12.4
//= type=test
//# To ensure simple and efficient implementations of frame parsing, a frame type MUST use the shortest
//# possible encoding
#[test]
fn multipath_frames_are_these_bytes() {
    // RFC 10069 §4; the registry has BACKUP below AVAILABLE.
    let path = PathId(3);
    let ecn = Some(EcnCounts { ect0: 1, ect1: 2, ce: 3 });
    let cases = [
        // Path, largest 9, delay 5, one more range, 3 packets, gap of 3, 3 packets.
        (ack(Some(path), &[1..=3, 7..=9], None), vec![0x3e, 3, 9, 5, 1, 2, 2, 2]),
        (ack(Some(path), &[1..=3, 7..=9], ecn), vec![0x3f, 3, 9, 5, 1, 2, 2, 2, 1, 2, 3]),
        (Frame::PathAbandon { path, error: 0x3e }, vec![0x7e, 0x75, 3, 0x3e]),
        (
            Frame::PathAbandon { path, error: path::NO_CID_AVAILABLE_FOR_PATH },
            vec![0x7e, 0x75, 3, 0x7e, 0x77],
        ),
        (Frame::PathStatus { path, sequence: 5, status: Status::Backup }, vec![0x7e, 0x76, 3, 5]),
        (Frame::PathStatus { path, sequence: 5, status: Status::Available }, vec![0x7e, 0x77, 3, 5]),
        (new_connection_id(Some(path)), [vec![0x7e, 0x78, 3, 4, 2, 2, 0xaa, 0xbb], vec![0xcc; 16]].concat()),
        (Frame::RetireConnectionId { path: Some(path), sequence: 6 }, vec![0x7e, 0x79, 3, 6]),
        (Frame::MaxPathId(7), vec![0x7e, 0x7a, 7]),
        (Frame::PathsBlocked(7), vec![0x7e, 0x7b, 7]),
        (Frame::PathCidsBlocked { path, next_sequence: 6 }, vec![0x7e, 0x7c, 3, 6]),
        (Frame::PathAbandon { path: PathId(u32::MAX), error: 0 }, {
            vec![0x7e, 0x75, 0xc0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0]
        }),
    ];
    for (frame, bytes) in cases {
        assert_eq!(encoded(&frame), bytes, "{frame:?}");
        assert_eq!(read(&bytes), [Ok(frame)]);
    }
    assert_eq!(
        [path::APPLICATION_ABANDON_PATH, path::PATH_RESOURCE_LIMIT_REACHED, path::PATH_UNSTABLE_OR_POOR],
        [0x3e, 0x3e75, 0x3e76]
    );
}

#[test]
fn hints_are_these_bytes() {
    // docs/spec/path-hints.md §4: path, sequence number, flags, rates, delay, loss, price.
    let hints = |hints| Frame::PathHints(PathHints { path: PathId(3), sequence: 5, hints });
    let head = [0xac, 0x9f, 0x13, 0xa7, 3, 5];
    let mut all = [&head[..], &[0x41, 0x5f]].concat();
    for value in [2_000_000, 60_000_000, 2500, 5000, 3] {
        crate::wire::varint::put(&mut all, value);
    }
    assert_eq!(encoded(&hints(samples::all_hints())), all);
    assert_eq!(encoded(&hints(Hints::NONE)), [&head[..], &[0]].concat());
}

#[test]
fn frames_of_rfc_9000_are_these_bytes() {
    let cases = [
        (ack(None, &[1..=3, 7..=9], None), vec![0x02, 9, 5, 1, 2, 2, 2]),
        (ack(None, &[0..=0], None), vec![0x02, 0, 5, 0, 0]),
        (new_connection_id(None), [vec![0x18, 4, 2, 2, 0xaa, 0xbb], vec![0xcc; 16]].concat()),
        (
            Frame::ConnectionClose(ConnectionClose::Transport {
                code: ErrorCode(0xa),
                frame_type: 0x06,
                reason: Bytes::from_static(b"no"),
            }),
            vec![0x1c, 0xa, 6, 2, b'n', b'o'],
        ),
        (
            Frame::Stream(Stream { id: StreamId(4), offset: 64, data: Bytes::from_static(b"x"), fin: true }),
            vec![0x0f, 4, 0x40, 64, 1, b'x'],
        ),
    ];
    for (frame, bytes) in cases {
        assert_eq!(encoded(&frame), bytes, "{frame:?}");
        assert_eq!(read(&bytes), [Ok(frame)]);
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.21
//= type=test
//# Extension frames MUST be congestion controlled and MUST cause an ACK frame to be sent
#[test]
fn only_padding_acknowledgements_and_close_ask_for_no_acknowledgement() {
    for (frame_type, frame) in every_frame() {
        let silent = matches!(frame_type, 0x00 | 0x02 | 0x03 | 0x1c | 0x1d | 0x3e | 0x3f);
        assert_eq!(frame.is_ack_eliciting(), !silent, "{}", frame.kind());
    }
}
