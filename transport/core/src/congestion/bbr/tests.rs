mod world;

use super::*;
use crate::congestion::simulation::DATAGRAM;
use crate::recovery::interruption::Cause;
use world::{World, fast, link, sender, slow};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The return path changes every second.
fn every_second(now: Instant) -> (PathId, Duration) {
    if (now.as_nanos() / 1_000_000_000).is_multiple_of(2) { slow(now) } else { fast(now) }
}

/// Every third acknowledgement or so takes the slow return path.
fn mixed(now: Instant) -> (PathId, Duration) {
    if (now.as_nanos() / 400_000).is_multiple_of(3) { slow(now) } else { fast(now) }
}

fn max_bandwidth(world: &World) -> f64 {
    world.bbr().bandwidths.max().bits_per_second() as f64
}

#[test]
fn it_fills_60_mbit_and_50_ms_and_builds_little_queue() {
    // Draft, "Exiting STARTUP on Bandwidth Plateau": the bandwidth is known within 2 %.
    let mut world = World::new(link(60, 800), slow);
    world.until(1.0);
    assert!(world.bbr().state.is_probe_bw(), "{:?}", world.bbr().state);
    assert!((max_bandwidth(&world) / 60e6 - 1.0).abs() < 0.02, "{}", max_bandwidth(&world));
    world.until(2.0);
    world.longest_wait();
    let share = world.until(20.0);
    assert!(share >= 0.95, "{share}");
    let wait = world.longest_wait();
    assert!(wait < ms(80), "{wait:?}");
    let visited = [BbrState::Down, BbrState::Cruise, BbrState::Refill, BbrState::Up];
    assert!(visited.iter().all(|state| world.entries(*state).len() >= 3), "{:?}", world.states);
}

#[test]
fn whichever_path_returns_acknowledgements_the_link_is_filled() {
    for (name, returns) in
        [("fast", fast as world::Returns), ("every second", every_second), ("mixed", mixed)]
    {
        let mut world = World::new(link(60, 800), returns);
        world.until(2.0);
        world.longest_wait();
        let share = world.until(30.0);
        assert!(share >= 0.95, "{name}: {share}");
        let wait = world.longest_wait();
        assert!(wait < ms(80), "{name}: {wait:?}");
        assert!((max_bandwidth(&world) / 60e6 - 1.0).abs() < 0.03, "{name}: {}", max_bandwidth(&world));
    }
}

#[test]
fn the_end_of_the_fast_return_path_costs_nothing() {
    fn at_first(now: Instant) -> (PathId, Duration) {
        if now.as_nanos() < 10_000_000_000 { fast(now) } else { slow(now) }
    }
    let mut world = World::new(link(60, 800), at_first);
    world.until(10.0);
    let share = world.until(15.0);
    assert!(share >= 0.94, "{share}");
    assert!(world.bbr().round_trips.longest() >= Some(ms(50)));
}

#[test]
fn one_percent_of_loss_is_no_congestion() {
    for (name, returns) in [("slow", slow as world::Returns), ("every second", every_second)] {
        let mut world = World::new(link(60, 800), returns);
        world.simulation.bottleneck_mut().set_loss(0.01);
        world.until(2.0);
        let share = world.until(40.0);
        // One percent is lost of what is sent.
        assert!(share >= 0.90, "{name}: {share}");
    }
}

#[test]
fn a_short_way_back_makes_no_congestion_of_one_percent_of_loss() {
    // Over the fast return path a round trip has half as many packets.
    for seed in 1..=2 {
        let mut world = World::new(link(60, 800), fast);
        world.simulation = world.simulation.seeded(seed);
        world.simulation.bottleneck_mut().set_loss(0.01);
        world.until(2.0);
        let share = world.until(14.0);
        assert!(share >= 0.90, "seed {seed}: {share}");
    }
}

#[test]
fn losses_beyond_two_percent_still_count_over_a_short_way_back() {
    // Draft, BBR.LossThresh: a queue of a fifth of a round trip overflows with each probe, whichever path answers.
    let mut world = World::new(link(60, 50), every_second);
    world.until(2.0);
    let share = world.until(20.0);
    let sent = world.simulation.sender().sent() as f64 / world.simulation.sender().delivered() as f64;
    println!("{share:.3} of the link, {sent:.4} sent for each delivered");
    assert!(share > 0.85 && sent < 1.06, "{share}, {sent}");
}

#[test]
fn the_round_trip_is_probed_every_five_seconds_for_200_ms_and_the_window_recovers() {
    for (name, returns) in [("slow", slow as world::Returns), ("every second", every_second)] {
        let mut world = World::new(link(60, 800), returns);
        world.until(31.0);
        let probes = world.entries(BbrState::ProbeRtt);
        assert!((4..=6).contains(&probes.len()), "{name}: {probes:?}");
        for pair in probes.windows(2) {
            assert!(pair[1].since(pair[0]) >= ms(5000), "{name}: {probes:?}");
        }
        for at in probes {
            let left = world.states.iter().find(|(then, _)| *then > at).expect("it ends").0;
            assert!((ms(200)..ms(400)).contains(&left.since(at)), "{name}: {:?}", left.since(at));
        }
        assert!(world.bbr().window() > 350_000, "{name}: {}", world.bbr().window());
    }
}

