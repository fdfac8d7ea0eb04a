//! The bounds of what an endpoint holds for clients, where they are met exactly.

use super::network::{Link, Network, address, transport};
use crate::connection::{Dscp, Ecn, Event, FourTuple, Transmit};
use crate::endpoint::answers::OUTBOX_LIMIT;
use crate::endpoint::{Endpoint, EndpointConfig, RetryPolicy};
use crate::error::Dropped;
use std::net::SocketAddr;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);

#[test]
fn of_two_handshakes_for_one_connection_of_the_same_network_the_first_to_complete_has_it() {
    let mut network = Network::new(transport(), transport());
    network.restart_server(EndpointConfig { max_connections: 1, ..EndpointConfig::default() });
    let first = network.link_from(address(1000), RTT / 2);
    let second = network.link_from(address(1001), RTT);
    let [first, second] = [first, second].map(|tuple| network.connect(tuple));
    network.run_for(RTT * 4);
    let slots = network.server.stats().slots;
    assert_eq!((slots.refused_connections, slots.displaced_connections), (1, 0));
    assert!(network.client_events.contains(&(first, Event::Confirmed)));
    assert!(!network.client_events.contains(&(second, Event::Confirmed)));
    assert!(
        network.client_events.iter().any(|(of, event)| *of == second && matches!(event, Event::Closed(_)))
    );
    assert_eq!(network.server.handles().count(), 1);
}

/// A server with a slot for one handshake, which one that got stuck a while ago has, and the Initial of a client that takes it.
fn stuck() -> (Network, SocketAddr, Vec<u8>) {
    let mut network = Network::new(transport(), transport());
    network.restart_server(EndpointConfig { max_handshaking: 1, ..EndpointConfig::default() });
    network.configure_server(|server| server.retry = RetryPolicy::Never);
    let (server, from) = (address(443), SocketAddr::from(([192, 0, 2, 1], 5000)));
    let tuple = network.link(RTT / 2);
    let sent = network.catch(0);
    network.connect(tuple);
    network.run_for(Duration::ZERO);
    let initial = sent.borrow()[0].clone();
    network.forge(tuple.local, &initial);
    network.run_for(Duration::from_millis(1_100));
    assert_eq!(network.server.handles().count(), 1);
    network.links.push(Link { client: from, server, delay: RTT / 2, drop: Box::new(|_, _| true) });
    network.catch(0);
    let other = network.catch(1);
    network.connect(FourTuple { local: from, remote: server });
    network.run_for(Duration::ZERO);
    let initial = other.borrow()[0].clone();
    (network, from, initial)
}

#[test]
fn the_last_words_of_who_gives_way_find_no_place_among_too_many_answers() {
    for (waiting, left) in [(OUTBOX_LIMIT, OUTBOX_LIMIT), (OUTBOX_LIMIT - 1, OUTBOX_LIMIT), (0, 1)] {
        let (mut network, from, initial) = stuck();
        let answer = Transmit {
            local: address(443),
            remote: from,
            ecn: Ecn::NotEct,
            dscp: Dscp::DEFAULT,
            bytes: vec![0; 30],
            segment: None,
        };
        let server: &mut Endpoint = &mut network.server;
        server.transmits.extend(std::iter::repeat_n(answer, waiting));
        network.forge(from, &initial);
        assert_eq!(network.server.stats().slots.displaced_handshakes, 1);
        assert_eq!(network.server.transmits.len(), left, "{waiting} answers waited");
    }
}

#[test]
fn who_waits_for_a_turn_is_not_counted_as_dropped() {
    let mut network = Network::new(transport(), transport());
    network.configure_server(|server| server.retry = RetryPolicy::Never);
    network.link(RTT / 2);
    for port in 2_000..2_012 {
        let tuple = network.link_from(address(port), RTT / 2);
        network.connect(tuple);
    }
    network.run_for(RTT * 4);
    assert_eq!(network.server.handles().count(), 12, "more than have a turn at once");
    assert_eq!(network.server.stats().dropped.get(&Dropped::Limit), None);
}
