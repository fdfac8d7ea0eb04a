//! The reaction of a path to what it sent, and to what became of it: estimates, congestion control and ECN.

use crate::PathId;
use crate::congestion::{LossSample, LostPacket, MarkSample, Sample, Sending, SpuriousSample};
use crate::path::careful_resume::{ResumeSample, ResumeSignal};
use crate::path::path::Path;
use crate::recovery::ecn::EcnOutcome;
use crate::recovery::persistent::Persistence;
use crate::recovery::rate::AckSample;
use crate::recovery::reordering::Lateness;
use crate::recovery::sent_packet::{Lost, SentPacket};
use crate::space::sent::Acknowledged;
use crate::time::Instant;
use crate::trace::ResumeTrigger;
use std::time::Duration;

/// The evidence that a window was not used up for want of data (RFC 9002 §7.8).
#[derive(Clone, Copy)]
pub enum Limited {
    /// No packet of those with 1-RTT keys was in flight when the window was used.
    ByRounds,
    /// There was too little to send when the packets of the handshake left, which have numbers of their own.
    BySample,
}

impl Limited {
    /// Returns true if the packets have numbers of the path.
    fn is_numbered(self) -> bool {
        matches!(self, Self::ByRounds)
    }

    fn holds(self, path: &Path, newest: &SentPacket) -> bool {
        match self {
            Self::ByRounds => !path.route.was_used_with(newest.number),
            Self::BySample => newest.delivery.app_limited,
        }
    }
}

/// The way back of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Return {
    /// The path that carried it.
    pub over: PathId,
    /// The time for which the peer says that it held it back.
    pub delay: Duration,
}

impl Path {
    /// Records a packet, and tells everything that counts what the path sends.
    #[inline]
    pub fn on_packet_sent(&mut self, mut packet: SentPacket) {
        let (now, bytes) = (packet.sent_at, packet.bytes);
        self.route.ecn.on_sent(packet.ecn);
        self.route.mtu.on_sent(bytes);
        if packet.class.in_flight() {
            packet.delivery = self.route.rate.on_sent(now, self.sent.in_flight());
            self.route.pacer.on_sent(bytes, now);
            let mut backlog = self.route.backlog;
            backlog.on_sent(now, bytes, || self.rate());
            self.route.backlog = backlog;
            let in_flight = self.sent.in_flight() + bytes;
            let app_limited = packet.delivery.app_limited;
            self.route.controller.on_sent(&Sending { now, bytes, in_flight, app_limited });
            if self.route.careful_resume().is_some() {
                let rtt = self.rtt().smoothed();
                self.route.resume_sent(&packet, rtt, in_flight);
            }
        }
        if packet.class.is_ack_eliciting() && !self.sent.has_ack_eliciting_in_flight() {
            self.liveness.on_asked();
        }
        self.sent.on_sent(packet);
    }

    /// Takes note of the packets that did not arrive between `before`, the largest number that had, and those that did now.
    pub fn on_gap(&mut self, before: Option<u64>, acknowledged: &Acknowledged, back: Return) {
        let Return { over, delay } = back;
        let rtt = acknowledged.rtt_sample.map(|rtt| rtt.saturating_sub(delay));
        let known = self.rtts.over(over).copied();
        self.interruptions.on_acknowledged(&acknowledged.packets, before, rtt, known);
    }

    /// Packets were acknowledged over path `over`: tells the controller, and all estimates of the self.
    pub fn on_ack(&mut self, acknowledged: &Acknowledged, back: Return, limited: Limited, now: Instant) {
        let Return { over, delay } = back;
        self.counters.packets_acknowledged += acknowledged.packets.len() as u64;
        self.counters.spurious_losses += acknowledged.spurious.len() as u64;
        for spurious in &acknowledged.spurious {
            self.route.controller.on_spurious(&SpuriousSample {
                now,
                bytes: spurious.bytes,
                sent_at: spurious.sent_at,
                lost_at: spurious.lost_at,
            });
            let largest = self.sent.largest_acknowledged().unwrap_or(spurious.number);
            let lateness = Lateness {
                packets: spurious.distance.max(largest.saturating_sub(spurious.number)),
                time: now.since(spurious.sent_at),
            };
            self.route.reordering.on_spurious(lateness, self.rtts.loss_delay());
        }
        let rtt = self.rtt();
        let min_rtt = self.rtts.min_for(over).or(rtt.min());
        let rtt_alone = acknowledged.rtt_sample.map(|rtt| rtt.saturating_sub(delay));
        let arrival = AckSample { now, over, rtts: &self.rtts, rtt: rtt_alone };
        let delivery = self.route.rate.on_acknowledged(arrival, &acknowledged.packets);
        let newest = acknowledged.packets.last();
        let sample = Sample {
            now,
            data_path: self.id,
            acknowledged_over: over,
            bytes: acknowledged.bytes(),
            sent_at: acknowledged.largest_sent_at().unwrap_or(now),
            rtt: acknowledged.rtt_sample,
            min_rtt: min_rtt.unwrap_or(rtt.smoothed()),
            smoothed_rtt: rtt.smoothed(),
            delivery_rate: delivery.and_then(|sample| sample.rate),
            delivery,
            in_flight: self.sent.in_flight(),
            app_limited: self.route.is_held_below_window()
                || newest.is_some_and(|packet| limited.holds(self, packet)),
        };
        self.route.controller.on_acknowledged(&sample);
        if self.route.careful_resume().is_some() {
            let largest = newest.filter(|_| limited.is_numbered()).map(|packet| packet.number);
            let (bytes, delivered) = (sample.bytes, self.route.rate.delivered());
            let arrived = ResumeSample { bytes, largest, delivered, min_rtt: rtt.min() };
            self.route.resume_acknowledged(arrived, self.sent.next_unused(), sample.in_flight, now);
        }
        self.process_ecn(acknowledged, now);
        if self.route.controller.withholds() {
            self.route.rate.on_app_limited(self.sent.in_flight());
        }
        self.on_resolved(now);
    }

