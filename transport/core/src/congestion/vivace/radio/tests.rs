use super::*;
use crate::Bandwidth;
use crate::congestion::simulation::{Bottleneck, DATAGRAM, Simulation};
use crate::congestion::tests::{at, by_turns, lost};
use crate::congestion::vivace::VivaceRadio;
use crate::congestion::vivace::monitor::Monitors;
use crate::congestion::{Controller, LossSample, MarkSample, Persistence};
use std::any::Any;
use std::time::Duration;

/// A path of 50 ms that carries `capacity` Mbit/s and queues the rest; acknowledgements may take turns over two return
/// paths, the second 20 ms shorter.
struct World {
    simulation: Simulation,
}

impl World {
    fn new(capacity: u64) -> Self {
        Self::over(Bottleneck::new(capacity, Duration::from_millis(50), 100_000))
    }

    fn over(link: Bottleneck) -> Self {
        Self { simulation: Simulation::new(link, Box::new(VivaceRadio::new(DATAGRAM))) }
    }

    /// Over a radio that adds up to 10 ms.
    fn radio(capacity: u64) -> Self {
        let link = Bottleneck::new(capacity, Duration::from_millis(50), 100_000);
        Self::over(link.with_jitter(|now| Duration::from_secs_f64(0.01 * wave(now))))
    }

    /// Runs for `seconds`; returns the rate in Mbit/s.
    fn run(&mut self, seconds: f64) -> f64 {
        let (from, before) = (self.simulation.now(), self.simulation.sender().delivered());
        self.simulation.until(from.since(Instant::ZERO).as_secs_f64() + seconds);
        (self.simulation.sender().delivered() - before) as f64 * 8.0 / 1e6 / seconds
    }

    /// Seconds of queue.
    fn queue(&self) -> f64 {
        self.simulation.bottleneck().queueing(self.simulation.now()).as_secs_f64()
    }

    fn vivace(&self) -> &VivaceRadio {
        let controller: &dyn Any = self.simulation.controller();
        controller.downcast_ref().expect("it is Vivace for radios")
    }

    fn vivace_mut(&mut self) -> &mut VivaceRadio {
        let controller: &mut dyn Any = self.simulation.sender_mut().controller_mut();
        controller.downcast_mut().expect("it is Vivace for radios")
    }

    fn set_capacity(&mut self, mbit: u64) {
        self.simulation.bottleneck_mut().set_rate(Bandwidth::from_mbit(mbit));
    }
}

/// Up and down in a tenth of a second, by other amounts each time; from 0 to 1.
fn wave(now: Instant) -> f64 {
    let seconds = now.since(Instant::ZERO).as_secs_f64();
    let (turn, part) = ((seconds * 10.0).floor(), (seconds * 10.0).fract());
    (1.0 - (2.0 * part - 1.0).abs()) * (turn * 0.618).fract()
}

#[test]
fn the_rate_finds_the_capacity_and_the_queue_stays_short() {
    for alternate in [false, true] {
        let mut world = World::new(20);
        if alternate {
            let ways = [Duration::from_millis(25), Duration::from_millis(5)];
            world.simulation.sender_mut().set_returns(by_turns(ways, Duration::ZERO));
        }
        world.run(5.0);
        assert!(!world.vivace().in_slow_start());
        let rate = world.run(20.0);
        assert!(rate > 18.0, "{rate} of 20 Mbit/s over either of two return paths: {alternate}");
        assert!(world.queue() < 0.02, "{} s of queue", world.queue());
    }
}

#[test]
fn the_queue_that_doubling_built_is_emptied_before_the_trials() {
    let mut world = World::new(20);
    while world.vivace().in_slow_start() {
        world.run(0.01);
    }
    let left = world.queue();
    world.run(0.5);
    assert!(left > 0.02, "{left} s of queue at the end of the start");
    assert!(world.queue() < 0.005, "{} s of {left} s of queue are left", world.queue());
}

