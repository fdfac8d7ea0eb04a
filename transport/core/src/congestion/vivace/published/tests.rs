use super::*;
use crate::congestion::simulation::{Bottleneck, DATAGRAM, SimulatedSender, Simulation};
use crate::congestion::tests::{at, lost, sample};
use crate::congestion::vivace::Vivace;
use crate::congestion::vivace::monitor::Monitors;
use crate::congestion::{LossSample, Persistence};
use std::time::Duration;

/// Flows over `link`.
fn over(link: Bottleneck, flows: usize) -> Simulation {
    let sender = || SimulatedSender::new(Box::new(Vivace::<Published>::new(DATAGRAM)));
    (0..flows).fold(Simulation::over([link]), |simulation, _| simulation.with(sender()))
}

/// A link of `mbit` Mbit/s and 30 ms, as in the paper's experiments, with a queue of `queue` datagrams.
fn link(mbit: u64, queue: usize) -> Bottleneck {
    Bottleneck::new(mbit, Duration::from_millis(30), queue)
}

/// The bytes that each flow delivers until `to` seconds.
fn delivered(simulation: &mut Simulation, to: f64) -> Vec<f64> {
    let before: Vec<u64> = simulation.senders().iter().map(SimulatedSender::delivered).collect();
    simulation.until(to);
    let senders = simulation.senders().iter().zip(before);
    senders.map(|(sender, before)| (sender.delivered() - before) as f64).collect()
}

fn trial(utility: f64, loss: f64) -> Option<Trial> {
    Some(Trial { utility, loss })
}

/// A controller at 20 Mbit/s with these results of its trials.
fn tried(above: Option<Trial>, below: Option<Trial>, doubted: Option<f64>) -> Vivace {
    let mut vivace: Vivace = Vivace::new(DATAGRAM);
    vivace.intervals.rate.on_sample(&sample(at(100)));
    vivace.intervals.rate.set(20e6);
    vivace.decisions.phase = Phase::Trying { left: 0, pair: Pair { above, below }, doubted };
    vivace.decisions.decide(&mut vivace.intervals, 20e6);
    vivace
}

#[test]
fn the_rate_follows_the_gradient_of_one_pair_of_trials() {
    // §4.2: a difference of 0.4 between 21 and 19 Mbit/s is a gradient of 0.2, and θ is 1.
    for (above, below, expected) in [(10.4, 10.0, 20.2), (10.0, 10.4, 19.8)] {
        let vivace = tried(trial(above, 0.0), trial(below, 0.0), None);
        let rate = vivace.intervals.rate.get().expect("it has one") / 1e6;
        assert!((rate - expected).abs() < 1e-6, "{rate} Mbit/s, {expected} expected");
    }
}

#[test]
fn a_higher_rate_that_loses_less_is_checked_and_the_mean_counts() {
    // §4.3.
    let abnormal = tried(trial(10.4, 0.06), trial(10.0, 0.08), None);
    let Phase::Trying { doubted: Some(first), left: 2, .. } = abnormal.decisions.phase else {
        panic!("{abnormal:?}")
    };
    assert_eq!(abnormal.intervals.rate.get(), Some(20e6));
    let confirmed = tried(trial(10.2, 0.0), trial(10.0, 0.0), Some(first));
    let rate = confirmed.intervals.rate.get().expect("it has one") / 1e6;
    assert!((rate - 20.15).abs() < 1e-6, "{rate} Mbit/s");
    let refuted = tried(trial(9.8, 0.0), trial(10.0, 0.0), Some(first));
    assert_eq!(refuted.intervals.rate.get(), Some(20e6));
}

#[test]
fn the_rate_doubles_until_utility_falls_and_goes_back_to_the_one_before() {
    let mut simulation = over(link(20, 400), 1);
    while simulation.controller().in_slow_start() {
        simulation.step();
    }
    let rate = simulation.controller().pacing_rate().expect("it has one").bits_per_second() as f64 / 1e6;
    assert!((10.0 * 0.94..20.0).contains(&rate), "{rate} Mbit/s after the start");
}

#[test]
fn one_flow_fills_the_link_and_leaves_the_queue_empty() {
    // Theorem 2: the delay in equilibrium is that of the path.
    let mut simulation = over(link(20, 400), 1);
    simulation.until(20.0);
    simulation.bottleneck_mut().mean_wait();
    let share = simulation.until(60.0);
    let wait = simulation.bottleneck_mut().mean_wait();
    println!("{share:.3} of the rate, {wait:?} in the queue");
    assert!(share > 0.9, "{share} of the rate");
    assert!(wait < Duration::from_millis(8), "{wait:?} in the queue");
}

#[test]
fn two_flows_converge_to_equal_shares() {
    // Theorem 1.
    let mut simulation = over(link(20, 50), 2);
    simulation.until(60.0);
    let shares = delivered(&mut simulation, 160.0);
    let fairness =
        shares.iter().sum::<f64>().powi(2) / 2.0 / shares.iter().map(|share| share * share).sum::<f64>();
    println!("{shares:?}: a fairness of {fairness:.3}");
    assert!(fairness > 0.9, "{shares:?}: a fairness of {fairness}");
}

#[test]
fn random_losses_below_a_twentieth_cost_no_rate_and_more_do() {
    // §3.2: c = 11.35 tolerates 5 %.
    let share = |loss: f64| {
        let mut simulation = over(link(100, 400).with_loss(loss), 1);
        simulation.until(20.0);
        simulation.until(40.0)
    };
    let [little, much] = [0.02, 0.15].map(share);
    println!("{little:.3} of the rate with 2 % of loss, {much:.3} with 15 %");
    assert!(little > 0.75, "{little} of the rate with 2 % of loss");
    assert!(much < 0.5, "{much} of the rate with 15 % of loss");
}

#[test]
fn small_slopes_are_noise_and_larger_ones_count_in_both_directions() {
    // §4.3, Eq. 2.
    let utility = |slope: f64| {
        let mut monitors = Monitors::default();
        monitors.begin(Monitor::new(Purpose::Above, 10e6, at(0), Duration::from_secs(1)));
        monitors.on_sent(1_250_000);
        monitors
            .complete(at(2000), Duration::ZERO)
            .expect("it is over")
            .utility(slope)
            .expect("it was used up")
    };
    assert!(utility(-0.02) > utility(0.0) && utility(0.02) < utility(0.0));
}

#[test]
fn persistent_congestion_begins_anew_with_two_datagrams() {
    let mut simulation = over(link(20, 400), 1);
    simulation.until(5.0);
    let controller = simulation.sender_mut().controller_mut();
    controller.on_lost(&LossSample { persistent: Persistence::Persistent, ..lost(10, 9000, DATAGRAM) });
    assert_eq!((controller.window(), controller.in_slow_start()), (2 * DATAGRAM, true));
}
