use super::*;
use crate::crypto::keys::Suite;
use crate::crypto::vectors::hex;
use crate::wire::connection_id::ConnectionId;
use crate::wire::header::{KeyPhase, LongHeader, LongKind, ShortHeader, patch_length};
use crate::wire::version::Version;
use proptest::prelude::*;
use std::collections::HashSet;

const SUITES: [Suite; 3] = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305];

fn keys(suite: Suite) -> (SealKey, OpenKey) {
    let secret = vec![0x5a; suite.secret_length()];
    (SealKey::new(suite, &secret), OpenKey::new(suite, &secret))
}

fn short_header() -> ShortHeader {
    ShortHeader { destination: ConnectionId::new(&[3; 8]).unwrap(), key_phase: KeyPhase::Zero, spin: false }
}

/// A sealed short-header packet with a four-byte packet number.
fn sealed(key: &SealKey, payload: &[u8], path: PathId, number: u64) -> Vec<u8> {
    let mut packet = Vec::new();
    let layout = short_header().put(&mut packet, number, 4);
    packet.extend_from_slice(payload);
    key.seal(&mut packet, 0, &layout, path, number);
    packet
}

fn opened(key: &OpenKey, packet: &[u8], path: PathId) -> Result<Bytes, Dropped> {
    let mut packet = BytesMut::from(packet);
    let header = key.unprotect(&mut packet, 9)?;
    key.open(packet, 9 + header.number_length, path, u64::from(header.truncated))
}

#[test]
fn the_nonce_is_that_of_the_multipath_extension() {
    // RFC 10069 §2.4.
    let iv: [u8; 12] = hex("6b26114b9cba2b63a9e8dd4f").try_into().unwrap();
    assert_eq!(nonce(&iv, PathId(3), 54_321).to_vec(), hex("6b2611489cba2b63a9e8097e"));
}

