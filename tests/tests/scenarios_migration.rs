//! Paths that move: NATs that rebind, clients that migrate, and attackers that forge either (RFC 9000 §9, attacks D8, D9,
//! D10, D12, G20, G23).

use hvq_emulation::Direction as Way;
use hvq_scheduler::{PathId, Policy};
use hvq_tests::net::wire::Wire;
use hvq_tests::net::{Fate, Net, Side};
use hvq_tests::transfer::Transfer;
use hvq_transport::congestion::{Algorithm, Congestion};
use hvq_transport::connection::{
    Event, FourTuple, MigrateError, Migration, Moving, Multipath, PathCommandError, PathEvent, Rotation,
    TransportConfig,
};
use hvq_transport::endpoint::{Endpoint, EndpointConfig};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const FAST: &str = "rtt=10ms,rate=20mbit";
const SLOW: &str = "rtt=50ms,rate=60mbit";
const ZERO: PathId = PathId::ZERO;
const ONE: PathId = PathId(1);

fn config() -> TransportConfig {
    TransportConfig::new(Arc::new(|| Policy::MinRtt.scheduler()))
}

fn single() -> TransportConfig {
    config().set_multipath(Multipath::Off).clone()
}

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Returns the address at which a NAT lets a client appear.
fn outside(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], port))
}

/// Connected over the first of two wires, the second of them a path too if both want that.
fn connected(client: TransportConfig, server: TransportConfig) -> Net {
    let two = client.multipath() != Multipath::Off;
    let mut net = Net::new(client, server, 1);
    let first = net.wire(FAST);
    let second = net.wire(SLOW);
    net.connect(first);
    net.run_for(milliseconds(100));
    if two {
        let now = net.now;
        net.client.connection().open_path(second, now).expect("a second path is permitted");
        net.run_for(milliseconds(300));
        assert!(net.server.saw(&Event::Path(PathEvent::Validated(ONE))), "{}", net.describe());
    }
    net
}

/// Moves `most` bytes both ways, byte-exact, and meddles in every ten milliseconds of it.
fn transfer_while(net: &mut Net, most: u64, mut meddle: impl FnMut(&mut Net, u64)) {
    let mut transfer = Transfer::new(1, 2, most, Vec::new());
    for side in Side::BOTH {
        transfer.begin(side, net);
    }
    for round in 0..6_000 {
        let until = net.now + milliseconds(10);
        let done = net.run(&mut transfer, until);
        assert!(transfer.failure.is_none(), "{}\n{}", transfer.describe(), net.describe());
        if done {
            return;
        }
        meddle(net, round);
    }
    panic!("{}\n{}", transfer.describe(), net.describe());
}

/// Has the client send something.
fn say(net: &mut Net) {
    let priority = hvq_scheduler::Priority::default();
    net.client.connection().send_datagram("here I am".into(), priority, None).expect("it fits");
}

fn tuple_of(net: &mut Net, side: Side, path: PathId) -> FourTuple {
    net.end(side).connection().path_stats(path).expect("the path is open").tuple
}

