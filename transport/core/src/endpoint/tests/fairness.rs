//! One connection that wants everything, among many that want little: counted in turns, for time would measure the machine.

use super::network::{Network, Recording, address, transport};
use crate::connection::{Event, TransportConfig};
use crate::endpoint::{ConnectionHandle, EndpointConfig, Output};
use crate::memory::MemoryQuota;
use crate::stream::{Direction, ReadOutcome, StreamEvent, StreamLimits};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
/// Connections that ask for little.
const HEALTHY: usize = 1000;
/// Healthy connections that come at a time, so few that nobody has to prove an address.
const TOGETHER: usize = 50;
/// The bytes that the greedy connection gets ready to be sent: far more than a turn.
const BULK: usize = 8 << 20;

fn generous() -> TransportConfig {
    let window = 4 * BULK as u64;
    let streams = StreamLimits {
        max_data: window,
        stream_data_bidi_local: window,
        stream_data_uni: window,
        send_buffer: 4 * BULK,
        ..StreamLimits::default()
    };
    TransportConfig { streams, ..transport() }
}

/// Returns the server's outputs until it has nothing more to say: true and the size for a datagram of the healthy link,
/// false and the size for one of the other. The server answers every request.
fn outputs(network: &mut Network, healthy: SocketAddr) -> Vec<(bool, usize)> {
    let mut outputs = Vec::new();
    loop {
        let now = network.now;
        match network.server.poll(now) {
            Output::Transmit(transmit) => outputs.push((transmit.remote == healthy, transmit.bytes.len())),
            Output::Event(handle, Event::Stream(StreamEvent::Opened { direction })) => {
                answer(network, handle, direction);
            }
            Output::Event(..) => {}
            Output::Idle(_) => return outputs,
        }
    }
}

fn answer(network: &mut Network, handle: ConnectionHandle, direction: Direction) {
    let connection = network.server.connection(handle).unwrap();
    while let Some(id) = connection.accept(direction) {
        assert!(matches!(connection.read(id, usize::MAX), Ok(ReadOutcome::Data(_))));
        assert_eq!(connection.write(id, b"answer").unwrap(), 6);
        connection.finish(id).unwrap();
    }
}

/// A thousand connections over one link, and a greedy one over another, whose congestion window has grown: its handles at the
/// client and at the server.
fn crowd() -> (Network, Vec<ConnectionHandle>, [ConnectionHandle; 2]) {
    let mut network = Network::new(generous(), generous());
    let memory = Some(Arc::new(MemoryQuota::new(4 << 30)));
    network.restart_server(EndpointConfig { memory, ..EndpointConfig::default() });
    let (many, one) = (network.link(RTT / 2), network.link(RTT / 2));
    let greedy = network.connect(one);
    network.run_for(RTT * 3);
    let id = network.client(greedy).open(Direction::Bidirectional).unwrap();
    network.client(greedy).write(id, b"all of it").unwrap();
    network.run_for(RTT * 2);
    let at_server = network.server.handles().next().unwrap();
    let server = network.server();
    assert_eq!(server.accept(Direction::Bidirectional), Some(id));
    assert_eq!(server.write(id, &vec![1; BULK]).unwrap(), BULK);
    network.run_for(RTT * 60);
    let mut healthy = Vec::with_capacity(HEALTHY);
    while healthy.len() < HEALTHY {
        healthy.extend((0..TOGETHER).map(|_| network.connect(many)));
        network.run_for(RTT * 3);
    }
    network.run_for(RTT * 10);
    (network, healthy, [greedy, at_server])
}

/// Returns the questions that the healthy clients send at the same time, as datagrams.
fn questions(network: &mut Network, healthy: &[ConnectionHandle]) -> Recording {
    let caught = network.catch(0);
    for handle in healthy {
        let id = network.client(*handle).open(Direction::Bidirectional).unwrap();
        network.client(*handle).write(id, b"question").unwrap();
        network.client(*handle).finish(id).unwrap();
    }
    network.run_for(Duration::from_micros(1));
    caught
}

#[test]
fn a_thousand_connections_wait_for_a_turn_of_one_that_wants_everything_and_no_more() {
    // attacks.md J7.
    let (mut network, healthy, [greedy, at_server]) = crowd();
    let asked = questions(&mut network, &healthy);
    // It floods the server with what must be answered, and wants much.
    let flood = network.catch(1);
    for _ in 0..2 * HEALTHY {
        network.client(greedy).force_short(&[0x01], 0);
    }
    network.run_for(Duration::ZERO);
    let server = network.server.connection(at_server).unwrap();
    let stream = server.open(Direction::Unidirectional).unwrap();
    assert_eq!(server.write(stream, &vec![2; BULK]).unwrap(), BULK);
    let (flood, asked) = (flood.borrow().clone(), asked.borrow().clone());
    assert!(flood.len() >= 2 * HEALTHY && asked.len() >= HEALTHY);
    flood.iter().for_each(|bytes| network.forge_over(1, bytes));
    asked.iter().for_each(|bytes| network.forge_over(0, bytes));
    let outputs = outputs(&mut network, address(1000));
    let answers: Vec<usize> =
        outputs.iter().enumerate().filter(|(_, (healthy, _))| *healthy).map(|(at, _)| at).collect();
    assert!(answers.len() >= HEALTHY, "{} of {HEALTHY} were answered", answers.len());
    // Connections take turns: an event, and then a datagram, of every one of them; the greedy one has as many.
    let before_last: Vec<_> =
        outputs[..answers[HEALTHY - 1]].iter().filter(|(healthy, _)| !healthy).collect();
    let bytes: usize = before_last.iter().map(|(_, bytes)| bytes).sum();
    assert!((1..=8).contains(&before_last.len()), "{} turns", before_last.len());
    assert!(bytes <= 8 * 65_000, "{bytes} bytes");
    // And it had more to say.
    let all = outputs.iter().filter(|(healthy, _)| !healthy).count();
    assert!(all > before_last.len(), "{all}");
}
