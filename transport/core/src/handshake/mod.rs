//! The handshake: TLS, its CRYPTO data, and the Initial and Handshake packet-number spaces.

pub(crate) mod crypto_stream;
pub(crate) mod hello;
pub(crate) mod negotiation;
pub(crate) mod parameters;
pub(crate) mod tls;
pub(crate) mod undecryptable;

use crate::Role;
use crate::crypto::initial::initial_keys;
use crate::crypto::keys::Suite;
use crate::crypto::protect::{OpenKey, SealKey};
use crate::crypto::session::Secret;
use crate::error::TransportError;
use crate::handshake::crypto_stream::{CryptoStream, Novelty};
use crate::handshake::hello::{Attempt, Hello};
use crate::handshake::negotiation::Negotiation;
use crate::handshake::parameters::SeenIds;
use crate::handshake::tls::Tls;
use crate::handshake::undecryptable::UndecryptablePackets;
use crate::space::received::{AckPolicy, Received};
use crate::space::sent::Sent;
use crate::time::Instant;
use crate::wire::connection_id::ConnectionId;
use crate::wire::frame::Crypto;
use crate::wire::level::Level;
use crate::wire::overhead;
use crate::wire::version::Version;
use bytes::Bytes;

/// Repetitions of an endpoint's flight at most that packets of the peer cause (RFC 9002 §6.2.3).
const REPETITIONS: u8 = 8;

/// Keys of one level, both ways.
#[derive(Debug)]
pub struct LevelKeys {
    /// Protects what is sent.
    pub seal: SealKey,
    /// Opens what arrives.
    pub open: OpenKey,
}

/// The packet-number space of Initial or Handshake packets (RFC 9000 §12.3). Both belong to path 0.
#[derive(Debug)]
pub struct HandshakeSpace {
    /// The packets that were sent.
    pub sent: Sent,
    /// The packets that arrived.
    pub received: Received,
    /// CRYPTO data.
    pub crypto: CryptoStream,
    /// Keys, once there are any.
    pub keys: Option<LevelKeys>,
    /// A server's key for Initial packets of the version that the client began with, once it chose another.
    pub former: Option<(Version, OpenKey)>,
    /// The time at which the last ack-eliciting packet left.
    pub last_eliciting: Option<Instant>,
    /// Probes that may leave regardless of the congestion window.
    pub probes_due: u8,
}

/// CRYPTO data of one packet of a probe at least.
const PROBE_SHARE: usize = 1000;
/// Packets of each space that one probe timeout sends at most, whatever the window: what an initial window lets go. With
/// fewer a flight of which several packets were lost would take a doubled timeout for each.
const MOST_PROBES: usize = 10;

impl HandshakeSpace {
    /// An empty space for `level`.
    pub fn new(level: Level) -> Self {
        Self {
            sent: Sent::default(),
            //= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.1
            //# An endpoint MUST acknowledge all ack-eliciting Initial and Handshake packets immediately and
            //# all ack-eliciting 0-RTT and 1-RTT packets within its advertised max_ack_delay, with the
            //# following exception
            //= https://www.rfc-editor.org/rfc/rfc9000#section-13.2.6
            //= type=implication
            //= reason=Each packet number space has a record of its own of what it received, and only packets
            //= reason=of that space report it.
            //# ACK frames MUST only be carried in a packet that has the same packet number space as the
            //# packet being acknowledged; see Section 12.1
            received: Received::new(AckPolicy::IMMEDIATE),
            crypto: CryptoStream::new(level),
            keys: None,
            former: None,
            last_eliciting: None,
            probes_due: 0,
        }
    }

    /// The key for packets of `version`, when the connection's is `current`.
    pub fn opener(&self, version: Version, current: Version) -> Option<&OpenKey> {
        if version == current {
            return self.keys.as_ref().map(|keys| &keys.open);
        }
        self.former.as_ref().filter(|(former, _)| *former == version).map(|(_, open)| open)
    }

    /// Has all that was not acknowledged sent again, whatever the congestion window: a probe timeout fired, or would have
    /// become long by now (RFC 9002 §6.2.3).
    pub fn repeat(&mut self) {
        self.crypto.repeat();
        let packets = self.crypto.pending_bytes().div_ceil(PROBE_SHARE).min(MOST_PROBES);
        self.probes_due = self.probes_due.max(packets as u8);
    }

    /// Has all that was not acknowledged sent again, as [`Self::repeat`] does, with two probes at least (RFC 9002
    /// §6.2.4): timeouts grow fast here, and all else waits for them. The next is counted from `now`.
    pub fn probe(&mut self, now: Instant) {
        self.repeat();
        self.probes_due = self.probes_due.max(2);
        self.last_eliciting = Some(now);
    }

    /// The peer acknowledged something: no probes are due.
    pub fn on_acknowledged(&mut self) {
        self.probes_due = 0;
    }

