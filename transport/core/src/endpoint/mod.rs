//! An endpoint: many connections behind a few addresses, sans-IO.
//!
//! Datagrams and commands go in, [`Output`]s come out. The rule for callers is: mutate, then [`Endpoint::poll`] until
//! [`Output::Idle`].

mod accept;
pub(crate) mod admission;
mod answers;
mod budget;
mod channels;
mod clients;
pub(crate) mod config;
mod deferred;
mod gate;
mod handle_map;
pub mod ids;
mod memory_pressure;
pub mod quic_lb;
mod race;
pub mod replay;
mod retried;
mod router;
mod schedule;
mod stats;
pub mod steering;
mod tokens;
mod turns;

pub use admission::{Admission, Candidate, Decision};
pub use channels::NetworkPath;
pub use config::{ClientConfig, EndpointConfig, RetryPolicy, ServerConfig, Strays};
pub use handle_map::{HandleHash, HandleHasher, HandleMap};
pub use race::{
    CONNECTION_ATTEMPT_DELAY, CandidatePath, Dial, LEAST_CONNECTION_ATTEMPT_DELAY,
    MAXIMUM_CONNECTION_ATTEMPT_DELAY, MINIMUM_CONNECTION_ATTEMPT_DELAY, RaceOptions,
};
pub use stats::{EndpointStats, SlotStats};

use crate::PathId;
use crate::connection::events;
use crate::connection::memory::unread;
use crate::connection::paths::knowledge;
use crate::connection::paths::shared_bottleneck::SharedBottlenecks;
use crate::connection::send::buffer_pool::BufferPool;
use crate::connection::{
    Connection, Datagram, Event, FourTuple, Resumption, Step, Transmit, TransportConfigError,
};
use crate::crypto::replay::ReplayGuard;
use crate::crypto::reset::ResetKey;
use crate::crypto::session::{EarlyData, TlsConfigError};
use crate::crypto::token::TokenKey;
use crate::endpoint::budget::Budget;
use crate::endpoint::channels::Channels;
use crate::endpoint::clients::Clients;
use crate::endpoint::deferred::DeferredClients;
use crate::endpoint::gate::Gate;
use crate::endpoint::ids::{ConnectionIds, RandomIds};
use crate::endpoint::memory_pressure::MemoryPressure;
use crate::endpoint::race::Races;
use crate::endpoint::retried::Retried;
use crate::endpoint::router::Router;
use crate::endpoint::schedule::Schedule;
use crate::endpoint::tokens::{ReceivedTokens, Server};
use crate::endpoint::turns::Turns;
use crate::hashing::shrink;
use crate::knowledge::Knowledge;
use crate::memory::MemoryQuota;
use crate::path::hints::lowered;
use crate::stream::StreamEvent;
use crate::stream::blocks::Blocks;
use crate::time::{Deadline, Instant, TimerReason};
use hvq_scheduler::{Flights, Hints, PathSet, PathView};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// Names a connection of an endpoint. Never used twice by the same endpoint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionHandle(pub u64);

impl fmt::Display for ConnectionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The reason for which a connection could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The TLS configuration or the server's name is not usable.
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
    /// A setting of the transport is out of its range.
    #[error(transparent)]
    Config(#[from] TransportConfigError),
    /// The endpoint has as many connections as it may.
    #[error("the endpoint has as many connections as it may")]
    TooManyConnections,
    /// No candidate path was given.
    #[error("no path to connect over")]
    NoCandidate,
}

/// Packets for no connection that other endpoints are shown in a second at most.
const STRAYS: u32 = 1_000;
/// Ways that are compared at most: a policy takes no more paths.
const MOST_WAYS: usize = PathSet::CAPACITY;

/// The output of an endpoint that is polled.
#[derive(Debug)]
pub enum Output {
    /// Send this.
    Transmit(Transmit),
    /// Tell the application of this connection. The first event of a connection that the peer started is
    /// [`Event::Connected`].
    Event(ConnectionHandle, Event),
    /// Nothing until input arrives or the deadline passes.
    Idle(Option<Deadline>),
}

/// A client's connection to begin.
#[derive(Clone, Copy)]
struct Start<'a> {
    config: &'a ClientConfig,
    tuple: FourTuple,
    server_name: &'a str,
    resumption: Resumption,
}

