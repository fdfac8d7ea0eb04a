//! The counters of an endpoint: datagrams that it ignored, and answers that it gave without a connection.

use crate::error::Dropped;
use std::collections::HashMap;
use std::ops::AddAssign;

/// Counters of an endpoint.
#[derive(Clone, Default, Debug)]
pub struct EndpointStats {
    /// Datagrams that no connection took, by reason.
    pub dropped: HashMap<Dropped, u64>,
    /// Version Negotiation packets sent.
    pub version_negotiations: u64,
    /// Retry packets sent.
    pub retries: u64,
    /// Connections refused without state for them.
    pub refusals: u64,
    /// Stateless resets sent.
    pub stateless_resets: u64,
    /// Connections of peers that began with a token that proves the address.
    pub proven_addresses: u64,
    /// Clients that got no slot, or had to give one up, while slots were short.
    pub slots: SlotStats,
}

/// The counters of clients that were refused or displaced while slots were short.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SlotStats {
    /// Datagrams that would have begun a handshake: there are as many as there may be, and nobody holds more than the sender.
    pub refused_handshakes: u64,
    /// Datagrams and handshakes that would have led to a connection: there are as many as there may be, likewise.
    pub refused_connections: u64,
    /// Handshakes that gave way to those of others.
    pub displaced_handshakes: u64,
    /// Connections that gave way to those of others.
    pub displaced_connections: u64,
    /// Datagrams that waited for their turn to begin a handshake and gave way, or found no place.
    pub displaced_initials: u64,
}

impl AddAssign for SlotStats {
    fn add_assign(&mut self, other: Self) {
        self.refused_handshakes += other.refused_handshakes;
        self.refused_connections += other.refused_connections;
        self.displaced_handshakes += other.displaced_handshakes;
        self.displaced_connections += other.displaced_connections;
        self.displaced_initials += other.displaced_initials;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_two_endpoints_add_up_one_by_one() {
        let of = |n: u64| SlotStats {
            refused_handshakes: n,
            refused_connections: 2 * n,
            displaced_handshakes: 3 * n,
            displaced_connections: 4 * n,
            displaced_initials: 5 * n,
        };
        let mut sum = of(10);
        sum += of(7);
        assert_eq!(sum, of(17));
    }
}
