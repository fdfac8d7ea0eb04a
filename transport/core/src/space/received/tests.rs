use super::*;
use proptest::prelude::*;
use std::ops::RangeInclusive;

const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn arrive(received: &mut Received, number: u64, now: u64) {
    received.on_packet(number, AckEliciting::Yes, Ecn::NotEct, at(now)).expect("not a duplicate");
}

fn build(received: &mut Received, now: u64) -> Ack {
    match received.build(at(now), 3, 1000, None) {
        Some(Frame::Ack(ack)) => ack,
        other => panic!("no acknowledgement but {other:?}"),
    }
}

fn ranges(ack: &Ack) -> Vec<RangeInclusive<u64>> {
    ack.ranges.iter().collect()
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-12.3
//= type=test
//# A receiver MUST discard a newly unprotected packet unless it is certain that it has not processed another
//# packet with the same packet number from the same packet number space
#[test]
fn a_duplicate_packet_is_refused_and_changes_nothing() {
    let mut received = Received::default();
    arrive(&mut received, 0, 1);
    let again = received.on_packet(0, AckEliciting::Yes, Ecn::Ce, at(2));
    assert_eq!(again, Err(Dropped::Duplicate));
    assert_eq!((received.unreported(), received.ack_due(at(2))), (1, false));
    assert_eq!(build(&mut received, 3).ecn, None);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
//= type=test
//# Every packet SHOULD be acknowledged at least once, and ack-eliciting packets MUST be acknowledged at least
//# once within the maximum delay an endpoint communicated using the max_ack_delay transport
//= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
//= type=test
//# An endpoint MUST acknowledge all ack-eliciting Initial and Handshake packets immediately and all
//# ack-eliciting 0-RTT and 1-RTT packets within its advertised max_ack_delay, with the following exception
//= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
//= type=test
//# Since packets containing only ACK frames are not congestion controlled, an endpoint MUST NOT send more
//# than one such packet in response to receiving an ack-eliciting packet.
#[test]
fn every_second_packet_is_acknowledged_at_once_and_a_single_one_in_time() {
    // RFC 9000 §13.2.1, §13.2.2.
    let mut received = Received::default();
    arrive(&mut received, 0, 1);
    assert_eq!(received.ack_deadline(), Some(at(26)));
    assert!(!received.ack_due(at(25)));
    assert!(received.ack_due(at(26)));
    arrive(&mut received, 1, 2);
    assert!(received.ack_due(at(2)));
    assert_eq!(ranges(&build(&mut received, 2)), [0..=1]);
    assert!(!received.pending());
    assert_eq!(received.ack_deadline(), None);
}

#[test]
fn a_later_packet_does_not_put_the_deadline_off() {
    let mut received =
        Received::new(AckPolicy { threshold: 10, max_delay: Duration::from_millis(25), reordering: 1 });
    arrive(&mut received, 0, 1);
    arrive(&mut received, 1, 20);
    assert_eq!(received.ack_deadline(), Some(at(26)));
}

#[test]
fn gaps_late_packets_and_congestion_marks_are_reported_at_once() {
    // RFC 9000 §13.2.1.
    let mut received = Received::default();
    arrive(&mut received, 0, 1);
    build(&mut received, 1);
    arrive(&mut received, 2, 2);
    assert!(received.ack_due(at(2)), "a gap");
    build(&mut received, 2);
    arrive(&mut received, 1, 3);
    assert!(received.ack_due(at(3)), "a late packet");
    build(&mut received, 3);
    received.on_packet(3, AckEliciting::Yes, Ecn::Ce, at(4)).expect("new");
    assert!(received.ack_due(at(4)), "a mark");
    assert_eq!(build(&mut received, 4).ecn.map(|counts| counts.ce), Some(1));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
//= type=test
//# An endpoint MUST NOT send a non-ack-eliciting packet in response to a non-ack-eliciting packet, even if
//# there are packet gaps that precede the received packet
#[test]
fn packets_that_elicit_nothing_are_acknowledged_only_in_passing() {
    // RFC 9000 §13.2.1; attacks.md C10.
    let mut received = Received::default();
    for number in [0, 1, 5, 3] {
        received.on_packet(number, AckEliciting::No, Ecn::NotEct, at(1)).expect("new");
    }
    assert!(!received.pending());
    assert_eq!((received.ack_deadline(), received.unreported()), (None, 4));
    assert_eq!(ranges(&build(&mut received, 1)), [5..=5, 3..=3, 0..=1]);
}

#[test]
fn a_thinned_receiver_waits_for_its_threshold() {
    let mut received = Received::default();
    received.set_policy(AckPolicy { threshold: 16, max_delay: Duration::from_millis(5), reordering: 1 });
    for number in 0..15 {
        arrive(&mut received, number, 1);
        assert!(!received.ack_due(at(1)));
    }
    arrive(&mut received, 15, 1);
    assert!(received.ack_due(at(1)));
}

#[test]
fn gaps_are_reported_when_they_are_as_old_as_the_peer_asked() {
    // Draft-ietf-quic-ack-frequency-14 §6.2.1, table 1.
    let policy = |reordering| AckPolicy { threshold: 100, max_delay: Duration::from_millis(25), reordering };
    let mut received = Received::new(policy(3));
    for (number, urgent) in
        [(0, false), (1, false), (3, false), (4, false), (5, true), (8, false), (9, true), (10, true)]
    {
        arrive(&mut received, number, 1);
        assert_eq!(received.ack_due(at(1)), urgent, "packet {number}");
        if urgent {
            build(&mut received, 1);
        }
    }
    // Packet 2 counts as lost by now: that it came is news.
    arrive(&mut received, 2, 1);
    assert!(received.ack_due(at(1)));
    let mut indifferent = Received::new(policy(0));
    for number in [0, 9, 3, 90] {
        arrive(&mut indifferent, number, 1);
    }
    assert!(!indifferent.ack_due(at(1)));
}

#[test]
fn a_late_packet_that_nobody_counts_as_missing_yet_is_no_news() {
    // Draft-ietf-quic-ack-frequency-14 §6.2.1.
    let policy = AckPolicy { threshold: 100, max_delay: Duration::from_millis(25), reordering: 3 };
    let mut received = Received::new(policy);
    for number in [0, 1, 3, 2] {
        arrive(&mut received, number, 1);
        assert!(!received.ack_due(at(1)), "packet {number}");
    }
    build(&mut received, 1);
    for number in [5, 4] {
        arrive(&mut received, number, 1);
        assert!(!received.ack_due(at(1)), "packet {number}");
    }
}

#[test]
fn an_acknowledgement_that_went_nowhere_is_owed_again_at_once() {
    let mut received = Received::default();
    received.repeat(at(1));
    assert!(!received.pending(), "there is nothing to report");
    arrive(&mut received, 0, 1);
    received.repeat(at(2));
    assert_eq!(received.ack_deadline(), Some(at(26)), "what is owed already is owed when it was");
    build(&mut received, 26);
    received.repeat(at(40));
    assert!(received.ack_due(at(40)));
}

#[test]
fn an_acknowledgement_at_once_is_one_however_often_it_is_asked_for() {
    // attacks.md C12; draft-ietf-quic-ack-frequency-14 §5.
    let mut received = Received::default();
    received.acknowledge_at_once(at(1));
    assert!(!received.pending() && !received.is_asked(), "nothing arrived");
    arrive(&mut received, 0, 1);
    assert!(!received.is_asked());
    (0..1000).for_each(|_| received.acknowledge_at_once(at(1)));
    assert!(received.ack_due(at(1)) && received.is_asked());
    build(&mut received, 1);
    assert!(!received.pending() && !received.is_asked());
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
//= type=test
//# An endpoint MUST acknowledge all ack-eliciting Initial and Handshake packets immediately and all
//# ack-eliciting 0-RTT and 1-RTT packets within its advertised max_ack_delay, with the following exception
#[test]
fn handshake_packets_are_acknowledged_immediately() {
    let mut received = Received::new(AckPolicy::IMMEDIATE);
    arrive(&mut received, 0, 7);
    assert!(received.ack_due(at(7)));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.5
//= type=test
//# An endpoint MUST NOT include delays that it does not control when populating the ACK Delay field in an ACK
//# frame
#[test]
fn the_delay_is_that_of_the_largest_packet_in_units_of_the_exponent() {
    // RFC 9000 §13.2.5.
    let mut received = Received::default();
    arrive(&mut received, 0, 1);
    arrive(&mut received, 2, 10);
    arrive(&mut received, 1, 12);
    assert_eq!(build(&mut received, 18).delay, 8000 / 8);
    let Some(Frame::Ack(late)) = received.build(Instant::FAR_FUTURE, 255, 1000, None) else { panic!() };
    assert!(late.delay < 1 << 62);
}

#[test]
fn a_path_acknowledgement_names_its_path() {
    let mut received = Received::default();
    assert!(received.build(at(0), 3, 1000, None).is_none(), "nothing arrived");
    arrive(&mut received, 0, 1);
    let Some(Frame::Ack(ack)) = received.build(at(1), 3, 1000, Some(PathId(4))) else { panic!() };
    assert_eq!((ack.path, ack.largest), (Some(PathId(4)), 0));
}

#[test]
fn without_room_nothing_is_built_and_the_debt_stays() {
    let mut received = Received::default();
    for number in 0..40 {
        arrive(&mut received, number * 2, 1);
    }
    assert!(received.build(at(1), 3, 3, None).is_none());
    assert!(received.pending());
    let Some(Frame::Ack(ack)) = received.build(at(1), 3, 40, None) else { panic!("there is room") };
    assert!(Frame::Ack(ack.clone()).encoded_size() <= 40);
    assert_eq!(ranges(&ack)[0], 78..=78);
    assert!(ranges(&ack).len() < 40);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.3
//= type=test
//# A receiver MUST retain an ACK Range unless it can ensure that it will not subsequently accept packets with
//# numbers in that range
#[test]
fn what_the_peer_knows_is_not_reported_again_but_still_refused() {
    // RFC 9000 §13.2.4 and §12.3.
    let mut received = Received::default();
    for number in [0, 1, 2, 5, 6] {
        arrive(&mut received, number, 1);
    }
    received.on_ack_acknowledged(5);
    assert_eq!(ranges(&build(&mut received, 2)), [6..=6]);
    assert!(received.contains(1));
    // A packet that is late beyond the pruned ranges is news.
    arrive(&mut received, 3, 3);
    assert_eq!(ranges(&build(&mut received, 3)), [6..=6, 3..=3]);
    received.on_ack_acknowledged(u64::MAX);
    assert_eq!(ranges(&build(&mut received, 4)), [6..=6]);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.3
//= type=test
//# Receivers can discard all ACK Ranges, but they MUST retain the largest packet number that has been
//# successfully processed, as that is used to recover packet numbers from subsequent packets
#[test]
fn a_million_gaps_take_bounded_memory_and_old_numbers_count_as_duplicates() {
    // attacks.md C3.
    let mut received = Received::default();
    for number in 0..1_000_000 {
        arrive(&mut received, number * 2, 1);
    }
    assert_eq!(received.report.len(), MOST_REPORTED);
    assert_eq!(received.seen.len(), MOST_SEEN);
    assert_eq!(received.on_packet(1, AckEliciting::Yes, Ecn::NotEct, at(2)), Err(Dropped::Duplicate));
    assert!(received.contains(0));
    arrive(&mut received, 1_999_997, 2);
}

#[test]
fn as_many_gaps_as_are_remembered_make_no_old_number_a_duplicate() {
    let mut received = Received::default();
    for number in 1..=MOST_SEEN as u64 {
        arrive(&mut received, number * 2, 1);
    }
    assert!(!received.contains(0));
    arrive(&mut received, 0, 1);
    assert!(received.contains(0) && received.contains(1), "one more than can be remembered");
}

proptest! {
    //= https://www.rfc-editor.org/rfc/rfc9000#section-12.3
    //= type=test
    //# A receiver MUST discard a newly unprotected packet unless it is certain that it has not processed
    //# another packet with the same packet number from the same packet number space
    #[test]
    fn no_number_is_accepted_twice_and_only_what_arrived_is_reported(
        numbers in prop::collection::vec(0u64..600, 1..800),
        acknowledged in prop::collection::vec((0usize..800, 0u64..600), 0..10),
    ) {
        let mut received = Received::default();
        let mut accepted = std::collections::BTreeSet::new();
        for (index, &number) in numbers.iter().enumerate() {
            let outcome = received.on_packet(number, AckEliciting::Yes, Ecn::NotEct, at(1));
            if outcome.is_ok() {
                prop_assert!(accepted.insert(number), "{} was accepted twice", number);
            }
            for (_, largest) in acknowledged.iter().filter(|(when, _)| *when == index) {
                received.on_ack_acknowledged(*largest);
            }
        }
        for range in ranges(&build(&mut received, 2)) {
            for number in range {
                prop_assert!(accepted.contains(&number));
            }
        }
        prop_assert_eq!(build(&mut received, 2).largest, *accepted.last().expect("the first is accepted"));
    }
}
