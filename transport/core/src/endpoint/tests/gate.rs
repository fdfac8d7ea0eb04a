//! Retry: clients prove their addresses before the server spends anything on them (RFC 9000 §8.1.2).

use super::event_log::{EventLog, Packet, incoming, protected};
use super::network::{Network, address, transport};
use crate::connection::{Event, Role};
use crate::crypto::token::TokenKey;
use crate::endpoint::{EndpointConfig, RetryPolicy};
use crate::error::{ConnectionError, Dropped, ErrorCode};
use crate::wire::frame::Frame;
use crate::wire::header::{Incoming, PacketKind, ProtectedPacket};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);

fn retrying(policy: RetryPolicy) -> Network {
    let mut network = Network::new(transport(), transport());
    network.configure_server(|server| server.retry = policy);
    network
}

fn closed_with(network: &Network, code: ErrorCode) -> bool {
    network.client_events.iter().any(|(_, event)| match event {
        Event::Closed(ConnectionError::PeerTransport(error)) => error.code == code,
        _ => false,
    })
}

fn dropped(network: &Network, reason: Dropped) -> u64 {
    network.server.stats().dropped.get(&reason).copied().unwrap_or(0)
}

#[test]
fn a_client_that_follows_a_retry_connects_one_round_trip_later() {
    let mut network = retrying(RetryPolicy::Always);
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 2 - Duration::from_millis(1));
    assert!(!network.client_events.contains(&(client, Event::Connected)));
    network.run_for(Duration::from_millis(2));
    assert!(network.client_events.contains(&(client, Event::Connected)));
    network.run_for(RTT);
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
    let stats = network.server.stats();
    // A ClientHello with a post-quantum key takes two datagrams, which are asked for one proof.
    assert_eq!((stats.retries, stats.proven_addresses, stats.refusals), (1, 1, 0));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
//= type=test
//# A client MUST change the Destination Connection ID it uses for sending packets in response to only the
//# first received Initial or Retry packet
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.2
//= type=test
//# This token MUST be repeated by the client in all Initial packets it sends for that connection after it
//# receives the Retry packet.
//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
//= type=test
//# In comparison, a token obtained in a Retry packet MUST be used immediately during the connection attempt
//# and cannot be used in subsequent connection attempts.
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.1
//= type=test
//# This value MUST NOT be equal to the Destination Connection ID field of the packet sent by the client
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.1
//= type=test
//# The client MUST use the value from the Source Connection ID field of the Retry packet in the Destination
//# Connection ID field of subsequent packets that it sends.
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.3
//= type=test
//# A client MUST use the same cryptographic handshake message it included in this packet
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.3
//= type=test
//# A client MUST NOT reset the packet number for any packet number space after processing a Retry packet
#[test]
fn a_client_goes_on_where_it_was_with_the_token_and_the_connection_id_of_a_retry() {
    let event_log = EventLog::new();
    let mut network = Network::new(event_log.keep(transport()), transport());
    network.configure_server(|server| server.retry = RetryPolicy::Always);
    let tuple = network.link(RTT / 2);
    let sent = network.record(0);
    network.connect(tuple);
    let mut until = |part: u32| {
        network.run_for(RTT / 4 * part);
        std::mem::take(&mut *sent.borrow_mut())
    };
    let (hello, retry, again) = (protected(&until(1)), until(2), protected(&until(2)));
    let Some(Incoming::Retry { source, token, .. }) = incoming(&retry[0]).pop() else { panic!("{retry:?}") };
    assert!(hello.iter().all(|packet| packet.destination != source));
    // At once, in every Initial, and not before.
    let tokens = |packets: &[ProtectedPacket]| {
        let token = |packet: &ProtectedPacket| match &packet.kind {
            PacketKind::Initial { token } => token.clone(),
            kind => panic!("{kind:?}"),
        };
        packets.iter().map(token).collect::<Vec<_>>()
    };
    assert!(hello.len() > 1 && tokens(&hello).iter().all(Bytes::is_empty), "{hello:?}");
    assert!(again.len() > 1 && tokens(&again).iter().all(|of| *of == token), "{again:?}");
    assert!(again.iter().all(|packet| packet.destination == source));

    // The same ClientHello, in packets with numbers of their own.
    let both = event_log.sent(Role::Client);
    assert_eq!(both.len(), hello.len() + again.len());
    assert!(both.is_sorted_by(|one, next| one.number < next.number), "{both:?}");
    let (first, second) = both.split_at(hello.len());
    assert_eq!(crypto(first), crypto(second));

    // The server's own choice ends it: another Retry or Initial changes nothing any more.
    let answer = protected(&until(2));
    let own = answer.iter().find(|packet| packet.destination == hello[0].source).unwrap().source;
    let rest = protected(&until(14));
    let by_client = |packet: &&ProtectedPacket| packet.source == hello[0].source;
    assert!(rest.iter().filter(by_client).count() > 0);
    assert!(rest.iter().filter(by_client).all(|packet| packet.destination == own), "{rest:?}");

    // The next attempt knows nothing of that token.
    network.connect(tuple);
    network.run_for(RTT / 4);
    let next = protected(&sent.borrow());
    assert!(!next.is_empty() && tokens(&next).iter().all(|of| *of != token), "{next:?}");
}

/// The bytes of the handshake in `packets`, in the order of their offsets.
fn crypto(packets: &[Packet]) -> Vec<u8> {
    let frames = packets.iter().flat_map(|packet| &packet.frames);
    let pieces =
        frames.filter_map(|frame| if let Frame::Crypto(crypto) = frame { Some(crypto) } else { None });
    let pieces: BTreeMap<_, _> = pieces.map(|crypto| (crypto.offset, &crypto.data)).collect();
    pieces.into_values().flatten().copied().collect()
}

