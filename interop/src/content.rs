//! The content of transfers, and the check that it arrived as it was sent.

use anyhow::{Result, ensure};
use bytes::Bytes;
use ring::digest;
use std::fmt::Write;

/// `length` bytes that look random; another `seed` gives other bytes.
pub fn content(length: usize, seed: u64) -> Bytes {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        // Marsaglia's xorshift with 64 bits of state.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

/// The SHA-256 of `bytes`, in hexadecimal digits.
pub fn hash(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in digest::digest(&digest::SHA256, bytes).as_ref() {
        write!(text, "{byte:02x}").expect("a string takes all that is written to it");
    }
    text
}

/// The 32-bit FNV-1a hash of `bytes`, which a script in a page computes quickly.
pub fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Checks that `received` is `sent`, told by length and hash.
///
/// # Errors
/// It is not; `direction` says in the text what was received.
pub fn check(received: &[u8], sent: &[u8], direction: &str) -> Result<()> {
    check_hash(received.len(), &hash(received), sent, direction)
}

/// Checks the same for a receiver that tells only the length and the hash of the bytes that it received.
///
/// # Errors
/// It is something else than `sent`.
pub fn check_hash(length: usize, received: &str, sent: &[u8], direction: &str) -> Result<()> {
    ensure!(length == sent.len(), "{direction}: {length} bytes arrived of {}", sent.len());
    ensure!(received == hash(sent), "{direction}: all {length} bytes arrived, but other ones");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_has_its_length_and_differs_by_seed() {
        assert_eq!(content(1003, 1).len(), 1003);
        assert_ne!(content(64, 1), content(64, 2));
        assert_eq!(content(64, 1), content(64, 1));
    }

    #[test]
    fn the_hash_is_the_one_of_fips_180() {
        assert_eq!(hash(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn fnv1a_is_the_published_one() {
        assert_eq!((fnv1a(b""), fnv1a(b"a"), fnv1a(b"foobar")), (0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968));
    }

    #[test]
    fn a_changed_or_missing_byte_is_found() {
        let sent = content(1000, 3);
        assert!(check(&sent, &sent, "down").is_ok());
        assert!(check(&sent[1..], &sent, "down").is_err());
        let mut changed = sent.to_vec();
        changed[500] ^= 1;
        assert!(check(&changed, &sent, "down").is_err());
    }
}
