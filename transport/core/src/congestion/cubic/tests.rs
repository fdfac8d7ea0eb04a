use super::*;
use crate::PathId;

const DATAGRAM: usize = 1200;
const RTT: u64 = 100;

const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn sample(now: u64, bytes: usize) -> Sample {
    Sample {
        now: at(now),
        data_path: PathId::ZERO,
        acknowledged_over: PathId::ZERO,
        bytes,
        sent_at: at(now.saturating_sub(RTT)),
        rtt: Some(Duration::from_millis(RTT)),
        min_rtt: Duration::from_millis(RTT),
        smoothed_rtt: Duration::from_millis(RTT),
        delivery_rate: None,
        delivery: None,
        in_flight: 0,
        app_limited: false,
    }
}

fn loss(sent: u64, now: u64, bytes: usize) -> LossSample {
    let (now, largest_sent_at) = (at(now), at(sent));
    LossSample {
        now,
        bytes,
        largest_sent_at,
        persistent: Persistence::Passing,
        cause: Cause::Congestion,
        in_flight: 0,
    }
}

/// A controller with a window of `datagrams`, in slow start, at the time 0.
fn grown(datagrams: usize) -> Cubic {
    let mut cubic = Cubic::new(DATAGRAM).without_hystart();
    cubic.window = (datagrams * DATAGRAM) as f64;
    cubic
}

/// Acknowledges a window per round trip in 100 pieces from `from` to `to` ms.
fn run(cubic: &mut Cubic, from: u64, to: u64) {
    for now in from..to {
        let bytes = cubic.window() / RTT as usize;
        cubic.on_acknowledged(&sample(now, bytes));
    }
}

fn datagrams(cubic: &Cubic) -> f64 {
    cubic.window() as f64 / DATAGRAM as f64
}

#[test]
fn the_window_follows_the_closed_form() {
    // RFC 9438 §4.2, Eq. 1 and Eq. 2.
    let mut cubic = grown(1000);
    cubic.on_lost(&loss(1, 2, DATAGRAM));
    assert_eq!(cubic.window(), 840_000);
    let period = (300.0f64 / 0.4).cbrt();
    let (start, mut now) = (200, 200);
    for seconds in 1..=14 {
        run(&mut cubic, now, start + seconds * 1000);
        now = start + seconds * 1000;
        let closed = 0.4 * (seconds as f64 - period).powi(3) + 1000.0;
        let ratio = datagrams(&cubic) / closed;
        assert!((ratio - 1.0).abs() < 0.01, "after {seconds} s: {} instead of {closed}", datagrams(&cubic));
    }
    assert!(datagrams(&cubic) > 1040.0, "convex growth beyond the plateau");
}

#[test]
fn a_small_window_grows_as_reno_does() {
    // RFC 9438 §4.3: 14 datagrams, a round trip of 100 ms: K = 2.5 s, Reno is faster at first.
    let mut cubic = grown(20);
    cubic.on_lost(&loss(1, 2, DATAGRAM));
    run(&mut cubic, 200, 1200);
    let expected = 14.0 + 10.0 * ALPHA;
    assert!((datagrams(&cubic) - expected).abs() < 0.5, "{} instead of {expected}", datagrams(&cubic));
}

#[test]
fn beyond_the_old_window_the_estimate_grows_a_datagram_per_round_trip() {
    let mut cubic = grown(10);
    cubic.prior = 0.0;
    cubic.slow_start_threshold = 0.0;
    let epoch = Epoch { started: at(100), period: 1e3, plateau: 0.0, estimate: cubic.window };
    cubic.epoch = Some(epoch);
    run(&mut cubic, 100, 1100);
    assert!((datagrams(&cubic) - 20.0).abs() < 0.5, "{}", datagrams(&cubic));
}

#[test]
fn fast_convergence_lowers_the_plateau_of_a_flow_that_lost_before_reaching_it() {
    // RFC 9438 §4.7.
    let mut cubic = grown(100);
    cubic.on_lost(&loss(1, 2, DATAGRAM));
    assert_eq!(cubic.plateau, 120_000.0);
    cubic.on_lost(&loss(3, 4, DATAGRAM));
    assert!((cubic.plateau - 84_000.0 * 0.85).abs() < 1.0);
    assert!((cubic.window - 58_800.0).abs() < 1.0);
}

