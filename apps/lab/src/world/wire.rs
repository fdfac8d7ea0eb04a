//! A wire, which joins an address of the client and one of the server.

use crate::world::cross::nowhere;
use crate::world::medium::Medium;
use bytes::{Bytes, BytesMut};
use hvq_emulation::Direction;
use hvq_transport::connection::{Datagram, Dscp, Ecn, FourTuple};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The second byte of the addresses of servers of which there are many behind one wire.
const MACHINES: u8 = 1;

/// A packet on a wire.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The address that the sender sent it to.
    pub to: SocketAddr,
    /// The server's address: the wire's, or that of another machine behind it.
    pub server: SocketAddr,
    /// The UDP payload.
    pub payload: Bytes,
    /// The ECN codepoint.
    pub ecn: Ecn,
    /// The Differentiated Services codepoint.
    pub dscp: Dscp,
}

/// Bytes of UDP payload that went through one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Handed in by the sender.
    pub sent: u64,
    /// Handed out to the receiver.
    pub delivered: u64,
    /// Bytes of others that were handed out: no part of the above.
    pub crossed: u64,
    /// The Differentiated Services codepoint of the last datagram.
    pub dscp: Dscp,
}

/// The treatment of ECN-capable packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Marks {
    /// They keep their mark, or get that of congestion.
    #[default]
    Kept,
    /// They arrive without it.
    Cleared,
    /// They do not arrive.
    Dropped,
}

/// A channel between two addresses.
#[derive(Debug)]
pub struct Wire {
    /// The client's address.
    pub client: SocketAddr,
    /// The client's address as the server sees it: that of a NAT in between, if there is one. Datagrams to another
    /// address go nowhere.
    pub outside: SocketAddr,
    /// The server's address.
    pub server: SocketAddr,
    /// The medium that joins them.
    pub channel: Medium,
    /// The largest UDP payload that it carries, in bytes; larger ones are lost without a word.
    pub largest: usize,
    /// The treatment of ECN-capable packets.
    pub marks: Marks,
    /// ECN-capable packets that were handed in.
    pub marked: u64,
    /// From the client to the server.
    pub up: Traffic,
    /// From the server to the client.
    pub down: Traffic,
}

impl Wire {
    /// Wire number `index` over `channel`, with addresses of its own.
    pub fn new(index: u16, channel: Medium) -> Self {
        let FourTuple { local, remote } = Self::addresses(index);
        Self {
            client: local,
            outside: local,
            server: remote,
            channel,
            largest: usize::MAX,
            marks: Marks::default(),
            marked: 0,
            up: Traffic::default(),
            down: Traffic::default(),
        }
    }

    /// The addresses of wire number `index`, as the client sees them.
    pub fn addresses(index: u16) -> FourTuple {
        FourTuple {
            local: SocketAddr::from(([10, 0, 0, 1], 1000 + index)),
            remote: SocketAddr::from(([10, 0, 1, 1], 443 + index)),
        }
    }

    /// The addresses as the client sees them.
    pub fn tuple(&self) -> FourTuple {
        FourTuple { local: self.client, remote: self.server }
    }

    /// The direction of what `local` sends to `remote`, if that is this wire.
    pub(super) fn direction(&self, local: SocketAddr, remote: SocketAddr) -> Option<Direction> {
        match (local, remote) {
            (local, remote) if local == self.client && self.leads_to(remote) => Some(Direction::Up),
            (local, remote) if self.leads_to(local) && remote == self.outside => Some(Direction::Down),
            _ => None,
        }
    }

    /// The addresses of wire number `index` for one of many servers at its far end.
    pub fn addresses_of(index: u16, machine: u16) -> FourTuple {
        let FourTuple { local, mut remote } = Self::addresses(index);
        let [high, low] = machine.to_be_bytes();
        remote.set_ip([10, MACHINES, high, low].into());
        FourTuple { local, remote }
    }

    /// Returns true if `server` is at the far end: at the wire's own address, or one of many by the same port.
    fn leads_to(&self, server: SocketAddr) -> bool {
        let one_of_many = matches!(server.ip(), IpAddr::V4(ip) if ip.octets().starts_with(&[10, MACHINES]));
        server == self.server || (one_of_many && server.port() == self.server.port())
    }

    pub(super) fn enter(&mut self, direction: Direction, at: Duration, mut packet: Packet) {
        let size = packet.payload.len();
        let traffic = self.traffic(direction);
        traffic.sent += size as u64;
        traffic.dscp = packet.dscp;
        if size > self.largest {
            return;
        }
        if packet.ecn != Ecn::NotEct {
            self.marked += 1;
            match self.marks {
                Marks::Kept => {}
                Marks::Cleared => packet.ecn = Ecn::NotEct,
                Marks::Dropped => return,
            }
        }
        self.channel.enqueue(direction, at, packet, size);
    }

    pub(super) fn leave(&mut self, at: Duration) -> Option<(Direction, Packet)> {
        let (direction, departure) = self.channel.dequeue(at)?;
        if departure.packet.server != nowhere() {
            self.traffic(direction).delivered += departure.size as u64;
        }
        let mut packet = departure.packet;
        if departure.congested && packet.ecn != Ecn::NotEct {
            packet.ecn = Ecn::Ce;
        }
        Some((direction, packet))
    }

    /// A packet of others of so many bytes came out.
    pub(super) fn count_crossed(&mut self, direction: Direction, size: usize) {
        self.traffic(direction).crossed += size as u64;
    }

    /// `packet` as the receiver gets it.
    pub(super) fn datagram(&self, direction: Direction, packet: Packet) -> Datagram {
        let (local, remote) = match direction {
            Direction::Up => (packet.server, self.outside),
            Direction::Down => (self.client, packet.server),
        };
        Datagram { local, remote, ecn: packet.ecn, bytes: BytesMut::from(packet.payload) }
    }

    fn traffic(&mut self, direction: Direction) -> &mut Traffic {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }
}
