//! One connection that is attempted over several paths (RFC 8305 §5): who begins when, who wins and what is left.

mod failures;
mod succession;

use super::early_data::Tickets;
use super::network::{Network, transport};
use crate::PathId;
use crate::congestion::Algorithm;
use crate::connection::{Dscp, Event, PathEvent, TransportConfig};
use crate::crypto::session::EarlyData;
use crate::endpoint::{
    CONNECTION_ATTEMPT_DELAY, CandidatePath, ConnectError, ConnectionHandle, Dial, NetworkPath, Output,
    RaceOptions,
};
use crate::stream::{Direction, ReadOutcome};
use crate::time::{Instant, TimerReason};
use hvq_scheduler::{Bandwidth, Hints};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// The one-way delays of both links.
const DELAYS: [Duration; 2] = [milliseconds(25), milliseconds(10)];
/// The client gives a handshake so long.
const PATIENCE: Duration = Duration::from_secs(10);

const fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn config() -> TransportConfig {
    TransportConfig { handshake_timeout: PATIENCE, ..transport() }
}

/// The times since the start at which datagrams entered a link, either way.
type Times = Rc<RefCell<Vec<Duration>>>;

/// Two links and a client that may begin on either.
struct Course {
    network: Network,
    start: Instant,
    candidates: Vec<CandidatePath>,
    times: [Times; 2],
}

impl Course {
    fn new() -> Self {
        let mut network = Network::new(config(), config());
        let tuples = DELAYS.map(|delay| network.link(delay));
        let candidates =
            tuples.map(|tuple| CandidatePath::new(NetworkPath { tuple, hints: Hints::NONE })).to_vec();
        let mut course = Self { start: network.now, network, candidates, times: Default::default() };
        (0..2).for_each(|index| course.lose(index, |_, _| false));
        course
    }

    /// A course on which everything is lost on the links named.
    fn dark(links: &[usize]) -> Self {
        let mut course = Self::new();
        links.iter().for_each(|index| course.lose(*index, |_, _| true));
        course
    }

    /// From now on link `index` loses what `lost` says, by the time since the start and the content.
    fn lose(&mut self, index: usize, lost: impl Fn(Duration, &[u8]) -> bool + 'static) {
        let (times, start) = (Rc::clone(&self.times[index]), self.start);
        self.network.links[index].drop = Box::new(move |now, bytes| {
            times.borrow_mut().push(now.since(start));
            lost(now.since(start), bytes)
        });
    }

    fn begin(&mut self, options: RaceOptions) -> ConnectionHandle {
        let Self { network, candidates, .. } = self;
        let dial = Dial { server_name: "server.test", candidates, options };
        network.client.connect_racing(&network.client_config, dial, network.now).expect("the race begins")
    }

    fn run_to(&mut self, time: Duration) {
        self.network.run_until(self.start + time);
    }

    /// The first time at which a datagram entered link `index`.
    fn first(&self, index: usize) -> Option<Duration> {
        self.times[index].borrow().first().copied()
    }

    /// The candidate that path 0 of a connection is over.
    fn place(&self, handle: ConnectionHandle) -> Option<usize> {
        let tuple = self.network.client.get(handle)?.path_stats(PathId::ZERO)?.tuple;
        self.candidates.iter().position(|candidate| candidate.way.tuple == tuple)
    }

    /// Returns the number of times that the application was told this of `handle`.
    fn told(&self, handle: ConnectionHandle, event: &Event) -> usize {
        self.network.client_events.iter().filter(|(of, told)| *of == handle && told == event).count()
    }

    /// Asserts that the connection works both ways.
    fn assert_works(&mut self, handle: ConnectionHandle) {
        let connection = self.network.client(handle);
        let id = connection.open(Direction::Unidirectional).expect("the server permits a stream");
        assert_eq!(connection.write(id, b"hello"), Ok(5));
        self.network.run_for(milliseconds(100));
        let handles: Vec<_> = self.network.server.handles().collect();
        let heard = handles.into_iter().any(|handle| {
            let connection = self.network.server.connection(handle).expect("it is known");
            let accepted = std::iter::from_fn(|| connection.accept(Direction::Unidirectional));
            let mut streams: Vec<_> = accepted.collect();
            streams.iter_mut().any(|id| {
                let outcome = connection.read(*id, 100);
                matches!(outcome, Ok(ReadOutcome::Data(data)) if data == b"hello"[..])
            })
        });
        assert!(heard, "no connection of the server got it");
    }

