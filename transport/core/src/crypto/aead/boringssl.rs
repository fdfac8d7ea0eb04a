//! Packet protection by BoringSSL.
#![expect(unsafe_code, reason = "BoringSSL's AEAD interface has no safe binding")]

use crate::crypto::keys::Suite;
use boring_sys as ffi;
use std::ptr::{self, NonNull};

/// A key of the suite's AEAD.
pub struct BoringKey(NonNull<ffi::EVP_AEAD_CTX>);

// SAFETY: a context is not bound to the thread that made it.
unsafe impl Send for BoringKey {}
// SAFETY: sealing and opening take the context by a const pointer and do not change it (openssl/aead.h: "may be used
// concurrently").
unsafe impl Sync for BoringKey {}

impl BoringKey {
    /// The key of `suite` with these bytes, as many as its AEAD takes.
    pub fn new(suite: Suite, key: &[u8]) -> Self {
        // SAFETY: these return pointers to constants, and the key is as long as `key.len()` says.
        let context = unsafe {
            let aead = match suite {
                Suite::Aes128Gcm => ffi::EVP_aead_aes_128_gcm(),
                Suite::Aes256Gcm => ffi::EVP_aead_aes_256_gcm(),
                Suite::ChaCha20Poly1305 => ffi::EVP_aead_chacha20_poly1305(),
            };
            ffi::EVP_AEAD_CTX_new(aead, key.as_ptr(), key.len(), Suite::TAG_LENGTH)
        };
        Self(NonNull::new(context).expect("the key has the length of the algorithm"))
    }

    /// Encrypts `payload` in place; the tag, which authenticates `header` too.
    #[inline]
    pub fn seal(&self, nonce: [u8; 12], header: &[u8], payload: &mut [u8]) -> [u8; Suite::TAG_LENGTH] {
        let (mut tag, mut length) = ([0; Suite::TAG_LENGTH], 0);
        let text = payload.as_mut_ptr();
        // SAFETY: all pointers are to as many bytes as the lengths beside them say, output may be the input
        // (openssl/aead.h), and the context lives as long as `self`.
        let sealed = unsafe {
            ffi::EVP_AEAD_CTX_seal_scatter(
                self.0.as_ptr(),
                text,
                tag.as_mut_ptr(),
                &mut length,
                tag.len(),
                nonce.as_ptr(),
                nonce.len(),
                text,
                payload.len(),
                ptr::null(),
                0,
                header.as_ptr(),
                header.len(),
            )
        };
        // A tag that was not written must not leave the machine.
        assert!(sealed == 1 && length == tag.len(), "a packet is far shorter than what the AEAD can seal");
        tag
    }

    /// Authenticates `header` and `payload`, which ends with its tag, and decrypts it in place; how long it is without the
    /// tag. `None` if it is not authentic; what is left of `payload` then means nothing.
    #[inline]
    pub fn open(&self, nonce: [u8; 12], header: &[u8], payload: &mut [u8]) -> Option<usize> {
        let length = payload.len().checked_sub(Suite::TAG_LENGTH)?;
        let (text, tag) = payload.split_at_mut_checked(length)?;
        let pointer = text.as_mut_ptr();
        // SAFETY: as above; text and tag do not overlap.
        let opened = unsafe {
            ffi::EVP_AEAD_CTX_open_gather(
                self.0.as_ptr(),
                pointer,
                nonce.as_ptr(),
                nonce.len(),
                pointer,
                length,
                tag.as_ptr(),
                tag.len(),
                header.as_ptr(),
                header.len(),
            )
        };
        (opened == 1).then_some(length)
    }
}

impl Drop for BoringKey {
    fn drop(&mut self) {
        // SAFETY: the context came from EVP_AEAD_CTX_new and is freed once. BoringSSL wipes the key.
        unsafe { ffi::EVP_AEAD_CTX_free(self.0.as_ptr()) };
    }
}
