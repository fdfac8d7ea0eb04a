//! The life of paths and connections: opening, validating, abandoning, limits, timeouts and the end.

use hvq_emulation::Direction as Way;
use hvq_scheduler::{Bandwidth, Hints, Item, PathId, PathState, PathView, Placement, Policy, Scheduler};
use hvq_tests::bulk::Download;
use hvq_tests::net::{Fate, Net, Side};
use hvq_tests::transfer::Transfer;
use hvq_transport::connection::{ChannelHint, Event, Multipath, OpenPathError, PathEvent, TransportConfig};
use hvq_transport::error::ConnectionError;
use hvq_transport::wire::frame::Status;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const FAST: &str = "rtt=10ms,rate=20mbit";
const SLOW: &str = "rtt=50ms,rate=60mbit";
/// PATH_UNSTABLE_OR_POOR (RFC 10069).
const UNSTABLE: u64 = 0x3e76;

fn config() -> TransportConfig {
    TransportConfig::new(Arc::new(|| Policy::MinRtt.scheduler()))
}

/// Puts everything on the last path that has room: a policy that wants to send to addresses of which nothing is known yet.
#[derive(Debug)]
struct LastWithRoom;

impl Scheduler for LastWithRoom {
    fn name(&self) -> &'static str {
        "last-with-room"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let chosen = paths.iter().rev().find(|path| path.send_allowance >= path.datagram_size);
        chosen.map_or(Placement::Wait, |path| Placement::On { path: path.id, bytes: item.bytes })
    }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Connected over the first of two wires.
fn connected(client: TransportConfig, server: TransportConfig) -> Net {
    let mut net = Net::new(client, server, 1);
    let first = net.wire(FAST);
    net.wire(SLOW);
    net.connect(first);
    net.run_for(Duration::from_millis(100));
    assert!(net.client.saw(&Event::Confirmed), "{}", net.describe());
    net
}

fn open_second(net: &mut Net) -> Result<PathId, OpenPathError> {
    let (tuple, now) = (net.wires[1].tuple(), net.now);
    net.client.connection().open_path(tuple, now)
}

fn two_paths() -> Net {
    let mut net = connected(config(), config());
    open_second(&mut net).expect("a second path is permitted");
    net.run_for(Duration::from_millis(300));
    for side in Side::BOTH {
        assert!(net.end(side).saw(&Event::Path(PathEvent::Validated(PathId(1)))), "{}", net.describe());
    }
    net
}

