//! The state that handles and the driver share, behind one lock.

use crate::error::RemoveSocketError;
use crate::handle_state::{HandleState, Phase, Usage, Wakers};
use crate::paths::GONE;
use crate::runtime;
use crate::runtime::Runtime;
use crate::sockets::Sockets;
use crate::{ConnectOptions, ConnectionError, Hints, PathEvent, PathId};
use hvq_transport::connection::{Connection, Event, FourTuple, Role, Transmit};
use hvq_transport::endpoint::{Candidate, ConnectionHandle, Endpoint as Core, HandleMap, Output};
use hvq_transport::hashing::shrink;
use hvq_transport::scheduler::PathState;
use hvq_transport::stream::StreamEvent;
use hvq_transport::time::{Deadline, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

/// Longer than anybody waits.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The counters of an endpoint's sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoStats {
    /// Datagrams handed to the network.
    pub datagrams_sent: u64,
    /// Bytes of UDP payload in them.
    pub bytes_sent: u64,
    /// System calls that handed them over.
    pub send_calls: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Bytes of UDP payload in them.
    pub bytes_received: u64,
    /// System calls that received.
    pub receive_calls: u64,
    /// Datagrams that were for another worker, and handed over to it.
    pub handed_over: u64,
    /// Batches that the system refused to send, as if the network had lost them: no route, too large, no buffers …
    pub send_errors: u64,
    /// Batches dropped because the socket took nothing for too long, or is gone.
    pub send_drops: u64,
}

/// The next step of the driver after a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// There is more to do at once.
    More,
    /// Nothing until input arrives or the deadline passes.
    Idle(Option<Deadline>),
    /// Nobody is left who could want anything.
    Finished,
}

/// Tells whether the endpoint takes part in anything new.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// It connects and accepts.
    Open,
    /// It only goes on with what there is.
    Closed,
    /// The driver is gone.
    Dead,
}

/// Tells whether the application still has a handle on the endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Presence {
    Held,
    Dropped,
}

/// The lock, and the clock that the protocol's time is read from.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    runtime: Arc<dyn Runtime>,
    started: std::time::Instant,
}

impl Shared {
    /// The state of an endpoint whose time begins now.
    pub(crate) fn new(core: Core, sockets: Sockets) -> Self {
        let runtime = sockets.runtime().clone();
        let started = runtime.now();
        let state = State {
            core,
            sockets,
            slots: HandleMap::default(),
            unread: HandleMap::default(),
            accepted: VecDeque::new(),
            asking: VecDeque::new(),
            datagram_waiters: Vec::new(),
            accept_wakers: Wakers::default(),
            idle_wakers: Wakers::default(),
            rounds: 0,
            round_wakers: Wakers::default(),
            io: IoStats::default(),
            driver: None,
            standing: Standing::Open,
            presence: Presence::Held,
        };
        Self { state: Mutex::new(state), runtime, started }
    }

    /// The state. A panic elsewhere does not keep the others from it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Now, since the endpoint's start.
    pub(crate) fn now(&self) -> Instant {
        let elapsed = self.runtime.now().saturating_duration_since(self.started);
        Instant::from_nanos(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
    }

    /// The time of the runtime's clock at `instant`; a century from now for what it cannot count to.
    pub(crate) fn clock_at(&self, instant: Instant) -> std::time::Instant {
        let at = self.started.checked_add(instant.since(Instant::ZERO));
        at.unwrap_or_else(|| self.started + CENTURY)
    }

    /// The runtime that the endpoint runs on.
    pub(crate) fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.runtime
    }

    /// Waits for `future` for so long at most; `None` if that was not enough.
    pub(crate) async fn within<F: Future>(&self, most: Duration, future: F) -> Option<F::Output> {
        runtime::within(&*self.runtime, most, future).await
    }
}

