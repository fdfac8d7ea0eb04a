//! ACK processing: an acknowledgement becomes tokens for the owners, a sample for the controller and an observation for the policy.

use crate::PathId;
use crate::congestion::Flow;
use crate::connection::Event;
use crate::connection::PathEvent;
use crate::connection::Role;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::loss_recovery::LossRecovery;
use crate::connection::receive::violation;
use crate::error::TransportError;
use crate::path::lifecycle::LifecycleState;
use crate::path::path::Path;
use crate::path::recovery::Limited;
use crate::path::recovery::Return;
use crate::recovery::persistent::Persistence;
use crate::recovery::reordering::Thresholds;
use crate::recovery::rtt::ack_delay;
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
        let Some(path) = self.owners.paths.get_mut(of) else {
            if self.owners.paths.lifecycles.state(of) == LifecycleState::Unused {
                // RFC 9000 §13.1: nothing was ever sent there.
                return Err(violation("an acknowledgement of packets of a path that was never used"));
            }
            // RFC 10069 §3.4: acknowledgements of a path that was abandoned or freed are ignored.
            return Ok(());
        };
        let before = path.sent.largest_acknowledged();
        let acknowledged = path.sent.on_ack_into(ack, now, self.pool.take_acknowledged())?;
        if acknowledged.packets.is_empty() && acknowledged.spurious.is_empty() {
            self.pool.put_acknowledged(acknowledged.packets);
            return Ok(());
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-9.4
        //# Packets sent on the old path MUST NOT contribute to congestion control or RTT estimation for the
        //# new path.
        // RFC 9000 §9.4: what was sent to another address says nothing about this one.
        let sent_here = acknowledged.packets.last().is_none_or(|newest| newest.number >= path.route.since);
        path.on_gap(before, &acknowledged, Return { over, delay });
        if let Some(rtt) = acknowledged.rtt_sample.filter(|_| sent_here) {
            path.rtts.sample(over, rtt, delay, now);
            if let Some(newest) = acknowledged.packets.last() {
                path.on_round_trip(newest, over, rtt.saturating_sub(delay), now);
            }
            path.on_rtt_sample(now);
            if let Some(tracer) = self.observer.tracer() {
                tracer.record(now, &TraceEvent::RttSampled { sent_on: of, acknowledged_over: over, rtt });
            }
        }
        let answered = path.on_acknowledged(now);
        if sent_here {
            path.on_ack(&acknowledged, Return { over, delay }, Limited::ByRounds, now);
        }
        settle_sizes(path, &acknowledged, now);
        self.owners.paths.follow_samples();
        if answered {
            self.owners.on_answering(of, now);
            self.events.push(Event::Path(PathEvent::Answering(of)));
        }
        for packet in &acknowledged.packets {
            self.on_packet_acknowledged(of, packet, now);
            if let Some(keys) = self.keys.current_mut() {
                keys.on_acknowledged(of, packet.number);
            }
        }
        let grace = || self.owners.paths.longest_probe_timeout(self.terms.max_ack_delay()) * 3;
        self.keys.on_packets_acknowledged(grace, now);
        for token in acknowledged.spurious.iter().flat_map(|spurious| &spurious.tokens) {
            self.owners.on_token_acknowledged(token);
        }
        self.pool.put_acknowledged(acknowledged.packets);
        self.detect_lost(of, now);
        self.owners.control.ack_frequencies.review(self.owners.paths, self.terms.peer.parameters(), now);
        self.observer.on_metrics(of, self.owners.paths, now);
        self.tune_streams();
        Ok(())
    }

    /// Windows are tuned to the slowest path: data may cross any (RFC 9000 §4.2). Buffers are tuned to all of them.
    fn tune_streams(&mut self) {
        if let Some(rtt) = self.owners.paths.open().map(|path| path.rtt().smoothed()).max() {
            self.owners.streams.set_rtt(rtt);
        }
        let windows = self.owners.paths.open().map(|path| path.route.window()).fold(0, usize::saturating_add);
        self.owners.streams.set_windows(windows);
    }

    /// The acknowledgement delay that the peer reports, at most what it promised (RFC 9002 §5.3).
    fn scaled_delay(&self, raw: u64) -> Duration {
        ack_delay(raw, self.terms.peer.parameters().ack_delay_exponent, self.terms.max_ack_delay())
    }

    /// A coupled controller learns what those of the other paths show; the others need not.
    ///
    /// Coupling is for paths that may share a bottleneck (RFC 6356 §2). A rate that was promised to a path is a bottleneck
    /// of its own: such a path is fair to nobody by holding its siblings back, nor they by holding it.
    fn introduce_siblings(&mut self, of: PathId) {
        let paths = &self.owners.paths;
        // Most controllers are not coupled; and an acknowledgement may be for packets of a path that is over.
        let Some(own) = paths.get(of).filter(|path| path.route.controller.flow().is_some()) else { return };
        let is_sibling =
            |path: &Path| path.id != of && !path.route.has_own_rate() && !own.route.has_own_rate();
        let others = paths.open().filter(|path| is_sibling(path));
        let flows: SmallVec<[Flow; 3]> = others.filter_map(|path| path.route.controller.flow()).collect();
        if let Some(path) = self.owners.paths.get_mut(of) {
            path.route.controller.on_siblings(&flows);
        }
    }

    /// Declares packets of `of` lost that the thresholds of RFC 9002 §6.1 say are.
    pub(in crate::connection) fn detect_lost(&mut self, of: PathId, now: Instant) {
        let delay = self.terms.max_ack_delay();
        self.introduce_siblings(of);
        let path = self.owners.paths.get_mut(of).expect("losses are those of open paths");
        let mut lost = path.sent.detect_lost(now, path.thresholds());
        if let Some(records) = path.sent.take_records() {
            self.pool.put_records(records);
        }
        if lost.packets.is_empty() {
            return;
        }
        path.route.mtu.take_lost_probe(&mut lost.packets);
        let refused = path.route.mtu.take_refused(&mut lost.packets);
        for packet in &refused {
            self.owners.on_packet_lost(of, packet, now);
        }
        if lost.packets.is_empty() {
            return;
        }
        let path = self.owners.paths.get_mut(of).expect("no loss closes a path");
        if path.route.mtu.on_lost(&lost.packets, now) {
            path.route.follow_mtu(now);
        }
        let period = path.rtts.for_timers().persistent_congestion_duration(delay);
        let persistence = path.judge_persistence(&lost, period);
        if lost.packets.last().is_some_and(|newest| newest.number >= path.route.since) {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-13.3
            //# Upon detecting losses, a sender MUST take appropriate congestion control action
            path.on_loss(&lost, persistence, now);
        }
        for packet in &lost.packets {
            if let Some(tracer) = self.observer.tracer() {
                tracer.record(now, &lost_event(Level::OneRtt, of, packet));
            }
            self.owners.on_packet_lost(of, packet, now);
        }
    }

    /// `packet`, sent on path `on`, was acknowledged. Until the handshake is confirmed another connection may take the place of
    /// a client's and send the content again, for the acknowledgement of another confirms the handshake (RFC 9001 §4.1.2).
    fn on_packet_acknowledged(&mut self, on: PathId, packet: &SentPacket, now: Instant) {
        let is_unconfirmed = matches!(self.terms.lifecycle, Lifecycle::Handshaking | Lifecycle::Connected);
        let may_be_replaced = self.terms.role == Role::Client && is_unconfirmed;
        let deferred = may_be_replaced.then_some(&mut *self.zero_rtt);
        self.owners.on_packet_acknowledged(on, packet, deferred, now);
    }

    /// An acknowledgement in an Initial or Handshake packet.
    pub(in crate::connection) fn on_long_ack(
        &mut self,
        level: Level,
        ack: &Ack,
        now: Instant,
    ) -> Result<(), TransportError> {
        // RFC 9001 §4.9: keys, and with them the space, are discarded before late acknowledgements arrive.
        let Some(space) = self.owners.handshake.space(level) else { return Ok(()) };
        let acknowledged = space.sent.on_ack(ack, now)?;
        if acknowledged.packets.is_empty() {
            return Ok(());
        }
        space.on_acknowledged();
        if let Some(path) = self.owners.paths.get_mut(PathId::ZERO) {
            if let Some(rtt) = acknowledged.rtt_sample {
                path.rtts.sample(PathId::ZERO, rtt, Duration::ZERO, now);
            }
            // RFC 9002 §6.2.1: an acknowledged Initial does not tell a client that the server may answer freely.
            if self.terms.role == Role::Server || level == Level::Handshake {
                path.on_answer();
            }
            path.on_ack(
                &acknowledged,
                Return { over: PathId::ZERO, delay: Duration::ZERO },
                Limited::BySample,
                now,
            );
        }
        for packet in &acknowledged.packets {
            self.on_packet_acknowledged(PathId::ZERO, packet, now);
        }
        self.detect_long_lost(level, now);
        self.observer.on_metrics(PathId::ZERO, self.owners.paths, now);
        Ok(())
    }

    /// Declares Initial or Handshake packets lost.
    pub(in crate::connection) fn detect_long_lost(&mut self, level: Level, now: Instant) {
        let (path, space) = (self.owners.paths.get(PathId::ZERO), self.owners.handshake.space(level));
        // The acknowledgement may have confirmed the handshake, which ends the space; path 0 may be abandoned before.
        let (Some(path), Some(space)) = (path, space) else { return };
        // A handful of packets shows no reordering worth learning from.
        let thresholds = Thresholds::initial(path.rtts.loss_delay());
        let lost = space.sent.detect_lost(now, thresholds);
        if lost.packets.is_empty() {
            return;
        }
        if let Some(path) = self.owners.paths.get_mut(PathId::ZERO) {
            //= https://www.rfc-editor.org/rfc/rfc9002#section-7.4
            //# Endpoints MUST NOT ignore the loss of packets that were sent after the earliest acknowledged
            //# packet in a given packet number space.
            path.on_loss(&lost, Persistence::Passing, now);
        }
        for packet in &lost.packets {
            if let Some(tracer) = self.observer.tracer() {
                tracer.record(now, &lost_event(level, PathId::ZERO, packet));
            }
            self.owners.on_packet_lost(PathId::ZERO, packet, now);
        }
    }
}

/// Datagrams of `path` are larger from now on if a probe of their size arrived.
fn settle_sizes(path: &mut Path, acknowledged: &Acknowledged, now: Instant) {
    let mut grew = false;
    for packet in &acknowledged.packets {
        grew |= path.route.mtu.on_acknowledged(packet);
    }
    if grew {
        path.route.follow_mtu(now);
    }
}

fn lost_event(level: Level, path: PathId, packet: &SentPacket) -> TraceEvent<'static> {
    TraceEvent::PacketLost { level, path, number: packet.number, bytes: packet.bytes }
}
