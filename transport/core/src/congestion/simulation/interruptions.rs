//! Losses of queues and of chance are no interruptions, losses of a link that is cut off are.

use super::*;

/// CUBIC, whose slow start depends on the cause of losses, with and without HyStart++, and NewReno, which fills queues otherwise.
fn controllers() -> [Box<dyn Controller>; 3] {
    [
        Box::new(Cubic::new(DATAGRAM)),
        Box::new(Cubic::new(DATAGRAM).without_hystart()),
        Box::new(NewReno::new(DATAGRAM)),
    ]
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
            let mut simulation = Simulation::new(Link::new(mbit, delay, queue), controller);
            simulation.seconds(0, 30);
            let (dropped, interrupted) = (simulation.link.dropped, simulation.interruptions.packets());
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
            let mut simulation = Simulation::new(Link::new(60, 50, queue), controller);
            simulation.seconds(0, 5);
            let before = simulation.link.dropped;
            simulation.link.rate = Bandwidth::from_bits_per_second(200_000);
            simulation.seconds(5, 30);
            let (dropped, interrupted) =
                (simulation.link.dropped - before, simulation.interruptions.packets());
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
                let mut link = Link::new(mbit, delay, queue);
                link.loss = loss;
                let mut simulation = Simulation::new(link, controller);
                simulation.seconds(0, 60);
                let (sent, interrupted) =
                    (simulation.delivered / DATAGRAM as u64, simulation.interruptions.packets());
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
        let mut simulation = Simulation::new(Link::new(60, 50, 800), controller);
        simulation.seconds(0, 5);
        simulation.link.loss = 1.0;
        simulation.seconds(5, 7);
        assert_eq!(simulation.interruptions.packets(), 0, "{name}");
        simulation.link.loss = 0.0;
        simulation.seconds(7, 12);
        let interrupted = simulation.interruptions.packets();
        assert!(interrupted > 100, "{name}: {interrupted} packets");
    }
}
