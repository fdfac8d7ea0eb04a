//! Initial and Handshake packets: the datagrams of the first round trips.

use crate::PathId;
use crate::connection::handshake::discard_space;
use crate::connection::send::Sender;
use crate::connection::{Role, Transmit};
use crate::handshake::space::HandshakeSpace;
use crate::path::route::MINIMUM_DATAGRAM;
use crate::recovery::ecn::Ecn;
use crate::recovery::sent_packet::{PacketClass, SentPacket};
use crate::recovery_token::RecoveryTokens;
use crate::time::Instant;
use crate::trace::{Payload, TraceEvent, TracedPacket};
use crate::wire::frame::Frame;
use crate::wire::header::{HeaderLayout, LongHeader, LongKind, patch_length};
use crate::wire::level::Level;
use crate::wire::overhead::TAG;
use crate::wire::packet_number;

/// Less is not worth a datagram before the client's address is validated.
pub(in crate::connection) const LEAST_LONG: usize = 64;

/// A long-header packet that still takes frames.
struct EarlyPacket {
    level: Level,
    start: usize,
    layout: HeaderLayout,
    number: u64,
    tokens: RecoveryTokens,
    ecn: Ecn,
    eliciting: bool,
    may_carry: MayCarry,
    /// Names and sizes of its frames.
    frames: Vec<(&'static str, usize)>,
}

/// The content that the congestion window lets an Initial or Handshake packet carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MayCarry {
    /// All there is.
    Everything,
    /// Frames that are not congestion controlled (RFC 9002 §2).
    Acknowledgement,
}

impl EarlyPacket {
    fn put(&mut self, frame: &Frame, bytes: &mut Vec<u8>) {
        let before = bytes.len();
        frame.put(bytes);
        self.frames.push((frame.kind(), bytes.len() - before));
        self.eliciting |= frame.is_ack_eliciting();
    }
}

