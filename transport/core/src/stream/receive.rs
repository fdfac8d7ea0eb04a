//! The receiving half of a stream.

use super::assembler::Assembler;
use super::blocks::Blocks;
use super::flow::ReceiveWindow;
use super::receive_state::{ReceiveEvent, ReceiveState};
use super::streams::{Interest, ReadError, ReadOutcome};
use crate::error::{ErrorCode, TransportError};
use crate::wire::frame;
use bytes::Bytes;

/// The end of a stream other than by its last byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Abort {
    /// The application asked the peer to stop, with this code.
    Stopped(u64),
    /// The peer reset it, with this code.
    Reset(u64),
    /// The peer resets it with this code, behind the bytes that it promised.
    ResetAt { code: u64, reliable_size: u64 },
}

/// The change by a frame, in bytes, for the flow control of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrived {
    /// The number of bytes by which the highest offset grew.
    pub received: u64,
    /// The bytes that will never be read, so that they count as consumed.
    pub discarded: u64,
    /// True if the window of the stream became too small, so that a larger limit is due before anything is read.
    pub outgrown: bool,
}

/// The receiving half of a stream.
#[derive(Debug)]
pub struct ReceiveHalf {
    state: ReceiveState,
    assembler: Assembler,
    window: ReceiveWindow,
    final_size: Option<u64>,
    // Most streams end by their last byte.
    abort: Option<Box<Abort>>,
    /// The highest offset that had arrived at the last [`Self::review_backlog`].
    reviewed: u64,
    /// The application's knowledge of readable data.
    pub interest: Interest,
}

impl ReceiveHalf {
    /// A half with this window.
    #[inline]
    pub fn new(window: ReceiveWindow) -> Self {
        Self {
            state: ReceiveState::Recv,
            assembler: Assembler::default(),
            window,
            final_size: None,
            abort: None,
            reviewed: 0,
            interest: Interest::Waiting,
        }
    }

    /// Returns the state in figure 3 of RFC 9000 §3.2.
    pub fn state(&self) -> ReceiveState {
        self.state
    }

    /// Its flow control window.
    pub fn window(&self) -> &ReceiveWindow {
        &self.window
    }

    /// Pieces that it holds with gaps between them.
    pub fn pieces(&self) -> usize {
        self.assembler.runs()
    }

    /// Returns true if data up to `end`, from `offset`, would wait behind other data that this half holds, and is no part of what it
    /// counts as held. Data within a gap counts since what is behind the gap arrived.
    pub fn would_wait(&self, offset: u64, end: u64) -> bool {
        let received = self.window.received();
        let holds_nothing = self.window.consumed() == received;
        let is_wanted = self.state == ReceiveState::Recv && self.abort.is_none();
        is_wanted && end > received && !(holds_nothing && offset <= received)
    }

    /// Returns the bytes that had arrived at the last call and were not read since.
    pub fn review_backlog(&mut self) -> u64 {
        let arrived = std::mem::replace(&mut self.reviewed, self.window.received());
        arrived.saturating_sub(self.window.consumed())
    }

    /// Its window, if the peer can still make use of a larger one (RFC 9000 §4.2).
    pub fn renewable(&mut self) -> Option<&mut ReceiveWindow> {
        (self.state == ReceiveState::Recv && self.abort.is_none()).then_some(&mut self.window)
    }

    /// The code with which the peer should stop, if that still matters (RFC 9000 §3.5).
    pub fn wants_stop(&self) -> Option<u64> {
        match self.aborted() {
            Some(Abort::Stopped(code)) if self.state == ReceiveState::Recv => Some(code),
            _ => None,
        }
    }

    /// The peer waits for more than `limit`. If the application has yet to read what is there, that is not the window's fault.
    pub fn on_blocked(&mut self, limit: u64) {
        if !self.is_readable() {
            self.window.on_blocked(limit);
        }
    }

