use super::*;
use proptest::prelude::*;

const EMBB: PathId = PathId(0);
const URLLC: PathId = PathId(1);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn at(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000_000)
}

fn sampled(samples: &[(PathId, u64)]) -> PathRtts {
    let mut rtts = PathRtts::default();
    for &(over, sample) in samples {
        rtts.sample(over, ms(sample), Duration::ZERO, at(1));
    }
    rtts
}

#[test]
fn the_minimum_of_one_return_path_does_not_poison_another() {
    // attacks.md G; architecture.md §8.2: data on a slow path, acknowledgements move to a fast one and back.
    let rtts = sampled(&[(EMBB, 60), (URLLC, 35), (EMBB, 61)]);
    assert_eq!(rtts.min_for(EMBB), Some(ms(60)));
    assert_eq!(rtts.min_for(URLLC), Some(ms(35)));
    assert_eq!(rtts.min_for(PathId(7)), None);
    assert_eq!(rtts.best().map(|(over, _)| over), Some(URLLC));
}

#[test]
fn timers_use_the_slowest_return_path_in_use() {
    let mut rtts = PathRtts::default();
    assert_eq!(rtts.for_timers(), Rtt::default());
    for n in 0..50 {
        rtts.sample(EMBB, ms(60), Duration::ZERO, at(n * 10));
        rtts.sample(URLLC, ms(35), Duration::ZERO, at(n * 10 + 5));
    }
    assert_eq!(rtts.for_timers().smoothed(), ms(60));
    assert!(rtts.loss_delay() >= ms(60) * 9 / 8);
    // Acknowledgements move to the fast path for good: after a while timers follow.
    for n in 50..400 {
        rtts.sample(URLLC, ms(35), Duration::ZERO, at(n * 10));
    }
    assert_eq!(rtts.for_timers().smoothed(), ms(35));
}

#[test]
fn the_fastest_return_path_in_use_is_found_among_several() {
    let fastest = |samples: &[_]| sampled(samples).fastest().map(Rtt::smoothed);
    assert_eq!(fastest(&[]), None);
    assert_eq!(fastest(&[(EMBB, 60)]), Some(ms(60)));
    assert_eq!(fastest(&[(EMBB, 60), (URLLC, 35)]), Some(ms(35)));
}

#[test]
fn one_way_delays_are_news_as_long_as_a_smallest_round_trip_changes() {
    let mut rtts = PathRtts::default();
    let mut sample = |over, rtt, at| {
        rtts.sample(over, ms(rtt), Duration::ZERO, at);
        (rtts.take_news(), rtts.take_news())
    };
    assert_eq!(sample(EMBB, 60, at(1)), (true, false), "the first");
    assert_eq!(sample(EMBB, 70, at(2)), (false, false), "a longer one");
    assert_eq!(sample(EMBB, 50, at(3)), (true, false), "a shorter one");
    assert_eq!(sample(URLLC, 90, at(4)), (true, false), "the first over another path");
    // Epochs of two seconds: the one before last is forgotten.
    assert_eq!(sample(EMBB, 70, at(2_500)), (false, false));
    assert_eq!(sample(EMBB, 70, at(5_000)), (true, false), "50 ms are long past");
}

#[test]
fn a_slow_return_path_is_in_use_for_four_of_its_round_trips() {
    // A first sample of 2 s may vary by 4 s: 6 s four times over.
    for (later, timers) in [(24_000, ms(2000)), (24_001, ms(35))] {
        let mut rtts = PathRtts::default();
        rtts.sample(EMBB, ms(2000), Duration::ZERO, at(0));
        rtts.sample(URLLC, ms(35), Duration::ZERO, at(later));
        assert_eq!(rtts.for_timers().smoothed(), timers, "{later} ms later");
    }
}

#[test]
fn forgotten_and_reset_paths_leave_no_trace() {
    let mut rtts = sampled(&[(EMBB, 60), (URLLC, 35)]);
    rtts.forget(URLLC);
    assert_eq!(rtts.min_for(URLLC), None);
    assert!(rtts.is_sampled());
    rtts.reset();
    assert!(!rtts.is_sampled());
}

#[test]
fn the_number_of_return_paths_is_bounded() {
    let mut rtts = PathRtts::default();
    for n in 0..1000 {
        rtts.sample(PathId(n), ms(10), Duration::ZERO, at(u64::from(n)));
    }
    assert_eq!(rtts.pairs.len(), MOST_RETURN_PATHS);
    assert!(rtts.over(PathId(999)).is_some());
}

