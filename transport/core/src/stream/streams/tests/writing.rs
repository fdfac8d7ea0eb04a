//! Tests of the room for what applications write: within buffers, the peer's limits and memory, and news of it.

use super::sending::roomy;
use super::*;
use crate::memory::Allowance;
use hvq_scheduler::StreamPriority;

#[test]
fn a_writer_is_told_of_little_room_too_before_its_stream_has_nothing_to_send() {
    // The peer permits a thousand bytes at a time, before or after it has acknowledged what came before.
    for raised_first in [false, true] {
        let small = StreamLimits { stream_data_bidi_remote: 1000, ..roomy() };
        let mut client = endpoint(Role::Client, small);
        client.set_allowance(Allowance { unpermitted: 0, ..Allowance::UNLIMITED }, 0);
        let id = client.open(BIDI).expect("within the limit");
        for round in 1..5 {
            assert_eq!(client.write(id, &[1; 5000]), Ok(1000), "round {round}");
            let (_, token) = taken(&mut client, id, 2000, 1000).expect("data");
            let limit = 1000 + 1000 * round;
            if raised_first {
                client.on_max_stream_data(id, limit).expect("fine");
                client.on_acknowledged(&token);
            } else {
                client.on_acknowledged(&token);
                client.on_max_stream_data(id, limit - 1000).expect("fine");
                assert_eq!(events(&mut client), [], "there is no room yet");
                client.on_max_stream_data(id, limit).expect("fine");
            }
            assert_eq!(events(&mut client), [StreamEvent::Writable(id)], "round {round}");
            assert!(!client.has_starved(), "what it waited for was its own");
        }
    }
}

#[test]
fn a_writer_is_told_of_room_that_is_an_eighth_of_its_buffer_or_keeps_it_sending() {
    let eighth = 1 << 17;
    for (unsent, raised, told) in [
        (0, 2_047, false),
        (0, 2_048, true),
        (4_096, 2_048, true),
        (4_097, 2_048, false),
        (10_000, eighth, false),
        (10_000, eighth + 1, true),
    ] {
        let small = StreamLimits { stream_data_bidi_remote: 20_000, ..roomy() };
        let mut client = endpoint(Role::Client, small);
        client.set_allowance(Allowance { unpermitted: 0, ..Allowance::UNLIMITED }, 0);
        let id = client.open(BIDI).expect("within the limit");
        assert_eq!(client.write(id, &[1; 50_000]), Ok(20_000));
        for _ in 0..(20_000 - unsent) / 500 {
            taken(&mut client, id, 2_000, 500).expect("data");
        }
        taken(&mut client, id, 2_000, (20_000 - unsent) % 500);
        client.on_max_stream_data(id, 20_000 + raised).expect("fine");
        assert_eq!(!events(&mut client).is_empty(), told, "{raised} bytes more, {unsent} of them unsent");
        let is_told_later = (0..unsent / 500)
            .any(|_| taken(&mut client, id, 2_000, 500).is_some() && !events(&mut client).is_empty());
        assert_eq!(is_told_later, !told && raised >= 2_048, "once that is sent");
    }
}

#[test]
fn acknowledgements_make_room_for_a_writer_from_an_eighth_of_its_buffer_on() {
    for (acknowledged, told) in [(75, false), (76, true), (600, true)] {
        let mut client = endpoint(Role::Client, StreamLimits { stream_data_uni: 10_000, ..limits() });
        let id = client.open(UNI).expect("within the limit");
        assert_eq!(client.write(id, &[1; 700]), Ok(600));
        assert_eq!((client.write(id, &[]), client.write(id, &[1])), (Ok(0), Err(WriteError::Blocked)));
        let (_, token) = taken(&mut client, id, 2000, acknowledged).expect("data");
        client.on_acknowledged(&token);
        assert_eq!(!events(&mut client).is_empty(), told, "of {acknowledged} bytes");
    }
    // Room in the buffer is none if the connection has no credit.
    let mut client = endpoint(Role::Client, StreamLimits { max_data: 1000, ..roomy() });
    client.set_allowance(Allowance { unpermitted: 0, ..Allowance::UNLIMITED }, 0);
    let id = client.open(UNI).expect("within the limit");
    assert_eq!(client.write(id, &[1; 5000]), Ok(1200));
    let (_, token) = taken(&mut client, id, 2000, 2000).expect("data");
    client.on_acknowledged(&token);
    assert_eq!(events(&mut client), []);
}

