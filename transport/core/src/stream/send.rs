//! The sending half of a stream.

use super::blocks::Blocks;
use super::flow::SendCredit;
use super::message::MessageEnds;
use super::outstanding::Outstanding;
use super::priority::{Listing, Need};
use super::send_buffer::SendBuffer;
use super::send_state::{SendEvent, SendState};
use super::streams::{Interest, WriteError};
use crate::PathId;
use crate::time::Instant;
use crate::wire::varint;
use bytes::Bytes;
use hvq_scheduler::{History, Message, Priority};
use std::ops::Range;

/// The end that wanted the stream reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResetBy {
    /// The application here.
    Application,
    /// The peer, with STOP_SENDING.
    Peer,
}

/// The end of a stream other than by its last byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reset {
    /// The application's code.
    pub code: u64,
    /// The end that wanted it.
    pub by: ResetBy,
    /// The bytes that the peer gets all the same (draft-ietf-quic-reliable-stream-reset §4); with 0, nothing is sent any more.
    pub reliable_size: u64,
}

/// The content of the frame that resets a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ResetToSend {
    /// The application's code.
    pub code: u64,
    /// The bytes that were sent.
    pub final_size: u64,
    /// The bytes that the peer gets all the same; 0 stands for RESET_STREAM.
    pub reliable_size: u64,
}

/// The next piece that a stream sends: bytes, and perhaps its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The bytes; empty if only the end is to be sent.
    pub range: Range<u64>,
    /// True if the stream ends behind them.
    pub fin: bool,
    /// The earlier transmission of the bytes, if there was one.
    pub history: History,
}

impl Piece {
    /// Returns the same piece, at most `most` bytes of it.
    fn limited(mut self, most: usize) -> Self {
        let end = self.range.start.saturating_add(most as u64);
        if end < self.range.end {
            self.range.end = end;
            self.fin = false;
        }
        self
    }
}

/// The sending half of a stream.
#[derive(Debug)]
pub struct SendHalf {
    state: SendState,
    data: SendBuffer,
    outstanding: Outstanding,
    credit: SendCredit,
    messages: MessageEnds,
    /// The end, once the application finished the stream.
    final_size: Option<u64>,
    // Most streams are never reset.
    reset: Option<Box<Reset>>,
    /// True if the peer has the frame that resets the stream.
    reset_arrived: bool,
    blocked_at: Option<u64>,
    /// The application's knowledge of room for writing.
    pub interest: Interest,
    /// RFC 9218 urgency and incremental.
    pub priority: Priority,
    /// The order among streams of its urgency: the greatest is first.
    pub order: i32,
    /// The turn that it last had among incremental streams.
    pub turn: u64,
    /// Its entry in the agenda.
    pub listed: Option<Listing>,
    /// The time at which all that was sent is expected to have arrived.
    pub arrival: Instant,
}

impl SendHalf {
    /// A half that may send up to `limit`.
    #[inline]
    pub fn new(limit: u64, turn: u64) -> Self {
        Self {
            state: SendState::Ready,
            data: SendBuffer::default(),
            outstanding: Outstanding::default(),
            credit: SendCredit::new(limit),
            messages: MessageEnds::default(),
            final_size: None,
            reset: None,
            reset_arrived: false,
            blocked_at: None,
            interest: Interest::Told,
            priority: Priority::default(),
            order: 0,
            turn,
            listed: None,
            arrival: Instant::ZERO,
        }
    }

    /// Returns the state in figure 2 of RFC 9000 §3.1.
    pub fn state(&self) -> SendState {
        self.state
    }

    /// Returns true if something that was sent is not known to have arrived, and still matters.
    pub fn has_unacknowledged(&self) -> bool {
        let is_over = self.state.is_terminal();
        !is_over
            && (self.reset.is_some() || self.outstanding.acknowledged_to() < self.outstanding.fresh_from())
    }

    /// The peer permits data up to `limit`.
    pub fn raise_limit(&mut self, limit: u64) {
        self.credit.raise(limit);
    }

    /// Bytes of fresh data that the peer's limit still admits.
    pub fn available(&self) -> u64 {
        self.credit.available()
    }

    /// Returns the number of bytes that [`Self::write`] takes, if `capacity` bytes may be buffered.
    pub fn writable(&self, capacity: usize) -> Result<usize, WriteError> {
        self.check_open()?;
        let to_largest = usize::try_from(varint::MAX - self.data.end()).unwrap_or(usize::MAX);
        Ok(capacity.saturating_sub(self.data.buffered()).min(to_largest))
    }

