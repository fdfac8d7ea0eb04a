use super::*;
use crate::congestion::{Algorithm, MarkSample};
use crate::path::amplification::Amplification;
use crate::path::mtu::DatagramSizing;
use crate::path::route::FourTuple;
use crate::ranges::Ranges;
use crate::recovery::rate::AckSample;
use crate::recovery::rtt::INITIAL_RTT;
use crate::recovery::sent_packet::PacketClass;
use crate::wire::frame::{Ack, AckRanges};

/// No bound on the silence of a path.
const MOST: Duration = Duration::MAX;

/// A path on a validated route, of which nothing is known.
fn path() -> Path {
    let address = ([192, 0, 2, 1], 443).into();
    let tuple = FourTuple { local: address, remote: address };
    let sizing = DatagramSizing::default();
    let congestion = Algorithm::NewReno.into();
    let route = Route::new(tuple, congestion, Amplification::Validated, sizing, Instant::ZERO);
    Path::new(PathId(1), route, AckPolicy::default())
}

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn at(count: u64) -> Instant {
    Instant::ZERO + milliseconds(count)
}

/// A path whose round trip took 40 ms so many times, so that its variation is known to be small after many.
fn sampled(times: u64) -> Path {
    let mut path = path();
    (0..times).for_each(|n| path.rtts.sample(PathId(1), milliseconds(40), Duration::ZERO, at(n)));
    path
}

fn send(path: &mut Path, numbers: std::ops::Range<u64>, class: PacketClass) {
    // One a millisecond, from 1000 ms on.
    numbers.for_each(|n| path.sent.on_sent(SentPacket::new(n, at(1_000 + n), 100, class)));
}

/// A path of 2 Mbit/s with a round trip of 5 ms, and then one of 45 ms with 1000 bytes in flight before.
fn crowded(shared: Sharing) -> (Path, Instant) {
    let address = ([192, 0, 2, 1], 443).into();
    let tuple = FourTuple { local: address, remote: address };
    let sizing = DatagramSizing::default();
    let congestion = Algorithm::NewReno.into();
    let mut now = Instant::ZERO + INITIAL_RTT;
    let route = Route::new(tuple, congestion, Amplification::Validated, sizing, now);
    let mut path = Path::new(PathId(1), route, AckPolicy::default());
    path.set_hints(Hints { rate: Some(Bandwidth::from_mbit(2)), shared, ..Hints::NONE });
    for (number, rtt) in [(0, 5), (1, 45)] {
        now += Duration::from_millis(50);
        let rtt = Duration::from_millis(rtt);
        let mut packet = SentPacket::new(number, now, 250, PacketClass::AckEliciting);
        packet.delivery.in_flight = 1000 * number;
        path.rtts.sample(PathId(1), rtt, Duration::ZERO, now);
        path.on_round_trip(&packet, PathId(1), rtt, now);
    }
    (path, now)
}

#[test]
fn the_queue_of_others_counts_where_the_channel_is_shared_and_drains_with_time() {
    for shared in [Sharing::Shared, Sharing::Endpoint] {
        let (path, now) = crowded(shared);
        // 45 ms are 5 ms, 5 ms for 1250 bytes of its own, and 35 ms at 250 bytes a millisecond.
        assert_eq!(path.backlog(now), 8750);
        assert_eq!(path.backlog(now + Duration::from_millis(20)), 3750);
        assert_eq!(path.backlog(now + Duration::from_millis(35)), 0);
    }
}

#[test]
fn on_a_channel_of_its_own_a_path_counts_what_it_sent() {
    for shared in [Sharing::Unknown, Sharing::Dedicated] {
        let (path, now) = crowded(shared);
        assert_eq!(path.backlog(now), 0);
    }
}

#[test]
fn a_path_of_which_nothing_is_known_has_three_probe_timeouts_to_answer() {
    // RFC 9002 §6.2.1: the timeout of a round trip that was guessed is three of it, and the delay of acknowledgements.
    let (ack_delay, beside) = (milliseconds(25), milliseconds(100));
    let mut path = path();
    assert_eq!(path.silent_at(ack_delay, beside), None, "nothing was sent");
    send(&mut path, 0..1, PacketClass::InFlight);
    assert_eq!(path.silent_at(ack_delay, beside), None, "nothing asks for an answer");
    send(&mut path, 1..3, PacketClass::AckEliciting);
    assert_eq!(path.silent_at(ack_delay, beside), Some(at(1_001 + 3 * 325)));
    path.hints.delay = Some(milliseconds(10));
    assert_eq!(path.silent_at(ack_delay, beside), Some(at(1_001 + 3 * 85)), "the hint is of one way");
}