/// Everything that an endpoint is.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) core: Core,
    pub(crate) sockets: Sockets,
    pub(crate) slots: HandleMap<Box<HandleState>>,
    /// Connections that the protocol forgot and that the application has not read all of.
    pub(crate) unread: HandleMap<Box<Connection>>,
    pub(crate) accept_wakers: Wakers,
    pub(crate) idle_wakers: Wakers,
    /// Rounds of the driver so far, and who waits for the next.
    rounds: u64,
    round_wakers: Wakers,
    pub(crate) io: IoStats,
    accepted: VecDeque<ConnectionHandle>,
    /// Clients that the application decides about.
    asking: VecDeque<Candidate>,
    /// Connections in which somebody waits for room in the queue of datagrams.
    datagram_waiters: Vec<ConnectionHandle>,
    driver: Option<Waker>,
    standing: Standing,
    presence: Presence,
}

impl State {
    /// Returns true if connections may be started.
    pub(crate) fn is_open(&self) -> bool {
        self.standing == Standing::Open
    }

    /// Returns true if nothing moves any more.
    pub(crate) fn is_dead(&self) -> bool {
        self.standing == Standing::Dead
    }

    /// The driver has gone round once more.
    pub(crate) fn end_round(&mut self) {
        self.rounds = self.rounds.wrapping_add(1);
        self.round_wakers.wake();
    }

    /// Rounds of the driver so far.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Has `waker` woken when the driver has gone round once more.
    pub(crate) fn register_round(&mut self, waker: &Waker) {
        self.round_wakers.register(waker);
    }

    /// Has the driver look at what a command changed.
    pub(crate) fn wake_driver(&mut self) {
        if let Some(driver) = self.driver.take() {
            driver.wake();
        }
    }

    /// Has the driver's task woken by the next command.
    pub(crate) fn register_driver(&mut self, waker: &Waker) {
        self.driver = Some(waker.clone());
    }

    /// A connection that this endpoint started over `tuple`.
    pub(crate) fn adopt(&mut self, handle: ConnectionHandle, tuple: FourTuple, options: &ConnectOptions) {
        let mut slot = HandleState::new(Role::Client, tuple);
        if let Some(name) = &options.name {
            slot.names.insert(PathId::ZERO, name.clone());
        }
        self.slots.insert(handle, Box::new(slot));
        let Some(connection) = self.core.connection(handle) else { return };
        if connection.set_dscp(PathId::ZERO, options.dscp).is_err() {
            tracing::debug!("path 0 of a connection that was just started takes no codepoint");
        }
        if options.hints != Hints::NONE && connection.set_hints(PathId::ZERO, options.hints).is_err() {
            tracing::debug!("path 0 of a connection that was just started takes no hints");
        }
        if let Some(congestion) = options.congestion.clone()
            && connection.set_congestion(PathId::ZERO, congestion).is_err()
        {
            tracing::debug!("path 0 of a connection that was just started takes no congestion controller");
        }
    }

    /// The next connection of a peer, which the caller makes a reference to.
    pub(crate) fn take_accepted(&mut self) -> Option<ConnectionHandle> {
        let handle = self.accepted.pop_front()?;
        self.slots.get_mut(&handle)?.usage = Usage::Both;
        Some(handle)
    }

    /// The next client that asks for a connection, if the application decides later.
    pub(crate) fn take_asking(&mut self) -> Option<Candidate> {
        self.asking.pop_front()
    }

    /// A connection that the application accepts: the handshake begins.
    pub(crate) fn adopt_client(&mut self, handle: ConnectionHandle, tuple: FourTuple) {
        let mut slot = HandleState::new(Role::Server, tuple);
        slot.usage = Usage::Both;
        self.slots.insert(handle, Box::new(slot));
        self.wake_driver();
    }

    /// Has the tasks that wait for room in the queue of datagrams of `handle` woken once there is more.
    pub(crate) fn wait_for_datagram_space(&mut self, handle: ConnectionHandle) {
        if !self.datagram_waiters.contains(&handle) {
            self.datagram_waiters.push(handle);
        }
    }

    /// Datagrams may have left: who waited for it looks again.
    fn wake_datagram_waiters(&mut self) {
        for handle in self.datagram_waiters.drain(..) {
            if let Some(slot) = self.slots.get_mut(&handle) {
                slot.datagram_space_wakers.wake();
            }
        }
    }

