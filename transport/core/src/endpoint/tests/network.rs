//! The network of the tests: two endpoints, links with a fixed delay each way, and a filter that may drop.

use crate::connection::{Connection, Datagram, Ecn, Event, FourTuple, Transmit, TransportConfig};
use crate::crypto::session::{
    ClientTls, ClientTlsBuilder, EarlyData, Identity, ServerTls, ServerTlsBuilder, SessionStore, TicketKeys,
    Verify,
};
use crate::endpoint::{ClientConfig, ConnectionHandle, Endpoint, EndpointConfig, Output, ServerConfig};
use crate::error::{ConnectionError, ErrorCode};
use crate::time::Instant;
use crate::wire::level::Level;
use bytes::BytesMut;
use hvq_scheduler::{Item, PathView, Placement, Scheduler};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Puts everything on the first path that answers and has room, else on the first with room, else waits.
#[derive(Debug)]
pub(super) struct FirstWithRoom;

impl Scheduler for FirstWithRoom {
    fn name(&self) -> &'static str {
        "first-with-room"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let exempt = matches!(item.content, hvq_scheduler::Content::Acknowledgement { .. });
        let able = |path: &&PathView| exempt || path.send_allowance >= path.datagram_size;
        let answers = |path: &&PathView| path.state != hvq_scheduler::PathState::Silent;
        let chosen = paths.iter().filter(answers).find(able).or_else(|| paths.iter().find(able));
        chosen.map_or(Placement::Wait, |path| Placement::On { path: path.id, bytes: item.bytes })
    }
}

/// Puts everything on the last path that has room, as a policy that wants to send to an address of which nothing is known yet.
#[derive(Debug)]
pub(super) struct LastWithRoom;

impl Scheduler for LastWithRoom {
    fn name(&self) -> &'static str {
        "last-with-room"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let able = |path: &&PathView| path.send_allowance >= path.datagram_size;
        let chosen = paths.iter().rev().find(able);
        chosen.map_or(Placement::Wait, |path| Placement::On { path: path.id, bytes: item.bytes })
    }
}

/// Says whether a datagram of a link is dropped.
type Filter = Box<dyn FnMut(Instant, &[u8]) -> bool>;

/// Datagrams as they were sent.
pub(super) type Recording = Rc<RefCell<Vec<Vec<u8>>>>;

/// A link between a client's and a server's address.
pub(super) struct Link {
    pub client: SocketAddr,
    pub server: SocketAddr,
    pub delay: Duration,
    pub drop: Filter,
}

pub(super) struct Network {
    pub now: Instant,
    pub client: Endpoint,
    pub server: Endpoint,
    pub links: Vec<Link>,
    in_flight: BTreeMap<(Instant, u64), (Side, Datagram)>,
    sequence: u64,
    /// Bytes that the client sent and no filter dropped.
    pub to_server: usize,
    /// Bytes that the server sent.
    pub from_server: usize,
    pub client_events: Vec<(ConnectionHandle, Event)>,
    pub server_events: Vec<(ConnectionHandle, Event)>,
    pub client_config: ClientConfig,
    pub server_config: ServerConfig,
    /// The certificate of the server, and its key, in PEM.
    identity: (String, String),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Client,
    Server,
}

/// Returns the code with which an end closed by itself, if it did.
pub(super) fn verdict(events: &[(ConnectionHandle, Event)]) -> Option<ErrorCode> {
    events.iter().find_map(|(_, event)| match event {
        Event::Closed(ConnectionError::Transport(error)) => Some(error.code),
        _ => None,
    })
}

pub(super) fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

pub(super) fn transport() -> TransportConfig {
    TransportConfig::new(Arc::new(|| Box::new(FirstWithRoom)))
}

fn server_tls((certificate, key): &(String, String)) -> ServerTlsBuilder {
    let identity = Identity::Pem { chain: certificate.clone().into(), key: key.clone().into() };
    ServerTls::builder(identity).alpn(["hvq"])
}

fn client_tls((certificate, _): &(String, String)) -> ClientTlsBuilder {
    ClientTls::builder().alpn(["hvq"]).verify(Verify::CaPem(certificate.clone().into()))
}

impl Network {
    pub(super) fn new(client: TransportConfig, server: TransportConfig) -> Self {
        Self::certified(client, server, ["server.test".to_owned()])
    }