    /// Asserts that the application knows `handle` and nothing else, and that nothing else is kept or due.
    fn assert_settled(&mut self, handle: ConnectionHandle) {
        assert_eq!(self.network.client.handles().collect::<Vec<_>>(), [handle]);
        assert_eq!(self.network.client.connections.len(), 1, "attempts that lost are forgotten");
        assert!(self.network.client.races.is_empty());
        assert!(self.network.client_events.iter().all(|(of, _)| *of == handle));
        assert_ne!(self.due(), Some(TimerReason::ConnectionAttempt));
    }

    /// The reason for which the client wakes next.
    fn due(&mut self) -> Option<TimerReason> {
        match self.network.client.poll(self.network.now) {
            Output::Idle(deadline) => deadline.map(|deadline| deadline.reason),
            output => panic!("{output:?}"),
        }
    }
}

/// The connection ID that the client gave itself for its first attempt, once seen.
#[derive(Default)]
struct FirstAttempt(Cell<Option<[u8; 4]>>);

impl FirstAttempt {
    /// Returns true if a datagram has a long header and belongs to the first attempt.
    fn has(&self, bytes: &[u8]) -> bool {
        if bytes[0] & 0x80 == 0 {
            return false;
        }
        let source = id(bytes, 7 + usize::from(bytes[5]));
        self.0.set(self.0.get().or(source));
        self.0.get() == source || self.answers(bytes)
    }

    /// Returns true if the server sent a datagram in answer to the first attempt.
    fn answers(&self, bytes: &[u8]) -> bool {
        let is_long = bytes[0] & 0x80 != 0;
        if is_long && self.0.get().is_none() {
            self.0.set(id(bytes, 7 + usize::from(bytes[5])));
        }
        self.0.get() == id(bytes, if is_long { 6 } else { 1 })
    }
}

/// The first bytes of the connection ID at an offset.
fn id(bytes: &[u8], at: usize) -> Option<[u8; 4]> {
    bytes.get(at..at + 4)?.try_into().ok()
}

#[test]
fn without_a_candidate_nothing_begins() {
    let mut course = Course::new();
    course.candidates.clear();
    let Course { network, candidates, .. } = &mut course;
    let dial = Dial { server_name: "server.test", candidates, options: RaceOptions::default() };
    let begun = network.client.connect_racing(&network.client_config, dial, network.now);
    assert!(matches!(begun, Err(ConnectError::NoCandidate)));
    assert_eq!(network.client.handles().count(), 0);
    assert!(network.client.races.is_empty());
}

#[test]
fn where_the_first_path_answers_in_time_nothing_is_sent_over_the_other() {
    let mut course = Course::new();
    let handle = course.begin(RaceOptions::default());
    course.run_to(milliseconds(1));
    assert_eq!(
        course.due(),
        Some(TimerReason::ConnectionAttempt),
        "the next attempt is the nearest deadline"
    );
    course.run_to(DELAYS[0] * 4);
    assert_eq!(course.told(handle, &Event::Confirmed), 1);
    course.assert_settled(handle);
    course.run_to(Duration::from_secs(2));
    assert_eq!((course.first(0), course.first(1)), (Some(Duration::ZERO), None));
    assert_eq!(course.place(handle), Some(0));
    assert_eq!((course.told(handle, &Event::Connected), course.told(handle, &Event::Confirmed)), (1, 1));
    course.assert_settled(handle);
    course.assert_works(handle);
}

