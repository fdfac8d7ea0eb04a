//! The queue of a path and the wait for room on it, as policies are shown them.

use crate::path::path::Path;
use crate::time::Instant;
use hvq_scheduler::Bandwidth;
use std::time::Duration;

/// The rate of a path, and the bytes that wait for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShownQueue {
    /// The rate of the bottleneck, if it is known; what is left of it on a path that has collapsed.
    pub rate: Option<Bandwidth>,
    /// Bytes queued at the bottleneck.
    pub backlog: usize,
}

/// The rate that a path was seen to carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShownRate {
    /// The rate.
    pub rate: Bandwidth,
    /// The longest of the latest bursts, in bytes, if longer ones may show more.
    pub undecided: Option<u64>,
}

impl Path {
    /// Returns the queue of the path. Of a path that has collapsed all that is in flight is queued.
    #[inline]
    pub fn shown_queue(&self, now: Instant) -> ShownQueue {
        match self.collapsed_rate(now) {
            Some(left) => ShownQueue { rate: Some(left), backlog: self.sent.in_flight() },
            None => ShownQueue { rate: self.rate(), backlog: self.backlog(now) },
        }
    }

    /// Returns the time until a whole datagram may leave, if `allowance` bytes may now.
    pub fn next_send(&self, allowance: usize, now: Instant) -> Duration {
        match self.route.datagram_size {
            size if allowance >= size => Duration::ZERO,
            size => self.wait_for_room(size, now),
        }
    }

    /// Returns the time until `bytes` may leave, for which there is no room now: by the pacer, or when the oldest packet in
    /// flight should be acknowledged.
    pub fn wait_for_room(&self, bytes: usize, now: Instant) -> Duration {
        if let Some(at) = self.route.paced_until(bytes, self.sent.in_flight(), now) {
            return at.since(now);
        }
        let rtt = self.rtt().smoothed();
        self.sent.oldest_unacked().map_or(Duration::ZERO, |packet| (packet.sent_at + rtt).since(now))
    }
}