#[test]
fn several_packets_without_an_answer_make_a_path_silent_after_a_probe_timeout_and_few_half_of_one_later() {
    // One sample: 40 ms, four times 20 ms of variation, 25 ms of delay.
    for (sent, silent) in [(1, 145 + 72), (3, 145 + 72), (4, 145), (9, 145)] {
        let mut path = sampled(1);
        assert_eq!(path.silent_at(milliseconds(25), Duration::ZERO), None);
        send(&mut path, 0..sent, PacketClass::AckEliciting);
        let since = path.silent_at(milliseconds(25), Duration::ZERO).map(|silent| silent.since(at(1_000)));
        assert_eq!(since.map(|since| since.as_millis()), Some(silent), "{sent} packets");
    }
}

#[test]
fn a_path_that_the_peer_fills_while_an_answer_is_due_has_three_probe_timeouts() {
    // An upload fills the queue before the acknowledgements of the few packets that go the other way.
    let ack_delay = milliseconds(25);
    for (packets, last, is_patient) in
        [(10, 1_000, false), (10, 1_040, false), (9, 1_041, false), (10, 1_041, true)]
    {
        let mut path = sampled(1);
        send(&mut path, 0..1, PacketClass::AckEliciting);
        (0..packets).for_each(|_| path.on_heard(at(last)));
        let silent = if is_patient { 3 * 145 } else { 145 + 72 };
        let since = path.silent_at(ack_delay, Duration::ZERO).map(|at| at.since(Instant::ZERO).as_millis());
        assert_eq!(since, Some(1_000 + silent), "{packets} packets, the last at {last} ms");
        assert_eq!(path.on_probe_timeout(at(1_145)), !is_patient, "{packets} packets, the last at {last} ms");
        assert!(path.liveness.is_due(), "RFC 9002 §6.2.4: probes are due all the same");
        path.on_heard(at(1_430));
        assert_eq!(path.on_probe_timeout(at(1_435)), is_patient, "it is silent from the second timeout on");
        assert!(path.liveness.is_silent());
        path.on_acknowledged(at(1_500));
        assert!(!path.liveness.was_filled_since(at(0)), "what arrived before an answer did not delay it");
    }
}

#[test]
fn what_arrived_before_an_answer_was_asked_for_does_not_delay_it() {
    // Requests come over a path on which nothing was sent for a while, as where the answers take another one.
    let mut path = sampled(1);
    (0..20).for_each(|n| path.on_heard(at(500 + 20 * n)));
    path.on_packet_sent(SentPacket::new(0, at(1_000), 100, PacketClass::AckEliciting));
    path.on_heard(at(1_041));
    let usual = at(1_000) + milliseconds(145) * 3 / 2;
    assert_eq!(path.silent_at(milliseconds(25), Duration::ZERO), Some(usual));
    (0..9).for_each(|_| path.on_heard(at(1_042)));
    assert_eq!(path.silent_at(milliseconds(25), Duration::ZERO), Some(at(1_000 + 3 * 145)));
}

#[test]
fn this_endpoint_advises_against_a_path_that_is_silent_and_was_not_heard() {
    let mut path = sampled(1);
    send(&mut path, 0..1, PacketClass::AckEliciting);
    assert_eq!(path.advice(), None);
    path.on_probe_timeout(at(1_145));
    assert_eq!(path.advice(), Some(Status::Backup));
    path.on_acknowledged(at(1_150));
    assert_eq!(path.advice(), None);
    // The peer's direction works: it need not be told.
    send(&mut path, 1..2, PacketClass::AckEliciting);
    path.on_heard(at(1_160));
    path.on_probe_timeout(at(1_300));
    assert_eq!(path.advice(), None);
    path.on_own_status(Status::Available);
    assert_eq!(path.advice(), Some(Status::Available), "what the application said holds");
    path.spare(true);
    assert_eq!(path.advice(), Some(Status::Backup), "others bring more");
    path.spare(false);
    assert_eq!(path.advice(), Some(Status::Available));
}

