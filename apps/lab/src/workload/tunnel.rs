//! The traffic of a tunnel: a transfer without end on a stream, and pings in datagrams beside it.

use crate::workload::pattern;
use crate::world::{Application, Net, Side};
use bytes::Bytes;
use hvq_scheduler::{Hints, Priority};
use hvq_transport::connection::{Connection, Event, FourTuple};
use hvq_transport::error::ConnectionError;
use hvq_transport::stream::{Direction, ReadOutcome, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use std::time::Duration;

/// The priority that a tunnel gives to pings.
const PING: Priority = Priority { urgency: 1, incremental: false };
/// The priority that it gives to a transfer that goes on.
const BULK: Priority = Priority { urgency: 4, incremental: true };

/// Bytes of a ping with its headers.
const PING_BYTES: usize = 84;
const CHUNK: usize = 60_000;
const RETRY: Duration = Duration::from_millis(1);

/// The transfer, the pings, and what is known of them.
#[derive(Debug)]
pub struct Tunnelled {
    /// The path beside the first, until it is open.
    second: Option<(FourTuple, Hints)>,
    /// The end that sends.
    sender: Side,
    /// The time between pings.
    interval: Duration,
    next_ping: Option<Instant>,
    /// The time at which each ping left.
    left: Vec<Instant>,
    /// The time since the start at which each ping that came back left, and its round trip.
    pings: Vec<(Duration, Duration)>,
    /// The bytes that were read, by milliseconds since the start.
    progress: Vec<u64>,
    wake: Option<Instant>,
}

impl Tunnelled {
    /// A transfer by `sender` over the first path and `second`, and a ping each `interval`, which the client sends.
    pub fn new(sender: Side, interval: Duration, second: (FourTuple, Hints)) -> Self {
        Self {
            second: Some(second),
            sender,
            interval,
            next_ping: None,
            left: Vec::new(),
            pings: Vec::new(),
            progress: Vec::new(),
            wake: Some(Net::START),
        }
    }

    /// Bits a second that were read between these times since the start.
    pub fn goodput(&self, from: Duration, to: Duration) -> f64 {
        let count = (to - from).as_millis() as usize;
        let bytes: u64 = self.progress.iter().skip(from.as_millis() as usize).take(count).sum();
        bytes as f64 * 8.0 / (to - from).as_secs_f64()
    }

    /// The round trips of pings that left after `from`, the shortest first.
    pub fn round_trips(&self, from: Duration) -> Vec<Duration> {
        let mut sorted: Vec<_> =
            self.pings.iter().filter(|(at, _)| *at >= from).map(|(_, rtt)| *rtt).collect();
        sorted.sort_unstable();
        sorted
    }

    fn pump(connection: &mut Connection, id: StreamId) {
        // The content is not checked here, so every chunk may be the same.
        while connection.write_bytes(id, Bytes::from_static(pattern::bytes(0, 0, CHUNK))).is_ok() {}
    }

    fn read(&mut self, id: StreamId, connection: &mut Connection, now: Instant) {
        while let Ok(ReadOutcome::Data(data)) = connection.read(id, usize::MAX) {
            let millisecond = now.since(Net::START).as_millis() as usize;
            self.progress.resize(self.progress.len().max(millisecond + 1), 0);
            self.progress[millisecond] += data.len() as u64;
        }
    }

    fn begin(connection: &mut Connection) {
        let id = connection.open(Direction::Unidirectional).expect("the peer admits a stream");
        connection.set_priority(id, BULK);
        Self::pump(connection, id);
    }

    fn on_datagrams(&mut self, side: Side, connection: &mut Connection, now: Instant) {
        while let Some(data) = connection.receive_datagram() {
            if side == Side::Server {
                let _queued = connection.send_datagram(data, PING, None);
                continue;
            }
            let number = data.first_chunk().expect("a ping begins with its number");
            let left = self.left[u32::from_be_bytes(*number) as usize];
            self.pings.push((left.since(Net::START), now.since(left)));
        }
    }

    fn open_second(&mut self, net: &mut Net) {
        let Some((tuple, hints)) = self.second else { return };
        let now = net.now;
        let connection = net.client.connection();
        match connection.open_path(tuple, now) {
            Ok(path) => {
                connection.set_hints(path, hints).expect("the path was just opened");
                self.wake = None;
            }
            Err(_) => self.wake = Some(now + RETRY),
        }
    }

    fn ping(&mut self, net: &mut Net) {
        let mut data = vec![0; PING_BYTES];
        data[..4].copy_from_slice(&(self.left.len() as u32).to_be_bytes());
        let sent = net.client.connection().send_datagram(data.into(), PING, None);
        assert!(sent.is_ok(), "a ping fits: {sent:?}");
        self.left.push(net.now);
        self.next_ping = Some(net.now + self.interval);
    }
}

impl Application for Tunnelled {
    fn on_event(&mut self, side: Side, event: &Event, connection: &mut Connection, now: Instant) {
        match event {
            Event::Connected => {
                if side == Side::Client {
                    self.next_ping = Some(now + self.interval);
                }
                if side == self.sender {
                    Self::begin(connection);
                }
            }
            Event::DatagramReceived => self.on_datagrams(side, connection, now),
            Event::Stream(StreamEvent::Writable(id)) if side == self.sender => Self::pump(connection, *id),
            Event::Stream(StreamEvent::Opened { direction }) => {
                while let Some(id) = connection.accept(*direction) {
                    self.read(id, connection, now);
                }
            }
            Event::Stream(StreamEvent::Readable(id)) => self.read(*id, connection, now),
            _ => {}
        }
    }

    fn on_closed(&mut self, side: Side, error: &ConnectionError) {
        panic!("{side:?} closed: {error}");
    }

    fn wake(&self) -> Option<Instant> {
        [self.wake, self.next_ping].into_iter().flatten().min()
    }

    fn on_wake(&mut self, net: &mut Net) {
        if self.wake.is_some_and(|at| at <= net.now) {
            self.open_second(net);
        }
        if self.next_ping.is_some_and(|at| at <= net.now) {
            self.ping(net);
        }
    }
}
