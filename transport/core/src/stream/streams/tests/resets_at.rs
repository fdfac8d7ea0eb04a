//! Streams that are reset behind bytes which are delivered all the same (draft-ietf-quic-reliable-stream-reset).

use super::*;
use crate::error::ErrorCode;

/// The frames that a client sends which wrote `written` bytes on its first stream and reset it but for `reliable_size`.
fn reset_behind(client: &mut Streams, written: usize, reliable_size: u64) -> StreamId {
    let id = client.open(UNI).expect("within limits");
    assert_eq!(client.write(id, &vec![7; written]), Ok(written));
    assert_eq!(client.reset(id, 9, reliable_size), Ok(reliable_size.min(written as u64)));
    id
}

fn at_of(id: StreamId, error: u64, final_size: u64, reliable_size: u64) -> frame::ResetStreamAt {
    frame::ResetStreamAt { id, error, final_size, reliable_size }
}

/// Reads all there is, and how it ends.
fn read_to_end(streams: &mut Streams, id: StreamId) -> (usize, Result<ReadOutcome, ReadError>) {
    let mut length = 0;
    loop {
        match streams.read(id, 100) {
            Ok(ReadOutcome::Data(data)) => length += data.len(),
            other => return (length, other),
        }
    }
}

#[test]
fn the_bytes_that_are_promised_arrive_before_the_reset_and_no_others() {
    // §4 and §5 of the draft.
    let (mut client, mut server) = pair(limits());
    let id = reset_behind(&mut client, 250, 120);
    assert_eq!(client.next_control(at(0)), None, "the final size is not known before the data was sent");
    flush(&mut client, &mut server);
    assert_eq!(server.accept(UNI), Some(id));
    assert_eq!(read_to_end(&mut server, id), (120, Err(ReadError::Reset(9))));
    assert!(server.is_empty() && client.is_empty(), "both ends are done with it");
    assert_eq!(events(&mut client), [], "whoever resets a stream is not told that it arrived");
    assert_eq!((server.window.received(), server.window.consumed()), (120, 120));
}

#[test]
fn lost_bytes_are_sent_again_up_to_the_reliable_size() {
    // §5: what is promised is retransmitted; what lies beyond is not.
    let (mut client, mut server) = pair(limits());
    let id = client.open(UNI).expect("within limits");
    client.write(id, &[7; 250]).expect("open");
    let (_, token) = taken(&mut client, id, 1200, usize::MAX).expect("data");
    assert_eq!(client.reset(id, 9, 100), Ok(100));
    client.on_lost(&token, FAST);
    let (reset, of_reset) = client.next_control(at(0)).expect("all was sent once");
    assert_eq!(reset, Frame::ResetStreamAt(at_of(id, 9, 250, 100)), "with the size that was sent");
    let (again, of_again) = taken(&mut client, id, 1200, usize::MAX).expect("what is promised");
    assert!(matches!(&again, Frame::Stream(stream) if stream.data.len() == 100 && !stream.fin));
    assert_eq!(client.next_sendable(None), None);
    deliver(&mut server, reset);
    deliver(&mut server, again);
    client.on_acknowledged(&of_again);
    assert_eq!(client.len(), 1, "the reset has to arrive, too");
    client.on_acknowledged(&of_reset);
    assert!(client.is_empty());
    server.accept(UNI);
    assert_eq!(read_to_end(&mut server, id), (100, Err(ReadError::Reset(9))));
    assert_eq!((server.window.received(), server.window.consumed()), (250, 250), "the rest counts as read");
}

#[test]
fn a_lost_reset_is_sent_again_until_it_arrives_and_the_smallest_counts() {
    // §4 and §5.2.
    let (mut client, mut server) = pair(limits());
    let id = client.open(UNI).expect("within limits");
    client.write(id, &[7; 200]).expect("open");
    let (data, of_data) = taken(&mut client, id, 1200, usize::MAX).expect("data");
    assert_eq!(client.reset(id, 9, 150), Ok(150));
    let (first, of_first) = client.next_control(at(0)).expect("due");
    client.on_lost(&of_first, FAST);
    assert_eq!(client.next_control(at(0)), Some((first.clone(), of_first.clone())), "unchanged");
    // Neither a larger size nor another code.
    assert_eq!((client.reset(id, 4, 180), client.next_control(at(0))), (Ok(150), None));
    assert_eq!(client.reset(id, 4, 50), Ok(50));
    let (second, of_second) = client.next_control(at(0)).expect("a smaller promise");
    assert_eq!(second, Frame::ResetStreamAt(at_of(id, 9, 200, 50)));
    client.on_acknowledged(&of_data);
    client.on_acknowledged(&of_first);
    assert_eq!(client.len(), 1, "the one with the smallest size has to arrive");
    // They arrive in the wrong order: the larger size is ignored.
    [second, first, data].into_iter().for_each(|frame| deliver(&mut server, frame));
    client.on_acknowledged(&of_second);
    assert!(client.is_empty());
    server.accept(UNI);
    assert_eq!(read_to_end(&mut server, id), (50, Err(ReadError::Reset(9))));
    assert_eq!(client.reset(id, 1, 0), Err(WriteError::UnknownStream));
}