impl Sender<'_> {
    /// Queues one datagram of Initial and Handshake packets; false if nothing wants to be sent or may be.
    pub(in crate::connection) fn send_long(&mut self, now: Instant) -> bool {
        let allowance = self.long_allowance();
        if allowance < LEAST_LONG {
            return false;
        }
        if self.handshake.spaces().next().is_none() {
            return false;
        }
        let size = MINIMUM_DATAGRAM.min(allowance);
        let mut bytes = Vec::with_capacity(MINIMUM_DATAGRAM);
        let mut packets = Vec::new();
        //= https://www.rfc-editor.org/rfc/rfc9000#section-12.2
        //= type=implication
        //= reason=The packets of one datagram are written with one pair of connection IDs.
        //# Senders MUST NOT coalesce QUIC packets with different connection IDs into a single UDP datagram
        for level in [Level::Initial, Level::Handshake] {
            if let Some(packet) = self.write_long(level, &mut bytes, size, now) {
                packets.push(packet);
                bytes.extend_from_slice(&[0; TAG]);
            }
        }
        self.seal_long(packets, bytes, size, now)
    }

    fn long_allowance(&mut self) -> usize {
        let role = self.role;
        match self.paths.get_mut(PathId::ZERO) {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1
            //# Prior to validating the client address, servers MUST NOT send more than three times as many
            //# bytes as the number of bytes they have received
            //= https://www.rfc-editor.org/rfc/rfc9000#section-14.1
            //# The server MUST also limit the number of bytes it sends before validating the address of the
            //# client; see Section 8.
            Some(path) if role == Role::Server => path.route.amplification.allowance(),
            Some(_) => MINIMUM_DATAGRAM,
            None => 0,
        }
    }

    fn write_long(
        &mut self,
        level: Level,
        bytes: &mut Vec<u8>,
        size: usize,
        now: Instant,
    ) -> Option<EarlyPacket> {
        let ids = (self.handshake.ids.remote(), self.handshake.ids.local);
        let version = self.handshake.version();
        let token = self.handshake.token().clone();
        let in_flight = self.handshake.in_flight();
        let has_room = self
            .paths
            .get(PathId::ZERO)
            .is_some_and(|path| in_flight + path.sent.in_flight() + size <= path.route.controller.window());
        let rng = self.rng.get();
        let space = self.handshake.space(level).filter(|space| space.wants_to_send(now))?;
        //= https://www.rfc-editor.org/rfc/rfc9002#section-7
        //# An endpoint MUST NOT send a packet if it would cause bytes_in_flight (see Appendix B.2) to be larger
        //# than the congestion window, unless the packet is sent on a PTO timer expiration
        let may_carry = match has_room || space.is_probed() {
            true => MayCarry::Everything,
            false if space.received.ack_due(now) => MayCarry::Acknowledgement,
            false => return None,
        };
        let start = bytes.len();
        if start + 100 > size {
            return None;
        }
        let number = space.sent.next_number(rng);
        let length = packet_number::length(number, space.sent.largest_acknowledged());
        let (kind, token) = match level {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.2
            //# Initial packets sent by the server MUST set the Token Length field to 0; clients that receive
            //# an Initial packet with a non-zero Token Length field MUST either discard the packet or
            //# generate a
            Level::Initial => (LongKind::Initial, token.as_ref()),
            _ => (LongKind::Handshake, &[] as &[u8]),
        };
        let header = LongHeader { kind, version, destination: ids.0, source: ids.1, token };
        let layout = header.put(bytes, number, length);
        let mut packet = EarlyPacket {
            level,
            start,
            layout,
            number,
            tokens: RecoveryTokens::new(),
            ecn: Ecn::NotEct,
            eliciting: false,
            may_carry,
            frames: Vec::new(),
        };
        write_early_frames(space, &mut packet, bytes, size, now);
        if bytes.len() == packet.layout.number_offset + packet.layout.number_length {
            bytes.truncate(start);
            return None;
        }
        Some(packet)
    }

    fn seal_long(
        &mut self,
        packets: Vec<EarlyPacket>,
        mut plain: Vec<u8>,
        size: usize,
        now: Instant,
    ) -> bool {
        if packets.is_empty() {
            return false;
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1
        //# Clients MUST ensure that UDP datagrams containing Initial packets have UDP payloads of at least
        //# 1200 bytes, adding PADDING frames as necessary
        //= https://www.rfc-editor.org/rfc/rfc9000#section-14.1
        //# A client MUST expand the payload of all UDP datagrams carrying Initial packets to at least the
        //# smallest allowed maximum datagram size of 1200 bytes by adding PADDING frames to the Initial
        //# packet or
        //= https://www.rfc-editor.org/rfc/rfc9000#section-14.1
        //# Similarly, a server MUST expand the payload of all UDP datagrams carrying ack-eliciting Initial
        //# packets to at least the smallest allowed maximum datagram size of 1200 bytes.
        //= https://www.rfc-editor.org/rfc/rfc9001#section-9.3
        //# First, the packet containing a ClientHello MUST be padded to a minimum size
        // The tags were only reserved: each packet is sealed from its own slice, and all are put together again.
        // RFC 9000 §14.1: a client pads every datagram with an Initial, a server those whose Initial elicits an ACK.
        let pads = packets
            .iter()
            .any(|packet| packet.level == Level::Initial && (self.role == Role::Client || packet.eliciting));
        if pads && plain.len() < size {
            plain.resize(size, 0);
        }
        let ecn = self.paths.get(PathId::ZERO).map_or(Ecn::NotEct, |path| path.route.ecn.marking());
        let mut datagram = Vec::with_capacity(plain.len());
        let mut ends: Vec<usize> = packets.iter().skip(1).map(|packet| packet.start).collect();
        ends.push(plain.len());
        for (mut packet, end) in packets.into_iter().zip(ends) {
            packet.ecn = ecn;
            let body = plain.get(packet.start..end - TAG).unwrap_or_default().to_vec();
            self.seal_one_long(packet, body, &mut datagram, now);
        }
        if let Some(path) = self.paths.get_mut(PathId::ZERO) {
            path.count_sent(datagram.len());
            path.route.amplification.on_sent(datagram.len());
            path.route.ecn.on_sent(ecn);
            let transmit = Transmit {
                local: path.route.tuple.local,
                remote: path.route.tuple.remote,
                ecn,
                dscp: path.dscp(),
                bytes: datagram,
                segment: None,
            };
            self.queue.join(transmit, MINIMUM_DATAGRAM, self.config.segments);
        }
        true
    }

    fn seal_one_long(
        &mut self,
        packet: EarlyPacket,
        mut body: Vec<u8>,
        datagram: &mut Vec<u8>,
        now: Instant,
    ) {
        let layout = HeaderLayout {
            length_offset: packet.layout.length_offset.map(|offset| offset - packet.start),
            number_offset: packet.layout.number_offset - packet.start,
            number_length: packet.layout.number_length,
        };
        let least = layout.number_offset + 4;
        if body.len() < least {
            body.resize(least, 0);
        }
        patch_length(&mut body, &layout, 0, TAG);
        self.grease(&mut body);
        self.trace_long(&packet, &layout, &body, now);
        // A bare acknowledgement is acknowledged with what follows it, and long gone from the path until then.
        let in_flight = if self.handshake.awaits_acknowledgement() { self.handshake.in_flight() } else { 0 };
        let Some(space) = self.handshake.space(packet.level) else { return };
        let Some(key) = space.sealer() else { return };
        key.seal(&mut body, 0, &layout, PathId::ZERO, packet.number);
        let class = if packet.eliciting { PacketClass::AckEliciting } else { PacketClass::InFlight };
        let path = self.paths.get_mut(PathId::ZERO).filter(|_| packet.eliciting);
        let delivery =
            path.map(|path| path.route.rate.on_handshake_sent(now, in_flight + path.sent.in_flight()));
        let sent = SentPacket {
            tokens: packet.tokens,
            ecn: packet.ecn,
            delivery: delivery.unwrap_or_default(),
            ..SentPacket::new(packet.number, now, body.len(), class)
        };
        space.on_sent(sent);
        for (kind, size) in &packet.frames {
            self.observer.count_sent(PathId::ZERO, kind, *size);
        }
        datagram.extend_from_slice(&body);
        if packet.level == Level::Handshake && self.role == Role::Client {
            //= https://www.rfc-editor.org/rfc/rfc9001#section-4.9.1
            //# Thus, a client MUST discard Initial keys when it first sends a Handshake packet and a server
            //# MUST discard Initial keys when it first successfully processes a Handshake packet
            // RFC 9001 §4.9.1: a client is done with Initial keys once it sends a Handshake packet.
            discard_space(self.handshake, self.paths, Level::Initial);
        }
    }

    /// Tells the tracer of a packet whose `body` is written and not sealed.
    fn trace_long(&mut self, packet: &EarlyPacket, layout: &HeaderLayout, body: &[u8], now: Instant) {
        let Some(tracer) = self.observer.tracer() else { return };
        for (kind, bytes) in &packet.frames {
            tracer.record(now, &TraceEvent::FrameSent { path: PathId::ZERO, kind, bytes: *bytes });
        }
        let traced = TracedPacket {
            level: packet.level,
            path: PathId::ZERO,
            number: packet.number,
            bytes: body.len() + TAG,
            payload: Payload(body.get(layout.payload_offset()..).unwrap_or_default()),
        };
        tracer.record(now, &TraceEvent::PacketSent(traced));
    }
}

