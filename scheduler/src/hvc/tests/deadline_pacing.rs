//! Messages with deadlines yield to more urgent ones on a scarce path.

use super::*;

/// A part of a message that only URLLC completes in time, eMBB being stalled, of this urgency.
fn pressed(urgency: u8, now: u64) -> Item {
    let message = Message { remaining: 1200, deadline: Some(milliseconds(60)) };
    let priority = Priority { urgency, incremental: false };
    Item { message: Some(message), priority, now: milliseconds(now), ..data(1200) }
}

fn stalled() -> PathView {
    full(embb(), 500)
}

#[test]
fn the_less_urgent_goes_in_pieces_while_the_more_urgent_has_its_rhythm() {
    let mut policy = Hvc::default();
    assert_eq!(policy.place(&pressed(0, 0), &[stalled(), urllc()]), on(URLLC, 1200));
    // 2 ms at 2 Mbit/s.
    assert_eq!(policy.place(&pressed(3, 10), &[stalled(), urllc()]), on(URLLC, 500));
    // Nothing is queued behind a piece: it takes 2 ms.
    let behind = queued(urllc(), 500);
    assert_eq!(policy.place(&pressed(3, 10), &[stalled(), behind]), Placement::WaitAtMost(milliseconds(2)));
    // The more urgent waits for no one.
    assert_eq!(policy.place(&pressed(0, 33), &[stalled(), behind]), on(URLLC, 1200));
    assert_eq!(policy.place(&pressed(3, 134), &[stalled(), urllc()]), on(URLLC, 1200));
}

#[test]
fn what_is_repeated_yields_too() {
    let mut policy = Hvc::default();
    policy.place(&pressed(0, 0), &[stalled(), urllc()]);
    let lost = Item { history: History::Lost { on: EMBB }, ..pressed(5, 20) };
    assert_eq!(policy.place(&lost, &[stalled(), urllc()]), on(URLLC, 500));
}

#[test]
fn nothing_yields_without_a_deadline_or_to_its_equals() {
    let mut policy = Hvc::default();
    policy.place(&pressed(3, 0), &[stalled(), urllc()]);
    assert_eq!(policy.place(&pressed(3, 10), &[stalled(), urllc()]), on(URLLC, 1200));
    policy.place(&pressed(0, 20), &[stalled(), urllc()]);
    let timeless = Item { message: Some(Message { remaining: 1200, deadline: None }), ..pressed(3, 30) };
    assert_eq!(policy.place(&timeless, &[stalled(), urllc()]), on(URLLC, 1200));
}
