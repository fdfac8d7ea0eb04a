//! Connection handle state: the tasks that wait, and the events that were told already.

use crate::race::Candidates;
use crate::stats::{ConnectionStats, PathStats};
use crate::{
    ConnectionError, Direction, PathEvent, PathId, PathInfo, PathState, Priority, StreamId, WriteError,
};
use ahash::AHashMap;
use hvq_transport::connection::Event;
use hvq_transport::connection::{Connection as Core, FourTuple, Role};
use hvq_transport::datagram::DatagramStats;
use hvq_transport::flat_map::FlatMap;
use hvq_transport::scheduler;
use hvq_transport::stream::{StreamEvent, WriteError as Refusal};
use std::net::SocketAddr;
use std::task::Waker;
use tokio::sync::broadcast;

/// Path events that a subscriber may be behind.
const PATH_EVENT_BACKLOG: usize = 64;
/// Paths that are over and whose end is still known to who asks for it.
const MOST_OVER: usize = 64;

/// Tasks that wait for the same thing.
#[derive(Debug, Default)]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    /// Has `waker` woken once.
    pub(crate) fn register(&mut self, waker: &Waker) {
        if !self.0.iter().any(|known| known.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }

    /// Wakes all.
    pub(crate) fn wake(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}

/// The phase of the connection, as the application sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// The handshake is under way.
    Handshaking,
    /// Data flows.
    Established,
    /// It ended.
    Closed(ConnectionError),
}

/// The users of the slot: the protocol, the application, or both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Usage {
    /// The protocol; the application may accept it.
    Unaccepted,
    /// The application and the protocol.
    Both,
    /// The application dropped its last handle; the protocol still closes.
    Protocol,
    /// The protocol forgot the connection; the application still has handles.
    Application,
}

/// The end of the sending half of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SendEnd {
    /// Finished here; the peer does not have all of it yet.
    Finished,
    /// The peer has all of it.
    Delivered,
    /// The peer stopped reading, with this code.
    Stopped(u64),
    /// Reset here.
    Reset,
}

/// The sending half of a stream that the application holds.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    /// The task that waits for room.
    pub(crate) writer: Option<Waker>,
    /// The tasks that wait for the end.
    pub(crate) end_wakers: Wakers,
    /// The end of the stream, once it came.
    pub(crate) end: Option<SendEnd>,
    /// Its priority as set.
    pub(crate) priority: Priority,
    /// Futures that wait for the end, which outlive the application's handle.
    watchers: u32,
    /// True once the application dropped its handle.
    is_dropped: bool,
}

impl Sender {
    /// The stream ends so, unless more is known already.
    pub(crate) fn note_end(&mut self, end: SendEnd) {
        let is_news = match self.end {
            None => true,
            Some(SendEnd::Finished) => end != SendEnd::Finished,
            Some(SendEnd::Delivered | SendEnd::Stopped(_) | SendEnd::Reset) => false,
        };
        if is_news {
            self.end = Some(end);
            self.end_wakers.wake();
            if let Some(writer) = self.writer.take() {
                writer.wake();
            }
        }
    }

    /// Returns the error behind the transport's refusal to write.
    pub(crate) fn explain(&self, refusal: Refusal) -> WriteError {
        match (refusal, self.end) {
            (Refusal::Stopped(code), _) | (_, Some(SendEnd::Stopped(code))) => WriteError::Stopped(code),
            (Refusal::UnknownStream | Refusal::Finished | Refusal::Blocked, _) => WriteError::Closed,
        }
    }
}

/// The state of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PathFate {
    /// Opened.
    Validating,
    /// The peer answered over it.
    Validated,
    /// It answered once, and does not any more.
    Silent,
    /// Nothing ever came back.
    Unreachable,
    /// Given up, with this code.
    Abandoned {
        /// The code of PATH_ABANDON.
        code: u64,
    },
}

/// The progress of a migration that the application asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Move {
    /// The peer has not answered yet.
    UnderWay,
    /// It is there.
    Done,
    /// It is where it was.
    Failed,
}