#[test]
fn writers_that_wait_for_the_same_room_are_told_of_more_in_the_order_of_urgency() {
    let mut client = endpoint(Role::Client, StreamLimits { max_data: 1000, ..roomy() });
    client.set_allowance(Allowance { unpermitted: 0, ..Allowance::UNLIMITED }, 0);
    let [last, first, second] = [(3, 0), (1, 0), (3, 5)].map(|(urgency, order)| {
        let id = client.open(BIDI).expect("within the limit");
        let priority = Priority { urgency, incremental: false };
        client.set_priority(id, StreamPriority { priority, order });
        id
    });
    assert!(!client.has_starved());
    for id in [last, first, second] {
        assert_eq!(client.write(id, &[1; 5000]), Ok(1200), "what a packet takes is for everybody");
        assert_eq!(client.write(id, &[1; 5000]), Err(WriteError::Blocked));
    }
    assert!(client.has_starved() && !client.was_held_back(), "it is not for lack of memory");
    client.on_max_data(500_000).expect("fine");
    assert_eq!(events(&mut client), [first, second, last].map(StreamEvent::Writable));
    assert!(!client.has_starved());
    client.on_max_data(600_000).expect("fine");
    assert_eq!(events(&mut client), [], "each is told once");
    client.set_allowance(Allowance { most: 10_000, ..Allowance::UNLIMITED }, 0);
    assert_eq!(client.write(last, &[1; 500_000]), Ok(10_000 - 3 * 1200));
    assert!(client.was_held_back() && client.has_starved());
}

#[test]
fn a_write_that_fits_is_followed_by_no_news_of_room() {
    let mut client = endpoint(Role::Client, limits());
    let id = client.open(UNI).expect("within the limit");
    assert_eq!(client.write(id, &[1; 500]), Ok(500));
    assert_eq!(client.writable(id, 100), Ok(100), "all that is left");
    let (_, token) = taken(&mut client, id, 2000, 500).expect("data");
    client.on_acknowledged(&token);
    assert_eq!(events(&mut client), []);
}

#[test]
fn before_the_peers_limits_are_known_a_stream_takes_what_its_buffer_takes() {
    let mut client = endpoint(Role::Client, roomy());
    let id = client.open(UNI).expect("within the limit");
    client.restart();
    assert_eq!(client.write(id, &[1; 300_000]), Ok(300_000));
    let none = StreamLimits { max_data: 0, ..roomy() };
    client.set_peer_limits(&parameters(&none));
    assert_eq!(client.write(id, &[1]), Err(WriteError::Blocked));
}

#[test]
fn what_is_taken_beyond_the_limits_is_bounded_for_each_stream_and_for_all() {
    // The connection has no credit; the streams would have.
    let mut client = endpoint(Role::Client, StreamLimits { max_data: 0, ..roomy() });
    let id = client.open(BIDI).expect("within the limit");
    assert_eq!(client.write(id, &[1; 100_000]), Ok(4096));
    // Neither has, and all streams together take six thousand bytes, whatever of it a stream took before.
    let none = StreamLimits { stream_data_bidi_remote: 0, ..roomy() };
    let mut client = endpoint(Role::Client, none);
    client.set_allowance(Allowance { unpermitted: 6000, ..Allowance::UNLIMITED }, 0);
    let [first, second] = [(); 2].map(|()| client.open(BIDI).expect("within the limit"));
    let written = [(first, 3000), (first, 5000), (second, 5000)]
        .map(|(id, size)| client.write(id, &vec![1; size]).unwrap_or_default());
    assert_eq!(written, [3000, 1096, 1904]);
}

#[test]
fn streams_take_a_little_beyond_what_the_peer_permits() {
    let none = StreamLimits { stream_data_bidi_remote: 0, ..roomy() };
    let mut client = endpoint(Role::Client, none);
    let ids: Vec<StreamId> = (0..100).map_while(|_| client.open(BIDI)).collect();
    let written: Vec<_> = ids.iter().map(|id| client.write(*id, &[1; 100_000]).unwrap_or_default()).collect();
    assert_eq!((written.len(), written[0], written.iter().sum::<usize>()), (100, 4096, 100 * 4096));
    client.on_max_stream_data(ids[7], 50_000).expect("fine");
    assert_eq!(events(&mut client), [StreamEvent::Writable(ids[7])]);
    assert_eq!(client.write(ids[7], &[1; 100_000]), Ok(50_000));
}
