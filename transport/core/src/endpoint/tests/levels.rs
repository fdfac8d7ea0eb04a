//! Tests of errors in Handshake and 1-RTT packets, which only a peer can make and strangers cannot: attacks.md,
//! sections A to C.

use super::network::{Network, transport, verdict};
use super::strangers::later_frames;
use crate::PathId;
use crate::connection::Event;
use crate::endpoint::ConnectionHandle;
use crate::error::ErrorCode;
use crate::wire::frame::{Crypto, Frame};
use crate::wire::level::Level;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
const VIOLATION: Option<ErrorCode> = Some(ErrorCode::PROTOCOL_VIOLATION);
const MALFORMED: Option<ErrorCode> = Some(ErrorCode::FRAME_ENCODING_ERROR);

/// A client whose server reads packets of `level`.
fn reading(level: Level) -> (Network, ConnectionHandle) {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    if level != Level::OneRtt {
        let client = network.connect_up_to(level);
        return (network, client);
    }
    let client = network.connect(tuple);
    network.run_for(RTT * 4);
    (network, client)
}

/// Returns the code with which a server closes when a client sends this packet at `level`. The client hears of it.
fn answer(level: Level, payload: &[u8], bits: u8) -> Option<ErrorCode> {
    let (mut network, client) = reading(level);
    if level == Level::OneRtt {
        network.client(client).force_short(payload, bits);
    } else {
        network.client(client).force_long(level, payload, bits);
    }
    network.run_for(RTT);
    network.verdict()
}

#[test]
fn reserved_bits_of_packets_of_every_level_are_a_violation() {
    // attacks.md A12, RFC 9000 §17.2, §17.3.1.
    for (level, bits) in [(Level::Initial, 0x0c), (Level::Handshake, 0x0c), (Level::OneRtt, 0x18)] {
        assert_eq!(answer(level, &[1], 0), None, "{level:?}");
        for one in [bits, bits & (bits << 1), bits & (bits >> 1)] {
            assert_eq!(answer(level, &[1], one), VIOLATION, "{one:#x} in {level:?}");
        }
    }
}

#[test]
fn packets_without_frames_are_a_violation_at_every_level() {
    // attacks.md A13, RFC 9000 §12.4.
    for level in [Level::Handshake, Level::OneRtt] {
        assert_eq!(answer(level, &[], 0), VIOLATION, "{level:?}");
    }
}

#[test]
fn unknown_frames_and_long_types_close_with_their_codes_at_every_level() {
    // attacks.md A14, RFC 9000 §12.4.
    for level in [Level::Handshake, Level::OneRtt] {
        assert_eq!(answer(level, &[0x40, 0x41], 0), MALFORMED, "{level:?}");
        assert_eq!(answer(level, &[0x21], 0), MALFORMED, "{level:?}");
        assert_eq!(answer(level, &[0x40, 0x01], 0), VIOLATION, "{level:?}");
    }
}

#[test]
fn frames_that_are_cut_off_close_a_connection() {
    // attacks.md A15, A16, C4, RFC 9000 §19: each lacks its last byte, claims more than there is, or counts below zero.
    let ranges = [&[0x02, 0, 0][..], &[0xff; 8], &[0]].concat();
    let cut: [&[u8]; 9] = [
        &[0x02, 5, 0, 0],
        &[0x02, 5, 0, 1, 0, 10, 0],
        &[0x02, 5, 0, 0, 6],
        &ranges,
        &[0x04, 0, 0],
        &[0x06, 0, 9, 1],
        &[0x0e, 0, 0, 0xc0, 1],
        &[0x1a, 1, 2, 3, 4, 5, 6, 7],
        &[0x30 | 1, 5, 1],
    ];
    for payload in cut {
        assert_eq!(answer(Level::OneRtt, payload, 0), MALFORMED, "{payload:x?}");
    }
}

