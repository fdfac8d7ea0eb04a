//! The receiving half of a stream.

use crate::connection::Connection;
use crate::{ConnectionError, ReadError, ReadToEndError, StreamId};
use bytes::{Bytes, BytesMut};
use hvq_transport::connection::Connection as Core;
use hvq_transport::stream::{MeteredHalf, ShortQueue, StreamMeter};
use hvq_transport::stream::{ReadError as Refusal, ReadOutcome};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes that [`RecvStream::read_to_end`] asks for at a time.
const CHUNK: usize = 64 * 1024;
/// Bytes taken from the transport under one lock at most, if the caller wants as many.
const AHEAD: usize = 64 * 1024;

/// The receiving half of a stream. Dropping it before its end asks the peer to stop sending, with code 0
/// (RFC 9000 §3.5).
#[derive(Debug)]
pub struct RecvStream {
    connection: Connection,
    id: StreamId,
    end: Option<ReceiveEnd>,
    /// Bytes that were given to the application so far.
    given: u64,
    /// True once it was read in any order.
    is_unordered: bool,
    /// Taken from the transport for a caller that asked for more than one chunk has, and what came behind it.
    taken: ShortQueue<Result<ReadOutcome, Refusal>>,
}

/// The end of a stream, remembered because the transport forgets it with the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReceiveEnd {
    Finished,
    Reset(u64),
    Stopped,
}

impl ReceiveEnd {
    /// The error of a read at this end, if it is one.
    fn tell(self) -> Result<(), ReadError> {
        match self {
            Self::Finished => Ok(()),
            Self::Reset(code) => Err(ReadError::Reset(code)),
            Self::Stopped => Err(ReadError::Stopped),
        }
    }
}

impl RecvStream {
    pub(crate) fn new(connection: Connection, id: StreamId) -> Self {
        Self { connection, id, end: None, given: 0, is_unordered: false, taken: ShortQueue::default() }
    }

    /// The stream's ID.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Returns true if a part of the data that arrived so far came in 0-RTT packets: it may be a copy that an attacker
    /// sends, so an action that does harm when it is done twice must not be done for it (RFC 9001 §9.2, RFC 8470).
    pub fn is_early_data(&self) -> bool {
        self.connection.reference().look(|core, _| core.is_some_and(|core| core.is_early_stream(self.id)))
    }

