//! The network between client and server: a relay in a thread of its own, with a NAT for the client, that records what
//! both sides see.

pub(crate) mod condition;
pub(crate) mod record;
mod wire;

use condition::{AddressChange, Condition, Trouble};
use hvq_emulation::relay::{Buffers, Datagram, EcnCodepoint, RelaySocket};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use record::{Mark, Record, RelayRecords, Sender};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wire::Wire;

/// The thread looks around at least this often.
const LONGEST_WAIT: Duration = Duration::from_millis(20);

/// A network that runs. Dropping it leaves the thread to itself: see [`RelayNetwork::stop`].
#[derive(Debug)]
pub(crate) struct RelayNetwork {
    /// The addresses at which clients find the server: one for each of the server's.
    pub(crate) fronts: Vec<SocketAddr>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<RelayRecords>,
}

impl RelayNetwork {
    /// A network to the server at `servers`, whose dice have this `seed`.
    ///
    /// # Errors
    /// There are no sockets.
    pub(crate) fn start(condition: &Condition, servers: &[SocketAddr], seed: u64) -> io::Result<Self> {
        let fronts = servers.iter().map(|server| {
            let socket = RelaySocket::bind(SocketAddr::new(home(*server), 0))?;
            Ok(Front { address: socket.local_addr()?, socket, server: *server })
        });
        let fronts = fronts.collect::<io::Result<Vec<_>>>()?;
        let addresses = fronts.iter().map(|front| front.address).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = stop.clone();
        let engine = Engine::new(condition.clone(), fronts, seed);
        let thread = std::thread::Builder::new().spawn(move || engine.run(&stopping))?;
        Ok(Self { fronts: addresses, stop, thread })
    }

    /// Ends it, and gives what was seen.
    pub(crate) fn stop(self) -> RelayRecords {
        self.stop.store(true, Ordering::Release);
        self.thread.join().unwrap_or_default()
    }
}

/// The address of this host that a peer at `remote` is reached from.
fn home(remote: SocketAddr) -> IpAddr {
    match remote {
        SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    }
}

/// The address that clients send to, and the server behind it.
#[derive(Debug)]
struct Front {
    address: SocketAddr,
    socket: RelaySocket,
    server: SocketAddr,
}

/// The binding that the NAT keeps for a client that sends to one of the fronts.
#[derive(Debug)]
struct Binding {
    client: SocketAddr,
    front: usize,
    /// The addresses that the server sees; the last is in use, and datagrams that arrive at the others are lost.
    outside: Vec<(RelaySocket, SocketAddr)>,
}

/// The description of a packet on its way: its binding, and its mark.
type About = (usize, Mark);

struct Engine {
    condition: Condition,
    fronts: Vec<Front>,
    bindings: Vec<Binding>,
    up: Wire<About>,
    down: Wire<About>,
    rng: StdRng,
    /// The time at which the first datagram of a client came.
    begun: Option<Instant>,
    /// The time at which the NAT forgets next.
    rebinding: Option<Duration>,
    recording: RelayRecords,
    buffers: Buffers,
}

impl Engine {
    fn new(condition: Condition, fronts: Vec<Front>, seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let rebinding = match condition.trouble {
            Trouble::Rebinding { first, .. } => Some(first),
            _ => None,
        };
        let mut dice = || StdRng::seed_from_u64(rng.random());
        Self {
            up: Wire::new(Sender::Client, condition.clone(), dice()),
            down: Wire::new(Sender::Server, condition.clone(), dice()),
            condition,
            fronts,
            bindings: Vec::new(),
            rng,
            begun: None,
            rebinding,
            recording: RelayRecords::default(),
            buffers: Buffers::new(),
        }
    }

    fn run(mut self, stop: &AtomicBool) -> RelayRecords {
        while !stop.load(Ordering::Acquire) {
            self.deliver();
            self.rebind();
            self.wait();
            for front in 0..self.fronts.len() {
                self.receive_from_clients(front);
            }
            for binding in 0..self.bindings.len() {
                self.receive_from_server(binding);
            }
        }
        self.recording
    }

    fn now(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }

