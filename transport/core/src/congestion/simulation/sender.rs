//! A sender and its receiver.

use super::{Bottleneck, DATAGRAM};
use crate::congestion::{Controller, Flow, LossSample, LostPacket, Sample, Sending, SpuriousSample};
use crate::recovery::Ecn;
use crate::recovery::delay::PathRtts;
use crate::recovery::interruption::Interruptions;
use crate::recovery::pacing::Pacer;
use crate::recovery::persistent::{Persistence, PersistentCongestion};
use crate::recovery::pto::Pto;
use crate::recovery::rate::{AckSample, RateSampler};
use crate::recovery::reordering::Thresholds;
use crate::recovery::rtt::ack_delay;
use crate::recovery::sent_packet::{PacketClass, SentPacket};
use crate::space::Space;
use crate::space::received::AckEliciting;
use crate::time::Instant;
use crate::wire::frame::{Ack, Frame};
use crate::{Bandwidth, PathId};
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// The longest time that the receiver holds an acknowledgement back.
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
/// The interval at which an application that has nothing to send is asked again.
const POLL: Duration = Duration::from_millis(1);
/// The smoothed round-trip time before there is one (RFC 9002 §6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);
/// Packets that are remembered behind the largest acknowledged one.
const REMEMBERED: u64 = 5000;

/// The path that returns an acknowledgement which leaves at a time, and its delay.
type Returns = Box<dyn FnMut(Instant, &mut StdRng) -> (PathId, Duration)>;

/// A sender, what it knows of its path, and the receiver at the other end.
pub struct SimulatedSender {
    controller: Box<dyn Controller>,
    bottleneck: usize,
    connection: Option<usize>,
    /// Bytes that the application has offered by a time; `None` if it always has more.
    offered: Option<fn(Instant) -> u64>,
    returns: Option<Returns>,
    return_delay: Duration,
    near: Space,
    far: Space,
    rtts: PathRtts,
    rate: RateSampler,
    pacer: Pacer,
    pto: Pto,
    persistent: PersistentCongestion,
    interruptions: Interruptions,
    data: VecDeque<(Instant, u64)>,
    acks: BTreeMap<(Instant, u64), (PathId, Ack)>,
    /// Packets below this number were in flight when the window was last used.
    used_below: u64,
    sent: u64,
    delivered: u64,
    tally: Tally,
}

/// Counts of what happened to a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Losses that made the window smaller.
    pub reductions: u64,
    /// Losses that established persistent congestion (RFC 9002 §7.6).
    pub collapses: u64,
}

impl SimulatedSender {
    /// A sender under `controller` through the first bottleneck that always has something to send.
    pub fn new(controller: Box<dyn Controller>) -> Self {
        Self {
            controller,
            bottleneck: 0,
            connection: None,
            offered: None,
            returns: None,
            return_delay: Duration::ZERO,
            near: Space::default(),
            far: Space::default(),
            rtts: PathRtts::default(),
            rate: RateSampler::default(),
            pacer: Pacer::new(DATAGRAM, Instant::ZERO),
            pto: Pto::default(),
            persistent: PersistentCongestion::default(),
            interruptions: Interruptions::default(),
            data: VecDeque::new(),
            acks: BTreeMap::new(),
            used_below: 0,
            sent: 0,
            delivered: 0,
            tally: Tally::default(),
        }
    }

    /// Returns the same sender as a path of the connection with this number, whose coupled controllers see each other.
    #[must_use]
    pub fn of_connection(mut self, connection: usize) -> Self {
        self.connection = Some(connection);
        self
    }

    /// Returns the same sender through the bottleneck with this index.
    #[must_use]
    pub fn through(mut self, bottleneck: usize) -> Self {
        self.bottleneck = bottleneck;
        self
    }

    /// Returns the same sender with an application that has offered so many bytes by each time.
    #[must_use]
    pub fn offering(mut self, offered: fn(Instant) -> u64) -> Self {
        self.offered = Some(offered);
        self
    }

    /// Returns the same sender with acknowledgements that return over the path that `returns` says, with its delay.
    #[must_use]
    pub fn returning(
        mut self,
        returns: impl FnMut(Instant, &mut StdRng) -> (PathId, Duration) + 'static,
    ) -> Self {
        self.set_returns(returns);
        self
    }

