//! Frames from the peer (RFC 9000 §19.4–19.14).

use super::{Control, Interest, StreamEvent, Streams};
use crate::error::{ErrorCode, TransportError};
use crate::stream::receive::{Arrived, ReceiveHalf};
use crate::stream::send::{Reset, ResetBy};
use crate::wire::frame;
use crate::wire::stream_id::{Direction, StreamId};

/// STREAM frames in a row that may bring nothing at all.
const MAX_EMPTY_FRAMES: u32 = 1000;

/// Pieces of data with gaps between them after which the pieces of all streams are counted, each time.
const COUNTED_PIECES: usize = 16;
/// One piece is accepted for so many bytes of the connection's window, and [`LEAST_PIECES`] whatever the window.
const BYTES_PER_PIECE: u64 = 256;
/// Pieces of all streams together that are always accepted.
const LEAST_PIECES: usize = 8192;

/// Tells whether there is state for a stream that a frame names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Existence {
    /// There is, since this frame.
    New,
    /// There is.
    Live,
    /// The stream is done and its state is freed; the frame is late.
    Gone,
}

impl Streams {
    /// STREAM (RFC 9000 §19.8).
    pub fn on_stream(&mut self, frame: frame::Stream) -> Result<(), TransportError> {
        let id = frame.id;
        self.check_peer_sends(id)?;
        let existence = self.find_or_open(id)?;
        self.check_emptiness(&frame, existence)?;
        let room = self.window.room();
        let stream = self.map.get_mut(id).and_then(|stream| stream.receive.as_mut());
        // Late data of a stream that is done.
        let Some(receive) = stream else { return Ok(()) };
        let arrived = receive.on_stream(frame, room, &mut self.blocks)?;
        let is_terminal = receive.state().is_terminal();
        let is_told = receive.interest == Interest::Told;
        let is_scattered =
            receive.pieces() >= COUNTED_PIECES && receive.pieces().is_multiple_of(COUNTED_PIECES);
        if is_scattered {
            self.check_pieces()?;
        }
        if is_terminal || arrived.discarded > 0 {
            self.on_arrived(id, arrived);
            return Ok(());
        }
        self.window.receive(arrived.received);
        self.meters.on_received(id, arrived.received);
        if arrived.outgrown {
            self.renew(id, true);
        }
        if !is_told {
            // Else the application knows already that there is something to read.
            self.notify_reader(id);
        }
        Ok(())
    }

    /// RESET_STREAM (RFC 9000 §19.4).
    pub fn on_reset_stream(&mut self, frame: frame::ResetStream) -> Result<(), TransportError> {
        self.check_peer_sends(frame.id)?;
        self.find_or_open(frame.id)?;
        let room = self.window.room();
        if let Some(receive) = self.receive_half(frame.id) {
            let arrived = receive.on_reset(frame.error, frame.final_size, room)?;
            self.on_arrived(frame.id, arrived);
        }
        Ok(())
    }

    /// RESET_STREAM_AT (draft-ietf-quic-reliable-stream-reset §4).
    pub fn on_reset_stream_at(&mut self, frame: frame::ResetStreamAt) -> Result<(), TransportError> {
        self.check_peer_sends(frame.id)?;
        self.find_or_open(frame.id)?;
        let room = self.window.room();
        if let Some(receive) = self.receive_half(frame.id) {
            let arrived = receive.on_reset_at(frame, room)?;
            self.on_arrived(frame.id, arrived);
        }
        Ok(())
    }

    /// STOP_SENDING (RFC 9000 §19.5): the stream is reset with the peer's code (§3.5).
    pub fn on_stop_sending(&mut self, frame: frame::StopSending) -> Result<(), TransportError> {
        let id = frame.id;
        self.check_peer_receives(id)?;
        self.find_or_open(id)?;
        let reset = self.change(id, |send| {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-3.5
            //# An endpoint that receives a STOP_SENDING frame MUST send a RESET_STREAM frame if the stream is
            //# in the "Ready" or "Send" state
            // Draft-ietf-quic-reliable-stream-reset §5.4: it wants no data, not even what was promised.
            send.reset(Reset { code: frame.error, by: ResetBy::Peer, reliable_size: 0 })
        });
        if reset == Some(true) {
            self.control.insert(Control::ResetStream(id));
            let stopped = self.send_half(id).and_then(|send| send.stopped());
            // The application knows how a stream ends that it reset before.
            if self.is_known(id) && stopped.is_some() {
                self.events.push(StreamEvent::Stopped { id, code: frame.error });
            }
            self.relist(id);
        }
        Ok(())
    }

