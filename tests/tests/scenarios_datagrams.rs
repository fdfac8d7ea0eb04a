//! DATAGRAM frames at the sizes that paths carry (RFC 9221 §5, RFC 8899), on connections that carry nothing else.

use hvq_scheduler::{Item, PathId, PathView, Placement, Policy, Priority, Scheduler};
use hvq_tests::net::{Net, Side};
use hvq_transport::connection::{Connection, TransportConfig};
use hvq_transport::datagram::DatagramError;
use hvq_transport::wire::frame::Status;
use std::sync::Arc;
use std::time::Duration;

const CHANNEL: &str = "rtt=20ms,rate=20mbit,queue=2000p";

/// A packet to a connection ID of 8 bytes has 29 bytes beside frames, and the frame 3 beside the datagram.
const AROUND: usize = 29 + 3;

fn config(policy: Policy) -> TransportConfig {
    TransportConfig::new(Arc::new(move || policy.scheduler()))
}

/// A connection over wires that carry datagrams of `largest` bytes, the handshake done and every path open.
fn network(config: &TransportConfig, largest: &[usize]) -> Net {
    let mut net = Net::new(config.clone(), config.clone(), 1);
    let tuples: Vec<_> = largest.iter().map(|_| net.wire(CHANNEL)).collect();
    for (wire, largest) in net.wires.iter_mut().zip(largest) {
        wire.largest = *largest;
    }
    net.connect(tuples[0]);
    net.run_for(Duration::from_millis(200));
    for tuple in &tuples[1..] {
        let now = net.now;
        net.client.connection().open_path(*tuple, now).expect("a path can be opened");
        net.run_for(Duration::from_millis(200));
    }
    net
}

fn send(connection: &mut Connection, size: usize) -> Result<u64, DatagramError> {
    connection.send_datagram(vec![size as u8; size].into(), Priority::default(), None)
}

/// Sizes of the datagrams that wait at `side`, whole and as they were sent.
fn received(net: &mut Net, side: Side) -> Vec<usize> {
    let connection = net.end(side).connection();
    let datagrams = std::iter::from_fn(|| connection.receive_datagram());
    datagrams
        .map(|data| {
            assert!(data.iter().all(|byte| *byte == data.len() as u8), "a datagram of {} bytes", data.len());
            data.len()
        })
        .collect()
}

/// Every size from 1 to 1,500 from `side`: all of at most `most` bytes arrive, and all others are refused and counted.
fn assert_sizes(net: &mut Net, side: Side, most: usize) {
    let other = if side == Side::Client { Side::Server } else { Side::Client };
    let (before, mut arrived) = (net.end(side).connection().stats().datagrams, Vec::new());
    for size in 1..=1500 {
        match send(net.end(side).connection(), size) {
            Ok(_) => assert!(size <= most, "{size} is taken"),
            Err(error) => {
                assert_eq!(error, DatagramError::TooLarge { max: most, later: most }, "{size}");
                assert!(size > most, "{size} is refused");
            }
        }
        net.run_for(Duration::from_millis(2));
        arrived.extend(received(net, other));
    }
    net.run_for(Duration::from_secs(1));
    arrived.extend(received(net, other));
    arrived.sort_unstable();
    // Some policies send copies.
    arrived.dedup();
    assert!(arrived.iter().copied().eq(1..=most), "{arrived:?} {}", net.describe());
    let after = net.end(side).connection().stats().datagrams;
    assert_eq!(after.too_large - before.too_large, 1500 - most as u64);
    assert_eq!((after.displaced, after.expired, after.lost), (0, 0, 0));
}

/// attacks.md K13.
#[test]
fn a_connection_that_carries_datagrams_only_finds_out_that_its_path_carries_large_ones() {
    for side in Side::BOTH {
        let mut net = network(&config(Policy::MinRtt), &[1500]);
        let refused =
            send(net.end(side).connection(), 1400).expect_err("nothing shows that the path carries it");
        assert_eq!(refused, DatagramError::TooLarge { max: 1200 - AROUND, later: 1452 - AROUND });
        net.run_for(Duration::from_millis(100));
        send(net.end(side).connection(), 1400).expect("the refusal was a reason to probe");
        net.run_for(Duration::from_millis(100));
        assert_eq!(
            received(&mut net, if side == Side::Client { Side::Server } else { Side::Client }),
            [1400]
        );
    }
}

#[test]
fn a_size_that_is_announced_is_there_when_it_is_needed() {
    let config = config(Policy::MinRtt);
    let mut net = Net::new(config.clone(), config.clone(), 1);
    let tuple = net.wire(CHANNEL);
    net.connect(tuple);
    net.client.connection().expect_datagrams(usize::MAX);
    net.run_for(Duration::from_millis(200));
    send(net.client.connection(), 1452 - AROUND).expect("it was probed before anything was sent");
    let stats = net.client.connection().stats();
    assert_eq!(
        (stats.datagrams.too_large, stats.paths[0].counters.probe_timeouts),
        (0, 0),
        "{}",
        net.describe()
    );
    let mut quiet = network(&config, &[1500]);
    quiet.run_for(Duration::from_secs(5));
    assert_eq!(
        quiet.client.connection().max_datagram_size(),
        Some(1200 - AROUND),
        "who asks nothing probes nothing"
    );
}

