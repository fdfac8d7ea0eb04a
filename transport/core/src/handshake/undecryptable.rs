//! Packets that arrived before their keys (RFC 9001 §5.7): a few are kept, for reordering.

use crate::error::{Dropped, PacketError};
use crate::four_tuple::FourTuple;
use crate::recovery::ecn::Ecn;
use crate::wire::header::ProtectedPacket;
use bytes::BytesMut;

/// Packets kept while their keys are missing (RFC 9001 §5.7 allows it; a few are enough for reordering).
const MOST_PACKETS: usize = 10;
/// Bytes of those packets: ten of the size that clients begin with, or those of a wider path.
const MOST_BYTES: usize = 16 * 1024;

/// A packet whose keys are missing, and how it came.
#[derive(Debug)]
pub struct Undecrypted {
    /// The packet.
    pub packet: ProtectedPacket,
    /// The addresses of its datagram.
    pub tuple: FourTuple,
    /// The ECN codepoint of its datagram.
    pub ecn: Ecn,
}

/// The packets of a connection whose keys are missing.
#[derive(Debug, Default)]
pub struct UndecryptablePackets {
    all: Vec<Undecrypted>,
}

impl UndecryptablePackets {
    /// Keeps a packet.
    ///
    /// # Errors
    /// Returns [`Dropped::NoKeys`] if there are too many.
    pub fn keep(
        &mut self,
        mut packet: ProtectedPacket,
        tuple: FourTuple,
        ecn: Ecn,
    ) -> Result<(), PacketError> {
        let kept: usize = self.all.iter().map(|kept| kept.packet.bytes.len()).sum();
        if self.all.len() >= MOST_PACKETS || kept + packet.bytes.len() > MOST_BYTES {
            return Err(Dropped::NoKeys.into());
        }
        // Nobody is known to have sent it: it must not keep the rest of its datagram alive.
        packet.bytes = BytesMut::from(packet.bytes.as_ref());
        self.all.push(Undecrypted { packet, tuple, ecn });
        Ok(())
    }

    /// Takes all of them.
    pub fn take(&mut self) -> Vec<Undecrypted> {
        std::mem::take(&mut self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::connection_id::ConnectionId;
    use crate::wire::header::PacketKind;
    use crate::wire::version::Version;

    /// The number of packets of so many bytes each that are kept.
    fn kept(bytes: usize) -> usize {
        let mut it = UndecryptablePackets::default();
        let end = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let tuple = FourTuple { local: end, remote: end };
        let packet = || ProtectedPacket {
            kind: PacketKind::Handshake,
            version: Version::V1,
            destination: ConnectionId::EMPTY,
            source: ConnectionId::EMPTY,
            bytes: BytesMut::zeroed(bytes),
            number_offset: 0,
        };
        let accepted = (0..100).take_while(|_| it.keep(packet(), tuple, Ecn::NotEct).is_ok()).count();
        assert_eq!((it.take().len(), it.take().len()), (accepted, 0));
        accepted
    }

    #[test]
    fn packets_without_keys_are_bounded_in_number_and_in_bytes() {
        // Anybody can send them (RFC 9001 §5.7).
        let cases = [(1, 10), (1200, 10), (MOST_BYTES / 4, 4), (MOST_BYTES / 4 + 1, 3), (MOST_BYTES + 1, 0)];
        assert_eq!(cases.map(|(bytes, _)| (bytes, kept(bytes))), cases);
    }
}
