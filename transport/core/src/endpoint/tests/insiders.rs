//! Peers that finished the handshake and then do not play by the rules: attacks.md, sections C and D.

use super::basics::read_all;
use super::forged::{answer, initial, sealed};
use super::network::{Network, transport};
use crate::PathId;
use crate::connection::{Event, FourTuple, Multipath, TransportConfig};
use crate::endpoint::ConnectionHandle;
use crate::error::{ConnectionError, ErrorCode};
use crate::ranges::Ranges;
use crate::stream::Direction;
use crate::time::Instant;
use crate::wire::connection_id::{ConnectionId, ResetToken};
use crate::wire::frame::{Ack, Frame, NewConnectionId};
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
const VIOLATION: Option<ErrorCode> = Some(ErrorCode::PROTOCOL_VIOLATION);

fn single() -> TransportConfig {
    TransportConfig { multipath: Multipath::Off, ..transport() }
}

/// A client that is connected over one path, without multipath.
fn connected() -> (Network, ConnectionHandle, FourTuple) {
    let mut network = Network::new(single(), single());
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 5);
    (network, client, tuple)
}

/// The code that the server closes with when the client sends `frames`.
fn answer_to(frames: impl IntoIterator<Item = Frame>) -> Option<ErrorCode> {
    let (mut network, client, _) = connected();
    for frame in frames {
        network.client(client).force(frame);
    }
    network.run_for(RTT * 5);
    network.verdict()
}

fn ack(number: u64) -> Frame {
    let mut ranges = Ranges::new();
    ranges.insert(number);
    Frame::Ack(Ack::from_ranges(None, &ranges, 0, None, 100).unwrap())
}

fn issue(sequence: u64, retire_prior_to: u64, id: u8) -> Frame {
    Frame::NewConnectionId(NewConnectionId {
        path: None,
        sequence,
        retire_prior_to,
        id: ConnectionId::new(&[id, (sequence >> 8) as u8, sequence as u8, 9, 9, 9, 9, 9]).unwrap(),
        token: ResetToken([id; 16]),
    })
}

#[test]
fn an_acknowledgement_of_what_was_never_sent_closes_in_every_packet_number_space() {
    // attacks.md C1, C5, RFC 9000 §13.1: a number of one space means nothing in another.
    assert_eq!(answer_to([ack(1 << 40)]), VIOLATION);
    let mut payload = Vec::new();
    ack(7).put(&mut payload);
    let bytes = sealed(&initial(&[1; 8], &payload), |first| first);
    let mut network = Network::new(single(), single());
    network.link(RTT / 2);
    assert_eq!(answer(&mut network, &[1; 8], &bytes), VIOLATION);
}

#[test]
fn an_acknowledgement_of_packet_0_that_was_guessed_closes() {
    // RFC 9000 §21.4: the first number is drawn, so that nobody acknowledges it without having read the packet.
    assert_eq!(answer_to([ack(0)]), VIOLATION);
}

#[test]
fn a_peer_that_never_answers_is_given_up_with_bounded_state() {
    // attacks.md C8: the probe timeout doubles up to the idle timeout, and nothing beyond the window is sent but probes,
    // those of liveness small and at their pace.
    let (mut network, client, _) = connected();
    let id = network.client(client).open(Direction::Unidirectional).unwrap();
    network.client(client).write(id, &vec![1; 200_000]).unwrap();
    network.links[0].drop = Box::new(|_, _| true);
    let lasting = |event: &Event| matches!(event, Event::Closed(ConnectionError::IdleTimeout));
    for second in 0..600 {
        if network.client_events.iter().any(|(_, event)| lasting(event)) {
            assert!(second >= 25, "{second}");
            return;
        }
        let path = network.client(client).stats().paths[0].clone();
        let probes = 2 * 1452 * path.counters.probe_timeouts as usize;
        let liveness = 40 * 10 * (second + 1);
        assert!(path.in_flight <= path.window + probes + liveness, "{path:?}");
        assert!(path.counters.probe_timeouts < 16 && path.counters.datagrams_sent < 400, "{path:?}");
        network.run_for(Duration::from_secs(1));
    }
    panic!("{:?}", network.client_events);
}

//= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
//= type=test
//# In that case, an endpoint MUST NOT send an ack-eliciting frame in all packets that would otherwise be
//# non-ack-eliciting, to avoid an infinite feedback loop of acknowledgments.
#[test]
fn two_idle_ends_are_silent() {
    // attacks.md C10: no acknowledgement brings about another.
    let (mut network, client, _) = connected();
    let id = network.client(client).open(Direction::Unidirectional).unwrap();
    network.client(client).write(id, &[1; 20_000]).unwrap();
    network.run_for(Duration::from_secs(3));
    let sent = network.record(0);
    network.run_for(Duration::from_secs(20));
    assert_eq!(sent.borrow().len(), 0);
    assert!(network.client(client).lifecycle().is_open());
}

