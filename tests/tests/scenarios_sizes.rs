//! Datagram sizes that are found by probing (RFC 8899, RFC 9000 §14.3).

use hvq_scheduler::{Hints, PathId, Policy};
use hvq_tests::bulk::Download;
use hvq_tests::net::Net;
use hvq_transport::connection::{DatagramSizing, PathStats, TransportConfig};
use std::sync::Arc;
use std::time::Duration;

const CHANNEL: &str = "rtt=20ms,rate=20mbit,queue=2000p";

fn network(sizing: DatagramSizing, largest: usize) -> (Net, Download) {
    let mut config = TransportConfig::new(Arc::new(|| Policy::MinRtt.scheduler()));
    config.set_datagram_size(sizing);
    let mut net = Net::new(config.clone(), config, 1);
    let tuple = net.wire(CHANNEL);
    net.wires[0].largest = largest;
    net.connect(tuple);
    (net, Download::new(None))
}

fn server(net: &mut Net) -> PathStats {
    net.server.connection().path_stats(PathId::ZERO).expect("path 0 is open")
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

#[test]
fn a_path_is_used_with_the_largest_datagrams_that_it_carries() {
    let jumbo = DatagramSizing::Discover { most: 8952 };
    for (sizing, largest, least, most) in [
        (DatagramSizing::default(), usize::MAX, 1452, 1452),
        (DatagramSizing::default(), 1400, 1384, 1400),
        (DatagramSizing::default(), 1200, 1200, 1200),
        (jumbo, 8952, 8952, 8952),
        (jumbo, 4000, 3984, 4000),
        (DatagramSizing::Fixed(1300), usize::MAX, 1300, 1300),
    ] {
        let (mut net, mut download) = network(sizing, largest);
        net.run(&mut download, Net::START + seconds(2));
        let stats = server(&mut net);
        assert!((least..=most).contains(&stats.datagram_size), "{} of {largest}", stats.datagram_size);
        // RFC 9000 §14.4: probes that are lost are no congestion.
        assert_eq!(stats.counters.packets_lost, 0, "{stats:?}");
        assert!(download.goodput(seconds(2)) > 16e6, "{}", net.describe());
    }
}

#[test]
fn two_unlike_paths_find_a_size_each() {
    let (mut net, _) = network(DatagramSizing::default(), usize::MAX);
    let second = net.wire(CHANNEL);
    net.wires[1].largest = 1400;
    let mut download = Download::new(Some((second, Hints::NONE)));
    net.run(&mut download, Net::START + seconds(3));
    for (path, least, most) in [(0, 1452, 1452), (1, 1384, 1400)] {
        let stats = net.server.connection().path_stats(PathId(path)).expect("the path is open");
        assert!((least..=most).contains(&stats.datagram_size), "path {path}: {}", stats.datagram_size);
        assert_eq!(stats.counters.packets_lost, 0, "{stats:?}");
    }
    assert!(download.goodput(seconds(3)) > 32e6, "{}", net.describe());
}

#[test]
fn a_transfer_survives_that_its_path_becomes_narrow() {
    // attacks.md D16.
    let (mut net, mut download) = network(DatagramSizing::default(), usize::MAX);
    net.run(&mut download, Net::START + seconds(3));
    assert_eq!(server(&mut net).datagram_size, 1452);
    net.wires[0].largest = 1250;
    let before = server(&mut net).counters;
    net.run(&mut download, Net::START + seconds(6));
    let connected = download.connected.expect("it is").since(Net::START);
    let from = (seconds(3) - connected).as_millis() as usize;
    // What is in the channel when it changes still arrives.
    let (mut longest, mut gap) = (0, 0);
    download.progress.resize((seconds(6) - connected).as_millis() as usize, 0);
    for bytes in download.progress.iter().skip(from) {
        gap = if *bytes > 0 { 0 } else { gap + 1 };
        longest = longest.max(gap);
    }
    println!("longest gap {longest} ms");
    let stats = server(&mut net);
    assert!(stats.counters.probe_timeouts - before.probe_timeouts <= 3, "{stats:?}");
    assert!(longest < 600, "{longest} ms, {stats:?}");
    assert!((1200..=1250).contains(&stats.datagram_size), "{stats:?}");
    let late: u64 = download.progress.iter().skip(from + 1_500).sum();
    assert!(late as f64 * 8.0 / 1.5 > 10e6, "{late} bytes in the last 1.5 s, {stats:?}");
}
