//! Stateless resets (RFC 9000 §10.3).

use super::event_log::{EventLog, protected};
use super::network::{Network, transport};
use crate::connection::{Datagram, Ecn, Event, Role};
use crate::crypto::reset::ResetKey;
use crate::endpoint::ids::{ConnectionIds, RandomIds};
use crate::endpoint::steering::{Generation, SteeredIds, Steering};
use crate::endpoint::{ConnectionHandle, Endpoint, EndpointConfig, Strays};
use crate::error::ConnectionError;
use crate::stream::Direction;
use crate::wire::frame::Frame;
use crate::wire::header::{PacketKind, ProtectedPacket};
use bytes::BytesMut;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);

fn config(key: u8) -> EndpointConfig {
    EndpointConfig { reset_key: Some(ResetKey::new(&[key; 32])), ..EndpointConfig::default() }
}

/// A connection to a server with reset key 1, which then restarts with reset key `key`.
fn restarted(key: u8) -> (Network, ConnectionHandle) {
    let mut network = Network::new(transport(), transport());
    network.restart_server(config(1));
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 4);
    network.restart_server(config(key));
    let id = network.client(client).open(Direction::Unidirectional).unwrap();
    assert_eq!(network.client(client).write(id, &[1; 500]), Ok(500));
    (network, client)
}

