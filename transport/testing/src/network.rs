//! The network: addresses with a channel each, and the datagrams under way.

use bytes::{Bytes, BytesMut};
use hvq::runtime::{Datagram, Ecn};
use hvq_emulation::{Admission, Channel, ChannelSpec, Direction, TraceError};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::task::Waker;
use std::time::Duration;

/// Datagrams that wait in a socket at most; beyond it they are lost.
const ROOM: usize = 4_096;
/// The largest UDP payload that passes, over IPv4 and IPv6: that of Ethernet.
const LARGEST: (usize, usize) = (1_472, 1_452);
/// The first port of sockets that ask for any.
const EPHEMERAL: u16 = 49_152;

/// An event of a datagram on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceEvent {
    /// The time since the simulation began.
    pub at: Duration,
    /// The sender.
    pub from: SocketAddr,
    /// The receiver.
    pub to: SocketAddr,
    /// Bytes of UDP payload.
    pub bytes: usize,
    /// The event.
    pub passage: Passage,
}

/// The step of a datagram's way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passage {
    /// A socket sent it.
    Sent,
    /// It is in the socket that it was sent to.
    Arrived,
    /// A channel did not take it, it was too large, or nobody is there. A channel that is cut loses what is in it without a word.
    Lost,
}

/// A datagram under way.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) ecn: Ecn,
    pub(crate) bytes: Bytes,
}

#[derive(Debug, Default)]
struct Inbox {
    datagrams: VecDeque<Datagram>,
    reader: Option<Waker>,
}

#[derive(Debug)]
pub(crate) struct Network {
    seed: u64,
    channels: BTreeMap<IpAddr, Channel<Packet>>,
    inboxes: BTreeMap<SocketAddr, Inbox>,
    next_port: u16,
    trace: Option<Vec<TraceEvent>>,
    woken: Vec<Waker>,
}

impl Network {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            channels: BTreeMap::new(),
            inboxes: BTreeMap::new(),
            next_port: EPHEMERAL,
            trace: None,
            woken: Vec::new(),
        }
    }

    /// Adds an address and its channel; false if it is there already.
    pub(crate) fn add(&mut self, address: IpAddr, spec: &ChannelSpec) -> Result<bool, TraceError> {
        if self.channels.contains_key(&address) {
            return Ok(false);
        }
        let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(self.channels.len() as u64);
        self.channels.insert(address, Channel::new(spec, seed)?);
        Ok(true)
    }

    /// The channel of an address.
    pub(crate) fn channel(&mut self, address: IpAddr) -> Option<&mut Channel<Packet>> {
        self.channels.get_mut(&address)
    }

    /// Binds a socket; `None` if the address is taken, or no port is left.
    pub(crate) fn bind(&mut self, mut local: SocketAddr) -> Option<SocketAddr> {
        if local.port() == 0 {
            for _ in EPHEMERAL..=u16::MAX {
                local.set_port(self.next_port);
                self.next_port = self.next_port.checked_add(1).unwrap_or(EPHEMERAL);
                if !self.inboxes.contains_key(&local) {
                    break;
                }
            }
        }
        if self.inboxes.contains_key(&local) {
            return None;
        }
        self.inboxes.insert(local, Inbox::default());
        Some(local)
    }

    /// Closes a socket: what arrives there from now on is lost.
    pub(crate) fn unbind(&mut self, local: SocketAddr) {
        self.inboxes.remove(&local);
    }

    /// Sends a datagram.
    pub(crate) fn send(&mut self, now: Duration, packet: Packet) {
        self.note(now, &packet, Passage::Sent);
        let most = if packet.to.is_ipv4() { LARGEST.0 } else { LARGEST.1 };
        if packet.bytes.len() > most {
            return self.note(now, &packet, Passage::Lost);
        }
        self.enter(now, packet, Direction::Up);
    }

    /// Takes what waits at `local`, or has `reader` woken when something arrives.
    pub(crate) fn receive(
        &mut self,
        local: SocketAddr,
        reader: &Waker,
        datagrams: &mut Vec<Datagram>,
    ) -> bool {
        let Some(inbox) = self.inboxes.get_mut(&local) else { return false };
        if inbox.datagrams.is_empty() {
            inbox.reader = Some(reader.clone());
            return false;
        }
        datagrams.extend(inbox.datagrams.drain(..));
        true
    }

    /// The time at which the next datagram leaves a channel.
    pub(crate) fn next_deadline(&self) -> Option<Duration> {
        self.next().map(|(at, _)| at)
    }

    /// Moves what has left its channel by `now`; whom it arrived for.
    pub(crate) fn deliver(&mut self, now: Duration) -> Vec<Waker> {
        while let Some((at, address)) = self.next().filter(|(at, _)| *at <= now) {
            let channel = self.channels.get_mut(&address);
            let Some((direction, departure)) = channel.and_then(|channel| channel.dequeue(at)) else {
                continue;
            };
            let mut packet = departure.packet;
            if departure.congested && packet.ecn != Ecn::NotEct {
                packet.ecn = Ecn::Ce;
            }
            match direction {
                Direction::Up => self.enter(departure.at, packet, Direction::Down),
                Direction::Down => self.arrive(departure.at, &packet),
            }
        }
        std::mem::take(&mut self.woken)
    }

    pub(crate) fn record(&mut self) {
        self.trace = Some(Vec::new());
    }

    pub(crate) fn trace(&self) -> &[TraceEvent] {
        self.trace.as_deref().unwrap_or_default()
    }

    fn next(&self) -> Option<(Duration, IpAddr)> {
        let deadlines =
            self.channels.iter().filter_map(|(address, channel)| Some((channel.next_deadline()?, *address)));
        deadlines.min()
    }

    /// Hands `packet` to the channel of its sender (up), or of its receiver (down).
    fn enter(&mut self, now: Duration, packet: Packet, direction: Direction) {
        let address = if direction == Direction::Up { packet.from.ip() } else { packet.to.ip() };
        let size = packet.bytes.len();
        let Some(channel) = self.channels.get_mut(&address) else {
            return self.note(now, &packet, Passage::Lost);
        };
        if let Admission::Dropped(_) = channel.enqueue(direction, now, packet.clone(), size) {
            self.note(now, &packet, Passage::Lost);
        }
    }

    fn arrive(&mut self, now: Duration, packet: &Packet) {
        let inbox = self.inboxes.get_mut(&packet.to).filter(|inbox| inbox.datagrams.len() < ROOM);
        let Some(inbox) = inbox else { return self.note(now, packet, Passage::Lost) };
        inbox.datagrams.push_back(Datagram {
            local: packet.to,
            remote: packet.from,
            ecn: packet.ecn,
            bytes: BytesMut::from(&packet.bytes[..]),
        });
        self.woken.extend(inbox.reader.take());
        self.note(now, packet, Passage::Arrived);
    }

    fn note(&mut self, at: Duration, packet: &Packet, passage: Passage) {
        let event = TraceEvent { at, from: packet.from, to: packet.to, bytes: packet.bytes.len(), passage };
        if let Some(trace) = &mut self.trace {
            trace.push(event);
        }
    }
}
