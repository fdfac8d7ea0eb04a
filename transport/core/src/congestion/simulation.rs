//! One sender over one bottleneck in virtual time: controller, loss detection, timers and pacing together.
//!
//! ```text
//!  sender ──▶ [ drop-tail queue | rate ] ──▶ delay/2 ──▶ receiver
//!     ▲                                                     │
//!     └───────────────────── delay/2 ◀──────────────────────┘
//! ```

use super::cubic::Cubic;
use super::new_reno::NewReno;
use super::{Controller, LossSample, LostPacket, Sample, Sending};
use crate::recovery::Ecn;
use crate::recovery::delay::PathRtts;
use crate::recovery::pacing::Pacer;
use crate::recovery::persistent::PersistentCongestion;
use crate::recovery::pto::Pto;
use crate::recovery::rate::{Arrival, RateSampler};
use crate::recovery::reordering::Thresholds;
use crate::recovery::rtt::ack_delay;
use crate::space::Space;
use crate::space::packet::{PacketClass, SentPacket};
use crate::space::received::AckEliciting;
use crate::time::Instant;
use crate::wire::frame::{Ack, Frame};
use crate::{Bandwidth, PathId};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::collections::VecDeque;
use std::time::Duration;

const DATAGRAM: usize = 1200;
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

struct Link {
    rate: Bandwidth,
    delay: Duration,
    queue: usize,
    free_at: Instant,
    dropped: u64,
}

impl Link {
    fn new(mbit: u64, delay: u64, queue: usize) -> Self {
        let delay = Duration::from_millis(delay);
        Self { rate: Bandwidth::from_mbit(mbit), delay, queue, free_at: Instant::ZERO, dropped: 0 }
    }

    /// When a datagram that enters at `now` arrives, if the queue has room for it.
    fn enter(&mut self, now: Instant) -> Option<Instant> {
        let one = self.rate.transmission_time(DATAGRAM);
        if self.free_at.since(now) > one * self.queue as u32 {
            self.dropped += 1;
            return None;
        }
        self.free_at = self.free_at.max(now) + one;
        Some(self.free_at + self.delay / 2)
    }
}

struct Simulation {
    link: Link,
    controller: Box<dyn Controller>,
    near: Space,
    far: Space,
    rtts: PathRtts,
    rate: RateSampler,
    pacer: Pacer,
    pto: Pto,
    persistent: PersistentCongestion,
    data: VecDeque<(Instant, u64)>,
    acks: VecDeque<(Instant, Ack)>,
    rng: StdRng,
    delivered: u64,
    reductions: u64,
}

impl Simulation {
    fn new(link: Link, controller: Box<dyn Controller>) -> Self {
        Self {
            link,
            controller,
            near: Space::default(),
            far: Space::default(),
            rtts: PathRtts::default(),
            rate: RateSampler::default(),
            pacer: Pacer::new(DATAGRAM, Instant::ZERO),
            pto: Pto::default(),
            persistent: PersistentCongestion::default(),
            data: VecDeque::new(),
            acks: VecDeque::new(),
            rng: StdRng::seed_from_u64(1),
            delivered: 0,
            reductions: 0,
        }
    }

    /// Runs from `from` to `to`; returns the share of the link's capacity that was delivered.
    fn run(&mut self, from: Instant, to: Instant) -> f64 {
        let before = self.delivered;
        let mut now = from;
        while now < to {
            self.step(now);
            now = self.next_event(now).max(now);
        }
        let capacity = self.link.rate.bytes_in(to.since(from));
        (self.delivered - before) as f64 / capacity as f64
    }

    fn seconds(&mut self, from: u64, to: u64) -> f64 {
        self.run(Instant::from_nanos(from * 1_000_000_000), Instant::from_nanos(to * 1_000_000_000))
    }

