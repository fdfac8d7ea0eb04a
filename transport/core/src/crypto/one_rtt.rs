//! Keys of 1-RTT packets and their updates (RFC 9001 §6), one sequence of generations for all paths (RFC 10069 §2.4).

use crate::PathId;
use crate::crypto::keys::{Cipher, KeySource, Secret, Suite};
use crate::crypto::protect::{DormantKey, HeaderKey, PacketKey, Unprotected, nonce};
use crate::error::{Dropped, ErrorCode, PacketError};
use crate::wire::header::{HeaderLayout, KeyPhase};
use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

/// Packets that are left for the end when a connection closes because its keys are worn out.
const CLOSING_RESERVE: u64 = 128;

/// The generation of keys that opened a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyGeneration {
    /// The one before the current: a late packet.
    Previous,
    /// The current one.
    Current,
    /// The one after: the peer updated its keys, and so did this endpoint on opening the packet.
    Next,
}

/// The reason for which this endpoint may not update its keys now (RFC 9001 §6.1, §6.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum UpdateNotPermitted {
    /// No packet of the current generation was acknowledged yet.
    #[error("no packet of the current key phase was acknowledged")]
    Unacknowledged,
    /// Keys of the generation before are still kept for late packets.
    #[error("keys of the previous key phase are still in use")]
    PreviousInUse,
    /// The handshake is not confirmed, or the connection is over.
    #[error("the handshake is not confirmed")]
    Unconfirmed,
    /// The previous update was acknowledged less than three times the largest PTO ago.
    #[error("the previous key update was acknowledged too recently")]
    TooSoon,
}

/// The distance of the keys from the limits of the AEAD (RFC 9001 §6.6).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LimitState {
    /// Far away.
    Fine,
    /// Half of the packets that one key may seal are sealed: update the keys.
    UpdateSoon,
    /// A limit is as good as reached: close with AEAD_LIMIT_REACHED while a few packets may still be sealed.
    Reached,
}

/// The limits on the use of keys (RFC 9001 §6.6), counted in packets over all paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AeadLimits {
    /// Packets sealed with one key.
    pub confidentiality: u64,
    /// Packets that fail to authenticate, over all keys of the connection.
    pub integrity: u64,
}

impl AeadLimits {
    /// The limits of `suite`.
    pub const fn of(suite: Suite) -> Self {
        Self { confidentiality: suite.confidentiality_limit(), integrity: suite.integrity_limit() }
    }
}

/// The use of the current generation on a path. Packet numbers of different paths do not compare.
#[derive(Clone, Copy, Default, Debug)]
struct PathUse {
    /// The first packet number sealed.
    first_sealed: Option<u64>,
    /// The lowest and the highest packet number opened.
    opened: Option<(u64, u64)>,
}

/// The 1-RTT keys of a connection.
#[derive(Debug)]
pub struct OneRttKeys {
    cipher: Cipher,
    phase: KeyPhase,
    local: Generated,
    /// Missing on a server that answers 0-RTT before the client has finished the handshake.
    remote: Option<Remote>,
    previous_remote: Option<Box<PacketKey>>,
    seal_header: HeaderKey,
    /// Paths that were used in the current generation.
    paths: SmallVec<[(PathId, PathUse); 1]>,
    usage: Usage,
    acknowledgement: Acknowledgement,
    answer: Answer,
}

/// A secret and the key derived from it.
#[derive(Debug)]
struct Generated {
    secret: Secret,
    key: PacketKey,
}

impl Generated {
    fn new(source: &KeySource, secret: Secret) -> Self {
        Self { secret, key: PacketKey::new(source) }
    }

    fn next(&self, cipher: Cipher) -> Self {
        let secret = self.secret.updated(cipher);
        Self::new(&KeySource::new(cipher, secret.as_slice()), secret)
    }
}

/// A secret, and what its key is made from.
#[derive(Debug)]
struct Prepared {
    secret: Secret,
    key: DormantKey,
}

impl Prepared {
    /// The generation after that of `source`.
    fn after(source: &KeySource) -> Self {
        let secret = source.updated();
        let key = DormantKey::new(&KeySource::new(source.cipher(), secret.as_slice()));
        Self { secret, key }
    }
}

