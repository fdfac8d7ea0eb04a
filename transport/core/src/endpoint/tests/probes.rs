//! Tests of the packets that are sent when nothing is acknowledged: probes, and the acknowledgements that must arrive
//! before others may be sent.

use super::event_log::{EventLog, Packet};
use super::network::{LastWithRoom, Network, transport};
use crate::PathId;
use crate::connection::{Event, Role, TransportConfig};
use crate::endpoint::ConnectionHandle;
use crate::stream::Direction;
use crate::wire::frame::Frame;
use crate::wire::level::Level;
use std::sync::Arc;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
const MILLISECOND: Duration = Duration::from_millis(1);

/// Both ends keep an event log; the client's first packet is on its way.
fn watched() -> (Network, ConnectionHandle, EventLog) {
    let event_log = EventLog::new();
    let mut network = Network::new(event_log.keep(transport()), event_log.keep(transport()));
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    (network, client, event_log)
}

fn write(network: &mut Network, client: ConnectionHandle, bytes: usize) {
    let id = network.client(client).open(Direction::Unidirectional).unwrap();
    assert_eq!(network.client(client).write(id, &vec![7; bytes]), Ok(bytes));
}

//= https://www.rfc-editor.org/rfc/rfc9002#section-6.2
//= type=test
//# A PTO timer expiration event does not indicate packet loss and MUST NOT cause prior unacknowledged packets
//# to be marked as lost
//= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.4
//= type=test
//# When a PTO timer expires, a sender MUST send at least one ack- eliciting packet in the packet number space
//# as a probe
//= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.4
//= type=test
//# All probe packets sent on a PTO MUST be ack-eliciting.
//= https://www.rfc-editor.org/rfc/rfc9002#section-7.5
//= type=test
//# Probe packets MUST NOT be blocked by the congestion controller
#[test]
fn every_probe_timeout_sends_probes_past_a_full_window_and_nothing_counts_as_lost() {
    let (mut network, client, event_log) = watched();
    network.run_for(RTT * 5);
    network.links[0].drop = Box::new(|_, _| true);
    write(&mut network, client, 500_000);
    network.run_for(RTT);
    let full = network.client(client).stats().paths[0].clone();
    assert!(
        full.in_flight + full.datagram_size > full.window && full.counters.probe_timeouts == 0,
        "{full:?}"
    );

    let before = event_log.sent(Role::Client).len();
    network.run_for(Duration::from_secs(10));
    let probes = event_log.sent(Role::Client)[before..].to_vec();
    // Two packets each time; between them liveness probes, one at a time.
    let times: Vec<&[Packet]> = probes.chunk_by(|one, next| one.at == next.at).collect();
    let timeouts = times.iter().filter(|probes| probes.len() == 2).count();
    let path = network.client(client).stats().paths[0].clone();
    assert!(timeouts > 3 && timeouts as u64 == path.counters.probe_timeouts, "{timeouts} {path:?}");
    assert!(times.iter().all(|probes| probes.len() <= 2));
    assert!(probes.iter().all(|probe| probe.level == Level::OneRtt && probe.is_ack_eliciting()));
    assert_eq!((path.counters.packets_lost, event_log.lost(Role::Client, Level::OneRtt)), (0, 0));
    assert!(path.in_flight > full.in_flight && path.window == full.window, "{path:?}");
}

#[test]
fn slow_start_goes_on_after_an_outage_from_a_smaller_window() {
    let (mut network, client, _diary) = watched();
    network.run_for(RTT * 5);
    let before = network.client(client).stats().paths[0].window;
    network.links[0].drop = Box::new(|_, _| true);
    write(&mut network, client, 500_000);
    network.run_for(Duration::from_secs(2));
    network.links[0].drop = Box::new(|_, _| false);
    let lost = |network: &mut Network| network.client(client).stats().paths[0].counters.packets_lost;
    let mut rounds = 0;
    while lost(&mut network) == 0 {
        network.run_for(MILLISECOND);
        rounds += 1;
        assert!(rounds < 1000, "it never came back");
    }
    let path = network.client(client).stats().paths[0].clone();
    assert!(path.window < before, "a loss is a loss");
    let (packets, bytes) = (path.counters.packets_lost, path.counters.bytes_lost);
    assert!(bytes > packets * 20 && bytes <= packets * 1_500, "{bytes} bytes in {packets} packets");
    // From two datagrams, for two seconds are persistent congestion.
    network.run_for(RTT * 8);
    let after = network.client(client).stats().paths[0].clone();
    assert!(after.window > before * 2, "{before} bytes before, {after:?}");
}

