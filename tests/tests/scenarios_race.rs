//! Connections that are attempted over several paths, because any of them may be dead or die (RFC 8305 over paths).
//!
//! ```text
//!  client ══ wire 0: 60 Mbit/s, 50 ms ══ server      the path that is preferred, and what goes dark
//!         ══ wire 1: 10 Mbit/s, 20 ms ══             the other candidate
//! ```

use hvq_emulation::Direction as NetworkPath;
use hvq_scheduler::{PathId, Policy};
use hvq_tests::net::{Application, ConnectionEvent, Fate, Net, Side};
use hvq_transport::connection::{Connection, Event, FourTuple, PathEvent, Replay, TransportConfig};
use hvq_transport::endpoint::{
    CONNECTION_ATTEMPT_DELAY, ConnectionHandle, NetworkPath as PathWay, RaceOptions,
};
use hvq_transport::error::ConnectionError;
use hvq_transport::stream::{Direction, ReadOutcome, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const WIRES: [&str; 2] = ["rtt=50ms,rate=60mbit", "rtt=20ms,rate=10mbit"];
const REQUEST: usize = 2_000;
const ANSWER: usize = 20_000;
/// A client gives a handshake so long.
const PATIENCE: Duration = Duration::from_secs(10);

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn config() -> TransportConfig {
    TransportConfig::new(Arc::new(|| Policy::MinRtt.scheduler())).set_handshake_timeout(PATIENCE).clone()
}

/// A time in which datagrams do not arrive, by wire and direction.
type Outage = (usize, Option<NetworkPath>, [Duration; 2]);

/// A log of the datagrams that entered the wires: time, wire, direction.
type Log = Rc<RefCell<Vec<(usize, NetworkPath, Vec<u8>)>>>;

/// Both wires with `outages`, which lose what is sent meanwhile, and a log of everything that was sent.
fn network(outages: &[Outage]) -> (Net, [FourTuple; 2], Log) {
    let mut net = Net::new(config(), config(), 1);
    let tuples = [0, 1].map(|index: usize| {
        let mut spec = WIRES[index].to_owned();
        for (_, way, [from, until]) in outages.iter().filter(|(wire, ..)| *wire == index) {
            let side = match way {
                None => "",
                Some(NetworkPath::Up) => "up.",
                Some(NetworkPath::Down) => "down.",
            };
            spec += &format!(",{side}blackout={}us..{}us", from.as_micros(), until.as_micros());
        }
        net.wire(&spec)
    });
    let log = Log::default();
    let sink = log.clone();
    net.tap = Some(Box::new(move |wire, way, bytes| {
        sink.borrow_mut().push((wire, way, bytes.to_vec()));
        Fate::Pass
    }));
    (net, tuples, log)
}

/// A request as soon as there is a connection, and its answer.
#[derive(Default)]
struct Exchange {
    tuples: Option<[FourTuple; 2]>,
    asked: Option<StreamId>,
    received: usize,
    answered_at: Option<Instant>,
    /// The number of bytes that the server has of each request.
    requests: BTreeMap<ConnectionHandle, usize>,
    connected: usize,
    /// Connections whose 0-RTT the server accepted.
    early: usize,
    failure: Option<ConnectionError>,
}

impl Exchange {
    fn over(tuples: [FourTuple; 2]) -> Self {
        Self { tuples: Some(tuples), ..Self::default() }
    }

    /// From the start to the end of the answer.
    fn time(&self) -> Option<Duration> {
        self.answered_at.map(|at| at.since(Net::START))
    }

    fn ask(&mut self, connection: &mut Connection) {
        if self.asked.is_some() {
            return;
        }
        self.asked = connection.open(Direction::Bidirectional);
        let id = self.asked.expect("the server permits a stream");
        assert_eq!(connection.write(id, &[7; REQUEST]), Ok(REQUEST));
        connection.finish(id).expect("the stream was just opened");
    }

    fn open_other(&self, connection: &mut Connection, now: Instant) {
        let Some(tuples) = self.tuples else { return };
        let begun = connection.path_stats(PathId::ZERO).map(|path| path.tuple);
        let other = tuples.into_iter().find(|tuple| Some(*tuple) != begun);
        if connection.path_ids().len() == 1 {
            // An event follows once the peer permits it.
            let _opened = other.map(|tuple| connection.open_path(tuple, now));
        }
    }

    fn serve(&mut self, handle: ConnectionHandle, connection: &mut Connection) {
        while let Some(id) = connection.accept(Direction::Bidirectional) {
            self.requests.insert(handle, 0);
            self.take(handle, id, connection);
        }
    }

    fn take(&mut self, handle: ConnectionHandle, id: StreamId, connection: &mut Connection) {
        loop {
            match connection.read(id, usize::MAX) {
                Ok(ReadOutcome::Data(data)) => {
                    assert!(data.iter().all(|byte| *byte == 7));
                    *self.requests.entry(handle).or_default() += data.len();
                }
                Ok(ReadOutcome::Finished) => {
                    assert_eq!(self.requests[&handle], REQUEST);
                    assert_eq!(connection.write(id, &[9; ANSWER]), Ok(ANSWER));
                    connection.finish(id).expect("the stream is open");
                    return;
                }
                Ok(ReadOutcome::Blocked) | Err(_) => return,
            }
        }
    }

    fn read_answer(&mut self, id: StreamId, connection: &mut Connection, now: Instant) {
        loop {
            match connection.read(id, usize::MAX) {
                Ok(ReadOutcome::Data(data)) => {
                    assert!(data.iter().all(|byte| *byte == 9));
                    self.received += data.len();
                }
                Ok(ReadOutcome::Finished) => {
                    assert_eq!(self.received, ANSWER);
                    self.answered_at = Some(now);
                    return;
                }
                Ok(ReadOutcome::Blocked) | Err(_) => return,
            }
        }
    }
}

impl Application for Exchange {
    fn on_connection_event(&mut self, occurred: ConnectionEvent<'_>) {
        let ConnectionEvent { side, handle, event, connection, now } = occurred;
        match (side, event) {
            (Side::Client, Event::Connected) => {
                self.connected += 1;
                self.ask(connection);
                self.open_other(connection, now);
            }
            (Side::Client, Event::Confirmed | Event::Path(PathEvent::Available | PathEvent::Migrated(_))) => {
                self.open_other(connection, now);
            }
            (Side::Client, Event::Stream(StreamEvent::Readable(id))) => {
                self.read_answer(*id, connection, now);
            }
            (Side::Server, Event::EarlyData) => self.early += 1,
            (Side::Server, Event::Stream(StreamEvent::Opened { .. })) => self.serve(handle, connection),
            (Side::Server, Event::Stream(StreamEvent::Readable(id))) => self.take(handle, *id, connection),
            _ => {}
        }
    }

    fn on_closed(&mut self, side: Side, error: &ConnectionError) {
        if side == Side::Client {
            self.failure = Some(error.clone());
        }
    }

    fn is_done(&self) -> bool {
        self.answered_at.is_some() || self.failure.is_some()
    }
}

fn accepting() -> RaceOptions {
    RaceOptions::default().with_replay(Replay::Accepted)
}

/// An exchange by a raced connection with `outages`, and the network after it.
fn exchange(outages: &[Outage], limit: Duration) -> (Exchange, Net) {
    let (mut net, tuples, _log) = network(outages);
    let mut application = Exchange::over(tuples);
    net.race_with(&tuples, accepting());
    net.run(&mut application, Net::START + limit);
    (application, net)
}

/// An exchange on the first path alone of a connection that is raced over `tuples`: it ends in time.
fn exchange_on_one_path(net: &mut Net, tuples: &[FourTuple], options: RaceOptions) -> Exchange {
    let mut application = Exchange::default();
    net.race_with(tuples, options);
    assert!(net.run(&mut application, Net::START + PATIENCE), "{}", net.describe());
    application
}

/// Has an earlier connection over `tuple` leave a ticket, and runs until `end`, when it is over.
fn leave_a_ticket(net: &mut Net, tuple: FourTuple, end: Instant) {
    net.resume_sessions();
    net.connect(tuple);
    assert!(net.run(&mut Exchange::default(), Net::START + Duration::from_secs(2)), "{}", net.describe());
    net.run_for(milliseconds(500));
    let now = net.now;
    net.client.connection().close(0, b"", now);
    net.run(&mut hvq_tests::net::Onlooker, end);
}

const EVER: Duration = Duration::from_secs(1_000);

#[test]
fn where_the_first_path_answers_in_time_a_race_sends_what_one_attempt_does() {
    let sent = |race: bool| {
        let (mut net, tuples, log) = network(&[]);
        let mut application = Exchange::over(tuples);
        if race {
            net.race(&tuples)
        } else {
            net.connect(tuples[0])
        };
        assert!(net.run(&mut application, Net::START + Duration::from_secs(5)), "{}", net.describe());
        net.run_for(Duration::from_secs(5));
        drop(net);
        Rc::try_unwrap(log).expect("nobody else logs").into_inner()
    };
    let (alone, raced) = (sent(false), sent(true));
    assert!(alone.len() > 20, "{}", alone.len());
    // TLS draws its own randomness, so that sizes are equal and bytes are not.
    let shape = |sent: &[(usize, NetworkPath, Vec<u8>)]| -> Vec<(usize, NetworkPath, usize)> {
        sent.iter().map(|(wire, way, bytes)| (*wire, *way, bytes.len())).collect()
    };
    assert_eq!(shape(&alone), shape(&raced), "equal seeds, equal packets");
    let initials = raced.iter().filter(|(wire, _, bytes)| *wire == 1 && bytes[0] & 0x80 != 0);
    assert_eq!(initials.count(), 0, "no handshake packet goes over the other path");
}

#[test]
fn a_dead_first_path_costs_the_attempt_delay_and_no_more() {
    let alone = {
        let (mut net, tuples, _log) = network(&[]);
        let mut application = Exchange::default();
        net.connect(tuples[1]);
        net.run(&mut application, Net::START + PATIENCE);
        application.time().expect("the path works")
    };
    for way in [None, Some(NetworkPath::Up), Some(NetworkPath::Down)] {
        let (application, net) = exchange(&[(0, way, [Duration::ZERO, EVER])], Duration::from_secs(9));
        let time = application.time().unwrap_or_else(|| panic!("{way:?}\n{}", net.describe()));
        let bound = CONNECTION_ATTEMPT_DELAY + alone + milliseconds(1);
        assert!(time <= bound, "{way:?}: {time:?}, alone {alone:?}\n{}", net.describe());
        assert!(time >= CONNECTION_ATTEMPT_DELAY, "no earlier than RFC 8305 has it");
        assert_eq!(application.connected, 1, "one connection for the application");
    }
}

#[test]
fn a_first_path_that_dies_at_any_instant_of_the_handshake_leaves_it_to_the_other() {
    let (alive, _) = exchange(&[], Duration::from_secs(9));
    let alive = alive.time().expect("both paths work");
    let mut worst = (Duration::ZERO, 0, None);
    for way in [None, Some(NetworkPath::Up), Some(NetworkPath::Down)] {
        for at in 0..=130 {
            let outage = (0, way, [milliseconds(at), EVER]);
            let (application, net) = exchange(&[outage], Duration::from_secs(60));
            let seen = || format!("dead {way:?} at {at} ms\n{}", net.describe());
            let time = application.time().unwrap_or_else(|| panic!("{}", seen()));
            assert_eq!(application.connected, 1, "{}", seen());
            worst = worst.max((time.saturating_sub(alive), at, way.map(|way| way == NetworkPath::Up)));
        }
    }
    println!("alive {alive:?}, worst {worst:?}");
    assert!(worst.0 <= milliseconds(300), "{worst:?} later than {alive:?}");
}

#[test]
fn of_two_dead_paths_the_one_that_comes_back_carries_the_connection() {
    for (index, back) in [(0, 700), (1, 700), (0, 3_300), (1, 3_300), (0, 8_000), (1, 8_000)] {
        for from in [0, 30] {
            let from = milliseconds(from);
            let outages = [(index, None, [from, milliseconds(back)]), (1 - index, None, [from, EVER])];
            let (application, net) = exchange(&outages, PATIENCE);
            let seen = || format!("{index} back at {back} ms, dead from {from:?}\n{}", net.describe());
            let time = application.time().unwrap_or_else(|| panic!("{}", seen()));
            // One period of the slowest pace, the handshake and the exchange.
            let bound = milliseconds(back + 1_000 + 4 * 50);
            assert!(time <= bound, "{time:?} {}", seen());
        }
    }
}

#[test]
fn where_nothing_ever_answers_the_attempt_ends_at_the_callers_limit() {
    let dark = [Duration::ZERO, EVER];
    let (application, net) = exchange(&[(0, None, dark), (1, None, dark)], Duration::from_secs(60));
    assert_eq!(application.failure, Some(ConnectionError::HandshakeTimeout));
    assert_eq!(net.elapsed(), PATIENCE);
    let mut net = net;
    net.run_for(Duration::from_secs(10));
    assert_eq!(net.client.endpoint.handles().count(), 0, "no attempt stays");
    // The first flight at the start and once a second, and what probe timeouts of three attempts send.
    for wire in &net.wires {
        assert!(wire.up.sent <= 40 * 1_200, "{} bytes into the dark", wire.up.sent);
    }
}

#[test]
fn no_state_of_the_attempt_that_lost_stays_at_either_end() {
    // The Initial of the first attempt arrives, and its answer is late.
    let (mut net, tuples, _log) = network(&[(0, Some(NetworkPath::Down), [Duration::ZERO, EVER])]);
    let mut application = Exchange::over(tuples);
    net.race_with(&tuples, accepting());
    assert!(net.run(&mut application, Net::START + Duration::from_secs(5)), "{}", net.describe());
    net.run(&mut hvq_tests::net::Onlooker, Net::START + Duration::from_secs(5));
    assert_eq!(net.server.endpoint.handles().count(), 1, "{}", net.describe());
    assert_eq!(net.client.endpoint.handles().count(), 1, "{}", net.describe());
    assert_eq!(application.requests.len(), 1, "one connection carried requests");
}

/// Keeps what is sent on wire 0 to the server from arriving, and returns it as it grows.
fn hold_first(net: &mut Net) -> Rc<RefCell<Vec<Vec<u8>>>> {
    let held = Rc::<RefCell<Vec<Vec<u8>>>>::default();
    let sink = held.clone();
    net.tap = Some(Box::new(move |wire, way, bytes| {
        if (wire, way) == (0, NetworkPath::Up) {
            sink.borrow_mut().push(bytes.to_vec());
            return Fate::Drop;
        }
        Fate::Pass
    }));
    held
}

#[test]
fn the_server_drops_an_attempt_whose_packets_arrive_after_it_lost() {
    // All that the attempt sent, and its Initial without the close, soon and late.
    for (count, wait) in [(usize::MAX, 0), (1, 0), (1, 300), (usize::MAX, 2_000), (1, 12_000)] {
        let (mut net, tuples, _log) = network(&[]);
        let held = hold_first(&mut net);
        exchange_on_one_path(&mut net, &tuples, accepting());
        net.run_for(milliseconds(wait));
        net.tap = None;
        let held: Vec<_> = held.take().into_iter().take(count).collect();
        assert!(!held.is_empty());
        for bytes in &held {
            let late = net.arriving(0, NetworkPath::Up, bytes);
            net.inject(Side::Server, late);
        }
        let seen = net.server.endpoint.handles().count();
        assert!(wait > 10_000 || seen <= 2, "{seen}");
        // Draining lasts three probe timeouts without a sample (RFC 9000 §10.2.2): three seconds.
        net.run_for(Duration::from_secs(4));
        let left = net.server.endpoint.handles().count();
        // Nobody is left at the client to answer an Initial that is 12 s old: it ends with the server's own limit.
        let limit = if wait > 10_000 { 2 } else { 1 };
        assert!(left <= limit, "{count} after {wait} ms: {left} connections\n{}", net.describe());
        net.run_for(PATIENCE);
        assert_eq!(net.server.endpoint.handles().count(), 1, "{}", net.describe());
    }
}

#[test]
fn copies_of_both_attempts_swapped_between_the_paths_make_no_second_connection() {
    // attacks.md K23.
    for (swapped, at) in [(0, 30), (0, 260), (0, 900), (1, 30), (1, 260), (1, 900), (1, 5_000)] {
        // The first path hears nothing back, so that both attempts reach the server.
        let (mut net, tuples, log) = network(&[(0, Some(NetworkPath::Down), [Duration::ZERO, EVER])]);
        let mut application = Exchange::over(tuples);
        net.race_with(&tuples, accepting());
        net.run(&mut application, Net::START + milliseconds(at));
        // What was lost on its way has no copy.
        let mut sent = log.borrow().clone();
        sent.retain(|(wire, way, _)| (*wire, *way) != (0, NetworkPath::Down));
        for (wire, way, bytes) in sent {
            let copy = net.arriving(wire ^ swapped, way, &bytes);
            net.inject(if way == NetworkPath::Up { Side::Server } else { Side::Client }, copy);
        }
        net.run(&mut application, Net::START + PATIENCE);
        let seen = || format!("swapped {swapped} at {at} ms\n{}", net.describe());
        assert!(application.answered_at.is_some(), "{}", seen());
        assert_eq!(application.connected, 1, "{}", seen());
        assert_eq!(application.requests.len(), 1, "one connection carried a request: {}", seen());
        assert_eq!(net.client.endpoint.handles().count(), 1, "{}", seen());
        net.run_for(PATIENCE + PATIENCE);
        assert_eq!(net.server.endpoint.handles().count(), 1, "{}", net.describe());
    }
}

#[test]
fn only_the_first_attempt_carries_early_data_and_what_was_written_goes_on_with_the_winner() {
    for way in [None, Some(NetworkPath::Down)] {
        let (mut net, tuples, _log) = network(&[(0, way, [Duration::from_secs(3), EVER])]);
        leave_a_ticket(&mut net, tuples[0], Net::START + Duration::from_secs(4));

        let begun = net.now;
        let (mut application, handle) = ask_early(&mut net, tuples);
        net.run(&mut application, begun + PATIENCE);
        let answered = application.answered_at.unwrap_or_else(|| panic!("{way:?}\n{}", net.describe()));
        assert!(answered.since(begun) <= milliseconds(500), "{:?}", answered.since(begun));
        let winner = net.client.endpoint.get(handle).expect("it is there");
        assert!(!winner.is_resumed(), "the ticket was for the first attempt");
        // Where it arrived, the server read the request twice, to which 0-RTT data gives consent.
        let reached = usize::from(way.is_some());
        assert_eq!((application.early, application.requests.len()), (reached, 1 + reached), "{way:?}");
    }
}

#[test]
fn after_a_path_that_did_not_answer_connections_begin_on_the_other_for_a_while() {
    let dark = [Duration::ZERO, Duration::from_secs(11)];
    let (mut net, tuples, _log) = network(&[(0, None, dark)]);
    let hints = |tuple: FourTuple| net.client_config.transport().hints_for(tuple.local);
    let ways = tuples.map(|tuple| PathWay { tuple, hints: hints(tuple) });
    let first = |net: &Net| net.client.endpoint.first_network_path(&net.client_config, &ways, net.now);
    assert_eq!(first(&net), 0);
    exchange_on_one_path(&mut net, &tuples, accepting());
    assert_eq!(first(&net), 1, "the first was not answered");
    net.run_for(milliseconds(9_000));
    assert_eq!(first(&net), 1);
    net.run_for(milliseconds(1_500));
    assert_eq!(first(&net), 0, "it may be back");
}

/// A network with a slow path and a fast one, on which an earlier connection left a ticket, and when that was over. The slow
/// one loses what is sent upwards from `dark_after` later on.
fn resuming(dark_after: Option<Duration>) -> (Net, [FourTuple; 2], Instant) {
    let begun = Duration::from_secs(4);
    let mut net = Net::new(config(), config(), 1);
    let dark = dark_after.map(|after| (begun + after).as_micros());
    let dark = dark.map_or(String::new(), |from| format!(",up.blackout={from}us..{}us", EVER.as_micros()));
    let slow = net.wire(&format!("rtt=3ms,rate=690kbit{dark}"));
    let fast = net.wire("rtt=23ms,rate=9500kbit");
    leave_a_ticket(&mut net, fast, Net::START + begun);
    (net, [slow, fast], Net::START + begun)
}

/// Asks in 0-RTT packets on a raced connection over `tuples`.
fn ask_early(net: &mut Net, tuples: [FourTuple; 2]) -> (Exchange, ConnectionHandle) {
    let handle = net.race(&tuples);
    let mut application = Exchange::over(tuples);
    let connection = net.client.endpoint.connection(handle).expect("it was just begun");
    assert!(connection.is_early_data(), "there is a ticket");
    application.ask(connection);
    (application, handle)
}

#[test]
fn a_server_that_answers_early_data_at_length_is_not_given_up_for_another_attempt() {
    // Its answer keeps the only path busy for longer than an attempt over the other takes, and HANDSHAKE_DONE is behind it.
    let (mut net, tuples, _) = resuming(None);
    let (mut application, _) = ask_early(&mut net, tuples);
    assert!(net.run(&mut application, Net::START + Duration::from_secs(9)), "{}", net.describe());
    assert_eq!(application.failure, None, "{}", net.describe());
    assert!(application.answered_at.is_some(), "{}", net.describe());
    assert!(net.wires[1].up.sent > 2_400, "the other attempt was complete, too: {}", net.describe());
}

#[test]
fn early_data_is_answered_or_the_application_learns_soon_whenever_the_first_path_falls_silent() {
    let mut torn = 0;
    for after in (20..=100).step_by(2) {
        let (mut net, tuples, begun) = resuming(Some(milliseconds(after)));
        let (mut application, _) = ask_early(&mut net, tuples);
        net.run(&mut application, begun + Duration::from_secs(4));
        let seen = || format!("dark after {after} ms\n{}", net.describe());
        if application.answered_at.is_some() {
            continue;
        }
        // The last flight of the client did not arrive, and what was read cannot be read from another connection.
        assert!(application.received > 0, "{}", seen());
        assert_eq!(application.failure, Some(ConnectionError::HandshakeTimeout), "{}", seen());
        let time = net.now.since(begun);
        assert!(time >= Duration::from_secs(1), "a short outage ends no connection: {time:?} {}", seen());
        torn += 1;
    }
    assert!(torn > 0, "some outage tears an answer apart");
}

#[test]
fn data_that_must_not_be_repeated_is_not_and_the_connection_ends_soon() {
    // The last flight of the client does not arrive, which the client cannot tell from one that did.
    let outage = (0, None, [milliseconds(60), EVER]);
    let (mut net, tuples, _log) = network(&[outage]);
    let application = exchange_on_one_path(&mut net, &tuples, RaceOptions::default());
    assert_eq!(application.failure, Some(ConnectionError::HandshakeTimeout), "{}", net.describe());
    assert!(net.elapsed() <= milliseconds(500), "not after {PATIENCE:?}: {:?}", net.elapsed());
    assert_eq!(application.requests.len(), 0, "the server read no request, nor a copy");
}

#[test]
fn what_the_server_may_have_read_already_is_repeated_with_consent_only() {
    let outage = (0, None, [milliseconds(60), EVER]);
    let (mut net, tuples, _log) = network(&[outage]);
    let application = exchange_on_one_path(&mut net, &tuples, accepting());
    assert!(application.answered_at.is_some(), "{}", net.describe());
    assert_eq!(application.connected, 1, "the application was told once");
    assert!(net.client.saw(&Event::Path(PathEvent::Migrated(PathId::ZERO))), "{}", net.describe());
}
