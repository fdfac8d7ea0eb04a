//! Acknowledgements on the low-latency path, as long as they do not fill it.

use super::*;
use crate::PathState;

fn acknowledgement(of: PathId, now: Duration) -> Item {
    Item { now, ..Item::new(Content::Acknowledgement { of }, 25) }
}

fn first(paths: &[PathView]) -> Placement {
    place(&acknowledgement(EMBB, Duration::ZERO), paths)
}

#[test]
fn acknowledgements_of_the_bulk_path_take_the_low_latency_path() {
    assert_eq!(first(&[embb(), urllc()]), on(URLLC, 25));
    assert_eq!(place(&acknowledgement(URLLC, Duration::ZERO), &[embb(), urllc()]), on(URLLC, 25));
}

#[test]
fn acknowledgements_stay_within_a_quarter_of_the_rate_and_half_of_that_where_connections_share_it() {
    for (others, within) in [(None, 480_000..=510_000), (Some(0), 240_000..=260_000)] {
        let mut policy = Hvc::default();
        let paths = [embb(), PathView { others, ..urllc() }];
        // 8000 acknowledgements a second, those of 90 Mbit/s.
        let taken = (0..8000).filter(|n| {
            let now = Duration::from_micros(125 * n);
            policy.place(&acknowledgement(EMBB, now), &paths) == on(URLLC, 25)
        });
        let bits = taken.count() * (25 + PACKET + LOWER) * 8;
        assert!(within.contains(&bits), "{bits} bits in a second of 2 Mbit");
    }
}

#[test]
fn a_burst_of_acknowledgements_builds_no_queue() {
    let mut policy = Hvc::default();
    let paths = [embb(), urllc()];
    let taken =
        (0..100).filter(|_| policy.place(&acknowledgement(EMBB, milliseconds(9)), &paths) == on(URLLC, 25));
    let queue = Bandwidth::from_mbit(2).transmission_time(taken.count() * (25 + PACKET + LOWER));
    assert!(queue > milliseconds(1) && queue < milliseconds(4), "{queue:?}");
}

#[test]
fn acknowledgements_fall_back_to_their_own_path() {
    let silent = PathView { state: PathState::Silent, ..urllc() };
    let slow = PathView { delay: milliseconds(30), ..urllc() };
    let unproven = PathView { state: PathState::Unvalidated, ..urllc() };
    for other in [silent, slow, unproven, queued(urllc(), 3000), full(urllc(), 3)] {
        assert_eq!(first(&[embb(), other]), on(EMBB, 25), "{other:?}");
    }
}

#[test]
fn acknowledgements_do_not_wait_for_the_congestion_window() {
    assert_eq!(first(&[full(embb(), 40), queued(urllc(), 3000)]), on(EMBB, 25));
    assert_eq!(first(&[full(embb(), 40)]), on(EMBB, 25));
    assert_eq!(first(&[full(urllc(), 4)]), on(URLLC, 25));
}

#[test]
fn acknowledgements_of_a_silent_path_take_another() {
    let silent = PathView { state: PathState::Silent, ..embb() };
    assert_eq!(first(&[silent, queued(urllc(), 9000)]), on(URLLC, 25));
}

#[test]
fn the_budget_starts_anew_on_another_path() {
    let mut policy = Hvc::default();
    let spend = |policy: &mut Hvc| {
        let item = acknowledgement(EMBB, milliseconds(1));
        (0..50).filter(|_| policy.place(&item, &[embb(), urllc()]) == on(URLLC, 25)).count()
    };
    assert!(spend(&mut policy) > 0);
    assert_eq!(spend(&mut policy), 0);
    policy.observe(&Observation::PathGone { path: EMBB });
    assert_eq!(spend(&mut policy), 0);
    policy.observe(&Observation::PathGone { path: URLLC });
    assert!(spend(&mut policy) > 0);
}
