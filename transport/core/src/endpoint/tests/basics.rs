//! Handshake, streams, datagrams and the end of a connection on one path.

use super::network::{Network, transport};
use crate::connection::Event;
use crate::error::ConnectionError;
use crate::stream::{Direction, ReadOutcome, StreamId};
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);

pub(super) fn read_all(network: &mut Network, id: StreamId) -> Vec<u8> {
    network.server().accept(id.direction());
    let mut all = Vec::new();
    while let Ok(ReadOutcome::Data(data)) = network.server().read(id, usize::MAX) {
        all.extend_from_slice(&data);
    }
    all
}

#[test]
fn a_handshake_takes_one_round_trip_and_is_confirmed_in_two() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT + Duration::from_millis(1));
    assert!(network.client_events.contains(&(client, Event::Connected)));
    network.run_for(RTT);
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
    assert!(network.server_events.iter().any(|(_, event)| *event == Event::Connected));
    assert_eq!(network.client(client).alpn().as_deref(), Some(&b"hvq"[..]));
    assert_eq!(network.server().server_name().as_deref(), Some("server.test"));
}

#[test]
fn a_megabyte_arrives_whole() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 3);
    let id = network.client(client).open(Direction::Unidirectional).unwrap();
    let data: Vec<u8> = (0..1_000_000_u32).map(|i| (i * 7 / 3) as u8).collect();
    let (mut sent, mut received) = (0, Vec::new());
    for _ in 0..100 {
        while sent < data.len() {
            match network.client(client).write(id, &data[sent..]) {
                Ok(count) => sent += count,
                Err(_) => break,
            }
        }
        if sent == data.len() {
            let _ = network.client(client).finish(id);
        }
        network.run_for(RTT);
        received.extend(read_all(&mut network, id));
        if received.len() == data.len() {
            break;
        }
    }
    assert!(received == data, "{} of {} bytes", received.len(), data.len());
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.2
//= type=test
//# While otherwise identical to the closing state, an endpoint in the draining state MUST NOT send any
//# packets
//= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.3
//= type=test
//# After the handshake is confirmed (see Section 4.1.2 of [QUIC-TLS]), an endpoint MUST send any
//# CONNECTION_CLOSE frames in a 1-RTT packet
#[test]
fn a_close_reaches_the_peer_and_both_sides_forget() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 3);
    let now = network.now;
    network.client(client).close(77, b"done", now);
    network.run_for(RTT);
    let closed = ConnectionError::PeerApplication { code: 77, reason: "done".into() };
    assert!(network.server_events.iter().any(|(_, event)| *event == Event::Closed(closed.clone())));
    network.run_for(Duration::from_secs(5));
    assert_eq!((network.client.handles().count(), network.server.handles().count()), (0, 0));
}

#[test]
fn a_close_before_the_handshake_is_confirmed_is_one_small_datagram() {
    // RFC 9000 §10.2.3: in a Handshake packet and in a 1-RTT packet, for the peer may not have the keys of the latter.
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT + RTT / 4);
    assert!(network.client_events.contains(&(client, Event::Connected)));
    let sent = network.record(0);
    let now = network.now;
    network.client(client).close(77, b"done", now);
    network.run_for(RTT / 8);
    let sizes: Vec<usize> = sent.borrow().iter().map(Vec::len).collect();
    assert!(sizes.len() == 1 && sizes[0] < 200, "{sizes:?}");
    network.run_for(RTT);
    assert!(network.server_events.iter().any(|(_, event)| matches!(event, Event::Closed(_))));
}

#[test]
fn an_idle_connection_ends_on_both_sides() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    network.connect(tuple);
    network.run_for(Duration::from_secs(40));
    let idle =
        |events: &[(_, Event)]| events.iter().any(|(_, e)| *e == Event::Closed(ConnectionError::IdleTimeout));
    assert!(idle(&network.client_events) && idle(&network.server_events));
    assert_eq!((network.client.handles().count(), network.server.handles().count()), (0, 0));
}

#[test]
fn a_handshake_with_nobody_times_out() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    network.links[0].drop = Box::new(|_, _| true);
    let client = network.connect(tuple);
    network.run_for(Duration::from_secs(20));
    assert!(network.client_events.contains(&(client, Event::Closed(ConnectionError::HandshakeTimeout))));
}
