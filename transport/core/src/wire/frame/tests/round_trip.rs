//! Tests that frames are read as they were written.

use super::*;
use crate::wire::frame::datagram;
use crate::wire::varint;
use hvq_scheduler::{Bandwidth, Hints, Metering, PerMille, Sharing};
use proptest::prelude::*;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Integers of all sizes.
fn integers() -> impl Strategy<Value = u64> {
    (any::<u64>(), 2..64_u32).prop_map(|(value, shift)| value >> shift)
}

fn data() -> impl Strategy<Value = Bytes> {
    proptest::collection::vec(any::<u8>(), 0..100).prop_map(Bytes::from)
}

fn paths() -> impl Strategy<Value = PathId> {
    (any::<u32>(), 0..32_u32).prop_map(|(value, shift)| PathId(value >> shift))
}

fn directions() -> impl Strategy<Value = Direction> {
    prop_oneof![Just(Direction::Bidirectional), Just(Direction::Unidirectional)]
}

/// Ranges as a receiver would have them: mostly neighbours, sometimes far apart.
fn ranges() -> impl Strategy<Value = Ranges> {
    proptest::collection::vec((0..5000_u64, 1..200_u64), 1..100).prop_map(|runs| {
        let mut next = 0;
        let mut ranges = Ranges::new();
        for (gap, length) in runs {
            let first = next + gap;
            next = first + length + 1;
            ranges.insert_range(first..=next - 2);
        }
        ranges
    })
}

fn acks() -> impl Strategy<Value = Frame> {
    let ecn = (integers(), integers(), integers()).prop_map(|(ect0, ect1, ce)| EcnCounts { ect0, ect1, ce });
    (proptest::option::of(paths()), ranges(), integers(), proptest::option::of(ecn)).prop_map(
        |(path, ranges, delay, ecn)| {
            Frame::Ack(Ack::from_ranges(path, &ranges, delay, ecn, 1200).expect("there is room"))
        },
    )
}

fn stream_frames() -> impl Strategy<Value = Frame> {
    let id = || integers().prop_map(StreamId);
    let count = 0..=1_u64 << 60;
    prop_oneof![
        (id(), integers(), data(), any::<bool>()).prop_map(|(id, offset, data, fin)| {
            let offset = offset.min(varint::MAX - data.len() as u64);
            Frame::Stream(Stream { id, offset, data, fin })
        }),
        (id(), integers(), integers()).prop_map(|(id, error, final_size)| Frame::ResetStream(ResetStream {
            id,
            error,
            final_size
        })),
        (id(), integers()).prop_map(|(id, error)| Frame::StopSending(StopSending { id, error })),
        integers().prop_map(Frame::MaxData),
        integers().prop_map(Frame::DataBlocked),
        (id(), integers()).prop_map(|(id, limit)| Frame::MaxStreamData { id, limit }),
        (id(), integers()).prop_map(|(id, limit)| Frame::StreamDataBlocked { id, limit }),
        (directions(), count.clone()).prop_map(|(direction, limit)| Frame::MaxStreams { direction, limit }),
        (directions(), count).prop_map(|(direction, limit)| Frame::StreamsBlocked { direction, limit }),
    ]
}

fn connection_frames() -> impl Strategy<Value = Frame> {
    prop_oneof![
        Just(Frame::Ping),
        Just(Frame::HandshakeDone),
        Just(Frame::ImmediateAck),
        (integers(), integers(), integers(), integers()).prop_map(
            |(sequence, threshold, micros, reordering)| {
                let max_delay = std::time::Duration::from_micros(micros);
                Frame::AckFrequency(AckFrequency { sequence, threshold, max_delay, reordering })
            }
        ),
        (1..100_usize).prop_map(Frame::Padding),
        (integers(), data()).prop_map(|(offset, data)| {
            let offset = offset.min(varint::MAX - data.len() as u64);
            Frame::Crypto(Crypto { offset, data })
        }),
        data().prop_filter("a token is not empty", |token| !token.is_empty()).prop_map(Frame::NewToken),
        data().prop_map(Frame::Datagram),
        any::<[u8; 8]>().prop_map(Frame::PathChallenge),
        any::<[u8; 8]>().prop_map(Frame::PathResponse),
        (integers(), integers(), data()).prop_map(|(code, frame_type, reason)| {
            let code = ErrorCode(code);
            Frame::ConnectionClose(ConnectionClose::Transport { code, frame_type, reason })
        }),
        (integers(), data())
            .prop_map(|(code, reason)| Frame::ConnectionClose(ConnectionClose::Application { code, reason })),
    ]
}

