//! The accounts of memory: what peers that take nothing make a server keep, for each and all together, and who gets on meanwhile.

use super::network::{Network, transport};
use crate::PathId;
use crate::connection::{Event, PathEvent, TransportConfig};
use crate::endpoint::{ConnectionHandle, Endpoint, EndpointConfig};
use crate::memory::MemoryQuota;
use crate::stream::{Direction, ReadOutcome, StreamEvent, StreamId, StreamLimits, WriteError};
use crate::wire::frame::{Frame, Status};
use allocation_counter::measure;
use bytes::Bytes;
use hvq_scheduler::Priority;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
const BIDI: Direction = Direction::Bidirectional;
/// Bytes of a file.
const FILE: usize = 20 << 20;

/// A client that permits `stream` bytes on each stream, and `connection` in all.
fn miser(stream: u64, connection: u64) -> TransportConfig {
    let streams = StreamLimits {
        max_data: connection,
        stream_data_bidi_local: stream,
        max_window: stream.max(connection),
        ..StreamLimits::default()
    };
    TransportConfig { streams, ..transport() }
}

/// An application that answers each stream with a file, from memory that it does not pay for itself.
struct Files {
    file: Bytes,
    /// Bytes that are left, by connection and stream.
    left: BTreeMap<(ConnectionHandle, StreamId), usize>,
}

impl Files {
    fn new() -> Self {
        Self { file: Bytes::from(vec![7; 64 << 10]), left: BTreeMap::new() }
    }

    fn write(&mut self, server: &mut Endpoint, handle: ConnectionHandle, id: StreamId) {
        let Some(connection) = server.connection(handle) else { return };
        let Some(left) = self.left.get_mut(&(handle, id)) else { return };
        while *left > 0 {
            // A copy of its own, as if it were read from a file.
            let wanted = (*left).min(self.file.len());
            let Ok(room) = connection.writable(id, wanted) else { return };
            let piece = Bytes::copy_from_slice(&self.file[..room]);
            match connection.write_bytes(id, piece) {
                Ok(written) => *left -= written,
                Err(_) => return,
            }
        }
        connection.finish(id).unwrap_or_default();
    }

    /// Answers requests and goes on where there is room again.
    fn serve(&mut self, network: &mut Network) {
        for (handle, event) in std::mem::take(&mut network.server_events) {
            match event {
                Event::Stream(StreamEvent::Opened { direction: BIDI }) => {
                    while let Some(id) = network.server.connection(handle).and_then(|it| it.accept(BIDI)) {
                        self.left.insert((handle, id), FILE);
                        self.write(&mut network.server, handle, id);
                    }
                }
                Event::Stream(StreamEvent::Writable(id)) => self.write(&mut network.server, handle, id),
                _ => {}
            }
        }
    }
}

fn ask(network: &mut Network, client: ConnectionHandle, times: usize) {
    for _ in 0..times {
        let connection = network.client(client);
        let id = connection.open(BIDI).expect("within the limit");
        connection.write(id, b"GET /20m").expect("room");
        connection.finish(id).expect("open");
    }
}

fn with_quota(network: &mut Network, limit: usize) -> Arc<MemoryQuota> {
    let memory = Arc::new(MemoryQuota::new(limit));
    network.restart_server(EndpointConfig { memory: Some(memory.clone()), ..EndpointConfig::default() });
    memory
}

/// Lets time pass in steps, after each of which the application does something.
fn play(network: &mut Network, steps: usize, mut step: impl FnMut(&mut Network)) {
    for _ in 0..steps {
        network.run_for(Duration::from_millis(5));
        step(network);
    }
}

#[test]
fn a_client_without_credit_costs_little_whatever_it_asks_for() {
    // attacks.md K1: 100 times 20 MB, with no credit at all, for streams but not for the connection, and the reverse.
    for (stream, connection) in [(0, 0), (1 << 20, 0), (0, 1 << 30), (1, 1)] {
        let mut network = Network::new(miser(stream, connection), transport());
        let quota = with_quota(&mut network, MemoryQuota::DEFAULT);
        let tuple = network.link(RTT / 2);
        let client = network.connect(tuple);
        network.run_for(RTT * 5);
        let mut files = Files::new();
        let info = measure(|| {
            ask(&mut network, client, 100);
            play(&mut network, 100, |network| files.serve(network));
        });
        assert_eq!(files.left.len(), 100);
        assert!(info.bytes_max < 2 << 20, "{info:?} with credit {stream} and {connection}");
        let (held, told) = (network.server().held_memory(), quota.usage().used);
        assert!((100..1 << 20).contains(&held) && held.abs_diff(told) < 8 << 10, "{held} {told}");
        assert_eq!(network.verdict(), None);
    }
}

