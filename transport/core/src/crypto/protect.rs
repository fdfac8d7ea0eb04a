//! Packet protection: the AEAD over header and payload, and the mask over the header (RFC 9001 §5).

use crate::PathId;
use crate::crypto::aead::AeadKey;
use crate::crypto::keys::{Cipher, KeySource, Suite};
use crate::error::Dropped;
use crate::wire::header::HeaderLayout;
use bytes::{Buf, Bytes, BytesMut};
use ring::aead::quic::HeaderProtectionKey;
use std::fmt;
use std::sync::OnceLock;

/// Bytes from the start of the packet number to the sample of header protection (RFC 9001 §5.4.2).
const SAMPLE_OFFSET: usize = 4;
/// Bytes that header protection samples, the same for every suite.
const SAMPLE_LENGTH: usize = 16;
/// The bit that long headers have in their first byte (RFC 9000 §17.2).
const LONG_FORM: u8 = 0x80;

/// The fewest bytes of payload that a packet with a packet number of `number_length` bytes must have before it is
/// sealed, so that there is something to sample (RFC 9001 §5.4.2): PADDING makes up the rest.
pub const fn shortest_payload(number_length: usize) -> usize {
    SAMPLE_OFFSET.saturating_sub(number_length)
}

/// The AEAD nonce of packet `number` on `path` (RFC 10069 §2.4): the 96 bits of the path ID and the packet number,
/// exclusive-or `iv`. On path 0 it is the nonce of RFC 9001 §5.3.
pub fn nonce(iv: &[u8; 12], path: PathId, number: u64) -> [u8; 12] {
    let [a, b, c, d, low @ ..] = *iv;
    let [a, b, c, d] = (u32::from_be_bytes([a, b, c, d]) ^ path.0).to_be_bytes();
    let [e, f, g, h, i, j, k, l] = (u64::from_be_bytes(low) ^ number).to_be_bytes();
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

/// The fields that header protection hid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unprotected {
    /// The first byte, without its mask.
    pub first: u8,
    /// The packet number as sent, its low-order 8 × `number_length` bits.
    pub truncated: u32,
    /// Bytes of packet number that were sent, 1 to 4.
    pub number_length: usize,
}

/// Seals packets of one direction with one key.
#[derive(Debug)]
pub struct SealKey {
    packet: PacketKey,
    header: HeaderKey,
}

impl SealKey {
    /// The key derived from `secret` (RFC 9001 §5.1).
    pub fn new(cipher: impl Into<Cipher>, secret: &[u8]) -> Self {
        let source = KeySource::new(cipher.into(), secret);
        Self { packet: PacketKey::new(&source), header: HeaderKey::new(&source) }
    }

    /// Seals the packet that starts at `start` and ends `packet`: encrypts its payload in place, appends the tag and
    /// masks the header. Offsets of `layout` count from the start of `packet`.
    ///
    /// The header's Length already counts the tag, and the payload has at least [`shortest_payload`] bytes.
    #[expect(clippy::too_many_arguments, reason = "where the packet is and what its nonce is, nothing else")]
    pub fn seal(&self, packet: &mut Vec<u8>, start: usize, layout: &HeaderLayout, path: PathId, number: u64) {
        self.packet.seal(packet, start, layout, nonce(self.packet.iv(), path, number));
        self.header.protect(packet, start, layout);
    }
}

/// Opens packets of one direction with one key.
#[derive(Debug)]
pub struct OpenKey {
    packet: PacketKey,
    header: HeaderKey,
}

impl OpenKey {
    /// The key derived from `secret` (RFC 9001 §5.1).
    pub fn new(cipher: impl Into<Cipher>, secret: &[u8]) -> Self {
        let source = KeySource::new(cipher.into(), secret);
        Self { packet: PacketKey::new(&source), header: HeaderKey::new(&source) }
    }

    /// Removes the mask from the header of `packet`, in place. `number_offset` counts from the start of `packet`.
    ///
    /// Nothing is authenticated yet. Fails on packets too short to sample (RFC 9001 §5.4.2).
    pub fn unprotect(&self, packet: &mut [u8], number_offset: usize) -> Result<Unprotected, Dropped> {
        self.header.unprotect(packet, number_offset)
    }

