//! The end of a connection: closing, draining, and the packets that say so (RFC 9000 §10.2).

use crate::PathId;
use crate::connection::lifecycle::{Lifecycle, Milestone};
use crate::connection::send::packet_builder::{PacketBuilder, PacketForm, PacketStart};
use crate::connection::{Connection, Event, Role, Transmit};
use crate::error::{ConnectionError, ErrorCode, TransportError};
use crate::path::route::{FourTuple, MINIMUM_DATAGRAM};
use crate::recovery::ecn::Ecn;
use crate::time::Instant;
use crate::trace::{Payload, TraceEvent, TracedPacket};
use crate::wire::frame::{ConnectionClose, Frame};
use crate::wire::header::{LongHeader, LongKind, patch_length};
use crate::wire::level::Level;
use crate::wire::overhead::{self, TAG};
use bytes::Bytes;
use std::time::Duration;

/// Bytes of a reason that are sent at most, so that the frame fits everywhere.
const REASON_LIMIT: usize = 500;

/// The state of a closing connection: the frame, and the time at which it is due again.
#[derive(Debug)]
pub(super) struct Closing {
    frame: ConnectionClose,
    /// Datagrams that arrived since the close was last sent.
    arrived: u32,
    /// Datagrams that must arrive before it is sent again: 1, 2, 4 … (RFC 9000 §10.2.1 asks for a limited rate).
    threshold: u32,
    due: bool,
    /// Nothing that arrives before shows whether the peer has the close: it was on its way already.
    answers_from: Instant,
}

impl Closing {
    fn new(frame: ConnectionClose) -> Self {
        Self { frame, arrived: 0, threshold: 1, due: true, answers_from: Instant::ZERO }
    }

    /// A datagram of the peer arrived: it may not have seen the close.
    pub(super) fn on_datagram(&mut self, now: Instant) {
        if now < self.answers_from {
            return;
        }
        self.arrived += 1;
        if self.arrived >= self.threshold {
            self.arrived = 0;
            //= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.1
            //# To avoid being used for an amplification attack, such endpoints MUST limit the cumulative size
            //# of packets it sends to three times the cumulative size of the packets that are received and
            //# attributed
            self.threshold = self.threshold.saturating_mul(2);
            self.due = true;
        }
    }
}

impl Connection {
    /// Closes because of a violation or failure found here.
    pub(super) fn fail(&mut self, error: TransportError, now: Instant) {
        if !self.lifecycle.is_open() {
            return;
        }
        let reason = truncated(error.reason.as_bytes());
        let frame = ConnectionClose::Transport { code: error.code, frame_type: error.frame_type, reason };
        self.events.push(Event::Closed(ConnectionError::Transport(error)));
        self.start_closing(frame, now);
    }

    /// Closes because others need its slot more (RFC 9000 §20.1: the server refuses the connection).
    pub(crate) fn give_way(&mut self, now: Instant) {
        self.fail(ErrorCode::CONNECTION_REFUSED.because("too many connections from this network"), now);
    }

    /// Closes for the application, with its code and a reason for people (RFC 9000 §10.2, §19.19).
    pub fn close(&mut self, code: u64, reason: &[u8], now: Instant) {
        if !self.lifecycle.is_open() {
            return;
        }
        let code = code.min(crate::wire::varint::MAX);
        let frame = ConnectionClose::Application { code, reason: truncated(reason) };
        self.events.push(Event::Closed(ConnectionError::LocallyClosed { code }));
        self.start_closing(frame, now);
    }

    /// The shortest round trip that was seen on any path, zero before the first.
    fn shortest_round_trip(&self) -> Duration {
        let paths = self.paths.open().filter(|path| path.rtts.is_sampled());
        paths.filter_map(|path| path.rtt().min()).min().unwrap_or_default()
    }

    fn start_closing(&mut self, frame: ConnectionClose, now: Instant) {
        let until = now + self.longest_probe_timeout() * 3;
        self.lifecycle = self.lifecycle.after(Milestone::LocalClose(until));
        self.closing = Some(Box::new(Closing::new(frame)));
        self.transmits.clear();
    }

