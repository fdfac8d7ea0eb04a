//! An application that downloads without end, with small messages beside it, and measures both.

use crate::workload::pattern;
use crate::world::{Application, Net, Side};
use hvq_scheduler::Hints;
use hvq_transport::connection::{Connection, Event, FourTuple};
use hvq_transport::error::ConnectionError;
use hvq_transport::stream::{Direction, ReadOutcome, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use std::time::Duration;

/// Bytes of a small message.
pub const MESSAGE: usize = 200;
const CHUNK: usize = 60_000;
const RETRY: Duration = Duration::from_millis(1);

/// The download and what is known of it.
#[derive(Debug)]
pub struct Download {
    /// The path beside the first, and what is known about its channel.
    second: Option<(FourTuple, Hints)>,
    bulk: Option<StreamId>,
    messages: Option<StreamId>,
    /// Time between messages, none for no messages.
    interval: Option<Duration>,
    next_message: Option<Instant>,
    limit: usize,
    /// The times at which the messages were written.
    written: Vec<Instant>,
    /// The times that messages took until their last byte was readable.
    pub delays: Vec<Duration>,
    read: [u64; 2],
    /// The time at which the client was connected.
    pub connected: Option<Instant>,
    /// Bulk bytes read, by millisecond since then.
    pub progress: Vec<u64>,
    wake: Option<Instant>,
}

impl Download {
    /// A download without messages over the first path and `second`.
    pub fn new(second: Option<(FourTuple, Hints)>) -> Self {
        Self {
            wake: second.is_some().then_some(Net::START),
            second,
            bulk: None,
            messages: None,
            interval: None,
            next_message: None,
            limit: 0,
            written: Vec::new(),
            delays: Vec::new(),
            read: [0; 2],
            connected: None,
            progress: Vec::new(),
        }
    }

    /// Makes a download of `limit` messages, one every `interval`, beginning `after` the connection is there.
    #[must_use]
    pub fn with_messages(mut self, limit: usize, interval: Duration, after: Duration) -> Self {
        (self.limit, self.interval) = (limit, Some(interval));
        self.next_message = Some(Net::START + after);
        self
    }

    /// Bits of bulk data per second that were read in the first `time` of the connection.
    pub fn goodput(&self, time: Duration) -> f64 {
        let milliseconds = time.as_millis() as usize;
        let bytes: u64 = self.progress.iter().take(milliseconds).sum();
        bytes as f64 * 8.0 / time.as_secs_f64()
    }

    /// Returns the time that it took until the client was connected.
    pub fn connected_after(&self) -> Duration {
        self.connected.map_or(Duration::ZERO, |at| at.since(Net::START))
    }

    fn pump(&self, connection: &mut Connection) {
        let Some(id) = self.bulk else { return };
        // The content is not checked here, so every chunk may be the same.
        while connection.write_bytes(id, bytes::Bytes::from_static(pattern::bytes(0, 0, CHUNK))).is_ok() {}
    }

    fn read(&mut self, id: StreamId, connection: &mut Connection, now: Instant) {
        let which = usize::from(Some(id) != self.bulk);
        while let Ok(ReadOutcome::Data(data)) = connection.read(id, usize::MAX) {
            self.read[which] += data.len() as u64;
            if let (0, Some(connected)) = (which, self.connected) {
                let millisecond = now.since(connected).as_millis() as usize;
                self.progress.resize(self.progress.len().max(millisecond + 1), 0);
                self.progress[millisecond] += data.len() as u64;
            }
        }
        while self.read[1] >= ((self.delays.len() + 1) * MESSAGE) as u64 {
            self.delays.push(now.since(self.written[self.delays.len()]));
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

    fn write_message(&mut self, net: &mut Net) {
        let now = net.now;
        let Some(id) = self.messages else {
            self.next_message = Some(now + RETRY);
            return;
        };
        let connection = net.server.connection();
        let taken = connection.write(id, pattern::bytes(1, 0, MESSAGE));
        assert_eq!(taken, Ok(MESSAGE), "a message of {MESSAGE} bytes always fits");
        connection.end_message(id, None).expect("the stream is open");
        self.written.push(now);
        let interval = self.interval.filter(|_| self.written.len() < self.limit);
        self.next_message = interval.map(|interval| now + interval);
    }
}

impl Application for Download {
    fn on_event(&mut self, side: Side, event: &Event, connection: &mut Connection, now: Instant) {
        match (side, event) {
            (Side::Client, Event::Connected) => self.connected = Some(now),
            (Side::Server, Event::Connected) => {
                self.bulk = connection.open(Direction::Unidirectional);
                if self.interval.is_some() {
                    self.messages = connection.open(Direction::Unidirectional);
                }
                self.pump(connection);
            }
            (Side::Server, Event::Stream(StreamEvent::Writable(_))) => self.pump(connection),
            (Side::Client, Event::Stream(StreamEvent::Opened { direction })) => {
                while let Some(id) = connection.accept(*direction) {
                    self.read(id, connection, now);
                }
            }
            (Side::Client, Event::Stream(StreamEvent::Readable(id))) => self.read(*id, connection, now),
            _ => {}
        }
    }

    fn on_closed(&mut self, side: Side, error: &ConnectionError) {
        panic!("{side:?} closed: {error}");
    }

    fn wake(&self) -> Option<Instant> {
        [self.wake, self.next_message].into_iter().flatten().min()
    }

    fn on_wake(&mut self, net: &mut Net) {
        if self.wake.is_some_and(|at| at <= net.now) {
            self.open_second(net);
        }
        if self.next_message.is_some_and(|at| at <= net.now) {
            self.write_message(net);
        }
    }

    fn is_done(&self) -> bool {
        self.limit > 0 && self.delays.len() == self.limit
    }
}