    /// With a certificate of the server for these names, the first of which clients ask for.
    pub(super) fn certified(
        client: TransportConfig,
        server: TransportConfig,
        names: impl Into<Vec<String>>,
    ) -> Self {
        let key = rcgen::generate_simple_self_signed(names).unwrap();
        let identity = (key.cert.pem(), key.signing_key.serialize_pem());
        let server_tls = server_tls(&identity).build().unwrap();
        let client_tls = client_tls(&identity).build().unwrap();
        let server_config = ServerConfig::new(server_tls, Arc::new(server));
        Self {
            now: Instant::from_nanos(1_000_000),
            client: Endpoint::new(EndpointConfig::default(), None, [1; 32]),
            server: Endpoint::new(EndpointConfig::default(), Some(server_config.clone()), [2; 32]),
            links: Vec::new(),
            in_flight: BTreeMap::new(),
            sequence: 0,
            to_server: 0,
            from_server: 0,
            client_events: Vec::new(),
            server_events: Vec::new(),
            server_config,
            client_config: ClientConfig::new(client_tls, Arc::new(client)),
            identity,
        }
    }

    /// Has the client keep tickets in `store` and use them, and for 0-RTT if `early_data` says so. It speaks another protocol, too.
    pub(super) fn keep_sessions(&mut self, store: Arc<dyn SessionStore>, early_data: EarlyData) {
        let tls =
            client_tls(&self.identity).alpn(["hvq", "other"]).sessions(store).early_data(early_data).build();
        self.client_config.set_tls(tls.unwrap());
    }

    /// Has both ends keep TLS after the handshake, for keying material.
    pub(super) fn keep_tls(&mut self) {
        self.client_config.set_tls(client_tls(&self.identity).exportable().build().unwrap());
        let tls = server_tls(&self.identity).exportable().build().unwrap();
        self.configure_server(|server| {
            server.set_tls(tls);
        });
    }

    /// Has the server speak `protocol` and accept 0-RTT of tickets that it gave under `context` and sealed with `key`.
    pub(super) fn accept_early_data(&mut self, key: u8, context: &str, protocol: &str) {
        let keys = TicketKeys::new(&[key; 32], &[]);
        let tls = server_tls(&self.identity).early_data(EarlyData::On).early_data_context(context);
        let tls = tls.ticket_keys(keys).alpn([protocol]).build().unwrap();
        self.configure_server(|server| {
            server.set_tls(tls);
        });
    }

    /// Adds a link with this one-way delay.
    pub(super) fn link(&mut self, delay: Duration) -> FourTuple {
        let index = self.links.len() as u16;
        let (client, server) = (address(1000 + index), address(443 + index));
        self.links.push(Link { client, server, delay, drop: Box::new(|_, _| false) });
        FourTuple { local: client, remote: server }
    }

    /// Adds a link of the client's address `client` to the server's first.
    pub(super) fn link_from(&mut self, client: SocketAddr, delay: Duration) -> FourTuple {
        let server = address(443);
        self.links.push(Link { client, server, delay, drop: Box::new(|_, _| false) });
        FourTuple { local: client, remote: server }
    }

    /// Has another server process take over, with nothing but its configuration.
    pub(super) fn restart_server(&mut self, config: EndpointConfig) {
        self.server = Endpoint::new(config, Some(self.server_config.clone()), [3; 32]);
        self.server_events.clear();
    }

    /// Changes the server's configuration.
    pub(super) fn configure_server(&mut self, change: impl FnOnce(&mut ServerConfig)) {
        change(&mut self.server_config);
        self.server.set_server(Some(self.server_config.clone()));
    }

    /// Records what goes over link `index`.
    pub(super) fn record(&mut self, index: usize) -> Recording {
        let recording = Recording::default();
        let copy = Rc::clone(&recording);
        self.links[index].drop = Box::new(move |_, bytes| {
            copy.borrow_mut().push(bytes.to_vec());
            false
        });
        recording
    }

    /// From now on the datagrams of link `index` are kept and do not arrive.
    pub(super) fn catch(&mut self, index: usize) -> Recording {
        let caught = Recording::default();
        let sink = Rc::clone(&caught);
        self.links[index].drop = Box::new(move |_, bytes| {
            sink.borrow_mut().push(bytes.to_vec());
            true
        });
        caught
    }

    /// Has `bytes` arrive at the server as if they came from `from`, over link 0.
    pub(super) fn forge(&mut self, from: SocketAddr, bytes: &[u8]) {
        let local = self.links[0].server;
        let datagram = Datagram { local, remote: from, ecn: Ecn::NotEct, bytes: BytesMut::from(bytes) };
        self.server.handle(datagram, self.now);
    }