    /// A STREAM frame arrived. `room` is what the connection's window has left; copies of small pieces lie in `blocks`.
    pub fn on_stream(
        &mut self,
        mut frame: frame::Stream,
        room: u64,
        blocks: &mut Blocks,
    ) -> Result<Arrived, TransportError> {
        let end = frame.offset.saturating_add(frame.data.len() as u64);
        let final_size = frame.fin.then_some(end);
        let received = self.check(end, final_size, room)?;
        if self.state != ReceiveState::Recv && self.state != ReceiveState::SizeKnown {
            return Ok(Arrived::default());
        }
        self.window.receive(received);
        if final_size.is_some() {
            self.final_size = final_size;
            self.advance(ReceiveEvent::Fin);
        }
        if let Some(Abort::ResetAt { reliable_size, .. }) = self.aborted() {
            let promised = reliable_size.saturating_sub(frame.offset);
            frame.data.truncate(usize::try_from(promised).unwrap_or(usize::MAX));
        } else if self.abort.is_some() {
            self.advance(ReceiveEvent::Stopped);
            return Ok(Arrived { received, discarded: self.discard(), outgrown: false });
        }
        if !self.assembler.insert_next(frame.offset, &frame.data, blocks) {
            self.assembler
                .insert(frame.offset, frame.data, self.window.window())
                .map_err(|error| ErrorCode::INTERNAL_ERROR.because(error.to_string()))?;
        }
        if self.has_all() {
            self.advance(ReceiveEvent::AllReceived);
        }
        Ok(Arrived { received, discarded: 0, outgrown: self.outgrows_window() })
    }

    /// Returns true if nothing is missing of what the peer delivers.
    #[inline]
    fn aborted(&self) -> Option<Abort> {
        self.abort.as_deref().copied()
    }

    #[inline]
    fn has_all(&self) -> bool {
        match self.aborted() {
            Some(Abort::ResetAt { reliable_size, .. }) => self.assembler.has_all_to(reliable_size),
            _ => self.final_size == Some(self.assembler.total()),
        }
    }

    /// Returns true if so much waits behind a gap that the window grows. What the application has yet to read is not the gap's fault.
    #[inline]
    fn outgrows_window(&mut self) -> bool {
        let behind_gap = self.assembler.behind_gap();
        behind_gap > 0
            && self.state == ReceiveState::Recv
            && !self.assembler.is_readable()
            && self.window.on_gap(behind_gap)
    }

    /// RESET_STREAM arrived. `room` is what the connection's window has left.
    pub fn on_reset(&mut self, code: u64, final_size: u64, room: u64) -> Result<Arrived, TransportError> {
        let received = self.check(final_size, Some(final_size), room)?;
        if let Some(Abort::ResetAt { code: earlier, .. }) = self.aborted() {
            check_code(earlier, code)?;
        }
        if self.state.after(ReceiveEvent::Reset).is_none() {
            return Ok(Arrived::default());
        }
        self.advance(ReceiveEvent::Reset);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-4.5
        //# The receiver MUST use the final size of the stream to account for all bytes sent on the stream in
        //# its connection-level flow controller.
        self.window.receive(received);
        self.final_size = Some(final_size);
        match self.aborted() {
            Some(Abort::Stopped(_)) => self.advance(ReceiveEvent::Stopped),
            _ => {
                self.abort = Some(Box::new(Abort::Reset(code)));
                // Who leaves data unread may wait for the reset all the same.
                self.interest = Interest::Waiting;
            }
        }
        Ok(Arrived { received, discarded: self.discard(), outgrown: false })
    }

