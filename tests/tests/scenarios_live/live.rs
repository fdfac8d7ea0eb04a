//! Live media: a frame at each tick of a clock, whatever became of those before, far below what the paths carry.

use bytes::{BufMut, BytesMut};
use hvq_scheduler::Priority;
use hvq_tests::net::{Application, Net, Side};
use hvq_tests::pattern;
use hvq_transport::connection::{Connection, Event, FourTuple};
use hvq_transport::error::ConnectionError;
use hvq_transport::stream::{Direction, ReadOutcome, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::time::Duration;

const RETRY: Duration = Duration::from_millis(1);
/// Bytes that name the frame that a datagram is of.
const NUMBER: usize = 4;

/// The carriers of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carriage {
    /// A stream for this many of them, as Media over QUIC has one for each group of pictures.
    Streams(u32),
    /// A datagram for each.
    Datagrams,
}

/// The source of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    /// The end that sends.
    pub from: Side,
    /// Frames a second.
    pub rate: u32,
    /// The mean size of a frame in bytes.
    pub bytes: usize,
    /// The carriers.
    pub carriage: Carriage,
    /// The number of frames.
    pub count: u32,
    /// The time from the start after which wire 0 dies without a word.
    pub dies: Option<Duration>,
}

impl Source {
    /// The time between two frames.
    fn interval(&self) -> Duration {
        Duration::from_secs(1) / self.rate
    }
}

/// The times at which a frame was written, and its last byte was read.
#[derive(Clone, Copy, Debug)]
struct Frame {
    written: Instant,
    read: Option<Instant>,
}

/// The application.
#[derive(Debug)]
pub struct Live {
    /// The source of frames.
    pub source: Source,
    dice: StdRng,
    second: Option<FourTuple>,
    dies: Option<Instant>,
    next: Option<Instant>,
    ready: bool,
    stream: Option<StreamId>,
    /// Bytes of each stream after which its frames end.
    ends: BTreeMap<StreamId, Vec<(u64, usize)>>,
    arrived: BTreeMap<StreamId, u64>,
    frames: Vec<Frame>,
    /// Bytes written.
    pub written: u64,
}

impl Live {
    /// Frames from `source`, whose sizes `seed` draws, from a second on.
    pub fn new(source: Source, seed: u64) -> Self {
        Self {
            source,
            dice: StdRng::seed_from_u64(seed),
            second: None,
            dies: source.dies.map(|at| Net::START + at),
            next: Some(Net::START + Duration::from_secs(1)),
            ready: true,
            stream: None,
            ends: BTreeMap::new(),
            arrived: BTreeMap::new(),
            frames: Vec::new(),
            written: 0,
        }
    }

    /// Has the client open a path over `second`, if there is one.
    #[must_use]
    pub fn beside(self, second: Option<FourTuple>) -> Self {
        Self { ready: second.is_none(), second, ..self }
    }

    /// The times from writing to reading, sorted; of a frame that never came ten seconds.
    pub fn delays(&self) -> Vec<Duration> {
        let never = Duration::from_secs(10);
        let mut delays: Vec<_> = self
            .frames
            .iter()
            .map(|frame| frame.read.map_or(never, |read| read.since(frame.written)))
            .collect();
        delays.sort();
        delays
    }

    /// The longest time between two frames that were read, without the first second of frames.
    pub fn longest_gap(&self) -> Duration {
        let mut reads: Vec<_> =
            self.frames.iter().skip(self.source.rate as usize).filter_map(|frame| frame.read).collect();
        reads.sort();
        reads.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap_or(Duration::MAX)
    }

    /// Draws the size of the next frame: the first of a second is three times as large as the others on average.
    fn draw(&mut self) -> usize {
        let key = self.frames.len().is_multiple_of(self.source.rate as usize);
        let mean = if key { 3 * self.source.bytes } else { self.source.bytes };
        let size = self.dice.random_range(mean / 2..=mean + mean / 2);
        if self.source.carriage == Carriage::Datagrams { size.clamp(NUMBER, 1100) } else { size }
    }

    fn write(&mut self, net: &mut Net) {
        let (now, size) = (net.now, self.draw());
        let number = self.frames.len();
        let connection = net.end(self.source.from).connection();
        self.written += size as u64;
        self.frames.push(Frame { written: now, read: None });
        match self.source.carriage {
            Carriage::Datagrams => {
                let mut bytes = BytesMut::new();
                bytes.put_u32(number as u32);
                bytes.put_slice(pattern::bytes(0, 0, size - NUMBER));
                connection.send_datagram(bytes.freeze(), Priority::DEFAULT, None).expect("it fits");
            }
            Carriage::Streams(group) => {
                if number.is_multiple_of(group as usize) {
                    self.stream = connection.open(Direction::Unidirectional);
                }
                let id = self.stream.expect("the peer permits as many streams");
                let ends = self.ends.entry(id).or_default();
                let end = ends.last().map_or(0, |last| last.0) + size as u64;
                ends.push((end, number));
                assert_eq!(connection.write(id, &vec![7; size]), Ok(size), "the buffer takes a frame");
                if (number + 1).is_multiple_of(group as usize) {
                    connection.finish(id).expect("the stream is open");
                }
            }
        }
        let more = self.frames.len() < self.source.count as usize;
        self.next = more.then(|| now + self.source.interval());
    }

    fn read(&mut self, id: StreamId, connection: &mut Connection, now: Instant) {
        while let Ok(ReadOutcome::Data(data)) = connection.read(id, usize::MAX) {
            *self.arrived.entry(id).or_default() += data.len() as u64;
        }
        let arrived = self.arrived.get(&id).copied().unwrap_or_default();
        for (end, number) in self.ends.get(&id).into_iter().flatten() {
            if *end <= arrived {
                self.frames[*number].read.get_or_insert(now);
            }
        }
    }
}

impl Application for Live {
    fn on_event(&mut self, side: Side, event: &Event, connection: &mut Connection, now: Instant) {
        if side == self.source.from {
            return;
        }
        match event {
            Event::Stream(StreamEvent::Opened { direction }) => {
                while let Some(id) = connection.accept(*direction) {
                    self.read(id, connection, now);
                }
            }
            Event::Stream(StreamEvent::Readable(id)) => self.read(*id, connection, now),
            Event::DatagramReceived => {
                while let Some(bytes) = connection.receive_datagram() {
                    let number =
                        bytes[..NUMBER].iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
                    self.frames[number].read.get_or_insert(now);
                }
            }
            _ => {}
        }
    }

    fn on_closed(&mut self, side: Side, error: &ConnectionError) {
        panic!("{side:?} closed: {error}");
    }

    fn wake(&self) -> Option<Instant> {
        let opens = (!self.ready).then_some(Net::START + RETRY * 200);
        [self.next, self.dies, opens].into_iter().flatten().min()
    }

    fn on_wake(&mut self, net: &mut Net) {
        if !self.ready
            && let Some(tuple) = self.second
        {
            let now = net.now;
            self.ready = net.client.connection().open_path(tuple, now).is_ok();
            assert!(self.ready, "the handshake is over by then");
        }
        if self.dies.is_some_and(|at| at <= net.now) {
            self.dies = None;
            net.wires[0].largest = 0;
        }
        if self.next.is_some_and(|at| at <= net.now) {
            self.write(net);
        }
    }

    fn is_done(&self) -> bool {
        self.frames.len() == self.source.count as usize
            && self.frames.iter().all(|frame| frame.read.is_some())
    }
}
