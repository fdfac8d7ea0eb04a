//! ACK processing: an acknowledgement becomes tokens for the owners, a sample for the controller and an observation for the policy.

use crate::PathId;
use crate::congestion::coupled::Flow;
use crate::congestion::{LossSample, LostPacket, MarkSample, Sample, SpuriousSample};
use crate::connection::Event;
use crate::connection::PathEvent;
use crate::connection::Role;
use crate::connection::frame_owners::frame_owners;
use crate::connection::loss_recovery::LossRecovery;
use crate::connection::receive::violation;
use crate::error::TransportError;
use crate::path::lifecycle::State;
use crate::path::path::Path;
use crate::recovery::ecn::EcnOutcome;
use crate::recovery::persistent::Persistence;
use crate::recovery::rate::Arrival;
use crate::recovery::reordering::{Lateness, Thresholds};
use crate::recovery::rtt::ack_delay;
use crate::recovery::sent_packet::Lost;
use crate::recovery::sent_packet::SentPacket;
use crate::space::sent::Acknowledged;
use crate::time::Instant;
use crate::trace::TraceEvent;
use crate::wire::frame::Ack;
use crate::wire::level::Level;
use smallvec::SmallVec;
use std::time::Duration;

impl LossRecovery<'_> {
    /// An acknowledgement of packets of `of` that arrived over `over`.
    pub(in crate::connection) fn on_path_ack(
        &mut self,
        of: PathId,
        over: PathId,
        ack: &Ack,
        now: Instant,
    ) -> Result<(), TransportError> {
        let delay = self.scaled_delay(ack.delay);
        self.introduce_siblings(of);
        let Some(path) = self.paths.get_mut(of) else {
            if self.paths.lifecycles.state(of) == State::Unused {
                // RFC 9000 §13.1: nothing was ever sent there.
                return Err(violation("an acknowledgement of packets of a path that was never used"));
            }
            // RFC 10069 §3.4: acknowledgements of a path that was abandoned or freed are ignored.
            return Ok(());
        };
        let before = path.sent.largest_acknowledged();
        let acknowledged = path.sent.on_ack_into(ack, now, self.queue.pool().take_acknowledged())?;
        if acknowledged.packets.is_empty() && acknowledged.spurious.is_empty() {
            self.queue.pool().put_acknowledged(acknowledged.packets);
            return Ok(());
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-9.4
        //# Packets sent on the old path MUST NOT contribute to congestion control or RTT estimation for the
        //# new path.
        // RFC 9000 §9.4: what was sent to another address says nothing about this one.
        let sent_here = acknowledged.packets.last().is_none_or(|newest| newest.number >= path.route.since);
        note_gap(path, before, &acknowledged, (over, delay));
        if let Some(rtt) = acknowledged.rtt_sample.filter(|_| sent_here) {
            path.rtts.sample(over, rtt, delay, now);
            if let Some(newest) = acknowledged.packets.last() {
                path.on_round_trip(newest, over, rtt.saturating_sub(delay), now);
            }
            path.persistent.on_rtt_sample(now);
            if let Some(tracer) = self.observer.tracer() {
                tracer.record(now, &TraceEvent::RttSampled { sent_on: of, acknowledged_over: over, rtt });
            }
        }
        let answered = path.on_acknowledged(now);
        if sent_here {
            on_ack(path, &acknowledged, over, Limited::ByRounds, now);
        }
        self.paths.refresh_delays();
        if answered {
            frame_owners!(self).on_answering(of, now);
            self.events.push(Event::Path(PathEvent::Answering(of)));
        }
        self.settle_sizes(of, &acknowledged, now);
        for packet in &acknowledged.packets {
            frame_owners!(self).on_packet_acknowledged(of, packet, now);
            if let Some(keys) = self.keys.current_mut() {
                keys.on_acknowledged(of, packet.number);
            }
        }
        let grace = || self.paths.longest_probe_timeout(self.peer.max_ack_delay(self.lifecycle)) * 3;
        self.keys.on_packets_acknowledged(grace, now);
        for token in acknowledged.spurious.iter().flat_map(|spurious| &spurious.tokens) {
            frame_owners!(self).on_token_acknowledged(token);
        }
        self.queue.pool().put_acknowledged(acknowledged.packets);
        self.detect_lost(of, now);
        self.control.ack_frequencies.review(self.paths, self.peer.parameters(), now);
        self.observer.on_metrics(of, self.paths, now);
        self.tune_streams();
        Ok(())
    }

    /// Windows are tuned to the slowest path: data may cross any (RFC 9000 §4.2). Buffers are tuned to all of them.
    fn tune_streams(&mut self) {
        if let Some(rtt) = self.paths.open().map(|path| path.rtt().smoothed()).max() {
            self.streams.set_rtt(rtt);
        }
        let windows = self.paths.open().map(|path| path.route.window()).fold(0, usize::saturating_add);
        self.streams.set_windows(windows);
    }

    /// Datagrams are larger from now on if a probe of their size arrived.
    fn settle_sizes(&mut self, of: PathId, acknowledged: &Acknowledged, now: Instant) {
        let Some(path) = self.paths.get_mut(of) else { return };
        let mut grew = false;
        for packet in &acknowledged.packets {
            grew |= path.route.mtu.on_acknowledged(packet);
        }
        if grew {
            path.route.follow_mtu(now);
        }
    }

    /// The acknowledgement delay that the peer reports, at most what it promised (RFC 9002 §5.3).
    fn scaled_delay(&self, raw: u64) -> Duration {
        ack_delay(raw, self.peer.parameters().ack_delay_exponent, self.peer.max_ack_delay(self.lifecycle))
    }

    /// A coupled controller learns what those of the other paths show; the others need not.
    ///
    /// Coupling is for paths that may share a bottleneck (RFC 6356 §2). A rate that was promised to a path is a bottleneck
    /// of its own: such a path is fair to nobody by holding its siblings back, nor they by holding it.
    fn introduce_siblings(&mut self, of: PathId) {
        let Some(own) = self.paths.get(of).filter(|path| path.route.controller.flow().is_some()) else {
            return;
        };
        let is_sibling =
            |path: &Path| path.id != of && !path.route.has_own_rate() && !own.route.has_own_rate();
        let others = self.paths.open().filter(|path| is_sibling(path));
        let flows: SmallVec<[Flow; 3]> = others.filter_map(|path| path.route.controller.flow()).collect();
        if let Some(path) = self.paths.get_mut(of) {
            path.route.controller.on_siblings(&flows);
        }
    }

    /// Declares packets of `of` lost that the thresholds of RFC 9002 §6.1 say are.
    pub(in crate::connection) fn detect_lost(&mut self, of: PathId, now: Instant) {
        let delay = self.peer.max_ack_delay(self.lifecycle);
        self.introduce_siblings(of);
        let Some(path) = self.paths.get_mut(of) else { return };
        let mut lost = path.sent.detect_lost(now, path.thresholds());
        if let Some(records) = path.sent.take_records() {
            self.queue.pool().put_records(records);
        }
        path.route.mtu.take_lost_probe(&mut lost.packets);
        let refused = path.route.mtu.take_refused(&mut lost.packets);
        for packet in &refused {
            frame_owners!(self).on_packet_lost(of, packet, now);
        }
        let Some(path) = self.paths.get_mut(of).filter(|_| !lost.packets.is_empty()) else { return };
        if path.route.mtu.on_lost(&lost.packets, now) {
            path.route.follow_mtu(now);
        }
        let period = path.rtts.for_timers().persistent_congestion_duration(delay);
        let persistence = path.persistent.on_lost(&lost, period);
        if lost.packets.last().is_some_and(|newest| newest.number >= path.route.since) {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-13.3
            //# Upon detecting losses, a sender MUST take appropriate congestion control action
            on_loss(path, &lost, persistence, now);
        }
        for packet in &lost.packets {
            if let Some(tracer) = self.observer.tracer() {
                tracer.record(now, &lost_event(Level::OneRtt, of, packet));
            }
            frame_owners!(self).on_packet_lost(of, packet, now);
        }
    }

    /// An acknowledgement in an Initial or Handshake packet.
    pub(in crate::connection) fn on_long_ack(
        &mut self,
        level: Level,
        ack: &Ack,
        now: Instant,
    ) -> Result<(), TransportError> {
        let Some(space) = self.handshake.space(level) else { return Ok(()) };
        let acknowledged = space.sent.on_ack(ack, now)?;
        if acknowledged.packets.is_empty() {
            return Ok(());
        }
        space.probes_due = 0;
        if let Some(path) = self.paths.get_mut(PathId::ZERO) {
            if let Some(rtt) = acknowledged.rtt_sample {
                path.rtts.sample(PathId::ZERO, rtt, Duration::ZERO, now);
            }
            // RFC 9002 §6.2.1: an acknowledged Initial does not tell a client that the server may answer freely.
            if self.role == Role::Server || level == Level::Handshake {
                path.pto.reset();
            }
            on_ack(path, &acknowledged, PathId::ZERO, Limited::BySample, now);
        }
        for packet in &acknowledged.packets {
            frame_owners!(self).on_packet_acknowledged(PathId::ZERO, packet, now);
        }
        self.detect_long_lost(level, now);
        self.observer.on_metrics(PathId::ZERO, self.paths, now);
        Ok(())
    }

    /// Declares Initial or Handshake packets lost.
    pub(in crate::connection) fn detect_long_lost(&mut self, level: Level, now: Instant) {
        let Some(path) = self.paths.get(PathId::ZERO) else { return };
        // A handful of packets shows no reordering worth learning from.
        let thresholds = Thresholds::initial(path.rtts.loss_delay());
        let Some(space) = self.handshake.space(level) else { return };
        let lost = space.sent.detect_lost(now, thresholds);
        if lost.packets.is_empty() {
            return;
        }
        if let Some(path) = self.paths.get_mut(PathId::ZERO) {
            //= https://www.rfc-editor.org/rfc/rfc9002#section-7.4
            //# Endpoints MUST NOT ignore the loss of packets that were sent after the earliest acknowledged
            //# packet in a given packet number space.
            on_loss(path, &lost, Persistence::Passing, now);
        }
        for packet in &lost.packets {
            if let Some(tracer) = self.observer.tracer() {
                tracer.record(now, &lost_event(level, PathId::ZERO, packet));
            }
            frame_owners!(self).on_packet_lost(PathId::ZERO, packet, now);
        }
    }
}