#[test]
fn the_next_attempt_begins_after_the_delay_and_wins_under_the_first_ones_handle() {
    let mut course = Course::dark(&[0]);
    let handle = course.begin(RaceOptions::default());
    course.run_to(milliseconds(1));
    assert_eq!(course.network.client.handles().collect::<Vec<_>>(), [handle]);
    course.run_to(CONNECTION_ATTEMPT_DELAY);
    assert_eq!(course.first(1), Some(CONNECTION_ATTEMPT_DELAY));
    assert_eq!(course.network.client.handles().collect::<Vec<_>>(), [handle], "of two attempts one is known");
    let won = CONNECTION_ATTEMPT_DELAY + DELAYS[1] * 2;
    course.run_to(won);
    assert_eq!(course.place(handle), Some(1));
    assert_eq!(course.times[0].borrow().last(), Some(&won), "the server is told that the other is over");
    assert_eq!(course.told(handle, &Event::Connected), 1);
    course.run_to(Duration::from_secs(5));
    assert_eq!((course.told(handle, &Event::Connected), course.told(handle, &Event::Confirmed)), (1, 1));
    assert_eq!(course.told(handle, &Event::Path(PathEvent::Migrated(PathId::ZERO))), 0, "it began there");
    course.assert_settled(handle);
    course.assert_works(handle);
    let last = course.times[0].borrow().last().copied();
    assert!(last < Some(milliseconds(2_000)), "{last:?}: the attempt that lost says no more");
}

#[test]
fn an_attempt_that_resumes_no_session_keeps_the_ticket_of_its_own() {
    // RFC 8446 §C.4: a ticket is for one attempt, which is the first.
    let mut course = Course::dark(&[0]);
    let tickets = std::sync::Arc::new(Tickets::default());
    course.network.keep_sessions(tickets.clone(), EarlyData::Off);
    let handle = course.begin(RaceOptions::default());
    course.run_to(Duration::from_secs(5));
    assert_eq!((course.place(handle), tickets.len()), (Some(1), 1));
}

#[test]
fn the_application_says_how_long_the_others_wait() {
    let mut course = Course::dark(&[0]);
    course.begin(RaceOptions::default().with_delay(milliseconds(40)));
    course.run_to(milliseconds(100));
    assert_eq!(course.first(1), Some(milliseconds(40)));
}

#[test]
fn the_others_wait_for_three_of_the_round_trips_that_the_hints_promise() {
    // A round trip of 60 ms, and 5100 bytes at 1 Mbit/s, which take 40.8 ms more.
    let slow = Bandwidth::from_bits_per_second(1_000_000);
    for (rate, delay) in [(None, 180_000), (Some(slow), 302_400)] {
        let mut course = Course::dark(&[0]);
        course.candidates[0].way.hints = Hints { delay: Some(milliseconds(30)), rate, ..Hints::NONE };
        course.begin(RaceOptions::default());
        course.run_to(milliseconds(500));
        assert_eq!(course.first(1), Some(Duration::from_micros(delay)));
    }
}

#[test]
fn the_others_wait_longer_where_handshakes_queue_on_the_first_path() {
    // A round trip of 60 ms, 40.8 ms of the bytes until there are keys, and 64 ms of another handshake, at 1 Mbit/s.
    let rate = Some(Bandwidth::from_bits_per_second(1_000_000));
    let mut course = Course::dark(&[0]);
    course.candidates[0].way.hints = Hints { delay: Some(milliseconds(30)), rate, ..Hints::NONE };
    let local = course.candidates[0].way.tuple.local;
    course.network.client.channels.on_handshake(local, rate, course.start);
    course.begin(RaceOptions::default());
    course.run_to(milliseconds(500));
    assert_eq!(course.first(1), Some(Duration::from_micros(3 * 164_800)));
}

#[test]
fn each_attempt_has_the_settings_of_its_candidate() {
    for winner in 0..2 {
        let mut course = Course::dark(&[1 - winner]);
        let (other, dscp) = (Algorithm::NewReno, Dscp::new(46).expect("six bits"));
        let hints = Hints { delay: Some(milliseconds(70)), ..Hints::NONE };
        for (index, candidate) in course.candidates.iter_mut().enumerate() {
            if index == winner {
                (candidate.congestion, candidate.dscp, candidate.way.hints) =
                    (Some(other.into()), dscp, hints);
            }
        }
        let handle = course.begin(RaceOptions::default());
        course.run_to(Duration::from_secs(1));
        let path = course.network.client(handle).path_stats(PathId::ZERO).expect("it is open");
        assert_eq!((course.place(handle), path.controller), (Some(winner), other.name()));
        assert_eq!(path.delay, milliseconds(70), "a promise counts before a measurement");
        let now = course.network.now;
        course.network.client(handle).close(0, b"", now);
        let sent =
            std::iter::repeat_with(|| course.network.client.poll(now)).find_map(|output| match output {
                Output::Transmit(transmit) => Some(transmit.dscp),
                Output::Idle(_) => panic!("the server is told that the connection is over"),
                Output::Event(..) => None,
            });
        assert_eq!(sent, Some(dscp));
    }
}