impl Start<'_> {
    /// The server, as tokens for it are kept.
    fn server(&self) -> Server {
        Server { name: self.server_name.into(), port: self.tuple.remote.port() }
    }
}

/// The budgets of answers to strangers.
#[derive(Clone, Copy, Debug)]
struct Budgets {
    resets: Budget,
    negotiations: Budget,
    /// Packets for no connection that are kept.
    strays: Budget,
}

/// A QUIC endpoint: client, server or both.
pub struct Endpoint {
    config: EndpointConfig,
    server: Option<ServerConfig>,
    /// Each in a place of its own: a table keeps up to twice as many places as it has entries.
    connections: HandleMap<Box<Connection>>,
    router: Router,
    schedule: Schedule,
    transmits: VecDeque<Transmit>,
    /// Packets for no connection, for other endpoints to see.
    strays: Vec<Datagram>,
    /// Memory of datagrams that were sent and acknowledged.
    pool: BufferPool,
    /// Memory of what was written, while no connection has it.
    blocks: Blocks,
    next_handle: u64,
    /// Slots that peers hold.
    clients: Clients,
    /// Handshakes that may begin before the caller is heard again.
    turns: Turns,
    /// The connection that was forgotten last, until the next poll.
    remains: Option<(ConnectionHandle, Box<Connection>)>,
    /// Clients that the application decides about later.
    deferred: DeferredClients,
    /// The last events of connections that gave way.
    last_words: VecDeque<(ConnectionHandle, Event)>,
    /// The register of tickets that opened 0-RTT lately, once a server accepts it.
    replay: Option<Arc<ReplayGuard>>,
    ids: Arc<dyn ConnectionIds>,
    reset_key: ResetKey,
    gate: Gate,
    retried: Retried,
    budgets: Budgets,
    tokens: ReceivedTokens,
    channels: Channels,
    races: Races,
    /// The bytes that connections queue on channels that they share.
    accounts: SharedBottlenecks,
    /// The measurements that connections left of their paths, for later ones.
    knowledge: Knowledge,
    /// The bound of memory that connections hold together.
    memory: Arc<MemoryQuota>,
    /// The reviews of what connections hold of it, while it is short.
    pressure: MemoryPressure,
    rng: StdRng,
    stats: EndpointStats,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("connections", &self.connections.len()).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint that accepts connections if `server` is given, and draws all randomness from `seed`, which must be
    /// secret and never used twice outside tests.
    pub fn new(mut config: EndpointConfig, server: Option<ServerConfig>, seed: [u8; 32]) -> Self {
        let mut rng = StdRng::from_seed(seed);
        let replay = config.replay.clone();
        let replay = replay.or_else(|| server.as_ref().and_then(|server| replay_guard(server, &mut rng)));
        let ids = config.ids.clone().unwrap_or_else(|| Arc::new(RandomIds(config.id_length)));
        config.id_length = ids.length();
        Self {
            ids,
            reset_key: config.reset_key.clone().unwrap_or_else(|| ResetKey::new(&rng.random())),
            gate: Gate::new(
                config.token_key.clone().unwrap_or_else(|| TokenKey::new(&rng.random())),
                config.used_tokens.clone(),
            ),
            retried: Retried::default(),
            budgets: Budgets {
                resets: Budget::per_second(config.resets_per_second),
                negotiations: Budget::per_second(config.negotiations_per_second),
                strays: Budget::per_second(STRAYS),
            },
            tokens: ReceivedTokens::default(),
            channels: Channels::default(),
            races: Races::default(),
            accounts: SharedBottlenecks::default(),
            knowledge: Knowledge::default(),
            clients: Clients::new(&config),
            turns: Turns::default(),
            remains: None,
            deferred: DeferredClients::default(),
            last_words: VecDeque::new(),
            memory: config.memory.clone().unwrap_or_default(),
            pressure: MemoryPressure::default(),
            config,
            server,
            connections: HandleMap::default(),
            router: Router::default(),
            schedule: Schedule::default(),
            transmits: VecDeque::new(),
            strays: Vec::new(),
            pool: BufferPool::default(),
            blocks: Blocks::default(),
            next_handle: 0,
            replay,
            rng,
            stats: EndpointStats::default(),
        }
    }

