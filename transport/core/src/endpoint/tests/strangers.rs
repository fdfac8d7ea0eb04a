//! Datagrams of strangers: attacks.md, section A.

use super::forged::{Forged, answer, initial, sealed};
use super::network::{Network, transport};
use crate::connection::{Event, FourTuple};
use crate::error::{Dropped, ErrorCode};
use crate::wire::connection_id::ConnectionId;
use crate::wire::header::{put_retry_without_tag, put_version_negotiation};
use crate::wire::version::Version;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
const VIOLATION: Option<ErrorCode> = Some(ErrorCode::PROTOCOL_VIOLATION);

fn network() -> Network {
    let mut network = Network::new(transport(), transport());
    network.link(RTT / 2);
    network
}

fn dropped(network: &Network, reason: Dropped) -> u64 {
    network.server.stats().dropped.get(&reason).copied().unwrap_or(0)
}

/// Has `datagrams` arrive at a fresh server, which has to say nothing and to keep nothing. Returns it.
fn ignored(datagrams: impl IntoIterator<Item = Vec<u8>>) -> Network {
    let mut network = network();
    let sent = network.record(0);
    let from = network.links[0].client;
    for bytes in datagrams {
        network.forge(from, &bytes);
    }
    network.run_for(RTT);
    assert_eq!((network.server.handles().count(), sent.borrow().len()), (0, 0));
    network
}

/// A long header with connection IDs of these lengths, in a datagram of 1200 bytes.
fn long_header(version: u32, destination: u8, source: u8) -> Vec<u8> {
    let mut bytes = vec![0xc0];
    bytes.extend(version.to_be_bytes());
    for length in [destination, source] {
        bytes.push(length);
        bytes.extend(vec![length; usize::from(length)]);
    }
    bytes.resize(1200, 0);
    bytes
}

#[test]
fn empty_datagrams_are_dropped() {
    // attacks.md A1.
    let network = ignored(std::iter::repeat_n(Vec::new(), 1000));
    assert_eq!(dropped(&network, Dropped::Malformed), 1000);
}

#[test]
fn a_genuine_initial_in_a_small_datagram_is_dropped() {
    // attacks.md A2, RFC 9000 §14.1.
    let sizes = (60..1200).step_by(20).chain([1199]);
    let count = sizes.clone().count() as u64;
    let small = |size| sealed(&Forged { size, ..initial(&[1; 8], &[1]) }, |first| first);
    let network = ignored(sizes.map(small));
    assert_eq!(dropped(&network, Dropped::SmallInitial), count);
}

#[test]
fn an_initial_to_a_short_connection_id_is_dropped() {
    // attacks.md A3, RFC 9000 §7.2.
    let network = ignored((0..8).map(|length| sealed(&initial(&vec![3; length], &[1]), |first| first)));
    assert_eq!(dropped(&network, Dropped::Malformed), 8);
}

#[test]
fn long_connection_ids_are_dropped_in_version_1_and_echoed_in_others() {
    // attacks.md A4, RFC 9000 §17.2, RFC 8999 §6.
    ignored((21..=255).map(|length| long_header(1, length, 8)));
    ignored((21..=255).map(|length| long_header(1, 8, length)));
    for length in 21..=255 {
        let mut network = network();
        let sent = network.record(0);
        let from = network.links[0].client;
        network.forge(from, &long_header(0x1a2a_3a4a, length, length));
        network.run_for(RTT / 4);
        let sent = sent.borrow();
        assert!(matches!(&sent[..], [answer] if answer.len() < 1200), "{length}");
        assert_eq!(sent[0][6..6 + usize::from(length)], vec![length; usize::from(length)]);
    }
}

#[test]
fn a_server_answers_neither_version_negotiation_nor_retry() {
    // attacks.md A6: two servers whose addresses were forged must not talk to each other.
    let mut negotiation = Vec::new();
    put_version_negotiation(&mut negotiation, &[1; 8], &[2; 8], &[Version::V1, Version::V2], 0);
    let mut retry = Vec::new();
    let (destination, source) = (ConnectionId::new(&[1; 8]).unwrap(), ConnectionId::new(&[2; 8]).unwrap());
    put_retry_without_tag(&mut retry, Version::V1, &destination, &source, &[7; 60]);
    retry.extend([0; 16]);
    let padded = |bytes: &[u8]| [bytes, &[0; 1200]].concat();
    ignored([padded(&negotiation), padded(&retry), negotiation, retry]);
}

#[test]
fn prefixes_and_flipped_bits_of_all_datagrams_of_a_handshake_harm_nobody() {
    // attacks.md A7.
    let mut network = network();
    let tuple = FourTuple { local: network.links[0].client, remote: network.links[0].server };
    let sent = network.record(0);
    let client = network.connect(tuple);
    network.run_for(RTT * 3);
    let recorded = sent.borrow().clone();
    for datagram in &recorded {
        for length in 0..datagram.len() {
            network.forge(tuple.local, &datagram[..length]);
        }
        for bit in 0..datagram.len() * 8 {
            let mut flipped = datagram.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            network.forge(tuple.local, &flipped);
        }
    }
    network.run_for(RTT * 3);
    assert_eq!(network.server.handles().count(), 1);
    let closed = |event: &Event| matches!(event, Event::Closed(_));
    assert!(!network.server_events.iter().chain(&network.client_events).any(|(_, event)| closed(event)));
    assert!(network.client(client).lifecycle().is_open());
}

