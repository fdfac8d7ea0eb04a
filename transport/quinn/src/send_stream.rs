//! Sending halves of streams.

use crate::{ClosedStream, StoppedError, StreamId, VarInt, WriteError};
use bytes::Bytes;
use hvq::scheduler::StreamPriority;
use hvq::{Ending, Priority};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicI32, Ordering};
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;

/// The part of several pieces that was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// Bytes.
    pub bytes: usize,
    /// Pieces that were written to their end.
    pub chunks: usize,
}

/// The sending half of a stream. Dropping it finishes the stream.
#[derive(Debug)]
pub struct SendStream {
    stream: hvq::SendStream,
    /// The priority as the program set it.
    priority: AtomicI32,
}

impl SendStream {
    pub(crate) fn new(stream: hvq::SendStream) -> Self {
        Self { stream, priority: AtomicI32::new(0) }
    }

    /// The stream as hvq has it: messages with deadlines, priorities of RFC 9218.
    pub fn hvq(&mut self) -> &mut hvq::SendStream {
        &mut self.stream
    }

    /// Writes the first part of `buf` that fits; its length in bytes.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write(&mut self, buf: &[u8]) -> Result<usize, WriteError> {
        Ok(self.stream.write(buf).await?)
    }

    /// Writes all of `buf`.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write_all(&mut self, buf: &[u8]) -> Result<(), WriteError> {
        Ok(self.stream.write_all(buf).await?)
    }

    /// Writes the first part of the pieces that fits, and takes it off them.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write_chunks(&mut self, bufs: &mut [Bytes]) -> Result<Written, WriteError> {
        let filled = bufs.iter().filter(|piece| !piece.is_empty()).count();
        let bytes = poll_fn(|context| self.stream.poll_write_chunks(context, bufs, Ending::Open)).await?;
        let left = bufs.iter().filter(|piece| !piece.is_empty()).count();
        Ok(Written { bytes, chunks: filled - left })
    }

    /// Writes all of `buf` without copying it.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write_chunk(&mut self, buf: Bytes) -> Result<(), WriteError> {
        Ok(self.stream.write_chunk(buf).await?)
    }

    /// Writes all pieces without copying them.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write_all_chunks(&mut self, bufs: &mut [Bytes]) -> Result<(), WriteError> {
        while bufs.iter().any(|piece| !piece.is_empty()) {
            self.write_chunks(bufs).await?;
        }
        Ok(())
    }

    /// Ends the stream behind what was written.
    ///
    /// # Errors
    /// It was finished or reset before. A peer that stopped reading is no error here: [`Self::stopped`] tells of it.
    pub fn finish(&mut self) -> Result<(), ClosedStream> {
        match self.stream.finish() {
            Ok(()) | Err(hvq::WriteError::Stopped(_) | hvq::WriteError::ConnectionLost(_)) => Ok(()),
            Err(hvq::WriteError::Closed) => Err(ClosedStream),
        }
    }

    /// Abandons the stream with the application's code.
    ///
    /// # Errors
    /// It was reset before, or the peer has all of it.
    pub fn reset(&mut self, error_code: VarInt) -> Result<(), ClosedStream> {
        match self.stream.reset(error_code.into_inner()) {
            Ok(()) | Err(hvq::WriteError::ConnectionLost(_)) => Ok(()),
            Err(hvq::WriteError::Stopped(_) | hvq::WriteError::Closed) => Err(ClosedStream),
        }
    }

    /// The priority beside other streams, the higher the sooner, whatever the numbers are. Schedulers are shown an urgency of RFC
    /// 9218: 0, the default, is urgency 3, and 3 and more are urgency 0.
    ///
    /// # Errors
    /// None; quinn's method has some.
    pub fn set_priority(&self, priority: i32) -> Result<(), ClosedStream> {
        self.priority.store(priority, Ordering::Relaxed);
        self.stream.set_priority(stream_priority(priority));
        Ok(())
    }

    /// The priority as it was set.
    ///
    /// # Errors
    /// None; quinn's method has some.
    pub fn priority(&self) -> Result<i32, ClosedStream> {
        Ok(self.priority.load(Ordering::Relaxed))
    }

    /// Waits until the peer has all of it (`None`), or has stopped reading (`Some` of its code). The future borrows nothing.
    ///
    /// # Errors
    /// The connection ended. A stream that was reset here has nobody who stopped it: `None`.
    pub fn stopped(
        &self,
    ) -> impl Future<Output = Result<Option<VarInt>, StoppedError>> + Send + Sync + use<> {
        let stopped = self.stream.stopped();
        async move {
            match stopped.await {
                Ok(code) => Ok(code.map(VarInt::carried)),
                Err(hvq::WriteError::Closed) => Ok(None),
                Err(hvq::WriteError::Stopped(code)) => Ok(Some(VarInt::carried(code))),
                Err(hvq::WriteError::ConnectionLost(lost)) => Err(StoppedError::ConnectionLost(lost.into())),
            }
        }
    }

    /// The ID of the stream.
    pub fn id(&self) -> StreamId {
        StreamId(self.stream.id())
    }

    /// [`Self::write`] for those who poll.
    pub fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        self.get_mut().stream.poll_write_some(context, buf).map_err(WriteError::from)
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Self::poll_write(self, context, buf).map_err(io::Error::from)
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

/// The urgency of RFC 9218 of a stream of quinn's `priority`, and that as the order within the urgency, so that no two of them are
/// taken for equal.
fn stream_priority(priority: i32) -> StreamPriority {
    let urgency = u8::try_from(3_i32.saturating_sub(priority).clamp(0, 7)).unwrap_or(3);
    StreamPriority { priority: Priority { urgency, ..Priority::DEFAULT }, order: priority }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_higher_priority_goes_first() {
        let priorities =
            [i32::MAX, i32::MAX - 1, 255, 4, 3, 2, 1, 0, -1, -4, -5, -100, i32::MIN + 1, i32::MIN];
        let places = priorities.map(|priority| {
            let StreamPriority { priority, order } = stream_priority(priority);
            (priority.urgency, !order)
        });
        assert!(places.windows(2).all(|pair| pair[0] < pair[1]), "{places:?}");
        assert_eq!([3, 0, -4].map(|priority| stream_priority(priority).priority.urgency), [0, 3, 7]);
    }
}