fn short_header(rng: &mut StdRng, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    rng.fill_bytes(&mut bytes);
    bytes[0] = bytes[0] & 0x3f | 0x40;
    bytes
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1
//= type=test
//# However, the comparison MUST be performed when the first packet in an incoming datagram either cannot be
//# associated with a connection or cannot be decrypted.
//= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1
//= type=test
//# If the last 16 bytes of the datagram are identical in value to a stateless reset token, the endpoint MUST
//# enter the draining period and not send any further packets on this connection.
#[test]
fn a_client_learns_within_a_round_trip_that_the_server_restarted() {
    let (mut network, client) = restarted(1);
    network.run_for(RTT + Duration::from_millis(1));
    let reset = Event::Closed(ConnectionError::StatelessReset);
    assert!(network.client_events.contains(&(client, reset)), "{:?}", network.client_events);
    assert!(network.server.stats().stateless_resets > 0);
    // Its data is not acknowledged, and yet it says nothing more, nor when asked.
    let sent = network.record(0);
    let now = network.now;
    if let Some(connection) = network.client.connection(client) {
        connection.close(1, b"", now);
    }
    network.run_for(Duration::from_secs(20));
    assert!(sent.borrow().is_empty(), "{:?}", sent.borrow());
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
//= type=test
//# An endpoint that uses this design MUST either use the same connection ID length for all connections or
//# encode the length of the connection ID such that it can be recovered without state
//= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
//= type=test
//# A connection ID from a connection that is reset by revealing the stateless reset token MUST NOT be reused
//# for new connections at nodes that share a static key.
#[test]
fn connection_ids_have_one_length_and_none_comes_back_after_a_reset() {
    let event_log = EventLog::new();
    let mut network = Network::new(transport(), event_log.keep(transport()));
    let tuple = network.link(RTT / 2);
    let sent = network.record(0);
    let mut used = BTreeSet::new();
    for process in 5..8 {
        network.server = Endpoint::new(config(1), Some(network.server_config.clone()), [process; 32]);
        let before = event_log.sent(Role::Server).len();
        let clients: Vec<_> = (0..10).map(|_| network.connect(tuple)).collect();
        network.run_for(RTT / 4);
        let of_clients: BTreeSet<_> = protected(&sent.borrow()).iter().map(|packet| packet.source).collect();
        network.run_for(RTT * 5);
        let packets = protected(&sent.take());
        let to_client = |packet: &&ProtectedPacket| of_clients.contains(&packet.destination);
        let long = packets.iter().filter(to_client).filter(|packet| packet.kind != PacketKind::OneRtt);
        let mut ids: BTreeSet<_> = long.map(|packet| packet.source).collect();
        assert_eq!(ids.len(), clients.len());
        for frame in event_log.sent(Role::Server)[before..].iter().flat_map(|packet| &packet.frames) {
            if let Frame::NewConnectionId(new) = frame {
                ids.insert(new.id);
            }
        }
        let length = EndpointConfig::default().id_length;
        assert!(ids.len() > clients.len() && ids.iter().all(|id| id.len() == length), "{ids:?}");
        assert!(used.is_disjoint(&ids));
        used.extend(ids);
        network.restart_server(config(1));
        for client in clients {
            let id = network.client(client).open(Direction::Unidirectional).unwrap();
            assert_eq!(network.client(client).write(id, &[1; 500]), Ok(500));
        }
        network.run_for(RTT * 3);
        assert_eq!(network.server.stats().stateless_resets, 10);
    }
}

#[test]
fn a_reset_made_with_another_key_means_nothing() {
    let (mut network, client) = restarted(2);
    network.run_for(RTT * 4);
    assert!(network.server.stats().stateless_resets > 0);
    assert!(network.client.get(client).is_some());
    assert!(!network.client_events.iter().any(|(_, event)| matches!(event, Event::Closed(_))));
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.3
//= type=test
//# An endpoint MUST ensure that every Stateless Reset that it sends is smaller than the packet that triggered
//# it, unless it maintains state sufficient to prevent looping
#[test]
fn two_endpoints_that_do_not_know_each_other_fall_silent() {
    // attacks.md F4.
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let sent = network.record(0);
    let bytes = short_header(&mut StdRng::seed_from_u64(1), 1200);
    network.forge(tuple.local, &bytes);
    network.run_for(Duration::from_secs(10));
    let sizes: Vec<_> = sent.borrow().iter().map(Vec::len).collect();
    assert_eq!(sizes, [43, 42]);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2
//= type=test
//# Servers MUST drop incoming packets under all other circumstances.
#[test]
fn short_packets_and_long_headers_are_not_answered() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let sent = network.record(0);
    let mut rng = StdRng::seed_from_u64(1);
    for size in 1..43 {
        let bytes = short_header(&mut rng, size);
        network.forge(tuple.local, &bytes);
    }
    for size in [43, 100, 1200] {
        let mut bytes = short_header(&mut rng, size);
        // Handshake packets of version 1 for nobody.
        bytes[0] |= 0xe0;
        bytes[1..5].copy_from_slice(&[0, 0, 0, 1]);
        network.forge(tuple.local, &bytes);
    }
    network.run_for(RTT);
    assert!(sent.borrow().is_empty());
}

#[test]
fn resets_are_rare_whatever_arrives() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let mut rng = StdRng::seed_from_u64(1);
    for _ in 0..10_000 {
        let bytes = short_header(&mut rng, 60);
        network.forge(tuple.local, &bytes);
    }
    let limit = u64::from(EndpointConfig::default().resets_per_second);
    assert_eq!(network.server.stats().stateless_resets, limit);
    network.restart_server(EndpointConfig { resets_per_second: 0, ..EndpointConfig::default() });
    let bytes = short_header(&mut rng, 60);
    network.forge(tuple.local, &bytes);
    assert_eq!(network.server.stats().stateless_resets, 0);
}

#[test]
fn a_reset_that_comes_to_another_worker_ends_the_connection_that_it_is_of() {
    // RFC 9000 §10.3.1: the connection ID in it is made up, so that no rule brings it to the right one.
    let (mut network, client) = restarted(1);
    let tuple = network.links[0].client;
    let sent = network.catch(0);
    network.run_for(Duration::ZERO);
    let sent = sent.borrow().first().cloned().unwrap();
    network.forge(tuple, &sent);
    let reset = network.catch(0);
    network.run_for(Duration::ZERO);
    let reset = reset.borrow().iter().find(|bytes| bytes.len() < 60).cloned().unwrap();
    let datagram = || Datagram {
        local: network.links[0].client,
        remote: network.links[0].server,
        ecn: Ecn::NotEct,
        bytes: BytesMut::from(&reset[..]),
    };
    let kept = |strays| {
        let mut worker = Endpoint::new(EndpointConfig { strays, ..config(7) }, None, [7; 32]);
        worker.handle(datagram(), network.now);
        worker.take_strays()
    };
    assert!(kept(Strays::Forgotten).is_empty());
    let strays = kept(Strays::Kept);
    assert_eq!(strays.len(), 1);
    let mut changed = strays[0].clone();
    let last = changed.bytes.len() - 1;
    changed.bytes[last] ^= 1;
    assert!(!network.client.on_stray(&changed));
    assert!(network.client.on_stray(&strays[0]));
    network.run_for(Duration::from_millis(1));
    let ended = Event::Closed(ConnectionError::StatelessReset);
    assert!(network.client_events.contains(&(client, ended)), "{:?}", network.client_events);
}

#[test]
fn of_many_packets_for_nobody_few_are_shown_to_others() {
    let mut network = Network::new(transport(), transport());
    network.restart_server(EndpointConfig { strays: Strays::Kept, ..config(1) });
    let tuple = network.link(RTT / 2);
    let mut rng = StdRng::seed_from_u64(1);
    let mut shown = 0;
    for _ in 0..100 {
        for _ in 0..100 {
            network.forge(tuple.local, &short_header(&mut rng, 60));
        }
        let kept = network.server.take_strays().len();
        assert!(kept <= 64, "{kept}");
        shown += kept;
    }
    assert_eq!(shown, 1_000, "in a second");
    network.forge(tuple.local, &short_header(&mut rng, 2_000));
    network.now += Duration::from_secs(5);
    network.forge(tuple.local, &short_header(&mut rng, 2_000));
    assert!(network.server.take_strays().is_empty(), "no reset is so large");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-21.11
//= type=test
//# More generally, servers MUST NOT generate a stateless reset if a connection with the corresponding connection
//# ID could be active on any endpoint using the same static key.
#[test]
fn workers_that_take_over_reset_no_connection_of_those_before() {
    let rule = Steering::new(NonZeroU16::MIN, 8, 0x9e37_79b9);
    let ids = |generation, beside| {
        let (ids, steering) = (Arc::new(RandomIds(8)), rule.of_generation(generation));
        Arc::new(SteeredIds { ids, steering, worker: 0, beside })
    };
    let resets = |of, beside| {
        let mut network = Network::new(transport(), transport());
        let own = ids(Generation::Odd, beside);
        network.restart_server(EndpointConfig { ids: Some(own), ..config(1) });
        let tuple = network.link(RTT / 2);
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..5 {
            let mut bytes = short_header(&mut rng, 60);
            bytes[1..9].copy_from_slice(ids(of, false).generate(&mut rng).as_slice());
            network.forge(tuple.local, &bytes);
        }
        network.server.stats().stateless_resets
    };
    assert_eq!(resets(Generation::Even, true), 0, "they may be alive");
    assert_eq!(resets(Generation::Odd, true), 5, "nobody else has these");
    assert_eq!(resets(Generation::Even, false), 5, "there is nobody else");
}
