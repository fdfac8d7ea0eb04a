//! Tests of the rule's expectations, which are compared with the observed arrivals.

use super::*;
use crate::Arrival;

fn expected(item: &Item, paths: &[PathView]) -> Option<Expectation> {
    let mut policy = Hvc::default();
    policy.place(item, paths);
    policy.expected()
}

#[test]
fn it_expects_the_arrival_over_either_path_whichever_it_takes() {
    // 20 ms and 1000 bytes at 100 Mbit/s; 2.5 ms and 1000 bytes at 2 Mbit/s.
    let of = |path, micros| Arrival { path, after: Duration::from_micros(micros) };
    let told = expected(&data(1000), &[embb(), urllc()]);
    let wanted =
        Expectation { head_of_line_delay: Duration::ZERO, bulk: of(EMBB, 20_080), scarce: of(URLLC, 6_500) };
    assert_eq!(told, Some(wanted));
    assert_eq!(told.map(|told| told.reward()), Some(13_580_000));
    // 4 ms of queue before it: URLLC does not win any more, and is expected to be earlier all the same.
    let told = expected(&data(2500), &[embb(), queued(urllc(), 1000)]);
    assert_eq!(place(&data(2500), &[embb(), queued(urllc(), 1000)]), on(EMBB, 2500));
    assert_eq!(told.map(|told| told.scarce), Some(of(URLLC, 16_500)));
}

#[test]
fn it_expects_nothing_where_it_did_not_choose_between_two_that_could_send() {
    assert_eq!(expected(&data(1000), &[embb()]), None);
    assert_eq!(expected(&data(1000), &[embb(), full(urllc(), 3)]), None);
    let acknowledgement = Item::new(Content::Acknowledgement { of: EMBB }, 50);
    assert_eq!(expected(&acknowledgement, &[embb(), urllc()]), None);
    let mut policy = Hvc::default();
    policy.place(&data(1000), &[embb(), urllc()]);
    policy.place(&data(1000), &[embb()]);
    assert_eq!(policy.expected(), None, "it is about the latest answer");
}