    /// Authenticates and decrypts `packet`, whose header is unmasked and ends at `payload_offset`, and returns the
    /// payload without copying it.
    pub fn open(
        &self,
        packet: BytesMut,
        payload_offset: usize,
        path: PathId,
        number: u64,
    ) -> Result<Bytes, Dropped> {
        self.packet.open(packet, payload_offset, path, number)
    }
}

/// The material of a packet key, in a tenth of its size: for keys that are not in use, or never may be.
pub(super) struct DormantKey {
    suite: Suite,
    key: [u8; 32],
    iv: [u8; 12],
}

impl DormantKey {
    pub(super) fn new(source: &KeySource) -> Self {
        let cipher = source.cipher();
        let suite = cipher.suite;
        let (mut key, mut iv) = ([0; 32], [0; 12]);
        let bytes = key.get_mut(..suite.aead().key_len()).expect("AEAD keys have at most 32 bytes");
        source.fill(cipher.key_label(), bytes);
        source.fill(cipher.iv_label(), &mut iv);
        Self { suite, key, iv }
    }

    /// The key. The derivation, which took time, is done already.
    pub(super) fn wake(&self) -> PacketKey {
        let Self { suite, key, iv } = *self;
        let key = PacketKey { dormant: Self { suite, key, iv }, aead: OnceLock::new() };
        key.wake();
        key
    }

    fn aead(&self) -> AeadKey {
        let key = self.key.get(..self.suite.aead().key_len()).expect("AEAD keys have at most 32 bytes");
        AeadKey::new(self.suite, key)
    }
}

impl Drop for DormantKey {
    fn drop(&mut self) {
        self.key = [0; 32];
        // Keeps the compiler from seeing that the zeros are never read.
        std::hint::black_box(&self.key);
    }
}

impl fmt::Debug for DormantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DormantKey").finish_non_exhaustive()
    }
}

/// An AEAD key with its IV. While it rests, it is no larger than what it is made from; it wakes when it is needed.
pub(super) struct PacketKey {
    dormant: DormantKey,
    aead: OnceLock<AeadKey>,
}

impl PacketKey {
    pub(super) fn new(source: &KeySource) -> Self {
        Self { dormant: DormantKey::new(source), aead: OnceLock::new() }
    }

    pub(super) fn iv(&self) -> &[u8; 12] {
        &self.dormant.iv
    }

    /// Makes it ready, so that its next use takes no longer than others.
    #[inline]
    pub(super) fn wake(&self) -> &AeadKey {
        self.aead.get_or_init(|| self.dormant.aead())
    }

    /// Gives up nine tenths of its memory.
    pub(super) fn hibernate(&mut self) {
        self.aead = OnceLock::new();
    }

    /// Returns true if it has more memory than it needs at rest.
    pub(super) fn is_active(&self) -> bool {
        self.aead.get().is_some()
    }

    pub(super) fn seal(&self, packet: &mut Vec<u8>, start: usize, layout: &HeaderLayout, nonce: [u8; 12]) {
        let header_length = layout.number_offset + layout.number_length - start;
        let (header, payload) = packet
            .get_mut(start..)
            .and_then(|packet| packet.split_at_mut_checked(header_length))
            .expect("the layout describes a header that was written at `start`");
        //= https://www.rfc-editor.org/rfc/rfc9001#section-9.5
        //= type=implication
        //= reason=Both protections are applied by BoringSSL, without branches on secrets.
        //# For the sending of packets, construction and protection of packet payloads and packet numbers MUST
        //# be free from side channels that would reveal the packet number or its encoded size.
        let tag = self.wake().seal(nonce, header, payload);
        packet.extend_from_slice(&tag);
    }

    pub(super) fn open(
        &self,
        mut packet: BytesMut,
        payload_offset: usize,
        path: PathId,
        number: u64,
    ) -> Result<Bytes, Dropped> {
        let (header, payload) = packet.split_at_mut_checked(payload_offset).ok_or(Dropped::Malformed)?;
        let nonce = nonce(self.iv(), path, number);
        //= https://www.rfc-editor.org/rfc/rfc9001#section-9.5
        //= type=implication
        //= reason=Removal of both protections is one pass over the packet whatever it holds; BoringSSL
        //= reason=computes both without branches on secrets.
        //# the entire process of header protection removal, packet number recovery, and packet protection
        //# removal MUST be applied together without timing and other side channels.
        let length = self.wake().open(nonce, header, payload).ok_or(Dropped::Undecryptable)?;
        packet.truncate(payload_offset + length);
        packet.advance(payload_offset);
        Ok(packet.freeze())
    }
}

