//! One sender over one bottleneck in virtual time: controller, loss detection, timers and pacing together.
//!
//! ```text
//!  sender ──▶ [ drop-tail queue | rate ] ──▶ delay/2 ──▶ receiver
//!     ▲                                                     │
//!     └───────────────────── delay/2 ◀──────────────────────┘
//! ```

use super::cubic::Cubic;
use super::new_reno::NewReno;
use super::radio::Radio;
use super::{Algorithm, Controller, LossSample, LostPacket, Sample, Sending};
use crate::recovery::Ecn;
use crate::recovery::delay::PathRtts;
use crate::recovery::interruption::Interruptions;
use crate::recovery::pacing::Pacer;
use crate::recovery::persistent::PersistentCongestion;
use crate::recovery::pto::Pto;
use crate::recovery::rate::{Arrival, RateSampler};
use crate::recovery::reordering::Thresholds;
use crate::recovery::rtt::ack_delay;
use crate::recovery::sent_packet::{PacketClass, SentPacket};
use crate::space::Space;
use crate::space::received::AckEliciting;
use crate::time::Instant;
use crate::wire::frame::{Ack, Frame};
use crate::{Bandwidth, PathId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::time::Duration;

mod interruptions;

pub(super) const DATAGRAM: usize = 1200;
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

pub(super) struct Link {
    rate: Bandwidth,
    pub(super) delay: Duration,
    queue: usize,
    pub(super) free_at: Instant,
    dropped: u64,
    /// The sum of the waiting times of the datagrams that entered, and their number.
    waited: (Duration, u32),
    /// The radio that adds to the delay, if it varies.
    radio: Option<Radio>,
    /// The share of datagrams that are lost at random.
    loss: f64,
}

impl Link {
    pub(super) fn new(mbit: u64, delay: u64, queue: usize) -> Self {
        let delay = Duration::from_millis(delay);
        Self {
            rate: Bandwidth::from_mbit(mbit),
            delay,
            queue,
            free_at: Instant::ZERO,
            dropped: 0,
            waited: (Duration::ZERO, 0),
            radio: None,
            loss: 0.0,
        }
    }

    /// The delay varies as `radio` says.
    pub(super) fn over(mut self, radio: Radio) -> Self {
        self.radio = Some(radio);
        self
    }

    /// Returns the time that a full queue takes.
    pub(super) fn capacity(&self) -> Duration {
        self.rate.transmission_time(DATAGRAM) * self.queue as u32
    }

    /// Returns the mean wait of a datagram since the last call.
    pub(super) fn mean_wait(&mut self) -> Duration {
        let (sum, count) = std::mem::take(&mut self.waited);
        sum / count.max(1)
    }

    /// Returns the time at which a datagram that enters at `now` arrives, if the queue has room for it.
    pub(super) fn enter(&mut self, now: Instant) -> Option<Instant> {
        let one = self.rate.transmission_time(DATAGRAM);
        if self.free_at.since(now) > one * self.queue as u32 {
            self.dropped += 1;
            return None;
        }
        self.waited = (self.waited.0 + self.free_at.since(now), self.waited.1 + 1);
        self.free_at = self.free_at.max(now) + one;
        let constant = self.free_at + self.delay / 2;
        Some(self.radio.as_mut().map_or(constant, |radio| radio.delay(self.free_at, constant)))
    }
}

pub(super) struct Simulation {
    pub(super) link: Link,
    controller: Box<dyn Controller>,
    near: Space,
    far: Space,
    rtts: PathRtts,
    rate: RateSampler,
    pacer: Pacer,
    pto: Pto,
    persistent: PersistentCongestion,
    interruptions: Interruptions,
    data: VecDeque<(Instant, u64)>,
    acks: VecDeque<(Instant, PathId, Ack)>,
    /// The delays of the paths that return acknowledgements; by turns, one for each of these periods, or by dice if zero.
    returns: Vec<Duration>,
    period: Duration,
    rng: StdRng,
    delivered: u64,
    reductions: u64,
}

impl Simulation {
    pub(super) fn new(link: Link, controller: Box<dyn Controller>) -> Self {
        Self {
            returns: vec![link.delay / 2],
            period: Duration::from_secs(1),
            link,
            controller,
            near: Space::default(),
            far: Space::default(),
            rtts: PathRtts::default(),
            rate: RateSampler::default(),
            pacer: Pacer::new(DATAGRAM, Instant::ZERO),
            pto: Pto::default(),
            persistent: PersistentCongestion::default(),
            interruptions: Interruptions::default(),
            data: VecDeque::new(),
            acks: VecDeque::new(),
            rng: StdRng::seed_from_u64(1),
            delivered: 0,
            reductions: 0,
        }
    }

    /// Acknowledgements return over another path for every other `period`, with a one-way delay of `delay` ms.
    fn returning_by_turns(mut self, delay: u64, period: Duration) -> Self {
        self.returns.push(Duration::from_millis(delay));
        self.period = period;
        self
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

    pub(super) fn seconds(&mut self, from: u64, to: u64) -> f64 {
        self.run(Instant::from_nanos(from * 1_000_000_000), Instant::from_nanos(to * 1_000_000_000))
    }

    fn step(&mut self, now: Instant) {
        while let Some((_, number)) = self.data.pop_front_if(|(at, _)| *at <= now) {
            self.delivered += DATAGRAM as u64;
            self.far.received.on_packet(number, AckEliciting::Yes, Ecn::NotEct, now).expect("no duplicates");
            self.acknowledge(now);
        }
        self.acknowledge(now);
        while let Some((_, over, ack)) = self.acks.pop_front_if(|(at, ..)| *at <= now) {
            self.on_ack(over, &ack, now);
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
        let arrivals = [self.data.front().map(|(at, _)| *at), self.acks.front().map(|(at, ..)| *at)];
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
        let is_lost = self.link.loss > 0.0 && self.rng.random_bool(self.link.loss);
        if let Some(arrival) = self.link.enter(now).filter(|_| !is_lost) {
            self.data.push_back((arrival, number));
        }
    }

    fn acknowledge(&mut self, now: Instant) {
        if self.far.received.ack_due(now) {
            let Some(Frame::Ack(ack)) = self.far.received.build(now, 3, 1000, None) else {
                panic!("an acknowledgement was due");
            };
            if let Some(old) = ack.largest.checked_sub(5000) {
                self.far.received.on_ack_acknowledged(old);
            }
            let turn = now.since(Instant::ZERO).as_nanos().checked_div(self.period.as_nanos());
            let turn = turn.unwrap_or_else(|| self.rng.random_range(0..2));
            let over = (turn % self.returns.len() as u128) as usize;
            let at = now + self.returns[over];
            // A faster path overtakes a slower one.
            let index = self.acks.partition_point(|(other, ..)| *other <= at);
            self.acks.insert(index, (at, PathId(over as u32), ack));
        }
    }

    fn on_ack(&mut self, over: PathId, ack: &Ack, now: Instant) {
        let before = self.near.sent.largest_acknowledged();
        let outcome = self.near.sent.on_ack(ack, now).expect("an honest receiver");
        assert!(outcome.spurious.is_empty(), "nothing is reordered here");
        let delay = ack_delay(ack.delay, 3, MAX_ACK_DELAY);
        let rtt = outcome.rtt_sample.map(|rtt| rtt.saturating_sub(delay));
        self.interruptions.on_acknowledged(&outcome.packets, before, rtt, self.rtts.over(over).copied());
        if let Some(rtt) = outcome.rtt_sample {
            self.rtts.sample(over, rtt, delay, now);
            self.persistent.on_rtt_sample(now);
        }
        if let Some(sent_at) = outcome.largest_sent_at() {
            self.pto.reset();
            let min_rtt = self.rtts.min_for(over);
            let arrival = Arrival { now, over, rtts: &self.rtts };
            let delivery = self.rate.on_acknowledged(arrival, &outcome.packets);
            self.controller.on_acknowledged(&Sample {
                now,
                data_path: PathId::ZERO,
                acknowledged_over: over,
                bytes: outcome.bytes(),
                sent_at,
                rtt: outcome.rtt_sample,
                min_rtt: min_rtt.unwrap_or_default(),
                smoothed_rtt: self.smoothed_rtt(),
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
        let (window, smoothed) = (self.controller.window(), self.smoothed_rtt());
        self.pacer.set_rate(self.controller.pacing_rate(), window, smoothed, now);
    }

    /// Returns the smoothed round-trip time of the return path that answers fastest, as connections take it.
    fn smoothed_rtt(&self) -> Duration {
        self.rtts.best().map_or(Duration::from_millis(333), |(_, rtt)| rtt.smoothed())
    }

    fn detect_lost(&mut self, now: Instant) {
        let lost = self.near.sent.detect_lost(now, Thresholds::initial(self.rtts.loss_delay()));
        let Some(largest_sent_at) = lost.largest_sent_at() else { return };
        let duration = self.rtts.for_timers().persistent_congestion_duration(MAX_ACK_DELAY);
        let before = self.controller.window();
        for packet in &lost.packets {
            self.controller.on_packet_lost(&LostPacket::of(packet, &mut self.rate, now));
        }
        self.controller.on_lost(&LossSample {
            now,
            bytes: lost.bytes(),
            largest_sent_at,
            persistent: self.persistent.on_lost(&lost, duration),
            cause: self.interruptions.on_lost(&lost),
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

/// Returns the results of one controller on 60 Mbit/s and 50 ms: the share of the capacity and the mean wait in the
/// queue, both after five seconds.
fn long_run(algorithm: Algorithm, prepare: impl Fn(Simulation) -> Simulation) -> (f64, Duration) {
    let mut simulation = prepare(Simulation::new(Link::new(60, 50, 800), algorithm.build(DATAGRAM)));
    simulation.seconds(0, 5);
    simulation.link.mean_wait();
    let share = simulation.seconds(5, 25);
    (share, simulation.link.mean_wait())
}

const DELAY_BASED: [Algorithm; 3] = [Algorithm::Vegas, Algorithm::Copa, Algorithm::Vivace];

#[test]
fn controllers_by_delay_fill_the_link_with_a_short_queue() {
    let (_, of_cubic) = long_run(Algorithm::Cubic, |simulation| simulation);
    for algorithm in DELAY_BASED {
        let (share, wait) = long_run(algorithm, |simulation| simulation);
        println!("{algorithm}: {share:.3} of the capacity, {wait:?} in the queue, cubic {of_cubic:?}");
        assert!(share >= 0.9, "{algorithm}: {share} of the capacity");
        assert!(wait * 4 < of_cubic, "{algorithm}: {wait:?} in the queue, with CUBIC {of_cubic:?}");
    }
}

#[test]
fn acknowledgements_that_change_their_path_are_no_congestion() {
    // A second return path of 2 ms: round trips of 27 and 50 ms, each acknowledgement over either.
    for algorithm in DELAY_BASED {
        let either = |simulation: Simulation| simulation.returning_by_turns(2, Duration::ZERO);
        let (share, wait) = long_run(algorithm, either);
        assert!(share >= 0.9, "{algorithm}: {share} of the capacity");
        assert!(wait < Duration::from_millis(8), "{algorithm}: {wait:?} in the queue");
    }
}

#[test]
fn acknowledgements_that_turn_to_and_fro_are_no_congestion() {
    // The same paths, by turns of less, of about and of more than a round trip.
    for turn in [20, 50, 130].map(Duration::from_millis) {
        for algorithm in DELAY_BASED {
            let controller = algorithm.build(DATAGRAM);
            let simulation = Simulation::new(Link::new(60, 50, 800), controller);
            let mut simulation = simulation.returning_by_turns(2, turn);
            simulation.seconds(0, 4);
            simulation.link.mean_wait();
            let (share, wait) = (simulation.seconds(4, 12), simulation.link.mean_wait());
            println!("{algorithm}, {turn:?}: {share:.3} of the capacity, {wait:?} in the queue");
            assert!(share >= 0.95, "{algorithm}, {turn:?}: {share} of the capacity");
            assert!(wait < Duration::from_millis(10), "{algorithm}, {turn:?}: {wait:?} in the queue");
        }
    }
}

#[test]
fn an_outage_that_ends_over_another_return_path_is_not_the_length_of_that_path() {
    let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
    for algorithm in [Algorithm::Vegas, Algorithm::Copa] {
        // Datagrams wait out 2.8 s; the queue has room for 4 s.
        let simulation = Simulation::new(Link::new(60, 50, 25_000), algorithm.build(DATAGRAM));
        let mut simulation = simulation.returning_by_turns(2, Duration::from_secs(3600));
        simulation.seconds(0, 4);
        let before = simulation.controller.window();
        simulation.link.free_at = at(6_800);
        // For the first few milliseconds after it acknowledgements return over the other path.
        simulation.run(at(4_000), at(6_800));
        simulation.period = Duration::from_millis(6_820);
        simulation.run(at(6_800), at(6_830));
        simulation.period = Duration::from_secs(3600);
        simulation.run(at(6_830), at(8_000));
        let share = simulation.seconds(8, 16);
        let window = simulation.controller.window();
        println!("{algorithm}: {share:.3} of the capacity, a window of {window} bytes, {before} before");
        assert!(share >= 0.95, "{algorithm}: {share} of the capacity");
        assert!(window < 2 * before, "{algorithm}: a window of {window} bytes, {before} before");
    }
}

#[test]
fn coupled_controllers_fill_a_link_alone() {
    for algorithm in [Algorithm::Lia, Algorithm::Olia, Algorithm::Balia] {
        let (share, _) = long_run(algorithm, |simulation| simulation);
        assert!(share >= 0.9, "{algorithm}: {share} of the capacity");
    }
}
