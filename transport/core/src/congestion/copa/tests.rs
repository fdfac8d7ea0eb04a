use super::*;
use crate::congestion::Algorithm;
use crate::congestion::simulation::{Bottleneck, DATAGRAM, SimulatedSender, Simulation};
use crate::congestion::tests::{at, lost, marked, sample, spurious};
use crate::time::Instant;
use std::any::Any;

mod radio;

/// A controller beyond slow start with a window of `datagrams`.
fn steady(datagrams: usize) -> Copa {
    let mut copa = Copa::new(DATAGRAM);
    copa.set_window((datagrams * DATAGRAM) as f64);
    (copa.window_before, copa.slow_start) = (copa.window, false);
    copa
}

/// Acknowledges a window each round trip of 100 + `queue` ms, in pieces of 1 ms, for `length` ms.
fn run(copa: &mut Copa, from: u64, length: u64, queue: u64) {
    let rtt = 100 + queue;
    for now in from..from + length {
        copa.on_acknowledged(&Sample {
            bytes: copa.window() / 100,
            rtt: Some(Duration::from_millis(rtt)),
            min_rtt: Duration::from_millis(100),
            sent_at: at(now - rtt),
            smoothed_rtt: Duration::from_millis(rtt),
            ..sample(at(now))
        });
    }
}

#[test]
fn the_window_moves_towards_two_datagrams_in_the_queue() {
    // §2.1: 2 / 10 ms = 200 datagrams a second, 22 in a round trip of 110 ms.
    let (mut few, mut many) = (steady(10), steady(40));
    run(&mut few, 1000, 100, 0);
    run(&mut many, 1000, 100, 0);
    let (low, high) = (few.window(), many.window());
    run(&mut few, 1100, 200, 10);
    run(&mut many, 1100, 200, 10);
    assert!(few.window() > low, "{} after {low}", few.window());
    assert!(many.window() < high, "{} after {high}", many.window());
}

#[test]
fn the_velocity_doubles_after_three_round_trips_in_one_direction_and_begins_anew_with_the_other() {
    let mut copa = steady(100);
    run(&mut copa, 1000, 250, 0);
    assert_eq!(copa.velocity, 1.0);
    run(&mut copa, 1250, 500, 0);
    assert!(copa.velocity >= 8.0, "{}", copa.velocity);
    // A round trip after the queue has formed (§2.1: once a window).
    run(&mut copa, 1750, 400, 80);
    assert_eq!((copa.velocity, copa.heading), (1.0, Heading::Down));
}

#[test]
fn slow_start_ends_when_the_rate_exceeds_the_target() {
    // 250 datagrams in 101 ms are 2475 a second; 2 / 1 ms = 2000.
    let mut copa = steady(250);
    copa.slow_start = true;
    run(&mut copa, 1000, 10, 0);
    assert!(copa.in_slow_start());
    run(&mut copa, 1010, 60, 1);
    assert!(!copa.in_slow_start());
}

#[test]
fn single_losses_count_only_in_slow_start_and_many_halve_the_window_once() {
    let mut copa = Copa::new(DATAGRAM);
    copa.on_lost(&lost(10, 100, DATAGRAM));
    assert_eq!((copa.window(), copa.in_slow_start()), (5 * DATAGRAM, false));
    let mut copa = steady(100);
    copa.on_lost(&lost(50, 100, 6 * DATAGRAM));
    assert_eq!(copa.window(), 100 * DATAGRAM);
    copa.on_lost(&lost(60, 105, 6 * DATAGRAM));
    copa.on_lost(&lost(70, 110, 20 * DATAGRAM));
    copa.on_ecn_ce(&marked(90, 120));
    assert_eq!(copa.window(), 50 * DATAGRAM);
    copa.on_ecn_ce(&marked(130, 190));
    assert_eq!(copa.window(), 25 * DATAGRAM);
}

#[test]
fn losses_that_were_none_take_nothing_from_the_window() {
    let mut copa = steady(100);
    copa.on_lost(&lost(50, 100, 12 * DATAGRAM));
    copa.on_spurious(&spurious(100, 110, 12 * DATAGRAM));
    assert_eq!((copa.window(), copa.in_slow_start()), (100 * DATAGRAM, false));
}

/// A simulation of flows over 20 Mbit/s and 40 ms with a queue of `queue` datagrams.
fn shared_by(controllers: Vec<Box<dyn Controller>>, queue: usize) -> Simulation {
    let link = Bottleneck::new(20, Duration::from_millis(40), queue);
    controllers.into_iter().fold(Simulation::over([link]), |all, one| all.with(SimulatedSender::new(one)))
}

fn copa() -> Box<dyn Controller> {
    Box::new(Copa::new(DATAGRAM))
}

/// Returns the controller of the first flow.
fn of(simulation: &Simulation) -> &Copa {
    let controller: &dyn Any = simulation.controller();
    controller.downcast_ref().expect("it is Copa")
}

/// Bytes that each flow delivers until `to` seconds.
fn delivered(simulation: &mut Simulation, to: f64) -> Vec<f64> {
    let before: Vec<u64> = simulation.senders().iter().map(SimulatedSender::delivered).collect();
    simulation.until(to);
    let senders = simulation.senders().iter().zip(before);
    senders.map(|(sender, before)| (sender.delivered() - before) as f64).collect()
}