    /// Returns true if there is something to send, given keys.
    pub fn wants_to_send(&self, now: Instant) -> bool {
        self.keys.is_some()
            && (self.crypto.has_pending() || self.probes_due > 0 || self.received.ack_due(now))
    }
}

/// Secrets that wait for their counterpart: TLS gives out those for reading and for writing at different times.
#[derive(Debug, Default)]
pub struct PendingSecrets {
    read: Vec<(Level, Suite, Secret)>,
    write: Vec<(Level, Suite, Secret)>,
}

impl PendingSecrets {
    /// Keeps a secret for reading.
    pub fn store_read(&mut self, level: Level, suite: Suite, secret: Secret) {
        self.read.push((level, suite, secret));
    }

    /// Keeps a secret for writing.
    pub fn store_write(&mut self, level: Level, suite: Suite, secret: Secret) {
        self.write.push((level, suite, secret));
    }

    /// The secrets of `level`, for reading and for writing, once both are there.
    pub fn take_pair(&mut self, level: Level) -> Option<(Suite, Secret, Secret)> {
        let read = self.read.iter().position(|entry| entry.0 == level)?;
        let write = self.write.iter().position(|entry| entry.0 == level)?;
        let (_, suite, read) = self.read.swap_remove(read);
        let (_, _, write) = self.write.swap_remove(write);
        Some((suite, read, write))
    }

    /// The secret of `level` for reading, once it is there.
    pub fn take_read(&mut self, level: Level) -> Option<(Suite, Secret)> {
        take(&mut self.read, level)
    }

    /// The secret of `level` for writing, once it is there.
    pub fn take_write(&mut self, level: Level) -> Option<(Suite, Secret)> {
        take(&mut self.write, level)
    }
}

fn take(secrets: &mut Vec<(Level, Suite, Secret)>, level: Level) -> Option<(Suite, Secret)> {
    let index = secrets.iter().position(|entry| entry.0 == level)?;
    let (_, suite, secret) = secrets.swap_remove(index);
    Some((suite, secret))
}

/// The connection IDs of long headers.
#[derive(Debug)]
pub struct HandshakeIds {
    /// The ID of this endpoint.
    pub local: ConnectionId,
    remote: ConnectionId,
    remote_is_final: bool,
    chosen_by_peer: Vec<ConnectionId>,
}

impl HandshakeIds {
    /// The IDs at the start: the one of this endpoint, the one that packets to the peer carry, and what the peer chose for
    /// this endpoint.
    pub fn new(local: ConnectionId, remote: ConnectionId, chosen_by_peer: Vec<ConnectionId>) -> Self {
        Self { local, remote, remote_is_final: false, chosen_by_peer }
    }

    /// The peer's ID, or what the client chose for it.
    pub fn remote(&self) -> ConnectionId {
        self.remote
    }

    /// Returns true if the peer's own choice is known.
    pub fn is_remote_final(&self) -> bool {
        self.remote_is_final
    }

    /// The peer's first packet names its own choice, which no later one changes (RFC 9000 §7.2).
    pub fn fix_remote(&mut self, source: ConnectionId) {
        debug_assert!(!self.remote_is_final, "the peer chooses once");
        self.remote = source;
        self.remote_is_final = true;
    }

    /// A Retry, or another attempt, has packets go to another ID of the peer.
    pub fn redirect(&mut self, remote: ConnectionId) {
        self.remote = remote;
    }

    /// Takes the IDs that the peer chose for this endpoint and the router does not know yet.
    pub fn take_chosen_by_peer(&mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.chosen_by_peer)
    }

    /// The bytes around the frames of a long-header packet at most.
    pub fn overhead(&self) -> usize {
        overhead::long(self.remote.len(), self.local.len())
    }
}

/// The state that lives until the handshake is confirmed.
#[derive(Debug)]
pub struct Handshake {
    /// TLS.
    pub session: Tls,
    /// The connection IDs of long headers.
    pub ids: HandshakeIds,
    /// Packets that came before their keys.
    pub undecryptable: UndecryptablePackets,
    /// The Initial space, until its keys are discarded (RFC 9001 §4.9.1).
    pub initial: Option<Box<HandshakeSpace>>,
    /// The Handshake space, until its keys are discarded (RFC 9001 §4.9.2).
    pub handshake: Option<Box<HandshakeSpace>>,
    /// CRYPTO data in 1-RTT packets: session tickets.
    pub post: CryptoStream,
    /// Secrets until both of a level are there.
    pub secrets: PendingSecrets,
    /// Connection IDs of the handshake.
    pub seen: SeenIds,
    /// The negotiation of the version.
    pub negotiation: Negotiation,
    /// A server's ClientHello, until it is whole and the version chosen.
    pub hello: Option<Box<Hello>>,
    /// The material of a client for a second attempt.
    pub attempt: Option<Box<Attempt>>,
    /// The token for Initial packets, from a Retry or an earlier connection.
    pub token: Bytes,
    /// The number of times that the server's flight was repeated because the client asked again.
    pub repetitions: u8,
    /// The time at which the handshake times out.
    pub deadline: Instant,
}

