//! Packets that wait for the times at which they are to leave, which quiche chooses and leaves to its caller to keep.

use super::DATAGRAM;
use quiche::{Connection, SendInfo};
use std::collections::BTreeMap;
use std::time::Instant;

/// The packets. Those of one time leave in the order in which they came.
#[derive(Debug, Default)]
pub struct Outbox {
    waiting: BTreeMap<(Instant, u64), (Vec<u8>, SendInfo)>,
    count: u64,
}

impl Outbox {
    /// Takes everything that `connection` has to send, which its congestion window bounds.
    pub fn fill(&mut self, connection: &mut Connection) {
        let mut buffer = [0; DATAGRAM];
        // A connection that fails is closed, which is seen elsewhere.
        while let Ok((length, info)) = connection.send(&mut buffer) {
            self.waiting.insert((info.at, self.count), (buffer[..length].to_vec(), info));
            self.count += 1;
        }
    }

    /// The next packet that is to leave by `now`.
    pub fn due(&mut self, now: Instant) -> Option<(Vec<u8>, SendInfo)> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// The time of the next packet.
    pub fn next(&self) -> Option<Instant> {
        self.waiting.keys().next().map(|(at, _)| *at)
    }
}
