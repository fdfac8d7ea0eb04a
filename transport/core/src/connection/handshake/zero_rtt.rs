//! 0-RTT: data before the handshake is complete (RFC 9001 §4.6, RFC 9000 §7.4.1). It travels on path 0 and shares the
//! packet numbers of its 1-RTT packets; nothing about multipath is remembered (RFC 10069 §2).

use crate::PathId;
use crate::connection::frame_owners::frame_owners;
use crate::connection::handshake::establish::HandshakeDriver;
use crate::connection::lifecycle::Lifecycle;
use crate::connection::receive::{LONG_RESERVED, Origin};
use crate::connection::{Connection, Event, Role};
use crate::crypto::keys::{Cipher, Secret, Suite};
use crate::crypto::one_rtt::OneRttKeys;
use crate::crypto::protect::{OpenKey, SealKey};
pub use crate::crypto::session::EarlyDataState;
use crate::crypto::session::{ClientTls, EarlyData as Choice, Session, SessionStore, SessionTicket};
use crate::error::{Dropped, ErrorCode, PacketError, TransportError};
use crate::path::route::FourTuple;
use crate::recovery::ecn::Ecn;
use crate::recovery_token::RecoveryToken;
use crate::stream::StreamId;
use crate::time::Instant;
use crate::wire::header::ProtectedPacket;
use crate::wire::level::Level;
use crate::wire::packet_number;
use crate::wire::transport_parameters::TransportParameters;
use crate::wire::version::Version;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// The sessions that a client's connection may resume.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resumption {
    /// The latest with the server, whose ticket is used up (RFC 8446 §C.4).
    Latest,
    /// None: the handshake is a full one without 0-RTT.
    Withheld,
}

/// The state of 0-RTT and resumption of a connection.
#[derive(Default)]
pub(in crate::connection) struct ZeroRtt {
    state: EarlyDataState,
    /// A client's key.
    pub seal: Option<Box<SealKey>>,
    /// A server's key.
    open: Option<Box<OpenKey>>,
    /// The server's parameters of the connection that the ticket is from.
    remembered: Option<Box<TransportParameters>>,
    /// The application protocol of that connection.
    alpn: Vec<u8>,
    /// The store of a client's tickets, and the name of the server that they are for.
    store: Option<(Arc<dyn SessionStore>, String)>,
    /// The first packet number of path 0 that is not of a 0-RTT packet.
    pub first_one_rtt: u64,
    /// The time at which a server drops its key (RFC 9001 §4.9.3).
    pub discard_at: Option<Instant>,
    /// Streams of which a part arrived in 0-RTT packets.
    streams: BTreeSet<StreamId>,
    /// Contents of a client's 0-RTT packets that the server acknowledged: they are kept until it confirms the handshake, for
    /// they are sent again if another connection takes the place of this one.
    acknowledged: Vec<RecoveryToken>,
}

impl fmt::Debug for ZeroRtt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZeroRtt").field("state", &self.state).finish_non_exhaustive()
    }
}

impl ZeroRtt {
    /// Keeps the tickets of a client's session that resumes none.
    pub fn keep(tls: &ClientTls, server_name: &str) -> Self {
        let store = tls.sessions().map(|store| (store.clone(), server_name.to_owned()));
        Self { store, ..Self::default() }
    }

    /// Takes note that the server acknowledged what `token` stands for, before it confirmed the handshake.
    pub fn defer(&mut self, token: &RecoveryToken) {
        self.acknowledged.push(token.clone());
    }

    /// A frame of stream `id` came in a 0-RTT packet. The streams' own limits bound how many are remembered.
    pub fn note_stream(&mut self, id: StreamId) {
        self.streams.insert(id);
    }

    /// Drops a server's key, if it is time.
    pub fn expire(&mut self, now: Instant) {
        if self.discard_at.is_some_and(|at| at <= now) {
            (self.open, self.discard_at) = (None, None);
        }
    }

    /// Takes the tokens of contents that were acknowledged before the handshake was confirmed.
    pub fn take_deferred(&mut self) -> Vec<RecoveryToken> {
        std::mem::take(&mut self.acknowledged)
    }

    /// The server rejected 0-RTT: nothing is sealed with its key any more.
    pub fn on_rejected(&mut self) {
        self.seal = None;
        self.state = EarlyDataState::Rejected;
    }

