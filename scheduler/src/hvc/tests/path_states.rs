//! Paths that are silent, spare or unproven, and data that is sent again.

use super::*;
use crate::{PathState, PerMille};

fn as_(state: PathState, path: PathView) -> PathView {
    PathView { state, ..path }
}

#[test]
fn fresh_data_may_use_a_path_under_validation_but_control_may_not() {
    let paths = [as_(PathState::Unvalidated, embb()), urllc()];
    assert_eq!(place(&part_of(100_000), &paths), on(EMBB, 1200));
    assert_eq!(
        place(&Item::new(Content::Control, 1200), &[paths[0], queued(urllc(), 5000)]),
        on(URLLC, 1200)
    );
    let lost = Item { history: History::Lost { on: URLLC }, ..data(1200) };
    assert_eq!(place(&lost, &[paths[0], queued(urllc(), 5000)]), on(URLLC, 1200));
}

#[test]
fn a_silent_bulk_path_leaves_everything_to_the_scarce_one() {
    let paths = [as_(PathState::Silent, embb()), urllc()];
    assert_eq!(place(&part_of(100_000), &paths), on(URLLC, 1200));
}

/// The answers of one policy to small messages, at a time and over paths of which the first is in this state.
fn answers(policy: &mut Hvc, item: Item, states: &[(u64, PathState)]) -> Vec<Placement> {
    let answer = |&(at, state): &(u64, PathState)| {
        let asked = Item { now: milliseconds(at), ..item };
        policy.place(&asked, &[as_(state, embb()), urllc()])
    };
    states.iter().map(answer).collect()
}

#[test]
fn small_messages_go_on_every_path_for_a_while_after_one_fell_silent() {
    use PathState::{Available, Silent, Unvalidated};
    let each = Placement::OnEach([0, 1].into_iter().collect());
    // Three round trips of eMBB, 120 ms: then the silence is old, and no reason for doubt.
    let times =
        [(0, Available), (10, Silent), (100, Silent), (129, Available), (130, Available), (131, Silent)];
    let answered = answers(&mut Hvc::default(), part_of(100), &times);
    assert_eq!(answered, [on(URLLC, 100), each, each, each, on(URLLC, 100), each]);
    let long = answers(&mut Hvc::default(), part_of(100_000), &[(10, Silent), (20, Available)]);
    assert!(!long.contains(&each), "a long message is not copied: {long:?}");
    let unproven = answers(&mut Hvc::default(), part_of(100), &[(10, Silent), (20, Unvalidated)]);
    assert_eq!(unproven[1], Placement::OnEach([1].into_iter().collect()), "only what was validated");
}

#[test]
fn no_more_than_ten_messages_are_copied_in_a_doubt() {
    let times: Vec<_> = (10..30).map(|at| (at, PathState::Silent)).collect();
    let answered = answers(&mut Hvc::default(), part_of(100), &times);
    let copied = answered.iter().filter(|answer| matches!(answer, Placement::OnEach(_))).count();
    assert_eq!(copied, 10);
}

#[test]
fn paths_that_are_all_backups_are_used_as_if_none_was() {
    let paths = [as_(PathState::Backup, embb()), as_(PathState::Backup, urllc())];
    assert_eq!(place(&data(100), &paths), on(URLLC, 100));
    assert_eq!(place(&part_of(100_000), &paths), on(EMBB, 1200));
}

#[test]
fn control_and_handshake_weigh_cost_and_reward_too() {
    let paths = [embb(), urllc()];
    assert_eq!(place(&Item::new(Content::Control, 20), &paths), on(URLLC, 20));
    assert_eq!(place(&Item::new(Content::Handshake, 4000), &paths), on(EMBB, 4000));
}

#[test]
fn lost_data_goes_where_it_arrives_first_at_any_price() {
    let lost =
        Item { history: History::Lost { on: EMBB }, head_of_line_delay: milliseconds(50), ..data(1200) };
    assert_eq!(place(&lost, &[embb(), queued(urllc(), 2400)]), on(URLLC, 1200));
    assert_eq!(place(&lost, &[embb(), queued(urllc(), 4800)]), on(EMBB, 1200));
    // Even if that takes a moment: the rest of the stream waits for it.
    assert_eq!(place(&lost, &[embb(), full(urllc(), 1)]), Placement::WaitAtMost(milliseconds(1)));
}

#[test]
fn lost_data_of_a_long_stream_does_not_hold_everything_up() {
    let lost = Item { history: History::Lost { on: EMBB }, ..part_of(4_000_000) };
    assert_eq!(place(&lost, &[embb(), urllc()]), on(URLLC, 1200));
    assert_eq!(place(&lost, &[embb(), full(urllc(), 3)]), on(EMBB, 1200));
    assert_eq!(place(&lost, &[full(embb(), 40), full(urllc(), 3)]), Placement::WaitAtMost(milliseconds(3)));
}