#[test]
fn a_faster_link_is_found_and_a_slower_one_believed() {
    // Draft, "Increasing Bandwidth 10x" and "Decreasing Bandwidth 10x".
    let mut world = World::new(link(10, 200), slow);
    world.until(5.0);
    world.simulation.bottleneck_mut().set_rate(Bandwidth::from_mbit(100));
    world.until(12.0);
    let share = world.until(16.0);
    assert!(share > 0.9, "{share}");
    world.simulation.bottleneck_mut().set_rate(Bandwidth::from_mbit(10));
    world.until(28.0);
    assert!((max_bandwidth(&world) / 10e6 - 1.0).abs() < 0.1, "{}", max_bandwidth(&world));
    let share = world.until(32.0);
    assert!(share > 0.9, "{share}");
}

#[test]
fn an_application_with_little_to_say_does_not_lower_the_estimate() {
    // 60 Mbit/s for three seconds, then 6 Mbit/s.
    fn quiet(now: Instant) -> u64 {
        if now.as_nanos() < 3_000_000_000 {
            return u64::MAX;
        }
        22_000_000 + Bandwidth::from_mbit(6).bytes_in(now.since(Instant::from_nanos(3_000_000_000)))
    }
    let mut world = World::new(link(60, 800), slow);
    world.simulation.sender_mut().set_offered(quiet);
    world.until(20.0);
    assert!((max_bandwidth(&world) / 60e6 - 1.0).abs() < 0.05, "{}", max_bandwidth(&world));
}

#[test]
fn idleness_takes_the_place_of_a_probe_of_the_round_trip() {
    // Draft, "Skipping PROBE_RTT Due to Application-Limited Sending".
    fn pause(now: Instant) -> u64 {
        if (3_000_000_000..9_000_000_000).contains(&now.as_nanos()) { 0 } else { u64::MAX }
    }
    let mut world = World::new(link(60, 800), slow);
    world.simulation.sender_mut().set_offered(pause);
    world.until(10.0);
    assert_eq!(world.entries(BbrState::ProbeRtt), []);
    let share = world.until(13.0);
    assert!(share > 0.9, "{share}");
}

#[test]
fn it_lives_with_cubic_and_cubic_with_it() {
    let mut world = World::new(link(60, 300), slow);
    let cubic = sender(crate::congestion::cubic::Cubic::new(DATAGRAM), slow);
    world.simulation = world.simulation.with(cubic);
    world.until(5.0);
    let share = world.until(60.0);
    assert!((0.15..0.85).contains(&share), "{share}");
}

#[test]
fn a_shallow_queue_is_respected() {
    let mut world = World::new(link(60, 60), slow);
    world.until(2.0);
    let share = world.until(20.0);
    assert!(share > 0.88, "{share}");
}

#[test]
fn a_product_below_four_datagrams_still_pipelines() {
    // Draft, "Correctly Managing Sub-Packet BDPs": 1 Mbit/s.
    let mut world = World::new(link(1, 50), fast);
    world.until(5.0);
    let share = world.until(20.0);
    assert!(share > 0.85, "{share}");
    assert!(world.bbr().window() >= 4 * DATAGRAM);
}

#[test]
fn spurious_losses_are_taken_back() {
    let mut world = World::new(link(60, 800), slow);
    world.until(0.4);
    let bbr = world.bbr_mut();
    let now = Instant::from_nanos(400_000_000);
    let window = bbr.window();
    let packet = LostPacket {
        now,
        number: 1,
        bytes: DATAGRAM,
        sent_at: now,
        tx_in_flight: 100_000,
        lost: 10_000,
        total_delivered: 0,
        app_limited: false,
    };
    bbr.cycle = Cycle::default();
    bbr.on_packet_lost(&packet);
    assert!(bbr.losses.in_recovery());
    bbr.volumes.on_congestion(window as u64 / 2, bbr.regime());
    bbr.bandwidths.on_congestion();
    bbr.on_spurious(&SpuriousSample { now, bytes: DATAGRAM, sent_at: now, lost_at: now });
    assert!(bbr.volumes.short_term.is_none() && bbr.bandwidths.short_term().is_none());
    assert_eq!(bbr.window(), window);
}

#[test]
fn a_congestion_mark_ends_startup_and_later_lowers_the_bounds_once_a_round() {
    // Draft, "ECN": CE marks MUST be treated as congestion.
    let mut world = World::new(link(60, 800), slow);
    world.until(0.2);
    let mark = MarkSample { now: Instant::from_nanos(200_000_000), sent_at: Instant::ZERO };
    assert_eq!(world.bbr().state, BbrState::Startup);
    world.bbr_mut().on_ecn_ce(&mark);
    assert_eq!(world.bbr().state, BbrState::Drain);
    world.until(1.0);
    let cruising = matches!(world.bbr().state, BbrState::Down | BbrState::Cruise | BbrState::Drain);
    assert!(cruising, "{:?}", world.bbr().state);
    assert!(world.bbr().volumes.short_term.is_none());
    world.bbr_mut().on_ecn_ce(&MarkSample { now: Instant::from_nanos(1_000_000_000), ..mark });
    world.until(1.2);
    assert!(world.bbr().volumes.short_term.is_some());
}

#[test]
fn persistent_congestion_leaves_two_datagrams() {
    // RFC 9002 §7.6.2.
    let mut bbr = Bbr::new(DATAGRAM);
    let persistent = Persistence::Persistent;
    let now = Instant::from_nanos(1);
    bbr.on_lost(&LossSample {
        now,
        bytes: 1,
        largest_sent_at: now,
        persistent,
        cause: Cause::Congestion,
        in_flight: 0,
    });
    assert_eq!(bbr.window(), 2 * DATAGRAM);
}
