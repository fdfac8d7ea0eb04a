//! Tests of the scheduler's use of an eMBB and a URLLC channel under a bulk transfer (60 Mbit/s, 50 ms and 2 Mbit/s, 5
//! ms).

use hvq_scheduler::{Bandwidth, Hints, Item, PathView, Placement, Policy, Scheduler};
use hvq_tests::bulk::Download;
use hvq_tests::net::Net;
use hvq_tests::net::wire::Wire;
use hvq_transport::connection::{ChannelHint, FourTuple, TransportConfig};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const EMBB: &str = "rtt=50ms,rate=60mbit,queue=800p";
const URLLC: &str = "rtt=5ms,rate=2mbit,queue=800p";

fn hints(megabits: u64, one_way: Duration) -> Hints {
    Hints { rate: Some(Bandwidth::from_mbit(megabits)), delay: Some(one_way), ..Hints::NONE }
}

fn embb() -> Hints {
    hints(60, Duration::from_millis(25))
}

fn urllc() -> Hints {
    hints(2, Duration::from_micros(2500))
}

fn config(channels: [FourTuple; 2]) -> TransportConfig {
    let mut config = TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()));
    config.set_datagram_size(1452.into());
    for (tuple, hints) in channels.into_iter().zip([urllc(), embb()]) {
        for local in [tuple.local, tuple.remote] {
            config.add_channel(ChannelHint::new(local, hints));
        }
    }
    config
}

/// The handshake on URLLC, then both.
fn network() -> (Net, FourTuple) {
    let told = || config([Wire::addresses(0), Wire::addresses(1)]);
    let mut net = Net::new(told(), told(), 1);
    let first = net.wire(URLLC);
    let second = net.wire(EMBB);
    net.connect(first);
    (net, second)
}

fn config_without_channels() -> TransportConfig {
    TransportConfig::new(Arc::new(|| Policy::Hvc.scheduler()))
}

#[test]
fn a_download_with_hvc_and_cubic_fills_the_channels_without_loss() {
    let (mut net, second) = network();
    let mut download = Download::new(Some((second, embb())));
    net.run(&mut download, Net::START + Duration::from_millis(30_100));
    let goodput = download.goodput(Duration::from_secs(30)) / 1e6;
    println!("{goodput:.2} Mbit/s");
    // 95 % of both channels' rate; 97.6 % of what they carry is data.
    assert!(goodput >= 58.9, "{goodput:.2} Mbit/s\n{}", net.describe());
}

#[test]
fn a_channel_of_which_nothing_is_known_carries_the_download_all_the_same() {
    // Its first packets are probes, whose rate says nothing of the channel's.
    let mut told = config_without_channels();
    let both = config([Wire::addresses(0), Wire::addresses(1)]);
    told.add_channels(both.channels().iter().filter(|channel| channel.hints == urllc()).cloned());
    let mut net = Net::new(told.clone(), told, 1);
    let first = net.wire(URLLC);
    let second = net.wire(EMBB);
    net.connect(first);
    let mut download = Download::new(Some((second, Hints::NONE)));
    net.run(&mut download, Net::START + Duration::from_millis(10_100));
    let goodput = download.goodput(Duration::from_secs(10)) / 1e6;
    assert!(goodput >= 55.0, "{goodput:.2} Mbit/s\n{}", net.describe());
}

#[test]
fn small_messages_beside_a_download_arrive_within_8_milliseconds() {
    let (mut net, second) = network();
    let interval = Duration::from_millis(5);
    let mut download =
        Download::new(Some((second, embb()))).with_messages(10_000, interval, Duration::from_secs(1));
    let done = net.run(&mut download, Net::START + Duration::from_secs(60));
    assert!(done, "{} messages arrived\n{}", download.delays.len(), net.describe());
    let goodput = download.goodput(Duration::from_secs(50)) / 1e6;
    download.delays.sort();
    let quantile = |share: f64| download.delays[((download.delays.len() - 1) as f64 * share) as usize];
    let (half, most) = (quantile(0.5), quantile(0.99));
    println!(
        "p50 {half:?}, p90 {:?} p99 {most:?}, max {:?}, beside {goodput:.2} Mbit/s",
        quantile(0.9),
        quantile(1.0)
    );
    assert!(most < Duration::from_millis(8), "p50 {half:?}, p99 {most:?}\n{}", net.describe());
    assert!(goodput > 55.0, "{goodput:.2} Mbit/s beside the messages\n{}", net.describe());
}

