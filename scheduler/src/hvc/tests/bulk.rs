//! A long transfer of unknown length belongs on the bulk path, room or not.

use super::*;

/// Sends one stream for a second over an eMBB path that takes a window each round trip; bytes by path, and the longest queue
/// on URLLC.
fn transfer(window: usize) -> ([usize; 2], usize) {
    let mut policy = Hvc::default();
    let (mut sent, mut backlog, mut most) = ([0; 2], 0_usize, 0);
    for round in 0..25 {
        let mut send_allowance = window;
        for step in 0..40 {
            let now = milliseconds(40 * round + step);
            let next_send = milliseconds(40 - step);
            // URLLC drains 2 Mbit/s.
            backlog = backlog.saturating_sub(250);
            loop {
                let path = PathView { send_allowance, window, in_flight: window - send_allowance, ..embb() };
                let path = if send_allowance == 0 { PathView { next_send, ..path } } else { path };
                let paths = [path, queued(urllc(), backlog)];
                let head_of_line_delay = milliseconds(20);
                let item = Item { now, head_of_line_delay, pending: ROOM, ..data(1200) };
                match policy.place(&item, &paths) {
                    Placement::On { path: EMBB, bytes } => {
                        sent[0] += bytes.min(send_allowance);
                        send_allowance -= bytes.min(send_allowance);
                    }
                    Placement::On { bytes, .. } => {
                        sent[1] += bytes;
                        backlog += bytes;
                        most = most.max(backlog);
                    }
                    _ => break,
                }
            }
        }
    }
    (sent, most)
}

#[test]
fn bulk_uses_every_window_and_makes_no_queue_on_the_scarce_path() {
    for window in [14_400, 60_000, 500_000] {
        let (sent, queue) = transfer(window);
        assert_eq!(sent[0], 25 * window);
        // 3 ms at 2 Mbit/s, and a datagram.
        assert!(queue <= 2 * 1200, "{queue} bytes with a window of {window}");
    }
}

#[test]
fn bulk_does_not_wait_packet_by_packet_for_a_scarce_path_that_is_paced() {
    // The bulk path has a long queue, and the scarce one takes a packet every 6 ms, as its rate allows.
    let mut policy = Hvc::default();
    let slow = PathView { delay: milliseconds(135), ..embb() };
    let mut sent = [0; 2];
    for step in 0..1000 {
        let scarce = if step % 6 == 0 { urllc() } else { full(urllc(), 6 - step % 6) };
        let paths = [slow, scarce];
        // What is under way on the bulk path is not waited for: this is the worst case.
        match policy.place(&Item { now: milliseconds(step), pending: ROOM, ..data(1200) }, &paths) {
            Placement::On { path: EMBB, bytes } => sent[0] += bytes,
            Placement::On { bytes, .. } => sent[1] += bytes,
            _ => {}
        }
    }
    assert!(sent[0] > 3 * sent[1], "{sent:?}");
}

#[test]
fn bulk_waits_a_moment_for_the_bulk_path_rather_than_pay() {
    let item = Item { head_of_line_delay: milliseconds(20), ..data(1200) };
    let placement = place(&item, &[full(embb(), 2), urllc()]);
    assert_eq!(placement, Placement::WaitAtMost(milliseconds(2)));
}

#[test]
fn the_first_frame_of_a_stream_does_not_wait_for_a_full_bulk_path() {
    assert_eq!(place(&data(1200), &[full(embb(), 40), urllc()]), on(URLLC, 1200));
}

#[test]
fn bulk_paths_of_similar_rate_share_by_completion() {
    let wifi =
        PathView { id: PathId(2), delay: milliseconds(10), rate: Some(Bandwidth::from_mbit(50)), ..embb() };
    assert_eq!(place(&data(1200), &[embb(), wifi]), on(PathId(2), 1200));
    // 10 ms of queue make up for the shorter delay.
    assert_eq!(place(&data(1200), &[embb(), queued(wifi, 64_000)]), on(EMBB, 1200));
}

