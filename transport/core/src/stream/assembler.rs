//! Puts data that arrives in any order back into order.

mod unordered;

use super::blocks::Blocks;
use super::short_queue::ShortQueue;
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use unordered::Unordered;

/// Smaller pieces are copied: a slice would keep the whole datagram that it came in alive.
const SMALL_PIECE: usize = 1024;
/// Small pieces that touch are joined up to this size.
const JOINED_SIZE: usize = 4096;
/// Gaps that are accepted whatever the window.
const MIN_RUNS: usize = 1024;
/// The bytes of a larger window for which one more gap is accepted.
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

    fn into_bytes(self) -> Bytes {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Copied(bytes) => bytes.freeze(),
        }
    }

    /// Forgets what lies `length` bytes from its start on.
    fn truncate(&mut self, length: u64) {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        match self {
            Self::Shared(bytes) => bytes.truncate(length),
            Self::Copied(bytes) => bytes.truncate(length),
        }
    }

    fn split_to(&mut self, length: usize) -> Bytes {
        match self {
            Self::Shared(bytes) => bytes.split_to(length),
            Self::Copied(bytes) => bytes.split_to(length).freeze(),
        }
    }

    /// Appends `piece` if both are copied and stay small; otherwise returns it.
    fn join(&mut self, piece: Self) -> Option<Self> {
        match (self, piece) {
            (Self::Copied(joined), Self::Copied(piece)) if joined.len() + piece.len() <= JOINED_SIZE => {
                joined.extend_from_slice(&piece);
                None
            }
            (_, piece) => Some(piece),
        }
    }

    fn of(piece: Bytes) -> Self {
        if piece.len() >= SMALL_PIECE {
            Self::Shared(piece)
        } else {
            Self::Copied(BytesMut::from(&piece[..]))
        }
    }
}

/// Received data that was not read yet. If data overlaps, the first to arrive wins.
#[derive(Debug, Default)]
pub struct Assembler {
    /// Everything below was read.
    read: u64,
    /// The bytes that can be read: all from `read` to `contiguous`, in order. Nearly all data passes only through here.
    ready: ShortQueue<Chunk>,
    /// The first offset that did not arrive yet.
    contiguous: u64,
    /// Different bytes that ever arrived.
    total: u64,
    /// The bytes that arrived behind a gap, once any did: none on nearly all streams.
    gapped: Option<Box<Gapped>>,
}

/// The bytes that arrived behind a gap.
#[derive(Debug, Default)]
struct Gapped {
    /// By offset; chunks do not overlap, and all start above what can be read.
    chunks: BTreeMap<u64, Chunk>,
    /// Groups of `chunks` without a gap between them.
    runs: usize,
    /// There once the application reads in any order; `chunks` is empty from then on.
    unordered: Option<Unordered>,
}

impl Assembler {
    /// The offset of the next byte to read.
    #[cfg(test)]
    pub fn read_offset(&self) -> u64 {
        self.read
    }