    fn step(&mut self, now: Instant) {
        while let Some((_, number)) = self.data.pop_front_if(|(at, _)| *at <= now) {
            self.delivered += DATAGRAM as u64;
            self.far.received.on_packet(number, AckEliciting::Yes, Ecn::NotEct, now).expect("no duplicates");
            self.acknowledge(now);
        }
        self.acknowledge(now);
        while let Some((_, ack)) = self.acks.pop_front_if(|(at, _)| *at <= now) {
            self.on_ack(&ack, now);
        }
        if self.near.sent.loss_time().is_some_and(|at| at <= now) {
            self.detect_lost(now);
        }
        if self.probe_at().is_some_and(|at| at <= now) {
            self.pto.on_timeout();
            self.send(now);
        }
        while self.may_send() && self.pacer.available(now) >= DATAGRAM {
            self.send(now);
        }
    }

    fn next_event(&self, now: Instant) -> Instant {
        let paced = self.may_send().then(|| self.pacer.ready_at(DATAGRAM, now));
        let arrivals = [self.data.front().map(|(at, _)| *at), self.acks.front().map(|(at, _)| *at)];
        let timers = [self.far.received.ack_deadline(), self.near.sent.loss_time(), self.probe_at(), paced];
        arrivals.into_iter().chain(timers).flatten().min().expect("the sender never rests")
    }

    fn may_send(&self) -> bool {
        self.near.sent.in_flight() + DATAGRAM <= self.controller.window()
    }

    fn probe_at(&self) -> Option<Instant> {
        let base = self.rtts.for_timers().probe_timeout(MAX_ACK_DELAY);
        let armed = self.near.sent.has_ack_eliciting_in_flight() && self.near.sent.loss_time().is_none();
        armed.then(|| self.pto.deadline(self.near.sent.last_ack_eliciting_at().expect("in flight"), base))
    }

    fn send(&mut self, now: Instant) {
        let number = self.near.sent.next_number(&mut self.rng);
        let mut packet = SentPacket::new(number, now, DATAGRAM, PacketClass::AckEliciting);
        packet.delivery = self.rate.on_sent(now, self.near.sent.in_flight());
        self.near.sent.on_sent(packet);
        self.pacer.on_sent(DATAGRAM, now);
        let in_flight = self.near.sent.in_flight();
        self.controller.on_sent(&Sending { now, bytes: DATAGRAM, in_flight, app_limited: false });
        if let Some(arrival) = self.link.enter(now) {
            self.data.push_back((arrival, number));
        }
    }

    fn acknowledge(&mut self, now: Instant) {
        if self.far.received.ack_due(now) {
            let Some(Frame::Ack(ack)) = self.far.received.build(now, 3, 1000, None) else {
                panic!("an acknowledgement was due");
            };
            self.far.received.on_ack_acknowledged(ack.largest.saturating_sub(5000));
            self.acks.push_back((now + self.link.delay / 2, ack));
        }
    }

    fn on_ack(&mut self, ack: &Ack, now: Instant) {
        let outcome = self.near.sent.on_ack(ack, now).expect("an honest receiver");
        assert!(outcome.spurious.is_empty(), "nothing is reordered here");
        let path = PathId::ZERO;
        if let Some(rtt) = outcome.rtt_sample {
            self.rtts.sample(path, rtt, ack_delay(ack.delay, 3, MAX_ACK_DELAY), now);
            self.persistent.on_rtt_sample(now);
        }
        if let Some(sent_at) = outcome.largest_sent_at() {
            self.pto.reset();
            let min_rtt = self.rtts.min_for(path);
            let arrival = Arrival { now, over: path, rtts: &self.rtts };
            let delivery = self.rate.on_acknowledged(arrival, &outcome.packets);
            self.controller.on_acknowledged(&Sample {
                now,
                data_path: path,
                acknowledged_over: path,
                bytes: outcome.bytes(),
                sent_at,
                rtt: outcome.rtt_sample,
                min_rtt: min_rtt.unwrap_or_default(),
                smoothed_rtt: self.rtts.for_timers().smoothed(),
                delivery_rate: delivery.and_then(|sample| sample.rate),
                delivery,
                in_flight: self.near.sent.in_flight(),
                app_limited: false,
            });
        }
        if self.controller.withholds() {
            self.rate.on_app_limited(self.near.sent.in_flight());
        }
        self.detect_lost(now);
        let (window, smoothed) = (self.controller.window(), self.rtts.for_timers().smoothed());
        self.pacer.set_rate(self.controller.pacing_rate(), window, smoothed, now);
    }

