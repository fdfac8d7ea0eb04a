//! Tests of the bounds that the price of a scarce path sets: on its queue, and on the time for which anybody is kept
//! off.
//!
//! The price is α times the transmission cost, and the transmission cost is the queue that an item finds and adds to. An item
//! is therefore taken only while (1 + α) times that queue is less than what the path saves, D: the queue is never longer than
//! D / (1 + α). And as it drains whatever is asked, after that time the path takes whatever alone is worth it. A price that
//! follows demand has its least α in the one and its greatest in the other.

use proptest::prelude::*;

use super::*;

/// The time that URLLC saves a byte that it carries at once, in nanoseconds.
const SAVED: u64 = 17_500_000;

/// Bytes that URLLC carries in `nanos`.
fn carried(nanos: u64) -> usize {
    usize::try_from(nanos / 4000).expect("small")
}

/// Offers `items` of (microseconds since the one before, bytes, urgency): the longest queue in bytes that one of them left.
fn longest_queue(items: &[(u64, usize, u8)]) -> usize {
    longest_queue_with(&mut Hvc::default(), items)
}

/// The same with `policy`.
fn longest_queue_with(policy: &mut Hvc, items: &[(u64, usize, u8)]) -> usize {
    let (mut now, mut backlog, mut most) = (0, 0_usize, 0);
    for (number, &(pause, bytes, urgency)) in (0..).zip(items) {
        now += pause;
        backlog = backlog.saturating_sub(carried(pause * 1000));
        let item = Item {
            content: Content::Stream { id: number * 4 },
            now: Duration::from_micros(now),
            priority: Priority { urgency, incremental: false },
            ..data(bytes)
        };
        if let Placement::On { path: URLLC, bytes } = policy.place(&item, &[embb(), queued(urllc(), backlog)])
        {
            backlog += bytes;
            most = most.max(backlog);
        }
    }
    most
}

proptest! {
    #[test]
    fn the_queue_of_a_scarce_path_is_bounded_by_what_the_path_saves(
        items in prop::collection::vec((0_u64..8000, 1_usize..1400, 0_u8..8), 1..200),
    ) {
        // URLLC is narrower by 0.98: at urgency 0 α is 0.367. 1400 bytes take eMBB 0.1 ms that URLLC saves as well.
        let most = carried((SAVED + 112_000) * 1000 / 1367) + 2;
        prop_assert!(longest_queue(&items) <= most, "{} of {most} bytes", longest_queue(&items));
        let ordinary: Vec<_> = items.iter().map(|&(pause, bytes, _)| (pause, bytes, 3)).collect();
        let most = carried((SAVED + 112_000) * 1000 / 1734) + 2;
        prop_assert!(longest_queue(&ordinary) <= most, "{} of {most} bytes", longest_queue(&ordinary));
    }

    #[test]
    fn what_is_worth_it_alone_is_taken_once_the_queue_had_time_to_drain(
        items in prop::collection::vec((0_u64..8000, 1_usize..1400, 0_u8..8), 0..100),
        bytes in 1_usize..2400,
    ) {
        let queue = longest_queue(&items);
        let mut policy = Hvc::default();
        let left = queue.saturating_sub(carried(SAVED));
        let item = Item { now: milliseconds(20), ..data(bytes) };
        prop_assert_eq!(policy.place(&item, &[embb(), queued(urllc(), left)]), on(URLLC, bytes));
    }

    #[test]
    fn a_price_that_follows_demand_bounds_the_queue_and_keeps_nobody_off_for_ever(
        items in prop::collection::vec((0_u64..8000, 1_usize..1400, 0_u8..4), 1..200),
        bytes in 1_usize..1000,
    ) {
        let mut policy = Hvc::at(Price::Demand);
        // At urgency 0 the least α is 0.122.
        let most = carried((SAVED + 112_000) * 1000 / 1122) + 2;
        let queue = longest_queue_with(&mut policy, &items);
        prop_assert!(queue <= most, "{queue} of {most} bytes");
        // Four transmission costs of it are less than what it saves.
        let item = Item { now: milliseconds(1700), ..data(bytes) };
        prop_assert_eq!(policy.place(&item, &[embb(), urllc()]), on(URLLC, bytes));
    }
}

#[test]
fn what_went_without_makes_a_scarce_path_dearer_for_what_comes_next() {
    let mut policy = Hvc::at(Price::Demand);
    let stream = |id, bytes| Item { content: Content::Stream { id }, ..data(bytes) };
    assert_eq!(policy.place(&stream(0, 1100), &[embb(), queued(urllc(), 2000)]), on(URLLC, 1100));
    for id in 1..10 {
        assert_eq!(policy.place(&stream(4 * id, 1200), &[embb(), queued(urllc(), 4000)]), on(EMBB, 1200));
    }
    assert_eq!(policy.place(&stream(40, 1100), &[embb(), queued(urllc(), 2000)]), on(EMBB, 1100));
    // Once the path could have carried all of that, it is as cheap as before.
    let later = Item { now: milliseconds(500), ..stream(44, 1100) };
    assert_eq!(policy.place(&later, &[embb(), queued(urllc(), 2000)]), on(URLLC, 1100));
}

#[test]
fn what_waits_for_a_scarce_path_stands_before_what_is_asked_about_later() {
    let mut policy = Hvc::default();
    let paths = [embb(), full(urllc(), 4)];
    let stream = |id| Item { content: Content::Stream { id }, ..data(1200) };
    // It would be there after 4 + 2.5 + 4.8 ms; with one before it 4.8 ms later, and then its price is more than it saves.
    assert_eq!(policy.place(&stream(0), &paths), Placement::WaitAtMost(milliseconds(4)));
    assert_eq!(policy.place(&stream(4), &paths), on(EMBB, 1200));
    // Asked again, the first stands before the other again.
    let later = |id| Item { now: milliseconds(1), ..stream(id) };
    assert_eq!(policy.place(&later(0), &[embb(), full(urllc(), 3)]), Placement::WaitAtMost(milliseconds(3)));
    assert_eq!(policy.place(&later(4), &[embb(), full(urllc(), 3)]), on(EMBB, 1200));
}
