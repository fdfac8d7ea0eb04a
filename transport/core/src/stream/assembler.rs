//! Puts data that arrives in any order back into order.

use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;

/// Smaller pieces are copied: a slice would keep the whole datagram that it came in alive.
const SMALL_PIECE: usize = 1024;
/// Small pieces that touch are joined up to this size.
const JOINED_SIZE: usize = 4096;
/// Gaps that are accepted whatever the window.
const MIN_RUNS: usize = 1024;
/// With larger windows, one gap is accepted for this many bytes of window.
const BYTES_PER_RUN: u64 = 256;

/// The data has more gaps than any network leaves: its bookkeeping would outgrow the window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the data arrived in too many pieces")]
pub struct TooFragmented;

#[derive(Debug)]
enum Chunk {
    Shared(Bytes),
    Copied(BytesMut),
}

impl Chunk {
    fn len(&self) -> usize {
        match self {
            Self::Shared(bytes) => bytes.len(),
            Self::Copied(bytes) => bytes.len(),
        }
    }

    fn split_to(&mut self, length: usize) -> Bytes {
        match self {
            Self::Shared(bytes) => bytes.split_to(length),
            Self::Copied(bytes) => bytes.split_to(length).freeze(),
        }
    }
}

/// Received data that was not read yet. Of overlapping data the first to arrive wins.
#[derive(Debug, Default)]
pub struct Assembler {
    /// Everything below was read.
    read: u64,
    /// By offset; chunks do not overlap and none starts below `read`.
    chunks: BTreeMap<u64, Chunk>,
    /// Different bytes that ever arrived.
    total: u64,
    /// Groups of chunks without a gap between them.
    runs: usize,
}

impl Assembler {
    /// The offset of the next byte to read.
    pub fn read_offset(&self) -> u64 {
        self.read
    }

    /// How many different bytes arrived, read or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether [`Self::read`] has something to return.
    pub fn is_readable(&self) -> bool {
        self.chunks.first_key_value().is_some_and(|(&offset, _)| offset == self.read)
    }

    /// Groups of contiguous data that are held.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// Forgets what is held and takes nothing more into account.
    pub fn clear(&mut self) {
        self.chunks = BTreeMap::new();
        self.runs = 0;
    }

    /// Takes `data` at `offset`, within a flow control window of `window` bytes.
    ///
    /// Memory stays below about twice the window: gaps are limited to one in 256 bytes of it (1024 at least), and small
    /// pieces are copied. `offset` plus the length must not exceed 2^62-1.
    pub fn insert(&mut self, offset: u64, data: Bytes, window: u64) -> Result<(), TooFragmented> {
        let most = usize::try_from(window / BYTES_PER_RUN).unwrap_or(usize::MAX).max(MIN_RUNS);
        let end = offset + data.len() as u64;
        let mut at = offset.max(self.read);
        if let Some((&start, chunk)) = self.chunks.range(..=at).next_back() {
            at = at.max(start + chunk.len() as u64);
        }
        while at < end {
            let next = self.chunks.range(at..).next();
            let (next_start, next_end) =
                next.map_or((u64::MAX, u64::MAX), |(&start, chunk)| (start, start + chunk.len() as u64));
            let stop = end.min(next_start);
            if at < stop {
                let piece = data.slice((at - offset) as usize..(stop - offset) as usize);
                self.store(at, piece, next_start, most)?;
            }
            at = next_end;
        }
        Ok(())
    }

    /// At most `max` contiguous bytes, `None` if the next byte is not there yet.
    pub fn read(&mut self, max: usize) -> Option<Bytes> {
        let entry = self.chunks.first_entry().filter(|entry| *entry.key() == self.read)?;
        let mut chunk = entry.remove();
        let bytes = chunk.split_to(max.min(chunk.len()));
        self.read += bytes.len() as u64;
        if chunk.len() > 0 {
            self.chunks.insert(self.read, chunk);
        } else if !self.is_readable() {
            self.runs -= 1;
        }
        Some(bytes)
    }

    /// Stores a piece that overlaps nothing; the chunk after it starts at `next`.
    fn store(&mut self, at: u64, piece: Bytes, next: u64, most: usize) -> Result<(), TooFragmented> {
        let end = at + piece.len() as u64;
        let before = self.chunks.range_mut(..at).next_back();
        let before = before.filter(|(start, chunk)| *start + chunk.len() as u64 == at);
        let touches_before = before.is_some();
        self.runs += 1;
        self.runs -= usize::from(touches_before) + usize::from(next == end);
        self.total += piece.len() as u64;
        if self.runs > most && at != self.read {
            return Err(TooFragmented);
        }
        if piece.len() >= SMALL_PIECE {
            self.chunks.insert(at, Chunk::Shared(piece));
            return Ok(());
        }
        let mut start = at;
        match before {
            Some((&before_start, Chunk::Copied(joined))) if joined.len() + piece.len() <= JOINED_SIZE => {
                joined.extend_from_slice(&piece);
                start = before_start;
            }
            _ => {
                self.chunks.insert(at, Chunk::Copied(BytesMut::from(&piece[..])));
            }
        }
        if next == end {
            self.join(start, end);
        }
        Ok(())
    }

    /// Joins the copied chunk at `start` with the one behind it at `next`, if that is copied too and both are small.
    fn join(&mut self, start: u64, next: u64) {
        let length = |chunk: Option<&Chunk>| match chunk {
            Some(Chunk::Copied(bytes)) => bytes.len(),
            _ => JOINED_SIZE + 1,
        };
        if length(self.chunks.get(&start)) + length(self.chunks.get(&next)) > JOINED_SIZE {
            return;
        }
        if let Some(Chunk::Copied(second)) = self.chunks.remove(&next)
            && let Some(Chunk::Copied(first)) = self.chunks.get_mut(&start)
        {
            first.extend_from_slice(&second);
        }
    }
}

#[cfg(test)]
mod tests;