#[test]
fn a_steady_path_is_given_a_quarter_of_its_round_trip_more_than_it_takes() {
    let mut path = sampled(200);
    send(&mut path, 0..4, PacketClass::AckEliciting);
    assert_eq!(path.silent_at(Duration::ZERO, Duration::ZERO), Some(at(1_000 + 40 + 10)));
    // An answer to what was sent earlier came meanwhile: the queue grows, and the path is alive.
    path.on_acknowledged(at(1_045));
    assert_eq!(path.silent_at(Duration::ZERO, Duration::ZERO), Some(at(1_045 + 20)));
}

#[test]
fn a_single_packet_may_be_acknowledged_late_on_purpose_and_two_may_not() {
    // RFC 9000 §13.2.2. What came in between is a matter of loss detection.
    for (sent, overdue) in [(1, 40 + 10 + 25), (2, 40 + 10)] {
        let mut path = sampled(200);
        assert_eq!(path.overdue_at(milliseconds(25)), None);
        send(&mut path, 0..sent, PacketClass::AckEliciting);
        assert_eq!(path.overdue_at(milliseconds(25)), Some(at(1_000 + overdue)), "{sent} packets");
        path.on_acknowledged(at(1_100));
        assert_eq!(path.overdue_at(milliseconds(25)), Some(at(1_100 + overdue - 40)), "{sent} packets");
    }
}

#[test]
fn packets_older_than_an_acknowledged_one_do_not_ask() {
    let mut unknown = path();
    send(&mut unknown, 0..5, PacketClass::AckEliciting);
    assert_eq!(unknown.asked_at(), None, "nobody knows how long an answer takes");
    let mut path = sampled(1);
    send(&mut path, 0..5, PacketClass::AckEliciting);
    assert_eq!(path.overdue_at(Duration::ZERO), Some(at(1_000 + 40 + 4 * 20)), "four times the variation");
    assert_eq!(path.asked_at(), Some(at(1_000)));
    let mut arrived = Ranges::default();
    arrived.insert(2);
    let ranges = AckRanges::from_ranges(&arrived, 100).expect("one packet");
    let ack = Ack { path: None, largest: 2, delay: 0, ranges, ecn: None };
    path.sent.on_ack(&ack, at(1_040)).expect("it was sent");
    assert_eq!(path.asked_at(), Some(at(1_003)));
}

#[test]
fn a_path_is_kept_warm_after_its_period_while_nothing_is_in_flight() {
    let mut path = path();
    assert_eq!(path.keep_alive_at(MOST), None);
    path.set_keep_alive(KeepAlive::new(Some(milliseconds(500)), None));
    path.on_heard(at(30));
    assert_eq!(path.keep_alive_at(MOST), Some(at(530)));
    assert_eq!(path.keep_alive_at(milliseconds(100)), Some(at(130)), "no connection ends for it");
    send(&mut path, 0..1, PacketClass::AckEliciting);
    assert_eq!(path.keep_alive_at(MOST), None, "the probe timeout watches over it");
}

#[test]
fn a_silent_path_is_asked_at_its_pace_and_says_when_it_is_back() {
    let mut path = sampled(1);
    assert_eq!(path.ask_at(milliseconds(25), Company::Alone), None);
    assert!(path.on_probe_timeout(at(2_000)), "it answered before");
    assert_eq!(path.ask_at(milliseconds(25), Company::Alone), Some(at(2_000 + 145)));
    assert!(path.on_acknowledged(at(2_100)), "it was silent before");
    assert!(!path.on_acknowledged(at(2_200)));
}

#[test]
fn the_scheduling_state_of_a_path_is_what_the_worst_news_of_it_is() {
    let mut path = path();
    assert_eq!(path.scheduling_state(), PathState::Unvalidated);
    path.on_peer_status(Some(Status::Backup));
    assert_eq!(path.scheduling_state(), PathState::Unvalidated);
    path.route.validation.presume();
    assert_eq!(path.scheduling_state(), PathState::Backup);
    path.on_peer_status(Some(Status::Available));
    assert_eq!(path.scheduling_state(), PathState::Available);
    path.own_status = Some(Status::Backup);
    assert_eq!(path.scheduling_state(), PathState::Backup, "what is asked of the peer holds here, too");
    path.own_status = Some(Status::Available);
    path.on_probe_timeout(at(1_000));
    assert_eq!(
        (path.scheduling_state(), path.scheduling_state_if_heard()),
        (PathState::Silent, PathState::Available)
    );
}

