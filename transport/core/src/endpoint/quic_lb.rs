//! Connection IDs from which a load balancer learns the server (draft-ietf-quic-load-balancers): rotation bits, server ID and
//! nonce, in plaintext or encrypted with AES-128-ECB.

use crate::endpoint::ids::ConnectionIds;
use crate::wire::connection_id::{ConnectionId, MAX_LENGTH};
use aes::Aes128;
use aes::cipher::{Block, BlockDecrypt, BlockEncrypt, KeyInit};
use rand::RngCore;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most bytes of server ID and nonce together: a connection ID has one more (§5.3 of the draft).
const LONGEST: usize = MAX_LENGTH - 1;
/// The fewest, so that a Retry packet may carry such a connection ID: clients write to 8 bytes at least (RFC 9000 §7.2).
const SHORTEST: usize = 7;
/// The fewest bytes of a nonce (§5.3 of the draft).
const SHORTEST_NONCE: usize = 4;
/// The rotation bits of connection IDs that no load balancer can read (§3.2 of the draft).
const UNROUTABLE: u8 = 0b111;
/// Bytes that one pass of encryption takes.
const BLOCK: usize = 16;

/// The content of the first octet beside the rotation bits (§3.3 of the draft).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum FirstOctet {
    /// The number of bytes that follow.
    #[default]
    Length,
    /// Chance.
    Random,
}

/// One configuration of the load balancers, as a server needs it.
#[derive(Clone, PartialEq, Eq)]
pub struct QuicLbConfig {
    /// The number of the configuration, 0 to 6: load balancers know several.
    pub rotation: u8,
    /// The server's ID, at least one byte.
    pub server_id: Vec<u8>,
    /// Bytes of the nonce, at least 4; 7 to 19 together with the server's ID. A nonce is not used twice: with a key, the
    /// configuration is good for 256 to the power of this many connection IDs.
    pub nonce_length: usize,
    /// The key. Without one, everybody sees which server a connection ID belongs to.
    pub key: Option<[u8; 16]>,
    /// The content of the first octet.
    pub first_octet: FirstOctet,
}

impl fmt::Debug for QuicLbConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicLbConfig")
            .field("rotation", &self.rotation)
            .field("server_id", &self.server_id)
            .field("nonce_length", &self.nonce_length)
            .field("key", &self.key.map(|_| ".."))
            .finish_non_exhaustive()
    }
}

impl QuicLbConfig {
    /// Checks that connection IDs can be made of this.
    ///
    /// # Errors
    /// It breaks a limit of the draft.
    pub fn check(&self) -> Result<(), QuicLbError> {
        // §3.1 of the draft: a configuration must not use the reserved identifier 0b111.
        if self.rotation >= UNROUTABLE {
            return Err(QuicLbError::Rotation(self.rotation));
        }
        if self.server_id.is_empty() {
            return Err(QuicLbError::ServerId);
        }
        if self.nonce_length < SHORTEST_NONCE {
            return Err(QuicLbError::Nonce(self.nonce_length));
        }
        let together = self.server_id.len().saturating_add(self.nonce_length);
        if !(SHORTEST..=LONGEST).contains(&together) {
            return Err(QuicLbError::Together(together));
        }
        Ok(())
    }
}

/// The error of a configuration that is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QuicLbError {
    /// The rotation bits do not name a configuration.
    #[error("rotation is 0 to 6, not {0}")]
    Rotation(u8),
    /// There is no server ID.
    #[error("the server ID has at least one byte")]
    ServerId,
    /// The nonce is too short to be unique.
    #[error("the nonce has at least 4 bytes, not {0}")]
    Nonce(usize),
    /// A connection ID would be too long, or too short for a Retry packet.
    #[error("server ID and nonce have 7 to 19 bytes together, not {0}")]
    Together(usize),
}

/// Makes and reads connection IDs of one configuration.
pub struct QuicLb {
    config: QuicLbConfig,
    cipher: Option<Aes128>,
    /// The first nonce; the others follow it.
    first_nonce: [u8; LONGEST],
    nonces: AtomicU64,
}

impl fmt::Debug for QuicLb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicLb").field("config", &self.config).finish_non_exhaustive()
    }
}

impl QuicLb {
    /// Makes a generator of connection IDs of `config`. Nonces begin with `first_nonce`, which is random, so that a
    /// server that starts anew does not begin with those of before (§9.3 of the draft).
    ///
    /// # Errors
    /// See [`QuicLbConfig::check`].
    pub fn new(config: QuicLbConfig, first_nonce: [u8; 19]) -> Result<Self, QuicLbError> {
        config.check()?;
        let cipher = config.key.map(|key| Aes128::new(&key.into()));
        Ok(Self { config, cipher, first_nonce, nonces: AtomicU64::new(0) })
    }

    /// The server ID in `id`, if it is of this configuration.
    pub fn server_id(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.decode(id).map(|(server, _)| server)
    }

    /// Server ID and nonce in `id`, if it is of this configuration. Bytes behind them are the server's own business.
    pub fn decode(&self, id: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
        let (first, rest) = id.split_first()?;
        if first >> 5 != self.config.rotation {
            return None;
        }
        let mut text = rest.get(..self.text_length())?.to_vec();
        if let Some(cipher) = &self.cipher {
            decrypt(cipher, &mut text);
        }
        let nonce = text.split_off(self.config.server_id.len());
        Some((text, nonce))
    }