    /// Waits for a datagram, an arrival or a change of bindings.
    fn wait(&self) {
        let due = [self.up.next_arrival(), self.down.next_arrival(), self.rebinding];
        let next = due.into_iter().flatten().min().filter(|_| self.begun.is_some());
        let left = next.map_or(LONGEST_WAIT, |at| at.saturating_sub(self.now()).min(LONGEST_WAIT));
        let timeout = Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() };
        let fronts = self.fronts.iter().map(|front| &front.socket);
        let outside = self.bindings.iter().flat_map(|binding| &binding.outside).map(|(socket, _)| socket);
        let mut sockets: Vec<_> =
            fronts.chain(outside).map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        // A wait that is interrupted is one that ended early.
        let _ready = poll(&mut sockets, Some(&timeout));
    }

    fn receive_from_clients(&mut self, front: usize) {
        for datagram in receive(&self.fronts[front].socket, &mut self.buffers) {
            self.begun.get_or_insert_with(Instant::now);
            let (now, client) = (self.now(), datagram.source);
            let Some(binding) = self.binding(client, front) else { continue };
            let mark = mark(datagram.ecn);
            self.recording.left.push(Record {
                at: now,
                sender: Sender::Client,
                source: client,
                destination: self.fronts[front].address,
                client,
                mark,
                payload: datagram.payload.clone(),
            });
            self.up.enter(now, (binding, mark), datagram.payload);
        }
    }

    fn receive_from_server(&mut self, index: usize) {
        let current = self.bindings[index].outside.len() - 1;
        for outside in 0..=current {
            for datagram in receive(&self.bindings[index].outside[outside].0, &mut self.buffers) {
                let (now, binding) = (self.now(), &self.bindings[index]);
                let mark = mark(datagram.ecn);
                self.recording.right.push(Record {
                    at: now,
                    sender: Sender::Server,
                    source: datagram.source,
                    destination: binding.outside[outside].1,
                    client: binding.client,
                    mark,
                    payload: datagram.payload.clone(),
                });
                if outside == current {
                    self.down.enter(now, (index, mark), datagram.payload);
                }
            }
        }
    }

    /// The binding of `client` towards `front`, a new one if need be.
    fn binding(&mut self, client: SocketAddr, front: usize) -> Option<usize> {
        let known =
            self.bindings.iter().position(|binding| binding.client == client && binding.front == front);
        if known.is_some() {
            return known;
        }
        let server = self.fronts[front].server;
        let outside = vec![bind(home(server)).ok()?];
        self.bindings.push(Binding { client, front, outside });
        Some(self.bindings.len() - 1)
    }

    /// Gives every client another port, and another address if need be.
    fn rebind(&mut self) {
        let Trouble::Rebinding { every, change, .. } = self.condition.trouble else { return };
        if self.begun.is_none() || self.rebinding.is_none_or(|at| at > self.now()) {
            return;
        }
        self.rebinding = self.rebinding.map(|at| at + every);
        for binding in &mut self.bindings {
            let mut address = home(self.fronts[binding.front].server);
            if let (AddressChange::Address, IpAddr::V4(_)) = (change, address) {
                address = Ipv4Addr::new(127, 0, self.rng.random_range(1..=254), 1).into();
            }
            if let Ok(fresh) = bind(address) {
                binding.outside.push(fresh);
            }
        }
    }

    /// Hands over what has arrived.
    fn deliver(&mut self) {
        let now = self.now();
        while let Some(((index, mark), payload)) = self.up.leave(now) {
            let Some(payload) = payload else { continue };
            let binding = &self.bindings[index];
            let server = self.fronts[binding.front].server;
            let Some((socket, source)) = binding.outside.last() else { continue };
            // What the system does not take is lost.
            let _sent = socket.send(server, None, codepoint(mark), &payload);
            self.recording.right.push(Record {
                at: now,
                sender: Sender::Client,
                source: *source,
                destination: server,
                client: binding.client,
                mark,
                payload,
            });
        }
        while let Some(((index, mark), payload)) = self.down.leave(now) {
            let Some(payload) = payload else { continue };
            let binding = &self.bindings[index];
            let front = &self.fronts[binding.front];
            let _sent = front.socket.send(binding.client, None, codepoint(mark), &payload);
            self.recording.left.push(Record {
                at: now,
                sender: Sender::Server,
                source: front.address,
                destination: binding.client,
                client: binding.client,
                mark,
                payload,
            });
        }
    }
}

/// A socket at `address` and where it is.
fn bind(address: IpAddr) -> io::Result<(RelaySocket, SocketAddr)> {
    let socket = RelaySocket::bind(SocketAddr::new(address, 0))?;
    let bound = socket.local_addr()?;
    Ok((socket, bound))
}

/// Everything that waits at `socket`.
fn receive(socket: &RelaySocket, buffers: &mut Buffers) -> Vec<Datagram> {
    let mut received = Vec::new();
    while socket.receive(buffers, |datagram| received.push(datagram)).is_ok() {}
    received
}

fn mark(codepoint: Option<EcnCodepoint>) -> Mark {
    match codepoint {
        None => Mark::None,
        Some(EcnCodepoint::Ect0) => Mark::Ect0,
        Some(EcnCodepoint::Ect1) => Mark::Ect1,
        Some(EcnCodepoint::Ce) => Mark::Ce,
    }
}

fn codepoint(mark: Mark) -> Option<EcnCodepoint> {
    match mark {
        Mark::None => None,
        Mark::Ect0 => Some(EcnCodepoint::Ect0),
        Mark::Ect1 => Some(EcnCodepoint::Ect1),
        Mark::Ce => Some(EcnCodepoint::Ce),
    }
}

/// The payload of `records`, for tests.
#[cfg(test)]
fn payloads(records: &[Record]) -> Vec<bytes::Bytes> {
    records.iter().map(|record| record.payload.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    fn socket() -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket
    }

    #[test]
    fn a_rebinding_shows_the_server_another_address_and_loses_what_goes_to_the_old_one() {
        let every = Duration::from_millis(200);
        let trouble = Trouble::Rebinding { first: every, every, change: AddressChange::Address };
        let (server, client) = (socket(), socket());
        let condition = Condition::usual(trouble);
        let network = RelayNetwork::start(&condition, &[server.local_addr().unwrap()], 1).unwrap();
        let mut buffer = [0; 100];
        client.send_to(b"one", network.fronts[0]).unwrap();
        let (_, first) = server.recv_from(&mut buffer).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        server.send_to(b"lost", first).unwrap();
        client.send_to(b"two", network.fronts[0]).unwrap();
        let (_, second) = server.recv_from(&mut buffer).unwrap();
        assert_ne!(first.ip(), second.ip());
        server.send_to(b"three", second).unwrap();
        let (length, from) = client.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..length], from), (&b"three"[..], network.fronts[0]));
        let recording = network.stop();
        assert_eq!(payloads(&recording.left), ["one", "two", "three"]);
        let mut right = payloads(&recording.right);
        right.sort();
        assert_eq!(right, ["lost", "one", "three", "two"]);
    }
}
