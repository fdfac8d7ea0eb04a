//! From frames to datagrams: preparing packets, the one place that writes frames, and sealing.

pub(crate) mod acknowledge;
pub(crate) mod buffer_pool;
pub(crate) mod close;
pub(crate) mod control;
pub(crate) mod frame_scheduler;
pub(crate) mod grease;
pub(crate) mod interest;
pub(crate) mod long_packets;
pub(crate) mod mtu_discovery;
pub(crate) mod opportunistic;
pub(crate) mod packet_builder;
pub(crate) mod path_frames;
pub(crate) mod scheduler_slot;
pub(crate) mod transmission_round;
pub(crate) mod transmit_queue;
pub(crate) mod zero_rtt;

use crate::connection::activity::Activity;
use crate::connection::close::Closing;
use crate::connection::control::ControlFrames;
use crate::connection::frame_owners::frame_owners;
use crate::connection::handshake::key_update::TrafficKeys;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::observe::Observer;
use crate::connection::paths::path_use::id_reserve;
use crate::connection::send::packet_builder::{
    DatagramPurpose, Elicits, OpenPacket, PacketBuilder, PacketForm, PacketStart,
};
use crate::connection::send::scheduler_slot::SchedulerSlot;
use crate::connection::send::transmission_round::{LEAST_ROOM, TransmissionRound};
use crate::connection::send::transmit_queue::TransmitQueue;
use crate::connection::{Connection, Peer, Role, Transmit, TransportConfig};
use crate::datagram::Datagrams;
use crate::handshake::Handshake;
use crate::handshake::zero_rtt::ZeroRtt;
use crate::path::paths::Paths;
use crate::recovery::sent_packet::{PacketClass, SentPacket};
use crate::recovery_token::RecoveryToken;
use crate::seed::Randomness;
use crate::stream::Streams;
use crate::time::Instant;
use crate::trace::{Payload, TraceEvent, TracedPacket};
use crate::wire::frame::Frame;
use crate::wire::header::{HeaderLayout, patch_length};
use crate::wire::level::Level;
use crate::wire::overhead::TAG;
use hvq_scheduler::{Content, Observation, PathView};

/// Datagram batches that wait for the network at most before a round starts.
const QUEUE_LIMIT: usize = 64;

/// The sending part of a connection: what it sends from, and what it takes note of.
pub(in crate::connection) struct Sender<'a> {
    pub role: Role,
    pub config: &'a TransportConfig,
    pub lifecycle: Lifecycle,
    pub handshake: &'a mut Handshake,
    pub keys: &'a mut TrafficKeys,
    pub zero_rtt: &'a mut ZeroRtt,
    pub peer: &'a Peer,
    pub paths: &'a mut Paths,
    pub streams: &'a mut Streams,
    pub datagrams: &'a mut Datagrams,
    pub control: &'a mut ControlFrames,
    pub scheduler: &'a mut SchedulerSlot,
    pub closing: Option<&'a mut Closing>,
    pub activity: &'a mut Activity,
    pub queue: &'a mut TransmitQueue,
    pub observer: &'a mut Observer,
    pub rng: &'a mut Randomness,
}

impl Connection {
    /// The next datagrams to send at `now`, if any.
    pub(in crate::connection) fn next_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if self.queue.is_empty() {
            self.guard_limits(now);
            self.sender().fill_queue(now);
        }
        self.queue.pop()
    }

    /// The sending part.
    pub(in crate::connection) fn sender(&mut self) -> Sender<'_> {
        Sender {
            role: self.role,
            config: &self.config,
            lifecycle: self.lifecycle,
            handshake: &mut self.handshake,
            keys: &mut self.keys,
            zero_rtt: &mut self.zero_rtt,
            peer: &self.peer,
            paths: &mut self.paths,
            streams: &mut self.streams,
            datagrams: &mut self.datagrams,
            control: &mut self.control,
            scheduler: &mut self.scheduler,
            closing: self.closing.as_deref_mut(),
            activity: &mut self.activity,
            queue: &mut self.queue,
            observer: &mut self.observer,
            rng: &mut self.rng,
        }
    }
}

