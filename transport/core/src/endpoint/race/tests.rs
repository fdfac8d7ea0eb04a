//! The timing of a race, without connections.

use super::*;

const LIMIT: Duration = Duration::from_secs(10);

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(milliseconds)
}

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A race over so many candidates, the first of which began at zero.
fn race(candidates: usize) -> ConnectionRace {
    let mut race = ConnectionRace::new(candidates, at(0) + LIMIT);
    race.on_begun(0, CONNECTION_ATTEMPT_DELAY, at(0));
    race
}

/// Plays `race` while nobody answers, and returns what happened when.
fn play(race: &mut ConnectionRace, until: Instant) -> Vec<(u64, Action)> {
    let mut seen = Vec::new();
    let mut begun = vec![at(0); race.entries.len()];
    while race.deadline() <= until {
        let now = race.deadline();
        while let Some(action) = race.next(now, |index| begun[index]) {
            seen.push((now.as_nanos() / 1_000_000, action));
            match action {
                Action::Begin(index) => {
                    begun[index] = now;
                    race.on_begun(index, CONNECTION_ATTEMPT_DELAY, now);
                }
                Action::Repeat(_) => {}
                Action::Stop => return seen,
            }
        }
    }
    seen
}

#[test]
fn attempts_follow_each_other_and_go_on_at_a_bounded_pace() {
    let seen = play(&mut race(3), at(2_500));
    let begun: Vec<_> = seen.iter().filter(|(_, action)| matches!(action, Action::Begin(_))).collect();
    assert_eq!(begun, [&(250, Action::Begin(1)), &(500, Action::Begin(2))]);
    let of = |index| -> Vec<u64> {
        seen.iter().filter(|(_, action)| *action == Action::Repeat(index)).map(|(at, _)| *at).collect()
    };
    assert_eq!(of(0), [750, 1_750], "half a second after it stood still, then a second");
    assert_eq!(of(1), [1_000, 2_000]);
    assert_eq!(of(2), [750, 1_250, 2_250]);
    let mut all = race(3);
    let seen = play(&mut all, at(60_000));
    assert_eq!(seen.last(), Some(&(10_000, Action::Stop)));
    assert!(seen.len() <= 3 * 13, "{}", seen.len());
}

#[test]
fn an_attempt_that_hears_of_the_server_keeps_the_others_waiting() {
    let mut race = race(2);
    assert_eq!(race.next(at(250), |_| at(240)), None);
    assert_eq!(race.deadline(), at(490));
    assert_eq!(race.next(at(490), |_| at(240)), Some(Action::Begin(1)));
}

#[test]
fn an_attempt_that_fails_lets_the_next_begin_at_once_but_not_within_ten_milliseconds() {
    let mut race = race(3);
    race.on_failed(0, Failure::Final, at(3));
    assert_eq!(race.deadline(), at(10));
    assert_eq!(race.next(at(10), |_| at(0)), Some(Action::Begin(1)));
    race.on_begun(1, CONNECTION_ATTEMPT_DELAY, at(10));
    race.on_failed(1, Failure::Final, at(60));
    assert_eq!(race.next(at(60), |_| at(0)), Some(Action::Begin(2)));
    race.on_begun(2, CONNECTION_ATTEMPT_DELAY, at(60));
    assert!(!race.is_lost());
    race.on_failed(2, Failure::Final, at(90));
    assert!(race.is_lost(), "nobody is left, and nobody is waited for");
}

#[test]
fn an_attempt_that_ended_without_an_answer_begins_again_with_back_off() {
    let mut race = race(1);
    race.on_failed(0, Failure::Passing, at(100));
    assert!(!race.is_lost());
    assert_eq!(race.next(at(349), |_| at(0)), None);
    assert_eq!(race.next(at(350), |_| at(0)), Some(Action::Begin(0)));
    race.on_begun(0, CONNECTION_ATTEMPT_DELAY, at(350));
    race.on_failed(0, Failure::Passing, at(0) + LIMIT);
    assert!(race.is_lost(), "there is no time for another");
}

#[test]
fn a_handshake_that_the_server_does_not_confirm_is_left_to_the_others() {
    let mut race = race(2);
    race.on_completed(0, milliseconds(150), at(50));
    assert_eq!(race.winner(), Some(0));
    assert_eq!(race.next(at(200), |_| at(0)), Some(Action::Begin(1)));
}

#[test]
fn the_delay_is_three_round_trips_within_the_bounds_of_the_rfc() {
    assert_eq!(attempt_delay(None), milliseconds(250));
    assert_eq!(attempt_delay(Some(milliseconds(5))), milliseconds(100));
    assert_eq!(attempt_delay(Some(milliseconds(60))), milliseconds(180));
    assert_eq!(attempt_delay(Some(Duration::MAX)), Duration::from_secs(2));
    let mut race = ConnectionRace::new(2, at(1_000));
    race.on_begun(0, Duration::ZERO, at(0));
    assert_eq!(race.deadline(), at(10), "an application asks for less");
}

#[test]
fn attempts_that_were_under_way_may_begin_again_once_another_is_complete() {
    let mut race = race(2);
    race.on_begun(1, CONNECTION_ATTEMPT_DELAY, at(250));
    race.on_completed(1, milliseconds(150), at(300));
    assert_eq!(race.deadline(), at(450), "the server has time to confirm it");
    assert_eq!(race.next(at(450), |_| at(0)), Some(Action::Begin(0)));
}

#[test]
fn an_attempt_that_waits_to_begin_again_is_not_begun_before_its_time() {
    let mut race = race(2);
    race.on_failed(0, Failure::Passing, at(240));
    assert_eq!(race.next(at(240), |_| at(0)), Some(Action::Begin(1)));
    race.on_begun(1, milliseconds(100), at(240));
    assert_eq!(race.next(at(340), |_| at(240)), Some(Action::Repeat(1)));
    assert_eq!(race.deadline(), at(490));
    assert_eq!(race.next(at(490), |_| at(480)), Some(Action::Begin(0)));
}
