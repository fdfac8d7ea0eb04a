use std::time::Duration;

use super::*;
use crate::{Bandwidth, Content, Message, PathId, Policy, Priority, Role, Rtt};

const EMBB: PathId = PathId(0);
const URLLC: PathId = PathId(1);

/// eMBB of 60 Mbit/s and 50 ms, URLLC of 2 Mbit/s and 5 ms (HotNets 2023 §3.1).
fn channels() -> [PathView; 2] {
    let path = |id, mbit, rtt| PathView {
        send_allowance: 1 << 20,
        window: 1 << 20,
        delay: Duration::from_millis(rtt) / 2,
        rate: Some(Bandwidth::from_mbit(mbit)),
        rtt: Rtt { smoothed: Duration::from_millis(rtt), ..Rtt::ZERO },
        overhead: 52,
        ..PathView::new(id)
    };
    [path(EMBB, 60, 50), path(URLLC, 2, 5)]
}

fn stream(id: u64, bytes: usize) -> Item {
    Item { header: 12, ..Item::new(Content::Stream { id }, bytes) }
}

/// A stream item of which the transport knows that `remaining` bytes are left.
fn object(id: u64, remaining: usize) -> Item {
    let bytes = remaining.min(1136);
    let message = Some(Message { remaining, deadline: None });
    Item { message, pending: remaining, ..stream(id, bytes) }
}

fn acknowledgement(of: PathId) -> Item {
    Item::new(Content::Acknowledgement { of }, 20)
}

/// Returns the paths on which one policy puts items, one after the other.
fn places(name: &str, items: &[Item]) -> Vec<PathId> {
    let policy: Policy = name.parse().expect("a policy's name");
    let mut scheduler = policy.scheduler();
    let place = |item| match scheduler.place(item, &channels()) {
        Placement::On { path, bytes } if bytes == item.bytes => path,
        other => panic!("{name} answers {other:?}"),
    };
    items.iter().map(place).collect()
}

fn from_server(item: Item) -> Item {
    Item { role: Role::Server, ..item }
}

fn urgent(urgency: u8, item: Item) -> Item {
    Item { priority: Priority { urgency, ..Priority::DEFAULT }, ..item }
}

const FULL: usize = 1136;

#[test]
fn the_baselines_use_one_channel() {
    let items = [stream(0, 9), acknowledgement(URLLC), Item::new(Content::Handshake, 900)];
    assert_eq!(places("all-embb", &items), [EMBB; 3]);
    assert_eq!(places("all-urllc", &items), [URLLC; 3]);
}

#[test]
fn uplink_steering_goes_by_the_side() {
    let items = [stream(0, FULL), from_server(stream(0, 10)), from_server(acknowledgement(URLLC))];
    assert_eq!(places("pkt-uplink", &items), [URLLC, EMBB, EMBB]);
}

#[test]
fn control_steering_goes_by_payload() {
    let items = [acknowledgement(EMBB), Item::new(Content::Control, 30), stream(0, 30)];
    assert_eq!(places("pkt-control", &items), [URLLC, URLLC, EMBB]);
}

#[test]
fn state_steering_keeps_the_tail_behind_full_packets() {
    // HotMobile 2021, Algorithm 1 and Figure 1: control, request; then a response whose tail stays behind.
    let items = [stream(0, 300), stream(4, FULL), stream(4, 200), stream(4, 200), acknowledgement(EMBB)];
    assert_eq!(places("pkt-state", &items), [URLLC, EMBB, EMBB, URLLC, URLLC]);
}

#[test]
fn size_steering_has_its_threshold_as_parameter() {
    let items = [stream(0, 180), stream(0, 190), stream(0, 930), stream(0, 940)];
    assert_eq!(places("best-pkt-size:250", &items), [URLLC, EMBB, EMBB, EMBB]);
    assert_eq!(places("best-pkt-size", &items), [URLLC, URLLC, URLLC, EMBB]);
}

#[test]
fn objects_are_mapped_by_size_and_stay_where_they_are() {
    let items = [object(0, 2999), object(4, 3000), object(4, 100), stream(8, 10), object(0, 1)];
    assert_eq!(places("obj-size", &items), [URLLC, EMBB, EMBB, EMBB, URLLC]);
    assert_eq!(places("obj-size:6000", &[object(0, 5999), object(4, 6000)]), [URLLC, EMBB]);
}

#[test]
fn objects_of_the_highest_priority_take_the_low_latency_channel_whatever_their_size() {
    let items = [urgent(0, object(0, 90_000)), urgent(1, object(4, 10)), acknowledgement(URLLC)];
    assert_eq!(places("obj-priority", &items), [URLLC, EMBB, URLLC]);
}