impl Sender<'_> {
    /// Returns true if frames about several paths may be sent (RFC 10069 §2).
    fn is_multipath(&self) -> bool {
        self.lifecycle.is_connected() && self.paths.limits.is_negotiated()
    }

    /// Queues what is to be sent at `now`.
    fn fill_queue(&mut self, now: Instant) {
        match self.lifecycle {
            Lifecycle::Handshaking | Lifecycle::Connected | Lifecycle::Confirmed => {}
            Lifecycle::Closing(_) => return self.send_close(now),
            //= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.2
            //= reason=Lifecycle::Closed => return,
            //# While otherwise identical to the closing state, an endpoint in the draining state MUST NOT
            //# send any packets
            //= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.2
            //= reason=Lifecycle::Closed => return,
            //# An endpoint MUST NOT send further packets
            Lifecycle::Draining(_) | Lifecycle::Closed => return,
        }
        while self.send_long(now) {
            if self.queue.len() >= QUEUE_LIMIT {
                return;
            }
        }
        if !self.keys.are_installed() || !self.lifecycle.is_connected() {
            return self.send_zero_rtt(now);
        }
        if self.lifecycle.is_confirmed() {
            self.collect_control(now);
            if !self.has_interest(now) {
                self.note_no_interest(now);
                debug_assert!(self.is_in_vain(now), "a pass that was left out has a result");
                return;
            }
        }
        #[cfg(test)]
        self.activity.count_pass();
        self.make_pass(now);
    }

    /// Makes the pass that is left out, and returns true if it came to nothing.
    fn is_in_vain(&mut self, now: Instant) -> bool {
        self.make_pass(now);
        self.queue.is_empty()
    }

    /// Queues 1-RTT packets with what is to be sent at `now`.
    fn make_pass(&mut self, now: Instant) {
        if self.config.rotation.is_set() && self.lifecycle.is_confirmed() {
            self.paths.rotate_due(&self.config.rotation, id_reserve(self.role), now);
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
        //# An endpoint MUST NOT delay transmission of a packet containing a PATH_RESPONSE frame unless
        //# constrained by congestion control.
        self.send_path_frames(now);
        frame_owners!(self).offer_late_data(now);
        self.offer_overdue_data(now);
        self.probe_datagram_sizes(now);
        let mut round = TransmissionRound::new(self.views(now), now);
        //= https://www.rfc-editor.org/rfc/rfc9002#section-7.5
        //# Probe packets MUST NOT be blocked by the congestion controller
        self.send_probes(&mut round);
        self.run_frame_scheduler(&mut round);
        self.complete_round(round);
    }

    /// Makes sure that path `index` has an open packet with room for `least` bytes, or else a fresh one, and returns
    /// the room there is; 0 if the path may not send.
    pub(in crate::connection) fn prepare(
        &mut self,
        round: &mut TransmissionRound,
        index: usize,
        least: usize,
    ) -> usize {
        if let Some(builder) = round.builders.get(index).filter(|builder| builder.open.is_some()) {
            let room = builder.room();
            if room >= least {
                return room;
            }
            self.seal(round, index);
        }
        // Where no path may send, a caller asks for the first in vain.
        let Some(builder) = round.builders.get_mut(index) else { return 0 };
        // RFC 9000 §8.1 binds acknowledgements too, which no congestion window does.
        let allowance = self.paths.get(builder.path).map_or(0, |path| path.route.amplification.allowance());
        if allowance < builder.segment {
            return 0;
        }
        if builder.open.is_none() {
            // There may be no connection ID of the peer for the path (RFC 10069 §3.2).
            let Some(start) = self.next_packet(builder.path) else { return 0 };
            // The second packet means a batch.
            let spare = match builder.segments {
                0 => self.queue.pool().take_single(builder.segment),
                1 => self.queue.pool().take_batch(),
                _ => None,
            };
            if let Some(spare) = spare {
                self.queue.pool().put(builder.move_to(spare));
            }
            if builder.segments == 1 && self.streams.has_sendable() {
                builder.expect_bulk();
            }
            builder.start(&start);
        }
        builder.room()
    }

    pub(in crate::connection) fn next_packet(&mut self, path: crate::PathId) -> Option<PacketStart> {
        // Before the handshake has made keys there are those of 0-RTT, if any.
        let Some(keys) = self.keys.current() else { return self.next_zero_rtt_packet() };
        let phase = keys.phase();
        //= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# An endpoint MUST use a connection ID associated to the same path ID as used in the packet received
        //# by the endpoint when it intends to send packets on the same path.
        let destination = self.paths.remote_ids.current(path)?;
        let path = self.paths.get_mut(path)?;
        Some(PacketStart {
            number: path.sent.next_number(self.rng.get()),
            largest_acknowledged: path.sent.largest_acknowledged(),
            destination,
            form: PacketForm::OneRtt { phase, spin: path.spin() },
            marking: path.route.ecn.marking(),
        })
    }

    /// Writes a frame into the open packet of path `index`: every 1-RTT frame passes here. Returns its size in bytes.
    pub(in crate::connection) fn put(
        &mut self,
        round: &mut TransmissionRound,
        index: usize,
        frame: &Frame,
        token: Option<RecoveryToken>,
    ) -> usize {
        let (Some(builder), Some(view)) = (round.builders.get_mut(index), round.views.get_mut(index)) else {
            return 0;
        };
        let content = content_of(frame);
        let bytes = builder.put(frame, token);
        round.placed = true;
        view.backlog += bytes;
        self.observer.count_sent(view.id, frame.kind(), bytes);
        self.scheduler.observe(&Observation::Placed { path: view.id, content, bytes });
        if matches!(content, Content::Stream { .. } | Content::Datagram)
            && self.config.rotation.is_set()
            && let Some(path) = self.paths.get_mut(view.id)
        {
            path.on_carried();
        }
        if let Some(tracer) = self.observer.tracer() {
            tracer.record(round.now, &TraceEvent::FrameSent { path: view.id, kind: frame.kind(), bytes });
        }
        bytes
    }

    /// Seals the open packet of path `index` and takes note of it, for what follows in the round.
    pub(in crate::connection) fn seal(&mut self, round: &mut TransmissionRound, index: usize) {
        self.seal_open(round, index);
        if let Some(view) = round.views.get_mut(index)
            && let Some(path) = self.paths.get(view.id)
        {
            view.backlog = path.shown_queue(round.now).backlog;
            view.next_send = path.next_send(view.send_allowance, round.now);
        }
    }

    /// Seals the open packet of path `index`. What of its view only policies look at stays as it was.
    fn seal_open(&mut self, round: &mut TransmissionRound, index: usize) {
        let Some(builder) = round.builders.get_mut(index) else { return };
        let now = round.now;
        if builder.open.is_some() && builder.room() < LEAST_ROOM {
            // Segments of one batch have equal sizes: a few bytes of padding let the next packet join this one.
            builder.pad_to(builder.segment);
        }
        let Some(size) = self.seal_packet_of(builder, now) else { return };
        round.sealed += 1;
        round.sealed_bytes += size;
        if let Some(view) = round.views.get_mut(index)
            && let Some(path) = self.paths.get(view.id)
        {
            // Window, pacer and anti-amplification limit all paid for what went into flight. A packet that did not is small.
            view.send_allowance =
                view.send_allowance.saturating_sub(path.sent.in_flight().saturating_sub(view.in_flight));
            view.in_flight = path.sent.in_flight();
        }
        let full = size == builder.segment && builder.takes_more(self.config.segments);
        if !full {
            self.flush(round, index);
        }
    }

    /// Seals the open packet of `builder`: encrypts it, and records it with its path. Returns its size in bytes.
    pub(in crate::connection) fn seal_packet_of(
        &mut self,
        builder: &mut PacketBuilder,
        now: Instant,
    ) -> Option<usize> {
        let (open, size) = self.encrypt(builder, now)?;
        let eliciting = open.elicits == Elicits::Acknowledgement;
        let path = self.paths.get_mut(builder.path)?;
        if eliciting {
            path.on_activity(now);
        }
        path.count_sent(size);
        path.route.amplification.on_sent(size);
        let class = match open.elicits {
            Elicits::Acknowledgement if builder.purpose == DatagramPurpose::SizeProbe => {
                PacketClass::InFlight
            }
            Elicits::Acknowledgement if builder.purpose == DatagramPurpose::LivenessProbe => {
                PacketClass::Asking
            }
            Elicits::Acknowledgement => PacketClass::AckEliciting,
            Elicits::Nothing if open.padded => PacketClass::InFlight,
            Elicits::Nothing => PacketClass::AckOnly,
        };
        if path.sent.lacks_memory()
            && let Some(records) = self.queue.pool().take_records()
        {
            path.sent.lend(records);
        }
        path.on_packet_sent(SentPacket {
            tokens: open.tokens,
            ecn: builder.ecn,
            ..SentPacket::new(open.number, now, size, class)
        });
        if path.sent.is_overgrown(|| path.route.window(), now) {
            frame_owners!(self).resend(builder.path, |sent| sent.shed(now), now);
        }
        if eliciting {
            self.activity.on_sent(now);
        }
        Some(size)
    }

    /// Encrypts the open packet of `builder`, which tracers see before. Returns it, and its size in bytes.
    #[inline]
    pub(in crate::connection) fn encrypt(
        &mut self,
        builder: &mut PacketBuilder,
        now: Instant,
    ) -> Option<(OpenPacket, usize)> {
        let open = builder.finish()?;
        let (start, number, layout) = (open.start, open.number, open.layout);
        let level = if layout.length_offset.is_some() { Level::ZeroRtt } else { Level::OneRtt };
        if !self.may_seal(level) {
            // RFC 9001 §6.6: worn-out keys seal nothing more, and nothing leaves in the clear.
            builder.open = None;
            builder.bytes.truncate(start);
            return None;
        }
        self.grease(builder.bytes.get_mut(start..).unwrap_or_default());
        if let Some(tracer) = self.observer.tracer() {
            let payload = builder.bytes.get(layout.payload_offset()..).unwrap_or_default();
            let packet = TracedPacket {
                level,
                path: builder.path,
                number,
                bytes: builder.bytes.len() - start + TAG,
                payload: Payload(payload),
            };
            tracer.record(now, &TraceEvent::PacketSent(packet));
        }
        self.seal_packet(builder, start, &layout, number);
        let size = builder.bytes.len() - start;
        builder.take_sealed().map(|open| (open, size))
    }

    fn may_seal(&self, level: Level) -> bool {
        match level {
            Level::ZeroRtt => self.zero_rtt.sealer().is_some(),
            _ => self.keys.current().is_some_and(|keys| !keys.is_spent()),
        }
    }

    /// Seals the packet that starts at `start` and ends the bytes of `builder`.
    fn seal_packet(&mut self, builder: &mut PacketBuilder, start: usize, layout: &HeaderLayout, number: u64) {
        if layout.length_offset.is_none() {
            if let Some(keys) = self.keys.current_mut() {
                keys.seal(&mut builder.bytes, start, layout, builder.path, number);
            }
        } else if let Some(key) = self.zero_rtt.sealer() {
            patch_length(&mut builder.bytes, layout, start, TAG);
            key.seal(&mut builder.bytes, start, layout, builder.path, number);
        }
    }

    /// Hands the sealed datagrams of path `index` to the transmit queue.
    pub(in crate::connection) fn flush(&mut self, round: &mut TransmissionRound, index: usize) {
        if let Some(builder) = round.builders.get_mut(index) {
            let done = builder.take_batch();
            self.queue_datagrams(done);
        }
    }

    /// Queues the datagrams of `builder`, all sealed.
    pub(in crate::connection) fn queue_datagrams(&mut self, builder: PacketBuilder) {
        if builder.bytes.is_empty() {
            return;
        }
        let path = self.paths.get(builder.path).expect("datagrams are sealed for open paths");
        let transmit = Transmit {
            local: path.route.tuple.local,
            remote: path.route.tuple.remote,
            ecn: builder.ecn,
            dscp: path.dscp(),
            segment: (builder.segments > 1).then_some(builder.segment),
            bytes: builder.bytes,
        };
        match builder.shared {
            0 => self.queue.join(transmit, path.route.datagram_size, self.config.segments),
            // It was ended for its messages to leave.
            _ => self.queue.push(transmit),
        }
    }

    pub(in crate::connection) fn complete_round(&mut self, mut round: TransmissionRound) {
        for index in 0..round.builders.len() {
            self.seal_open(&mut round, index);
            self.flush(&mut round, index);
        }
        self.note_room(&round.views, round.now);
    }

    /// Takes note of the room that a pass leaves on the paths in `views`: one that is left for want of data makes rates
    /// limited by the application.
    pub(in crate::connection) fn note_room(&mut self, views: &[PathView], now: Instant) {
        let exhausted = !self.streams.has_sendable() && self.control.is_empty();
        for view in views {
            let Some(path) = self.paths.get_mut(view.id) else { continue };
            // Held back for the queue it would make, a path has not used its window.
            let room = path.route.room(path.sent.in_flight(), now).max(view.send_allowance);
            path.route.on_pass(room, path.sent.next_unused());
            if exhausted && view.send_allowance >= view.datagram_size {
                path.route.rate.on_app_limited(path.sent.in_flight());
            }
        }
    }
}

/// Returns the policies' name for the content of the frame.
pub(in crate::connection) fn content_of(frame: &Frame) -> Content {
    match frame {
        Frame::Ack(ack) => Content::Acknowledgement { of: ack.path.unwrap_or(crate::PathId::ZERO) },
        Frame::Crypto(_) => Content::Handshake,
        Frame::Stream(stream) => Content::Stream { id: stream.id.0 },
        Frame::Datagram(_) => Content::Datagram,
        _ => Content::Control,
    }
}
