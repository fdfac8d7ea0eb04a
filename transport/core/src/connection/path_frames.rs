//! Frames that belong to one path and are never offered to the policy: challenges, responses and probes.

use crate::PathId;
use crate::connection::lane::{Lane, Purpose};
use crate::connection::pass::Pass;
use crate::connection::{Connection, Role};
use crate::delivery::Receipt;
use crate::path::liveness::ProbesDue;
use crate::path::route::MINIMUM_DATAGRAM;
use crate::time::Instant;
use crate::wire::frame::Frame;

/// Bytes of a packet with a challenge and a response at most: less need not be tried.
pub(super) const LEAST_PROBE: usize = 64;

/// The content of a probe beside the frame that asks for an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Filling {
    /// Nothing.
    Nothing,
    /// Frames that the peer may need before it can answer.
    Little,
    /// Such frames, and data if there is one path only.
    Whatever,
}

impl Connection {
    /// Queues the challenges and responses that are due, each in a datagram of its path (RFC 9000 §8.2).
    pub(super) fn send_path_frames(&mut self, now: Instant) {
        for id in self.paths.ids() {
            // quinn answers only the later of two challenges that arrive together: that is the one over the address in use.
            self.send_elsewhere(id, now);
            while self.send_one_validation(id, now) {}
        }
    }