#[test]
fn a_retry_that_is_lost_is_sent_again() {
    let mut network = retrying(RetryPolicy::Always);
    let tuple = network.link(RTT / 2);
    let mut retries = 0;
    network.links[0].drop = Box::new(move |_, bytes| {
        let is_retry = bytes[0] & 0xf0 == 0xf0;
        retries += usize::from(is_retry);
        is_retry && retries == 1
    });
    let client = network.connect(tuple);
    network.run_for(Duration::from_secs(3));
    assert!(network.client_events.contains(&(client, Event::Confirmed)), "{:?}", network.client_events);
    assert_eq!(network.server.stats().retries, 2);
}

#[test]
fn a_server_that_waits_for_a_proof_keeps_nothing() {
    let mut network = retrying(RetryPolicy::Always);
    let tuple = network.link(RTT / 2);
    let sent = network.record(0);
    network.connect(tuple);
    network.run_for(RTT / 2);
    assert_eq!((network.server.handles().count(), dropped(&network, Dropped::Unproven)), (0, 2));
    let sizes: Vec<_> = sent.borrow().iter().map(Vec::len).collect();
    assert!(matches!(sizes[..], [1200, 1200, 0..200]), "a Retry does not amplify: {sizes:?}");
}

#[test]
fn the_proof_of_a_retry_is_bound_to_address_port_and_connection_id() {
    // attacks.md B21.
    let mut network = retrying(RetryPolicy::Always);
    let tuple = network.link(RTT / 2);
    network.link(RTT / 2);
    let sent = network.record(0);
    network.connect(tuple);
    network.run_for(RTT + Duration::from_millis(1));
    let with_token = sent.borrow().last().cloned().unwrap();
    assert_eq!(with_token.len(), 1200);
    let mut other_id = with_token.clone();
    other_id[6] ^= 1;
    let elsewhere = network.links[1].client;
    let hosts = [SocketAddr::from(([10, 0, 0, 1], tuple.local.port())), elsewhere];
    for (from, bytes) in [(hosts[0], &with_token), (hosts[1], &with_token), (tuple.local, &other_id)] {
        network.forge(from, bytes);
    }
    assert_eq!((network.server.handles().count(), network.server.stats().refusals), (0, 3));
    assert_eq!(dropped(&network, Dropped::InvalidToken), 3);
    // None of this keeps the honest client from connecting.
    network.run_for(RTT * 2);
    assert!(network.client_events.iter().any(|(_, event)| *event == Event::Confirmed));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.4
//= type=test
//# To protect against such attacks, servers MUST ensure that replay of tokens is prevented or limited
#[test]
fn a_retry_token_that_was_used_starts_no_second_connection() {
    let mut network = retrying(RetryPolicy::Always);
    let tuple = network.link(RTT / 2);
    let sent = network.record(0);
    let client = network.connect(tuple);
    network.run_for(RTT * 3);
    let first: Vec<_> = sent.borrow().iter().filter(|bytes| bytes[0] & 0xf0 == 0xc0).cloned().collect();
    let now = network.now;
    network.client(client).close(0, b"", now);
    network.run_for(Duration::from_secs(3));
    assert_eq!(network.server.handles().count(), 0);
    for bytes in first.iter().filter(|bytes| bytes.len() == 1200) {
        network.forge(tuple.local, bytes);
    }
    assert_eq!(network.server.handles().count(), 0);
    assert!(dropped(&network, Dropped::Unexpected) > 0);
}

#[test]
fn an_expired_retry_token_closes_with_invalid_token() {
    // RFC 9000 §8.1.2: the client accepts no second Retry, so that it is told at once.
    let mut network = retrying(RetryPolicy::Always);
    let key = TokenKey::new(&[5; 32]).with_lifetimes(RTT / 2, RTT);
    network.restart_server(EndpointConfig { token_key: Some(key), ..EndpointConfig::default() });
    let tuple = network.link(RTT / 2);
    network.connect(tuple);
    network.run_for(RTT * 2 + Duration::from_millis(1));
    assert!(closed_with(&network, ErrorCode::INVALID_TOKEN), "{:?}", network.client_events);
    assert_eq!(network.server.handles().count(), 0);
}

#[test]
fn a_flood_of_half_open_handshakes_ends_in_retries_and_honest_clients_still_connect() {
    // attacks.md B13.
    let mut network = retrying(RetryPolicy::WhenBusy(20));
    for _ in 0..100 {
        network.link(RTT / 2);
    }
    let attackers: Vec<_> = network
        .links
        .iter()
        .map(|link| crate::connection::FourTuple { local: link.client, remote: link.server })
        .collect();
    let honest = network.link(RTT / 2);
    let server = honest.remote;
    // Nobody at the forged addresses answers.
    for link in &mut network.links[..100] {
        let mut first = true;
        link.drop = Box::new(move |_, _| !std::mem::take(&mut first));
    }
    for tuple in &attackers {
        network.connect(*tuple);
    }
    network.run_for(RTT);
    assert_eq!(network.server.handles().count(), 20);
    assert_eq!(network.server.stats().retries, 80);
    assert_eq!(server, honest.remote);
    let client = network.connect(honest);
    network.run_for(RTT * 4);
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
    assert_eq!(network.server.stats().proven_addresses, 1);
}

#[test]
fn what_comes_from_a_port_that_reflects_starts_nothing() {
    // attacks.md A20.
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let sent = network.record(0);
    network.connect(tuple);
    network.run_for(Duration::from_millis(1));
    let initial = sent.borrow()[0].clone();
    for port in [0, 19, 53, 123, 1900, 11211] {
        network.forge(address(port), &initial);
    }
    assert_eq!((network.server.handles().count(), dropped(&network, Dropped::Reflector)), (0, 6));
}
