//! Tests of the uses of paths beside carrying data: they are kept warm, marked, spun, seen under changing connection
//! IDs, and led to the server's preferred address.

use hvq_emulation::Direction as Way;
use hvq_scheduler::{PathId, Policy};
use hvq_tests::net::{Fate, Net, Side};
use hvq_tests::transfer::Transfer;
use hvq_transport::connection::{
    Dscp, Event, Multipath, PathCommandError, PathEvent, Preference, PreferredAddresses, Rotation, SpinBit,
    TransportConfig,
};
use hvq_transport::wire::frame::Status;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
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

fn two_wires(client: TransportConfig, server: TransportConfig) -> Net {
    let mut net = Net::new(client, server, 1);
    let first = net.wire(FAST);
    net.wire(SLOW);
    net.connect(first);
    net
}

fn two_paths(client: TransportConfig) -> Net {
    let mut net = two_wires(client, config());
    net.run_for(milliseconds(100));
    let (tuple, now) = (net.wires[1].tuple(), net.now);
    net.client.connection().open_path(tuple, now).expect("a second path is permitted");
    net.run_for(milliseconds(400));
    assert!(net.client.saw(&Event::Path(PathEvent::Validated(ONE))), "{}", net.describe());
    net
}

fn transfer(net: &mut Net, most: u64) {
    let mut transfer = Transfer::new(1, 2, most, Vec::new());
    for side in Side::BOTH {
        transfer.begin(side, net);
    }
    let until = net.now + milliseconds(60_000);
    let done = net.run(&mut transfer, until);
    assert!(done && transfer.failure.is_none(), "{}\n{}", transfer.describe(), net.describe());
}

#[test]
fn keep_alives_shorter_than_the_handshake_wait_for_its_end() {
    let config = config().set_path_keep_alive(Some(milliseconds(5))).clone();
    let mut net = Net::new(config.clone(), config, 1);
    let tuple = net.wire("rtt=300ms,rate=10mbit");
    net.connect(tuple);
    net.run_for(milliseconds(2_000));
    assert!(net.client.saw(&Event::Confirmed), "{}", net.describe());
}

#[test]
fn an_idle_backup_path_is_kept_warm_and_its_death_is_noticed() {
    let mut net = two_paths(config().set_path_keep_alive(Some(milliseconds(1_000))).clone());
    net.client.connection().set_path_status(ONE, Status::Backup).expect("the path is open");
    net.run_for(milliseconds(1_000));
    let before = net.wires[1].up.sent;
    net.run_for(milliseconds(60_000));
    let sent = net.wires[1].up.sent - before;
    assert!((50 * 25..70 * 80).contains(&sent), "a small packet a second, not {sent} bytes");
    net.tap = Some(Box::new(|wire, _, _| if wire == 1 { Fate::Drop } else { Fate::Pass }));
    net.run_for(milliseconds(3_000));
    assert!(net.client.saw(&Event::Path(PathEvent::Silent(ONE))), "{}", net.describe());
}

#[test]
fn a_path_that_is_pinged_is_asked_at_once_and_no_other() {
    let mut net = two_paths(config());
    net.run_for(milliseconds(5_000));
    let before = [net.wires[0].up.sent, net.wires[1].up.sent];
    let now = net.now;
    net.client.connection().ping_path(ONE, now).expect("the path is open");
    net.run_for(milliseconds(100));
    let sent = [net.wires[0].up.sent - before[0], net.wires[1].up.sent - before[1]];
    assert!(sent[0] == 0 && (20..100).contains(&sent[1]), "{sent:?}");
    assert_eq!(net.client.connection().ping_path(PathId(9), now), Err(PathCommandError::UnknownPath));
}

#[test]
fn only_the_path_that_is_asked_for_is_kept_warm() {
    let mut net = two_paths(config());
    net.run_for(milliseconds(1_000));
    net.client.connection().set_path_keep_alive(ONE, Some(milliseconds(500))).expect("the path is open");
    let before = [net.wires[0].up.sent, net.wires[1].up.sent];
    net.run_for(milliseconds(10_000));
    let sent = [net.wires[0].up.sent - before[0], net.wires[1].up.sent - before[1]];
    assert!(sent[0] < 300 && sent[1] >= 18 * 25, "{sent:?}");
    let none = net.client.connection().set_path_keep_alive(PathId(9), None);
    assert_eq!(none, Err(PathCommandError::UnknownPath));
}

