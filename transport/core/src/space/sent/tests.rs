use super::*;
use crate::error::ErrorCode;
use crate::ranges::Ranges;
use crate::recovery::ecn::Counted;
use crate::wire::frame::{AckRanges, EcnCounts};
use proptest::prelude::*;
use rand::SeedableRng;
use std::collections::BTreeMap;

const THRESHOLDS: Thresholds = Thresholds::initial(Duration::from_millis(90));

const fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn packet(number: u64, now: u64) -> SentPacket {
    SentPacket::new(number, at(now), 1000, PacketClass::AckEliciting)
}

/// Packets 0 to `count` − 1, sent one per ms.
fn sent(count: u64) -> Sent {
    let mut sent = Sent::default();
    for number in 0..count {
        sent.on_sent(packet(number, number));
    }
    sent
}

fn ack(numbers: &[RangeInclusive<u64>]) -> Ack {
    let mut ranges = Ranges::new();
    for range in numbers {
        ranges.insert_range(range.clone());
    }
    let largest = ranges.largest().expect("something is acknowledged");
    let ranges = AckRanges::from_ranges(&ranges, 100_000).expect("there are ranges");
    Ack { path: None, largest, delay: 0, ranges, ecn: None }
}

fn numbers(packets: &[SentPacket]) -> Vec<u64> {
    packets.iter().map(|packet| packet.number).collect()
}

#[test]
fn acknowledged_packets_leave_the_flight_once() {
    let mut sent = sent(5);
    let outcome = sent.on_ack(&ack(&[0..=1, 3..=3]), at(50)).expect("valid");
    assert_eq!(numbers(&outcome.packets), [0, 1, 3]);
    assert_eq!((outcome.bytes(), sent.in_flight()), (3000, 2000));
    assert_eq!(outcome.rtt_sample, Some(Duration::from_millis(47)));
    let again = sent.on_ack(&ack(&[0..=1, 3..=3]), at(60)).expect("valid");
    assert!(again.packets.is_empty() && again.rtt_sample.is_none());
    assert_eq!(sent.largest_acknowledged(), Some(3));
    assert_eq!(sent.oldest_unacked().map(|packet| packet.number), Some(2));
}

#[test]
fn acknowledging_what_was_not_sent_is_a_violation() {
    // RFC 9000 §13.1; attacks.md C1.
    let mut sent = sent(5);
    for largest in [5, 6, 1 << 61] {
        let error = sent.on_ack(&ack(&[largest..=largest]), at(50)).expect_err("never sent");
        assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
    }
    assert_eq!(sent.in_flight(), 5000);
    let mut nothing = Sent::default();
    assert!(nothing.on_ack(&ack(&[0..=0]), at(1)).is_err());
}

#[test]
fn acknowledging_a_skipped_number_is_a_violation() {
    // RFC 9000 §21.4; attacks.md C2.
    let mut rng = StdRng::seed_from_u64(7);
    let mut sent = Sent::default();
    let (mut last, mut skipped) = (None, Vec::new());
    for n in 0..2000 {
        let number = sent.next_number(&mut rng);
        skipped.extend(last.map_or(0, |last: u64| last + 1)..number);
        last = Some(number);
        sent.on_sent(packet(number, n));
    }
    assert!(skipped.len() >= 3, "only {skipped:?} were skipped");
    assert!(skipped.windows(2).all(|pair| pair[1] - pair[0] >= LEAST_SKIP_INTERVAL / 2));
    for &number in &skipped[skipped.len().saturating_sub(MOST_SKIPPED)..] {
        let mut sent = sent.clone();
        let error = sent.on_ack(&ack(&[number - 1..=number + 1]), at(3000)).expect_err("skipped");
        assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
        assert!(sent.on_ack(&ack(&[number - 1..=number - 1, number + 1..=number + 1]), at(3000)).is_ok());
    }
}

#[test]
fn a_space_begins_at_a_number_that_cannot_be_guessed_and_what_is_below_it_cannot_be_acknowledged() {
    // RFC 9000 §21.4.
    let mut firsts = std::collections::BTreeSet::new();
    for seed in 0..1000 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut sent = Sent::default();
        sent.begin_at_random(&mut rng);
        assert!(sent.on_ack(&ack(&[0..=0]), at(0)).is_err(), "nothing was sent");
        let first = sent.next_number(&mut rng);
        sent.on_sent(packet(first, 0));
        assert_eq!(crate::wire::packet_number::length(first, None), 1);
        for below in [0, first - 1] {
            for numbers in [below..=below, below..=first] {
                let error = sent.clone().on_ack(&ack(&[numbers]), at(50)).expect_err("never used");
                assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
            }
        }
        let outcome = sent.on_ack(&ack(&[first..=first]), at(50)).expect("valid");
        assert_eq!(numbers(&outcome.packets), [first]);
        firsts.insert(first);
    }
    assert_eq!(firsts, (1..=LARGEST_FIRST).collect());
}

