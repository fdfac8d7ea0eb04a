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
