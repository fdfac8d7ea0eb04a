//! The connection IDs of Initial and Handshake packets.

use crate::wire::connection_id::ConnectionId;
use crate::wire::overhead;

/// The connection IDs of long headers.
#[derive(Debug)]
pub struct HandshakeIds {
    /// The ID of this endpoint.
    pub local: ConnectionId,
    remote: ConnectionId,
    remote_is_final: bool,
    chosen_by_peer: Vec<ConnectionId>,
}

impl HandshakeIds {
    /// The IDs at the start: the one of this endpoint, the one that packets to the peer carry, and what the peer chose for
    /// this endpoint.
    pub fn new(local: ConnectionId, remote: ConnectionId, chosen_by_peer: Vec<ConnectionId>) -> Self {
        Self { local, remote, remote_is_final: false, chosen_by_peer }
    }

    /// The peer's ID, or what the client chose for it.
    pub fn remote(&self) -> ConnectionId {
        self.remote
    }

    /// Returns true if the peer's own choice is known.
    pub fn is_remote_final(&self) -> bool {
        self.remote_is_final
    }

    /// The peer's first packet names its own choice, which no later one changes (RFC 9000 §7.2).
    pub fn fix_remote(&mut self, source: ConnectionId) {
        debug_assert!(!self.remote_is_final, "the peer chooses once");
        self.remote = source;
        self.remote_is_final = true;
    }

    /// A Retry, or another attempt, has packets go to another ID of the peer.
    pub fn redirect(&mut self, remote: ConnectionId) {
        self.remote = remote;
    }

    /// Returns true if [`Self::take_chosen_by_peer`] has any.
    #[inline]
    pub fn has_chosen_by_peer(&self) -> bool {
        !self.chosen_by_peer.is_empty()
    }

    /// Takes the IDs that the peer chose for this endpoint and the router does not know yet.
    pub fn take_chosen_by_peer(&mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.chosen_by_peer)
    }

    /// The bytes around the frames of a long-header packet at most.
    pub fn overhead(&self) -> usize {
        overhead::long(self.remote.len(), self.local.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_the_peer_chose_are_taken_once_and_long_headers_carry_both_ends_ids() {
        let id = |length: usize| ConnectionId::new(&vec![7; length]).unwrap();
        let mut it = HandshakeIds::new(id(8), id(20), vec![id(5)]);
        assert!(it.has_chosen_by_peer());
        assert_eq!(it.take_chosen_by_peer(), [id(5)]);
        assert!(!it.has_chosen_by_peer() && it.take_chosen_by_peer().is_empty());
        // RFC 9000 §17.2: first byte, version, two lengths, token length, length of 2 or 4 bytes, 4 bytes of number, and the tag.
        assert!((1 + 4 + 2 + 28 + 1 + 2 + 4 + 16..=1 + 4 + 2 + 28 + 1 + 4 + 4 + 16).contains(&it.overhead()));
    }
}
