//! Tests of hints, of both ends and about one path.

use super::*;
use hvq_scheduler::PerMille;

const PATH: PathId = PathId(1);

fn rate(megabits: u64) -> Hints {
    Hints { rate: Some(Bandwidth::from_mbit(megabits)), ..Hints::NONE }
}

fn told(sequence: u64, hints: Hints) -> Told {
    // A frame shows the channel as its sender sees it.
    Told::of(&PathHints { path: PATH, sequence, hints: hints.mirrored() })
}

fn next(hints: &mut ChannelHints) -> Option<(u64, Option<Bandwidth>)> {
    hints.next_frame(PATH).map(|frame| (frame.sequence, frame.hints.rate))
}

#[test]
fn nothing_is_said_where_nothing_is_known() {
    assert_eq!(next(&mut ChannelHints::default()), None);
}

#[test]
fn of_hints_that_change_while_a_frame_is_in_flight_the_newest_are_said_after_it() {
    let mut hints = ChannelHints::default();
    hints.set_own(rate(1));
    assert_eq!(next(&mut hints), Some((0, rate(1).rate)));
    for megabits in 2..100 {
        hints.set_own(rate(megabits));
        assert_eq!(next(&mut hints), None, "one frame at a time");
    }
    hints.settle(0, TransmissionState::Acknowledged);
    assert_eq!(next(&mut hints), Some((1, rate(99).rate)));
    hints.settle(1, TransmissionState::Acknowledged);
    assert_eq!(next(&mut hints), None, "the peer has it");
}

#[test]
fn lost_hints_are_said_again_under_their_number_unless_they_changed() {
    let mut hints = ChannelHints::default();
    hints.set_own(rate(1));
    assert_eq!(next(&mut hints), Some((0, rate(1).rate)));
    hints.settle(0, TransmissionState::Queued);
    assert_eq!(next(&mut hints), Some((0, rate(1).rate)));
    hints.settle(0, TransmissionState::Queued);
    hints.set_own(rate(2));
    assert_eq!(next(&mut hints), Some((1, rate(2).rate)));
    // The first copy was late, or lost: that says nothing about the newest.
    for fate in [TransmissionState::Queued, TransmissionState::Acknowledged] {
        hints.settle(0, fate);
        assert_eq!(next(&mut hints), None);
    }
    hints.settle(1, TransmissionState::Queued);
    hints.settle(1, TransmissionState::Acknowledged);
    assert_eq!(next(&mut hints), Some((1, rate(2).rate)), "it is due already");
}

#[test]
fn hints_are_taken_back_once_nothing_is_known_any_more() {
    let mut hints = ChannelHints::default();
    hints.set_own(rate(1));
    assert_eq!(next(&mut hints), Some((0, rate(1).rate)));
    hints.settle(0, TransmissionState::Acknowledged);
    hints.set_own(Hints::NONE);
    let taken_back = hints.next_frame(PATH).expect("the peer does not know yet");
    assert_eq!((taken_back.sequence, taken_back.hints), (1, Hints::NONE));
}

#[test]
fn a_rate_of_one_direction_is_said_of_both_unless_both_are_known() {
    let mut hints = ChannelHints::default();
    hints.set_own(rate(2));
    let frame = hints.next_frame(PATH).expect("there is news");
    assert_eq!((frame.hints.rate, frame.hints.rate_back), (rate(2).rate, rate(2).rate));
    hints.settle(0, TransmissionState::Acknowledged);
    hints.set_own(Hints { rate_back: rate(60).rate, ..rate(2) });
    let frame = hints.next_frame(PATH).expect("there is news");
    assert_eq!(Told::of(&frame).hints.rate, rate(60).rate, "the peer may send at what arrives here");
}

#[test]
fn what_was_told_is_never_passed_on() {
    let mut hints = ChannelHints::default();
    assert!(hints.hear(told(0, rate(7)), Role::Server));
    assert_eq!((hints.known(), next(&mut hints)), (rate(7), None));
}

#[test]
fn what_this_end_says_wins_field_by_field() {
    let mut hints = ChannelHints::default();
    let delay = Some(Duration::from_millis(3));
    assert!(hints.hear(told(0, Hints { delay, ..rate(7) }), Role::Server));
    hints.set_own(rate(2));
    assert_eq!(hints.known(), Hints { delay, ..rate(2) });
    hints.set_own(Hints::NONE);
    assert_eq!(hints.known(), Hints { delay, ..rate(7) });
}

#[test]
fn replayed_and_reordered_hints_are_ignored() {
    let mut hints = ChannelHints::default();
    assert!(hints.hear(told(5, rate(5)), Role::Server));
    assert!(!hints.hear(told(5, rate(6)), Role::Server));
    assert!(!hints.hear(told(4, rate(4)), Role::Server));
    assert_eq!(hints.known(), rate(5));
    assert!(!hints.hear(told(6, rate(5)), Role::Server), "the same again is no news");
    assert!(!hints.hear(told(5, rate(9)), Role::Server), "but its number counts");
    assert!(hints.hear(told(7, Hints::NONE), Role::Server));
    assert_eq!((hints.known(), hints.told()), (Hints::NONE, Some(Hints::NONE)));
}

