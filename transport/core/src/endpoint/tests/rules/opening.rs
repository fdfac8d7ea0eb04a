//! The rules of the first packets, which anybody can seal (RFC 9001 §5.2).

use super::{CLOSE, PING, RTT, arrive, closed_with};
use crate::PathId;
use crate::connection::{Event, FourTuple, MigrateError, Moving, Multipath, Role};
use crate::crypto::initial::initial_keys;
use crate::crypto::retry::integrity_tag;
use crate::endpoint::tests::network::{Network, transport};
use crate::endpoint::{ConnectionHandle, EndpointConfig};
use crate::error::{ConnectionError, ErrorCode};
use crate::wire::connection_id::ConnectionId;
use crate::wire::frame::{Frame, FrameReader};
use crate::wire::grease::QuicBit;
use crate::wire::header::{
    Incoming, LongHeader, LongKind, PacketKind, next_packet, patch_length, put_retry_without_tag,
};
use crate::wire::packet_number;
use crate::wire::version::Version;
use bytes::BytesMut;
use std::time::Duration;

const TAG: usize = 16;

/// Starts a client; returns its connection, and the destination and source of its first packet.
fn begun(network: &mut Network) -> (ConnectionHandle, ConnectionId, ConnectionId) {
    let sent = network.record(0);
    let tuple = FourTuple { local: network.links[0].client, remote: network.links[0].server };
    let client = network.connect(tuple);
    network.run_for(Duration::ZERO);
    let first = sent.borrow()[0].clone();
    let (destination, rest) = first[6..].split_at(usize::from(first[5]));
    let source = &rest[1..1 + usize::from(rest[0])];
    (client, ConnectionId::new(destination).unwrap(), ConnectionId::new(source).unwrap())
}

/// An Initial packet of `role` in a connection that began with `original` as destination.
fn initial(
    role: Role,
    original: ConnectionId,
    ids: [ConnectionId; 2],
    number: u64,
    frames: &[u8],
) -> Vec<u8> {
    let [destination, source] = ids;
    let version = Version::V1;
    let header = LongHeader { kind: LongKind::Initial, version, destination, source, token: &[] };
    sealed(role, original, &header, 0, (number, frames))
}

/// The same with this header and more bits in its first byte.
fn sealed(
    role: Role,
    original: ConnectionId,
    header: &LongHeader<'_>,
    bits: u8,
    rest: (u64, &[u8]),
) -> Vec<u8> {
    let (number, frames) = rest;
    let mut bytes = Vec::new();
    let layout = header.put(&mut bytes, number, 4);
    bytes.extend_from_slice(frames);
    bytes.resize(1200 - TAG, 0);
    bytes[0] |= bits;
    patch_length(&mut bytes, &layout, 0, TAG);
    let (seal, _) = initial_keys(Version::V1, &original, role);
    seal.seal(&mut bytes, 0, &layout, PathId::ZERO, number);
    bytes
}

/// The frames of the Initial packet at the start of `datagram`, which a server sent, and whether it has a token.
fn opened(original: ConnectionId, datagram: &[u8]) -> Option<(Vec<Frame>, bool)> {
    let (_, open) = initial_keys(Version::V1, &original, Role::Client);
    let Ok(Incoming::Protected(mut packet)) = next_packet(&mut BytesMut::from(datagram), 8, QuicBit::Free)
    else {
        return None;
    };
    let offset = packet.number_offset;
    let header = open.unprotect(&mut packet.bytes, offset).ok()?;
    let number = packet_number::expand(header.truncated, header.number_length, None);
    let payload = open.open(packet.bytes, offset + header.number_length, PathId::ZERO, number).ok()?;
    let has_token = matches!(&packet.kind, PacketKind::Initial { token } if !token.is_empty());
    Some((FrameReader::new(payload).map_while(Result::ok).collect(), has_token))
}