    /// Takes note of clients that ask for a connection.
    fn note_asking(&mut self) {
        while let Some(candidate) = self.core.next_deferred() {
            self.asking.push_back(candidate);
            self.accept_wakers.wake();
        }
    }

    /// The application dropped its last handle on a connection.
    pub(crate) fn drop_reference(&mut self, handle: ConnectionHandle, now: Instant) {
        let Some(slot) = self.slots.get_mut(&handle) else { return };
        if slot.usage == Usage::Application || self.standing == Standing::Dead {
            return self.drop_slot(handle);
        }
        slot.usage = Usage::Protocol;
        if let Some(connection) = self.core.connection(handle) {
            connection.close(0, b"", now);
        }
        self.wake_driver();
    }

    /// Closes all connections, and takes part in nothing new.
    pub(crate) fn close(&mut self, code: u64, reason: &[u8], now: Instant) {
        self.retire();
        let handles: Vec<_> = self.core.handles().collect();
        for handle in handles {
            if let Some(connection) = self.core.connection(handle) {
                connection.close(code, reason, now);
            }
        }
        self.reject_unaccepted();
        self.wake_driver();
    }

    /// The application dropped its last handle on the endpoint: connections that it never saw are closed.
    pub(crate) fn abandon(&mut self, now: Instant) {
        self.presence = Presence::Dropped;
        self.retire();
        let unseen: Vec<_> = self.core.handles().filter(|handle| !self.is_seen(*handle)).collect();
        for handle in unseen {
            if let Some(connection) = self.core.connection(handle) {
                connection.close(0, b"", now);
            }
        }
        self.reject_unaccepted();
        self.wake_driver();
    }

    fn is_seen(&self, handle: ConnectionHandle) -> bool {
        self.slots.get(&handle).is_some_and(|slot| slot.usage != Usage::Unaccepted)
    }

    fn retire(&mut self) {
        if self.standing == Standing::Open {
            self.standing = Standing::Closed;
        }
        self.core.set_server(None);
        self.accept_wakers.wake();
    }

    fn reject_unaccepted(&mut self) {
        for handle in self.accepted.drain(..) {
            if let Some(slot) = self.slots.get_mut(&handle) {
                slot.usage = Usage::Protocol;
            }
        }
    }

    /// Takes at most `most` outputs of the protocol, and of datagrams about so many bytes: transmits go to `transmits`, events to
    /// those who wait for them.
    pub(crate) fn drive(
        &mut self,
        now: Instant,
        (most, bytes): (usize, usize),
        transmits: &mut Vec<Transmit>,
    ) -> Progress {
        self.note_asking();
        let mut taken = 0;
        for _ in 0..most {
            if taken >= bytes {
                break;
            }
            match self.core.poll(now) {
                Output::Transmit(transmit) => {
                    taken += transmit.bytes.len();
                    if !self.datagram_waiters.is_empty() {
                        self.wake_datagram_waiters();
                    }
                    transmits.push(transmit);
                }
                Output::Event(handle, Event::Stream(event)) => self.on_stream_events(handle, event, most),
                Output::Event(handle, event) => self.on_event(handle, event, now),
                Output::Idle(deadline) => return self.rest(deadline),
            }
        }
        Progress::More
    }

    fn rest(&mut self, deadline: Option<Deadline>) -> Progress {
        let is_idle = self.core.handles().next().is_none();
        if is_idle {
            self.idle_wakers.wake();
        }
        if is_idle && self.presence == Presence::Dropped {
            Progress::Finished
        } else {
            Progress::Idle(deadline)
        }
    }

    /// Takes an event of a stream, and at most `most` that wait behind it: often many streams have something to tell at once.
    fn on_stream_events(&mut self, handle: ConnectionHandle, first: StreamEvent, most: usize) {
        let Some(slot) = self.slots.get_mut(&handle) else { return };
        slot.on_stream(first);
        self.core.take_stream_events(handle, most, |event| slot.on_stream(event));
    }