/// One connection of an endpoint.
#[derive(Debug)]
pub(crate) struct HandleState {
    pub(crate) role: Role,
    pub(crate) phase: Phase,
    /// True once the handshake was complete, even if the connection ended since.
    pub(crate) was_connected: bool,
    pub(crate) usage: Usage,
    pub(crate) first_remote: SocketAddr,
    pub(crate) connected_wakers: Wakers,
    pub(crate) closed_wakers: Wakers,
    pub(crate) datagram_wakers: Wakers,
    /// The tasks that wait for room in the queue of datagrams.
    pub(crate) datagram_space_wakers: Wakers,
    pub(crate) path_wakers: Wakers,
    pub(crate) fates: FlatMap<PathId, PathFate>,
    pub(crate) moves: FlatMap<PathId, Move>,
    pub(crate) names: FlatMap<PathId, String>,
    pub(crate) receivers: AHashMap<StreamId, Waker>,
    /// The paths that it was given to begin on, if there were several.
    pub(crate) candidates: Candidates,
    open_wakers: [Wakers; 2],
    accept_wakers: [Wakers; 2],
    senders: AHashMap<StreamId, Sender>,
    /// There once somebody asked for them.
    path_events: Option<broadcast::Sender<PathEvent>>,
    /// The state of the connection that is kept once it ended.
    last: Option<Box<Last>>,
}

/// The state that is kept of a connection that ended.
#[derive(Debug)]
struct Last {
    alpn: Option<Vec<u8>>,
    server_name: Option<String>,
    stats: ConnectionStats,
}

impl HandleState {
    /// A connection over `tuple` whose handshake is under way.
    pub(crate) fn new(role: Role, tuple: FourTuple) -> Self {
        Self {
            role,
            phase: Phase::Handshaking,
            was_connected: false,
            usage: if role == Role::Client { Usage::Both } else { Usage::Unaccepted },
            first_remote: tuple.remote,
            connected_wakers: Wakers::default(),
            closed_wakers: Wakers::default(),
            datagram_wakers: Wakers::default(),
            datagram_space_wakers: Wakers::default(),
            path_wakers: Wakers::default(),
            fates: FlatMap::default(),
            moves: FlatMap::default(),
            names: FlatMap::default(),
            receivers: AHashMap::new(),
            candidates: Candidates::default(),
            open_wakers: <[Wakers; 2]>::default(),
            accept_wakers: <[Wakers; 2]>::default(),
            senders: AHashMap::new(),
            path_events: None,
            last: None,
        }
    }

    /// Checks that the connection is usable.
    pub(crate) fn check_open(&self) -> Result<(), ConnectionError> {
        match &self.phase {
            Phase::Closed(error) => Err(error.clone()),
            Phase::Handshaking | Phase::Established => Ok(()),
        }
    }

    /// Returns the tasks that wait to open a stream of `direction`.
    pub(crate) fn open_wakers(&mut self, direction: Direction) -> &mut Wakers {
        &mut self.open_wakers[index(direction)]
    }

    /// Returns the tasks that wait for a stream of `direction` from the peer.
    pub(crate) fn accept_wakers(&mut self, direction: Direction) -> &mut Wakers {
        &mut self.accept_wakers[index(direction)]
    }

    /// The application holds the sending half of stream `id` from here on. An event tells if the peer stopped it before.
    pub(crate) fn add_sender(&mut self, id: StreamId) {
        self.senders.insert(id, Sender::default());
    }

    /// The sending half of stream `id`, which the application holds.
    pub(crate) fn sender(&mut self, id: StreamId) -> &mut Sender {
        self.senders.entry(id).or_default()
    }

    /// The application dropped the sending half of stream `id`. Returns false if that is to be finished first.
    pub(crate) fn remove_ended_sender(&mut self, id: StreamId) -> bool {
        let Some(sender) = self.senders.get_mut(&id).filter(|sender| sender.end.is_some()) else {
            return false;
        };
        sender.is_dropped = true;
        if sender.watchers == 0 {
            self.senders.remove(&id);
        }
        true
    }

    /// The application dropped the sending half of stream `id`.
    pub(crate) fn remove_sender(&mut self, id: StreamId) {
        let sender = self.sender(id);
        sender.is_dropped = true;
        if sender.watchers == 0 {
            self.senders.remove(&id);
        }
    }

    /// Somebody waits for the end of stream `id`.
    pub(crate) fn watch_sender(&mut self, id: StreamId) {
        self.sender(id).watchers += 1;
    }