    /// RESET_STREAM_AT arrived (draft-ietf-quic-reliable-stream-reset §4). `room` is what the connection's window has left.
    pub fn on_reset_at(&mut self, frame: frame::ResetStreamAt, room: u64) -> Result<Arrived, TransportError> {
        let frame::ResetStreamAt { error: code, final_size, reliable_size, .. } = frame;
        let received = self.check(final_size, Some(final_size), room)?;
        match self.aborted() {
            Some(Abort::Reset(earlier)) => check_code(earlier, code)?,
            Some(Abort::ResetAt { code: earlier, reliable_size: least }) => {
                check_code(earlier, code)?;
                // The draft's §5.2: packets may have been reordered; a larger size than before is ignored.
                if reliable_size >= least {
                    return Ok(Arrived::default());
                }
            }
            Some(Abort::Stopped(_)) | None => {}
        }
        // The draft's §5.3: the end is as that by FIN, and is ignored once all data is there, as RFC 9000 §3.2 permits.
        if self.state != ReceiveState::Recv && self.state != ReceiveState::SizeKnown {
            return Ok(Arrived::default());
        }
        self.window.receive(received);
        self.final_size = Some(final_size);
        self.advance(ReceiveEvent::Fin);
        if let Some(Abort::Stopped(_)) = self.aborted() {
            self.advance(ReceiveEvent::Stopped);
            return Ok(Arrived { received, discarded: self.discard(), outgrown: false });
        }
        self.abort = Some(Box::new(Abort::ResetAt { code, reliable_size }));
        let left = self.assembler.truncate(reliable_size);
        let discarded = (self.window.received() - self.window.consumed()).saturating_sub(left);
        self.window.consume(discarded);
        if self.has_all() {
            self.advance(ReceiveEvent::AllReceived);
        }
        Ok(Arrived { received, discarded, outgrown: false })
    }

    /// The application does not want the rest. Returns the bytes that count as consumed now.
    pub fn stop(&mut self, code: u64) -> Result<u64, ReadError> {
        match self.aborted() {
            Some(Abort::Stopped(_)) => return Err(ReadError::Stopped),
            Some(Abort::Reset(_)) => {}
            Some(Abort::ResetAt { .. }) | None => self.abort = Some(Box::new(Abort::Stopped(code))),
        }
        self.advance(ReceiveEvent::Stopped);
        Ok(self.discard())
    }

    /// From here on, reads return data in the order in which it arrives. Returns the offset of what the next read returns.
    pub fn begin_unordered(&mut self) -> u64 {
        self.assembler.begin_unordered()
    }

    /// Reads at most `max` bytes for the application.
    pub fn read(&mut self, max: usize) -> Result<ReadOutcome, ReadError> {
        match self.aborted() {
            Some(Abort::Stopped(_)) => return Err(ReadError::Stopped),
            Some(Abort::Reset(code)) => {
                self.advance(ReceiveEvent::Told);
                return Err(ReadError::Reset(code));
            }
            Some(Abort::ResetAt { .. }) | None => {}
        }
        if max == 0 {
            return Ok(ReadOutcome::Data(Bytes::new()));
        }
        if let Some(data) = self.assembler.read(max) {
            self.window.consume(data.len() as u64);
            return Ok(ReadOutcome::Data(data));
        }
        self.advance(ReceiveEvent::Told);
        if self.state == ReceiveState::DataRead {
            return match self.aborted() {
                Some(Abort::ResetAt { code, .. }) => Err(ReadError::Reset(code)),
                _ => Ok(ReadOutcome::Finished),
            };
        }
        self.interest = Interest::Waiting;
        Ok(ReadOutcome::Blocked)
    }

    /// Returns true if [`Self::read`] would say anything but that it is blocked.
    pub fn is_readable(&self) -> bool {
        match self.aborted() {
            Some(Abort::Stopped(_)) => false,
            Some(Abort::Reset(_)) => self.state == ReceiveState::ResetRecvd,
            Some(Abort::ResetAt { .. }) | None => {
                self.assembler.is_readable() || self.state == ReceiveState::DataRecvd
            }
        }
    }

