//! Channels that others share.

use super::*;
use crate::{Hints, Sharing};

fn shared(shared: Sharing) -> PathView {
    PathView { hints: Hints { shared, ..Hints::NONE }, ..urllc() }
}

/// The largest item that the scarce path carries.
fn largest(scarce: PathView) -> usize {
    let carried = |bytes: &usize| place(&data(*bytes), &[embb(), scarce]) == on(URLLC, *bytes);
    (1..5000).take_while(carried).last().unwrap_or(0)
}

#[test]
fn a_byte_costs_more_than_its_fare_where_others_wait_behind_it_unseen() {
    // It arrives after 2.5 ms and its transmission cost, 20 ms over eMBB: 17.5 ms are worth 1 + 0.73 transmission costs of
    // 10.1 ms, 1 + 1.47 of 7.1 ms, or 1 + 2.2 of 5.5 ms.
    for own in [Sharing::Unknown, Sharing::Dedicated] {
        assert!((2480..=2560).contains(&largest(shared(own))), "{}", largest(shared(own)));
    }
    for (others, bytes) in [(Sharing::Shared, 1740..=1790), (Sharing::Endpoint, 1330..=1390)] {
        assert!(bytes.contains(&largest(shared(others))), "{}", largest(shared(others)));
    }
}

#[test]
fn what_others_queued_is_part_of_the_fare_where_the_endpoint_keeps_an_account() {
    let accounted =
        |others: usize| PathView { backlog: others, others: Some(others), ..shared(Sharing::Endpoint) };
    // As on a channel of its own, and 1000 bytes less behind 1000 bytes of others.
    assert_eq!(largest(accounted(0)), largest(shared(Sharing::Dedicated)));
    let behind = largest(shared(Sharing::Dedicated)) - largest(accounted(1000));
    assert!((980..=1020).contains(&behind), "{behind}");
    // Those who are not of this endpoint are in nobody's account.
    let foreign = PathView { others: Some(0), ..shared(Sharing::Shared) };
    assert_eq!(largest(foreign), largest(shared(Sharing::Shared)));
}

#[test]
fn background_leaves_a_scarce_path_to_those_who_share_it() {
    let background = Item { priority: Priority { urgency: 7, incremental: true }, ..data(100) };
    let again = Item { history: History::Lost { on: EMBB }, ..background };
    for own in [Sharing::Unknown, Sharing::Dedicated] {
        assert_eq!(place(&background, &[embb(), shared(own)]), on(URLLC, 100));
        assert_eq!(place(&again, &[embb(), shared(own)]), on(URLLC, 100));
    }
    for others in [Sharing::Endpoint, Sharing::Shared] {
        assert_eq!(place(&background, &[embb(), shared(others)]), on(EMBB, 100));
        assert_eq!(place(&again, &[embb(), shared(others)]), on(EMBB, 100));
        assert_eq!(place(&data(100), &[embb(), shared(others)]), on(URLLC, 100));
        assert_eq!(place(&background, &[shared(others)]), on(URLLC, 100), "there is no other");
    }
}

#[test]
fn what_acknowledges_background_alone_keeps_to_its_own_path() {
    let mut policy = Hvc::default();
    let paths = [embb(), urllc()];
    let at = |now, item: Item| Item { now: milliseconds(now), ..item };
    let acknowledgement = Item::new(Content::Acknowledgement { of: EMBB }, 25);
    let background = Item { priority: Priority { urgency: 7, incremental: true }, ..data(100) };
    assert_eq!(policy.place(&acknowledgement, &paths), on(URLLC, 25), "nobody knows what of");
    policy.place(&background, &paths);
    assert_eq!(policy.place(&acknowledgement, &paths), on(EMBB, 25));
    policy.place(&data(100), &paths);
    assert_eq!(policy.place(&at(900, acknowledgement), &paths), on(URLLC, 25));
    assert_eq!(policy.place(&at(1100, acknowledgement), &paths), on(EMBB, 25));
}
