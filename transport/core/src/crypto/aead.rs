//! The AEAD of packet protection (RFC 9001 §5.3) behind one seam: BoringSSL, or `ring` with the feature `ring-aead`.
//!
//! Both give the same bytes. The faster one is the default: `make bench ARGS='--only aead'` measures both.

#[doc(hidden)]
pub mod boringssl;
#[doc(hidden)]
pub mod ring;

#[cfg(feature = "ring-aead")]
pub(super) use self::ring::RingKey as AeadKey;
#[cfg(not(feature = "ring-aead"))]
pub(super) use boringssl::BoringKey as AeadKey;

#[cfg(test)]
mod tests {
    use super::{boringssl, ring};
    use crate::crypto::keys::Suite;
    use proptest::prelude::*;

    const SUITES: [(Suite, usize); 3] =
        [(Suite::Aes128Gcm, 16), (Suite::Aes256Gcm, 32), (Suite::ChaCha20Poly1305, 32)];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn both_libraries_seal_alike_and_open_what_the_other_sealed(
            payload in proptest::collection::vec(any::<u8>(), 0..1500),
            header in proptest::collection::vec(any::<u8>(), 1..30),
            key in any::<[u8; 32]>(),
            nonce in any::<[u8; 12]>(),
            flipped in any::<proptest::sample::Index>(),
        ) {
            for (suite, length) in SUITES {
                let ours = ring::RingKey::new(suite, &key[..length]);
                let theirs = boringssl::BoringKey::new(suite, &key[..length]);
                let (mut one, mut other) = (payload.clone(), payload.clone());
                let tags = (ours.seal(nonce, &header, &mut one), theirs.seal(nonce, &header, &mut other));
                prop_assert_eq!(tags.0, tags.1);
                prop_assert_eq!(&one, &other);
                one.extend(tags.0);
                other.extend(tags.1);
                let mut changed = one.clone();
                let at = flipped.index(changed.len());
                changed[at] ^= 1;
                prop_assert_eq!(theirs.open(nonce, &header, &mut changed.clone()), None);
                prop_assert_eq!(ours.open(nonce, &header, &mut changed), None);
                prop_assert_eq!(theirs.open(nonce, &header, &mut one), Some(payload.len()));
                prop_assert_eq!(ours.open(nonce, &header, &mut other), Some(payload.len()));
                prop_assert_eq!(&one[..payload.len()], &payload[..]);
                prop_assert_eq!(&other[..payload.len()], &payload[..]);
            }
        }
    }

    #[test]
    fn what_is_shorter_than_a_tag_does_not_open() {
        for (suite, length) in SUITES {
            for short in 0..16 {
                let mut bytes = vec![7; short];
                let key = [1; 32];
                assert_eq!(ring::RingKey::new(suite, &key[..length]).open([0; 12], b"h", &mut bytes), None);
                let theirs = boringssl::BoringKey::new(suite, &key[..length]);
                assert_eq!(theirs.open([0; 12], b"h", &mut bytes), None);
            }
        }
    }
}
