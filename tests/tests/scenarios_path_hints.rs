//! Hints that a client tells its server (docs/spec/path-hints.md): pages through a gateway, where one end knows the
//! channels, and clients that lie about theirs.

use hvq_lab::pages::{Page, builtin};
use hvq_lab::workload::page_load::{ApplicationHints, Background, Deployment, Manner, PageLoad, Paths};
use hvq_scheduler::{Bandwidth, Hints, Policy, Sharing};
use hvq_tests::bulk::Download;
use hvq_tests::net::Net;
use hvq_tests::net::wire::Wire;
use hvq_transport::connection::{ChannelHint, HintExchange, QueueBound, TransportConfig};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const EMBB: &str = "rtt=50ms,rate=60mbit,queue=800p";
const URLLC: &str = "rtt=5ms,rate=2mbit,queue=800p";
/// Pages that are loaded for each figure.
const PAGES: usize = 8;

/// The ends that are configured with what URLLC promises.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Told {
    Nobody,
    Client,
    /// The client, which keeps it to itself.
    ClientAlone,
    Both,
}

/// URLLC's address and sharing, with a rate of `megabits`, or nothing.
fn config(local: Option<SocketAddr>, shared: Sharing, megabits: u64) -> TransportConfig {
    let mut config = TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
    config.set_datagram_size(1452.into());
    let promised = Hints {
        rate: Some(Bandwidth::from_mbit(megabits)),
        delay: Some(Duration::from_micros(2500)),
        shared,
        ..Hints::NONE
    };
    config.add_channels(local.map(|local| ChannelHint::new(local, promised)));
    config
}

fn load(page: &Page, deployment: Deployment, told: Told, megabits: u64) -> Duration {
    let urllc = Wire::addresses(0);
    let shared = if deployment == Deployment::Gateway { Sharing::Dedicated } else { Sharing::Endpoint };
    let mut client = config((told != Told::Nobody).then_some(urllc.local), shared, megabits);
    if told == Told::ClientAlone {
        client.set_path_hints(HintExchange::Off);
    }
    let mut server = config((told == Told::Both).then_some(urllc.remote), shared, megabits);
    let first = Paths { first: urllc, second: None };
    if told == Told::Both {
        let hints = server.channels()[0].hints;
        let remote = |domain| first.to_domain(domain).first.remote;
        let domains = page.objects.iter().map(|object| object.domain);
        server.add_channels(domains.map(|domain| ChannelHint::new(remote(domain), hints)));
    }
    let mut net = Net::new(client, server, 1);
    let paths = Paths { first: net.wire(URLLC), second: Some(net.wire(EMBB)) };
    let (think_scale, wait_scale, size_scale) = (0.1, 1.0, 1.0);
    let voice = ApplicationHints::Silent;
    let manner = Manner {
        deployment,
        voice,
        think_scale,
        wait_scale,
        size_scale,
        background: Background::NONE,
        connections: 1,
    };
    let mut load = PageLoad::new(page, manner, paths);
    net.run(&mut load, Net::START + deployment.lead() + Duration::from_secs(60));
    load.page_load_time().unwrap_or_else(|| panic!("{}: {}", page.id, net.describe()))
}

/// The mean page load time in milliseconds.
fn mean(deployment: Deployment, told: Told) -> f64 {
    mean_with(deployment, told, 2)
}

/// The same where URLLC is said to have `megabits`.
fn mean_with(deployment: Deployment, told: Told, megabits: u64) -> f64 {
    let pages = builtin::pages();
    let times =
        pages.iter().take(PAGES).map(|page| load(page, deployment, told, megabits).as_secs_f64() * 1e3);
    times.sum::<f64>() / PAGES.min(pages.len()) as f64
}

#[test]
fn through_a_gateway_hints_on_the_client_alone_do_what_hints_on_both_ends_do() {
    let [nobody, alone, client, both] = [Told::Nobody, Told::ClientAlone, Told::Client, Told::Both]
        .map(|told| mean(Deployment::Gateway, told));
    println!(
        "nobody {nobody:.0} ms, kept at the client {alone:.0} ms, client {client:.0} ms, both {both:.0} ms"
    );
    assert!(client <= both * 1.03, "{client} against {both}");
    // Without hints the server finds out by itself.
    assert!(client <= nobody * 1.03 && client <= alone * 1.03, "{client} against {nobody} and {alone}");
}

#[test]
fn hints_reach_servers_of_cold_connections_too() {
    let [nobody, alone, client, both] =
        [Told::Nobody, Told::ClientAlone, Told::Client, Told::Both].map(|told| mean(Deployment::Cold, told));
    println!(
        "nobody {nobody:.0} ms, kept at the client {alone:.0} ms, client {client:.0} ms, both {both:.0} ms"
    );
    assert!(client <= both * 1.1, "{client} against {both}");
    assert!(client <= alone * 0.95, "{client} against {alone}");
}