    /// Bytes that are held: written, and not acknowledged up to there.
    pub fn held(&self) -> usize {
        self.data.buffered()
    }

    /// Bytes that were written and never sent.
    pub fn unsent(&self) -> u64 {
        self.data.end().saturating_sub(self.outstanding.fresh_from())
    }

    /// Bytes that were written beyond the peer's limit.
    pub fn beyond(&self) -> u64 {
        self.data.end().saturating_sub(self.credit.limit())
    }

    /// Bytes that can be written until `ahead` of them are beyond the peer's limit.
    pub fn room_ahead(&self, ahead: u64) -> u64 {
        self.credit.limit().saturating_add(ahead).saturating_sub(self.data.end())
    }

    /// Appends a copy of `data`, which must not be longer than [`Self::writable`], in memory of `blocks` unless it is small.
    pub fn write(&mut self, data: &[u8], blocks: &mut Blocks) {
        self.data.push(data, blocks);
    }

    /// Appends `data`, which must not be longer than [`Self::writable`].
    pub fn write_bytes(&mut self, data: Bytes) {
        self.data.push_bytes(data);
    }

    /// A message ends with what was written last.
    pub fn end_message(&mut self, deadline: Option<Instant>) -> Result<(), WriteError> {
        self.check_open()?;
        self.messages.end_at(self.data.end(), deadline);
        Ok(())
    }