/// The connection IDs that the client shows on wire 0.
fn watch(net: &mut Net) -> Rc<RefCell<BTreeSet<Vec<u8>>>> {
    let seen = Rc::new(RefCell::new(BTreeSet::new()));
    let sink = seen.clone();
    net.tap = Some(Box::new(move |wire, way, bytes| {
        if wire == 0 && way == Way::Up && bytes[0] & 0x80 == 0 {
            sink.borrow_mut().insert(bytes[1..9].to_vec());
        }
        Fate::Pass
    }));
    seen
}

#[test]
fn a_path_changes_its_connection_id_on_command_and_gets_new_ones_for_it() {
    let mut net = two_paths(config());
    let seen = watch(&mut net);
    for round in 0..20 {
        let now = net.now;
        assert_eq!(net.client.connection().rotate_connection_id(ZERO, now), Ok(()), "round {round}");
        net.run_for(milliseconds(200));
    }
    transfer(&mut net, 100_000);
    assert!(seen.borrow().len() >= 20, "{}", seen.borrow().len());
    // D12: when they are out, it says so, and nothing ends.
    let now = net.now;
    let results: Vec<_> = (0..5).map(|_| net.client.connection().rotate_connection_id(ZERO, now)).collect();
    assert_eq!(results[4], Err(PathCommandError::NoConnectionId));
    net.run_for(milliseconds(500));
    let now = net.now;
    assert_eq!(net.client.connection().rotate_connection_id(ZERO, now), Ok(()));
}

#[test]
fn the_peer_shows_other_connection_ids_when_it_is_asked_to() {
    // RFC 9000 §5.1.2.
    let mut net = two_paths(config());
    let seen = watch(&mut net);
    for round in 0..10 {
        assert_eq!(net.server.connection().retire_connection_ids(ZERO), Ok(()), "round {round}");
        net.run_for(milliseconds(200));
        assert!(seen.borrow().len() > round, "{} in round {round}", seen.borrow().len());
    }
    assert_eq!(net.server.connection().retire_connection_ids(PathId(9)), Err(PathCommandError::UnknownPath));
}

#[test]
fn a_path_changes_its_connection_id_by_itself_as_often_as_configured() {
    for (rotation, least) in [
        (Rotation { packets: Some(100), ..Rotation::default() }, 5),
        (Rotation { time: Some(milliseconds(50)), ..Rotation::default() }, 5),
        (Rotation::default(), 1),
    ] {
        let mut net = two_wires(single().set_rotation(rotation).clone(), single());
        net.run_for(milliseconds(100));
        let seen = watch(&mut net);
        transfer(&mut net, 1_000_000);
        let count = seen.borrow().len();
        assert!(count >= least && (least > 1 || count == 1), "{rotation:?}: {count}");
    }
}

#[test]
fn changes_of_connection_ids_end_with_the_data_that_they_are_for() {
    // Attack C10: what a change costs must not bring about the next, between two ends that both change often.
    let rotation = Rotation { packets: Some(5), time: Some(milliseconds(50)), ..Rotation::default() };
    let config =
        || TransportConfig::new(Arc::new(|| Policy::Redundant.scheduler())).set_rotation(rotation).clone();
    let mut net = two_wires(config(), config());
    net.run_for(milliseconds(100));
    let (tuple, now) = (net.wires[1].tuple(), net.now);
    net.client.connection().open_path(tuple, now).expect("a second path is permitted");
    transfer(&mut net, 100_000);
    net.run_for(milliseconds(2_000));
    let sent = |net: &Net| net.wires.iter().map(|wire| wire.up.sent + wire.down.sent).sum::<u64>();
    let before = sent(&net);
    net.run_for(milliseconds(10_000));
    assert_eq!(sent(&net), before, "{}", net.describe());
}

/// A server that prefers to be reached over a third wire, from the same address of the client.
fn preferring(preference: Preference) -> Net {
    let preferred = SocketAddr::from(([10, 0, 7, 7], 4433));
    let SocketAddr::V4(ipv4) = preferred else { unreachable!("an IPv4 address") };
    let addresses = PreferredAddresses { ipv4: Some(ipv4), ipv6: None };
    let server = config().set_preferred_addresses(addresses).clone();
    let mut net = two_wires(config().set_preference(preference).clone(), server);
    net.wire(FAST);
    let client = net.wires[0].client;
    (net.wires[2].client, net.wires[2].outside, net.wires[2].server) = (client, client, preferred);
    net
}