    /// Returns true if data may be sent (a client) or was accepted (a server) before the handshake is complete.
    pub fn is_usable(&self, lifecycle: Lifecycle) -> bool {
        lifecycle == Lifecycle::Handshaking
            && matches!(self.state, EarlyDataState::Offered | EarlyDataState::Accepted)
    }

    /// Returns true if a client offered 0-RTT and knows no answer.
    pub fn is_offered(&self) -> bool {
        self.state == EarlyDataState::Offered
    }

    /// The application protocol that 0-RTT was sent under, if it was.
    pub fn remembered_protocol(&self) -> Option<&[u8]> {
        (self.state != EarlyDataState::default()).then_some(&self.alpn)
    }

    /// Has a client's `session` resume the latest one with the server, if there is a ticket of `version`.
    pub fn resume(tls: &ClientTls, session: &mut Session, server_name: &str, version: Version) -> Self {
        let Some(store) = tls.sessions() else { return Self::default() };
        let mut early = Self { store: Some((store.clone(), server_name.to_owned())), ..Self::default() };
        let ticket = store.take(server_name, tls.protocols());
        // RFC 9369 §5: tickets of another version must not be used.
        let Some(ticket) = ticket.filter(|ticket| ticket.version == version) else { return early };
        // A ticket that cannot be read is as good as none: the handshake is a full one.
        let resumed = session.resume(&ticket.tls).is_ok();
        //= https://www.rfc-editor.org/rfc/rfc9001#section-5.6
        //# A client therefore MUST NOT use 0-RTT for application data unless specifically requested by the
        //# application that is in use.
        if resumed && tls.early_data() == Choice::On {
            // The sender of remembered parameters was a server.
            if let Ok(parameters) = TransportParameters::decode(Role::Server, &ticket.parameters) {
                session.offer_early_data();
                early.remembered = Some(Box::new(parameters.remembered()));
                early.alpn = ticket.alpn;
            }
        }
        early
    }
}

impl Connection {
    /// Returns true if data may be sent (a client) or was accepted (a server) before the handshake is complete. Data
    /// that a server reads meanwhile may be a copy that an attacker sends (RFC 9001 §9.2, RFC 8470).
    pub fn is_early_data(&self) -> bool {
        self.zero_rtt.is_usable(self.lifecycle)
    }

    /// Returns the state of 0-RTT.
    pub fn early_data(&self) -> EarlyDataState {
        self.zero_rtt.state
    }

