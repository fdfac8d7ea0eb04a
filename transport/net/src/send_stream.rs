//! The sending half of a stream.

use crate::connection::Connection;
use crate::handle_state::SendEnd;
use crate::{Priority, StreamId, WriteError};
use bytes::Bytes;
use hvq_transport::connection::Connection as Core;
use hvq_transport::scheduler::StreamPriority;
use hvq_transport::stream::{MeteredHalf, StreamMeter, WriteError as Refusal};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncWrite;

/// The end of the stream, if it follows the bytes that are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Maybe more.
    Open,
    /// Nothing: the stream ends.
    Finished,
}

/// Writes what fits of `chunks` and takes it off them; how many bytes. Blocked only if nothing fits though there is something.
fn write_chunks(core: &mut Core, id: StreamId, chunks: &mut [Bytes]) -> Result<usize, Refusal> {
    let mut total = 0;
    for chunk in chunks {
        while !chunk.is_empty() {
            match core.write_bytes(id, chunk.clone()) {
                Ok(written) => {
                    *chunk = chunk.split_off(written);
                    total += written;
                }
                Err(Refusal::Blocked) if total > 0 => return Ok(total),
                Err(refusal) => return Err(refusal),
            }
        }
    }
    Ok(total)
}

/// The sending half of a stream. Dropping it finishes the stream, unless it was finished or reset before: the peer then
/// gets everything that was written.
///
/// In its [`AsyncWrite`], flushing does nothing (data leaves as soon as it may) and shutting down finishes the stream.
#[derive(Debug)]
pub struct SendStream {
    connection: Connection,
    id: StreamId,
}

impl SendStream {
    pub(crate) fn new(connection: Connection, id: StreamId) -> Self {
        Self { connection, id }
    }