#[test]
fn liveness_probes_can_be_taken_out_of_the_flight_and_leave_what_else_there_is() {
    let mut sent = Sent::default();
    for number in 0..6 {
        let class = if number % 2 == 0 { PacketClass::AckEliciting } else { PacketClass::Asking };
        sent.on_sent(SentPacket { class, ..packet(number, number) });
    }
    assert_eq!(numbers(&sent.drain_probes()), [1, 3, 5]);
    assert_eq!((sent.in_flight(), sent.unresolved(), sent.audit()), (3000, 3, Ok(())));
    // A late acknowledgement of them is no violation and no news.
    let outcome = sent.on_ack(&ack(&[0..=5]), at(50)).expect("valid");
    assert_eq!(numbers(&outcome.packets), [0, 2, 4]);
    assert_eq!((sent.in_flight(), sent.drain_probes().len()), (0, 0));
}

#[test]
fn packets_that_nobody_acknowledges_are_given_up_after_a_while_and_never_too_many() {
    // attacks.md C8: answers that the window does not limit, and that are not acknowledged.
    const WINDOW: usize = 12_800;
    let mut sent = sent(1);
    for number in 1..20_000 {
        let class = if number % 3 == 0 { PacketClass::AckEliciting } else { PacketClass::AckOnly };
        sent.on_sent(SentPacket { class, ..packet(number, 10 * number) });
        let now = at(10 * number);
        let before = sent.unresolved();
        if sent.is_overgrown(|| WINDOW, now) {
            let shed = sent.shed(now);
            assert_eq!(shed.len() + sent.unresolved(), before);
            assert!(shed.iter().all(|packet| now.since(packet.sent_at) > STALE));
        }
        assert!(sent.unresolved() <= LEAST_ROOM + WINDOW / BYTES_FOR_EACH + 1);
    }
    assert_eq!(sent.audit(), Ok(()));
    // Who is only slow is waited for, and what arrives late is no violation.
    assert!(sent.on_ack(&ack(&[0..=19_999]), at(200_000)).is_ok());
    let mut fast = Sent::default();
    (0..20_000).for_each(|number| fast.on_sent(packet(number, number / 10)));
    assert!(!fast.is_overgrown(|| WINDOW, at(2_000)));
    assert!(!fast.is_overgrown(|| 20_000 * 1_000, at(20_000)), "no more than the window");
}

#[test]
fn packets_are_given_up_from_an_exact_number_and_age_on_until_half_the_room_is_left() {
    // attacks.md C8.
    let stale = u64::try_from(STALE.as_millis()).expect("seconds");
    let mut sent = Sent::default();
    for number in 0..LEAST_ROOM as u64 + 11 {
        sent.on_sent(packet(number, 0));
        let is_one_too_many = number == LEAST_ROOM as u64 + 10;
        assert_eq!(sent.is_overgrown(|| 10 * BYTES_FOR_EACH, at(stale + 1)), is_one_too_many, "{number}");
    }
    assert!(!sent.is_overgrown(|| 0, at(stale)) && sent.shed(at(stale)).is_empty(), "just young enough");
    sent.shed(at(stale + 1));
    assert_eq!(sent.unresolved(), LEAST_ROOM / 2);
    assert!(sent.last_eliciting_at.is_some(), "the rest elicits acknowledgements");
}

#[test]
fn memory_of_records_is_given_away_once_nothing_is_in_flight_and_taken_when_there_is_none() {
    let mut idle = sent(5);
    assert!(idle.take_records().is_none(), "it is in use");
    idle.on_ack(&ack(&[0..=4]), at(50)).expect("valid");
    let records = idle.take_records().expect("nothing is in flight");
    assert!(records.capacity() >= 5 && idle.lacks_memory() && idle.take_records().is_none());
    let mut busy = sent(1);
    assert!(!busy.lacks_memory());
    busy.lend(records);
    assert_eq!(busy.unresolved(), 1, "it keeps its own");
    let mut idle = Sent::default();
    idle.lend(Records(VecDeque::with_capacity(7)));
    assert_eq!(idle.take_records().map(|records| records.capacity() >= 7), Some(true));
}