    /// Has `bytes` arrive at the client over link 0.
    pub(super) fn forge_back(&mut self, bytes: &[u8]) {
        let Link { client: local, server: remote, .. } = self.links[0];
        let datagram = Datagram { local, remote, ecn: Ecn::NotEct, bytes: BytesMut::from(bytes) };
        self.client.handle(datagram, self.now);
    }

    /// Has `bytes` arrive at the server once more over link `index`.
    pub(super) fn forge_over(&mut self, index: usize, bytes: &[u8]) {
        let Link { client: remote, server: local, .. } = self.links[index];
        let datagram = Datagram { local, remote, ecn: Ecn::NotEct, bytes: BytesMut::from(bytes) };
        self.server.handle(datagram, self.now);
    }

    pub(super) fn connect(&mut self, tuple: FourTuple) -> ConnectionHandle {
        self.client.connect(&self.client_config, tuple, "server.test", self.now).unwrap()
    }

    /// Begins a connection over link 0 and stops where the server reads packets of `level`, and none of a later one.
    pub(super) fn connect_up_to(&mut self, level: Level) -> ConnectionHandle {
        let Link { client: local, server: remote, delay, .. } = self.links[0];
        // What completes the handshake is lost.
        let end = self.now + delay * 3 / 2;
        self.links[0].drop = Box::new(move |now, _| now >= end);
        let handle = self.connect(FourTuple { local, remote });
        if level == Level::Handshake {
            self.run_for(delay * 9 / 4);
            self.links[0].drop = Box::new(|_, _| false);
        } else {
            self.run_for(delay / 4);
        }
        handle
    }

    /// Returns the code with which the server's connection was closed by itself, if it was.
    pub(super) fn verdict(&self) -> Option<ErrorCode> {
        verdict(&self.server_events)
    }

    pub(super) fn client(&mut self, handle: ConnectionHandle) -> &mut Connection {
        self.client.connection(handle).unwrap()
    }

    /// The server's only connection.
    pub(super) fn server(&mut self) -> &mut Connection {
        let handle = self.server.handles().next().unwrap();
        self.server.connection(handle).unwrap()
    }

    /// Runs until nothing happens any more or `until`.
    pub(super) fn run_until(&mut self, until: Instant) {
        loop {
            let next_timer = [self.drain(Side::Client), self.drain(Side::Server)].into_iter().flatten().min();
            let next_packet = self.in_flight.first_key_value().map(|(key, _)| key.0);
            let next = [next_timer, next_packet].into_iter().flatten().min();
            match next {
                Some(at) if at <= until => self.now = self.now.max(at),
                _ => {
                    self.now = until;
                    return;
                }
            }
            while let Some(entry) = self.in_flight.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let (side, datagram) = entry.remove();
                let now = self.now;
                match side {
                    Side::Client => self.client.handle(datagram, now),
                    Side::Server => self.server.handle(datagram, now),
                }
            }
        }
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    fn drain(&mut self, side: Side) -> Option<Instant> {
        loop {
            let now = self.now;
            let output = match side {
                Side::Client => self.client.poll(now),
                Side::Server => self.server.poll(now),
            };
            match output {
                Output::Transmit(transmit) => self.carry(side, transmit),
                Output::Event(handle, event) => match side {
                    Side::Client => self.client_events.push((handle, event)),
                    Side::Server => self.server_events.push((handle, event)),
                },
                Output::Idle(deadline) => return deadline.map(|deadline| deadline.at),
            }
        }
    }

    fn carry(&mut self, from: Side, transmit: Transmit) {
        let size = transmit.segment.unwrap_or(transmit.bytes.len()).max(1);
        for payload in transmit.bytes.chunks(size) {
            let link = self.links.iter_mut().find(|link| match from {
                Side::Client => link.client == transmit.local && link.server == transmit.remote,
                Side::Server => link.server == transmit.local && link.client == transmit.remote,
            });
            self.from_server += if from == Side::Server { payload.len() } else { 0 };
            let Some(link) = link else { continue };
            if (link.drop)(self.now, payload) {
                continue;
            }
            self.to_server += if from == Side::Client { payload.len() } else { 0 };
            let datagram = Datagram {
                local: transmit.remote,
                remote: transmit.local,
                ecn: transmit.ecn,
                bytes: BytesMut::from(payload),
            };
            let to = if from == Side::Client { Side::Server } else { Side::Client };
            self.in_flight.insert((self.now + link.delay, self.sequence), (to, datagram));
            self.sequence += 1;
        }
    }
}
