//! Flows over one bottleneck in virtual time, whose acknowledgements return over one of two paths.
//!
//! ```text
//!  senders ──▶ [ drop-tail queue | rate ] ──▶ 25 ms ──▶ receivers
//!     ▲                                                   │
//!     └──────── path 0: 25 ms, path 1: 2.5 ms ◀───────────┘
//! ```

use super::super::{Bbr, State};
use crate::congestion::cubic::Cubic;
use crate::congestion::{Controller, LossSample, LostPacket, Sample, Sending};
use crate::recovery::Ecn;
use crate::recovery::delay::PathRtts;
use crate::recovery::interruption::Cause;
use crate::recovery::pacing::Pacer;
use crate::recovery::persistent::Persistence;
use crate::recovery::pto::Pto;
use crate::recovery::rate::{Arrival, RateSampler};
use crate::recovery::reordering::Thresholds;
use crate::recovery::rtt::ack_delay;
use crate::recovery::sent_packet::Lost;
use crate::recovery::sent_packet::{PacketClass, SentPacket};
use crate::space::Space;
use crate::space::received::AckEliciting;
use crate::time::Instant;
use crate::wire::frame::{Ack, Frame};
use crate::{Bandwidth, PathId};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

pub const DATAGRAM: usize = 1200;
const FORWARD: Duration = Duration::from_millis(25);
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// The bottleneck.
pub struct Link {
    pub rate: Bandwidth,
    pub queue: usize,
    pub loss: f64,
    pub longest_wait: Duration,
    free_at: Instant,
}

impl Link {
    pub fn new(mbit: u64, queue: usize) -> Self {
        let rate = Bandwidth::from_mbit(mbit);
        Self { rate, queue, loss: 0.0, longest_wait: Duration::ZERO, free_at: Instant::ZERO }
    }

    /// Returns the time at which a datagram that enters at `now` arrives, if it does.
    fn enter(&mut self, now: Instant, rng: &mut StdRng) -> Option<Instant> {
        let one = self.rate.transmission_time(DATAGRAM);
        let wait = self.free_at.since(now);
        if wait > one * self.queue as u32 || rng.random_bool(self.loss) {
            return None;
        }
        self.longest_wait = self.longest_wait.max(wait);
        self.free_at = self.free_at.max(now) + one;
        Some(self.free_at + FORWARD)
    }
}

/// A function that gives the path that returns acknowledgements at a time, and its delay.
pub type Returns = fn(Instant) -> (PathId, Duration);

pub fn slow(_: Instant) -> (PathId, Duration) {
    (PathId(0), Duration::from_millis(25))
}

pub fn fast(_: Instant) -> (PathId, Duration) {
    (PathId(1), Duration::from_micros(2500))
}

/// A sender and its receiver.
pub struct Flow<C> {
    pub controller: C,
    pub delivered: u64,
    /// Bytes that the application has offered at a time.
    pub application: fn(Instant) -> u64,
    returns: Returns,
    rate: RateSampler,
    near: Space,
    far: Space,
    rtts: PathRtts,
    pacer: Pacer,
    pto: Pto,
    pub sent: u64,
    data: VecDeque<(Instant, u64)>,
    acks: BTreeMap<(Instant, u64), (PathId, Ack)>,
}

impl<C: Controller> Flow<C> {
    pub fn new(controller: C, returns: Returns) -> Self {
        Self {
            controller,
            delivered: 0,
            application: |_| u64::MAX,
            returns,
            rate: RateSampler::default(),
            near: Space::default(),
            far: Space::default(),
            rtts: PathRtts::default(),
            pacer: Pacer::new(DATAGRAM, Instant::ZERO),
            pto: Pto::default(),
            sent: 0,
            data: VecDeque::new(),
            acks: BTreeMap::new(),
        }
    }

