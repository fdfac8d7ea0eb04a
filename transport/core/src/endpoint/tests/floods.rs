//! Floods of every type of frame, as fast as a peer can send them: what they leave in memory.

use super::network::{Network, transport};
use crate::PathId;
use crate::connection::TransportConfig;
use crate::error::ErrorCode;
use crate::ranges::Ranges;
use crate::stream::{Direction, ReadOutcome, StreamId, StreamLimits};
use crate::wire::connection_id::{ConnectionId, ResetToken};
use crate::wire::frame::{
    Ack, AckFrequency, ConnectionClose, Crypto, Frame, NewConnectionId, PathHints, ResetStream,
    ResetStreamAt, Status, StopSending, Stream,
};
use crate::wire::level::Level;
use crate::wire::transport_parameters::PartialDelivery;
use allocation_counter::measure;
use bytes::Bytes;
use hvq_scheduler::{Bandwidth, Hints, Sharing};
use std::collections::BTreeSet;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
/// Packets of a flood before what it leaves is measured, and while it is.
const PACKETS: usize = 1_200;
/// Bytes of frames in a packet.
const PACKET: usize = 1_180;
/// Bytes that a flood may cost at any moment.
const MOST: u64 = 4 << 20;
/// Bytes that the second half of a flood may add to what the first left: tables double, but what is kept of each frame would
/// be megabytes.
const GROWTH: i64 = 256 << 10;

/// The application's behaviour meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Application {
    /// It polls, and reads nothing.
    Deaf,
    /// It takes all that comes.
    Reads,
    /// Nothing is polled until the flood is over, as when it comes faster than events are told.
    Away,
}

/// The frame with this number of a flood.
type Flood = fn(u64) -> Frame;

fn id(n: u64) -> StreamId {
    StreamId(4 * (n % 100))
}

fn bytes(length: usize) -> Bytes {
    Bytes::from(vec![7; length])
}

fn piece(id: StreamId, offset: u64, length: usize) -> Frame {
    Frame::Stream(Stream { id, offset, data: bytes(length), fin: false })
}

fn new_id(path: Option<PathId>, n: u64, retire_prior_to: u64) -> Frame {
    let id = ConnectionId::new(&[&[9; 8][..], &n.to_be_bytes()].concat()).expect("16 bytes");
    Frame::NewConnectionId(NewConnectionId {
        path,
        sequence: n,
        retire_prior_to,
        id,
        token: ResetToken([1; 16]),
    })
}

/// An acknowledgement of the packet with `number`.
fn ack(path: Option<PathId>, number: u64) -> Frame {
    let mut ranges = Ranges::default();
    ranges.insert(number);
    Frame::Ack(Ack::from_ranges(path, &ranges, 0, None, 100).expect("it fits"))
}

fn hints(path: u32, number: u64) -> Frame {
    let rate = [0, 1, 2_000_000, u64::MAX >> 2][(number % 4) as usize];
    let rate_back = Some(Bandwidth::from_bits_per_second(rate));
    let hints = Hints { rate_back, shared: Sharing::Endpoint, ..Hints::NONE };
    Frame::PathHints(PathHints { path: PathId(path), sequence: number, hints })
}

fn status(path: u32, n: u64) -> Frame {
    let status = if n.is_multiple_of(2) { Status::Backup } else { Status::Available };
    Frame::PathStatus { path: PathId(path), sequence: n, status }
}

