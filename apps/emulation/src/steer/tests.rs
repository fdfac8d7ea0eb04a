use super::*;
use crate::quantity::Bandwidth;

fn ms(value: u64) -> Duration {
    Duration::from_millis(value)
}

/// HotNets 2023, Fig. 1.
fn specs() -> Pair<crate::ChannelSpec> {
    Pair {
        high_bandwidth: "rtt=50ms,rate=60mbit".parse().unwrap(),
        low_latency: "rtt=5ms,rate=2mbit".parse().unwrap(),
    }
}

fn known() -> Knowledge {
    Knowledge {
        high_bandwidth_delay: ms(25),
        low_latency_delay: Duration::from_micros(2_500),
        low_latency_rate: Bandwidth::from_megabits_per_second(2),
    }
}

fn sent(packet: u64, size: usize) -> Sent<u64> {
    Sent { flow: Flow(0), packet, size }
}

fn rule() -> Box<dyn SteeringPolicy> {
    Box::new(CostReward::new(known()))
}

fn steered() -> Steered<u64> {
    Steered::new(&specs(), 1, rule(), rule()).unwrap()
}

fn packets(steered: &Steered<u64>, branch: Branch) -> u64 {
    steered.statistics(branch, Direction::Down).entered.packets
}

#[test]
fn a_packet_on_its_own_is_worth_the_fast_channel() {
    // 1500 bytes complete at 8.5 ms in place of 25 ms, which is more than 0.75 · 6 ms (Algorithm 1).
    assert_eq!(CostReward::new(known()).choose(ms(0), Flow(0), 1500), Branch::LowLatency);
    // 4500 bytes: 25 − 20.5 ms < 0.75 · 18 ms.
    assert_eq!(CostReward::new(known()).choose(ms(0), Flow(0), 4500), Branch::HighBandwidth);
}

#[test]
fn a_packet_behind_one_on_the_slow_channel_gains_nothing_on_the_fast_one() {
    let mut rule = CostReward::new(known());
    assert_eq!(rule.choose(ms(0), Flow(0), 4500), Branch::HighBandwidth);
    assert_eq!(rule.choose(Duration::from_micros(200), Flow(0), 100), Branch::HighBandwidth);
    // The one before it is there at 25 ms, so at 10 ms it would complete 10 ms earlier.
    assert_eq!(rule.choose(ms(10), Flow(0), 100), Branch::LowLatency);
}

#[test]
fn the_queue_of_the_fast_channel_counts_until_it_has_been_sent() {
    let mut rule = CostReward::new(known());
    let burst: Vec<Branch> = (0..4).map(|_| rule.choose(ms(0), Flow(0), 1500)).collect();
    // 6, 12 and 18 ms of queue against rewards of 16.5, 10.5 and 4.5 ms.
    assert_eq!(burst, [Branch::LowLatency, Branch::LowLatency, Branch::HighBandwidth, Branch::HighBandwidth]);
    assert_eq!(rule.choose(ms(60), Flow(0), 1500), Branch::LowLatency);
}

#[test]
fn a_bulk_flow_takes_the_channel_with_the_bandwidth_and_sparse_packets_the_other() {
    let mut steered = steered();
    for number in 0..1000 {
        steered.enqueue(Direction::Down, Duration::from_micros(200 * number), sent(number, 1500));
    }
    let few = packets(&steered, Branch::LowLatency);
    assert!(few < 10, "{few}");
    for number in 1000..1010 {
        steered.enqueue(Direction::Down, ms(300 + 50 * (number - 1000)), sent(number, 1500));
    }
    assert_eq!(packets(&steered, Branch::LowLatency), few + 10);
}

#[test]
fn packets_leave_in_the_order_in_which_they_came() {
    let mut steered = steered();
    let sent_at = |number| Duration::from_micros(number * 731 % 9_000 + number * 1_000);
    for number in 0..500 {
        steered.enqueue(Direction::Down, sent_at(number), sent(number, 200 + (number as usize * 97) % 1_300));
    }
    assert!(packets(&steered, Branch::LowLatency) > 20 && packets(&steered, Branch::HighBandwidth) > 20);
    let mut left = Vec::new();
    while let Some(at) = steered.next_deadline() {
        // Nothing, if what arrived waits for something else.
        let Some((_, departure)) = steered.dequeue(at) else { continue };
        assert_eq!(departure.at, at);
        left.push(departure.packet);
    }
    assert_eq!(left, (0..500).collect::<Vec<_>>());
}

#[test]
fn what_waits_for_a_lost_packet_leaves_after_100_milliseconds() {
    let mut specs = specs();
    specs.high_bandwidth = "loss=100%".parse().unwrap();
    let mut steered = Steered::new(&specs, 1, rule(), rule()).unwrap();
    steered.enqueue(Direction::Up, ms(0), sent(0u64, 4500));
    steered.enqueue(Direction::Up, ms(20), sent(1, 100));
    let mut left = Vec::new();
    while let Some(at) = steered.next_deadline() {
        left.extend(steered.dequeue(at));
    }
    let (direction, departure) = &left[0];
    assert_eq!((left.len(), *direction, departure.packet), (1, Direction::Up, 1));
    assert_eq!(departure.at, ms(120) + Duration::from_micros(2_500 + 400));
}

#[test]
fn a_fixed_choice_per_direction_is_the_papers_pkt_uplink() {
    let up = Box::new(Always(Branch::LowLatency));
    let down = Box::new(Always(Branch::HighBandwidth));
    let mut steered = Steered::new(&specs(), 1, up, down).unwrap();
    steered.enqueue(Direction::Up, ms(0), sent(0, 1500));
    steered.enqueue(Direction::Down, ms(0), sent(1, 60));
    assert_eq!(steered.statistics(Branch::LowLatency, Direction::Up).entered.packets, 1);
    assert_eq!(steered.statistics(Branch::HighBandwidth, Direction::Down).entered.packets, 1);
}

#[test]
fn a_queue_longer_than_the_buffers_patience_reorders_but_loses_nothing() {
    // One-way delays of up to 150 ms on the slow channel, and a packet worth the fast one every 5 ms.
    let mut steered = steered();
    let mut left = Vec::new();
    for number in 0..3000u64 {
        let now = Duration::from_micros(number * 150 + number / 40 * 5_000);
        while let Some(at) = steered.next_deadline().filter(|at| *at <= now) {
            left.extend(steered.dequeue(at).map(|(_, departure)| departure.packet));
        }
        let size = if number % 40 == 0 { 60 } else { 1_452 };
        assert_eq!(steered.enqueue(Direction::Down, now, sent(number, size)), Admission::Accepted);
    }
    while let Some(at) = steered.next_deadline() {
        left.extend(steered.dequeue(at).map(|(_, departure)| departure.packet));
    }
    left.sort_unstable();
    assert_eq!(left, (0..3000).collect::<Vec<_>>());
}
