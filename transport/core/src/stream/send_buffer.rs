//! The bytes of a stream from the first unacknowledged one to the last one written.

use super::blocks::Blocks;
use super::short_queue::ShortQueue;
use bytes::{BufMut, Bytes, BytesMut};
use std::ops::Range;

/// Writes up to this size are copied together, so that many small writes do not become many small chunks.
const SMALL_WRITE: usize = 1024;
/// Small writes are collected up to this size.
const TAIL_SIZE: usize = 16 * 1024;
/// Pieces of chunks that are at least this long are sent in frames of their own, and not joined with others: a frame costs less
/// than copying so much.
const WORTH_A_FRAME: usize = 4 * 1024;

/// The bytes that were written and not yet acknowledged.
#[derive(Debug, Default)]
pub struct SendBuffer {
    /// Chunks with the offset of their first byte, contiguous.
    chunks: ShortQueue<(u64, Bytes)>,
    /// The chunk that was sliced last: the next slice nearly always begins there or in the one behind it.
    last: usize,
    /// Small writes after the last chunk.
    tail: BytesMut,
    /// Everything below is acknowledged.
    start: u64,
    /// The offset after the last byte.
    end: u64,
}

impl SendBuffer {
    /// The offset after the last byte that was written.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Bytes held: written, but not acknowledged up to there.
    pub fn buffered(&self) -> usize {
        usize::try_from(self.end - self.start).unwrap_or(usize::MAX)
    }

    /// Appends a copy of `data`, in memory of `blocks` unless it is small.
    pub fn push(&mut self, data: &[u8], blocks: &mut Blocks) {
        if data.len() > SMALL_WRITE {
            return self.push_chunk(blocks.copy(data));
        }
        self.push_small(data);
    }

    fn push_small(&mut self, data: &[u8]) {
        if self.tail.len() + data.len() > TAIL_SIZE {
            self.freeze_tail();
        }
        self.tail.put_slice(data);
        self.end += data.len() as u64;
    }

    /// Appends `data`, without copying it unless it is small and joins what waits already.
    pub fn push_bytes(&mut self, data: Bytes) {
        let is_alone = self.chunks.is_empty() && self.tail.is_empty() && !data.is_empty();
        if is_alone || data.len() > SMALL_WRITE { self.push_chunk(data) } else { self.push_small(&data) }
    }

    /// The part at the start of `range` that is sent in one frame: what is short is joined, what is long is not, for
    /// [`slice`](Self::slice) would copy it. A range that fits into an ordinary packet is one part.
    pub fn part(&self, range: Range<u64>) -> Range<u64> {
        let length = range.end - range.start;
        if length <= 2 * WORTH_A_FRAME as u64 {
            return range;
        }
        let mut end = range.start;
        for (start, chunk) in self.chunks.iter_from(self.chunk_at(range.start)) {
            let chunk_end = start + chunk.len() as u64;
            let is_long = chunk_end.min(range.end).saturating_sub(end) >= WORTH_A_FRAME as u64;
            if is_long && end > range.start {
                return range.start..end;
            }
            end = chunk_end.max(end);
            if is_long || end >= range.end {
                return range.start..end.min(range.end);
            }
        }
        // What is behind the chunks was written in small pieces.
        range
    }

    /// The bytes of `range`, which must lie between the last [`Self::release`] and [`Self::end`].
    ///
    /// A range within one chunk is not copied; others are, in memory of `blocks`, for a moment.
    pub fn slice(&mut self, range: Range<u64>, blocks: &mut Blocks) -> Bytes {
        if range.is_empty() {
            return Bytes::new();
        }
        debug_assert!(self.start <= range.start && range.end <= self.end);
        if range.end > self.end - self.tail.len() as u64 {
            self.freeze_tail();
        }
        let length = (range.end - range.start) as usize;
        let first = self.chunk_at(range.start);
        self.last = first;
        let chunks = self.chunks.iter_from(first);
        let Some((start, chunk)) = self.chunks.get(first) else { return Bytes::new() };
        let mut skip = (range.start - start) as usize;
        if skip == 0 && chunk.len() == length {
            return chunk.clone();
        }
        if chunk.len() - skip >= length {
            return chunk.slice(skip..skip + length);
        }
        let mut missing = length;
        let parts = chunks.map_while(|(_, chunk)| {
            let from = std::mem::take(&mut skip);
            let part = &chunk[from..chunk.len().min(from + missing)];
            missing -= part.len();
            (!part.is_empty()).then_some(part)
        });
        blocks.join(parts, length)
    }