    /// Somebody does not wait any more for the end of stream `id`.
    pub(crate) fn unwatch_sender(&mut self, id: StreamId) {
        let Some(sender) = self.senders.get_mut(&id) else { return };
        sender.watchers -= 1;
        if sender.watchers == 0 && sender.is_dropped {
            self.senders.remove(&id);
        }
    }

    /// Counters now, or at the end.
    pub(crate) fn stats(&self, core: Option<&Core>) -> ConnectionStats {
        let last = || self.last.as_ref().map(|last| last.stats.clone());
        let now = core.filter(|_| !matches!(self.phase, Phase::Closed(_))).map(Core::stats);
        let nothing = || ConnectionStats {
            paths: Vec::new(),
            frames: Vec::new(),
            datagrams: DatagramStats::default(),
            dropped: 0,
        };
        now.or_else(last).unwrap_or_else(nothing)
    }

    /// The application protocol agreed on.
    pub(crate) fn alpn(&self, core: Option<&Core>) -> Option<Vec<u8>> {
        self.last.as_ref().map_or_else(|| core.and_then(Core::alpn), |last| last.alpn.clone())
    }

    /// The host name that the client asked for.
    pub(crate) fn server_name(&self, core: Option<&Core>) -> Option<String> {
        self.last.as_ref().map_or_else(|| core.and_then(Core::server_name), |last| last.server_name.clone())
    }

    /// Returns the application's view of an open path.
    pub(crate) fn path_info(&self, stats: PathStats) -> PathInfo {
        let state = match stats.state {
            scheduler::PathState::Unvalidated => PathState::Validating,
            scheduler::PathState::Silent => PathState::Silent,
            scheduler::PathState::Available | scheduler::PathState::Backup => PathState::Validated,
        };
        PathInfo { id: stats.id, name: self.names.get(&stats.id).cloned(), state, stats }
    }

    /// Path events from here on, `None` once the connection ended.
    pub(crate) fn subscribe(&mut self) -> Option<broadcast::Receiver<PathEvent>> {
        if matches!(self.phase, Phase::Closed(_)) {
            return None;
        }
        let events = self.path_events.get_or_insert_with(|| broadcast::Sender::new(PATH_EVENT_BACKLOG));
        Some(events.subscribe())
    }

    /// Takes note of an event, and wakes those who waited for it. `core` is the connection that it is of.
    pub(crate) fn on_event(&mut self, event: Event, core: Option<&Core>) {
        if matches!(event, Event::Connected | Event::Path(PathEvent::Migrated(PathId::ZERO)))
            && let Some((tuple, path)) = core.and_then(|core| self.candidates.follow(core))
        {
            self.first_remote = tuple.remote;
            self.names.insert(PathId::ZERO, path.name.clone());
        }
        match event {
            Event::Connected => {
                self.phase = Phase::Established;
                self.was_connected = true;
                self.connected_wakers.wake();
                self.path_wakers.wake();
            }
            Event::Confirmed => self.path_wakers.wake(),
            Event::Stream(event) => self.on_stream(event),
            Event::DatagramReceived => self.datagram_wakers.wake(),
            Event::Path(event) => self.on_path(event),
            Event::Closed(error) => self.end(error, core),
            // Nobody waits for these; the endpoint keeps tokens and presents them itself.
            Event::EarlyData | Event::NewToken(_) | Event::Forgotten => {}
        }
    }

    /// The connection ended: everybody is woken to learn why.
    pub(crate) fn end(&mut self, error: ConnectionError, core: Option<&Core>) {
        if matches!(self.phase, Phase::Closed(_)) {
            return;
        }
        let keep =
            |core: &Core| Last { alpn: core.alpn(), server_name: core.server_name(), stats: core.stats() };
        self.last = core.map(|core| Box::new(keep(core)));
        self.phase = Phase::Closed(error);
        self.path_events = None;
        for wakers in [
            &mut self.connected_wakers,
            &mut self.closed_wakers,
            &mut self.datagram_wakers,
            &mut self.datagram_space_wakers,
            &mut self.path_wakers,
        ] {
            wakers.wake();
        }
        self.open_wakers.iter_mut().chain(&mut self.accept_wakers).for_each(Wakers::wake);
        self.receivers.drain().for_each(|(_, waker)| waker.wake());
        for sender in self.senders.values_mut() {
            sender.end_wakers.wake();
            if let Some(writer) = sender.writer.take() {
                writer.wake();
            }
        }
    }