    /// Checks data up to `end`, or a final size, against what is known; by how much the highest offset grows.
    fn check(&self, end: u64, final_size: Option<u64>, room: u64) -> Result<u64, TransportError> {
        // RFC 9000 §4.5: the final size never changes, and no data lies beyond it.
        match (self.final_size, final_size) {
            (Some(known), Some(new)) if known != new => {
                return Err(ErrorCode::FINAL_SIZE_ERROR.because("the final size changed"));
            }
            (Some(known), _) if end > known => {
                return Err(ErrorCode::FINAL_SIZE_ERROR.because("data beyond the final size"));
            }
            (None, Some(new)) if new < self.window.received() => {
                return Err(ErrorCode::FINAL_SIZE_ERROR.because("the final size is below data that arrived"));
            }
            _ => {}
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-4.1
        //# A receiver MUST close the connection with an error of type FLOW_CONTROL_ERROR if the sender
        //# violates the advertised connection or stream data limits; see Section 11 for details on error
        //# handling.
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.10
        //# An endpoint MUST terminate a connection with an error of type FLOW_CONTROL_ERROR if it receives
        //# more data than the largest maximum stream data that it has sent for the affected stream
        // RFC 9000 §4.1: both limits hold, and a final size counts as data up to there (§4.5).
        if end > self.window.limit() {
            return Err(ErrorCode::FLOW_CONTROL_ERROR.because("data beyond the stream's limit"));
        }
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.9
        //# The sum of the final sizes on all streams -- including streams in terminal states -- MUST NOT
        //# exceed the value advertised by a receiver
        let growth = end.saturating_sub(self.window.received());
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.9
        //# An endpoint MUST terminate a connection with an error of type FLOW_CONTROL_ERROR if it receives
        //# more data than the maximum data value that it has sent
        if growth > room {
            return Err(ErrorCode::FLOW_CONTROL_ERROR.because("data beyond the connection's limit"));
        }
        Ok(growth)
    }

    /// Drops what was not read; the bytes that count as consumed by that.
    fn discard(&mut self) -> u64 {
        self.assembler.clear();
        let discarded = self.window.received() - self.window.consumed();
        self.window.consume(discarded);
        discarded
    }

    fn advance(&mut self, event: ReceiveEvent) {
        if let Some(state) = self.state.after(event) {
            self.state = state;
        }
    }
}

/// Draft-ietf-quic-reliable-stream-reset §5.2: the code of a reset does not change.
fn check_code(earlier: u64, code: u64) -> Result<(), TransportError> {
    if code != earlier {
        return Err(ErrorCode::STREAM_STATE_ERROR.because("the code of a reset changed"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::StreamId;
    use crate::time::Instant;
    use std::time::Duration;

    fn half() -> ReceiveHalf {
        ReceiveHalf::new(ReceiveWindow::new(100, 100))
    }

    fn arrive(half: &mut ReceiveHalf, frame: frame::Stream, room: u64) -> Result<Arrived, TransportError> {
        half.on_stream(frame, room, &mut Blocks::default())
    }

    fn frame(offset: u64, data: &'static [u8], fin: bool) -> frame::Stream {
        frame::Stream { id: StreamId(0), offset, data: Bytes::from_static(data), fin }
    }

    fn code(result: Result<Arrived, TransportError>) -> Option<ErrorCode> {
        result.err().map(|error| error.code)
    }

    #[test]
    fn the_final_size_never_changes() {
        // RFC 9000 §4.5, attacks E4.
        let mut it = half();
        arrive(&mut it, frame(0, b"abcd", true), 100).expect("within limits");
        assert_eq!(code(arrive(&mut it, frame(0, b"abc", true), 100)), Some(ErrorCode::FINAL_SIZE_ERROR));
        assert_eq!(code(arrive(&mut it, frame(3, b"xy", false), 100)), Some(ErrorCode::FINAL_SIZE_ERROR));
        assert_eq!(code(it.on_reset(7, 5, 100)), Some(ErrorCode::FINAL_SIZE_ERROR));
        assert_eq!(arrive(&mut it, frame(2, b"cd", true), 100), Ok(Arrived::default()));
        let mut it = half();
        arrive(&mut it, frame(0, b"abcd", false), 100).expect("within limits");
        assert_eq!(code(arrive(&mut it, frame(0, b"abc", true), 100)), Some(ErrorCode::FINAL_SIZE_ERROR));
        assert_eq!(code(it.on_reset(7, 3, 100)), Some(ErrorCode::FINAL_SIZE_ERROR));
        it.on_reset(7, 9, 100).expect("within limits");
        assert_eq!(code(arrive(&mut it, frame(8, b"xy", false), 100)), Some(ErrorCode::FINAL_SIZE_ERROR));
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-4.5
    //= type=test
    //# The receiver MUST use the final size of the stream to account for all bytes sent on the stream in its
    //# connection-level flow controller.
    //= https://www.rfc-editor.org/rfc/rfc9000#section-19.9
    //= type=test
    //# The sum of the final sizes on all streams -- including streams in terminal states -- MUST NOT exceed
    //# the value advertised by a receiver
    #[test]
    fn both_limits_hold_for_data_and_for_final_sizes() {
        // RFC 9000 §4.1, attacks E1.
        let mut it = half();
        assert_eq!(
            code(arrive(&mut it, frame(98, b"abc", false), 1000)),
            Some(ErrorCode::FLOW_CONTROL_ERROR)
        );
        assert_eq!(code(it.on_reset(1, 101, 1000)), Some(ErrorCode::FLOW_CONTROL_ERROR));
        assert_eq!(code(arrive(&mut it, frame(10, b"abc", false), 12)), Some(ErrorCode::FLOW_CONTROL_ERROR));
        assert_eq!(code(it.on_reset(1, 13, 12)), Some(ErrorCode::FLOW_CONTROL_ERROR));
        assert_eq!(arrive(&mut it, frame(10, b"abc", false), 13).expect("within limits").received, 13);
    }

    //= https://www.rfc-editor.org/rfc/rfc9000#section-4.5
    //= type=test
    //# The receiver MUST use the final size of the stream to account for all bytes sent on the stream in its
    //# connection-level flow controller.
    #[test]
    fn a_reset_gives_back_what_was_not_read() {
        let mut it = half();
        arrive(&mut it, frame(0, b"abcdef", false), 100).expect("within limits");
        assert_eq!(it.read(2), Ok(ReadOutcome::Data(Bytes::from_static(b"ab"))));
        let arrived = it.on_reset(9, 20, 100).expect("within limits");
        assert_eq!((arrived.received, arrived.discarded), (14, 18));
        assert_eq!(it.read(10), Err(ReadError::Reset(9)));
        assert!(it.state().is_terminal());
    }

    #[test]
    fn a_reset_after_all_data_is_ignored() {
        let mut it = half();
        arrive(&mut it, frame(0, b"ab", true), 100).expect("within limits");
        assert_eq!(it.on_reset(9, 2, 100), Ok(Arrived::default()));
        assert_eq!(it.read(10), Ok(ReadOutcome::Data(Bytes::from_static(b"ab"))));
        assert_eq!((it.read(10), it.read(10)), (Ok(ReadOutcome::Finished), Ok(ReadOutcome::Finished)));
    }

    #[test]
    fn a_stopped_stream_discards_what_arrives_until_its_size_is_known() {
        let mut it = half();
        arrive(&mut it, frame(4, b"efgh", false), 100).expect("within limits");
        assert_eq!(it.stop(3), Ok(8));
        assert_eq!((it.wants_stop(), it.read(1)), (Some(3), Err(ReadError::Stopped)));
        let arrived = arrive(&mut it, frame(8, b"ij", true), 100).expect("within limits");
        assert_eq!((arrived.received, arrived.discarded), (2, 2));
        assert_eq!((it.state(), it.wants_stop()), (ReceiveState::DataRead, None));
    }

    #[test]
    fn what_nobody_will_read_is_not_held() {
        // Attack: data that is abandoned, by either end, would stay for as long as the stream.
        let scattered = || {
            let mut it = half();
            arrive(&mut it, frame(0, b"ab", false), 100).expect("within limits");
            arrive(&mut it, frame(4, b"ef", false), 100).expect("within limits");
            assert_eq!(it.pieces(), 2);
            it
        };
        let mut stopped = scattered();
        stopped.stop(3).expect("open");
        let mut reset = scattered();
        reset.on_reset(9, 20, 100).expect("within limits");
        assert_eq!((stopped.pieces(), reset.pieces()), (0, 0));
    }

    #[test]
    fn data_waits_that_nobody_can_read_next_and_that_fills_no_gap() {
        let read = |mut it: ReceiveHalf| {
            it.read(100).expect("data");
            it
        };
        let arrived = |offset| {
            let mut it = half();
            arrive(&mut it, frame(offset, b"abcd", false), 100).expect("within limits");
            it
        };
        let stopped = || {
            let mut it = arrived(0);
            it.stop(3).expect("open");
            it
        };
        let cases = [
            ("the first data", half(), (0, 5), false),
            ("data behind a gap", half(), (3, 5), true),
            ("data behind data that was not read", arrived(0), (4, 8), true),
            ("data that is partly new", arrived(0), (2, 5), true),
            ("a copy", arrived(0), (2, 4), false),
            ("data that can be read next", read(arrived(0)), (4, 8), false),
            ("data that can be read next, with a copy before it", read(arrived(0)), (2, 8), false),
            ("data behind a gap, after all was read", read(arrived(0)), (5, 8), true),
            ("data that fills a gap", arrived(4), (0, 4), false),
            ("data that was given up", stopped(), (10, 20), false),
        ];
        for (name, it, (offset, end), expected) in cases {
            assert_eq!(it.would_wait(offset, end), expected, "{name}");
        }
    }

    #[test]
    fn the_window_held_the_peer_up_only_if_all_that_arrived_was_read() {
        for (read_before, expected) in [(0, 100), (60, 200)] {
            let mut it = ReceiveHalf::new(ReceiveWindow::new(100, 400));
            arrive(&mut it, frame(0, &[7; 60], false), 100).expect("within limits");
            it.read(read_before).expect("open");
            it.on_blocked(100);
            it.read(100).expect("open");
            let window = it.renewable().expect("open");
            window.renew(u64::MAX, Instant::ZERO, Duration::from_millis(50));
            assert_eq!(window.window(), expected, "{read_before} bytes were read");
        }
    }

    #[test]
    fn a_reset_behind_a_promise_counts_until_all_data_is_there() {
        // Draft-ietf-quic-reliable-stream-reset §5.3 and RFC 9000 §3.2, for a stream whose size is known.
        let reset = frame::ResetStreamAt { id: StreamId(0), error: 9, final_size: 6, reliable_size: 2 };
        let mut it = half();
        arrive(&mut it, frame(4, b"ef", true), 100).expect("within limits");
        let arrived = it.on_reset_at(reset, 100).expect("it agrees");
        assert_eq!((arrived.received, arrived.discarded), (0, 4));
        arrive(&mut it, frame(0, b"abcd", false), 100).expect("within limits");
        assert_eq!(it.read(10), Ok(ReadOutcome::Data(Bytes::from_static(b"ab"))));
        assert_eq!(it.read(10), Err(ReadError::Reset(9)));
        let mut it = half();
        arrive(&mut it, frame(0, b"abcdef", true), 100).expect("within limits");
        assert_eq!(it.on_reset_at(reset, 100), Ok(Arrived::default()));
        assert_eq!(it.read(10), Ok(ReadOutcome::Data(Bytes::from_static(b"abcdef"))));
        assert_eq!(it.read(10), Ok(ReadOutcome::Finished));
    }

    #[test]
    fn an_empty_stream_ends_at_once() {
        let mut it = half();
        assert_eq!(it.read(1), Ok(ReadOutcome::Blocked));
        arrive(&mut it, frame(0, b"", true), 0).expect("no data");
        assert!(it.is_readable());
        assert_eq!(it.read(1), Ok(ReadOutcome::Finished));
    }
}
