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
