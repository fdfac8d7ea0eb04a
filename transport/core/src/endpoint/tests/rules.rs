//! Rules of RFC 9000 and RFC 10069 that nothing else shows: what an endpoint does with a peer that breaks or strains them.

use super::network::{Network, address, transport};
use crate::PathId;
use crate::connection::{Connection, Datagram, Ecn, Event, PathEvent};
use crate::crypto::keys::Suite;
use crate::crypto::protect::SealKey;
use crate::crypto::reset::ResetKey;
use crate::crypto::session::{ClientTls, Verify};
use crate::endpoint::{ConnectError, ConnectionHandle, Endpoint, EndpointConfig};
use crate::error::{ConnectionError, ErrorCode};
use crate::stream::Direction;
use crate::wire::connection_id::ConnectionId;
use crate::wire::header::{KeyPhase, ShortHeader};
use crate::wire::level::Level;
use bytes::BytesMut;
use std::sync::mpsc;
use std::time::Duration;

mod opening;
mod window;

const RTT: Duration = Duration::from_millis(20);
const PING: &[u8] = &[1];
const CLOSE: &[u8] = &[0x1c, 0, 0, 0];

fn connected() -> (Network, ConnectionHandle) {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 5);
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
    (network, client)
}

/// Has `bytes` arrive at the client from `from`.
fn arrive(network: &mut Network, from: std::net::SocketAddr, bytes: &[u8]) {
    let local = network.links[0].client;
    let datagram = Datagram { local, remote: from, ecn: Ecn::NotEct, bytes: BytesMut::from(bytes) };
    network.client.handle(datagram, network.now);
}

fn sent(connection: &Connection, path: u32, kind: &str) -> u64 {
    let frames = connection.stats().frames;
    let counter = frames.iter().find(|counter| counter.path == PathId(path) && counter.kind == kind);
    counter.map_or(0, |counter| counter.sent)
}

