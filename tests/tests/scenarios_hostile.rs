//! Input that nobody sane sends: nothing panics, what is bad is ignored or closes the connection with the right code.

use hvq_emulation::Direction;
use hvq_scheduler::Policy;
use hvq_tests::net::{Fate, Net, Side};
use hvq_tests::transfer::Transfer;
use hvq_transport::connection::{Event, TransportConfig};
use hvq_transport::error::{ConnectionError, Dropped};
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

const WIRE: &str = "rtt=20ms,rate=50mbit";
const UNKNOWN_VERSION: [u8; 4] = [0x1a, 0x2a, 0x3a, 0x4a];

type Recording = Rc<RefCell<Vec<(Direction, Vec<u8>)>>>;

fn config() -> TransportConfig {
    TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()))
}

fn network(seed: u64) -> Net {
    let mut net = Net::new(config(), config(), seed);
    let tuple = net.wire(WIRE);
    net.wire(WIRE);
    net.connect(tuple);
    net
}

/// Records what both sides send.
fn record(net: &mut Net) -> Recording {
    let recording = Recording::default();
    let copy = Rc::clone(&recording);
    net.tap = Some(Box::new(move |_, direction, bytes| {
        copy.borrow_mut().push((direction, bytes.to_vec()));
        Fate::Pass
    }));
    recording
}

fn receiver(direction: Direction) -> Side {
    match direction {
        Direction::Up => Side::Server,
        Direction::Down => Side::Client,
    }
}

fn dropped(net: &Net, reason: Dropped) -> u64 {
    net.server.endpoint.stats().dropped.get(&reason).copied().unwrap_or(0)
}

/// A long header of `version` with connection IDs of 8 bytes, in a datagram of `size` bytes.
fn long_header(first: u8, version: [u8; 4], size: usize) -> Vec<u8> {
    let mut bytes = vec![first];
    bytes.extend(version);
    bytes.push(8);
    bytes.extend([0xd; 8]);
    bytes.push(8);
    bytes.extend([0x5; 8]);
    bytes.resize(size, 0);
    bytes
}