    /// Reads what is there into `buffer`, and returns how many bytes that are; `None` at the end of the stream. Waits
    /// while nothing is there.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, ReadError> {
        let chunk = self.read_chunk(buffer.len()).await?;
        Ok(chunk.map(|chunk| {
            // A chunk is never longer than asked for.
            buffer.iter_mut().zip(&chunk).for_each(|(place, byte)| *place = *byte);
            chunk.len()
        }))
    }

    /// Takes at most `most` bytes that are there without copying them; `None` at the end of the stream. Waits while
    /// nothing is there.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read_chunk(&mut self, most: usize) -> Result<Option<Bytes>, ReadError> {
        poll_fn(|context| self.poll_read_chunk(context, most)).await
    }

    /// Reads the rest of the stream, which must not have more than `limit` bytes. Not cancel-safe: what was read is lost
    /// if the future is dropped.
    ///
    /// # Errors
    /// See [`ReadToEndError`]. A stream that is too long is left where reading stopped.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        let mut data = BytesMut::new();
        while let Some(chunk) = self.read_chunk(CHUNK).await? {
            if chunk.len() > limit - data.len() {
                return Err(ReadToEndError::TooLong(limit));
            }
            data.extend_from_slice(&chunk);
        }
        Ok(data.into())
    }

    /// [`read_chunk`](Self::read_chunk) for those who poll.
    pub fn poll_read_chunk(
        &mut self,
        context: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        match self.end {
            Some(end) => return Poll::Ready(end.tell().map(|()| None)),
            None if self.is_unordered => return Poll::Ready(Err(ReadError::Unordered)),
            None => {}
        }
        if let Some(outcome) = self.take(most) {
            return Poll::Ready(self.interpret(outcome));
        }
        let (id, taken) = (self.id, &mut self.taken);
        let outcome = ready!(poll_transport(&self.connection, id, context, |core| {
            let outcome = core.read(id, most);
            if let Ok(ReadOutcome::Data(first)) = &outcome {
                read_on(core, id, most.min(AHEAD).saturating_sub(first.len()), taken);
            }
            (outcome != Ok(ReadOutcome::Blocked)).then_some(outcome)
        }))?;
        Poll::Ready(self.interpret(outcome))
    }

    /// Takes at most `most` bytes that are there, whatever is missing before them, with their offset in the stream; `None` at the
    /// end. Waits while nothing is there. The stream can be read in no other way from then on.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read_unordered(&mut self, most: usize) -> Result<Option<(u64, Bytes)>, ReadError> {
        poll_fn(|context| self.poll_read_unordered(context, most)).await
    }

    /// [`read_unordered`](Self::read_unordered) for those who poll.
    pub fn poll_read_unordered(
        &mut self,
        context: &mut Context<'_>,
        most: usize,
    ) -> Poll<Result<Option<(u64, Bytes)>, ReadError>> {
        if let Some(end) = self.end {
            return Poll::Ready(end.tell().map(|()| None));
        }
        self.is_unordered = true;
        if let Some(outcome) = self.take(most) {
            // These lie right before what the transport has not been asked for.
            let at = self.given;
            return Poll::Ready(self.interpret(outcome).map(|data| data.map(|data| (at, data))));
        }
        let id = self.id;
        let (at, outcome) = ready!(poll_transport(&self.connection, id, context, |core| {
            match core.read_unordered(id, most) {
                Ok((_, ReadOutcome::Blocked)) => None,
                Ok((at, outcome)) => Some((at, Ok(outcome))),
                Err(refusal) => Some((0, Err(refusal))),
            }
        }))?;
        Poll::Ready(self.interpret(outcome).map(|data| data.map(|data| (at, data))))
    }

    /// Takes at most `most` bytes of those that were read before.
    fn take(&mut self, most: usize) -> Option<Result<ReadOutcome, Refusal>> {
        match self.taken.front_mut() {
            Some(Ok(ReadOutcome::Data(data))) if data.len() > most => {
                Some(Ok(ReadOutcome::Data(data.split_to(most))))
            }
            _ => self.taken.pop_front(),
        }
    }

    fn interpret(&mut self, outcome: Result<ReadOutcome, Refusal>) -> Result<Option<Bytes>, ReadError> {
        match outcome {
            Ok(ReadOutcome::Data(data)) => {
                self.given += data.len() as u64;
                Ok(Some(data))
            }
            Ok(ReadOutcome::Finished | ReadOutcome::Blocked) => {
                self.end = Some(ReceiveEnd::Finished);
                Ok(None)
            }
            Err(Refusal::Reset(code)) => {
                self.end = Some(ReceiveEnd::Reset(code));
                Err(ReadError::Reset(code))
            }
            Err(Refusal::Stopped | Refusal::UnknownStream) => {
                self.end = Some(ReceiveEnd::Stopped);
                Err(ReadError::Stopped)
            }
        }
    }

    /// Discards the rest of the stream, and asks the peer to stop sending it, with a code for its application
    /// (RFC 9000 §3.5). Does nothing if the stream already ended.
    pub fn stop(&mut self, code: u64) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(ReceiveEnd::Stopped);
        self.stop_unless_done(code);
    }

    /// Has `meter` count the bytes of the stream as flow control does, but for the first `header`, those before included: what
    /// arrived, and what was taken of that. Those that are dropped because the stream is stopped or reset count, too.
    pub fn meter(&self, meter: &StreamMeter, header: u64) {
        let is_counted = self.connection.reference().command(|access| {
            access.core.is_some_and(|core| core.meter(self.id, MeteredHalf::Receive, meter, header))
        });
        if !is_counted {
            let taken = self.taken.iter_from(0).map(|taken| match taken {
                Ok(ReadOutcome::Data(data)) => data.len() as u64,
                _ => 0,
            });
            meter.add_whole((self.given + taken.sum::<u64>()).saturating_sub(header));
        }
    }

    /// Returns true if the end of the stream was told, or reading was stopped.
    pub fn is_over(&self) -> bool {
        self.end.is_some()
    }

    fn stop_unless_done(&self, code: u64) {
        self.connection.reference().command(|mut access| {
            access.slot.receivers.remove(&self.id);
            if let Ok(core) = access.open()
                && core.stop(self.id, code).is_err()
            {
                tracing::trace!(id = %self.id, "a stream that is stopped had ended");
            }
        });
    }

    /// Waits until the peer resets the stream (`Some` of its code) or it ends otherwise (`None`). Data that arrives
    /// meanwhile can be read later; the end of a stream is seen once no more than 64 KiB of it are unread, a reset at once.
    /// Cancel-safe.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn received_reset(&mut self) -> Result<Option<u64>, ReadError> {
        poll_fn(|context| self.poll_received_reset(context)).await
    }

    fn poll_received_reset(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<u64>, ReadError>> {
        loop {
            match (self.end, self.taken.back()) {
                (Some(ReceiveEnd::Reset(code)), _) => return Poll::Ready(Ok(Some(code))),
                (None, Some(Err(Refusal::Reset(code)))) => return Poll::Ready(Ok(Some(*code))),
                (Some(_), _) | (None, Some(Ok(ReadOutcome::Finished) | Err(_))) => {
                    return Poll::Ready(Ok(None));
                }
                _ => {}
            }
            match ready!(self.poll_ahead(context)) {
                Ok(outcome) => self.taken.push_back(outcome),
                Err(lost) => return Poll::Ready(Err(ReadError::ConnectionLost(lost))),
            }
        }
    }

    /// Takes what comes next from the transport, or only looks for a reset once enough was taken for later reads. Data in any order
    /// stays where it is, as does its offset.
    fn poll_ahead(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Result<ReadOutcome, Refusal>, ConnectionError>> {
        let held: usize = self.taken.iter_from(0).map(length).sum();
        let most = if self.is_unordered { 0 } else { AHEAD.saturating_sub(held) };
        let id = self.id;
        self.connection.reference().command(|mut access| {
            match access.core.as_deref_mut().map(|core| core.read(id, most)) {
                Some(Ok(ReadOutcome::Data(data))) if data.is_empty() => {}
                Some(Ok(ReadOutcome::Blocked)) | None => {}
                Some(outcome) => return Poll::Ready(Ok(outcome)),
            }
            if let Err(lost) = access.open() {
                return Poll::Ready(Err(lost));
            }
            access.slot.receivers.insert(id, context.waker().clone());
            Poll::Pending
        })
    }
}

/// The bytes of data in `outcome`.
fn length(outcome: &Result<ReadOutcome, Refusal>) -> usize {
    if let Ok(ReadOutcome::Data(data)) = outcome { data.len() } else { 0 }
}

/// Asks the transport for what `read` finds in stream `id`; while that is nothing, `context` is woken once there may be more.
fn poll_transport<T>(
    connection: &Connection,
    id: StreamId,
    context: &Context<'_>,
    read: impl FnOnce(&mut Core) -> Option<T>,
) -> Poll<Result<T, ReadError>> {
    connection.reference().command(|mut access| {
        // What arrived before the connection ended can still be read.
        if let Some(found) = access.core.as_deref_mut().and_then(read) {
            return Poll::Ready(Ok(found));
        }
        access.open().map_err(ReadError::ConnectionLost)?;
        access.slot.receivers.insert(id, context.waker().clone());
        Poll::Pending
    })
}

/// Takes up to `most` further bytes of stream `id` that are there, and how it ends if that comes next.
fn read_on(core: &mut Core, id: StreamId, most: usize, taken: &mut ShortQueue<Result<ReadOutcome, Refusal>>) {
    let mut left = most;
    while left > 0 {
        match core.read(id, left) {
            Ok(ReadOutcome::Blocked) => return,
            Ok(ReadOutcome::Data(data)) => {
                left = left.saturating_sub(data.len());
                taken.push_back(Ok(ReadOutcome::Data(data)));
            }
            end => {
                taken.push_back(end);
                return;
            }
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if self.end.is_none() {
            self.stop_unless_done(0);
        }
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let chunk = self.get_mut().poll_read_chunk(context, buffer.remaining());
        chunk.map(|result| {
            if let Some(chunk) = result? {
                buffer.put_slice(&chunk);
            }
            Ok(())
        })
    }
}
