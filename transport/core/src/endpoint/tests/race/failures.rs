//! Attempts that fail, and ones that stand still.

use super::*;
use crate::endpoint::{Admission, Decision, Endpoint, EndpointConfig};
use crate::error::{ConnectionError, ErrorCode};

impl Course {
    /// The server refuses whoever comes over one of these links.
    fn refuse(&mut self, links: &'static [usize]) {
        let refused: Vec<_> = links.iter().map(|index| self.candidates[*index].way.tuple.remote).collect();
        self.network.configure_server(|server| {
            server.admission = Some(Admission::new(move |candidate| {
                if refused.contains(&candidate.local) { Decision::Refuse } else { Decision::Accept }
            }));
        });
    }

    /// The errors with which the application was told that `handle` ended.
    fn ends(&self, handle: ConnectionHandle) -> Vec<&ConnectionError> {
        let events = self.network.client_events.iter().filter(|(of, _)| *of == handle);
        let closed = events.filter_map(|(_, event)| match event {
            Event::Closed(error) => Some(error),
            _ => None,
        });
        closed.collect()
    }

    /// Asserts that the application was told last that `handle` is gone, once, and that nothing is kept.
    fn assert_gone(&self, handle: ConnectionHandle) {
        assert_eq!(self.told(handle, &Event::Forgotten), 1);
        assert_eq!(self.network.client_events.last(), Some(&(handle, Event::Forgotten)));
        assert!(self.network.client_events.iter().all(|(of, _)| *of == handle));
        assert_eq!(self.network.client.connections.len(), 0);
        assert!(self.network.client.races.is_empty());
    }
}

#[test]
fn where_nothing_answers_the_application_learns_it_once_at_the_limit() {
    let mut course = Course::dark(&[0, 1]);
    let handle = course.begin(RaceOptions::default());
    course.run_to(PATIENCE - milliseconds(1));
    assert_eq!(course.network.client_events, []);
    assert_eq!(course.network.client.handles().collect::<Vec<_>>(), [handle]);
    course.run_to(PATIENCE);
    assert_eq!(course.ends(handle), [&ConnectionError::HandshakeTimeout]);
    course.run_to(PATIENCE * 2);
    assert_eq!(course.ends(handle), [&ConnectionError::HandshakeTimeout]);
    course.assert_gone(handle);
    for times in &course.times {
        let times = times.borrow();
        assert!(times.len() <= 60, "{}: a flight a second each, twice at most", times.len());
        assert!(times.iter().all(|time| *time <= PATIENCE), "nothing is tried later");
        let late = times.iter().filter(|time| **time > PATIENCE - Duration::from_secs(3)).count();
        assert!(late >= 2, "it is tried to the end");
    }
}

#[test]
fn an_attempt_that_is_refused_lets_the_next_begin_at_once_and_is_not_told() {
    let mut course = Course::new();
    course.refuse(&[0]);
    let handle = course.begin(RaceOptions::default());
    course.run_to(Duration::from_secs(5));
    assert_eq!(course.first(1), Some(DELAYS[0] * 2));
    assert_eq!((course.place(handle), course.told(handle, &Event::Connected)), (Some(1), 1));
    assert_eq!(course.ends(handle), [&ConnectionError::HandshakeTimeout; 0]);
    course.assert_settled(handle);
    course.assert_works(handle);
}

#[test]
fn a_later_attempt_that_is_refused_leaves_the_connection_to_the_first() {
    let mut course = Course::new();
    course.lose(0, |time, _| time < milliseconds(400));
    course.refuse(&[1]);
    let handle = course.begin(RaceOptions::default());
    course.run_to(Duration::from_secs(5));
    assert_eq!(course.first(1), Some(CONNECTION_ATTEMPT_DELAY));
    assert_eq!((course.place(handle), course.told(handle, &Event::Connected)), (Some(0), 1));
    course.assert_settled(handle);
    course.assert_works(handle);
}

#[test]
fn where_all_are_refused_the_application_learns_the_first_ones_reason_at_once() {
    let mut course = Course::new();
    course.refuse(&[0, 1]);
    let handle = course.begin(RaceOptions::default());
    course.run_to(DELAYS[0] * 2 + DELAYS[1] * 2 - milliseconds(1));
    assert_eq!(course.network.client_events, [], "one may still answer");
    course.run_to(DELAYS[0] * 2 + DELAYS[1] * 2);
    let [ConnectionError::PeerTransport(error)] = course.ends(handle)[..] else {
        panic!("{:?}", course.ends(handle))
    };
    assert_eq!(error.code, ErrorCode::CONNECTION_REFUSED);
    let failures = course.network.client.take_race_failures(handle);
    let over: Vec<_> = failures.iter().map(|(tuple, _)| *tuple).collect();
    assert_eq!(
        over,
        [0, 1].map(|index: usize| course.candidates[index].way.tuple),
        "each attempt has its own reason"
    );
    let refused = |error: &ConnectionError| matches!(error, ConnectionError::PeerTransport(error) if error.code == ErrorCode::CONNECTION_REFUSED);
    assert!(failures.iter().all(|(_, error)| refused(error)));
    assert!(course.network.client.take_race_failures(handle).is_empty(), "they are told once");
    course.run_to(Duration::from_secs(5));
    course.assert_gone(handle);
}

