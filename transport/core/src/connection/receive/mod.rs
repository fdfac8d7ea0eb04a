//! From datagrams to frames: splitting, opening, and telling what is ignored from what closes the connection.

pub(crate) mod ack_processing;
pub(crate) mod dispatch;

use crate::PathId;
use crate::connection::{Connection, Datagram, Ecn, FourTuple, Role};
use crate::crypto::one_rtt::KeyGeneration;
use crate::error::{ConnectionError, Dropped, ErrorCode, PacketError, TransportError};
use crate::handshake::Handshake;
use crate::handshake::undecryptable::Undecrypted;
use crate::path::path::Path;
use crate::path::paths::PathMatch;
use crate::path::paths::Paths;
use crate::space::received::Received;
use crate::time::Instant;
use crate::trace::{Payload, Side, TraceEvent, TracedPacket};
use crate::wire::frame::{Frame, FrameReader, Stream};
use crate::wire::header::{
    Incoming, KeyPhase, PacketKind, ProtectedPacket, ShortPacket, next_packet, short_packet,
};
use crate::wire::level::Level;
use crate::wire::packet_number;
use bytes::{Bytes, BytesMut};

/// Datagrams and packets above this size, which few networks carry, must not be kept alive by a small part of them.
const USUAL_SIZE: usize = 2048;
/// Packets read of one datagram at most: no honest sender coalesces more.
const COALESCED_LIMIT: usize = 8;
/// Bits of the first byte that must be zero once header protection is off (RFC 9000 §17.2, §17.3.1).
pub(in crate::connection) const LONG_RESERVED: u8 = 0x0c;
const SHORT_RESERVED: u8 = 0x18;
/// The spin bit of the first byte (RFC 9000 §17.3.1).
const SPIN: u8 = 0x20;
/// Bytes of a stateless reset at least: five before the token (RFC 9000 §10.3).
const SHORTEST_RESET: usize = 21;

/// An opened packet.
#[derive(Clone, Copy, Debug)]
pub(in crate::connection) struct Origin {
    /// The encryption level.
    pub level: Level,
    /// The path, which the destination connection ID named.
    pub path: PathId,
    /// The sequence number of that connection ID.
    pub id_sequence: u64,
    /// The packet number.
    pub number: u64,
    /// The addresses of the datagram.
    pub tuple: FourTuple,
    /// The ECN codepoint of the datagram.
    pub ecn: Ecn,
    /// The packet's size in bytes.
    pub bytes: usize,
    /// The spin bit of a 1-RTT packet (RFC 9000 §17.4).
    pub spin: bool,
}