    /// Has acknowledgements return over the path that `returns` says from now on, with its delay.
    pub fn set_returns(&mut self, returns: impl FnMut(Instant, &mut StdRng) -> (PathId, Duration) + 'static) {
        self.returns = Some(Box::new(returns));
    }

    /// Changes what the application has offered by each time.
    pub fn set_offered(&mut self, offered: fn(Instant) -> u64) {
        self.offered = Some(offered);
    }

    pub(super) fn set_return_delay(&mut self, delay: Duration) {
        self.return_delay = delay;
    }

    /// The controller.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }

    /// The controller, to tell it of something that the simulation has not.
    pub fn controller_mut(&mut self) -> &mut dyn Controller {
        &mut *self.controller
    }

    /// Bytes that arrived.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes that were sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The counts of what happened to it.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The delivery rate as connections estimate it, if there were samples.
    pub fn estimate(&self) -> Option<Bandwidth> {
        self.rate.estimate()
    }

    /// Packets lost while the path was cut off.
    pub fn interrupted(&self) -> u64 {
        self.interruptions.packets()
    }

    pub(super) fn bottleneck(&self) -> usize {
        self.bottleneck
    }

    pub(super) fn connection(&self) -> Option<usize> {
        self.connection
    }

    /// Does what is due at `now`.
    pub(super) fn step(
        &mut self,
        now: Instant,
        bottleneck: &mut Bottleneck,
        siblings: &[Flow],
        rng: &mut StdRng,
    ) {
        while let Some((_, number)) = self.data.front().copied().filter(|(at, _)| *at <= now) {
            self.data.pop_front();
            self.delivered += DATAGRAM as u64;
            self.far.received.on_packet(number, AckEliciting::Yes, Ecn::NotEct, now).expect("no duplicates");
            self.acknowledge(now, rng);
        }
        self.acknowledge(now, rng);
        while let Some(entry) = self.acks.first_entry().filter(|entry| entry.key().0 <= now) {
            let (over, ack) = entry.remove();
            if self.controller.flow().is_some() {
                self.controller.on_siblings(siblings);
            }
            self.on_ack(over, &ack, now);
        }
        if self.near.sent.loss_time().is_some_and(|at| at <= now) {
            self.detect_lost(now);
        }
        if self.probe_at().is_some_and(|at| at <= now) {
            self.pto.on_timeout();
            self.send(now, bottleneck, rng);
        }
        while self.may_send(now) && self.has_data(now) {
            self.send(now, bottleneck, rng);
        }
        if self.may_send(now) {
            self.rate.on_app_limited(self.near.sent.in_flight());
        } else {
            self.used_below = self.near.sent.next_unused();
        }
    }

    pub(super) fn next_event(&self, now: Instant) -> Instant {
        let ready = if self.has_data(now) { self.pacer.ready_at(DATAGRAM, now) } else { now + POLL };
        let next = self.has_room().then_some(ready);
        let arrivals = [self.data.front().map(|(at, _)| *at), self.acks.keys().next().map(|(at, _)| *at)];
        let timers = [self.far.received.ack_deadline(), self.near.sent.loss_time(), self.probe_at(), next];
        arrivals.into_iter().chain(timers).flatten().min().expect("a sender without room waits for something")
    }

    fn has_room(&self) -> bool {
        self.near.sent.in_flight() + DATAGRAM <= self.controller.window()
    }

    fn may_send(&self, now: Instant) -> bool {
        self.has_room() && self.pacer.available(now) >= DATAGRAM
    }

    fn has_data(&self, now: Instant) -> bool {
        self.offered.is_none_or(|offered| self.sent + DATAGRAM as u64 <= offered(now))
    }

    fn probe_at(&self) -> Option<Instant> {
        let base = self.rtts.for_timers().probe_timeout(MAX_ACK_DELAY);
        let armed = self.near.sent.has_ack_eliciting_in_flight() && self.near.sent.loss_time().is_none();
        armed.then(|| self.pto.deadline(self.near.sent.last_ack_eliciting_at().expect("in flight"), base))
    }

