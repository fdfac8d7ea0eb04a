//! Acknowledgements that have nothing to travel with: they ride on a link of the same kind, and do not repeat what the peer knows.

use super::event_log::{EventLog, Packet};
use super::network::{LastWithRoom, Network, transport};
use crate::PathId;
use crate::connection::{Event, Role, TransportConfig};
use crate::endpoint::ConnectionHandle;
use crate::stream::Direction;
use crate::wire::frame::{Ack, Frame};
use hvq_scheduler::{Content, Item, PathView, Placement, Scheduler};
use std::sync::Arc;
use std::time::Duration;

const DELAY: Duration = Duration::from_millis(20);

/// Acknowledges packets on their own path, and puts everything else on the last path that has room.
#[derive(Debug)]
struct AcknowledgesOnOwnPath;

impl Scheduler for AcknowledgesOnOwnPath {
    fn name(&self) -> &'static str {
        "acknowledges-on-own-path"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        match item.content {
            Content::Acknowledgement { of } => Placement::On { path: of, bytes: item.bytes },
            _ => LastWithRoom.place(item, paths),
        }
    }
}

fn last_path() -> TransportConfig {
    TransportConfig::new(Arc::new(|| Box::new(AcknowledgesOnOwnPath)))
}

/// Two paths with these one-way delays, whose client sends on the first and whose server on the second.
fn two_paths(delays: [Duration; 2], log: &EventLog) -> (Network, ConnectionHandle) {
    let mut network = Network::new(log.keep(transport()), log.keep(last_path()));
    let [first, second] = delays.map(|delay| network.link(delay));
    let client = network.connect(first);
    network.run_for(DELAY * 10);
    let now = network.now;
    assert_eq!(network.client(client).open_path(second, now), Ok(PathId(1)));
    network.run_for(DELAY * 40);
    assert!(network.client_events.contains(&(client, Event::Confirmed)));
    (network, client)
}

fn is_ack(frame: &Frame) -> bool {
    matches!(frame, Frame::Ack(_))
}

/// The packets in which the server said nothing but acknowledgements, after requests of the client that it answers at once.
fn bare_after_requests(delays: [Duration; 2]) -> Vec<Packet> {
    let log = EventLog::new();
    let (mut network, client) = two_paths(delays, &log);
    let before = log.sent(Role::Server).len();
    for _ in 0..40 {
        let id = network.client(client).open(Direction::Bidirectional).unwrap();
        assert_eq!(network.client(client).write(id, b"request"), Ok(7));
        network.run_for(delays[0]);
        assert_eq!(network.server().accept(Direction::Bidirectional), Some(id));
        assert_eq!(network.server().write(id, b"answer"), Ok(6));
        network.run_for(DELAY * 5);
    }
    let sent = log.sent(Role::Server);
    let answers =
        sent[before..].iter().filter(|packet| packet.has(|frame| matches!(frame, Frame::Stream(_))));
    assert!(answers.filter(|packet| packet.path == PathId(1)).count() >= 40);
    sent[before..].iter().filter(|packet| packet.frames.iter().all(is_ack)).cloned().collect()
}

#[test]
fn an_acknowledgement_rides_with_an_answer_on_a_link_of_the_same_kind() {
    let alike = bare_after_requests([DELAY, DELAY]);
    assert!(alike.len() < 5, "{alike:?}");
}

#[test]
fn it_does_not_on_a_quicker_or_a_slower_one() {
    for other in [DELAY / 2, DELAY * 2] {
        let bare = bare_after_requests([DELAY, other]);
        assert!(bare.len() >= 20, "{other:?}: {bare:?}");
    }
}

#[test]
fn bare_acknowledgements_ask_now_and_then_whether_old_ranges_were_seen() {
    let log = EventLog::new();
    let mut network = Network::new(log.keep(transport()), log.keep(transport()));
    let tuple = network.link(DELAY);
    let client = network.connect(tuple);
    network.run_for(DELAY * 40);
    let before = log.sent(Role::Server).len();
    // Datagrams of either end.
    let mut count = 0;
    network.links[0].drop = Box::new(move |_, _| {
        count += 1;
        count % 3 == 0
    });
    for _ in 0..400 {
        network.client(client).force(Frame::Ping);
        network.run_for(Duration::from_millis(30));
    }
    let sent = log.sent(Role::Server);
    let acks: Vec<&Ack> = sent[before..]
        .iter()
        .flat_map(|packet| &packet.frames)
        .filter_map(|frame| if let Frame::Ack(ack) = frame { Some(ack) } else { None })
        .collect();
    let longest = acks.iter().map(|ack| ack.ranges.iter().count()).max().unwrap_or_default();
    let questions = sent[before..].iter().filter(|packet| packet.has(|frame| *frame == Frame::Ping)).count();
    assert!(acks.len() >= 100, "{}", acks.len());
    assert!((33..=48).contains(&longest), "{longest} ranges");
    assert!((1..=acks.len() / 16).contains(&questions), "{questions} of {}", acks.len());
}