/// The code with which the server closed.
fn closed_with(network: &mut Network) -> Option<ErrorCode> {
    network.run_for(Duration::ZERO);
    network.server_events.iter().find_map(|(_, event)| match event {
        Event::Closed(ConnectionError::Transport(error)) => Some(error.code),
        _ => None,
    })
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
//= type=test
//# An endpoint MUST expand datagrams that contain a PATH_CHALLENGE frame to at least the smallest allowed
//# maximum datagram size of 1200 bytes
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
//= type=test
//# An endpoint MUST expand datagrams that contain a PATH_RESPONSE frame to at least the smallest allowed
//# maximum datagram size of 1200 bytes
//= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
//= type=test
//# Each endpoint MUST also validate that a minimum QUIC packet MTU of 1200 bytes is supported on the path
#[test]
fn challenges_and_responses_fill_the_smallest_datagram() {
    let mut config = transport();
    config.opening_datagrams = 0;
    let mut network = Network::new(config, transport());
    let (first, second) = (network.link(RTT / 2), network.link(RTT / 2));
    let client = network.connect(first);
    network.run_for(RTT * 5);
    let sizes = network.record(1);
    let now = network.now;
    network.client(client).open_path(second, now).unwrap();
    network.run_for(RTT * 5);
    let sizes: Vec<_> = sizes.borrow().iter().map(Vec::len).collect();
    // The challenge, the response with a challenge, and the response to that.
    assert_eq!(sizes[..3], [1200; 3], "{sizes:?}");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
//= type=test
//# Unlike other cases where datagrams are expanded, endpoints MUST NOT discard datagrams that appear to be
//# too small when they contain PATH_CHALLENGE or PATH_RESPONSE.
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
//= type=test
//# An endpoint MUST NOT delay transmission of a packet containing a PATH_RESPONSE frame unless constrained by
//# congestion control.
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.17
//= type=test
//# The recipient of this frame MUST generate a PATH_RESPONSE frame (Section 19.18) containing the same Data
//# value.
#[test]
fn a_challenge_in_a_small_datagram_is_answered_once_and_at_once() {
    let (mut network, _) = connected();
    let now = network.now;
    let frame = [&[0x1a][..], &[7; 8]].concat();
    assert!(network.server().inject(Level::OneRtt, &frame, now), "it is not dropped for its size");
    network.run_for(Duration::ZERO);
    assert_eq!(sent(network.server(), 0, "path_response"), 1);
    network.run_for(RTT * 20);
    assert_eq!(sent(network.server(), 0, "path_response"), 1);
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
//= type=test
//# After receiving packets from the client on a new path, if the server decides to use the new path, the
//# server MUST validate the peer's address before sending any data as described in
#[test]
fn a_server_sends_no_data_on_a_path_before_it_is_validated() {
    let mut network = Network::new(transport(), transport());
    let (first, second) = (network.link(RTT / 2), network.link(RTT / 2));
    let client = network.connect(first);
    network.run_for(RTT * 5);
    let now = network.now;
    network.client(client).open_path(second, now).unwrap();
    network.run_for(RTT / 2);
    // The server hears of the path, and nothing more.
    network.links[1].drop = Box::new(|_, _| true);
    let opened = Event::Path(PathEvent::Opened(PathId(1)));
    assert!(network.server_events.iter().any(|(_, event)| *event == opened));
    let id = network.server().open(Direction::Unidirectional).unwrap();
    assert_eq!(network.server().write(id, &[1; 500_000]), Ok(500_000));
    network.run_for(RTT * 10);
    assert!(sent(network.server(), 0, "stream") > 100);
    assert!(sent(network.server(), 1, "path_challenge") > 0);
    assert_eq!(sent(network.server(), 1, "stream"), 0);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-9
//= type=test
//# If a client receives packets from an unknown server address, the client MUST discard these packets.
#[test]
fn a_client_drops_what_comes_from_another_address() {
    let (mut network, client) = connected();
    let sent = network.record(0);
    let dropped = sent.clone();
    network.links[0].drop = Box::new(move |_, bytes| {
        dropped.borrow_mut().push(bytes.to_vec());
        true
    });
    let id = network.server().open(Direction::Unidirectional).unwrap();
    assert_eq!(network.server().write(id, b"hello"), Ok(5));
    network.run_for(Duration::ZERO);
    let bytes = sent.borrow()[0].clone();
    arrive(&mut network, address(9999), &bytes);
    assert_eq!(network.client(client).accept(Direction::Unidirectional), None);
    let server = network.links[0].server;
    arrive(&mut network, server, &bytes);
    assert_eq!(network.client(client).accept(Direction::Unidirectional), Some(id));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-10.1
//= type=test
//# To avoid excessively small idle timeout periods, endpoints MUST increase the idle timeout period to be at
//# least three times the current Probe Timeout (PTO)
#[test]
fn the_idle_timeout_is_never_shorter_than_three_probe_timeouts() {
    let mut config = transport();
    config.idle_timeout = Duration::from_millis(1);
    let mut network = Network::new(config, transport());
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 3);
    assert!(network.client(client).lifecycle().is_open(), "one millisecond ends nothing");
    network.run_for(Duration::from_secs(2));
    assert!(network.client_events.contains(&(client, Event::Closed(ConnectionError::IdleTimeout))));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.2
//= type=test
//# While otherwise identical to the closing state, an endpoint in the draining state MUST NOT send any
//# packets
//= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.2
//= type=test
//# An endpoint MUST NOT send further packets
#[test]
fn a_connection_that_the_peer_closed_says_nothing_more() {
    let (mut network, client) = connected();
    let sent = network.record(0);
    let now = network.now;
    network.client(client).close(7, b"done", now);
    network.run_for(RTT / 2);
    let close = sent.borrow().last().cloned().unwrap();
    assert!(!network.server().lifecycle().is_open());
    sent.borrow_mut().clear();
    let from = network.links[0].client;
    for _ in 0..10 {
        network.forge(from, &close);
    }
    network.run_for(RTT);
    assert!(sent.borrow().is_empty(), "{} datagrams", sent.borrow().len());
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-12.4
//= type=test
//# The payload of a packet that contains frames MUST contain at least one frame, and MAY contain multiple
//# frames and multiple frame types
//= https://www.rfc-editor.org/rfc/rfc9000#section-12.4
//= type=test
//# An endpoint MUST treat receipt of a packet containing no frames as a connection error of type
//# PROTOCOL_VIOLATION
#[test]
fn a_packet_without_frames_closes_the_connection() {
    let (mut network, _) = connected();
    let now = network.now;
    network.server().inject(Level::OneRtt, &[], now);
    assert_eq!(closed_with(&mut network), Some(ErrorCode::PROTOCOL_VIOLATION));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-13.1
//= type=test
//# A packet MUST NOT be acknowledged until packet protection has been successfully removed and all frames
//# contained in the packet have been processed
//= https://www.rfc-editor.org/rfc/rfc9000#section-5.2
//= type=test
//# An endpoint MUST generate a connection error if processing the contents of these packets prior to
//# discovering an error, or fully revert any changes made during that processing.
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.20
//= type=test
//# A server MUST treat receipt of a HANDSHAKE_DONE frame as a connection error of type PROTOCOL_VIOLATION.
#[test]
fn a_packet_that_breaks_a_rule_closes_and_is_not_acknowledged() {
    let (mut network, client) = connected();
    network.run_for(Duration::from_secs(1));
    let is_acknowledged = |network: &mut Network, payload: &[u8]| {
        let now = network.now;
        network.client(client).force_payload(PathId::ZERO, payload, now);
        let number = network.client(client).last_unacknowledged().expect("it is in flight");
        network.run_for(RTT * 3);
        network.client(client).last_unacknowledged() != Some(number)
    };
    assert!(is_acknowledged(&mut network, PING));
    // HANDSHAKE_DONE, which only servers send.
    assert!(!is_acknowledged(&mut network, &[1, 0x1e]));
    assert_eq!(closed_with(&mut network), Some(ErrorCode::PROTOCOL_VIOLATION));
    let told = |event: &Event| matches!(event, Event::Closed(ConnectionError::PeerTransport(_)));
    assert!(network.client_events.iter().any(|(_, event)| told(event)), "the answer came");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.7
//= type=test
//# Clients MUST NOT send NEW_TOKEN frames
//= https://www.rfc-editor.org/rfc/rfc9000#section-19.7
//= type=test
//# A server MUST treat receipt of a NEW_TOKEN frame as a connection error of type PROTOCOL_VIOLATION.
#[test]
fn tokens_from_a_client_close_the_connection() {
    let (mut network, _) = connected();
    let now = network.now;
    network.server().inject(Level::OneRtt, &[7, 1, 9], now);
    assert_eq!(closed_with(&mut network), Some(ErrorCode::PROTOCOL_VIOLATION));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-19.16
//= type=test
//# The sequence number specified in a RETIRE_CONNECTION_ID frame MUST NOT refer to the Destination Connection
//# ID field of the packet in which the frame is contained
#[test]
fn a_short_packet_that_retires_its_own_connection_id_closes_the_connection() {
    let (mut network, _) = connected();
    let now = network.now;
    network.server().inject(Level::OneRtt, &[0x19, 0], now);
    assert_eq!(closed_with(&mut network), Some(ErrorCode::PROTOCOL_VIOLATION));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-13.3
//= type=test
//# A receiver MUST accept packets containing an outdated frame, such as a MAX_DATA frame carrying a smaller
//# maximum data value than one found in an older packet.
#[test]
fn an_outdated_frame_is_acknowledged_and_changes_nothing() {
    let (mut network, _) = connected();
    let now = network.now;
    // MAX_DATA 0, MAX_STREAMS 0, and a PATH_RESPONSE that nobody asked for.
    for frames in [&[0x10, 0][..], &[0x12, 0], &[0x1b, 1, 2, 3, 4, 5, 6, 7, 8]] {
        assert!(network.server().inject(Level::OneRtt, frames, now), "{frames:?}");
    }
    assert_eq!(closed_with(&mut network), None);
    assert!(network.server().open(Direction::Unidirectional).is_some());
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-2.3
//= type=test
//# Endpoints MUST still process ACK frames that acknowledge 0-RTT packets or 1-RTT packets
#[test]
fn an_ack_frame_without_a_path_acknowledges_path_zero_of_a_multipath_connection() {
    let (mut network, client) = connected();
    assert!(network.client(client).is_multipath());
    network.links[0].drop = Box::new(|_, _| true);
    let id = network.client(client).open(Direction::Unidirectional).unwrap();
    assert_eq!(network.client(client).write(id, b"hello"), Ok(5));
    network.run_for(Duration::ZERO);
    let before = network.client(client).stats().paths[0].counters.packets_acknowledged;
    let number = network.client(client).last_unacknowledged().expect("the data is in flight");
    let now = network.now;
    let frame = [2, 0x40 | (number >> 8) as u8, number as u8, 0, 0, 0];
    assert!(network.client(client).inject(Level::OneRtt, &frame, now));
    assert_eq!(network.client(client).stats().paths[0].counters.packets_acknowledged, before + 1);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-5.1
//= type=test
//# An endpoint MUST NOT use the same IP address and port for multiple concurrent connections with zero-length
//# connection IDs, unless it is certain that those protocol features are not in use.
//= https://www.rfc-editor.org/rfc/rfc10069#section-2.1
//= type=test
//# When advertising the initial_max_path_id transport parameter, endpoints MUST use Source and Destination
//# Connection IDs with non-zero lengths
#[test]
fn without_connection_ids_there_is_one_connection_and_no_multipath() {
    let mut network = Network::new(transport(), transport());
    let config = EndpointConfig { id_length: 0, ..EndpointConfig::default() };
    network.client = Endpoint::new(config, None, [1; 32]);
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 5);
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
    let announced = |connection: &Connection| connection.peer_parameters().unwrap().initial_max_path_id;
    assert_eq!(announced(network.server()), None);
    assert_eq!(announced(network.client(client)), None, "nor does a server whose client has none");
    let again = network.client.connect(&network.client_config, tuple, "server.test", network.now);
    assert!(matches!(again, Err(ConnectError::TooManyConnections)));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-10.3
//= type=test
//# However, endpoints MUST treat any packet ending in a valid stateless reset token as a Stateless Reset, as
//# other QUIC versions might allow the use of a long header.
#[test]
fn a_reset_in_a_long_header_packet_ends_the_connection_too() {
    let mut network = Network::new(transport(), transport());
    let key = ResetKey::new(&[5; 32]);
    network.restart_server(EndpointConfig { reset_key: Some(key.clone()), ..EndpointConfig::default() });
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 5);
    let sent = network.record(0);
    let id = network.client(client).open(Direction::Unidirectional).unwrap();
    assert_eq!(network.client(client).write(id, b"hello"), Ok(5));
    network.run_for(Duration::ZERO);
    let destination = ConnectionId::new(&sent.borrow()[0][1..9]).unwrap();
    let mut bytes = vec![0xca; 60];
    let server = network.links[0].server;
    arrive(&mut network, server, &bytes);
    assert!(network.client(client).lifecycle().is_open());
    bytes[44..].copy_from_slice(&key.token(&destination).0);
    arrive(&mut network, server, &bytes);
    network.run_for(Duration::ZERO);
    assert!(network.client_events.contains(&(client, Event::Closed(ConnectionError::StatelessReset))));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-17.3.1
//= type=test
//# An endpoint MUST treat receipt of a packet that has a non-zero value for these bits, after removing both
//# packet and header protection, as a connection error of type PROTOCOL_VIOLATION
#[test]
fn reserved_bits_of_a_short_header_close_the_connection() {
    let mut network = Network::new(transport(), transport());
    let (log, secrets) = mpsc::channel();
    let tls = ClientTls::builder().alpn(["hvq"]).verify(Verify::Insecure).keylog(Box::new(move |line| {
        if let Some(rest) = line.strip_prefix("CLIENT_TRAFFIC_SECRET_0 ") {
            log.send(crate::crypto::vectors::hex(rest.split(' ').next_back().unwrap())).unwrap();
        }
    }));
    network.client_config.tls = tls.build().unwrap();
    let tuple = network.link(RTT / 2);
    let sent = network.record(0);
    network.connect(tuple);
    network.run_for(RTT * 5);
    let secret = secrets.try_recv().expect("the secret is logged");
    let short = |bytes: &&Vec<u8>| bytes[0] & 0x80 == 0;
    let ids: Vec<_> =
        sent.borrow().iter().filter(short).filter_map(|bytes| ConnectionId::new(&bytes[1..9])).collect();
    let known = |id: &&ConnectionId| network.server.router.find(id).is_some();
    let destination = *ids.iter().find(known).expect("the client has sent short packets");
    let header = ShortHeader { destination, key_phase: KeyPhase::Zero, spin: false };
    for suite in [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305] {
        if suite.secret_length() == secret.len() {
            let mut bytes = Vec::new();
            let layout = header.put(&mut bytes, 1000, 4);
            bytes[0] |= 0x18;
            bytes.extend_from_slice(PING);
            SealKey::new(suite, &secret).seal(&mut bytes, 0, &layout, PathId::ZERO, 1000);
            network.forge(tuple.local, &bytes);
        }
    }
    assert_eq!(closed_with(&mut network), Some(ErrorCode::PROTOCOL_VIOLATION));
}