#[test]
fn losses_while_a_path_is_opened_end_in_a_path_or_in_none() {
    // attacks.md C13: every choice of the first datagrams of either direction.
    for lost in 0..64_u32 {
        let mut network = Network::new(transport(), transport());
        let (first, second) = (network.link(RTT / 2), network.link(RTT / 2));
        let client = network.connect(first);
        network.run_for(RTT * 5);
        let mut number = 0;
        network.links[1].drop = Box::new(move |_, _| {
            number += 1;
            number <= 6 && lost & 1 << (number - 1) != 0
        });
        let now = network.now;
        network.client(client).open_path(second, now).unwrap();
        network.run_for(Duration::from_secs(12));
        let ids = network.client(client).path_ids();
        assert_eq!(ids, network.server().path_ids(), "{lost:b}");
        assert!(ids.contains(&PathId::ZERO) && network.client(client).lifecycle().is_open(), "{lost:b}");
    }
}

#[test]
fn more_connection_ids_than_were_permitted_close() {
    // attacks.md D1, RFC 9000 §5.1.1: four are stored.
    let frames = (10..14).map(|sequence| issue(sequence, 0, 1));
    assert_eq!(answer_to(frames), Some(ErrorCode::CONNECTION_ID_LIMIT_ERROR));
}

#[test]
fn a_connection_id_or_a_sequence_number_that_changes_its_meaning_closes() {
    // attacks.md D2, RFC 9000 §19.15.
    assert_eq!(answer_to([issue(10, 10, 1), issue(10, 10, 2)]), VIOLATION);
    let Frame::NewConnectionId(same) = issue(10, 10, 1) else { unreachable!("it is one") };
    let other = Frame::NewConnectionId(NewConnectionId { sequence: 11, ..same });
    assert_eq!(answer_to([issue(10, 10, 1), other]), VIOLATION);
}

#[test]
fn endless_retirements_whose_answers_are_not_acknowledged_close() {
    // attacks.md D4, C9, C11, CVE-2024-22189: at most ten times the limit are remembered.
    let (mut network, client, tuple) = connected();
    let sent = network.record(0);
    // What the server answers comes too late: the client never acknowledges a retirement.
    network.links[0].delay = Duration::from_secs(1_000);
    for sequence in 10..200 {
        network.client(client).force(issue(sequence, sequence, 1));
    }
    network.run_for(Duration::from_millis(1));
    let flight = sent.borrow().clone();
    for datagram in &flight {
        network.forge(tuple.local, datagram);
    }
    network.run_for(Duration::from_millis(1));
    assert_eq!(network.verdict(), Some(ErrorCode::CONNECTION_ID_LIMIT_ERROR));
}

#[test]
fn retiring_the_connection_id_in_use_or_one_never_issued_closes() {
    // attacks.md D5, RFC 9000 §19.16.
    for sequence in [0, 1_000] {
        assert_eq!(answer_to([Frame::RetireConnectionId { path: None, sequence }]), VIOLATION, "{sequence}");
    }
}

#[test]
fn a_flood_of_challenges_brings_few_responses() {
    // attacks.md D6, CVE-2023-49295: 130 in each datagram.
    let (mut network, client, _) = connected();
    for number in 0..1_300_u64 {
        network.client(client).force(Frame::PathChallenge(number.to_be_bytes()));
    }
    let before = network.server().stats().paths[0].counters.datagrams_sent;
    network.run_for(RTT * 10);
    let sent = network.server().stats().paths[0].counters.datagrams_sent - before;
    // Eight wait at most, for each of the about ten datagrams; acknowledgements come on top.
    assert!(sent > 0 && sent <= 130, "{sent}");
    assert!(network.client(client).lifecycle().is_open() && network.server().lifecycle().is_open());
}

#[test]
fn responses_that_nobody_asked_for_are_ignored() {
    // attacks.md D7.
    assert_eq!(answer_to((0..100_u64).map(|number| Frame::PathResponse(number.to_be_bytes()))), None);
}

#[test]
fn a_server_that_confirms_the_handshake_again_changes_nothing() {
    // attacks.md B14, CVE-2025-59530.
    let (mut network, client, _) = connected();
    network.server().force(Frame::HandshakeDone);
    network.server().force(Frame::HandshakeDone);
    network.run_for(RTT * 3);
    assert!(network.client(client).lifecycle().is_open() && network.server().lifecycle().is_open());
}

#[test]
fn machines_that_sleep_for_an_hour_find_their_connection_timed_out() {
    // attacks.md J4, RFC 9000 §10.1.
    let (mut network, ..) = connected();
    network.now += Duration::from_secs(3_600);
    network.run_for(Duration::from_secs(1));
    let timed_out = |event: &Event| matches!(event, Event::Closed(ConnectionError::IdleTimeout));
    for events in [&network.client_events, &network.server_events] {
        assert!(events.iter().any(|(_, event)| timed_out(event)), "{events:?}");
    }
    assert_eq!((network.client.handles().count(), network.server.handles().count()), (0, 0));
}

#[test]
fn a_clock_that_steps_back_ends_no_connection() {
    // attacks.md J4: what was sent later than now is no younger than nothing.
    let (mut network, client, _) = connected();
    for back in [1, 50, 150] {
        let id = network.client(client).open(Direction::Unidirectional).unwrap();
        network.client(client).write(id, &[1; 30_000]).unwrap();
        network.client(client).finish(id).unwrap();
        network.run_for(RTT / 4);
        network.now = Instant::from_nanos(network.now.as_nanos() - back * 1_000_000);
        network.run_for(Duration::from_secs(5));
        assert_eq!(read_all(&mut network, id).len(), 30_000, "{back} ms");
    }
    assert!(network.client(client).lifecycle().is_open() && network.server().lifecycle().is_open());
}
