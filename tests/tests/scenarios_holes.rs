//! A link that carries nothing any more, in one direction or in both, and tells nobody: requests, datagrams and a download that share it
//! go on over the other link.

use bytes::Bytes;
use hvq_scheduler::{PathId, Policy, Priority};
use hvq_tests::net::{Application, ConnectionEvent, End, Net, Side};
use hvq_transport::connection::{Connection, Event, FourTuple, PathEvent, TransportConfig};
use hvq_transport::endpoint::ConnectionHandle;
use hvq_transport::stream::{Direction, ReadOutcome, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use hvq_transport::wire::frame::Status;
use std::sync::Arc;
use std::time::Duration;

/// Either link, with the queue of tests/scenarios_slow_death.rs.
const LINK: &str = "rtt=1ms,rate=20mbit,queue=64kB";
/// Trials of each kind of hole.
const TRIALS: u64 = 10;
/// The longest time without an answer that a hole may cause: the goal of docs/results/failover.md.
const LONGEST_GAP: Duration = Duration::from_millis(200);
/// Between an answer and the next request, and between datagrams.
const PACE: Duration = Duration::from_millis(20);
/// A request, an answer or a datagram.
const SMALL: [u8; 100] = [b'r'; 100];
/// The first byte of a request for bytes without end.
const ENDLESS: u8 = b'e';
const BLOCK: &[u8] = &[0; 16 << 10];

/// Three connections over the same links, as in docs/results/failover.md, and the times at which something came to the client.
struct Loads {
    second: FourTuple,
    /// The client's connections: the one that asks, the one that downloads, the one that sends datagrams.
    clients: [ConnectionHandle; 3],
    /// The streams of the server that have no end.
    endless: Vec<(ConnectionHandle, StreamId)>,
    /// The request that waits for its answer.
    asked: Option<StreamId>,
    next_request: Instant,
    next_datagram: Instant,
    requests: Vec<Duration>,
    download: Vec<Duration>,
    datagrams: Vec<Duration>,
}

impl Loads {
    fn new(net: &mut Net, links: [FourTuple; 2]) -> Self {
        Self {
            second: links[1],
            clients: [(); 3].map(|()| net.connect(links[0])),
            endless: Vec::new(),
            asked: None,
            next_request: Net::START,
            next_datagram: Net::START,
            requests: Vec::new(),
            download: Vec::new(),
            datagrams: Vec::new(),
        }
    }

    fn serve(&mut self, handle: ConnectionHandle, event: &Event, connection: &mut Connection) {
        match event {
            Event::DatagramReceived => {
                while let Some(data) = connection.receive_datagram() {
                    let _full = connection.send_datagram(data, Priority::default(), None);
                }
            }
            Event::Stream(StreamEvent::Opened { direction }) => {
                while let Some(id) = connection.accept(*direction) {
                    self.answer(handle, id, connection);
                }
            }
            Event::Stream(StreamEvent::Readable(id)) => self.answer(handle, *id, connection),
            Event::Stream(StreamEvent::Writable(id)) if self.endless.contains(&(handle, *id)) => {
                pump(*id, connection);
            }
            _ => {}
        }
    }

    fn answer(&mut self, handle: ConnectionHandle, id: StreamId, connection: &mut Connection) {
        while let Ok(ReadOutcome::Data(data)) = connection.read(id, usize::MAX) {
            if data.first() == Some(&ENDLESS) {
                self.endless.push((handle, id));
                pump(id, connection);
            } else {
                connection.write(id, &data).expect("the stream is open");
                connection.finish(id).expect("the stream is open");
            }
        }
    }

    fn receive(
        &mut self,
        handle: ConnectionHandle,
        event: &Event,
        connection: &mut Connection,
        now: Instant,
    ) {
        let at = now.since(Net::START);
        match event {
            Event::Connected if handle == self.clients[1] => {
                ask(connection, &[ENDLESS]).expect("the server permits a stream");
            }
            Event::Path(PathEvent::Available | PathEvent::ValidationFailed(_)) => {
                let paths = connection.stats().paths;
                if paths.iter().all(|path| path.tuple != self.second) {
                    // What the server does not permit yet is tried again when it says so.
                    let _opened = connection.open_path(self.second, now);
                }
            }
            Event::DatagramReceived => {
                self.datagrams.extend(std::iter::from_fn(|| connection.receive_datagram()).map(|_| at));
            }
            Event::Stream(StreamEvent::Readable(id)) => {
                while let Ok(ReadOutcome::Data(_)) = connection.read(*id, usize::MAX) {
                    if self.asked == Some(*id) {
                        self.asked = None;
                        self.next_request = now + PACE;
                        self.requests.push(at);
                    } else {
                        self.download.push(at);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Sends `request` on a stream of its own; `None` before the server permits one.
fn ask(connection: &mut Connection, request: &[u8]) -> Option<StreamId> {
    let id = connection.open(Direction::Bidirectional)?;
    connection.write(id, request).expect("the stream is open");
    connection.finish(id).expect("the stream is open");
    Some(id)
}

fn pump(id: StreamId, connection: &mut Connection) {
    while connection.write_bytes(id, Bytes::from_static(BLOCK)).is_ok_and(|taken| taken > 0) {}
}

impl Application for Loads {
    fn on_connection_event(&mut self, occurred: ConnectionEvent<'_>) {
        let ConnectionEvent { side, handle, event, connection, now } = occurred;
        match side {
            Side::Server => self.serve(handle, event, connection),
            Side::Client => self.receive(handle, event, connection, now),
        }
    }

    fn wake(&self) -> Option<Instant> {
        Some(self.next_request.min(self.next_datagram))
    }

    fn on_wake(&mut self, net: &mut Net) {
        let now = net.now;
        let [asking, _, talking] = self.clients;
        if self.next_request <= now {
            self.next_request = now + PACE;
            if self.asked.is_none() {
                self.asked = ask(net.client.endpoint.connection(asking).expect("it is open"), &SMALL);
            }
        }
        if self.next_datagram <= now {
            self.next_datagram = now + PACE;
            let connection = net.client.endpoint.connection(talking).expect("it is open");
            let _early = connection.send_datagram(Bytes::from_static(&SMALL), Priority::default(), None);
        }
    }
}

/// The longest time between two of `times`, or from the last to `until`, that ends after `from`.
fn longest(times: &[Duration], from: Duration, until: Duration) -> Duration {
    let before = times.iter().copied().rfind(|at| *at <= from).unwrap_or(from);
    let after = times.iter().copied().filter(|at| *at > from && *at <= until).chain([until]);
    let gaps = after.scan(before, |last, at| Some(at - std::mem::replace(last, at)));
    gaps.max().expect("there is an end")
}

/// A hole of two seconds in the directions `ways` of a link, which begins another 7.3 ms later in each trial: the first link in those
/// of even number, the second in the others.
fn trial(ways: &[&str], number: u64) -> (Net, Loads, [Duration; 2]) {
    let config = TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
    let mut net = Net::new(config.clone(), config, number);
    let from = Duration::from_micros(1_500_000 + number * 7_300);
    let until = from + Duration::from_secs(2);
    let interval = format!("{}us..{}us", from.as_micros(), until.as_micros());
    let dead = (number % 2) as usize;
    let links = [0, 1].map(|index| {
        let holes = ways.iter().filter(|_| index == dead).map(|way| format!(",{way}.blackout={interval}"));
        net.wire(&format!("{LINK}{}", holes.collect::<String>()))
    });
    let mut loads = Loads::new(&mut net, links);
    let end = until + Duration::from_secs(1);
    net.run(&mut loads, Net::START + end);
    (net, loads, [from, end])
}

#[test]
fn requests_datagrams_and_a_download_go_on_beside_a_hole() {
    for ways in [&["up", "down"][..], &["up"], &["down"]] {
        for number in 0..TRIALS {
            let (net, loads, [from, end]) = trial(ways, number);
            let all = [&loads.requests, &loads.datagrams, &loads.download];
            let gaps = all.map(|times| longest(times, from, end));
            println!("{ways:?}, trial {number}: requests, datagrams and download {gaps:?}");
            assert!(
                gaps.iter().all(|gap| *gap <= LONGEST_GAP),
                "{ways:?}, {number}: {gaps:?}\n{}",
                net.describe()
            );
        }
    }
}

#[test]
fn who_notices_that_a_link_is_dead_advises_the_other_end_against_it_until_it_answers() {
    let (net, ..) = trial(&["up", "down"], 1);
    let of_second = |end: &End| -> Vec<Status> {
        let all = end.events.iter().filter_map(|(_, event)| match event {
            Event::Path(PathEvent::PeerStatus(PathId(1), status)) => Some(*status),
            _ => None,
        });
        all.collect()
    };
    // Each end may be told, or have nothing to be told about: the requests end with the link in use.
    let told = [&net.client, &net.server].map(of_second);
    assert!(told.iter().any(|told| told.contains(&Status::Backup)), "{told:?}");
    assert!(told.iter().all(|told| told.last().is_none_or(|last| *last == Status::Available)), "{told:?}");
}
