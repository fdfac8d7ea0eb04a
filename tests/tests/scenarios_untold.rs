//! Channels are found out where nobody says what they are, and where what is said is wrong.

use hvq_lab::experiment::definition::Half;
use hvq_lab::workload::page_load::{ApplicationHints, Background, Deployment, Manner, PageLoad, Paths};
use hvq_scheduler::{Bandwidth, Hints, Policy, Sharing};
use hvq_tests::bulk::Download;
use hvq_tests::net::Net;
use hvq_tests::net::wire::Wire;
use hvq_transport::congestion::Algorithm;
use hvq_transport::connection::{ChannelHint, TransportConfig};
use std::sync::Arc;
use std::time::Duration;

const WIDE: &str = "rtt=50ms,rate=60mbit";
const QUICK: &str = "rtt=5ms,rate=2mbit";
/// Half of it is somebody else's.
const HALF: &str = "rtt=5ms,rate=1mbit";

/// Loads of each page, with seeds of their own.
const LOADS: u64 = 2;
const LIMIT: Duration = Duration::from_secs(60);

fn config(policy: Policy, told: Option<Hints>) -> TransportConfig {
    let mut config = TransportConfig::new(Arc::new(move || policy.scheduler()));
    config.set_datagram_size(1452.into());
    let quick = Wire::addresses(0);
    let hint = |hints| [quick.local, quick.remote].map(|address| ChannelHint::new(address, hints));
    config.add_channels(told.into_iter().flat_map(hint));
    config
}

/// URLLC as somebody who is told this rate knows it.
fn urllc(mbit: u64) -> Option<Hints> {
    let (rate, delay) = (Some(Bandwidth::from_mbit(mbit)), Some(Duration::from_micros(2500)));
    Some(Hints { rate, delay, shared: Sharing::Dedicated, ..Hints::NONE })
}

/// The mean page load time in seconds through a gateway over the channels `specs`, of which the client and the server know
/// what `told` says of the first.
fn pages(specs: &[&str], policy: Policy, told: [Option<Hints>; 2]) -> f64 {
    let half = Half::Training;
    let mut total = 0.0;
    let pages = half.pages();
    for page in &pages {
        for seed in 0..LOADS {
            let [client, server] = told.map(|told| config(policy, told));
            let mut net = Net::new(client, server, half.seed(seed));
            let tuples: Vec<_> = specs.iter().map(|spec| net.wire(spec)).collect();
            let manner = Manner {
                deployment: Deployment::Gateway,
                voice: ApplicationHints::Silent,
                think_scale: 0.1,
                wait_scale: half.wait_scale(),
                size_scale: 1.0,
                background: Background::NONE,
                connections: 1,
            };
            let paths = Paths { first: tuples[0], second: tuples.get(1).copied() };
            let mut load = PageLoad::new(page, manner, paths);
            net.run(&mut load, Net::START + Deployment::Gateway.lead() + LIMIT);
            total += load.page_load_time().unwrap_or(LIMIT).as_secs_f64();
        }
    }
    total / (pages.len() as u64 * LOADS) as f64
}

fn alone() -> f64 {
    pages(&[WIDE], Policy::Single(None), [None; 2])
}

#[test]
fn who_is_told_nothing_gains_most_of_what_full_knowledge_gains() {
    let (alone, told) = (alone(), pages(&[QUICK, WIDE], Policy::Hvc, [urllc(2); 2]));
    for (who, knows) in [("nobody", [None; 2]), ("the client", [urllc(2), None])] {
        let time = pages(&[QUICK, WIDE], Policy::Hvc, knows);
        let share = (alone - time) / (alone - told);
        println!("{who} is told: {time:.3} s, {alone:.3} s alone, {told:.3} s told: {share:.2} of the gain");
        assert!(share >= 0.85, "{who} is told: {share:.2} of the gain");
    }
}

#[test]
fn the_order_in_which_channels_are_named_is_no_matter() {
    let [straight, exchanged] =
        [[QUICK, WIDE], [WIDE, QUICK]].map(|specs| pages(&specs, Policy::Hvc, [None; 2]));
    println!("{straight:.3} s, exchanged {exchanged:.3} s");
    assert!((straight / exchanged - 1.0).abs() < 0.03, "{straight:.3} and {exchanged:.3} s");
}