#[test]
fn the_queue_oscillates_between_nothing_and_a_few_datagrams_around_one_over_delta() {
    // §3: empty once in five round trips, and 2.5/δ = 5 datagrams at most. Acknowledgements of two packets at a time blur that,
    // so that the queue is not always found nearly empty, and the mode is the competitive one for a part of the time.
    let mut simulation = shared_by(vec![copa()], 400);
    simulation.until(10.0);
    simulation.bottleneck_mut().mean_wait();
    let one = Bandwidth::from_mbit(20).transmission_time(DATAGRAM).as_secs_f64();
    let (mut least, mut most, mut sum, mut steps) = (f64::INFINITY, 0.0f64, 0.0, 0.0);
    let mut competitive = 0.0;
    let before = simulation.sender().delivered();
    while simulation.now() < at(20_000) {
        simulation.step();
        let queued = simulation.bottleneck().queueing(simulation.now()).as_secs_f64() / one;
        (least, most, sum, steps) = (least.min(queued), most.max(queued), sum + queued, steps + 1.0);
        competitive += f64::from(u8::from(of(&simulation).competition.mode() != Mode::Default));
    }
    println!("{:.3} of the time in the competitive mode", competitive / steps);
    let share = (simulation.sender().delivered() - before) as f64 * 8.0 / 10.0 / 20e6;
    println!(
        "{least:.1} to {most:.1} datagrams in the queue, {:.2} on average, {share:.3} of the rate",
        sum / steps
    );
    assert!(competitive / steps < 0.5, "{} of the time in the competitive mode", competitive / steps);
    assert!(least < 0.5, "at least {least} datagrams in the queue");
    assert!((1.0..=6.0).contains(&(sum / steps)), "{} datagrams in the queue on average", sum / steps);
    assert!(most < 20.0, "{most} datagrams in the queue");
    assert!(share > 0.93, "{share} of the rate");
}

#[test]
fn two_flows_converge_to_equal_shares() {
    let mut simulation = shared_by(vec![copa(), copa()], 400);
    simulation.until(10.0);
    let shares = delivered(&mut simulation, 40.0);
    let fairness =
        shares.iter().sum::<f64>().powi(2) / 2.0 / shares.iter().map(|share| share * share).sum::<f64>();
    println!("{shares:?}: a fairness of {fairness:.3}");
    assert!(fairness > 0.95, "{shares:?}");
}

#[test]
fn beside_a_flow_that_fills_the_queue_it_switches_to_the_competitive_mode_and_gets_a_share() {
    // §2.2; the queue of a round trip and a half overflows under NewReno.
    let mut simulation = shared_by(vec![copa(), Algorithm::NewReno.build(DATAGRAM)], 130);
    simulation.until(10.0);
    let (mut competitive, mut steps) = (0.0, 0.0);
    let before: Vec<u64> = simulation.senders().iter().map(SimulatedSender::delivered).collect();
    while simulation.now() < at(60_000) {
        simulation.step();
        steps += 1.0;
        competitive += f64::from(u8::from(of(&simulation).competition.mode() != Mode::Default));
    }
    let shares: Vec<u64> =
        simulation.senders().iter().zip(before).map(|(sender, before)| sender.delivered() - before).collect();
    let share = shares[0] as f64 / (shares[0] + shares[1]) as f64;
    println!(
        "{:.2} of the time in the competitive mode, {share:.2} of what was delivered",
        competitive / steps
    );
    assert!(competitive / steps > 0.5, "{} of the time in the competitive mode", competitive / steps);
    assert!((0.2..0.8).contains(&share), "{share} of what was delivered");
}

#[test]
fn it_returns_to_the_default_mode_when_the_other_flow_is_gone() {
    fn for_ten_seconds(now: Instant) -> u64 {
        if now < at(10_000) { u64::MAX } else { 0 }
    }
    let link = Bottleneck::new(20, Duration::from_millis(40), 130);
    let other = SimulatedSender::new(Algorithm::NewReno.build(DATAGRAM)).offering(for_ten_seconds);
    let mut simulation = Simulation::over([link]).with(SimulatedSender::new(copa())).with(other);
    simulation.until(9.9);
    simulation.until(15.0);
    let mut waits = Vec::new();
    for second in 16..=20 {
        simulation.bottleneck_mut().mean_wait();
        simulation.until(f64::from(second));
        waits.push(simulation.bottleneck_mut().mean_wait());
    }
    assert!(waits.iter().all(|wait| *wait < Duration::from_millis(5)), "{waits:?}");
    assert_eq!(of(&simulation).competition.mode(), Mode::Default);
}

#[test]
fn persistent_congestion_leads_back_to_slow_start() {
    let mut copa = steady(100);
    copa.on_lost(&LossSample { persistent: Persistence::Persistent, ..lost(1000, 3000, DATAGRAM) });
    assert_eq!((copa.window(), copa.in_slow_start()), (2 * DATAGRAM, true));
}
