//! Bulk is lent what nobody else wants of a scarce path, and no more.

use super::*;
use crate::{Hints, Sharing};

/// URLLC, with the rate promised.
fn promised() -> PathView {
    let hints = Hints { rate: Some(Bandwidth::from_mbit(2)), shared: Sharing::Dedicated, ..Hints::NONE };
    PathView { hints, ..urllc() }
}

/// eMBB with a window of 300 kB that is in flight.
fn busy() -> PathView {
    PathView { window: 300_000, ..full(embb(), 1) }
}

fn bulk_at(now: u64) -> Item {
    Item { head_of_line_delay: milliseconds(60), now: milliseconds(now), ..part_of(4_000_000) }
}

fn message_at(now: u64) -> Item {
    Item { now: milliseconds(now), ..part_of(200) }
}

/// Offers bulk every millisecond from `from` to `to`, over a path that drains; bytes lent, and the longest queue found.
fn lent(policy: &mut Hvc, scarce: PathView, from: u64, to: u64) -> (usize, usize) {
    let (mut lent, mut backlog, mut most) = (0, 0_usize, 0);
    for now in from..to {
        while let Placement::On { path: URLLC, bytes } =
            policy.place(&bulk_at(now), &[busy(), queued(scarce, backlog)])
        {
            lent += bytes;
            backlog += bytes + PACKET + FRAME;
        }
        most = most.max(backlog);
        backlog = backlog.saturating_sub(250);
    }
    (lent, most)
}

#[test]
fn bulk_borrows_all_that_is_promised_in_pieces_of_two_milliseconds_while_nobody_else_wants_it() {
    let (lent, most) = lent(&mut Hvc::default(), promised(), 0, 10_000);
    // 2 Mbit/s are 250 bytes a millisecond: of 3 ms, in which it is asked again, 548 bytes with headers.
    assert!((1_500_000..=2_200_000).contains(&lent), "{lent} bytes");
    assert!(most <= 500, "{most} bytes in the way of a message");
}

#[test]
fn bulk_borrows_half_for_a_second_after_something_urgent() {
    let mut policy = Hvc::default();
    assert_eq!(policy.place(&message_at(0), &[embb(), promised()]), on(URLLC, 200));
    let (lent, most) = lent(&mut policy, promised(), 101, 1001);
    assert!((80_000..=112_500).contains(&lent), "{lent} bytes");
    assert!(most <= 500, "{most} bytes in the way of a message");
}

#[test]
fn bulk_that_waits_asks_again_when_it_may_borrow() {
    let mut policy = Hvc::default();
    let paths = [PathView { window: 300_000, ..full(embb(), 40) }, promised()];
    assert_eq!(policy.place(&bulk_at(0), &paths), on(URLLC, 464));
    // 548 bytes with all headers take 2.2 ms.
    let paths = [paths[0], queued(promised(), 500)];
    assert_eq!(policy.place(&bulk_at(0), &paths), Placement::WaitAtMost(Duration::from_micros(2192)));
    let paths = [paths[0], promised()];
    assert_eq!(policy.place(&bulk_at(1), &paths), Placement::WaitAtMost(Duration::from_micros(1192)));
    assert_eq!(policy.place(&bulk_at(3), &paths), on(URLLC, 464));
}

#[test]
fn bulk_borrows_only_what_is_promised_to_this_connection_and_free() {
    let hints = promised().hints;
    for hints in [
        Hints { shared: Sharing::Shared, ..hints },
        Hints { shared: Sharing::Endpoint, ..hints },
        Hints { price_per_byte: Some(1), ..hints },
    ] {
        assert_eq!(lent(&mut Hvc::default(), PathView { hints, ..promised() }, 0, 100).0, 0, "{hints:?}");
    }
}

