//! A network in virtual time: a client and a server endpoint, and channels between their addresses.
//!
//! ```text
//!             ┌── wire 0: 10.0.0.1:1000 ═ up/down link ═ 10.0.1.1:443 ──┐
//!   client ───┤                                                         ├─── server
//!             └── wire 1: 10.0.0.1:1001 ═ up/down link ═ 10.0.1.1:444 ──┘
//! ```
//!
//! Everything follows from the seed: the channels' dice, the endpoints' randomness, the order of events.

pub mod capture;
pub mod cross;
pub mod identity;
pub mod ledger;
pub mod medium;
pub mod rewards;
pub mod wire;

use cross::Cross;
use hvq_emulation::{Channel, ChannelSpec, Direction};
use hvq_transport::connection::{
    Connection, Datagram, Dscp, Ecn, Event, FourTuple, Replay, Transmit, TransportConfig,
};
use hvq_transport::endpoint::{
    CandidatePath, ClientConfig, ConnectionHandle, Dial, Endpoint, EndpointConfig, NetworkPath, Output,
    RaceOptions, ServerConfig,
};
use hvq_transport::error::ConnectionError;
use hvq_transport::time::Instant;
use ledger::Ledger;
use medium::Medium;
use rewards::Rewards;
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use wire::{Packet, Wire};

/// More outputs or timers than this in one instant are an endless loop.
const MOST_ROUNDS: usize = 100_000;

/// One of the two ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The end that connects.
    Client,
    /// The end that accepts.
    Server,
}

impl Side {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];
}

/// The fate that a [`Tap`] chooses for a datagram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It enters the channel.
    Pass,
    /// It is lost.
    Drop,
    /// This enters instead.
    Become(Vec<u8>),
}

/// The property that the channels of the client have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Radio {
    /// Nothing.
    #[default]
    Apart,
    /// They belong to one device, which stays awake for all of them when one is in use (NSDI 2023, §4.2.2).
    Common,
}

/// Sees every datagram before it enters a wire: the wire's number, the direction and the UDP payload.
pub type Tap = Box<dyn FnMut(usize, Direction, &[u8]) -> Fate>;

/// An event of one of several connections.
#[derive(Debug)]
pub struct ConnectionEvent<'a> {
    /// The end that it happened at.
    pub side: Side,
    /// The connection's handle there.
    pub handle: ConnectionHandle,
    /// The event.
    pub event: &'a Event,
    /// The connection.
    pub connection: &'a mut Connection,
    /// The time.
    pub now: Instant,
}

/// The application at the ends: it is called whenever there is news, and when it asked to be.
pub trait Application {
    /// Reacts to events of `side`'s connection; does nothing by default.
    fn on_event(&mut self, _side: Side, _event: &Event, _connection: &mut Connection, _now: Instant) {}

    /// Reacts to events of one of several connections. Calls [`Self::on_event`] by default.
    fn on_connection_event(&mut self, occurred: ConnectionEvent<'_>) {
        let ConnectionEvent { side, event, connection, now, .. } = occurred;
        self.on_event(side, event, connection, now);
    }

    /// `side`'s connection is over.
    fn on_closed(&mut self, _side: Side, _error: &ConnectionError) {}

    /// One of several connections is over: `handle` says which of `side`'s it was. Calls [`Self::on_closed`] by
    /// default.
    fn on_connection_closed(&mut self, (side, _handle): (Side, ConnectionHandle), error: &ConnectionError) {
        self.on_closed(side, error);
    }

    /// Returns the time at which it wants [`Self::on_wake`] to be called.
    fn wake(&self) -> Option<Instant> {
        None
    }

    /// The time that [`Self::wake`] named has come.
    fn on_wake(&mut self, _net: &mut Net) {}

    /// Returns true if there is nothing left to do.
    fn is_done(&self) -> bool {
        false
    }
}

/// Does nothing.
#[derive(Clone, Copy, Debug)]
pub struct Onlooker;

impl Application for Onlooker {}

/// An endpoint and what it reported.
#[derive(Debug)]
pub struct End {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// Its latest connection.
    pub handle: Option<ConnectionHandle>,
    /// The events that it reported, but for news about streams and datagrams.
    pub events: Vec<(Instant, Event)>,
}

