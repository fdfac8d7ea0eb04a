//! 0-RTT: data before the handshake is complete (RFC 9001 §4.6, RFC 9000 §7.4.1). It travels on path 0 and shares the
//! packet numbers of its 1-RTT packets; nothing about multipath is remembered (RFC 10069 §2).

use crate::PathId;
use crate::connection::handshake::establish::HandshakeDriver;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::receive::{LONG_RESERVED, Origin};
use crate::connection::{Connection, Event, Role};
use crate::crypto::keys::{Cipher, Secret, Suite};
use crate::crypto::one_rtt::OneRttKeys;
pub use crate::crypto::session::EarlyDataState;
use crate::crypto::session::SessionTicket;
use crate::error::{Dropped, ErrorCode, PacketError, TransportError};
use crate::handshake::zero_rtt::ZeroRttAnswer;
use crate::path::route::FourTuple;
use crate::recovery::ecn::Ecn;
use crate::stream::StreamId;
use crate::time::Instant;
use crate::wire::header::ProtectedPacket;
use crate::wire::level::Level;
use crate::wire::packet_number;
use bytes::Bytes;

/// The sessions that a client's connection may resume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resumption {
    /// The latest with the server, whose ticket is used up (RFC 8446 §C.4).
    Latest,
    /// None: the handshake is a full one without 0-RTT.
    Withheld,
}

impl Connection {
    /// Returns true if data may be sent (a client) or was accepted (a server) before the handshake is complete. Data
    /// that a server reads meanwhile may be a copy that an attacker sends (RFC 9001 §9.2, RFC 8470).
    pub fn is_early_data(&self) -> bool {
        self.lifecycle == Lifecycle::Handshaking && self.zero_rtt.is_in_use()
    }

    /// Returns the state of 0-RTT.
    pub fn early_data(&self) -> EarlyDataState {
        self.zero_rtt.state()
    }

    /// Returns true if a part of the data that was received on a stream came in 0-RTT packets, and may be a copy that
    /// an attacker sends.
    pub fn is_early_stream(&self, id: StreamId) -> bool {
        self.zero_rtt.has_stream(id)
    }

    /// Returns true if the handshake resumed an earlier session, once it is complete.
    pub fn is_resumed(&self) -> bool {
        self.lifecycle.is_connected() && self.handshake.session.is_resumed()
    }

    /// Opens a 0-RTT packet; one that came before its key is kept for later (RFC 9001 §5.7, attacks B15).
    pub(in crate::connection) fn open_zero_rtt(
        &mut self,
        mut packet: ProtectedPacket,
        tuple: FourTuple,
        ecn: Ecn,
        now: Instant,
    ) -> Result<Option<(Origin, Bytes)>, PacketError> {
        if self.role == Role::Client {
            //= https://www.rfc-editor.org/rfc/rfc9001#section-5.6
            //# A client MUST NOT attempt to decrypt 0-RTT packets it receives and instead MUST discard them.
            // RFC 9001 §5.7: a server does not send 0-RTT packets.
            return Err(Dropped::Unexpected.into());
        }
        if packet.version != self.handshake.negotiation.original() {
            return Err(Dropped::UnsupportedVersion.into());
        }
        //= https://www.rfc-editor.org/rfc/rfc9001#section-4.6.2
        //# When rejecting 0-RTT, a server MUST NOT process any 0-RTT packets, even if it could
        let Some(key) = self.zero_rtt.opener() else {
            // Without the client's parameters TLS has not seen the ClientHello.
            if self.peer.is_known() || !self.lifecycle.is_open() {
                return Err(Dropped::NoKeys.into());
            }
            self.handshake.undecryptable.keep(packet, tuple, ecn)?;
            return Ok(None);
        };
        let largest = self.paths.get(PathId::ZERO).and_then(|path| path.received.largest());
        let (bytes, offset) = (packet.bytes.len(), packet.number_offset);
        let header = key.unprotect(&mut packet.bytes, offset)?;
        let number = packet_number::expand(header.truncated, header.number_length, largest);
        let opened = key.open(packet.bytes, offset + header.number_length, PathId::ZERO, number);
        let payload = opened.map_err(|dropped| self.keys.on_forged(dropped))?;
        if header.first & LONG_RESERVED != 0 {
            return Err(ErrorCode::PROTOCOL_VIOLATION
                .because("reserved bits of a long header are set")
                .into());
        }
        let origin = Origin {
            level: Level::ZeroRtt,
            path: PathId::ZERO,
            id_sequence: 0,
            number,
            tuple,
            ecn,
            bytes,
            spin: false,
        };
        self.arrive(&origin, now)?;
        Ok(Some((origin, payload)))
    }
}

