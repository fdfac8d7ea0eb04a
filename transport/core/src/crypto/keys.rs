//! Encryption levels, cipher suites, and the derivation of keys from secrets.

use crate::wire::overhead::TAG;
use crate::wire::version::Version;
use ring::{aead, hkdf};
use std::fmt;

pub use crate::wire::level::Level;

/// A TLS 1.3 cipher suite that protects QUIC packets (RFC 9001 §5.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Suite {
    /// TLS_AES_128_GCM_SHA256.
    Aes128Gcm,
    /// TLS_AES_256_GCM_SHA384.
    Aes256Gcm,
    /// TLS_CHACHA20_POLY1305_SHA256.
    ChaCha20Poly1305,
}

impl Suite {
    /// Bytes that sealing adds to a packet: the authentication tag, the same for every suite (RFC 9001 §5.3).
    pub const TAG_LENGTH: usize = TAG;

    /// The suite with this TLS code point (RFC 8446 §B.4), `None` for suites that QUIC does not use here.
    pub const fn from_code_point(code_point: u16) -> Option<Self> {
        match code_point {
            0x1301 => Some(Self::Aes128Gcm),
            0x1302 => Some(Self::Aes256Gcm),
            0x1303 => Some(Self::ChaCha20Poly1305),
            _ => None,
        }
    }

    /// Its TLS code point (RFC 8446 §B.4).
    pub const fn code_point(self) -> u16 {
        match self {
            Self::Aes128Gcm => 0x1301,
            Self::Aes256Gcm => 0x1302,
            Self::ChaCha20Poly1305 => 0x1303,
        }
    }

    /// Packets that may be sealed with one key (RFC 9001 §6.6), counted over all paths (RFC 10069 §2.4).
    pub const fn confidentiality_limit(self) -> u64 {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 1 << 23,
            // More than there are packet numbers, so that it never comes into play on one path.
            Self::ChaCha20Poly1305 => 1 << 62,
        }
    }

    /// Packets that may fail authentication in one connection, over all its keys and paths (RFC 9001 §6.6).
    pub const fn integrity_limit(self) -> u64 {
        match self {
            Self::Aes128Gcm | Self::Aes256Gcm => 1 << 52,
            Self::ChaCha20Poly1305 => 1 << 36,
        }
    }

    /// Bytes of a secret: the output of the suite's hash function.
    pub const fn secret_length(self) -> usize {
        match self {
            Self::Aes128Gcm | Self::ChaCha20Poly1305 => 32,
            Self::Aes256Gcm => 48,
        }
    }

    pub(super) fn hkdf(self) -> hkdf::Algorithm {
        match self {
            Self::Aes128Gcm | Self::ChaCha20Poly1305 => hkdf::HKDF_SHA256,
            Self::Aes256Gcm => hkdf::HKDF_SHA384,
        }
    }

    pub(super) fn aead(self) -> &'static aead::Algorithm {
        match self {
            //= https://www.rfc-editor.org/rfc/rfc10069#section-2.1
            //= type=implication
            //= reason=Each of the three suites has a nonce of 12 bytes, and TLS negotiates no other.
            //# If such a cipher suite is selected and the use of the multipath extension is supported,
            //# endpoints MUST abort the handshake with an error of type TRANSPORT_PARAMETER_ERROR.
            Self::Aes128Gcm => &aead::AES_128_GCM,
            Self::Aes256Gcm => &aead::AES_256_GCM,
            Self::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
        }
    }

    //= https://www.rfc-editor.org/rfc/rfc9001#section-5.3
    //# A cipher suite MUST NOT be negotiated unless a header protection scheme is defined for the cipher
    //# suite
    //= https://www.rfc-editor.org/rfc/rfc9001#section-5.4.1
    //# Before a TLS cipher suite can be used with QUIC, a header protection algorithm MUST be specified for
    //# the AEAD used with that cipher suite
    pub(super) fn header_protection(self) -> &'static aead::quic::Algorithm {
        match self {
            Self::Aes128Gcm => &aead::quic::AES_128,
            Self::Aes256Gcm => &aead::quic::AES_256,
            Self::ChaCha20Poly1305 => &aead::quic::CHACHA20,
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aes128Gcm => "TLS_AES_128_GCM_SHA256",
            Self::Aes256Gcm => "TLS_AES_256_GCM_SHA384",
            Self::ChaCha20Poly1305 => "TLS_CHACHA20_POLY1305_SHA256",
        })
    }
}

