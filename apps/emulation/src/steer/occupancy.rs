//! The occupancy of a reordering buffer: the bytes that wait in it.

use std::time::Duration;

/// The bytes in the reordering buffers of one direction, over time (NSDI 2023, Table 3).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Occupancy {
    held: usize,
    most: usize,
    /// Bytes times seconds, up to `since`.
    area: f64,
    since: Duration,
}

impl Occupancy {
    /// The most bytes that waited at one time.
    pub const fn most(&self) -> usize {
        self.most
    }

    /// The mean number of bytes that waited between `from` and `until`, if nothing waited before `from`.
    pub fn mean(&self, from: Duration, until: Duration) -> f64 {
        let mut all = *self;
        all.advance(until);
        all.area / until.saturating_sub(from).as_secs_f64().max(1e-9)
    }

    /// A packet of `size` bytes waits from `at` on.
    pub(super) fn hold(&mut self, at: Duration, size: usize) {
        self.advance(at);
        self.held += size;
        self.most = self.most.max(self.held);
    }

    /// It waits no longer.
    pub(super) fn release(&mut self, at: Duration, size: usize) {
        self.advance(at);
        self.held = self.held.saturating_sub(size);
    }

    fn advance(&mut self, at: Duration) {
        self.area += self.held as f64 * at.saturating_sub(self.since).as_secs_f64();
        self.since = self.since.max(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_weighs_bytes_by_how_long_they_wait() {
        let second = Duration::from_secs;
        let mut occupancy = Occupancy::default();
        occupancy.hold(second(1), 300);
        occupancy.hold(second(2), 100);
        occupancy.release(second(3), 300);
        occupancy.release(second(5), 100);
        assert_eq!(occupancy.most(), 400);
        // 300 for a second, 400 for one, 100 for two.
        assert!((occupancy.mean(Duration::ZERO, second(9)) - 100.0).abs() < 1e-9);
        assert!((occupancy.mean(second(1), second(5)) - 225.0).abs() < 1e-9);
    }
}