    /// The stream's ID.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Writes the first part of `data` that fits, and returns its length in bytes, never 0 unless `data` is empty. Waits
    /// while nothing fits.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|context| self.poll_write_some(context, data)).await
    }

    /// Writes all of `data`. If the future is dropped before, an unknown part is written.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write_all(&mut self, mut data: &[u8]) -> Result<(), WriteError> {
        while !data.is_empty() {
            let written = self.write(data).await?;
            data = data.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Writes all of `data` without copying it. If the future is dropped before, an unknown part is written.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write_chunk(&mut self, mut data: Bytes) -> Result<(), WriteError> {
        while !data.is_empty() {
            poll_fn(|context| self.poll_write_chunk(context, &mut data)).await?;
        }
        Ok(())
    }

    /// [`write`](Self::write) for those who poll.
    pub fn poll_write_some(
        &mut self,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        let id = self.id;
        self.poll_command(context, |core| core.write(id, data))
    }

    /// Returns the number of bytes that a write would take now, at most `wanted`, and never 0 unless that is: within
    /// the send buffer, the peer's flow control limit and a little more, and the free memory. Waits while it is none.
    /// An application that has the bytes from a file or another connection reads no more than that.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn room(&mut self, wanted: usize) -> Result<usize, WriteError> {
        poll_fn(|context| self.poll_room(context, wanted)).await
    }

    /// [`room`](Self::room) for those who poll.
    pub fn poll_room(&mut self, context: &mut Context<'_>, wanted: usize) -> Poll<Result<usize, WriteError>> {
        let id = self.id;
        self.poll_command(context, |core| core.writable(id, wanted))
    }

    /// Writes the first part of `data` that fits, takes it off `data`, and returns its length in bytes.
    pub fn poll_write_chunk(
        &mut self,
        context: &mut Context<'_>,
        data: &mut Bytes,
    ) -> Poll<Result<usize, WriteError>> {
        let id = self.id;
        let written = self.poll_command(context, |core| core.write_bytes(id, data.clone()));
        if let Poll::Ready(Ok(written)) = &written {
            *data = data.split_off(*written);
        }
        written
    }

    /// Writes the first part of `chunks` that fits, one behind the other, takes it off them, and ends the stream behind them if
    /// all of it fits and `ending` says so. Bytes that belong together leave together. Ready with the number of bytes,
    /// once all of it or some of it fits.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn poll_write_chunks(
        &mut self,
        context: &mut Context<'_>,
        chunks: &mut [Bytes],
        ending: Ending,
    ) -> Poll<Result<usize, WriteError>> {
        let id = self.id;
        self.connection.reference().command(|mut access| {
            let core = access.open()?;
            let written = write_chunks(core, id, chunks);
            let is_whole = chunks.iter().all(Bytes::is_empty);
            let finished = match (&written, ending) {
                (Ok(_), Ending::Finished) if is_whole => core.finish(id),
                _ => Ok(()),
            };
            let sender = access.slot.sender(id);
            match written.and_then(|written| finished.map(|()| written)) {
                Ok(written) => {
                    if is_whole && ending == Ending::Finished {
                        sender.note_end(SendEnd::Finished);
                    }
                    Poll::Ready(Ok(written))
                }
                Err(Refusal::Blocked) => {
                    sender.writer = Some(context.waker().clone());
                    Poll::Pending
                }
                Err(refusal) => Poll::Ready(Err(sender.explain(refusal))),
            }
        })
    }

    /// Marks what was written so far as the end of a message: bytes that are of use to the peer's application only
    /// together. The scheduler tries to have the message complete early, within `deadline` from now if there is one.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn end_message(&mut self, deadline: Option<Duration>) -> Result<(), WriteError> {
        let id = self.id;
        let deadline = deadline.map(|deadline| self.connection.reference().shared().now() + deadline);
        self.command(|core| core.end_message(id, deadline))
    }

    /// Sets the priority of what is sent on the stream (RFC 9218); 3, not incremental, by default. A
    /// [`StreamPriority`] has the order among streams of one urgency, too.
    pub fn set_priority(&self, priority: impl Into<StreamPriority>) {
        let (id, priority) = (self.id, priority.into());
        self.connection.reference().command(|access| {
            access.slot.sender(id).priority = priority.priority;
            if let Some(core) = access.core {
                core.set_priority(id, priority);
            }
        });
    }

    /// The priority as it was set.
    pub fn priority(&self) -> Priority {
        self.connection.reference().look(|_, slot| slot.sender(self.id).priority)
    }

    /// Ends the stream behind what was written. The peer gets all of it, even if this is dropped.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn finish(&mut self) -> Result<(), WriteError> {
        let id = self.id;
        self.end(SendEnd::Finished, |core| core.finish(id))
    }

    /// Abandons the stream with a code for the peer's application (RFC 9000 §19.4): what it has not yet got, it will not
    /// get.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn reset(&mut self, code: u64) -> Result<(), WriteError> {
        let id = self.id;
        self.end(SendEnd::Reset, |core| core.reset(id, code, 0).map(drop))
    }

    /// Abandons the stream with a code for the peer's application, but for its first `reliable_size` bytes: the peer gets
    /// these all the same, even if this is dropped (RESET_STREAM_AT, draft-ietf-quic-reliable-stream-reset). Returns the
    /// number of bytes that it gets in any case: not more than was written, and none unless the peer's configuration
    /// supports it ([`set_partial_delivery`](crate::TransportConfig::set_partial_delivery)). A later reset may lower the
    /// size, and changes nothing else.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn reset_at(&mut self, code: u64, reliable_size: u64) -> Result<u64, WriteError> {
        let (id, mut promised) = (self.id, 0);
        self.end(SendEnd::Reset, |core| {
            promised = core.reset(id, code, reliable_size)?;
            Ok(())
        })?;
        Ok(promised)
    }

    /// Has `meter` count the bytes of the stream that are sent, repetitions excepted, but for the first `header`, those before
    /// included. Of a stream that was reset, that is its final size.
    pub fn meter(&self, meter: &StreamMeter, header: u64) {
        self.connection.reference().command(|access| {
            access.core.is_some_and(|core| core.meter(self.id, MeteredHalf::Send, meter, header))
        });
    }

    /// Waits until the peer has everything that was written and finished (`None`), or has stopped reading (`Some` of its
    /// code). The future borrows nothing: it can be polled beside writes, and goes on when the stream is dropped, which
    /// finishes it.
    ///
    /// # Errors
    /// The stream was reset here, or the connection ended.
    pub fn stopped(
        &self,
    ) -> impl Future<Output = Result<Option<u64>, WriteError>> + Send + Sync + Unpin + use<> {
        let watch = StopWatch::new(self.connection.clone(), self.id);
        poll_fn(move |context| poll_end(&watch.connection, watch.id, context))
    }

    /// [`stopped`](Self::stopped) for those who poll.
    pub fn poll_stopped(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<u64>, WriteError>> {
        poll_end(&self.connection, self.id, context)
    }

    fn command<T>(&self, command: impl FnOnce(&mut Core) -> Result<T, Refusal>) -> Result<T, WriteError> {
        self.connection.reference().command(|mut access| {
            let result = command(access.open()?);
            result.map_err(|refusal| access.slot.sender(self.id).explain(refusal))
        })
    }

    /// Runs a command that ends the stream so.
    fn end(
        &self,
        end: SendEnd,
        command: impl FnOnce(&mut Core) -> Result<(), Refusal>,
    ) -> Result<(), WriteError> {
        self.connection.reference().command(|mut access| {
            let result = command(access.open()?);
            let sender = access.slot.sender(self.id);
            result.map_err(|refusal| sender.explain(refusal))?;
            sender.note_end(end);
            Ok(())
        })
    }

    fn poll_command<T>(
        &self,
        context: &mut Context<'_>,
        command: impl FnOnce(&mut Core) -> Result<T, Refusal>,
    ) -> Poll<Result<T, WriteError>> {
        self.connection.reference().command(|mut access| {
            let result = command(access.open()?);
            let sender = access.slot.sender(self.id);
            match result {
                Ok(value) => Poll::Ready(Ok(value)),
                Err(Refusal::Blocked) => {
                    sender.writer = Some(context.waker().clone());
                    Poll::Pending
                }
                Err(refusal) => Poll::Ready(Err(sender.explain(refusal))),
            }
        })
    }
}