impl End {
    fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, handle: None, events: Vec::new() }
    }

    /// Its connection, for commands.
    pub fn connection(&mut self) -> &mut Connection {
        let handle = self.handle.or_else(|| self.endpoint.handles().min()).expect("there is a connection");
        self.endpoint.connection(handle).expect("the connection is still there")
    }

    /// Its connection, to look at, if it is still there.
    pub fn get(&self) -> Option<&Connection> {
        self.endpoint.get(self.handle.or_else(|| self.endpoint.handles().min())?)
    }

    /// Returns true if `event` was reported.
    pub fn saw(&self, event: &Event) -> bool {
        self.events.iter().any(|(_, seen)| seen == event)
    }

    /// Returns true if an event was reported that `wanted` holds of.
    pub fn saw_any(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(|(_, seen)| wanted(seen))
    }
}

/// The network.
pub struct Net {
    /// Now.
    pub now: Instant,
    /// The end that connects.
    pub client: End,
    /// The end that accepts.
    pub server: End,
    /// The wires that join them.
    pub wires: Vec<Wire>,
    /// The property that the wires have in common.
    pub radio: Radio,
    /// The traffic of others.
    pub crosses: Vec<Cross>,
    /// The tap, which watches and meddles.
    pub tap: Option<Tap>,
    /// The ledger of bytes that the server sends to unproven addresses, if there is one.
    pub ledger: Option<Ledger>,
    /// The recorder that compares the rewards that policies expect with those that come, if there is one: of wires 0
    /// and 1.
    pub rewards: Option<Rewards>,
    /// The configuration of the client's connections.
    pub client_config: ClientConfig,
    server_transport: Arc<TransportConfig>,
    seed: u64,
    news: VecDeque<(Side, ConnectionHandle, Event)>,
}

impl Net {
    /// The start of every network, not zero, so that no component mistakes the first instant for "never".
    pub const START: Instant = Instant::from_nanos(1_000_000_000);

    /// Two endpoints without a wire.
    pub fn new(client: TransportConfig, server: TransportConfig, seed: u64) -> Self {
        let server = Arc::new(server);
        let server_config = ServerConfig::new(identity::server(), server.clone());
        Self {
            now: Self::START,
            client: End::new(Endpoint::new(EndpointConfig::default(), None, secret(seed, 1))),
            server: End::new(Endpoint::new(EndpointConfig::default(), Some(server_config), secret(seed, 2))),
            wires: Vec::new(),
            radio: Radio::Apart,
            crosses: Vec::new(),
            tap: None,
            ledger: None,
            rewards: None,
            client_config: ClientConfig::new(identity::client(), Arc::new(client)),
            server_transport: server,
            seed,
            news: VecDeque::new(),
        }
    }

    /// Lets connections from now on resume the sessions of earlier ones, with early data.
    pub fn resume_sessions(&mut self) {
        let (client, server) = identity::resuming();
        let (of_client, of_server) = (self.client_config.transport().clone(), self.server_transport.clone());
        self.client_config = ClientConfig::new(client, of_client);
        self.server.endpoint.set_server(Some(ServerConfig::new(server, of_server)));
    }

    /// Adds a wire like `spec` in its text form; returns the addresses as the client sees them.
    pub fn wire(&mut self, spec: &str) -> FourTuple {
        let spec: ChannelSpec = spec.parse().expect("the channel of a test is well formed");
        let channel = Channel::new(&spec, self.dice()).expect("channels of tests read no trace files");
        self.join(Medium::Plain(Box::new(channel)))
    }

    /// The seed for the dice of the next wire.
    pub fn dice(&self) -> u64 {
        self.seed.wrapping_mul(31).wrapping_add(self.wires.len() as u64)
    }

    /// Adds a wire over `medium`; returns the addresses as the client sees them.
    pub fn join(&mut self, medium: Medium) -> FourTuple {
        let index = u16::try_from(self.wires.len()).expect("a handful of wires");
        self.wires.push(Wire::new(index, medium));
        Wire::addresses(index)
    }

    /// Starts a connection over `tuple`.
    pub fn connect(&mut self, tuple: FourTuple) -> ConnectionHandle {
        let started =
            self.client.endpoint.connect(&self.client_config, tuple, identity::SERVER_NAME, self.now);
        let handle = started.expect("the configuration is usable");
        self.client.handle = Some(handle);
        handle
    }

