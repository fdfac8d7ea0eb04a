//! Clients that wait for a decision of the application ([`Decision::Defer`]): their first datagrams are kept until it comes.

use super::{Candidate, Decision};
use crate::connection::{Datagram, InitialIds};
use crate::endpoint::gate::FirstInitial;
use crate::time::Instant;
use crate::wire::connection_id::ConnectionId;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Clients that wait at most.
const MOST: usize = 256;
/// Datagrams of a client that are kept: a ClientHello with post-quantum keys takes two, and each comes again after a while.
const MOST_DATAGRAMS: usize = 8;
/// The largest of them, in bytes, which bounds the memory of all to 4 MiB.
const LARGEST: usize = 2_048;
/// The time after which a client that nobody decided about gives way to others: it has given up by then.
const PATIENCE: Duration = Duration::from_secs(10);

/// A client that waits.
#[derive(Debug)]
pub struct DeferredClient {
    /// Its first datagrams, one at least.
    pub datagrams: Vec<Datagram>,
    /// The application's view of it.
    pub candidate: Candidate,
    ids: InitialIds,
    token: Bytes,
    since: Instant,
}

impl DeferredClient {
    /// Its first Initial packet.
    pub fn initial(&self) -> FirstInitial<'_> {
        let Candidate { version, remote: from, .. } = self.candidate;
        FirstInitial { version, ids: self.ids, token: &self.token, from }
    }
}

/// The clients that wait, by number.
#[derive(Debug, Default)]
pub struct DeferredClients {
    waiting: BTreeMap<u64, DeferredClient>,
    /// Numbers of those that the application was not told of.
    news: VecDeque<u64>,
    last: u64,
}

impl DeferredClients {
    /// Returns true if so many wait that those who come have to prove their addresses first.
    pub fn is_crowded(&self) -> bool {
        self.waiting.len() >= MOST / 2
    }

    /// Those who have waited for too long give way.
    pub fn expire(&mut self, now: Instant) {
        let is_late = |client: &DeferredClient| now.since(client.since) > PATIENCE;
        while let Some(oldest) = self.waiting.first_entry().filter(|oldest| is_late(oldest.get())) {
            oldest.remove();
        }
    }

    /// Has a client wait, of which `datagram` holds `initial`. False if too many do.
    pub fn insert(
        &mut self,
        datagram: &Datagram,
        initial: &FirstInitial<'_>,
        candidate: Candidate,
        now: Instant,
    ) -> bool {
        if self.waiting.len() >= MOST || datagram.bytes.len() > LARGEST {
            return false;
        }
        self.last += 1;
        let client = DeferredClient {
            datagrams: vec![copy(datagram)],
            candidate: Candidate { number: self.last, ..candidate },
            ids: initial.ids,
            token: Bytes::copy_from_slice(initial.token),
            since: now,
        };
        self.waiting.insert(self.last, client);
        self.news.push_back(self.last);
        true
    }

    /// Takes in another datagram of a client that waits: one from `remote` to the connection ID of its choice. Returns true
    /// if there is such a client.
    pub fn take_in(&mut self, datagram: &Datagram, destination: &ConnectionId) -> bool {
        let is_from = |client: &&mut DeferredClient| {
            client.candidate.remote == datagram.remote && client.ids.destination == *destination
        };
        let Some(client) = self.waiting.values_mut().find(is_from) else { return false };
        if client.datagrams.len() < MOST_DATAGRAMS && datagram.bytes.len() <= LARGEST {
            client.datagrams.push(copy(datagram));
        }
        true
    }

    /// The next client that the application was not told of.
    pub fn next(&mut self) -> Option<Candidate> {
        while let Some(number) = self.news.pop_front() {
            if let Some(client) = self.waiting.get(&number) {
                return Some(client.candidate);
            }
        }
        None
    }

