//! Data that is read in the order in which it arrives, for applications that need no other.

use super::{Assembler, Chunk, Gapped, TooFragmented};
use crate::ranges::Ranges;
use bytes::Bytes;
use std::collections::VecDeque;

/// The state of an assembler whose data is read in any order.
#[derive(Debug)]
pub(super) struct Unordered {
    /// Bytes that arrived, read or not.
    seen: Ranges,
    /// The offsets of the chunks that can be read.
    offsets: VecDeque<u64>,
}

impl Assembler {
    /// From here on, [`Self::read`] returns data in the order in which it arrived. Returns the offset of what it returns next.
    pub fn begin_unordered(&mut self) -> u64 {
        if self.unordered().is_none() {
            let mut gapped = self.gapped.take().unwrap_or_default();
            let mut unordered = Unordered { seen: Ranges::new(), offsets: VecDeque::new() };
            unordered.saw(0, self.contiguous);
            let mut at = self.read;
            for chunk in self.ready.iter_from(0) {
                unordered.offsets.push_back(at);
                at += chunk.len() as u64;
            }
            for (offset, chunk) in std::mem::take(&mut gapped.chunks) {
                unordered.saw(offset, offset + chunk.len() as u64);
                unordered.offsets.push_back(offset);
                self.ready.push_back(chunk);
            }
            self.gapped = Some(Box::new(Gapped { unordered: Some(unordered), ..Gapped::default() }));
        }
        self.unordered().and_then(|unordered| unordered.offsets.front().copied()).unwrap_or(self.contiguous)
    }

    /// Takes in what is new of `data` at `offset`, of which at most `most` pieces are held.
    pub(super) fn insert_unordered(
        &mut self,
        offset: u64,
        data: &Bytes,
        most: usize,
    ) -> Result<(), TooFragmented> {
        let Some(unordered) = self.gapped.as_mut().and_then(|gapped| gapped.unordered.as_mut()) else {
            return Ok(());
        };
        for (start, end) in unordered.missing(offset, offset + data.len() as u64) {
            let piece = data.slice((start - offset) as usize..(end - offset) as usize);
            self.total += piece.len() as u64;
            let follows = unordered
                .offsets
                .back()
                .zip(self.ready.back_mut())
                .filter(|(at, last)| *at + last.len() as u64 == start);
            let left = match follows {
                Some((_, last)) => last.join(Chunk::of(piece)),
                None => Some(Chunk::of(piece)),
            };
            if let Some(chunk) = left {
                self.ready.push_back(chunk);
                unordered.offsets.push_back(start);
            }
            unordered.saw(start, end);
        }
        let is_bounded = unordered.seen.len() <= most && unordered.offsets.len() <= most;
        if is_bounded { Ok(()) } else { Err(TooFragmented) }
    }

    /// Returns true if everything below `to` arrived, in whatever order.
    pub(super) fn has_seen_to(&self, to: u64) -> bool {
        self.unordered().is_some_and(|unordered| unordered.missing(0, to).is_empty())
    }

    /// Forgets what is held from `to` on. Returns the number of bytes below that were not read, whether they are there or not.
    pub(super) fn truncate_unordered(&mut self, to: u64) -> u64 {
        let Some(unordered) = self.gapped.as_mut().and_then(|gapped| gapped.unordered.as_mut()) else {
            return 0;
        };
        let mut chunks = std::mem::take(&mut self.ready);
        let mut left: u64 = unordered.missing(0, to).iter().map(|(start, end)| end - start).sum();
        for at in std::mem::take(&mut unordered.offsets) {
            let Some(mut chunk) = chunks.pop_front() else { break };
            if at < to {
                chunk.truncate(to - at);
                left += chunk.len() as u64;
                self.ready.push_back(chunk);
                unordered.offsets.push_back(at);
            }
        }
        left
    }

    /// `bytes` of the first chunk were read.
    pub(super) fn on_read_unordered(&mut self, bytes: usize, is_whole: bool) {
        let Some(unordered) = self.gapped.as_mut().and_then(|gapped| gapped.unordered.as_mut()) else {
            return;
        };
        match unordered.offsets.front_mut() {
            Some(_) if is_whole => drop(unordered.offsets.pop_front()),
            Some(offset) => *offset += bytes as u64,
            None => {}
        }
    }

    /// Returns true if data is read in any order.
    pub(super) fn is_unordered(&self) -> bool {
        self.unordered().is_some()
    }

    fn unordered(&self) -> Option<&Unordered> {
        self.gapped.as_ref()?.unordered.as_ref()
    }
}

impl Unordered {
    /// Bytes from `start` to `end`, exclusive, arrived.
    fn saw(&mut self, start: u64, end: u64) {
        if start < end {
            self.seen.insert_range(start..=end - 1);
        }
    }

    /// The parts of what lies from `start` to `end`, exclusive, that did not arrive yet.
    fn missing(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let mut missing = Ranges::new();
        if start < end {
            missing.insert_range(start..=end - 1);
        }
        for known in self.seen.iter().rev().take_while(|known| *known.end() >= start) {
            missing.remove_range(known);
        }
        missing.iter().map(|range| (*range.start(), range.end() + 1)).collect()
    }
}