    /// The index of the chunk that holds `offset`.
    fn chunk_at(&self, offset: u64) -> usize {
        let holds = |index: &usize| {
            self.chunks
                .get(*index)
                .is_some_and(|(start, chunk)| (*start..*start + chunk.len() as u64).contains(&offset))
        };
        [self.last, self.last + 1]
            .into_iter()
            .find(holds)
            .unwrap_or_else(|| self.chunks.partition_point(|(start, _)| *start <= offset).saturating_sub(1))
    }

    /// Forgets everything below `to`.
    pub fn release(&mut self, to: u64) {
        self.start = self.start.max(to.min(self.end));
        while let Some((start, chunk)) = self.chunks.front()
            && start + chunk.len() as u64 <= self.start
        {
            self.chunks.pop_front();
            self.last = self.last.saturating_sub(1);
        }
        if self.start == self.end {
            // An idle stream keeps no memory.
            if self.tail.capacity() > 0 {
                self.tail = BytesMut::new();
            }
            if self.chunks.capacity() > 0 {
                self.chunks = ShortQueue::default();
            }
        }
    }

    /// Forgets everything from `to` on.
    pub fn truncate(&mut self, to: u64) {
        self.freeze_tail();
        self.end = self.end.min(to.max(self.start));
        let chunks = std::mem::take(&mut self.chunks);
        for (start, chunk) in chunks.iter_from(0).filter(|(start, _)| *start < self.end) {
            let length = usize::try_from(self.end - start).unwrap_or(usize::MAX).min(chunk.len());
            self.chunks.push_back((*start, chunk.slice(..length)));
        }
        self.last = 0;
    }

    fn push_chunk(&mut self, data: Bytes) {
        self.freeze_tail();
        let start = self.end;
        self.end += data.len() as u64;
        self.chunks.push_back((start, data));
    }

