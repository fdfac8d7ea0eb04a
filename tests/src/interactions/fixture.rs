//! The world in which operations are played, and what meddles with its datagrams.

use super::draw::{Reception, Resumption, Setting, channel};
use super::earlier;
use hvq_emulation::{Channel, ChannelSpec, Direction};
use hvq_lab::world::identity;
use hvq_lab::world::ledger::Ledger;
use hvq_lab::world::medium::Medium;
use hvq_lab::world::wire::Marks;
use hvq_lab::world::{Fate, Net, Side};
use hvq_scheduler::{PathId, PathState};
use hvq_transport::connection::{
    Connection, FourTuple, Multipath, PreferredAddresses, Rotation, TransportConfig,
};
use hvq_transport::crypto::keys::Suite;
use hvq_transport::crypto::one_rtt::AeadLimits;
use hvq_transport::crypto::session::ServerTls;
use hvq_transport::endpoint::{Admission, ClientConfig, Decision, RetryPolicy, ServerConfig};
use hvq_transport::stream::StreamLimits;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Wires from further addresses of the client to addresses of the server that others lead to as well.
const FURTHER: usize = 2;
/// The server's preferred address, if it has one.
const PREFERRED: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 7, 7), 4_433);
/// A channel that loses nothing.
const CALM: &str = "rtt=20ms,rate=20mbit";
/// A wire that flaps does so for this long.
const FLAPPING: Duration = Duration::from_secs(60);
/// Longer than all that can be cut.
const IDLE: Duration = Duration::from_secs(120);

/// The fate of the next datagrams.
#[derive(Debug, Default)]
struct Meddling {
    /// The number of datagrams that are lost, by wire and direction.
    losing: Vec<(usize, Direction, u8)>,
    /// The number of the client's datagrams on a wire that seem to come from an address.
    forging: Vec<(usize, SocketAddr, u8)>,
    forged: Vec<(usize, SocketAddr, Vec<u8>)>,
}

impl Meddling {
    fn fate(&mut self, wire: usize, direction: Direction, bytes: &[u8]) -> Fate {
        for (of, way, left) in &mut self.losing {
            if (*of, *way) == (wire, direction) && *left > 0 {
                *left -= 1;
                return Fate::Drop;
            }
        }
        for (of, address, left) in &mut self.forging {
            if *of == wire && direction == Direction::Up && *left > 0 {
                *left -= 1;
                self.forged.push((wire, *address, bytes.to_vec()));
                return Fate::Drop;
            }
        }
        Fate::Pass
    }
}

/// A network with everything that may be done to it.
pub(super) struct Fixture {
    /// The network.
    pub net: Net,
    meddling: Rc<RefCell<Meddling>>,
    /// The channels of the wires in their text form, without outages.
    channels: Vec<String>,
}

impl Fixture {
    /// The world of `setting`, with a connection that is about to start over its first wire.
    pub(super) fn new(setting: &Setting) -> Self {
        let client = config(setting, 0);
        let server = Arc::new(config(setting, 1));
        let mut net = Net::new(client.clone(), (*server).clone(), setting.seed);
        lay_wires(&mut net, setting);
        net.ledger = Some(Ledger::default());
        let mut tls = identity::server();
        if setting.resumption != Resumption::None {
            net.client_config = ClientConfig::new(earlier::client(), Arc::new(client));
            tls = earlier::server();
            net.server.endpoint.set_server(Some(ServerConfig::new(tls.clone(), Arc::clone(&server))));
            earlier::connection(&mut net);
        }
        if setting.resumption == Resumption::Rejected {
            tls = earlier::other_server();
        }
        net.server.endpoint.set_server(Some(receive(setting, tls, server)));
        let mut dice = StdRng::seed_from_u64(!setting.seed);
        for wire in &mut net.wires {
            wire.marks = match dice.random_range(0..20) {
                0 => Marks::Dropped,
                1..3 => Marks::Cleared,
                _ => Marks::Kept,
            };
        }
        let meddling = Rc::new(RefCell::new(Meddling::default()));
        let shared = Rc::clone(&meddling);
        net.tap =
            Some(Box::new(move |wire, direction, bytes| shared.borrow_mut().fate(wire, direction, bytes)));
        let channels = vec![CALM.to_owned(); net.wires.len()];
        let mut fixture = Self { net, meddling, channels };
        for (index, text) in setting.wires.iter().enumerate() {
            fixture.replace(index, text);
        }
        let first = fixture.net.wires[0].tuple();
        fixture.net.connect(first);
        fixture
    }

    /// The connection of `side`, if there is one.
    pub(super) fn connection(&mut self, side: Side) -> Option<&mut Connection> {
        self.net.end(side).get()?;
        Some(self.net.end(side).connection())
    }

    /// The open path of `side` that `number` stands for.
    pub(super) fn path(&mut self, side: Side, number: u8) -> PathId {
        let ids = self.connection(side).map(|connection| connection.path_ids()).unwrap_or_default();
        ids.get(usize::from(number) % ids.len().max(1)).copied().unwrap_or(PathId::ZERO)
    }