    /// Returns the number of different bytes that arrived, read or not.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns true if [`Self::read`] has something to return.
    pub fn is_readable(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the number of bytes that arrived behind a gap.
    #[inline]
    pub fn behind_gap(&self) -> u64 {
        self.total.saturating_sub(self.contiguous)
    }

    /// Groups of contiguous data that are held.
    pub fn runs(&self) -> usize {
        self.gapped.as_ref().map_or(0, |gapped| gapped.runs) + usize::from(!self.ready.is_empty())
    }

    /// Forgets what is held and takes nothing more into account.
    pub fn clear(&mut self) {
        self.gapped = None;
        self.ready = ShortQueue::default();
        self.contiguous = self.read;
    }

    /// Returns true if everything below `to` arrived.
    pub fn has_all_to(&self, to: u64) -> bool {
        self.contiguous >= to || self.has_seen_to(to)
    }

    /// Forgets what is held from `to` on. Returns the number of bytes below that were not read, whether they are there or not.
    pub fn truncate(&mut self, to: u64) -> u64 {
        if self.is_unordered() {
            return self.truncate_unordered(to);
        }
        if let Some(gapped) = &mut self.gapped {
            gapped.truncate(to);
        }
        let (chunks, mut at) = (std::mem::take(&mut self.ready), self.read);
        self.contiguous = self.contiguous.min(to.max(self.read));
        let mut chunks = chunks;
        while let Some(mut chunk) = chunks.pop_front() {
            let end = at + chunk.len() as u64;
            if at < to {
                chunk.truncate(to - at);
                self.ready.push_back(chunk);
            }
            at = end;
        }
        to.saturating_sub(self.read)
    }

    /// Takes `data` at `offset` if it is a small piece that can be read next and alone, as a short message is; whether it was.
    ///
    /// Its copy shares memory of `blocks` with others. There is one for a stream at a time: what follows before that is
    /// read goes the ordinary way.
    #[inline]
    pub fn insert_next(&mut self, offset: u64, data: &Bytes, blocks: &mut Blocks) -> bool {
        let is_small = !data.is_empty() && data.len() < SMALL_PIECE;
        if !is_small || offset != self.contiguous || !self.ready.is_empty() || self.has_gap() {
            return false;
        }
        self.total += data.len() as u64;
        self.contiguous += data.len() as u64;
        self.ready.push_back(Chunk::Shared(blocks.piece(data)));
        true
    }

    /// Takes `data` at `offset`, within a flow control window of `window` bytes.
    ///
    /// Memory stays below about twice the window: gaps are limited to one in 256 bytes of it (1024 at least), and small
    /// pieces are copied. `offset` plus the length must not exceed 2^62-1.
    pub fn insert(&mut self, offset: u64, data: Bytes, window: u64) -> Result<(), TooFragmented> {
        let end = offset + data.len() as u64;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-2.2
        //# Endpoints MUST be able to deliver stream data to an application as an ordered byte stream
        if offset == self.contiguous && !self.has_gap() {
            self.append(data);
            return Ok(());
        }
        let most = usize::try_from(window / BYTES_PER_RUN).unwrap_or(usize::MAX).max(MIN_RUNS);
        if self.is_unordered() {
            return self.insert_unordered(offset, &data, most);
        }
        let mut gapped = self.gapped.take().unwrap_or_default();
        let mut at = offset.max(self.contiguous);
        if let Some((&start, chunk)) = gapped.chunks.range(..=at).next_back() {
            at = at.max(start + chunk.len() as u64);
        }
        while at < end {
            let next = gapped.chunks.range(at..).next();
            let (next_start, next_end) =
                next.map_or((u64::MAX, u64::MAX), |(&start, chunk)| (start, start + chunk.len() as u64));
            let stop = end.min(next_start);
            if at < stop {
                let piece = data.slice((at - offset) as usize..(stop - offset) as usize);
                if at == self.contiguous {
                    self.append(piece);
                } else {
                    self.total += piece.len() as u64;
                    gapped.store(at, piece, next_start, most)?;
                }
            }
            at = next_end;
        }
        while let Some(chunk) = gapped.take(self.contiguous) {
            self.enqueue(chunk);
        }
        self.gapped = Some(gapped);
        Ok(())
    }

    /// Reads at most `max` contiguous bytes, `None` if the next byte is not there yet.
    pub fn read(&mut self, max: usize) -> Option<Bytes> {
        let chunk = self.ready.front_mut()?;
        let is_whole = max >= chunk.len();
        let bytes = if is_whole { self.ready.pop_front()?.into_bytes() } else { chunk.split_to(max) };
        self.read += bytes.len() as u64;
        if self.gapped.is_some() {
            self.on_read_unordered(bytes.len(), is_whole);
        }
        Some(bytes)
    }

    #[inline]
    fn has_gap(&self) -> bool {
        self.gapped.as_ref().is_some_and(|gapped| !gapped.chunks.is_empty() || gapped.unordered.is_some())
    }

    /// Makes a piece readable that starts where the readable data ends.
    fn append(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        self.total += piece.len() as u64;
        self.enqueue(Chunk::of(piece));
    }

    fn enqueue(&mut self, chunk: Chunk) {
        self.contiguous += chunk.len() as u64;
        let left = match self.ready.back_mut() {
            Some(last) => last.join(chunk),
            None => Some(chunk),
        };
        if let Some(chunk) = left {
            self.ready.push_back(chunk);
        }
    }
}

impl Gapped {
    /// Forgets what is held from `to` on.
    fn truncate(&mut self, to: u64) {
        drop(self.chunks.split_off(&to));
        if let Some((start, chunk)) = self.chunks.iter_mut().next_back() {
            chunk.truncate(to - start);
        }
        let mut end = None;
        self.runs = 0;
        for (start, chunk) in &self.chunks {
            self.runs += usize::from(end != Some(*start));
            end = Some(start + chunk.len() as u64);
        }
    }

    /// The first chunk, if it starts at `offset`.
    fn take(&mut self, offset: u64) -> Option<Chunk> {
        let chunk = self.chunks.first_entry().filter(|first| *first.key() == offset)?.remove();
        let end = offset + chunk.len() as u64;
        if self.chunks.first_key_value().is_none_or(|(start, _)| *start != end) {
            self.runs -= 1;
        }
        Some(chunk)
    }

    /// Stores a piece behind a gap that overlaps nothing; the chunk after it starts at `next`.
    fn store(&mut self, at: u64, piece: Bytes, next: u64, most: usize) -> Result<(), TooFragmented> {
        let end = at + piece.len() as u64;
        let before = self.chunks.range_mut(..at).next_back();
        let before = before.filter(|(start, chunk)| *start + chunk.len() as u64 == at);
        self.runs += 1;
        self.runs -= usize::from(before.is_some()) + usize::from(next == end);
        if self.runs > most {
            return Err(TooFragmented);
        }
        let (start, left) = match before {
            Some((&start, chunk)) => (start, chunk.join(Chunk::of(piece))),
            None => (at, Some(Chunk::of(piece))),
        };
        let start = match left {
            Some(chunk) => {
                self.chunks.insert(at, chunk);
                at
            }
            None => start,
        };
        if next == end {
            self.join(start, end);
        }
        Ok(())
    }

    /// Joins the copied chunk at `start` with the one behind it at `next`, if that is copied too and both are small.
    fn join(&mut self, start: u64, next: u64) {
        let Some(second) = self.chunks.remove(&next) else { return };
        let left = match self.chunks.get_mut(&start) {
            Some(first) => first.join(second),
            None => Some(second),
        };
        if let Some(second) = left {
            self.chunks.insert(next, second);
        }
    }
}

#[cfg(test)]
mod tests;