#[test]
fn a_rate_that_is_promised_and_not_kept_costs_little() {
    let alone = alone();
    let limit = alone * 1.03;
    for (what, quick, mbit) in [("five times too much", QUICK, 10), ("half is taken", HALF, 2)] {
        for (who, knows) in [("both", [urllc(mbit); 2]), ("the client", [urllc(mbit), None])] {
            let time = pages(&[quick, WIDE], Policy::Hvc, knows);
            println!("{what}, told {who}: {time:.3} s, {alone:.3} s alone");
            assert!(time < limit, "{what}, told {who}: {time:.3} s");
        }
    }
}

#[test]
fn a_promise_is_lowered_to_what_the_channel_shows_and_a_true_one_is_kept() {
    for (spec, mbit, shown) in [(QUICK, 10, 1.6..2.1), (HALF, 10, 0.8..1.1), (QUICK, 2, 2.0..2.001)] {
        let hints = urllc(mbit);
        let mut net = Net::new(config(Policy::Hvc, hints), config(Policy::Hvc, hints), 1);
        let [quick, wide] = [spec, WIDE].map(|spec| net.wire(spec));
        net.connect(quick);
        let mut download = Download::new(Some((wide, Hints::NONE)));
        net.run(&mut download, Net::START + Duration::from_secs(2));
        let stats = net.server.connection().stats();
        let rate = stats.paths[0].rate.expect("it is hinted").bits_per_second() as f64 / 1e6;
        println!("{mbit} Mbit/s promised: {rate:.2} Mbit/s believed");
        assert!(shown.contains(&rate), "{spec}, {mbit} Mbit/s promised: {rate:.2} Mbit/s believed");
    }
}

/// Mbit/s of a download over `specs` after slow start.
fn goodput(specs: &[&str], algorithm: Algorithm) -> f64 {
    let (from, to) = (Duration::from_secs(3), Duration::from_secs(8));
    let told = || {
        let mut config = config(Policy::Hvc, None);
        config.set_congestion(algorithm.into());
        config
    };
    let mut net = Net::new(told(), told(), 1);
    let tuples: Vec<_> = specs.iter().map(|spec| net.wire(spec)).collect();
    net.connect(tuples[0]);
    let mut download = Download::new(tuples.get(1).map(|second| (*second, Hints::NONE)));
    net.run(&mut download, Net::START + to + Duration::from_millis(500));
    let bits = |time: Duration| download.goodput(time) * time.as_secs_f64();
    (bits(to) - bits(from)) / (to - from).as_secs_f64() / 1e6
}

#[test]
fn two_ordinary_links_are_filled_in_either_order() {
    let [wifi, lte, dsl, cable] = [
        "rtt=8ms,rate=80mbit,queue=256kb",
        "rtt=50ms,rate=30mbit,queue=512kb",
        "rtt=20ms,rate=16mbit,queue=128kb",
        "rtt=15ms,rate=100mbit,queue=512kb",
    ];
    for algorithm in [Algorithm::Cubic, Algorithm::Bbr] {
        for (one, other) in [(wifi, lte), (wifi, dsl), (lte, dsl), (cable, dsl), (lte, cable)] {
            let sum = goodput(&[one], algorithm) + goodput(&[other], algorithm);
            for specs in [[one, other], [other, one]] {
                let share = goodput(&specs, algorithm) / sum;
                println!("{algorithm}, {}: {share:.3}", specs.join(" and "));
                assert!(share >= 0.93, "{algorithm}, {}: {share:.3} of the sum", specs.join(" and "));
            }
        }
    }
}

#[test]
fn no_controller_makes_a_long_queue_on_a_quick_path_whose_rate_nobody_told() {
    use hvq_emulation::Direction;
    for algorithm in Algorithm::ALL {
        let told = || {
            let mut config = config(Policy::MinRtt, None);
            config.set_congestion(algorithm.into());
            config
        };
        let mut net = Net::new(told(), told(), 1);
        let [wide, quick] = [WIDE, QUICK].map(|spec| net.wire(spec));
        net.connect(wide);
        let mut download = Download::new(Some((quick, Hints::NONE)));
        let mut longest = Duration::ZERO;
        for millisecond in 0..2000 {
            net.run(&mut download, Net::START + Duration::from_millis(millisecond));
            let queue =
                net.wires[1].channel.link(Direction::Down).queueing(Duration::from_millis(millisecond));
            // Nobody can tell that it is quick before its first flight is acknowledged.
            if millisecond > 300 {
                longest = longest.max(queue);
            }
        }
        println!("{algorithm}: at most {longest:?} in the queue");
        // Unbound they fill it up: 800 packets take 4.6 s.
        assert!(longest <= Duration::from_millis(50), "{algorithm}: {longest:?} in the queue");
    }
}
