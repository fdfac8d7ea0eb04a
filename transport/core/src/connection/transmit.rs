//! From frames to datagrams: preparing packets, the one place that writes frames, and sealing.

use crate::congestion::Sending;
use crate::connection::lane::{Elicits, Lane, OpenPacket, PacketForm, PacketStart, Purpose};
use crate::connection::lifecycle::Lifecycle;
use crate::connection::pass::{LEAST_ROOM, Pass};
use crate::connection::{Connection, Transmit};
use crate::crypto::keys::Level;
use crate::delivery::Receipt;
use crate::path::path::Path;
use crate::space::packet::{PacketClass, SentPacket};
use crate::time::Instant;
use crate::trace::{Payload, TraceEvent, TracedPacket};
use crate::wire::frame::Frame;
use crate::wire::header::{HeaderLayout, patch_length};
use crate::wire::overhead::TAG;
use hvq_scheduler::{Content, Observation};

/// Datagram batches that wait for the network at most before a pass starts.
const OUTBOX_LIMIT: usize = 64;

impl Connection {
    /// The next datagrams to send at `now`, if any.
    pub(super) fn next_transmit(&mut self, now: Instant) -> Option<Transmit> {
        if self.outbox.is_empty() {
            self.fill_outbox(now);
        }
        self.outbox.pop_front()
    }

    fn fill_outbox(&mut self, now: Instant) {
        self.guard_limits(now);
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
        while self.send_early(now) {
            if self.outbox.len() >= OUTBOX_LIMIT {
                return;
            }
        }
        if self.keys.is_none() || !self.lifecycle.is_connected() {
            return self.send_early_data(now);
        }
        self.rotate_due(now);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
        //# An endpoint MUST NOT delay transmission of a packet containing a PATH_RESPONSE frame unless
        //# constrained by congestion control.
        self.send_path_frames(now);
        self.offer_late_data(now);
        self.probe_datagram_sizes(now);
        let mut pass = Pass::new(self.views(now), now);
        //= https://www.rfc-editor.org/rfc/rfc9002#section-7.5
        //# Probe packets MUST NOT be blocked by the congestion controller
        self.send_probes(&mut pass);
        self.run_agenda(&mut pass);
        self.complete_pass(pass);
    }

    /// Makes sure that path `index` has an open packet with room for `least` bytes, or else a fresh one, and returns
    /// the room there is; 0 if the path may not send.
    pub(super) fn prepare(&mut self, pass: &mut Pass, index: usize, least: usize) -> usize {
        let Some(lane) = pass.lanes.get(index) else { return 0 };
        if lane.open.is_some() {
            let room = lane.room();
            if room >= least {
                return room;
            }
            self.seal(pass, index);
        }
        let Some(lane) = pass.lanes.get_mut(index) else { return 0 };
        // RFC 9000 §8.1 binds acknowledgements too, which no congestion window does.
        let allowance = self.paths.get(lane.path).map_or(0, |path| path.route.amplification.allowance());
        if allowance < lane.segment {
            return 0;
        }
        if lane.open.is_none() {
            let Some(start) = self.next_packet(lane.path) else { return 0 };
            // The second packet means a batch.
            let spare = match lane.segments {
                0 => self.spares.take_single(lane.segment),
                1 => self.spares.take_batch(),
                _ => None,
            };
            if let Some(spare) = spare {
                self.spares.put(lane.move_to(spare));
            }
            if lane.segments == 1 && self.streams.has_sendable() {
                lane.expect_bulk();
            }
            lane.start(&start);
        }
        lane.room()
    }