#[test]
fn a_path_that_hibernates_keeps_memory_for_no_more_packets_than_wait() {
    let mut sent = sent(50);
    sent.on_ack(&ack(&[0..=48]), at(50)).expect("valid");
    sent.hibernate();
    assert_eq!((sent.slots.capacity(), sent.unresolved()), (1, 1));
    sent.on_ack(&ack(&[49..=49]), at(60)).expect("valid");
    sent.hibernate();
    assert!(sent.lacks_memory());
}

#[test]
fn a_number_that_was_drawn_but_not_used_counts_as_skipped() {
    let mut sent = sent(1);
    sent.on_sent(packet(3, 5));
    assert!(sent.on_ack(&ack(&[2..=3]), at(50)).is_err());
    assert_eq!(numbers(&sent.on_ack(&ack(&[0..=0, 3..=3]), at(50)).expect("valid").packets), [0, 3]);
    assert!(sent.is_empty());
}

#[test]
fn a_number_that_was_used_is_not_drawn_again_and_a_loss_tells_which_were_skipped() {
    // RFC 9000 §12.3: a number that comes twice would be a nonce that comes twice.
    let mut sent = sent(1);
    (3..8).for_each(|number| sent.on_sent(packet(number, number)));
    assert!(sent.next_number(&mut StdRng::seed_from_u64(7)) > 7);
    sent.on_ack(&ack(&[7..=7]), at(50)).expect("valid");
    let lost = sent.detect_lost(at(50), THRESHOLDS);
    assert_eq!((numbers(&lost.packets), lost.skipped.to_vec()), (vec![0, 3, 4], vec![1, 2]));
    assert!(sent.detect_lost(at(50), THRESHOLDS).skipped.is_empty(), "nothing more is lost");
}

#[test]
fn counters_of_an_acknowledgement_that_was_overtaken_are_not_judged() {
    // RFC 9000 §13.4.2.1.
    let mut sent = Sent::default();
    (0..5).for_each(|number| sent.on_sent(SentPacket { ecn: Ecn::Ect0, ..packet(number, number) }));
    let mut counted = |number, ect0| {
        let counts = EcnCounts { ect0, ect1: 0, ce: 0 };
        let ack = Ack { ecn: Some(counts), ..ack(&[number..=number]) };
        sent.on_ack(&ack, at(50)).expect("valid").ecn.counted
    };
    assert_ne!(counted(3, 1), Counted::Unjudged);
    assert_eq!(counted(1, 0), Counted::Unjudged, "it was sent before the other");
    assert_ne!(counted(4, 3), Counted::Unjudged);
}

#[test]
fn two_numbers_that_were_never_sent_are_no_better_than_one() {
    // RFC 9000 §21.4: a peer that acknowledges all it can think of.
    let mut sent = Sent::default();
    [0, 2, 4].into_iter().for_each(|number| sent.on_sent(packet(number, number)));
    let error = sent.on_ack(&ack(&[1..=1, 3..=4]), at(50)).expect_err("both were skipped");
    assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
    let begin = |seed| {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut sent = Sent::default();
        sent.begin_at_random(&mut rng);
        (sent.next_number(&mut rng), sent)
    };
    let (first, mut sent) = (0..).map(begin).find(|(first, _)| *first > 6).expect("one of few seeds");
    sent.on_sent(packet(first, 0));
    let error = sent.on_ack(&ack(&[1..=1, 4..=4, first..=first]), at(50)).expect_err("both are below");
    assert_eq!(error.code, ErrorCode::PROTOCOL_VIOLATION);
}

//= https://www.rfc-editor.org/rfc/rfc9002#section-7.4
//= type=test
//# Endpoints MUST NOT ignore the loss of packets that were sent after the earliest acknowledged packet in a
//# given packet number space.
#[test]
fn a_packet_three_behind_is_lost() {
    // RFC 9002 §6.1.1.
    let mut sent = sent(6);
    sent.on_ack(&ack(&[4..=4]), at(6)).expect("valid");
    assert_eq!(numbers(&sent.detect_lost(at(6), THRESHOLDS).packets), [0, 1]);
    assert_eq!(sent.in_flight(), 3000);
    assert!(sent.detect_lost(at(6), THRESHOLDS).packets.is_empty());
}