/// Hints of all kinds, with values as fine as the frame can tell.
fn hints() -> impl Strategy<Value = Hints> {
    let sharing = [Sharing::Unknown, Sharing::Shared, Sharing::Endpoint, Sharing::Dedicated];
    let metering = [Metering::Unknown, Metering::Unmetered, Metering::Metered];
    let value = || proptest::option::of(integers());
    (value(), value(), value(), proptest::option::of(0..=1000_u16), value(), 0..4_usize, 0..3_usize).prop_map(
        move |(rate, back, delay, loss, price_per_byte, shared, metered)| Hints {
            rate: rate.map(Bandwidth::from_bits_per_second),
            rate_back: back.map(Bandwidth::from_bits_per_second),
            delay: delay.map(Duration::from_micros),
            loss: loss.map(PerMille::new),
            price_per_byte,
            shared: sharing[shared],
            metering: metering[metered],
        },
    )
}

fn path_frames() -> impl Strategy<Value = Frame> {
    let id = proptest::collection::vec(any::<u8>(), 1..=20);
    let status = prop_oneof![Just(Status::Available), Just(Status::Backup)];
    prop_oneof![
        (proptest::option::of(paths()), integers(), integers(), id, any::<[u8; 16]>()).prop_map(
            |(path, a, b, id, token)| {
                Frame::NewConnectionId(NewConnectionId {
                    path,
                    sequence: a.max(b),
                    retire_prior_to: a.min(b),
                    id: ConnectionId::new(&id).expect("at most 20 bytes"),
                    token: ResetToken(token),
                })
            }
        ),
        (proptest::option::of(paths()), integers())
            .prop_map(|(path, sequence)| Frame::RetireConnectionId { path, sequence }),
        (paths(), integers()).prop_map(|(path, error)| Frame::PathAbandon { path, error }),
        (paths(), integers(), status).prop_map(|(path, sequence, status)| Frame::PathStatus {
            path,
            sequence,
            status
        }),
        (paths(), integers(), hints()).prop_map(|(path, sequence, hints)| Frame::PathHints(PathHints {
            path,
            sequence,
            hints
        })),
        integers().prop_map(Frame::MaxPathId),
        integers().prop_map(Frame::PathsBlocked),
        (paths(), integers())
            .prop_map(|(path, next_sequence)| Frame::PathCidsBlocked { path, next_sequence }),
    ]
}

fn frames() -> impl Strategy<Value = Frame> {
    prop_oneof![1 => acks(), 2 => stream_frames(), 2 => connection_frames(), 2 => path_frames()]
}

