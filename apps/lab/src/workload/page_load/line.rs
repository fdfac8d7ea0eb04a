//! A connection of the browser: what waits for it, and what was asked for on its streams.

use super::Paths;
use super::exchange::{self, LOOKUP, Preliminary, TCP, TLS};
use crate::pages::ObjectId;
use hvq_scheduler::{PathId, Priority};
use hvq_transport::connection::{Connection, FourTuple};
use hvq_transport::endpoint::ConnectionHandle;
use hvq_transport::stream::{Direction, StreamId};
use hvq_transport::time::Instant;
use std::collections::{BTreeMap, VecDeque};

/// The object of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RequestTarget {
    /// An object, by a request of so many bytes.
    Object(ObjectId, u64),
    /// An object that an earlier visit loads.
    Visit(ObjectId),
    /// The address of a domain.
    Address(u32),
    /// The exchange that goes before the first request of a connection.
    Greeting(Preliminary),
    /// A part of a background flow, with its priority.
    Background(Preliminary, Priority),
}

/// The life of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Life {
    /// It was not begun, or goes on.
    #[default]
    Usual,
    /// It is over, and begun again when it is needed.
    Ended,
}

/// The stage of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stage {
    /// It waits for an address, or for its handshake.
    #[default]
    Waiting,
    /// Its address is known; next comes this.
    Greeting(Preliminary),
    /// Requests can be sent.
    Ready,
}

/// The state of the path on which the connection did not begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum SecondPath {
    /// It is to be opened.
    #[default]
    RequestTarget,
    /// It was opened.
    Opened,
}

/// A connection, from the moment on at which it is needed.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The connection, once it was begun.
    pub(super) handle: Option<ConnectionHandle>,
    life: Life,
    stage: Stage,
    /// Both paths, if there are two.
    paths: Option<[FourTuple; 2]>,
    second: SecondPath,
    waiting: VecDeque<RequestTarget>,
    asked: BTreeMap<StreamId, RequestTarget>,
    /// The bytes of requests that are still to be written.
    unsent: BTreeMap<StreamId, u64>,
}

impl Line {
    /// The connection is `handle`, which will open the other of `paths` beside that on which it begins.
    pub(super) fn begin(&mut self, handle: ConnectionHandle, paths: Paths) {
        self.handle = Some(handle);
        self.paths = paths.second.map(|second| [paths.first, second]);
        self.second = SecondPath::RequestTarget;
    }

    /// Asks for `wanted` as soon as possible after [`Self::pump`].
    pub(super) fn ask(&mut self, wanted: RequestTarget) {
        self.waiting.push_back(wanted);
    }

    /// Requests can be sent: the handshake is complete, or early data may precede it.
    pub(super) fn on_connected(&mut self) {
        self.stage = Stage::Ready;
    }

    /// The connection is over: what was asked for on it is asked for again on the next.
    pub(super) fn end(&mut self) {
        self.handle = None;
        self.life = Life::Ended;
        self.unsent.clear();
        for (_, wanted) in std::mem::take(&mut self.asked).into_iter().rev() {
            self.waiting.push_front(wanted);
        }
    }

    /// Nothing can be sent before the next handshake is complete.
    pub(super) fn await_handshake(&mut self) {
        self.stage = Stage::Waiting;
    }

    /// Returns true if the connection is over and has to be begun again; it counts as begun from here on.
    pub(super) fn take_ended(&mut self) -> bool {
        std::mem::take(&mut self.life) == Life::Ended
    }

    /// Returns true if anything was asked for that is not answered, or waits to be asked for.
    pub(super) fn wants_answers(&self) -> bool {
        !self.asked.is_empty() || !self.waiting.is_empty()
    }

    /// The address is known: what TCP and TLS take comes first.
    pub(super) fn greet(&mut self) {
        self.stage = Stage::Greeting(TCP);
        self.waiting.push_front(RequestTarget::Greeting(TCP));
    }

    /// The answer to a greeting is there.
    pub(super) fn greeted(&mut self, greeting: Preliminary) {
        if greeting == TCP {
            self.stage = Stage::Greeting(TLS);
            self.waiting.push_front(RequestTarget::Greeting(TLS));
        } else {
            self.stage = Stage::Ready;
        }
    }

    /// Returns true if requests can be sent.
    pub(super) fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    /// Returns true if they can and there are none.
    pub(super) fn is_idle(&self) -> bool {
        self.is_ready() && self.asked.is_empty() && self.waiting.is_empty()
    }

    /// Returns true if `wanted`, which comes first, may be sent.
    fn may_send(&self, wanted: RequestTarget) -> bool {
        match self.stage {
            Stage::Waiting => false,
            Stage::Greeting(greeting) => wanted == RequestTarget::Greeting(greeting),
            Stage::Ready => true,
        }
    }

    /// Opens the second path, unless that is done or cannot be yet: an event follows when the peer has given
    /// connection IDs for it.
    pub(super) fn open_second_path(&mut self, connection: &mut Connection, now: Instant) {
        let Some([first, second]) = self.paths.filter(|_| self.second == SecondPath::RequestTarget) else {
            return;
        };
        let begun = connection.path_stats(PathId::ZERO).map(|path| path.tuple);
        let tuple = if begun == Some(second) { first } else { second };
        if connection.open_path(tuple, now).is_ok() {
            self.second = SecondPath::Opened;
        }
    }

    /// Opens the second path again: it was given up.
    pub(super) fn reopen_second_path(&mut self, connection: &mut Connection, now: Instant) {
        self.second = SecondPath::RequestTarget;
        self.open_second_path(connection, now);
    }

    /// Sends the requests that wait, as long as streams may be opened.
    pub(super) fn pump(&mut self, connection: &mut Connection) {
        while let Some(wanted) = self.waiting.front().copied()
            && self.may_send(wanted)
            && let Some(id) = connection.open(Direction::Bidirectional)
        {
            self.waiting.pop_front();
            let (object, size) = match wanted {
                RequestTarget::Object(object, size) => (object, size),
                RequestTarget::Visit(object) => (object, exchange::LEAST),
                RequestTarget::Address(_) => (LOOKUP.object, LOOKUP.question),
                RequestTarget::Greeting(asked) | RequestTarget::Background(asked, _) => {
                    (asked.object, asked.question)
                }
            };
            let head = exchange::request(object, size);
            let rest = size.saturating_sub(head.len() as u64);
            if let RequestTarget::Background(_, priority) = wanted {
                connection.set_priority(id, priority);
            }
            let taken = connection.write_bytes(id, head.into());
            assert!(taken.is_ok(), "the head of a request fits a fresh stream: {taken:?}");
            self.asked.insert(id, wanted);
            self.unsent.insert(id, rest);
            self.write(id, connection);
        }
    }

    /// Goes on with the request on stream `id`, if some of it is still to be written, and ends it.
    pub(super) fn write(&mut self, id: StreamId, connection: &mut Connection) {
        let Some(left) = self.unsent.get_mut(&id) else { return };
        while *left > 0 {
            match connection.write_bytes(id, exchange::part(*left)) {
                Ok(taken) if taken > 0 => *left -= taken as u64,
                _ => return,
            }
        }
        self.unsent.remove(&id);
        connection.finish(id).expect("nobody resets streams here");
    }

    /// Returns the object that was asked for on stream `id`.
    pub(super) fn asked(&self, id: StreamId) -> Option<RequestTarget> {
        self.asked.get(&id).copied()
    }

    /// The answer on stream `id` is complete.
    pub(super) fn answered(&mut self, id: StreamId) {
        self.asked.remove(&id);
    }
}