    /// Replaces what new connections of peers are made from; `None` accepts no more.
    pub fn set_server(&mut self, server: Option<ServerConfig>) {
        if self.replay.is_none() {
            self.replay = server.as_ref().and_then(|server| replay_guard(server, &mut self.rng));
        }
        self.server = server;
    }

    /// Takes in a datagram at `now`.
    pub fn handle(&mut self, datagram: Datagram, now: Instant) {
        if let Err(reason) = self.route(datagram, now) {
            *self.stats.dropped.entry(reason).or_default() += 1;
        }
    }

    /// Another rate is believed of the channel of `local`, on which connections of this endpoint receive.
    fn tell_received_rate(&mut self, local: SocketAddr) {
        let rate = self.knowledge.received_rate(local);
        for (handle, connection) in &mut self.connections {
            if knowledge::hear_received_rate(connection, local, rate) {
                self.schedule.touch(*handle);
            }
        }
    }

    /// The system refuses to send datagrams of `size` bytes over `tuple`, as seen from here, because the interface takes no
    /// such (EMSGSIZE). The refused content is sent in smaller ones, and is no sign of congestion.
    pub fn on_refused(&mut self, tuple: FourTuple, size: usize, now: Instant) {
        for (handle, connection) in &mut self.connections {
            if connection.on_refused(tuple, size, now) {
                self.schedule.touch(*handle);
            }
        }
    }

    /// Starts a connection to `server_name` over `tuple`. An error leaves the endpoint as it was.
    pub fn connect(
        &mut self,
        config: &ClientConfig,
        tuple: FourTuple,
        server_name: &str,
        now: Instant,
    ) -> Result<ConnectionHandle, ConnectError> {
        let resumption = Resumption::Latest;
        self.start_connection(Start { config, tuple, server_name, resumption }, now)
    }

    fn start_connection(&mut self, start: Start<'_>, now: Instant) -> Result<ConnectionHandle, ConnectError> {
        let connection = self.new_client(&start, now)?;
        Ok(self.insert_client(connection, &start, now))
    }

    /// A connection of a client that is not among those of the endpoint yet.
    fn new_client(&mut self, start: &Start<'_>, now: Instant) -> Result<Connection, ConnectError> {
        let Start { config, tuple, server_name, resumption } = *start;
        config.transport.check()?;
        if self.connections.len() >= self.config.most_connections() {
            return Err(ConnectError::TooManyConnections);
        }
        let setup = self.setup(tuple, now);
        let mut connection =
            Connection::client(&config.tls, config.transport.clone(), setup, server_name, resumption)?;
        let token = config.token.clone().or_else(|| self.tokens.take(&start.server(), connection.version()));
        connection.present_token(token.unwrap_or_default());
        Ok(connection)
    }

    /// Takes `connection`, made from `start`, among those of the endpoint.
    fn insert_client(&mut self, connection: Connection, start: &Start<'_>, now: Instant) -> ConnectionHandle {
        let handle = self.insert(connection);
        let local = start.tuple.local;
        let hints = self.believed(local, start.config.transport.hints_for(local));
        self.channels.on_handshake(local, hints.rate, now);
        self.tokens.begin(handle, start.server());
        handle
    }

    /// Returns the index of the one of `ways` over which a connection with `config` had better begin: the policy's
    /// choice from the hints and from the measurements of all connections of this endpoint on these channels. It is the
    /// first while nothing tells of the delay of some, and where the policy leaves the choice to the application. A channel
    /// on which an attempt of a race, or a path of a connection that has another, was not answered within the last 10 seconds,
    /// nor anything else since, gives way to the first that has done better.
    pub fn first_network_path(&self, config: &ClientConfig, ways: &[NetworkPath], now: Instant) -> usize {
        let chosen = self.preferred_way(config, ways, now);
        let is_shunned =
            |way: &NetworkPath| self.channels.is_shunned(way.tuple.local, &self.connections, now);
        if !ways.get(chosen).is_some_and(is_shunned) {
            return chosen;
        }
        ways.iter().position(|way| !is_shunned(way)).unwrap_or(chosen)
    }