impl Handshake {
    /// The version in use. It may change while the handshake goes on.
    pub fn version(&self) -> Version {
        self.negotiation.current()
    }

    /// A client that still asks in Initial packets has not got the answer to its ClientHello: it is sent again, without
    /// waiting for a probe timeout that knows no round-trip time yet (RFC 9002 §6.2.3).
    pub fn answer_again(&mut self, role: Role, now: Instant) {
        let handshake = self.handshake.as_ref();
        let answered = handshake
            .is_some_and(|space| space.keys.is_some() && space.last_eliciting.is_some_and(|at| at < now));
        if role == Role::Client || !answered || self.repetitions >= REPETITIONS {
            return;
        }
        self.repetitions += 1;
        for (_, space) in self.spaces() {
            space.repeat();
        }
    }

    /// A server that repeats itself at `level`, or whose Handshake packets come before their keys, may not have what this
    /// client said last: it is said again without waiting for a probe timeout, which loss has made long by then
    /// (RFC 9002 §6.2.3).
    pub fn ask_again(&mut self, role: Role, level: Level, now: Instant) {
        if role == Role::Server || self.repetitions >= REPETITIONS {
            return;
        }
        let Some(space) = self.space(level).filter(|space| space.keys.is_some()) else { return };
        // What is repeated already is not repeated for every packet of the same flight.
        if space.crypto.has_pending() || space.last_eliciting.is_none_or(|at| at >= now) {
            return;
        }
        space.repeat();
        self.repetitions += u8::from(space.crypto.has_pending());
    }

    /// The keys of Initial packets of `version`, as `role` uses them.
    pub fn initial_keys_of(&self, role: Role, version: Version) -> LevelKeys {
        let destination = self.seen.client_destination();
        let (seal, open) = initial_keys(version, &destination, role);
        LevelKeys { seal, open }
    }

    /// Keys for a packet that shows that the server moved the connection to `version`, if that may be (RFC 9369 §4.1).
    pub fn keys_to_follow(&self, role: Role, level: Level, version: Version) -> Option<LevelKeys> {
        let may_follow =
            role == Role::Client && level == Level::Initial && self.negotiation.may_become(version);
        may_follow.then(|| self.initial_keys_of(role, version))
    }

    /// The server moved the connection to `version`: a packet that `keys` opened said so.
    pub fn follow_version(&mut self, version: Version, keys: LevelKeys) {
        self.negotiation.become_version(version);
        if let Some(space) = self.initial.as_mut() {
            space.keys = Some(keys);
        }
    }

    /// CRYPTO data arrived at `level`.
    pub fn on_crypto(
        &mut self,
        role: Role,
        level: Level,
        crypto: Crypto,
        now: Instant,
    ) -> Result<(), TransportError> {
        if role == Role::Client && level == Level::Initial {
            self.negotiation.settle();
        }
        let Some(stream) = self.crypto(level) else { return Ok(()) };
        if stream.receive(crypto)? == Novelty::Known {
            self.ask_again(role, level, now);
        }
        Ok(())
    }

    /// The space of `level`, unless it is gone or has none of its own.
    pub fn space(&mut self, level: Level) -> Option<&mut HandshakeSpace> {
        match level {
            //= https://www.rfc-editor.org/rfc/rfc9001#section-4.9.1
            //# Endpoints MUST NOT send Initial packets after this point.
            Level::Initial => self.initial.as_deref_mut(),
            Level::Handshake => self.handshake.as_deref_mut(),
            Level::ZeroRtt | Level::OneRtt => None,
        }
    }

    /// Bytes of Initial and Handshake packets in flight. They count on path 0, beside those of its 1-RTT packets.
    pub fn in_flight(&self) -> usize {
        [&self.initial, &self.handshake].into_iter().flatten().map(|space| space.sent.in_flight()).sum()
    }

    /// The CRYPTO stream of `level`, unless it is gone.
    pub fn crypto(&mut self, level: Level) -> Option<&mut CryptoStream> {
        match level {
            Level::OneRtt => Some(&mut self.post),
            level => self.space(level).map(|space| &mut space.crypto),
        }
    }

    /// Both spaces that still exist, earlier first, to look at.
    pub fn existing(&self) -> impl Iterator<Item = &HandshakeSpace> {
        self.initial.as_deref().into_iter().chain(self.handshake.as_deref())
    }

    /// Returns true if packets of a space that still exists are lost at a known time, unless they are acknowledged
    /// before.
    pub fn awaits_loss(&self) -> bool {
        self.existing().any(|space| space.sent.loss_time().is_some())
    }

    /// Both spaces that still exist, earlier first.
    pub fn spaces(&mut self) -> impl Iterator<Item = (Level, &mut HandshakeSpace)> {
        let initial = self.initial.as_deref_mut().map(|space| (Level::Initial, space));
        let handshake = self.handshake.as_deref_mut().map(|space| (Level::Handshake, space));
        initial.into_iter().chain(handshake)
    }
}
