//! Answers about all streams together: what came, what left, and within which limits.

use super::*;
use crate::wire::frame::{ResetStream, StopSending};

#[test]
fn a_peer_has_been_heard_of_once_it_opened_a_stream_or_sent_data() {
    let bidi = StreamId::new(Role::Client, BIDI, 0);
    let uni = StreamId::new(Role::Client, UNI, 0);
    let frames = [
        Frame::StopSending(StopSending { id: bidi, error: 1 }),
        Frame::ResetStream(ResetStream { id: uni, error: 1, final_size: 0 }),
        Frame::Stream(stream(bidi, 0, b"x", false)),
    ];
    for frame in frames {
        let mut server = endpoint(Role::Server, limits());
        assert!(!server.has_arrivals());
        deliver(&mut server, frame.clone());
        assert!(server.has_arrivals(), "{frame:?}");
    }
    // On a stream of this endpoint: the peer opened none.
    let mut client = endpoint(Role::Client, limits());
    let id = client.open(BIDI).expect("permitted");
    deliver(&mut client, Frame::MaxStreamData { id, limit: 1000 });
    assert!(!client.has_arrivals(), "a limit is no data");
    deliver(&mut client, Frame::Stream(stream(id, 0, b"x", false)));
    assert!(client.has_arrivals());
}

#[test]
fn data_that_was_sent_has_left_also_when_its_stream_is_gone() {
    let (mut client, mut server) = pair(limits());
    let id = client.open(UNI).expect("permitted");
    client.write(id, b"x").expect("room");
    assert!(!client.has_departures());
    client.finish(id).expect("open");
    flush(&mut client, &mut server);
    assert!(client.is_empty() && client.has_departures());
    // An end without data needs no credit.
    let mut client = endpoint(Role::Client, limits());
    let id = client.open(UNI).expect("permitted");
    client.finish(id).expect("open");
    assert!(!client.is_empty() && !client.has_departures());
    taken(&mut client, id, 1200, 0).expect("the end");
    assert!(client.has_departures());
}

#[test]
fn what_was_sent_is_unacknowledged_and_uses_credit_of_the_connection() {
    let mut client = endpoint(Role::Client, limits());
    let id = client.open(UNI).expect("permitted");
    client.write(id, &[7; 300]).expect("room");
    assert_eq!((client.credit(), client.has_unacknowledged()), (1000, false));
    let (_, token) = taken(&mut client, id, 1200, 300).expect("data");
    assert_eq!((client.credit(), client.has_unacknowledged()), (700, true));
    client.on_acknowledged(&token);
    assert_eq!((client.credit(), client.has_unacknowledged()), (700, false));
}

#[test]
fn data_of_a_stream_that_was_never_named_waits_behind_a_gap_and_late_data_does_not() {
    let (mut client, mut server) = pair(limits());
    let id = StreamId::new(Role::Client, UNI, 0);
    let waits = |server: &Streams, offset| server.would_wait(&stream(id, offset, b"x", false));
    assert_eq!((waits(&server, 0), waits(&server, 1)), (false, true));
    assert_eq!(client.open(UNI), Some(id));
    client.write(id, b"x").expect("room");
    client.finish(id).expect("open");
    flush(&mut client, &mut server);
    server.accept(UNI);
    read_all(&mut server, id);
    assert_eq!((server.len(), waits(&server, 0), waits(&server, 1)), (0, false, false));
}

