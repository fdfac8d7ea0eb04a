//! Clients that break the rules of streams, and what both ends learn of it: attacks.md, section E.

use super::basics::read_all;
use super::hostile_ends::connected;
use crate::PathId;
use crate::connection::Event;
use crate::error::{ConnectionError, ErrorCode};
use crate::stream::{Direction, StreamId};
use crate::wire::frame::{Frame, ResetStream, ResetStreamAt, StopSending, Stream};
use bytes::Bytes;
use hvq_scheduler::Role;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
const BIDI: Direction = Direction::Bidirectional;
const UNI: Direction = Direction::Unidirectional;

/// Returns the close of the server, of which the client was told: the code and the type of the frame.
fn verdict(frames: &[Frame]) -> Option<(ErrorCode, u64)> {
    let (mut network, client) = connected();
    let now = network.now;
    network.client(client).force_on(PathId::ZERO, frames, now);
    network.run_for(RTT * 2);
    let closed = network.server_events.iter().find_map(|(_, event)| match event {
        Event::Closed(ConnectionError::Transport(error)) => Some((error.code, error.frame_type)),
        _ => None,
    });
    let told = network.client_events.iter().find_map(|(_, event)| match event {
        Event::Closed(ConnectionError::PeerTransport(error)) => Some((error.code, error.frame_type)),
        _ => None,
    });
    assert_eq!(closed, told, "both ends agree");
    closed
}

fn client(direction: Direction, index: u64) -> StreamId {
    StreamId::new(Role::Client, direction, index)
}

fn server(direction: Direction) -> StreamId {
    StreamId::new(Role::Server, direction, 0)
}

fn stream(id: StreamId, offset: u64, length: usize, fin: bool) -> Frame {
    Frame::Stream(Stream { id, offset, data: Bytes::from(vec![1; length]), fin })
}

fn reset(id: StreamId, final_size: u64) -> Frame {
    Frame::ResetStream(ResetStream { id, error: 0, final_size })
}

fn reset_at(id: StreamId, final_size: u64, reliable_size: u64) -> Frame {
    Frame::ResetStreamAt(ResetStreamAt { id, error: 0, final_size, reliable_size })
}

fn stop(id: StreamId) -> Frame {
    Frame::StopSending(StopSending { id, error: 0 })
}

