//! Losses of queues and of chance are no interruptions, losses of a link that is cut off are.

use super::*;
use crate::congestion::cubic::Cubic;
use crate::congestion::new_reno::NewReno;
use crate::congestion::simulation::{Bottleneck, DATAGRAM, Simulation};

/// CUBIC, whose slow start depends on the cause of losses, with and without HyStart++, and NewReno, which fills queues otherwise.
fn controllers() -> [Box<dyn Controller>; 3] {
    [
        Box::new(Cubic::new(DATAGRAM)),
        Box::new(Cubic::new(DATAGRAM).without_hystart()),
        Box::new(NewReno::new(DATAGRAM)),
    ]
}

/// A link of `mbit` Mbit/s, with round trips of `ms` and a queue of `queue` datagrams.
fn link(mbit: u64, ms: u64, queue: usize) -> Bottleneck {
    Bottleneck::new(mbit, Duration::from_millis(ms), queue)
}

/// Links: Mbit/s, milliseconds and datagrams that the queue holds.
const LINKS: [(u64, u64, usize); 8] = [
    (60, 50, 800),
    (60, 50, 60),
    (60, 50, 8),
    (2, 5, 50),
    (2, 5, 4),
    (1, 40, 2),
    (10, 100, 1),
    (200, 10, 30),
];

#[test]
fn a_queue_that_overflows_is_no_interruption() {
    for (mbit, delay, queue) in LINKS {
        for controller in controllers() {
            let name = controller.name();
            let mut simulation = Simulation::new(link(mbit, delay, queue), controller);
            simulation.until(30.0);
            let (dropped, interrupted) =
                (simulation.bottleneck().dropped(), simulation.sender().interrupted());
            assert!(dropped > 2, "{name}, {mbit} Mbit/s, {delay} ms, {queue}: {dropped} dropped");
            assert_eq!(interrupted, 0, "{name}, {mbit} Mbit/s, {delay} ms, {queue}: of {dropped}");
        }
    }
}

#[test]
fn a_rate_that_collapses_is_no_interruption() {
    for queue in [2, 8, 60, 300] {
        for controller in controllers() {
            let name = controller.name();
            let mut simulation = Simulation::new(link(60, 50, queue), controller);
            simulation.until(5.0);
            let before = simulation.bottleneck().dropped();
            simulation.bottleneck_mut().set_rate(Bandwidth::from_bits_per_second(200_000));
            simulation.until(30.0);
            let (dropped, interrupted) =
                (simulation.bottleneck().dropped() - before, simulation.sender().interrupted());
            assert!(dropped > 4, "{name}, {queue}: {dropped} dropped");
            assert_eq!(interrupted, 0, "{name}, {queue}: of {dropped}");
        }
    }
}

#[test]
fn random_loss_is_an_interruption_for_less_than_one_packet_in_a_thousand() {
    for loss in [0.01, 0.02, 0.05] {
        // With a queue of one datagram and windows of three whole flights are lost by chance.
        for (mbit, delay, queue) in LINKS.into_iter().filter(|(.., queue)| *queue > 1) {
            for controller in controllers() {
                let name = controller.name();
                let link = link(mbit, delay, queue).with_loss(loss);
                let mut simulation = Simulation::new(link, controller);
                simulation.until(60.0);
                let (sent, interrupted) =
                    (simulation.sender().delivered() / DATAGRAM as u64, simulation.sender().interrupted());
                let setting = format!("{name}, {mbit} Mbit/s, {delay} ms, {queue}, {loss}");
                assert!(interrupted * 1000 <= sent, "{setting}: {interrupted} packets of {sent}");
            }
        }
    }
}

#[test]
fn a_link_that_is_cut_off_is_interrupted() {
    for controller in controllers() {
        let name = controller.name();
        let mut simulation = Simulation::new(link(60, 50, 800), controller);
        simulation.until(5.0);
        simulation.bottleneck_mut().set_loss(1.0);
        simulation.until(7.0);
        assert_eq!(simulation.sender().interrupted(), 0, "{name}");
        simulation.bottleneck_mut().set_loss(0.0);
        simulation.until(12.0);
        let interrupted = simulation.sender().interrupted();
        assert!(interrupted > 100, "{name}: {interrupted} packets");
    }
}
