//! The paths on which controllers are tried.

use super::witness::Witness;
use crate::congestion::ControllerFactory;
use crate::congestion::simulation::{Bottleneck, DATAGRAM, Simulation};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

/// A path without loss.
#[derive(Clone, Copy, Debug)]
pub(super) struct LosslessPath {
    /// The rate in Mbit/s.
    mbit: u64,
    /// The round-trip time in milliseconds.
    rtt: u64,
    /// The datagrams that the queue holds.
    queue: usize,
    seed: u64,
}

impl LosslessPath {
    /// A path drawn from `seed`.
    pub(super) fn drawn(seed: u64) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let (mbit, rtt) = (dice.random_range(2..=16), dice.random_range(10..=80));
        Self { mbit, rtt, queue: dice.random_range(20..200), seed }
    }

    /// The round-trip time.
    pub(super) fn delay(self) -> Duration {
        Duration::from_millis(self.rtt)
    }

    /// A simulation of this path with one sender, whose controller is watched.
    pub(super) fn under(self, factory: &dyn ControllerFactory) -> Simulation {
        let bottleneck = Bottleneck::new(self.mbit, self.delay(), self.queue);
        let watched = Witness::new(factory.build(DATAGRAM), DATAGRAM);
        Simulation::new(bottleneck, Box::new(watched)).seeded(self.seed)
    }
}