/// Returns the paths on which a server with two, whose policy acknowledges on the second, reports that `frame` arrived on the
/// first, and whether the packets that do elicit an acknowledgement.
fn reports(frame: &Frame) -> Vec<(PathId, bool)> {
    let event_log = EventLog::new();
    let config = event_log.keep(TransportConfig::new(Arc::new(|| Box::new(LastWithRoom))));
    let mut network = Network::new(transport(), config);
    let (first, second) = (network.link(RTT / 2), network.link(RTT / 2));
    let client = network.connect(first);
    network.run_for(RTT * 3);
    let now = network.now;
    network.client(client).open_path(second, now).unwrap();
    network.run_for(Duration::from_secs(2));

    let (now, before) = (network.now, event_log.sent(Role::Server).len());
    let mut payload = Vec::new();
    frame.put(&mut payload);
    assert!(network.server().inject(Level::OneRtt, &payload, now));
    // Nothing of what leaves has been answered by then.
    network.run_for(RTT - MILLISECOND);
    let of_first = |frame: &Frame| matches!(frame, Frame::Ack(ack) if ack.path == Some(PathId(0)));
    let reports =
        event_log.sent(Role::Server).split_off(before).into_iter().filter(|sent| sent.has(of_first));
    reports.map(|sent| (sent.path, sent.is_ack_eliciting())).collect()
}

#[test]
fn a_path_that_is_asked_answers_itself_and_not_only_where_the_policy_acknowledges() {
    // The path of the policy carried nothing for long: a PING goes with its acknowledgement.
    assert_eq!(reports(&Frame::Ping), [(PathId(1), true)]);
    // RFC 9000 §13.2.1: a second acknowledgement of one packet must elicit one itself.
    assert_eq!(reports(&Frame::ImmediateAck), [(PathId(0), true), (PathId(1), true)]);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-13.3
//= type=test
//# The HANDSHAKE_DONE frame MUST be retransmitted until it is acknowledged.
#[test]
fn the_end_of_the_handshake_is_said_until_it_was_heard() {
    let (mut network, client, event_log) = watched();
    // The server is done after one and a half round trips.
    network.run_for(RTT * 5 / 4);
    network.links[0].drop = Box::new(|_, _| true);
    let said = || {
        let done = |packet: &Packet| packet.has(|frame| *frame == Frame::HandshakeDone);
        event_log.sent(Role::Server).iter().filter(|packet| done(packet)).count()
    };
    network.run_for(RTT / 2);
    assert_eq!(said(), 1);
    network.run_for(RTT * 20);
    assert!(!network.client_events.contains(&(client, Event::Confirmed)));
    network.links[0].drop = Box::new(|_, _| false);
    network.run_for(Duration::from_secs(3));
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
    let heard = said();
    assert!(heard > 1, "{heard}");
    write(&mut network, client, 20_000);
    network.run_for(Duration::from_secs(3));
    assert_eq!(said(), heard);
}

//= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
//= type=test
//# An endpoint MUST NOT set its PTO timer for the Application Data packet number space until the handshake is
//# confirmed
#[test]
fn data_is_probed_once_the_handshake_is_confirmed_and_not_before() {
    let (mut network, client, event_log) = watched();
    network.run_for(RTT + MILLISECOND);
    assert!(network.client_events.contains(&(client, Event::Connected)));
    network.links[0].drop = Box::new(|_, _| true);
    write(&mut network, client, 500);
    network.run_for(MILLISECOND);
    let before = event_log.sent(Role::Client).len();
    assert!(event_log.sent(Role::Client).iter().any(|packet| packet.level == Level::OneRtt));
    network.run_for(Duration::from_secs(4));
    let probes = event_log.sent(Role::Client)[before..].to_vec();
    assert!(probes.len() > 3 && probes.iter().all(|probe| probe.level == Level::Handshake), "{probes:?}");

    network.links[0].drop = Box::new(|_, _| false);
    while !network.client_events.contains(&(client, Event::Confirmed)) {
        network.run_for(MILLISECOND);
    }
    network.links[0].drop = Box::new(|_, _| true);
    write(&mut network, client, 500);
    let before = event_log.sent(Role::Client).len();
    network.run_for(Duration::from_secs(4));
    let probes = event_log.sent(Role::Client)[before..].to_vec();
    assert!(probes.len() > 3 && probes.iter().all(|probe| probe.level == Level::OneRtt), "{probes:?}");
}
