//! Controllers over a radio whose delay varies without a queue, in virtual time.

use crate::congestion::Algorithm;
use crate::congestion::simulation::{Bottleneck, DATAGRAM, Simulation};
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

/// Delays beyond the least, exponentially distributed and with a memory of some 75 ms.
struct Radio {
    rng: StdRng,
    until: Instant,
    target: f64,
    delay: f64,
}

impl Radio {
    fn new(seed: u64) -> Self {
        let rng = StdRng::seed_from_u64(seed);
        Self { rng, until: Instant::ZERO, target: 0.0, delay: 0.0 }
    }

    /// Returns the delay of a datagram that leaves at `now`.
    fn delay(&mut self, now: Instant) -> Duration {
        while self.until <= now {
            self.until += STEP;
            if self.rng.random::<f64>() < CHANGE {
                self.target = -MEAN * (1.0 - self.rng.random::<f64>()).ln();
            }
            self.delay += (self.target - self.delay) * FOLLOWED;
        }
        Duration::from_secs_f64(self.delay)
    }
}

/// The share of 60 Mbit/s that `algorithm` gets where round trips take 20 ms and what the radio adds, and the mean wait in the
/// queue, both after five seconds.
fn long_run(algorithm: Algorithm, seed: u64) -> (f64, Duration) {
    let mut radio = Radio::new(seed);
    let link = Bottleneck::new(60, Duration::from_millis(20), 800).with_jitter(move |now| radio.delay(now));
    let mut simulation = Simulation::new(link, algorithm.build(DATAGRAM));
    simulation.until(5.0);
    simulation.bottleneck_mut().mean_wait();
    let share = simulation.until(20.0);
    (share, simulation.bottleneck_mut().mean_wait())
}

#[test]
fn the_delay_of_a_radio_is_no_queue() {
    for seed in 1..=5 {
        let (_, of_cubic) = long_run(Algorithm::Cubic, seed);
        for algorithm in [Algorithm::VegasRadio, Algorithm::CopaRadio] {
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
fn vivace_for_radios_uses_one_with_about_the_queue_of_cubic() {
    for seed in 1..=5 {
        let (_, of_cubic) = long_run(Algorithm::Cubic, seed);
        let (share, wait) = long_run(Algorithm::VivaceRadio, seed);
        println!("seed {seed}: {share:.3} of the capacity, {wait:?} in the queue, cubic {of_cubic:?}");
        assert!(share >= 0.9, "seed {seed}: {share} of the capacity");
        assert!(wait * 4 < of_cubic * 5, "seed {seed}: {wait:?} in the queue, with CUBIC {of_cubic:?}");
    }
}

#[test]
fn the_published_controllers_take_the_delay_of_a_radio_for_a_queue() {
    // The reason why the variants for radios exist.
    for (published, variant) in
        [(Algorithm::Vegas, Algorithm::VegasRadio), (Algorithm::Copa, Algorithm::CopaRadio)]
    {
        for seed in 1..=5 {
            let ((share, _), (of_variant, _)) = (long_run(published, seed), long_run(variant, seed));
            println!("{published}, seed {seed}: {share:.3} of the capacity, {of_variant:.3} with {variant}");
            assert!(
                share < 0.8 * of_variant,
                "{published}, seed {seed}: {share}, {of_variant} with {variant}"
            );
        }
    }
    for seed in 1..=5 {
        let (share, _) = long_run(Algorithm::Vivace, seed);
        println!("vivace, seed {seed}: {share:.3} of the capacity");
    }
}
