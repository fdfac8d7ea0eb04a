use super::*;
use crate::PathId;
use crate::congestion::tests::{at, lost, sample};

const DATAGRAM: usize = 1200;

/// A path of 50 ms that carries `capacity` Mbit/s and queues the rest; acknowledgements take turns over two return paths.
struct World {
    vivace: Vivace,
    capacity: f64,
    /// Seconds of queue, and what a radio adds to the delay at most.
    queue: f64,
    radio: f64,
    now: f64,
    sent: Vec<(f64, f64, u32)>,
    delivered: f64,
    smoothed: f64,
    alternate: u32,
}

impl World {
    fn new(capacity: f64) -> Self {
        let mut vivace = Vivace::new(DATAGRAM);
        vivace.on_acknowledged(&Sample {
            rtt: Some(Duration::from_millis(50)),
            min_rtt: Duration::from_millis(50),
            smoothed_rtt: Duration::from_millis(50),
            ..sample(at(50))
        });
        Self {
            vivace,
            capacity,
            queue: 0.0,
            radio: 0.0,
            now: 1.0,
            sent: Vec::new(),
            delivered: 0.0,
            smoothed: 0.05,
            alternate: 1,
        }
    }

    /// Runs for `seconds`, a datagram at a time.
    fn run(&mut self, seconds: f64) -> f64 {
        let (from, before) = (self.now, self.delivered);
        while self.now < from + seconds {
            let rate = self.vivace.pacing_rate().expect("a round trip was measured").bits_per_second() as f64;
            let gap = DATAGRAM as f64 * 8.0 / rate;
            self.now += gap;
            self.queue = (self.queue - gap).max(0.0);
            if self.sent.len() * DATAGRAM >= self.vivace.window() {
                self.arrive();
                continue;
            }
            self.queue += DATAGRAM as f64 * 8.0 / self.capacity / 1e6;
            let over = (self.sent.len() as u32 / 3) % self.alternate;
            let base = if over == 0 { 0.05 } else { 0.03 };
            self.sent.push((self.now, self.now + base + self.queue + self.radio * wave(self.now), over));
            self.vivace.on_sent(&Sending {
                now: instant(self.now),
                bytes: DATAGRAM,
                in_flight: self.sent.len() * DATAGRAM,
                app_limited: false,
            });
            self.arrive();
        }
        (self.delivered - before) / seconds
    }

    /// Acknowledges the packets that are due by now.
    fn arrive(&mut self) {
        let now = self.now;
        let due: Vec<_> = self.sent.iter().copied().filter(|packet| packet.1 <= now).collect();
        self.sent.retain(|packet| packet.1 > now);
        for (sent, arrives, over) in due {
            self.smoothed += (arrives - sent - self.smoothed) / 8.0;
            self.delivered += DATAGRAM as f64 * 8.0 / 1e6;
            self.vivace.on_acknowledged(&Sample {
                acknowledged_over: PathId(over),
                sent_at: instant(sent),
                rtt: Some(Duration::from_secs_f64(arrives - sent)),
                min_rtt: Duration::from_secs_f64(if over == 0 { 0.05 } else { 0.03 }),
                smoothed_rtt: Duration::from_secs_f64(self.smoothed),
                ..sample(instant(now))
            });
        }
    }
}

/// Up and down in a tenth of a second, by other amounts each time; from 0 to 1.
fn wave(seconds: f64) -> f64 {
    let (turn, part) = ((seconds * 10.0).floor(), (seconds * 10.0).fract());
    (1.0 - (2.0 * part - 1.0).abs()) * (turn * 0.618).fract()
}

fn instant(seconds: f64) -> Instant {
    Instant::from_nanos((seconds * 1e9) as u64)
}

#[test]
fn the_rate_finds_the_capacity_and_the_queue_stays_short() {
    for alternate in [1, 2] {
        let mut world = World::new(20.0);
        world.alternate = alternate;
        world.run(5.0);
        assert!(!world.vivace.in_slow_start());
        let rate = world.run(20.0);
        assert!(rate > 18.0, "{rate} of 20 Mbit/s with {alternate} return paths");
        assert!(world.queue < 0.02, "{} s of queue", world.queue);
    }
}

