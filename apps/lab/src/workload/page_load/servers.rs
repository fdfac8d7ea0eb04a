//! The servers of all domains, or the gateway before them: they answer as long after the request as was recorded.

use super::exchange::{self, PRELIMINARIES};
use super::progress::Progress;
use super::{ApplicationHints, Manner};
use crate::pages::{ObjectId, Page};
use crate::world::Net;
use hvq_scheduler::Priority;
use hvq_transport::connection::{Connection, Event};
use hvq_transport::endpoint::ConnectionHandle;
use hvq_transport::stream::{ReadOutcome, StreamEvent, StreamId};
use hvq_transport::time::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A stream of one of the connections.
type Stream = (ConnectionHandle, StreamId);

/// The answer to a request.
#[derive(Clone, Copy, Debug)]
struct Answer {
    size: u64,
    wait: Duration,
    priority: Priority,
}

/// An exchange, from the first byte of its request on.
#[derive(Debug)]
enum Exchange {
    /// The request is arriving: what is there of its object's number.
    Asking(Vec<u8>),
    /// The answer is thought about.
    Thinking(Answer),
    /// The number of bytes of the answer that are still to be written.
    Answering(u64),
}

/// The servers.
#[derive(Debug)]
pub(super) struct Servers {
    answers: Vec<Answer>,
    voice: ApplicationHints,
    exchanges: BTreeMap<Stream, Exchange>,
    /// The answers that are due, by the time at which they begin.
    due: BTreeSet<(Instant, Stream)>,
    /// The arrival of the requests of the page.
    progress: Progress,
}

impl Servers {
    pub(super) fn new(page: &Page, manner: Manner) -> Self {
        let answer = |object: &crate::pages::Object| Answer {
            size: object.scaled_size(manner.size_scale).max(1),
            wait: object.server_wait(manner.wait_scale),
            priority: match manner.voice {
                ApplicationHints::Silent => Priority::DEFAULT,
                ApplicationHints::Priorities => {
                    Priority { urgency: object.priority.urgency(), incremental: object.incremental() }
                }
            },
        };
        let answers = page.objects.iter().map(answer).collect();
        let requests = page.objects.iter().map(|object| object.request_size.max(1)).sum();
        Self {
            answers,
            voice: manner.voice,
            exchanges: BTreeMap::new(),
            due: BTreeSet::new(),
            progress: Progress::new(requests),
        }
    }

    /// The times since the start of the world at which parts of the requests had arrived.
    pub(super) fn progress(&self) -> &[Duration] {
        self.progress.marks()
    }

    /// Returns the time at which the next answer begins.
    pub(super) fn wake(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Begins the answers that are due.
    pub(super) fn on_wake(&mut self, net: &mut Net) {
        while let Some((_, stream)) = self.due.first().copied().filter(|(at, _)| *at <= net.now) {
            self.due.pop_first();
            if let Some(connection) = net.server.endpoint.connection(stream.0) {
                self.begin(stream, connection);
            }
        }
    }

    pub(super) fn on_event(
        &mut self,
        handle: ConnectionHandle,
        event: &Event,
        connection: &mut Connection,
        now: Instant,
    ) {
        match event {
            Event::Stream(StreamEvent::Opened { direction }) => {
                while let Some(id) = connection.accept(*direction) {
                    self.exchanges.insert((handle, id), Exchange::Asking(Vec::new()));
                    self.read((handle, id), connection, now);
                }
            }
            Event::Stream(StreamEvent::Readable(id)) => self.read((handle, *id), connection, now),
            Event::Stream(StreamEvent::Writable(id)) => self.write((handle, *id), connection),
            _ => {}
        }
    }

    fn read(&mut self, stream: Stream, connection: &mut Connection, now: Instant) {
        let Some(Exchange::Asking(start)) = self.exchanges.get_mut(&stream) else { return };
        loop {
            match connection.read(stream.1, usize::MAX) {
                Ok(ReadOutcome::Data(data)) => {
                    let room = 4_usize.saturating_sub(start.len());
                    start.extend_from_slice(&data[..data.len().min(room)]);
                    let object = exchange::object(start);
                    if object.is_some_and(|object| object.index() < self.answers.len()) {
                        self.progress.on_bytes(data.len() as u64, now.since(Net::START));
                    }
                }
                Ok(ReadOutcome::Finished) => break,
                Ok(ReadOutcome::Blocked) | Err(_) => return,
            }
        }
        let Some(answer) = exchange::object(start).and_then(|object| self.answer(object)) else { return };
        self.exchanges.insert(stream, Exchange::Thinking(answer));
        if answer.wait.is_zero() {
            self.begin(stream, connection);
        } else {
            self.due.insert((now + answer.wait, stream));
        }
    }

    fn answer(&self, object: ObjectId) -> Option<Answer> {
        if let Some(preliminary) = PRELIMINARIES.iter().find(|preliminary| preliminary.object == object) {
            let background = exchange::is_background(*preliminary);
            let priority = match self.voice {
                ApplicationHints::Priorities if background => exchange::BACKGROUND,
                _ => Priority::DEFAULT,
            };
            return Some(Answer { size: preliminary.answer, wait: preliminary.wait, priority });
        }
        self.answers.get(object.index()).copied()
    }

    fn begin(&mut self, stream: Stream, connection: &mut Connection) {
        let Some(Exchange::Thinking(answer)) = self.exchanges.get(&stream) else { return };
        let Answer { size, priority, .. } = *answer;
        connection.set_priority(stream.1, priority);
        self.exchanges.insert(stream, Exchange::Answering(size));
        self.write(stream, connection);
    }

    fn write(&mut self, stream: Stream, connection: &mut Connection) {
        let Some(Exchange::Answering(left)) = self.exchanges.get_mut(&stream) else { return };
        while *left > 0 {
            match connection.write_bytes(stream.1, exchange::part(*left)) {
                Ok(taken) if taken > 0 => *left -= taken as u64,
                _ => return,
            }
        }
        self.exchanges.remove(&stream);
        connection.finish(stream.1).expect("nobody resets streams here");
    }
}
