//! The applications of both ends: they know all that was asked for, and check all that comes of it.

mod streams;

use self::streams::{Incoming, Outgoing};
use hvq_lab::workload::pattern;
use hvq_lab::world::{Application, Side};
use hvq_scheduler::Priority;
use hvq_transport::connection::{Connection, Event};
use hvq_transport::error::ConnectionError;
use hvq_transport::stream::{Direction, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use std::collections::BTreeMap;
use std::time::Duration;

/// The pattern of datagrams begins here, that of stream `n` at `2 n`.
const DATAGRAMS: u64 = 1 << 40;

/// Tells whether an application reads as soon as it can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reading {
    /// It does.
    AtOnce,
    /// It reads when an operation says so.
    WhenTold,
}

/// A datagram that was sent.
#[derive(Debug)]
struct SentDatagram {
    bytes: usize,
    received: u32,
}

/// One application.
#[derive(Debug, Default)]
struct Half {
    outgoing: BTreeMap<StreamId, Outgoing>,
    incoming: BTreeMap<StreamId, Incoming>,
    /// Streams that could not be opened yet, and what is to be written to them.
    waiting: Vec<(Direction, u64)>,
    datagrams: Vec<SentDatagram>,
    closed: Option<ConnectionError>,
}

/// Both applications.
#[derive(Debug)]
pub(super) struct Player {
    halves: [Half; 2],
    reading: Reading,
    /// True for each end that may receive a datagram on several paths.
    copies: [bool; 2],
    ending: bool,
    failure: Option<String>,
}

pub(super) fn index(side: Side) -> usize {
    usize::from(side == Side::Server)
}

pub(super) fn peer(side: Side) -> Side {
    match side {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    }
}

impl Player {
    /// Applications that have not started. A side of which `copies` holds may send a datagram more than once.
    pub(super) fn new(reading: Reading, copies: [bool; 2]) -> Self {
        Self { halves: Default::default(), reading, copies, ending: false, failure: None }
    }

    /// Returns the first failure.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Returns the error with which the connection ended for `side`.
    pub(super) fn closed(&self, side: Side) -> Option<&ConnectionError> {
        self.halves[index(side)].closed.as_ref()
    }

    fn fail(&mut self, side: Side, problem: String) {
        self.failure.get_or_insert_with(|| format!("{side:?}: {problem}"));
    }

    /// `side` opens a stream and writes `bytes` to it, now or when it may.
    pub(super) fn open(&mut self, side: Side, direction: Direction, bytes: u64, connection: &mut Connection) {
        self.halves[index(side)].waiting.push((direction, bytes));
        self.open_waiting(side, connection);
    }

    fn open_waiting(&mut self, side: Side, connection: &mut Connection) {
        if self.halves[index(side)].closed.is_some() {
            return;
        }
        let waiting = std::mem::take(&mut self.halves[index(side)].waiting);
        for (direction, bytes) in waiting {
            let Some(id) = connection.open(direction) else {
                self.halves[index(side)].waiting.push((direction, bytes));
                continue;
            };
            self.start(side, id, bytes, connection);
            if direction == Direction::Bidirectional {
                self.halves[index(side)].incoming.insert(id, Incoming::default());
            }
        }
    }

    fn start(&mut self, side: Side, id: StreamId, bytes: u64, connection: &mut Connection) {
        let outgoing = Outgoing::new(bytes);
        self.halves[index(side)].outgoing.insert(id, outgoing);
        match self.ending {
            true => self.finish(side, id, connection),
            false => self.push(side, id, connection),
        }
    }

    fn accept(&mut self, side: Side, direction: Direction, connection: &mut Connection) {
        while let Some(id) = connection.accept(direction) {
            if self.halves[index(side)].incoming.insert(id, Incoming::default()).is_some() {
                self.fail(side, format!("stream {id} is accepted twice"));
            }
            if !self.halves[index(peer(side))].outgoing.contains_key(&id) {
                self.fail(side, format!("stream {id} was never opened"));
            }
            if direction == Direction::Bidirectional {
                self.start(side, id, 0, connection);
            }
            if self.reads_at_once() {
                self.read(side, id, usize::MAX, connection);
            }
        }
    }

    fn reads_at_once(&self) -> bool {
        self.reading == Reading::AtOnce || self.ending
    }

    /// The stream that `side` sends on which `number` stands for.
    pub(super) fn sending(&self, side: Side, number: u8) -> Option<StreamId> {
        pick(self.halves[index(side)].outgoing.keys(), number)
    }

