//! Batches of datagrams: bulk fills them, small messages leave a few datagrams at a time.

use super::network::{Network, transport};
use crate::connection::{Event, TransportConfig};
use crate::endpoint::{ConnectionHandle, Output};
use crate::stream::Direction;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);

/// A connection with room for some ten datagrams.
fn connected() -> (Network, ConnectionHandle) {
    // Of one size: no larger one is tried, which would be a batch by itself.
    let one_size = TransportConfig { datagram_size: 1200.into(), ..transport() };
    let mut network = Network::new(one_size, transport());
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 5);
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
    (network, client)
}

/// Writes `bytes` on each of `count` streams of the client.
fn write(network: &mut Network, client: ConnectionHandle, count: usize, bytes: usize) {
    for _ in 0..count {
        let id = network.client(client).open(Direction::Unidirectional).unwrap();
        assert_eq!(network.client(client).write(id, &vec![7; bytes]), Ok(bytes));
        network.client(client).finish(id).unwrap();
    }
}

/// The number of datagrams of each batch that the client has to send now.
fn batches(network: &mut Network) -> Vec<usize> {
    let mut batches = Vec::new();
    loop {
        match network.client.poll(network.now) {
            Output::Transmit(transmit) => {
                let length = transmit.bytes.len();
                batches.push(transmit.segment.map_or(1, |size| length.div_ceil(size)));
            }
            Output::Event(..) => {}
            Output::Idle(_) => return batches,
        }
    }
}

#[test]
fn small_messages_leave_in_a_few_datagrams_and_then_in_twice_as_many() {
    let (mut network, client) = connected();
    // As many as nine datagrams hold.
    write(&mut network, client, 90, 100);
    assert_eq!(batches(&mut network), [4, 5]);
}

#[test]
fn bulk_fills_a_batch_on_one_stream_and_on_several() {
    for (streams, bytes) in [(1, 10_000), (4, 2_500)] {
        let (mut network, client) = connected();
        write(&mut network, client, streams, bytes);
        assert_eq!(batches(&mut network), [9], "{streams} streams");
    }
}