/// Keeps what is known of the end of a stream for as long as somebody waits for it.
struct StopWatch {
    connection: Connection,
    id: StreamId,
}

impl StopWatch {
    fn new(connection: Connection, id: StreamId) -> Self {
        connection.reference().look(|_, slot| slot.watch_sender(id));
        Self { connection, id }
    }
}

impl Drop for StopWatch {
    fn drop(&mut self) {
        self.connection.reference().look(|_, slot| slot.unwatch_sender(self.id));
    }
}

/// Ready when it is known how stream `id` ended.
fn poll_end(
    connection: &Connection,
    id: StreamId,
    context: &mut Context<'_>,
) -> Poll<Result<Option<u64>, WriteError>> {
    connection.reference().look(|_, slot| {
        let sender = slot.sender(id);
        match sender.end {
            Some(SendEnd::Delivered) => return Poll::Ready(Ok(None)),
            Some(SendEnd::Stopped(code)) => return Poll::Ready(Ok(Some(code))),
            Some(SendEnd::Reset) => return Poll::Ready(Err(WriteError::Closed)),
            Some(SendEnd::Finished) | None => sender.end_wakers.register(context.waker()),
        }
        slot.check_open()?;
        Poll::Pending
    })
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let id = self.id;
        // The application, the connection or the peer may have ended the stream before: then there is nothing to finish.
        if self.connection.reference().note(|slot| slot.remove_ended_sender(id)) {
            return;
        }
        self.connection.reference().command(|mut access| {
            if let Ok(core) = access.open() {
                match core.finish(id) {
                    Ok(()) => access.slot.sender(id).note_end(SendEnd::Finished),
                    Err(_) => tracing::trace!(%id, "a stream that is dropped had ended"),
                }
            }
            access.slot.remove_sender(id);
        });
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_write_some(context, data).map_err(io::Error::from)
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut().finish() {
            // Shutting down twice is no error for users of the trait.
            Ok(()) | Err(WriteError::Closed) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}
