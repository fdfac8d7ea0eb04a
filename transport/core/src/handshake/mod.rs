//! The handshake: TLS, its CRYPTO data, and the Initial and Handshake packet-number spaces.

pub(crate) mod crypto_stream;
pub(crate) mod hello;
pub(crate) mod ids;
pub(crate) mod negotiation;
pub(crate) mod parameters;
pub(crate) mod secrets;
pub(crate) mod space;
pub(crate) mod tls;
pub(crate) mod undecryptable;
pub(crate) mod zero_rtt;

use crate::Role;
use crate::crypto::initial::initial_keys;
use crate::crypto::session::Session;
use crate::error::TransportError;
use crate::handshake::crypto_stream::{CryptoStream, Novelty};
use crate::handshake::hello::{Attempt, Hello};
use crate::handshake::ids::HandshakeIds;
use crate::handshake::negotiation::Negotiation;
use crate::handshake::parameters::SeenIds;
use crate::handshake::secrets::PendingSecrets;
use crate::handshake::space::{HandshakeSpace, LevelKeys};
use crate::handshake::tls::Tls;
use crate::handshake::undecryptable::UndecryptablePackets;
use crate::time::Instant;
use crate::wire::connection_id::ConnectionId;
use crate::wire::frame::Crypto;
use crate::wire::level::Level;
use crate::wire::version::Version;
use bytes::Bytes;

/// Repetitions of an endpoint's flight at most that packets of the peer cause (RFC 9002 §6.2.3).
const REPETITIONS: u8 = 8;

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
    initial: Option<Box<HandshakeSpace>>,
    /// The Handshake space, until its keys are discarded (RFC 9001 §4.9.2).
    handshake: Option<Box<HandshakeSpace>>,
    /// CRYPTO data in 1-RTT packets: session tickets.
    pub post: CryptoStream,
    /// Secrets until both of a level are there.
    pub secrets: PendingSecrets,
    /// Connection IDs of the handshake.
    pub seen: SeenIds,
    /// The negotiation of the version.
    pub negotiation: Negotiation,
    /// A server's ClientHello, until it is whole and the version chosen.
    hello: Option<Box<Hello>>,
    /// The material of a client for a second attempt.
    attempt: Option<Box<Attempt>>,
    /// The token for Initial packets, from a Retry or an earlier connection.
    token: Bytes,
    /// The number of times that the server's flight was repeated because the client asked again.
    repetitions: u8,
    /// The time at which the handshake times out.
    deadline: Instant,
}

impl Handshake {
    /// A handshake of which nothing was sent or received, and which times out at `deadline`; the first Initial packets need
    /// [keys](Self::install).
    pub fn new(
        session: Session,
        ids: HandshakeIds,
        seen: SeenIds,
        negotiation: Negotiation,
        deadline: Instant,
    ) -> Self {
        Self {
            session: Tls::Session(session),
            ids,
            undecryptable: UndecryptablePackets::default(),
            initial: Some(Box::new(HandshakeSpace::new(Level::Initial))),
            handshake: Some(Box::new(HandshakeSpace::new(Level::Handshake))),
            post: CryptoStream::new(Level::OneRtt),
            secrets: PendingSecrets::default(),
            seen,
            negotiation,
            hello: None,
            attempt: None,
            token: Bytes::new(),
            repetitions: 0,
            deadline,
        }
    }

    /// A client begins again in another version: `next` takes the place of this, which has kept packets for it.
    pub fn begin_again(&mut self, next: Self) {
        let undecryptable = std::mem::take(&mut self.undecryptable);
        *self = Self { undecryptable, ..next };
    }

    /// A client may begin again in another version, with what `attempt` holds.
    pub fn allow_another(&mut self, attempt: Attempt) {
        self.attempt = Some(Box::new(attempt));
    }

    /// Takes the material for a second attempt; there is no third.
    pub fn take_attempt(&mut self) -> Option<Box<Attempt>> {
        self.attempt.take()
    }

