//! Memory for copies of what is written, used again once it was acknowledged.

use bytes::{Bytes, BytesMut};

/// Bytes of a block.
const BLOCK: usize = 64 << 10;
/// Blocks at most: 2 MiB. Data in flight beyond that gets memory of its own.
const MOST: usize = 32;
/// Bytes for what is joined, which is only needed until a packet has it.
const JOINT: usize = 16 << 10;
/// Bytes that small pieces share. Each keeps all of them alive until it is read.
const SHARED: usize = 8 << 10;

/// Blocks of memory that the connections of an endpoint use in turn; empty until one is needed.
#[derive(Debug, Default)]
pub struct Blocks(Option<Box<BlockPool>>);

#[derive(Debug, Default)]
struct BlockPool {
    blocks: Vec<BytesMut>,
    /// The one that is filled.
    current: usize,
    /// The block for bytes that are joined.
    joint: BytesMut,
    /// For small pieces.
    shared: BytesMut,
}

impl Blocks {
    /// Hands all over to `other`, unless that has some already and more.
    pub fn move_to(&mut self, other: &mut Self) {
        let Some(kept) = self.0.take() else { return };
        if other.0.as_ref().is_none_or(|others| others.blocks.len() <= kept.blocks.len()) {
            other.0 = Some(kept);
        }
    }

    /// A copy of `data`, for as long as it takes.
    pub fn copy(&mut self, data: &[u8]) -> Bytes {
        let Some(block) = self.room(data.len()) else { return Bytes::copy_from_slice(data) };
        block.extend_from_slice(data);
        block.split().freeze()
    }

    /// A copy of `parts`, one behind the other, which have `length` bytes together and are needed for a moment only.
    pub fn join<'a>(&mut self, parts: impl IntoIterator<Item = &'a [u8]>, length: usize) -> Bytes {
        let joint = &mut self.0.get_or_insert_default().joint;
        if !joint.try_reclaim(length) {
            *joint = BytesMut::with_capacity(length.max(JOINT));
        }
        for part in parts {
            joint.extend_from_slice(part);
        }
        joint.split().freeze()
    }

    /// A copy of `piece`, which is small, beside others in memory that is used again when all of them were read.
    ///
    /// Such copies need no allocation each. A reader that keeps one and lets the others go keeps 8 KiB.
    pub fn piece(&mut self, piece: &[u8]) -> Bytes {
        let shared = &mut self.0.get_or_insert_default().shared;
        if shared.capacity() < piece.len() && !shared.try_reclaim(SHARED) {
            *shared = BytesMut::with_capacity(SHARED.max(piece.len()));
        }
        shared.extend_from_slice(piece);
        shared.split().freeze()
    }

    /// A block with room for `length` bytes: the current one, one of which nothing is in use any more, or a new one.
    fn room(&mut self, length: usize) -> Option<&mut BytesMut> {
        if length > BLOCK {
            return None;
        }
        let kept = self.0.get_or_insert_default();
        let (count, current) = (kept.blocks.len(), kept.current);
        let mut order = (current..count).chain(0..current);
        let free =
            order.find(|index| kept.blocks.get_mut(*index).is_some_and(|block| block.try_reclaim(length)));
        kept.current = match free {
            Some(index) => index,
            None if count < MOST => {
                kept.blocks.push(BytesMut::with_capacity(BLOCK));
                count
            }
            None => return None,
        };
        kept.blocks.get_mut(kept.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(blocks: &mut Blocks, length: usize, byte: u8) -> Bytes {
        blocks.copy(&vec![byte; length])
    }

    fn count(blocks: &Blocks) -> usize {
        blocks.0.as_ref().map_or(0, |kept| kept.blocks.len())
    }

    #[test]
    fn a_block_is_used_again_once_nothing_of_it_is_in_use() {
        let mut blocks = Blocks::default();
        let first = copy(&mut blocks, BLOCK, 1);
        let second = copy(&mut blocks, BLOCK, 2);
        assert_eq!((count(&blocks), first[0], second[BLOCK - 1]), (2, 1, 2));
        let place = first.as_ptr();
        let part = first.slice(100..200);
        drop(first);
        let third = copy(&mut blocks, BLOCK, 3);
        assert_eq!((count(&blocks), part[0], third[0]), (3, 1, 3));
        drop(part);
        assert_eq!((copy(&mut blocks, 5, 4).as_ptr(), count(&blocks)), (place, 3));
    }

    #[test]
    fn short_copies_share_a_block_and_parts_are_joined() {
        let mut blocks = Blocks::default();
        let kept: Vec<Bytes> = (0..64).map(|byte| copy(&mut blocks, 1024, byte)).collect();
        assert!(kept.iter().zip(0..).all(|(bytes, byte)| bytes.iter().all(|found| *found == byte)));
        assert_eq!(count(&blocks), 1);
        let joined = blocks.join([&b"one"[..], b"", b"two"], 6);
        let place = joined.as_ptr();
        assert_eq!((&joined[..], &blocks.join([&b"other"[..]], 5)[..]), (&b"onetwo"[..], &b"other"[..]));
        drop(joined);
        let whole = [1; JOINT];
        assert_eq!(blocks.join([&whole[..]], JOINT).as_ptr(), place);
    }

    #[test]
    fn small_pieces_share_memory_that_is_used_again_when_all_were_read() {
        let mut blocks = Blocks::default();
        let first = blocks.piece(b"first");
        let place = first.as_ptr();
        let kept: Vec<Bytes> = (0..SHARED / 100 - 1).map(|_| blocks.piece(&[7; 100])).collect();
        assert!(
            kept.iter().all(|piece| place <= piece.as_ptr() && piece.as_ptr() < place.wrapping_add(SHARED))
        );
        drop(kept);
        let elsewhere = blocks.piece(&[8; 1000]);
        assert_ne!(elsewhere.as_ptr(), place, "the first piece is still there");
        assert_eq!((&first[..], elsewhere[999]), (&b"first"[..], 8));
        let second = elsewhere.as_ptr();
        drop(elsewhere);
        drop(blocks.piece(&[9; SHARED - 1000]));
        assert_eq!(blocks.piece(&[9; 10]).as_ptr(), second);
        assert_eq!(blocks.piece(&[9; SHARED + 1]).len(), SHARED + 1);
    }

    #[test]
    fn memory_is_bounded_whatever_is_in_use() {
        let mut blocks = Blocks::default();
        let kept: Vec<Bytes> = (0..100).map(|byte| copy(&mut blocks, BLOCK, byte)).collect();
        assert!(kept.iter().zip(0..).all(|(bytes, byte)| bytes[0] == byte && bytes.len() == BLOCK));
        assert_eq!((count(&blocks), copy(&mut blocks, BLOCK + 1, 7).len()), (MOST, BLOCK + 1));
    }

    #[test]
    fn who_has_more_keeps_it() {
        let (mut one, mut other) = (Blocks::default(), Blocks::default());
        let _in_use: Vec<Bytes> = (0..3).map(|byte| copy(&mut one, BLOCK, byte)).collect();
        copy(&mut other, 1, 1);
        one.move_to(&mut other);
        assert_eq!((count(&one), count(&other)), (0, 3));
        copy(&mut one, 1, 1);
        for _ in 0..2 {
            // Once with a block, and once with nothing.
            one.move_to(&mut other);
            assert_eq!((count(&one), count(&other)), (0, 3));
        }
    }
}
