//! Tests of the offers of streams: their content, their order, and the description of them.

use super::*;
use crate::wire::frame::{ResetStream, StopSending};
use hvq_scheduler::{Message, StreamPriority};

/// Limits that nothing meets.
pub(super) fn roomy() -> StreamLimits {
    StreamLimits {
        max_data: 1 << 20,
        stream_data_bidi_local: 1 << 20,
        stream_data_bidi_remote: 1 << 20,
        stream_data_uni: 1 << 20,
        max_streams_bidi: 100,
        max_streams_uni: 100,
        send_buffer: 1 << 20,
        max_window: 4 << 20,
    }
}

fn take(streams: &mut Streams, id: StreamId, most: usize) -> (frame::Stream, RecoveryToken) {
    match streams.take(id, 2000, most, PathId::ZERO) {
        Some(stream) => {
            let token = RecoveryToken::from(&stream);
            (stream, token)
        }
        None => panic!("no data"),
    }
}

/// Streams in the order in which they send `frames` frames of 100 bytes.
fn order(streams: &mut Streams, frames: usize) -> Vec<u64> {
    let mut order = Vec::new();
    for _ in 0..frames {
        let Some(key) = streams.next_sendable(None) else { break };
        take(streams, key.id, 100);
        order.push(key.id.index());
    }
    order
}

fn open_with(streams: &mut Streams, bytes: usize, urgency: u8, incremental: bool) -> StreamId {
    let id = streams.open(BIDI).expect("within the limit");
    streams.set_priority(id, Priority { urgency, incremental });
    assert_eq!(streams.write(id, &vec![1; bytes]), Ok(bytes));
    id
}

#[test]
fn urgent_streams_go_first_and_sequential_ones_finish_in_order() {
    // RFC 9218 §10.
    let mut client = endpoint(Role::Client, roomy());
    for urgency in [3, 5, 3, 0] {
        open_with(&mut client, 200, urgency, false);
    }
    assert_eq!(order(&mut client, 99), [3, 3, 0, 0, 2, 2, 1, 1]);
}

#[test]
fn incremental_streams_share_in_turns() {
    // RFC 9218 §10.
    let mut client = endpoint(Role::Client, roomy());
    for bytes in [300, 200, 300] {
        open_with(&mut client, bytes, 3, true);
    }
    assert_eq!(order(&mut client, 4), [0, 1, 2, 0]);
    let late = open_with(&mut client, 200, 3, true);
    assert_eq!(late.index(), 3);
    assert_eq!(order(&mut client, 99), [1, 2, 0, 3, 2, 3]);
}

#[test]
fn a_priority_can_change_on_the_way() {
    let mut client = endpoint(Role::Client, roomy());
    let first = open_with(&mut client, 300, 3, false);
    open_with(&mut client, 100, 3, false);
    assert_eq!(order(&mut client, 1), [0]);
    client.set_priority(first, Priority { urgency: 200, incremental: false });
    assert_eq!(client.priority(first).urgency, 7);
    assert_eq!(order(&mut client, 99), [1, 0, 0]);
}

#[test]
fn streams_of_one_urgency_go_in_the_order_that_the_application_gave() {
    let mut client = endpoint(Role::Client, roomy());
    for order in [0, i32::MIN, 7, i32::MAX, 8] {
        let id = open_with(&mut client, 100, 0, false);
        let priority = Priority { urgency: 0, incremental: false };
        client.set_priority(id, StreamPriority { priority, order });
    }
    open_with(&mut client, 100, 1, false);
    assert_eq!(order(&mut client, 99), [3, 4, 2, 0, 1, 5]);
}

#[test]
fn a_stream_that_has_to_wait_can_be_passed_over() {
    let mut client = endpoint(Role::Client, roomy());
    for _ in 0..3 {
        open_with(&mut client, 100, 3, true);
    }
    let mut seen = Vec::new();
    let mut after = None;
    while let Some(key) = client.next_sendable(after) {
        seen.push(key.id.index());
        after = Some(key);
    }
    assert_eq!(seen, [0, 1, 2]);
}

