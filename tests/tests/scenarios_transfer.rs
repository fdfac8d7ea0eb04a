//! Every byte arrives over two bad channels, whatever the policy, for a thousand seeds.

use hvq_scheduler::Policy;
use hvq_tests::net::Net;
use hvq_tests::transfer::Transfer;
use hvq_transport::connection::TransportConfig;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

const EMBB: &str = "rtt=50ms,rate=60mbit,loss=1%,reorder=1%/5ms,duplicate=0.5%";
const URLLC: &str = "rtt=5ms,rate=2mbit,loss=1%,reorder=1%/2ms,duplicate=0.5%";
/// The longest that a transfer may take, the blackout included.
const LONGEST: Duration = Duration::from_secs(30);
/// Seeds for each policy; there are four.
const SEEDS: u64 = 512;

fn config(policy: Policy) -> TransportConfig {
    TransportConfig::new(Arc::new(move || policy.scheduler()))
}

/// Runs the transfer of one seed, which decides: which channel is dark for 3 s, from when, and over which the handshake
/// goes.
fn run(policy: Policy, seed: u64) -> Result<Duration, String> {
    let mut dice = StdRng::seed_from_u64(seed);
    let from = dice.random_range(0..800);
    let blackout = format!("blackout={from}ms..{}ms", from + 3000);
    let mut specs = [URLLC.to_owned(), EMBB.to_owned()];
    specs[(seed % 2) as usize] += &format!(",{blackout}");
    if seed / 2 % 2 == 1 {
        specs.reverse();
    }
    let mut net = Net::new(config(policy), config(policy), seed);
    let tuples = specs.map(|spec| net.wire(&spec));
    net.connect(tuples[0]);
    let mut transfer = Transfer::new(seed, 4, dice.random_range(20_000..150_000), vec![tuples[1]]);
    let done = net.run(&mut transfer, Net::START + LONGEST);
    if done && transfer.failure.is_none() {
        return Ok(net.elapsed());
    }
    let dark = seed % 2;
    Err(format!(
        "policy {policy}, seed {seed}, {blackout} of channel {dark}\n{}\n{}",
        transfer.describe(),
        net.describe()
    ))
}

fn run_all(policy: Policy, seeds: Range<u64>) {
    let outcomes: Vec<_> = seeds.map(|seed| (seed, run(policy, seed))).collect();
    let failed: Vec<u64> =
        outcomes.iter().filter(|(_, outcome)| outcome.is_err()).map(|(seed, _)| *seed).collect();
    let first = outcomes.iter().find_map(|(_, outcome)| outcome.as_ref().err());
    assert!(failed.is_empty(), "seeds {failed:?} fail; the first:\n{}", first.map_or("", String::as_str));
    let times = outcomes.iter().filter_map(|(_, outcome)| outcome.as_ref().ok());
    println!("{policy}: the longest took {:?}", times.max());
}

#[test]
fn hvc_delivers_every_byte_through_loss_reordering_duplication_and_a_blackout() {
    run_all(Policy::Hvc, 0..SEEDS);
}

#[test]
fn min_rtt_delivers_every_byte_through_loss_reordering_duplication_and_a_blackout() {
    run_all(Policy::MinRtt, SEEDS..2 * SEEDS);
}

#[test]
fn round_robin_delivers_every_byte_through_loss_reordering_duplication_and_a_blackout() {
    run_all(Policy::RoundRobin, 2 * SEEDS..3 * SEEDS);
}

#[test]
fn redundant_delivers_every_byte_through_loss_reordering_duplication_and_a_blackout() {
    run_all(Policy::Redundant, 3 * SEEDS..4 * SEEDS);
}

#[test]
fn a_run_is_the_same_whenever_its_seed_is() {
    let traffic = |seed| {
        let mut net = Net::new(config(Policy::Hvc), config(Policy::Hvc), seed);
        let tuples = [URLLC, EMBB].map(|spec| net.wire(spec));
        net.connect(tuples[0]);
        let mut transfer = Transfer::new(seed, 4, 100_000, vec![tuples[1]]);
        assert!(net.run(&mut transfer, Net::START + LONGEST), "{}", transfer.describe());
        (net.now, net.wires.iter().map(|wire| (wire.up, wire.down)).collect::<Vec<_>>())
    };
    assert_eq!(traffic(7), traffic(7));
    assert_ne!(traffic(7), traffic(8));
}