    fn preferred_way(&self, config: &ClientConfig, ways: &[NetworkPath], now: Instant) -> usize {
        let known = |(id, way): (_, &NetworkPath)| {
            let way = NetworkPath { hints: self.believed(way.tuple.local, way.hints), ..*way };
            self.channels.view(PathId(id), &way, &self.connections, now)
        };
        let views: Option<Vec<PathView>> = (0..).zip(ways).take(MOST_WAYS).map(known).collect();
        let Some(views) = views.filter(|views| !views.is_empty()) else { return 0 };
        let index = (config.transport.scheduler)().first(&Flights::USUAL, &views);
        if index < views.len() { index } else { 0 }
    }

    /// Returns `hints` of the channel of `local`, as far as what arrives there does not refute them.
    fn believed(&self, local: SocketAddr, hints: Hints) -> Hints {
        lowered(hints, self.knowledge.received_rate(local))
    }

    /// A connection, for commands; it is polled next.
    pub fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(&handle)?;
        connection.attach_blocks(&mut self.blocks);
        self.schedule.touch(handle);
        Some(connection.as_mut())
    }

    /// A connection, to look at.
    pub fn get(&self, handle: ConnectionHandle) -> Option<&Connection> {
        self.connections.get(&handle).map(Box::as_ref)
    }

    /// Takes the connection that [`Event::Forgotten`] was just told of, if the application has not read all that arrived on it.
    /// Nothing is sent on it any more.
    pub fn take_unread(&mut self, handle: ConnectionHandle) -> Option<Box<Connection>> {
        let (_, connection) = self.remains.take_if(|(of, _)| *of == handle)?;
        (unread(&connection) > 0).then_some(connection)
    }

    /// Handles of all connections, in no order; of attempts that race for one connection that by which it is known.
    pub fn handles(&self) -> impl Iterator<Item = ConnectionHandle> + '_ {
        self.connections.keys().copied().filter(|handle| self.races.race_of(*handle).is_none())
    }

    /// The knowledge of paths that connections left, as bytes that [`Self::add_knowledge`] takes: those of the 64 paths used last.
    /// A client keeps them beside its session tickets, as private as these: they name networks that it was in.
    /// [`EndpointConfig::set_epoch`] dates them; without it they mean nothing to another process.
    pub fn knowledge(&self) -> Vec<u8> {
        self.knowledge.to_bytes()
    }

    /// Adds knowledge of paths that an earlier endpoint left. Returns the number of paths; `None` if `bytes` are damaged or of
    /// another version: then none is added. Paths that were measured after `now` are left out.
    pub fn add_knowledge(&mut self, bytes: &[u8], now: Instant) -> Option<usize> {
        self.knowledge.add_bytes(bytes, now + self.config.epoch)
    }

    /// Returns the counters of datagrams that were ignored and of answers to strangers so far.
    pub fn stats(&self) -> &EndpointStats {
        &self.stats
    }

    /// Takes the memory of a batch that was sent, for one to come. Nobody has to give any back; who does saves going to the
    /// system for it.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        self.pool.put(bytes);
    }

    /// The next thing to do at `now`.
    pub fn poll(&mut self, now: Instant) -> Output {
        if let Some(output) = self.next_of_no_connection() {
            return output;
        }
        self.schedule.wake(now);
        self.relieve_memory(now);
        if !self.races.is_empty() {
            self.run_races(now);
            if let Some(news) = self.next_race_news(now) {
                return news;
            }
        }
        while let Some(handle) = self.schedule.next() {
            let connections = self.connections.len();
            let Some(connection) = self.connections.get_mut(&handle) else {
                self.schedule.forget(handle);
                continue;
            };
            if let Some(event) = connection.next_event(now) {
                match self.tell(handle, event, now) {
                    Some(output) => return output,
                    None => continue,
                }
            }
            // A connection that is alone knows what it sent.
            let shares = connections > 1 || self.accounts.is_in_use();
            connection.exchange_pool(&mut self.pool);
            connection.attach_blocks(&mut self.blocks);
            if shares {
                connection.learn_competition(&self.accounts, connections, now);
            }
            let step = knowledge::poll(connection, &mut self.knowledge, self.config.epoch, now);
            if shares {
                connection.report_traffic(&mut self.accounts, now);
            }
            connection.detach_blocks(&mut self.blocks);
            connection.exchange_pool(&mut self.pool);
            if let Some(changes) = connection.take_id_changes() {
                self.router.synchronise(handle, changes);
            }
            match step {
                Step::Transmit(transmit) => return Output::Transmit(transmit),
                Step::Event(event) => {
                    if let Some(output) = self.tell(handle, event, now) {
                        return output;
                    }
                }
                Step::Idle(deadline) => self.schedule.sleep(handle, deadline),
            }
        }
        if !self.races.is_empty()
            && let Some(news) = self.next_race_news(now)
        {
            return news;
        }
        if self.begin_waiting(now) {
            // Not at once: what arrived meanwhile is heard first.
            return Output::Idle(Some(Deadline::new(now, TimerReason::Handshake)));
        }
        let attempt = self.races.deadline().map(|at| Deadline::new(at, TimerReason::ConnectionAttempt));
        let earliest = Deadline::earliest(self.schedule.deadline(), attempt);
        Output::Idle(Deadline::earliest(earliest, self.pressure.deadline()))
    }

    /// Takes events of the streams of a connection, at most `most`, which [`Self::poll`] would return one by one, after it returned one
    /// of them. Other events come first: while one waits, none is taken.
    pub fn take_stream_events(
        &mut self,
        handle: ConnectionHandle,
        most: usize,
        take: impl FnMut(StreamEvent),
    ) {
        if let Some(connection) = self.connections.get_mut(&handle) {
            events::take_of_streams(connection, most, take);
        }
    }

    /// The last events of connections that are gone, and answers to strangers.
    #[inline]
    fn next_of_no_connection(&mut self) -> Option<Output> {
        if self.remains.is_some() {
            self.remains = None;
        }
        if !self.transmits.is_empty()
            && let Some(transmit) = self.transmits.pop_front()
        {
            return Some(Output::Transmit(transmit));
        }
        if self.last_words.is_empty() {
            return None;
        }
        self.last_words.pop_front().map(|(handle, event)| Output::Event(handle, event))
    }

    #[inline]
    fn tell(&mut self, handle: ConnectionHandle, event: Event, now: Instant) -> Option<Output> {
        // Most events are those of streams, which concern nobody here.
        if !matches!(event, Event::Stream(_)) {
            if !self.races.is_empty() {
                return self.tell_of_race(handle, event, now);
            }
            self.note(handle, &event, now);
        }
        Some(Output::Event(handle, event))
    }

    fn note(&mut self, handle: ConnectionHandle, event: &Event, now: Instant) {
        match event {
            Event::Connected => self.complete_handshake(handle, now),
            Event::Forgotten => self.forget(handle),
            Event::NewToken(token) => {
                let version = self.connections.get(&handle).map(|connection| connection.version());
                if let Some(version) = version {
                    self.tokens.put(handle, version, token.clone());
                }
            }
            _ => {}
        }
    }

    /// Nothing is left of the connection.
    fn forget(&mut self, handle: ConnectionHandle) {
        self.clients.forget(handle);
        if let Some(mut connection) = self.connections.remove(&handle) {
            knowledge::leave(&mut connection, &mut self.knowledge);
            self.remains = Some((handle, connection));
        }
        shrink(&mut self.connections);
        self.tokens.end(handle);
        self.router.forget(handle);
        self.schedule.forget(handle);
    }

    fn insert(&mut self, connection: Connection) -> ConnectionHandle {
        let handle = ConnectionHandle(self.next_handle);
        self.next_handle += 1;
        self.connections.insert(handle, Box::new(connection));
        self.schedule.touch(handle);
        if let Some(changes) = self.connections.get_mut(&handle).and_then(|new| new.take_id_changes()) {
            self.router.synchronise(handle, changes);
        }
        handle
    }
}

/// A server that accepts 0-RTT remembers the tickets that were used.
fn replay_guard(server: &ServerConfig, rng: &mut StdRng) -> Option<Arc<ReplayGuard>> {
    (server.tls.early_data() == EarlyData::On).then(|| Arc::new(ReplayGuard::new(&rng.random())))
}

#[cfg(test)]
mod tests;
