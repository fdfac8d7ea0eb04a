use super::*;
use crate::congestion::simulation::{Bottleneck, DATAGRAM, SimulatedSender, Simulation};
use crate::congestion::tests::{at, lost, marked, sample, spurious};

mod radio;

/// A controller in congestion avoidance with a window of `datagrams`.
fn avoiding(datagrams: usize) -> Vegas {
    beyond_slow_start(Vegas::new(DATAGRAM), datagrams)
}

/// Puts a controller into congestion avoidance with a window of `datagrams`.
fn beyond_slow_start(mut vegas: Vegas, datagrams: usize) -> Vegas {
    vegas.set_window((datagrams * DATAGRAM) as f64);
    vegas.phase = Phase::Avoidance;
    vegas
}

/// Round trips of 100 ms and what `queue` ms add, each with one sample.
fn rounds(vegas: &mut Vegas, from: u64, count: u64, queue: u64) {
    for round in 0..count {
        let now = at(from + round * (100 + queue));
        vegas.on_acknowledged(&Sample {
            rtt: Some(Duration::from_millis(100 + queue)),
            min_rtt: Duration::from_millis(100),
            sent_at: at((from + round * (100 + queue)).saturating_sub(99 + queue)),
            ..sample(now)
        });
    }
}

#[test]
fn the_window_moves_by_a_datagram_a_round_trip_towards_two_to_four_in_the_queue() {
    // Four round trips; of 100 datagrams 3 wait at 3 ms, 9 at 10 ms.
    for (queue, expected) in [(0, 104), (3, 100), (10, 96)] {
        let mut vegas = avoiding(100);
        rounds(&mut vegas, 1000, 5, queue);
        assert_eq!(vegas.window(), expected * DATAGRAM, "{queue} ms of queueing");
    }
}

#[test]
fn growth_never_becomes_faster() {
    let mut vegas = avoiding(100);
    rounds(&mut vegas, 1000, 41, 0);
    assert_eq!(vegas.window(), 140 * DATAGRAM);
}

#[test]
fn slow_start_doubles_every_other_round_trip_and_ends_with_a_datagram_in_the_queue() {
    let mut vegas = Vegas::new(DATAGRAM);
    rounds(&mut vegas, 1000, 5, 0);
    assert!(vegas.in_slow_start());
    // 1 ms of 101 is a hundredth of a window: two datagrams of 200.
    let mut vegas = Vegas::new(DATAGRAM);
    vegas.set_window((200 * DATAGRAM) as f64);
    vegas.phase = Phase::Holding;
    rounds(&mut vegas, 1000, 2, 1);
    assert!(!vegas.in_slow_start());
    assert!((199 * DATAGRAM..=200 * DATAGRAM).contains(&vegas.window()), "{}", vegas.window());
}

#[test]
fn the_window_after_slow_start_is_what_the_path_carries_and_a_datagram() {
    let mut vegas = Vegas::new(DATAGRAM);
    vegas.set_window((140 * DATAGRAM) as f64);
    vegas.phase = Phase::Holding;
    // 40 of 140 ms are a queue.
    rounds(&mut vegas, 1000, 1, 40);
    rounds(&mut vegas, 1200, 1, 40);
    assert_eq!((vegas.window() / DATAGRAM, vegas.phase), (101, Phase::Avoidance));
}

#[test]
fn losses_of_one_round_trip_and_a_mark_take_a_quarter_of_the_window_once() {
    let mut vegas = avoiding(100);
    vegas.on_lost(&lost(1000, 1100, DATAGRAM));
    vegas.on_lost(&lost(1050, 1110, DATAGRAM));
    vegas.on_ecn_ce(&marked(1080, 1120));
    assert_eq!(vegas.window(), 75 * DATAGRAM);
    vegas.on_ecn_ce(&marked(1150, 1200));
    assert_eq!(vegas.window(), 75 * 3 * DATAGRAM / 4);
}

#[test]
fn a_loss_in_slow_start_halves_the_window_and_one_that_was_none_gives_it_back() {
    let mut vegas = Vegas::new(DATAGRAM);
    vegas.set_window((100 * DATAGRAM) as f64);
    vegas.on_lost(&lost(1000, 1100, DATAGRAM));
    assert_eq!((vegas.window(), vegas.in_slow_start()), (50 * DATAGRAM, false));
    vegas.on_spurious(&spurious(1100, 1110, DATAGRAM));
    assert_eq!((vegas.window(), vegas.in_slow_start()), (100 * DATAGRAM, true));
}

/// Datagrams in the queue of 20 Mbit/s, on average over ten seconds after the first twenty, and what each flow delivered
/// meanwhile.
fn shared_by(flows: usize) -> (f64, Vec<u64>) {
    let mut simulation = Simulation::over([Bottleneck::new(20, Duration::from_millis(40), 400)]);
    for _ in 0..flows {
        simulation = simulation.with(SimulatedSender::new(Box::new(Vegas::new(DATAGRAM))));
    }
    simulation.until(20.0);
    simulation.bottleneck_mut().mean_wait();
    let before: Vec<u64> = simulation.senders().iter().map(SimulatedSender::delivered).collect();
    simulation.until(30.0);
    let wait = simulation.bottleneck_mut().mean_wait().as_secs_f64();
    let delivered =
        simulation.senders().iter().zip(before).map(|(sender, before)| sender.delivered() - before);
    (wait * 20e6 / 8.0 / DATAGRAM as f64, delivered.collect())
}

#[test]
fn two_to_four_datagrams_of_a_flow_wait_in_the_queue_and_the_link_is_full() {
    // §III; acknowledgements of two packets at a time make it one more or less.
    let (queued, delivered) = shared_by(1);
    let share = delivered[0] as f64 * 8.0 / 10.0 / 20e6;
    println!("{queued:.2} datagrams in the queue, {share:.3} of the rate");
    assert!((1.0..=5.0).contains(&queued), "{queued} datagrams in the queue");
    assert!(share > 0.95, "{share} of the rate");
}

#[test]
fn two_flows_share_the_link_as_two_to_four_datagrams_each_in_the_queue_allow() {
    let (queued, delivered) = shared_by(2);
    let (one, other) = (delivered[0] as f64, delivered[1] as f64);
    let ratio = one.max(other) / one.min(other);
    println!("{queued:.2} datagrams in the queue, {delivered:?} bytes, a ratio of {ratio:.2}");
    assert!((3.0..=9.0).contains(&queued), "{queued} datagrams in the queue");
    // One may keep four datagrams there and the other two.
    assert!(ratio < 1.1 * BETA / ALPHA, "{delivered:?}: a ratio of {ratio}");
    assert!((one + other) * 8.0 / 10.0 / 20e6 > 0.95, "{delivered:?}");
}