#[test]
fn a_path_owes_the_datagrams_that_open_it() {
    let mut path = path();
    path.route.validation.presume();
    assert!(!path.owes_validation(at(1)));
    path.opening_datagrams = 1;
    assert!(path.owes_validation(at(1)));
}

#[test]
fn a_rate_that_is_not_shared_with_others_is_kept_to() {
    for (shared, is_own) in [
        (Sharing::Unknown, true),
        (Sharing::Dedicated, true),
        (Sharing::Endpoint, true),
        (Sharing::Shared, false),
    ] {
        let mut path = path();
        path.set_hints(Hints { rate: Some(Bandwidth::from_mbit(2)), shared, ..Hints::NONE });
        assert_eq!(path.route.has_own_rate(), is_own, "{shared:?}");
    }
}

#[test]
fn bytes_are_entered_into_the_account_of_the_channel_once() {
    let mut path = path();
    path.counters.bytes_sent = 100;
    assert_eq!(path.take_unentered(), None, "nobody keeps an account");
    path.learn_queue(500, Account::Whole, at(0));
    assert_eq!(path.take_unentered(), None, "what was sent before is not queued any more");
    path.counters.bytes_sent = 150;
    assert_eq!([path.take_unentered(), path.take_unentered()], [Some(50), None]);
}

/// A path on which 40 packets of 1000 bytes left, one a millisecond, and arrived 40 ms later.
fn delivered() -> Path {
    let mut path = sampled(1);
    let packet = |path: &mut Path, n: u64| {
        let mut packet = SentPacket::new(n, at(n), 1000, PacketClass::AckEliciting);
        packet.delivery = path.route.rate.on_sent(at(n), 1000 * n as usize);
        packet
    };
    let packets: Vec<_> = (0..40).map(|n| packet(&mut path, n)).collect();
    for (packet, ms) in packets.iter().zip(40..) {
        let arrival = AckSample { now: at(ms), over: PathId(1), rtts: &path.rtts, rtt: None };
        path.route.rate.on_acknowledged(arrival, std::slice::from_ref(packet)).expect("it was in flight");
    }
    path
}

#[test]
fn what_is_delivered_in_slow_start_is_no_rate_before_a_burst_was_seen() {
    let mut path = delivered();
    let rate = Bandwidth::of(40_000, milliseconds(79));
    assert_eq!((path.route.rate.estimate(), path.route.rate.capacity()), (Some(rate), None));
    assert_eq!(path.rate(), None, "it shows the window");
    assert_eq!(path.shown_rate(), Some(ShownRate { rate, undecided: None }), "so much it carried");
    path.route.controller.on_ecn_ce(&MarkSample { now: at(80), sent_at: at(39) });
    assert!(!path.route.controller.in_slow_start());
    assert_eq!(path.rate(), Some(rate));
}

#[test]
fn a_path_answers_that_is_validated_and_not_silent() {
    let mut path = path();
    assert!(!path.is_answering(), "nobody knows whether it reaches the peer");
    path.route.validation.presume();
    assert!(path.is_answering());
    path.on_probe_timeout(at(1_000));
    assert!(!path.is_answering());
}

#[test]
fn an_overdue_packet_is_late_by_what_it_takes_beyond_an_empty_round_trip() {
    let mut path = sampled(200);
    send(&mut path, 0..4, PacketClass::AckEliciting);
    // It is given a quarter of the round trip of 40 ms.
    for (ms, late) in [(1_049, 0), (1_050, 10), (1_100, 60)] {
        assert_eq!(path.lateness(Duration::ZERO, at(ms)), milliseconds(late), "at {ms} ms");
    }
}

#[test]
fn a_path_was_active_when_it_was_configured_or_something_came_or_left() {
    let mut path = path();
    let settings = PathSettings {
        spin: Spin::Spinning(true),
        keep_alive: KeepAlive::new(Some(milliseconds(500)), None),
        dscp: Dscp::EXPEDITED,
    };
    path.configure(settings.clone(), at(10));
    assert_eq!((path.active_at(), path.keep_alive_at(MOST)), (at(10), Some(at(510))));
    assert_eq!((path.spin(), path.dscp()), (true, settings.dscp));
    path.on_activity(at(20));
    assert_eq!(path.active_at(), at(20));
    path.on_heard(at(30));
    assert_eq!(path.active_at(), at(30));
}