#[test]
fn a_transfer_survives_random_datagrams_from_the_addresses_of_both_peers() {
    for seed in 0..40 {
        let mut dice = StdRng::seed_from_u64(seed);
        let mut net = network(seed);
        let mut transfer = Transfer::new(seed, 2, 60_000, Vec::new());
        for _ in 0..200 {
            let mut bytes = vec![0; dice.random_range(0..1500)];
            dice.fill_bytes(&mut bytes);
            if let Some(first) = bytes.first_mut() {
                *first |= 0x40;
            }
            let direction = if dice.random_bool(0.5) { Direction::Up } else { Direction::Down };
            let datagram = net.arriving(0, direction, &bytes);
            net.inject(receiver(direction), datagram);
            let next = net.now + Duration::from_micros(500);
            net.run(&mut transfer, next);
        }
        let until = net.now + Duration::from_secs(10);
        assert!(net.run(&mut transfer, until) && transfer.failure.is_none(), "{}", net.describe());
        assert_eq!(net.server.endpoint.handles().count(), 1, "no state for garbage");
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-12.3
//= type=test
//# Duplicate suppression MUST happen after removing packet protection for the reasons described in Section
//# 9.5 of [QUIC-TLS].
#[test]
fn a_transfer_survives_truncated_extended_flipped_and_repeated_copies_of_its_own_datagrams() {
    for seed in 0..40 {
        let mut dice = StdRng::seed_from_u64(seed);
        let mut net = network(seed);
        let recording = record(&mut net);
        let mut transfer = Transfer::new(seed, 2, 60_000, Vec::new());
        for _ in 0..300 {
            let next = net.now + Duration::from_micros(400);
            net.run(&mut transfer, next);
            let copy = {
                let recorded = recording.borrow();
                recorded.get(dice.random_range(0..recorded.len().max(1))).cloned()
            };
            let Some((direction, mut bytes)) = copy else { continue };
            match dice.random_range(0..4) {
                0 => bytes.truncate(dice.random_range(0..bytes.len())),
                1 => bytes.resize(bytes.len() + dice.random_range(1..100), dice.random()),
                2 => {
                    for _ in 0..dice.random_range(1..5) {
                        let index = dice.random_range(0..bytes.len());
                        bytes[index] ^= 1 << dice.random_range(0..8);
                    }
                }
                _ => {}
            }
            let datagram = net.arriving(0, direction, &bytes);
            net.inject(receiver(direction), datagram);
        }
        let until = net.now + Duration::from_secs(10);
        let done = net.run(&mut transfer, until);
        assert!(done && transfer.failure.is_none(), "{}\n{}", transfer.describe(), net.describe());
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-12.2
//= type=test
//# the receiver MAY either discard or buffer the packet for later processing and MUST attempt to process the
//# remaining packets.
#[test]
fn a_handshake_survives_damage_to_a_fifth_of_its_datagrams() {
    for seed in 0..60 {
        let mut dice = StdRng::seed_from_u64(seed);
        let mut net = network(seed);
        net.tap = Some(Box::new(move |_, _, bytes| {
            if !dice.random_bool(0.2) {
                return Fate::Pass;
            }
            let mut damaged = bytes.to_vec();
            let index = dice.random_range(0..damaged.len());
            // Not the version: a client that meets another one may not go on (RFC 9000 §6.2).
            let index = if (1..5).contains(&index) { damaged.len() - 1 } else { index };
            damaged[index] ^= 0x10;
            Fate::Become(damaged)
        }));
        net.run_for(Duration::from_secs(8));
        assert!(net.client.saw(&Event::Confirmed), "{}", net.describe());
    }
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2
//= type=test
//# Servers MUST drop smaller packets that specify unsupported versions.
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
//= type=test
//# The server MUST include the value from the Source Connection ID field of the packet it receives in the
//# Destination Connection ID field
//= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
//= type=test
//# The value for Source Connection ID MUST be copied from the Destination Connection ID of the received
//# packet, which is initially randomly selected by a client
#[test]
fn an_unknown_version_is_answered_with_version_negotiation_if_the_datagram_is_large_enough() {
    // RFC 9000 §6.1, §5.2.2.
    let mut net = Net::new(config(), config(), 1);
    net.wire(WIRE);
    let recording = record(&mut net);
    for size in [1199, 1200] {
        let datagram = net.arriving(0, Direction::Up, &long_header(0xc0, UNKNOWN_VERSION, size));
        net.inject(Side::Server, datagram);
        net.run_for(Duration::from_millis(1));
    }
    let answers = recording.borrow();
    assert_eq!(answers.len(), 1);
    let (direction, answer) = &answers[0];
    assert_eq!((*direction, &answer[1..5]), (Direction::Down, &[0; 4][..]));
    // The connection IDs change places.
    assert_eq!((&answer[6..14], &answer[15..23]), (&[0x5; 8][..], &[0xd; 8][..]));
    assert!(answer[23..].chunks(4).any(|version| version == [0, 0, 0, 1]));
    assert!(answer.len() < 1200, "no amplification");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-6.1
//= type=test
//# An endpoint MUST NOT send a Version Negotiation packet in response to receiving a Version Negotiation
//# packet.
#[test]
fn version_negotiation_is_never_answered() {
    // RFC 9000 §6.1.
    let mut net = Net::new(config(), config(), 1);
    net.wire(WIRE);
    let recording = record(&mut net);
    let datagram = net.arriving(0, Direction::Up, &long_header(0xc0, [0; 4], 1200));
    net.inject(Side::Server, datagram);
    net.run_for(Duration::from_secs(1));
    assert!(recording.borrow().is_empty());
}

/// Answers the client's first datagram with Version Negotiation that lists `versions`.
fn negotiate(versions: &[[u8; 4]]) -> Net {
    let mut net = network(3);
    let first = record(&mut net);
    net.run_for(Duration::from_micros(10));
    let initial = first.borrow()[0].1.clone();
    net.tap = Some(Box::new(|_, _, _| Fate::Drop));
    let destination = usize::from(initial[5]);
    let source = 6 + destination + 1;
    let mut answer = vec![0xc0, 0, 0, 0, 0];
    answer.push(initial[source - 1]);
    answer.extend(&initial[source..source + usize::from(initial[source - 1])]);
    answer.push(initial[5]);
    answer.extend(&initial[6..6 + destination]);
    answer.extend(versions.iter().flatten());
    let datagram = net.arriving(0, Direction::Down, &answer);
    net.inject(Side::Client, datagram);
    net.run_for(Duration::from_millis(100));
    net
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-6.2
//= type=test
//# A client that supports only this version of QUIC MUST abandon the current connection attempt if it
//# receives a Version Negotiation packet, with the following two exceptions
#[test]
fn a_client_gives_up_if_the_server_offers_no_version_that_it_speaks() {
    let net = negotiate(&[UNKNOWN_VERSION]);
    assert!(net.client.saw(&Event::Closed(ConnectionError::VersionMismatch)), "{}", net.describe());
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-6.2
//= type=test
//# A client MUST discard a Version Negotiation packet that lists the QUIC version selected by the client.
#[test]
fn version_negotiation_that_lists_the_version_in_use_is_ignored() {
    // RFC 9000 §6.2: it is an attack.
    let net = negotiate(&[UNKNOWN_VERSION, [0, 0, 0, 1]]);
    assert!(net.client.get().is_some() && net.client.events.is_empty(), "{}", net.describe());
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-8.1
//= type=test
//# Clients MUST ensure that UDP datagrams containing Initial packets have UDP payloads of at least 1200
//# bytes, adding PADDING frames as necessary
//= https://www.rfc-editor.org/rfc/rfc9000#section-14
//= type=test
//# Therefore, an endpoint MUST NOT close a connection when it receives a datagram that does not meet size
//# constraints; the endpoint MAY discard such datagrams.
//= https://www.rfc-editor.org/rfc/rfc9000#section-14.1
//= type=test
//# A server MUST discard an Initial packet that is carried in a UDP datagram with a payload that is smaller
//# than the smallest allowed maximum datagram size of 1200 bytes
//= https://www.rfc-editor.org/rfc/rfc9001#section-9.3
//= type=test
//# First, the packet containing a ClientHello MUST be padded to a minimum size
#[test]
fn an_initial_in_a_small_datagram_leaves_no_state() {
    // RFC 9000 §14.1.
    let mut net = network(4);
    net.tap = Some(Box::new(|_, direction, bytes| match direction {
        Direction::Up => Fate::Become(bytes[..bytes.len().min(1199)].to_vec()),
        Direction::Down => Fate::Pass,
    }));
    net.run_for(Duration::from_secs(5));
    assert_eq!(net.server.endpoint.handles().count(), 0);
    assert!(
        dropped(&net, Dropped::SmallInitial) + dropped(&net, Dropped::Malformed) > 0,
        "{}",
        net.describe()
    );
}

#[test]
fn forged_initials_leave_no_state() {
    let mut net = Net::new(config(), config(), 5);
    net.wire(WIRE);
    let mut dice = StdRng::seed_from_u64(5);
    for _ in 0..2000 {
        let mut bytes = long_header(0xc3, [0, 0, 0, 1], 1200);
        dice.fill_bytes(&mut bytes[6..14]);
        // Token length 0, then a length that covers the rest of the datagram, then noise.
        bytes[23] = 0;
        bytes[24..26].copy_from_slice(&(0x4000_u16 | (1200 - 26)).to_be_bytes());
        dice.fill_bytes(&mut bytes[26..]);
        let datagram = net.arriving(0, Direction::Up, &bytes);
        net.inject(Side::Server, datagram);
    }
    net.run_for(Duration::from_secs(1));
    assert_eq!(net.server.endpoint.handles().count(), 0);
    // The line of what waits for its turn is bounded: the rest gives way unread.
    let unread = net.server.endpoint.stats().slots.displaced_initials;
    assert_eq!(dropped(&net, Dropped::Undecryptable) + unread, 2000, "{}", net.describe());
    assert_eq!(net.wires[0].down.sent, 0, "forged packets get no answer");
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-11
//= type=test
//# A stateless reset MUST NOT be used by an endpoint that has the state necessary to send a frame on the
//# connection.
#[test]
fn datagrams_that_look_like_stateless_resets_close_nothing_and_are_answered_rarely() {
    // attacks.md F4, F6.
    let mut net = network(6);
    net.run_for(Duration::from_millis(200));
    let mut dice = StdRng::seed_from_u64(6);
    let before = net.wires[0].up.sent + net.wires[0].down.sent;
    for size in 21..80 {
        let mut bytes = vec![0; size];
        dice.fill_bytes(&mut bytes);
        bytes[0] = 0x40 | bytes[0] & 0x3f;
        for direction in [Direction::Up, Direction::Down] {
            let datagram = net.arriving(0, direction, &bytes);
            net.inject(receiver(direction), datagram);
        }
    }
    net.run_for(Duration::from_secs(1));
    let sent = net.wires[0].up.sent + net.wires[0].down.sent - before;
    // RFC 9000 §10.3.3: of two ends, each answers what has 43 bytes or more, and the other answers that answer with less.
    assert_eq!(sent, 2 * (36 * 43 + 37 * 42), "answers die out");
    assert!(Side::BOTH.iter().all(|side| !net.end(*side).saw_any(|event| matches!(event, Event::Closed(_)))));
}