    pub(super) fn next_packet(&mut self, path: crate::PathId) -> Option<PacketStart> {
        let Some(keys) = &self.keys else { return self.next_early_packet() };
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
            form: PacketForm::OneRtt { phase, spin: path.spin.value() },
            marking: path.route.ecn.marking(),
        })
    }

    /// Writes a frame into the open packet of path `index`: every 1-RTT frame passes here. Returns its size in bytes.
    pub(super) fn put(
        &mut self,
        pass: &mut Pass,
        index: usize,
        frame: &Frame,
        receipt: Option<Receipt>,
    ) -> usize {
        let (Some(lane), Some(view)) = (pass.lanes.get_mut(index), pass.views.get_mut(index)) else {
            return 0;
        };
        let content = content_of(frame);
        let bytes = lane.put(frame, receipt);
        pass.placed = true;
        view.backlog += bytes;
        self.counters.count_sent(view.id, frame.kind(), bytes);
        self.seat.policy.observe(&Observation::Placed { path: view.id, content, bytes });
        if matches!(content, Content::Stream { .. } | Content::Datagram) {
            self.note_carried(view.id);
        }
        if let Some(tracer) = &mut self.tracer {
            tracer.record(pass.now, &TraceEvent::FrameSent { path: view.id, kind: frame.kind(), bytes });
        }
        bytes
    }

    /// Seals the open packet of path `index` and takes note of it.
    pub(super) fn seal(&mut self, pass: &mut Pass, index: usize) {
        let Some(lane) = pass.lanes.get_mut(index) else { return };
        let now = pass.now;
        if lane.open.is_some() && lane.room() < LEAST_ROOM {
            // Segments of one batch have equal sizes: a few bytes of padding let the next packet join this one.
            lane.pad_to(lane.segment);
        }
        let Some(size) = self.seal_lane(lane, now) else { return };
        pass.sealed += 1;
        pass.sealed_bytes += size;
        if let Some(view) = pass.views.get_mut(index)
            && let Some(path) = self.paths.get_mut(view.id)
        {
            // Window, pacer and anti-amplification limit all paid for what went into flight. A packet that did not is small.
            view.send_allowance =
                view.send_allowance.saturating_sub(path.sent.in_flight().saturating_sub(view.in_flight));
            view.in_flight = path.sent.in_flight();
            view.backlog = path.backlog(now);
        }
        let full = size == lane.segment && lane.takes_more(self.config.segments);
        if !full {
            self.flush(pass, index);
        }
    }

    /// Seals the open packet of `lane`: encrypts it, and records it with its path. Returns its size in bytes.
    pub(super) fn seal_lane(&mut self, lane: &mut Lane, now: Instant) -> Option<usize> {
        let (open, size) = self.encrypt(lane, now)?;
        let eliciting = open.elicits == Elicits::Acknowledgement;
        let path = self.paths.get_mut(lane.path)?;
        if eliciting {
            path.active_at = now;
        }
        path.counters.bytes_sent += size as u64;
        path.counters.datagrams_sent += 1;
        path.route.amplification.on_sent(size);
        let class = match open.elicits {
            Elicits::Acknowledgement if lane.purpose == Purpose::SizeProbe => PacketClass::InFlight,
            Elicits::Acknowledgement if lane.purpose == Purpose::LivenessProbe => PacketClass::Asking,
            Elicits::Acknowledgement => PacketClass::AckEliciting,
            Elicits::Nothing if open.padded => PacketClass::InFlight,
            Elicits::Nothing => PacketClass::AckOnly,
        };
        if path.sent.lacks_memory()
            && let Some(records) = self.spares.take_records()
        {
            path.sent.lend(records);
        }
        record(
            path,
            SentPacket {
                receipts: open.receipts,
                ecn: lane.ecn,
                ..SentPacket::new(open.number, now, size, class)
            },
        );
        if path.sent.is_overgrown(|| path.route.window(), now) {
            self.take_back(lane.path, |sent| sent.shed(now), now);
        }
        if eliciting && !self.activity.sent_since {
            // RFC 9000 §10.1: the first ack-eliciting packet since input restarts the idle timer.
            self.activity.sent_since = true;
            self.activity.last = now;
        }
        Some(size)
    }

    /// Encrypts the open packet of `lane`, which tracers see before. Returns it, and its size in bytes.
    #[inline]
    pub(super) fn encrypt(&mut self, lane: &mut Lane, now: Instant) -> Option<(OpenPacket, usize)> {
        let open = lane.finish()?;
        let (start, number, layout) = (open.start, open.number, open.layout);
        let level = if layout.length_offset.is_some() { Level::ZeroRtt } else { Level::OneRtt };
        if !self.may_seal(level) {
            // RFC 9001 §6.6: worn-out keys seal nothing more, and nothing leaves in the clear.
            lane.open = None;
            lane.bytes.truncate(start);
            return None;
        }
        self.grease(lane.bytes.get_mut(start..).unwrap_or_default());
        if let Some(tracer) = &mut self.tracer {
            let payload = lane.bytes.get(layout.payload_offset()..).unwrap_or_default();
            let packet = TracedPacket {
                level,
                path: lane.path,
                number,
                bytes: lane.bytes.len() - start + TAG,
                payload: Payload(payload),
            };
            tracer.record(now, &TraceEvent::PacketSent(packet));
        }
        self.seal_packet(lane, start, &layout, number);
        lane.segments += 1;
        let size = lane.bytes.len() - start;
        lane.open.take().map(|open| (open, size))
    }

    fn may_seal(&self, level: Level) -> bool {
        match level {
            Level::ZeroRtt => self.early_data.seal.is_some(),
            _ => self.keys.as_ref().is_some_and(|keys| !keys.is_spent()),
        }
    }

    /// Seals the packet that starts at `start` and ends the bytes of `lane`.
    fn seal_packet(&mut self, lane: &mut Lane, start: usize, layout: &HeaderLayout, number: u64) {
        if layout.length_offset.is_none() {
            if let Some(keys) = self.keys.as_mut() {
                keys.seal(&mut lane.bytes, start, layout, lane.path, number);
            }
        } else if let Some(key) = &self.early_data.seal {
            patch_length(&mut lane.bytes, layout, start, TAG);
            key.seal(&mut lane.bytes, start, layout, lane.path, number);
        }
    }

    /// Hands the sealed datagrams of path `index` to the outbox.
    pub(super) fn flush(&mut self, pass: &mut Pass, index: usize) {
        let Some(lane) = pass.lanes.get_mut(index) else { return };
        let done = std::mem::replace(lane, Lane::new(lane.path, lane.segment));
        self.dispatch_lane(done);
    }

    /// Queues the datagrams of `lane`, all sealed.
    pub(super) fn dispatch_lane(&mut self, lane: Lane) {
        let Some(path) = self.paths.get(lane.path) else { return };
        if lane.bytes.is_empty() {
            return;
        }
        let transmit = Transmit {
            local: path.route.tuple.local,
            remote: path.route.tuple.remote,
            ecn: lane.ecn,
            dscp: path.dscp,
            segment: (lane.segments > 1).then_some(lane.segment),
            bytes: lane.bytes,
        };
        let largest = path.route.datagram_size;
        self.queue(transmit, largest);
    }

    pub(super) fn complete_pass(&mut self, mut pass: Pass) {
        for index in 0..pass.lanes.len() {
            self.seal(&mut pass, index);
            self.flush(&mut pass, index);
        }
        let exhausted = !self.streams.has_sendable() && self.control.is_empty();
        for view in &pass.views {
            let Some(path) = self.paths.get_mut(view.id) else { continue };
            path.route.on_pass(view.send_allowance, path.sent.next_unused());
            if exhausted && view.send_allowance >= view.datagram_size {
                path.route.rate.on_app_limited(path.sent.in_flight());
            }
        }
    }
}

