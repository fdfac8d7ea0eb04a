//! The order in which handshakes begin when more are asked for than there is time for: the client whose network holds the
//! least is next, however many the others sent.

use crate::connection::Datagram;
use crate::endpoint::clients::Client;
use crate::slots::{Room, Slots, Tenure};
use crate::time::Instant;
use bytes::BytesMut;
use std::time::Duration;

/// Handshakes that begin before the caller gets to say what else arrived. One takes some 0.2 to 0.5 ms of signing and key
/// exchange, so that this is what everybody else waits for a flood of them, and what keeps the caller from hearing datagrams as
/// fast as they come. A new round costs little beside it.
const TURNS: usize = 2;
/// Datagrams that wait at most.
const MOST: usize = 256;
/// The largest of them in bytes, which bounds the memory of all to 1 MiB.
const LARGEST: usize = 4_096;

/// A ClientHello that waits, or a part of one.
#[derive(Debug)]
struct Waiting {
    client: Client,
    datagram: Datagram,
}

/// The place of somebody who has to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// One that was free.
    Free,
    /// The place of another, who gave way.
    Instead,
    /// None.
    None,
}

/// Turns that are left, and who waits for one.
#[derive(Debug)]
pub struct Turns {
    left: usize,
    waiting: Slots<Waiting>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { left: TURNS, waiting: Slots::new(MOST, Tenure::Passing(Duration::ZERO)) }
    }
}

impl Turns {
    /// Returns true if there is a turn now; if so it is taken.
    pub fn take(&mut self) -> bool {
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }

    /// Has `datagram` of `client` wait: if no place is free, the oldest of those who sent the most gives way.
    pub fn wait(&mut self, client: Client, datagram: &Datagram, now: Instant) -> Place {
        let holder = client.handshake();
        if datagram.bytes.len() > LARGEST {
            return Place::None;
        }
        let place = match self.waiting.room(holder, now) {
            Room::Free => Place::Free,
            Room::Instead(id) => {
                self.waiting.remove(id);
                Place::Instead
            }
            Room::None => return Place::None,
        };
        // A copy keeps no more memory alive than it has itself.
        let datagram = Datagram { bytes: BytesMut::from(&datagram.bytes[..]), ..*datagram };
        self.waiting.insert(holder, Waiting { client, datagram }, now);
        place
    }

    /// Begins a new round, in which there are turns again. Returns true if somebody waits for one.
    pub fn begin(&mut self) -> bool {
        self.left = TURNS;
        !self.waiting.is_empty()
    }

    /// Takes the next client's datagram while turns are left: the first of those for whom `load` is the least.
    pub fn next<L: Ord>(&mut self, load: impl Fn(Client) -> L) -> Option<Datagram> {
        if self.left == 0 {
            return None;
        }
        let waiting = self.waiting.iter().map(|(id, _, waiting)| (load(waiting.client), id));
        let (_, id) = waiting.min()?;
        self.waiting.remove(id).map(|waiting| waiting.datagram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{ClientAddress, Ecn};
    use crate::endpoint::EndpointConfig;
    use crate::endpoint::clients::Clients;
    use std::net::SocketAddr;

    #[test]
    fn the_largest_datagram_that_waits_has_four_kibibytes() {
        let (mut turns, from) = (Turns::default(), SocketAddr::from(([10, 0, 0, 1], 1)));
        let client = Clients::new(&EndpointConfig::default()).client(from, ClientAddress::Unproven);
        for (length, place) in [(1_200, Place::Free), (4_096, Place::Free), (4_097, Place::None)] {
            let bytes = BytesMut::from(&vec![0; length][..]);
            let datagram = Datagram { local: from, remote: from, ecn: Ecn::NotEct, bytes };
            assert_eq!(turns.wait(client, &datagram, Instant::ZERO), place, "{length}");
        }
    }
}