#[test]
fn a_connection_does_not_begin_for_ten_seconds_where_an_attempt_was_not_answered() {
    let mut course = Course::dark(&[0]);
    let ways: Vec<NetworkPath> = course.candidates.iter().map(|candidate| candidate.way).collect();
    let first = |course: &Course| {
        let Network { client, client_config, now, .. } = &course.network;
        client.first_network_path(client_config, &ways, *now)
    };
    assert_eq!(first(&course), 0);
    course.begin(RaceOptions::default());
    // Known from when the other answered.
    let answered = CONNECTION_ATTEMPT_DELAY + DELAYS[1] * 2;
    course.run_to(answered - milliseconds(1));
    assert_eq!(first(&course), 0);
    for (time, way) in [(milliseconds(10), 1), (milliseconds(9_990), 1), (milliseconds(10_010), 0)] {
        course.run_to(answered + time);
        assert_eq!(first(&course), way, "{time:?}");
    }
}

#[test]
fn a_channel_that_was_not_answered_counts_again_once_a_path_from_there_is_heard() {
    let mut course = Course::dark(&[0]);
    let ways: Vec<NetworkPath> = course.candidates.iter().map(|candidate| candidate.way).collect();
    let handle = course.begin(RaceOptions::default());
    course.run_to(Duration::from_secs(2));
    let first = |course: &Course| {
        let Network { client, client_config, now, .. } = &course.network;
        client.first_network_path(client_config, &ways, *now)
    };
    assert_eq!(first(&course), 1);
    course.lose(0, |_, _| false);
    let now = course.network.now;
    course.network.client(handle).open_path(ways[0].tuple, now).expect("paths are negotiated");
    course.run_to(Duration::from_secs(3));
    assert_eq!(first(&course), 0);
}

#[test]
fn a_connection_does_not_begin_where_a_path_of_another_is_silent_until_that_answers() {
    let mut course = Course::new();
    let ways: Vec<NetworkPath> = course.candidates.iter().map(|candidate| candidate.way).collect();
    let handle = course.begin(RaceOptions::default());
    course.run_to(milliseconds(500));
    let now = course.network.now;
    course.network.client(handle).open_path(ways[1].tuple, now).expect("paths are negotiated");
    course.run_to(milliseconds(1_000));
    let first = |course: &Course| {
        let Network { client, client_config, now, .. } = &course.network;
        client.first_network_path(client_config, &ways, *now)
    };
    assert_eq!(first(&course), 0);
    let beside = Rc::new(Cell::new(false));
    let is_dark = beside.clone();
    course.lose(0, |time, _| time < milliseconds(5_000));
    course.lose(1, move |_, _| is_dark.get());
    // Both paths are asked again and again.
    for path in [PathId::ZERO, PathId(1)] {
        let asked = course.network.client(handle).set_path_keep_alive(path, Some(milliseconds(50)));
        asked.expect("the path is open");
    }
    course.run_to(milliseconds(2_000));
    assert_eq!(first(&course), 1);
    beside.set(true);
    course.run_to(milliseconds(4_500));
    assert_eq!(first(&course), 0, "with no path left nothing speaks against this channel");
    beside.set(false);
    course.run_to(milliseconds(8_000));
    assert_eq!(first(&course), 0, "it answers again");
}

#[test]
fn all_channels_that_had_more_time_to_answer_than_the_winners_are_shunned() {
    let mut course = Course::dark(&[0, 1]);
    let tuple = course.network.link(DELAYS[1]);
    course.candidates.push(CandidatePath::new(NetworkPath { tuple, hints: Hints::NONE }));
    let handle = course.begin(RaceOptions::default());
    course.run_to(Duration::from_secs(1));
    assert_eq!(course.place(handle), Some(2));
    let way = |index: usize| course.candidates[index].way;
    for (ways, first) in [([0, 1, 2], 2), ([1, 2, 0], 1), ([2, 0, 1], 0)] {
        let Network { client, client_config, now, .. } = &course.network;
        assert_eq!(client.first_network_path(client_config, &ways.map(way), *now), first, "{ways:?}");
    }
}
