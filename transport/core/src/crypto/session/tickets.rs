//! Keys of session tickets that a server keeps over a restart or shares with others (RFC 5077 §4, RFC 8446 §4.6.1).

use boring::error::ErrorStack;
use boring::hash::MessageDigest;
use boring::hmac::HmacCtxRef;
use boring::rand::rand_bytes;
use boring::ssl::{SslContextBuilder, TicketKeyCallbackResult};
use boring::symm::{Cipher, CipherCtxRef};
use ring::hmac;
use std::fmt;
use std::sync::Arc;

/// Bytes of an initialisation vector of AES in CBC mode.
const IV: usize = 16;

/// The keys that tickets are sealed and opened with. A ticket of a key that is not among them costs its client nothing but the
/// resumption: the handshake takes as many round trips.
///
/// A key opens 0-RTT data that was recorded, so that keys are to be replaced regularly: a former one opens the
/// tickets that are still out, for as long as it is named.
#[derive(Clone)]
pub struct TicketKeys {
    current: TicketKey,
    former: Arc<[TicketKey]>,
}

#[derive(Clone)]
struct TicketKey {
    name: [u8; 16],
    cipher: [u8; 32],
    mac: [u8; 32],
}

impl TicketKey {
    /// The key that follows from `secret`.
    fn new(secret: &[u8; 32]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let part = |label: &[u8]| {
            let tag = hmac::sign(&key, label);
            *tag.as_ref().first_chunk::<32>().expect("an HMAC with SHA-256 has 32 bytes")
        };
        let name = part(b"hvq ticket name");
        Self {
            name: *name.first_chunk().expect("32 bytes begin with 16"),
            cipher: part(b"hvq ticket cipher"),
            mac: part(b"hvq ticket mac"),
        }
    }

    fn seal(
        &self,
        iv: &mut [u8; IV],
        cipher: &mut CipherCtxRef,
        mac: &mut HmacCtxRef,
    ) -> Result<(), ErrorStack> {
        rand_bytes(iv)?;
        mac.init(&self.mac, &MessageDigest::sha256())?;
        cipher.init_encrypt(&Cipher::aes_256_cbc(), &self.cipher, iv)
    }

    fn open(&self, iv: &[u8; IV], cipher: &mut CipherCtxRef, mac: &mut HmacCtxRef) -> Result<(), ErrorStack> {
        mac.init(&self.mac, &MessageDigest::sha256())?;
        cipher.init_decrypt(&Cipher::aes_256_cbc(), &self.cipher, iv)
    }
}

impl TicketKeys {
    /// Tickets are sealed with a key that follows from `current`, and opened with that or one that follows from `former`.
    /// All are secret and random.
    pub fn new(current: &[u8; 32], former: &[[u8; 32]]) -> Self {
        Self { current: TicketKey::new(current), former: former.iter().map(TicketKey::new).collect() }
    }

    /// Has servers of `context` seal and open tickets so.
    pub(super) fn install(self, context: &mut SslContextBuilder) {
        let callback = move |_: &_,
                             name: &mut [u8; 16],
                             iv: &mut [u8; IV],
                             cipher: &mut CipherCtxRef,
                             mac: &mut HmacCtxRef,
                             seals: bool| {
            if seals {
                *name = self.current.name;
                return match self.current.seal(iv, cipher, mac) {
                    Ok(()) => TicketKeyCallbackResult::Success,
                    Err(_) => TicketKeyCallbackResult::Error,
                };
            }
            let known = std::iter::once(&self.current).chain(self.former.iter());
            match known.into_iter().find(|key| key.name == *name).map(|key| key.open(iv, cipher, mac)) {
                Some(Ok(())) => TicketKeyCallbackResult::Success,
                Some(Err(_)) => TicketKeyCallbackResult::Error,
                // A full handshake.
                None => TicketKeyCallbackResult::Noop,
            }
        };
        // SAFETY: to seal, the callback sets the key's name, the IV and both contexts, and to open both contexts, as BoringSSL
        // asks for.
        unsafe { context.set_ticket_key_callback(callback) };
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKeys").field("former", &self.former.len()).finish_non_exhaustive()
    }
}