    /// The stream that `side` receives on which `number` stands for.
    pub(super) fn receiving(&self, side: Side, number: u8) -> Option<StreamId> {
        pick(self.halves[index(side)].incoming.keys(), number)
    }

    /// `side` sends a datagram of `bytes`, of use for `lifetime` if that is not zero.
    pub(super) fn send_datagram(
        &mut self,
        side: Side,
        bytes: usize,
        expires: Option<Instant>,
        connection: &mut Connection,
    ) {
        let number = self.halves[index(side)].datagrams.len() as u64;
        let mut data = number.to_be_bytes().to_vec();
        data.extend_from_slice(pattern::bytes(DATAGRAMS + number, 0, bytes.saturating_sub(data.len())));
        let sent = SentDatagram { bytes: data.len(), received: 0 };
        if connection.send_datagram(data.into(), Priority::default(), expires).is_ok() {
            self.halves[index(side)].datagrams.push(sent);
        }
    }

    fn receive_datagrams(&mut self, side: Side, connection: &mut Connection) {
        while let Some(data) = connection.receive_datagram() {
            if let Err(problem) = self.check_datagram(side, &data) {
                self.fail(side, problem);
            }
        }
    }

    fn check_datagram(&mut self, side: Side, data: &[u8]) -> Result<(), String> {
        let (number, rest) = data.split_first_chunk().ok_or("a datagram is too short")?;
        let number = u64::from_be_bytes(*number);
        let copies = self.copies[index(peer(side))];
        let sent = &mut self.halves[index(peer(side))].datagrams;
        let sent = sent.get_mut(number as usize).ok_or(format!("datagram {number} was never sent"))?;
        sent.received += 1;
        if sent.bytes != data.len() || !pattern::matches(DATAGRAMS + number, 0, rest) {
            return Err(format!("datagram {number} has other bytes"));
        }
        if sent.received > 1 && !copies {
            return Err(format!("datagram {number} arrived again"));
        }
        Ok(())
    }

    /// From here on all that arrives is read and every stream is brought to its end.
    pub(super) fn end(&mut self, side: Side, connection: &mut Connection) {
        self.ending = true;
        for id in self.halves[index(side)].outgoing.keys().copied().collect::<Vec<_>>() {
            self.finish(side, id, connection);
        }
        for id in self.halves[index(side)].incoming.keys().copied().collect::<Vec<_>>() {
            self.read(side, id, usize::MAX, connection);
        }
    }

    /// Returns a description of a part that is not complete, if there is one.
    pub(super) fn missing(&self) -> Option<String> {
        for side in Side::BOTH {
            let (half, other) = (&self.halves[index(side)], &self.halves[index(peer(side))]);
            if !half.waiting.is_empty() {
                return Some(format!("{side:?} cannot open {:?}", half.waiting));
            }
            for (id, outgoing) in &half.outgoing {
                let incoming = other.incoming.get(id);
                if let Some(problem) = outgoing.missing(incoming) {
                    return Some(format!("{side:?}, stream {id}: {problem} ({outgoing:?}, {incoming:?})"));
                }
            }
        }
        None
    }
}

fn pick<'a>(mut ids: impl ExactSizeIterator<Item = &'a StreamId>, number: u8) -> Option<StreamId> {
    let count = ids.len().max(1);
    ids.nth(usize::from(number) % count).copied()
}

impl Application for Player {
    fn on_event(&mut self, side: Side, event: &Event, connection: &mut Connection, _now: Instant) {
        match event {
            Event::Connected => self.open_waiting(side, connection),
            Event::Stream(StreamEvent::Opened { direction }) => self.accept(side, *direction, connection),
            Event::Stream(StreamEvent::Readable(id)) if self.reads_at_once() => {
                self.read(side, *id, usize::MAX, connection);
            }
            Event::Stream(StreamEvent::Writable(id)) => self.push(side, *id, connection),
            Event::Stream(StreamEvent::Finished(id)) => self.on_finished(side, *id),
            Event::Stream(StreamEvent::Stopped { id, code }) => self.on_stopped(side, *id, *code),
            Event::Stream(StreamEvent::Available { .. }) => self.open_waiting(side, connection),
            Event::DatagramReceived => self.receive_datagrams(side, connection),
            _ => {}
        }
    }

    fn on_closed(&mut self, side: Side, error: &ConnectionError) {
        self.halves[index(side)].closed.get_or_insert_with(|| error.clone());
    }
}

/// A moment `milliseconds` after `now`, none for 0.
pub(super) fn after(now: Instant, milliseconds: u8) -> Option<Instant> {
    (milliseconds > 0).then(|| now + Duration::from_millis(u64::from(milliseconds)))
}