impl Connection {
    /// Takes in a datagram at `now`. Packets that cannot be used are ignored; violations close the connection.
    pub fn receive(&mut self, datagram: Datagram, now: Instant) {
        let tuple = FourTuple { local: datagram.local, remote: datagram.remote };
        let ecn = datagram.ecn;
        let mut bytes = datagram.bytes;
        let tail = stateless_reset_tail(&bytes);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1
        //# For the purposes of avoiding amplification prior to address validation, servers MUST count all of
        //# the payload bytes received in datagrams that are uniquely attributed to a single connection
        self.paths.on_datagram(tuple, bytes.len());
        if let Some(closing) = &mut self.closing {
            closing.on_datagram(now);
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-12.2
        //# Receivers MUST be able to process coalesced packets.
        for _ in 0..COALESCED_LIMIT {
            if bytes.is_empty() {
                return;
            }
            let before = bytes.len();
            //= https://www.rfc-editor.org/rfc/rfc9000#section-12.2
            //# The receiver of coalesced QUIC packets MUST individually process each QUIC packet and
            //# separately acknowledge them, as if they were received as the payload of different UDP
            //# datagrams
            match self.receive_packet(&mut bytes, tuple, ecn, now) {
                Ok(()) => {}
                //= https://www.rfc-editor.org/rfc/rfc9000#section-12.2
                //# the receiver MAY either discard or buffer the packet for later processing and MUST attempt
                //# to process the remaining packets.
                Err(PacketError::Dropped(reason)) => {
                    self.observer.count_dropped();
                    if let Some(tracer) = self.observer.tracer() {
                        let event = TraceEvent::PacketDropped { reason, bytes: before - bytes.len() };
                        tracer.record(now, &event);
                    }
                    //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1
                    //# However, the comparison MUST be performed when the first packet in an incoming
                    //# datagram either cannot be associated with a connection or cannot be decrypted.
                    if is_unreadable(reason) {
                        self.check_stateless_reset(tail);
                    }
                }
                //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3
                //# An endpoint that wishes to communicate a fatal connection error MUST use a
                //# CONNECTION_CLOSE frame if it is able.
                //= https://www.rfc-editor.org/rfc/rfc9000#section-11.1
                //# such as an obvious violation of protocol semantics or corruption of state that affects an
                //# entire connection, MUST be signaled using a CONNECTION_CLOSE frame (Section 19.19).
                Err(PacketError::Close(error)) => return self.fail(error, now),
            }
            if before > USUAL_SIZE && !bytes.is_empty() {
                bytes = BytesMut::from(bytes.as_ref());
            }
        }
    }

    fn receive_packet(
        &mut self,
        bytes: &mut BytesMut,
        tuple: FourTuple,
        ecn: Ecn,
        now: Instant,
    ) -> Result<(), PacketError> {
        let (id_length, quic_bit) = (self.handshake.ids.local.len(), self.config.greasing.quic_bit());
        if let Some(packet) = short_packet(bytes, id_length, quic_bit) {
            return self.receive_short(packet?, tuple, ecn, now);
        }
        let available = bytes.len();
        match next_packet(bytes, id_length, quic_bit)? {
            Incoming::Protected(mut packet) => {
                if available > USUAL_SIZE && packet.bytes.len() * 2 < available {
                    packet.bytes = BytesMut::from(packet.bytes.as_ref());
                }
                self.receive_protected(packet, tuple, ecn, now)
            }
            Incoming::VersionNegotiation { source, versions, .. } => {
                self.on_version_negotiation(source, &versions, now)
            }
            Incoming::Retry { version, source, token, bytes, .. } if version == self.handshake.version() => {
                self.handshake_driver().on_retry(source, token, &bytes, now)
            }
            //= https://www.rfc-editor.org/rfc/rfc9000#section-5.2.1
            //# If a client receives a packet that uses a different version than it initially selected, it
            //# MUST discard that packet.
            Incoming::Retry { .. } => Err(Dropped::UnsupportedVersion.into()),
            Incoming::UnsupportedVersion { .. } => Err(Dropped::UnsupportedVersion.into()),
        }
    }

    /// Takes in one packet that is still protected.
    pub(in crate::connection) fn receive_protected(
        &mut self,
        packet: ProtectedPacket,
        tuple: FourTuple,
        ecn: Ecn,
        now: Instant,
    ) -> Result<(), PacketError> {
        let opened = match packet.kind {
            PacketKind::OneRtt => return self.receive_short(packet.into(), tuple, ecn, now),
            PacketKind::ZeroRtt => self.open_zero_rtt(packet, tuple, ecn, now)?,
            _ => self.open_long(packet, tuple, ecn)?,
        };
        match opened {
            Some((origin, payload)) => self.receive_opened(&origin, payload, now),
            None => {
                // It came before its keys: what the server said before it may be lost.
                self.handshake.ask_again(self.role, Level::Initial, now);
                Ok(())
            }
        }
    }

    fn receive_short(
        &mut self,
        packet: ShortPacket,
        tuple: FourTuple,
        ecn: Ecn,
        now: Instant,
    ) -> Result<(), PacketError> {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-5.7
        //# Endpoints in either role MUST NOT decrypt 1-RTT packets from their peer prior to completing the
        //# handshake.
        //= https://www.rfc-editor.org/rfc/rfc9001#section-5.7
        //# A server MUST NOT process incoming 1-RTT protected packets before the TLS handshake is complete
        //= https://www.rfc-editor.org/rfc/rfc9001#section-5.7
        //# Even if it has 1-RTT secrets, a client MUST NOT process incoming 1-RTT protected packets before
        //# the TLS handshake is complete.
        if !self.keys.are_installed() || !self.lifecycle.is_connected() && self.lifecycle.is_open() {
            return self.handshake.undecryptable.keep(packet.into(), tuple, ecn);
        }
        let (origin, payload) = self.open_short(packet, tuple, ecn, now)?;
        self.receive_opened(&origin, payload, now)
    }

    /// Takes in what an authentic packet contains.
    fn receive_opened(&mut self, origin: &Origin, payload: Bytes, now: Instant) -> Result<(), PacketError> {
        if let Some(tracer) = self.observer.tracer() {
            let packet = TracedPacket {
                level: origin.level,
                path: origin.path,
                number: origin.number,
                bytes: origin.bytes,
                payload: Payload(&payload),
            };
            tracer.record(now, &TraceEvent::PacketReceived(packet));
        }
        self.activity.on_received(now);
        self.paths.on_packet_received(origin.path, origin.bytes, now);
        if !self.lifecycle.is_open() {
            // Closing and draining connections look for nothing but the peer's CONNECTION_CLOSE (RFC 9000 §10.2).
            for frame in FrameReader::new(payload).map_while(Result::ok) {
                if matches!(frame, Frame::ConnectionClose(_)) && frame.permitted_in(origin.level) {
                    self.on_frame(origin, frame, now)?;
                }
            }
            return Ok(());
        }
        self.receive_frames(origin, payload, now)
    }

    /// Takes in the packets that came before their keys.
    pub(in crate::connection) fn replay_undecryptable(&mut self, now: Instant) {
        for Undecrypted { packet, tuple, ecn } in self.handshake.undecryptable.take() {
            if let Err(PacketError::Close(error)) = self.receive_protected(packet, tuple, ecn, now) {
                return self.fail(error, now);
            }
        }
    }

    fn open_long(
        &mut self,
        mut packet: ProtectedPacket,
        tuple: FourTuple,
        ecn: Ecn,
    ) -> Result<Option<(Origin, Bytes)>, PacketError> {
        let level = match packet.kind {
            PacketKind::Initial { .. } => Level::Initial,
            _ => Level::Handshake,
        };
        let (version, current) = (packet.version, self.handshake.version());
        let fresh = self.handshake.keys_to_follow(self.role, level, version);
        let space = self.handshake.space(level).ok_or(Dropped::NoKeys)?;
        if version != current && fresh.is_none() && space.opener(version, current).is_none() {
            // RFC 9369 §4.1: Handshake packets are of the version in use only.
            return Err(Dropped::UnsupportedVersion.into());
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
        //# Once a client has received a valid Initial packet from the server, it MUST discard any subsequent
        //# packet it receives on that connection with a different Source Connection ID.
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
        //# if subsequent Initial packets include a different Source Connection ID, they MUST be discarded
        if self.handshake.ids.is_remote_final() && packet.source != self.handshake.ids.remote() {
            return Err(Dropped::Unexpected.into());
        }
        let has_token = matches!(&packet.kind, PacketKind::Initial { token } if !token.is_empty());
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.2
        //# clients that receive an Initial packet with a non-zero Token Length field MUST either discard the
        //# packet or generate a connection error of type PROTOCOL_VIOLATION.
        if self.role == Role::Client && has_token {
            return Err(Dropped::Unexpected.into());
        }
        let has_keys = self.handshake.space(level).map(|space| space.has_keys());
        if has_keys == Some(false) {
            self.handshake.undecryptable.keep(packet, tuple, ecn)?;
            return Ok(None);
        }
        let space = self.handshake.space(level).ok_or(Dropped::NoKeys)?;
        let opener = fresh.as_ref().map(|keys| &keys.open).or_else(|| space.opener(version, current));
        let open = opener.ok_or(Dropped::NoKeys)?;
        let size = packet.bytes.len();
        let offset = packet.number_offset;
        let header = open.unprotect(&mut packet.bytes, offset)?;
        let number = packet_number::expand(header.truncated, header.number_length, space.received.largest());
        let opened = open.open(packet.bytes, offset + header.number_length, PathId::ZERO, number);
        let payload = opened.map_err(|dropped| self.keys.on_forged(dropped))?;
        if let Some(keys) = fresh {
            self.handshake.follow_version(version, keys);
        }
        self.handshake_driver().on_long_packet(level, packet.source);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2
        //# An endpoint MUST treat receipt of a packet that has a non-zero value for these bits after removing
        //# both packet and header protection as a connection error of type PROTOCOL_VIOLATION
        if header.first & LONG_RESERVED != 0 {
            return Err(ErrorCode::PROTOCOL_VIOLATION
                .because("reserved bits of a long header are set")
                .into());
        }
        let origin = Origin {
            level,
            path: PathId::ZERO,
            id_sequence: 0,
            number,
            tuple,
            ecn,
            bytes: size,
            spin: false,
        };
        Ok(Some((origin, payload)))
    }

    fn open_short(
        &mut self,
        mut packet: ShortPacket,
        tuple: FourTuple,
        ecn: Ecn,
        now: Instant,
    ) -> Result<(Origin, Bytes), PacketError> {
        let (path, id_sequence) =
            self.paths.local_ids.lookup(&packet.destination).ok_or(Dropped::UnknownConnection)?;
        let largest = self.paths.any(path).and_then(|path| path.received.largest());
        let keys = self.keys.current_mut().ok_or(Dropped::NoKeys)?;
        let size = packet.bytes.len();
        let offset = packet.number_offset;
        let header = keys.unprotect(&mut packet.bytes, offset)?;
        let number = packet_number::expand(header.truncated, header.number_length, largest);
        let phase = KeyPhase::of(header.first);
        let payload_offset = offset + header.number_length;
        let (payload, generation) = keys.open(packet.bytes, payload_offset, phase, path, number)?;
        let grace = || self.paths.longest_probe_timeout(self.peer.max_ack_delay(self.lifecycle)) * 3;
        self.keys.on_generation(generation, grace, now);
        if generation == KeyGeneration::Next {
            self.observer.trace(&TraceEvent::KeysUpdated { by: Side::Remote }, now);
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.3.1
        //# An endpoint MUST treat receipt of a packet that has a non-zero value for these bits, after
        //# removing both packet and header protection, as a connection error of type PROTOCOL_VIOLATION
        if header.first & SHORT_RESERVED != 0 {
            return Err(ErrorCode::PROTOCOL_VIOLATION
                .because("reserved bits of a short header are set")
                .into());
        }
        let spin = header.first & SPIN != 0;
        let origin =
            Origin { level: Level::OneRtt, path, id_sequence, number, tuple, ecn, bytes: size, spin };
        self.arrive(&origin, now)?;
        Ok((origin, payload))
    }

    /// Finds the path of an authentic 1-RTT packet, or opens it (RFC 10069 §3.1).
    pub(in crate::connection) fn arrive(&mut self, origin: &Origin, now: Instant) -> Result<(), PacketError> {
        if let Some(path) = self.paths.any_mut(origin.path).filter(|path| path.route.tuple == origin.tuple) {
            path.count_received(origin.bytes);
            return Ok(());
        }
        match self.paths.arrival(origin.path, origin.tuple) {
            PathMatch::Known => Ok(()),
            PathMatch::OtherAddress => self.path_maintenance().arrive_elsewhere(origin),
            PathMatch::Gone => Err(Dropped::PathGone.into()),
            PathMatch::Fresh if self.role == Role::Client => Err(Dropped::Unexpected.into()),
            PathMatch::Fresh => self.path_maintenance().accept_path(origin, now),
        }
    }

    pub(in crate::connection) fn receive_frames(
        &mut self,
        origin: &Origin,
        payload: Bytes,
        now: Instant,
    ) -> Result<(), PacketError> {
        let received = received_in(&mut self.handshake, &mut self.paths, origin).ok_or(Dropped::PathGone)?;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-12.3
        //# A receiver MUST discard a newly unprotected packet unless it is certain that it has not processed
        //# another packet with the same packet number from the same packet number space
        //= https://www.rfc-editor.org/rfc/rfc9000#section-12.3
        //# Duplicate suppression MUST happen after removing packet protection for the reasons described in
        //# Section 9.5 of [QUIC-TLS].
        if received.contains(origin.number) {
            return Err(Dropped::Duplicate.into());
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-12.4
        //# An endpoint MUST treat receipt of a packet containing no frames as a connection error of type
        //# PROTOCOL_VIOLATION
        if payload.is_empty() {
            return Err(ErrorCode::PROTOCOL_VIOLATION.because("a packet without frames").into());
        }
        let newest = received.largest().is_none_or(|largest| origin.number > largest);
        match at_home(&mut self.paths, origin) {
            Some(path) => path.on_heard_with(origin.id_sequence, now),
            None => self.path_maintenance().hear_elsewhere(origin, now),
        }
        let is_refused = self.memory.refuses(&self.streams, &self.datagrams, &payload);
        let (mut eliciting, mut probing, mut urgent, mut carries) = (false, true, false, false);
        let size = payload.len();
        for frame in FrameReader::new(payload) {
            let frame = if size > USUAL_SIZE { detached(frame?, size) } else { frame? };
            check_permitted(&frame, origin.level)?;
            // For want of memory it is as if the network had lost the packet, but for what it acknowledges.
            if is_refused && !matches!(frame, Frame::Ack(_)) {
                continue;
            }
            if let Frame::Stream(_) = frame {
                // Most frames: nothing has to be asked.
                (eliciting, probing, carries) = (true, false, true);
            } else {
                eliciting |= frame.is_ack_eliciting();
                probing &= frame.is_probing();
                urgent |= matches!(frame, Frame::ImmediateAck);
                carries |= matches!(frame, Frame::Datagram(_));
            }
            //= https://www.rfc-editor.org/rfc/rfc9000#section-5.2
            //# An endpoint MUST generate a connection error if processing the contents of these packets prior
            //# to discovering an error, or fully revert any changes made during that processing.
            self.on_frame(origin, frame, now)?;
            if !self.lifecycle.is_open() {
                return Ok(());
            }
        }
        if is_refused {
            return Err(self.memory.on_dropped());
        }
        // A frame may have closed the space (HANDSHAKE_DONE, PATH_ABANDON).
        if let Some(received) = received_in(&mut self.handshake, &mut self.paths, origin) {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-13.1
            //# A packet MUST NOT be acknowledged until packet protection has been successfully removed and
            //# all frames contained in the packet have been processed
            received.on_packet(origin.number, eliciting.into(), origin.ecn, now)?;
        }
        if newest {
            on_newest(self, origin, probing, now);
        }
        if urgent {
            // Draft-ietf-quic-ack-frequency-14 §5. It gets one, however often it says so.
            if let Some(path) = self.paths.any_mut(origin.path) {
                path.received.acknowledge_at_once(now);
            }
        }
        if carries
            && self.config.rotation.is_set()
            && let Some(path) = self.paths.get_mut(origin.path)
        {
            path.on_carried();
        }
        if eliciting && origin.level == Level::Initial {
            self.handshake.answer_again(self.role, now);
        }
        self.advance_handshake(origin.level, now)?;
        Ok(())
    }

    fn check_stateless_reset(&mut self, tail: Option<[u8; 16]>) {
        if let Some(tail) = tail
            //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1
            //# If the last 16 bytes of the datagram are identical in value to a stateless reset token, the
            //# endpoint MUST enter the draining period and not send any further packets on this connection.
            && self.paths.remote_ids.is_reset_token(&tail)
        {
            self.end_silently(ConnectionError::StatelessReset);
        }
    }

    /// Takes a datagram that may be a stateless reset; returns true if its last 16 bytes are a reset token of the peer,
    /// which ends the connection (RFC 9000 §10.3.1).
    pub fn on_possible_reset(&mut self, datagram: &[u8]) -> bool {
        let before = self.lifecycle;
        self.check_stateless_reset(stateless_reset_tail(datagram));
        before != self.lifecycle
    }
}

/// The last 16 bytes of a datagram that is long enough for a stateless reset, whatever it begins like.
fn stateless_reset_tail(datagram: &[u8]) -> Option<[u8; 16]> {
    //= https://www.rfc-editor.org/rfc/rfc9000#section-10.3
    //# However, endpoints MUST treat any packet ending in a valid stateless reset token as a Stateless
    //# Reset, as other QUIC versions might allow the use of a long header.
    datagram.last_chunk::<16>().filter(|_| datagram.len() >= SHORTEST_RESET).copied()
}

/// Returns true if a packet that was dropped for `reason` could have been a stateless reset.
fn is_unreadable(reason: Dropped) -> bool {
    use Dropped::{Malformed, NoKeys, Undecryptable, UnsupportedVersion};
    matches!(reason, Undecryptable | Malformed | NoKeys | UnsupportedVersion)
}

/// `frame` of a packet with `size` bytes of frames, its data copied if that is a small part of them: somebody may keep it.
fn detached(frame: Frame, size: usize) -> Frame {
    let own = |data: Bytes| if data.len() * 2 < size { Bytes::copy_from_slice(&data) } else { data };
    match frame {
        Frame::Stream(stream) => Frame::Stream(Stream { data: own(stream.data), ..stream }),
        Frame::Datagram(data) => Frame::Datagram(own(data)),
        Frame::NewToken(token) => Frame::NewToken(own(token)),
        frame => frame,
    }
}

/// Checks that a packet of `level` may hold `frame` (RFC 9000 §12.4).
fn check_permitted(frame: &Frame, level: Level) -> Result<(), TransportError> {
    //= https://www.rfc-editor.org/rfc/rfc9000#section-12.4
    //# An endpoint MUST treat receipt of a frame in a packet type that is not permitted as a
    //# connection error of type PROTOCOL_VIOLATION.
    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.4
    //# Endpoints MUST treat receipt of Handshake packets with other frames as a connection error of
    //# type PROTOCOL_VIOLATION.
    if !frame.permitted_in(level) {
        let kind = frame.kind();
        let error = ErrorCode::PROTOCOL_VIOLATION.because(format!("{kind} in this type of packet"));
        return Err(error.in_frame(frame.frame_type()));
    }
    Ok(())
}

/// PROTOCOL_VIOLATION, with what the peer did wrong.
pub(in crate::connection) fn violation(text: &'static str) -> TransportError {
    ErrorCode::PROTOCOL_VIOLATION.because(text)
}

/// The packet with the largest number of its path arrived: its spin bit is the one that counts (RFC 9000 §17.4), and if it
/// does more than probe, it says where a client is (RFC 9000 §9.3).
#[inline]
fn on_newest(connection: &mut Connection, origin: &Origin, probing: bool, now: Instant) {
    // A frame of the packet may have abandoned the path.
    let path = connection.paths.get_mut(origin.path).filter(|_| origin.level == Level::OneRtt);
    let Some(path) = path else { return };
    path.on_newest(origin.spin, connection.role);
    if !probing && !path.elsewhere.is_empty() {
        connection.path_maintenance().follow(origin, now);
    }
}

/// The open path of a 1-RTT packet that arrived over the addresses in use.
#[inline]
fn at_home<'a>(paths: &'a mut Paths, origin: &Origin) -> Option<&'a mut Path> {
    let path = paths.get_mut(origin.path).filter(|_| origin.level == Level::OneRtt)?;
    (path.route.tuple == origin.tuple).then_some(path)
}

/// The record of the packet number space that `origin` belongs to; `None` if it is gone.
fn received_in<'a>(
    handshake: &'a mut Handshake,
    paths: &'a mut Paths,
    origin: &Origin,
) -> Option<&'a mut Received> {
    match origin.level {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.6
        //= reason=Level::OneRtt => paths.any_mut(origin.path).map(
        //# Packets that a client sends with 0-RTT packet protection MUST be acknowledged by the server in
        //# packets protected by 1-RTT keys
        // RFC 9000 §12.3: 0-RTT and 1-RTT packets share their numbers.
        Level::ZeroRtt | Level::OneRtt => paths.any_mut(origin.path).map(|path| &mut path.received),
        level => handshake.space(level).map(|space| &mut space.received),
    }
}
