//! An application that moves bytes both ways over several streams, in uneven writes, and checks every byte.

use hvq_lab::workload::pattern;
use hvq_lab::world::{Application, Net, Side};
use hvq_transport::connection::{Connection, Event, FourTuple, PathEvent};
use hvq_transport::error::ConnectionError;
use hvq_transport::stream::{Direction, ReadOutcome, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::time::Duration;

/// The interval after which the client tries again to open a path that it wants.
const RETRY: Duration = Duration::from_millis(20);

/// The sending half of a stream.
#[derive(Debug)]
struct Sender {
    sent: u64,
    total: u64,
    finished: bool,
}

/// The receiving half of a stream.
#[derive(Debug)]
struct Receiver {
    received: u64,
    total: u64,
    finished: bool,
}

/// The application.
#[derive(Debug)]
pub struct Transfer {
    streams: usize,
    most: u64,
    dice: StdRng,
    started: [bool; 2],
    senders: BTreeMap<(bool, StreamId), Sender>,
    receivers: BTreeMap<(bool, StreamId), Receiver>,
    wanted: Vec<FourTuple>,
    wake: Option<Instant>,
    /// The first failure.
    pub failure: Option<String>,
}

impl Transfer {
    /// Each side opens `streams` streams, alternately unidirectional and bidirectional, of up to `most` bytes each way,
    /// and the client opens paths over `wanted` beside the first.
    pub fn new(seed: u64, streams: usize, most: u64, wanted: Vec<FourTuple>) -> Self {
        Self {
            streams,
            most,
            dice: StdRng::seed_from_u64(seed),
            started: [false; 2],
            senders: BTreeMap::new(),
            receivers: BTreeMap::new(),
            wake: (!wanted.is_empty()).then_some(Net::START),
            wanted,
            failure: None,
        }
    }

    /// Starts on a connection of `side` that exists already.
    pub fn begin(&mut self, side: Side, net: &mut Net) {
        self.start(side, net.end(side).connection());
    }

    /// The size of the half of `id` that `sender` sends: small and large ones, none at all too.
    fn size(&self, id: StreamId, sender: Side) -> u64 {
        let number = id.0 * 2 + u64::from(sender == Side::Client);
        match number % 5 {
            0 => self.most,
            1 => 1 + number,
            2 => self.most / 3,
            3 => 0,
            _ => self.most / 10,
        }
    }

    fn start(&mut self, side: Side, connection: &mut Connection) {
        if std::mem::replace(&mut self.started[usize::from(side == Side::Server)], true) {
            return;
        }
        for number in 0..self.streams {
            let direction = Direction::ALL[number % 2];
            let Some(id) = connection.open(direction) else {
                self.failure = Some(format!("{side:?} may open {number} streams only"));
                return;
            };
            self.send(side, id, connection);
            if direction == Direction::Bidirectional {
                self.expect(side, id);
            }
        }
    }

    fn send(&mut self, side: Side, id: StreamId, connection: &mut Connection) {
        let sender = Sender { sent: 0, total: self.size(id, side), finished: false };
        self.senders.insert((side == Side::Client, id), sender);
        self.write(side, id, connection);
    }

    fn expect(&mut self, side: Side, id: StreamId) {
        let from = if side == Side::Client { Side::Server } else { Side::Client };
        let receiver = Receiver { received: 0, total: self.size(id, from), finished: false };
        self.receivers.insert((side == Side::Client, id), receiver);
    }

    fn write(&mut self, side: Side, id: StreamId, connection: &mut Connection) {
        let Some(sender) = self.senders.get_mut(&(side == Side::Client, id)) else { return };
        while sender.sent < sender.total {
            let length = self.dice.random_range(1..=20_000).min(sender.total - sender.sent) as usize;
            match connection.write(id, pattern::bytes(label(id, side), sender.sent, length)) {
                Ok(taken) => sender.sent += taken as u64,
                Err(_) => return,
            }
            if self.dice.random_bool(0.3) {
                let _ = connection.end_message(id, None);
            }
        }
        if !sender.finished {
            sender.finished = true;
            if let Err(error) = connection.finish(id) {
                self.failure = Some(format!("{side:?} finishes {id:?}: {error}"));
            }
        }
    }

    fn read(&mut self, side: Side, id: StreamId, connection: &mut Connection) {
        let from = if side == Side::Client { Side::Server } else { Side::Client };
        let Some(receiver) = self.receivers.get_mut(&(side == Side::Client, id)) else {
            self.failure = Some(format!("{side:?}: unexpected data on {id:?}"));
            return;
        };
        if receiver.finished {
            // Told once more of what an accept already led to.
            return;
        }
        loop {
            match connection.read(id, self.dice.random_range(1..=50_000)) {
                Ok(ReadOutcome::Data(data)) => {
                    if !pattern::matches(label(id, from), receiver.received, &data) {
                        self.failure =
                            Some(format!("{side:?}: wrong bytes on {id:?} at {}", receiver.received));
                    }
                    receiver.received += data.len() as u64;
                }
                Ok(ReadOutcome::Blocked) => return,
                Ok(ReadOutcome::Finished) if receiver.received == receiver.total => {
                    receiver.finished = true;
                    return;
                }
                outcome => {
                    self.failure = Some(format!("{side:?} reads {id:?} ({receiver:?}): {outcome:?}"));
                    return;
                }
            }
        }
    }

    fn accept(&mut self, side: Side, direction: Direction, connection: &mut Connection) {
        while let Some(id) = connection.accept(direction) {
            self.expect(side, id);
            if direction == Direction::Bidirectional {
                self.send(side, id, connection);
            }
            self.read(side, id, connection);
        }
    }

    /// Returns a description of the parts that are not complete, for the report of a failure.
    pub fn describe(&self) -> String {
        let senders: Vec<_> = self.senders.iter().filter(|(_, sender)| !sender.finished).collect();
        let receivers: Vec<_> = self.receivers.iter().filter(|(_, receiver)| !receiver.finished).collect();
        format!("failure {:?}\nunfinished (client?, stream): {senders:?}\n{receivers:?}", self.failure)
    }
}

impl Application for Transfer {
    fn on_event(&mut self, side: Side, event: &Event, connection: &mut Connection, now: Instant) {
        match event {
            Event::Connected => self.start(side, connection),
            Event::Stream(StreamEvent::Opened { direction }) => self.accept(side, *direction, connection),
            Event::Stream(StreamEvent::Readable(id)) => self.read(side, *id, connection),
            Event::Stream(StreamEvent::Writable(id)) => self.write(side, *id, connection),
            Event::Path(PathEvent::ValidationFailed(_)) if side == Side::Client => {
                self.wake = Some(now + RETRY)
            }
            _ => {}
        }
    }

    fn on_closed(&mut self, side: Side, error: &ConnectionError) {
        self.failure = Some(format!("{side:?} closed: {error}"));
    }

    fn wake(&self) -> Option<Instant> {
        self.wake
    }

    fn on_wake(&mut self, net: &mut Net) {
        let now = net.now;
        let connection = net.client.connection();
        let open: Vec<FourTuple> = connection.stats().paths.iter().map(|path| path.tuple).collect();
        let missing = self.wanted.iter().filter(|tuple| !open.contains(tuple));
        let failed = missing.filter(|tuple| connection.open_path(**tuple, now).is_err()).count();
        self.wake = (failed > 0).then_some(now + RETRY);
    }

    fn is_done(&self) -> bool {
        let complete = self.started == [true; 2]
            && self.receivers.len() == self.streams * 3
            && self.receivers.values().all(|receiver| receiver.finished);
        complete || self.failure.is_some()
    }
}

/// The pattern's number for one direction of a stream.
fn label(id: StreamId, sender: Side) -> u64 {
    id.0 * 2 + u64::from(sender == Side::Client)
}
