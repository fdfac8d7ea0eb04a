//! Several senders over several bottlenecks, whose queues drop at random before they are full, as the analysis of RFC 6356
//! assumes.

use crate::congestion::Algorithm;
use crate::congestion::simulation::{Bottleneck, DATAGRAM, SimulatedSender, Simulation};
use std::time::Duration;

/// The share of datagrams that a queue drops when it is nearly full.
const MOST_DROPPED: f64 = 0.003;

/// A link of `mbit` Mbit/s, with round trips of `ms` and a queue of `queue` datagrams.
fn link(mbit: u64, ms: u64, queue: usize) -> Bottleneck {
    Bottleneck::new(mbit, Duration::from_millis(ms), queue).with_early_drop(MOST_DROPPED)
}

fn sender(algorithm: Algorithm) -> SimulatedSender {
    SimulatedSender::new(algorithm.build(DATAGRAM))
}

/// Bytes that each sender delivered between these two times, in seconds.
fn delivered(mut simulation: Simulation, [from, to]: [f64; 2]) -> Vec<u64> {
    let mut delivered = |seconds| {
        simulation.until(seconds);
        simulation.senders().iter().map(SimulatedSender::delivered).collect::<Vec<_>>()
    };
    let before = delivered(from);
    delivered(to).into_iter().zip(before).map(|(after, before)| after - before).collect()
}

const COUPLED: [Algorithm; 3] = [Algorithm::Lia, Algorithm::Olia, Algorithm::Balia];

#[test]
fn two_coupled_paths_through_one_bottleneck_take_what_one_flow_does() {
    let ratio = |algorithm| {
        let path = |algorithm: Algorithm, connection| sender(algorithm).of_connection(connection);
        let world = Simulation::over([link(20, 40, 80)]).with(path(algorithm, 0)).with(path(algorithm, 0));
        let delivered = delivered(world.with(path(Algorithm::NewReno, 1)), [20.0, 320.0]);
        (delivered[0] + delivered[1]) as f64 / delivered[2] as f64
    };
    let uncoupled = ratio(Algorithm::NewReno);
    assert!(uncoupled > 1.6, "two flows of NewReno against one: {uncoupled:.2}");
    for algorithm in COUPLED {
        let ratio = ratio(algorithm);
        println!("{algorithm}: {ratio:.2} of one flow, uncoupled {uncoupled:.2}");
        assert!(ratio < 1.3, "{algorithm}: {ratio:.2} times one flow");
        assert!(ratio > 0.6, "{algorithm}: {ratio:.2} times one flow");
    }
}

#[test]
fn two_coupled_paths_over_two_bottlenecks_fill_both() {
    for algorithm in COUPLED {
        let path = |link| sender(algorithm).of_connection(0).through(link);
        let world = Simulation::over([link(20, 40, 80), link(10, 20, 40)]).with(path(0)).with(path(1));
        let delivered = delivered(world, [20.0, 120.0]);
        for (delivered, capacity) in delivered.into_iter().zip([20e6, 10e6]) {
            let share = delivered as f64 * 8.0 / 100.0 / capacity;
            println!("{algorithm}: {share:.2} of {capacity}");
            assert!(share >= 0.85, "{algorithm}: {share:.2} of {capacity} bit/s");
        }
    }
}