#[test]
fn a_promise_of_five_times_the_rate_is_corrected_for_all_connections_by_what_arrives() {
    for (deployment, told) in [
        (Deployment::Cold, Told::Client),
        (Deployment::Cold, Told::Both),
        (Deployment::Resumed, Told::Client),
        (Deployment::Resumed, Told::Both),
    ] {
        let [right, wrong] = [2, 10].map(|megabits| mean_with(deployment, told, megabits));
        println!("{deployment:?}, {told:?}: told right {right:.0} ms, wrong {wrong:.0} ms");
        assert!(wrong <= right * 1.1, "{deployment:?}, {told:?}: {wrong} against {right}");
    }
}

/// A download over two equal channels of 20 Mbit/s, of which the client tells a lie about the second: Mbit/s, and the bytes
/// that the server sent and the queue of the second channel had no room for.
fn download_from(lie: Hints) -> (f64, u64) {
    const TIME: Duration = Duration::from_secs(10);
    let config = || {
        let mut config = TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
        config.set_datagram_size(1452.into());
        config
    };
    let mut net = Net::new(config(), config(), 1);
    let channel = "rtt=40ms,rate=20mbit,queue=100p";
    let [first, second] = [channel; 2].map(|channel| net.wire(channel));
    net.connect(first);
    let mut download = Download::new(Some((second, lie)));
    net.run(&mut download, Net::START + TIME);
    let down = net.wires[1].down;
    (download.goodput(TIME) / 1e6, down.sent - down.delivered)
}

#[test]
fn a_client_that_lies_about_a_rate_harms_nobody_but_itself() {
    let rate = |bits| Hints { rate_back: Some(Bandwidth::from_bits_per_second(bits)), ..Hints::NONE };
    let (honest, lost) = download_from(Hints::NONE);
    println!("nothing told: {honest:.1} Mbit/s, {lost} bytes lost");
    for (bits, shared) in [
        (1 << 61, Sharing::Unknown),
        (1 << 61, Sharing::Endpoint),
        (1 << 61, Sharing::Dedicated),
        (0, Sharing::Dedicated),
        (8_000, Sharing::Endpoint),
    ] {
        let (goodput, overflow) = download_from(Hints { shared, ..rate(bits) });
        println!("{bits} bit/s, {shared:?}: {goodput:.1} Mbit/s, {overflow} bytes lost");
        // The network gets no more than congestion control lets go; the liar keeps at least the other path.
        assert!(overflow <= 2 * lost + 100_000, "{bits} {shared:?}: {overflow} bytes, {lost} of the honest");
        assert!(goodput > 15.0, "{bits} {shared:?}: {goodput} of {honest}");
    }
}

/// A download from a server that takes the smallest round trip and fills its paths, over URLLC and eMBB: Mbit/s, and the kB that URLLC
/// brought in the first second and in the next.
fn download_from_elsewhere(exchange: HintExchange) -> (f64, [u64; 2]) {
    const TIME: Duration = Duration::from_secs(2);
    let client = config(Some(Wire::addresses(0).local), Sharing::Dedicated, 2);
    let mut server = TransportConfig::new(Arc::new(|| Policy::MinRtt.scheduler()));
    server.set_datagram_size(1452.into()).set_queue_bound(QueueBound::Off).set_path_hints(exchange);
    let mut net = Net::new(client, server, 1);
    let [urllc, embb] = [URLLC, EMBB].map(|channel| net.wire(channel));
    net.connect(urllc);
    let mut download = Download::new(Some((embb, Hints::NONE)));
    let brought = [TIME / 2, TIME].map(|time| {
        net.run(&mut download, Net::START + time);
        net.wires[0].down.delivered / 1_000
    });
    (download.goodput(TIME) / 1e6, [brought[0], brought[1] - brought[0]])
}

#[test]
fn a_server_that_hears_no_hints_is_advised_to_spare_the_narrow_channel() {
    let (goodput, brought) = download_from_elsewhere(HintExchange::Off);
    println!("no hints: {goodput:.1} Mbit/s, {brought:?} kB over URLLC");
    // In a second URLLC brings 250 kB. Filled from the start, it would.
    assert!(brought[0] < 100 && brought[1] < 30, "{brought:?} kB over URLLC");
    assert!(goodput > 50.0, "{goodput} Mbit/s of 60");
    let (_, told) = download_from_elsewhere(HintExchange::On);
    println!("told: {told:?} kB over URLLC");
    assert!(told[1] > 150, "who is told has no advice, and does what its policy says: {told:?}");
}