    fn send(&mut self, now: Instant, bottleneck: &mut Bottleneck, rng: &mut StdRng) {
        let number = self.near.sent.next_number(rng);
        let mut packet = SentPacket::new(number, now, DATAGRAM, PacketClass::AckEliciting);
        packet.delivery = self.rate.on_sent(now, self.near.sent.in_flight());
        let app_limited = packet.delivery.app_limited;
        self.near.sent.on_sent(packet);
        self.sent += DATAGRAM as u64;
        self.pacer.on_sent(DATAGRAM, now);
        let in_flight = self.near.sent.in_flight();
        self.controller.on_sent(&Sending { now, bytes: DATAGRAM, in_flight, app_limited });
        if let Some(arrival) = bottleneck.enter(now, rng) {
            self.data.push_back((arrival, number));
        }
    }

    fn acknowledge(&mut self, now: Instant, rng: &mut StdRng) {
        if !self.far.received.ack_due(now) {
            return;
        }
        let Some(Frame::Ack(ack)) = self.far.received.build(now, 3, 1000, None) else {
            unreachable!("an acknowledgement was due");
        };
        if let Some(old) = ack.largest.checked_sub(REMEMBERED) {
            self.far.received.on_ack_acknowledged(old);
        }
        let usual = (PathId::ZERO, self.return_delay);
        let (over, delay) = self.returns.as_mut().map_or(usual, |returns| returns(now, rng));
        self.acks.insert((now + delay, ack.largest), (over, ack));
    }

    fn on_ack(&mut self, over: PathId, ack: &Ack, now: Instant) {
        let before = self.near.sent.largest_acknowledged();
        let outcome = self.near.sent.on_ack(ack, now).expect("an honest receiver");
        for packet in &outcome.spurious {
            let (bytes, sent_at, lost_at) = (packet.bytes, packet.sent_at, packet.lost_at);
            self.controller.on_spurious(&SpuriousSample { now, bytes, sent_at, lost_at });
        }
        let delay = ack_delay(ack.delay, 3, MAX_ACK_DELAY);
        let rtt = outcome.rtt_sample.map(|rtt| rtt.saturating_sub(delay));
        self.interruptions.on_acknowledged(&outcome.packets, before, rtt, self.rtts.over(over).copied());
        if let Some(rtt) = outcome.rtt_sample {
            self.rtts.sample(over, rtt, delay, now);
            self.persistent.on_rtt_sample(now);
        }
        if let Some(sent_at) = outcome.largest_sent_at() {
            self.pto.reset();
            let arrival = AckSample { now, over, rtts: &self.rtts, rtt: None };
            let delivery = self.rate.on_acknowledged(arrival, &outcome.packets);
            let newest = outcome.packets.last();
            self.controller.on_acknowledged(&Sample {
                now,
                data_path: PathId::ZERO,
                acknowledged_over: over,
                bytes: outcome.bytes(),
                sent_at,
                rtt: outcome.rtt_sample,
                min_rtt: self.rtts.min_for(over).unwrap_or_default(),
                smoothed_rtt: self.smoothed_rtt(),
                delivery_rate: delivery.and_then(|sample| sample.rate),
                delivery,
                in_flight: self.near.sent.in_flight(),
                app_limited: newest.is_some_and(|packet| packet.number >= self.used_below),
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
        self.rtts.best().map_or(INITIAL_RTT, |(_, rtt)| rtt.smoothed())
    }

    fn detect_lost(&mut self, now: Instant) {
        let lost = self.near.sent.detect_lost(now, Thresholds::initial(self.rtts.loss_delay()));
        let Some(largest_sent_at) = lost.largest_sent_at() else { return };
        let duration = self.rtts.for_timers().persistent_congestion_duration(MAX_ACK_DELAY);
        let before = self.controller.window();
        for packet in &lost.packets {
            self.controller.on_packet_lost(&LostPacket::of(packet, &mut self.rate, now));
        }
        let persistent = self.persistent.on_lost(&lost, duration);
        self.controller.on_lost(&LossSample {
            now,
            bytes: lost.bytes(),
            largest_sent_at,
            persistent,
            cause: self.interruptions.on_lost(&lost),
            in_flight: self.near.sent.in_flight(),
        });
        self.tally.reductions += u64::from(self.controller.window() < before);
        self.tally.collapses += u64::from(persistent == Persistence::Persistent);
    }
}

impl fmt::Debug for SimulatedSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("controller", &self.controller)
            .field("sent", &self.sent)
            .field("delivered", &self.delivered)
            .finish_non_exhaustive()
    }
}
