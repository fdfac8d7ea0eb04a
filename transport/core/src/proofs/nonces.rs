//! The nonce is another one for every packet number on every path (RFC 9001 §5.3, RFC 10069 §2.4).

use crate::PathId;
use crate::crypto::protect::nonce;
use crate::wire::varint;
use std::collections::BTreeMap;

/// The path ID and the packet number that `nonce` was made from: that there is such a function is the proof.
fn inverse(iv: &[u8; 12], nonce: &[u8; 12]) -> (u32, u64) {
    let mut plain = [0; 12];
    for (byte, (a, b)) in plain.iter_mut().zip(iv.iter().zip(nonce)) {
        *byte = a ^ b;
    }
    let (path, number) = plain.split_at(4);
    (
        u32::from_be_bytes(path.try_into().expect("four bytes")),
        u64::from_be_bytes(number.try_into().expect("eight bytes")),
    )
}

/// Every path ID and packet number with at most two bits set, and the greatest.
fn samples(bits: u32) -> Vec<u64> {
    let mut all = vec![0, (1 << bits) - 1];
    for one in 0..bits {
        all.extend((0..=one).map(|other| 1 << one | 1 << other));
    }
    all.dedup();
    all
}

#[test]
fn path_and_number_can_be_read_back_from_a_nonce() {
    for iv in [[0; 12], [0xff; 12], *b"abcdefghijkl"] {
        for path in samples(32) {
            for number in samples(62) {
                let path = u32::try_from(path).expect("32 bits");
                assert!(number <= varint::MAX);
                assert_eq!(inverse(&iv, &nonce(&iv, PathId(path), number)), (path, number));
            }
        }
    }
}

#[test]
fn small_paths_and_numbers_share_no_nonce() {
    let mut met = BTreeMap::new();
    for path in 0..64 {
        for number in 0..2000 {
            let other = met.insert(nonce(&[7; 12], PathId(path), number), (path, number));
            assert_eq!(other, None, "path {path}, packet {number}");
        }
    }
}