/// A suite under the labels of a QUIC version: what a secret turns into keys for (RFC 9001 §5.1, RFC 9369 §3.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cipher {
    /// The suite.
    pub suite: Suite,
    /// The version, 1 or 2.
    pub version: Version,
}

impl From<Suite> for Cipher {
    /// The suite in version 1.
    fn from(suite: Suite) -> Self {
        Self { suite, version: Version::V1 }
    }
}

impl Cipher {
    pub(super) fn key_label(self) -> &'static [u8] {
        if self.version == Version::V2 { b"quicv2 key" } else { b"quic key" }
    }

    pub(super) fn iv_label(self) -> &'static [u8] {
        if self.version == Version::V2 { b"quicv2 iv" } else { b"quic iv" }
    }

    pub(super) fn header_label(self) -> &'static [u8] {
        if self.version == Version::V2 { b"quicv2 hp" } else { b"quic hp" }
    }

    fn update_label(self) -> &'static [u8] {
        if self.version == Version::V2 { b"quicv2 ku" } else { b"quic ku" }
    }
}

/// A secret of at most 48 bytes, which keys are derived from. It is not shown in logs and is wiped when dropped.
#[derive(Clone)]
pub struct Secret {
    length: u8,
    bytes: [u8; Self::MAX_LENGTH],
}

impl Secret {
    /// The longest secret, that of SHA-384, in bytes.
    pub const MAX_LENGTH: usize = 48;

    /// The secret with these bytes, `None` if there are more than 48.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut secret = Self { length: u8::try_from(bytes.len()).ok()?, bytes: [0; Self::MAX_LENGTH] };
        secret.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(secret)
    }

    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// The secret of the generation of 1-RTT keys after this one (RFC 9001 §6.1).
    pub(crate) fn updated(&self, cipher: impl Into<Cipher>) -> Self {
        KeySource::new(cipher.into(), self.as_slice()).updated()
    }
}

impl AsRef<[u8]> for Secret {
    fn as_ref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.bytes = [0; Self::MAX_LENGTH];
        // Keeps the compiler from seeing that the zeros are never read.
        std::hint::black_box(&self.bytes);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A number of bytes that HKDF gives out.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// A secret that keys are derived from: what all derivations begin with is done once.
pub(super) struct KeySource {
    cipher: Cipher,
    /// Bytes of the secret.
    length: u8,
    secret: hkdf::Prk,
}

impl KeySource {
    /// The source of the keys of `cipher` that follow from `secret`, of at most 48 bytes (RFC 9001 §5.1).
    pub(super) fn new(cipher: Cipher, secret: &[u8]) -> Self {
        let length = u8::try_from(secret.len()).expect("TLS 1.3 secrets have at most 48 bytes");
        Self { cipher, length, secret: hkdf::Prk::new_less_safe(cipher.suite.hkdf(), secret) }
    }

    /// Returns the cipher that the keys are for.
    pub(super) fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// Fills `out`, of at most 48 bytes, with what `label` stands for.
    pub(super) fn fill(&self, label: &[u8], out: &mut [u8]) {
        expand_label_from(&self.secret, label, out);
    }

