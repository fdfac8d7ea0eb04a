//! A message is worth what its end is worth.

use super::*;
use crate::Hints;

/// URLLC, of which nothing is lent, for a byte has a price there.
fn priced() -> PathView {
    PathView { hints: Hints { price_per_byte: Some(1), ..Hints::NONE }, ..urllc() }
}

#[test]
fn a_message_that_the_scarce_path_completes_sooner_rides_it_whole() {
    // 2.5 + 6.4 ms and 4.8 ms of price, against 20.1 ms.
    assert_eq!(place(&part_of(1600), &[embb(), urllc()]), on(URLLC, 1200));
    assert_eq!(place(&part_of(400), &[embb(), queued(urllc(), 1200)]), on(URLLC, 400));
}

#[test]
fn a_message_whose_end_cannot_be_accelerated_gets_nothing_of_the_scarce_path() {
    // Its first packet alone would be worth it: 7.3 ms and 3.6 ms of price, against 20.1 ms.
    assert_eq!(place(&data(1200), &[embb(), urllc()]), on(URLLC, 1200));
    assert_eq!(place(&part_of(3000), &[embb(), urllc()]), on(EMBB, 1200));
    assert_eq!(place(&part_of(1_000_000), &[embb(), urllc()]), on(EMBB, 1200));
}

#[test]
fn the_tail_beyond_the_window_rides_the_scarce_path() {
    // The bulk path takes 2400 bytes now, the rest a round trip later, at 60 ms.
    let narrow = PathView { send_allowance: 2400, window: 2400, ..embb() };
    assert_eq!(place(&part_of(3600), &[narrow, priced()]), on(EMBB, 1200));
    let rest = PathView { send_allowance: 1200, window: 2400, in_flight: 1200, ..embb() };
    let second = Item { head_of_line_delay: milliseconds(20), ..part_of(2400) };
    assert_eq!(place(&second, &[rest, priced()]), on(EMBB, 1200));
    let tail = Item { head_of_line_delay: milliseconds(20), ..part_of(1200) };
    assert_eq!(place(&tail, &[full(narrow, 40), urllc()]), on(URLLC, 1200));
}

#[test]
fn an_item_is_cut_where_its_tail_begins() {
    let narrow = PathView { send_allowance: 700, window: 2400, in_flight: 1700, ..embb() };
    let last = Item { head_of_line_delay: milliseconds(20), ..part_of(1200) };
    let paths = [narrow, queued(urllc(), 1200)];
    assert_eq!(place(&last, &paths), on(EMBB, 700));
    assert_eq!(place(&Item { content: Content::Datagram, ..last }, &paths), on(EMBB, 1200));
}

#[test]
fn a_tail_too_long_for_the_scarce_path_waits_for_the_bulk_path() {
    let tail = Item { head_of_line_delay: milliseconds(20), ..part_of(100_000) };
    assert_eq!(place(&tail, &[full(embb(), 40), priced()]), Placement::WaitAtMost(milliseconds(40)));
}

#[test]
fn a_whole_message_stays_together_as_it_is_sent() {
    let mut policy = Hvc::default();
    let (mut left, mut backlog, mut head_of_line_delay) = (1600, 0, Duration::ZERO);
    while left > 0 {
        let item = Item { head_of_line_delay, ..part_of(left) };
        let Placement::On { path, bytes } = policy.place(&item, &[embb(), queued(urllc(), backlog)]) else {
            panic!("both paths may send");
        };
        assert_eq!(path, URLLC);
        (left, backlog) = (left - bytes, backlog + bytes);
        head_of_line_delay = milliseconds(2) + Bandwidth::from_mbit(2).transmission_time(backlog);
    }
}