    /// Starts a connection over the first of `tuples` that answers: attempts over them race (RFC 8305 §5). All that
    /// applications of this world send may be sent twice.
    ///
    /// # Panics
    /// There is no tuple.
    pub fn race(&mut self, tuples: &[FourTuple]) -> ConnectionHandle {
        self.race_with(tuples, RaceOptions::default().with_replay(Replay::Accepted))
    }

    /// Starts a connection over the first of `tuples` that answers, as `options` say.
    ///
    /// # Panics
    /// There is no tuple.
    pub fn race_with(&mut self, tuples: &[FourTuple], options: RaceOptions) -> ConnectionHandle {
        let transport = self.client_config.transport();
        let way = |tuple: &FourTuple| NetworkPath { tuple: *tuple, hints: transport.hints_for(tuple.local) };
        let candidates: Vec<_> = tuples.iter().map(way).map(CandidatePath::new).collect();
        let dial = Dial { server_name: identity::SERVER_NAME, candidates: &candidates, options };
        let started = self.client.endpoint.connect_racing(&self.client_config, dial, self.now);
        let handle = started.expect("the configuration is usable");
        self.client.handle = Some(handle);
        handle
    }

    /// The end of `side`.
    pub fn end(&mut self, side: Side) -> &mut End {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.now.since(Self::START)
    }

    /// Lets `time` pass.
    pub fn run_for(&mut self, time: Duration) {
        self.run(&mut Onlooker, self.now + time);
    }

    /// Runs with `application` at the ends until `until` or until it is done; whether it is.
    pub fn run(&mut self, application: &mut impl Application, until: Instant) -> bool {
        let mut rounds = (self.now, 0);
        loop {
            rounds = if rounds.0 == self.now { (self.now, rounds.1 + 1) } else { (self.now, 0) };
            assert!(rounds.1 < MOST_ROUNDS, "time stands still\n{}", self.describe());
            let timer = self.settle(application);
            if application.is_done() {
                return true;
            }
            let arrival = self.wires.iter().filter_map(|wire| wire.channel.next_deadline()).min();
            let crossing = self.crosses.iter().map(Cross::next_deadline).min();
            let arrival = arrival.into_iter().chain(crossing).min();
            let next =
                [timer, arrival.map(|at| Self::START + at), application.wake()].into_iter().flatten().min();
            match next {
                Some(at) if at <= until => self.now = self.now.max(at),
                _ => {
                    self.now = until;
                    return application.is_done();
                }
            }
            self.deliver();
            if application.wake().is_some_and(|at| at <= self.now) {
                application.on_wake(self);
            }
        }
    }

    /// Hands `datagram` to `side` now, wherever it comes from.
    pub fn inject(&mut self, side: Side, datagram: Datagram) {
        let now = self.now;
        self.end(side).endpoint.handle(datagram, now);
    }

    /// A datagram of `bytes` as it would arrive over wire `index`.
    pub fn arriving(&self, index: usize, direction: Direction, bytes: &[u8]) -> Datagram {
        let wire = &self.wires[index];
        let to = if direction == Direction::Up { wire.server } else { wire.outside };
        let payload = bytes.to_vec().into();
        let packet = Packet { to, server: wire.server, payload, ecn: Ecn::NotEct, dscp: Dscp::DEFAULT };
        wire.datagram(direction, packet)
    }

    /// Everything that helps to understand a failure.
    pub fn describe(&self) -> String {
        let mut text = format!("seed {} at {:?}\n", self.seed, self.elapsed());
        for (name, end) in [("client", &self.client), ("server", &self.server)] {
            let _ = writeln!(text, "{name}: {:?} {:?}", end.get(), end.endpoint.stats());
            for path in end.get().into_iter().flat_map(|connection| connection.stats().paths) {
                let _ = writeln!(text, "  {path:?}");
            }
            let _ = writeln!(text, "{name} saw {:?}", end.events);
        }
        for wire in &self.wires {
            let _ = writeln!(text, "wire {}: up {:?} down {:?}", wire.client, wire.up, wire.down);
        }
        text
    }