#[test]
fn packets_for_others_in_the_same_datagram_leave_nothing() {
    // attacks.md A9: the second packet has another destination, and would open if it came alone.
    let mut network = network();
    let tuple = FourTuple { local: network.links[0].client, remote: network.links[0].server };
    let sent = network.record(0);
    let client = network.connect(tuple);
    network.run_for(Duration::from_millis(1));
    let first = sent.borrow()[0].clone();
    network.run_for(RTT);
    for n in 0..10_000_u32 {
        let other = sealed(&initial(&[&n.to_be_bytes()[..], &[9; 8]].concat(), &[1]), |first| first);
        network.forge(tuple.local, &[&first[..], &other].concat());
    }
    network.run_for(RTT * 2);
    assert_eq!(network.server.handles().count(), 1);
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
}

#[test]
fn noise_after_the_last_packet_of_a_datagram_is_ignored() {
    // attacks.md A10.
    let mut network = network();
    let tuple = FourTuple { local: network.links[0].client, remote: network.links[0].server };
    let sent = network.record(0);
    let client = network.connect(tuple);
    network.run_for(Duration::from_millis(1));
    let flight = sent.borrow().clone();
    // The flight with noise behind it overtakes the flight itself.
    for datagram in &flight {
        network.forge(tuple.local, &[&datagram[..], &[0xa5; 100]].concat());
    }
    network.run_for(RTT * 3);
    assert!(network.client_events.contains(&(client, Event::Confirmed)), "{:?}", network.client_events);
}

#[test]
fn reserved_bits_of_a_genuine_packet_are_a_violation() {
    // attacks.md A12, RFC 9000 §17.2.
    for bits in [0x04, 0x08, 0x0c] {
        let bytes = sealed(&initial(&[1; 8], &[1]), |first| first | bits);
        assert_eq!(answer(&mut network(), &[1; 8], &bytes), VIOLATION, "{bits:#x}");
    }
}

#[test]
fn a_packet_without_frames_is_a_violation() {
    // attacks.md A13, RFC 9000 §12.4. What fills the datagram up is outside of the packet.
    let empty = Forged { size: 0, ..initial(&[1; 8], &[]) };
    let mut bytes = sealed(&empty, |first| first);
    bytes.resize(1200, 0);
    assert_eq!(answer(&mut network(), &[1; 8], &bytes), VIOLATION);
}

#[test]
fn unknown_frames_and_long_frame_types_close_with_their_codes() {
    // attacks.md A14, RFC 9000 §12.4: the shortest encoding is required of frame types.
    for (payload, code) in [
        (&[0x40, 0x41][..], ErrorCode::FRAME_ENCODING_ERROR),
        (&[0x21], ErrorCode::FRAME_ENCODING_ERROR),
        (&[0x40, 0x01], ErrorCode::PROTOCOL_VIOLATION),
        (&[0x80, 0, 0, 0x06, 0, 0], ErrorCode::PROTOCOL_VIOLATION),
    ] {
        let bytes = sealed(&initial(&[1; 8], payload), |first| first);
        assert_eq!(answer(&mut network(), &[1; 8], &bytes), Some(code), "{payload:x?}");
    }
}

#[test]
fn an_acknowledgement_with_2_to_the_62_ranges_is_an_encoding_error() {
    // attacks.md A16: ACK of packet 0, no delay, and as many ranges as the integer can say.
    let payload = [&[0x02, 0, 0][..], &[0xff; 8], &[0]].concat();
    let bytes = sealed(&initial(&[1; 8], &payload), |first| first);
    assert_eq!(answer(&mut network(), &[1; 8], &bytes), Some(ErrorCode::FRAME_ENCODING_ERROR));
}

/// Frames that neither Initial nor Handshake packets may hold, one of each type (RFC 9000 §12.4, table 3). Zeros follow,
/// which make most types complete frames.
pub(super) fn later_frames() -> Vec<Vec<u8>> {
    let complete: [(u8, &[u8]); 3] = [
        (0x07, &[1, 9]),
        (0x18, &[0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (0x1d, &[0, 0]),
    ];
    let zeros = (0x04..=0x1e).filter(|kind| ![0x06, 0x07, 0x18, 0x1c, 0x1d].contains(kind));
    let frames = zeros.map(|kind| (kind, &[][..])).chain(complete).chain([(0x30, &[][..]), (0x31, &[0][..])]);
    frames.map(|(kind, rest)| [&[kind], rest].concat()).collect()
}

#[test]
fn frames_that_initial_packets_may_not_hold_are_violations() {
    // attacks.md A17, RFC 9000 §12.4.
    let mut network = network();
    for (index, frame) in later_frames().iter().enumerate() {
        let destination = [index as u8 + 1; 8];
        let bytes = sealed(&initial(&destination, frame), |first| first);
        assert_eq!(answer(&mut network, &destination, &bytes), VIOLATION, "{frame:x?}");
    }
}