fn migrations(net: &Net, path: PathId) -> usize {
    let migrated = Event::Path(PathEvent::Migrated(path));
    net.server.events.iter().filter(|(_, event)| *event == migrated).count()
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-9
//= type=test
//# An endpoint MUST perform path validation (Section 8.2) if it detects any change to a peer's address,
//# unless it has previously validated that address.
//= https://www.rfc-editor.org/rfc/rfc9000#section-9.3
//= type=test
//# If the recipient permits the migration, it MUST send subsequent packets to the new peer address and MUST
//# initiate path validation
#[test]
fn a_transfer_outlives_a_nat_that_changes_the_port_or_the_address_on_a_single_path() {
    for address in [outside(7, 1000), SocketAddr::from(([10, 0, 0, 1], 7777))] {
        let mut net = connected(single(), single());
        transfer_while(&mut net, 1_000_000, |net, round| {
            if round == 5 {
                net.wires[0].outside = address;
            }
        });
        assert_eq!(migrations(&net, ZERO), 1, "{}", net.describe());
        assert_eq!(tuple_of(&mut net, Side::Server, ZERO).remote, address);
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-14
//= type=test
//# QUIC MUST NOT be used if the network path cannot support a maximum datagram size of at least 1200 bytes.
#[test]
fn a_path_whose_new_way_carries_small_datagrams_only_is_used_no_more() {
    let mut net = connected(config(), config());
    net.wires[1].outside = outside(7, 1000);
    net.tap = Some(Box::new(|wire, way, bytes| {
        if wire == 1 && way == Way::Down && bytes.len() >= 1200 { Fate::Drop } else { Fate::Pass }
    }));
    // What the server receives there is little, so its first challenge is small, and arrives.
    net.client.connection().set_path_keep_alive(ONE, Some(milliseconds(100))).expect("the path is open");
    net.run_for(milliseconds(8_000));
    let stats = net.server.connection().path_stats(ONE);
    let left = stats.is_none_or(|stats| stats.tuple.remote != outside(7, 1000));
    let failed = net.server.saw_any(|event| {
        matches!(event, Event::Path(PathEvent::MigrationFailed(ONE) | PathEvent::ValidationFailed(ONE)))
    });
    assert!(failed && left, "{}", net.describe());
}

#[test]
fn a_client_without_connection_ids_is_followed_by_a_server_that_has_some() {
    // attacks.md D14, RFC 9000 §5.1, §9.5: once its NAT moves it, once it moves itself.
    let mut net = Net::new(config(), config(), 1);
    let without = EndpointConfig::default().set_id_length(0).clone();
    net.client.endpoint = Endpoint::new(without, None, [7; 32]);
    let (first, second) = (net.wire(FAST), net.wire(SLOW));
    net.connect(first);
    net.run_for(milliseconds(100));
    let now = net.now;
    assert!(net.client.connection().open_path(second, now).is_err(), "RFC 10069 §2.1: no multipath");
    transfer_while(&mut net, 2_000_000, |net, round| match round {
        5 => net.wires[0].outside = outside(7, 1000),
        30 => {
            let now = net.now;
            net.client.connection().migrate(ZERO, second, Moving::Validated, now).expect("there are spares");
        }
        _ => {}
    });
    net.run_for(milliseconds(500));
    assert_eq!(migrations(&net, ZERO), 2, "{}", net.describe());
    assert_eq!(
        tuple_of(&mut net, Side::Server, ZERO),
        FourTuple { local: second.remote, remote: second.local }
    );
    let frames = net.server.connection().stats().frames;
    let about_ids = frames.iter().filter(|frame| frame.kind == "new_connection_id");
    assert_eq!(about_ids.map(|frame| frame.received).sum::<u64>(), 0, "the client has none to issue");
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-3.1.2
//= type=test
//# This MUST be treated as path migration, as specified in Section 9.3 of [QUIC-TRANSPORT], with the
//# constraint that all connection IDs used during path migration MUST be associated with the current
#[test]
fn each_path_follows_its_own_nat_while_the_other_carries_on() {
    for wire in [0, 1] {
        for address in [outside(7, 1000), SocketAddr::from(([10, 0, 0, 1], 7777))] {
            let mut net = connected(config(), config());
            transfer_while(&mut net, 2_000_000, |net, round| {
                if round == 5 {
                    net.wires[wire].outside = address;
                }
            });
            net.run_for(milliseconds(500));
            let path = PathId(wire as u32);
            assert_eq!(tuple_of(&mut net, Side::Server, path).remote, address, "{}", net.describe());
            let other = PathId(1 - path.0);
            assert_eq!((migrations(&net, path), migrations(&net, other)), (1, 0));
        }
    }
}

#[test]
fn both_paths_rebind_together_and_the_transfer_is_byte_exact() {
    let mut net = connected(config(), config());
    transfer_while(&mut net, 2_000_000, |net, round| {
        if round == 5 {
            net.wires[0].outside = outside(7, 1);
            net.wires[1].outside = outside(7, 2);
        }
    });
    net.run_for(milliseconds(500));
    assert_eq!((migrations(&net, ZERO), migrations(&net, ONE)), (1, 1), "{}", net.describe());
}

#[test]
fn two_paths_behind_one_address_stay_two() {
    let mut net = connected(config(), config());
    // Both wires end at the same address of the server, so that they can come to share a 4-tuple (G23).
    transfer_while(&mut net, 500_000, |net, round| match round {
        5 => net.wires[1].outside = outside(7, 1),
        8 => net.wires[0].outside = outside(7, 1),
        _ => {}
    });
    assert_eq!(net.server.connection().path_ids(), [ZERO, ONE]);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-9.4
//= type=test
//# Packets sent on the old path MUST NOT contribute to congestion control or RTT estimation for the new path.
//= https://www.rfc-editor.org/rfc/rfc9000#section-9.4
//= type=test
//# On confirming a peer's ownership of its new address, an endpoint MUST immediately reset the congestion
//# controller and round-trip time estimator for the new path to initial values
#[test]
fn a_change_of_the_address_forgets_what_was_measured_and_a_change_of_the_port_does_not() {
    for (address, forgets) in [(outside(7, 1000), true), (SocketAddr::from(([10, 0, 0, 1], 7777)), false)] {
        let mut net = connected(single(), single());
        transfer_while(&mut net, 2_000_000, |_, _| {});
        let before = net.server.connection().path_stats(ZERO).unwrap();
        assert!(before.window > 20_000, "{before:?}");
        net.wires[0].outside = address;
        say(&mut net);
        net.run_for(milliseconds(100));
        let after = net.server.connection().path_stats(ZERO).unwrap();
        assert_eq!(after.tuple.remote, address);
        assert_eq!(after.window < before.window, forgets, "{before:?} {after:?}");
    }
}

/// A forwarder between client and server, who sends what the client sends from `victim`, too.
fn forge(net: &mut Net, victim: SocketAddr, drop: Fate) -> Rc<RefCell<Vec<Vec<u8>>>> {
    let caught = Rc::new(RefCell::new(Vec::new()));
    let (sink, server) = (caught.clone(), net.wires[0].server);
    net.wire(FAST);
    let wire = net.wires.last_mut().expect("just added");
    (wire.client, wire.outside, wire.server) = (victim, victim, server);
    net.tap = Some(Box::new(move |wire, way, bytes| {
        if wire == 0 && way == Way::Up && sink.borrow().len() < 5 {
            sink.borrow_mut().push(bytes.to_vec());
            return drop.clone();
        }
        Fate::Pass
    }));
    caught
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8
//= type=test
//# Therefore, after receiving packets from an address that is not yet validated, an endpoint MUST limit the
//# amount of data it sends to the unvalidated address to three times the amount of data received
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
//= type=test
//# A PATH_RESPONSE frame MUST be sent on the network path where the PATH_CHALLENGE frame was received
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
//= type=test
//# However, an endpoint MUST NOT expand the datagram containing the PATH_RESPONSE if the resulting data
//# exceeds the anti-amplification limit
//= https://www.rfc-editor.org/rfc/rfc9000#section-9.3
//= type=test
//# An endpoint MAY send data to an unvalidated peer address, but it MUST protect against potential attacks as
//# described in Sections 9.3.1 and 9.3.2
//= https://www.rfc-editor.org/rfc/rfc9000#section-9.3.2
//= type=test
//# To protect the connection from failing due to such a spurious migration, an endpoint MUST revert to using
//# the last validated peer address when validation of a new peer address fails
//= https://www.rfc-editor.org/rfc/rfc9000#section-9.3.3
//= type=test
//# In response to an apparent migration, endpoints MUST validate the previously active path using a
//# PATH_CHALLENGE frame
//= https://www.rfc-editor.org/rfc/rfc9000#section-9.6.3
//= type=test
//# the server MUST protect against potential attacks as described in Sections 9.3.1 and 9.3.2
#[test]
fn a_forged_address_is_sent_three_times_what_came_from_it_and_the_path_returns() {
    // Once the forged copies are all that the server gets, once they are only faster (RFC 9000 §9.3.2, §9.3.3).
    for fate in [Fate::Drop, Fate::Pass] {
        let mut net = connected(single(), single());
        let victim = outside(66, 666);
        let caught = forge(&mut net, victim, fate.clone());
        let received = Rc::new(Cell::new(0));
        let count = received.clone();
        transfer_while(&mut net, 1_000_000, move |net, _| {
            for bytes in caught.borrow_mut().drain(..) {
                count.set(count.get() + bytes.len() as u64);
                let mut datagram = net.arriving(0, Way::Up, &bytes);
                datagram.remote = victim;
                net.inject(Side::Server, datagram);
            }
        });
        let sent = net.wires[2].down.sent;
        assert!(sent <= 3 * received.get(), "{fate:?}: {sent} of {}", received.get());
        net.run_for(milliseconds(1_000));
        assert_ne!(tuple_of(&mut net, Side::Server, ZERO).remote, victim);
        net.run_for(milliseconds(7_000));
        assert!(net.wires[2].down.sent <= 3 * received.get());
        assert_eq!(migrations(&net, ZERO), 0, "{}", net.describe());
    }
}

#[test]
fn what_was_acknowledged_to_a_forged_address_is_acknowledged_again_to_the_proven_one() {
    // All that the client sends comes from the victim, its probes, too: it has no other way to learn what arrived.
    let mut net = connected(single(), single());
    let caught = forge(&mut net, outside(66, 666), Fate::Drop);
    say(&mut net);
    let in_flight =
        |net: &mut Net| net.client.connection().path_stats(ZERO).expect("the path is open").in_flight;
    for round in 0..10_000 {
        net.run_for(milliseconds(1));
        for bytes in caught.borrow_mut().drain(..) {
            let mut datagram = net.arriving(0, Way::Up, &bytes);
            datagram.remote = outside(66, 666);
            net.inject(Side::Server, datagram);
        }
        if net.server.saw(&Event::Path(PathEvent::MigrationFailed(ZERO))) {
            net.run_for(milliseconds(100));
            assert_eq!(in_flight(&mut net), 0, "after {round} ms: {}", net.describe());
            return;
        }
    }
    panic!("{}", net.describe());
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.1
//= type=test
//# An endpoint in the closing state MUST either discard packets received from an unvalidated address or limit
//# the cumulative size of packets it sends to an unvalidated address to three times the size of
#[test]
fn a_close_to_a_forged_address_stays_below_three_times_what_came_from_it() {
    // RFC 9000 §8.1, §10.2.1: the path is at the forged address when the server closes, and is asked again and again.
    let mut net = connected(single(), single());
    let victim = outside(66, 666);
    let caught = forge(&mut net, victim, Fate::Drop);
    net.client.connection().set_path_keep_alive(ZERO, Some(milliseconds(20))).expect("the path is open");
    for _ in 0..100 {
        net.run_for(milliseconds(1));
        if !caught.borrow().is_empty() {
            break;
        }
    }
    let bytes = caught.borrow_mut().remove(0);
    let mut datagram = net.arriving(0, Way::Up, &bytes);
    datagram.remote = victim;
    net.inject(Side::Server, datagram);
    net.run_for(milliseconds(1));
    assert_eq!(tuple_of(&mut net, Side::Server, ZERO).remote, victim, "{}", net.describe());
    let now = net.now;
    net.server.connection().close(1, &[b'x'; 400], now);
    net.run_for(milliseconds(1_000));
    let sent = net.wires[2].down.sent;
    assert!(sent <= 3 * bytes.len() as u64, "{sent} bytes for {}", bytes.len());
}

#[test]
fn ten_thousand_rebindings_at_a_hundred_a_second_leave_nothing_behind() {
    let mut net = connected(config(), config());
    for round in 0..10_000_u32 {
        net.wires[0].outside = outside((round >> 8) as u8, 1 + (round & 0xff) as u16);
        say(&mut net);
        net.run_for(milliseconds(10));
        let pending = net.server.connection().pending_validations();
        assert!(pending <= 4, "{pending} in round {round}");
    }
    net.run_for(milliseconds(10_000));
    assert_eq!(net.server.connection().pending_validations(), 0, "{}", net.describe());
    transfer_while(&mut net, 100_000, |_, _| {});
    let outside = net.wires[0].outside;
    assert_eq!(tuple_of(&mut net, Side::Server, ZERO).remote, outside);
}

/// Another local address of the client on the way of wire 0.
fn other_address(net: &mut Net) -> FourTuple {
    net.wire(FAST);
    let server = net.wires[0].server;
    let wire = net.wires.last_mut().expect("just added");
    wire.server = server;
    wire.client = SocketAddr::from(([10, 0, 9, 1], 9000));
    wire.outside = wire.client;
    wire.tuple()
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-9.5
//= type=test
//# An endpoint MUST NOT reuse a connection ID when sending from more than one local address -- for example,
//# when initiating connection migration as described in Section 9.2 or
//= https://www.rfc-editor.org/rfc/rfc9000#section-9.5
//= type=test
//# Similarly, an endpoint MUST NOT reuse a connection ID when sending to more than one destination address
#[test]
fn a_client_moves_each_path_on_purpose_and_both_ends_show_new_connection_ids_there() {
    for config in [single, config] {
        let mut net = connected(config(), config());
        let new = other_address(&mut net);
        let seen = Rc::new(RefCell::new([Vec::new(), Vec::new()]));
        let sink = seen.clone();
        net.tap = Some(Box::new(move |wire, _, bytes| {
            if bytes[0] & 0x80 == 0 && wire != 1 {
                sink.borrow_mut()[usize::from(wire == 2)].push(bytes[1..9].to_vec());
            }
            Fate::Pass
        }));
        transfer_while(&mut net, 1_000_000, |net, round| {
            if round == 5 {
                let now = net.now;
                net.client.connection().migrate(ZERO, new, Moving::Validated, now).expect("permitted");
            }
        });
        for side in Side::BOTH {
            assert!(net.end(side).saw(&Event::Path(PathEvent::Migrated(ZERO))), "{}", net.describe());
        }
        assert_eq!(tuple_of(&mut net, Side::Client, ZERO), new);
        assert_eq!(tuple_of(&mut net, Side::Server, ZERO).remote, new.local);
        // RFC 9000 §9.5, attack G34: nobody can link the two addresses by a connection ID.
        let [old, new] = &*seen.borrow();
        assert!(!new.is_empty() && new.iter().all(|id| !old.contains(id)));
    }
}

#[test]
fn a_path_moves_at_once_when_its_old_address_is_gone() {
    let mut net = connected(config(), config());
    let new = other_address(&mut net);
    let gone = Rc::new(Cell::new(false));
    let flag = gone.clone();
    net.tap = Some(Box::new(move |wire, _, _| if wire == 0 && flag.get() { Fate::Drop } else { Fate::Pass }));
    transfer_while(&mut net, 1_000_000, |net, round| {
        if round == 5 {
            gone.set(true);
            let now = net.now;
            net.client.connection().migrate(ZERO, new, Moving::AtOnce, now).expect("permitted");
        }
    });
    assert_eq!(tuple_of(&mut net, Side::Server, ZERO).remote, new.local);
}

#[test]
fn a_path_stays_where_it_is_if_nothing_comes_back_from_the_new_address() {
    let mut net = connected(config(), config());
    let new = other_address(&mut net);
    let old = tuple_of(&mut net, Side::Client, ZERO);
    net.tap = Some(Box::new(|wire, _, _| if wire == 2 { Fate::Drop } else { Fate::Pass }));
    for moving in [Moving::Validated, Moving::AtOnce] {
        let now = net.now;
        net.client.events.clear();
        net.client.connection().migrate(ZERO, new, moving, now).expect("permitted");
        net.run_for(milliseconds(7_000));
        assert!(net.client.saw(&Event::Path(PathEvent::MigrationFailed(ZERO))), "{}", net.describe());
        assert_eq!(tuple_of(&mut net, Side::Client, ZERO), old);
    }
    transfer_while(&mut net, 100_000, |_, _| {});
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-9
//= type=test
//# If the peer sent the disable_active_migration transport parameter, an endpoint also MUST NOT send packets
//# (including probing packets
//= https://www.rfc-editor.org/rfc/rfc9000#section-9
//= type=test
//# If the peer violates this requirement, the endpoint MUST either drop the incoming packets on that path
//# without generating a Stateless Reset or proceed with path validation and allow the peer to
//= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
//= type=test
//# An endpoint that receives this transport parameter MUST NOT use a new local address when sending to the
//# address that the peer used during the handshake
#[test]
fn a_server_that_refuses_migration_is_obeyed_and_ignores_who_does_not() {
    let server = single().set_migration(Migration::Refused).clone();
    let mut net = connected(single(), server);
    let (new, now) = (other_address(&mut net), net.now);
    let refused = net.client.connection().migrate(ZERO, new, Moving::Validated, now);
    assert_eq!(refused, Err(MigrateError::Disabled));
    // D10: packets from another address are dropped, and nothing resets the connection.
    let old = net.wires[0].outside;
    transfer_while(&mut net, 500_000, |net, round| match round {
        5 => net.wires[0].outside = outside(7, 7),
        10 => net.wires[0].outside = old,
        // Another port is a NAT's doing.
        20 => net.wires[0].outside.set_port(7777),
        _ => {}
    });
    assert_eq!(tuple_of(&mut net, Side::Server, ZERO).remote.ip(), old.ip());
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-9.5
//= type=test
//# An endpoint MUST NOT reuse a connection ID when sending from more than one local address -- for example,
//# when initiating connection migration as described in Section 9.2 or
#[test]
fn a_client_without_spare_connection_ids_does_not_move() {
    let mut net = connected(config(), config());
    let now = net.now;
    let results: Vec<_> = (0..5)
        .map(|port| {
            let tuple = FourTuple { local: outside(1, 1 + port), ..net.wires[0].tuple() };
            net.client.connection().migrate(ZERO, tuple, Moving::Validated, now)
        })
        .collect();
    assert!(results.contains(&Err(MigrateError::NoConnectionId)), "{results:?}");
    net.run_for(milliseconds(7_000));
    transfer_while(&mut net, 100_000, |_, _| {});
    let commanded = net.server.connection().migrate(ZERO, net.wires[0].tuple(), Moving::Validated, now);
    assert_eq!(commanded, Err(MigrateError::NotClient));
}

/// The connection IDs that the server sends to over wire `of` from now on. Datagrams that it sends over wire `dead` are
/// lost.
fn watch_server(net: &mut Net, of: usize, dead: usize) -> Rc<RefCell<BTreeSet<Vec<u8>>>> {
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let sink = seen.clone();
    net.tap = Some(Box::new(move |wire, way, bytes| {
        if (wire, way) == (of, Way::Down) {
            sink.borrow_mut().insert(bytes[1..9].to_vec());
        }
        if (wire, way) == (dead, Way::Down) { Fate::Drop } else { Fate::Pass }
    }));
    seen
}

#[test]
fn a_client_back_where_its_nat_moved_meanwhile_is_sent_to_the_connection_id_of_before() {
    // RFC 9000 §9.5: a NAT moves a client without another connection ID, so the server needs none either; that the client
    // used another one elsewhere in between does not count.
    let mut net = connected(single(), single());
    let (new, old) = (other_address(&mut net), tuple_of(&mut net, Side::Client, ZERO));
    let seen = watch_server(&mut net, 0, 2);
    transfer_while(&mut net, 10_000, |_, _| {});
    let now = net.now;
    net.client.connection().migrate(ZERO, new, Moving::AtOnce, now).expect("permitted");
    net.run_for(milliseconds(100));
    assert_eq!(tuple_of(&mut net, Side::Server, ZERO).remote, new.local, "{}", net.describe());
    net.wires[0].outside = outside(1, 5_000);
    net.run_for(milliseconds(7_000));
    assert_eq!(tuple_of(&mut net, Side::Client, ZERO), old, "{}", net.describe());
    transfer_while(&mut net, 100_000, |_, _| {});
    assert_eq!(tuple_of(&mut net, Side::Server, ZERO).remote, outside(1, 5_000));
    assert_eq!(seen.borrow().len(), 1);
}

#[test]
fn a_client_whose_nat_moves_it_while_it_moves_on_purpose_needs_one_connection_id() {
    // RFC 9000 §9.5: it shows the same one at both addresses.
    let mut net = connected(single(), single());
    let (new, now) = (other_address(&mut net), net.now);
    let seen = watch_server(&mut net, 2, 0);
    net.client.connection().migrate(ZERO, new, Moving::Validated, now).expect("permitted");
    net.run_for(milliseconds(7));
    assert_eq!(net.server.connection().pending_validations(), 1);
    net.wires[2].outside = outside(2, 7_000);
    net.run_for(milliseconds(2_500));
    assert_eq!(tuple_of(&mut net, Side::Client, ZERO), new, "{}", net.describe());
    transfer_while(&mut net, 100_000, |_, _| {});
    assert_eq!(tuple_of(&mut net, Side::Server, ZERO).remote, outside(2, 7_000));
    assert_eq!(seen.borrow().len(), 1);
}

#[test]
fn a_server_that_lacks_connection_ids_gets_them_with_the_probes_of_the_client() {
    // RFC 9002 §6.2.4: all that the client issued is lost, and it moves with another connection ID: the server cannot
    // answer before it has one for there.
    let mut net = Net::new(single(), single(), 1);
    let tuple = net.wire(FAST);
    net.connect(tuple);
    let mut datagrams = 0;
    net.tap = Some(Box::new(move |_, way, bytes| {
        datagrams += usize::from(way == Way::Up && bytes[0] & 0x80 == 0);
        if way == Way::Up && bytes[0] & 0x80 == 0 && datagrams < 4 { Fate::Drop } else { Fate::Pass }
    }));
    while !net.client.saw(&Event::Confirmed) {
        net.run_for(milliseconds(1));
    }
    let now = net.now;
    let lacking = net.server.connection().rotate_connection_id(ZERO, now);
    assert_eq!(lacking, Err(PathCommandError::NoConnectionId));
    net.client.connection().rotate_connection_id(ZERO, now).expect("the server has issued some");
    net.wires[0].outside = outside(3, 3_000);
    transfer_while(&mut net, 50_000, |_, _| {});
    assert_eq!(tuple_of(&mut net, Side::Server, ZERO).remote, outside(3, 3_000));
}

/// Has a client whose NAT gives it another address say something every 100 ms for `time`, while nothing comes back.
fn move_into_the_dark(net: &mut Net, new: SocketAddr, time: Duration) {
    net.wires[0].outside = new;
    let before = net.wires[0].down.sent;
    net.tap = Some(Box::new(|_, way, _| if way == Way::Down { Fate::Drop } else { Fate::Pass }));
    let (end, up) = (net.now + time, net.wires[0].up.sent);
    while net.now < end {
        say(net);
        net.run_for(milliseconds(100));
        // RFC 9000 §8.1: however often the address is validated.
        let (sent, received) = (net.wires[0].down.sent - before, net.wires[0].up.sent - up);
        assert!(sent <= 3 * received, "{sent} of {received}");
    }
    net.tap = None;
}

/// Moves bytes both ways, byte-exact, within `most`.
fn transfer_within(net: &mut Net, most: Duration) {
    let began = net.now;
    transfer_while(net, 50_000, |_, _| {});
    let took = net.now.since(began);
    assert!(took <= most, "{took:?}\n{}", net.describe());
}

#[test]
fn an_address_whose_validation_failed_is_validated_again_when_it_is_heard() {
    // RFC 9000 §9.3, §9.5: the client shows another connection ID there, and the server has one or two to answer with. Each
    // attempt takes three seconds.
    for seconds in [4, 10, 20] {
        let mut net = connected(single(), single());
        let now = net.now;
        net.client.connection().rotate_connection_id(ZERO, now).expect("the server has issued some");
        move_into_the_dark(&mut net, outside(7, 7), Duration::from_secs(seconds));
        transfer_within(&mut net, Duration::from_secs(5));
        assert_eq!(tuple_of(&mut net, Side::Server, ZERO).remote, outside(7, 7));
        net.run_for(milliseconds(7_000));
        assert_eq!(net.server.connection().pending_validations(), 0);
    }
}

#[test]
fn a_client_that_moves_twice_while_nothing_comes_back_is_answered_where_it_is_last() {
    // RFC 9000 §5.1.1, §9.5: it shows another connection ID each time, and the server had no more to spare than it must.
    let mut net = connected(single(), single());
    let now = net.now;
    let _as_many_as_there_are =
        (0..3).map(|_| net.server.connection().rotate_connection_id(ZERO, now)).count();
    for port in [7, 8] {
        let now = net.now;
        net.client.connection().rotate_connection_id(ZERO, now).expect("the server has issued some");
        move_into_the_dark(&mut net, outside(7, port), Duration::from_secs(4));
    }
    transfer_within(&mut net, Duration::from_secs(5));
    assert_eq!(tuple_of(&mut net, Side::Server, ZERO).remote, outside(7, 8));
}

#[test]
fn a_path_whose_connection_ids_went_to_addresses_in_vain_gets_others_over_another_path() {
    // RFC 9000 §9.5: the server answers at each address with another connection ID, and has none left. Path 1 cannot find out
    // where its client is, path 0 answers all the time.
    let mut net = connected(config(), config());
    net.tap = Some(Box::new(|wire, way, _| match (wire, way) {
        (1.., Way::Down) => Fate::Drop,
        _ => Fate::Pass,
    }));
    net.server.connection().set_path_keep_alive(ONE, Some(milliseconds(200))).expect("the path is open");
    for _ in 0..3 {
        let elsewhere = net.wire(FAST);
        let now = net.now;
        net.client.connection().migrate(ONE, elsewhere, Moving::Validated, now).expect("IDs are left");
        net.run_for(Duration::from_secs(4));
    }
    assert!(net.server.saw(&Event::Path(PathEvent::Silent(ONE))), "{}", net.describe());
    net.run_for(Duration::from_secs(4));
    let now = net.now;
    net.client.connection().rotate_connection_id(ONE, now).expect("the server has issued some");
    net.client.connection().set_path_keep_alive(ONE, Some(milliseconds(200))).expect("the path is open");
    net.wires[1].outside = outside(7, 7);
    net.tap = None;
    net.run_for(Duration::from_secs(3));
    assert_eq!(tuple_of(&mut net, Side::Server, ONE).remote, outside(7, 7), "{}", net.describe());
    assert_eq!(migrations(&net, ONE), 1);
}

#[test]
fn a_path_changes_its_connection_id_of_itself_only_while_the_peer_is_heard() {
    // RFC 9000 §9.5: what it retires is not replaced, and then the peer could not answer from where it is.
    let rotation = Rotation { packets: Some(5), ..Rotation::default() };
    let config = single().set_rotation(rotation).clone();
    let mut net = connected(config.clone(), config);
    transfer_while(&mut net, 50_000, |_, _| {});
    net.run_for(milliseconds(500));
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let sink = seen.clone();
    net.tap = Some(Box::new(move |_, way, bytes| {
        if way == Way::Up {
            sink.borrow_mut().insert(bytes[1..9].to_vec());
        }
        if way == Way::Down { Fate::Drop } else { Fate::Pass }
    }));
    for _ in 0..50 {
        say(&mut net);
        net.run_for(milliseconds(100));
    }
    assert!(seen.borrow().len() <= 2, "{}", seen.borrow().len());
    net.tap = None;
    transfer_within(&mut net, Duration::from_secs(5));
}

#[test]
fn a_path_keeps_the_controller_that_it_was_given_wherever_it_moves() {
    let mut net = connected(config(), config());
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let of_ones_own = Congestion::custom(move |size: usize| {
        count.fetch_add(1, Ordering::Relaxed);
        Algorithm::Bbr.build(size)
    });
    let commands = [(ZERO, of_ones_own, "bbr"), (ONE, Algorithm::Vegas.into(), "vegas")];
    for side in Side::BOTH {
        for (path, congestion, _) in &commands {
            net.end(side).connection().set_congestion(*path, congestion.clone()).expect("the path is open");
        }
    }
    assert_eq!(made.load(Ordering::Relaxed), 2);
    // Another port keeps what was measured, another address does not; then back to where it was.
    for outer in [SocketAddr::from(([10, 0, 0, 1], 7777)), outside(7, 1000), Wire::addresses(0).local] {
        transfer_while(&mut net, 500_000, |net, round| {
            if round == 2 {
                net.wires[0].outside = outer;
            }
        });
        net.run_for(milliseconds(500));
        assert_eq!(tuple_of(&mut net, Side::Server, ZERO).remote, outer, "{}", net.describe());
        for side in Side::BOTH {
            for (path, _, name) in &commands {
                let stats = net.end(side).connection().path_stats(*path).expect("the path is open");
                assert_eq!(stats.controller, *name, "{side:?}, {path}, at {outer}");
            }
        }
    }
    assert!(made.load(Ordering::Relaxed) > 2, "a new address has a new controller of the same factory");
}