/// The keys that open packets.
#[derive(Debug)]
struct Remote {
    current: Generated,
    /// Derived ahead of time, so that a packet that updates the keys takes no longer to open (RFC 9001 §6.3, §9.5).
    next: Prepared,
    header: HeaderKey,
}

impl Remote {
    fn new(cipher: Cipher, secret: &[u8]) -> Self {
        let source = KeySource::new(cipher, secret);
        let current = Generated::new(&source, short(secret));
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.3
        //# Endpoints responding to an apparent key update MUST NOT generate a timing side-channel signal that
        //# might indicate that the Key Phase bit was invalid (see Section 9.5)
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.3
        //# For this reason, endpoints MUST be able to retain two sets of packet protection keys for receiving
        //# packets: the current and the next
        let next = Prepared::after(&source);
        Self { next, current, header: HeaderKey::new(&source) }
    }
}

/// A secret that TLS gave out.
fn short(secret: &[u8]) -> Secret {
    Secret::new(secret).expect("TLS 1.3 secrets have at most 48 bytes")
}

/// Counters against the limits of the AEAD.
#[derive(Clone, Copy, Debug)]
struct Usage {
    limits: AeadLimits,
    /// Packets sealed with the current key, on all paths.
    sealed: u64,
    /// Packets that failed to authenticate since the connection began, on all paths.
    failed: u64,
}

/// Tells whether the peer confirmed the current generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Acknowledgement {
    /// No packet sealed with it was acknowledged.
    Awaited,
    /// At least one packet sealed with it was acknowledged.
    Received,
}

/// Tells whether the peer uses the current generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// No packet sealed with it was opened.
    Awaited,
    /// At least one packet sealed with it was opened.
    Received,
}

impl OneRttKeys {
    /// The first generation, from the secrets that TLS gave for writing and for reading. Secrets of `suite` have
    /// [`Suite::secret_length`] bytes; longer than 48 there are none.
    pub fn new(cipher: impl Into<Cipher>, local_secret: &[u8], remote_secret: &[u8]) -> Self {
        let mut keys = Self::sending(cipher, local_secret);
        keys.receive(remote_secret);
        keys
    }

    /// The first generation as far as a server has it that answers 0-RTT: nothing can be opened before
    /// [`OneRttKeys::receive`] (RFC 9001 §5.7).
    pub fn sending(cipher: impl Into<Cipher>, local_secret: &[u8]) -> Self {
        let cipher = cipher.into();
        let source = KeySource::new(cipher, local_secret);
        Self {
            cipher,
            phase: KeyPhase::Zero,
            local: Generated::new(&source, short(local_secret)),
            remote: None,
            previous_remote: None,
            seal_header: HeaderKey::new(&source),
            paths: SmallVec::new(),
            usage: Usage { limits: AeadLimits::of(cipher.suite), sealed: 0, failed: 0 },
            acknowledgement: Acknowledgement::Awaited,
            answer: Answer::Awaited,
        }
    }

    /// Adds the secret for reading, of the same suite.
    pub fn receive(&mut self, remote_secret: &[u8]) {
        self.remote = Some(Remote::new(self.cipher, remote_secret));
    }

    /// Returns true if packets can be opened.
    pub fn can_open(&self) -> bool {
        self.remote.is_some()
    }

    /// Returns the same keys with lower limits; those of the suite stay the highest.
    pub fn with_limits(mut self, limits: AeadLimits) -> Self {
        let highest = AeadLimits::of(self.cipher.suite);
        self.usage.limits = AeadLimits {
            confidentiality: limits.confidentiality.min(highest.confidentiality),
            integrity: limits.integrity.min(highest.integrity),
        };
        self
    }

    /// Returns the same keys, after `failed` packets failed to authenticate with earlier keys of the connection.
    pub fn with_failed(mut self, failed: u64) -> Self {
        self.usage.failed = failed;
        self
    }

    /// The suite of the keys.
    pub fn suite(&self) -> Suite {
        self.cipher.suite
    }

    /// The key phase that short headers carry now.
    pub fn phase(&self) -> KeyPhase {
        self.phase
    }