#[test]
fn the_application_is_told_of_new_streams_of_a_direction_once_until_it_heard() {
    let mut server = endpoint(Role::Server, limits());
    for round in 0..2 {
        for index in [2 * round, 2 * round + 1] {
            for direction in [BIDI, UNI] {
                let id = StreamId::new(Role::Client, direction, index);
                server.on_stream(stream(id, 0, b"x", false)).expect("within the limits");
            }
        }
        let told = [StreamEvent::Opened { direction: BIDI }, StreamEvent::Opened { direction: UNI }];
        assert_eq!(events(&mut server), told);
    }
    // One that was heard of is told again, one that waits is not.
    let mut server = endpoint(Role::Server, limits());
    let [bidi, uni] = [BIDI, UNI].map(|direction| StreamEvent::Opened { direction });
    let open = |server: &mut Streams, direction, index| {
        let id = StreamId::new(Role::Client, direction, index);
        server.on_stream(stream(id, 0, b"x", false)).expect("within the limits");
    };
    open(&mut server, BIDI, 0);
    open(&mut server, UNI, 0);
    assert_eq!(server.poll_event(), Some(bidi));
    open(&mut server, BIDI, 1);
    open(&mut server, UNI, 1);
    assert_eq!(events(&mut server), [uni, bidi]);
}

#[test]
fn a_connection_at_rest_keeps_no_memory_of_streams_that_are_gone() {
    let (mut client, mut server) = pair(limits());
    let id = client.open(UNI).expect("permitted");
    client.finish(id).expect("open");
    flush(&mut client, &mut server);
    assert!(client.is_empty() && client.map.capacity() > 0);
    client.hibernate();
    assert_eq!(client.map.capacity(), 0);
}

#[test]
fn after_a_restart_as_many_streams_as_permitted_are_not_too_many() {
    for (permitted, exceeds) in [(1, true), (2, false), (3, false)] {
        let mut client = endpoint(Role::Client, limits());
        client.open(UNI).expect("permitted");
        client.open(UNI).expect("permitted");
        client.restart();
        client.set_peer_limits(&parameters(&StreamLimits { max_streams_uni: permitted, ..limits() }));
        assert_eq!(client.exceeds_stream_limits(), exceeds, "{permitted} are permitted");
    }
}

#[test]
fn the_credit_that_is_left_bounds_what_a_renewal_grants() {
    let (mut client, mut server) = pair(limits());
    assert_eq!((server.credit_limit(), server.credit_granted()), (1000, 1000));
    server.set_credit(200);
    for _ in 0..2 {
        let id = client.open(BIDI).expect("permitted");
        client.write(id, &[7; 400]).expect("room");
        flush(&mut client, &mut server);
        server.accept(BIDI);
        assert_eq!(read_all(&mut server, id).0.len(), 400);
    }
    let limits: Vec<Frame> = controls(&mut server);
    assert!(
        !limits.iter().any(|frame| matches!(frame, Frame::MaxData(limit) if *limit > 1000)),
        "{limits:?}"
    );
    let id = client.open(BIDI).expect("permitted");
    client.write(id, &[7; 200]).expect("room");
    flush(&mut client, &mut server);
    server.accept(BIDI);
    read_all(&mut server, id);
    assert!(server.wants_credit() && server.has_control());
    assert!(controls(&mut server).contains(&Frame::MaxData(1200)));
    assert!(!server.wants_credit() && !server.has_control());
    server.stop(id, 1).expect("open");
    assert!(!server.wants_credit() && server.has_control(), "another frame is no credit");
    controls(&mut server);
    assert_eq!((server.credit_limit(), server.credit_granted()), (1200, 200));
}

#[test]
fn windows_grow_by_the_round_trip_time_that_was_measured() {
    for (rtt, granted) in [(50, 500), (150, 1000)] {
        let limits = StreamLimits { stream_data_uni: 500, max_data: 4000, max_window: 4000, ..limits() };
        let (mut client, mut server) = pair(limits);
        server.set_rtt(Duration::from_millis(rtt));
        let id = client.open(UNI).expect("permitted");
        let mut limit = 0;
        for round in 1..=2 {
            client.write(id, &[7; 250]).expect("room");
            flush(&mut client, &mut server);
            server.accept(UNI);
            assert_eq!(read_all(&mut server, id).0.len(), 250);
            while let Some((frame, _)) = server.next_control(at(200 * round)) {
                if let Frame::MaxStreamData { limit: raised, .. } = frame {
                    limit = raised;
                }
            }
        }
        assert_eq!(limit, 500 + granted, "with a round-trip time of {rtt} ms");
    }
}