#[test]
fn a_reset_waits_for_flow_control_as_its_bytes_do() {
    // §4: the final size is subject to flow control.
    let (mut client, mut server) = pair(limits());
    let id = reset_behind(&mut client, 550, 520);
    flush(&mut client, &mut server);
    assert_eq!(server.accept(UNI), Some(id));
    assert_eq!(read_to_end(&mut server, id), (500, Ok(ReadOutcome::Blocked)));
    flush(&mut server, &mut client);
    flush(&mut client, &mut server);
    assert_eq!(read_to_end(&mut server, id), (20, Err(ReadError::Reset(9))));
}

#[test]
fn a_plain_reset_and_a_stop_take_the_promise_back_with_the_same_code() {
    // §5.2 and §5.4.
    for stopped in [false, true] {
        let (mut client, mut server) = pair(limits());
        let id = client.open(UNI).expect("within limits");
        client.write(id, &[7; 250]).expect("open");
        let (data, of_data) = taken(&mut client, id, 1200, usize::MAX).expect("data");
        client.reset(id, 9, 200).expect("open");
        let (first, _) = client.next_control(at(0)).expect("due");
        deliver(&mut server, first);
        if stopped {
            deliver(&mut client, Frame::StopSending(frame::StopSending { id, error: 3 }));
            assert_eq!(events(&mut client), [], "it is reset already");
        } else {
            assert_eq!(client.reset(id, 3, 0), Ok(0));
        }
        client.on_lost(&of_data, FAST);
        assert_eq!(client.next_sendable(None), None, "nothing is promised any more");
        let (second, of_second) = client.next_control(at(0)).expect("due");
        let plain = frame::ResetStream { id, error: 9, final_size: 250 };
        assert_eq!(second, Frame::ResetStream(plain));
        deliver(&mut server, second);
        deliver(&mut server, data);
        client.on_acknowledged(&of_second);
        server.accept(UNI);
        assert_eq!((read_to_end(&mut server, id), client.is_empty()), ((0, Err(ReadError::Reset(9))), true));
        assert_eq!((server.window.received(), server.window.consumed()), (250, 250));
    }
}

#[test]
fn a_peer_that_does_not_support_it_gets_a_plain_reset() {
    let mut client = Streams::new(Role::Client, limits());
    client.set_peer_limits(&TransportParameters {
        partial_delivery: PartialDelivery::Off,
        ..parameters(&limits())
    });
    let id = client.open(UNI).expect("within limits");
    client.write(id, b"abc").expect("open");
    assert_eq!(client.reset(id, 9, 2), Ok(0), "and whoever resets is told");
    assert!(matches!(controls(&mut client)[..], [Frame::ResetStream(_)]));
    // One that supported it when 0-RTT data was sent, and does not any more.
    let mut client = endpoint(Role::Client, limits());
    let id = reset_behind(&mut client, 3, 2);
    assert_eq!(controls(&mut client), [], "the reset waits for its data");
    client.restart();
    client.set_peer_limits(&TransportParameters {
        partial_delivery: PartialDelivery::Off,
        ..parameters(&limits())
    });
    let plain = frame::ResetStream { id, error: 9, final_size: 0 };
    assert_eq!((controls(&mut client), client.next_sendable(None)), (vec![Frame::ResetStream(plain)], None));
    // One that still supports it gets what was promised.
    let (mut client, mut server) = pair(limits());
    let id = reset_behind(&mut client, 3, 2);
    client.restart();
    client.set_peer_limits(&parameters(&limits()));
    flush(&mut client, &mut server);
    assert_eq!(server.accept(UNI), Some(id));
    assert_eq!(read_to_end(&mut server, id), (2, Err(ReadError::Reset(9))));
}

#[test]
fn a_stream_that_was_finished_can_be_reset_behind_some_of_it() {
    // §5.1.
    let (mut client, mut server) = pair(limits());
    let id = client.open(UNI).expect("within limits");
    client.write(id, &[7; 250]).expect("open");
    client.finish(id).expect("open");
    let (data, token) = taken(&mut client, id, 1200, usize::MAX).expect("data and end");
    assert!(matches!(&data, Frame::Stream(stream) if stream.fin));
    assert_eq!(client.reset(id, 9, 10), Ok(10));
    client.on_lost(&token, FAST);
    flush(&mut client, &mut server);
    deliver(&mut server, data);
    server.accept(UNI);
    assert_eq!(read_to_end(&mut server, id), (10, Err(ReadError::Reset(9))));
    assert!(client.is_empty() && server.is_empty());
}

