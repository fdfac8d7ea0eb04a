//! Controllers over a radio whose delay varies without a queue, in virtual time.

use super::Algorithm;
use super::simulation::{DATAGRAM, Link, Simulation};
use crate::time::Instant;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

/// The time for which a delay holds.
const STEP: Duration = Duration::from_millis(15);
/// The mean of the added delay, in seconds.
const MEAN: f64 = 0.02;
/// The chance of a step that conditions change, and how far the delay follows them in it.
const CHANGE: f64 = 0.2;
const FOLLOWED: f64 = 0.3;

/// Delays beyond the least, exponentially distributed and with a memory of some 75 ms; datagrams stay in order.
pub(super) struct Radio {
    rng: StdRng,
    until: Instant,
    target: f64,
    delay: f64,
    last: Instant,
}

impl Radio {
    pub(super) fn new(seed: u64) -> Self {
        let rng = StdRng::seed_from_u64(seed);
        Self { rng, until: Instant::ZERO, target: 0.0, delay: 0.0, last: Instant::ZERO }
    }

    /// Returns the arrival of a datagram that leaves at `now` and would arrive at `at`.
    pub(super) fn delay(&mut self, now: Instant, at: Instant) -> Instant {
        while self.until <= now {
            self.until += STEP;
            if self.rng.random::<f64>() < CHANGE {
                self.target = -MEAN * (1.0 - self.rng.random::<f64>()).ln();
            }
            self.delay += (self.target - self.delay) * FOLLOWED;
        }
        self.last = self.last.max(at + Duration::from_secs_f64(self.delay));
        self.last
    }
}

/// The share of 60 Mbit/s that `algorithm` gets where round trips take 20 ms and what the radio adds, and the mean wait in the
/// queue, both after five seconds.
fn long_run(algorithm: Algorithm, seed: u64) -> (f64, Duration) {
    let link = Link::new(60, 20, 800).over(Radio::new(seed));
    let mut simulation = Simulation::new(link, algorithm.build(DATAGRAM));
    simulation.seconds(0, 5);
    simulation.link.mean_wait();
    let share = simulation.seconds(5, 20);
    (share, simulation.link.mean_wait())
}

#[test]
fn the_delay_of_a_radio_is_no_queue() {
    for seed in 1..=5 {
        let (_, of_cubic) = long_run(Algorithm::Cubic, seed);
        for algorithm in [Algorithm::Vegas, Algorithm::Copa] {
            let (share, wait) = long_run(algorithm, seed);
            println!(
                "{algorithm}, seed {seed}: {share:.3} of the capacity, {wait:?} in the queue, cubic {of_cubic:?}"
            );
            assert!(share >= 0.75, "{algorithm}, seed {seed}: {share} of the capacity");
            assert!(
                wait * 4 < of_cubic * 3,
                "{algorithm}, seed {seed}: {wait:?} in the queue, with CUBIC {of_cubic:?}"
            );
        }
    }
}

#[test]
fn vivace_uses_a_radio_with_about_the_queue_of_cubic() {
    for seed in 1..=5 {
        let (_, of_cubic) = long_run(Algorithm::Cubic, seed);
        let (share, wait) = long_run(Algorithm::Vivace, seed);
        println!("seed {seed}: {share:.3} of the capacity, {wait:?} in the queue, cubic {of_cubic:?}");
        assert!(share >= 0.9, "seed {seed}: {share} of the capacity");
        assert!(wait * 4 < of_cubic * 5, "seed {seed}: {wait:?} in the queue, with CUBIC {of_cubic:?}");
    }
}