fn write_early_frames(
    space: &mut HandshakeSpace,
    packet: &mut EarlyPacket,
    bytes: &mut Vec<u8>,
    size: usize,
    now: Instant,
) {
    //= https://www.rfc-editor.org/rfc/rfc9000#section-12.5
    //= type=implication
    //= reason=Initial and Handshake packets are filled here with PING, ACK and CRYPTO frames, and in close.rs
    //= reason=with CONNECTION_CLOSE.
    //# All other frame types MUST only be sent in the application data packet number space.
    let room = |bytes: &Vec<u8>| size.saturating_sub(bytes.len() + TAG);
    if space.received.pending() || space.received.ack_due(now) {
        let exponent = crate::connection::send::acknowledge::ACK_DELAY_EXPONENT;
        if let Some(frame) = space.received.build(now, exponent, room(bytes).min(200), None) {
            packet.put(&frame, bytes);
        }
    }
    if packet.may_carry == MayCarry::Acknowledgement {
        return;
    }
    let is_probe = space.take_probe();
    while let Some((frame, token)) = space.crypto.next_frame(room(bytes)) {
        packet.put(&frame, bytes);
        packet.tokens.push(token);
    }
    if is_probe && !packet.eliciting && room(bytes) > 0 {
        packet.put(&Frame::Ping, bytes);
    }
}
