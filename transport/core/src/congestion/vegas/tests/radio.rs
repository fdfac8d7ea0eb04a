use super::*;

/// A controller for radios in congestion avoidance with a window of `datagrams`.
fn avoiding(datagrams: usize) -> Vegas {
    beyond_slow_start(Vegas::for_radios(DATAGRAM), datagrams)
}

#[test]
fn the_window_follows_the_datagrams_in_the_queue() {
    // 100 datagrams: 3.8 of them wait at 4 ms, 9 at 10 ms.
    for (queue, expected) in [(0, 104), (3, 100), (10, 96)] {
        let mut vegas = avoiding(100);
        rounds(&mut vegas, 1000, 5, queue);
        assert_eq!(vegas.window(), expected * DATAGRAM, "{queue} ms of queueing");
    }
}

#[test]
fn flight_exceeds_the_window_for_acknowledgements_of_a_quarter_of_it_only() {
    // Of 100 datagrams.
    let flight = |covered: usize| {
        let mut vegas = avoiding(100);
        vegas.on_acknowledged(&Sample { bytes: covered * DATAGRAM, ..sample(at(1000)) });
        vegas.window() / DATAGRAM
    };
    assert_eq!([9, 15, 24, 30].map(flight), [100, 100, 100, 130]);
}

#[test]
fn slow_start_does_not_end_for_a_delay_that_may_be_a_radios() {
    // An eighth of 100 ms; 250 datagrams would be 28 in the queue.
    let mut vegas = Vegas::for_radios(DATAGRAM);
    vegas.set_window((250 * DATAGRAM) as f64);
    rounds(&mut vegas, 1000, 1, 0);
    rounds(&mut vegas, 1200, 6, 12);
    assert!(vegas.in_slow_start());
    rounds(&mut vegas, 2000, 3, 13);
    assert!(!vegas.in_slow_start());
}

#[test]
fn what_slow_start_left_in_the_queue_is_taken_back_every_other_round_trip() {
    let (mut vegas, mut now) = (avoiding(200), 1000);
    let mut round = |vegas: &mut Vegas, queue| {
        now += 1000;
        rounds(vegas, now, 1, queue);
    };
    round(&mut vegas, 0);
    round(&mut vegas, 0);
    vegas.phase = Phase::Holding;
    // 40 of 140 ms are a queue, and 20 of 120 ms of what is left; two datagrams may stay.
    for (queue, window, phase) in [
        (40, 145, Phase::Draining),
        (40, 145, Phase::Drained),
        (20, 123, Phase::Draining),
        (20, 123, Phase::Drained),
        (0, 123, Phase::Avoidance),
    ] {
        round(&mut vegas, queue);
        assert_eq!((vegas.window() / DATAGRAM, vegas.phase), (window, phase), "{queue} ms");
    }
}

#[test]
fn slow_start_ends_with_the_first_datagram_in_the_queue() {
    let mut vegas = Vegas::for_radios(DATAGRAM);
    rounds(&mut vegas, 1000, 3, 0);
    assert!(vegas.in_slow_start());
    rounds(&mut vegas, 2000, 3, 40);
    assert!(!vegas.in_slow_start());
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
fn a_loss_in_slow_start_halves_the_window() {
    // RFC 9002 §7.3.2: half of it may be more than the path carries.
    let mut vegas = Vegas::for_radios(DATAGRAM);
    vegas.set_window((100 * DATAGRAM) as f64);
    vegas.on_lost(&lost(1000, 1100, DATAGRAM));
    assert_eq!((vegas.window(), vegas.in_slow_start()), (50 * DATAGRAM, false));
}

#[test]
fn losses_that_were_none_take_nothing_from_the_window() {
    let mut vegas = avoiding(100);
    vegas.on_lost(&lost(1000, 1100, DATAGRAM));
    vegas.on_spurious(&spurious(1100, 1110, DATAGRAM));
    assert_eq!((vegas.window(), vegas.phase), (100 * DATAGRAM, Phase::Avoidance));
    let mut vegas = Vegas::for_radios(DATAGRAM);
    vegas.on_lost(&lost(1000, 1100, DATAGRAM));
    vegas.on_spurious(&spurious(1100, 1110, DATAGRAM));
    assert_eq!((vegas.window(), vegas.in_slow_start()), (10 * DATAGRAM, true));
}

#[test]
fn persistent_congestion_leads_back_to_slow_start() {
    let mut vegas = avoiding(100);
    vegas.on_lost(&LossSample { persistent: Persistence::Persistent, ..lost(1000, 3000, DATAGRAM) });
    assert_eq!((vegas.window(), vegas.in_slow_start()), (2 * DATAGRAM, true));
}