    /// Seals a packet as [`SealKey::seal`](crate::crypto::protect::SealKey::seal) does, and counts it. The header was
    /// written with the current [`OneRttKeys::phase`].
    #[expect(clippy::too_many_arguments, reason = "where the packet is and what its nonce is, nothing else")]
    pub fn seal(
        &mut self,
        packet: &mut Vec<u8>,
        start: usize,
        layout: &HeaderLayout,
        path: PathId,
        number: u64,
    ) {
        debug_assert_eq!(
            packet.get(start).map(|first| KeyPhase::of(*first)),
            Some(self.phase),
            "header of another phase"
        );
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
        //# Endpoints MUST count the number of encrypted packets for each set of keys
        self.usage.sealed += 1;
        self.path_use(path).first_sealed.get_or_insert(number);
        let key = &self.local.key;
        key.seal(packet, start, layout, nonce(key.iv(), path, number));
        self.seal_header.protect(packet, start, layout);
    }

    /// Removes the mask from the header of `packet`, as [`OpenKey::unprotect`](crate::crypto::protect::OpenKey::unprotect).
    pub fn unprotect(&self, packet: &mut [u8], number_offset: usize) -> Result<Unprotected, Dropped> {
        self.remote.as_ref().ok_or(Dropped::NoKeys)?.header.unprotect(packet, number_offset)
    }

    /// Authenticates and decrypts `packet`, whose unmasked header has key phase `phase` and ends at `payload_offset`.
    ///
    /// If it belongs to the next generation the keys are updated, those for sealing too (RFC 9001 §6.2). Closes with
    /// KEY_UPDATE_ERROR if the peer may not have updated its keys, and with AEAD_LIMIT_REACHED if too many packets
    /// failed to authenticate.
    #[expect(clippy::too_many_arguments, reason = "the packet, what its header said and what its nonce is")]
    pub fn open(
        &mut self,
        packet: BytesMut,
        payload_offset: usize,
        phase: KeyPhase,
        path: PathId,
        number: u64,
    ) -> Result<(Bytes, KeyGeneration), PacketError> {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-5.5
        //# Once an endpoint successfully receives a packet with a given packet number, it MUST discard all
        //# packets in the same packet number space with higher packet numbers
        let expected = self.generation(phase, path, number);
        let remote = self.remote.as_ref().ok_or(Dropped::NoKeys)?;
        // Whatever the packet is: the first one after a rest takes as long in either key phase.
        remote.current.key.wake();
        let mut awake = None;
        let key = match (expected, &self.previous_remote) {
            (KeyGeneration::Previous, Some(previous)) => previous.as_ref(),
            (KeyGeneration::Previous | KeyGeneration::Next, _) => awake.insert(remote.next.key.wake()),
            (KeyGeneration::Current, _) => &remote.current.key,
        };
        // Opening with the wrong key destroys the packet.
        let copy = self.is_ambiguous(expected, path).then(|| packet.clone());
        let opened = match (key.open(packet, payload_offset, path, number), copy) {
            (Err(_), Some(copy)) => {
                let next = remote.next.key.wake().open(copy, payload_offset, path, number);
                next.map(|payload| (payload, KeyGeneration::Next))
            }
            (Err(dropped), None) if awake.is_none() => {
                // RFC 9001 §9.5: a forged packet takes as long whatever key phase it seems to have.
                std::hint::black_box(remote.next.key.wake());
                Err(dropped)
            }
            (opened, _) => opened.map(|payload| (payload, expected)),
        };
        //= https://www.rfc-editor.org/rfc/rfc9001#section-5.5
        //# Similarly, a packet that appears to trigger a key update but cannot be unprotected successfully
        //# MUST be discarded.
        let (payload, generation) = opened.map_err(|dropped| self.failed(dropped))?;
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.2
        //# Sending keys MUST be updated before sending an acknowledgment for the packet that was received
        //# with updated keys
        if generation == KeyGeneration::Next {
            self.check_update(path, number)?;
            // The peer's PTO may be shorter than this endpoint's, so that it may update while late packets of the
            // generation before the last are still awaited here: they are given up (RFC 9001 §6.5).
            self.rotate();
        }
        if generation != KeyGeneration::Previous {
            self.answer = Answer::Received;
            let opened = &mut self.path_use(path).opened;
            let (lowest, highest) = opened.unwrap_or((number, number));
            *opened = Some((lowest.min(number), highest.max(number)));
        }
        Ok((payload, generation))
    }