fn remote(net: &mut Net) -> SocketAddr {
    net.client.connection().path_stats(ZERO).expect("the path is open").tuple.remote
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-9.6.2
//= type=test
//# A client that migrates to a preferred address MUST validate the address it chooses before migrating; see
//# Section 21.5.3.
//= https://www.rfc-editor.org/rfc/rfc9000#section-9.6.2
//= type=test
//# The server MUST send non- probing packets from its original address until it receives a non- probing
//# packet from the client at its preferred address and until the server has validated the new path.
//= https://www.rfc-editor.org/rfc/rfc9000#section-9.6.2
//= type=test
//# The server MUST probe on the path toward the client from its preferred address
//= https://www.rfc-editor.org/rfc/rfc9000#section-9.6.3
//= type=test
//# If path validation of the server's preferred address succeeds, the client MUST abandon validation of the
//# original address and migrate to using the server's preferred address
#[test]
fn a_client_moves_to_the_preferred_address_of_the_server() {
    let mut net = preferring(Preference::Followed);
    net.run_for(milliseconds(500));
    let preferred = net.wires[2].server;
    assert_eq!(remote(&mut net), preferred, "{}", net.describe());
    transfer(&mut net, 500_000);
    assert_eq!(net.server.connection().path_stats(ZERO).unwrap().tuple.local, preferred);
    assert!(net.wires[2].down.sent > 300_000);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-9.6.1
//= type=test
//# If path validation fails, the client MUST continue sending all future packets to the server's original IP
//# address.
//= https://www.rfc-editor.org/rfc/rfc9000#section-9.6.2
//= type=test
//# A client that migrates to a preferred address MUST validate the address it chooses before migrating; see
//# Section 21.5.3.
//= https://www.rfc-editor.org/rfc/rfc9000#section-21.5.3
//= type=test
//# A client MUST NOT send non-probing frames to a preferred address prior to validating that address; see
//# Section 8
#[test]
fn a_client_stays_if_the_preferred_address_does_not_answer_or_it_does_not_care() {
    let mut net = preferring(Preference::Followed);
    net.tap = Some(Box::new(|wire, _, _| if wire == 2 { Fate::Drop } else { Fate::Pass }));
    net.run_for(milliseconds(10_000));
    let first = net.wires[0].server;
    assert_eq!(remote(&mut net), first);
    transfer(&mut net, 100_000);
    let mut net = preferring(Preference::Ignored);
    net.run_for(milliseconds(500));
    assert_eq!((remote(&mut net), net.wires[2].up.sent), (net.wires[0].server, 0));
    transfer(&mut net, 100_000);
}

/// Returns the number of turns of the spin bit in the server's packets.
fn turns(client: TransportConfig, server: TransportConfig) -> usize {
    let mut net = two_wires(client, server);
    net.run_for(milliseconds(100));
    let bits = Rc::new(RefCell::new(Vec::new()));
    let sink = bits.clone();
    net.tap = Some(Box::new(move |_, way, bytes| {
        if way == Way::Down && bytes[0] & 0x80 == 0 {
            sink.borrow_mut().push(bytes[0] & 0x20);
        }
        Fate::Pass
    }));
    transfer(&mut net, 1_000_000);
    let bits = bits.borrow();
    bits.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[test]
fn the_spin_bit_turns_about_once_a_round_trip_unless_one_end_does_not_want_it() {
    let quiet = || single().set_spin_bit(SpinBit::Never).clone();
    let spinning = turns(single(), single());
    assert!((10..150).contains(&spinning), "{spinning}");
    assert_eq!(turns(single(), quiet()), 0);
    // The server reflects the bit of a client that does not turn it.
    assert_eq!(turns(quiet(), single()), 0);
}

#[test]
fn each_path_is_marked_with_its_own_codepoint() {
    let mut server = config();
    let mut net = Net::new(config(), config(), 1);
    let listening = net.wire(FAST).remote;
    server.set_codepoints(vec![(listening, Dscp::EXPEDITED)]);
    let mut net = two_wires(config(), server);
    net.run_for(milliseconds(100));
    let (tuple, now) = (net.wires[1].tuple(), net.now);
    let path = net.client.connection().open_path(tuple, now).expect("a second path is permitted");
    let low = Dscp::new(10).expect("six bits");
    net.client.connection().set_dscp(path, low).expect("the path is open");
    transfer(&mut net, 100_000);
    let [first, second] = [0, 1].map(|wire: usize| &net.wires[wire]);
    assert_eq!((first.up.dscp, first.down.dscp), (Dscp::DEFAULT, Dscp::EXPEDITED));
    assert_eq!((second.up.dscp, second.down.dscp), (low, Dscp::DEFAULT));
}
