//! Bytes that can be checked wherever they turn up: their values follow from a stream's number and the offset.

use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use std::sync::OnceLock;

/// A prime, so that no power of two hides a displacement.
const PERIOD: usize = 65_521;

fn table() -> &'static [u8] {
    static TABLE: OnceLock<Vec<u8>> = OnceLock::new();
    TABLE.get_or_init(|| {
        // Twice the period: a slice of up to one period never wraps.
        let mut once = vec![0; PERIOD];
        StdRng::seed_from_u64(0x5eed).fill_bytes(&mut once);
        once.repeat(2)
    })
}

fn start(stream: u64, offset: u64) -> usize {
    ((offset + stream * 7919) % PERIOD as u64) as usize
}

/// The bytes of `stream` from `offset` on: `length` of them, or fewer.
pub fn bytes(stream: u64, offset: u64, length: usize) -> &'static [u8] {
    let start = start(stream, offset);
    &table()[start..start + length.min(PERIOD)]
}

/// Returns true if `data` is the content of `stream` at `offset`.
pub fn matches(stream: u64, offset: u64, data: &[u8]) -> bool {
    let mut at = offset;
    data.chunks(PERIOD).all(|chunk| {
        let expected = bytes(stream, at, chunk.len());
        at += chunk.len() as u64;
        expected == chunk
    })
}