    /// A server that may choose the version waits until `hello` is whole.
    pub fn await_hello(&mut self, hello: Box<Hello>) {
        self.hello = Some(hello);
    }

    /// Takes the ClientHello that CRYPTO data of `level` belongs to, if the server waits for the whole of it.
    pub fn take_hello(&mut self, level: Level) -> Option<Box<Hello>> {
        self.hello.take_if(|_| level == Level::Initial)
    }

    /// The token for Initial packets; empty if there is none.
    pub fn token(&self) -> &Bytes {
        &self.token
    }

    /// Has Initial packets carry `token`, from an earlier connection.
    pub fn present_token(&mut self, token: Bytes) {
        self.token = token;
    }

    /// The time at which the handshake times out.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Has the handshake time out at `until`, unless it does earlier.
    pub fn limit(&mut self, until: Instant) {
        self.deadline = self.deadline.min(until);
    }

    /// Has the space of `level` protect packets with `keys`, if it still exists.
    pub fn install(&mut self, level: Level, keys: LevelKeys) {
        if let Some(space) = self.space(level) {
            space.install(keys);
        }
    }

    /// Drops the space of `level` with its keys. Returns true if there was one.
    pub fn discard(&mut self, level: Level) -> bool {
        match level {
            //= https://www.rfc-editor.org/rfc/rfc9002#section-6.4
            //# The sender MUST discard all recovery state associated with those packets and MUST remove them
            //# from the count of bytes in flight.
            Level::Initial => {
                // Only Initial packets carry it.
                self.token = Bytes::new();
                self.initial.take().is_some()
            }
            Level::Handshake => self.handshake.take().is_some(),
            Level::ZeroRtt | Level::OneRtt => false,
        }
    }

    /// Returns true if the Handshake space still exists.
    pub fn has_handshake_space(&self) -> bool {
        self.handshake.is_some()
    }

    /// A server sent a Retry from `source`: the Initial starts anew with `token`, and goes there (RFC 9000 §17.2.5).
    pub fn on_retry(&mut self, role: Role, source: ConnectionId, token: Bytes) {
        self.seen.on_retry(source);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.2
        //# This token MUST be repeated by the client in all Initial packets it sends for that connection
        //# after it receives the Retry packet.
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
        //= type=implication
        //= reason=The token of a Retry stays in the handshake; only those of NEW_TOKEN frames are told to the
        //= reason=endpoint, which keeps them.
        //# The client MUST NOT use the token provided in a Retry for future connections
        //= https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
        //# In comparison, a token obtained in a Retry packet MUST be used immediately during the connection
        //# attempt and cannot be used in subsequent connection attempts.
        self.token = token;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7.2
        //# A client MUST change the Destination Connection ID it uses for sending packets in response to only
        //# the first received Initial or Retry packet
        //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.1
        //# The client MUST use the value from the Source Connection ID field of the Retry packet in the
        //# Destination Connection ID field of subsequent packets that it sends.
        self.ids.redirect(source);
        let keys = self.initial_keys_of(role, self.version());
        if let Some(space) = self.initial.as_mut() {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.3
            //# A client MUST NOT reset the packet number for any packet number space after processing a Retry
            //# packet
            // Packet numbers go on; what was in flight is neither lost nor acknowledged (RFC 9002 §6.3).
            let _unresolved = space.sent.drain_all();
            space.install(keys);
            //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
            //= type=implication
            //= reason=The connection ID of this endpoint is set once, when the connection begins.
            //# The client MUST NOT change the Source Connection ID because the server could include the
            //# connection ID as part of its token validation logic; see Section 8.1.4.
            //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.3
            //# A client MUST use the same cryptographic handshake message it included in this packet
            space.crypto.repeat();
        }
    }

    /// The version in use. It may change while the handshake goes on.
    pub fn version(&self) -> Version {
        self.negotiation.current()
    }

