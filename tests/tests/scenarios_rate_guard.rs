//! A path whose rate is known is paced to it and builds no queue, whatever its controller believes.

use hvq_channel::Direction;
use hvq_scheduler::{Bandwidth, Hints, Policy, Sharing};
use hvq_tests::bulk::Download;
use hvq_tests::net::Net;
use hvq_transport::congestion::Algorithm;
use hvq_transport::connection::{ChannelHint, TransportConfig};
use std::sync::Arc;
use std::time::Duration;

const DATAGRAM: usize = 1452;
const URLLC: &str = "rtt=5ms,rate=2mbit,queue=800p";
/// The handshake is not under the controller.
const HANDSHAKE: Duration = Duration::from_secs(1);

fn config(algorithm: Algorithm) -> TransportConfig {
    let mut config = TransportConfig::new(Arc::new(|| Policy::Single(None).scheduler()));
    (config.datagram_size, config.congestion) = (DATAGRAM.into(), algorithm);
    config
}

/// What a download over one URLLC channel does: Mbit/s, and the longest stay in the queue after the handshake.
fn download(algorithm: Algorithm, hints: Hints) -> (f64, Duration) {
    let tuple = Net::new(config(algorithm), config(algorithm), 0).wire(URLLC);
    let mut server = config(algorithm);
    server.channels.push(ChannelHint::new(tuple.remote, hints));
    let mut net = Net::new(config(algorithm), server, 1);
    let tuple = net.wire(URLLC);
    net.connect(tuple);
    let mut download = Download::new(None);
    net.run(&mut download, Net::START + HANDSHAKE);
    let mut longest = Duration::ZERO;
    let mut at = HANDSHAKE;
    while at < Duration::from_secs(11) {
        at += Duration::from_micros(500);
        net.run(&mut download, Net::START + at);
        longest = longest.max(net.wires[0].channel.link(Direction::Down).queueing(at));
    }
    (download.goodput(Duration::from_secs(10)) / 1e6, longest)
}

fn urllc(shared: Sharing) -> Hints {
    Hints { rate: Some(Bandwidth::from_mbit(2)), shared, ..Hints::NONE }
}

#[test]
fn a_path_of_known_rate_is_filled_without_a_queue_by_every_controller() {
    let own = Bandwidth::from_mbit(2).transmission_time(DATAGRAM);
    for algorithm in Algorithm::ALL {
        let (goodput, queue) = download(algorithm, urllc(Sharing::Dedicated));
        println!("{algorithm}: {goodput:.2} Mbit/s, at most {queue:?} in the queue");
        assert!(goodput >= 1.8, "{algorithm}: {goodput:.2} Mbit/s");
        assert!(queue <= own + Duration::from_millis(5), "{algorithm}: {queue:?} in the queue");
    }
}

#[test]
fn a_rate_that_others_share_is_no_limit() {
    let (_, queue) = download(Algorithm::Cubic, urllc(Sharing::Shared));
    assert!(queue > Duration::from_millis(100), "CUBIC finds out by filling the queue: {queue:?}");
}
