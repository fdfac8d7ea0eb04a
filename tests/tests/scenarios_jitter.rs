//! Paths on which packets overtake each other: late is not lost.

use hvq_scheduler::{PathId, Policy};
use hvq_tests::bulk::Download;
use hvq_tests::net::Net;
use hvq_transport::congestion::Algorithm;
use hvq_transport::connection::{PathStats, TransportConfig};
use std::sync::Arc;
use std::time::Duration;

const STEADY: &str = "rtt=50ms,rate=20mbit,queue=200p";
const SPAN: Duration = Duration::from_secs(15);

/// A download over `channel`: goodput in Mbit/s, and the server's view of its path.
fn run(congestion: Algorithm, channel: &str) -> (f64, PathStats) {
    let mut config = TransportConfig::new(Arc::new(|| Policy::MinRtt.scheduler()));
    config.set_congestion(congestion.into());
    let mut net = Net::new(config.clone(), config, 1);
    let tuple = net.wire(channel);
    net.connect(tuple);
    let mut download = Download::new(None);
    net.run(&mut download, Net::START + SPAN);
    let stats = net.server.connection().path_stats(PathId::ZERO).expect("path 0 is open");
    (download.goodput(SPAN) / 1e6, stats)
}

#[test]
fn packets_that_others_overtake_cost_no_controller_more_than_a_twentieth_of_its_throughput() {
    // A radio link that repeats frames: one packet in fifty comes up to 20 ms late, when some thirty others have passed.
    for congestion in Algorithm::ALL {
        let (steady, _) = run(congestion, STEADY);
        let (jittery, stats) = run(congestion, &format!("{STEADY},down.reorder=2%/20ms"));
        println!("{congestion}: {jittery:.2} of {steady:.2} Mbit/s, {:?}", stats.counters);
        // The first few are taken for lost before the threshold has learnt, and every reduction for them is undone. What
        // remains is noise of slow start and trials, of 2 % at most.
        assert!(jittery > 0.95 * steady, "{congestion}: {jittery:.2} of {steady:.2} Mbit/s, {stats:?}");
        // A tenth of those that are late.
        assert!(stats.counters.spurious_losses < 50, "{congestion}: {stats:?}");
    }
}

#[test]
fn acknowledgements_that_others_overtake_cost_nothing_either() {
    let (steady, _) = run(Algorithm::Cubic, STEADY);
    let (jittery, stats) = run(Algorithm::Cubic, &format!("{STEADY},up.reorder=20%/30ms"));
    assert!(jittery > 0.9 * steady, "{jittery:.2} of {steady:.2} Mbit/s, {stats:?}");
}

#[test]
fn real_losses_are_still_found_on_a_path_that_reorders() {
    let (goodput, stats) = run(Algorithm::Cubic, &format!("{STEADY},down.reorder=2%/20ms,down.loss=0.1%"));
    assert!(stats.counters.packets_lost > stats.counters.spurious_losses, "{stats:?}");
    assert!(goodput > 4.0, "{goodput:.2} Mbit/s, {stats:?}");
}
