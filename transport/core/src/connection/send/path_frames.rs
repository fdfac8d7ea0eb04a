//! Frames that belong to one path and are never offered to the policy: challenges, responses and probes.

use crate::PathId;
use crate::connection::Role;
use crate::connection::Transmit;
use crate::connection::frame_owners::frame_owners;
use crate::connection::send::Sender;
use crate::connection::send::packet_builder::PacketStart;
use crate::connection::send::packet_builder::{DatagramPurpose, PacketBuilder};
use crate::connection::send::transmission_round::TransmissionRound;
use crate::four_tuple::FourTuple;
use crate::path::liveness::ProbesDue;
use crate::path::path::Path;
use crate::path::route::MINIMUM_DATAGRAM;
use crate::recovery::ecn::Ecn;
use crate::recovery::sent_packet::PacketClass;
use crate::recovery::sent_packet::SentPacket;
use crate::recovery_token::RecoveryToken;
use crate::time::Instant;
use crate::wire::frame::Frame;

/// Bytes of a packet with a challenge and a response at most: less need not be tried.
pub(in crate::connection) const LEAST_PROBE: usize = 64;

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

impl Sender<'_> {
    /// Queues the challenges and responses that are due, each in a datagram of its path (RFC 9000 §8.2).
    pub(in crate::connection) fn send_path_frames(&mut self, now: Instant) {
        if !self.paths.open().any(|path| path.owes_validation(now)) {
            return;
        }
        for id in self.paths.ids() {
            // quinn answers only the later of two challenges that arrive together: that is the one over the address in use.
            self.send_elsewhere(id, now);
            while self.send_one_validation(id, now) {}
        }
    }

    /// Puts off the first challenge of a path whose narrow channel this endpoint's other connections have filled: two datagrams of
    /// padding each way would be in the way of their data, and of those that open a path, too. It waits beside a path that
    /// answers alone.
    fn waits_to_open(&mut self, id: PathId, now: Instant) -> bool {
        let answers = |other: &Path| other.route.validation.is_validated() && !other.liveness.is_silent();
        let is_needed = !self.paths.open().any(|other| other.id != id && answers(other));
        let path = self.paths.get_mut(id).expect("the path is open");
        let wait = path.opening_wait().filter(|_| self.role == Role::Client && !is_needed);
        wait.is_some_and(|wait| path.route.validation.put_off(wait, now))
    }

    /// One datagram with what path `id` owes for validation; false if it owes nothing or may not send.
    fn send_one_validation(&mut self, id: PathId, now: Instant) -> bool {
        if self.paths.remote_ids.current(id).is_none() {
            return false;
        }
        if self.waits_to_open(id, now) {
            return false;
        }
        let answers_with_ping = self.role == Role::Client;
        let path = self.paths.get_mut(id).expect("the path is open");
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
        let widen = response.is_none() && challenge.is_none() && path.take_opening_datagram();
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
        // Without a connection ID of the peer for the path it waits for one.
        let (Some(start), Some(path)) = (self.next_packet(id), self.paths.get(id)) else { return false };
        let mut builder = PacketBuilder::new(id, path.route.datagram_size);
        builder.start(&start);
        for frame in frames {
            let bytes = builder.put(frame, None);
            self.observer.count_sent(id, frame.kind(), bytes);
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
        //# An endpoint MUST expand datagrams that contain a PATH_RESPONSE frame to at least the smallest
        //# allowed maximum datagram size of 1200 bytes
        builder.pad_to(size);
        if self.seal_packet_of(&mut builder, now).is_none() {
            return false;
        }
        self.queue_datagrams(builder);
        true
    }

    /// Sends the probes of paths whose probe timeout fired, regardless of the congestion window (RFC 9002 §7.5).
    pub(in crate::connection) fn send_probes(&mut self, round: &mut TransmissionRound) {
        for index in 0..round.views.len() {
            let view = round.views.get(index);
            let Some(path) = view.and_then(|view| self.paths.get_mut(view.id)) else { continue };
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
                self.probe(round, index, *filling);
            }
        }
    }

    /// One probe: PING, and on the only path whatever data waits, so that a lost tail costs one round trip only. Only the
    /// first of a probe timeout is filled: if the path swallows large datagrams, the second gets an answer (RFC 8899 §4.3).
    fn probe(&mut self, round: &mut TransmissionRound, index: usize, filling: Filling) {
        if self.prepare(round, index, 1) == 0 {
            return;
        }
        //= https://www.rfc-editor.org/rfc/rfc9002#section-6.2.4
        //# All probe packets sent on a PTO MUST be ack-eliciting.
        // An answer to a probe is wanted at once, whatever was asked for (draft-ietf-quic-ack-frequency-14 §5).
        let frame = if self.control.ack_frequencies.may_ask(self.peer.parameters()) {
            Frame::ImmediateAck
        } else {
            Frame::Ping
        };
        self.put(round, index, &frame, None);
        if filling != Filling::Nothing {
            self.report_in_probe(round, index);
        }
        if filling != Filling::Nothing && self.paths.are_silent_everywhere() {
            self.repeat_control(round, index);
        }
        if filling == Filling::Whatever && round.views.len() == 1 {
            self.fill_probe(round, index);
        }
        if filling == Filling::Little
            && let Some(builder) = round.builders.get_mut(index)
            && self.paths.get(builder.path).is_some_and(|path| path.liveness.is_silent())
        {
            builder.purpose = DatagramPurpose::LivenessProbe;
        }
        self.seal(round, index);
        if let Some(builder) = round.builders.get_mut(index) {
            builder.purpose = DatagramPurpose::Content;
        }
    }

    /// Repeats, with the probe of a path that does not answer, its frames about paths and connection IDs (RFC 9002
    /// §6.2.4): without them the peer may be unable to answer.
    fn repeat_control(&mut self, round: &mut TransmissionRound, index: usize) {
        let path = round.views.get(index).and_then(|view| self.paths.get(view.id));
        // Those of the oldest packets and those of the latest: the peer may lack either.
        let unanswered = path.into_iter().flat_map(|path| path.sent.unacknowledged());
        let unanswered = unanswered.flat_map(|packet| &packet.tokens);
        let of_data = |token: &RecoveryToken| {
            matches!(
                token,
                RecoveryToken::Stream { .. } | RecoveryToken::Ack { .. } | RecoveryToken::Datagram(_)
            )
        };
        let tokens: Vec<RecoveryToken> = unanswered.filter(|token| !of_data(token)).cloned().collect();
        for token in &tokens {
            self.paths.on_lost(token);
        }
        self.collect_control(round.now);
        let mut waiting = Vec::new();
        while let Some(control) = self.control.pop() {
            if control.frame.encoded_size() <= round.builders.get(index).map_or(0, PacketBuilder::room) {
                self.put(round, index, &control.frame, control.token);
            } else {
                waiting.push(control);
            }
        }
        self.control.put_back(waiting.into_iter());
    }

    fn fill_probe(&mut self, round: &mut TransmissionRound, index: usize) {
        while let Some(key) = self.streams.next_sendable(None)
            && let Some(builder) = round.builders.get(index)
            && let Some(stream) = self.streams.take(key.id, builder.room(), builder.room(), builder.path)
        {
            let token = RecoveryToken::from(&stream);
            self.put(round, index, &Frame::Stream(stream), Some(token));
        }
    }

    /// Sends the challenges and responses that path `id` owes to addresses beside the one in use.
    fn send_elsewhere(&mut self, id: PathId, now: Instant) {
        let tuples = self.paths.get(id).map(|path| path.elsewhere.tuples()).unwrap_or_default();
        for tuple in tuples {
            while self.send_probe_to(id, tuple, now) {}
        }
    }

    fn send_probe_to(&mut self, id: PathId, tuple: FourTuple, now: Instant) -> bool {
        // The peer may have had the connection ID retired; `renew_destination` lends another.
        let Some(destination) = self.paths.destination(id, tuple) else { return false };
        let candidate = self.paths.get_mut(id).and_then(|path| path.elsewhere.get_mut(tuple));
        let candidate = candidate.expect("an address with a destination is one of the path's");
        let allowance = candidate.amplification.allowance();
        if allowance < LEAST_PROBE {
            return false;
        }
        let response = candidate.validation.next_response().map(Frame::PathResponse);
        let challenge = candidate.validation.next_challenge(now, self.rng.get()).map(Frame::PathChallenge);
        if challenge.is_some() && allowance < MINIMUM_DATAGRAM {
            candidate.validation.on_cut();
        }
        if response.is_none() && challenge.is_none() {
            return false;
        }
        // The path itself may have no connection ID left, nor then a next packet.
        let Some(start) = self.next_packet(id) else { return false };
        let mut builder = PacketBuilder::new(id, MINIMUM_DATAGRAM);
        builder.start(&PacketStart { destination, ..start });
        for frame in response.iter().chain(&challenge) {
            let bytes = builder.put(frame, None);
            self.observer.count_sent(id, frame.kind(), bytes);
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
        //# However, an endpoint MUST NOT expand the datagram containing the PATH_RESPONSE if the resulting
        //# data exceeds the anti-amplification limit
        // RFC 9000 §8.2.1, §8.2.2: expanded, as far as the address may be sent that much.
        builder.pad_to(MINIMUM_DATAGRAM.min(allowance));
        self.send_probe(builder, tuple, now)
    }

    /// Seals the probe in `builder` and queues it for `tuple`. It is no part of what the path has in flight: that it is
    /// lost tells nothing about the address in use, and challenges are repeated by a timer of their own.
    fn send_probe(&mut self, mut builder: PacketBuilder, tuple: FourTuple, now: Instant) -> bool {
        // RFC 9001 §6.6: worn-out keys seal nothing more.
        let Some((open, size)) = self.encrypt(&mut builder, now) else { return false };
        let path = self.paths.get_mut(builder.path).expect("the address is one of an open path");
        let dscp = path.dscp();
        path.count_sent(size);
        path.sent.on_sent(SentPacket::new(open.number, now, size, PacketClass::AckOnly));
        if let Some(candidate) = path.elsewhere.get_mut(tuple) {
            candidate.amplification.on_sent(size);
        }
        if path.sent.is_overgrown(|| path.route.window(), now) {
            frame_owners!(self).resend(builder.path, |sent| sent.shed(now), now);
        }
        self.queue.push(Transmit {
            dscp,
            local: tuple.local,
            remote: tuple.remote,
            ecn: Ecn::NotEct,
            bytes: builder.bytes,
            segment: None,
        });
        true
    }
}