#[test]
fn a_reader_of_any_order_gets_what_is_promised_and_the_credit_adds_up() {
    let (_, mut server) = pair(limits());
    let id = StreamId::new(Role::Client, UNI, 0);
    for (offset, length) in [(200, 50), (20, 30), (90, 60)] {
        deliver(&mut server, Frame::Stream(stream(id, offset, &vec![7; length], false)));
    }
    server.accept(UNI);
    let (offset, first) = server.read_unordered(id, 10).expect("readable");
    assert_eq!((offset, first), (20, ReadOutcome::Data(Bytes::from_static(&[7; 10]))));
    deliver(&mut server, Frame::ResetStreamAt(at_of(id, 9, 300, 100)));
    assert_eq!(server.window.received() - server.window.consumed(), 90, "promised, and not read");
    deliver(&mut server, Frame::Stream(stream(id, 50, &[7; 100], false)));
    deliver(&mut server, Frame::Stream(stream(id, 0, &[7; 20], false)));
    assert_eq!(read_to_end(&mut server, id), (90, Err(ReadError::Reset(9))));
    assert_eq!((server.window.received(), server.window.consumed()), (300, 300));
}

#[test]
fn resets_that_contradict_each_other_or_a_limit_close_the_connection() {
    // §4 and §5.2; attacks.md E1, E4.
    let id = StreamId::new(Role::Client, UNI, 0);
    let at_frame =
        |error, final_size, reliable_size| Frame::ResetStreamAt(at_of(id, error, final_size, reliable_size));
    let plain = |error, final_size| Frame::ResetStream(frame::ResetStream { id, error, final_size });
    let data = |offset, length, fin| Frame::Stream(stream(id, offset, &vec![7; length], fin));
    let cases = [
        (vec![at_frame(9, 100, 50), at_frame(8, 100, 40)], ErrorCode::STREAM_STATE_ERROR),
        (vec![at_frame(9, 100, 50), plain(8, 100)], ErrorCode::STREAM_STATE_ERROR),
        (vec![plain(8, 100), at_frame(9, 100, 50)], ErrorCode::STREAM_STATE_ERROR),
        (vec![at_frame(9, 100, 50), at_frame(9, 101, 40)], ErrorCode::FINAL_SIZE_ERROR),
        (vec![at_frame(9, 100, 50), plain(9, 99)], ErrorCode::FINAL_SIZE_ERROR),
        (vec![at_frame(9, 100, 50), data(60, 50, false)], ErrorCode::FINAL_SIZE_ERROR),
        (vec![at_frame(9, 100, 50), data(0, 60, true)], ErrorCode::FINAL_SIZE_ERROR),
        (vec![data(0, 60, false), at_frame(9, 50, 50)], ErrorCode::FINAL_SIZE_ERROR),
        (vec![at_frame(9, 501, 0)], ErrorCode::FLOW_CONTROL_ERROR),
    ];
    for (frames, code) in cases {
        let (_, mut server) = pair(limits());
        let result = frames.iter().try_for_each(|frame| match frame.clone() {
            Frame::ResetStreamAt(reset) => server.on_reset_stream_at(reset),
            Frame::ResetStream(reset) => server.on_reset_stream(reset),
            Frame::Stream(stream) => server.on_stream(stream),
            other => panic!("{other:?}"),
        });
        assert_eq!(result.map_err(|error| error.code), Err(code), "{frames:?}");
    }
    let own = at_of(StreamId::new(Role::Server, UNI, 0), 9, 0, 0);
    let (_, mut server) = pair(limits());
    let refused = server.on_reset_stream_at(own).map_err(|error| error.code);
    assert_eq!(refused, Err(ErrorCode::STREAM_STATE_ERROR));
}

#[test]
fn what_is_held_beyond_the_promise_is_dropped_and_the_window_of_the_connection_given_back() {
    let (_, mut server) = pair(limits());
    let id = StreamId::new(Role::Client, UNI, 0);
    deliver(&mut server, Frame::Stream(stream(id, 100, &[7; 300], false)));
    deliver(&mut server, Frame::ResetStreamAt(at_of(id, 9, 400, 20)));
    assert_eq!(server.window.received() - server.window.consumed(), 20);
    deliver(&mut server, Frame::Stream(stream(id, 0, &[7; 100], false)));
    server.accept(UNI);
    assert_eq!(read_to_end(&mut server, id), (20, Err(ReadError::Reset(9))));
    // A stopped stream is done once its size is known.
    let id = StreamId::new(Role::Client, UNI, 1);
    deliver(&mut server, Frame::Stream(stream(id, 0, &[7; 10], false)));
    server.accept(UNI);
    server.stop(id, 1).expect("open");
    deliver(&mut server, Frame::ResetStreamAt(at_of(id, 9, 100, 20)));
    assert_eq!((server.len(), server.window.received(), server.window.consumed()), (0, 500, 500));
}
