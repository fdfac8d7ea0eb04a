//! Interest in transmission: a poll makes a pass over all that may be sent only if that may have a result.

use super::network::{Network, transport};
use crate::connection::{Connection, Event, TransportConfig};
use crate::endpoint::ConnectionHandle;
use crate::stream::{Direction, ReadOutcome};
use crate::time::Instant;
use crate::wire::frame::{Frame, Status};
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);

/// A command to a connection.
type Command<'a> = &'a dyn Fn(&mut Connection, Instant);

/// A connection that has said all it has to say.
fn quiet() -> (Network, ConnectionHandle) {
    let one_size = || TransportConfig { datagram_size: 1200.into(), ..transport() };
    let mut network = Network::new(one_size(), one_size());
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 20);
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
    (network, client)
}

#[test]
fn who_has_said_all_makes_no_pass_and_each_command_makes_one() {
    let write = |connection: &mut Connection, _: Instant| {
        let id = connection.open(Direction::Unidirectional).unwrap();
        assert_eq!(connection.write(id, b"hello"), Ok(5));
    };
    let finish = |connection: &mut Connection, _: Instant| {
        let id = connection.open(Direction::Unidirectional).unwrap();
        connection.finish(id).unwrap();
    };
    let reset = |connection: &mut Connection, _: Instant| {
        let id = connection.open(Direction::Unidirectional).unwrap();
        connection.reset(id, 7, 0).unwrap();
    };
    let advise = |connection: &mut Connection, _: Instant| {
        connection.set_path_status(crate::PathId::ZERO, Status::Backup).unwrap();
    };
    let ping = |connection: &mut Connection, _: Instant| connection.force(Frame::Ping);
    let commands: [(&str, Command<'_>); 5] =
        [("write", &write), ("finish", &finish), ("reset", &reset), ("advise", &advise), ("a ping", &ping)];
    let (mut network, client) = quiet();
    for (name, command) in commands {
        let now = network.now;
        assert!(!network.client(client).has_interest(now) && !network.server().has_interest(now), "{name}");
        command(network.client(client), now);
        assert!(network.client(client).has_interest(now), "{name}");
        let before = network.to_server;
        network.run_for(RTT * 20);
        assert!(network.to_server > before, "{name}");
    }
}

#[test]
fn a_delayed_acknowledgement_makes_a_pass_when_it_is_due_and_not_before() {
    let (mut network, client) = quiet();
    network.client(client).force(Frame::Ping);
    network.run_for(RTT / 2);
    let arrived = network.now;
    assert!(!network.server().has_interest(arrived), "one packet is acknowledged after 25 ms");
    assert!(network.server().has_interest(arrived + Duration::from_millis(25)));
}

/// Passes over all that may be sent, and datagrams that left, so far.
fn passes_and_datagrams(connection: &Connection) -> [u64; 2] {
    let stats = connection.path_stats(crate::PathId::ZERO).unwrap();
    [connection.passes(), stats.counters.datagrams_sent]
}

#[test]
fn requests_one_after_the_other_make_one_pass_for_each_datagram() {
    let (mut network, client) = quiet();
    let counted = |network: &mut Network| {
        [passes_and_datagrams(network.client(client)), passes_and_datagrams(network.server())]
    };
    let before = counted(&mut network);
    for _ in 0..20 {
        let id = network.client(client).open(Direction::Bidirectional).unwrap();
        assert_eq!(network.client(client).write(id, b"request"), Ok(7));
        network.client(client).finish(id).unwrap();
        network.run_for(RTT / 2);
        while network.server().accept(Direction::Bidirectional).is_some() {}
        while let Ok(ReadOutcome::Data(_)) = network.server().read(id, 100) {}
        assert_eq!(network.server().write(id, b"answer"), Ok(6));
        network.server().finish(id).unwrap();
        network.run_for(RTT);
        while let Ok(ReadOutcome::Data(_)) = network.client(client).read(id, 100) {}
    }
    network.run_for(RTT * 2);
    for ([passes, datagrams], [passes_before, datagrams_before]) in
        counted(&mut network).into_iter().zip(before)
    {
        assert!(datagrams - datagrams_before >= 20);
        assert_eq!(passes - passes_before, datagrams - datagrams_before, "nothing to send, no pass");
    }
}