fn transfer(net: &mut Net) {
    let mut transfer = Transfer::new(1, 2, 100_000, Vec::new());
    for side in Side::BOTH {
        transfer.begin(side, net);
    }
    let until = net.now + seconds(20);
    let done = net.run(&mut transfer, until);
    assert!(done && transfer.failure.is_none(), "{}\n{}", transfer.describe(), net.describe());
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
//= type=test
//# A client that wants to use a new path MUST validate the peer's address as described in Section 8.2 of
//# [QUIC-TRANSPORT], unless it has previously validated the 4-tuple used for that path.
#[test]
fn a_path_on_which_the_server_never_answers_fails_and_the_connection_lives_on() {
    let mut net = connected(config(), config());
    net.tap =
        Some(Box::new(|wire, way, _| if wire == 1 && way == Way::Down { Fate::Drop } else { Fate::Pass }));
    assert_eq!(open_second(&mut net), Ok(PathId(1)));
    net.run_for(seconds(6));
    assert!(net.client.saw(&Event::Path(PathEvent::ValidationFailed(PathId(1)))), "{}", net.describe());
    assert_eq!(net.client.connection().path_ids(), [PathId(0)]);
    transfer(&mut net);
    assert_eq!(net.server.connection().path_ids(), [PathId(0)]);
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
//= type=test
//# If validation fails, the client MUST NOT use the path and can remove any status associated to the path
//# initiation attempt
//= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
//= type=test
//# As the used path ID is consumed either way, the endpoint MUST explicitly close the path, as specified in
//# Section 3.4.
#[test]
fn a_path_that_the_server_never_hears_of_fails_and_the_connection_lives_on() {
    let mut net = connected(config(), config());
    net.tap = Some(Box::new(|wire, _, _| if wire == 1 { Fate::Drop } else { Fate::Pass }));
    open_second(&mut net).unwrap();
    net.run_for(seconds(6));
    assert!(net.client.saw(&Event::Path(PathEvent::ValidationFailed(PathId(1)))), "{}", net.describe());
    transfer(&mut net);
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-3.4.3
//= type=test
//# When an endpoint finally deletes all state associated with the path, the packets sent over the path and
//# not yet acknowledged MUST be considered lost
#[test]
fn a_transfer_outlives_a_path_that_the_client_abandons() {
    let mut net = two_paths();
    let now = net.now;
    net.client.connection().abandon_path(PathId(0), UNSTABLE, now).unwrap();
    transfer(&mut net);
    let abandoned = Event::Path(PathEvent::Abandoned { path: PathId(0), code: UNSTABLE });
    assert!(net.server.saw(&abandoned), "{}", net.describe());
    for side in Side::BOTH {
        assert_eq!(net.end(side).connection().path_ids(), [PathId(1)]);
    }
}

#[test]
fn the_last_path_is_not_abandoned() {
    let mut net = connected(config(), config());
    let now = net.now;
    assert!(net.client.connection().abandon_path(PathId(0), 0, now).is_err());
}

#[test]
fn a_path_that_an_end_calls_backup_carries_no_data_of_either_while_another_is_available() {
    let mut net = two_paths();
    net.client.connection().set_path_status(PathId(0), Status::Backup).unwrap();
    assert_eq!(net.client.connection().path_stats(PathId(0)).unwrap().state, PathState::Backup);
    net.run_for(Duration::from_millis(200));
    assert!(net.server.saw(&Event::Path(PathEvent::PeerStatus(PathId(0), Status::Backup))));
    assert_eq!(net.server.connection().path_stats(PathId(0)).unwrap().state, PathState::Backup);
    let before = net.wires[0].down.sent;
    transfer(&mut net);
    let spent = net.wires[0].down.sent - before;
    assert!(spent < 20_000, "{spent} bytes\n{}", net.describe());
}

#[test]
fn a_client_opens_as_many_paths_as_both_limits_permit_and_another_once_one_is_gone() {
    let limited = || config().set_multipath(Multipath::UpTo(PathId(1))).clone();
    let mut net = connected(limited(), config());
    assert_eq!(open_second(&mut net), Ok(PathId(1)));
    net.run_for(seconds(1));
    assert!(open_second(&mut net).is_err());
    let now = net.now;
    net.client.connection().abandon_path(PathId(1), 0, now).unwrap();
    net.run_for(seconds(3));
    let opened = open_second(&mut net);
    assert_eq!(opened, Ok(PathId(2)), "{}", net.describe());
    net.run_for(seconds(1));
    assert_eq!(net.server.connection().path_ids(), [PathId(0), PathId(2)]);
}

#[test]
fn two_paths_share_one_pair_of_addresses() {
    // RFC 10069 §3.1: the connection ID names the path, not the addresses.
    let mut net = connected(config(), config());
    let (tuple, now) = (net.wires[0].tuple(), net.now);
    assert_eq!(net.client.connection().open_path(tuple, now), Ok(PathId(1)));
    net.run_for(Duration::from_millis(200));
    for side in Side::BOTH {
        assert_eq!(net.end(side).connection().path_ids(), [PathId(0), PathId(1)]);
    }
    transfer(&mut net);
    let stats = net.server.connection().stats();
    assert!(stats.paths.iter().all(|path| path.counters.packets_received > 0), "{}", net.describe());
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-2
//= type=test
//# If either of the endpoints does not advertise the initial_max_path_id transport parameter, then both
//# endpoints MUST NOT use any frame or mechanism defined in this document
#[test]
fn an_endpoint_without_multipath_is_served_as_plain_quic() {
    for off in Side::BOTH {
        let plain = config().set_multipath(Multipath::Off).clone();
        let mut net = match off {
            Side::Client => connected(plain, config()),
            Side::Server => connected(config(), plain),
        };
        assert!(!net.client.connection().is_multipath() && !net.server.connection().is_multipath());
        assert_eq!(open_second(&mut net), Err(OpenPathError::NotNegotiated));
        transfer(&mut net);
        for side in Side::BOTH {
            let frames = net.end(side).connection().stats().frames;
            assert!(!frames.iter().any(|frame| frame.kind == "path_ack"), "{frames:?}");
        }
    }
}

#[test]
fn the_smaller_idle_timeout_ends_the_connection_on_both_sides() {
    // RFC 9000 §10.1.
    let short = config().set_idle_timeout(seconds(5)).clone();
    let mut net = connected(short, config());
    net.run_for(seconds(4));
    assert!(net.client.get().is_some() && net.server.get().is_some());
    net.run_for(seconds(3));
    for side in Side::BOTH {
        assert!(net.end(side).saw(&Event::Closed(ConnectionError::IdleTimeout)), "{}", net.describe());
        assert_eq!(net.end(side).endpoint.handles().count(), 0);
    }
}

#[test]
fn keep_alive_keeps_a_connection() {
    let short = config().set_idle_timeout(seconds(5)).set_keep_alive(Some(seconds(2))).clone();
    let mut net = connected(short, config());
    net.run_for(seconds(60));
    assert!(net.client.get().is_some() && net.server.get().is_some(), "{}", net.describe());
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.1
//= type=test
//# To avoid being used for an amplification attack, such endpoints MUST limit the cumulative size of packets
//# it sends to three times the cumulative size of the packets that are received and attributed
#[test]
fn a_close_is_repeated_until_the_peer_has_it_and_all_state_goes() {
    // RFC 9000 §10.2.
    let mut net = two_paths();
    let now = net.now;
    net.client.connection().close(5, b"enough", now);
    net.run_for(seconds(1));
    let closed = ConnectionError::PeerApplication { code: 5, reason: "enough".into() };
    assert!(net.server.saw(&Event::Closed(closed)), "{}", net.describe());
    net.run_for(seconds(10));
    assert_eq!((net.client.endpoint.handles().count(), net.server.endpoint.handles().count()), (0, 0));
    assert!(net.client.saw(&Event::Forgotten) && net.server.saw(&Event::Forgotten));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1
//= type=test
//# Prior to validating the client address, servers MUST NOT send more than three times as many bytes as the
//# number of bytes they have received
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1
//= type=test
//# For the purposes of avoiding amplification prior to address validation, servers MUST count all of the
//# payload bytes received in datagrams that are uniquely attributed to a single connection
//= https://www.rfc-editor.org/rfc/rfc9000#section-14.1
//= type=test
//# The server MUST also limit the number of bytes it sends before validating the address of the client; see
//# Section 8.
//= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2.1
//= type=test
//# If no additional data can be sent, the server's PTO timer MUST NOT be armed until datagrams have been
//# received from the client because packets sent on PTO count against the anti-amplification limit.
#[test]
fn a_server_sends_at_most_three_times_what_it_received_until_the_address_is_validated() {
    // RFC 9000 §8.1: the client falls silent after its first flight.
    let mut net = Net::new(config(), config(), 1);
    let first = net.wire(FAST);
    let mut left = 2;
    net.tap = Some(Box::new(move |_, way, _| {
        if way == Way::Up {
            left -= 1;
        }
        if way == Way::Up && left < 0 { Fate::Drop } else { Fate::Pass }
    }));
    net.connect(first);
    for _ in 0..200 {
        net.run_for(Duration::from_millis(50));
        let (received, sent) = (net.wires[0].up.delivered, net.wires[0].down.sent);
        assert!(sent <= 3 * received, "{sent} > 3 × {received}");
    }
    assert!(net.wires[0].down.sent > 0);
}

#[test]
fn several_paths_from_one_address_that_never_answers_share_one_allowance() {
    // attacks.md G19, K7: a client that opens paths from the address of a victim must not multiply what the victim gets, though
    // the server's policy wants to send there.
    // One datagram for each path: three times that is less than a window, which would limit what is sent there, too.
    let client = config().set_opening_datagrams(0).clone();
    let mut net = connected(client, TransportConfig::new(Arc::new(|| Box::new(LastWithRoom))));
    let sizes = Rc::new(RefCell::new(HashMap::from([(Way::Up, 0), (Way::Down, 0)])));
    let seen = Rc::clone(&sizes);
    // The victim hears what the server sends and answers nothing.
    net.tap = Some(Box::new(move |wire, way, bytes| {
        if wire == 1 {
            *seen.borrow_mut().entry(way).or_insert(0) += bytes.len();
        }
        if wire == 1 && way == Way::Down { Fate::Drop } else { Fate::Pass }
    }));
    for _ in 0..3 {
        let _ = open_second(&mut net);
        net.run_for(Duration::from_millis(20));
    }
    // And then leaves the server no other address.
    let now = net.now;
    net.client.connection().abandon_path(PathId(0), UNSTABLE, now).unwrap();
    net.run_for(Duration::from_millis(20));
    let id = net.server.connection().open(hvq_transport::stream::Direction::Unidirectional).unwrap();
    net.server.connection().write(id, &[1; 1_000_000]).unwrap();
    for _ in 0..100 {
        net.run_for(Duration::from_millis(20));
        let (received, sent) = (sizes.borrow()[&Way::Up], sizes.borrow()[&Way::Down]);
        assert!(sent <= 3 * received, "{sent} > 3 × {received}\n{}", net.describe());
    }
    let (received, sent) = (sizes.borrow()[&Way::Up], sizes.borrow()[&Way::Down]);
    assert!(sent > received, "the policy wants to send there: {sent} for {received}");
}

#[test]
fn acknowledgements_of_a_download_leave_room_on_the_low_latency_channel() {
    let hints = |rate, delay| Hints {
        rate: Some(Bandwidth::from_mbit(rate)),
        delay: Some(Duration::from_micros(delay)),
        ..Hints::NONE
    };
    let (urllc, embb) = (hints(2, 2_500), hints(60, 25_000));
    let mut config = TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
    let plan = {
        let mut plan = Net::new(config.clone(), config.clone(), 0);
        [(plan.wire(FAST), urllc), (plan.wire(SLOW), embb)]
    };
    for (tuple, hints) in plan {
        config.add_channels([tuple.local, tuple.remote].map(|local| ChannelHint::new(local, hints)));
    }
    let mut net = Net::new(config.clone(), config, 1);
    let first = net.wire("rtt=5ms,rate=2mbit");
    let second = net.wire("rtt=50ms,rate=60mbit");
    net.connect(first);
    let mut download = Download::new(Some((second, embb)));
    let length = seconds(10);
    net.run(&mut download, Net::START + length);
    let up = net.wires[0].channel.link(Way::Up).statistics();
    let rate = up.left.bytes as f64 * 8.0 / length.as_secs_f64();
    // A quarter of 2 Mbit/s, and what opening and flow control take.
    assert!(rate < 0.6e6, "{rate} bit/s of acknowledgements\n{}", net.describe());
    assert!(rate > 0.1e6, "{rate} bit/s: acknowledgements do not use the channel");
    assert!(up.most_queued_packets < 15, "{} packets queued\n{}", up.most_queued_packets, net.describe());
    assert!(up.delays().p99 < Duration::from_millis(6), "{:?}", up.delays());
}