    /// Returns true if the client's path 0 leads to the server's preferred address.
    pub(super) fn is_at_preferred_address(&mut self) -> bool {
        let path = self.connection(Side::Client).and_then(|connection| connection.path_stats(PathId::ZERO));
        path.is_some_and(|path| path.tuple.remote == SocketAddr::V4(PREFERRED))
    }

    /// The wire that `number` stands for.
    pub(super) fn wire(&self, number: u8) -> usize {
        usize::from(number) % self.net.wires.len()
    }

    /// The addresses of a wire, as the client sees them.
    pub(super) fn tuple(&self, number: u8) -> FourTuple {
        self.net.wires[self.wire(number)].tuple()
    }

    /// The client appears at another port behind the NAT of a wire.
    pub(super) fn rebind_port(&mut self, wire: u8, port: u8) {
        let wire = self.wire(wire);
        self.net.wires[wire].outside.set_port(5_000 + u16::from(port));
    }

    /// The client appears at another address.
    pub(super) fn rebind_address(&mut self, wire: u8, host: u8) {
        let wire = self.wire(wire);
        // Two clients never share an address and a port: answers would go to the wrong wire.
        let port = 1_000 + wire as u16;
        self.net.wires[wire].outside = SocketAddr::from(([192, 0, 2, host], port));
    }

    /// Nothing passes a wire for some time.
    pub(super) fn cut(&mut self, wire: u8, time: Duration) {
        let (wire, at) = (self.wire(wire), self.net.elapsed());
        self.net.wires[wire].channel.cut(at, at + time);
    }

    /// Nothing passes one direction of a wire for some time.
    pub(super) fn cut_way(&mut self, wire: u8, direction: Direction, time: Duration) {
        let (wire, at) = (self.wire(wire), self.net.elapsed());
        if let Medium::Plain(channel) = &mut self.net.wires[wire].channel {
            channel.link_mut(direction).cut(at, at + time);
        }
    }

    /// Nothing passes any wire for `time` and for `later` after that, but over `first`, of which `way` or both directions
    /// work again after `time`.
    pub(super) fn darken(&mut self, first: u8, way: Option<Direction>, [time, later]: [Duration; 2]) {
        let (first, at) = (self.wire(first), self.net.elapsed());
        for (index, wire) in self.net.wires.iter_mut().enumerate() {
            wire.channel.cut(at, at + time + later);
            if let Medium::Plain(channel) = &mut wire.channel
                && index == first
            {
                let back = [Direction::Up, Direction::Down]
                    .into_iter()
                    .filter(|one| way.is_none_or(|way| way == *one));
                back.for_each(|way| channel.link_mut(way).cut(at, at + time));
            }
        }
    }

    /// A wire is dark for `dark` of every `period` from here on; what was under way is lost.
    pub(super) fn flap(&mut self, wire: u8, period: Duration, dark: Duration) {
        let (wire, at) = (self.wire(wire), self.net.elapsed());
        let begins = std::iter::successors(Some(at), |begin| Some(*begin + period));
        let begins = begins.take_while(|begin| *begin < at + FLAPPING);
        let dark = |from: Duration| format!("{}us..{}us", from.as_micros(), (from + dark).as_micros());
        let blackouts: Vec<String> = begins.map(dark).collect();
        let text = format!("{},blackout={}", self.channels[wire].trim_end_matches(','), blackouts.join("+"));
        self.lay(wire, &text);
    }

    /// The paths that both ends know and have proven, and the wires that they are over.
    pub(super) fn proven(&mut self) -> Vec<(PathId, usize)> {
        let [client, server] = Side::BOTH.map(|side| {
            let paths = self.connection(side).map(|connection| connection.stats().paths).unwrap_or_default();
            let proven = paths.into_iter().filter(|path| path.state != PathState::Unvalidated);
            proven.map(|path| (path.id, path.tuple)).collect::<Vec<_>>()
        });
        let shared = client.into_iter().filter(|(id, _)| server.iter().any(|(other, _)| other == id));
        let wire = |tuple| self.net.wires.iter().position(|wire| wire.tuple() == tuple);
        shared.filter_map(|(id, tuple)| Some((id, wire(tuple)?))).collect()
    }

    /// One wire loses nothing from here on, and nothing passes any other; nobody meddles.
    pub(super) fn isolate(&mut self, wire: usize) {
        self.calm();
        let at = self.net.elapsed();
        for (index, other) in self.net.wires.iter_mut().enumerate() {
            if index != wire {
                other.channel.cut(at, Duration::MAX);
            }
        }
    }

    /// A wire becomes another channel.
    pub(super) fn change(&mut self, wire: u8, seed: u8) {
        let text = channel(&mut StdRng::seed_from_u64(u64::from(seed)));
        let wire = self.wire(wire);
        self.replace(wire, &text);
    }