    /// Polls and tells the application until nothing more comes of it; returns the earliest timer.
    fn settle(&mut self, application: &mut impl Application) -> Option<Instant> {
        loop {
            let timers = Side::BOTH.map(|side| self.drain(side));
            if self.news.is_empty() {
                return timers.into_iter().flatten().min();
            }
            while let Some((side, handle, event)) = self.news.pop_front() {
                let now = self.now;
                if let Event::Closed(error) = &event {
                    application.on_connection_closed((side, handle), error);
                } else if let Some(connection) = self.end(side).endpoint.connection(handle) {
                    let event = &event;
                    application.on_connection_event(ConnectionEvent { side, handle, event, connection, now });
                }
            }
        }
    }

    fn drain(&mut self, side: Side) -> Option<Instant> {
        let mut rounds = 0;
        loop {
            rounds += 1;
            assert!(rounds < MOST_ROUNDS, "{side:?} never is idle\n{}", self.describe());
            let now = self.now;
            match self.end(side).endpoint.poll(now) {
                Output::Transmit(transmit) => self.carry(side, &transmit),
                Output::Event(handle, event) => {
                    let end = self.end(side);
                    end.handle = Some(handle);
                    if !matches!(event, Event::Stream(_) | Event::DatagramReceived) {
                        end.events.push((now, event.clone()));
                    }
                    self.news.push_back((side, handle, event));
                }
                Output::Idle(deadline) => return deadline.map(|deadline| deadline.at),
            }
        }
    }

    fn carry(&mut self, side: Side, transmit: &Transmit) {
        let at = self.elapsed();
        if let Some(ledger) = self.ledger.as_mut().filter(|_| side == Side::Server) {
            ledger.sent(transmit.remote, transmit.bytes.len());
        }
        let find = |wire: &Wire| wire.direction(transmit.local, transmit.remote);
        let Some(index) = self.wires.iter().position(|wire| find(wire).is_some()) else { return };
        let Some(direction) = find(&self.wires[index]) else { return };
        let server = if direction == Direction::Up { transmit.remote } else { transmit.local };
        let size = transmit.segment.unwrap_or(transmit.bytes.len()).max(1);
        for payload in transmit.bytes.chunks(size) {
            let fate = self.tap.as_mut().map_or(Fate::Pass, |tap| tap(index, direction, payload));
            let payload = match fate {
                Fate::Pass => payload.to_vec(),
                Fate::Become(other) => other,
                Fate::Drop => continue,
            };
            if let Some(rewards) = &self.rewards {
                rewards.enter(self, (side, index), payload.len());
            }
            self.wires[index].enter(
                direction,
                at,
                Packet {
                    to: transmit.remote,
                    server,
                    payload: payload.into(),
                    ecn: transmit.ecn,
                    dscp: transmit.dscp,
                },
            );
        }
        if direction == Direction::Up {
            self.stay_awake(at);
        }
    }

    /// Something was sent up, or came down, on one of the wires.
    fn stay_awake(&mut self, at: Duration) {
        if self.radio == Radio::Common {
            self.wires.iter_mut().for_each(|wire| wire.channel.keep_awake(at));
        }
    }

    fn deliver(&mut self) {
        let (at, now) = (self.elapsed(), self.now);
        for cross in &mut self.crosses {
            while let Some((wire, direction, packet, size)) = cross.due(at) {
                self.wires[wire].channel.enqueue(direction, at, packet, size);
            }
        }
        let mut came_down = false;
        for wire in &mut self.wires {
            while let Some((direction, packet)) = wire.leave(at) {
                if packet.server == cross::nowhere() {
                    wire.count_crossed(direction, packet.payload.len());
                    continue;
                }
                came_down |= direction == Direction::Down;
                let end = match direction {
                    Direction::Up => &mut self.server,
                    Direction::Down => &mut self.client,
                };
                match (self.ledger.as_mut(), direction) {
                    (Some(ledger), Direction::Up) => ledger.received(wire.outside, packet.payload.len()),
                    (Some(ledger), Direction::Down) => ledger.reached(packet.to),
                    (None, _) => {}
                }
                end.endpoint.handle(wire.datagram(direction, packet), now);
            }
        }
        if came_down {
            self.stay_awake(at);
        }
    }
}

fn secret(seed: u64, end: u8) -> [u8; 32] {
    let mut secret = [end; 32];
    secret[..8].copy_from_slice(&seed.to_le_bytes());
    secret
}