#[test]
fn an_offer_says_what_remains_of_the_message() {
    let mut client = endpoint(Role::Client, roomy());
    let id = open_with(&mut client, 250, 3, false);
    let message = |client: &Streams| client.offer(id, at(10)).expect("data").message;
    assert_eq!(message(&client), None, "no end is known");
    client.end_message(id, Some(at(50))).expect("open");
    client.write(id, &[2; 100]).expect("room");
    assert_eq!(message(&client), Some(Message { remaining: 250, deadline: Some(Duration::from_millis(40)) }));
    take(&mut client, id, 100);
    assert_eq!(message(&client).map(|message| message.remaining), Some(150));
    take(&mut client, id, 150);
    assert_eq!(message(&client), None, "the end of the second is not known");
    client.finish(id).expect("open");
    assert_eq!(message(&client), Some(Message { remaining: 100, deadline: None }));
    take(&mut client, id, 100);
    assert_eq!(client.offer(id, at(10)), None);
}

#[test]
fn the_mere_end_of_a_stream_is_an_offer_without_bytes() {
    let mut client = endpoint(Role::Client, roomy());
    let id = open_with(&mut client, 10, 3, false);
    take(&mut client, id, 10);
    client.finish(id).expect("open");
    let offer = client.offer(id, at(0)).expect("the end");
    assert_eq!((offer.offset, offer.bytes, offer.fin), (10, 0, true));
    assert_eq!(offer.message.map(|message| message.remaining), Some(0));
    assert_eq!(client.take(id, 3, 100, PathId::ZERO), None, "type, id, offset and length need four bytes");
    let (frame, token) = taken(&mut client, id, 4, 0).expect("fits");
    assert_eq!(frame.encoded_size(), 4);
    client.on_lost(&token, SLOW);
    assert_eq!(client.offer(id, at(0)).map(|offer| offer.history), Some(History::Lost { on: SLOW }));
}