/// The evidence that a window was not used up for want of data (RFC 9002 §7.8).
#[derive(Clone, Copy)]
enum Limited {
    /// No packet of those with 1-RTT keys was in flight when the window was used.
    ByRounds,
    /// There was too little to send when the packets of the handshake left, which have numbers of their own.
    BySample,
}

impl Limited {
    fn holds(self, path: &Path, newest: &SentPacket) -> bool {
        match self {
            Self::ByRounds => !path.route.was_used_with(newest.number),
            Self::BySample => newest.delivery.app_limited,
        }
    }
}

/// Takes note of the packets that did not arrive between `before`, the largest number that had, and those that did now.
fn note_gap(
    path: &mut Path,
    before: Option<u64>,
    acknowledged: &Acknowledged,
    (over, delay): (PathId, Duration),
) {
    let rtt = acknowledged.rtt_sample.map(|rtt| rtt.saturating_sub(delay));
    let known = path.rtts.over(over).copied();
    path.interruptions.on_acknowledged(&acknowledged.packets, before, rtt, known);
}

fn on_ack(path: &mut Path, acknowledged: &Acknowledged, over: PathId, limited: Limited, now: Instant) {
    path.counters.packets_acknowledged += acknowledged.packets.len() as u64;
    path.counters.spurious_losses += acknowledged.spurious.len() as u64;
    for spurious in &acknowledged.spurious {
        path.route.controller.on_spurious(&SpuriousSample {
            now,
            bytes: spurious.bytes,
            sent_at: spurious.sent_at,
            lost_at: spurious.lost_at,
        });
        let largest = path.sent.largest_acknowledged().unwrap_or(spurious.number);
        let lateness = Lateness {
            packets: spurious.distance.max(largest.saturating_sub(spurious.number)),
            time: now.since(spurious.sent_at),
        };
        path.route.reordering.on_spurious(lateness, path.rtts.loss_delay());
    }
    let rtt = path.rtt();
    let min_rtt = path.rtts.min_for(over).or(rtt.min());
    let arrival = Arrival { now, over, rtts: &path.rtts };
    let delivery = path.route.rate.on_acknowledged(arrival, &acknowledged.packets);
    let newest = acknowledged.packets.last();
    let sample = Sample {
        now,
        data_path: path.id,
        acknowledged_over: over,
        bytes: acknowledged.bytes(),
        sent_at: acknowledged.largest_sent_at().unwrap_or(now),
        rtt: acknowledged.rtt_sample,
        min_rtt: min_rtt.unwrap_or(rtt.smoothed()),
        smoothed_rtt: rtt.smoothed(),
        delivery_rate: delivery.and_then(|sample| sample.rate),
        delivery,
        in_flight: path.sent.in_flight(),
        app_limited: path.route.is_held_below_window()
            || newest.is_some_and(|packet| limited.holds(path, packet)),
    };
    path.route.controller.on_acknowledged(&sample);
    process_ecn(path, acknowledged, now);
    if path.route.controller.withholds() {
        path.route.rate.on_app_limited(path.sent.in_flight());
    }
    resolved(path, now);
}

