//! With two paths, one flow and no word from the application, the rule is Algorithm 1 of DChannel (NSDI 2023, A.1): its α
//! is the more of 0.75 the narrower the LLC is beside an HBC of known rate, which carries at least three times as much: two
//! paths of about one rate are both used for the sum of their rates.

use proptest::prelude::*;

use super::*;

/// One packet as the algorithm meets it.
#[derive(Clone, Copy, Debug)]
struct Packet {
    gap: u64,
    bytes: usize,
    llc_queue: usize,
    hbc_queue: usize,
}

/// The two channels; times in nanoseconds, rates in bits per second.
#[derive(Clone, Copy, Debug)]
struct Channels {
    llc_delay: u64,
    llc_rate: u64,
    hbc_delay: u64,
    hbc_rate: Option<u64>,
}

/// Reward minus α · cost, as the listing has it; the equations of §3.4 where the HBC's rate is known. Nanoseconds.
fn gain(channels: Channels, packet: Packet, now: f64, previous: f64) -> (f64, f64, f64) {
    let busy = |queue: usize, rate: u64| (packet.bytes + queue) as f64 * 8e9 / rate as f64;
    let cost = busy(packet.llc_queue, channels.llc_rate);
    let c_llc = now + channels.llc_delay as f64 + cost;
    let queueing = channels.hbc_rate.map_or(0.0, |rate| busy(packet.hbc_queue, rate));
    let c_hbc = now + channels.hbc_delay as f64 + queueing;
    let reward = c_hbc - previous.max(c_llc);
    let narrower = channels.hbc_rate.map_or(1024, |rate| (rate - channels.llc_rate) * 1024 / rate);
    (reward - 0.75 * narrower as f64 / 1024.0 * cost, c_llc, c_hbc)
}

fn views(channels: Channels, packet: Packet) -> [PathView; 2] {
    let view = |path: PathView, delay, rate: Option<u64>, backlog| PathView {
        delay: Duration::from_nanos(delay),
        rate: rate.map(Bandwidth::from_bits_per_second),
        backlog,
        ..path
    };
    [
        view(embb(), channels.hbc_delay, channels.hbc_rate, packet.hbc_queue),
        view(urllc(), channels.llc_delay, Some(channels.llc_rate), packet.llc_queue),
    ]
}

/// Sends `packets` by the algorithm and by the policy; the numbers of packets on the LLC and on the HBC.
fn compare(channels: Channels, packets: &[Packet], swapped: bool) -> [usize; 2] {
    let mut policy = Hvc::default();
    let (mut now, mut previous, mut counts) = (0_u64, 0.0_f64, [0; 2]);
    for &packet in packets {
        now += packet.gap;
        let (gain, c_llc, c_hbc) = gain(channels, packet, now as f64, previous);
        let mut paths = views(channels, packet);
        if swapped {
            paths.reverse();
        }
        let item = Item {
            head_of_line_delay: Duration::from_nanos((previous - now as f64).max(0.0) as u64),
            now: Duration::from_nanos(now),
            ..data(packet.bytes)
        };
        let placement = policy.place(&item, &paths);
        let expected = if gain > 0.0 { URLLC } else { EMBB };
        let is_near_tie = gain.abs() < 10.0;
        assert!(
            is_near_tie || placement == on(expected, packet.bytes),
            "{placement:?} against a gain of {gain} ns: {item:?} {paths:?}"
        );
        let chosen = if placement == on(URLLC, packet.bytes) { c_llc } else { c_hbc };
        counts[usize::from(chosen == c_hbc)] += 1;
        previous = previous.max(chosen);
    }
    counts
}

fn packets() -> impl Strategy<Value = Vec<Packet>> {
    let packet = (0_u64..8_000_000, 40_usize..1500, 0_usize..12_000, 0_usize..400_000)
        .prop_map(|(gap, bytes, llc_queue, hbc_queue)| Packet { gap, bytes, llc_queue, hbc_queue });
    proptest::collection::vec(packet, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_rule_is_the_listing_while_the_rate_of_the_hbc_is_unknown(
        (llc_delay, hbc_delay) in (500_000_u64..60_000_000, 500_000_u64..120_000_000),
        llc_rate in 100_000_u64..20_000_000,
        packets in packets(),
        swapped: bool,
    ) {
        compare(Channels { llc_delay, llc_rate, hbc_delay, hbc_rate: None }, &packets, swapped);
    }

    #[test]
    fn the_rule_is_the_equations_once_the_rate_of_the_hbc_is_known(
        (llc_delay, hbc_delay) in (500_000_u64..60_000_000, 500_000_u64..120_000_000),
        (llc_rate, ratio) in (100_000_u64..20_000_000, 3_u64..200),
        packets in packets(),
        swapped: bool,
    ) {
        let hbc_rate = Some(llc_rate * ratio);
        compare(Channels { llc_delay, llc_rate, hbc_delay, hbc_rate }, &packets, swapped);
    }
}

#[test]
fn a_burst_fills_the_low_latency_channel_until_the_reward_is_spent() {
    // Ten packets at once over 40 ms and 5 ms round trips: the queue of the LLC grows by each it takes.
    let channels =
        Channels { llc_delay: 2_500_000, llc_rate: 2_000_000, hbc_delay: 20_000_000, hbc_rate: None };
    let burst = |taken: usize| -> Vec<Packet> {
        let packet = |n: usize| Packet { gap: 0, bytes: 1200, llc_queue: 1200 * n.min(taken), hbc_queue: 0 };
        (0..10).map(packet).collect()
    };
    // reward 17.5 − 4.8 n against 3.6 n: two packets.
    assert_eq!(compare(channels, &burst(2), false), [2, 8]);
}

#[test]
fn a_reward_equal_to_its_price_is_not_worth_it() {
    // 2.5 + 4.8 ms and 3.6 ms of price.
    let paths = |nanos| [PathView { delay: Duration::from_nanos(nanos), rate: None, ..embb() }, urllc()];
    assert_eq!(place(&data(1200), &paths(10_900_000)), on(EMBB, 1200));
    assert_eq!(place(&data(1200), &paths(10_900_001)), on(URLLC, 1200));
}
