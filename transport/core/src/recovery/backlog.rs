//! The estimate of the sent bytes that wait at the bottleneck.

use crate::Bandwidth;
use crate::time::Instant;

/// Bytes believed queued at a path's bottleneck: they grow when something is sent and drain at the bottleneck's rate.
///
/// Never more than what is in flight: what was acknowledged or lost waits nowhere.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    bytes: u64,
    at: Instant,
}

impl Backlog {
    /// An empty queue.
    pub fn new(now: Instant) -> Self {
        Self { bytes: 0, at: now }
    }

    /// `bytes` left at `now` towards a bottleneck of `rate`.
    pub fn on_sent(&mut self, now: Instant, bytes: usize, rate: impl FnOnce() -> Option<Bandwidth>) {
        self.bytes = self.drained(now, rate).saturating_add(bytes as u64);
        self.at = self.at.max(now);
    }

    /// Something of the path was acknowledged or lost, and `in_flight` bytes are left.
    pub fn on_resolved(&mut self, now: Instant, in_flight: usize, rate: impl FnOnce() -> Option<Bandwidth>) {
        self.bytes = self.drained(now, rate).min(in_flight as u64);
        self.at = self.at.max(now);
    }

    /// Bytes believed queued at `now`, when `in_flight` bytes are in flight.
    pub fn bytes(&self, now: Instant, in_flight: usize, rate: impl FnOnce() -> Option<Bandwidth>) -> usize {
        usize::try_from(self.drained(now, rate)).unwrap_or(usize::MAX).min(in_flight)
    }

    /// Without a rate nothing is known to drain.
    #[inline]
    fn drained(&self, now: Instant, rate: impl FnOnce() -> Option<Bandwidth>) -> u64 {
        if now <= self.at {
            return self.bytes;
        }
        let drained = rate().map_or(0, |rate| rate.bytes_in(now.since(self.at)));
        self.bytes.saturating_sub(drained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_queue_drains_at_the_rate_of_the_bottleneck() {
        let rate = || Some(Bandwidth::from_mbit(2));
        let mut backlog = Backlog::new(Instant::ZERO);
        backlog.on_sent(Instant::ZERO, 5000, rate);
        let later = Instant::ZERO + Duration::from_millis(8);
        assert_eq!(backlog.bytes(later, 100_000, rate), 3000);
        backlog.on_sent(later, 1000, rate);
        assert_eq!(backlog.bytes(later, 100_000, rate), 4000);
        assert_eq!(backlog.bytes(later + Duration::from_secs(1), 100_000, rate), 0);
    }

    #[test]
    fn it_is_never_more_than_what_is_in_flight() {
        let mut backlog = Backlog::new(Instant::ZERO);
        backlog.on_sent(Instant::ZERO, 5000, || None);
        assert_eq!(backlog.bytes(Instant::FAR_FUTURE, 1200, || None), 1200);
        backlog.on_resolved(Instant::ZERO, 1200, || None);
        assert_eq!(backlog.bytes(Instant::ZERO, 100_000, || None), 1200);
    }

    #[test]
    fn extremes_do_not_overflow() {
        // attacks.md C14.
        for bits in [0, 1 << 63, u64::MAX] {
            let rate = || Some(Bandwidth::from_bits_per_second(bits));
            let mut backlog = Backlog::new(Instant::ZERO);
            backlog.on_sent(Instant::FAR_FUTURE, usize::MAX, rate);
            backlog.on_sent(Instant::ZERO, usize::MAX, rate);
            assert!(backlog.bytes(Instant::FAR_FUTURE, 10, rate) <= 10);
        }
    }
}