#[test]
fn what_a_peer_permits_and_does_not_take_is_within_the_bound_of_the_connection() {
    // attacks.md K1: it acknowledges nothing.
    let bound = 2 << 20;
    let mut network = Network::new(miser(1 << 30, 1 << 40), TransportConfig { memory: bound, ..transport() });
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 5);
    let mut files = Files::new();
    ask(&mut network, client, 100);
    network.run_for(RTT);
    network.links[0].drop = Box::new(|_, _| true);
    play(&mut network, 50, |network| files.serve(network));
    let held = network.server().held_memory();
    assert!((bound - (64 << 10)..=bound + 100 * 1200).contains(&held), "{held} bytes");
}

#[test]
fn connections_that_share_a_small_memory_all_get_on_and_leave_nothing() {
    // attacks.md K1: 40 clients want 100 kB of a server that has 1 MiB for all of them.
    let mut network = Network::new(transport(), transport());
    let limit = 1 << 20;
    let quota = with_quota(&mut network, limit);
    let tuple = network.link(RTT / 2);
    let clients: Vec<_> = (0..40).map(|_| network.connect(tuple)).collect();
    network.run_for(RTT * 5);
    let mut files = Files::new();
    for client in &clients {
        ask(&mut network, *client, 1);
    }
    let mut most = 0;
    play(&mut network, 2_000, |network| {
        files.serve(network);
        most = most.max(quota.usage().used);
        for client in &clients {
            let Some(connection) = network.client.connection(*client) else {
                panic!("{:?} {:?}", network.verdict(), quota.usage())
            };
            while let Ok(ReadOutcome::Data(_)) = connection.read(StreamId(0), usize::MAX) {}
        }
    });
    let sent: Vec<usize> = files.left.values().map(|left| FILE - left).collect();
    let (least, best) = (sent.iter().min().copied(), sent.iter().max().copied());
    assert!(least.unwrap_or_default() > best.unwrap_or_default() / 5, "{least:?} of {best:?}");
    assert!(least.unwrap_or_default() > 1 << 20, "{least:?}");
    assert!(most <= limit, "{most} bytes");
    assert!(quota.usage().held_back > 0);
    for client in clients {
        let now = network.now;
        network.client(client).close(0, b"", now);
    }
    network.run_for(RTT * 20);
    assert_eq!((quota.usage().used, quota.usage().holders), (0, 0));
}

#[test]
fn clients_that_take_nothing_leave_an_honest_one_its_pace() {
    // attacks.md K1: the others hold all that they get.
    let mut network = Network::new(miser(1 << 30, 1 << 30), transport());
    let quota = with_quota(&mut network, 4 << 20);
    let (dead, good) = (network.link(RTT / 2), network.link(RTT / 2));
    let misers: Vec<_> = (0..40).map(|_| network.connect(dead)).collect();
    network.run_for(RTT * 5);
    misers.iter().for_each(|miser| ask(&mut network, *miser, 20));
    network.run_for(RTT);
    network.links[0].drop = Box::new(|_, _| true);
    let mut files = Files::new();
    play(&mut network, 40, |network| files.serve(network));
    assert!(quota.usage().used > 2 << 20, "{:?}", quota.usage());
    let honest = network.connect(good);
    network.run_for(RTT * 5);
    ask(&mut network, honest, 1);
    let mut read = 0;
    play(&mut network, 400, |network| {
        files.serve(network);
        while let Ok(ReadOutcome::Data(data)) = network.client(honest).read(StreamId(0), usize::MAX) {
            read += data.len();
        }
    });
    // An eighth of what is free, for each round trip.
    assert!(read > 1 << 20, "{read} bytes in two seconds");
    assert!(quota.usage().used <= quota.usage().limit);
}

