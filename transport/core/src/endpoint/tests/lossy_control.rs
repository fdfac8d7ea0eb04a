//! Frames about paths and connection IDs over links that lose a third of all datagrams: each is repeated until it arrives.

use super::basics::read_all;
use super::network::{Network, transport};
use crate::PathId;
use crate::connection::{Event, FourTuple, Moving, PathEvent};
use crate::endpoint::ConnectionHandle;
use crate::stream::Direction;
use crate::wire::frame::Status;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
const ROUNDS: u64 = 120;

/// A connection over the first of two links.
fn connected() -> (Network, ConnectionHandle, FourTuple) {
    let mut network = Network::new(transport(), transport());
    let (first, second) = (network.link(RTT / 2), network.link(RTT / 2));
    let client = network.connect(first);
    network.run_for(RTT * 5);
    (network, client, second)
}

/// All links lose so many of ten datagrams from now on.
fn lose(network: &mut Network, of_ten: u32, seed: u64) {
    for (index, link) in network.links.iter_mut().enumerate() {
        let mut dice = StdRng::seed_from_u64(10 * seed + index as u64);
        link.drop = Box::new(move |_, _| dice.random_range(0..10) < of_ten);
    }
}

/// The last word of the peer about path 0 that was told.
fn advice(events: &[(ConnectionHandle, Event)]) -> Option<Status> {
    events.iter().rev().find_map(|(_, event)| match event {
        Event::Path(PathEvent::PeerStatus(PathId::ZERO, status)) => Some(*status),
        _ => None,
    })
}

#[test]
fn statuses_paths_and_connection_ids_agree_after_any_loss() {
    let (mut network, client, second) = connected();
    for round in 0..ROUNDS {
        let status = if round % 2 == 0 { Status::Backup } else { Status::Available };
        let now = network.now;
        let opened = network.client(client).open_path(second, now);
        let id = opened.unwrap_or_else(|error| panic!("round {round}: {error}"));
        network.run_for(RTT * 5);
        lose(&mut network, 3, round);
        network.client(client).set_path_status(PathId::ZERO, status).expect("it is open");
        network.server().set_path_status(PathId::ZERO, status).expect("it is open");
        let now = network.now;
        network.client(client).rotate_connection_id(PathId::ZERO, now).expect("one is left");
        network.server().rotate_connection_id(PathId::ZERO, now).expect("one is left");
        network.client(client).abandon_path(id, 0, now).expect("another is open");
        network.run_for(RTT * 5);
        lose(&mut network, 0, round);
        network.run_for(Duration::from_secs(3));
        assert_eq!(network.server().path_ids(), [PathId::ZERO], "round {round}");
        assert_eq!(network.client(client).path_ids(), [PathId::ZERO], "round {round}");
        let told = (advice(&network.client_events), advice(&network.server_events));
        assert_eq!(told, (Some(status), Some(status)), "round {round}");
    }
    assert_eq!(network.verdict(), None);
}

#[test]
fn a_path_that_is_moved_time_and_again_under_loss_carries_all_that_is_written() {
    let (mut network, client, second) = connected();
    let first = FourTuple { local: network.links[0].client, remote: network.links[0].server };
    // The other address of the client, to the address of the server that the connection began with.
    let other = network.link_from(second.local, RTT / 2);
    for round in 0..40 {
        lose(&mut network, if round % 2 == 0 { 2 } else { 0 }, round);
        let (to, now) = (if round % 2 == 0 { other } else { first }, network.now);
        let moved = network.client(client).migrate(PathId::ZERO, to, Moving::AtOnce, now);
        moved.unwrap_or_else(|error| panic!("round {round}: {error}"));
        let id = network.client(client).open(Direction::Unidirectional).expect("within the limit");
        network.client(client).write(id, &[round as u8; 20_000]).expect("there is room");
        network.client(client).finish(id).expect("it is open");
        network.run_for(Duration::from_secs(2));
        lose(&mut network, 0, round);
        network.run_for(Duration::from_secs(4));
        assert_eq!(read_all(&mut network, id), vec![round as u8; 20_000], "round {round}");
        assert!(network.server().path_ids() == [PathId::ZERO]);
    }
    assert_eq!(network.verdict(), None);
}