    /// Takes the client `number` off, about which the application decided.
    pub fn remove(&mut self, number: u64) -> Option<DeferredClient> {
        self.waiting.remove(&number)
    }

    /// Has a client wait on that was taken off.
    pub fn put_back(&mut self, client: DeferredClient) {
        self.waiting.insert(client.candidate.number, client);
    }

    /// Returns true if the client `number` waits.
    pub fn has(&self, number: u64) -> bool {
        self.waiting.contains_key(&number)
    }

    /// Returns true if nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// A copy keeps no more memory alive than it has itself.
fn copy(datagram: &Datagram) -> Datagram {
    Datagram { bytes: BytesMut::from(&datagram.bytes[..]), ..*datagram }
}

/// Returns the decision about a client of whom the application wants to decide later, if it has to be made at once.
pub fn at_once(candidate: &Candidate, is_crowded: bool) -> Decision {
    let is_unproven = candidate.address == crate::connection::ClientAddress::Unproven;
    if is_crowded && is_unproven { Decision::Retry } else { Decision::Defer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{ClientAddress, Ecn};
    use crate::wire::version::Version;
    use std::net::SocketAddr;

    const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 443);

    fn address(port: u16) -> SocketAddr {
        SocketAddr::new(LOCAL.ip(), port)
    }

    fn id(byte: u8) -> ConnectionId {
        ConnectionId::new(&[byte; 8]).expect("it is short enough")
    }

    fn datagram(port: u16, length: usize) -> Datagram {
        let bytes = BytesMut::from(&vec![0; length][..]);
        Datagram { local: LOCAL, remote: address(port), ecn: Ecn::NotEct, bytes }
    }

    /// Has a client wait that sent so many bytes from `port` to connection ID `destination`.
    fn insert(clients: &mut DeferredClients, port: u16, destination: u8, length: usize) -> bool {
        let (remote, version) = (address(port), Version::V1);
        let ids = InitialIds { destination: id(destination), source: id(0) };
        let candidate = Candidate {
            local: LOCAL,
            remote,
            address: ClientAddress::Unproven,
            version,
            connections: 0,
            handshaking: 0,
            number: 0,
            proposal: Decision::Accept,
        };
        let initial = FirstInitial { version, ids, token: &[], from: remote };
        clients.insert(&datagram(port, length), &initial, candidate, Instant::ZERO)
    }

    #[test]
    fn datagrams_are_a_clients_by_its_address_and_connection_id_and_few_and_small_ones_are_kept() {
        let mut clients = DeferredClients::default();
        assert!(clients.is_empty());
        assert!(insert(&mut clients, 1, 1, LARGEST) && !insert(&mut clients, 2, 2, LARGEST + 1));
        assert!(!clients.is_empty() && clients.has(1) && !clients.has(2));
        assert!(!clients.take_in(&datagram(1, 100), &id(2)), "another connection");
        assert!(!clients.take_in(&datagram(2, 100), &id(1)), "another address");
        assert!(clients.take_in(&datagram(1, LARGEST + 1), &id(1)), "it is known, and not kept");
        for _ in 0..2 * MOST_DATAGRAMS {
            assert!(clients.take_in(&datagram(1, LARGEST), &id(1)));
        }
        let kept = clients.remove(1).map(|client| client.datagrams).unwrap_or_default();
        assert!(kept.len() == MOST_DATAGRAMS && kept.iter().all(|one| one.bytes.len() == LARGEST));
    }

    #[test]
    fn clients_wait_for_their_time_and_no_more_than_there_is_room_for() {
        let mut clients = DeferredClients::default();
        let all = (0..300).filter(|port| insert(&mut clients, *port, 1, 100)).count();
        assert_eq!(all, MOST);
        clients.expire(Instant::ZERO + PATIENCE);
        assert_eq!(clients.waiting.len(), MOST);
        clients.expire(Instant::ZERO + PATIENCE + Duration::from_nanos(1));
        assert!(clients.is_empty());
    }
}