#[test]
fn rates_of_nothing_and_delays_of_an_age_are_not_believed() {
    for bits in [0, 1, 7_999] {
        let mut hints = ChannelHints::default();
        let nothing = Some(Bandwidth::from_bits_per_second(bits));
        let loss = Some(PerMille::new(1000));
        let delay = Some(LONGEST_DELAY + Duration::from_nanos(1));
        let lie = Hints { rate: nothing, rate_back: nothing, delay, loss, ..Hints::NONE };
        assert!(hints.hear(told(0, lie), Role::Server));
        assert_eq!(hints.known(), Hints { loss, ..Hints::NONE });
        assert_eq!(hints.told(), Some(lie), "the application may know all the same");
    }
    let mut hints = ChannelHints::default();
    let least = Hints { rate: Some(LEAST_RATE), delay: Some(LONGEST_DELAY), ..Hints::NONE };
    assert!(hints.hear(told(0, least), Role::Server));
    assert_eq!(hints.known(), least);
}

#[test]
fn a_client_believes_no_server_what_its_own_bytes_cost_and_what_is_its_own() {
    let lie = Hints {
        price_per_byte: Some(0),
        metering: Metering::Unmetered,
        shared: Sharing::Endpoint,
        delay: Some(Duration::from_millis(1)),
        ..rate(7)
    };
    let mut client = ChannelHints::default();
    assert!(client.hear(told(0, lie), Role::Client));
    let expected = Hints { delay: lie.delay, shared: Sharing::Shared, ..rate(7) };
    assert_eq!((client.known(), client.rate_of_endpoint()), (expected, None));
    let mut server = ChannelHints::default();
    assert!(server.hear(told(0, lie), Role::Server));
    assert_eq!((server.known(), server.rate_of_endpoint()), (lie, lie.rate));
}

#[test]
fn the_account_of_an_endpoint_uses_no_rate_that_a_server_told() {
    // attacks.md: the account is shared with connections to other servers.
    let mut client = ChannelHints::default();
    client.set_own(Hints { shared: Sharing::Endpoint, ..Hints::NONE });
    assert!(client.hear(told(0, rate(1)), Role::Client));
    assert_eq!((client.known().rate, client.rate_of_endpoint()), (rate(1).rate, None));
    client.set_own(Hints { shared: Sharing::Endpoint, ..rate(2) });
    assert_eq!(client.rate_of_endpoint(), rate(2).rate);
    for other in [Sharing::Shared, Sharing::Dedicated] {
        client.set_own(Hints { shared: other, ..rate(2) });
        assert_eq!(client.rate_of_endpoint(), None);
    }
}

#[test]
fn of_two_promised_rates_the_lower_counts() {
    for (own, peer) in [(1, 2), (2, 1)] {
        let mut server = ChannelHints::default();
        server.set_own(rate(own));
        assert!(server.hear(told(0, rate(peer)), Role::Server));
        assert_eq!(server.known(), rate(1), "{own} and {peer}");
    }
}

#[test]
fn what_arrives_lowers_the_rate_that_is_promised_and_told() {
    let mut hints = ChannelHints::default();
    assert!(!hints.asks_receipt(), "nothing is promised");
    hints.set_own(rate(10));
    assert!(hints.asks_receipt());
    assert_eq!(next(&mut hints), Some((0, rate(10).rate)));
    hints.settle(0, TransmissionState::Acknowledged);
    assert!(hints.set_received(rate(2).rate) && !hints.set_received(rate(2).rate));
    assert_eq!((hints.known(), hints.promised()), (rate(2), rate(10)));
    let frame = hints.next_frame(PATH).expect("there is news");
    assert_eq!((frame.hints.rate, frame.hints.rate_back), (rate(2).rate, rate(2).rate));
    hints.settle(1, TransmissionState::Acknowledged);
    // Should it be as quick as promised again, that is told, too.
    assert!(hints.set_received(None));
    assert_eq!((hints.known(), next(&mut hints)), (rate(10), Some((2, rate(10).rate))));
    assert!(!hints.asks_receipt());
    hints.set_own(rate(9));
    assert!(hints.asks_receipt(), "the application says something else");
}

#[test]
fn of_a_rate_for_each_direction_what_arrives_lowers_that_of_arrivals() {
    let both = Hints { rate_back: Some(Bandwidth::from_mbit(10)), ..rate(20) };
    let expected = Hints { rate_back: Some(Bandwidth::from_mbit(2)), ..rate(20) };
    assert_eq!(lowered(both, rate(2).rate), expected);
    assert_eq!(lowered(both, rate(30).rate), both, "it raises none");
    assert_eq!(lowered(both, None), both);
}

#[test]
fn hints_about_paths_that_are_not_open_are_the_newest_and_of_few_paths() {
    let mut early = EarlyHints::default();
    for sequence in 0..1000 {
        early.hear(PATH, told(sequence, rate(sequence)));
        early.hear(PATH, told(sequence / 2, rate(1)));
    }
    for path in 0..100_000 {
        early.hear(PathId(path), told(0, rate(1)));
    }
    assert_eq!(early.told.len(), MAX_EARLY);
    assert_eq!(early.take(PATH), Some(told(999, rate(999))));
    assert_eq!((early.take(PATH), early.told.len()), (None, MAX_EARLY - 1));
}