    /// The secret of the generation of 1-RTT keys after this one (RFC 9001 §6.1).
    pub(super) fn updated(&self) -> Secret {
        let mut next = Secret { length: self.length, bytes: [0; Secret::MAX_LENGTH] };
        if let Some(bytes) = next.bytes.get_mut(..usize::from(self.length)) {
            self.fill(self.cipher.update_label(), bytes);
        }
        next
    }
}

/// HKDF-Expand-Label with an empty context (RFC 8446 §7.1), filling `out` of at most 48 bytes.
pub(super) fn expand_label_from(secret: &hkdf::Prk, label: &[u8], out: &mut [u8]) {
    const PREFIX: &[u8] = b"tls13 ";
    let length = u16::try_from(out.len()).expect("keys and secrets are short").to_be_bytes();
    let label_length = u8::try_from(PREFIX.len() + label.len()).expect("labels are constants of RFC 9001");
    let info: [&[u8]; 5] = [&length, &[label_length], PREFIX, label, &[0]];
    secret.expand(&info, Length(out.len())).and_then(|okm| okm.fill(out)).expect(
        "HKDF gives up to 255 times the length of its hash, and `out` has the length that was asked for",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_those_of_the_rfc() {
        // RFC 9001 §6.6.
        for suite in [Suite::Aes128Gcm, Suite::Aes256Gcm] {
            assert_eq!((suite.confidentiality_limit(), suite.integrity_limit()), (1 << 23, 1 << 52));
        }
        assert_eq!(Suite::ChaCha20Poly1305.integrity_limit(), 1 << 36);
        assert!(Suite::ChaCha20Poly1305.confidentiality_limit() >= 1 << 62);
    }

    //= https://www.rfc-editor.org/rfc/rfc9001#section-5.3
    //= type=test
    //# A cipher suite MUST NOT be negotiated unless a header protection scheme is defined for the cipher
    //# suite
    #[test]
    fn only_the_suites_of_quic_have_code_points() {
        let suites: Vec<_> = (0x1300..0x1306).filter_map(Suite::from_code_point).collect();
        assert_eq!(suites, [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305]);
        assert_eq!(Suite::Aes256Gcm.to_string(), "TLS_AES_256_GCM_SHA384");
    }

    #[test]
    fn a_secret_keeps_its_bytes_and_does_not_show_them() {
        let secret = Secret::new(&[7; 48]).unwrap();
        assert_eq!((secret.as_slice(), secret.as_ref()), (&[7; 48][..], &[7; 48][..]));
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert!(Secret::new(&[7; 49]).is_none());
        assert!(Secret::new(&[7; 300]).is_none());
    }

    #[test]
    fn an_updated_secret_is_that_of_the_rfc() {
        // RFC 9001 §A.5.
        let secret = [
            0x9a, 0xc3, 0x12, 0xa7, 0xf8, 0x77, 0x46, 0x8e, 0xbe, 0x69, 0x42, 0x27, 0x48, 0xad, 0x00, 0xa1,
            0x54, 0x43, 0xf1, 0x82, 0x03, 0xa0, 0x7d, 0x60, 0x60, 0xf6, 0x88, 0xf3, 0x0f, 0x21, 0x63, 0x2b,
        ];
        let updated = Secret::new(&secret).unwrap().updated(Suite::ChaCha20Poly1305);
        let expected = [
            0x12, 0x23, 0x50, 0x47, 0x55, 0x03, 0x6d, 0x55, 0x63, 0x42, 0xee, 0x93, 0x61, 0xd2, 0x53, 0x42,
            0x1a, 0x82, 0x6c, 0x9e, 0xcd, 0xf3, 0xc7, 0x14, 0x86, 0x84, 0xb3, 0x6b, 0x71, 0x48, 0x81, 0xf9,
        ];
        assert_eq!(updated.as_slice(), expected);
        // RFC 9369 §A.5.
        let cipher = Cipher { suite: Suite::ChaCha20Poly1305, version: Version::V2 };
        let updated = Secret::new(&secret).unwrap().updated(cipher);
        let expected = [
            0xc6, 0x93, 0x74, 0xc4, 0x9e, 0x3d, 0x2a, 0x94, 0x66, 0xfa, 0x68, 0x9e, 0x49, 0xd4, 0x76, 0xdb,
            0x5d, 0x0d, 0xfb, 0xc8, 0x7d, 0x32, 0xce, 0xea, 0xa6, 0x34, 0x3f, 0xd0, 0xae, 0x4c, 0x7d, 0x88,
        ];
        assert_eq!(updated.as_slice(), expected);
    }
}