#[test]
fn the_queue_that_doubling_built_is_emptied_before_the_trials() {
    let mut world = World::new(20.0);
    while world.vivace.in_slow_start() {
        world.run(0.01);
    }
    let left = world.queue;
    world.run(0.5);
    assert!(left > 0.02, "{left} s of queue at the end of the start");
    assert!(world.queue < 0.005, "{} s of {left} s of queue are left", world.queue);
}

#[test]
fn losses_below_a_twentieth_are_tolerated_and_more_are_not() {
    let utility = |rate: f64, lost: f64, spurious: f64| {
        let mut monitors = monitor::Monitors::default();
        monitors.begin(Monitor::new(Purpose::Above, rate * 1e6, at(0), Duration::from_secs(1)));
        let bytes = rate * 125_000.0;
        monitors.on_sent(bytes as usize);
        monitors.on_lost(at(10), (bytes * lost) as usize);
        monitors.on_spurious(at(10), (bytes * spurious) as usize);
        let monitor = monitors.complete(at(2000), Duration::ZERO).expect("it is over");
        monitor.utility(false).expect("it was used up")
    };
    assert!(utility(10.5, 0.03, 0.0) > utility(9.5, 0.03, 0.0));
    assert!(utility(10.5, 0.08, 0.0) < utility(9.5, 0.08, 0.0));
    assert!(utility(10.5, 0.08, 0.06) > utility(9.5, 0.08, 0.06), "most of them were none");
}

#[test]
fn an_idle_interval_says_nothing() {
    let monitor = Monitor::new(Purpose::Above, 1e6, at(0), Duration::from_secs(1));
    assert_eq!(monitor.utility(false), None);
}

#[test]
fn persistent_congestion_begins_anew_with_two_datagrams() {
    let mut world = World::new(20.0);
    world.run(5.0);
    world.vivace.on_lost(&LossSample { persistent: Persistence::Persistent, ..lost(10, 9000, DATAGRAM) });
    assert_eq!((world.vivace.window(), world.vivace.in_slow_start()), (2 * DATAGRAM, true));
}

#[test]
fn marks_count_as_losses() {
    let mut vivace = World::new(20.0).vivace;
    vivace.on_sent(&Sending { now: at(100), bytes: DATAGRAM, in_flight: DATAGRAM, app_limited: false });
    let without = vivace.monitors.clone().complete(at(9000), Duration::ZERO);
    vivace.on_ecn_ce(&MarkSample { now: at(150), sent_at: at(100) });
    let with = vivace.monitors.complete(at(9000), Duration::ZERO);
    assert_ne!(format!("{without:?}"), format!("{with:?}"));
}

/// Worlds with a radio in which a flow over 20 Mbit/s has run for a while.
fn radios() -> impl Iterator<Item = World> {
    [5.0, 5.7, 6.1, 7.3, 9.9].into_iter().map(|seconds| {
        let mut world = World { radio: 0.01, ..World::new(20.0) };
        world.run(seconds);
        world
    })
}

#[test]
fn the_slopes_of_a_radio_do_not_hold_the_rate_down() {
    for mut world in radios() {
        let rate = world.run(10.0);
        println!("{rate} of 20 Mbit/s, {} s of queue", world.queue);
        assert!(rate > 18.0, "{rate} of 20 Mbit/s");
    }
}

#[test]
fn a_radio_that_becomes_faster_is_used_within_seconds() {
    for mut world in radios() {
        world.capacity = 80.0;
        world.run(2.0);
        let rate = world.run(2.0);
        println!("{rate} of 80 Mbit/s");
        assert!(rate > 64.0, "{rate} of 80 Mbit/s");
    }
}

#[test]
fn the_queue_that_a_slower_radio_leaves_is_emptied() {
    for mut world in radios() {
        world.capacity = 5.0;
        world.run(1.0);
        let left = world.queue;
        // The climb goes beyond 5 Mbit/s now and then, so that it is not empty all the time.
        let least = (0..100).map(|_| (world.run(0.1), world.queue).1).fold(left, f64::min);
        println!("{left} s of queue, at least {least} s in the ten seconds after");
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