    fn detect_lost(&mut self, now: Instant) {
        let lost = self.near.sent.detect_lost(now, Thresholds::initial(self.rtts.loss_delay()));
        let Some(largest_sent_at) = lost.largest_sent_at() else { return };
        let duration = self.rtts.for_timers().persistent_congestion_duration(MAX_ACK_DELAY);
        let before = self.controller.window();
        for packet in &lost.packets {
            let lost = self.rate.on_lost(packet);
            self.controller.on_packet_lost(&LostPacket {
                now,
                number: packet.number,
                bytes: packet.bytes,
                sent_at: packet.sent_at,
                tx_in_flight: packet.delivery.in_flight + packet.bytes as u64,
                lost,
                total_delivered: self.rate.delivered(),
                app_limited: packet.delivery.app_limited,
            });
        }
        self.controller.on_lost(&LossSample {
            now,
            bytes: lost.bytes(),
            largest_sent_at,
            persistent: self.persistent.on_lost(&lost, duration),
            in_flight: self.near.sent.in_flight(),
        });
        self.reductions += u64::from(self.controller.window() < before);
    }
}

#[test]
fn cubic_fills_a_link_of_60_mbit_and_50_ms_with_a_deep_queue() {
    let mut simulation = Simulation::new(Link::new(60, 50, 800), Box::new(Cubic::new(DATAGRAM)));
    let share = simulation.seconds(0, 30);
    assert!(share >= 0.96, "only {share} of the capacity");
    let estimate = simulation.rate.estimate().expect("there were samples").bits_per_second() as f64;
    assert!((estimate / 60e6 - 1.0).abs() < 0.02, "the delivery rate is estimated as {estimate}");
}

#[test]
fn hystart_overflows_the_queue_less_than_slow_start_does() {
    let run = |cubic: Cubic| {
        let mut simulation = Simulation::new(Link::new(60, 50, 800), Box::new(cubic));
        let share = simulation.seconds(0, 3);
        assert!(!simulation.controller.in_slow_start());
        (simulation.link.dropped, share)
    };
    let (dropped, share) = run(Cubic::new(DATAGRAM));
    let (more, without) = run(Cubic::new(DATAGRAM).without_hystart());
    assert!(dropped * 4 < more, "{dropped} datagrams dropped, {more} without HyStart++");
    assert!(share > without - 0.02, "{share} of the capacity, {without} without HyStart++");
}

#[test]
fn a_controller_recovers_from_the_burst_of_losses_that_ends_slow_start() {
    let controllers: [Box<dyn Controller>; 2] =
        [Box::new(Cubic::new(DATAGRAM).without_hystart()), Box::new(NewReno::new(DATAGRAM))];
    for controller in controllers {
        let name = controller.name();
        let mut simulation = Simulation::new(Link::new(60, 50, 800), controller);
        let share = simulation.seconds(0, 3);
        let (dropped, reductions) = (simulation.link.dropped, simulation.reductions);
        assert!(dropped > 300, "{name}: slow start overshoots, but only {dropped} were dropped");
        assert!(reductions <= 3, "{name}: {reductions} reductions");
        assert!(share > 0.8, "{name}: {share} of the capacity in the first three seconds");
        let share = simulation.seconds(3, 30);
        assert!(share > 0.96, "{name}: {share} of the capacity after it");
    }
}

#[test]
fn a_shallow_queue_is_no_catastrophe() {
    let mut simulation = Simulation::new(Link::new(60, 50, 60), Box::new(Cubic::new(DATAGRAM)));
    let share = simulation.seconds(0, 30);
    assert!(share > 0.88, "only {share} of the capacity");
}

#[test]
fn a_slow_channel_with_a_short_delay_is_filled() {
    // URLLC: 2 Mbit/s, 5 ms.
    let mut simulation = Simulation::new(Link::new(2, 5, 50), Box::new(Cubic::new(DATAGRAM)));
    let share = simulation.seconds(0, 30);
    assert!(share > 0.96, "only {share} of the capacity");
}