    /// The peer closed.
    pub(super) fn end_by_peer(&mut self, error: ConnectionError, now: Instant) {
        if self.lifecycle.is_open() {
            self.events.push(Event::Closed(error));
        }
        if !matches!(self.lifecycle, Lifecycle::Draining(_) | Lifecycle::Closed) {
            let until = now + self.longest_probe_timeout() * 3;
            self.lifecycle = self.lifecycle.after(Milestone::PeerClose(until));
            self.transmits.clear();
        }
    }

    /// Queues CONNECTION_CLOSE, at every level whose keys the peer may have, if it is due.
    pub(super) fn send_close(&mut self, now: Instant) {
        let trip = self.shortest_round_trip();
        let Some(closing) = self.closing.as_mut().filter(|closing| closing.due) else { return };
        closing.due = false;
        closing.answers_from = now + trip;
        let frame = closing.frame.clone();
        //= https://www.rfc-editor.org/rfc/rfc9000#section-10.2.3
        //# After the handshake is confirmed (see Section 4.1.2 of [QUIC-TLS]), an endpoint MUST send any
        //# CONNECTION_CLOSE frames in a 1-RTT packet
        if self.keys.is_some() && self.handshake.handshake.is_none() {
            return self.send_short_close(frame, now);
        }
        let mut datagram = Vec::new();
        let around = overhead::long(self.handshake_ids.remote.len(), self.handshake_ids.local.len());
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
        let short = if self.keys.is_some() { self.short_close(frame, now) } else { None };
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
        let phase = self.keys.as_ref().map(|keys| keys.phase())?;
        let path = self.paths.get_mut(id)?;
        let start = PacketStart {
            number: path.sent.next_number(self.rng.get()),
            largest_acknowledged: path.sent.largest_acknowledged(),
            destination,
            form: PacketForm::OneRtt { phase, spin: path.spin.value() },
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
            && self.paths.remote_ids.current(builder.path) == Some(self.handshake_ids.remote)
    }

    /// Adds a packet of `level` that says so to `datagram`, if there are keys and the address may be sent so much.
    fn append_long_close(&mut self, datagram: &mut Vec<u8>, level: Level, close: &Frame, now: Instant) {
        let ids = (self.handshake_ids.remote, self.handshake_ids.local);
        let (version, role) = (self.version(), self.role);
        let token = self.handshake.token.clone();
        let Some(path) = self.paths.get_mut(PathId::ZERO) else { return };
        if path.route.amplification.allowance() < MINIMUM_DATAGRAM {
            return;
        }
        let Some(space) = self.handshake.space(level) else { return };
        let Some(keys) = &space.keys else { return };
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
        if let Some(tracer) = &mut self.tracer {
            let packet = TracedPacket {
                level,
                path: PathId::ZERO,
                number,
                bytes: datagram.len() - start + TAG,
                payload: Payload(datagram.get(layout.payload_offset()..).unwrap_or_default()),
            };
            tracer.record(now, &TraceEvent::PacketSent(packet));
        }
        keys.seal.seal(datagram, start, &layout, PathId::ZERO, number);
        if let Some(path) = self.paths.get_mut(PathId::ZERO) {
            path.route.amplification.on_sent(datagram.len() - start);
        }
    }

    /// Queues a datagram of sealed packets for the address of the handshake.
    fn send_closes(&mut self, bytes: Vec<u8>, ecn: Ecn) {
        let Some(path) = self.paths.get(PathId::ZERO).filter(|_| !bytes.is_empty()) else { return };
        let FourTuple { local, remote } = path.route.tuple;
        self.transmits.push_back(Transmit { local, remote, ecn, dscp: path.dscp, bytes, segment: None });
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

fn truncated(reason: &[u8]) -> Bytes {
    Bytes::copy_from_slice(reason.get(..REASON_LIMIT).unwrap_or(reason))
}