    /// One datagram with what path `id` owes for validation; false if it owes nothing or may not send.
    fn send_one_validation(&mut self, id: PathId, now: Instant) -> bool {
        if self.paths.remote_ids.current(id).is_none() {
            return false;
        }
        let answers_with_ping = self.role == Role::Client;
        let Some(path) = self.paths.get_mut(id) else { return false };
        let allowance = path.route.amplification.allowance();
        // A datagram with a challenge is expanded to 1200 bytes, unless the peer's address is not validated and the
        // limit is lower (RFC 9000 §8.2.1).
        if allowance < LEAST_PROBE {
            return false;
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
        //# An endpoint MUST expand datagrams that contain a PATH_CHALLENGE frame to at least the smallest
        //# allowed maximum datagram size of 1200 bytes
        //= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# Each endpoint MUST also validate that a minimum QUIC packet MTU of 1200 bytes is supported on the
        //# path
        let size = MINIMUM_DATAGRAM.min(allowance);
        //= https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# If an endpoint sends a PATH_RESPONSE (Section 19.18 of [QUIC-TRANSPORT]), it MUST be sent on the
        //# same path as used by the packet that contained the PATH_CHALLENGE frame
        let response = path.route.validation.next_response();
        let challenge = path.route.validation.next_challenge(now, self.rng.get());
        if challenge.is_some() && size < MINIMUM_DATAGRAM {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
            //# To ensure that the path MTU is large enough, the endpoint MUST perform a second path
            //# validation by sending a PATH_CHALLENGE frame in a datagram of at least 1200 bytes
            path.route.validation.on_cut();
        }
        let widen = response.is_none() && challenge.is_none() && path.opening_datagrams > 0;
        if widen {
            path.opening_datagrams -= 1;
        }
        let mut frames: Vec<Frame> = Vec::new();
        frames.extend(response.map(Frame::PathResponse));
        frames.extend(challenge.map(Frame::PathChallenge));
        // RFC 9000 §9.3.3: a challenge where the path is in use is answered with a packet that does more than probe, so
        // that the path stays there whoever forwards copies from elsewhere.
        let in_use = answers_with_ping && response.is_some() && path.route.validation.is_validated();
        if widen || in_use {
            frames.push(Frame::Ping);
        }
        if frames.is_empty() {
            return false;
        }
        self.send_bound(id, &frames, size, now)
    }

    /// Queues one datagram of path `id` with `frames`, padded to `size` bytes.
    fn send_bound(&mut self, id: PathId, frames: &[Frame], size: usize, now: Instant) -> bool {
        let Some(start) = self.next_packet(id) else { return false };
        let Some(path) = self.paths.get(id) else { return false };
        let mut lane = Lane::new(id, path.route.datagram_size);
        lane.start(&start);
        for frame in frames {
            let bytes = lane.put(frame, None);
            self.counters.count_sent(id, frame.kind(), bytes);
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
        //# An endpoint MUST expand datagrams that contain a PATH_RESPONSE frame to at least the smallest
        //# allowed maximum datagram size of 1200 bytes
        lane.pad_to(size);
        if self.seal_lane(&mut lane, now).is_none() {
            return false;
        }
        self.dispatch_lane(lane);
        true
    }

    /// Sends the probes of paths whose probe timeout fired, regardless of the congestion window (RFC 9002 §7.5).
    pub(super) fn send_probes(&mut self, pass: &mut Pass) {
        for index in 0..pass.views.len() {
            let Some(id) = pass.views.get(index).map(|view| view.id) else { continue };
            let Some(path) = self.paths.get_mut(id) else { continue };
            //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.4
            //# When a PTO timer expires, a sender MUST send at least one ack- eliciting packet in the packet
            //# number space as a probe
            let probes: &[Filling] = match path.liveness.take_due() {
                ProbesDue::None => &[],
                ProbesDue::One => &[Filling::Little],
                // RFC 9002 §6.2.4: up to two.
                ProbesDue::Timeout => &[Filling::Whatever, Filling::Nothing],
            };
            for filling in probes {
                self.probe(pass, index, *filling);
            }
        }
    }

    /// One probe: PING, and on the only path whatever data waits, so that a lost tail costs one round trip only. Only the
    /// first of a probe timeout is filled: if the path swallows large datagrams, the second gets an answer (RFC 8899 §4.3).
    fn probe(&mut self, pass: &mut Pass, index: usize, filling: Filling) {
        let Some(id) = pass.views.get(index).map(|view| view.id) else { return };
        if self.prepare(pass, index, 1) == 0 {
            return;
        }
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.4
        //# All probe packets sent on a PTO MUST be ack-eliciting.
        // An answer to a probe is wanted at once, whatever was asked for (draft-ietf-quic-ack-frequency-14 §5).
        let frame = if self.may_request_acks() { Frame::ImmediateAck } else { Frame::Ping };
        self.put(pass, index, &frame, None);
        if filling != Filling::Nothing {
            self.report_in_probe(pass, index);
        }
        if filling != Filling::Nothing && self.is_silent_everywhere() {
            self.repeat_control(pass, index);
        }
        if filling == Filling::Whatever && pass.views.len() == 1 {
            self.fill_probe(pass, index);
        }
        let silent = self.paths.get(id).is_some_and(|path| path.liveness.is_silent());
        if let Some(lane) = pass.lanes.get_mut(index)
            && silent
            && filling == Filling::Little
        {
            lane.purpose = Purpose::LivenessProbe;
        }
        self.seal(pass, index);
        if let Some(lane) = pass.lanes.get_mut(index) {
            lane.purpose = Purpose::Content;
        }
    }

    /// Repeats, with the probe of a path that does not answer, its frames about paths and connection IDs (RFC 9002
    /// §6.2.4): without them the peer may be unable to answer.
    fn repeat_control(&mut self, pass: &mut Pass, index: usize) {
        let Some(path) = pass.views.get(index).and_then(|view| self.paths.get(view.id)) else { return };
        // Those of the oldest packets and those of the latest: the peer may lack either.
        let unanswered = path.sent.unacknowledged().flat_map(|packet| &packet.receipts);
        let of_data = |receipt: &Receipt| {
            matches!(receipt, Receipt::Stream { .. } | Receipt::Ack { .. } | Receipt::Datagram(_))
        };
        let receipts: Vec<Receipt> = unanswered.filter(|receipt| !of_data(receipt)).cloned().collect();
        for receipt in &receipts {
            self.paths.on_lost(receipt);
        }
        self.collect_control(pass.now);
        let mut waiting = Vec::new();
        while let Some(control) = self.control.pop() {
            if control.frame.encoded_size() <= pass.lanes.get(index).map_or(0, Lane::room) {
                self.put(pass, index, &control.frame, control.receipt);
            } else {
                waiting.push(control);
            }
        }
        self.control.put_back(waiting.into_iter());
    }

    fn fill_probe(&mut self, pass: &mut Pass, index: usize) {
        let Some(by) = pass.views.get(index).map(|view| view.id) else { return };
        while let Some(key) = self.streams.next_sendable(None) {
            let room = pass.lanes.get(index).map_or(0, Lane::room);
            let Some(stream) = self.streams.take(key.id, room, room, by) else { return };
            let receipt = Receipt::from(&stream);
            self.put(pass, index, &Frame::Stream(stream), Some(receipt));
        }
    }
}