#[test]
fn the_spin_bit_of_a_path_follows_the_newest_packet() {
    let mut path = path();
    path.spin = Spin::Spinning(false);
    for (received, role, next) in
        [(true, Role::Server, true), (false, Role::Server, false), (false, Role::Client, true)]
    {
        path.on_newest(received, role);
        assert_eq!(path.spin(), next, "{role:?} received {received}");
    }
}

#[test]
fn the_hints_that_are_believed_have_the_rate_that_arrives() {
    let mut path = path();
    let hints = |megabits| Hints {
        rate: Some(Bandwidth::from_mbit(megabits)),
        delay: Some(milliseconds(10)),
        ..Hints::NONE
    };
    assert!(!path.may_have_hints(), "nothing is known");
    path.set_hints(hints(10));
    assert!(path.may_have_hints(), "the peer does not know it");
    assert_eq!(path.believed_hints(), hints(10));
    let arrives = Some(Bandwidth::from_mbit(2));
    assert!(path.hear_received_rate(arrives) && !path.hear_received_rate(arrives), "once it is news");
    assert_eq!(path.believed_hints(), hints(2));
}

#[test]
fn the_queue_of_others_is_a_delay_where_no_rate_tells_how_many_bytes_it_has() {
    let (mut path, now) = crowded(Sharing::Shared);
    assert_eq!(path.delay_of_others(now), Duration::ZERO, "it counts in bytes");
    path.set_hints(Hints::NONE);
    assert_eq!(path.delay_of_others(now), milliseconds(35));
    assert_eq!(path.delay_of_others(now + milliseconds(20)), milliseconds(15));
}

#[test]
fn no_more_of_a_path_is_queued_than_is_in_flight() {
    let mut path = path();
    path.route.backlog.on_sent(at(1_000), 500, || None);
    send(&mut path, 0..4, PacketClass::AckEliciting);
    assert_eq!(path.own_backlog(at(1_010)), 400);
}

#[test]
fn a_path_was_heard_with_the_newest_connection_id_that_the_peer_used() {
    let mut path = path();
    for (sequence, newest) in [(3, 3), (2, 3), (5, 5)] {
        path.on_heard_with(sequence, at(10 + sequence));
        assert_eq!((path.heard_with(), path.active_at()), (newest, at(10 + sequence)));
    }
}

#[test]
fn a_connection_id_is_changed_that_carried_enough_and_under_which_the_peer_was_heard() {
    let rotation = Rotation { packets: Some(5), ..Rotation::default() };
    let mut path = path();
    send(&mut path, 0..7, PacketClass::AckEliciting);
    path.on_destination(at(1_010));
    assert_eq!(path.destination_since(), 7);
    path.on_heard(at(1_011));
    path.on_carried();
    assert!(!path.is_rotation_due(&rotation, at(1_020)), "nothing was sent under it yet");
    send(&mut path, 7..12, PacketClass::AckEliciting);
    assert!(path.is_rotation_due(&rotation, at(1_020)));
    path.on_destination(at(1_021));
    send(&mut path, 12..17, PacketClass::AckEliciting);
    path.on_carried();
    assert!(!path.is_rotation_due(&rotation, at(1_030)), "the peer was not heard since");
    path.on_heard(at(1_031));
    assert!(path.is_rotation_due(&rotation, at(1_032)));
}

#[test]
fn a_size_probe_that_is_overdue_does_not_wait_for_an_answer_any_more() {
    let mut path = path();
    send(&mut path, 0..4, PacketClass::InFlight);
    path.route.mtu.on_probe_sent(2, 1_452, at(2_000));
    for (ms, left) in [(1_999, vec![0, 1, 2, 3]), (2_000, vec![0, 1, 3])] {
        path.expire_size_probe(at(ms));
        let numbers: Vec<_> = path.sent.unacknowledged().map(|packet| packet.number).collect();
        assert_eq!((numbers.len() * 100, numbers), (path.sent.in_flight(), left), "at {ms} ms");
    }
}