proptest! {
    //= https://www.rfc-editor.org/rfc/rfc9000#section-19.3
    //= type=test
    //# QUIC implementations MUST properly handle both types, and, if they have enabled ECN for packets they
    //# send, they SHOULD use the information in the ECN section to manage their congestion state.
    #[test]
    fn frames_survive_encoding(frames in proptest::collection::vec(frames(), 1..20)) {
        let mut payload = Vec::new();
        for frame in &frames {
            let before = payload.len();
            frame.put(&mut payload);
            prop_assert_eq!(payload.len() - before, frame.encoded_size());
        }
        // Neighbouring runs of PADDING become one.
        let mut expected: Vec<Frame> = Vec::new();
        for frame in frames {
            match (expected.last_mut(), &frame) {
                (Some(Frame::Padding(run)), Frame::Padding(more)) => *run += more,
                _ => expected.push(frame),
            }
        }
        let read: Result<Vec<_>, _> = FrameReader::new(payload.into()).collect();
        prop_assert_eq!(read, Ok(expected));
    }

    #[test]
    fn a_frame_cut_anywhere_is_never_taken_for_another(frame in frames()) {
        let bytes = encoded(&frame);
        let is_padding = matches!(frame, Frame::Padding(_));
        for end in 1..bytes.len() {
            let results = read(&bytes[..end]);
            prop_assert_eq!(results.iter().all(Result::is_ok), is_padding);
        }
    }

    #[test]
    fn the_newest_ranges_that_fit_are_acknowledged(ranges in ranges(), budget in 0..300_usize) {
        let all: Vec<RangeInclusive<u64>> = ranges.iter().rev().collect();
        let Some(ack) = Ack::from_ranges(None, &ranges, 100, None, budget) else {
            // Type, largest, delay (100 takes two bytes), count, first range.
            let (smallest, largest) = all[0].clone().into_inner();
            let least = 1 + varint::size(largest) + 2 + 1 + varint::size(largest - smallest);
            prop_assert!(budget < least);
            return Ok(());
        };
        let sent: Vec<_> = ack.ranges.iter().collect();
        prop_assert_eq!(&sent[..], &all[..sent.len()]);
        prop_assert_eq!(ack.ranges.count(), sent.len() as u64);
        prop_assert_eq!(ack.largest, *all[0].end());
        let size = Frame::Ack(ack).encoded_size();
        prop_assert!(size <= budget);
        if let Some(next) = all.get(sent.len()) {
            // The next one would have gone over the budget, with a count that may have grown by a byte.
            let gap = sent.last().unwrap().start() - next.end() - 2;
            let more = varint::size(gap) + varint::size(next.end() - next.start());
            let count = varint::size(sent.len() as u64) - varint::size(sent.len() as u64 - 1);
            prop_assert!(size + more + count > budget);
        }
    }

    #[test]
    fn the_room_for_data_is_used_up(id in integers(), offset in integers(), room in 0..20_000_usize) {
        let offset = offset.min(varint::MAX / 2);
        let id = StreamId(id);
        let stream = |length: usize| {
            Frame::Stream(Stream { id, offset, data: vec![0; length].into(), fin: false }).encoded_size()
        };
        let crypto = |length: usize| Frame::Crypto(Crypto { offset, data: vec![0; length].into() }).encoded_size();
        let datagram = |length: usize| Frame::Datagram(vec![0; length].into()).encoded_size();

        let most = Stream::data_room(id, offset, room);
        prop_assert!(most == 0 || stream(most) <= room);
        prop_assert!(stream(most + 1) > room);
        prop_assert_eq!(stream(most), Stream::header_size(id, offset, Some(most)) + most);

        let most = Crypto::data_room(offset, room);
        prop_assert!(most == 0 || crypto(most) <= room);
        prop_assert!(crypto(most + 1) > room);
        prop_assert_eq!(crypto(most), Crypto::header_size(offset, most) + most);

        let most = datagram::data_room(room);
        prop_assert!(most == 0 || datagram(most) <= room);
        prop_assert!(datagram(most + 1) > room);
        prop_assert_eq!(datagram(most), datagram::encoded_size(most));
    }
}

#[test]
fn forms_without_a_length_take_the_rest_of_the_packet() {
    let stream = |offset, fin| Stream { id: StreamId(4), offset, data: Bytes::from_static(b"ab"), fin };
    for (payload, frame) in [
        (&[0x08, 4, b'a', b'b'][..], Frame::Stream(stream(0, false))),
        (&[0x09, 4, b'a', b'b'], Frame::Stream(stream(0, true))),
        (&[0x0c, 4, 9, b'a', b'b'], Frame::Stream(stream(9, false))),
        (&[0x0d, 4, 9, b'a', b'b'], Frame::Stream(stream(9, true))),
        (&[0x30, b'a', b'b'], Frame::Datagram(Bytes::from_static(b"ab"))),
    ] {
        assert_eq!(read(payload), [Ok(frame)]);
    }
    assert_eq!(read(&[0x30]), [Ok(Frame::Datagram(Bytes::new()))]);
}

#[test]
fn nothing_is_acknowledged_without_ranges_or_room() {
    assert_eq!(Ack::from_ranges(None, &Ranges::new(), 0, None, 1200), None);
    let ranges: Ranges = [5..=9].into_iter().collect();
    assert_eq!(Ack::from_ranges(Some(PathId(1)), &ranges, 0, None, 5), None);
    assert!(Ack::from_ranges(Some(PathId(1)), &ranges, 0, None, 6).is_some());
}

#[test]
fn received_data_is_not_copied() {
    let payload = Bytes::from(encoded(&Frame::Datagram(Bytes::from_static(&[7; 100]))));
    let inside = payload.as_ptr_range();
    let Some(Ok(Frame::Datagram(data))) = FrameReader::new(payload.clone()).next() else {
        panic!("not read")
    };
    assert!(inside.contains(&data.as_ptr()));
}