#[test]
fn each_violation_of_the_rules_of_streams_closes_with_its_code_and_both_ends_know() {
    // attacks.md E1 to E5, RFC 9000 §4.1, §4.5, §4.6, §19.4 to §19.14.
    let own = client(BIDI, 0);
    let cases = [
        (vec![stream(own, 1 << 40, 1, false)], ErrorCode::FLOW_CONTROL_ERROR),
        (vec![reset(own, 1 << 40)], ErrorCode::FLOW_CONTROL_ERROR),
        (vec![stream(client(BIDI, 1 << 40), 0, 1, false)], ErrorCode::STREAM_LIMIT_ERROR),
        (vec![stream(client(UNI, 1 << 40), 0, 1, false)], ErrorCode::STREAM_LIMIT_ERROR),
        (vec![stream(server(UNI), 0, 1, false)], ErrorCode::STREAM_STATE_ERROR),
        (vec![stream(server(BIDI), 0, 1, false)], ErrorCode::STREAM_STATE_ERROR),
        (vec![reset(server(UNI), 0)], ErrorCode::STREAM_STATE_ERROR),
        (vec![Frame::StreamDataBlocked { id: server(UNI), limit: 0 }], ErrorCode::STREAM_STATE_ERROR),
        (vec![stop(client(UNI, 0))], ErrorCode::STREAM_STATE_ERROR),
        (vec![stop(server(BIDI))], ErrorCode::STREAM_STATE_ERROR),
        (vec![Frame::MaxStreamData { id: client(UNI, 0), limit: 9 }], ErrorCode::STREAM_STATE_ERROR),
        (vec![Frame::MaxStreamData { id: server(BIDI), limit: 9 }], ErrorCode::STREAM_STATE_ERROR),
        (vec![stream(own, 0, 3, true), stream(own, 3, 1, false)], ErrorCode::FINAL_SIZE_ERROR),
        (vec![stream(own, 0, 3, true), reset(own, 4)], ErrorCode::FINAL_SIZE_ERROR),
        (vec![stream(own, 5, 3, false), stream(own, 0, 3, true)], ErrorCode::FINAL_SIZE_ERROR),
        (vec![Frame::MaxStreams { direction: BIDI, limit: (1 << 60) + 1 }], ErrorCode::FRAME_ENCODING_ERROR),
        (
            vec![Frame::StreamsBlocked { direction: UNI, limit: (1 << 60) + 1 }],
            ErrorCode::FRAME_ENCODING_ERROR,
        ),
        // Draft-ietf-quic-reliable-stream-reset §3: not offered here.
        (vec![reset_at(own, 0, 0)], ErrorCode::FRAME_ENCODING_ERROR),
        // attacks.md E16, RFC 9000 §19.7.
        (vec![Frame::NewToken(Bytes::from_static(b"token"))], ErrorCode::PROTOCOL_VIOLATION),
    ];
    for (frames, code) in cases {
        let guilty = frames.last().map_or(0, Frame::frame_type);
        // A length and an end are flags of the type of a STREAM frame (RFC 9000 §19.8), not remembered.
        let (told, kind) = verdict(&frames).unwrap_or_else(|| panic!("{frames:?} is no violation"));
        assert_eq!((told, kind & !7), (code, guilty & !7), "{frames:?}");
    }
}

#[test]
fn limits_that_fall_and_reports_of_being_blocked_are_no_violations() {
    // attacks.md E12, E14, RFC 9000 §4.1, §19.12 to §19.14.
    let own = client(BIDI, 0);
    let harmless = [
        stream(own, 0, 1, false),
        Frame::MaxData(0),
        Frame::MaxStreamData { id: own, limit: 0 },
        Frame::MaxStreams { direction: BIDI, limit: 0 },
        Frame::DataBlocked(0),
        Frame::StreamDataBlocked { id: own, limit: 1 << 60 },
        Frame::StreamsBlocked { direction: BIDI, limit: 1 << 60 },
    ];
    assert_eq!(verdict(&harmless), None);
}

#[test]
fn a_flood_of_tokens_tells_the_application_of_a_few() {
    // attacks.md E16.
    let (mut network, client) = connected();
    let tokens = |event: &Event| matches!(event, Event::NewToken(_));
    for number in 0..500_u16 {
        let now = network.now;
        let token = Frame::NewToken(Bytes::copy_from_slice(&number.to_be_bytes()));
        network.server().force_on(PathId::ZERO, &[token], now);
    }
    network.run_for(RTT);
    let told = network.client_events.iter().filter(|(_, event)| tokens(event)).count();
    assert!(told <= 16, "{told} tokens");
    assert!(network.client(client).lifecycle().is_open());
}

#[test]
fn a_violation_ends_its_own_connection_and_no_other() {
    // attacks.md: what every line asks for beside its own.
    let (mut network, guilty) = connected();
    let tuple = network.link(RTT / 2);
    let innocent = network.connect(tuple);
    network.run_for(RTT * 4);
    let now = network.now;
    network.client(guilty).force_on(PathId::ZERO, &[Frame::HandshakeDone], now);
    let id = network.client(innocent).open(UNI).expect("within limits");
    assert_eq!(network.client(innocent).write(id, &[5; 10_000]), Ok(10_000));
    network.client(innocent).finish(id).expect("it is open");
    network.run_for(RTT * 20);
    assert_eq!(network.server.handles().count(), 1, "the guilty one is forgotten");
    assert_eq!(read_all(&mut network, id), vec![5; 10_000]);
}