    /// Returns true if a part of the data that was received on a stream came in 0-RTT packets, and may be a copy that
    /// an attacker sends.
    pub fn is_early_stream(&self, id: StreamId) -> bool {
        self.zero_rtt.streams.contains(&id)
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
        let Some(key) = &self.zero_rtt.open else {
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
        let Some(remembered) = &self.zero_rtt.remembered else { return };
        self.streams.set_peer_limits(remembered);
        self.datagrams.set_peer_limit(remembered.max_datagram_frame_size);
        let limit = usize::try_from(remembered.max_udp_payload_size).unwrap_or(usize::MAX);
        if let Some(path) = self.paths.get_mut(PathId::ZERO) {
            path.route.limit_datagram_size(limit);
        }
        self.zero_rtt.seal = Some(Box::new(SealKey::new(self.early_cipher(suite), secret.as_slice())));
        self.zero_rtt.state = EarlyDataState::Offered;
    }

    /// RFC 9369 §4.1: 0-RTT packets keep the version of the client's first flight.
    fn early_cipher(&self, suite: Suite) -> Cipher {
        Cipher { suite, version: self.handshake.negotiation.original() }
    }

    /// TLS accepted 0-RTT on a server, which may answer in 1-RTT packets from here on.
    pub fn accept_early_data(&mut self, suite: Suite, secret: &Secret) {
        self.zero_rtt.open = Some(Box::new(OpenKey::new(self.early_cipher(suite), secret.as_slice())));
        self.zero_rtt.state = EarlyDataState::Accepted;
        if let Some((suite, secret)) = self.handshake.secrets.take_write(Level::OneRtt) {
            let cipher = Cipher { suite, version: self.handshake.version() };
            //= https://www.rfc-editor.org/rfc/rfc9001#section-5.6
            //# A server MUST NOT use 0-RTT keys to protect packets; it uses 1-RTT keys to protect
            //# acknowledgments of 0-RTT packets
            self.keys.install(OneRttKeys::sending(cipher, secret.as_slice()));
        }
        self.events.push(Event::EarlyData);
    }

    /// A client begins again in another version, for which it has no ticket: its 0-RTT, if any, is over (RFC 9369 §5).
    pub fn begin_again_without_zero_rtt(&mut self, now: Instant) {
        if self.zero_rtt.is_offered() {
            frame_owners!(self, *self.lifecycle).on_zero_rtt_rejected(now);
        }
    }

    /// The handshake is complete: 0-RTT is over, and what the server says now must not contradict what was assumed.
    pub fn end_zero_rtt(&mut self, now: Instant) -> Result<(), TransportError> {
        self.zero_rtt.first_one_rtt = self.paths.get(PathId::ZERO).map_or(0, |path| path.sent.next_unused());
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.3
        //# A client MUST NOT send 0-RTT packets once it starts processing 1-RTT packets from the server
        //= https://www.rfc-editor.org/rfc/rfc9001#section-5.6
        //# Once a client has installed 1-RTT keys, it MUST NOT send any more 0-RTT packets.
        // RFC 9001 §4.9.3: a client drops its key with the first 1-RTT keys, a server a short time later.
        self.zero_rtt.seal = None;
        if self.zero_rtt.open.is_some() {
            //= https://www.rfc-editor.org/rfc/rfc9001#section-4.9.3
            //# After receiving a 1-RTT packet, servers MUST discard 0-RTT keys within a short time; the
            //# RECOMMENDED time period is three times the Probe Timeout (PTO, see [QUIC-RECOVERY])
            self.zero_rtt.discard_at =
                Some(now + self.paths.longest_probe_timeout(self.peer.max_ack_delay(*self.lifecycle)) * 3);
        }
        if self.role == Role::Server {
            return Ok(());
        }
        let remembered = self.zero_rtt.remembered.take();
        match (self.zero_rtt.state, remembered) {
            (EarlyDataState::Offered, Some(remembered)) => {
                self.zero_rtt.state = EarlyDataState::Accepted;
                //= https://www.rfc-editor.org/rfc/rfc9221#section-3
                //# If a client stores the value of the max_datagram_frame_size transport parameter with their
                //# 0-RTT state, they MUST validate that the new value of the max_datagram_frame_size
                //# transport parameter sent
                if self.peer.parameters().lowers(&remembered) {
                    // RFC 9000 §7.4.1.
                    let reason = "the server accepted 0-RTT and lowered a limit that it was sent under";
                    return Err(ErrorCode::PROTOCOL_VIOLATION.because(reason));
                }
                Ok(())
            }
            (EarlyDataState::Rejected, _) => self.check_restart(Some(&self.zero_rtt.alpn)),
            _ => Ok(()),
        }
    }

    /// Checks that what was begun under the application protocol `alpn`, or under whichever the server chooses if that is
    /// `None`, can go on though nothing of it arrived.
    pub fn check_restart(&self, alpn: Option<&[u8]>) -> Result<(), TransportError> {
        if alpn.is_some_and(|alpn| self.handshake.session.alpn().unwrap_or_default() != alpn) {
            // RFC 9001 §4.6.2: the application would have to start anew.
            let reason = "the server rejected 0-RTT and chose another application protocol";
            return Err(ErrorCode::crypto(120).because(reason));
        }
        if self.streams.exceeds_stream_limits() {
            let reason = "the server rejected 0-RTT and permits fewer streams than were opened";
            return Err(ErrorCode::STREAM_LIMIT_ERROR.because(reason));
        }
        Ok(())
    }

    /// A ticket arrived: it goes to the store, with what else 0-RTT relies on.
    pub fn keep_tickets(&mut self) {
        let tickets = self.handshake.session.take_tickets();
        let Some((store, server_name)) = &self.zero_rtt.store else { return };
        for tls in tickets {
            let alpn = self.handshake.session.alpn().unwrap_or_default();
            //= https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
            //# A client that attempts to send 0-RTT data MUST remember all other transport parameters used by
            //# the server that it is able to process
            let parameters = self.peer.parameters().encode_remembered();
            //= https://www.rfc-editor.org/rfc/rfc9001#section-9.2
            //= type=implication
            //= reason=Tickets are kept and given back as they came.
            //# These MUST NOT be used to communicate application semantics between endpoints; clients MUST
            //# treat them as opaque values
            store
                .put(server_name, SessionTicket { tls, version: self.handshake.version(), alpn, parameters });
        }
    }
}