    /// A client that still asks in Initial packets has not got the answer to its ClientHello: it is sent again, without
    /// waiting for a probe timeout that knows no round-trip time yet (RFC 9002 §6.2.3).
    pub fn answer_again(&mut self, role: Role, now: Instant) {
        let handshake = self.handshake.as_ref();
        let answered = handshake
            .is_some_and(|space| space.has_keys() && space.last_eliciting().is_some_and(|at| at < now));
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
        // Its keys are not made yet, or discarded, for the server showed that it needs nothing more.
        let Some(space) = self.space(level).filter(|space| space.has_keys()) else { return };
        // What is repeated already is not repeated for every packet of the same flight.
        if space.crypto.has_pending() || space.last_eliciting().is_none_or(|at| at >= now) {
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
        self.install(Level::Initial, keys);
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

    /// Returns true if an Initial or Handshake packet is in flight that the peer acknowledges of itself.
    pub fn awaits_acknowledgement(&self) -> bool {
        [&self.initial, &self.handshake]
            .into_iter()
            .flatten()
            .any(|space| space.sent.has_ack_eliciting_in_flight())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::session::{ClientTls, Verify};
    use crate::handshake::negotiation::Versions;
    use crate::ranges::Ranges;
    use crate::recovery::reordering::Thresholds;
    use crate::recovery::sent_packet::{PacketClass, SentPacket};
    use crate::wire::frame::{Ack, AckRanges};
    use std::time::Duration;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A handshake with keys for both spaces, of which nothing was sent.
    fn handshake() -> Handshake {
        let tls = ClientTls::builder().alpn(["hvq"]).verify(Verify::Insecure).build().unwrap();
        let session = Session::client(&tls, "server.test", b"").unwrap();
        let id = ConnectionId::new(&[7; 8]).unwrap();
        let negotiation = Negotiation::new(Versions::default(), Version::V1);
        let ids = HandshakeIds::new(id, id, Vec::new());
        let mut it = Handshake::new(session, ids, SeenIds::new(id), negotiation, at(5_000));
        for level in [Level::Initial, Level::Handshake] {
            let keys = it.initial_keys_of(Role::Client, Version::V1);
            it.install(level, keys);
        }
        it
    }

    /// Has a packet that elicits an acknowledgement leave with the first flight of `level`.
    fn send(it: &mut Handshake, level: Level, number: u64, now: Instant) {
        let space = it.space(level).unwrap();
        if number == 0 {
            space.crypto.write(&[7; 100]);
        }
        while space.crypto.next_frame(1000).is_some() {}
        space.on_sent(SentPacket::new(number, now, 200, PacketClass::AckEliciting));
    }

    /// The times out of 20 that `ask` makes the flight of `level` go out again, each long after the one before.
    fn repetitions(it: &mut Handshake, level: Level, ask: impl Fn(&mut Handshake, Instant)) -> usize {
        let mut repeated = 0;
        for number in 0..20 {
            send(it, level, number, at(100 * number));
            ask(it, at(100 * number));
            assert!(!it.space(level).unwrap().crypto.has_pending(), "it left just now");
            ask(it, at(100 * number + 50));
            repeated += usize::from(it.space(level).unwrap().crypto.has_pending());
        }
        repeated
    }

    #[test]
    fn a_server_repeats_its_flight_for_who_asks_again_a_few_times_and_a_client_never() {
        // RFC 9002 §6.2.3: an attacker that repeats Initial packets gets no more for them.
        let ask = |role| move |it: &mut Handshake, now| it.answer_again(role, now);
        assert_eq!(repetitions(&mut handshake(), Level::Handshake, ask(Role::Server)), 8);
        assert_eq!(repetitions(&mut handshake(), Level::Handshake, ask(Role::Client)), 0);
        assert_eq!(
            repetitions(&mut handshake(), Level::Initial, ask(Role::Server)),
            0,
            "it has not answered"
        );
    }

    #[test]
    fn a_client_repeats_its_words_for_a_server_that_repeats_itself_a_few_times() {
        let ask = |role| move |it: &mut Handshake, now| it.ask_again(role, Level::Initial, now);
        assert_eq!(repetitions(&mut handshake(), Level::Initial, ask(Role::Client)), 8);
        assert_eq!(repetitions(&mut handshake(), Level::Initial, ask(Role::Server)), 0);
        // Words that wait to be sent are not repeated for each packet of the server's flight.
        let mut it = handshake();
        send(&mut it, Level::Initial, 0, at(0));
        for _ in 0..20 {
            it.ask_again(Role::Client, Level::Initial, at(50));
        }
        send(&mut it, Level::Initial, 1, at(100));
        it.ask_again(Role::Client, Level::Initial, at(150));
        assert!(it.space(Level::Initial).unwrap().crypto.has_pending(), "they counted as one");
    }

    #[test]
    fn a_client_follows_a_server_to_another_version_until_it_reads_data() {
        // RFC 9369 §4.1.
        let mut it = handshake();
        let follows =
            |it: &Handshake, role, level, version| it.keys_to_follow(role, level, version).is_some();
        assert!(follows(&it, Role::Client, Level::Initial, Version::V2));
        assert!(!follows(&it, Role::Server, Level::Initial, Version::V2));
        assert!(!follows(&it, Role::Client, Level::Handshake, Version::V2));
        assert!(!follows(&it, Role::Client, Level::Initial, Version::V1), "it is there");
        let data = || Crypto { offset: 0, data: Bytes::from_static(b"hello") };
        for (role, level) in [(Role::Server, Level::Initial), (Role::Client, Level::Handshake)] {
            it.on_crypto(role, level, data(), at(0)).expect("within the limits");
            assert!(follows(&it, Role::Client, Level::Initial, Version::V2), "{role:?} {level:?}");
        }
        it.on_crypto(Role::Client, Level::Initial, data(), at(0)).expect("within the limits");
        assert!(!follows(&it, Role::Client, Level::Initial, Version::V2));
    }

    #[test]
    fn what_is_in_flight_waits_for_acknowledgements_until_its_space_is_discarded() {
        for level in [Level::Initial, Level::Handshake] {
            let mut it = handshake();
            assert!(!it.awaits_acknowledgement() && !it.awaits_loss() && it.in_flight() == 0);
            send(&mut it, level, 0, at(0));
            assert!(it.awaits_acknowledgement() && !it.awaits_loss() && it.in_flight() == 200);
            it.present_token(Bytes::from_static(b"token"));
            assert!(it.discard(level) && !it.discard(level));
            assert_eq!(it.token().is_empty(), level == Level::Initial);
            assert!(!it.awaits_acknowledgement() && it.in_flight() == 0);
            assert_eq!(it.has_handshake_space(), level == Level::Initial);
        }
    }

    #[test]
    fn what_is_overtaken_by_an_acknowledged_packet_is_lost_at_a_known_time() {
        let mut it = handshake();
        send(&mut it, Level::Initial, 0, at(0));
        send(&mut it, Level::Initial, 1, at(10));
        let mut acknowledged = Ranges::new();
        acknowledged.insert(1);
        let ranges = AckRanges::from_ranges(&acknowledged, 1000).unwrap();
        let sent = &mut it.space(Level::Initial).unwrap().sent;
        sent.on_ack(&Ack { path: None, largest: 1, delay: 0, ranges, ecn: None }, at(20))
            .expect("it was sent");
        sent.detect_lost(at(20), Thresholds::initial(Duration::from_millis(90)));
        assert!(it.awaits_loss());
        it.discard(Level::Initial);
        assert!(!it.awaits_loss());
    }

    #[test]
    fn a_handshake_ends_no_later_than_it_is_told() {
        let mut it = handshake();
        it.limit(at(6_000));
        assert_eq!(it.deadline(), at(5_000));
        it.limit(at(3_000));
        assert_eq!(it.deadline(), at(3_000));
    }
}
