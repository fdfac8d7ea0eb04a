//! The server: it sends the layers of a frame when the picture is captured, and takes back what is late. Told of deadlines,
//! it hands over the best layer only when those below it are not held up by it.

use super::{MessageHints, Program};
use crate::workload::pattern;
use crate::world::Net;
use bytes::Bytes;
use hvq_scheduler::Priority;
use hvq_transport::connection::{Connection, Event};
use hvq_transport::stream::{Direction, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use hvq_video::gate::{Decision, Gate, Layer};
use hvq_video::layers::LAYERS;
use hvq_video::message;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The code with which a late layer is taken back.
const LATE: u64 = 1;

#[derive(Debug)]
pub(super) struct Sender {
    program: Program,
    /// The next frame to capture.
    next: u32,
    /// Layers that are not handed over yet: the gate is closed, or no stream could be opened.
    waiting: VecDeque<(u32, usize)>,
    gate: Gate,
    /// Layers above the base layer that are under way and may be taken back.
    under_way: BTreeMap<StreamId, (u32, usize)>,
    /// The times from which on they are of no use.
    due: BTreeSet<(Instant, StreamId)>,
    pub(super) withdrawn: u64,
}

/// The outcome of offering a layer to the transport.
enum Offer {
    /// It is sent, or nobody needs it any more.
    Settled,
    /// It waits.
    Waits,
    /// It waits as all others do: the peer admits no more streams.
    NoStream,
}

impl Sender {
    pub(super) fn new(program: Program) -> Self {
        Self {
            program,
            next: 0,
            waiting: VecDeque::new(),
            gate: Gate::default(),
            under_way: BTreeMap::new(),
            due: BTreeSet::new(),
            withdrawn: 0,
        }
    }

    pub(super) fn wake(&self) -> Option<Instant> {
        let due = self.due.first().map(|(at, _)| *at);
        let frame = (self.next < self.program.frames).then(|| Net::START + Program::captured(self.next));
        [due, frame].into_iter().flatten().min()
    }

    pub(super) fn on_wake(&mut self, net: &mut Net) {
        let now = net.now;
        while self.next < self.program.frames && Net::START + Program::captured(self.next) <= now {
            self.waiting.extend((0..LAYERS).map(|layer| (self.next, layer)));
            self.next += 1;
        }
        if net.server.get().is_none() {
            return;
        }
        let connection = net.server.connection();
        while let Some((at, id)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&(at, id));
            self.withdrawn += u64::from(connection.reset(id, LATE, 0).is_ok());
            if let Some((frame, layer)) = self.under_way.remove(&id) {
                self.gate.on_given_up(frame, layer);
            }
        }
        self.pump(connection, now);
    }

    pub(super) fn on_event(&mut self, event: &Event, connection: &mut Connection, now: Instant) {
        match event {
            Event::Stream(StreamEvent::Finished(id)) => {
                self.due.retain(|(_, due)| due != id);
                if let Some((frame, layer)) = self.under_way.remove(id) {
                    self.gate.on_delivered(frame, layer, now.since(Net::START));
                    self.pump(connection, now);
                }
            }
            Event::Connected | Event::Stream(StreamEvent::Available { .. }) => self.pump(connection, now),
            _ => {}
        }
    }

    /// Sends what waits, as far as it may be.
    fn pump(&mut self, connection: &mut Connection, now: Instant) {
        let mut waiting = std::mem::take(&mut self.waiting);
        while let Some(key) = waiting.pop_front() {
            match self.offer(key, connection, now) {
                Offer::Settled => {}
                Offer::Waits => self.waiting.push_back(key),
                Offer::NoStream => {
                    self.waiting.push_back(key);
                    break;
                }
            }
        }
        self.waiting.append(&mut waiting);
    }

    /// Sends a layer if that is of use and the gate is open.
    fn offer(&mut self, (frame, layer): (u32, usize), connection: &mut Connection, now: Instant) -> Offer {
        let late = Net::START + Program::captured(frame) + self.program.deadlines.of_layer(layer);
        let withdraws = self.program.voice == MessageHints::Deadlines && layer > 0;
        let reference = self.program.header(frame, layer).reference;
        let bytes = self.program.clip.frame(frame).bytes[layer] as usize;
        let asked = Layer { frame, layer, reference, bytes };
        let decision = match withdraws {
            true if late <= now => Decision::Useless,
            true => self.gate.admits(&asked, now.since(Net::START)),
            false => Decision::Send,
        };
        match decision {
            Decision::Send => {}
            Decision::Wait => return Offer::Waits,
            Decision::Useless => {
                self.gate.on_given_up(frame, layer);
                self.withdrawn += 1;
                return Offer::Settled;
            }
        }
        let Some(id) = connection.open(Direction::Unidirectional) else { return Offer::NoStream };
        self.send(id, (frame, layer), late, connection);
        if withdraws {
            self.gate.on_sent(asked, now.since(Net::START));
            self.under_way.insert(id, (frame, layer));
            self.due.insert((late, id));
        }
        Offer::Settled
    }

    fn send(&self, id: StreamId, (frame, layer): (u32, usize), late: Instant, connection: &mut Connection) {
        if self.program.voice != MessageHints::Silent {
            let urgency = message::urgency(layer);
            connection.set_priority(id, Priority { urgency, incremental: false });
        }
        let header = self.program.header(frame, layer).encode();
        let taken = connection.write(id, &header);
        assert_eq!(taken, Ok(header.len()), "a header fits a fresh stream");
        let mut left = self.program.clip.frame(frame).bytes[layer] as usize;
        while left > 0 {
            // The content is not checked here, so every part may be the same.
            let part = Bytes::from_static(pattern::bytes(0, 0, left));
            left -= connection.write_bytes(id, part).expect("a layer fits a fresh stream");
        }
        if self.program.voice == MessageHints::Deadlines {
            connection.end_message(id, Some(late)).expect("the stream was just opened");
        }
        connection.finish(id).expect("the stream was just opened");
    }
}
