//! Packet protection by `ring`.

use crate::crypto::keys::Suite;
use ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey};

/// A key of the suite's AEAD, elsewhere, since it is large and most connections rest most of the time.
pub struct RingKey(Box<LessSafeKey>);

impl RingKey {
    /// The key of `suite` with these bytes, as many as its AEAD takes.
    pub fn new(suite: Suite, key: &[u8]) -> Self {
        let key = UnboundKey::new(suite.aead(), key).expect("the key has the length of the algorithm");
        Self(Box::new(LessSafeKey::new(key)))
    }

    /// Encrypts `payload` in place; the tag, which authenticates `header` too.
    #[inline]
    pub fn seal(&self, nonce: [u8; 12], header: &[u8], payload: &mut [u8]) -> [u8; Suite::TAG_LENGTH] {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .0
            .seal_in_place_separate_tag(nonce, Aad::from(header), payload)
            .expect("a packet is far shorter than what the AEAD can seal");
        let mut bytes = [0; Suite::TAG_LENGTH];
        bytes.copy_from_slice(tag.as_ref());
        bytes
    }

    /// Authenticates `header` and `payload`, which ends with its tag, and decrypts it in place; how long it is without the
    /// tag. `None` if it is not authentic; what is left of `payload` then means nothing.
    #[inline]
    pub fn open(&self, nonce: [u8; 12], header: &[u8], payload: &mut [u8]) -> Option<usize> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.0.open_in_place(nonce, Aad::from(header), payload).ok().map(|payload| payload.len())
    }
}