/// Bulk over a path whose rate was measured and that returns acknowledgements after 5 ms; bytes lent, and the longest queue.
fn lent_unpromised(bulk: PathView, mbit: u64) -> (usize, usize) {
    let mut policy = Hvc::default();
    let rate = Bandwidth::from_mbit(mbit);
    let (mut lent, mut backlog, mut most) = (0, 0_usize, 0);
    for now in 0..1000 {
        let drained = rate.bytes_in(milliseconds(1)) as usize;
        backlog = backlog.saturating_sub(drained);
        loop {
            let in_flight = backlog + if backlog > 0 { 5 * drained } else { 0 };
            let rtt = Rtt { smoothed: milliseconds(5), minimum: milliseconds(5), ..Rtt::ZERO };
            let path = PathView { rate: Some(rate), backlog, in_flight, rtt, ..urllc() };
            let Placement::On { path: URLLC, bytes } = policy.place(&bulk_at(now), &[bulk, path]) else {
                break;
            };
            (lent, backlog) = (lent + bytes, backlog + bytes);
        }
        most = most.max(backlog);
    }
    (lent, most)
}

#[test]
fn bulk_fills_a_path_whose_rate_was_measured_and_queues_the_less_there_the_scarcer_it_is() {
    // 250 kB in a second beside 100 Mbit/s; 3 ms of queue take 750 bytes, and a datagram may be in flight beside.
    let (narrow, queue) = lent_unpromised(busy(), 2);
    assert!(narrow > 150_000 && queue <= 2 * 1200, "{narrow} bytes, {queue} queued");
    // As wide as the other: nothing is kept back but what would come too late.
    let (equal, queue) = lent_unpromised(busy(), 99);
    assert!(equal > 10_000_000 && queue > 100_000, "{equal} bytes, {queue} queued");
}

#[test]
fn of_what_fits_the_bulk_path_a_part_is_lent_only_to_a_path_of_about_its_rate() {
    let beside = |mbit| {
        let path = PathView { rate: Some(Bandwidth::from_mbit(mbit)), delay: milliseconds(20), ..urllc() };
        place(&part_of(100_000), &[embb(), path])
    };
    assert_eq!([beside(2), beside(20)], [on(EMBB, 1200); 2]);
    assert_eq!([beside(60), beside(90)], [on(URLLC, 1200); 2]);
}

#[test]
fn bulk_leaves_the_scarce_path_alone_while_messages_use_it() {
    let mut policy = Hvc::default();
    for now in (0..1000).step_by(100) {
        let placement = policy.place(&message_at(now), &[embb(), promised()]);
        assert_eq!(placement, on(URLLC, 200));
        assert_eq!(lent(&mut policy, promised(), now, now + 100).0, 0, "after {now} ms");
    }
    // A tenth of a second after the last message it borrows again.
    assert_eq!(lent(&mut policy, promised(), 1000, 1001).0, 0);
    assert!(lent(&mut policy, promised(), 1001, 1500).0 > 40_000);
}

#[test]
fn what_fits_the_bulk_path_at_once_borrows_nothing() {
    // 4 MB against a window of 1 MB, and 100 kB.
    let paths = [embb(), promised()];
    assert_eq!(Hvc::default().place(&bulk_at(0), &paths), on(URLLC, 464));
    assert_eq!(
        Hvc::default().place(&Item { head_of_line_delay: milliseconds(60), ..part_of(100_000) }, &paths),
        on(EMBB, 1200)
    );
}

#[test]
fn pieces_are_not_so_small_that_they_are_mostly_header() {
    // 2 ms at 0.5 Mbit/s are 125 bytes.
    let rate = Some(Bandwidth::from_bits_per_second(500_000));
    let slow = PathView { rate, hints: Hints { rate, ..promised().hints }, ..promised() };
    assert_eq!(lent(&mut Hvc::default(), slow, 0, 1000).0, 0);
}

#[test]
fn what_is_lent_on_a_path_that_is_gone_is_forgotten() {
    let mut policy = Hvc::default();
    let first = lent(&mut policy, promised(), 0, 1).0;
    policy.observe(&Observation::PathGone { path: URLLC });
    assert_eq!(lent(&mut policy, promised(), 0, 1).0, first);
}