impl HandshakeDriver<'_> {
    /// TLS gave out the secret for a client's 0-RTT packets: data flows within the limits that are remembered.
    pub fn start_zero_rtt(&mut self, suite: Suite, secret: &Secret) {
        let Some(remembered) = self.zero_rtt.remembered() else { return };
        self.owners.streams.set_peer_limits(remembered);
        self.owners.datagrams.set_peer_limit(remembered.max_datagram_frame_size);
        let limit = usize::try_from(remembered.max_udp_payload_size).unwrap_or(usize::MAX);
        if let Some(path) = self.owners.paths.get_mut(PathId::ZERO) {
            path.route.limit_datagram_size(limit);
        }
        let cipher = self.early_cipher(suite);
        self.zero_rtt.offer(cipher, secret);
    }

    /// RFC 9369 §4.1: 0-RTT packets keep the version of the client's first flight.
    fn early_cipher(&self, suite: Suite) -> Cipher {
        Cipher { suite, version: self.owners.handshake.negotiation.original() }
    }

    /// TLS accepted 0-RTT on a server, which may answer in 1-RTT packets from here on.
    pub fn accept_early_data(&mut self, suite: Suite, secret: &Secret) {
        let cipher = self.early_cipher(suite);
        self.zero_rtt.accept(cipher, secret);
        if let Some((suite, secret)) = self.owners.handshake.secrets.take_write(Level::OneRtt) {
            let cipher = Cipher { suite, version: self.owners.handshake.version() };
            //= https://www.rfc-editor.org/rfc/rfc9001#section-5.6
            //# A server MUST NOT use 0-RTT keys to protect packets; it uses 1-RTT keys to protect
            //# acknowledgments of 0-RTT packets
            self.keys.install(OneRttKeys::sending(cipher, secret.as_slice()));
        }
        self.events.push(Event::EarlyData);
    }

    /// The server rejected 0-RTT: what was sent never happened, and is sent again in 1-RTT packets within the limits that
    /// the server announces now (RFC 9001 §4.6.2). The rejection says nothing about congestion.
    pub fn on_zero_rtt_rejected(&mut self, now: Instant) {
        self.zero_rtt.on_rejected();
        self.owners.repeat_zero_rtt(now);
        self.owners.restart_streams();
    }

    /// A client begins again in another version, for which it has no ticket: its 0-RTT, if any, is over (RFC 9369 §5).
    pub fn begin_again_without_zero_rtt(&mut self, now: Instant) {
        if self.zero_rtt.is_offered() {
            self.on_zero_rtt_rejected(now);
        }
    }

    /// The handshake is complete: 0-RTT is over, and what the server says now must not contradict what was assumed.
    pub fn end_zero_rtt(&mut self, now: Instant) -> Result<(), TransportError> {
        let first_one_rtt = self.owners.paths.get(PathId::ZERO).map_or(0, |path| path.sent.next_unused());
        //= https://www.rfc-editor.org/rfc/rfc9001#section-4.9.3
        //# After receiving a 1-RTT packet, servers MUST discard 0-RTT keys within a short time; the
        //# RECOMMENDED time period is three times the Probe Timeout (PTO, see [QUIC-RECOVERY])
        let wait = self.owners.paths.longest_probe_timeout(self.peer.max_ack_delay(*self.lifecycle)) * 3;
        self.zero_rtt.on_handshake_complete(first_one_rtt, now + wait);
        if self.role == Role::Server {
            return Ok(());
        }
        match self.zero_rtt.take_answer() {
            //= https://www.rfc-editor.org/rfc/rfc9221#section-3
            //# If a client stores the value of the max_datagram_frame_size transport parameter with their
            //# 0-RTT state, they MUST validate that the new value of the max_datagram_frame_size
            //# transport parameter sent
            ZeroRttAnswer::Accepted(remembered) if self.peer.parameters().lowers(&remembered) => {
                // RFC 9000 §7.4.1.
                let reason = "the server accepted 0-RTT and lowered a limit that it was sent under";
                Err(ErrorCode::PROTOCOL_VIOLATION.because(reason))
            }
            ZeroRttAnswer::Rejected => self.check_restart(self.zero_rtt.remembered_protocol()),
            ZeroRttAnswer::Accepted(_) | ZeroRttAnswer::NotAsked => Ok(()),
        }
    }

    /// Checks that what was begun under the application protocol `alpn`, or under whichever the server chooses if that is
    /// `None`, can go on though nothing of it arrived.
    pub fn check_restart(&self, alpn: Option<&[u8]>) -> Result<(), TransportError> {
        if alpn.is_some_and(|alpn| self.owners.handshake.session.alpn().unwrap_or_default() != alpn) {
            // RFC 9001 §4.6.2: the application would have to start anew.
            let reason = "the server rejected 0-RTT and chose another application protocol";
            return Err(ErrorCode::crypto(120).because(reason));
        }
        if self.owners.streams.exceeds_stream_limits() {
            let reason = "the server rejected 0-RTT and permits fewer streams than were opened";
            return Err(ErrorCode::STREAM_LIMIT_ERROR.because(reason));
        }
        Ok(())
    }

    /// A ticket arrived: it goes to the store, with what else 0-RTT relies on.
    pub fn keep_tickets(&mut self) {
        let tickets = self.owners.handshake.session.take_tickets();
        let Some((store, server_name)) = self.zero_rtt.store() else { return };
        for tls in tickets {
            let alpn = self.owners.handshake.session.alpn().unwrap_or_default();
            //= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
            //# A client that attempts to send 0-RTT data MUST remember all other transport parameters used by
            //# the server that it is able to process
            let parameters = self.peer.parameters().encode_remembered();
            //= https://www.rfc-editor.org/rfc/rfc9001#section-9.2
            //= type=implication
            //= reason=Tickets are kept and given back as they came.
            //# These MUST NOT be used to communicate application semantics between endpoints; clients MUST
            //# treat them as opaque values
            store.put(
                server_name,
                SessionTicket { tls, version: self.owners.handshake.version(), alpn, parameters },
            );
        }
    }
}
