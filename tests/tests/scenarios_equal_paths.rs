//! Two paths with channels of the same rate carry nearly twice what one carries.

use hvq_scheduler::{Hints, Policy};
use hvq_tests::bulk::Download;
use hvq_tests::net::Net;
use hvq_transport::connection::TransportConfig;
use std::sync::Arc;
use std::time::Duration;

/// Slow start is over by then.
const SETTLED: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(5);

/// The share of the rate of `paths` channels like `spec` that a download with `policy` fills after slow start.
fn share(policy: Policy, spec: &str, rate: f64, paths: usize) -> f64 {
    let config = || {
        let mut config = TransportConfig::new(Arc::new(move || policy.scheduler()));
        config.set_datagram_size(1452.into());
        config
    };
    let mut net = Net::new(config(), config(), 1);
    let first = net.wire(spec);
    let second = (paths > 1).then(|| (net.wire(spec), Hints::NONE));
    net.connect(first);
    let mut download = Download::new(second);
    net.run(&mut download, Net::START + SETTLED + TIME + Duration::from_millis(100));
    let bits = |time: Duration| download.goodput(time) * time.as_secs_f64();
    let settled = (bits(SETTLED + TIME) - bits(SETTLED)) / TIME.as_secs_f64() / 1e6;
    let share = settled / (rate * paths as f64);
    println!(
        "{}, {spec}, {paths} paths: {settled:.1} Mbit/s, {share:.3} of the rate",
        policy.scheduler().name()
    );
    share
}

#[test]
fn two_equal_paths_carry_what_both_channels_can() {
    for (spec, rate) in [("rtt=20ms,rate=50mbit", 50.0), ("rtt=10ms,rate=200mbit", 200.0)] {
        for policy in [Policy::Hvc, Policy::MinRtt] {
            let both = share(policy, spec, rate, 2);
            assert!(both >= 0.94, "{:?} on {spec}: {both:.3} of both channels", policy.scheduler());
        }
    }
}
