use super::*;
use crate::recovery::rate::RateSample;

const FAST: PathId = PathId(1);
const SLOW: PathId = PathId(0);

const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// 3 kB of 100 kB in flight were acknowledged over `over` after `rtt` ms.
fn report(now: u64, over: PathId, rtt: u64) -> Report {
    let delivery = RateSample {
        rate: None,
        delivered: 100_000,
        interval: ms(rtt),
        prior_delivered: 0,
        total_delivered: 0,
        newly_acknowledged: 3_000,
        tx_in_flight: 100_000,
        lost: 0,
        app_limited: false,
    };
    Report {
        now: at(now),
        data_path: PathId::ZERO,
        over,
        rtt: Some(ms(rtt)),
        sent_at: at(now - rtt),
        in_flight: 0,
        delivery,
    }
}

/// A sample every millisecond in `from..to` over `over`; the times at which a probe was due.
fn feed(times: &mut RoundTrips, from: u64, to: u64, over: PathId, rtt: u64) -> Vec<u64> {
    (from..to).filter(|now| times.on_acknowledged(&report(*now, over, rtt)) == Probe::Due).collect()
}

#[test]
fn a_fast_return_path_does_not_shorten_the_round_trip_of_a_slow_one() {
    let mut times = RoundTrips::default();
    feed(&mut times, 100, 1000, FAST, 27);
    assert_eq!((times.longest(), times.mean()), (Some(ms(27)), Some(ms(27))));
    // The first sample is enough to have enough in flight; the mean follows within a window's worth of data.
    feed(&mut times, 1000, 1001, SLOW, 50);
    assert_eq!(times.longest(), Some(ms(50)));
    feed(&mut times, 1001, 1200, SLOW, 50);
    assert!(times.mean().expect("sampled") > Duration::from_micros(49_900));
    assert_eq!(times.min_over(FAST), Some(ms(27)));
}

#[test]
fn a_return_path_that_is_no_longer_used_does_not_count() {
    let mut times = RoundTrips::default();
    feed(&mut times, 100, 1000, SLOW, 50);
    feed(&mut times, 1000, 2900, FAST, 27);
    assert_eq!(times.longest(), Some(ms(50)), "it may come back any moment");
    feed(&mut times, 2900, 3100, FAST, 27);
    assert_eq!(times.longest(), Some(ms(27)));
}

#[test]
fn changing_back_and_forth_shifts_the_mean_by_the_difference_and_back() {
    let mut times = RoundTrips::default();
    feed(&mut times, 100, 1000, SLOW, 50);
    assert_eq!(times.shift(), 0);
    feed(&mut times, 1000, 1500, FAST, 27);
    let shift = times.shift();
    assert!((shift + 23_000_000).abs() < 100_000, "{shift}");
    feed(&mut times, 1500, 2000, SLOW, 50);
    assert!(times.shift().abs() < 100_000, "{}", times.shift());
}

#[test]
fn a_queue_in_the_first_samples_of_a_return_path_is_no_lasting_shift() {
    let mut times = RoundTrips::default();
    feed(&mut times, 100, 1000, SLOW, 50);
    feed(&mut times, 1000, 1100, FAST, 57);
    feed(&mut times, 1100, 1300, FAST, 27);
    feed(&mut times, 1300, 1800, SLOW, 50);
    assert!(times.shift().abs() < 300_000, "{}", times.shift());
}

#[test]
fn a_probe_is_due_after_five_seconds_without_a_lower_sample() {
    let mut times = RoundTrips::default();
    assert_eq!(feed(&mut times, 100, 5100, SLOW, 50), []);
    assert_eq!(feed(&mut times, 5100, 5103, SLOW, 50), [5101]);
    // The draft sets the stamp when it expires.
    assert_eq!(feed(&mut times, 5103, 10_000, SLOW, 50), []);
}

#[test]
fn another_return_path_neither_triggers_nor_postpones_a_probe() {
    let mut times = RoundTrips::default();
    // The first samples over the fast path fall; they are new, not lower.
    let mut due = feed(&mut times, 100, 3000, SLOW, 50);
    for (step, rtt) in [40, 35, 30, 27].into_iter().enumerate() {
        let from = 3000 + step as u64 * 500;
        due.extend(feed(&mut times, from, from + 500, FAST, rtt));
    }
    due.extend(feed(&mut times, 5000, 6000, SLOW, 50));
    assert_eq!(due, [5102 - 1]);
}

#[test]
fn a_lower_sample_over_a_known_return_path_postpones_a_probe() {
    let mut times = RoundTrips::default();
    feed(&mut times, 100, 1000, SLOW, 50);
    feed(&mut times, 1000, 2000, FAST, 27);
    times.on_queue_empty(at(1500), at(2000));
    assert_eq!(feed(&mut times, 2000, 6000, FAST, 27), []);
    assert_eq!(feed(&mut times, 6000, 6001, FAST, 26), []);
    assert_eq!(feed(&mut times, 6001, 11_500, FAST, 26), [11_001]);
}

#[test]
fn a_longer_path_is_believed_after_ten_seconds() {
    let mut times = RoundTrips::default();
    feed(&mut times, 100, 1000, SLOW, 50);
    feed(&mut times, 1000, 10_000, SLOW, 80);
    assert_eq!(times.longest(), Some(ms(50)));
    feed(&mut times, 10_000, 10_200, SLOW, 80);
    assert_eq!(times.longest(), Some(ms(80)));
}

#[test]
fn return_paths_without_end_are_not_all_remembered() {
    // attacks.md C14: the peer chooses where it acknowledges.
    let mut times = RoundTrips::default();
    for path in 0..1000 {
        feed(&mut times, 1000 + u64::from(path), 1001 + u64::from(path), PathId(path), 50);
        assert!(times.paths.len() <= MOST_RETURN_PATHS);
        assert_eq!(times.mean().map(|mean| mean.as_millis()), Some(50));
    }
}
