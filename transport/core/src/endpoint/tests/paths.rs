//! Two paths: opening, using, losing and abandoning them.

use super::basics::read_all;
use super::network::{Network, transport};
use crate::PathId;
use crate::connection::{Event, PathEvent};
use crate::endpoint::ConnectionHandle;
use crate::stream::Direction;
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
//# An endpoint MUST use a connection ID associated to the same path ID as used in the packet received by the
//# endpoint when it intends to send packets on the same path.
//= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
//= type=test
//# A client that wants to use a new path MUST validate the peer's address as described in Section 8.2 of
//# [QUIC-TRANSPORT], unless it has previously validated the 4-tuple used for that path.
//= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
//= type=test
//# After receiving packets from the client on a new path, if the server decides to use the new path, the
//# server MUST validate the peer's address before sending any data as described in
//= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
//= type=test
//# If an endpoint sends a PATH_RESPONSE (Section 19.18 of [QUIC-TRANSPORT]), it MUST be sent on the same path
//# as used by the packet that contained the PATH_CHALLENGE frame
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
