//! A tunnel over two links: a transfer gets both, and pings do not wait behind it.

use hvq_lab::workload::tunnel::Tunnelled;
use hvq_lab::world::{Net, Side};
use hvq_scheduler::{Hints, PathId, Policy};
use hvq_transport::congestion::Algorithm;
use hvq_transport::connection::{Multipath, TransportConfig};
use std::sync::Arc;
use std::time::Duration;

/// The pairs of links that `make tunnel` has, as Mbit/s and milliseconds of a round trip, the best first.
const PAIRS: [[(u64, u64); 2]; 3] = [[(20, 20), (10, 40)], [(20, 10), (5, 80)], [(20, 20), (2, 20)]];

/// The time between pings: no multiple of any round trip.
const INTERVAL: Duration = Duration::from_millis(17);

/// The stretch that counts: beginnings are left out.
const FROM: Duration = Duration::from_secs(3);
const TO: Duration = Duration::from_secs(23);

/// The share of both rates that a transfer gets, and the round trip of pings at the 99th percentile in milliseconds beyond that
/// of the best link when it is idle.
#[derive(Debug)]
struct Outcome {
    share: f64,
    added: f64,
}

/// A download over `links`, each with a queue of one bandwidth-delay product, of which neither end is told anything.
fn download(links: [(u64, u64); 2], controller: Algorithm) -> Outcome {
    let config = || {
        let mut config = TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
        config.set_datagram_size(1452.into()).set_congestion(controller.into());
        config.set_multipath(Multipath::UpTo(PathId(3)));
        config
    };
    let mut net = Net::new(config(), config(), 1);
    let [first, second] = links.map(|(mbit, rtt)| {
        let queue = (mbit * rtt / 8).max(6);
        net.wire(&format!("rtt={rtt}ms,rate={mbit}mbit,queue={queue}kb"))
    });
    net.connect(first);
    let mut tunnelled = Tunnelled::new(Side::Server, INTERVAL, (second, Hints::NONE));
    net.run(&mut tunnelled, Net::START + TO);
    let sum: u64 = links.iter().map(|(mbit, _)| mbit * 1_000_000).sum();
    let pings = tunnelled.round_trips(FROM);
    assert!(pings.len() > 1_100, "{} pings came back", pings.len());
    let late = pings[pings.len() * 99 / 100].as_secs_f64() * 1e3;
    Outcome { share: tunnelled.goodput(FROM, TO) / sum as f64, added: late - links[0].1 as f64 }
}

#[test]
fn a_controller_that_keeps_queues_short_leaves_a_call_clear_and_gets_both_links() {
    for links in PAIRS {
        let outcome = download(links, Algorithm::VivaceRadio);
        println!("{links:?}: {outcome:?}");
        assert!(outcome.share >= 0.93, "{links:?}: {outcome:?}");
        assert!(outcome.added <= 5.0, "{links:?}: {outcome:?}");
    }
}