    /// Notes that the peer acknowledged packet `number` of `path`.
    pub fn on_acknowledged(&mut self, path: PathId, number: u64) {
        if self.acknowledgement == Acknowledgement::Received {
            return;
        }
        let first = self.used(path).and_then(|path| path.first_sealed);
        if first.is_some_and(|first| number >= first) {
            self.acknowledgement = Acknowledgement::Received;
        }
    }

    /// Returns true if the peer acknowledged a packet of the current generation. Three times the largest PTO after
    /// that, the next update may begin (RFC 9001 §6.5, RFC 10069 §2.5).
    pub fn is_acknowledged(&self) -> bool {
        self.acknowledgement == Acknowledgement::Received
    }

    /// Returns true if keys of the generation before are kept.
    pub fn has_previous(&self) -> bool {
        self.previous_remote.is_some()
    }

    /// Returns true if a packet of the current generation was opened, so that the time of the previous one runs out
    /// (RFC 9001 §6.5). False after an update from here until the peer followed.
    pub fn is_answered(&self) -> bool {
        self.answer == Answer::Received
    }

    /// Drops the keys of the generation before, unless the peer still uses them for all that is known. Due three times
    /// the largest PTO after [`OneRttKeys::is_answered`] became true (RFC 9001 §6.5, RFC 10069 §2.5).
    pub fn discard_previous(&mut self) {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.1
        //# An endpoint MUST retain old keys until it has successfully unprotected a packet sent using the new
        //# keys
        if self.is_answered() {
            self.previous_remote = None;
        }
    }

    /// Moves to the next generation, so that the packets sealed from here on ask the peer to follow. The caller has
    /// seen the handshake confirmed (RFC 9001 §6.1).
    pub fn initiate_update(&mut self) -> Result<(), UpdateNotPermitted> {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.1
        //# An endpoint MUST NOT initiate a subsequent key update unless it has received an acknowledgment for
        //# a packet that was sent protected with keys from the current key phase
        if !self.is_acknowledged() {
            return Err(UpdateNotPermitted::Unacknowledged);
        }
        if self.has_previous() {
            return Err(UpdateNotPermitted::PreviousInUse);
        }
        self.rotate();
        Ok(())
    }

    /// Forgets a path that is gone for good; packets of its id are not opened any more.
    pub fn forget_path(&mut self, path: PathId) {
        self.paths.retain(|(used, _)| *used != path);
    }

    /// Returns the distance of the keys from their limits.
    pub fn limits(&self) -> LimitState {
        let Usage { limits, sealed, failed } = self.usage;
        let reserve = (limits.confidentiality / 16).min(CLOSING_RESERVE);
        if sealed >= limits.confidentiality - reserve || failed >= limits.integrity {
            LimitState::Reached
        } else if sealed >= limits.confidentiality / 2 {
            LimitState::UpdateSoon
        } else {
            LimitState::Fine
        }
    }

