//! Traffic of others over a channel: it takes capacity and queues, and nobody here reads it.

use crate::world::wire::Packet;
use hvq_emulation::Direction;
use hvq_transport::connection::{Dscp, Ecn};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::net::SocketAddr;
use std::time::Duration;

/// Bytes of each of its packets.
const SIZE: usize = 1200;

/// The address that its packets go to: one for documentation (RFC 5737), at which nobody is.
pub fn nowhere() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 99], 9))
}

/// A flow of packets at a mean rate, with gaps that vary by half.
#[derive(Debug)]
pub struct Cross {
    wire: usize,
    direction: Direction,
    mean_gap: Duration,
    next: Duration,
    dice: StdRng,
}

impl Cross {
    /// A flow over wire number `wire` in `direction`, of `rate` bits per second.
    ///
    /// # Panics
    ///
    /// The rate is 0.
    pub fn new(wire: usize, direction: Direction, rate: u64, seed: u64) -> Self {
        assert!(rate > 0, "a flow of nothing is none");
        let mean_gap = Duration::from_secs_f64(SIZE as f64 * 8.0 / rate as f64);
        let turn = u64::from(direction == Direction::Down);
        Self { wire, direction, mean_gap, next: mean_gap, dice: StdRng::seed_from_u64(seed ^ (turn << 32)) }
    }

    /// Returns the time of its next packet, counted from the start of the world.
    pub fn next_deadline(&self) -> Duration {
        self.next
    }

    /// The packet that is due at `now`, if one is: its wire, direction and size.
    pub(super) fn due(&mut self, now: Duration) -> Option<(usize, Direction, Packet, usize)> {
        if self.next > now {
            return None;
        }
        self.next += self.mean_gap.mul_f64(self.dice.random_range(0.5..1.5));
        let packet = Packet {
            to: nowhere(),
            server: nowhere(),
            payload: vec![0; SIZE].into(),
            ecn: Ecn::NotEct,
            dscp: Dscp::DEFAULT,
        };
        Some((self.wire, self.direction, packet, SIZE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_has_its_rate() {
        let mut cross = Cross::new(0, Direction::Down, 1_000_000, 7);
        let mut bytes = 0;
        while cross.next_deadline() < Duration::from_secs(100) {
            let at = cross.next_deadline();
            let (.., size) = cross.due(at).expect("it is due");
            assert!(cross.due(at).is_none());
            bytes += size;
        }
        let rate = bytes as f64 * 8.0 / 100.0;
        assert!((980_000.0..1_020_000.0).contains(&rate), "{rate}");
    }
}