/// At least one flood for each type of frame.
const FLOODS: &[(&str, Flood)] = &[
    ("PADDING", |_| Frame::Padding(1_000)),
    ("PING", |_| Frame::Ping),
    ("ACK", |_| ack(None, 0)),
    ("PATH_ACK", |_| ack(Some(PathId(0)), 0)),
    ("RESET_STREAM", |n| Frame::ResetStream(ResetStream { id: id(n), error: n, final_size: 0 })),
    ("RESET_STREAM_AT", |n| {
        Frame::ResetStreamAt(ResetStreamAt { id: id(n), error: n, final_size: 0, reliable_size: 0 })
    }),
    ("STOP_SENDING", |n| Frame::StopSending(StopSending { id: id(n), error: n })),
    ("CRYPTO with gaps", |n| Frame::Crypto(Crypto { offset: 2 * n + 1, data: bytes(1) })),
    ("CRYPTO of a length", |n| Frame::Crypto(Crypto { offset: 1_000 * n, data: bytes(1_000) })),
    ("NEW_TOKEN", |_| Frame::NewToken(bytes(1_000))),
    ("STREAM in order", |n| piece(id(0), 1_100 * n, 1_100)),
    ("STREAM behind a gap", |n| piece(id(n), 1 + 1_024 * (n / 100), 1_024)),
    ("STREAM in crumbs", |n| piece(id(n), 1 + 2 * (n / 100), 1)),
    ("STREAM again", |n| piece(id(n), 0, 500)),
    ("STREAM of one end", |n| Frame::Stream(Stream { id: id(n), offset: 5, data: bytes(0), fin: true })),
    ("MAX_DATA", Frame::MaxData),
    ("MAX_STREAM_DATA", |n| Frame::MaxStreamData { id: id(n), limit: n }),
    ("MAX_STREAMS", |n| Frame::MaxStreams { direction: Direction::Bidirectional, limit: n }),
    ("DATA_BLOCKED", Frame::DataBlocked),
    ("STREAM_DATA_BLOCKED", |n| Frame::StreamDataBlocked { id: id(n), limit: n }),
    ("STREAMS_BLOCKED", |n| Frame::StreamsBlocked { direction: Direction::Unidirectional, limit: n }),
    ("NEW_CONNECTION_ID", |n| new_id(None, n + 1, n + 1)),
    ("PATH_NEW_CONNECTION_ID", |n| new_id(Some(PathId(1)), n, n)),
    ("PATH_NEW_CONNECTION_ID on all", |n| new_id(Some(PathId((n % 4) as u32)), 1 + n / 4, n / 4)),
    ("RETIRE_CONNECTION_ID", |n| Frame::RetireConnectionId { path: None, sequence: 1 + n }),
    ("PATH_RETIRE_CONNECTION_ID", |n| Frame::RetireConnectionId { path: Some(PathId(1)), sequence: n }),
    ("PATH_CHALLENGE", |n| Frame::PathChallenge(n.to_be_bytes())),
    ("PATH_RESPONSE", |n| Frame::PathResponse(n.to_be_bytes())),
    ("CONNECTION_CLOSE", |_| {
        let code = ErrorCode::NO_ERROR;
        Frame::ConnectionClose(ConnectionClose::Transport { code, frame_type: 0, reason: bytes(1_000) })
    }),
    ("HANDSHAKE_DONE", |_| Frame::HandshakeDone),
    ("ACK_FREQUENCY", |n| {
        let max_delay = Duration::from_millis(1 + n % 20);
        Frame::AckFrequency(AckFrequency { sequence: n, threshold: n, max_delay, reordering: n })
    }),
    ("IMMEDIATE_ACK", |_| Frame::ImmediateAck),
    ("DATAGRAM, empty", |_| Frame::Datagram(bytes(0))),
    ("DATAGRAM, small", |_| Frame::Datagram(bytes(1))),
    ("DATAGRAM, small in a large packet", |n| match n % 2 {
        0 => Frame::Datagram(bytes(1)),
        _ => Frame::Padding(1_170),
    }),
    ("DATAGRAM, large", |_| Frame::Datagram(bytes(1_100))),
    ("PATH_ABANDON", |n| Frame::PathAbandon { path: PathId((1 + n % 3) as u32), error: n }),
    ("PATH_STATUS, alternating", |n| status(0, n)),
    ("PATH_STATUS of all paths", |n| status((n % 4) as u32, n / 4)),
    ("PATH_HINTS, alternating", |n| hints(0, n)),
    ("PATH_HINTS of all paths", |n| hints((n % 4) as u32, n / 4)),
    ("MAX_PATH_ID", |n| Frame::MaxPathId(n.min(u32::MAX.into()))),
    ("PATHS_BLOCKED", |n| Frame::PathsBlocked(n % 4)),
    ("PATH_CIDS_BLOCKED", |n| Frame::PathCidsBlocked { path: PathId((n % 4) as u32), next_sequence: 1 }),
];

/// The number of a type of frame: who adds one adds a flood.
fn kind(frame: &Frame) -> u32 {
    match frame {
        Frame::Padding(_) => 0,
        Frame::Ping => 1,
        Frame::Ack(_) => 2,
        Frame::ResetStream(_) => 3,
        Frame::StopSending(_) => 4,
        Frame::Crypto(_) => 5,
        Frame::NewToken(_) => 6,
        Frame::Stream(_) => 7,
        Frame::MaxData(_) => 8,
        Frame::MaxStreamData { .. } => 9,
        Frame::MaxStreams { .. } => 10,
        Frame::DataBlocked(_) => 11,
        Frame::StreamDataBlocked { .. } => 12,
        Frame::StreamsBlocked { .. } => 13,
        Frame::NewConnectionId(_) => 14,
        Frame::RetireConnectionId { .. } => 15,
        Frame::PathChallenge(_) => 16,
        Frame::PathResponse(_) => 17,
        Frame::ConnectionClose(_) => 18,
        Frame::HandshakeDone => 19,
        Frame::AckFrequency(_) => 20,
        Frame::ImmediateAck => 21,
        Frame::Datagram(_) => 22,
        Frame::PathAbandon { .. } => 23,
        Frame::PathStatus { .. } => 24,
        Frame::MaxPathId(_) => 25,
        Frame::PathsBlocked(_) => 26,
        Frame::PathCidsBlocked { .. } => 27,
        Frame::PathHints(_) => 28,
        Frame::ResetStreamAt(_) => 29,
    }
}