#[test]
fn the_nonce_of_path_zero_is_that_of_a_single_path() {
    // RFC 9001 §A.5.
    let iv: [u8; 12] = hex("e0459b3474bdd0e44a41c144").try_into().unwrap();
    assert_eq!(nonce(&iv, PathId::ZERO, 654_360_564).to_vec(), hex("e0459b3474bdd0e46d417eb0"));
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-5.4.1
//= type=test
//# Before a TLS cipher suite can be used with QUIC, a header protection algorithm MUST be specified for the
//# AEAD used with that cipher suite
#[test]
fn a_short_packet_with_chacha20_is_that_of_the_rfc() {
    // RFC 9001 §A.5: three bytes of packet number, no connection ID, one PING frame.
    let secret = hex("9ac312a7f877468ebe69422748ad00a1 5443f18203a07d6060f688f30f21632b");
    let number = 654_360_564;
    let mut packet = Vec::new();
    let header = ShortHeader { destination: ConnectionId::EMPTY, ..short_header() };
    let layout = header.put(&mut packet, number, 3);
    packet.push(1);
    assert_eq!(packet, hex("4200bff4 01"));
    SealKey::new(Suite::ChaCha20Poly1305, &secret).seal(&mut packet, 0, &layout, PathId::ZERO, number);
    assert_eq!(packet, hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb"));

    let open = OpenKey::new(Suite::ChaCha20Poly1305, &secret);
    let mut packet = BytesMut::from(packet.as_slice());
    let header = open.unprotect(&mut packet, 1).unwrap();
    assert_eq!(header, Unprotected { first: 0x42, truncated: 0x00bff4, number_length: 3 });
    assert_eq!(open.open(packet, 4, PathId::ZERO, number).unwrap().as_ref(), [1]);
}

#[test]
fn every_suite_opens_what_it_sealed_and_no_other_does() {
    for suite in SUITES {
        let (seal, open) = keys(suite);
        let packet = sealed(&seal, b"some frames", PathId(2), 77);
        assert_eq!(packet.len(), 9 + 4 + 11 + Suite::TAG_LENGTH);
        assert_eq!(opened(&open, &packet, PathId(2)).unwrap().as_ref(), b"some frames");
        for other in SUITES.into_iter().filter(|other| *other != suite) {
            assert_eq!(opened(&keys(other).1, &packet, PathId(2)), Err(Dropped::Undecryptable));
        }
    }
}

#[test]
fn a_packet_opens_only_on_its_own_path_and_with_its_own_number() {
    let (seal, open) = keys(Suite::Aes128Gcm);
    let packet = sealed(&seal, b"some frames", PathId(1), 5);
    assert!(opened(&open, &packet, PathId(1)).is_ok());
    assert_eq!(opened(&open, &packet, PathId::ZERO), Err(Dropped::Undecryptable));
    let mut bytes = BytesMut::from(packet.as_slice());
    open.unprotect(&mut bytes, 9).unwrap();
    assert_eq!(open.open(bytes, 13, PathId(1), 6), Err(Dropped::Undecryptable));
}

#[test]
fn packets_are_sealed_behind_others_in_one_buffer() {
    let (seal, open) = keys(Suite::Aes256Gcm);
    let mut datagram = Vec::new();
    let mut starts = Vec::new();
    for (number, payload) in [(0, b"first"), (1, b"other")] {
        let start = datagram.len();
        let header = LongHeader {
            kind: LongKind::Handshake,
            version: Version::V1,
            destination: ConnectionId::new(&[1; 8]).unwrap(),
            source: ConnectionId::new(&[2; 4]).unwrap(),
            token: &[],
        };
        let layout = header.put(&mut datagram, number, 2);
        datagram.extend_from_slice(payload);
        patch_length(&mut datagram, &layout, start, Suite::TAG_LENGTH);
        seal.seal(&mut datagram, start, &layout, PathId::ZERO, number);
        starts.push((start, layout.number_offset - start));
    }
    let second = BytesMut::from(&datagram[starts[1].0..]);
    let first = BytesMut::from(&datagram[..starts[1].0]);
    for (number, (mut packet, payload)) in [(first, b"first"), (second, b"other")].into_iter().enumerate() {
        let header = open.unprotect(&mut packet, starts[number].1).unwrap();
        assert_eq!((header.truncated as usize, header.number_length, header.first & 0xfc), (number, 2, 0xe0));
        let payload_offset = starts[number].1 + 2;
        let opened = open.open(packet, payload_offset, PathId::ZERO, number as u64).unwrap();
        assert_eq!(opened.as_ref(), payload);
    }
}

#[test]
fn five_bits_of_a_short_and_four_of_a_long_first_byte_are_hidden() {
    // RFC 9001 §5.4.1. Masks are as good as random: of many each bit is set in some.
    let (seal, _) = keys(Suite::Aes128Gcm);
    let (mut short, mut long) = (0, 0);
    for number in 0..200 {
        let mut plain = Vec::new();
        short_header().put(&mut plain, number, 4);
        short |= plain[0] ^ sealed(&seal, b"payload", PathId::ZERO, number)[0];
        let header = LongHeader {
            kind: LongKind::Handshake,
            version: Version::V1,
            destination: ConnectionId::EMPTY,
            source: ConnectionId::EMPTY,
            token: &[],
        };
        let mut packet = Vec::new();
        let layout = header.put(&mut packet, number, 4);
        let first = packet[0];
        packet.extend_from_slice(b"payload");
        seal.seal(&mut packet, 0, &layout, PathId::ZERO, number);
        long |= first ^ packet[0];
    }
    assert_eq!((short, long), (0x1f, 0x0f));
}

#[test]
fn the_payload_is_not_copied_when_it_is_opened() {
    let (seal, open) = keys(Suite::Aes128Gcm);
    let mut packet = BytesMut::from(sealed(&seal, &[7; 1000], PathId::ZERO, 1).as_slice());
    open.unprotect(&mut packet, 9).unwrap();
    let place = packet[13..].as_ptr();
    let payload = open.open(packet, 13, PathId::ZERO, 1).unwrap();
    assert_eq!((payload.as_ptr(), payload.len()), (place, 1000));
}

//= https://www.rfc-editor.org/rfc/rfc9001#section-5.4.2
//= type=test
//# An endpoint MUST discard packets that are not long enough to contain a complete sample.
#[test]
fn the_shortest_packet_can_be_sampled_and_one_byte_less_is_dropped() {
    let (seal, open) = keys(Suite::Aes128Gcm);
    for number_length in 1..=4 {
        let mut packet = Vec::new();
        let layout = short_header().put(&mut packet, 9, number_length);
        packet.resize(packet.len() + shortest_payload(number_length), 0);
        seal.seal(&mut packet, 0, &layout, PathId::ZERO, 9);
        assert_eq!(opened(&open, &packet, PathId::ZERO).unwrap().len(), 4 - number_length);
        packet.pop();
        assert_eq!(open.unprotect(&mut packet, 9), Err(Dropped::Malformed));
    }
}

#[test]
fn offsets_beyond_the_packet_are_dropped() {
    let (_, open) = keys(Suite::Aes128Gcm);
    for offset in [21, 40, usize::MAX - 1, usize::MAX] {
        assert_eq!(open.unprotect(&mut [0x40; 40], offset), Err(Dropped::Malformed));
    }
    let packet = BytesMut::from([0x40; 40].as_slice());
    assert_eq!(open.open(packet.clone(), 41, PathId::ZERO, 0), Err(Dropped::Malformed));
    assert_eq!(open.open(packet, 40, PathId::ZERO, 0), Err(Dropped::Undecryptable));
}

#[test]
fn every_changed_byte_of_a_packet_keeps_it_from_opening() {
    for suite in SUITES {
        let (seal, open) = keys(suite);
        let packet = sealed(&seal, b"some frames", PathId(1), 5);
        for index in 0..packet.len() {
            let mut changed = packet.clone();
            changed[index] ^= 0x01;
            assert_eq!(
                opened(&open, &changed, PathId(1)),
                Err(Dropped::Undecryptable),
                "{suite} byte {index}"
            );
        }
    }
}

proptest! {
    #[test]
    fn any_change_keeps_a_packet_from_opening(
        payload in proptest::collection::vec(any::<u8>(), 1..100),
        number: u32,
        path: u32,
        place: proptest::sample::Index,
        change in 1..=255_u8,
    ) {
        let (seal, open) = keys(Suite::Aes128Gcm);
        let mut packet = sealed(&seal, &payload, PathId(path), u64::from(number));
        prop_assert_eq!(opened(&open, &packet, PathId(path)), Ok(Bytes::from(payload)));
        let index = place.index(packet.len());
        packet[index] ^= change;
        // A first byte changed into that of a long header has other bits unmasked, and still does not authenticate.
        prop_assert_eq!(opened(&open, &packet, PathId(path)), Err(Dropped::Undecryptable));
    }

    #[test]
    fn random_bytes_never_open_and_never_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..80),
        offset in 0..100_usize,
    ) {
        let (_, open) = keys(Suite::ChaCha20Poly1305);
        let mut packet = BytesMut::from(bytes.as_slice());
        if let Ok(header) = open.unprotect(&mut packet, offset) {
            let payload_offset = offset + header.number_length;
            prop_assert_eq!(open.open(packet, payload_offset, PathId::ZERO, 0), Err(Dropped::Undecryptable));
        }
    }

    #[test]
    fn nonces_differ_whenever_path_or_number_do(
        iv: [u8; 12],
        packets in proptest::collection::hash_set((any::<u32>(), 0..1_u64 << 62), 2..50),
        near in proptest::collection::hash_set((0..4_u32, 0..4_u64), 2..16),
    ) {
        for set in [packets, near] {
            let nonces: HashSet<_> = set.iter().map(|&(path, number)| nonce(&iv, PathId(path), number)).collect();
            prop_assert_eq!(nonces.len(), set.len());
        }
    }
}
