//! The packets that say that a connection closes (RFC 9000 §10.2.1, §10.2.3).

use crate::PathId;
use crate::connection::send::Sender;
use crate::connection::send::packet_builder::{PacketBuilder, PacketForm, PacketStart};
use crate::connection::{Role, Transmit};
use crate::error::ErrorCode;
use crate::path::route::{FourTuple, MINIMUM_DATAGRAM};
use crate::recovery::ecn::Ecn;
use crate::time::Instant;
use crate::trace::{Payload, TraceEvent, TracedPacket};
use crate::wire::frame::{ConnectionClose, Frame};
use crate::wire::header::{LongHeader, LongKind, patch_length};
use crate::wire::level::Level;
use crate::wire::overhead::TAG;
use bytes::Bytes;

impl Sender<'_> {
    /// Queues CONNECTION_CLOSE, at every level whose keys the peer may have, if it is due.
    pub(in crate::connection) fn send_close(&mut self, now: Instant) {
        let trip = self.paths.shortest_round_trip();
        let Some(frame) = self.closing.as_mut().and_then(|closing| closing.take_due(now + trip)) else {
            return;
        };
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.3
        //# After the handshake is confirmed (see Section 4.1.2 of [QUIC-TLS]), an endpoint MUST send any
        //# CONNECTION_CLOSE frames in a 1-RTT packet
        if self.keys.are_installed() && !self.handshake.has_handshake_space() {
            return self.send_short_close(frame, now);
        }
        let mut datagram = Vec::new();
        let around = self.handshake.ids.overhead();
        for level in [Level::Initial, Level::Handshake] {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-12.5
            //# CONNECTION_CLOSE frames signaling application errors (type 0x1d) MUST only appear in the
            //# application data packet number space.
            let close = Frame::ConnectionClose(hidden(&frame));
            if datagram.len() + close.encoded_size() + around > MINIMUM_DATAGRAM {
                self.send_closes(std::mem::take(&mut datagram), Ecn::NotEct);
            }
            self.append_long_close(&mut datagram, level, &close, now);
        }
        let short = if self.keys.are_installed() { self.short_close(frame, now) } else { None };
        match short {
            // One datagram says it in all packets that the peer may have keys for (RFC 9000 §10.2.3, §12.2).
            Some(builder) if self.may_follow(&datagram, &builder) => {
                datagram.extend_from_slice(&builder.bytes);
                self.send_closes(datagram, builder.ecn);
            }
            short => {
                self.send_closes(datagram, Ecn::NotEct);
                short.into_iter().for_each(|builder| self.queue_datagrams(builder));
            }
        }
    }

    fn send_short_close(&mut self, frame: ConnectionClose, now: Instant) {
        if let Some(builder) = self.short_close(frame, now) {
            self.queue_datagrams(builder);
        }
    }

    /// A sealed 1-RTT packet that says so, on the path that most likely delivers it.
    fn short_close(&mut self, frame: ConnectionClose, now: Instant) -> Option<PacketBuilder> {
        let id = self.paths.best_for_close()?;
        let destination = self.paths.remote_ids.current(id)?;
        let phase = self.keys.current().map(|keys| keys.phase())?;
        let path = self.paths.get_mut(id)?;
        let start = PacketStart {
            number: path.sent.next_number(self.rng.get()),
            largest_acknowledged: path.sent.largest_acknowledged(),
            destination,
            form: PacketForm::OneRtt { phase, spin: path.spin() },
            marking: path.route.ecn.marking(),
        };
        let allowance = path.route.amplification.allowance();
        let mut builder = PacketBuilder::new(id, path.route.datagram_size);
        builder.start(&start);
        builder.put(&Frame::ConnectionClose(frame), None);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.1
        //# An endpoint in the closing state MUST either discard packets received from an unvalidated address
        //# or limit the cumulative size of packets it sends to an unvalidated address to three times the size
        //# of
        // RFC 9000 §8.1, §10.2.1: a close goes to an unproven address within the limit only.
        if builder.bytes.len() + TAG > allowance {
            return None;
        }
        self.seal_packet_of(&mut builder, now).map(|_| builder)
    }

    /// Returns true if the packet of `builder` may follow those of the handshake in `datagram`.
    fn may_follow(&self, datagram: &[u8], builder: &PacketBuilder) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-12.2
        //= type=implication
        //= reason=A packet with another connection ID gets a datagram of its own.
        //# Senders MUST NOT coalesce QUIC packets with different connection IDs into a single UDP datagram
        builder.path == PathId::ZERO
            && datagram.len() + builder.bytes.len() <= MINIMUM_DATAGRAM
            && self.paths.remote_ids.current(builder.path) == Some(self.handshake.ids.remote())
    }

    /// Adds a packet of `level` that says so to `datagram`, if there are keys and the address may be sent so much.
    fn append_long_close(&mut self, datagram: &mut Vec<u8>, level: Level, close: &Frame, now: Instant) {
        let ids = (self.handshake.ids.remote(), self.handshake.ids.local);
        let (version, role) = (self.handshake.version(), self.role);
        let token = self.handshake.token().clone();
        // Path 0 may be abandoned before the handshake is confirmed.
        let path = self.paths.get(PathId::ZERO);
        if path.is_none_or(|path| path.route.amplification.allowance() < MINIMUM_DATAGRAM) {
            return;
        }
        // RFC 9001 §4.9: keys of a level are not made yet, or discarded.
        let Some(space) = self.handshake.space(level).filter(|space| space.has_keys()) else { return };
        let number = space.sent.next_number(self.rng.get());
        let (kind, token) = match level {
            Level::Initial => (LongKind::Initial, token.as_ref()),
            _ => (LongKind::Handshake, &[] as &[u8]),
        };
        let header = LongHeader { kind, version, destination: ids.0, source: ids.1, token };
        let start = datagram.len();
        let layout = header.put(datagram, number, 4);
        close.put(datagram);
        if role == Role::Client && level == Level::Initial {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-14.1
            //# A client MUST expand the payload of all UDP datagrams carrying Initial packets to at least the
            //# smallest allowed maximum datagram size of 1200 bytes by adding PADDING frames to the Initial
            //# packet or
            datagram.resize(datagram.len().max(MINIMUM_DATAGRAM - TAG), 0);
        }
        patch_length(datagram, &layout, start, TAG);
        if let Some(tracer) = self.observer.tracer() {
            let packet = TracedPacket {
                level,
                path: PathId::ZERO,
                number,
                bytes: datagram.len() - start + TAG,
                payload: Payload(datagram.get(layout.payload_offset()..).unwrap_or_default()),
            };
            tracer.record(now, &TraceEvent::PacketSent(packet));
        }
        let Some(key) = space.sealer() else { return datagram.truncate(start) };
        key.seal(datagram, start, &layout, PathId::ZERO, number);
        if let Some(path) = self.paths.get_mut(PathId::ZERO) {
            path.route.amplification.on_sent(datagram.len() - start);
        }
    }

    /// Queues a datagram of sealed packets for the address of the handshake.
    fn send_closes(&mut self, bytes: Vec<u8>, ecn: Ecn) {
        // There are bytes only of packets that path 0 was open for.
        let Some(path) = self.paths.get(PathId::ZERO).filter(|_| !bytes.is_empty()) else { return };
        let FourTuple { local, remote } = path.route.tuple;
        self.queue.push(Transmit { local, remote, ecn, dscp: path.dscp(), bytes, segment: None });
    }
}

/// An application's close says nothing about the application before the handshake is done (RFC 9000 §10.2.3).
fn hidden(frame: &ConnectionClose) -> ConnectionClose {
    match frame {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.3
        //# A CONNECTION_CLOSE of type 0x1d MUST be replaced by a CONNECTION_CLOSE of type 0x1c when sending
        //# the frame in Initial or Handshake packets
        ConnectionClose::Application { .. } => ConnectionClose::Transport {
            code: ErrorCode::APPLICATION_ERROR,
            frame_type: 0,
            //= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.3
            //# Endpoints MUST clear the value of the Reason Phrase field and SHOULD use the APPLICATION_ERROR
            //# code when converting to a CONNECTION_CLOSE of type 0x1c.
            reason: Bytes::new(),
        },
        transport => transport.clone(),
    }
}
