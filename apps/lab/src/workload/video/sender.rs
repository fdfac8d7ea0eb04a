//! The server: it sends the layers of a frame when the picture is captured, and takes back what is late.

use super::{Program, Voice};
use crate::workload::pattern;
use crate::world::Net;
use bytes::Bytes;
use hvq_scheduler::Priority;
use hvq_svc::layers::LAYERS;
use hvq_svc::message;
use hvq_transport::connection::{Connection, Event};
use hvq_transport::stream::{Direction, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use std::collections::{BTreeSet, VecDeque};

/// The code with which a late layer is taken back.
const LATE: u64 = 1;

#[derive(Debug)]
pub(super) struct Sender {
    program: Program,
    /// The next frame to capture.
    next: u32,
    /// Layers for which no stream could be opened yet.
    waiting: VecDeque<(u32, usize)>,
    /// When layers that are under way are of no use any more.
    due: BTreeSet<(Instant, StreamId)>,
    pub(super) withdrawn: u64,
}

impl Sender {
    pub(super) fn new(program: Program) -> Self {
        Self { program, next: 0, waiting: VecDeque::new(), due: BTreeSet::new(), withdrawn: 0 }
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
            self.withdrawn += u64::from(connection.reset(id, LATE).is_ok());
        }
        self.pump(connection, now);
    }

    pub(super) fn on_event(&mut self, event: &Event, connection: &mut Connection, now: Instant) {
        match event {
            Event::Stream(StreamEvent::Finished(id)) => self.due.retain(|(_, due)| due != id),
            Event::Connected | Event::Stream(StreamEvent::Available { .. }) => self.pump(connection, now),
            _ => {}
        }
    }

    /// Sends what waits, as long as streams may be opened.
    fn pump(&mut self, connection: &mut Connection, now: Instant) {
        while let Some((frame, layer)) = self.waiting.front().copied() {
            let late = Net::START + Program::captured(frame) + self.program.deadlines.of_layer(layer);
            let withdraws = self.program.voice == Voice::Deadlines && layer > 0;
            if withdraws && late <= now {
                self.waiting.pop_front();
                self.withdrawn += 1;
                continue;
            }
            let Some(id) = connection.open(Direction::Unidirectional) else { return };
            self.waiting.pop_front();
            self.send(id, (frame, layer), late, connection);
            if withdraws {
                self.due.insert((late, id));
            }
        }
    }

    fn send(&self, id: StreamId, (frame, layer): (u32, usize), late: Instant, connection: &mut Connection) {
        if self.program.voice != Voice::Silent {
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
        if self.program.voice == Voice::Deadlines {
            connection.end_message(id, Some(late)).expect("the stream was just opened");
        }
        connection.finish(id).expect("the stream was just opened");
    }
}