    fn freeze_tail(&mut self) {
        if !self.tail.is_empty() {
            let start = self.end - self.tail.len() as u64;
            self.chunks.push_back((start, self.tail.split().freeze()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_range_within_one_chunk_is_not_copied() {
        let (mut buffer, mut blocks) = (SendBuffer::default(), Blocks::default());
        let data = Bytes::from(vec![7; 5000]);
        buffer.push_bytes(data.clone());
        assert_eq!(buffer.slice(1000..2200, &mut blocks).as_ptr(), data[1000..].as_ptr());
    }

    #[test]
    fn long_pieces_are_frames_of_their_own_and_short_ones_are_joined() {
        let mut buffer = SendBuffer::default();
        let lengths = [5, 60_000, 3_000, 2_000, 60_000, 1_500];
        for length in lengths {
            buffer.push_bytes(Bytes::from(vec![7; length]));
        }
        buffer.push_bytes(Bytes::from(vec![7; 800]));
        let mut parts = Vec::new();
        let mut at = 0;
        while at < buffer.end() {
            let part = buffer.part(at..(at + 50_000).min(buffer.end()));
            assert!(part.start == at && part.end > at);
            at = part.end;
            parts.push(part.end - part.start);
        }
        assert_eq!(parts, [5, 50_000, 10_000, 5_000, 50_000, 10_000, 2_300]);
        for start in [0, 55_500] {
            let packet = start..start + 8_000;
            assert_eq!(buffer.part(packet.clone()), packet, "an ordinary packet is not taken apart");
        }
    }

    #[test]
    fn small_writes_are_sent_together() {
        let (mut buffer, mut blocks) = (SendBuffer::default(), Blocks::default());
        for byte in 0..200u8 {
            buffer.push(&[byte], &mut blocks);
        }
        let all = buffer.slice(0..200, &mut blocks);
        assert_eq!(all, (0..200u8).collect::<Vec<_>>());
        assert_eq!(buffer.chunks.len(), 1);
    }

    #[test]
    fn the_first_small_write_is_shared_and_those_behind_it_are_collected() {
        let (mut buffer, mut blocks) = (SendBuffer::default(), Blocks::default());
        let data = Bytes::from(vec![7; 100]);
        for _ in 0..4 {
            buffer.push_bytes(data.clone());
        }
        assert_eq!(buffer.slice(0..100, &mut blocks).as_ptr(), data.as_ptr());
        assert_eq!(buffer.slice(0..400, &mut blocks), [7; 400][..]);
        assert_eq!((buffer.chunks.len(), buffer.buffered()), (2, 400));
    }

    #[test]
    fn writes_of_up_to_one_kibibyte_are_collected_up_to_sixteen() {
        let (mut buffer, mut blocks) = (SendBuffer::default(), Blocks::default());
        for _ in 0..TAIL_SIZE / SMALL_WRITE {
            buffer.push(&[1; SMALL_WRITE], &mut blocks);
        }
        assert_eq!((buffer.chunks.len(), buffer.tail.len()), (0, TAIL_SIZE));
        buffer.push(&[2; SMALL_WRITE], &mut blocks);
        assert_eq!((buffer.chunks.len(), buffer.tail.len()), (1, SMALL_WRITE));
        // What is sent of the chunks before it does not end the collection.
        buffer.slice(0..TAIL_SIZE as u64, &mut blocks);
        assert_eq!((buffer.chunks.len(), buffer.tail.len()), (1, SMALL_WRITE));
        let (short, long) = (Bytes::from(vec![3; SMALL_WRITE]), Bytes::from(vec![4; SMALL_WRITE + 1]));
        buffer.push_bytes(short);
        assert_eq!(buffer.tail.len(), 2 * SMALL_WRITE);
        buffer.push_bytes(long.clone());
        assert_eq!(buffer.chunks.back().map(|(_, chunk)| chunk.as_ptr()), Some(long.as_ptr()));
    }

    #[test]
    fn acknowledged_chunks_are_freed() {
        let (mut buffer, mut blocks) = (SendBuffer::default(), Blocks::default());
        for _ in 0..4 {
            buffer.push(&[1; 2000], &mut blocks);
        }
        buffer.release(3999);
        assert_eq!((buffer.chunks.len(), buffer.buffered()), (3, 4001));
        buffer.release(8000);
        assert_eq!((buffer.chunks.capacity(), buffer.tail.capacity(), buffer.buffered()), (0, 0, 0));
    }

    proptest! {
        #[test]
        fn slices_are_what_was_written(
            writes in proptest::collection::vec((1usize..3000, any::<bool>()), 1..20),
            cuts in proptest::collection::vec((0usize..60_000, 0usize..3000, 0usize..60_000), 0..20),
        ) {
            let (mut buffer, mut blocks) = (SendBuffer::default(), Blocks::default());
            let mut model = Vec::new();
            let mut released = 0;
            let mut cuts = cuts.into_iter();
            for (length, shared) in writes {
                let data: Vec<u8> = (0..length).map(|i| (((model.len() + i) * 31) >> 3) as u8).collect();
                if shared { buffer.push_bytes(Bytes::from(data.clone())) } else { buffer.push(&data, &mut blocks) }
                model.extend_from_slice(&data);
                if let Some((from, length, release)) = cuts.next() {
                    let from = from.clamp(released, model.len());
                    let to = (from + length).min(model.len());
                    prop_assert_eq!(&buffer.slice(from as u64..to as u64, &mut blocks)[..], &model[from..to]);
                    let all = from as u64..model.len() as u64;
                    let part = buffer.part(all.clone());
                    prop_assert_eq!((part.start, part.is_empty()), (all.start, all.is_empty()));
                    prop_assert!(part.end <= all.end);
                    released = released.max(release.min(from));
                    buffer.release(released as u64);
                    prop_assert_eq!(buffer.buffered(), model.len() - released);
                }
            }
        }
    }
}
