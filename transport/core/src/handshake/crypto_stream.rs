//! The CRYPTO data of one encryption level, both ways (RFC 9000 §7.5).

use crate::error::{ErrorCode, TransportError};
use crate::ranges::Ranges;
use crate::recovery_token::RecoveryToken;
use crate::wire::frame::{Crypto, Frame};
use crate::wire::level::Level;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

//= https://www.rfc-editor.org/rfc/rfc9000#section-7.5
//# Implementations MUST support buffering at least 4096 bytes of data received in out-of-order CRYPTO frames
/// Bytes of CRYPTO data ahead of what was read that are kept at most (RFC 9000 §7.5 asks for 4096 at least), those in
/// pieces that overlap counted each.
const BUFFER_LIMIT: u64 = 64 * 1024;
/// Chunks kept at most while earlier data is missing.
const CHUNK_LIMIT: usize = 256;

/// Tells whether a CRYPTO frame brought new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Novelty {
    /// Bytes that had not arrived, or perhaps some.
    New,
    /// No new data: the peer repeats itself.
    Known,
}

/// Handshake bytes to send and to receive at one level.
#[derive(Debug)]
pub struct CryptoStream {
    level: Level,
    /// The bytes that were written from [`Self::released`] on.
    outgoing: Vec<u8>,
    /// Everything below this offset arrived, and is forgotten.
    released: u64,
    /// Bytes of `outgoing` that wait to be sent, first sent or again.
    pending: Ranges,
    acknowledged: Ranges,
    incoming: BTreeMap<u64, Bytes>,
    read: u64,
}

impl CryptoStream {
    /// An empty stream for `level`.
    pub fn new(level: Level) -> Self {
        Self {
            level,
            outgoing: Vec::new(),
            released: 0,
            pending: Ranges::default(),
            acknowledged: Ranges::default(),
            incoming: BTreeMap::new(),
            read: 0,
        }
    }

    /// Queues `data` for sending.
    pub fn write(&mut self, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let start = self.end();
        self.outgoing.extend_from_slice(data);
        self.pending.insert_range(start..=self.end() - 1);
    }

    /// Returns true if anything waits to be sent.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Bytes that wait to be sent.
    pub fn pending_bytes(&self) -> usize {
        self.pending.iter().map(|range| (range.end() - range.start() + 1) as usize).sum()
    }

    /// The next frame that fits in `room` bytes.
    pub fn next_frame(&mut self, room: usize) -> Option<(Frame, RecoveryToken)> {
        let first = self.pending.iter().next()?;
        let (start, end) = (*first.start(), *first.end());
        let available = (end - start + 1) as usize;
        let length = Crypto::data_room(start, room).min(available);
        if length == 0 {
            return None;
        }
        let last = start + length as u64 - 1;
        let data = self.outgoing.get((start - self.released) as usize..=(last - self.released) as usize)?;
        let frame = Frame::Crypto(Crypto { offset: start, data: Bytes::copy_from_slice(data) });
        self.pending.remove_range(start..=last);
        //= https://www.rfc-editor.org/rfc/rfc9001#section-4
        //# If QUIC needs to retransmit that data, it MUST use the same keys even if TLS has already updated
        //# to newer keys.
        //= https://www.rfc-editor.org/rfc/rfc9001#section-4.9
        //# If packets from a lower encryption level contain CRYPTO frames, frames that retransmit that data
        //# MUST be sent at the same encryption level
        Some((frame, RecoveryToken::Crypto { level: self.level, offset: start, length: length as u64 }))
    }

    /// The peer has these bytes.
    pub fn on_acknowledged(&mut self, offset: u64, length: u64) {
        let Some(range) = self.unreleased(offset, length) else { return };
        self.acknowledged.insert_range(range.clone());
        self.pending.remove_range(range);
        self.release();
    }

    /// These bytes were lost: what was not acknowledged meanwhile is sent again.
    pub fn on_lost(&mut self, offset: u64, length: u64) {
        let Some(range) = self.unreleased(offset, length) else { return };
        self.pending.insert_range(range);
        for range in self.acknowledged.iter() {
            self.pending.remove_range(range);
        }
    }

    /// Returns the part of these bytes that is not forgotten.
    fn unreleased(&self, offset: u64, length: u64) -> Option<RangeInclusive<u64>> {
        let (start, end) = (offset.max(self.released), offset + length);
        (start < end).then(|| start..=end - 1)
    }

    /// Offers all unacknowledged bytes again, for a probe.
    pub fn repeat(&mut self) {
        self.on_lost(0, self.end());
    }

