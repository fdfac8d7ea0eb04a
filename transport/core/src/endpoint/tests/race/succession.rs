//! Another attempt that takes the place of one whose handshake the server does not confirm.

use super::*;
use crate::connection::Replay;
use crate::error::ConnectionError;

/// The instant at which the client has the server's flight over the first link.
const ANSWERED: Duration = milliseconds(50);

/// A course on whose first link nothing arrives once the handshake is complete at the client.
fn falls_silent() -> Course {
    let mut course = Course::new();
    course.lose(0, |time, _| time >= ANSWERED);
    course
}

fn replay(replay: Replay) -> RaceOptions {
    RaceOptions::default().with_replay(replay)
}

/// Writes on a new stream of the connection.
fn write(course: &mut Course, handle: ConnectionHandle) {
    let connection = course.network.client(handle);
    let id = connection.open(Direction::Unidirectional).expect("the server permits a stream");
    assert_eq!(connection.write(id, b"early"), Ok(5));
}

#[test]
fn an_unconfirmed_handshake_is_left_to_the_next_attempt_and_told_as_a_migration() {
    let mut course = falls_silent();
    let handle = course.begin(replay(Replay::Refused));
    course.run_to(ANSWERED);
    assert_eq!((course.place(handle), course.told(handle, &Event::Connected)), (Some(0), 1));
    // Three round trips without a word.
    let begun = ANSWERED + ANSWERED * 3;
    course.run_to(begun);
    assert_eq!(course.first(1), Some(begun));
    course.run_to(begun + DELAYS[1] * 2);
    assert_eq!(course.place(handle), Some(1));
    course.run_to(Duration::from_secs(5));
    assert_eq!((course.told(handle, &Event::Connected), course.told(handle, &Event::Confirmed)), (1, 1));
    assert_eq!(course.told(handle, &Event::Path(PathEvent::Migrated(PathId::ZERO))), 1);
    course.assert_settled(handle);
    course.assert_works(handle);
    let ways: Vec<NetworkPath> = course.candidates.iter().map(|candidate| candidate.way).collect();
    let Network { client, client_config, now, .. } = &course.network;
    assert_eq!(client.first_network_path(client_config, &ways, *now), 0, "that channel did answer");
}

#[test]
fn what_was_written_is_sent_again_with_consent_only() {
    for consent in [Replay::Accepted, Replay::Refused] {
        let mut course = falls_silent();
        let handle = course.begin(replay(consent));
        course.run_to(ANSWERED + milliseconds(10));
        write(&mut course, handle);
        course.run_to(Duration::from_secs(5));
        let closed = Event::Closed(ConnectionError::HandshakeTimeout);
        if consent == Replay::Refused {
            assert_eq!(course.told(handle, &closed), 1, "the application learns it soon");
            assert_eq!(course.network.client.connections.len(), 0);
            assert!(course.network.client.races.is_empty());
            continue;
        }
        assert_eq!((course.place(handle), course.told(handle, &closed)), (Some(1), 0));
        let handles: Vec<_> = course.network.server.handles().collect();
        let heard = handles.into_iter().any(|handle| {
            let connection = course.network.server.connection(handle).expect("it is known");
            let id = connection.accept(Direction::Unidirectional);
            let outcome = id.and_then(|id| connection.read(id, 100).ok());
            matches!(outcome, Some(ReadOutcome::Data(data)) if data == b"early"[..])
        });
        assert!(heard);
        course.assert_settled(handle);
    }
}

#[test]
fn a_lead_whose_server_still_speaks_stays_though_another_attempt_is_complete() {
    let mut course = Course::new();
    // What the client says over the first link is lost for a while: the server repeats itself after a second.
    let server = course.candidates[0].way.tuple.remote;
    course.network.links[1].delay = milliseconds(500);
    let first = FirstAttempt::default();
    course
        .lose(0, move |time, bytes| !first.answers(bytes) && (ANSWERED..milliseconds(1_400)).contains(&time));
    let handle = course.begin(replay(Replay::Refused));
    course.run_to(ANSWERED + milliseconds(10));
    write(&mut course, handle);
    course.run_to(milliseconds(1_199));
    assert_eq!(course.network.client.connections.len(), 2);
    course.run_to(Duration::from_secs(20));
    let path = course.network.client(handle).path_stats(PathId::ZERO).expect("it is open");
    assert_eq!(path.tuple.remote, server);
    assert_eq!((course.told(handle, &Event::Connected), course.told(handle, &Event::Confirmed)), (1, 1));
    course.assert_settled(handle);
    course.assert_works(handle);
}

#[test]
fn a_lead_from_which_data_came_is_given_up_after_three_round_trips_without_a_word() {
    let mut course = Course::new();
    course.network.links[0].delay = milliseconds(500);
    // The server completes the handshake at 1.5 s. Of what it says then one datagram with data arrives.
    let data = Cell::new(0);
    course.lose(0, move |time, _| {
        let is_late = time >= milliseconds(1_510);
        data.update(|count| count + u32::from(is_late));
        time >= milliseconds(1_500) && data.get() != 1
    });
    let handle = course.begin(replay(Replay::Refused).with_delay(Duration::from_secs(3)));
    course.run_to(milliseconds(1_510));
    let server = course.network.server();
    let id = server.open(Direction::Unidirectional).expect("the client permits a stream");
    assert_eq!(server.write(id, b"early"), Ok(5));
    course.run_to(milliseconds(4_900));
    assert!(course.first(1).is_some_and(|first| first < milliseconds(4_500)), "another attempt is complete");
    let closed = Event::Closed(ConnectionError::HandshakeTimeout);
    assert_eq!((course.told(handle, &Event::Connected), course.told(handle, &closed)), (1, 0));
    course.run_to(milliseconds(8_000));
    assert_eq!(course.told(handle, &closed), 1, "the application learns it long before the idle timeout");
}
