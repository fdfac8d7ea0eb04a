//! The clients of a relay: each has a socket towards the server, and is forgotten when silent.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::socket::RelaySocket;

/// A client's number; never used again in the life of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClientId(u64);

#[derive(Debug)]
pub(super) struct Client {
    pub(super) address: SocketAddr,
    /// The relay's address that the client knows.
    pub(super) reply_from: Option<IpAddr>,
    pub(super) socket: RelaySocket,
    last_active: Duration,
}

#[derive(Debug)]
pub(super) struct Clients {
    upstream: SocketAddr,
    most: usize,
    idle_expiry: Duration,
    by_address: HashMap<SocketAddr, ClientId>,
    by_id: BTreeMap<ClientId, Client>,
    next: u64,
    next_expiry: Duration,
}

impl Clients {
    pub(super) fn new(upstream: SocketAddr, most: usize, idle_expiry: Duration) -> Self {
        Self {
            upstream,
            most,
            idle_expiry,
            by_address: HashMap::new(),
            by_id: BTreeMap::new(),
            next: 0,
            next_expiry: idle_expiry,
        }
    }

    pub(super) fn upstream(&self) -> SocketAddr {
        self.upstream
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn get(&self, id: ClientId) -> Option<&Client> {
        self.by_id.get(&id)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (ClientId, &Client)> {
        self.by_id.iter().map(|(id, client)| (*id, client))
    }

    pub(super) fn touch(&mut self, id: ClientId, now: Duration) {
        if let Some(client) = self.by_id.get_mut(&id) {
            client.last_active = now;
        }
    }

    /// The client that sends from `address`, a new one if need be; fails if there are too many or no socket is to be had.
    pub(super) fn find(
        &mut self,
        address: SocketAddr,
        reply_from: Option<IpAddr>,
        now: Duration,
    ) -> io::Result<ClientId> {
        if let Some(id) = self.by_address.get(&address) {
            let id = *id;
            self.touch(id, now);
            return Ok(id);
        }
        if self.by_id.len() >= self.most {
            return Err(io::Error::other("there are as many clients as there may be"));
        }
        let any: IpAddr = match self.upstream {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = RelaySocket::bind(SocketAddr::new(any, 0))?;
        let id = ClientId(self.next);
        self.next += 1;
        self.by_address.insert(address, id);
        self.by_id.insert(id, Client { address, reply_from, socket, last_active: now });
        Ok(id)
    }

    /// Forgets who has been silent for too long; looks four times within that time.
    pub(super) fn expire(&mut self, now: Duration) {
        if now < self.next_expiry {
            return;
        }
        self.next_expiry = now.saturating_add(self.idle_expiry / 4);
        let idle_expiry = self.idle_expiry;
        self.by_id.retain(|_, client| now.saturating_sub(client.last_active) < idle_expiry);
        let by_id = &self.by_id;
        self.by_address.retain(|_, id| by_id.contains_key(id));
    }
}
