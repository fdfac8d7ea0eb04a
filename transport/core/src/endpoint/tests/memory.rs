//! Tests of the memory that strangers and hostile peers make a server keep, in bytes of heap: the bounds of attacks.md.
//!
//! BoringSSL has memory of its own, which is not counted here.

use super::forged::{Forged, SOURCE, initial, sealed};
use super::network::{Network, transport};
use crate::PathId;
use crate::connection::TransportConfig;
use crate::endpoint::{ConnectionHandle, RetryPolicy};
use crate::stream::{Direction, ReadOutcome, StreamLimits};
use crate::wire::frame::{Crypto, Frame};
use crate::wire::header::{put_retry_without_tag, put_version_negotiation};
use crate::wire::version::Version;
use allocation_counter::measure;
use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use std::net::SocketAddr;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
const KIBIBYTE: i64 = 1024;

fn connected(server: TransportConfig) -> (Network, ConnectionHandle) {
    let mut network = Network::new(transport(), server);
    let tuple = network.link(RTT / 2);
    let client = network.connect(tuple);
    network.run_for(RTT * 5);
    (network, client)
}

/// Returns the packets of a client with these payloads, as datagrams.
fn said(network: &mut Network, client: ConnectionHandle, payloads: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let caught = network.catch(0);
    for payload in payloads {
        network.client(client).force_short(payload, 0);
    }
    network.run_for(Duration::from_micros(1));
    let all = caught.borrow().clone();
    network.links[0].drop = Box::new(|_, _| true);
    all
}

/// Bytes of heap that the server keeps once all of `datagrams` arrived from `from`, and it has said what it has to say.
fn kept(network: &mut Network, from: SocketAddr, datagrams: &[Vec<u8>]) -> i64 {
    network.links.iter_mut().for_each(|link| link.drop = Box::new(|_, _| true));
    let info = measure(|| {
        for some in datagrams.chunks(32) {
            some.iter().for_each(|bytes| network.forge(from, bytes));
            network.run_for(Duration::from_millis(2));
        }
    });
    info.bytes_current
}

/// Datagrams that start nothing: empty, noise, Initials that are small or name short connection IDs, and the like.
fn junk(dice: &mut StdRng) -> Vec<Vec<u8>> {
    let mut negotiation = Vec::new();
    put_version_negotiation(&mut negotiation, &[1; 8], &[2; 8], &[Version::V1], 0);
    let id = |byte| crate::wire::connection_id::ConnectionId::new(&[byte; 8]).unwrap();
    let mut retry = Vec::new();
    put_retry_without_tag(&mut retry, Version::V1, &id(1), &id(2), &[7; 1100]);
    retry.extend([0; 16]);
    let mut noise = vec![0; dice.random_range(1..1500)];
    dice.fill_bytes(&mut noise);
    let mut short = noise.clone();
    short[0] = 0x40 | short[0] & 0x3f;
    let mut long = noise.clone();
    long[0] |= 0xc0;
    let mut version_1 = long.clone();
    version_1.resize(1200, 0);
    version_1[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8]);
    let mut destination = [0; 8];
    dice.fill_bytes(&mut destination);
    let small = sealed(&Forged { size: 1000, ..initial(&destination, &[1]) }, |first| first);
    let brief = sealed(&initial(&destination[..5], &[1]), |first| first);
    vec![Vec::new(), negotiation, retry, noise, short, long, version_1, small, brief]
}

#[test]
fn what_starts_nothing_leaves_nothing_behind_whether_or_not_a_connection_lives_there() {
    // attacks.md A1 to A6, A11.
    let mut dice = StdRng::seed_from_u64(1);
    let (mut network, _) = connected(transport());
    let mine = network.links[0].client;
    for from in [mine, SocketAddr::from(([192, 0, 2, 9], 4000))] {
        // The first of each kind makes room for its counter.
        kept(&mut network, from, &(0..20).flat_map(|_| junk(&mut dice)).collect::<Vec<_>>());
        let flood: Vec<_> = (0..3000).flat_map(|_| junk(&mut dice)).collect();
        let kept = kept(&mut network, from, &flood);
        assert!(kept < 2 * KIBIBYTE, "{kept} bytes after {} datagrams from {from}", flood.len());
        assert_eq!(network.server.handles().count(), 1);
    }
}