#[test]
fn a_packet_much_older_than_an_acknowledged_one_is_lost_in_time() {
    // RFC 9002 §6.1.2.
    let mut sent = sent(4);
    sent.on_ack(&ack(&[2..=2]), at(50)).expect("valid");
    assert!(sent.detect_lost(at(50), THRESHOLDS).packets.is_empty());
    assert_eq!(sent.loss_time(), Some(at(90)));
    assert_eq!(numbers(&sent.detect_lost(at(90), THRESHOLDS).packets), [0]);
    assert_eq!(sent.loss_time(), Some(at(91)));
    assert_eq!(numbers(&sent.detect_lost(at(91), THRESHOLDS).packets), [1]);
    // Packet 3 is newer than the largest acknowledged: only a probe timeout can move it.
    assert_eq!(sent.loss_time(), None);
    assert!(sent.detect_lost(Instant::FAR_FUTURE, THRESHOLDS).packets.is_empty());
}

#[test]
fn without_an_acknowledgement_nothing_is_lost() {
    let mut sent = sent(10);
    assert!(sent.detect_lost(Instant::FAR_FUTURE, Thresholds::initial(Duration::ZERO)).packets.is_empty());
    assert_eq!(sent.unacknowledged().count(), 10);
}

//= https://www.rfc-editor.org/rfc/rfc9002#section-5.1
//= type=test
//# An RTT sample MUST NOT be generated on receiving an ACK frame that does not newly acknowledge at least one
//# ack-eliciting packet
#[test]
fn only_a_new_largest_number_that_was_asked_for_gives_a_sample() {
    // RFC 9002 §5.1.
    let mut sent = Sent::default();
    for (number, class) in
        [PacketClass::AckEliciting, PacketClass::AckOnly, PacketClass::InFlight].iter().enumerate()
    {
        sent.on_sent(SentPacket::new(number as u64, at(1), 1000, *class));
    }
    assert_eq!(sent.in_flight(), 2000, "acknowledgements are not in flight");
    assert_eq!(sent.on_ack(&ack(&[1..=1]), at(9)).expect("valid").rtt_sample, None);
    assert!(sent.has_ack_eliciting_in_flight());
    let outcome = sent.on_ack(&ack(&[0..=2]), at(9)).expect("valid");
    assert_eq!(outcome.rtt_sample, Some(Duration::from_millis(8)));
    assert!(!sent.has_ack_eliciting_in_flight());
    assert_eq!((sent.in_flight(), sent.is_empty()), (0, true));
}

#[test]
fn a_loss_that_was_none_is_reported_once_and_changes_no_account() {
    let mut sent = sent(6);
    sent.on_ack(&ack(&[5..=5]), at(6)).expect("valid");
    assert_eq!(numbers(&sent.detect_lost(at(6), THRESHOLDS).packets), [0, 1, 2]);
    let outcome = sent.on_ack(&ack(&[0..=1, 5..=5]), at(8)).expect("valid");
    assert!(outcome.packets.is_empty());
    let spurious: Vec<_> =
        outcome.spurious.iter().map(|loss| (loss.number, loss.distance, loss.lost_at)).collect();
    assert_eq!(spurious, [(0, 5, at(6)), (1, 4, at(6))]);
    assert_eq!(sent.in_flight(), 2000);
    assert!(sent.on_ack(&ack(&[0..=1, 5..=5]), at(9)).expect("valid").spurious.is_empty());
}

//= https://www.rfc-editor.org/rfc/rfc9002#section-6.4
//= type=test
//# The sender MUST discard all recovery state associated with those packets and MUST remove them from the
//# count of bytes in flight.
#[test]
fn drained_packets_are_neither_acknowledged_nor_lost_later() {
    let mut sent = sent(6);
    assert_eq!(sent.drain_all().len(), 6);
    assert_eq!((sent.in_flight(), sent.is_empty(), sent.has_ack_eliciting_in_flight()), (0, true, false));
    let outcome = sent.on_ack(&ack(&[0..=5]), at(9)).expect("they were sent");
    assert!(outcome.packets.is_empty());
    assert!(sent.detect_lost(at(1000), THRESHOLDS).packets.is_empty());
    sent.on_sent(packet(6, 10));
    assert_eq!(sent.in_flight(), 1000);
}