#[test]
fn frames_fill_the_room_across_writes() {
    let mut client = endpoint(Role::Client, roomy());
    let id = client.open(BIDI).expect("within the limit");
    for _ in 0..10 {
        client.write_bytes(id, Bytes::from(vec![5; 1500])).expect("room");
        client.write(id, &[6; 20]).expect("room");
    }
    while let Some((frame, _)) = taken(&mut client, id, 1200, usize::MAX) {
        let left = client.offer(id, at(0)).is_some();
        assert!(!left || (1199..=1200).contains(&frame.encoded_size()), "{} bytes", frame.encoded_size());
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-2.2
//= type=test
//# The data at a given offset MUST NOT change if it is sent multiple times; an endpoint MAY treat receipt of
//# different data at the same offset within a stream as a connection error of type
#[test]
fn lost_data_goes_before_fresh_data_and_late_acknowledgements_withdraw_it() {
    let mut client = endpoint(Role::Client, roomy());
    let id = open_with(&mut client, 500, 3, false);
    let tokens: Vec<RecoveryToken> = (0..3).map(|_| take(&mut client, id, 100).1).collect();
    client.on_lost(&tokens[1], SLOW);
    let offer = client.offer(id, at(0)).expect("lost data");
    assert_eq!((offer.offset, offer.bytes, offer.history), (100, 100, History::Lost { on: SLOW }));
    client.on_acknowledged(&tokens[1]);
    let offer = client.offer(id, at(0)).expect("fresh data");
    assert_eq!((offer.offset, offer.bytes, offer.history), (300, 200, History::Fresh));
}

#[test]
fn data_on_a_silent_path_is_offered_to_another_and_either_copy_settles_it() {
    let age = Duration::from_millis(90);
    let mut client = endpoint(Role::Client, roomy());
    let id = open_with(&mut client, 100, 3, false);
    client.finish(id).expect("open");
    let (frame, first) = take(&mut client, id, 100);
    assert!(!client.has_sendable());
    client.on_silent(&first, SLOW, age);
    let offer = client.offer(id, at(0)).expect("a copy");
    assert_eq!(offer.history, History::Unacknowledged { on: SLOW, age });
    let (copy, second) = take(&mut client, id, 100);
    assert_eq!(copy, frame);
    client.on_silent(&first, SLOW, age * 2);
    client.on_lost(&first, SLOW);
    assert!(!client.has_sendable(), "the copy is under way");
    client.on_acknowledged(&second);
    assert_eq!(events(&mut client), [StreamEvent::Finished(id)]);
}

#[test]
fn a_path_that_answers_again_or_has_a_copy_elsewhere_offers_nothing() {
    let age = Duration::from_millis(90);
    let mut client = endpoint(Role::Client, roomy());
    let id = open_with(&mut client, 100, 3, false);
    let (_, token) = take(&mut client, id, 100);
    client.on_silent(&token, SLOW, age);
    assert!(client.has_sendable());
    client.on_answer(FAST);
    assert!(client.has_sendable(), "another path's answer is none");
    client.on_answer(SLOW);
    assert!(!client.has_sendable());
    client.on_copied(&token, SLOW);
    client.on_silent(&token, SLOW, age);
    assert!(!client.has_sendable(), "the other copy is on a path that answers");
}

#[test]
fn a_retransmission_needs_no_credit_of_the_connection() {
    let mut client = endpoint(Role::Client, StreamLimits { max_data: 150, ..roomy() });
    let first = open_with(&mut client, 100, 3, false);
    let second = open_with(&mut client, 100, 3, false);
    let (_, token) = take(&mut client, first, 100);
    take(&mut client, second, 100);
    assert!(!client.has_sendable());
    let (blocked, of_block) = client.next_control(at(0)).expect("the connection's limit holds data back");
    assert_eq!(blocked, Frame::DataBlocked(150));
    client.on_lost(&of_block, FAST);
    assert_eq!(controls(&mut client), [blocked], "again when it is lost");
    client.on_lost(&token, FAST);
    assert_eq!(order(&mut client, 9), [0]);
    assert_eq!(controls(&mut client), [], "the block was reported");
    client.on_max_data(160).expect("fine");
    assert_eq!(client.offer(second, at(0)).map(|offer| (offer.offset, offer.bytes)), Some((50, 10)));
}

#[test]
fn the_expected_arrival_never_falls() {
    let mut client = endpoint(Role::Client, roomy());
    let id = open_with(&mut client, 100, 3, false);
    assert_eq!(client.offer(id, at(0)).map(|offer| offer.arrival), Some(Instant::ZERO));
    client.note_arrival(id, at(70));
    client.note_arrival(id, at(40));
    assert_eq!(client.offer(id, at(0)).map(|offer| offer.arrival), Some(at(70)));
}

#[test]
fn blocks_are_reported_once_for_each_limit_and_again_when_lost() {
    // RFC 9000 §4.1, §4.6.
    let mut client =
        endpoint(Role::Client, StreamLimits { stream_data_bidi_remote: 50, max_streams_bidi: 1, ..roomy() });
    let id = open_with(&mut client, 100, 3, false);
    take(&mut client, id, 100);
    assert_eq!((client.open(BIDI), client.open(BIDI)), (None, None));
    let sent: Vec<_> = std::iter::from_fn(|| client.next_control(at(0))).collect();
    let frames: Vec<_> = sent.iter().map(|(frame, _)| frame.clone()).collect();
    let expected =
        [Frame::StreamsBlocked { direction: BIDI, limit: 1 }, Frame::StreamDataBlocked { id, limit: 50 }];
    assert_eq!(frames, expected);
    for (_, token) in &sent {
        client.on_lost(token, FAST);
    }
    assert_eq!(controls(&mut client), expected);
    client.on_max_stream_data(id, 60).expect("fine");
    client.on_max_streams(BIDI, 2).expect("fine");
    for (_, token) in &sent {
        client.on_lost(token, FAST);
    }
    assert_eq!(controls(&mut client), []);
    assert_eq!(events(&mut client), [StreamEvent::Available { direction: BIDI }]);
}

#[test]
fn a_stream_that_the_peer_was_told_of_without_data_has_left() {
    let limits = StreamLimits { stream_data_bidi_remote: 0, ..limits() };
    let mut client = endpoint(Role::Client, limits);
    let id = client.open(BIDI).expect("within the limit");
    client.write(id, b"x").expect("a little ahead of the limit");
    assert!(!client.has_departures());
    assert_eq!(controls(&mut client), [Frame::StreamDataBlocked { id, limit: 0 }]);
    assert!(client.has_departures());
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-13.3
//= type=test
//# The content of a RESET_STREAM frame MUST NOT change when it is sent again.
#[test]
fn lost_control_frames_are_repeated_only_while_they_matter() {
    // RFC 9000 §13.3.
    let mut server = endpoint(Role::Server, limits());
    let id = StreamId::new(Role::Client, BIDI, 0);
    server.on_stream(stream(id, 0, &[1; 250], false)).expect("within limits");
    server.accept(BIDI);
    read_all(&mut server, id);
    let (frame, first) = server.next_control(at(0)).expect("half of the window is consumed");
    assert_eq!(frame, Frame::MaxStreamData { id, limit: 650 });
    server.on_lost(&first, FAST);
    assert_eq!(controls(&mut server), [frame]);
    server.stop(id, 5).expect("open");
    let (frame, stop) = server.next_control(at(0)).expect("STOP_SENDING");
    assert_eq!(frame, Frame::StopSending(StopSending { id, error: 5 }));
    server.on_lost(&first, FAST);
    server.on_lost(&stop, FAST);
    assert_eq!(controls(&mut server), [frame], "a larger window is of no use any more");
    server.on_reset_stream(ResetStream { id, error: 5, final_size: 250 }).expect("within limits");
    server.on_lost(&stop, FAST);
    assert_eq!(controls(&mut server), []);
    server.change_limits(|limits| limits.max_streams_uni = 9);
    let (frame, of_streams) = server.next_control(at(0)).expect("a larger limit of streams");
    assert_eq!(frame, Frame::MaxStreams { direction: UNI, limit: 9 });
    server.on_lost(&of_streams, FAST);
    assert_eq!(controls(&mut server), [frame]);
    server.change_limits(|limits| limits.max_streams_uni = 12);
    assert_eq!(controls(&mut server), [Frame::MaxStreams { direction: UNI, limit: 12 }]);
    server.on_lost(&of_streams, FAST);
    assert_eq!(controls(&mut server), [], "the larger one says it all");
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-4.6.2
//= type=test
//# The client therefore MUST reset the state of all streams, including application state bound to those
//# streams.
#[test]
fn after_a_restart_everything_is_sent_anew_within_the_new_limits() {
    // RFC 9001 §4.6.2.
    let (mut client, _) = pair(limits());
    let id = client.open(BIDI).expect("permitted");
    client.write(id, &[7; 350]).expect("open");
    client.finish(id).expect("open");
    let sent: Vec<_> = std::iter::from_fn(|| next_frame(&mut client, 1200)).collect();
    assert!(!sent.is_empty());
    for (_, token) in &sent {
        client.on_lost(token, FAST);
    }
    client.restart();
    assert!(!client.has_sendable() && client.exceeds_stream_limits());
    let smaller = StreamLimits { max_data: 200, stream_data_bidi_remote: 100, ..limits() };
    client.set_peer_limits(&parameters(&smaller));
    assert!(!client.exceeds_stream_limits());
    let Some((Frame::Stream(first), _)) = taken(&mut client, id, 1200, usize::MAX) else { panic!("data") };
    assert_eq!((first.offset, first.data.len(), first.fin), (0, 100, false));
    assert!(!client.has_sendable());
    let mut server = endpoint(Role::Server, limits());
    deliver(&mut server, Frame::Stream(first));
    deliver(&mut client, Frame::MaxData(1000));
    deliver(&mut client, Frame::MaxStreamData { id, limit: 1000 });
    flush(&mut client, &mut server);
    server.accept(BIDI);
    assert_eq!(read_all(&mut server, id), (vec![7; 350], true));
}