#[test]
fn a_path_alone_is_given_half_its_round_trip() {
    let rtts = sampled(&[(EMBB, 60)]);
    assert_eq!(one_way(&[(EMBB, &rtts)]).as_slice(), [(EMBB, ms(30))]);
    let none = PathRtts::default();
    assert_eq!(one_way(&[(EMBB, &none)]).as_slice(), [(EMBB, INITIAL_RTT / 2)]);
    assert!(one_way(&[]).is_empty());
}

#[test]
fn an_asymmetric_pair_shows_its_true_difference() {
    // eMBB: 40 ms down, 10 ms up; URLLC: 3 ms either way. All acknowledgements return over URLLC.
    let (embb, urllc) = (sampled(&[(URLLC, 43)]), sampled(&[(URLLC, 6)]));
    let delays = one_way(&[(EMBB, &embb), (URLLC, &urllc)]);
    assert_eq!(delays.as_slice(), [(EMBB, ms(40)), (URLLC, ms(3))]);
}

#[test]
fn the_recent_minimum_follows_a_channel_that_became_slower() {
    let mut rtts = PathRtts::default();
    rtts.sample(EMBB, ms(20), Duration::ZERO, at(0));
    for n in 0..60 {
        rtts.sample(EMBB, ms(80), Duration::ZERO, at(3000 + n * 100));
    }
    assert_eq!(one_way(&[(EMBB, &rtts)])[0].1, ms(40));
    assert_eq!(rtts.min_for(EMBB), Some(ms(20)), "the minimum of RFC 9002 stays");
}

#[test]
fn paths_without_a_common_return_path_are_estimated_apart() {
    let (a, b) = (sampled(&[(EMBB, 60)]), sampled(&[(URLLC, 10)]));
    let delays = one_way(&[(EMBB, &a), (URLLC, &b)]);
    assert_eq!(delays.as_slice(), [(EMBB, ms(30)), (URLLC, ms(5))]);
}

proptest! {
    #[test]
    fn one_way_differences_follow_from_any_return_paths(
        forth in prop::collection::vec(1u64..200, 2..5),
        back in prop::collection::vec(1u64..200, 5),
        // A common return path, so that all paths are comparable; and whether the other pairs have samples.
        common in 0usize..5,
        others in any::<u32>(),
    ) {
        let rtts: Vec<PathRtts> = forth.iter().enumerate().map(|(from, forth)| {
            let mut rtts = PathRtts::default();
            for (over, back) in back.iter().enumerate() {
                if over == common || others >> (from * 5 + over) & 1 == 1 {
                    rtts.sample(PathId(over as u32), ms(forth + back), Duration::ZERO, at(1));
                }
            }
            rtts
        }).collect();
        let paths: Vec<_> = rtts.iter().enumerate().map(|(id, rtts)| (PathId(id as u32), rtts)).collect();
        let delays = one_way(&paths);
        let fastest = delays.iter().map(|(_, delay)| *delay).min().expect("there are paths");
        let truth = forth.iter().min().expect("there are paths");
        for ((_, delay), forth) in delays.iter().zip(&forth) {
            prop_assert_eq!(*delay - fastest, ms(forth - truth));
        }
        prop_assert!(fastest <= ms(*truth + back.iter().max().expect("there are paths")));
    }

    #[test]
    fn no_delays_overflow(a in any::<u64>(), b in any::<u64>(), delay in any::<u64>()) {
        // attacks.md C7, C14.
        let (mut first, mut second) = (PathRtts::default(), PathRtts::default());
        first.sample(EMBB, Duration::from_micros(a), Duration::from_micros(delay), at(1));
        second.sample(EMBB, Duration::from_micros(b), Duration::MAX, Instant::FAR_FUTURE);
        prop_assert_eq!(one_way(&[(EMBB, &first), (URLLC, &second)]).len(), 2);
        prop_assert!(first.for_timers().probe_timeout(Duration::MAX) == Duration::MAX);
    }
}

#[test]
fn the_longest_base_is_the_largest_of_the_smallest_over_return_paths_in_use() {
    let mut rtts = PathRtts::default();
    assert_eq!(rtts.longest_base(), None);
    let now = Instant::ZERO + Duration::from_secs(100);
    for (over, rtt) in [(0, 30), (0, 90), (1, 50), (1, 60)] {
        rtts.sample(PathId(over), Duration::from_millis(rtt), Duration::ZERO, now);
    }
    assert_eq!(rtts.longest_base(), Some(Duration::from_millis(50)));
    // The second is not used any more.
    let later = now + Duration::from_secs(60);
    rtts.sample(PathId(0), Duration::from_millis(40), Duration::ZERO, later);
    assert_eq!(rtts.longest_base(), Some(Duration::from_millis(30)));
}