#[test]
fn a_stream_does_not_wait_for_what_another_stream_waits_for() {
    let behind = Item { head_of_line_delay: milliseconds(20), ..data(400) };
    let paths = [embb(), urllc()];
    assert_eq!(place(&behind, &paths), on(EMBB, 400));
    assert_eq!(place(&Item { content: Content::Stream { id: 4 }, ..data(400) }, &paths), on(URLLC, 400));
}

#[test]
fn a_long_stream_uses_both_of_two_slow_paths_and_a_short_one_waits_for_the_better() {
    // 3 Mbit/s with 20 ms and 2 Mbit/s with 2.5 ms: neither is scarce to speak of. The near one is paced: room comes in 4 ms.
    let far = PathView { rate: Some(Bandwidth::from_mbit(3)), ..embb() };
    assert_eq!(place(&part_of(100_000), &[far, full(urllc(), 4)]), on(EMBB, 1200));
    assert_eq!(place(&part_of(1200), &[far, full(urllc(), 4)]), Placement::WaitAtMost(milliseconds(4)));
    assert_eq!(place(&part_of(100_000), &[far, urllc()]), on(URLLC, 1200));
}

#[test]
fn a_bulk_path_that_looks_slow_is_used_while_the_scarce_one_has_no_room() {
    // After an outage: two datagrams each two seconds, as far as is known.
    let rtt = Rtt { smoothed: milliseconds(2000), ..Rtt::ZERO };
    let slow = PathView { send_allowance: 2400, window: 2400, rate: None, rtt, ..embb() };
    assert_eq!(place(&part_of(1_000_000), &[slow, full(urllc(), 4)]), on(EMBB, 1200));
    assert_eq!(place(&part_of(1000), &[slow, full(urllc(), 4)]), Placement::WaitAtMost(milliseconds(4)));
}

#[test]
fn the_faster_a_path_the_more_of_bulk_follows_unasked() {
    let follow = |megabits, message: Option<usize>| {
        let message = message.map(|remaining| Message { remaining, deadline: None });
        let path = PathView { rate: Some(Bandwidth::from_mbit(megabits)), ..embb() };
        Hvc::default().repeats(&Item { message, ..data(1200) }, &path)
    };
    assert_eq!([20, 30, 200, 1000, 100_000].map(|rate| follow(rate, None)), [0, 3, 3, 13, 15]);
    assert_eq!((follow(1000, Some(BULK)), follow(1000, Some(BULK + 1))), (0, 13));
    let unknown = |send_allowance| {
        Hvc::default().repeats(&data(1200), &PathView { send_allowance, rate: None, ..embb() })
    };
    assert_eq!([28_000, 29_000, 160_000, 384_000, ROOM].map(unknown), [0, 3, 4, 10, 15]);
}

#[test]
fn frames_of_a_stream_that_runs_empty_between_them_never_become_bulk() {
    // 6 kB each 40 ms over 20 Mbit/s and 10 ms of delay, beside 10 Mbit/s and 25 ms.
    let link = |path: PathView, mbit, delay| {
        let rtt = Rtt { smoothed: milliseconds(2 * delay), minimum: milliseconds(2 * delay), ..Rtt::ZERO };
        let rate = Some(Bandwidth::from_mbit(mbit));
        PathView { rate, delay: milliseconds(delay), rtt, window: 12_000, send_allowance: 12_000, ..path }
    };
    for (pending_after, shared) in [(0, false), (ROOM, true)] {
        let mut policy = Hvc::default();
        let mut elsewhere = 0;
        for frame in 0..100 {
            for part in 0..5 {
                let ahead = 1200 * part as usize;
                let near = PathView {
                    backlog: ahead,
                    send_allowance: 12_000 - ahead,
                    in_flight: ahead,
                    ..link(embb(), 20, 10)
                };
                let pending = 6_000 - ahead + pending_after;
                let item = Item { now: milliseconds(40 * frame), pending, ..data(1200) };
                let placement = policy.place(&item, &[near, link(urllc(), 10, 25)]);
                elsewhere += usize::from(placement == on(URLLC, 1200));
            }
        }
        assert_eq!(elsewhere > 0, shared, "{elsewhere} parts of 500");
    }
}