#[test]
fn marks_of_newly_acknowledged_packets_are_counted() {
    let mut sent = Sent::default();
    for number in 0..4 {
        sent.on_sent(SentPacket {
            ecn: if number < 3 { Ecn::Ect0 } else { Ecn::NotEct },
            ..packet(number, 1)
        });
    }
    let report = sent.on_ack(&ack(&[1..=3]), at(9)).expect("valid").ecn;
    assert_eq!(report, EcnReport { counted: Counted::Nothing, newly_ect0: 2, newly_ect1: 0 });
    let report = sent.on_ack(&ack(&[0..=3]), at(9)).expect("valid").ecn;
    assert_eq!(report, EcnReport { counted: Counted::Unjudged, newly_ect0: 1, newly_ect1: 0 });
}

#[derive(Clone, Debug)]
enum Step {
    Send(usize, u8),
    Acknowledge(Vec<(u64, u64)>),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1usize..3000, 0u8..3).prop_map(|(bytes, class)| Step::Send(bytes, class)),
        2 => prop::collection::vec((0u64..100, 0u64..5), 1..4).prop_map(Step::Acknowledge),
        1 => (1u64..200).prop_map(Step::Wait),
    ]
}

/// Acknowledges the used numbers among `wanted`, given as (distance from the newest, length).
fn choose(sizes: &BTreeMap<u64, usize>, wanted: &[(u64, u64)]) -> Option<Ack> {
    let (&newest, _) = sizes.last_key_value()?;
    let mut ranges = Ranges::new();
    for &(distance, length) in wanted {
        let first = newest.saturating_sub(distance);
        for (&number, _) in sizes.range(first..=first + length) {
            ranges.insert(number);
        }
    }
    let largest = ranges.largest()?;
    Some(Ack { path: None, largest, delay: 0, ranges: AckRanges::from_ranges(&ranges, 100_000)?, ecn: None })
}

proptest! {
    //= https://www.rfc-editor.org/rfc/rfc9000#section-12.3
    //= type=test
    //# Subsequent packets sent in the same packet number space MUST increase the packet number by at least
    //# one.
    //= https://www.rfc-editor.org/rfc/rfc9002#section-7.5
    //= type=test
    //# A sender MUST however count these packets as being additionally in flight, since these packets add
    //# network load without establishing packet loss
    #[test]
    fn every_packet_resolves_exactly_once_and_the_flight_is_the_sum_of_the_rest(
        steps in prop::collection::vec(step(), 1..300),
        seed in any::<u64>(),
    ) {
        let mut rng = StdRng::seed_from_u64(seed);
        let (mut sent, mut now) = (Sent::default(), 0);
        // Bytes in flight of what was ever sent, and of what is not resolved.
        let (mut all, mut open) = (BTreeMap::new(), BTreeMap::new());
        for step in steps {
            let resolved = match step {
                Step::Send(bytes, class) => {
                    let number = sent.next_number(&mut rng);
                    let class = [PacketClass::AckOnly, PacketClass::InFlight, PacketClass::AckEliciting][class as usize];
                    let packet = SentPacket::new(number, at(now), bytes, class);
                    all.insert(number, packet.bytes_in_flight());
                    open.insert(number, packet.bytes_in_flight());
                    sent.on_sent(packet);
                    Vec::new()
                }
                Step::Acknowledge(wanted) => {
                    let Some(ack) = choose(&all, &wanted) else { continue };
                    let outcome = sent.on_ack(&ack, at(now)).expect("only what was sent is acknowledged");
                    let mut resolved = outcome.packets;
                    resolved.extend(sent.detect_lost(at(now), THRESHOLDS).packets);
                    for range in ack.ranges.iter() {
                        prop_assert!(open.range(range).all(|(number, _)| resolved.iter().any(|p| p.number == *number)));
                    }
                    resolved
                }
                Step::Wait(ms) => {
                    now += ms;
                    sent.detect_lost(at(now), THRESHOLDS).packets
                }
            };
            for packet in resolved {
                prop_assert_eq!(open.remove(&packet.number), Some(packet.bytes_in_flight()));
            }
            prop_assert_eq!(sent.in_flight(), open.values().sum::<usize>());
            prop_assert_eq!(sent.unresolved(), open.len());
            prop_assert_eq!(sent.unacknowledged().map(|p| p.number).collect::<Vec<_>>(), open.keys().copied().collect::<Vec<_>>());
        }
    }
}