#[test]
fn losses_of_one_round_trip_reduce_the_window_once() {
    let mut cubic = grown(100);
    cubic.on_lost(&loss(50, 100, DATAGRAM));
    cubic.on_lost(&loss(90, 110, DATAGRAM));
    cubic.on_ecn_ce(&MarkSample { now: at(120), sent_at: at(100) });
    assert_eq!(cubic.window(), 84_000);
    cubic.on_ecn_ce(&MarkSample { now: at(210), sent_at: at(101) });
    assert_eq!(cubic.window(), 58_800);
}

#[test]
fn a_period_without_enough_data_neither_grows_the_window_nor_advances_its_clock() {
    // RFC 9438 §5.8.
    let (mut busy, mut idle) = (grown(1000), grown(1000));
    for cubic in [&mut busy, &mut idle] {
        cubic.on_lost(&loss(1, 2, DATAGRAM));
        run(cubic, 200, 1200);
    }
    let before = idle.window();
    for now in 1200..61_200 {
        idle.on_acknowledged(&Sample { app_limited: true, ..sample(now, 5000) });
    }
    assert_eq!(idle.window(), before);
    run(&mut busy, 1200, 2200);
    run(&mut idle, 61_200, 62_200);
    assert!(idle.window().abs_diff(busy.window()) < DATAGRAM);
}

#[test]
fn an_event_whose_losses_were_all_spurious_is_undone() {
    // RFC 9438 §4.9.2.
    let mut cubic = grown(100);
    cubic.on_lost(&loss(50, 100, 2 * DATAGRAM));
    cubic.on_lost(&loss(60, 105, DATAGRAM));
    let spurious = |bytes| SpuriousSample { now: at(130), bytes, sent_at: at(50), lost_at: at(100) };
    cubic.on_spurious(&spurious(2 * DATAGRAM));
    assert_eq!(cubic.window(), 84_000, "one loss may still be real");
    cubic.on_spurious(&spurious(DATAGRAM));
    assert_eq!(cubic.window(), 120_000);
    assert!(cubic.in_slow_start());
    cubic.on_spurious(&spurious(DATAGRAM));
    assert_eq!(cubic.window(), 120_000);
}

#[test]
fn slow_start_that_losses_did_not_end_is_still_the_first() {
    // RFC 9406 §4.3: without HyStart++ it would end with the overflow of the queue.
    let mut cubic = Cubic::new(DATAGRAM);
    cubic.on_lost(&loss(50, 100, DATAGRAM));
    assert!(cubic.hystart.is_none());
    cubic.on_spurious(&SpuriousSample { now: at(130), bytes: DATAGRAM, sent_at: at(50), lost_at: at(100) });
    assert!(cubic.in_slow_start() && cubic.hystart.is_some());
}

//= https://www.rfc-editor.org/rfc/rfc9002#section-7.6.2
//= type=test
//# When persistent congestion is declared, the sender's congestion window MUST be reduced to the minimum
//# congestion window (kMinimumWindow), similar to a TCP sender's response on an RTO [RFC5681].
#[test]
fn persistent_congestion_leaves_two_datagrams_and_slow_start_leads_back() {
    let mut cubic = grown(100);
    cubic.on_lost(&LossSample { persistent: Persistence::Persistent, ..loss(50, 5000, DATAGRAM) });
    assert_eq!((cubic.window(), cubic.in_slow_start()), (2 * DATAGRAM, true));
    run(&mut cubic, 5200, 8000);
    assert!(datagrams(&cubic) >= 70.0);
}

#[test]
fn an_interruption_in_slow_start_reduces_the_window_and_slow_start_goes_on() {
    let mut cubic = Cubic::new(DATAGRAM);
    cubic.on_lost(&LossSample { cause: Cause::Interruption, ..loss(50, 100, DATAGRAM) });
    assert_eq!(cubic.window(), 7 * DATAGRAM);
    assert!(cubic.in_slow_start() && cubic.hystart.is_some(), "nothing shows how much the path carries");
}

#[test]
fn after_an_interruption_slow_start_leads_back_to_the_window_and_not_beyond() {
    let after = |cause| {
        let mut cubic = grown(100);
        cubic.on_lost(&loss(50, 100, DATAGRAM));
        let (window, threshold) = (cubic.window(), cubic.slow_start_threshold);
        let persistent = Persistence::Persistent;
        cubic.on_lost(&LossSample { persistent, cause, ..loss(150, 9000, DATAGRAM) });
        assert_eq!(cubic.window(), 2 * DATAGRAM);
        (window, threshold, cubic.slow_start_threshold)
    };
    let (_, before, threshold) = after(Cause::Congestion);
    assert!(threshold < before);
    let (window, _, threshold) = after(Cause::Interruption);
    assert_eq!(threshold as usize, window);
}