#[test]
fn a_message_after_a_pause_finds_at_most_a_small_piece_of_bulk_in_its_way() {
    // A quiet second lets bulk onto URLLC: 500 bytes, 2 ms, at a time. The message itself takes about 3.8 ms.
    let (mut net, second) = network();
    let interval = Duration::from_millis(1307);
    let mut download =
        Download::new(Some((second, embb()))).with_messages(12, interval, Duration::from_secs(2));
    let done = net.run(&mut download, Net::START + Duration::from_secs(20));
    assert!(done, "{} messages arrived\n{}", download.delays.len(), net.describe());
    let longest = download.delays.iter().max().expect("there are messages");
    println!("{:?}", download.delays);
    assert!(*longest < Duration::from_millis(6), "{:?}\n{}", download.delays, net.describe());
}

/// The first path that has room, however far away the other is.
#[derive(Debug)]
struct FirstWithRoom;

impl Scheduler for FirstWithRoom {
    fn name(&self) -> &'static str {
        "first-with-room"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let path = paths.iter().find(|path| path.can_send());
        path.map_or(Placement::Wait, |path| Placement::On { path: path.id, bytes: item.bytes })
    }
}

#[test]
fn a_path_with_a_little_room_left_does_not_keep_a_packet_from_one_with_much() {
    // The pacer of the narrow path has some bytes to give almost always, but seldom a whole packet.
    let told = || {
        let channels = config([Wire::addresses(0), Wire::addresses(1)]).channels().to_vec();
        TransportConfig::new(Arc::new(|| Box::new(FirstWithRoom))).set_channels(channels).clone()
    };
    let mut net = Net::new(told(), told(), 1);
    let first = net.wire(URLLC);
    let second = net.wire(EMBB);
    net.connect(first);
    let mut download = Download::new(Some((second, embb())));
    net.run(&mut download, Net::START + Duration::from_millis(5_100));
    let goodput = download.goodput(Duration::from_secs(5)) / 1e6;
    assert!(goodput >= 40.0, "{goodput:.2} Mbit/s\n{}", net.describe());
}

/// The first path that has room; it takes down the waits for paths that have none though their windows have.
#[derive(Debug, Default)]
struct PacerWitness {
    waits: Arc<Mutex<Vec<Duration>>>,
}

impl Scheduler for PacerWitness {
    fn name(&self) -> &'static str {
        "pacer-witness"
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let paced =
            |path: &&PathView| !path.can_send() && path.window > path.in_flight + 4 * path.datagram_size;
        let mut waits = self.waits.lock().expect("no thread panicked");
        waits.extend(paths.iter().filter(paced).map(|path| path.next_send));
        FirstWithRoom.place(item, paths)
    }
}

#[test]
fn a_policy_is_told_how_long_the_pacer_holds_a_path_back() {
    // A pass that used up what the pacer gave is soon followed by the next, long before a round trip of 50 ms is over.
    let waits = Arc::new(Mutex::new(Vec::new()));
    let seen = waits.clone();
    let watched = TransportConfig::new(Arc::new(move || Box::new(PacerWitness { waits: seen.clone() })));
    let mut net = Net::new(config_without_channels(), watched, 1);
    let first = net.wire(EMBB);
    net.connect(first);
    net.run(&mut Download::new(None), Net::START + Duration::from_secs(2));
    let waits = waits.lock().expect("no thread panicked");
    assert!(waits.len() > 100, "the pacer held the path back {} times", waits.len());
    let (least, most) = (waits.iter().min(), waits.iter().max());
    assert!(least.is_some_and(|wait| !wait.is_zero()), "none is told");
    assert!(most.is_some_and(|wait| *wait < Duration::from_millis(10)), "{most:?}");
}