#[test]
fn packets_for_others_behind_a_genuine_one_are_not_kept() {
    // attacks.md A9, CVE-2025-54939: the first packet is a copy of the client's first one, or of its last one.
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let sent = network.record(0);
    network.connect(tuple);
    network.run_for(Duration::from_millis(1));
    let first = sent.borrow()[0].clone();
    network.run_for(RTT * 5);
    let last = sent.borrow().iter().rfind(|bytes| bytes[0] & 0x80 != 0).cloned().unwrap();
    for genuine in [first, last] {
        let other = |n: u32| sealed(&initial(&[&n.to_be_bytes()[..], &[9; 8]].concat(), &[1]), |first| first);
        let flood: Vec<_> = (0..5000).map(|n| [&genuine[..], &other(n)].concat()).collect();
        kept(&mut network, tuple.local, &flood[..10]);
        let kept = kept(&mut network, tuple.local, &flood);
        assert!(kept < KIBIBYTE, "{kept} bytes");
    }
}

#[test]
fn claims_of_endless_ranges_allocate_nothing() {
    // attacks.md A16, GHSA-5m9j-vr32-g7j5.
    let (mut network, client) = connected(transport());
    let payload = [&[0x02, 0, 0][..], &[0xff; 8], &[0]].concat();
    let datagram = said(&mut network, client, &[payload]).remove(0);
    let info = measure(|| network.forge_over(0, &datagram));
    assert!(info.bytes_max < 8 * KIBIBYTE as u64, "{info:?}");
    network.run_for(RTT);
    assert!(network.verdict().is_some());
}

/// Initial packets of clients that never go on, from as many addresses.
fn half_open(count: u16, payload: &[u8]) -> Vec<(SocketAddr, Vec<u8>)> {
    let packet = |n: u16| sealed(&initial(&[&n.to_be_bytes()[..], &[7; 8]].concat(), payload), |first| first);
    (0..count).map(|n| (SocketAddr::from(([192, 0, 2, 1], 2000 + n)), packet(n))).collect()
}

#[test]
fn a_handshake_that_does_not_go_on_takes_little_memory() {
    // attacks.md B13; what TLS keeps in its own memory comes on top.
    let mut network = Network::new(transport(), transport());
    network.configure_server(|server| server.retry = RetryPolicy::Never);
    network.link(RTT / 2);
    let mut payload = Vec::new();
    let hello = super::hellos::honest_hello();
    Frame::Crypto(Crypto { offset: 0, data: hello.into() }).put(&mut payload);
    let flood = half_open(200, &payload);
    let info = measure(|| {
        for (from, bytes) in &flood {
            network.forge(*from, bytes);
        }
        network.run_for(Duration::from_millis(2));
    });
    assert_eq!(network.server.handles().count(), 200);
    let each = info.bytes_current / 200;
    assert!(each < 20 * KIBIBYTE, "{each} bytes for each");
}

#[test]
fn one_half_open_connection_keeps_what_comes_early_within_its_bounds_however_large_the_datagrams() {
    // attacks.md B7, B15: CRYPTO frames behind a gap, and packets that there are no keys for, in datagrams of 60,000 bytes.
    let mut network = Network::new(transport(), transport());
    network.link(RTT / 2);
    let from = network.links[0].client;
    let begin = |offset: u64, length: usize| {
        let mut payload = Vec::new();
        Frame::Crypto(Crypto { offset, data: Bytes::from(vec![1; length]) }).put(&mut payload);
        payload
    };
    let packet = |payload: &[u8]| {
        let mut bytes =
            sealed(&Forged { source: SOURCE.to_vec(), ..initial(&[1; 8], payload) }, |first| first);
        bytes.resize(60_000, 0);
        bytes
    };
    // All that follows has the number 0 too, but for the first.
    kept(&mut network, from, &[packet(&begin(10, 1))]);
    let handle = network.server.handles().next().expect("it has begun");
    assert!(network.server.get(handle).is_some());
    let early: Vec<_> = (0..100_u8)
        .map(|n| {
            // A Handshake packet to the connection ID that the client chose, of 1,280 bytes.
            let mut bytes = vec![0xe0, 0, 0, 0, 1, 8];
            bytes.extend([1; 8]);
            bytes.push(8);
            bytes.extend(SOURCE);
            bytes.extend([0x80, 0, 0x05, 0x00, n]);
            bytes.resize(60_000, n);
            bytes
        })
        .collect();
    let kept = kept(&mut network, from, &early);
    // Ten of them are kept, and nothing of what came with them.
    assert!((10 * 1_280..20 * KIBIBYTE).contains(&kept), "{kept} bytes");
}