#[test]
fn a_reason_that_came_early_is_told_at_the_limit_if_the_others_are_never_answered() {
    let mut course = Course::dark(&[1]);
    course.refuse(&[0]);
    let handle = course.begin(RaceOptions::default());
    course.run_to(PATIENCE - milliseconds(1));
    assert_eq!(course.network.client_events, [], "the connection that was refused is long gone");
    course.run_to(PATIENCE * 2);
    assert!(matches!(course.ends(handle)[..], [ConnectionError::PeerTransport(_)]));
    course.assert_gone(handle);
}

#[test]
fn closing_the_connection_ends_all_attempts() {
    for time in [milliseconds(5), milliseconds(255)] {
        let mut course = Course::dark(&[0]);
        let handle = course.begin(RaceOptions::default());
        course.run_to(time);
        let now = course.network.now;
        course.network.client(handle).close(7, b"", now);
        course.run_to(Duration::from_secs(20));
        let [ConnectionError::LocallyClosed { .. }] = course.ends(handle)[..] else {
            panic!("{:?}", course.ends(handle))
        };
        assert_eq!(course.told(handle, &Event::Connected), 0);
        course.assert_gone(handle);
        let begun = course.first(1).is_some();
        assert_eq!(begun, time > CONNECTION_ATTEMPT_DELAY);
        assert!(course.times[1].borrow().iter().all(|at| *at < time + milliseconds(100)));
        assert_eq!(course.network.server.handles().count(), 0, "the server was told");
    }
}

#[test]
fn a_full_endpoint_begins_no_second_attempt_and_goes_on_with_the_first() {
    let mut course = Course::new();
    course.lose(0, |time, _| time < milliseconds(400));
    let config = EndpointConfig { max_connections: 1, ..EndpointConfig::default() };
    course.network.client = Endpoint::new(config, None, [1; 32]);
    let handle = course.begin(RaceOptions::default());
    course.run_to(Duration::from_secs(3));
    assert_eq!(course.first(1), None);
    assert_eq!((course.place(handle), course.told(handle, &Event::Connected)), (Some(0), 1));
    course.assert_settled(handle);
}

#[test]
fn an_attempt_that_was_never_answered_is_begun_anew_after_three_seconds() {
    // attacks.md K23: what was sent first may have been used up by somebody else.
    let mut course = Course::new();
    course.candidates.truncate(1);
    let first = FirstAttempt::default();
    course.lose(0, move |_, bytes| first.has(bytes));
    let handle = course.begin(RaceOptions::default());
    course.run_to(milliseconds(2_900));
    assert_eq!(course.network.client.connections.len(), 1);
    course.run_to(milliseconds(4_500));
    assert_eq!((course.place(handle), course.told(handle, &Event::Connected)), (Some(0), 1));
    assert_eq!(course.ends(handle).len(), 0);
    course.run_to(milliseconds(8_000));
    course.assert_settled(handle);
    course.assert_works(handle);
}

#[test]
fn an_attempt_with_a_long_round_trip_is_begun_anew_after_three_of_them() {
    // Of a round trip of a second the first answer of the server arrives, and nothing else.
    let mut course = Course::new();
    course.candidates.truncate(1);
    course.network.links[0].delay = milliseconds(500);
    let answers = Cell::new(0);
    course.lose(0, move |time, _| {
        let is_answer = time >= milliseconds(500);
        answers.update(|count| count + u32::from(is_answer));
        is_answer && answers.get() > 1
    });
    course.begin(RaceOptions::default());
    course.run_to(milliseconds(3_990));
    assert_eq!(course.network.client.connections.len(), 1);
    course.run_to(milliseconds(5_500));
    assert_eq!(course.network.client.connections.len(), 2);
}

#[test]
fn the_first_attempt_may_answer_after_another_was_begun_in_its_place() {
    let mut course = Course::new();
    course.candidates.truncate(1);
    let first = FirstAttempt::default();
    // Nothing arrives for four seconds, and of the handshakes of later attempts nothing ever does.
    course.lose(0, move |time, bytes| {
        let is_other = bytes[0] & 0x80 != 0 && !first.has(bytes);
        time < Duration::from_secs(4) || is_other
    });
    let handle = course.begin(RaceOptions::default());
    course.run_to(milliseconds(4_000));
    assert_eq!(course.network.client.connections.len(), 2, "the first and one in its place");
    for at in 4_001..9_900 {
        course.run_to(milliseconds(at));
        if course.told(handle, &Event::Connected) == 1 {
            break;
        }
    }
    let open = course.network.client.connections.values().filter(|one| one.lifecycle().is_open()).count();
    assert_eq!(
        (open, course.told(handle, &Event::Confirmed)),
        (1, 0),
        "the other ends before the server confirms"
    );
    course.run_to(milliseconds(9_900));
    assert_eq!((course.place(handle), course.told(handle, &Event::Connected)), (Some(0), 1));
    assert_eq!(course.told(handle, &Event::Confirmed), 1);
    course.run_to(milliseconds(14_000));
    assert_eq!(course.ends(handle).len(), 0);
    course.assert_settled(handle);
    course.assert_works(handle);
}

#[test]
fn a_channel_is_not_held_to_be_dead_where_another_was_quicker_to_begin() {
    let mut course = Course::dark(&[1]);
    course.lose(0, |time, _| time < milliseconds(300));
    let handle = course.begin(RaceOptions::default());
    course.run_to(Duration::from_secs(5));
    assert_eq!(course.place(handle), Some(0));
    let ways: Vec<NetworkPath> = course.candidates.iter().rev().map(|candidate| candidate.way).collect();
    let Network { client, client_config, now, .. } = &course.network;
    assert_eq!(client.first_network_path(client_config, &ways, *now), 0, "the other had less time to answer");
}
