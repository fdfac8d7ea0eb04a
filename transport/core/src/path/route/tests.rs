use super::*;
use crate::congestion::Algorithm;
use crate::knowledge::PathKnowledge;
use crate::recovery::ecn::{Ecn, EcnMarking};
use crate::recovery::sent_packet::PacketClass;
use std::net::SocketAddr;

fn tuple(local: [u8; 2], remote: [u8; 2]) -> FourTuple {
    let address = |[host, port]: [u8; 2]| SocketAddr::from(([10, 0, 0, host], u16::from(port)));
    FourTuple { local: address(local), remote: address(remote) }
}

/// A route of the default sizing under NewReno, in use since the start.
fn route() -> Route {
    let sizing = DatagramSizing::default();
    let congestion = Algorithm::NewReno.into();
    Route::new(tuple([1, 1], [2, 2]), congestion, Amplification::Validated, sizing, Instant::ZERO)
}

#[test]
fn ports_do_not_make_other_addresses() {
    // RFC 9000 §9.4.
    let known = tuple([1, 1], [2, 2]);
    for (other, same) in [
        (known, true),
        (tuple([1, 9], [2, 8]), true),
        (tuple([3, 1], [2, 2]), false),
        (tuple([1, 1], [3, 2]), false),
        (tuple([3, 1], [3, 2]), false),
    ] {
        assert_eq!(known.has_addresses_of(&other), same, "{other:?}");
    }
}

#[test]
fn the_window_was_used_with_packets_before_the_one_for_which_there_was_no_room() {
    // RFC 9002 §7.8.
    let mut route = route();
    route.on_pass(1_200, 7);
    assert!(!route.was_used_with(6), "a full datagram fits");
    route.on_pass(1_199, 7);
    route.on_pass(0, 5);
    assert_eq!([6, 7].map(|number| route.was_used_with(number)), [true, false]);
}

#[test]
fn another_controller_begins_anew() {
    let mut route = route();
    assert_eq!(route.congestion(), &Algorithm::NewReno.into());
    route.set_congestion(Algorithm::Cubic.into());
    assert_eq!(route.controller.name(), Algorithm::Cubic.name());
    assert_eq!(route.window(), Algorithm::Cubic.build(1_200).window());
}

#[test]
fn a_route_of_known_rate_carries_its_round_trip_and_a_short_queue() {
    let mut route = route();
    let window = route.controller.window();
    route.keep_flight_within(Some(Duration::from_millis(1)));
    assert_eq!((route.has_own_rate(), route.window()), (false, window), "nothing is known of its rate");
    route.guard_rate(Some(Bandwidth::from_mbit(2)));
    assert!(route.has_own_rate() && !route.is_held_below_window());
    assert_eq!(route.guarded_rate(), Some(Bandwidth::from_mbit(2)));
    route.keep_flight_within(None);
    assert_eq!(route.window(), window, "nothing is known of its round trip");
    // 6 ms and 4 ms at 250 bytes a millisecond, and two datagrams.
    route.keep_flight_within(Some(Duration::from_millis(6)));
    assert_eq!((route.window(), route.is_held_below_window()), (2_500 + 2_400, true));
    route.keep_flight_within(Some(Duration::from_secs(9)));
    assert_eq!((route.window(), route.is_held_below_window()), (window, false));
    route.guard_rate(None);
    assert!(!route.has_own_rate());
}

#[test]
fn a_promise_that_no_burst_has_shown_is_counted_on_for_a_fifth() {
    let mut route = route();
    route.guard_rate(Some(Bandwidth::from_mbit(10)));
    route.keep_flight_within(Some(Duration::from_millis(6)));
    // 10 ms at 1,250 bytes a millisecond: a fifth of them, and four datagrams.
    assert_eq!(route.window(), 2_500 + 4_800);
    let guard = route.guard.expect("the rate is known");
    assert_eq!(guard.flight(1_200, true), Some(12_500 + 2_400), "all of it once it is shown");
}

#[test]
fn datagrams_that_grew_fit_the_window_of_a_route_of_known_rate() {
    let congestion = Algorithm::NewReno.into();
    let sizing = DatagramSizing::Discover { most: 65_507 };
    let mut route =
        Route::new(tuple([1, 1], [2, 2]), congestion, Amplification::Validated, sizing, Instant::ZERO);
    route.guard_rate(Some(Bandwidth::from_mbit(2)));
    route.keep_flight_within(Some(Duration::from_millis(6)));
    route.mtu.on_probe_sent(1, 65_507, Instant::FAR_FUTURE);
    let probe = SentPacket::new(1, Instant::ZERO, 65_507, PacketClass::InFlight);
    assert!(route.mtu.on_acknowledged(&probe));
    route.follow_mtu(Instant::ZERO);
    // Nothing is in flight whose acknowledgement could make room.
    assert_eq!((route.datagram_size, route.window()), (65_507, 2 * 65_507));
    let ready = Instant::ZERO + Duration::from_secs(1);
    assert!(route.room(0, ready) >= route.datagram_size);
}