    fn on_event(&mut self, handle: ConnectionHandle, event: Event, now: Instant) {
        if matches!(event, Event::Connected | Event::EarlyData) && !self.slots.contains_key(&handle) {
            self.on_incoming(handle, now);
        }
        let is_over = event == Event::Forgotten;
        let works = matches!(event, Event::Path(PathEvent::Validated(_) | PathEvent::Answering(_)));
        if let Some(slot) = self.slots.get_mut(&handle) {
            if matches!(event, Event::Closed(_)) {
                slot.candidates.on_lost(self.core.take_race_failures(handle));
            }
            slot.on_event(event, self.core.get(handle));
        }
        if is_over {
            self.on_forgotten(handle);
        }
        if works && self.sockets.has_removed() {
            self.abandon_unserved(handle, now);
        }
    }

    /// Takes away the socket that is bound to `local`, and gives up the paths that begin there.
    pub(crate) fn remove_socket(&mut self, local: SocketAddr, now: Instant) -> Result<(), RemoveSocketError> {
        self.sockets.remove(local)?;
        let handles: Vec<_> = self.core.handles().collect();
        for handle in handles {
            self.abandon_unserved(handle, now);
        }
        self.wake_driver();
        Ok(())
    }

    /// Gives up the paths of a connection that have no socket any more, once another one works, over which the peer learns it:
    /// until then they are like paths whose interface vanished.
    fn abandon_unserved(&mut self, handle: ConnectionHandle, now: Instant) {
        if self.slots.get(&handle).is_some_and(|slot| slot.check_open().is_err()) {
            return;
        }
        let Some(core) = self.core.connection(handle) else { return };
        let paths = core.stats().paths;
        let (served, unserved): (Vec<_>, Vec<_>) =
            paths.into_iter().partition(|path| self.sockets.send_from(path.tuple.local));
        if !served.iter().any(|path| matches!(path.state, PathState::Available | PathState::Backup)) {
            return;
        }
        for path in unserved {
            if let Err(error) = core.abandon_path(path.id, GONE, now) {
                tracing::debug!(path = %path.id, %error, "a path without a socket is not given up");
            }
        }
    }

    /// A peer completed its handshake, or sends 0-RTT before that.
    fn on_incoming(&mut self, handle: ConnectionHandle, now: Instant) {
        let Some(connection) = self.core.connection(handle) else { return };
        let Some(first) = connection.path_stats(PathId::ZERO) else { return };
        let mut slot = HandleState::new(Role::Server, first.tuple);
        if self.standing == Standing::Open {
            self.accepted.push_back(handle);
            self.accept_wakers.wake();
        } else {
            connection.close(0, b"", now);
            slot.usage = Usage::Protocol;
        }
        self.slots.insert(handle, Box::new(slot));
    }

    fn on_forgotten(&mut self, handle: ConnectionHandle) {
        self.sockets.release(handle);
        let Some(slot) = self.slots.get_mut(&handle) else { return };
        match slot.usage {
            Usage::Both | Usage::Application => {
                if !matches!(slot.phase, Phase::Closed(_)) {
                    slot.end(ConnectionError::LocallyClosed { code: 0 }, None);
                }
                slot.usage = Usage::Application;
                if let Some(connection) = self.core.take_unread(handle) {
                    self.unread.insert(handle, connection);
                }
            }
            Usage::Protocol => self.drop_slot(handle),
            Usage::Unaccepted => {
                self.accepted.retain(|other| *other != handle);
                self.drop_slot(handle);
            }
        }
    }

    fn drop_slot(&mut self, handle: ConnectionHandle) {
        self.slots.remove(&handle);
        if self.unread.remove(&handle).is_some() {
            shrink(&mut self.unread);
        }
        shrink(&mut self.slots);
    }

    /// The driver ends, in order or because the runtime shuts down: nothing moves any more.
    pub(crate) fn die(&mut self) {
        self.standing = Standing::Dead;
        self.sockets.clear();
        self.accepted.clear();
        self.slots.retain(|_, slot| !matches!(slot.usage, Usage::Protocol | Usage::Unaccepted));
        for (handle, slot) in &mut self.slots {
            slot.end(ConnectionError::LocallyClosed { code: 0 }, self.core.get(*handle));
        }
        self.accept_wakers.wake();
        self.idle_wakers.wake();
    }
}