    /// MAX_DATA (RFC 9000 §19.9). A smaller limit than before is ignored (§4.1).
    pub fn on_max_data(&mut self, limit: u64) -> Result<(), TransportError> {
        self.raise_connection_limit(limit);
        Ok(())
    }

    /// MAX_STREAM_DATA (RFC 9000 §19.10). A smaller limit than before is ignored (§4.1).
    pub fn on_max_stream_data(&mut self, id: StreamId, limit: u64) -> Result<(), TransportError> {
        self.check_peer_receives(id)?;
        self.find_or_open(id)?;
        if self.change(id, |send| send.raise_limit(limit)).is_some() {
            self.relist(id);
            self.notify_idle_writer(id);
        }
        Ok(())
    }

    /// MAX_STREAMS (RFC 9000 §19.11). A smaller limit than before is ignored (§4.6).
    pub fn on_max_streams(&mut self, direction: Direction, limit: u64) -> Result<(), TransportError> {
        check_count(limit)?;
        self.raise_stream_count(direction, limit);
        Ok(())
    }

    /// DATA_BLOCKED (RFC 9000 §19.12): the limit rises when data is consumed, not because of this.
    pub fn on_data_blocked(&mut self, _limit: u64) -> Result<(), TransportError> {
        Ok(())
    }

    /// STREAM_DATA_BLOCKED (RFC 9000 §19.13): opens the stream, if it is not, and tells how large its window should be.
    pub fn on_stream_data_blocked(&mut self, id: StreamId, limit: u64) -> Result<(), TransportError> {
        self.check_peer_sends(id)?;
        self.find_or_open(id)?;
        if let Some(receive) = self.receive_half(id) {
            receive.on_blocked(limit);
        }
        Ok(())
    }

    /// STREAMS_BLOCKED (RFC 9000 §19.14): the limit rises when streams are done, not because of this.
    pub fn on_streams_blocked(&mut self, _direction: Direction, limit: u64) -> Result<(), TransportError> {
        check_count(limit)
    }

    fn on_arrived(&mut self, id: StreamId, arrived: Arrived) {
        self.window.receive(arrived.received);
        self.meters.on_received(id, arrived.received);
        self.on_consumed(id, arrived.discarded);
        self.notify_reader(id);
        if self.receive_half(id).is_some_and(|receive| receive.state().is_terminal()) {
            self.free_if_done(id);
        }
    }

    /// Closes if the streams together hold more pieces than any network makes of the connection's window: each takes
    /// more memory than its bytes.
    fn check_pieces(&self) -> Result<(), TransportError> {
        let pieces: usize =
            self.map.iter().filter_map(|(_, stream)| stream.receive.as_ref()).map(ReceiveHalf::pieces).sum();
        let most = usize::try_from(self.window.window() / BYTES_PER_PIECE).unwrap_or(usize::MAX);
        if pieces > most.max(LEAST_PIECES) {
            return Err(
                ErrorCode::INTERNAL_ERROR.because("the data of all streams arrived in too many pieces")
            );
        }
        Ok(())
    }

