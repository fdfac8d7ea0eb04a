use super::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

const PTO: Duration = Duration::from_millis(100);

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn started() -> (Validation, StdRng) {
    let mut rng = StdRng::seed_from_u64(7);
    let mut validation = Validation::default();
    validation.start(at(0), &mut rng, PTO);
    (validation, rng)
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
//= type=test
//# This requirement MUST NOT be enforced by the endpoint that initiates path validation, as that would enable
//# an attack on migration; see Section 9.3.3.
#[test]
fn an_answered_challenge_validates_the_address() {
    let (mut validation, mut rng) = started();
    assert!(validation.is_pending() && !validation.is_validated());
    let data = validation.next_challenge(at(0), &mut rng).unwrap();
    assert!(validation.on_response(data));
    assert!(validation.is_validated() && !validation.is_pending());
    assert_eq!((validation.deadline(at(0)), validation.failed(at(10_000))), (None, false));
}

#[test]
fn the_first_challenge_is_put_off_by_half_a_second_at_most_and_the_attempt_lasts_longer() {
    let (mut validation, mut rng) = started();
    let mut now = at(0);
    let fails_at = validation.attempt.unwrap().fails_at;
    while validation.put_off(Duration::from_secs(1), now) {
        assert!(validation.is_put_off(now) && validation.next_challenge(now, &mut rng).is_none());
        now = validation.deadline(now).unwrap().at;
        assert!(!validation.is_put_off(now));
    }
    assert_eq!((now, validation.attempt.unwrap().fails_at), (at(0) + MOST_WAIT, fails_at + MOST_WAIT));
    assert!(validation.next_challenge(now, &mut rng).is_some());
    let (mut asked, mut rng) = started();
    asked.next_challenge(at(0), &mut rng).unwrap();
    assert!(!asked.put_off(Duration::from_millis(1), at(0)) && !asked.is_put_off(at(0)), "it was sent");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.3
//= type=test
//# However, the endpoint MUST initiate another path validation with an expanded datagram to verify that the
//# path supports the required MTU.
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
//= type=test
//# To ensure that the path MTU is large enough, the endpoint MUST perform a second path validation by sending
//# a PATH_CHALLENGE frame in a datagram of at least 1200 bytes
#[test]
fn the_answer_to_a_challenge_that_was_cut_proves_the_address_and_asks_for_a_full_one() {
    let (mut validation, mut rng) = started();
    let small = validation.next_challenge(at(0), &mut rng).unwrap();
    validation.on_cut();
    assert!(validation.on_response(small));
    assert!(validation.is_validated() && validation.is_pending());
    let full = validation.next_challenge(at(10), &mut rng).expect("at once");
    assert_ne!(full, small);
    assert!(validation.on_response(full));
    assert!(validation.is_validated() && !validation.is_pending());
    assert_eq!(validation.next_challenge(at(400), &mut rng), None);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-14.2
//= type=test
//# it MUST immediately cease sending QUIC packets, except for those in PMTU probes or those containing
//# CONNECTION_CLOSE frames, on the affected path
#[test]
fn a_path_that_carries_small_challenges_only_fails() {
    let (mut validation, mut rng) = started();
    let small = validation.next_challenge(at(0), &mut rng).unwrap();
    validation.on_cut();
    assert!(validation.on_response(small));
    let mut now = 0;
    while !validation.failed(at(now)) {
        validation.next_challenge(at(now), &mut rng);
        now += 10;
        assert!(now <= 600, "three probe timeouts for each size");
    }
    assert!(now >= 300 && validation.is_narrow() && !validation.is_validated() && !validation.is_pending());
}

#[test]
fn a_response_that_matches_no_challenge_is_ignored() {
    let (mut validation, mut rng) = started();
    let data = validation.next_challenge(at(0), &mut rng).unwrap();
    assert!(!validation.on_response([0; 8]));
    assert!(!validation.is_validated());
    assert!(!Validation::default().on_response(data));
}

#[test]
fn a_replayed_response_changes_nothing() {
    let (mut validation, mut rng) = started();
    let data = validation.next_challenge(at(0), &mut rng).unwrap();
    assert!(validation.on_response(data));
    assert!(!validation.on_response(data));
    validation.start(at(10), &mut rng, PTO);
    assert!(!validation.on_response(data));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
//= type=test
//# The endpoint MUST use unpredictable data in every PATH_CHALLENGE frame so that it can associate the peer's
//# response with the corresponding PATH_CHALLENGE.
#[test]
fn challenges_are_repeated_with_backoff_and_fresh_data() {
    let mut rng = StdRng::seed_from_u64(1);
    let mut validation = Validation::default();
    validation.start_within(at(0), &mut rng, PTO, Duration::from_secs(3));
    let mut sent = Vec::new();
    for millis in 0..3000 {
        if let Some(data) = validation.next_challenge(at(millis), &mut rng) {
            sent.push((millis, data));
        }
    }
    assert_eq!(sent.iter().map(|(millis, _)| *millis).collect::<Vec<_>>(), [0, 100, 300, 700, 1500]);
    let distinct: std::collections::BTreeSet<_> = sent.iter().map(|(_, data)| data).collect();
    assert_eq!(distinct.len(), sent.len());
    assert!(validation.on_response(sent[0].1), "an answer to any challenge counts");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-9.4
//= type=test
//# This timer SHOULD be set as described in Section 6.2.1 of [QUIC-RECOVERY] and MUST NOT be more aggressive.
#[test]
fn an_attempt_fails_after_three_probe_timeouts() {
    let (mut validation, mut rng) = started();
    assert!(validation.next_challenge(at(0), &mut rng).is_some());
    assert!(!validation.failed(at(299)));
    assert!(validation.failed(at(300)));
    assert!(validation.failed(at(301)), "it stays failed");
    assert_eq!(validation.deadline(at(301)), None);
    assert_eq!(validation.next_challenge(at(301), &mut rng), None);
}

#[test]
fn a_late_response_does_not_revive_a_failed_attempt() {
    let (mut validation, mut rng) = started();
    let data = validation.next_challenge(at(0), &mut rng).unwrap();
    assert!(validation.failed(at(300)));
    assert!(!validation.on_response(data));
}

#[test]
fn a_failed_validation_can_start_again() {
    let (mut validation, mut rng) = started();
    assert!(validation.failed(at(300)));
    validation.start(at(400), &mut rng, PTO);
    assert!(!validation.failed(at(400)));
    let data = validation.next_challenge(at(400), &mut rng).unwrap();
    assert!(validation.on_response(data));
}

#[test]
fn a_failed_check_of_a_validated_address_leaves_it_validated() {
    let mut rng = StdRng::seed_from_u64(2);
    let mut validation = Validation::default();
    validation.presume();
    validation.start(at(0), &mut rng, PTO);
    assert!(validation.is_validated() && validation.is_pending());
    assert!(!validation.failed(at(300)));
    assert!(validation.is_validated() && !validation.is_pending());
}

#[test]
fn the_deadline_is_the_next_challenge_and_in_the_end_the_failure() {
    let (mut validation, mut rng) = started();
    let next = |validation: &Validation, now| validation.deadline(now).unwrap().at;
    assert_eq!(next(&validation, at(0)), at(300), "a challenge that is due needs no timer");
    validation.next_challenge(at(0), &mut rng);
    assert_eq!(next(&validation, at(0)), at(100));
    validation.next_challenge(at(100), &mut rng);
    assert_eq!(next(&validation, at(100)), at(300));
    assert_eq!(validation.deadline(at(100)).unwrap().reason, TimerReason::PathValidation);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
//= type=test
//# On receiving a PATH_CHALLENGE frame, an endpoint MUST respond by echoing the data contained in the
//# PATH_CHALLENGE frame in a PATH_RESPONSE frame
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
//= type=test
//# An endpoint MUST NOT delay transmission of a packet containing a PATH_RESPONSE frame unless constrained by
//# congestion control.
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
//= type=test
//# An endpoint MUST NOT send more than one PATH_RESPONSE frame in response to one PATH_CHALLENGE frame; see
//# Section 13.3
#[test]
fn each_challenge_is_answered_once_and_in_order() {
    let mut validation = Validation::default();
    validation.on_challenge([1; 8]);
    validation.on_challenge([2; 8]);
    validation.on_challenge([1; 8]);
    assert!(validation.owes_response());
    assert_eq!(validation.next_response(), Some([1; 8]));
    assert_eq!(validation.next_response(), Some([2; 8]));
    assert_eq!((validation.next_response(), validation.owes_response()), (None, false));
}

#[test]
fn a_flood_of_challenges_is_answered_a_bounded_number_of_times_newest_first_kept() {
    let mut validation = Validation::default();
    for number in 0..1_000_000_u64 {
        validation.on_challenge(number.to_be_bytes());
    }
    let answers: Vec<_> = std::iter::from_fn(|| validation.next_response()).map(u64::from_be_bytes).collect();
    assert_eq!(answers, (1_000_000 - MAX_RESPONSES as u64..1_000_000).collect::<Vec<_>>());
}

#[test]
fn outstanding_challenges_are_bounded() {
    let mut rng = StdRng::seed_from_u64(3);
    let mut validation = Validation::default();
    for round in 0..1000 {
        validation.start(at(round), &mut rng, PTO);
        assert!(validation.next_challenge(at(round), &mut rng).is_some());
    }
    assert_eq!(validation.outstanding.len(), MAX_OUTSTANDING);
}

#[test]
fn the_interval_saturates_however_long_the_patience() {
    let mut rng = StdRng::seed_from_u64(4);
    let mut validation = Validation::default();
    validation.start_within(at(0), &mut rng, Duration::from_millis(1), Duration::from_secs(1 << 20));
    let mut now = at(0);
    for _ in 0..1000 {
        assert!(validation.next_challenge(now, &mut rng).is_some());
        now = validation.deadline(now).unwrap().at;
    }
    assert!(validation.outstanding.len() <= MAX_OUTSTANDING);
}

#[test]
fn what_arrives_asks_for_the_next_challenge_but_no_sooner_than_the_first_repetition() {
    let (mut rng, mut validation) = (StdRng::seed_from_u64(7), Validation::default());
    validation.on_heard(at(0));
    validation.start_within(at(0), &mut rng, PTO, PTO * 30);
    let mut sent = Vec::new();
    for time in 0..1_000 {
        if [50, 250, 260].contains(&time) || time >= 800 {
            validation.on_heard(at(time));
        }
        sent.extend(validation.next_challenge(at(time), &mut rng).map(|_| time));
    }
    assert_eq!(sent, [0, 100, 250, 650, 800, 900]);
    assert!(validation.is_pending() && !validation.failed(at(2_999)) && validation.failed(at(3_000)));
}

#[test]
fn a_failure_is_to_be_looked_for_from_the_end_of_the_attempt_on() {
    let (mut validation, _) = started();
    assert_eq!([299, 300].map(|millis| validation.may_have_failed(at(millis))), [false, true]);
    assert!(validation.failed(at(300)) && !validation.is_narrow());
    assert!(validation.may_have_failed(at(0)), "it stays failed");
    assert!(!Validation::default().may_have_failed(at(300)));
}

#[test]
fn there_is_interest_while_a_challenge_is_due_that_may_still_be_answered_in_time() {
    let (mut validation, mut rng) = started();
    assert!(validation.has_interest(at(0)));
    validation.next_challenge(at(0), &mut rng).expect("it is due");
    let interest = [99, 100, 299, 300].map(|millis| validation.has_interest(at(millis)));
    assert_eq!(interest, [false, true, true, false]);
    validation.on_challenge([1; 8]);
    assert!(validation.has_interest(at(300)), "an answer is owed");
}
