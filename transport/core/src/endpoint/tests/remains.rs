//! Remains of a connection that is over: data that nobody read, and knowledge of its path.

use super::network::{Network, transport};
use crate::connection::Event;
use crate::endpoint::{ConnectionHandle, Output};
use crate::stream::{Direction, ReadOutcome};
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);

/// A client whose server closes the connection after it has sent `last` on a stream, which the client does not read. Nothing is
/// left of the connection but that.
fn over(last: &[u8]) -> (Network, ConnectionHandle) {
    let mut network = Network::new(transport(), transport());
    network.client.config.epoch = Duration::from_secs(1_000);
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 3);
    if !last.is_empty() {
        let id = network.server().open(Direction::Unidirectional).expect("the client permits a stream");
        assert_eq!(network.server().write(id, last), Ok(last.len()));
    }
    network.run_for(RTT * 3);
    let now = network.now;
    network.server().close(7, b"", now);
    network.run_for(RTT);
    network.now += Duration::from_secs(10);
    loop {
        match network.client.poll(network.now) {
            Output::Event(handle, Event::Forgotten) if handle == client => return (network, client),
            Output::Idle(_) => panic!("it is not over"),
            _ => {}
        }
    }
}

#[test]
fn data_that_was_not_read_is_left_until_the_next_poll() {
    let (mut network, client) = over(b"last");
    assert!(network.client.take_unread(ConnectionHandle(99)).is_none(), "that is another");
    let mut unread = network.client.take_unread(client).expect("there is data");
    let id = unread.accept(Direction::Unidirectional).expect("there is a stream");
    assert!(matches!(unread.read(id, 100), Ok(ReadOutcome::Data(data)) if data == b"last"[..]));
    assert!(network.client.take_unread(client).is_none(), "it is taken once");
    let (mut network, client) = over(b"");
    assert!(network.client.take_unread(client).is_none(), "there is nothing to read");
    let (mut network, client) = over(b"last");
    network.client.poll(network.now);
    assert!(network.client.take_unread(client).is_none(), "the endpoint goes on");
}

#[test]
fn knowledge_of_a_path_is_left_for_a_later_endpoint() {
    let (mut network, _) = over(b"last");
    let (bytes, now) = (network.client.knowledge(), network.now);
    assert_eq!(network.client.add_knowledge(&bytes, now), Some(1));
    assert_eq!(network.client.add_knowledge(&bytes[1..], now), None, "it is damaged");
}