#[test]
fn what_comes_early_keeps_nothing_of_its_datagram_beside_it() {
    // attacks.md B7, B15: in datagrams of the usual size, packets of 60 bytes that there are no keys for, and single bytes of
    // CRYPTO behind gaps.
    let first = |number: u32, payload: &[u8]| {
        sealed(&Forged { number, source: SOURCE.to_vec(), ..initial(&[1; 8], payload) }, |first| first)
    };
    let begin = |offset: u64| {
        let mut payload = Vec::new();
        Frame::Crypto(Crypto { offset, data: Bytes::from_static(&[1]) }).put(&mut payload);
        payload
    };
    let handshake = |n: u8| {
        let packet = [&[0xe0, 0, 0, 0, 1, 8][..], &[1; 8], &[8], &SOURCE, &[60], &[n; 60]].concat();
        // Behind it a packet to somebody else.
        let other = [&[0xe0, 0, 0, 0, 1, 8][..], &[9; 8], &[8], &SOURCE, &[0x44, 0xb0], &[n; 1_200]].concat();
        [packet, other].concat()
    };
    let early: Vec<_> = (0..10).map(handshake).collect();
    let crumbs: Vec<_> = (1..=200).map(|n| first(n, &begin(10 + 2 * u64::from(n)))).collect();
    for (datagrams, least, most) in [(early, 10 * 80, 12 * KIBIBYTE), (crumbs, 200, 48 * KIBIBYTE)] {
        let mut network = Network::new(transport(), transport());
        network.link(RTT / 2);
        let from = network.links[0].client;
        kept(&mut network, from, &[first(0, &begin(10))]);
        let kept = kept(&mut network, from, &datagrams);
        assert!((least..most).contains(&kept), "{kept} bytes of {} datagrams", datagrams.len());
    }
}

fn narrow(window: u64) -> TransportConfig {
    let streams = StreamLimits {
        max_data: window,
        stream_data_bidi_remote: window,
        stream_data_uni: window,
        max_window: window,
        ..StreamLimits::default()
    };
    TransportConfig { streams, ..transport() }
}

fn piece(stream: u64, offset: u64, length: usize) -> Vec<u8> {
    let id = crate::stream::StreamId(stream);
    let mut payload = Vec::new();
    let data = Bytes::from(vec![1; length]);
    Frame::Stream(crate::wire::frame::Stream { id, offset, data, fin: false }).put(&mut payload);
    payload
}

#[test]
fn pieces_of_streams_behind_gaps_take_twice_the_window_at_most() {
    // attacks.md E6, RUSTSEC-2026-0185: single bytes with gaps on all streams, and pieces in datagrams of 60,000 bytes.
    let window = 2 << 20;
    let crumbs = (0..128).flat_map(|stream| (0..60).map(move |n| piece(4 * stream, 1 + 2 * n, 1)));
    let in_large = (0..300).map(|n| {
        let mut payload = piece(0, 1 + 1100 * n, 1099);
        payload.resize(60_000, 0);
        payload
    });
    for payloads in [crumbs.collect::<Vec<_>>(), in_large.collect()] {
        let (mut network, client) = connected(narrow(window));
        let from = network.links[0].client;
        let datagrams = said(&mut network, client, &payloads);
        let kept = kept(&mut network, from, &datagrams);
        assert_eq!(network.verdict(), None);
        let sent: usize = payloads.iter().map(|payload| payload.len()).sum();
        assert!(kept < 2 * window as i64, "{kept} bytes for {sent}");
    }
}

#[test]
fn crumbs_on_all_streams_together_close_the_connection() {
    // attacks.md E6: 8192 pieces, which no network makes of a window of 2 MiB.
    let (mut network, client) = connected(narrow(2 << 20));
    let payloads: Vec<_> =
        (0..100).flat_map(|stream| (0..100).map(move |n| piece(4 * stream, 1 + 2 * n, 1))).collect();
    let datagrams = said(&mut network, client, &payloads);
    let from = network.links[0].client;
    kept(&mut network, from, &datagrams);
    assert_eq!(network.verdict(), Some(crate::error::ErrorCode::INTERNAL_ERROR));
}