/// Tells everything that counts what the path sends.
#[inline]
pub(super) fn record(path: &mut Path, mut packet: SentPacket) {
    let (now, bytes) = (packet.sent_at, packet.bytes);
    path.route.ecn.on_sent(packet.ecn);
    path.route.mtu.on_sent(bytes);
    if packet.class.in_flight() {
        packet.delivery = path.route.rate.on_sent(now, path.sent.in_flight());
        path.route.pacer.on_sent(bytes, now);
        let rate = path.rate();
        path.route.backlog.on_sent(now, bytes, rate);
        let in_flight = path.sent.in_flight() + bytes;
        let app_limited = packet.delivery.app_limited;
        path.route.controller.on_sent(&Sending { now, bytes, in_flight, app_limited });
    }
    path.sent.on_sent(packet);
}

/// Returns the policies' name for the content of the frame.
pub(super) fn content_of(frame: &Frame) -> Content {
    match frame {
        Frame::Ack(ack) => Content::Acknowledgement { of: ack.path.unwrap_or(crate::PathId::ZERO) },
        Frame::Crypto(_) => Content::Handshake,
        Frame::Stream(stream) => Content::Stream { id: stream.id.0 },
        Frame::Datagram(_) => Content::Datagram,
        _ => Content::Control,
    }
}