#[test]
fn losses_below_a_twentieth_are_tolerated_and_more_are_not() {
    let utility = |rate: f64, lost: f64, spurious: f64| {
        let mut monitors = Monitors::default();
        monitors.begin(Monitor::new(Purpose::Above, rate * 1e6, at(0), Duration::from_secs(1)));
        let bytes = rate * 125_000.0;
        monitors.on_sent(bytes as usize);
        monitors.on_lost(at(10), (bytes * lost) as usize);
        monitors.on_spurious(at(10), (bytes * spurious) as usize);
        let monitor = monitors.complete(at(2000), Duration::ZERO).expect("it is over");
        monitor.utility(0.0).expect("it was used up")
    };
    assert!(utility(10.5, 0.03, 0.0) > utility(9.5, 0.03, 0.0));
    assert!(utility(10.5, 0.08, 0.0) < utility(9.5, 0.08, 0.0));
    assert!(utility(10.5, 0.08, 0.06) > utility(9.5, 0.08, 0.06), "most of them were none");
}

#[test]
fn an_idle_interval_says_nothing() {
    let monitor = Monitor::new(Purpose::Above, 1e6, at(0), Duration::from_secs(1));
    assert_eq!(monitor.utility(0.0), None);
}

#[test]
fn persistent_congestion_begins_anew_with_two_datagrams() {
    let mut world = World::new(20);
    world.run(5.0);
    world
        .vivace_mut()
        .on_lost(&LossSample { persistent: Persistence::Persistent, ..lost(10, 9000, DATAGRAM) });
    assert_eq!((world.vivace().window(), world.vivace().in_slow_start()), (2 * DATAGRAM, true));
}

#[test]
fn marks_count_as_losses() {
    let mut world = World::new(20);
    world.run(1.0);
    let now = world.simulation.now();
    let vivace = world.vivace_mut();
    vivace.on_sent(&Sending { now, bytes: DATAGRAM, in_flight: DATAGRAM, app_limited: false });
    let without = format!("{:?}", vivace.intervals.monitors);
    vivace.on_ecn_ce(&MarkSample { now, sent_at: now });
    assert_ne!(without, format!("{:?}", vivace.intervals.monitors));
}

/// Worlds with a radio in which a flow over 20 Mbit/s has run for a while.
fn radios() -> impl Iterator<Item = World> {
    [5.0, 5.7, 6.1, 7.3, 9.9].into_iter().map(|seconds| {
        let mut world = World::radio(20);
        world.run(seconds);
        world
    })
}

#[test]
fn the_slopes_of_a_radio_do_not_hold_the_rate_down() {
    for mut world in radios() {
        let rate = world.run(10.0);
        println!("{rate} of 20 Mbit/s, {} s of queue", world.queue());
        assert!(rate > 18.0, "{rate} of 20 Mbit/s");
    }
}

#[test]
fn a_radio_that_becomes_faster_is_used_within_seconds() {
    for mut world in radios() {
        world.set_capacity(80);
        world.run(2.0);
        let rate = world.run(2.0);
        println!("{rate} of 80 Mbit/s");
        assert!(rate > 64.0, "{rate} of 80 Mbit/s");
    }
}

#[test]
fn the_queue_that_a_slower_radio_leaves_is_emptied() {
    for mut world in radios() {
        world.set_capacity(5);
        world.run(1.0);
        let left = world.queue();
        // The climb goes beyond 5 Mbit/s now and then, so that it is not empty all the time.
        let least = (0..200).map(|_| (world.run(0.1), world.queue()).1).fold(left, f64::min);
        println!("{left} s of queue, at least {least} s in the 20 seconds after");
        assert!(left > 0.5, "{left} s of queue");
        assert!(least < 0.05, "{least} s of {left} s of queue");
        assert!(world.run(5.0) > 4.0);
    }
}

#[test]
fn an_interval_is_accounted_for_however_many_follow() {
    let mut monitors = Monitors::default();
    for index in 0..100 {
        let purpose = if index == 0 { Purpose::Above } else { Purpose::Fill };
        monitors.begin(Monitor::new(purpose, 1e6, at(index * 10), Duration::from_millis(10)));
    }
    let first = monitors.complete(at(10), Duration::ZERO).expect("it is over");
    assert_eq!(first.purpose, Purpose::Above);
}