    /// Nothing will be written any more. The end counts as the end of a message.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        self.check_open()?;
        self.messages.end_at(self.data.end(), None);
        self.final_size = Some(self.data.end());
        Ok(())
    }

    /// Abandons the stream, but for the bytes that are promised. Returns true if a frame that resets it is to be sent.
    pub fn reset(&mut self, reset: Reset) -> bool {
        let reliable_size = reset.reliable_size.min(self.data.end());
        let reset = match self.asked_reset() {
            // Draft-ietf-quic-reliable-stream-reset §5.2: the reliable size is never raised.
            Some(earlier) if reliable_size >= earlier.reliable_size => return false,
            //= https://www.rfc-editor.org/rfc/rfc9000#section-13.3
            //# The content of a RESET_STREAM frame MUST NOT change when it is sent again.
            // Draft-ietf-quic-reliable-stream-reset §5.2: neither the code nor the final size changes.
            Some(earlier) => Reset { reliable_size, ..earlier },
            None => Reset { reliable_size, ..reset },
        };
        let event = if reliable_size > 0 { SendEvent::ResetAt } else { SendEvent::Reset };
        let Some(state) = self.state.after(event) else { return false };
        self.state = state;
        self.reset = Some(Box::new(reset));
        self.reset_arrived = false;
        self.final_size = None;
        if reliable_size > 0 {
            // Draft-ietf-quic-reliable-stream-reset §5: what lies beyond is not sent again.
            self.data.truncate(reliable_size);
            self.outstanding.truncate(reliable_size);
        } else {
            self.forget();
            self.messages = MessageEnds::default();
        }
        true
    }

    /// The peer does not support what a reset promised: it is an ordinary one now. Returns true if that is to be sent.
    pub fn promise_nothing(&mut self) -> bool {
        self.asked_reset().is_some_and(|reset| self.reset(Reset { reliable_size: 0, ..reset }))
    }

    #[inline]
    fn asked_reset(&self) -> Option<Reset> {
        self.reset.as_deref().copied()
    }

    /// Returns true if the stream was reset.
    pub fn is_reset(&self) -> bool {
        self.reset.is_some()
    }

    /// The bytes that the peer gets although the stream was reset.
    pub fn reliable_size(&self) -> u64 {
        self.asked_reset().map_or(0, |reset| reset.reliable_size)
    }

    /// Returns true if the stream was reset and promised nothing.
    #[inline]
    fn is_abandoned(&self) -> bool {
        self.asked_reset().is_some_and(|reset| reset.reliable_size == 0)
    }

    /// All that was written is of no use any more.
    pub fn forget(&mut self) {
        self.data = SendBuffer::default();
        self.outstanding = Outstanding::default();
    }

    /// The code with which the peer stopped it, if it did (RFC 9000 §3.5).
    pub fn stopped(&self) -> Option<u64> {
        self.asked_reset().filter(|reset| reset.by == ResetBy::Peer).map(|reset| reset.code)
    }

    /// The frame that resets the stream, if the peer does not have it yet. Its final size counts for flow control, so that
    /// it waits until what it promises was sent (draft-ietf-quic-reliable-stream-reset §4).
    pub fn reset_to_send(&self) -> Option<ResetToSend> {
        let Reset { code, reliable_size, .. } = self.asked_reset().filter(|_| !self.state.is_terminal())?;
        let is_due = !self.reset_arrived && self.outstanding.fresh_from() >= reliable_size;
        is_due.then_some(ResetToSend { code, final_size: self.credit.used(), reliable_size })
    }

    /// The limit that STREAM_DATA_BLOCKED should report, once for each (RFC 9000 §4.1).
    pub fn report_block(&mut self) -> Option<u64> {
        let limit = self.blocked_limit().filter(|limit| self.blocked_at != Some(*limit))?;
        self.blocked_at = Some(limit);
        Some(limit)
    }

    /// The limit of the stream, if that is what holds data back.
    pub fn blocked_limit(&self) -> Option<u64> {
        let blocked =
            !self.is_abandoned() && self.credit.available() == 0 && self.data.end() > self.credit.used();
        blocked.then_some(self.credit.limit())
    }

    /// A frame that opens the stream at the peer was sent, but no data.
    pub fn on_frame_sent(&mut self) {
        self.advance(SendEvent::Frame);
    }

    /// Nothing that was sent arrived: it is sent anew, once the peer permits it.
    pub fn restart(&mut self) {
        if self.reset.is_none() {
            self.state = SendState::Ready;
        }
        self.reset_arrived = false;
        self.outstanding = Outstanding::default();
        self.credit = SendCredit::default();
        self.blocked_at = None;
    }

    /// Bytes that were sent so far, repetitions not counted: once it is reset, its final size.
    pub fn sent(&self) -> u64 {
        self.credit.used()
    }

    /// Returns the credit that it needs to send, `None` if it has nothing to send within its own.
    #[inline]
    pub fn need(&self) -> Option<Need> {
        if self.is_abandoned() {
            return None;
        }
        let fresh = self.outstanding.fresh_from();
        if self.outstanding.again().is_some() || self.final_size == Some(fresh) {
            return Some(Need::Nothing);
        }
        (fresh < self.data.end() && self.credit.available() > 0).then_some(Need::Credit)
    }

    /// Returns the piece that it would send next, with this much credit of the connection: lost data first.
    #[inline]
    pub fn next_piece(&self, connection: u64) -> Option<Piece> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-3.3
        //# A sender MUST NOT send a STREAM or STREAM_DATA_BLOCKED frame for a stream in the "Reset Sent"
        //# state or any terminal state -- that is, after sending a RESET_STREAM frame
        if self.is_abandoned() {
            return None;
        }
        if let Some((range, history)) = self.outstanding.again() {
            // The end is the byte after the last one.
            let end = range.end.min(self.data.end());
            return Some(Piece { range: range.start..end, fin: range.end > end, history });
        }
        let start = self.outstanding.fresh_from();
        let written = self.data.end();
        if start > written {
            return None;
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-2.2
        //# An endpoint MUST NOT send data on any stream without ensuring that it is within the flow control
        //# limits set by its peer
        //= https://www.rfc-editor.org/rfc/rfc9000#section-4.1
        //# Senders MUST NOT send data in excess of either limit.
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.10
        //# The data sent on a stream MUST NOT exceed the largest maximum stream data value advertised by the
        //# receiver
        let end = written.min(start.saturating_add(self.credit.available().min(connection)));
        let fin = self.final_size == Some(end);
        (start < end || fin).then_some(Piece { range: start..end, fin, history: History::Fresh })
    }

    /// Returns the part of the message that is left at the start of `piece`.
    pub fn message(&self, piece: &Piece, now: Instant) -> Option<Message> {
        if piece.range.is_empty() {
            Some(self.messages.at_end(now))
        } else {
            self.messages.at(piece.range.start, now)
        }
    }

    /// Takes at most `most` bytes of `piece`, which [`Self::next_piece`] returned just now, to be sent on path `by`.
    ///
    /// Returns the data, joined in memory of `blocks` if it has to be, and what was taken; the connection's credit is charged
    /// if that is fresh.
    pub fn take(&mut self, piece: Piece, most: usize, by: PathId, blocks: &mut Blocks) -> (Bytes, Piece) {
        let piece = piece.limited(most);
        let part = self.data.part(piece.range.clone());
        let piece = piece.limited((part.end - part.start) as usize);
        let end = piece.range.end + u64::from(piece.fin);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-2.2
        //# The data at a given offset MUST NOT change if it is sent multiple times; an endpoint MAY treat
        //# receipt of different data at the same offset within a stream as a connection error of type
        let data = self.data.slice(piece.range.clone(), blocks);
        if piece.history == History::Fresh {
            self.credit.consume(piece.range.end - piece.range.start);
            self.outstanding.on_sent_fresh(end);
        } else {
            self.outstanding.on_sent_again(piece.range.start..end, by);
        }
        self.advance(if piece.fin { SendEvent::Fin } else { SendEvent::Frame });
        (data, piece)
    }

    /// The peer has `range`, where the end is the byte after the last one.
    pub fn on_acknowledged(&mut self, range: Range<u64>) {
        if self.is_abandoned() {
            return;
        }
        self.outstanding.on_acknowledged(range);
        let to = self.outstanding.acknowledged_to();
        self.data.release(to);
        self.messages.release(to);
        if self.final_size.is_some_and(|size| size < to) {
            self.advance(SendEvent::AllAcknowledged);
        }
        self.conclude_reset();
    }

    /// Returns the data that was sent and is not acknowledged, for the caller to mark as lost or late.
    pub fn outstanding_mut(&mut self) -> Option<&mut Outstanding> {
        (!self.is_abandoned() && !self.state.is_terminal()).then_some(&mut self.outstanding)
    }

    /// The frame arrived that resets the stream but for `reliable_size` bytes.
    pub fn on_reset_acknowledged(&mut self, reliable_size: u64) {
        // Draft-ietf-quic-reliable-stream-reset §5.2: the frame with the smallest size has to arrive.
        if self.asked_reset().is_none_or(|reset| reset.reliable_size != reliable_size) {
            return;
        }
        self.reset_arrived = true;
        self.advance(SendEvent::ResetAcknowledged);
        self.conclude_reset();
    }

    /// Draft-ietf-quic-reliable-stream-reset §5.3: the reset arrived, and with it what it promises.
    fn conclude_reset(&mut self) {
        let is_kept = |reset: Reset| self.outstanding.acknowledged_to() >= reset.reliable_size;
        if self.reset_arrived && self.asked_reset().is_some_and(is_kept) {
            self.advance(SendEvent::AllAcknowledged);
        }
    }

    fn check_open(&self) -> Result<(), WriteError> {
        match (self.asked_reset(), self.final_size) {
            (Some(Reset { code, by: ResetBy::Peer, .. }), _) => Err(WriteError::Stopped(code)),
            //= https://www.rfc-editor.org/rfc/rfc9000#section-4.5
            //= reason=(None, Some(_)) => Err(WriteError::Finished),
            //# An endpoint MUST NOT send data on a stream at or beyond the final size.
            (Some(_), _) | (None, Some(_)) => Err(WriteError::Finished),
            (None, None) => Ok(()),
        }
    }

    fn advance(&mut self, event: SendEvent) {
        if let Some(state) = self.state.after(event) {
            self.state = state;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: PathId = PathId(1);

    fn half(data: &[u8]) -> SendHalf {
        let mut half = SendHalf::new(100, 1);
        half.write(data, &mut Blocks::default());
        half
    }

    fn take(half: &mut SendHalf, most: usize) -> (Vec<u8>, bool) {
        let piece = half.next_piece(1000).expect("something to send");
        let (data, piece) = half.take(piece, most, PathId::ZERO, &mut Blocks::default());
        (data.to_vec(), piece.fin)
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-4.5
    //= type=test
    //# An endpoint MUST NOT send data on a stream at or beyond the final size.
    #[test]
    fn the_end_travels_with_the_last_byte_or_alone() {
        let mut it = half(b"abcdef");
        assert_eq!(take(&mut it, 4), (b"abcd".to_vec(), false));
        it.finish().expect("open");
        assert_eq!(take(&mut it, 4), (b"ef".to_vec(), true));
        assert_eq!((it.need(), it.next_piece(1000), it.state()), (None, None, SendState::DataSent));
        let mut it = half(b"ab");
        take(&mut it, 4);
        it.finish().expect("open");
        assert_eq!(it.need(), Some(Need::Nothing), "a mere end needs no credit");
        assert_eq!(take(&mut it, 0), (vec![], true));
    }

    #[test]
    fn a_lost_end_is_sent_again_alone() {
        let mut it = half(b"abc");
        it.finish().expect("open");
        take(&mut it, 10);
        it.on_acknowledged(0..3);
        assert_eq!(it.state(), SendState::DataSent);
        it.outstanding_mut().expect("open").on_lost(3..4, PATH);
        let piece = it.next_piece(0).expect("the end");
        assert_eq!(piece, Piece { range: 3..3, fin: true, history: History::Lost { on: PATH } });
        take(&mut it, 0);
        it.on_acknowledged(3..4);
        assert_eq!(it.state(), SendState::DataRecvd);
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-2.2
    //= type=test
    //# An endpoint MUST NOT send data on any stream without ensuring that it is within the flow control
    //# limits set by its peer
    //= https://www.rfc-editor.org/rfc/rfc9000#section-4.1
    //= type=test
    //# Senders MUST NOT send data in excess of either limit.
    //= https://www.rfc-editor.org/rfc/rfc9000#section-19.10
    //= type=test
    //# The data sent on a stream MUST NOT exceed the largest maximum stream data value advertised by the
    //# receiver
    #[test]
    fn fresh_data_stays_within_both_credits() {
        let mut it = half(&[7; 300]);
        assert_eq!(it.next_piece(30).expect("data").range, 0..30);
        assert_eq!(it.next_piece(1000).expect("data").range, 0..100);
        assert_eq!(it.available(), 100);
        take(&mut it, 1000);
        assert_eq!((it.need(), it.blocked_limit(), it.available()), (None, Some(100), 0));
        assert_eq!((it.report_block(), it.report_block()), (Some(100), None));
        it.raise_limit(150);
        assert_eq!((it.next_piece(1000).expect("data").range, it.blocked_limit()), (100..150, None));
        let mut it = half(&[7; 100]);
        take(&mut it, 1000);
        assert_eq!(it.blocked_limit(), None, "a limit that is reached holds nothing back");
    }

    #[test]
    fn a_stream_waits_for_acknowledgements_until_its_end_or_its_reset_arrived() {
        let mut it = half(b"abc");
        assert!(!it.has_unacknowledged(), "nothing was sent");
        take(&mut it, 10);
        assert!(it.has_unacknowledged());
        it.on_acknowledged(0..3);
        assert!(!it.has_unacknowledged());
        it.finish().expect("open");
        take(&mut it, 10);
        assert!(it.has_unacknowledged());
        it.on_acknowledged(3..4);
        assert!(!it.has_unacknowledged());
        let mut it = half(b"abc");
        assert!(it.reset(Reset { code: 42, by: ResetBy::Application, reliable_size: 0 }));
        assert!(it.has_unacknowledged());
        it.on_reset_acknowledged(0);
        assert!(!it.has_unacknowledged());
    }

    #[test]
    fn long_writes_are_taken_one_by_one() {
        let mut it = SendHalf::new(100_000, 1);
        for byte in [1, 2, 3] {
            it.write_bytes(Bytes::from(vec![byte; 5000]));
        }
        let mut lengths = Vec::new();
        for most in [1000, 100_000, 100_000] {
            let piece = it.next_piece(u64::MAX).expect("data");
            lengths.push(it.take(piece, most, PATH, &mut Blocks::default()).0.len());
        }
        assert_eq!(lengths, [1000, 4000, 5000]);
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-3.3
    //= type=test
    //# A sender MUST NOT send a STREAM or STREAM_DATA_BLOCKED frame for a stream in the "Reset Sent" state or
    //# any terminal state -- that is, after sending a RESET_STREAM frame
    #[test]
    fn a_reset_reports_what_was_sent_and_offers_no_more() {
        let mut it = half(&[7; 80]);
        take(&mut it, 50);
        let reset = Reset { code: 42, by: ResetBy::Application, reliable_size: 0 };
        assert!(it.reset(reset));
        let due = ResetToSend { code: 42, final_size: 50, reliable_size: 0 };
        assert_eq!((it.reset_to_send(), it.need()), (Some(due), None));
        assert_eq!((it.held(), it.unsent()), (0, 0), "what nobody will get is not held");
        assert_eq!(it.writable(10), Err(WriteError::Finished));
        assert!(!it.reset(Reset { code: 43, by: ResetBy::Peer, ..reset }));
        it.on_reset_acknowledged(0);
        assert_eq!((it.reset_to_send(), it.state()), (None, SendState::ResetRecvd));
    }
}
