//! Tests of the phases of Careful Resume.

use super::*;

const RTT: Duration = Duration::from_millis(100);
const SIZE: usize = 1200;
const IW: usize = 12_000;
/// The window that an earlier connection had.
const SAVED: usize = 200_000;

fn saved() -> PathKnowledge {
    PathKnowledge::of_window(SAVED as u64, RTT, Instant::ZERO)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn flow(millis: u64, in_flight: usize, window: usize) -> ResumeFlow {
    ResumeFlow { now: at(millis), in_flight, window, datagram_size: SIZE }
}

fn arrived(bytes: usize, largest: u64, delivered: usize) -> ResumeSample {
    ResumeSample { bytes, largest: Some(largest), delivered: delivered as u64, min_rtt: Some(RTT) }
}

fn begun() -> CarefulResume {
    CarefulResume::new(saved(), at(600_000), SIZE).unwrap()
}

/// The initial window, packets 0 to 9, arrived after a round trip of `rtt`.
fn confirmed(rtt: Duration) -> CarefulResume {
    let mut resume = begun();
    assert_eq!((resume.window(IW), resume.asks()), (IW, false), "nothing is known of the path yet");
    resume.on_acknowledged(
        ResumeSample { min_rtt: Some(rtt), ..arrived(6_000, 4, 6_000) },
        10,
        flow(100, 6_000, IW + 6_000),
    );
    assert!(!resume.asks(), "half of the initial data is not all of it");
    resume.on_acknowledged(
        ResumeSample { min_rtt: Some(rtt), ..arrived(6_000, 9, 12_000) },
        10,
        flow(101, 0, 2 * IW),
    );
    resume
}

/// Packets from number 10 on fill the controller's window of 24 kB and go beyond it, up to `in_flight` bytes.
fn unvalidated(in_flight: usize) -> CarefulResume {
    let mut resume = confirmed(RTT);
    assert!(resume.asks());
    resume.grant(u64::MAX, flow(101, 0, 2 * IW));
    for (number, sent) in (10..).zip((SIZE..=in_flight).step_by(SIZE)) {
        resume.on_sent(number, SIZE, RTT, flow(102, sent, 2 * IW));
    }
    resume
}

fn told(resume: &mut CarefulResume) -> Vec<ResumeChange> {
    resume.take_changes().into_iter().collect()
}

#[test]
fn half_of_the_saved_window_is_sent_once_the_initial_data_arrived_and_the_controller_has_no_more() {
    let mut resume = unvalidated(24_000);
    assert_eq!(told(&mut resume), [], "the controller permits that by itself");
    assert_eq!(resume.window(2 * IW), SAVED / 2);
    assert_eq!(resume.pacing_rate(RTT), Some(Bandwidth::from_mbit(8)), "over a round trip");
    let mut resume = unvalidated(SAVED / 2);
    let expected = [
        (ResumePhase::Unvalidated, ResumeTrigger::WindowLimited),
        (ResumePhase::Validating, ResumeTrigger::LastUnvalidatedSent),
    ];
    assert_eq!(told(&mut resume), expected);
    // Packet 92 is the last of the 83 that fit.
    resume.on_acknowledged(arrived(24_000, 91, 36_000), 93, flow(202, 75_600, 48_000));
    assert_eq!(told(&mut resume), []);
    resume.on_acknowledged(arrived(75_600, 92, 111_600), 93, flow(203, 0, 111_600));
    assert_eq!(told(&mut resume), [(ResumePhase::Normal, ResumeTrigger::LastUnvalidatedAcknowledged)]);
    assert!(resume.is_over(), "the controller has come as far by itself");
}

#[test]
fn what_was_validated_holds_until_the_controller_is_there_or_reduces_its_window() {
    let slow = |windows: [usize; 2]| {
        let mut resume = unvalidated(SAVED / 2);
        resume.on_acknowledged(arrived(99_600, 92, 111_600), 93, flow(203, 0, 30_000));
        windows.map(|window| {
            resume.on_acknowledged(arrived(1_200, 93, 120_000), 94, flow(300, 50_000, window));
            resume.window(window)
        })
    };
    assert_eq!(slow([30_000, 40_000]), [99_600, 99_600]);
    assert_eq!(slow([30_000, 100_000]), [99_600, 100_000]);
    assert_eq!(slow([40_000, 35_000]), [99_600, 35_000], "it saw congestion");
}

#[test]
fn a_loss_leaves_half_of_what_arrived_until_the_last_unvalidated_packet_did() {
    let mut resume = unvalidated(SAVED / 2);
    resume.on_acknowledged(arrived(6_000, 14, 18_000), 93, flow(200, 93_600, 30_000));
    told(&mut resume);
    resume.on_congestion(lost(100), 93, flow(201, 90_000, 30_000));
    // 24 kB were in flight when the jump began, and 6 kB arrived since.
    assert_eq!(resume.window(21_000), 15_000);
    assert!(resume.take_refutation() && !resume.take_refutation());
    resume.on_acknowledged(arrived(6_000, 91, 24_000), 95, flow(210, 80_000, 21_000));
    assert_eq!(resume.window(21_000), 15_000, "it does not grow");
    assert_eq!(told(&mut resume), [(ResumePhase::SafeRetreat, ResumeTrigger::PacketLoss)]);
    resume.on_acknowledged(arrived(1_200, 92, 26_000), 95, flow(220, 2_400, 21_000));
    assert_eq!(told(&mut resume), [(ResumePhase::Normal, ResumeTrigger::ExitRecovery)]);
    assert_eq!(resume.window(21_000), 21_000);
}

/// Packets that left at `sent_at` milliseconds were lost.
fn lost(sent_at: u64) -> ResumeSignal {
    ResumeSignal { trigger: ResumeTrigger::PacketLoss, sent_at: at(sent_at) }
}

/// A retreat to 15 kB from 201 to 220 ms, after which the controller allows `window` bytes; meanwhile a packet was lost that left
/// at `then` milliseconds.
fn retreated(window: usize, then: u64) -> CarefulResume {
    let mut resume = unvalidated(SAVED / 2);
    resume.on_acknowledged(arrived(6_000, 14, 18_000), 93, flow(200, 93_600, 30_000));
    resume.on_congestion(lost(100), 93, flow(201, 90_000, 30_000));
    resume.on_congestion(lost(then), 93, flow(210, 90_000, 30_000));
    resume.on_acknowledged(arrived(1_200, 92, 26_000), 95, flow(220, 2_400, window));
    resume
}

#[test]
fn a_controller_that_keeps_to_far_less_than_arrived_begins_anew_with_what_left_after_the_retreat() {
    for (window, restarts) in [(7_499, true), (7_500, false), (21_000, false)] {
        let mut resume = retreated(window, 201);
        assert!(!resume.take_restart(), "packets of the jump are still to be declared lost");
        resume.on_congestion(lost(220), 95, flow(221, 2_400, window));
        resume.on_acknowledged(arrived(1_200, 94, 27_200), 97, flow(230, 2_400, window));
        assert!(!resume.take_restart(), "it left before");
        resume.on_acknowledged(arrived(1_200, 95, 28_400), 97, flow(330, 2_400, window));
        assert_eq!((resume.take_restart(), resume.take_restart()), (restarts, false), "{window} bytes");
        told(&mut resume);
        assert!(resume.take_refutation() && resume.is_over());
    }
    for (during, after) in [(202, 220), (201, 221)] {
        let mut again = retreated(2_400, during);
        again.on_congestion(lost(after), 97, flow(330, 2_400, 2_400));
        again.on_acknowledged(arrived(1_200, 95, 28_400), 97, flow(331, 2_400, 2_400));
        assert!(!again.take_restart(), "there is congestion without the jump: {during}, {after}");
    }
}

#[test]
fn a_path_with_another_round_trip_is_another_path() {
    for (rtt, is_same) in [(50, false), (51, true), (100, true), (1000, true), (1001, false)] {
        let mut resume = confirmed(Duration::from_millis(rtt));
        assert_eq!(resume.asks(), is_same, "{rtt} ms");
        let refused: &[ResumeChange] = &[(ResumePhase::Normal, ResumeTrigger::RttNotValidated)];
        assert_eq!(told(&mut resume), if is_same { &[] } else { refused });
    }
}

#[test]
fn congestion_before_anything_was_tried_leaves_the_controller_alone() {
    for mut resume in [begun(), confirmed(RTT)] {
        let mark = ResumeSignal { trigger: ResumeTrigger::EcnCe, sent_at: at(20) };
        resume.on_congestion(mark, 10, flow(110, 0, 8_000));
        assert_eq!(told(&mut resume), [(ResumePhase::Normal, ResumeTrigger::EcnCe)]);
        assert_eq!((resume.window(8_000), resume.take_refutation()), (8_000, false));
    }
}

#[test]
fn who_has_too_little_to_send_learns_nothing() {
    // 26 kB are hardly more than the 24 kB that the controller permits.
    let mut resume = unvalidated(26_400);
    resume.on_acknowledged(arrived(25_200, 30, 37_200), 32, flow(202, 1_200, 49_200));
    let expected = [
        (ResumePhase::Unvalidated, ResumeTrigger::WindowLimited),
        (ResumePhase::Normal, ResumeTrigger::RateLimited),
    ];
    assert_eq!(told(&mut resume), expected);
}

/// A controller with a window of 6 kB went beyond it at 102 ms; later, at `millis`, `in_flight` bytes are.
fn narrow(millis: u64, in_flight: usize) -> Vec<ResumeChange> {
    let mut resume = confirmed(RTT);
    resume.grant(u64::MAX, flow(101, 0, 6_000));
    resume.on_sent(10, SIZE, RTT, flow(102, 7_200, 6_000));
    assert_eq!(told(&mut resume), [(ResumePhase::Unvalidated, ResumeTrigger::WindowLimited)]);
    resume.on_sent(11, SIZE, RTT, flow(millis, in_flight, 6_000));
    told(&mut resume)
}

#[test]
fn a_round_trip_later_what_is_in_flight_is_validated_if_it_is_as_much_as_an_initial_window() {
    assert_eq!(narrow(202, IW), [], "a round trip is not over");
    assert_eq!(narrow(203, IW - 1), [(ResumePhase::Normal, ResumeTrigger::RateLimited)]);
    assert_eq!(narrow(203, IW), [(ResumePhase::Validating, ResumeTrigger::RttExceeded)]);
    assert_eq!(narrow(110, SAVED / 2 - SIZE), [], "there is room for one more");
    let full = [(ResumePhase::Validating, ResumeTrigger::LastUnvalidatedSent)];
    assert_eq!(narrow(110, SAVED / 2 - SIZE + 1), full);
}

#[test]
fn an_acknowledgement_ends_the_jump_if_it_is_of_it_or_a_round_trip_later() {
    // Packet 30 is the first beyond the controller's window.
    let after = |millis, largest| {
        let mut resume = unvalidated(50_400);
        told(&mut resume);
        resume.on_acknowledged(arrived(1_200, largest, 13_200), 52, flow(millis, 49_200, 2 * IW));
        told(&mut resume)
    };
    let first = [(ResumePhase::Validating, ResumeTrigger::FirstUnvalidatedAcknowledged)];
    assert_eq!((after(150, 29), after(150, 30)), (vec![], first.to_vec()));
    let late = [(ResumePhase::Validating, ResumeTrigger::RttExceeded)];
    assert_eq!((after(202, 29), after(203, 29)), (vec![], late.to_vec()));
}

#[test]
fn a_controller_that_has_come_as_far_by_itself_is_left_alone() {
    for (window, told_of) in
        [(SAVED / 2 - 1, vec![]), (SAVED / 2, vec![(ResumePhase::Normal, ResumeTrigger::WindowReached)])]
    {
        let mut resume = confirmed(RTT);
        resume.on_acknowledged(arrived(1_200, 10, 13_200), 11, flow(110, 0, window));
        assert_eq!(told(&mut resume), told_of, "{window} bytes");
    }
}

#[test]
fn what_was_granted_is_claimed_from_the_first_packet_on_and_it_is_over_once_all_was_told() {
    let mut resume = begun();
    assert_eq!((resume.claims(), resume.pacing_rate(RTT), resume.is_over()), (0, None, false));
    resume = unvalidated(25_200);
    assert_eq!((resume.claims(), resume.is_over()), (SAVED / 2, false));
    let mut resume = retreated(21_000, 201);
    assert!(!resume.is_over(), "its phases were not told");
    told(&mut resume);
    assert!(!resume.is_over(), "nor that the path has changed");
    assert!(resume.take_refutation() && resume.is_over());
}

#[test]
fn nothing_is_resumed_late_nor_where_others_use_it_nor_of_a_small_window() {
    let mut late = confirmed(RTT);
    late.grant(u64::MAX, flow(101, 0, 2 * IW));
    late.on_sent(10, SIZE, RTT, flow(600_001, 30_000, 2 * IW));
    assert_eq!(told(&mut late), [(ResumePhase::Normal, ResumeTrigger::Stale)]);
    let mut last = confirmed(RTT);
    last.grant(u64::MAX, flow(101, 0, 2 * IW));
    last.on_sent(10, SIZE, RTT, flow(600_000, 30_000, 2 * IW));
    assert_eq!(told(&mut last), [(ResumePhase::Unvalidated, ResumeTrigger::WindowLimited)]);
    let mut beside = confirmed(RTT);
    beside.grant(2 * IW as u64, flow(101, 0, 2 * IW));
    assert_eq!(told(&mut beside), [(ResumePhase::Normal, ResumeTrigger::InUse)]);
    let small = PathKnowledge { window: 4 * IW as u64 - 1, ..saved() };
    assert!(CarefulResume::new(small, at(1), SIZE).is_none());
    let huge = PathKnowledge { window: u64::MAX, ..saved() };
    assert_eq!(CarefulResume::new(huge, at(1), SIZE).map(|resume| resume.allowance()), Some(4 << 20));
}

#[test]
fn persistent_congestion_ends_it() {
    let mut resume = unvalidated(SAVED / 2);
    told(&mut resume);
    resume.on_persistent_congestion();
    assert_eq!(told(&mut resume), [(ResumePhase::Normal, ResumeTrigger::PersistentCongestion)]);
    assert_eq!(resume.window(2_400), 2_400);
}
