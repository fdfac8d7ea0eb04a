//! Resets, closes and replays that are not meant well: attacks.md, section F.

use super::network::{Network, transport};
use crate::PathId;
use crate::connection::{Connection, Event};
use crate::endpoint::ConnectionHandle;
use crate::error::{ConnectionError, ErrorCode};
use crate::wire::frame::{ConnectionClose, Frame};
use bytes::Bytes;
use hvq_scheduler::Priority;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);

pub(super) fn connected() -> (Network, ConnectionHandle) {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 4);
    (network, client)
}

fn say(connection: &mut Connection, text: &'static str) {
    connection.send_datagram(text.into(), Priority::default(), None).expect("it fits");
}

#[test]
fn no_token_but_the_right_one_resets_a_connection() {
    // attacks.md F6, RFC 9000 §10.3.1: not the right one with any bit changed either.
    let (mut network, client) = connected();
    let token = network.client(client).peer_parameters().and_then(|peer| peer.stateless_reset_token);
    let token = token.expect("servers send one").0;
    let mut rng = StdRng::seed_from_u64(1);
    let mut datagram = vec![0x41; 43];
    for _ in 0..100_000 {
        rng.fill_bytes(&mut datagram[1..]);
        assert!(!network.client(client).on_possible_reset(&datagram));
    }
    datagram[27..].copy_from_slice(&token);
    for bit in 0..128 {
        let mut near = datagram.clone();
        near[27 + bit / 8] ^= 1 << (bit % 8);
        assert!(!network.client(client).on_possible_reset(&near), "bit {bit}");
    }
    assert!(!network.client(client).on_possible_reset(&datagram[23..]), "too short for a packet");
    assert!(network.client(client).lifecycle().is_open());
    assert!(network.client(client).on_possible_reset(&datagram));
}

#[test]
fn closes_that_cross_each_other_end_both_sides_without_a_dialogue() {
    // attacks.md F7, RFC 9000 §10.2.
    let (mut network, client) = connected();
    let sent = network.record(0);
    let now = network.now;
    // With data in flight, and connection IDs being retired.
    say(network.client(client), "lost");
    network.client(client).rotate_connection_id(PathId::ZERO, now).expect("there are spares");
    network.server().rotate_connection_id(PathId::ZERO, now).expect("there are spares");
    network.run_for(Duration::from_millis(1));
    let before = sent.borrow().len();
    let now = network.now;
    network.client(client).close(1, b"no", now);
    network.server().close(2, b"no", now);
    network.run_for(Duration::from_secs(5));
    let closes = sent.borrow().len() - before;
    assert!((2..=4).contains(&closes), "{closes} datagrams");
    assert_eq!((network.client.handles().count(), network.server.handles().count()), (0, 0));
}

#[test]
fn a_closing_endpoint_repeats_its_close_ever_more_seldom() {
    // attacks.md F7, RFC 9000 §10.2.1: after 1, 2, 4 … datagrams of those that come a round trip after the last close.
    let (mut network, client) = connected();
    let caught = network.catch(0);
    for _ in 0..300 {
        let now = network.now;
        network.client(client).force_on(PathId::ZERO, &[Frame::Ping], now);
    }
    network.run_for(Duration::from_micros(1));
    let pings = caught.borrow().clone();
    assert_eq!(pings.len(), 300);
    let now = network.now;
    network.server().close(1, b"no", now);
    let before = caught.borrow().len();
    for ping in pings {
        network.run_for(Duration::from_micros(500));
        network.forge_over(0, &ping);
    }
    network.run_for(Duration::from_micros(10));
    let closes = caught.borrow().len() - before;
    assert!((2..=10).contains(&closes), "{closes} closes for 300 datagrams");
}

#[test]
fn a_close_with_a_long_reason_that_is_no_text_is_understood() {
    // attacks.md F8, RFC 9000 §19.19.
    let (mut network, client) = connected();
    let reason = Bytes::from(vec![0xff; 60_000]);
    let close = ConnectionClose::Transport { code: ErrorCode::INTERNAL_ERROR, frame_type: 0, reason };
    let now = network.now;
    network.client(client).force_on(PathId::ZERO, &[Frame::ConnectionClose(close)], now);
    network.run_for(RTT);
    let told = network.server_events.iter().find_map(|(_, event)| match event {
        Event::Closed(ConnectionError::PeerTransport(error)) => {
            Some((error.code, error.reason.chars().count()))
        }
        _ => None,
    });
    assert_eq!(told, Some((ErrorCode::INTERNAL_ERROR, 60_000)));
}

#[test]
fn packets_that_come_a_thousand_times_are_taken_once() {
    // attacks.md F11, RFC 9000 §12.3.
    let (mut network, client) = connected();
    let sent = network.record(0);
    for text in ["one", "two", "three"] {
        say(network.client(client), text);
        network.run_for(RTT * 2);
    }
    let recorded = sent.borrow().clone();
    network.links[0].drop = Box::new(|_, _| false);
    for _ in 0..1000 {
        for datagram in &recorded {
            network.forge_over(0, datagram);
        }
    }
    network.run_for(RTT * 2);
    let received: Vec<_> = std::iter::from_fn(|| network.server().receive_datagram()).collect();
    assert_eq!(received, ["one", "two", "three"]);
    assert!(network.client(client).lifecycle().is_open() && network.server().lifecycle().is_open());
}