#[test]
fn a_flood_of_datagram_frames_that_nobody_reads_stays_within_the_queue() {
    // attacks.md E15: small ones, and large ones in larger packets.
    let queue = 100_000;
    for size in [0, 1, 1100] {
        let config = TransportConfig { datagram_queue: queue, ..transport() };
        let (mut network, client) = connected(config);
        let mut payload = Vec::new();
        Frame::Datagram(Bytes::from(vec![1; size])).put(&mut payload);
        payload.resize(payload.len() + 20_000, 0);
        let datagrams = said(&mut network, client, &vec![payload; 3000]);
        let from = network.links[0].client;
        let kept = kept(&mut network, from, &datagrams);
        assert!(kept < 2 * queue as i64, "{kept} bytes for frames of {size}");
        assert!(network.server().receive_datagram().is_some());
    }
}

#[test]
fn a_path_that_is_not_validated_takes_little_memory() {
    // attacks.md G36: most of it is what the path is measured with from its first packet on.
    let (mut network, client) = connected(transport());
    let second = network.link(RTT / 2);
    let now = network.now;
    let id = network.client(client).force_open(second, now);
    let caught = network.catch(1);
    network.client(client).force_on(id, &[Frame::Ping, Frame::Padding(1100)], now);
    network.run_for(Duration::from_micros(1));
    let datagrams = caught.borrow().clone();
    network.links[1].drop = Box::new(|_, _| true);
    let info = measure(|| {
        datagrams.iter().for_each(|bytes| network.forge_over(1, bytes));
        network.run_for(Duration::from_millis(2));
    });
    assert_eq!(network.server().path_ids(), [PathId::ZERO, id]);
    assert!(info.bytes_current < 6 * KIBIBYTE, "{info:?}");
}

#[test]
fn a_peer_that_has_everything_acknowledged_and_acknowledges_nothing_leaves_bounded_state() {
    // attacks.md C8: two packets every hundred milliseconds for ten minutes, and not one of the answers arrives.
    let (mut network, client) = connected(transport());
    let datagrams = said(&mut network, client, &vec![vec![1; 30]; 12_000]);
    let info = measure(|| {
        for pair in datagrams.chunks(2) {
            pair.iter().for_each(|bytes| network.forge_over(0, bytes));
            network.run_for(Duration::from_millis(100));
        }
    });
    let sent = network.server().stats().paths[0].counters.datagrams_sent;
    assert!(sent > 5000 && network.server().lifecycle().is_open(), "{sent}");
    assert!(info.bytes_max < 512 * KIBIBYTE as u64, "{info:?}");
}

/// Frames that ask for an answer, or leave something to be told of: numbers are those of the round.
fn demands(round: u64) -> Vec<Frame> {
    vec![
        Frame::Ping,
        Frame::PathChallenge(round.to_be_bytes()),
        Frame::DataBlocked(round),
        Frame::StreamsBlocked { direction: Direction::Bidirectional, limit: 128 },
        Frame::PathsBlocked(3),
        Frame::PathStatus {
            path: PathId((round % 4) as u32),
            sequence: round,
            status: match round / 4 % 2 {
                0 => crate::wire::frame::Status::Backup,
                _ => crate::wire::frame::Status::Available,
            },
        },
        Frame::ResetStream(crate::wire::frame::ResetStream {
            id: crate::stream::StreamId(4 * (round % 128)),
            error: 1,
            final_size: 0,
        }),
        Frame::MaxData(round),
        Frame::ImmediateAck,
    ]
}

#[test]
fn demands_without_end_whose_answers_are_never_acknowledged_leave_bounded_state() {
    // attacks.md C9, C11, C12, D6, E8, E12, G28, G30, CVE-2024-22189: nothing that the server says arrives.
    let (mut network, client) = connected(transport());
    let payloads = |rounds: std::ops::Range<u64>| -> Vec<Vec<u8>> {
        rounds
            .map(|round| {
                let mut payload = Vec::new();
                demands(round).iter().for_each(|frame| frame.put(&mut payload));
                payload
            })
            .collect()
    };
    let datagrams = said(&mut network, client, &payloads(0..6000));
    let mut said = |range: std::ops::Range<usize>| {
        let info = measure(|| {
            for bytes in &datagrams[range] {
                network.forge_over(0, bytes);
                network.run_for(Duration::from_millis(10));
                network.server_events.clear();
            }
        });
        info.bytes_max
    };
    said(0..1000);
    let most = said(1000..6000);
    assert!(network.server().lifecycle().is_open());
    assert!(most < 1024 * KIBIBYTE as u64, "{most} bytes for 5,000 packets");
}