#[test]
fn object_steering_takes_the_channel_that_finishes_sooner() {
    // 2.5 ms + 5,816 B at 2 Mbit/s = 25.8 ms against 25 ms + 0.8 ms.
    assert_eq!(places("obj-steering", &[object(0, 5700), object(4, 6000)]), [URLLC, EMBB]);
}

#[test]
fn an_object_beyond_the_window_is_expected_to_find_it_doubled_each_round_trip() {
    let [embb, urllc] = channels();
    let narrow = PathView { window: 12_000, rate: None, ..embb };
    let policy: Policy = "obj-steering".parse().expect("a policy's name");
    // Two round trips after the first window 7 have left: 125 ms, against 322 ms at 2 Mbit/s.
    let object = object(0, 80_000);
    let placed = policy.scheduler().place(&object, &[narrow, urllc]);
    assert_eq!(placed, Placement::On { path: EMBB, bytes: object.bytes });
}

#[test]
fn early_arrival_counts_what_was_mapped_before() {
    let items = [object(0, 4000), object(4, 4000), object(0, 2900)];
    assert_eq!(places("obj-steering", &items), [URLLC; 3]);
    assert_eq!(places("ians", &items), [URLLC, EMBB, URLLC]);
}

#[test]
fn asap_goes_by_the_phase_of_http() {
    let handshake = Item::new(Content::Handshake, 1000);
    let items = [handshake, stream(0, 400), from_server(stream(0, 400)), acknowledgement(EMBB)];
    assert_eq!(places("asap", &items), [URLLC, URLLC, EMBB, EMBB]);
}

#[test]
fn the_base_layer_takes_the_low_latency_channel() {
    let items = [urgent(0, object(0, 1600)), urgent(1, object(4, 1600)), urgent(2, stream(8, FULL))];
    assert_eq!(places("priority-svc", &items), [URLLC, EMBB, EMBB]);
}

#[test]
fn dchannel_compares_reward_and_cost() {
    // Reward 25 − (2.5 + 4.8) = 17.7 ms, cost 0.75 · 4.8 ms.
    assert_eq!(places("dchannel", &[stream(0, FULL)]), [URLLC]);
    let mut queued = channels();
    let mut place = |backlog, item: Item| {
        queued[1].backlog = backlog;
        Policy::DChannel.scheduler().place(&item, &queued)
    };
    let on = |path| Placement::On { path, bytes: FULL };
    // (25 − 2.5) / 1.75 = 12.857 ms of cost: 3214 bytes at 2 Mbit/s, 1200 of them this packet.
    assert_eq!(place(2014, stream(0, FULL)), on(URLLC));
    assert_eq!(place(2015, stream(0, FULL)), on(EMBB));
}

#[test]
fn dchannel_does_not_wait_for_the_low_latency_channel() {
    let mut full = channels();
    full[1].send_allowance = 0;
    let placement = Policy::DChannel.scheduler().place(&stream(0, FULL), &full);
    assert_eq!(placement, Placement::On { path: EMBB, bytes: FULL });
}

#[test]
fn dchannel_gains_nothing_behind_what_went_the_slow_way() {
    let mut scheduler = Policy::DChannel.scheduler();
    let mut paths = channels();
    paths[1].backlog = 10_000;
    let on = |path| Placement::On { path, bytes: FULL };
    assert_eq!(scheduler.place(&stream(0, FULL), &paths), on(EMBB));
    paths[1].backlog = 0;
    // Another stream too: for a steerer the connection is one flow.
    assert_eq!(scheduler.place(&stream(4, FULL), &paths), on(EMBB));
    let later = Item { now: Duration::from_millis(25), ..stream(4, FULL) };
    assert_eq!(scheduler.place(&later, &paths), on(URLLC));
}

#[test]
fn flow_priorities_keep_background_off_the_low_latency_channel() {
    let items = [urgent(7, stream(0, 100)), urgent(3, stream(4, 100)), urgent(7, stream(0, 100))];
    assert_eq!(places("dchannel-priority", &items), [EMBB, URLLC, EMBB]);
}

#[test]
fn a_copy_of_what_a_silent_path_holds_takes_the_other_channel() {
    let age = Duration::from_millis(80);
    let item = Item { history: History::Unacknowledged { on: EMBB, age }, ..stream(0, FULL) };
    assert_eq!(places("all-embb", &[item]), [URLLC]);
}

#[test]
fn a_steered_item_waits_for_its_channel() {
    let mut paths = channels();
    paths[0].send_allowance = 0;
    assert_eq!(Policy::AllEmbb.scheduler().place(&stream(0, FULL), &paths), Placement::Wait);
    let placement = Policy::AllEmbb.scheduler().place(&acknowledgement(EMBB), &paths);
    assert_eq!(placement, Placement::On { path: EMBB, bytes: 20 });
}
