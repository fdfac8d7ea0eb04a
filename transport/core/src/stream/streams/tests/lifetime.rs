//! Tests of the lifetime of streams.

use super::*;
use crate::wire::frame::{ResetStream, StopSending};

#[test]
fn a_request_and_its_response_are_all_that_happens() {
    let (mut client, mut server) = pair(limits());
    let id = client.open(BIDI).expect("within the limit");
    client.write(id, b"request").expect("room");
    client.finish(id).expect("open");
    flush(&mut client, &mut server);
    assert_eq!(events(&mut server), [StreamEvent::Opened { direction: BIDI }]);
    assert_eq!((server.accept(BIDI), server.accept(BIDI)), (Some(id), None));
    assert_eq!(events(&mut server), [StreamEvent::Readable(id)]);
    assert_eq!(read_all(&mut server, id), (b"request".to_vec(), true));
    server.write(id, b"response").expect("room");
    server.finish(id).expect("open");
    flush(&mut server, &mut client);
    assert_eq!(events(&mut server), [StreamEvent::Finished(id)]);
    assert!(server.is_empty());
    assert_eq!(events(&mut client), [StreamEvent::Finished(id), StreamEvent::Readable(id)]);
    assert_eq!(read_all(&mut client, id), (b"response".to_vec(), true));
    assert!(client.is_empty());
    assert_eq!(client.read(id, 1), Err(ReadError::UnknownStream));
    assert_eq!(client.write(id, b"x"), Err(WriteError::UnknownStream));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-3.2
//= type=test
//# Before a stream is created, all streams of the same type with lower- numbered stream IDs MUST be created
#[test]
fn a_stream_opens_all_below_it_without_using_memory_for_them() {
    // RFC 9000 §3.2.
    let limits = StreamLimits { max_streams_uni: 1 << 40, ..limits() };
    let mut server = endpoint(Role::Server, limits);
    let high = StreamId::new(Role::Client, UNI, (1 << 40) - 1);
    server.on_stream(stream(high, 0, b"x", true)).expect("within limits");
    assert_eq!(server.len(), 1);
    for index in 0..3 {
        assert_eq!(server.accept(UNI), Some(StreamId::new(Role::Client, UNI, index)));
    }
    assert_eq!(server.read(high, 1), Err(ReadError::UnknownStream), "not accepted yet");
    server.on_stream(stream(StreamId::new(Role::Client, UNI, 2), 0, b"y", true)).expect("within limits");
    assert_eq!(read_all(&mut server, StreamId::new(Role::Client, UNI, 2)), (b"y".to_vec(), true));
    server.on_stream(stream(StreamId::new(Role::Client, UNI, 9), 0, b"z", true)).expect("within limits");
    assert_eq!(server.len(), 4);
}

#[test]
fn readable_is_said_once_until_a_read_blocks() {
    let (mut client, mut server) = pair(limits());
    let id = client.open(UNI).expect("within the limit");
    for _ in 0..3 {
        client.write(id, b"abc").expect("room");
        flush(&mut client, &mut server);
    }
    server.accept(UNI);
    events(&mut server);
    client.write(id, b"abc").expect("room");
    flush(&mut client, &mut server);
    assert_eq!(events(&mut server), []);
    assert_eq!(read_all(&mut server, id).0.len(), 12);
    client.write(id, b"abc").expect("room");
    flush(&mut client, &mut server);
    assert_eq!(events(&mut server), [StreamEvent::Readable(id)]);
}

#[test]
fn writable_is_said_when_acknowledgements_make_room() {
    let mut client = endpoint(Role::Client, limits());
    let id = client.open(UNI).expect("within the limit");
    assert_eq!(client.write(id, &[0; 700]), Ok(600));
    let (_, first) = taken(&mut client, id, 200, 50).expect("data");
    let (_, second) = taken(&mut client, id, 200, 50).expect("data");
    client.on_acknowledged(&second);
    assert_eq!(events(&mut client), []);
    client.on_acknowledged(&first);
    assert_eq!(events(&mut client), [StreamEvent::Writable(id)]);
    assert_eq!(client.write(id, &[0; 700]), Ok(100));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-3.5
//= type=test
//# An endpoint that receives a STOP_SENDING frame MUST send a RESET_STREAM frame if the stream is in the
//# "Ready" or "Send" state
#[test]
fn a_stopped_stream_is_reset_with_the_code_of_the_peer() {
    // RFC 9000 §3.5.
    let (mut client, mut server) = pair(limits());
    let id = client.open(UNI).expect("within the limit");
    client.write(id, &[0; 200]).expect("room");
    flush(&mut client, &mut server);
    server.accept(UNI);
    events(&mut server);
    server.stop(id, 99).expect("open");
    assert_eq!(server.read(id, 1), Err(ReadError::Stopped));
    flush(&mut server, &mut client);
    assert_eq!(events(&mut client), [StreamEvent::Stopped { id, code: 99 }]);
    assert_eq!(client.write(id, b"x"), Err(WriteError::Stopped(99)));
    let (frame, token) = client.next_control(at(0)).expect("the answer");
    assert_eq!(frame, Frame::ResetStream(ResetStream { id, error: 99, final_size: 200 }));
    client.on_lost(&token, FAST);
    flush(&mut client, &mut server);
    assert!(client.is_empty() && server.is_empty());
    assert_eq!(server.window.consumed(), 200);
}

#[test]
fn who_accepts_a_stream_that_the_peer_stopped_already_is_told() {
    // RFC 9000 §3.5. Nothing else tells, once the stream is freed.
    let (mut client, mut server) = pair(limits());
    let id = client.open(BIDI).expect("within the limit");
    client.finish(id).expect("open");
    client.stop(id, 9).expect("open");
    flush(&mut client, &mut server);
    assert_eq!(events(&mut server), [StreamEvent::Opened { direction: BIDI }]);
    flush(&mut server, &mut client);
    assert_eq!(server.accept(BIDI), Some(id));
    let told = events(&mut server);
    assert!(told.contains(&StreamEvent::Stopped { id, code: 9 }), "{told:?}");
    assert_eq!(read_all(&mut server, id), (Vec::new(), true));
    assert_eq!((server.len(), server.write(id, b"x")), (0, Err(WriteError::UnknownStream)));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-11.2
//= type=test
//# RESET_STREAM MUST only be instigated by the application protocol that uses QUIC.
#[test]
fn a_reset_is_told_after_which_the_stream_is_gone() {
    let (mut client, mut server) = pair(limits());
    let id = client.open(UNI).expect("within the limit");
    client.write(id, &[0; 200]).expect("room");
    flush(&mut client, &mut server);
    client.reset(id, 5, 0).expect("open");
    assert_eq!(client.finish(id), Err(WriteError::Finished));
    flush(&mut client, &mut server);
    assert!(client.is_empty());
    server.accept(UNI);
    assert_eq!(server.read(id, 10), Err(ReadError::Reset(5)));
    assert_eq!((server.len(), server.read(id, 10)), (0, Err(ReadError::UnknownStream)));
    assert_eq!(server.window.consumed(), 200);
}

#[test]
fn a_reset_is_told_to_who_leaves_data_unread() {
    let (mut client, mut server) = pair(limits());
    let id = client.open(UNI).expect("within the limit");
    client.write(id, &[0; 100]).expect("room");
    flush(&mut client, &mut server);
    server.accept(UNI);
    assert!(events(&mut server).contains(&StreamEvent::Readable(id)));
    client.reset(id, 5, 0).expect("open");
    flush(&mut client, &mut server);
    assert_eq!(events(&mut server), [StreamEvent::Readable(id)]);
}

#[test]
fn late_frames_for_a_stream_that_is_gone_are_ignored() {
    let (mut client, mut server) = pair(limits());
    let id = client.open(BIDI).expect("within the limit");
    client.reset(id, 1, 0).expect("open");
    client.stop(id, 1).expect("open");
    flush(&mut client, &mut server);
    server.accept(BIDI);
    flush(&mut server, &mut client);
    assert_eq!(server.read(id, 1), Err(ReadError::Reset(1)));
    assert!(client.is_empty() && server.is_empty());
    for (streams, offset) in [(&mut client, 0), (&mut server, 100)] {
        streams.on_stream(stream(id, offset, b"late", true)).expect("ignored");
        streams.on_reset_stream(ResetStream { id, error: 3, final_size: 9 }).expect("ignored");
        streams.on_stop_sending(StopSending { id, error: 3 }).expect("ignored");
        streams.on_max_stream_data(id, 1000).expect("ignored");
        assert!(streams.is_empty());
        assert_eq!(streams.window.received(), 0);
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-2.1
//= type=test
//# A QUIC endpoint MUST NOT reuse a stream ID within a connection.
#[test]
fn a_hundred_thousand_streams_leave_nothing_behind() {
    let (mut client, mut server) = pair(limits());
    for round in 0..100_000_u64 {
        let direction = if round % 2 == 0 { BIDI } else { UNI };
        let id = client.open(direction).expect("the peer returns credit");
        client.write(id, b"pong").expect("room");
        client.finish(id).expect("open");
        flush(&mut client, &mut server);
        assert_eq!(server.accept(direction), Some(id));
        assert_eq!(read_all(&mut server, id), (b"pong".to_vec(), true));
        if direction == BIDI {
            server.finish(id).expect("open");
        }
        flush(&mut server, &mut client);
        if direction == BIDI {
            assert_eq!(read_all(&mut client, id), (vec![], true));
        }
        assert!(client.len() + server.len() <= 1, "{} and {}", client.len(), server.len());
        events(&mut client);
        events(&mut server);
    }
    assert!(client.map.capacity() < 64 && server.map.capacity() < 64);
    assert_eq!((client.agenda.has_any(1), client.has_control(), server.has_control()), (false, false, false));
    assert_eq!(client.credit.used(), server.window.received());
    assert_eq!(server.window.consumed(), 400_000);
}

#[test]
fn a_gigabyte_through_one_stream_takes_time_in_proportion() {
    let large = StreamLimits {
        max_data: 8 << 20,
        stream_data_bidi_remote: 8 << 20,
        send_buffer: 8 << 20,
        max_window: 8 << 20,
        ..limits()
    };
    let (mut client, mut server) = pair(large);
    let id = client.open(BIDI).expect("within the limit");
    let block = Bytes::from(vec![42; 1 << 20]);
    let (mut written, mut read) = (0_u64, 0_u64);
    let total = 1_u64 << 30;
    let mut under_way = std::collections::VecDeque::new();
    while read < total {
        while written < total
            && let Ok(length) = client.write_bytes(id, block.clone())
        {
            written += length as u64;
        }
        while let Some(sent) = taken(&mut client, id, 1350, usize::MAX) {
            under_way.push_back(sent);
        }
        for (frame, token) in under_way.drain(..) {
            deliver(&mut server, frame);
            client.on_acknowledged(&token);
        }
        server.accept(BIDI);
        while let Ok(ReadOutcome::Data(data)) = server.read(id, 1 << 20) {
            read += data.len() as u64;
        }
        flush(&mut server, &mut client);
    }
    assert_eq!((written, server.window.consumed()), (total, total));
}

#[test]
fn a_limit_of_streams_that_is_raised_is_told_at_once_and_one_that_is_lowered_holds_what_was_granted() {
    let mut server = endpoint(Role::Server, limits());
    server.change_limits(|limits| limits.max_streams_bidi = 9);
    let (frame, _) = server.next_control(at(0)).expect("news");
    assert_eq!(frame, Frame::MaxStreams { direction: BIDI, limit: 9 });
    server.change_limits(|limits| limits.max_streams_bidi = 2);
    assert_eq!(server.next_control(at(0)), None);
}

#[test]
fn a_window_that_is_changed_counts_from_its_next_renewal_on() {
    let mut server = endpoint(Role::Server, limits());
    server.change_limits(|limits| limits.max_window = 5_000);
    let (frame, _) = server.next_control(at(0)).expect("it is more than twice what was granted");
    assert_eq!(frame, Frame::MaxData(5_000));
    server.change_limits(|limits| limits.max_window = 10);
    assert_eq!(server.next_control(at(0)), None, "what was granted holds");
}

#[test]
fn a_larger_send_buffer_lets_a_writer_go_on() {
    let mut client = endpoint(Role::Client, limits());
    let id = client.open(UNI).expect("permitted");
    while client.write(id, &[7; 100]).is_ok() {}
    client.change_limits(|limits| limits.send_buffer = 10_000);
    let events: Vec<StreamEvent> = std::iter::from_fn(|| client.poll_event()).collect();
    assert!(events.contains(&StreamEvent::Writable(id)), "{events:?}");
}

#[test]
fn limits_grow_while_data_waits_behind_a_gap_that_nobody_could_read() {
    let limits = StreamLimits { max_data: 750, max_window: 4000, ..limits() };
    let mut server = endpoint(Role::Server, limits);
    let id = StreamId::new(Role::Client, UNI, 0);
    server.on_stream(stream(id, 10, &[7; 62], false)).expect("within the limits");
    assert!(controls(&mut server).is_empty(), "an eighth of the window behind a gap is nothing");
    server.on_stream(stream(id, 72, &[7; 1], false)).expect("within the limits");
    let stream_limit = Frame::MaxStreamData { id, limit: 1000 };
    assert_eq!(controls(&mut server), [stream_limit, Frame::MaxData(1500)]);
    server.on_stream(stream(id, 73, &[7; 10], false)).expect("within the limits");
    assert!(controls(&mut server).is_empty(), "the window is large enough again");
}

#[test]
fn limits_stay_while_the_application_has_yet_to_read() {
    let mut server = endpoint(Role::Server, StreamLimits { max_window: 4000, ..limits() });
    let id = StreamId::new(Role::Client, UNI, 0);
    server.on_stream(stream(id, 0, &[7; 5], false)).expect("within the limits");
    server.on_stream(stream(id, 10, &[7; 300], false)).expect("within the limits");
    assert!(controls(&mut server).is_empty());
}