    /// The offset behind the last byte that was written.
    fn end(&self) -> u64 {
        self.released + self.outgoing.len() as u64
    }

    /// Forgets what was written once all of it arrived: a connection is idle much longer than its handshake takes.
    fn release(&mut self) {
        let (start, end) = (self.released, self.end());
        let is_whole = |first: RangeInclusive<u64>| *first.start() == start && *first.end() + 1 == end;
        if self.acknowledged.iter().next().is_some_and(is_whole) {
            self.outgoing = Vec::new();
            (self.pending, self.acknowledged) = (Ranges::new(), Ranges::new());
            self.released = end;
        }
    }

    /// Takes in a CRYPTO frame, and says whether it brought anything. Fails with CRYPTO_BUFFER_EXCEEDED beyond the limit.
    pub fn receive(&mut self, frame: Crypto) -> Result<Novelty, TransportError> {
        let end = frame.offset.saturating_add(frame.data.len() as u64);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7.5
        //# If an endpoint does not expand its buffer, it MUST close the connection with a
        //# CRYPTO_BUFFER_EXCEEDED error code.
        if end > self.read + BUFFER_LIMIT {
            return Err(
                ErrorCode::CRYPTO_BUFFER_EXCEEDED.because("too much CRYPTO data ahead of what was read")
            );
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-7.5
        //= type=implication
        //= reason=CRYPTO data is never discarded: what the buffer does not hold closes the connection.
        //# Packets containing discarded CRYPTO frames MUST be acknowledged because the packet has been
        //# received and processed by the transport even though the CRYPTO frame was discarded.
        if end <= self.read || frame.data.is_empty() {
            return Ok(Novelty::Known);
        }
        let known = self.incoming.get(&frame.offset).is_some_and(|chunk| chunk.len() >= frame.data.len());
        if known {
            return Ok(Novelty::Known);
        }
        if frame.offset <= self.read {
            self.incoming.insert(frame.offset, frame.data);
            return Ok(Novelty::New);
        }
        // What waits for earlier data is copied: a slice would keep the whole datagram that it came in alive.
        self.incoming.insert(frame.offset, Bytes::copy_from_slice(&frame.data));
        let held: usize = self.incoming.range(self.read + 1..).map(|(_, chunk)| chunk.len()).sum();
        if self.incoming.len() > CHUNK_LIMIT || held as u64 > BUFFER_LIMIT {
            return Err(ErrorCode::CRYPTO_BUFFER_EXCEEDED.because("CRYPTO data in too many pieces"));
        }
        Ok(Novelty::New)
    }

    /// Returns true if anything arrived that was not read.
    pub fn has_incoming(&self) -> bool {
        !self.incoming.is_empty()
    }

    /// The next contiguous bytes for TLS.
    pub fn read(&mut self) -> Option<Bytes> {
        loop {
            let entry = self.incoming.first_entry()?;
            let offset = *entry.key();
            if offset > self.read {
                return None;
            }
            let mut data = entry.remove();
            if self.incoming.is_empty() {
                // An empty tree keeps a node, which an idle connection has no use for.
                self.incoming = BTreeMap::new();
            }
            let seen = (self.read - offset) as usize;
            if seen >= data.len() {
                continue;
            }
            let fresh = data.split_off(seen);
            self.read += fresh.len() as u64;
            return Some(fresh);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crypto(offset: u64, data: &'static [u8]) -> Crypto {
        Crypto { offset, data: Bytes::from_static(data) }
    }

    #[test]
    fn pieces_out_of_order_and_overlapping_are_read_in_order() {
        let mut stream = CryptoStream::new(Level::Initial);
        stream.receive(crypto(4, b"efgh")).unwrap();
        assert_eq!(stream.read(), None);
        stream.receive(crypto(2, b"cde")).unwrap();
        stream.receive(crypto(0, b"abc")).unwrap();
        let mut all = Vec::new();
        while let Some(data) = stream.read() {
            all.extend_from_slice(&data);
        }
        assert_eq!(all, b"abcdefgh");
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-7.5
    //= type=test
    //# Implementations MUST support buffering at least 4096 bytes of data received in out-of-order CRYPTO
    //# frames
    //= https://www.rfc-editor.org/rfc/rfc9000#section-7.5
    //= type=test
    //# If an endpoint does not expand its buffer, it MUST close the connection with a CRYPTO_BUFFER_EXCEEDED
    //# error code.
    #[test]
    fn data_far_ahead_exceeds_the_buffer() {
        let mut stream = CryptoStream::new(Level::OneRtt);
        let error = stream.receive(crypto(BUFFER_LIMIT, b"x")).unwrap_err();
        assert_eq!(error.code, ErrorCode::CRYPTO_BUFFER_EXCEEDED);
    }

    #[test]
    fn pieces_that_wait_are_bounded_in_number_and_in_bytes_overlaps_counted_each() {
        let mut stream = CryptoStream::new(Level::OneRtt);
        for n in 0..CHUNK_LIMIT as u64 {
            assert_eq!(stream.receive(crypto(1 + 2 * n, b"x")), Ok(Novelty::New));
        }
        let error = stream.receive(crypto(1 + 2 * CHUNK_LIMIT as u64, b"x")).unwrap_err();
        assert_eq!(error.code, ErrorCode::CRYPTO_BUFFER_EXCEEDED);
        static QUARTER: [u8; BUFFER_LIMIT as usize / 4] = [7; BUFFER_LIMIT as usize / 4];
        let mut stream = CryptoStream::new(Level::OneRtt);
        for offset in 1..=4 {
            assert_eq!(stream.receive(crypto(offset, &QUARTER)), Ok(Novelty::New));
        }
        let error = stream.receive(crypto(5, b"x")).unwrap_err();
        assert_eq!(error.code, ErrorCode::CRYPTO_BUFFER_EXCEEDED);
        let mut stream = CryptoStream::new(Level::OneRtt);
        for offset in 0..=4 {
            assert_eq!(stream.receive(crypto(offset, &QUARTER)), Ok(Novelty::New), "the first does not wait");
        }
    }

    #[test]
    fn a_piece_that_waits_is_known_unless_it_is_longer_than_before() {
        let mut stream = CryptoStream::new(Level::OneRtt);
        assert!(!stream.has_incoming());
        let novelties = [&b"cd"[..], b"cd", b"c", b"cde"].map(|data| stream.receive(crypto(2, data)));
        assert_eq!(novelties, [Ok(Novelty::New), Ok(Novelty::Known), Ok(Novelty::Known), Ok(Novelty::New)]);
        assert_eq!((stream.read(), stream.has_incoming()), (None, true));
        stream.receive(crypto(0, b"ab")).expect("within the limits");
        let read: Vec<u8> = std::iter::from_fn(|| stream.read()).flatten().collect();
        assert_eq!((read.as_slice(), stream.has_incoming()), (&b"abcde"[..], false));
    }

    //= https://www.rfc-editor.org/rfc/rfc9001#section-4
    //= type=test
    //# If QUIC needs to retransmit that data, it MUST use the same keys even if TLS has already updated to
    //# newer keys.
    //= https://www.rfc-editor.org/rfc/rfc9001#section-4.9
    //= type=test
    //# If packets from a lower encryption level contain CRYPTO frames, frames that retransmit that data MUST
    //# be sent at the same encryption level
    #[test]
    fn lost_bytes_are_sent_again_unless_acknowledged_meanwhile() {
        let mut stream = CryptoStream::new(Level::Handshake);
        stream.write(&[7; 3000]);
        let mut sent = Vec::new();
        while let Some((_, RecoveryToken::Crypto { offset, length, .. })) = stream.next_frame(1000) {
            sent.push((offset, length));
        }
        assert!(sent.len() >= 3);
        stream.on_acknowledged(sent[0].0, sent[0].1);
        stream.on_lost(sent[0].0, sent[0].1);
        assert!(!stream.has_pending());
        stream.on_lost(sent[1].0, sent[1].1);
        assert_eq!(stream.pending_bytes() as u64, sent[1].1);
        stream.repeat();
        assert_eq!(stream.pending_bytes() as u64, 3000 - sent[0].1);
    }

    #[test]
    fn what_arrived_is_forgotten_and_later_bytes_follow_it() {
        let mut stream = CryptoStream::new(Level::OneRtt);
        stream.write(&[7; 300]);
        assert!(stream.next_frame(1000).is_some());
        stream.on_acknowledged(100, 200);
        assert_eq!(stream.outgoing.len(), 300);
        stream.on_acknowledged(0, 100);
        assert_eq!(stream.outgoing.capacity(), 0);
        stream.on_lost(0, 300);
        stream.repeat();
        assert!(!stream.has_pending(), "a late report changes nothing");
        stream.write(&[8; 50]);
        let Some((Frame::Crypto(Crypto { offset, data }), _)) = stream.next_frame(1000) else { panic!() };
        assert_eq!((offset, &data[..]), (300, &[8; 50][..]));
    }
}
