//! A path whose rate is known is paced to it and builds no queue, whatever its controller believes.

use hvq_emulation::Direction;
use hvq_scheduler::{Bandwidth, Hints, PathId, Policy, Sharing};
use hvq_tests::bulk::Download;
use hvq_tests::net::Net;
use hvq_tests::net::wire::Wire;
use hvq_transport::congestion::Algorithm;
use hvq_transport::connection::{ChannelHint, DatagramSizing, TransportConfig};
use std::sync::Arc;
use std::time::Duration;

const DATAGRAM: usize = 1452;
const URLLC: &str = "rtt=5ms,rate=2mbit,queue=800p";
/// The handshake is not under the controller.
const HANDSHAKE: Duration = Duration::from_secs(1);

fn config(algorithm: Algorithm) -> TransportConfig {
    let mut config = TransportConfig::new(Arc::new(|| Policy::Single(None).scheduler()));
    config.set_datagram_size(DATAGRAM.into()).set_congestion(algorithm.into());
    config
}

/// Returns the result of a download over one URLLC channel: Mbit/s, and the longest stay in the queue after the
/// handshake.
fn download(algorithm: Algorithm, hints: Hints) -> (f64, Duration) {
    let tuple = Net::new(config(algorithm), config(algorithm), 0).wire(URLLC);
    let mut server = config(algorithm);
    server.add_channel(ChannelHint::new(tuple.remote, hints));
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
fn datagrams_that_grow_do_not_stop_a_path_of_known_rate() {
    // The interface has jumbo frames, and what the slow channel behind it may have in flight is less than one of them.
    const JUMBO: usize = 8952;
    for algorithm in Algorithm::ALL {
        let mut config = config(algorithm);
        config.set_datagram_size(DatagramSizing::Discover { most: JUMBO });
        let local = Wire::addresses(0);
        for address in [local.local, local.remote] {
            config.add_channel(ChannelHint::new(address, urllc(Sharing::Dedicated)));
        }
        let mut net = Net::new(config.clone(), config, 1);
        let tuple = net.wire(URLLC);
        net.wires[0].largest = JUMBO;
        net.connect(tuple);
        let mut download = Download::new(None);
        net.run(&mut download, Net::START + Duration::from_secs(11));
        let goodput = download.goodput(Duration::from_secs(10)) / 1e6;
        let size = net.server.connection().path_stats(PathId::ZERO).expect("path 0 is open").datagram_size;
        assert_eq!(size, JUMBO, "{algorithm}");
        assert!(goodput >= 1.8, "{algorithm}: {goodput:.2} Mbit/s");
    }
}

/// Mbit/s of a download over eMBB with random loss, with a path over URLLC of known rate beside it or without.
fn beside_urllc(algorithm: Algorithm, multipath: bool) -> f64 {
    const TIME: Duration = Duration::from_secs(15);
    let told = |local| {
        let mut config = TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
        config.set_datagram_size(DATAGRAM.into()).set_congestion(algorithm.into());
        let delay = Some(Duration::from_micros(2500));
        config.add_channel(ChannelHint::new(local, Hints { delay, ..urllc(Sharing::Dedicated) }));
        config
    };
    let narrow = Wire::addresses(1);
    let mut net = Net::new(told(narrow.local), told(narrow.remote), 1);
    let first = net.wire("rtt=50ms,rate=60mbit,queue=800p,loss=0.1%");
    let second = net.wire(URLLC);
    net.connect(first);
    let mut download = Download::new(multipath.then(|| (second, urllc(Sharing::Dedicated))));
    net.run(&mut download, Net::START + TIME + HANDSHAKE);
    download.goodput(TIME) / 1e6
}

#[test]
fn a_path_with_a_rate_of_its_own_holds_no_coupled_path_back() {
    for algorithm in [Algorithm::Lia, Algorithm::Olia, Algorithm::Balia] {
        let [alone, beside] = [false, true].map(|multipath| beside_urllc(algorithm, multipath));
        println!("{algorithm}: {alone:.1} Mbit/s alone, {beside:.1} beside URLLC");
        assert!(beside > alone, "{algorithm}: {alone:.1} Mbit/s alone, {beside:.1} beside URLLC");
    }
}

#[test]
fn a_rate_that_others_share_is_no_limit() {
    let (_, queue) = download(Algorithm::Cubic, urllc(Sharing::Shared));
    assert!(queue > Duration::from_millis(100), "CUBIC finds out by filling the queue: {queue:?}");
}