    /// Returns true if not one more packet may be sealed with the current keys (RFC 9001 §6.6).
    pub fn is_spent(&self) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
        //# If the total number of encrypted packets with the same key exceeds the confidentiality limit for
        //# the selected AEAD, the endpoint MUST stop using those keys
        self.usage.sealed >= self.usage.limits.confidentiality
    }

    /// Gives up what the keys take beyond the secrets that they are made from, three quarters of their memory, until the next
    /// packet, which takes a microsecond longer.
    pub fn hibernate(&mut self) {
        self.local.key.hibernate();
        self.seal_header.hibernate();
        if let Some(remote) = self.remote.as_mut() {
            remote.current.key.hibernate();
            remote.header.hibernate();
        }
    }

    /// Returns true if a packet was sealed or opened since the keys were made or rested.
    pub fn is_active(&self) -> bool {
        let opens = self.remote.as_ref().is_some_and(|remote| remote.current.key.is_active());
        opens || self.local.key.is_active()
    }

    fn used(&self, path: PathId) -> Option<&PathUse> {
        self.paths.iter().find(|(used, _)| *used == path).map(|(_, found)| found)
    }

    fn position(&mut self, path: PathId) -> usize {
        self.paths.iter().position(|(used, _)| *used == path).unwrap_or_else(|| {
            self.paths.push((path, PathUse::default()));
            self.paths.len() - 1
        })
    }

    #[inline]
    fn path_use(&mut self, path: PathId) -> &mut PathUse {
        let is_first = self.paths.first().is_some_and(|(used, _)| *used == path);
        let index = if is_first { 0 } else { self.position(path) };
        &mut self.paths.get_mut(index).expect("an entry was found or added there").1
    }

    /// Returns the generation that sealed the packet, going by its key phase and, where that leaves two, by its number:
    /// the previous one if the path has opened no earlier packet of the current one (RFC 9001 §6.5).
    fn generation(&self, phase: KeyPhase, path: PathId, number: u64) -> KeyGeneration {
        if phase == self.phase {
            return KeyGeneration::Current;
        }
        let opened = self.used(path).and_then(|path| path.opened);
        let is_late = opened.is_none_or(|(lowest, _)| number < lowest);
        if self.has_previous() && is_late { KeyGeneration::Previous } else { KeyGeneration::Next }
    }

    /// Returns true if a packet that counts as late may be of the next generation as well: the path has opened none of
    /// the current one, as after a time without traffic, and a peer with a shorter PTO may have updated again
    /// meanwhile.
    fn is_ambiguous(&self, expected: KeyGeneration, path: PathId) -> bool {
        expected == KeyGeneration::Previous && self.used(path).is_none_or(|path| path.opened.is_none())
    }

    /// Checks that the peer was free to update, given that packet `number` of `path` opened with the next keys.
    fn check_update(&self, path: PathId, number: u64) -> Result<(), PacketError> {
        if self.usage.sealed == 0 {
            // RFC 9001 §6.2: it cannot have seen an acknowledgement sealed with the current keys.
            let reason = "keys updated twice without awaiting an acknowledgement";
            return Err(ErrorCode::KEY_UPDATE_ERROR.because(reason).into());
        }
        let opened = self.used(path).and_then(|path| path.opened);
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.4
        //# An endpoint that successfully removes protection with old keys when newer keys were used for
        //# packets with lower packet numbers MUST treat this as a connection error of type KEY_UPDATE_ERROR.
        if opened.is_some_and(|(_, highest)| number < highest) {
            // RFC 9001 §6.4.
            let reason = "old keys were used for a higher packet number than new keys";
            return Err(ErrorCode::KEY_UPDATE_ERROR.because(reason).into());
        }
        Ok(())
    }

    fn rotate(&mut self) {
        if let Some(remote) = self.remote.as_mut() {
            let after = Prepared::after(&KeySource::new(self.cipher, remote.next.secret.as_slice()));
            let Prepared { secret, key } = std::mem::replace(&mut remote.next, after);
            let next = Generated { secret, key: key.wake() };
            self.previous_remote = Some(Box::new(std::mem::replace(&mut remote.current, next).key));
        }
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.2
        //# The endpoint MUST update its send keys to the corresponding key phase in response, as described in
        //# Section 6.1
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.4
        //# Packets with higher packet numbers MUST be protected with either the same or newer packet
        //# protection keys than packets with lower packet numbers
        self.local = self.local.next(self.cipher);
        self.phase = self.phase.next();
        self.paths.clear();
        self.usage.sealed = 0;
        self.acknowledgement = Acknowledgement::Awaited;
        self.answer = Answer::Awaited;
    }

    /// Counts a packet that failed to authenticate, with these keys or others of the connection.
    pub(crate) fn failed(&mut self, dropped: Dropped) -> PacketError {
        if dropped != Dropped::Undecryptable {
            return dropped.into();
        }
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
        //# In addition to counting packets sent, endpoints MUST count the number of received packets that
        //# fail authentication during the lifetime of a connection
        self.usage.failed += 1;
        //= https://www.rfc-editor.org/rfc/rfc9001#section-6.6
        //# across all keys, exceeds the integrity limit for the selected AEAD, the endpoint MUST immediately
        //# close the connection with a connection error of type AEAD_LIMIT_REACHED and not process any more
        if self.usage.failed >= self.usage.limits.integrity {
            // RFC 9001 §6.6.
            return ErrorCode::AEAD_LIMIT_REACHED.because("too many packets failed to authenticate").into();
        }
        dropped.into()
    }
}

#[cfg(test)]
mod tests;
