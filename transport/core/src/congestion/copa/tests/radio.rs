use super::*;
use crate::PathId;
use crate::congestion::tests::{at, lost, marked, sample, spurious};
use std::ops::Range;

const DATAGRAM: usize = 1200;

/// A controller beyond slow start with a window of `datagrams`.
fn steady(datagrams: usize) -> Copa {
    let mut copa = Copa::for_radios(DATAGRAM);
    copa.set_window((datagrams * DATAGRAM) as f64);
    (copa.window_before, copa.slow_start) = (copa.window, false);
    copa
}

/// Acknowledges windows like [`run_over`], with every other acknowledgement over a return path that is 30 ms shorter.
fn run(copa: &mut Copa, from: u64, length: u64, queue: u64) {
    run_over(copa, from..from + length, queue, [100, 70]);
}

/// Acknowledges a window each round trip of 100 + `queue` ms, in pieces of 1 ms, over return paths with these bases.
fn run_over(copa: &mut Copa, during: Range<u64>, queue: u64, bases: [u64; 2]) {
    for now in during {
        let base = bases[(now % 2) as usize];
        let over = u32::from(base != bases[0]);
        let rtt = base + queue;
        copa.on_acknowledged(&Sample {
            acknowledged_over: PathId(over),
            bytes: copa.window() / 100,
            rtt: Some(Duration::from_millis(rtt)),
            min_rtt: Duration::from_millis(base),
            sent_at: at(now - rtt),
            smoothed_rtt: Duration::from_millis(rtt),
            ..sample(at(now))
        });
    }
}

#[test]
fn the_window_moves_towards_two_datagrams_in_the_queue() {
    // §2.1: 2 / 10 ms = 200 datagrams a second, 20 in a round trip of 110 ms.
    let (mut few, mut many) = (steady(10), steady(40));
    run(&mut few, 1000, 100, 0);
    run(&mut many, 1000, 100, 0);
    let (low, high) = (few.window(), many.window());
    run(&mut few, 1100, 200, 10);
    run(&mut many, 1100, 200, 10);
    assert!(few.window() > low, "{} after {low}", few.window());
    assert!(many.window() < high, "{} after {high}", many.window());
}

#[test]
fn the_velocity_doubles_while_the_direction_stays() {
    let mut copa = steady(100);
    run_over(&mut copa, 1000..1300, 0, [100; 2]);
    let slow = copa.window();
    run_over(&mut copa, 1300..2300, 0, [100; 2]);
    assert!(copa.velocity >= 8.0, "{}", copa.velocity);
    assert!(copa.window() > 2 * slow, "{} after {slow}", copa.window());
    run_over(&mut copa, 2300..2450, 80, [100; 2]);
    assert_eq!(copa.velocity, 1.0, "a queue turns it round");
    let turned = copa.window();
    run_over(&mut copa, 2450..2550, 80, [100; 2]);
    assert!(copa.window() < turned);
}

#[test]
fn the_velocity_stays_low_while_acknowledgements_are_uneven() {
    let mut copa = steady(320);
    run(&mut copa, 1000, 2000, 0);
    // A sixteenth of the window a round trip, at two datagrams for each of velocity.
    let most = copa.window() as f64 / 1200.0 / 32.0;
    assert!((4.0..=most).contains(&copa.velocity), "{} of {most}", copa.velocity);
}

#[test]
fn slow_start_does_not_end_for_a_delay_that_may_be_a_radios() {
    // An eighth of 100 ms; of 250 datagrams 27 would be in the queue.
    let mut copa = steady(250);
    copa.slow_start = true;
    run_over(&mut copa, 1000..1010, 0, [100; 2]);
    run_over(&mut copa, 1010..1300, 12, [100; 2]);
    assert!(copa.in_slow_start());
    run_over(&mut copa, 1300..1500, 13, [100; 2]);
    assert!(!copa.in_slow_start());
}

#[test]
fn what_varied_of_late_is_no_queue() {
    // Every other 200 ms 16 ms longer, and then only as much as does not count.
    let mut copa = steady(1000);
    for turn in 0..8 {
        let from = 1000 + turn * 200;
        run_over(&mut copa, from..from + 200, turn % 2 * 16, [100; 2]);
    }
    run_over(&mut copa, 2600..9100, 1, [100; 2]);
    assert_eq!((copa.heading, copa.competition.mode()), (Heading::Up, Mode::Default));
}