#[test]
fn a_promised_rate_paces_what_the_controller_would_let_go() {
    let mut route = route();
    route.pace(Duration::from_millis(1), Instant::ZERO);
    route.guard_rate(Some(Bandwidth::from_mbit(2)));
    let burst = route.pacer.available(Instant::ZERO);
    route.pacer.on_sent(burst, Instant::ZERO);
    // A datagram at 250 bytes a millisecond.
    let ready =
        route.paced_until(route.datagram_size, burst, Instant::ZERO).expect("the pacer holds it back");
    assert!(ready.since(Instant::ZERO) >= Duration::from_micros(4_700), "{ready:?}");
    assert_eq!(route.paced_until(route.datagram_size, burst, ready), None);
    let last = route.window() - 1_200;
    assert_eq!(
        route.paced_until(route.datagram_size, last, Instant::ZERO),
        Some(ready),
        "the window lets one more go"
    );
    assert_eq!(
        route.paced_until(route.datagram_size, last + 1, Instant::ZERO),
        None,
        "the window holds it back"
    );
    assert_eq!(
        route.paced_until(route.datagram_size, route.window(), Instant::ZERO),
        None,
        "the window holds it back"
    );
}

#[test]
fn datagrams_follow_the_peers_limit_and_what_the_search_finds() {
    let mut route = route();
    route.mtu.on_probe_sent(1, 1_400, Instant::ZERO);
    let packet = crate::recovery::sent_packet::SentPacket::new(
        1,
        Instant::ZERO,
        1_400,
        crate::recovery::sent_packet::PacketClass::InFlight,
    );
    assert!(route.mtu.on_acknowledged(&packet));
    assert_eq!(route.datagram_size, 1_200);
    route.follow_mtu(Instant::ZERO);
    assert_eq!(route.datagram_size, 1_400);
    route.limit_datagram_size(1_300);
    assert_eq!(route.datagram_size, 1_300);
}

#[test]
fn packets_before_the_measurements_began_say_nothing_about_the_route() {
    // RFC 9000 §9.4.
    let mut route = route();
    assert_eq!(route.since, 0);
    route.measure_from(7);
    assert_eq!(route.since, 7);
}

#[test]
fn packets_are_marked_as_the_validation_says() {
    let mut route = route();
    assert_eq!(route.ecn.marking(), Ecn::Ect0);
    route.set_ecn(EcnValidation::new(EcnMarking::Off));
    assert_eq!(route.ecn.marking(), Ecn::NotEct);
}

/// A window of 1 MB and a round trip of 50 ms are remembered of `route`, and its first packets arrived.
fn remember(route: &mut Route) {
    let rtt = Duration::from_millis(50);
    let remembered = PathKnowledge::of_window(1_000_000, rtt, Instant::ZERO);
    route.resume(CarefulResume::new(remembered, Instant::FAR_FUTURE, route.datagram_size));
    let first = ResumeSample { bytes: 0, largest: None, delivered: 0, min_rtt: Some(rtt) };
    route.resume_acknowledged(first, 0, 0, Instant::ZERO);
}

#[test]
fn the_window_of_the_controller_is_used_up_by_what_leaves_beyond_it() {
    // RFC 9002 §7.8.
    let window = route().controller.window();
    for (in_flight, is_used) in [(window - 1_200, false), (window - 1_199, true)] {
        let mut route = route();
        let packet = SentPacket::new(7, Instant::ZERO, 1_200, PacketClass::AckEliciting);
        remember(&mut route);
        route.resume_sent(&packet, Duration::from_millis(50), in_flight);
        assert!(!route.was_used_with(7), "no more is granted than the controller allows");
        route.grant(u64::MAX, 0, Instant::ZERO);
        route.resume_sent(&packet, Duration::from_millis(50), in_flight);
        assert_eq!([7, 8].map(|number| route.was_used_with(number)), [is_used, false], "{in_flight} bytes");
    }
}

#[test]
fn what_is_remembered_paces_a_route_that_the_controller_would_pace_slower() {
    let mut route = route();
    let rtt = Duration::from_millis(50);
    route.pace(rtt, Instant::ZERO);
    // RFC 9002 §7.7: 1.25 windows in a round trip.
    let alone = Bandwidth::of(route.window() as u64 * 5 / 4, rtt);
    assert_eq!(route.pacer.rate(), Some(alone));
    remember(&mut route);
    route.pace(rtt, Instant::ZERO);
    assert_eq!(route.pacer.rate(), Some(alone), "nobody said how much of it is left");
    route.grant(u64::MAX, 0, Instant::ZERO);
    route.pace(rtt, Instant::ZERO);
    assert_eq!((route.window(), route.pacer.rate()), (500_000, Some(Bandwidth::of(500_000, rtt))));
}
