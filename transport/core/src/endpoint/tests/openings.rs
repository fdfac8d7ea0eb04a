//! Handshakes of peers that do not play by the rules: attacks.md, section B.

use super::forged::{answer, initial, sealed};
use super::network::{Network, transport};
use crate::connection::{Event, FourTuple};
use crate::error::ErrorCode;
use crate::wire::frame::{Crypto, Frame};
use bytes::Bytes;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);

fn network() -> (Network, FourTuple) {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    (network, tuple)
}

fn crypto(offset: u64, length: usize) -> Frame {
    Frame::Crypto(Crypto { offset, data: Bytes::from(vec![1; length]) })
}

#[test]
fn crypto_data_far_ahead_or_beyond_the_last_offset_closes() {
    // attacks.md B7, B9, RFC 9000 §7.5, §19.6.
    let cases = [
        (64 * 1024 - 100, 101, Some(ErrorCode::CRYPTO_BUFFER_EXCEEDED)),
        (64 * 1024 - 100, 100, None),
        (1 << 40, 1, Some(ErrorCode::CRYPTO_BUFFER_EXCEEDED)),
        ((1 << 62) - 1, 1, Some(ErrorCode::FRAME_ENCODING_ERROR)),
        ((1 << 62) - 1, 10, Some(ErrorCode::FRAME_ENCODING_ERROR)),
    ];
    for (offset, length, code) in cases {
        let mut payload = Vec::new();
        crypto(offset, length).put(&mut payload);
        let bytes = sealed(&initial(&[1; 8], &payload), |first| first);
        let (mut network, _) = network();
        assert_eq!(answer(&mut network, &[1; 8], &bytes), code, "{length} bytes at {offset}");
    }
}

#[test]
fn crypto_data_after_the_handshake_is_bounded() {
    // attacks.md B8: chunks with gaps, so that nothing can be read.
    for frames in [vec![crypto(64 * 1024, 1)], (0..600).map(|n| crypto(1 + 2 * n, 1)).collect()] {
        let (mut network, tuple) = network();
        let client = network.connect(tuple);
        network.run_for(RTT * 3);
        for frame in frames {
            network.client(client).force(frame);
        }
        network.run_for(RTT * 3);
        assert_eq!(network.verdict(), Some(ErrorCode::CRYPTO_BUFFER_EXCEEDED));
    }
}

#[test]
fn a_client_that_says_that_the_handshake_is_done_commits_a_violation() {
    // attacks.md B14, RFC 9000 §19.20.
    let (mut network, tuple) = network();
    let client = network.connect(tuple);
    network.run_for(RTT * 3);
    network.client(client).force(Frame::HandshakeDone);
    network.run_for(RTT);
    assert_eq!(network.verdict(), Some(ErrorCode::PROTOCOL_VIOLATION));
}

#[test]
fn a_client_that_gives_its_server_a_token_commits_a_violation() {
    // attacks.md E16, RFC 9000 §19.7.
    let (mut network, tuple) = network();
    let client = network.connect(tuple);
    network.run_for(RTT * 3);
    network.client(client).force(Frame::NewToken(Bytes::from_static(&[1])));
    network.run_for(RTT);
    assert_eq!(network.verdict(), Some(ErrorCode::PROTOCOL_VIOLATION));
}

#[test]
fn packets_that_come_before_their_keys_are_kept_in_small_number() {
    // attacks.md B15: the server has no 1-RTT keys to read with before the client's Finished.
    let (mut network, tuple) = network();
    let sent = network.record(0);
    network.connect(tuple);
    network.run_for(RTT / 2 + Duration::from_millis(1));
    let from_server = sent.borrow().iter().rfind(|bytes| bytes[0] & 0x80 != 0).cloned().unwrap();
    let (destination, source) = (usize::from(from_server[5]), 7 + usize::from(from_server[5]));
    let id = from_server[source..source + usize::from(from_server[6 + destination])].to_vec();
    let handle = network.server.handles().next().unwrap();
    let before = network.server.get(handle).unwrap().stats().dropped;
    for n in 0..1000_u32 {
        let packet = [&[0x40][..], &id, &n.to_be_bytes(), &[7; 40]].concat();
        network.forge(tuple.local, &packet);
    }
    let after = network.server.get(handle).unwrap().stats().dropped;
    assert_eq!(after - before, 990, "10 are kept");
    network.run_for(RTT * 3);
    assert!(network.client_events.iter().any(|(_, event)| *event == Event::Confirmed));
}

