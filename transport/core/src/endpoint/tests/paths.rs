//! Two paths: opening, using, losing and abandoning them.

use super::basics::read_all;
use super::event_log::{EventLog, Packet, protected};
use super::network::{Network, transport};
use crate::PathId;
use crate::connection::{Event, PathEvent, Role};
use crate::endpoint::ConnectionHandle;
use crate::stream::Direction;
use crate::wire::connection_id::ConnectionId;
use crate::wire::frame::Frame;
use crate::wire::header::PacketKind;
use std::time::Duration;

const FAST: Duration = Duration::from_micros(2500);
const SLOW: Duration = Duration::from_millis(25);

fn two_paths() -> (Network, ConnectionHandle) {
    let mut network = Network::new(transport(), transport());
    let (fast, slow) = (network.link(FAST), network.link(SLOW));
    let client = network.connect(fast);
    network.run_for(FAST * 5);
    let now = network.now;
    let id = network.client(client).open_path(slow, now).unwrap();
    assert_eq!(id, PathId(1));
    network.run_for(SLOW * 5);
    (network, client)
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
//= type=test
//# A client that wants to use a new path MUST validate the peer's address as described in Section 8.2 of
//# [QUIC-TRANSPORT], unless it has previously validated the 4-tuple used for that path.
//= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
//= type=test
//# After receiving packets from the client on a new path, if the server decides to use the new path, the
//# server MUST validate the peer's address before sending any data as described in
#[test]
fn a_second_path_is_opened_and_validated_both_ways() {
    let (mut network, client) = two_paths();
    let validated = Event::Path(PathEvent::Validated(PathId(1)));
    assert!(network.client_events.contains(&(client, validated.clone())));
    assert!(
        network.server_events.iter().any(|(_, event)| *event == Event::Path(PathEvent::Opened(PathId(1))))
    );
    assert!(network.server_events.iter().any(|(_, event)| *event == validated));
    assert_eq!(network.server().path_ids(), [PathId(0), PathId(1)]);
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
//= type=test
//# An endpoint MUST use a connection ID associated to the same path ID as used in the packet received by the
//# endpoint when it intends to send packets on the same path.
//= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
//= type=test
//# If an endpoint sends a PATH_RESPONSE (Section 19.18 of [QUIC-TRANSPORT]), it MUST be sent on the same path
//# as used by the packet that contained the PATH_CHALLENGE frame
#[test]
fn packets_and_responses_stay_on_their_path() {
    let event_log = EventLog::new();
    let mut network = Network::new(event_log.keep(transport()), event_log.keep(transport()));
    let (fast, slow) = (network.link(FAST), network.link(SLOW));
    let recorded = [network.record(0), network.record(1)];
    let client = network.connect(fast);
    network.run_for(FAST * 5);
    let now = network.now;
    assert_eq!(network.client(client).open_path(slow, now), Ok(PathId(1)));
    network.run_for(SLOW * 5);
    let id = network.client(client).open(Direction::Unidirectional).unwrap();
    network.client(client).write(id, &vec![9; 200_000]).unwrap();
    network.run_for(SLOW * 10);

    for (path, datagrams) in [PathId(0), PathId(1)].into_iter().zip(recorded) {
        let packets = protected(&datagrams.borrow());
        let (short, long): (Vec<_>, Vec<_>) =
            packets.into_iter().partition(|packet| packet.kind == PacketKind::OneRtt);
        let of_handshake: Vec<_> = long.into_iter().map(|packet| packet.source).collect();
        assert_eq!(of_handshake.is_empty(), path == PathId(1));
        for end in [Role::Client, Role::Server] {
            // What one end issues for a path is where the other's packets on it go to.
            let issued = issued(&event_log.sent(end), path);
            let used = short.iter().filter(|packet| issued.contains(&packet.destination)).count();
            assert!(used > 0 || path == PathId(0), "{end:?} {path}");
        }
        let all = [Role::Client, Role::Server].map(|end| issued(&event_log.sent(end), path)).concat();
        let known = |id| all.contains(id) || of_handshake.contains(id);
        assert!(short.len() > 5 && short.iter().all(|packet| known(&packet.destination)), "{path}");
    }
    for end in [Role::Client, Role::Server] {
        let asked = challenges(&event_log.received(end));
        let answered = responses(&event_log.sent(end));
        assert!(answered.iter().any(|(path, _)| *path == PathId(1)), "{end:?}");
        assert!(answered.iter().all(|response| asked.contains(response)), "{end:?} {asked:?} {answered:?}");
    }
}

/// The connection IDs that `packets` issue for `path`.
fn issued(packets: &[Packet], path: PathId) -> Vec<ConnectionId> {
    let frames = packets.iter().flat_map(|packet| &packet.frames);
    let id = |frame: &Frame| match frame {
        Frame::NewConnectionId(new) if new.path.unwrap_or(PathId(0)) == path => Some(new.id),
        _ => None,
    };
    frames.filter_map(id).collect()
}

fn challenges(packets: &[Packet]) -> Vec<(PathId, [u8; 8])> {
    let of = |packet: &Packet, frame: &Frame| match frame {
        Frame::PathChallenge(data) => Some((packet.path, *data)),
        _ => None,
    };
    packets
        .iter()
        .flat_map(|packet| packet.frames.iter().filter_map(move |frame| of(packet, frame)))
        .collect()
}

fn responses(packets: &[Packet]) -> Vec<(PathId, [u8; 8])> {
    let of = |packet: &Packet, frame: &Frame| match frame {
        Frame::PathResponse(data) => Some((packet.path, *data)),
        _ => None,
    };
    packets
        .iter()
        .flat_map(|packet| packet.frames.iter().filter_map(move |frame| of(packet, frame)))
        .collect()
}

#[test]
fn a_transfer_outlives_the_path_it_started_on() {
    let (mut network, client) = two_paths();
    let id = network.client(client).open(Direction::Unidirectional).unwrap();
    let data = vec![9; 200_000];
    assert_eq!(network.client(client).write(id, &data), Ok(data.len()));
    network.client(client).finish(id).unwrap();
    network.run_for(FAST);
    network.links[0].drop = Box::new(|_, _| true);
    let mut received = Vec::new();
    for _ in 0..100 {
        network.run_for(SLOW);
        received.extend(read_all(&mut network, id));
    }
    assert_eq!(received.len(), data.len());
}

//= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
//= type=test
//# To open a new path, an endpoint MUST use a new connection ID associated with an unused path ID
//= https://www.rfc-editor.org/rfc/rfc10069#section-3.4
//= type=test
//# Endpoints that send a PATH_ABANDON frame MUST treat all connection IDs received from the peer for the path
//# ID indicated in the PATH_ABANDON as immediately retired
#[test]
fn an_abandoned_path_is_freed_on_both_sides_and_its_id_is_not_used_again() {
    let (mut network, client) = two_paths();
    let now = network.now;
    network.client(client).abandon_path(PathId(0), 0x3e, now).unwrap();
    network.run_for(SLOW * 4);
    assert_eq!(network.client(client).path_ids(), [PathId(1)]);
    assert_eq!(network.server().path_ids(), [PathId(1)]);
    let now = network.now;
    let tuple =
        crate::connection::FourTuple { local: network.links[0].client, remote: network.links[0].server };
    assert_eq!(network.client(client).open_path(tuple, now), Ok(PathId(2)));
    network.run_for(SLOW * 8);
    assert_eq!(network.server().path_ids(), [PathId(1), PathId(2)]);
}
