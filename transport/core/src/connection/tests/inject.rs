//! Frames for a connection as if an authentic packet had brought them, for tests of what peers must not do.

use crate::PathId;
use crate::connection::Connection;
use crate::connection::receive::Origin;
use crate::error::PacketError;
use crate::recovery::Ecn;
use crate::time::Instant;
use crate::wire::level::Level;
use bytes::Bytes;

/// The number of the packets that never were: far from those of a short test.
const NUMBER: u64 = 1 << 20;

impl Connection {
    /// Takes `payload` as that of a packet of `level` on path 0, and returns whether its number counts as received.
    pub(crate) fn inject(&mut self, level: Level, payload: &[u8], now: Instant) -> bool {
        let Some(path) = self.paths.get(PathId::ZERO) else { return false };
        let number = path.received.largest().map_or(NUMBER, |largest| largest.max(NUMBER) + 1);
        let origin = Origin {
            level,
            path: PathId::ZERO,
            id_sequence: 0,
            number,
            tuple: path.route.tuple,
            ecn: Ecn::NotEct,
            bytes: payload.len(),
            spin: false,
        };
        if let Err(PacketError::Close(error)) =
            self.receive_frames(&origin, Bytes::copy_from_slice(payload), now)
        {
            self.fail(error, now);
        }
        self.paths.get(PathId::ZERO).is_some_and(|path| path.received.contains(number))
    }

    /// The largest packet number on path 0 that was sent and not acknowledged.
    pub(crate) fn last_unacknowledged(&self) -> Option<u64> {
        self.paths.get(PathId::ZERO)?.sent.unacknowledged().map(|packet| packet.number).last()
    }
}