    fn step(&mut self, now: Instant, link: &mut Link, rng: &mut StdRng) {
        while let Some((_, number)) = self.data.pop_front_if(|(at, _)| *at <= now) {
            self.delivered += DATAGRAM as u64;
            self.far.received.on_packet(number, AckEliciting::Yes, Ecn::NotEct, now).expect("no duplicates");
            self.acknowledge(now);
        }
        self.acknowledge(now);
        while let Some(entry) = self.acks.first_entry().filter(|entry| entry.key().0 <= now) {
            let (over, ack) = entry.remove();
            self.on_ack(over, &ack, now);
        }
        if self.near.sent.loss_time().is_some_and(|at| at <= now) {
            self.detect_lost(now);
        }
        if self.probe_at().is_some_and(|at| at <= now) {
            self.pto.on_timeout();
            self.send(now, link, rng);
        }
        while self.has_room() && self.has_data(now) && self.pacer.available(now) >= DATAGRAM {
            self.send(now, link, rng);
        }
        if self.has_room() && !self.has_data(now) && self.pacer.available(now) >= DATAGRAM {
            self.rate.on_app_limited(self.near.sent.in_flight());
        }
    }

    fn next_event(&self, now: Instant) -> Instant {
        let (paced, polled) = (self.pacer.ready_at(DATAGRAM, now), now + Duration::from_millis(1));
        let next = self.has_room().then(|| if self.has_data(now) { paced } else { polled });
        let arrivals = [self.data.front().map(|(at, _)| *at), self.acks.keys().next().map(|(at, _)| *at)];
        let timers = [self.far.received.ack_deadline(), self.near.sent.loss_time(), self.probe_at(), next];
        arrivals.into_iter().chain(timers).flatten().min().expect("the sender never rests")
    }

    fn has_room(&self) -> bool {
        self.near.sent.in_flight() + DATAGRAM <= self.controller.window()
    }

    fn has_data(&self, now: Instant) -> bool {
        self.sent + DATAGRAM as u64 <= (self.application)(now)
    }

    fn probe_at(&self) -> Option<Instant> {
        let base = self.rtts.for_timers().probe_timeout(MAX_ACK_DELAY);
        let armed = self.near.sent.has_ack_eliciting_in_flight() && self.near.sent.loss_time().is_none();
        armed.then(|| self.pto.deadline(self.near.sent.last_ack_eliciting_at().expect("in flight"), base))
    }

    fn send(&mut self, now: Instant, link: &mut Link, rng: &mut StdRng) {
        let number = self.near.sent.next_number(rng);
        let mut packet = SentPacket::new(number, now, DATAGRAM, PacketClass::AckEliciting);
        packet.delivery = self.rate.on_sent(now, self.near.sent.in_flight());
        let app_limited = packet.delivery.app_limited;
        self.near.sent.on_sent(packet);
        self.sent += DATAGRAM as u64;
        self.pacer.on_sent(DATAGRAM, now);
        let in_flight = self.near.sent.in_flight();
        self.controller.on_sent(&Sending { now, bytes: DATAGRAM, in_flight, app_limited });
        if let Some(arrival) = link.enter(now, rng) {
            self.data.push_back((arrival, number));
        }
    }

    fn acknowledge(&mut self, now: Instant) {
        if self.far.received.ack_due(now) {
            let Some(Frame::Ack(ack)) = self.far.received.build(now, 3, 1000, None) else {
                panic!("an acknowledgement was due");
            };
            self.far.received.on_ack_acknowledged(ack.largest.saturating_sub(5000));
            let (over, delay) = (self.returns)(now);
            self.acks.insert((now + delay, ack.largest), (over, ack));
        }
    }

