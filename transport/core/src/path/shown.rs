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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathId;
    use crate::congestion::Algorithm;
    use crate::path::amplification::Amplification;
    use crate::path::mtu::DatagramSizing;
    use crate::path::route::{FourTuple, Route};
    use crate::recovery::sent_packet::{PacketClass, SentPacket};
    use crate::space::received::AckPolicy;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// A path whose window is full since 10 ms, and whose round trip takes 40 ms.
    fn full() -> Path {
        let address = ([192, 0, 2, 1], 443).into();
        let (tuple, sizing) = (FourTuple { local: address, remote: address }, DatagramSizing::default());
        let congestion = Algorithm::NewReno.into();
        let route = Route::new(tuple, congestion, Amplification::Validated, sizing, Instant::ZERO);
        let mut path = Path::new(PathId(1), route, AckPolicy::default());
        path.rtts.sample(PathId(1), Duration::from_millis(40), Duration::ZERO, at(0));
        let packet = SentPacket::new(0, at(10), path.route.window(), PacketClass::AckEliciting);
        path.sent.on_sent(packet);
        path
    }

    #[test]
    fn a_whole_datagram_may_leave_at_once_or_after_what_is_in_flight_is_acknowledged() {
        let path = full();
        assert_eq!(path.next_send(path.route.datagram_size, at(20)), Duration::ZERO);
        let wait = Duration::from_millis(30);
        assert_eq!(path.next_send(path.route.datagram_size - 1, at(20)), wait);
        assert_eq!(path.wait_for_room(1, at(20)), wait);
        assert_eq!(path.wait_for_room(1, at(60)), Duration::ZERO, "the answer is late");
    }
}