/// A Retry packet from `source` to `destination`, in a connection that began with `original` as destination.
fn retry(original: ConnectionId, destination: ConnectionId, source: ConnectionId) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_retry_without_tag(&mut bytes, Version::V1, &destination, &source, b"token");
    let tag = integrity_tag(Version::V1, &original, &bytes);
    bytes.extend_from_slice(&tag);
    bytes
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
//= type=test
//# Once a client has received a valid Initial packet from the server, it MUST discard any subsequent packet
//# it receives on that connection with a different Source Connection ID.
//= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
//= type=test
//# A client MUST change the Destination Connection ID it uses for sending packets in response to only the
//# first received Initial or Retry packet
//= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
//= type=test
//# if subsequent Initial packets include a different Source Connection ID, they MUST be discarded
#[test]
fn a_client_drops_packets_of_another_source_than_the_first() {
    let mut network = Network::new(transport(), transport());
    network.link(RTT / 2);
    let (client, original, id) = begun(&mut network);
    let [first, other] = [[1; 8], [2; 8]].map(|bytes| ConnectionId::new(&bytes).unwrap());
    let server = network.links[0].server;
    arrive(&mut network, server, &initial(Role::Server, original, [id, first], 0, PING));
    assert!(network.client(client).has_authenticated());
    arrive(&mut network, server, &initial(Role::Server, original, [id, other], 1, CLOSE));
    assert!(network.client(client).lifecycle().is_open(), "another source");
    arrive(&mut network, server, &initial(Role::Server, original, [id, first], 2, CLOSE));
    assert!(!network.client(client).lifecycle().is_open(), "the source of the first packet");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
//= type=test
//# if subsequent Initial packets include a different Source Connection ID, they MUST be discarded
#[test]
fn a_server_drops_initial_packets_of_another_source_than_the_first() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let (_, original, id) = begun(&mut network);
    network.run_for(RTT / 2);
    let other = ConnectionId::new(&[2; 8]).unwrap();
    for (number, source, is_open) in [(8, other, true), (9, id, false)] {
        network.forge(tuple.local, &initial(Role::Client, original, [original, source], number, CLOSE));
        assert_eq!(network.server().lifecycle().is_open(), is_open);
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1
//= type=test
//# To prevent this deadlock, clients MUST send a packet on a Probe Timeout (PTO); see Section 6.2 of
//# [QUIC-RECOVERY]
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1
//= type=test
//# Specifically, the client MUST send an Initial packet in a UDP datagram that contains at least 1200 bytes
//# if it does not have Handshake keys, and otherwise send a Handshake packet.
//= https://www.rfc-editor.org/rfc/rfc9000#section-14.1
//= type=test
//# A client MUST expand the payload of all UDP datagrams carrying Initial packets to at least the smallest
//# allowed maximum datagram size of 1200 bytes by adding PADDING frames to the Initial packet or
//= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2.1
//= type=test
//# That is, the client MUST set the PTO timer if the client has not received an acknowledgment for any of its
//# Handshake packets and the handshake is not confirmed (see Section 4.1.2 of [QUIC-TLS])
//= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2.1
//= type=test
//# When the PTO fires, the client MUST send a Handshake packet if it has Handshake keys, otherwise it MUST
//# send an Initial packet in a UDP datagram with a payload of at least 1200 bytes.
#[test]
fn a_client_probes_until_the_server_knows_its_address() {
    let mut network = Network::new(transport(), transport());
    network.link(RTT / 2);
    let (_, original, id) = begun(&mut network);
    let sent = network.record(0);
    let dropped = sent.clone();
    network.links[0].drop = Box::new(move |_, bytes| {
        dropped.borrow_mut().push(bytes.to_vec());
        true
    });
    // All that the client sent is acknowledged, but nothing says that its address is validated.
    let acknowledgement = [2, 0, 0, 0, 0];
    let source = ConnectionId::new(&[1; 8]).unwrap();
    let server = network.links[0].server;
    arrive(&mut network, server, &initial(Role::Server, original, [id, source], 0, &acknowledgement));
    network.run_for(Duration::from_secs(4));
    let sent = sent.borrow();
    let probes: Vec<_> = sent.iter().filter(|bytes| bytes[6..14] == [1; 8]).collect();
    assert!(probes.len() >= 2, "{} datagrams", probes.len());
    assert!(probes.iter().all(|bytes| bytes.len() >= 1200 && bytes[0] & 0xf0 == 0xc0), "full Initials");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-9
//= type=test
//# An endpoint MUST NOT initiate connection migration before the handshake is confirmed, as defined in
//# Section 4.1.2 of [QUIC-TLS].
#[test]
fn a_client_does_not_move_before_the_handshake_is_confirmed() {
    let mut network = Network::new(transport(), transport());
    let (first, other) = (network.link(RTT / 2), network.link(RTT / 2));
    let client = network.connect(first);
    let now = network.now;
    let moved = network.client(client).migrate(PathId::ZERO, other, Moving::AtOnce, now);
    assert_eq!(moved, Err(MigrateError::NotConfirmed));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.3
//= type=test
//# A CONNECTION_CLOSE of type 0x1d MUST be replaced by a CONNECTION_CLOSE of type 0x1c when sending the frame
//# in Initial or Handshake packets
//= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.3
//= type=test
//# Endpoints MUST clear the value of the Reason Phrase field and SHOULD use the APPLICATION_ERROR code when
//# converting to a CONNECTION_CLOSE of type 0x1c.
//= https://www.rfc-editor.org/rfc/rfc9000#section-12.5
//= type=test
//# CONNECTION_CLOSE frames signaling application errors (type 0x1d) MUST only appear in the application data
//# packet number space.
#[test]
fn an_applications_close_during_the_handshake_says_nothing_about_the_application() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT / 4);
    let now = network.now;
    network.client(client).close(7, b"secret", now);
    network.run_for(RTT);
    let closed = network.server_events.iter().find_map(|(_, event)| match event {
        Event::Closed(ConnectionError::PeerTransport(error)) => Some(error.clone()),
        _ => None,
    });
    let error = closed.expect("the server is told");
    assert_eq!((error.code, &*error.reason), (ErrorCode::APPLICATION_ERROR, ""));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-14.1
//= type=test
//# Similarly, a server MUST expand the payload of all UDP datagrams carrying ack-eliciting Initial packets to
//# at least the smallest allowed maximum datagram size of 1200 bytes.
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.2
//= type=test
//# Initial packets sent by the server MUST set the Token Length field to 0; clients that receive an Initial
//# packet with a non-zero Token Length field MUST either discard the packet or generate a
#[test]
fn every_ack_eliciting_initial_of_a_server_fills_its_datagram() {
    let mut network = Network::new(transport(), transport());
    network.link(RTT / 2);
    let (_, original, _) = begun(&mut network);
    let sent = network.record(0);
    network.run_for(RTT * 4);
    let mut seen = 0;
    for datagram in sent.borrow().iter() {
        let Some((frames, has_token)) = opened(original, datagram) else { continue };
        assert!(!has_token, "the token is the client's");
        if frames.iter().any(Frame::is_ack_eliciting) {
            seen += 1;
            assert!(datagram.len() >= 1200, "{} bytes: {frames:?}", datagram.len());
        }
    }
    assert!(seen > 0);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.2
//= type=test
//# Initial packets sent by the server MUST set the Token Length field to 0; clients that receive an Initial
//# packet with a non-zero Token Length field MUST either discard the packet or generate a
#[test]
fn a_client_drops_initial_packets_with_a_token() {
    let mut network = Network::new(transport(), transport());
    network.link(RTT / 2);
    let (client, original, destination) = begun(&mut network);
    let source = ConnectionId::new(&[1; 8]).unwrap();
    let server = network.links[0].server;
    for (token, is_open) in [(&b"token"[..], true), (b"", false)] {
        let header = LongHeader { kind: LongKind::Initial, version: Version::V1, destination, source, token };
        let number = 5 - token.len() as u64;
        arrive(&mut network, server, &sealed(Role::Server, original, &header, 0, (number, CLOSE)));
        assert_eq!(network.client(client).lifecycle().is_open(), is_open);
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2
//= type=test
//# An endpoint MUST treat receipt of a packet that has a non-zero value for these bits after removing both
//# packet and header protection as a connection error of type PROTOCOL_VIOLATION
#[test]
fn reserved_bits_of_a_long_header_close_the_connection() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let (_, original, source) = begun(&mut network);
    network.run_for(RTT / 2);
    let (kind, version, destination) = (LongKind::Initial, Version::V1, original);
    let header = LongHeader { kind, version, destination, source, token: &[] };
    network.forge(tuple.local, &sealed(Role::Client, original, &header, 0x0c, (8, PING)));
    assert_eq!(closed_with(&mut network), Some(ErrorCode::PROTOCOL_VIOLATION));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.1
//= type=test
//# A client MUST discard a Retry packet that contains a Source Connection ID field that is identical to the
//# Destination Connection ID field of its Initial packet
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
//= type=test
//# A client MUST accept and process at most one Retry packet for each connection attempt
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
//= type=test
//# After the client has received and processed an Initial or Retry packet from the server, it MUST discard
//# any subsequent Retry packets that it receives.
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
//= type=test
//# Clients MUST discard Retry packets that have a Retry Integrity Tag that cannot be validated; see Section
//# 5.8 of [QUIC-TLS]
#[test]
fn a_client_drops_retry_packets_that_it_must_not_follow() {
    let [one, two] = [[1; 8], [2; 8]].map(|bytes| ConnectionId::new(&bytes).unwrap());
    let mut network = Network::new(transport(), transport());
    network.link(RTT / 2);
    let (_, original, id) = begun(&mut network);
    let server = network.links[0].server;
    let sent = network.record(0);
    let follows = |network: &mut Network, bytes: &[u8]| {
        sent.borrow_mut().clear();
        arrive(network, server, bytes);
        network.run_for(Duration::ZERO);
        sent.borrow().first().map(|bytes| bytes[6..14].to_vec())
    };
    assert_eq!(follows(&mut network, &retry(original, id, original)), None, "from where it wrote to");
    assert_eq!(follows(&mut network, &retry(one, id, two)), None, "a tag that is not valid");
    assert_eq!(follows(&mut network, &retry(original, id, one)), Some(vec![1; 8]));
    assert_eq!(follows(&mut network, &retry(original, id, two)), None, "the second");
    let mut network = Network::new(transport(), transport());
    network.link(RTT / 2);
    let (client, original, id) = begun(&mut network);
    arrive(&mut network, server, &initial(Role::Server, original, [id, one], 0, PING));
    assert!(network.client(client).has_authenticated());
    let sent = network.record(0);
    arrive(&mut network, server, &retry(original, id, two));
    network.run_for(Duration::ZERO);
    assert!(sent.borrow().iter().all(|bytes| bytes[6..14] != [2; 8]), "after an Initial packet");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
//= type=test
//# A server that chooses a zero-length connection ID MUST NOT provide a preferred address
//= https://www.rfc-editor.org/rfc/rfc9000#section-18.2
//= type=test
//# Similarly, a server MUST NOT include a zero- length connection ID in this transport parameter
#[test]
fn a_server_without_connection_ids_prefers_no_address() {
    let mut config = transport();
    config.preferred_addresses.ipv4 = Some("127.0.0.2:443".parse().unwrap());
    // A client that announces multipath ends a connection with such a server (RFC 10069 §2.1).
    let mut client = transport();
    client.multipath = Multipath::Off;
    let mut network = Network::new(client, config);
    for (id_length, prefers) in [(0, false), (8, true)] {
        network.restart_server(EndpointConfig { id_length, ..EndpointConfig::default() });
        let tuple = network.link(RTT / 2);
        let client = network.connect(tuple);
        network.run_for(RTT * 5);
        let parameters = network.client(client).peer_parameters().expect("the handshake is complete");
        assert_eq!(parameters.preferred_address.is_some(), prefers, "{id_length} bytes");
    }
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-5.6
//= type=test
//# A client MUST NOT attempt to decrypt 0-RTT packets it receives and instead MUST discard them.
#[test]
fn a_client_drops_0rtt_packets() {
    let mut network = Network::new(transport(), transport());
    network.link(RTT / 2);
    let (client, original, destination) = begun(&mut network);
    let source = ConnectionId::new(&[1; 8]).unwrap();
    let server = network.links[0].server;
    let header =
        LongHeader { kind: LongKind::ZeroRtt, version: Version::V1, destination, source, token: &[] };
    let before = network.client(client).stats().dropped;
    arrive(&mut network, server, &sealed(Role::Server, original, &header, 0, (0, CLOSE)));
    assert_eq!(network.client(client).stats().dropped, before + 1);
    assert!(network.client(client).lifecycle().is_open());
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-4.9.1
//= type=test
//# Thus, a client MUST discard Initial keys when it first sends a Handshake packet and a server MUST discard
//# Initial keys when it first successfully processes a Handshake packet
//= https://www.rfc-editor.org/rfc/rfc9001#section-4.9.1
//= type=test
//# Endpoints MUST NOT send Initial packets after this point.
#[test]
fn initial_packets_mean_nothing_once_handshake_packets_are_there() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let (client, original, id) = begun(&mut network);
    let sent = network.record(0);
    network.run_for(RTT * 5);
    let long = |bytes: &&Vec<u8>| bytes[0] & 0x80 != 0;
    let from_server = sent.borrow().iter().filter(long).find(|bytes| bytes[6..14] == *id.as_slice()).cloned();
    let source = ConnectionId::new(&from_server.unwrap()[15..23]).unwrap();
    arrive(&mut network, tuple.remote, &initial(Role::Server, original, [id, source], 90, CLOSE));
    network.forge(tuple.local, &initial(Role::Client, original, [original, id], 90, CLOSE));
    assert!(network.client(client).lifecycle().is_open() && network.server().lifecycle().is_open());
    sent.borrow_mut().clear();
    network.run_for(RTT * 5);
    assert!(sent.borrow().iter().all(|bytes| bytes[0] & 0xb0 != 0x80), "nor is any sent");
}