    fn on_ack(&mut self, over: PathId, ack: &Ack, now: Instant) {
        let outcome = self.near.sent.on_ack(ack, now).expect("an honest receiver");
        if let Some(rtt) = outcome.rtt_sample {
            self.rtts.sample(over, rtt, ack_delay(ack.delay, 3, MAX_ACK_DELAY), now);
        }
        if let Some(sent_at) = outcome.largest_sent_at() {
            self.pto.reset();
            let arrival = Arrival { now, over, rtts: &self.rtts };
            let delivery = self.rate.on_acknowledged(arrival, &outcome.packets);
            self.controller.on_acknowledged(&Sample {
                now,
                data_path: PathId::ZERO,
                acknowledged_over: over,
                bytes: outcome.bytes(),
                sent_at,
                rtt: outcome.rtt_sample,
                min_rtt: self.rtts.min_for(over).unwrap_or_default(),
                smoothed_rtt: self.rtts.for_timers().smoothed(),
                delivery_rate: delivery.and_then(|sample| sample.rate),
                delivery,
                in_flight: self.near.sent.in_flight(),
                app_limited: delivery.is_some_and(|sample| sample.app_limited),
            });
            if self.controller.withholds() {
                self.rate.on_app_limited(self.near.sent.in_flight());
            }
        }
        self.detect_lost(now);
        let (window, smoothed) = (self.controller.window(), self.rtts.for_timers().smoothed());
        self.pacer.set_rate(self.controller.pacing_rate(), window, smoothed, now);
    }

    fn detect_lost(&mut self, now: Instant) {
        let lost = self.near.sent.detect_lost(now, Thresholds::initial(self.rtts.loss_delay()));
        let Some(largest_sent_at) = lost.largest_sent_at() else { return };
        self.tell_packets_lost(&lost, now);
        self.controller.on_lost(&LossSample {
            now,
            bytes: lost.bytes(),
            largest_sent_at,
            persistent: Persistence::Passing,
            cause: Cause::Congestion,
            in_flight: self.near.sent.in_flight(),
        });
    }

    fn tell_packets_lost(&mut self, lost: &Lost, now: Instant) {
        for packet in &lost.packets {
            self.controller.on_packet_lost(&LostPacket::of(packet, &mut self.rate, now));
        }
    }
}

/// A link, a flow under test and perhaps another.
pub struct World {
    pub link: Link,
    pub flow: Flow<Bbr>,
    pub other: Option<Flow<Cubic>>,
    /// The changes of state of the flow under test, with their times.
    pub states: Vec<(Instant, State)>,
    rng: StdRng,
    now: Instant,
}

impl World {
    pub fn new(link: Link, returns: Returns) -> Self {
        Self::seeded(link, returns, 1)
    }

    pub fn seeded(link: Link, returns: Returns, seed: u64) -> Self {
        let flow = Flow::new(Bbr::new(DATAGRAM), returns);
        let rng = StdRng::seed_from_u64(seed);
        Self { link, flow, other: None, states: Vec::new(), rng, now: Instant::ZERO }
    }

    /// Runs until `to` seconds; returns the share of the link's capacity that the flow under test got meanwhile.
    pub fn until(&mut self, to: f64) -> f64 {
        let to = Instant::ZERO + Duration::from_secs_f64(to);
        let (from, before) = (self.now, self.flow.delivered);
        while self.now < to {
            self.flow.step(self.now, &mut self.link, &mut self.rng);
            let mut next = self.flow.next_event(self.now);
            if let Some(other) = &mut self.other {
                other.step(self.now, &mut self.link, &mut self.rng);
                next = next.min(other.next_event(self.now));
            }
            if self.states.last().is_none_or(|(_, state)| *state != self.flow.controller.state) {
                self.states.push((self.now, self.flow.controller.state));
            }
            self.now = next.max(self.now);
        }
        (self.flow.delivered - before) as f64 / self.link.rate.bytes_in(to.since(from)) as f64
    }

    /// The longest wait in the queue is counted anew from now on.
    pub fn forget_wait(&mut self) {
        self.link.longest_wait = Duration::ZERO;
    }

    /// Returns the times at which the flow entered `state`.
    pub fn entries(&self, state: State) -> Vec<Instant> {
        self.states.iter().filter(|(_, entered)| *entered == state).map(|(at, _)| *at).collect()
    }
}