#[test]
fn a_server_sends_a_silent_client_three_times_what_came_however_long_it_waits() {
    // attacks.md B18, RFC 9000 §8.1.
    let (mut network, tuple) = network();
    let (received, sent) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (from_client, from_server) = (Rc::clone(&received), Rc::clone(&sent));
    // All that the client says comes from now, all later datagrams of that direction are lost.
    let mut flight = 0;
    network.links[0].drop = Box::new(move |now, bytes| {
        if now.as_nanos() < 2_000_000 {
            flight += bytes.len();
            from_client.set(flight);
            return false;
        }
        from_server.set(from_server.get() + bytes.len());
        true
    });
    let client = network.connect(tuple);
    network.run_for(Duration::from_millis(1));
    // The client falls silent for good.
    let mut silent = Network::new(transport(), transport());
    std::mem::swap(&mut silent.client, &mut network.client);
    network.run_for(Duration::from_secs(9));
    let (received, sent) = (received.get(), sent.get());
    assert_eq!(received, 2400);
    assert!(sent > 1200 && sent <= 3 * received, "{sent} bytes for {received} of {client}");
}

#[test]
fn a_long_certificate_arrives_within_three_times_what_came_whatever_of_the_clients_answers_is_lost() {
    // attacks.md B18, RFC 9000 §8.1, RFC 9002 §6.2.2.1: the server waits for the client, whose probes set it free.
    let names: Vec<String> = std::iter::once("server.test".to_owned())
        .chain((0..600).map(|n| format!("name-{n:04}.example.server.test")))
        .collect();
    for lost in [0..0, 4..5, 7..9, 8..14] {
        let mut network = Network::certified(transport(), transport(), names.clone());
        let tuple = network.link(RTT / 2);
        let (mut number, missing) = (0, lost.clone());
        network.links[0].drop = Box::new(move |_, _| {
            number += 1;
            missing.contains(&(number - 1))
        });
        let client = network.connect(tuple);
        let mut unproven = 0;
        for _ in 0..8_000 {
            network.run_for(Duration::from_millis(1));
            let Some(handle) = network.server.handles().next() else { continue };
            if network.server.get(handle).is_some_and(|server| !server.is_address_proven()) {
                unproven = network.from_server;
                assert!(unproven <= 3 * network.to_server, "{unproven} bytes for {}", network.to_server);
            }
        }
        assert!(network.client_events.contains(&(client, Event::Confirmed)), "without {lost:?}");
        assert!(unproven > 3 * 2400 - 1200 && network.from_server > 20_000, "{unproven}");
    }
}

#[test]
fn a_client_hello_in_two_datagrams_may_come_in_any_order_and_twice() {
    // attacks.md B20: the hello with a post-quantum key is longer than a datagram.
    for order in [&[0, 1][..], &[1, 0], &[1, 1, 0, 0], &[0, 0, 1]] {
        let (mut network, tuple) = network();
        let sent = network.record(0);
        let client = network.connect(tuple);
        network.run_for(Duration::from_millis(1));
        let flight = sent.borrow().clone();
        assert_eq!(flight.len(), 2);
        // These arrive first, in this order.
        for index in order {
            network.forge(tuple.local, &flight[*index]);
        }
        network.run_for(RTT * 3);
        assert!(network.client_events.contains(&(client, Event::Confirmed)), "{order:?}");
        assert_eq!(network.server.handles().count(), 1);
    }
}