#[test]
fn no_round_trip_takes_more_than_an_eighth_of_the_window_away() {
    let mut copa = steady(800);
    (copa.velocity, copa.heading) = (16.0, Heading::Down);
    copa.competition.set_mode(Mode::Competitive { datagrams: 20.0 });
    let window = copa.window();
    copa.step(&Sample { bytes: window, ..sample(at(1000)) }, Heading::Down);
    assert_eq!(copa.window(), 700 * DATAGRAM);
}

#[test]
fn a_queue_that_never_empties_means_competition() {
    // §2.2.
    let mut copa = steady(1000);
    run(&mut copa, 1000, 100, 0);
    run(&mut copa, 1100, 2500, 50);
    let Mode::Competitive { datagrams } = copa.competition.mode() else { panic!("{copa:?}") };
    assert!(datagrams > 5.0, "{datagrams}");
    copa.on_lost(&lost(3599, 3600, DATAGRAM));
    assert_eq!(copa.competition.mode(), Mode::Competitive { datagrams: datagrams / 2.0 });
    copa.on_spurious(&spurious(3600, 3600, DATAGRAM));
    assert_eq!(copa.competition.mode(), Mode::Competitive { datagrams }, "it was none");
    run(&mut copa, 3601, 400, 0);
    assert_eq!(copa.competition.mode(), Mode::Default);
}

#[test]
fn single_losses_count_only_in_slow_start() {
    let mut copa = Copa::for_radios(DATAGRAM);
    copa.on_lost(&lost(10, 100, DATAGRAM));
    assert_eq!((copa.window(), copa.in_slow_start()), (5 * DATAGRAM, false));
    let mut copa = steady(100);
    for round in 1..5 {
        copa.on_lost(&lost(round * 100 + 1, round * 100 + 100, 5 * DATAGRAM));
    }
    assert_eq!(copa.window(), 100 * DATAGRAM);
}

#[test]
fn many_losses_and_marks_halve_the_window_once_a_round_trip() {
    let mut copa = steady(100);
    copa.on_lost(&lost(50, 100, 6 * DATAGRAM));
    copa.on_lost(&lost(60, 105, 6 * DATAGRAM));
    copa.on_lost(&lost(70, 110, 20 * DATAGRAM));
    copa.on_ecn_ce(&marked(90, 120));
    assert_eq!(copa.window(), 50 * DATAGRAM);
    copa.on_ecn_ce(&marked(130, 190));
    assert_eq!(copa.window(), 25 * DATAGRAM);
}

#[test]
fn losses_that_were_none_take_nothing_from_the_window() {
    let mut copa = Copa::for_radios(DATAGRAM);
    copa.on_lost(&lost(10, 100, DATAGRAM));
    copa.on_spurious(&spurious(100, 110, DATAGRAM));
    assert_eq!((copa.window(), copa.in_slow_start()), (10 * DATAGRAM, true));
    let mut copa = steady(100);
    copa.on_lost(&lost(50, 100, 12 * DATAGRAM));
    assert_eq!(copa.window(), 50 * DATAGRAM);
    copa.on_spurious(&spurious(100, 110, 12 * DATAGRAM));
    assert_eq!((copa.window(), copa.in_slow_start()), (100 * DATAGRAM, false));
    // Losses that did not halve the window do not bring back what delays have taken since.
    copa.on_lost(&lost(150, 200, DATAGRAM));
    copa.set_window((80 * DATAGRAM) as f64);
    copa.on_spurious(&spurious(200, 210, DATAGRAM));
    assert_eq!(copa.window(), 80 * DATAGRAM);
}

#[test]
fn persistent_congestion_leads_back_to_slow_start() {
    let mut copa = steady(100);
    copa.on_lost(&LossSample { persistent: Persistence::Persistent, ..lost(1000, 3000, DATAGRAM) });
    assert_eq!((copa.window(), copa.in_slow_start()), (2 * DATAGRAM, true));
}
