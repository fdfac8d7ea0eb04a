//! The integrity tag of Retry packets (RFC 9001 §5.8).

use crate::error::Dropped;
use crate::wire::connection_id::ConnectionId;
use crate::wire::version::Version;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use subtle::ConstantTimeEq;

/// The key of version 1.
const KEY_V1: [u8; 16] =
    [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
/// The nonce of version 1.
const NONCE_V1: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];
/// The key of version 2 (RFC 9369 §3.3.3).
const KEY_V2: [u8; 16] =
    [0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad, 0x7c, 0xcc, 0x92];
/// The nonce of version 2 (RFC 9369 §3.3.3).
const NONCE_V2: [u8; 12] = [0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a];

/// Bytes of the tag at the end of a Retry packet.
pub const TAG_LENGTH: usize = 16;

/// The tag of the Retry packet of `version` whose bytes before the tag are `packet`, in answer to an Initial packet that went to
/// `original_destination`.
pub fn integrity_tag(
    version: Version,
    original_destination: &ConnectionId,
    packet: &[u8],
) -> [u8; TAG_LENGTH] {
    let (key, nonce) = if version == Version::V2 { (&KEY_V2, NONCE_V2) } else { (&KEY_V1, NONCE_V1) };
    let id = original_destination.as_slice();
    let mut pseudo_packet = Vec::with_capacity(1 + id.len() + packet.len());
    pseudo_packet.push(id.len() as u8);
    pseudo_packet.extend_from_slice(id);
    pseudo_packet.extend_from_slice(packet);
    let key = UnboundKey::new(&AES_128_GCM, key).expect("the key has the length of the algorithm");
    let tag = LessSafeKey::new(key)
        .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(&pseudo_packet), &mut [])
        .expect("a Retry packet is far shorter than what the AEAD can authenticate");
    tag.as_ref().try_into().expect("the tag of AES-GCM has 16 bytes")
}

/// Checks that the tag at the end of `packet`, a whole Retry packet of `version`, is the right one. A client drops
/// Retry packets whose tag is not (RFC 9000 §17.2.5.2).
pub fn verify(version: Version, original_destination: &ConnectionId, packet: &[u8]) -> Result<(), Dropped> {
    let (packet, tag) = packet.split_last_chunk::<TAG_LENGTH>().ok_or(Dropped::Malformed)?;
    if integrity_tag(version, original_destination, packet).ct_eq(tag).into() {
        Ok(())
    } else {
        Err(Dropped::Undecryptable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original() -> ConnectionId {
        ConnectionId::new(&[0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08]).unwrap()
    }

    // RFC 9001 §A.4.
    const RETRY: [u8; 36] = [
        0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x08, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5, 0x74, 0x6f,
        0x6b, 0x65, 0x6e, 0x04, 0xa2, 0x65, 0xba, 0x2e, 0xff, 0x4d, 0x82, 0x90, 0x58, 0xfb, 0x3f, 0x0f, 0x24,
        0x96, 0xba,
    ];

    #[test]
    fn the_retry_of_the_rfc_verifies() {
        let (packet, tag) = RETRY.split_at(20);
        assert_eq!(integrity_tag(Version::V1, &original(), packet), tag);
        assert_eq!(verify(Version::V1, &original(), &RETRY), Ok(()));
    }

    #[test]
    fn the_retry_of_version_2_verifies_in_version_2_alone() {
        // RFC 9369 §A.4.
        let retry = [
            0xcf, 0x6b, 0x33, 0x43, 0xcf, 0x00, 0x08, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5, 0x74,
            0x6f, 0x6b, 0x65, 0x6e, 0xc8, 0x64, 0x6c, 0xe8, 0xbf, 0xe3, 0x39, 0x52, 0xd9, 0x55, 0x54, 0x36,
            0x65, 0xdc, 0xc7, 0xb6,
        ];
        assert_eq!(verify(Version::V2, &original(), &retry), Ok(()));
        assert_eq!(verify(Version::V1, &original(), &retry), Err(Dropped::Undecryptable));
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
    //= type=test
    //# Clients MUST discard Retry packets that have a Retry Integrity Tag that cannot be validated; see
    //# Section 5.8 of [QUIC-TLS]
    #[test]
    fn a_retry_with_any_byte_changed_is_dropped() {
        for index in 0..RETRY.len() {
            let mut packet = RETRY;
            packet[index] ^= 1;
            assert_eq!(
                verify(Version::V1, &original(), &packet),
                Err(Dropped::Undecryptable),
                "byte {index}"
            );
        }
    }

    #[test]
    fn a_retry_for_another_connection_or_without_a_tag_is_dropped() {
        let other = ConnectionId::new(&[1; 8]).unwrap();
        assert_eq!(verify(Version::V1, &other, &RETRY), Err(Dropped::Undecryptable));
        assert_eq!(verify(Version::V1, &original(), &RETRY[..15]), Err(Dropped::Malformed));
    }
}