#[test]
fn a_stream_that_is_stuck_keeps_no_other_of_its_connection_from_getting_on() {
    // 50 streams that the peer permits nothing on, and one that it does, where memory is short.
    let mut network = Network::new(miser(0, 1 << 30), transport());
    let _quota = with_quota(&mut network, 64 << 10);
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 5);
    let mut files = Files::new();
    ask(&mut network, client, 50);
    play(&mut network, 20, |network| files.serve(network));
    let handle = network.server.handles().next().expect("it lives");
    let free = network.server().open(Direction::Unidirectional).expect("within the limit");
    files.left.insert((handle, free), FILE);
    files.write(&mut network.server, handle, free);
    play(&mut network, 2_000, |network| {
        files.serve(network);
        let connection = network.client(client);
        connection.accept(Direction::Unidirectional);
        while let Ok(ReadOutcome::Data(_)) = connection.read(free, usize::MAX) {}
    });
    assert_eq!(network.verdict(), None);
    let sent = FILE - files.left[&(handle, free)];
    // A packet for each round trip, with an acknowledgement that waits for another: 65 ms.
    assert!(sent > 100_000, "{sent} bytes");
}

#[test]
fn what_waits_for_credit_leaves_room_for_what_is_more_urgent() {
    let mut network = Network::new(miser(1 << 20, 2 << 20), transport());
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 5);
    let mut files = Files::new();
    ask(&mut network, client, 20);
    play(&mut network, 100, |network| files.serve(network));
    let server = network.server();
    let urgent = server.open(Direction::Unidirectional).expect("within the limit");
    server.set_priority(urgent, Priority { urgency: 0, incremental: false });
    let written = server.write(urgent, &[1; 100_000]).expect("there is room");
    assert!(written >= 1200, "{written} bytes");
    assert_eq!(server.write(urgent, &[1; 100_000]), Err(WriteError::Blocked));
}

#[test]
fn status_frames_that_alternate_are_told_once() {
    // attacks.md K3: 1,000 packets of 200 frames between two polls.
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    network.connect(tuple);
    network.run_for(RTT * 5);
    network.server_events.clear();
    let now = network.now;
    for packet in 0..1_000_u64 {
        let mut payload = Vec::new();
        for n in 200 * packet..200 * (packet + 1) {
            let status = if n % 2 == 0 { Status::Backup } else { Status::Available };
            Frame::PathStatus { path: PathId::ZERO, sequence: n, status }.put(&mut payload);
        }
        network.server().inject(crate::wire::level::Level::OneRtt, &payload, now);
    }
    network.run_for(RTT);
    let told: Vec<_> =
        network.server_events.iter().filter(|(_, event)| matches!(event, Event::Path(_))).collect();
    let newest = Event::Path(PathEvent::PeerStatus(PathId::ZERO, Status::Available));
    assert_eq!(told.iter().map(|(_, event)| event).collect::<Vec<_>>(), [&newest]);
}

#[test]
fn datagrams_wait_within_what_there_is_memory_for() {
    let mut network = Network::new(transport(), transport());
    let quota = with_quota(&mut network, 512 << 10);
    let tuple = network.link(RTT / 2);
    network.connect(tuple);
    network.run_for(RTT * 5);
    network.links[0].drop = Box::new(|_, _| true);
    for _ in 0..2_000 {
        let sent = network.server().send_datagram(Bytes::from(vec![1; 1000]), Priority::default(), None);
        sent.expect("it fits");
    }
    let held = network.server().held_memory();
    assert!((10_000..100_000).contains(&held) && quota.usage().used < 100_000, "{held}");
}

#[test]
fn what_an_application_charges_counts_until_it_is_discharged() {
    let mut network = Network::new(transport(), TransportConfig { memory: 100_000, ..transport() });
    let tuple = network.link(RTT / 2);
    network.connect(tuple);
    network.run_for(RTT * 5);
    let server = network.server();
    assert!(server.charge_memory(90_000) && !server.charge_memory(20_000));
    assert_eq!(server.held_memory(), 90_000);
    server.discharge_memory(50_000);
    assert!(server.charge_memory(20_000));
    assert_eq!(network.server().held_memory(), 60_000);
}