#[test]
fn frames_that_handshake_packets_may_not_hold_are_violations() {
    // attacks.md A17, RFC 9000 §12.4, §17.2.4.
    for frame in later_frames() {
        assert_eq!(answer(Level::Handshake, &frame, 0), VIOLATION, "{frame:x?}");
    }
}

#[test]
fn a_datagram_full_of_padding_is_accepted_and_acknowledged() {
    // attacks.md A18: as large as UDP permits.
    let (mut network, client) = reading(Level::OneRtt);
    let before = network.server().stats().paths[0].counters.packets_received;
    // A PING at the end asks for an answer.
    let mut payload = vec![0; 65_527 - 30];
    payload.push(1);
    network.client(client).force_short(&payload, 0);
    network.run_for(RTT);
    let counters = network.server().stats().paths[0].counters;
    assert_eq!((network.verdict(), counters.packets_received - before), (None, 1));
    assert!(counters.bytes_received > 65_000);
}

#[test]
fn acknowledgements_in_handshake_packets_of_what_was_not_sent_there_are_violations() {
    // attacks.md C1, C5, RFC 9000 §13.1.
    assert_eq!(answer(Level::Handshake, &[0x02, 0, 0, 0, 0], 0), None);
    assert_eq!(answer(Level::Handshake, &[0x02, 0x3f, 0, 0, 0], 0), VIOLATION);
}

#[test]
fn an_acknowledgement_delay_of_centuries_counts_as_the_longest_that_was_agreed_on() {
    // attacks.md C7: the numbers of the first packets, acknowledged again, with a delay of 2^62 - 1.
    let (mut network, client) = reading(Level::OneRtt);
    let now = network.now;
    network.server().force_on(PathId::ZERO, &[Frame::Ping], now);
    network.run_for(RTT / 2);
    let number = u8::try_from(network.client(client).largest_received(PathId::ZERO)).expect("few were sent");
    let payload = [&[0x02, 0x40, number][..], &[0xff; 8], &[0, 0]].concat();
    network.client(client).force_short(&payload, 0);
    network.run_for(RTT * 2);
    let path = network.server().stats().paths[0].clone();
    assert_eq!(network.verdict(), None);
    assert!(path.min_rtt >= RTT && path.rtt >= RTT && path.rtt < RTT * 3, "{path:?}");
}

#[test]
fn tls_messages_that_quic_has_no_use_for_close_the_connection_they_come_on() {
    // attacks.md B12, RFC 9001 §6, §8.3: EndOfEarlyData and KeyUpdate.
    for message in [&[5, 0, 0, 0][..], &[24, 0, 0, 1, 0]] {
        let (mut network, client) = reading(Level::OneRtt);
        let data = message.to_vec().into();
        network.client(client).force(Frame::Crypto(Crypto { offset: 0, data }));
        network.run_for(RTT);
        assert_eq!(network.verdict(), Some(ErrorCode::crypto(10)), "{message:?}");
    }
}

#[test]
fn a_server_that_confirms_the_handshake_before_it_is_complete_commits_a_violation() {
    // attacks.md B14, CVE-2025-59530, RFC 9000 §12.4: the client does not believe it, and does not fall over it.
    for level in [Level::Initial, Level::Handshake] {
        let mut network = Network::new(transport(), transport());
        let tuple = network.link(RTT / 2);
        // The server's own flight is lost.
        let end = network.now + RTT / 4;
        network.links[0].drop = Box::new(move |now, _| now >= end);
        network.connect(tuple);
        network.run_for(RTT * 3 / 4);
        network.links[0].drop = Box::new(|_, _| false);
        network.server().force_long(level, &[0x1e], 0);
        network.run_for(RTT * 4);
        let confirmed = network.client_events.iter().any(|(_, event)| *event == Event::Confirmed);
        // Of Handshake packets the client has no keys yet: it keeps them until the flight is repeated.
        assert_eq!((verdict(&network.client_events), confirmed), (VIOLATION, false), "{level:?}");
    }
}
