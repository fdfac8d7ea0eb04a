//! The sending half of a stream as `h3` wants it.

use super::error::write_error;
use crate::Code;
use crate::protocol::priorities::Registered;
use bytes::{Buf, Bytes};
use h3::quic::{self, StreamErrorIncoming, StreamId, WriteBuf};
use hvq::WriteError;
use hvq::transport::wire::varint;
use std::collections::VecDeque;
use std::fmt;
use std::task::{Context, Poll, ready};

/// Bytes of a frame that are handed to the transport at a time. A frame's header and payload are two buffers, and the
/// few bytes of the header should not leave in a packet of their own.
const STAGE: usize = 64 * 1024;

/// Frames that may wait. There is one at a time unless a future that sends is dropped: what it was to send then goes
/// before what is sent next.
const WAITING: usize = 8;

/// Too much data was given to a stream that has not yet taken what it was given before: several futures that sent were
/// dropped before they were ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("too many sends were interrupted")]
pub struct Unsent;

/// The sending half of a stream. The effect of dropping it is told [here](super#how-streams-end-when-they-are-dropped).
pub struct SendStream<B: Buf> {
    stream: Registered,
    progress: Progress,
    /// The bytes that go next: a part taken off the first of `frames`.
    staged: Bytes,
    /// The rest of the frame being written, and those that wait behind it.
    frames: VecDeque<WriteBuf<B>>,
}

/// The progress of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// Nothing was written.
    Untouched,
    /// Something was.
    Begun,
    /// It was finished or reset.
    Ended,
}

impl<B: Buf> SendStream<B> {
    pub(crate) fn new(stream: Registered) -> Self {
        Self { stream, progress: Progress::Untouched, staged: Bytes::new(), frames: VecDeque::new() }
    }

    /// Returns true if bytes that were to be sent are not written yet.
    fn is_behind(&self) -> bool {
        !self.staged.is_empty() || !self.frames.is_empty()
    }

    /// Takes the next part off the frames, unless there is one.
    fn stage(&mut self) {
        while self.staged.is_empty()
            && let Some(frame) = self.frames.front_mut()
        {
            self.staged = frame.copy_to_bytes(frame.remaining().min(STAGE));
            if !frame.has_remaining() {
                self.frames.pop_front();
            }
        }
    }

    fn abandon(&mut self, code: u64) {
        self.staged.clear();
        self.frames.clear();
        self.progress = Progress::Ended;
        // A stream that has ended already needs no reset.
        let _ended = self.stream.lock().reset(valid_code(code));
    }
}

impl<B: Buf> fmt::Debug for SendStream<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendStream")
            .field("id", &self.stream.id())
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

impl<B: Buf> Drop for SendStream<B> {
    fn drop(&mut self) {
        match self.progress {
            Progress::Ended => {}
            _ if std::thread::panicking() => self.abandon(Code::H3_INTERNAL_ERROR.value()),
            // RFC 9114 §7.1: a stream that ends within a frame is an error of the whole connection.
            Progress::Begun if self.is_behind() => self.abandon(Code::H3_REQUEST_CANCELLED.value()),
            Progress::Untouched => self.abandon(Code::H3_REQUEST_CANCELLED.value()),
            // The transport finishes streams that are dropped.
            Progress::Begun => {}
        }
    }
}

impl<B: Buf> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        loop {
            self.stage();
            if self.staged.is_empty() {
                return Poll::Ready(Ok(()));
            }
            let written = self.stream.lock().poll_write_chunk(context, &mut self.staged);
            ready!(written).map_err(write_error)?;
            self.progress = Progress::Begun;
        }
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.frames.len() >= WAITING {
            // An error of this stream only: the connection is not to blame for dropped futures.
            return Err(StreamErrorIncoming::Unknown(Box::new(Unsent)));
        }
        self.frames.push_back(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(context))?;
        self.progress = Progress::Ended;
        match self.stream.lock().finish() {
            // All was written, and a peer that wants none of it may still answer (RFC 9114 §4.1).
            Ok(()) | Err(WriteError::Stopped(_)) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(write_error(error))),
        }
    }

    fn reset(&mut self, reset_code: u64) {
        self.abandon(reset_code);
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl<B: Buf> quic::SendStreamUnframed<B> for SendStream<B> {
    fn poll_send<D: Buf>(
        &mut self,
        context: &mut Context<'_>,
        data: &mut D,
    ) -> Poll<Result<usize, StreamErrorIncoming>> {
        ready!(quic::SendStream::poll_ready(self, context))?;
        let written = self.stream.lock().poll_write_some(context, data.chunk());
        let written = ready!(written).map_err(write_error)?;
        data.advance(written);
        self.progress = Progress::Begun;
        Poll::Ready(Ok(written))
    }
}

/// An ID as `h3` has it.
pub(super) fn stream_id(id: hvq::StreamId) -> StreamId {
    StreamId::try_from(id.0).expect("stream IDs have 62 bits")
}

/// A code that fits into a frame: applications may try any 64 bits.
pub(super) fn valid_code(code: u64) -> u64 {
    code.min(varint::MAX)
}