    /// Takes note of an event of a stream, and wakes those who waited for it.
    pub(crate) fn on_stream(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Opened { direction } => self.accept_wakers(direction).wake(),
            StreamEvent::Available { direction } => self.open_wakers(direction).wake(),
            StreamEvent::Readable(id) => {
                if let Some(waker) = self.receivers.remove(&id) {
                    waker.wake();
                }
            }
            StreamEvent::Writable(id) => {
                if let Some(waker) = self.senders.get_mut(&id).and_then(|sender| sender.writer.take()) {
                    waker.wake();
                }
            }
            StreamEvent::Finished(id) => {
                if let Some(sender) = self.senders.get_mut(&id) {
                    sender.note_end(SendEnd::Delivered);
                }
            }
            StreamEvent::Stopped { id, code } => {
                if let Some(sender) = self.senders.get_mut(&id) {
                    sender.note_end(SendEnd::Stopped(code));
                }
            }
        }
    }

    fn finish_move(&mut self, id: PathId, end: Move) {
        if let Some(known @ Move::UnderWay) = self.moves.get_mut(&id) {
            *known = end;
        }
    }

    /// Forgets the oldest path that is over, if there are many: a peer may open and abandon paths for ever.
    fn forget_old_paths(&mut self) {
        let is_over = |fate: &PathFate| matches!(fate, PathFate::Unreachable | PathFate::Abandoned { .. });
        let over: Vec<PathId> =
            self.fates.iter().filter(|(_, fate)| is_over(fate)).map(|(id, _)| *id).collect();
        if over.len() <= MOST_OVER {
            return;
        }
        if let Some(oldest) = over.into_iter().min() {
            self.fates.remove(&oldest);
            self.moves.remove(&oldest);
            self.names.remove(&oldest);
        }
    }

    fn on_path(&mut self, event: PathEvent) {
        let news = match event {
            PathEvent::Opened(id) => Some((id, PathFate::Validating)),
            PathEvent::Validated(id) => Some((id, PathFate::Validated)),
            PathEvent::Answering(id) => {
                (self.fates.get(&id) == Some(&PathFate::Silent)).then_some((id, PathFate::Validated))
            }
            PathEvent::ValidationFailed(id) => Some((id, PathFate::Unreachable)),
            PathEvent::Silent(id) => {
                (self.fates.get(&id) == Some(&PathFate::Validated)).then_some((id, PathFate::Silent))
            }
            PathEvent::Abandoned { path, code } => Some((path, PathFate::Abandoned { code })),
            PathEvent::Migrated(id) => {
                self.finish_move(id, Move::Done);
                None
            }
            PathEvent::MigrationFailed(id) => {
                self.finish_move(id, Move::Failed);
                None
            }
            PathEvent::PeerStatus(..) | PathEvent::PeerHints(_) | PathEvent::Available => None,
        };
        if let Some((id, fate)) = news {
            // That nothing came back says more than that the path was abandoned for it.
            if self.fates.get(&id) != Some(&PathFate::Unreachable) {
                self.fates.insert(id, fate);
            }
            self.forget_old_paths();
        }
        if let Some(events) = &self.path_events {
            // It is no error that nobody listens.
            let _listeners = events.send(event).unwrap_or_default();
        }
        self.path_wakers.wake();
    }
}

fn index(direction: Direction) -> usize {
    match direction {
        Direction::Bidirectional => 0,
        Direction::Unidirectional => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_paths_that_come_and_go_without_end_the_latest_are_remembered() {
        // attacks.md G14.
        let address = SocketAddr::from(([127, 0, 0, 1], 443));
        let mut slot = HandleState::new(Role::Server, FourTuple { local: address, remote: address });
        slot.on_path(PathEvent::Validated(PathId::ZERO));
        for id in (1..1000).map(PathId) {
            slot.on_path(PathEvent::Opened(id));
            slot.on_path(PathEvent::Abandoned { path: id, code: 7 });
        }
        assert_eq!(slot.fates.len(), 1 + MOST_OVER);
        assert_eq!(slot.fates.get(&PathId::ZERO), Some(&PathFate::Validated));
        assert_eq!(slot.fates.get(&PathId(999)), Some(&PathFate::Abandoned { code: 7 }));
    }
}