/// Processes the peer's counts of ECN marks: they signal congestion, or show that marks do not work here.
fn process_ecn(path: &mut Path, acknowledged: &Acknowledged, now: Instant) {
    if let EcnOutcome::Congestion { marked } = path.route.ecn.on_report(&acknowledged.ecn) {
        path.counters.marked += marked;
        // RFC 9002 §7.1: the largest newly acknowledged packet dates the signal; the controller reacts once per round trip.
        if let Some(sent_at) = acknowledged.largest_sent_at() {
            path.route.controller.on_ecn_ce(&MarkSample { now, sent_at });
        }
    }
}

fn on_loss(path: &mut Path, lost: &Lost, persistent: Persistence, now: Instant) {
    path.counters.packets_lost += lost.packets.len() as u64;
    for packet in &lost.packets {
        path.route.ecn.on_lost(packet.ecn);
    }
    let Some(largest_sent_at) = lost.largest_sent_at() else { return };
    path.route.reordering.on_lost(now, largest_sent_at);
    for packet in lost.packets.iter().filter(|packet| packet.class.in_flight()) {
        let lost = LostPacket::of(packet, &mut path.route.rate, now);
        path.route.controller.on_packet_lost(&lost);
    }
    let in_flight = path.sent.in_flight();
    let cause = path.interruptions.on_lost(lost);
    let sample = LossSample { now, bytes: lost.bytes(), largest_sent_at, persistent, cause, in_flight };
    path.route.controller.on_lost(&sample);
    resolved(path, now);
}

fn lost_event(level: Level, path: PathId, packet: &SentPacket) -> TraceEvent<'static> {
    TraceEvent::PacketLost { level, path, number: packet.number, bytes: packet.bytes }
}

/// Follows a decrease of the bytes in flight: the estimate of the queue and the pacer are updated.
fn resolved(path: &mut Path, now: Instant) {
    let rate = path.rate();
    path.route.backlog.on_resolved(now, path.sent.in_flight(), rate);
    path.route.keep_flight_within(path.rtts.longest_base());
    // After an outage the smoothed round-trip time is that of the outage for long: a window must not be spread over it.
    let rtt = path.rtt();
    path.route.pace(rtt.smoothed().min(rtt.latest()), now);
}
