//! The Retry packets of a moment ago: a ClientHello in several datagrams is asked for one proof, not for several.

use crate::time::Instant;
use crate::wire::connection_id::ConnectionId;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// The time within which the datagrams of one flight arrive: far less than a client waits before it repeats itself, so
/// that a Retry that got lost is sent again.
const FLIGHT: Duration = Duration::from_millis(25);
/// Clients that are remembered at most, the latest ones. Beyond it some get a second Retry, which they ignore (RFC 9000
/// §17.2.5.2).
const MOST: usize = 64;

/// The clients that were sent a Retry.
#[derive(Debug, Default)]
pub struct Retried(VecDeque<(Instant, SocketAddr, ConnectionId)>);

impl Retried {
    /// Returns true if the client at `from` whose first packet went to `destination` was told a moment before `now`.
    pub fn contains(&self, from: SocketAddr, destination: &ConnectionId, now: Instant) -> bool {
        let fresh = self.0.iter().rev().take_while(|(at, ..)| now.since(*at) < FLIGHT);
        fresh.into_iter().any(|(_, address, id)| *address == from && id == destination)
    }

    /// The client was told at `now`.
    pub fn note(&mut self, from: SocketAddr, destination: ConnectionId, now: Instant) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back((now, from, destination));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    fn id(n: u8) -> ConnectionId {
        ConnectionId::new(&[n; 8]).unwrap()
    }

    #[test]
    fn a_client_is_told_again_after_a_while_and_others_at_once() {
        let (here, there) = (SocketAddr::from(([1; 4], 1)), SocketAddr::from(([1; 4], 2)));
        let mut retried = Retried::default();
        retried.note(here, id(1), at(100));
        assert!(retried.contains(here, &id(1), at(124)));
        assert!(!retried.contains(here, &id(1), at(125)));
        assert!(!retried.contains(there, &id(1), at(100)) && !retried.contains(here, &id(2), at(100)));
    }

    #[test]
    fn a_flood_is_remembered_in_part() {
        let mut retried = Retried::default();
        for n in 0..200 {
            retried.note(SocketAddr::from(([n; 4], 1)), id(n), at(1));
        }
        assert_eq!(retried.0.len(), MOST);
        assert!(retried.contains(SocketAddr::from(([199; 4], 1)), &id(199), at(1)));
    }
}
