//! Tests of violations by a peer (attacks E1 to E14).

use super::*;
use crate::error::{ErrorCode, TransportError};
use crate::wire::frame::{ResetStream, StopSending};

fn code(result: Result<(), TransportError>) -> Option<ErrorCode> {
    result.err().map(|error| error.code)
}

fn client_bidi(index: u64) -> StreamId {
    StreamId::new(Role::Client, BIDI, index)
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-4.1
//= type=test
//# A receiver MUST close the connection with an error of type FLOW_CONTROL_ERROR if the sender violates the
//# advertised connection or stream data limits; see Section 11 for details on error handling.
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.9
//= type=test
//# An endpoint MUST terminate a connection with an error of type FLOW_CONTROL_ERROR if it receives more data
//# than the maximum data value that it has sent
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.10
//= type=test
//# An endpoint MUST terminate a connection with an error of type FLOW_CONTROL_ERROR if it receives more data
//# than the largest maximum stream data that it has sent for the affected stream
#[test]
fn data_beyond_the_window_of_a_stream_or_of_all_is_a_flow_control_error() {
    // RFC 9000 §4.1, attacks E1.
    let mut server = endpoint(Role::Server, limits());
    let beyond = server.on_stream(stream(client_bidi(0), 399, b"ab", false));
    assert_eq!(code(beyond), Some(ErrorCode::FLOW_CONTROL_ERROR));
    let mut server = endpoint(Role::Server, limits());
    for index in 0..2 {
        assert_eq!(server.on_stream(stream(client_bidi(index), 399, b"a", false)), Ok(()));
    }
    assert_eq!(server.on_stream(stream(client_bidi(2), 199, b"a", false)), Ok(()));
    let beyond = server.on_stream(stream(client_bidi(2), 200, b"a", false));
    assert_eq!(code(beyond), Some(ErrorCode::FLOW_CONTROL_ERROR));
    let reset = ResetStream { id: client_bidi(2), error: 0, final_size: 201 };
    assert_eq!(code(server.on_reset_stream(reset)), Some(ErrorCode::FLOW_CONTROL_ERROR));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-4.6
//= type=test
//# An endpoint that receives a frame with a stream ID exceeding the limit it has sent MUST treat this as a
//# connection error of type STREAM_LIMIT_ERROR; see Section 11 for details on error handling.
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.11
//= type=test
//# An endpoint MUST terminate a connection with an error of type STREAM_LIMIT_ERROR if a peer opens more
//# streams than was permitted
#[test]
fn a_stream_above_the_limit_is_a_stream_limit_error() {
    // RFC 9000 §4.6, attacks E2.
    let mut server = endpoint(Role::Server, limits());
    assert_eq!(server.on_stream(stream(client_bidi(3), 0, b"", false)), Ok(()));
    let beyond = client_bidi(4);
    assert_eq!(code(server.on_stream(stream(beyond, 0, b"", false))), Some(ErrorCode::STREAM_LIMIT_ERROR));
    let stop = StopSending { id: beyond, error: 0 };
    assert_eq!(code(server.on_stop_sending(stop)), Some(ErrorCode::STREAM_LIMIT_ERROR));
    assert_eq!(code(server.on_max_stream_data(beyond, 9)), Some(ErrorCode::STREAM_LIMIT_ERROR));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.4
//= type=test
//# An endpoint that receives a RESET_STREAM frame for a send-only stream MUST terminate the connection with
//# error STREAM_STATE_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.5
//= type=test
//# An endpoint that receives a STOP_SENDING frame for a receive-only stream MUST terminate the connection
//# with error STREAM_STATE_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.8
//= type=test
//# An endpoint MUST terminate the connection with error STREAM_STATE_ERROR if it receives a STREAM frame for
//# a locally initiated stream that has not yet been created, or for a send-only stream.
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.10
//= type=test
//# An endpoint that receives a MAX_STREAM_DATA frame for a receive-only stream MUST terminate the connection
//# with error STREAM_STATE_ERROR.
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.13
//= type=test
//# An endpoint that receives a STREAM_DATA_BLOCKED frame for a send-only stream MUST terminate the connection
//# with error STREAM_STATE_ERROR.
#[test]
fn frames_for_the_wrong_direction_are_a_stream_state_error() {
    // RFC 9000 §19.4, §19.5, §19.8, §19.10, §19.13; attacks E3.
    let mut server = endpoint(Role::Server, limits());
    let ours = server.open(UNI).expect("within the limit");
    let theirs = StreamId::new(Role::Client, UNI, 0);
    let wrong = [
        server.on_stream(stream(ours, 0, b"a", false)),
        server.on_reset_stream(ResetStream { id: ours, error: 0, final_size: 0 }),
        server.on_stream_data_blocked(ours, 0),
        server.on_stop_sending(StopSending { id: theirs, error: 0 }),
        server.on_max_stream_data(theirs, 10),
    ];
    for result in wrong {
        assert_eq!(code(result), Some(ErrorCode::STREAM_STATE_ERROR));
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.5
//= type=test
//# Receiving a STOP_SENDING frame for a locally initiated stream that has not yet been created MUST be
//# treated as a connection error of type STREAM_STATE_ERROR
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.8
//= type=test
//# An endpoint MUST terminate the connection with error STREAM_STATE_ERROR if it receives a STREAM frame for
//# a locally initiated stream that has not yet been created, or for a send-only stream.
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.10
//= type=test
//# Receiving a MAX_STREAM_DATA frame for a locally initiated stream that has not yet been created MUST be
//# treated as a connection error of type STREAM_STATE_ERROR
#[test]
fn frames_for_a_stream_that_was_never_opened_here_are_a_stream_state_error() {
    // RFC 9000 §19.5, §19.8, §19.10; attacks E3.
    let mut server = endpoint(Role::Server, limits());
    let unopened = StreamId::new(Role::Server, BIDI, 0);
    let wrong = [
        server.on_stream(stream(unopened, 0, b"a", false)),
        server.on_reset_stream(ResetStream { id: unopened, error: 0, final_size: 0 }),
        server.on_stop_sending(StopSending { id: unopened, error: 0 }),
        server.on_max_stream_data(unopened, 10),
        server.on_stream_data_blocked(unopened, 10),
        server.on_stop_sending(StopSending { id: StreamId::new(Role::Server, UNI, 0), error: 0 }),
    ];
    for result in wrong {
        assert_eq!(code(result), Some(ErrorCode::STREAM_STATE_ERROR));
    }
}

#[test]
fn a_changed_final_size_is_a_final_size_error() {
    // RFC 9000 §4.5, attacks E4.
    let mut server = endpoint(Role::Server, limits());
    let id = client_bidi(0);
    server.on_stream(stream(id, 0, b"abc", true)).expect("within limits");
    let reset = ResetStream { id, error: 0, final_size: 4 };
    assert_eq!(code(server.on_reset_stream(reset)), Some(ErrorCode::FINAL_SIZE_ERROR));
    assert_eq!(code(server.on_stream(stream(id, 3, b"d", false))), Some(ErrorCode::FINAL_SIZE_ERROR));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-4.6
//= type=test
//# If either is received, the connection MUST be closed immediately with a connection error of type
//# TRANSPORT_PARAMETER_ERROR
#[test]
fn a_count_of_streams_that_has_no_ids_is_a_frame_encoding_error() {
    // RFC 9000 §19.11, §19.14; attacks E5.
    let mut server = endpoint(Role::Server, limits());
    for direction in Direction::ALL {
        let limit = (1 << 60) + 1;
        assert_eq!(code(server.on_max_streams(direction, limit)), Some(ErrorCode::FRAME_ENCODING_ERROR));
        assert_eq!(code(server.on_streams_blocked(direction, limit)), Some(ErrorCode::FRAME_ENCODING_ERROR));
        assert_eq!(server.on_max_streams(direction, 1 << 60), Ok(()));
    }
}

#[test]
fn fragments_with_gaps_over_the_whole_window_close_the_connection() {
    // Attacks E6.
    let window = 64 * 1024;
    let mut server = endpoint(
        Role::Server,
        StreamLimits { stream_data_bidi_remote: window, max_data: window, ..limits() },
    );
    let refused =
        (0..window / 2).find_map(|i| code(server.on_stream(stream(client_bidi(0), 2 * i + 1, b"x", false))));
    assert_eq!(refused, Some(ErrorCode::INTERNAL_ERROR));
}

#[test]
fn streams_that_are_opened_and_reset_bring_no_credit_before_the_application_knows() {
    // Attacks E8.
    let mut server = endpoint(Role::Server, limits());
    let mut opened = 0;
    while server.on_reset_stream(ResetStream { id: client_bidi(opened), error: 1, final_size: 0 }).is_ok() {
        server.on_stop_sending(StopSending { id: client_bidi(opened), error: 1 }).expect("open");
        opened += 1;
        let raised = controls(&mut server).iter().any(|frame| matches!(frame, Frame::MaxStreams { .. }));
        assert!(!raised);
    }
    assert_eq!((opened, server.len()), (4, 4));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-4.4
//= type=test
//# Both endpoints MUST maintain flow control state for the stream in the unterminated direction until that
//# direction enters a terminal state.
#[test]
fn stop_sending_and_data_go_together_in_every_order() {
    // Attacks E9.
    for data_first in [true, false] {
        let mut server = endpoint(Role::Server, limits());
        let id = client_bidi(0);
        if data_first {
            server.on_stream(stream(id, 0, b"request", true)).expect("within limits");
        }
        server.on_stop_sending(StopSending { id, error: 7 }).expect("open");
        server.on_stop_sending(StopSending { id, error: 8 }).expect("open");
        if !data_first {
            server.on_stream(stream(id, 0, b"request", true)).expect("within limits");
        }
        assert_eq!(server.accept(BIDI), Some(id));
        assert_eq!(read_all(&mut server, id), (b"request".to_vec(), true));
        assert_eq!(server.write(id, b"response"), Err(WriteError::Stopped(7)));
        let (frame, token) = server.next_control(at(0)).expect("the answer to STOP_SENDING");
        assert_eq!(frame, Frame::ResetStream(ResetStream { id, error: 7, final_size: 0 }));
        server.on_acknowledged(&token);
        assert!(server.is_empty());
        assert_eq!(server.on_stop_sending(StopSending { id, error: 7 }), Ok(()), "late frames are ignored");
    }
}

#[test]
fn a_flood_of_empty_frames_closes_the_connection() {
    // Attacks E10.
    let mut server = endpoint(Role::Server, limits());
    let mut empty = || code(server.on_stream(stream(client_bidi(0), 0, b"", false)));
    assert_eq!((0..=1_000).find_map(|_| empty()), None, "one opens the stream, a thousand are harmless");
    assert_eq!(empty(), Some(ErrorCode::PROTOCOL_VIOLATION));
    let mut server = endpoint(Role::Server, limits());
    for offset in 0..3 {
        for _ in 0..1_000 {
            server.on_stream(stream(client_bidi(0), 0, b"", false)).expect("not that many");
        }
        server.on_stream(stream(client_bidi(0), offset, b"x", false)).expect("of use");
    }
}

#[test]
fn pieces_of_all_streams_together_are_bounded_by_the_window_of_the_connection() {
    // Attacks E6: no stream has too many of them.
    for (window, streams, accepted) in [(64 << 10, 10, 8_310), (4 << 20, 2, 16_414)] {
        let limits = StreamLimits {
            stream_data_bidi_remote: window,
            max_data: window,
            max_streams_bidi: streams,
            max_window: window,
            ..limits()
        };
        let mut server = endpoint(Role::Server, limits);
        let mut send = |index| {
            let (id, offset) = (client_bidi(index % streams), 2 * (index / streams) + 1);
            code(server.on_stream(stream(id, offset, b"x", false)))
        };
        let refused = (0..window / 2).find_map(|index| Some((index, send(index)?)));
        assert_eq!(refused, Some((accepted, ErrorCode::INTERNAL_ERROR)), "in a window of {window} bytes");
    }
}

#[test]
fn a_peer_that_never_reads_costs_no_more_than_the_send_buffer() {
    // Attacks E11.
    let mut client = endpoint(Role::Client, limits());
    let id = client.open(BIDI).expect("within the limit");
    assert_eq!(client.write(id, &[1; 1000]), Ok(600));
    assert_eq!(client.write(id, &[1; 1000]), Err(WriteError::Blocked));
    while next_frame(&mut client, 1200).is_some() {}
    assert_eq!(client.write_bytes(id, Bytes::from_static(&[1; 10])), Err(WriteError::Blocked));
    assert!(events(&mut client).is_empty());
}

#[test]
fn a_peer_that_reads_on_no_stream_costs_little_however_many_it_lets_open() {
    // Attacks E11: what a thousand streams take beyond what it permits is bounded for all of them together.
    let (streams, least, together) = (1_000, 1_200, 512 << 10);
    let limits = StreamLimits {
        stream_data_bidi_local: 0,
        stream_data_bidi_remote: 0,
        max_streams_bidi: streams,
        send_buffer: 1 << 20,
        max_data: 1 << 30,
        ..limits()
    };
    let mut client = endpoint(Role::Client, limits);
    let mut taken = 0;
    for _ in 0..streams {
        let id = client.open(BIDI).expect("within the limit");
        while let Ok(bytes) = client.write(id, &[1; 10_000]) {
            taken += bytes as u64;
        }
    }
    assert_eq!(client.held() as u64, taken);
    assert!((together..=together + streams * least).contains(&taken), "{taken} bytes");
}

#[test]
fn large_windows_widen_the_send_buffer_four_times_at_most() {
    // Attacks E11: whoever acknowledges much, but not the first byte, makes windows grow and buffers fill.
    for (windows, capacity) in [(0, 600), (300, 600), (301, 602), (1000, 2000), (usize::MAX, 2400)] {
        let mut client = endpoint(Role::Client, limits());
        let id = client.open(BIDI).expect("within the limit");
        client.set_windows(windows);
        assert_eq!(client.write(id, &[1; 3000]), Ok(capacity), "{windows}");
        client.set_windows(0);
        assert_eq!(client.write(id, &[1]), Err(WriteError::Blocked));
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-4.2
//= type=test
//# Therefore, a receiver MUST NOT wait for a STREAM_DATA_BLOCKED or DATA_BLOCKED frame before sending a
//# MAX_STREAM_DATA or MAX_DATA frame
#[test]
fn blocked_frames_get_no_answer_and_leave_no_state() {
    // Attacks E12.
    let mut server = endpoint(Role::Server, limits());
    for limit in 0..10_000 {
        server.on_data_blocked(limit).expect("harmless");
        server.on_streams_blocked(BIDI, limit).expect("harmless");
        server.on_stream_data_blocked(client_bidi(limit % 4), limit).expect("harmless");
    }
    assert_eq!((controls(&mut server), server.len()), (vec![], 4));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-4.1
//= type=test
//# A sender MUST ignore any MAX_STREAM_DATA or MAX_DATA frames that do not increase flow control limits.
//= https://www.rfc-editor.org/rfc/rfc9000#section-4.6
//= type=test
//# MAX_STREAMS frames that do not increase the stream limit MUST be ignored.
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.11
//= type=test
//# MAX_STREAMS frames that do not increase the stream limit MUST be ignored.
#[test]
fn limits_that_fall_are_ignored() {
    // RFC 9000 §4.1, §4.6; attacks E14.
    let mut client = endpoint(Role::Client, limits());
    let id = client.open(BIDI).expect("within the limit");
    client.on_max_data(10).expect("ignored");
    client.on_max_stream_data(id, 10).expect("ignored");
    client.on_max_streams(BIDI, 1).expect("ignored");
    client.write(id, &[1; 500]).expect("room");
    assert_eq!(client.offer(id, at(0)).map(|offer| offer.bytes), Some(400));
    assert!(client.open(BIDI).is_some());
}