/// The payloads of the next packets of a flood, each as full as it gets. Acknowledgements are of packet `received`.
fn payloads(flood: Flood, number: &mut u64, received: u64) -> Vec<Vec<u8>> {
    let flood = |number| match flood(number) {
        Frame::Ack(Ack { path, .. }) => ack(path, received),
        other => other,
    };
    (0..PACKETS)
        .map(|_| {
            let mut payload = Vec::with_capacity(2 * PACKET);
            while payload.is_empty() || payload.len() + flood(*number).encoded_size() <= PACKET {
                flood(*number).put(&mut payload);
                *number += 1;
            }
            payload
        })
        .collect()
}

/// Takes what there is to read: on all streams, and datagrams.
fn read_all(network: &mut Network) {
    let Some(handle) = network.server.handles().next() else { return };
    let Some(connection) = network.server.connection(handle) else { return };
    while let Some(id) = connection.accept(Direction::Bidirectional) {
        connection.write(id, b"answer").unwrap_or_default();
        connection.finish(id).unwrap_or_default();
    }
    for id in (0..400).map(|index| StreamId(4 * index)) {
        while let Ok(ReadOutcome::Data(_)) = connection.read(id, usize::MAX) {}
    }
    while connection.receive_datagram().is_some() {}
}

/// The most bytes that half a flood costs, and what it leaves.
fn half(network: &mut Network, application: Application, payloads: &[Vec<u8>]) -> (u64, i64) {
    let info = measure(|| {
        for some in payloads.chunks(32) {
            let now = network.now;
            for payload in some {
                let handle = network.server.handles().next();
                if let Some(connection) = handle.and_then(|handle| network.server.connection(handle))
                    && connection.lifecycle().is_open()
                {
                    connection.inject(Level::OneRtt, payload, now);
                }
            }
            if application != Application::Away {
                network.run_for(Duration::from_millis(1));
                network.server_events.clear();
                network.client_events.clear();
            }
            if application == Application::Reads {
                read_all(network);
            }
        }
    });
    (info.bytes_max, info.bytes_current)
}

fn config() -> TransportConfig {
    let window = 1 << 20;
    let streams = StreamLimits {
        max_data: window,
        max_window: window,
        stream_data_bidi_remote: window,
        ..Default::default()
    };
    let partial_delivery = PartialDelivery::On;
    TransportConfig { streams, partial_delivery, datagram_queue: 512 << 10, ..transport() }
}

fn flooded(name: &str, flood: Flood, application: Application) {
    let mut network = Network::new(transport(), config());
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 5);
    let received = network.client(client).largest_received(PathId::ZERO);
    // Nothing of what the server answers arrives.
    network.links[0].drop = Box::new(|_, _| true);
    let mut number = 0;
    let (first, second) = (payloads(flood, &mut number, received), payloads(flood, &mut number, received));
    let (most, left) = half(&mut network, application, &first);
    let (more, grown) = half(&mut network, application, &second);
    let most = most.max(more + u64::try_from(left).unwrap_or_default());
    assert!(most <= MOST, "{name}, {application:?}: {most} bytes");
    assert!(grown <= GROWTH, "{name}, {application:?}: {grown} bytes more after {left}");
}

#[test]
fn there_is_a_flood_of_every_type_of_frame() {
    let tried: BTreeSet<u32> = FLOODS.iter().map(|(_, flood)| kind(&flood(1))).collect();
    let last = Frame::ResetStreamAt(ResetStreamAt { id: id(0), error: 0, final_size: 0, reliable_size: 0 });
    let all = (0..=kind(&last)).collect();
    assert_eq!(tried, all);
}

#[test]
fn a_flood_of_any_frame_costs_little_memory_whatever_the_application_reads() {
    // attacks.md K3: four megabytes at most, and nothing that grows on.
    for (name, flood) in FLOODS {
        for application in [Application::Deaf, Application::Reads, Application::Away] {
            flooded(name, *flood, application);
        }
    }
}
