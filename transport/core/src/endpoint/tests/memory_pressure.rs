//! Memory that is short of what peers were permitted to send: who is slowed down, and who gives way.

use super::network::{Network, transport, verdict};
use crate::connection::{Event, TransportConfig};
use crate::endpoint::{ConnectionHandle, Endpoint, EndpointConfig};
use crate::error::ErrorCode;
use crate::memory::MemoryQuota;
use crate::stream::{Direction, ReadOutcome, StreamEvent, StreamId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const RTT: Duration = Duration::from_millis(40);
const BIDI: Direction = Direction::Bidirectional;
/// The time between two looks of the application.
const STEP: Duration = Duration::from_millis(5);
/// Silence after which nobody counts on the credit of a connection.
const IDLE: Duration = Duration::from_secs(1);
/// Bytes of a download.
const FILE: usize = 400_000;
/// Bytes that may arrive on a connection between two polls.
const FLIGHT: usize = 10 * 1_200;

fn config(limit: usize) -> (Arc<MemoryQuota>, EndpointConfig) {
    let quota = Arc::new(MemoryQuota::new(limit));
    (quota.clone(), EndpointConfig { memory: Some(quota), ..EndpointConfig::default() })
}

/// Has the server write the rest of each file, as far as there is room.
fn serve(network: &mut Network, left: &mut BTreeMap<(ConnectionHandle, StreamId), usize>) {
    for (handle, event) in std::mem::take(&mut network.server_events) {
        let Some(connection) = network.server.connection(handle) else { continue };
        if let Event::Stream(StreamEvent::Opened { direction: BIDI }) = event {
            left.extend(std::iter::from_fn(|| connection.accept(BIDI)).map(|id| ((handle, id), FILE)));
        }
        for ((_, id), left) in left.iter_mut().filter(|((of, _), left)| *of == handle && **left > 0) {
            *left -= connection.write(*id, &vec![7; *left]).unwrap_or_default();
            if *left == 0 {
                connection.finish(*id).expect("open");
            }
        }
    }
}

/// Downloads over connections of one client, which may hold `limit` bytes; its application reads `pace` bytes of each in a step.
/// Returns the use of memory once all are complete. It is never above the limit but for what arrives between two polls.
fn download(connections: usize, (limit, pace): (usize, usize), loss: usize) -> crate::memory::MemoryUse {
    let mut network = Network::new(transport(), transport());
    let (quota, endpoint) = config(limit);
    network.client = Endpoint::new(endpoint, None, [1; 32]);
    let tuple = network.link(RTT / 2);
    let mut open: BTreeMap<ConnectionHandle, usize> =
        (0..connections).map(|_| (network.connect(tuple), 0)).collect();
    network.run_for(IDLE);
    let mut count = 0;
    network.links[0].drop = Box::new(move |_, bytes| {
        count += 1;
        bytes.len() > 1_000 && loss > 0 && count % loss == 0
    });
    for handle in open.keys() {
        let connection = network.client(*handle);
        let id = connection.open(BIDI).expect("within the limit");
        connection.write(id, b"GET").expect("room");
        connection.finish(id).expect("open");
    }
    let mut left = BTreeMap::new();
    for _ in 0..24_000 {
        network.run_for(STEP);
        serve(&mut network, &mut left);
        assert!(quota.usage().used <= limit + connections * FLIGHT, "{:?}", quota.usage());
        let client = &mut network.client;
        open.retain(|handle, read| {
            let Some(connection) = client.connection(*handle) else { panic!("{handle} is gone") };
            match connection.read(StreamId(0), pace) {
                Ok(ReadOutcome::Data(data)) => *read += data.len(),
                Ok(ReadOutcome::Finished) => return false,
                Ok(ReadOutcome::Blocked) => {}
                Err(error) => panic!("{error} after {read} bytes: {:?}", quota.usage()),
            }
            true
        });
        if open.is_empty() {
            assert_eq!(verdict(&network.client_events), None);
            return quota.usage();
        }
    }
    panic!("{} of {connections} downloads do not end: {:?}", open.len(), quota.usage());
}

#[test]
fn more_downloads_than_fit_into_memory_all_end_although_data_is_lost() {
    // What is behind a gap cannot be read. 60 times 400 kB, for which the peers have credit, and 512 KiB of memory.
    let usage = download(60, (512 << 10, 1 << 20), 50);
    assert!(usage.dropped > 100 && usage.refused == 0, "{usage:?}");
}

#[test]
fn downloads_that_are_read_slowly_while_memory_is_short_all_end() {
    // 20 kB/s each: they take 20 seconds, twice as long as somebody may leave all unread.
    let usage = download(60, (2 << 20, 100), 0);
    assert!(usage.dropped > 100 && usage.refused == 0, "{usage:?}");
}

#[test]
fn a_crowd_that_is_active_is_granted_no_more_credit_than_there_is_memory_for() {
    let (limit, count) = (4 << 20, 40);
    let mut network = Network::new(transport(), transport());
    let (quota, endpoint) = config(limit);
    network.client = Endpoint::new(endpoint, None, [1; 32]);
    let tuple = network.link(RTT / 2);
    let mut granted = 0;
    for _ in 0..count {
        network.connect(tuple);
        network.run_for(RTT / 20);
        granted = granted.max(quota.usage().granted);
        // Those who come last get a little even so.
        assert!(quota.usage().granted <= limit + limit / 8, "{:?}", quota.usage());
    }
    assert!(granted > limit / 2, "{granted} bytes");
    network.run_for(IDLE);
    assert_eq!(quota.usage().granted, 0, "idle peers take nothing from others");
    let last = network.connect(tuple);
    network.run_for(RTT * 3);
    assert!(quota.usage().granted > limit / 3, "{:?}", quota.usage());
    assert!(network.client(last).lifecycle().is_connected());
}

#[test]
fn while_memory_is_short_those_give_way_whose_data_nobody_reads() {
    // attacks.md K1: uploads that nobody reads, and one that is read.
    let mut network =
        Network::new(transport(), TransportConfig { idle_timeout: Duration::from_secs(120), ..transport() });
    let (quota, endpoint) = config(3 << 20);
    network.restart_server(endpoint);
    let tuple = network.link(RTT / 2);
    let clients = [(); 4].map(|()| {
        let client = network.connect(tuple);
        // Only then is the memory there for the next.
        network.run_for(IDLE);
        client
    });
    let mut servers: Vec<_> = network.server.handles().collect();
    servers.sort_unstable();
    for client in clients {
        let connection = network.client(client);
        let id = connection.open(BIDI).expect("within the limit");
        connection.write(id, &vec![1; 2 << 20]).expect("room");
    }
    let mut read = 0;
    let mut closed_after = None;
    for step in 0..5_000_u32 {
        network.run_for(STEP);
        assert!(quota.usage().used <= (3 << 20) + 4 * 10 * FLIGHT, "{:?}", quota.usage());
        let connection = network.server.connection(servers[3]).expect("it is read");
        connection.accept(BIDI);
        if let Ok(ReadOutcome::Data(data)) = connection.read(StreamId(0), 2_000) {
            read += data.len();
        }
        if closed_after.is_none() && quota.usage().refused > 0 {
            closed_after = Some(STEP * step);
        }
    }
    assert_eq!(verdict(&network.server_events), Some(ErrorCode::INTERNAL_ERROR));
    let closed_after = closed_after.expect("one was closed");
    assert!(closed_after > Duration::from_secs(10), "{closed_after:?}");
    let lives = |handle: &&ConnectionHandle| {
        network.server.get(**handle).is_some_and(|connection| connection.lifecycle().is_open())
    };
    let usage = quota.usage();
    assert!(usage.refused < 3, "{usage:?}: no more than it takes");
    assert!(servers[..3].iter().filter(lives).count() < 3 && lives(&&servers[3]));
    assert!(read > 1 << 20, "{read} bytes");
}
