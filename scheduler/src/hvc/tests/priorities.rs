//! Urgency, background and deadlines.

use super::*;

fn urgent(urgency: u8, item: Item) -> Item {
    Item { priority: Priority { urgency, ..Priority::DEFAULT }, ..item }
}

fn due(deadline: u64, item: Item) -> Item {
    let remaining = item.bytes;
    Item { message: Some(Message { remaining, deadline: Some(milliseconds(deadline)) }), ..item }
}

#[test]
fn urgency_moves_the_price_at_which_the_scarce_path_is_worth_it() {
    // With 1400 bytes queued: a reward of 20.1 − 12.9 ms against a price of 7.8 ms at urgency 3, 3.9 ms at 0.
    let paths = |backlog| [embb(), queued(urllc(), backlog)];
    let chosen = |urgency, backlog| place(&urgent(urgency, data(1200)), &paths(backlog)) == on(URLLC, 1200);
    assert!(chosen(3, 1100) && !chosen(3, 1400));
    assert!(chosen(0, 1400) && !chosen(0, 2400));
    assert!(chosen(4, 800) && !chosen(4, 1100));
    assert!(!chosen(7, 0));
}

#[test]
fn background_leaves_the_scarce_path_to_a_recent_foreground() {
    let paths = [embb(), urllc()];
    let mut policy = Hvc::default();
    let at = |urgency, now| Item { now: milliseconds(now), ..urgent(urgency, data(60)) };
    assert_eq!(policy.place(&at(7, 0), &paths), on(URLLC, 60));
    assert_eq!(policy.place(&at(3, 10), &paths), on(URLLC, 60));
    assert_eq!(policy.place(&at(6, 11), &paths), on(EMBB, 60));
    assert_eq!(policy.place(&at(5, 12), &paths), on(URLLC, 60));
    assert_eq!(policy.place(&at(7, 112), &paths), on(EMBB, 60));
    assert_eq!(policy.place(&at(7, 113), &paths), on(URLLC, 60));
    // Where the scarce path is the only one it is still used.
    assert_eq!(policy.place(&at(3, 114), &paths), on(URLLC, 60));
    assert_eq!(policy.place(&at(7, 115), &paths[1..]), on(URLLC, 60));
}

#[test]
fn a_deadline_that_every_path_meets_spares_the_scarce_one() {
    let paths = [embb(), urllc()];
    assert_eq!(place(&due(25, data(1200)), &paths), on(URLLC, 1200));
    assert_eq!(place(&due(60, data(1200)), &paths), on(EMBB, 1200));
}

#[test]
fn a_deadline_that_only_the_scarce_path_meets_pays_for_it() {
    // 14.5 ms and 9 ms of price, against 20.2 ms.
    let paths = [embb(), queued(urllc(), 1800)];
    assert_eq!(place(&due(30, data(1200)), &paths), on(EMBB, 1200));
    assert_eq!(place(&due(16, data(1200)), &paths), on(URLLC, 1200));
    assert_eq!(place(&due(10, data(1200)), &paths), on(EMBB, 1200));
}
