//! Several flows over several bottlenecks in virtual time, without the machinery of loss detection: a loss shows when the
//! acknowledgement would have come. Queues drop at random before they are full (RED, RFC 7567), so that every datagram runs
//! the same risk, as the analysis of RFC 6356 assumes.

use super::coupled::Flow;
use super::simulation::{DATAGRAM, Link};
use super::tests::sample;
use super::{Algorithm, Controller, LossSample, Sample};
use crate::PathId;
use crate::recovery::interruption::Cause;
use crate::recovery::persistent::Persistence;
use crate::time::Instant;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::time::Duration;

/// The share of datagrams that a queue drops when it is nearly full.
const MOST_DROPPED: f64 = 0.003;

/// The outcome of a datagram.
#[derive(Clone, Copy)]
struct Outcome {
    at: Instant,
    sent_at: Instant,
    lost: bool,
}

/// One path of one connection.
struct Sender {
    controller: Box<dyn Controller>,
    connection: usize,
    link: usize,
    outcomes: VecDeque<Outcome>,
    smoothed_rtt: Duration,
    delivered: u64,
}

struct World {
    links: Vec<Link>,
    senders: Vec<Sender>,
    rng: StdRng,
}

impl World {
    fn new(links: Vec<Link>) -> Self {
        Self { links, senders: Vec::new(), rng: StdRng::seed_from_u64(1) }
    }

    /// `connection` has a path over `link`.
    fn with(mut self, algorithm: Algorithm, connection: usize, link: usize) -> Self {
        let smoothed_rtt = self.links[link].delay;
        let controller = algorithm.build(DATAGRAM);
        let outcomes = VecDeque::new();
        self.senders.push(Sender { controller, connection, link, outcomes, smoothed_rtt, delivered: 0 });
        self
    }

    /// Bytes that each sender delivered between the seconds `from` and `to`.
    fn run(mut self, from: u64, to: u64) -> Vec<u64> {
        let at = |seconds| Instant::from_nanos(seconds * 1_000_000_000);
        let mut before = None;
        (0..self.senders.len()).for_each(|index| self.send(index, Instant::ZERO));
        loop {
            let next = (0..self.senders.len())
                .filter_map(|index| Some((self.senders[index].outcomes.front()?.at, index)))
                .min()
                .expect("windows are never empty");
            let (now, index) = next;
            if before.is_none() && now >= at(from) {
                before = Some(self.senders.iter().map(|sender| sender.delivered).collect::<Vec<_>>());
            }
            if now >= at(to) {
                let before = before.expect("the measurement began");
                return self
                    .senders
                    .iter()
                    .zip(before)
                    .map(|(sender, then)| sender.delivered - then)
                    .collect();
            }
            self.learn(index, now);
            self.send(index, now);
        }
    }

    fn learn(&mut self, index: usize, now: Instant) {
        let connection = self.senders[index].connection;
        let siblings: Vec<Flow> = self
            .senders
            .iter()
            .enumerate()
            .filter(|(other, sender)| *other != index && sender.connection == connection)
            .filter_map(|(_, sender)| sender.controller.flow())
            .collect();
        let min_rtt = self.links[self.senders[index].link].delay;
        let sender = &mut self.senders[index];
        let outcome = sender.outcomes.pop_front().expect("it is the next");
        sender.controller.on_siblings(&siblings);
        let in_flight = sender.outcomes.len() * DATAGRAM;
        let rtt = now.since(outcome.sent_at);
        if outcome.lost {
            sender.controller.on_lost(&LossSample {
                now,
                bytes: DATAGRAM,
                largest_sent_at: outcome.sent_at,
                persistent: Persistence::Passing,
                cause: Cause::Congestion,
                in_flight,
            });
            return;
        }
        sender.delivered += DATAGRAM as u64;
        sender.smoothed_rtt = sender.smoothed_rtt * 7 / 8 + rtt / 8;
        let (rtt, smoothed_rtt, sent_at) = (Some(rtt), sender.smoothed_rtt, outcome.sent_at);
        let data_path = PathId(index as u32);
        let sample = Sample {
            data_path,
            acknowledged_over: data_path,
            sent_at,
            rtt,
            min_rtt,
            smoothed_rtt,
            in_flight,
            ..sample(now)
        };
        sender.controller.on_acknowledged(&sample);
    }

    fn send(&mut self, index: usize, now: Instant) {
        let sender = &mut self.senders[index];
        while (sender.outcomes.len() + 1) * DATAGRAM <= sender.controller.window() {
            let link = &mut self.links[sender.link];
            // Ends are not machines of one clock: without this, drops fall on the same flow again and again.
            let enters = now + Duration::from_micros(self.rng.random_range(0..200));
            let filled = link.free_at.since(now).as_secs_f64() / link.capacity().as_secs_f64();
            let unlucky = self.rng.random_bool((MOST_DROPPED * filled * filled).clamp(0.0, 1.0));
            let arrival = if unlucky { None } else { link.enter(enters) };
            let lost = arrival.is_none();
            let unsent = link.free_at.max(enters) + link.delay / 2;
            let at = arrival.unwrap_or(unsent) + link.delay / 2;
            let at = sender.outcomes.back().map_or(at, |last| at.max(last.at));
            sender.outcomes.push_back(Outcome { at, sent_at: now, lost });
        }
    }
}

const COUPLED: [Algorithm; 3] = [Algorithm::Lia, Algorithm::Olia, Algorithm::Balia];

#[test]
fn two_coupled_paths_through_one_bottleneck_take_what_one_flow_does() {
    let ratio = |algorithm| {
        let world = World::new(vec![Link::new(20, 40, 80)]);
        let world = world.with(algorithm, 0, 0).with(algorithm, 0, 0).with(Algorithm::NewReno, 1, 0);
        let delivered = world.run(20, 320);
        (delivered[0] + delivered[1]) as f64 / delivered[2] as f64
    };
    let uncoupled = ratio(Algorithm::NewReno);
    assert!(uncoupled > 1.6, "two flows of NewReno against one: {uncoupled:.2}");
    for algorithm in COUPLED {
        let ratio = ratio(algorithm);
        println!("{algorithm}: {ratio:.2} of one flow, uncoupled {uncoupled:.2}");
        assert!(ratio < 1.3, "{algorithm}: {ratio:.2} times one flow");
        assert!(ratio > 0.6, "{algorithm}: {ratio:.2} times one flow");
    }
}

#[test]
fn two_coupled_paths_over_two_bottlenecks_fill_both() {
    for algorithm in COUPLED {
        let world = World::new(vec![Link::new(20, 40, 80), Link::new(10, 20, 40)]);
        let delivered = world.with(algorithm, 0, 0).with(algorithm, 0, 1).run(20, 120);
        for (delivered, capacity) in delivered.into_iter().zip([20e6, 10e6]) {
            let share = delivered as f64 * 8.0 / 100.0 / capacity;
            println!("{algorithm}: {share:.2} of {capacity}");
            assert!(share >= 0.85, "{algorithm}: {share:.2} of {capacity} bit/s");
        }
    }
}