    /// The next `count` datagrams are lost.
    pub(super) fn lose(&mut self, wire: u8, direction: Direction, count: u8) {
        let wire = self.wire(wire);
        self.meddling.borrow_mut().losing.push((wire, direction, count));
    }

    /// The next `count` datagrams of the client on a wire seem to come from an attacker's choice of address.
    pub(super) fn forge(&mut self, wire: u8, host: u8, count: u8) {
        let address = SocketAddr::from(([203, 0, 113, host], 666));
        let wire = self.wire(wire);
        self.meddling.borrow_mut().forging.push((wire, address, count));
    }

    /// Delivers to the server the datagrams that were taken for forging.
    pub(super) fn deliver_forged(&mut self) {
        let forged = std::mem::take(&mut self.meddling.borrow_mut().forged);
        for (wire, address, bytes) in forged {
            let mut datagram = self.net.arriving(wire, Direction::Up, &bytes);
            datagram.remote = address;
            if let Some(ledger) = &mut self.net.ledger {
                ledger.received(address, bytes.len());
            }
            self.net.inject(Side::Server, datagram);
        }
    }

    /// All wires are up and lose nothing from here on, and nobody meddles.
    pub(super) fn calm(&mut self) {
        *self.meddling.borrow_mut() = Meddling::default();
        for index in 0..self.net.wires.len() {
            self.replace(index, CALM);
            self.net.wires[index].marks = Marks::Kept;
        }
    }

    fn replace(&mut self, wire: usize, text: &str) {
        text.clone_into(&mut self.channels[wire]);
        self.lay(wire, text);
    }

    fn lay(&mut self, wire: usize, text: &str) {
        let spec: ChannelSpec = text.parse().expect("the drawn channel is well formed");
        let channel = Channel::new(&spec, self.net.dice()).expect("it reads no trace files");
        self.net.wires[wire].channel = Medium::Plain(Box::new(channel));
    }
}

/// All wires of a world, which lose nothing yet.
fn lay_wires(net: &mut Net, setting: &Setting) {
    for _ in &setting.wires {
        net.wire(CALM);
    }
    for further in 0..FURTHER {
        net.wire(&setting.wires[further % setting.wires.len()]);
        let server = net.wires[further].server;
        let wire = net.wires.last_mut().expect("just added");
        wire.server = server;
        wire.client = SocketAddr::from(([10, 0, 9, 1 + further as u8], 9_000));
        wire.outside = wire.client;
    }
    if setting.preferring {
        net.wire(CALM);
        let client = net.wires[0].client;
        let wire = net.wires.last_mut().expect("just added");
        (wire.client, wire.outside, wire.server) = (client, client, PREFERRED.into());
    }
}

/// A server that receives clients as it is drawn.
fn receive(setting: &Setting, tls: ServerTls, transport: Arc<TransportConfig>) -> ServerConfig {
    let mut config = ServerConfig::new(tls, transport);
    match setting.door {
        Reception::Open => {}
        Reception::Retry => {
            config.set_retry(RetryPolicy::Always);
        }
        Reception::Reluctant(datagrams) => {
            let left = AtomicU32::new(datagrams);
            let admission = Admission::new(move |candidate| {
                let ignored =
                    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
                if ignored.is_ok() { Decision::Ignore } else { candidate.proposal }
            });
            config.set_retry(RetryPolicy::Always).set_admission(Some(admission));
        }
    }
    config
}

fn config(setting: &Setting, end: usize) -> TransportConfig {
    let policy = setting.policies[end];
    let mut config = TransportConfig::new(Arc::new(move || policy.scheduler()));
    config.set_congestion(setting.algorithms[end].into());
    config
        .set_multipath(setting.paths[end].map_or(Multipath::Off, |highest| Multipath::UpTo(PathId(highest))));
    config.set_idle_timeout(IDLE);
    config.set_handshake_timeout(IDLE);
    config.set_rotation(Rotation { packets: setting.rotation, ..Rotation::default() });
    config.set_greasing(setting.greasing[end]);
    // The suite with the lowest limits: none is raised.
    let suite = AeadLimits::of(Suite::Aes128Gcm);
    config.set_aead_limits(setting.wear[end].map(|packets| AeadLimits { confidentiality: packets, ..suite }));
    if setting.preferring && end == 1 {
        config.set_preferred_addresses(PreferredAddresses { ipv4: Some(PREFERRED), ipv6: None });
    }
    if setting.narrow[end] {
        config.set_streams(StreamLimits {
            max_data: 6_000,
            stream_data_bidi_local: 2_000,
            stream_data_bidi_remote: 3_000,
            stream_data_uni: 4_000,
            max_streams_bidi: 3,
            max_streams_uni: 2,
            send_buffer: 5_000,
            max_window: 20_000,
        });
        config.set_datagram_queue(3_000);
    }
    config
}
