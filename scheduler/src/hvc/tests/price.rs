//! What the price of a scarce path promises: a queue that is bounded, and nobody who is kept off for ever.
//!
//! The price is α times the fare, and the fare is the queue that an item finds and adds to. So an item is taken only while
//! (1 + α) times that queue is less than what the path saves, D: the queue is never longer than D / (1 + α). And as it
//! drains whatever is asked, after that time the path takes whatever alone is worth it.

use proptest::prelude::*;

use super::*;

/// What URLLC saves a byte that it carries at once.
const SAVED: u64 = 17_500_000;

/// Bytes that URLLC carries in `nanos`.
fn carried(nanos: u64) -> usize {
    usize::try_from(nanos / 4000).expect("small")
}

/// Offers `items` of (microseconds since the one before, bytes, urgency): the longest queue in bytes that one of them left.
fn longest_queue(items: &[(u64, usize, u8)]) -> usize {
    let (mut policy, mut now, mut backlog, mut most) = (Hvc::default(), 0, 0_usize, 0);
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
        // At urgency 0 α is 0.375; 1400 bytes take eMBB 0.1 ms that URLLC saves as well.
        let most = carried((SAVED + 112_000) * 1000 / 1375) + 2;
        prop_assert!(longest_queue(&items) <= most, "{} of {most} bytes", longest_queue(&items));
        let ordinary: Vec<_> = items.iter().map(|&(pause, bytes, _)| (pause, bytes, 3)).collect();
        let most = carried((SAVED + 112_000) * 1000 / 1750) + 2;
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