    /// Finds a stream, or opens it and all below it if the peer may (RFC 9000 §3.2).
    fn find_or_open(&mut self, id: StreamId) -> Result<Existence, TransportError> {
        let direction = id.direction();
        let is_local = self.is_local(id);
        // What nobody opened has no state to look for.
        let is_opened = is_local || id.index() < self.remote.of(direction).opened();
        if is_opened && self.map.contains(id) {
            return Ok(Existence::Live);
        }
        if is_local {
            if id.index() < self.local.of(direction).opened() {
                return Ok(Existence::Gone);
            }
            //= https://www.rfc-editor.org/rfc/rfc9000#section-19.5
            //# Receiving a STOP_SENDING frame for a locally initiated stream that has not yet been created
            //# MUST be treated as a connection error of type STREAM_STATE_ERROR
            //= https://www.rfc-editor.org/rfc/rfc9000#section-19.8
            //# An endpoint MUST terminate the connection with error STREAM_STATE_ERROR if it receives a
            //# STREAM frame for a locally initiated stream that has not yet been created, or for a send-only
            //# stream.
            //= https://www.rfc-editor.org/rfc/rfc9000#section-19.10
            //# Receiving a MAX_STREAM_DATA frame for a locally initiated stream that has not yet been created
            //# MUST be treated as a connection error of type STREAM_STATE_ERROR
            return Err(ErrorCode::STREAM_STATE_ERROR.because("the stream was never opened here"));
        }
        let remote = self.remote.of_mut(direction);
        //= https://www.rfc-editor.org/rfc/rfc9000#section-4.6
        //# An endpoint that receives a frame with a stream ID exceeding the limit it has sent MUST treat this
        //# as a connection error of type STREAM_LIMIT_ERROR; see Section 11 for details on error handling.
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.11
        //# An endpoint MUST terminate a connection with an error of type STREAM_LIMIT_ERROR if a peer opens
        //# more streams than was permitted
        if id.index() >= remote.announced() {
            return Err(ErrorCode::STREAM_LIMIT_ERROR.because("more streams than permitted"));
        }
        if remote.open(id.index()) {
            //= https://www.rfc-editor.org/rfc/rfc9000#section-4.6
            //# An endpoint MUST NOT wait to receive this signal before advertising additional credit, since
            //# doing so will mean that the peer will be blocked for at least an entire round trip
            if remote.wants_announcement() {
                self.control.insert(Control::MaxStreams(direction));
            }
            self.events.push(StreamEvent::Opened { direction });
            self.create(id);
            return Ok(Existence::New);
        }
        if self.is_known(id) {
            return Ok(Existence::Gone);
        }
        // Opened by a stream above it, and named for the first time now.
        self.create(id);
        Ok(Existence::New)
    }

    fn check_peer_sends(&self, id: StreamId) -> Result<(), TransportError> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.4
        //# An endpoint that receives a RESET_STREAM frame for a send-only stream MUST terminate the
        //# connection with error STREAM_STATE_ERROR.
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.13
        //# An endpoint that receives a STREAM_DATA_BLOCKED frame for a send-only stream MUST terminate the
        //# connection with error STREAM_STATE_ERROR.
        if id.direction() == Direction::Unidirectional && self.is_local(id) {
            return Err(ErrorCode::STREAM_STATE_ERROR.because("the peer cannot send on this stream"));
        }
        Ok(())
    }

    fn check_peer_receives(&self, id: StreamId) -> Result<(), TransportError> {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.5
        //# An endpoint that receives a STOP_SENDING frame for a receive-only stream MUST terminate the
        //# connection with error STREAM_STATE_ERROR.
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.10
        //# An endpoint that receives a MAX_STREAM_DATA frame for a receive-only stream MUST terminate the
        //# connection with error STREAM_STATE_ERROR.
        if id.direction() == Direction::Unidirectional && !self.is_local(id) {
            return Err(ErrorCode::STREAM_STATE_ERROR.because("the peer does not receive on this stream"));
        }
        Ok(())
    }

    /// Frames that bring neither data nor an end nor a stream cost work and are no use.
    fn check_emptiness(&mut self, frame: &frame::Stream, existence: Existence) -> Result<(), TransportError> {
        if !frame.data.is_empty() || frame.fin || existence == Existence::New {
            self.empty_frames = 0;
            return Ok(());
        }
        self.empty_frames += 1;
        if self.empty_frames > MAX_EMPTY_FRAMES {
            return Err(ErrorCode::PROTOCOL_VIOLATION.because("too many empty STREAM frames"));
        }
        Ok(())
    }
}

/// RFC 9000 §4.6: a count above 2^60 would need stream IDs that cannot be encoded.
fn check_count(limit: u64) -> Result<(), TransportError> {
    if limit > StreamId::MAX_STREAMS {
        return Err(ErrorCode::FRAME_ENCODING_ERROR.because("more streams than IDs"));
    }
    Ok(())
}