#[test]
fn what_a_full_queue_lost_does_not_all_wait_for_the_scarce_path_while_a_wide_window_is_open() {
    let wide = PathView { send_allowance: 2_000_000, window: 2_700_000, ..embb() };
    let lost = |bytes| Item { history: History::Lost { on: EMBB }, ..part_of(bytes) };
    assert_eq!(place(&lost(280_000), &[wide, full(urllc(), 3)]), on(EMBB, 1200));
    // Its last piece may: 3 + 4.8 + 2.5 ms are less than 20.
    assert_eq!(place(&lost(1200), &[wide, full(urllc(), 3)]), Placement::WaitAtMost(milliseconds(3)));
}

#[test]
fn what_an_outage_lost_does_not_all_wait_for_the_scarce_path() {
    // Nothing is known of the stream any more; the bulk path begins again with two datagrams.
    let mut policy = Hvc::default();
    let mut sent = [0; 2];
    for now in 0..600 {
        let lost = Item { history: History::Lost { on: EMBB }, now: milliseconds(now), ..data(1200) };
        let scarce = if now % 6 == 0 { urllc() } else { full(urllc(), 6 - now % 6) };
        let bulk = PathView { send_allowance: 2400, window: 2400, ..embb() };
        if let Placement::On { path, bytes } = policy.place(&lost, &[bulk, scarce]) {
            sent[path.0 as usize] += bytes;
        }
    }
    assert!(sent[0] > 2 * sent[1], "{sent:?}");
}

#[test]
fn a_copy_of_late_data_takes_another_path_than_the_original() {
    let late = |on| Item { history: History::Unacknowledged { on, age: milliseconds(90) }, ..data(1200) };
    assert_eq!(place(&late(URLLC), &[embb(), urllc()]), on(EMBB, 1200));
    assert_eq!(place(&late(EMBB), &[embb(), queued(urllc(), 50_000)]), on(URLLC, 1200));
    assert_eq!(place(&late(EMBB), &[embb()]), on(EMBB, 1200));
}

#[test]
fn of_equal_paths_the_one_that_loses_less_is_chosen() {
    let lossy = PathView { loss: PerMille::new(50), ..embb() };
    let sound = PathView { id: PathId(2), ..embb() };
    assert_eq!(place(&data(1200), &[lossy, sound]), on(PathId(2), 1200));
}

#[test]
fn a_bulk_path_that_never_resumes_does_not_block() {
    let dead = PathView { rate: Some(Bandwidth::default()), ..urllc() };
    let stalled = PathView { next_send: Duration::MAX, rate: None, ..full(embb(), 0) };
    assert_eq!(place(&data(1200), &[stalled, dead]), on(URLLC, 1200));
}

#[test]
fn where_room_returns_is_unknown_the_wait_is_a_round_trip() {
    assert_eq!(place(&data(1200), &[full(embb(), 0)]), Placement::WaitAtMost(milliseconds(40)));
    let never = PathView { next_send: Duration::MAX, ..full(embb(), 0) };
    assert_eq!(place(&data(1200), &[never]), Placement::WaitAtMost(Duration::from_secs(1)));
}

/// Returns true if the rule wants a copy of a packet that is in flight on eMBB, of which `rate` is left, for `expected`.
fn wants_copy(expected: u64, rate: Bandwidth, other: PathView) -> bool {
    let history = History::Unacknowledged { on: EMBB, age: milliseconds(100) };
    let item = Item { history, ..Item::new(Content::Control, 1200) };
    let collapsed = PathView { rate: Some(rate), ..embb() };
    Hvc::default().copies(&item, &[collapsed, other], milliseconds(expected))
}

#[test]
fn a_copy_of_what_a_collapsed_path_holds_has_to_be_sooner_than_the_original_by_its_price() {
    // 2.5 ms and 4.8 ms of transmission, which costs nothing on a path that is wider than the rest of the other.
    let hardly_any = Bandwidth::from_bits_per_second(200_000);
    assert_eq!([7, 8].map(|expected| wants_copy(expected, hardly_any, urllc())), [false, true]);
    // At a quarter of the rate URLLC is narrow, and 4.8 ms cost as much as 0.75 times 0.92 of them beside.
    let a_quarter = Bandwidth::from_mbit(25);
    assert_eq!([10, 11].map(|expected| wants_copy(expected, a_quarter, urllc())), [false, true]);
    assert!(!wants_copy(500, hardly_any, full(urllc(), 1)), "it has no room");
    assert!(!wants_copy(500, hardly_any, as_(PathState::Silent, urllc())));
    let mut without = Hvc::of("without=repair".parse().expect("a variant"));
    let history = History::Unacknowledged { on: EMBB, age: milliseconds(100) };
    let item = Item { history, ..Item::new(Content::Control, 1200) };
    assert!(!without.copies(&item, &[embb(), urllc()], milliseconds(500)));
    assert!(!Hvc::default().copies(
        &Item::new(Content::Control, 1200),
        &[embb(), urllc()],
        milliseconds(500)
    ));
}
