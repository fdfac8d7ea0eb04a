//! Samples of frames for tests.

use super::*;
use crate::PathId;
use crate::error::ErrorCode;
use crate::ranges::Ranges;
use crate::wire::connection_id::{ConnectionId, ResetToken};
use crate::wire::stream_id::{Direction, StreamId};
use bytes::Bytes;
use hvq_scheduler::{Bandwidth, Hints, Metering, PerMille, Sharing};
use std::time::Duration;

pub(crate) fn ack(
    path: Option<PathId>,
    ranges: &[std::ops::RangeInclusive<u64>],
    ecn: Option<EcnCounts>,
) -> Frame {
    let ranges: Ranges = ranges.iter().cloned().collect();
    Frame::Ack(Ack::from_ranges(path, &ranges, 5, ecn, 1200).unwrap())
}

pub(crate) fn new_connection_id(path: Option<PathId>) -> Frame {
    Frame::NewConnectionId(NewConnectionId {
        path,
        sequence: 4,
        retire_prior_to: 2,
        id: ConnectionId::new(&[0xaa, 0xbb]).unwrap(),
        token: ResetToken([0xcc; 16]),
    })
}

/// Something about everything that a hint can be about.
pub(crate) fn all_hints() -> Hints {
    Hints {
        rate: Some(Bandwidth::from_mbit(2)),
        rate_back: Some(Bandwidth::from_mbit(60)),
        delay: Some(Duration::from_micros(2500)),
        loss: Some(PerMille::new(5)),
        price_per_byte: Some(3),
        shared: Sharing::Endpoint,
        metering: Metering::Metered,
    }
}

/// Each frame of the RFCs in each of its forms, with the type that it has there.
pub(crate) fn every_frame() -> Vec<(u64, Frame)> {
    let id = StreamId(4);
    let ecn = Some(EcnCounts { ect0: 1, ect1: 2, ce: 3 });
    let path = PathId(3);
    let data = Bytes::from_static(b"data");
    let stream = |offset, fin| Frame::Stream(Stream { id, offset, data: Bytes::from_static(b"data"), fin });
    let (bidirectional, unidirectional) = (Direction::Bidirectional, Direction::Unidirectional);
    vec![
        (0x00, Frame::Padding(1)),
        (0x01, Frame::Ping),
        (0x02, ack(None, &[1..=3, 7..=9], None)),
        (0x03, ack(None, &[1..=3, 7..=9], ecn)),
        (0x04, Frame::ResetStream(ResetStream { id, error: 7, final_size: 9 })),
        (0x05, Frame::StopSending(StopSending { id, error: 7 })),
        (0x06, Frame::Crypto(Crypto { offset: 9, data: data.clone() })),
        (0x07, Frame::NewToken(data.clone())),
        (0x0a, stream(0, false)),
        (0x0b, stream(0, true)),
        (0x0e, stream(100, false)),
        (0x0f, stream(100, true)),
        (0x10, Frame::MaxData(100)),
        (0x11, Frame::MaxStreamData { id, limit: 100 }),
        (0x12, Frame::MaxStreams { direction: bidirectional, limit: 100 }),
        (0x13, Frame::MaxStreams { direction: unidirectional, limit: 100 }),
        (0x14, Frame::DataBlocked(100)),
        (0x15, Frame::StreamDataBlocked { id, limit: 100 }),
        (0x16, Frame::StreamsBlocked { direction: bidirectional, limit: 100 }),
        (0x17, Frame::StreamsBlocked { direction: unidirectional, limit: 100 }),
        (0x18, new_connection_id(None)),
        (0x19, Frame::RetireConnectionId { path: None, sequence: 6 }),
        (0x1a, Frame::PathChallenge(*b"12345678")),
        (0x1b, Frame::PathResponse(*b"12345678")),
        (0x1c, {
            let code = ErrorCode::FRAME_ENCODING_ERROR;
            Frame::ConnectionClose(ConnectionClose::Transport {
                code,
                frame_type: 0x3e76,
                reason: data.clone(),
            })
        }),
        (0x1d, Frame::ConnectionClose(ConnectionClose::Application { code: 3, reason: data.clone() })),
        (0x1e, Frame::HandshakeDone),
        (0x1f, Frame::ImmediateAck),
        (0xaf, {
            let max_delay = std::time::Duration::from_micros(5000);
            Frame::AckFrequency(AckFrequency { sequence: 2, threshold: 9, max_delay, reordering: 3 })
        }),
        (0x31, Frame::Datagram(data)),
        (0x3e, ack(Some(path), &[1..=3, 7..=9], None)),
        (0x3f, ack(Some(path), &[1..=3, 7..=9], ecn)),
        (0x3e75, Frame::PathAbandon { path, error: path::PATH_UNSTABLE_OR_POOR }),
        (0x3e76, Frame::PathStatus { path, sequence: 5, status: Status::Backup }),
        (0x3e77, Frame::PathStatus { path, sequence: 5, status: Status::Available }),
        (0x3e78, new_connection_id(Some(path))),
        (0x3e79, Frame::RetireConnectionId { path: Some(path), sequence: 6 }),
        (0x3e7a, Frame::MaxPathId(7)),
        (0x3e7b, Frame::PathsBlocked(7)),
        (0x3e7c, Frame::PathCidsBlocked { path, next_sequence: 6 }),
        (0x24, Frame::ResetStreamAt(ResetStreamAt { id, error: 7, final_size: 9, reliable_size: 5 })),
        (0x2c9f_13a7, Frame::PathHints(PathHints { path, sequence: 5, hints: all_hints() })),
    ]
}