    /// Processes the peer's counts of ECN marks: they signal congestion, or show that marks do not work here.
    fn process_ecn(&mut self, acknowledged: &Acknowledged, now: Instant) {
        if let EcnOutcome::Congestion { marked } = self.route.ecn.on_report(&acknowledged.ecn) {
            self.counters.marked += marked;
            // RFC 9002 §7.1: the largest newly acknowledged packet dates the signal; the controller reacts once per round trip.
            if let Some(sent_at) = acknowledged.largest_sent_at() {
                self.retreat(ResumeSignal { trigger: ResumeTrigger::EcnCe, sent_at }, now);
                self.route.controller.on_ecn_ce(&MarkSample { now, sent_at });
            }
        }
    }

    /// Packets were declared lost: tells the controller, and all estimates of the self.
    pub fn on_loss(&mut self, lost: &Lost, persistent: Persistence, now: Instant) {
        self.counters.packets_lost += lost.packets.len() as u64;
        for packet in &lost.packets {
            self.counters.bytes_lost += packet.bytes as u64;
            self.route.ecn.on_lost(packet.ecn);
        }
        let Some(largest_sent_at) = lost.largest_sent_at() else { return };
        self.route.reordering.on_lost(now, largest_sent_at);
        for packet in lost.packets.iter().filter(|packet| packet.class.in_flight()) {
            let lost = LostPacket::of(packet, &mut self.route.rate, now);
            self.route.controller.on_packet_lost(&lost);
        }
        let in_flight = self.sent.in_flight();
        let cause = self.interruptions.on_lost(lost);
        let sample = LossSample { now, bytes: lost.bytes(), largest_sent_at, persistent, cause, in_flight };
        if sample.bytes > 0 {
            let trigger = match persistent {
                Persistence::Persistent => ResumeTrigger::PersistentCongestion,
                _ => ResumeTrigger::PacketLoss,
            };
            self.retreat(ResumeSignal { trigger, sent_at: largest_sent_at }, now);
        }
        self.route.controller.on_lost(&sample);
        self.on_resolved(now);
    }

    /// Congestion shows by `signal`: what was begun with is not kept to.
    fn retreat(&mut self, signal: ResumeSignal, now: Instant) {
        if self.route.careful_resume().is_some() {
            self.route.resume_congested(signal, self.sent.next_unused(), self.sent.in_flight(), now);
        }
    }

    /// Follows a decrease of the bytes in flight: the estimate of the queue and the pacer are updated.
    fn on_resolved(&mut self, now: Instant) {
        let mut backlog = self.route.backlog;
        backlog.on_resolved(now, self.sent.in_flight(), || self.rate());
        self.route.backlog = backlog;
        self.review_rate();
        self.route.keep_flight_within(self.rtts.longest_base());
        // After an outage the smoothed round-trip time is that of the outage for long: a window must not be spread over it.
        let rtt = self.rtt();
        self.route.pace(rtt.smoothed().min(rtt.latest()), now);
    }

    /// There is a round-trip time sample.
    pub fn on_rtt_sample(&mut self, now: Instant) {
        self.persistent.on_rtt_sample(now);
    }

    /// Judges newly lost packets against the `period` of persistent congestion (RFC 9002 §7.6).
    pub fn judge_persistence(&mut self, lost: &Lost, period: Duration) -> Persistence {
        self.persistent.on_lost(lost, period)
    }

    /// Packets declared lost, without those of interruptions, which are no share of the path.
    pub fn lost_to_congestion(&self) -> u64 {
        self.counters.packets_lost.saturating_sub(self.interruptions.packets())
    }
}