impl fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketKey").finish_non_exhaustive()
    }
}

/// A header protection key (RFC 9001 §5.4). It outlives key updates, and rests as a [`PacketKey`] does.
pub(super) struct HeaderKey {
    suite: Suite,
    key: [u8; 32],
    awake: OnceLock<Box<HeaderProtectionKey>>,
}

impl HeaderKey {
    pub(super) fn new(source: &KeySource) -> Self {
        let cipher = source.cipher();
        let suite = cipher.suite;
        let mut key = [0; 32];
        let length = suite.header_protection().key_len();
        let bytes = key.get_mut(..length).expect("header protection keys have at most 32 bytes");
        source.fill(cipher.header_label(), bytes);
        Self { suite, key, awake: OnceLock::new() }
    }

    /// Gives up most of its memory until it is used again.
    pub(super) fn hibernate(&mut self) {
        self.awake = OnceLock::new();
    }

    #[inline]
    fn wake(&self) -> &HeaderProtectionKey {
        self.awake.get_or_init(|| {
            let algorithm = self.suite.header_protection();
            let key = self.key.get(..algorithm.key_len());
            let key = key.expect("header protection keys have at most 32 bytes");
            let made = HeaderProtectionKey::new(algorithm, key);
            Box::new(made.expect("the key has the length of the algorithm"))
        })
    }

    /// Masks the header of the sealed packet at `start`.
    pub(super) fn protect(&self, packet: &mut [u8], start: usize, layout: &HeaderLayout) {
        let number_offset = layout.number_offset - start;
        packet
            .get_mut(start..)
            .and_then(|packet| {
                let [first_mask, number_mask @ ..] = self.mask(packet, number_offset)?;
                let first = packet.first_mut()?;
                *first ^= first_mask & hidden_bits(*first);
                let number = packet.get_mut(number_offset..number_offset + layout.number_length)?;
                number.iter_mut().zip(number_mask).for_each(|(byte, mask)| *byte ^= mask);
                Some(())
            })
            .expect("the payload has at least the bytes that `shortest_payload` asks for");
    }

    /// Unmasks the header of `packet`, which starts at its first byte.
    pub(super) fn unprotect(&self, packet: &mut [u8], number_offset: usize) -> Result<Unprotected, Dropped> {
        //= https://www.rfc-editor.org/rfc/rfc9001#section-5.4.2
        //# An endpoint MUST discard packets that are not long enough to contain a complete sample.
        let [first_mask, number_mask @ ..] = self.mask(packet, number_offset).ok_or(Dropped::Malformed)?;
        let first = packet.first_mut().ok_or(Dropped::Malformed)?;
        *first ^= first_mask & hidden_bits(*first);
        let first = *first;
        // RFC 9000 §17.2, §17.3.1: the two low-order bits are the length of the packet number, less one.
        let number_length = usize::from(first & 0x03) + 1;
        let number = packet.get_mut(number_offset..).ok_or(Dropped::Malformed)?;
        let mut truncated = 0;
        for (byte, mask) in number.iter_mut().zip(number_mask).take(number_length) {
            *byte ^= mask;
            truncated = truncated << 8 | u32::from(*byte);
        }
        Ok(Unprotected { first, truncated, number_length })
    }

    fn mask(&self, packet: &[u8], number_offset: usize) -> Option<[u8; 5]> {
        let sample = packet.get(number_offset.checked_add(SAMPLE_OFFSET)?..)?.get(..SAMPLE_LENGTH)?;
        self.wake().new_mask(sample).ok()
    }
}

impl Drop for HeaderKey {
    fn drop(&mut self) {
        self.key = [0; 32];
        // As above.
        std::hint::black_box(&self.key);
    }
}

impl fmt::Debug for HeaderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeaderKey").finish_non_exhaustive()
    }
}

/// The bits of the first byte that header protection hides: 4 of a long header, 5 of a short one (RFC 9001 §5.4.1).
fn hidden_bits(first: u8) -> u8 {
    if first & LONG_FORM != 0 { 0x0f } else { 0x1f }
}

#[cfg(test)]
mod tests;