#[test]
fn every_size_is_carried_or_refused_as_the_path_is_wide() {
    for largest in [1200, 1350, 1452, 1500] {
        let mut net = network(&config(Policy::MinRtt), &[largest]);
        let most = largest.min(1452) - AROUND;
        // What does not pass is tried three times, a second each: the size of Ethernet, then the one asked for.
        for (size, seconds) in [(most, 4), (most + 1, 10)] {
            for side in Side::BOTH {
                let _perhaps_refused = send(net.end(side).connection(), size);
            }
            net.run_for(Duration::from_secs(seconds));
        }
        for side in Side::BOTH {
            received(&mut net, side);
        }
        for side in Side::BOTH {
            assert_sizes(&mut net, side, most);
        }
    }
}

#[test]
fn the_smallest_packet_of_ipv6_is_carried_where_the_path_takes_1350_bytes() {
    // RFC 8200 §5, RFC 9484 §10.1. With the quarter stream ID and the context ID it has 1,282 bytes.
    let mut net = network(&config(Policy::Hvc), &[1350]);
    let refused = send(net.client.connection(), 1282).expect_err("not yet");
    assert!(matches!(refused, DatagramError::TooLarge { later, .. } if later >= 1282), "{refused:?}");
    // Three probes of what Ethernet carries are lost, a second each.
    net.run_for(Duration::from_secs(4));
    send(net.client.connection(), 1282).expect("the very size was probed");
    net.run_for(Duration::from_secs(1));
    assert_eq!(received(&mut net, Side::Server), [1282]);
}

#[test]
fn on_unlike_paths_each_datagram_takes_one_that_is_wide_enough_whatever_the_policy() {
    for name in Policy::NAMES {
        let policy: Policy = name.parse().expect("the name of a policy");
        for largest in [[1500, 1200], [1200, 1500]] {
            let mut net = network(&config(policy), &largest);
            for side in Side::BOTH {
                net.end(side).connection().expect_datagrams(usize::MAX);
            }
            net.run_for(Duration::from_secs(15));
            assert_sizes(&mut net, Side::Client, 1452 - AROUND);
            let wide = PathId(u32::from(largest[0] == 1200));
            let before = net.client.connection().stats().datagrams;
            // The wide path dies while large datagrams wait for it.
            for size in [1400, 100, 1400, 100] {
                send(net.client.connection(), size).expect("it fits");
            }
            net.wires[wide.0 as usize].largest = 0;
            net.run_for(Duration::from_secs(10));
            let small = net.client.connection().max_datagram_size();
            assert_eq!(small, Some(1200 - AROUND), "{name} {}", net.describe());
            received(&mut net, Side::Server);
            for size in [1400, 1100] {
                let sent = send(net.client.connection(), size);
                assert_eq!(sent.is_ok(), size == 1100, "{name}: {sent:?}");
            }
            net.run_for(Duration::from_secs(5));
            assert_eq!(received(&mut net, Side::Server), [1100], "{name} {}", net.describe());
            assert_eq!(net.client.connection().stats().datagrams.too_large - before.too_large, 1);
        }
    }
}

/// Names the narrow path for everything.
#[derive(Debug)]
struct Stubborn;

impl Scheduler for Stubborn {
    fn name(&self) -> &'static str {
        "stubborn"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let narrow = paths.iter().min_by_key(|path| path.datagram_size).expect("there is a path");
        Placement::On { path: narrow.id, bytes: item.bytes }
    }
}

#[test]
fn no_policy_makes_datagrams_wait_for_a_path_that_never_carries_them() {
    let config = TransportConfig::new(Arc::new(|| Box::new(Stubborn)));
    let mut net = network(&config, &[1500, 1200]);
    net.client.connection().expect_datagrams(usize::MAX);
    net.run_for(Duration::from_secs(15));
    for size in [1400, 1, 1400, 1] {
        send(net.client.connection(), size).expect("path 0 carries it");
    }
    net.run_for(Duration::from_millis(50));
    let mut arrived = received(&mut net, Side::Server);
    arrived.sort_unstable();
    assert_eq!(arrived, [1, 1, 1400, 1400], "{}", net.describe());
}

#[test]
fn a_backup_that_is_wider_is_not_used_for_its_width() {
    // RFC 10069 §3.3.
    let mut net = network(&config(Policy::MinRtt), &[1200, 1500]);
    net.client.connection().expect_datagrams(usize::MAX);
    net.run_for(Duration::from_secs(15));
    assert_eq!(net.client.connection().max_datagram_size(), Some(1452 - AROUND));
    send(net.client.connection(), 1400).expect("path 1 carries it");
    net.run_for(Duration::from_millis(100));
    net.server.connection().set_path_status(PathId(1), Status::Backup).expect("the path is open");
    net.run_for(Duration::from_millis(100));
    assert_eq!(net.client.connection().max_datagram_size(), Some(1200 - AROUND), "{}", net.describe());
    assert!(send(net.client.connection(), 1400).is_err());
}