    fn text_length(&self) -> usize {
        self.config.server_id.len() + self.config.nonce_length
    }

    /// The connection ID with `nonce`.
    fn encode(&self, nonce: &[u8], rng: &mut dyn RngCore) -> ConnectionId {
        let mut text = [&self.config.server_id, nonce].concat();
        if let Some(cipher) = &self.cipher {
            encrypt(cipher, &mut text);
        }
        let low = match self.config.first_octet {
            FirstOctet::Length => text.len() as u32,
            FirstOctet::Random => rng.next_u32(),
        };
        let first = self.config.rotation << 5 | (low & 0x1f) as u8;
        ConnectionId::new(&[&[first], text.as_slice()].concat()).expect("at most 20 bytes")
    }

    /// A nonce that was not used; `None` if all were.
    fn next_nonce(&self, rng: &mut dyn RngCore) -> Option<Vec<u8>> {
        let mut nonce = vec![0; self.config.nonce_length];
        if self.cipher.is_none() {
            // §5.4: without a key, nothing observable relates one nonce to another.
            rng.fill_bytes(&mut nonce);
            return Some(nonce);
        }
        // §9.3 of the draft: a server must not use a nonce again before it has a configuration with new keys.
        let count = self.nonces.fetch_add(1, Ordering::Relaxed);
        let room = u32::try_from(nonce.len() * 8).ok().and_then(|bits| 1_u64.checked_shl(bits));
        if room.is_some_and(|room| count >= room) {
            return None;
        }
        let mut carry = count;
        for (place, first) in nonce.iter_mut().rev().zip(&self.first_nonce) {
            carry += u64::from(*first);
            *place = carry as u8;
            carry >>= 8;
        }
        Some(nonce)
    }
}

impl ConnectionIds for QuicLb {
    fn length(&self) -> usize {
        1 + self.text_length()
    }

    fn generate(&self, mut rng: &mut dyn RngCore) -> ConnectionId {
        if let Some(nonce) = self.next_nonce(rng) {
            return self.encode(&nonce, rng);
        }
        // §9.3 of the draft: who has no nonce left marks connection IDs as routable by addresses alone.
        let rest = ConnectionId::random(&mut rng, self.text_length());
        let first = UNROUTABLE << 5 | self.text_length() as u8;
        ConnectionId::new(&[&[first], rest.as_slice()].concat()).expect("at most 20 bytes")
    }
}

/// Encrypts `text` in place: in one pass if it is a block, else in four (§5.4 of the draft).
fn encrypt(cipher: &Aes128, text: &mut [u8]) {
    if let Ok(block) = <&mut [u8; BLOCK]>::try_from(&mut *text) {
        return cipher.encrypt_block(block.into());
    }
    let mut halves = Halves::split(text);
    for pass in 1..=4 {
        halves.pass(cipher, pass);
    }
    halves.join(text);
}

/// Undoes [`encrypt`] (§5.5 of the draft).
fn decrypt(cipher: &Aes128, text: &mut [u8]) {
    if let Ok(block) = <&mut [u8; BLOCK]>::try_from(&mut *text) {
        return cipher.decrypt_block(block.into());
    }
    let mut halves = Halves::split(text);
    for pass in (1..=4).rev() {
        halves.pass(cipher, pass);
    }
    halves.join(text);
}

/// The two halves of a Feistel network. With an odd number of bytes each has half of the middle one.
struct Halves {
    left: Vec<u8>,
    right: Vec<u8>,
    length: usize,
}

impl Halves {
    fn split(text: &[u8]) -> Self {
        let half = text.len().div_ceil(2);
        let left = text.iter().copied().take(half).collect();
        let right = text.iter().copied().skip(text.len() - half).collect();
        let mut halves = Self { left, right, length: text.len() };
        halves.clear();
        halves
    }

    /// Clears the half of the middle byte that belongs to the other half.
    fn clear(&mut self) {
        if self.length % 2 == 1 {
            self.left.last_mut().into_iter().for_each(|byte| *byte &= 0xf0);
            self.right.first_mut().into_iter().for_each(|byte| *byte &= 0x0f);
        }
    }

    /// One half, expanded and encrypted, onto the other: the right one in odd passes.
    fn pass(&mut self, cipher: &Aes128, pass: u8) {
        let (from, onto) =
            if pass % 2 == 1 { (&self.left, &mut self.right) } else { (&self.right, &mut self.left) };
        let mut block = Block::<Aes128>::default();
        block.iter_mut().zip(from).for_each(|(place, byte)| *place = *byte);
        let ends = [self.length as u8, pass];
        block.iter_mut().skip(BLOCK - ends.len()).zip(ends).for_each(|(place, byte)| *place = byte);
        cipher.encrypt_block(&mut block);
        onto.iter_mut().zip(block).for_each(|(place, byte)| *place ^= byte);
        self.clear();
    }

    fn join(&self, text: &mut [u8]) {
        text.iter_mut().zip(&self.left).for_each(|(place, byte)| *place = *byte);
        let overlap = self.length % 2;
        for (index, (place, byte)) in text.iter_mut().rev().zip(self.right.iter().rev()).enumerate() {
            let is_middle = overlap == 1 && index + 1 == self.right.len();
            *place = if is_middle { *place | byte } else { *byte };
        }
    }
}

#[cfg(test)]
mod tests;
