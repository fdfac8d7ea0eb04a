//! The slots of an endpoint that clients hold: handshakes under way, and connections.

use crate::connection::ClientAddress;
use crate::endpoint::{ConnectionHandle, EndpointConfig};
use crate::hashing::{KeyedMap, shrink};
use crate::slots::{Holder, Holders, Prefix, Room, SlotId, Slots, Tenure, host};
use crate::time::Instant;
use std::net::SocketAddr;
use std::time::Duration;

/// The time after which a handshake gives way to any other, once there is no slot left: whoever means it completes it within a
/// few round trips.
const PATIENCE: Duration = Duration::from_secs(1);

/// The group that a client's handshake counts to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Origin {
    /// All clients that have not proven an address, together, so that nobody fills the share of another by writing in
    /// its name.
    Unproven,
    /// A network, from which its client has proven to receive.
    Network(Prefix),
}

/// A client as it asks for a connection, by what decides whether it gets one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Client {
    /// In handshakes.
    handshake: Holder,
    /// In connections, where only addresses that were proven count.
    connection: Holder,
    address: ClientAddress,
}

impl Client {
    /// The holder that its handshake counts to.
    pub fn handshake(self) -> Holder {
        self.handshake
    }
}

/// The reason for which a client gets no slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Short {
    /// There are as many handshakes as there may be.
    Handshakes,
    /// There are as many connections as there may be.
    Connections,
}

/// The slots that one connection of a peer holds.
#[derive(Clone, Copy, Debug)]
enum Holding {
    /// It is being set up, as a connection of this holder.
    Handshake(SlotId, Holder),
    /// It is complete.
    Connection(SlotId),
}

/// The slots that peers hold.
#[derive(Debug)]
pub struct Clients {
    holders: Holders,
    handshakes: Slots<ConnectionHandle>,
    connections: Slots<ConnectionHandle>,
    holdings: KeyedMap<ConnectionHandle, Holding>,
}

impl Clients {
    /// Makes as many slots as `config` allows, none of them taken.
    pub fn new(config: &EndpointConfig) -> Self {
        Self {
            holders: Holders::default(),
            handshakes: Slots::new(config.max_handshaking, Tenure::Passing(PATIENCE)),
            connections: Slots::new(config.most_connections(), Tenure::Lasting),
            holdings: KeyedMap::default(),
        }
    }

    /// The client at `from`, whose address is `address`.
    pub fn client(&self, from: SocketAddr, address: ClientAddress) -> Client {
        let (network, host) = (Origin::Network(Prefix::of(from.ip())), host(from.ip()));
        let origin = if address == ClientAddress::Proven { network } else { Origin::Unproven };
        Client {
            handshake: self.holders.of(&origin, &host),
            connection: self.holders.of(&network, &host),
            address,
        }
    }

    /// Handshakes under way.
    pub fn handshaking(&self) -> usize {
        self.handshakes.len()
    }

    /// Returns true if there are as many connections, or handshakes, as there may be.
    pub fn is_full(&self) -> bool {
        self.handshakes.is_full() || self.connections.is_full()
    }

    /// Slots that those of the network of `client` hold, and of those its own address: whoever has less is served first.
    pub fn load(&self, client: Client) -> (usize, usize) {
        let Client { handshake, connection, .. } = client;
        let of_network = self.handshakes.of_group(handshake) + self.connections.of_group(connection);
        (of_network, self.handshakes.of_member(handshake) + self.connections.of_member(connection))
    }

    /// The handshake that gives way to one of `client` at `now`, `None` if none has to.
    ///
    /// # Errors
    /// There is no slot for it.
    pub fn room(&self, client: Client, now: Instant) -> Result<Option<ConnectionHandle>, Short> {
        match self.connections.room(client.connection, now) {
            Room::Free => {}
            // Anybody can write in the name of a network that holds little: that takes nothing from others.
            Room::Instead(_) if client.address == ClientAddress::Proven => {}
            Room::Instead(_) | Room::None => return Err(Short::Connections),
        }
        match self.handshakes.room(client.handshake, now) {
            Room::Free => Ok(None),
            Room::Instead(id) => Ok(self.handshakes.get(id).copied()),
            Room::None => Err(Short::Handshakes),
        }
    }

    /// `client` begins its handshake as `handle`.
    pub fn begin(&mut self, handle: ConnectionHandle, client: Client, now: Instant) {
        let id = self.handshakes.insert(client.handshake, handle, now);
        self.holdings.insert(handle, Holding::Handshake(id, client.connection));
    }

    /// The handshake of `handle` is complete. The connection that gives way to it, itself if no other does.
    pub fn complete(&mut self, handle: ConnectionHandle, now: Instant) -> Option<ConnectionHandle> {
        let Some(Holding::Handshake(id, holder)) = self.holdings.get(&handle).copied() else { return None };
        self.handshakes.remove(id);
        let gone = match self.connections.room(holder, now) {
            Room::Free => None,
            Room::Instead(id) => self.connections.get(id).copied(),
            Room::None => Some(handle),
        };
        let id = self.connections.insert(holder, handle, now);
        self.holdings.insert(handle, Holding::Connection(id));
        gone
    }

    /// The connection is gone.
    pub fn forget(&mut self, handle: ConnectionHandle) {
        match self.holdings.remove(&handle) {
            Some(Holding::Handshake(id, _)) => drop(self.handshakes.remove(id)),
            Some(Holding::Connection(id)) => drop(self.connections.remove(id)),
            None => {}
        }
        shrink(&mut self.holdings);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unproven_clients_count_together_and_proven_ones_to_their_networks() {
        let mut clients = Clients::new(&EndpointConfig::default());
        let [a, b] = [[10, 0, 0, 1], [10, 9, 9, 9]].map(|ip| SocketAddr::from((ip, 1)));
        let load = |clients: &Clients, from, address| clients.load(clients.client(from, address)).0;
        let unproven = clients.client(a, ClientAddress::Unproven);
        clients.begin(ConnectionHandle(1), unproven, Instant::ZERO);
        let loads = |clients: &Clients| {
            [a, b].map(|from| {
                [ClientAddress::Unproven, ClientAddress::Proven].map(|address| load(clients, from, address))
            })
        };
        assert_eq!(loads(&clients), [[1, 0], [1, 0]], "anybody may have written in the name of a");
        let proven = clients.client(a, ClientAddress::Proven);
        clients.begin(ConnectionHandle(2), proven, Instant::ZERO);
        assert_eq!(loads(&clients), [[1, 1], [1, 0]]);
    }

    #[test]
    fn handshakes_and_connections_of_a_client_add_up() {
        let mut clients = Clients::new(&EndpointConfig::default());
        let client = clients.client(SocketAddr::from(([10, 0, 0, 1], 1)), ClientAddress::Proven);
        for n in 0..3 {
            clients.begin(ConnectionHandle(n), client, Instant::ZERO);
        }
        assert_eq!(clients.load(client), (3, 3));
        assert_eq!(clients.complete(ConnectionHandle(0), Instant::ZERO), None);
        assert_eq!((clients.load(client), clients.handshaking()), ((3, 3), 2));
        clients.forget(ConnectionHandle(0));
        assert_eq!(clients.load(client), (2, 2));
    }
}
