use super::*;
use crate::path::limits::PathLimits;
use std::time::Duration;

const KEEP: Duration = Duration::from_millis(300);
const ONE: PathId = PathId(1);
const ABANDON: LifecycleEvent = LifecycleEvent::Abandon { reason: AbandonReason::Application, keep: KEEP };
const PEER_ABANDON: LifecycleEvent = LifecycleEvent::PeerAbandon { keep: KEEP };

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn with_open(path: PathId) -> Lifecycles {
    let mut paths = Lifecycles::new();
    paths.apply(path, LifecycleEvent::Opened, at(0));
    assert!(paths.apply(path, LifecycleEvent::Validated, at(0)).opens());
    paths
}

fn abandons_sent(paths: &mut Lifecycles) -> Vec<(PathId, u64)> {
    std::iter::from_fn(|| paths.next_frame())
        .map(|(frame, token)| match frame {
            Frame::PathAbandon { path, error } => {
                assert_eq!(token, RecoveryToken::PathAbandon(path));
                (path, error)
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn the_table_has_no_way_back() {
    let (until, now) = (at(9), at(5));
    let ending = LifecycleState::Abandoning { until };
    let ended = LifecycleState::Abandoned { until };
    let all = [
        LifecycleState::Unused,
        LifecycleState::Opening,
        LifecycleState::Validating,
        LifecycleState::Open,
        ending,
        ended,
        LifecycleState::Freed,
    ];
    let rank = |state: LifecycleState| {
        all.iter().position(|s| std::mem::discriminant(s) == std::mem::discriminant(&state))
    };
    for from in all {
        for event in [
            LifecycleEvent::Opened,
            LifecycleEvent::Heard,
            LifecycleEvent::Validated,
            ABANDON,
            PEER_ABANDON,
            LifecycleEvent::Expired,
        ] {
            let to = from.after(event, now);
            assert!(rank(to) >= rank(from), "{from:?} {event:?} {to:?}");
            assert!(from == to || to != LifecycleState::Unused);
        }
        assert_eq!(LifecycleState::Freed.after(LifecycleEvent::Heard, now), LifecycleState::Freed);
        assert_eq!(ended.after(PEER_ABANDON, now), ended, "a repetition does not extend the time");
        assert_eq!(ending.after(ABANDON, now), ending);
    }
}

#[test]
fn a_client_opens_a_path_in_steps() {
    let mut paths = Lifecycles::new();
    assert_eq!(paths.state(PathId::ZERO), LifecycleState::Open);
    assert_eq!(
        paths.apply(ONE, LifecycleEvent::Opened, at(0)),
        Transition { from: LifecycleState::Unused, to: LifecycleState::Opening }
    );
    assert_eq!(paths.apply(ONE, LifecycleEvent::Heard, at(1)).to, LifecycleState::Validating);
    assert_eq!(paths.unvalidated(), 1);
    assert!(paths.apply(ONE, LifecycleEvent::Validated, at(2)).opens());
    assert!(!paths.apply(ONE, LifecycleEvent::Validated, at(3)).opens());
    assert_eq!((paths.unvalidated(), paths.usable().collect::<Vec<_>>()), (0, vec![PathId::ZERO, ONE]));
}

#[test]
fn a_packet_opens_an_unused_path_at_the_server_in_any_order() {
    let mut paths = Lifecycles::new();
    assert_eq!(paths.apply(PathId(3), LifecycleEvent::Heard, at(0)).to, LifecycleState::Validating);
    assert_eq!(paths.apply(PathId(2), LifecycleEvent::Heard, at(0)).to, LifecycleState::Validating);
    assert_eq!(paths.unused(PathId(4)).collect::<Vec<_>>(), [ONE, PathId(4)]);
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-3.4
//= type=test
//# An endpoint that wants to abandon a path MUST explicitly close the path by sending a PATH_ABANDON frame
//# (see Section 4.2)
#[test]
fn an_abandoned_path_is_announced_with_its_reason_and_again_only_if_lost() {
    let mut paths = with_open(ONE);
    assert!(paths.apply(ONE, ABANDON, at(0)).abandons());
    assert_eq!(abandons_sent(&mut paths), [(ONE, 0x3e)]);
    assert_eq!(abandons_sent(&mut paths), []);
    paths.on_lost(ONE);
    assert_eq!(abandons_sent(&mut paths), [(ONE, 0x3e)]);
    paths.on_acknowledged(ONE);
    paths.on_lost(ONE);
    assert_eq!(abandons_sent(&mut paths), []);
}

#[test]
fn the_codes_are_those_of_the_registry() {
    use AbandonReason::{Application, NoConnectionId, NoError, ResourceLimit, UnstableOrPoor};
    let codes =
        [NoError, Application, ResourceLimit, UnstableOrPoor, NoConnectionId].map(AbandonReason::code);
    assert_eq!(codes, [0, 0x3e, 0x3e75, 0x3e76, 0x3e77]);
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-3.4
//= type=test
//# When an endpoint receives a PATH_ABANDON frame, it MUST send a corresponding PATH_ABANDON frame, if it has
//# not already done so
#[test]
fn the_peers_abandonment_is_answered_once() {
    let mut paths = with_open(ONE);
    assert!(paths.apply(ONE, PEER_ABANDON, at(0)).abandons());
    assert_eq!(abandons_sent(&mut paths), [(ONE, 0)]);
    assert!(!paths.apply(ONE, PEER_ABANDON, at(1)).abandons());
    assert_eq!(abandons_sent(&mut paths), []);
    assert_eq!(paths.expire(at(300)), [ONE]);
    paths.apply(ONE, PEER_ABANDON, at(301));
    assert_eq!((abandons_sent(&mut paths), paths.state(ONE)), (vec![], LifecycleState::Freed));
}

#[test]
fn an_answer_to_our_abandonment_is_not_answered() {
    let mut paths = with_open(ONE);
    paths.apply(ONE, ABANDON, at(0));
    assert_eq!(abandons_sent(&mut paths).len(), 1);
    assert!(!paths.apply(ONE, PEER_ABANDON, at(100)).abandons());
    assert_eq!(abandons_sent(&mut paths), []);
    assert_eq!(paths.state(ONE), LifecycleState::Abandoned { until: at(400) });
}

#[test]
fn both_may_abandon_at_once() {
    let mut paths = with_open(ONE);
    paths.apply(ONE, ABANDON, at(0));
    paths.apply(ONE, PEER_ABANDON, at(1));
    assert_eq!(abandons_sent(&mut paths), [(ONE, 0x3e)], "the frame that was queued serves as the answer");
}

#[test]
fn a_path_that_was_never_opened_can_be_abandoned_by_either_side() {
    let mut paths = Lifecycles::new();
    assert!(paths.apply(PathId(2), PEER_ABANDON, at(0)).abandons());
    assert!(paths.apply(PathId(3), ABANDON, at(0)).abandons());
    assert_eq!(abandons_sent(&mut paths), [(PathId(2), 0), (PathId(3), 0x3e)]);
    assert_eq!(paths.forsaken_at(), None);
    assert_eq!(paths.unused(PathId(3)).collect::<Vec<_>>(), [ONE]);
}

#[test]
fn state_is_kept_three_probe_timeouts_after_the_peers_abandonment() {
    let mut paths = with_open(ONE);
    paths.apply(ONE, PEER_ABANDON, at(50));
    assert_eq!(paths.deadline(), Some(Deadline::new(at(350), TimerReason::PathAbandoned)));
    assert_eq!(paths.expire(at(349)), []);
    assert!(!paths.accepts(ONE));
    assert!(
        matches!(paths.state(ONE), LifecycleState::Abandoned { .. }),
        "late packets still belong to the connection"
    );
    assert_eq!(paths.expire(at(350)), [ONE]);
    assert_eq!((paths.state(ONE), paths.deadline()), (LifecycleState::Freed, None));
}

#[test]
fn a_peer_that_never_answers_does_not_keep_the_path() {
    let mut paths = with_open(ONE);
    paths.apply(ONE, ABANDON, at(0));
    assert_eq!(abandons_sent(&mut paths).len(), 1);
    paths.on_acknowledged(ONE);
    assert_eq!(paths.deadline(), Some(Deadline::new(at(300), TimerReason::PathAbandoned)));
    assert_eq!(paths.expire(at(300)), [ONE]);
    assert_eq!(paths.state(ONE), LifecycleState::Freed);
}

#[test]
fn a_path_is_known_for_as_long_as_the_peer_may_use_it_in_ignorance() {
    // RFC 10069 §3.4.1: its packets would meet with a stateless reset.
    let mut paths = with_open(ONE);
    paths.apply(ONE, ABANDON, at(0));
    assert_eq!(abandons_sent(&mut paths).len(), 1);
    assert_eq!((paths.deadline(), paths.expire(at(10_000))), (None, vec![]));
    paths.on_lost(ONE);
    assert_eq!(abandons_sent(&mut paths).len(), 1);
    paths.on_acknowledged(ONE);
    assert_eq!(paths.expire(at(10_001)), [ONE]);
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-3.4
//= type=test
//# After a path is abandoned, the path ID MUST NOT be reused for new paths, as the path ID is part of the
//# nonce calculation Section 2.4.
#[test]
fn a_freed_path_is_not_opened_again() {
    let mut paths = with_open(ONE);
    paths.apply(ONE, ABANDON, at(0));
    paths.on_acknowledged(ONE);
    paths.expire(at(300));
    for event in [
        LifecycleEvent::Opened,
        LifecycleEvent::Heard,
        LifecycleEvent::Validated,
        ABANDON,
        PEER_ABANDON,
        LifecycleEvent::Expired,
    ] {
        assert_eq!(
            paths.apply(ONE, event, at(400)),
            Transition { from: LifecycleState::Freed, to: LifecycleState::Freed }
        );
    }
    assert_eq!(paths.unused(PathId(2)).collect::<Vec<_>>(), [PathId(2)]);
    assert!(!paths.accepts(ONE) && paths.accepts(PathId(2)));
}

#[test]
fn a_lost_answer_is_repeated_even_after_the_path_was_freed() {
    let mut paths = with_open(ONE);
    paths.apply(ONE, PEER_ABANDON, at(0));
    assert_eq!(abandons_sent(&mut paths).len(), 1);
    paths.expire(at(300));
    assert_eq!(paths.take_reclaimed(), 0);
    paths.on_lost(ONE);
    assert_eq!(abandons_sent(&mut paths), [(ONE, 0)]);
    assert!(!paths.may_expire(), "it is freed, and the peer may not know");
    paths.on_acknowledged(ONE);
    assert!(paths.may_expire(), "its place in the limit comes back");
    assert_eq!((paths.take_reclaimed(), paths.take_reclaimed()), (1, 0));
    assert!(!paths.may_expire());
}

#[test]
fn a_connection_without_a_path_lasts_one_probe_timeout() {
    let mut paths = with_open(ONE);
    paths.apply(PathId::ZERO, PEER_ABANDON, at(0));
    assert_eq!(paths.forsaken_at(), None);
    paths.apply(ONE, PEER_ABANDON, at(10));
    assert_eq!(paths.forsaken_at(), Some(at(110)));
    paths.apply(ONE, PEER_ABANDON, at(90));
    assert_eq!(paths.forsaken_at(), Some(at(110)), "repetitions do not delay the end");
    paths.apply(PathId(2), PEER_ABANDON, at(95));
    assert_eq!(paths.forsaken_at(), Some(at(110)));
    paths.apply(PathId(3), LifecycleEvent::Heard, at(100));
    assert_eq!(paths.forsaken_at(), None);
}

#[test]
fn abandoning_the_last_path_here_ends_the_connection_too() {
    let mut paths = Lifecycles::new();
    paths.apply(PathId::ZERO, ABANDON, at(0));
    assert_eq!(paths.forsaken_at(), Some(at(100)));
}

#[test]
fn a_flood_of_abandonments_is_answered_once_for_each_path() {
    let limits = PathLimits::new(Some(PathId(8)));
    let mut paths = Lifecycles::new();
    for round in 0..100_000_u32 {
        let path = PathId(round % 9);
        if path <= limits.local() {
            paths.apply(path, PEER_ABANDON, at(0));
        }
    }
    assert_eq!(paths.announcements.len(), 9);
    assert_eq!(abandons_sent(&mut paths).len(), 9);
}

#[test]
fn a_million_paths_leave_a_few_ranges_and_credit_comes_with_the_end_of_each() {
    let mut paths = Lifecycles::new();
    let mut limits = PathLimits::new(Some(PathId(2)));
    limits.set_peer(Some(PathId(u32::MAX)));
    let mut now = at(0);
    for _ in 0..1_000_000 {
        let path = paths.unused(limits.highest()).next().expect("credit came back");
        paths.apply(path, LifecycleEvent::Heard, now);
        paths.apply(path, PEER_ABANDON, now);
        paths.next_frame();
        paths.on_acknowledged(path);
        assert_eq!(paths.take_reclaimed(), 0, "not before its time is over");
        now += KEEP;
        paths.expire(now);
        limits.return_credit(paths.take_reclaimed());
    }
    assert_eq!(limits.local(), PathId(1_000_002));
    assert_eq!((paths.freed.len(), paths.states.len(), paths.announcements.len()), (1, 1, 0));
}

#[test]
fn holes_left_by_the_peer_are_bounded_by_the_limit() {
    let mut paths = Lifecycles::new();
    let mut limits = PathLimits::new(Some(PathId(8)));
    limits.set_peer(Some(PathId(u32::MAX)));
    let mut now = at(0);
    for round in 0..10_000_u32 {
        let path = PathId(round * 2 + 1);
        if limits.validate(path).is_err() {
            continue;
        }
        paths.apply(path, PEER_ABANDON, now);
        paths.next_frame();
        paths.on_acknowledged(path);
        now += KEEP;
        paths.expire(now);
        limits.return_credit(paths.take_reclaimed());
    }
    assert!(paths.freed.len() <= 9, "{:?}", paths.freed);
}

#[test]
fn a_peer_that_acknowledges_no_answer_gets_no_credit() {
    let mut paths = Lifecycles::new();
    let mut limits = PathLimits::new(Some(PathId(4)));
    limits.set_peer(Some(PathId(u32::MAX)));
    for round in 0..1000 {
        for path in paths.unused(limits.highest()).collect::<Vec<_>>() {
            paths.apply(path, PEER_ABANDON, at(round * 300));
        }
        paths.expire(at(round * 300 + 300));
        limits.return_credit(paths.take_reclaimed());
    }
    assert_eq!((limits.local(), paths.announcements.len()), (PathId(4), 4));
}

#[test]
fn unused_ids_end_at_the_largest_there_is() {
    let mut paths = Lifecycles::new();
    paths.freed.insert_range(1..=u64::from(u32::MAX) - 1);
    assert_eq!(paths.unused(PathId(u32::MAX)).collect::<Vec<_>>(), [PathId(u32::MAX)]);
    paths.apply(PathId(u32::MAX), LifecycleEvent::Heard, at(0));
    assert_eq!(paths.unused(PathId(u32::MAX)).next(), None);
    assert_eq!(Lifecycles::new().unused(PathId(u32::MAX)).next(), Some(ONE));
}