#[test]
fn an_application_that_does_not_look_is_told_of_a_flood_of_demands_in_a_few_events() {
    // attacks.md G28, K3: genuine packets, of which none is followed by a look at the events before all have come.
    let (mut network, client) = connected(transport());
    let payloads: Vec<Vec<u8>> = (0..2_000)
        .map(|round| {
            let mut payload = Vec::new();
            demands(round).iter().for_each(|frame| frame.put(&mut payload));
            payload
        })
        .collect();
    let datagrams = said(&mut network, client, &payloads);
    network.server_events.clear();
    datagrams.iter().for_each(|bytes| network.forge_over(0, bytes));
    network.run_for(Duration::from_millis(10));
    assert!(network.server().lifecycle().is_open());
    let told = network.server_events.len();
    // A status for each of four paths, and what is told of streams, of which 128 were opened and reset.
    assert!((4..=4 + 4 * 128).contains(&told), "{told} events for 2,000 packets");
}

#[test]
fn a_client_behind_addresses_that_change_with_every_packet_leaves_constant_state() {
    // attacks.md D9: 6,000 addresses at a hundred a second, each with a packet that is genuine.
    let (mut network, client) = connected(transport());
    let datagrams = said(&mut network, client, &vec![vec![1; 1100]; 6000]);
    let mut moved = |range: std::ops::Range<usize>| {
        let info = measure(|| {
            for n in range {
                let address = SocketAddr::from(([198, 51, (n / 250) as u8, (n % 250) as u8], 5000));
                network.forge(address, &datagrams[n]);
                network.run_for(Duration::from_millis(10));
                network.server_events.clear();
            }
        });
        info.bytes_current
    };
    moved(0..1500);
    let kept = moved(1500..6000);
    assert!(kept < 512 * KIBIBYTE, "{kept} bytes");
}

#[test]
fn a_connection_that_idles_rests_and_wakes_when_something_comes() {
    let (mut network, client) = connected(transport());
    // Both ends: the expanded keys for headers of either direction, and their random numbers. What BoringSSL has for the keys of
    // packets is not counted here; whether they rest is told by `crypto::one_rtt`.
    let rested = measure(|| network.run_for(Duration::from_secs(1))).bytes_current;
    assert!(rested < -2 * 800, "{rested} bytes");
    let stream = network.client(client).open(Direction::Unidirectional).expect("within limits");
    let written = network.client(client).write(stream, b"awake").expect("within the window");
    assert_eq!(written, 5);
    network.run_for(RTT * 2);
    assert_eq!(network.server().accept(Direction::Unidirectional), Some(stream));
    assert_eq!(network.verdict(), None);
    // One that is awake rests again.
    let rested = measure(|| network.run_for(Duration::from_secs(1))).bytes_current;
    assert!(rested < -2 * 800, "{rested} bytes");
}

#[test]
fn short_messages_of_several_connections_share_memory() {
    let mut network = Network::new(transport(), transport());
    let tuple = network.link(RTT / 2);
    let clients = [network.connect(tuple), network.connect(tuple)];
    network.run_for(RTT * 5);
    for client in clients {
        let connection = network.client(client);
        let id = connection.open(Direction::Unidirectional).unwrap();
        connection.write(id, b"short").unwrap();
    }
    network.run_for(RTT * 2);
    let servers: Vec<_> = network.server.handles().collect();
    let read = |handle| {
        let connection = network.server.connection(handle).unwrap();
        let id = connection.accept(Direction::Unidirectional).unwrap();
        let Ok(ReadOutcome::Data(data)) = connection.read(id, 100) else { panic!("nothing came") };
        data
    };
    let messages: Vec<Bytes> = servers.into_iter().map(read).collect();
    let places: Vec<usize> = messages.iter().map(|data| data.as_ptr().addr()).collect();
    assert!(messages.iter().all(|data| data == "short"));
    assert!(places.len() == 2 && places[0].abs_diff(places[1]) < 8 << 10, "{places:?}");
}
