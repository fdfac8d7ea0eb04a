//! The streams of a session.

use super::SessionState;
use super::codes;
use super::end::StreamError;
use super::flow::Outgoing;
use crate::Code;
use crate::protocol::shared::lock;
use bytes::Bytes;
use hvq::{Priority, ReadError, RecvStream, SendStream, StreamId, WriteError};
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

/// The sending half of a stream of a session. Dropping it finishes the stream: the peer gets all that was written.
#[derive(Debug)]
pub struct SendHalf {
    stream: Arc<Mutex<SendStream>>,
    id: StreamId,
    /// Bytes of the header that names the session, which outlive a reset (draft-ietf-webtrans-http3 §4.4).
    header: u64,
    /// The count of what is written, if flow control of sessions is in force.
    outgoing: Option<Arc<Outgoing>>,
    state: Arc<SessionState>,
}

impl Drop for SendHalf {
    fn drop(&mut self) {
        self.state.forget(self.id, Half::Send);
    }
}

/// The receiving half of a stream of a session. Dropping it before its end asks the peer to stop, with code 0.
#[derive(Debug)]
pub struct ReceiveHalf {
    stream: Arc<Mutex<RecvStream>>,
    id: StreamId,
    /// Bytes that came with the header.
    begun: Bytes,
    state: Arc<SessionState>,
}

impl Drop for ReceiveHalf {
    fn drop(&mut self) {
        let mut stream = lock(&self.stream);
        if !stream.is_over() {
            stream.stop(codes::to_http(0));
            self.state.on_stopped();
        }
        drop(stream);
        self.state.forget(self.id, Half::Receive);
    }
}

/// The halves of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Half {
    Send,
    Receive,
}

impl Half {
    /// The other one.
    pub(super) fn other(self) -> Self {
        match self {
            Self::Send => Self::Receive,
            Self::Receive => Self::Send,
        }
    }
}

/// A half that is open, as its session knows it.
#[derive(Debug)]
pub(super) enum OpenHalf {
    Send(Arc<Mutex<SendStream>>, u64),
    Receive(Arc<Mutex<RecvStream>>),
}

impl OpenHalf {
    /// Ends the half, since its session has.
    pub(super) fn end(&self) {
        let code = Code::WT_SESSION_GONE.value();
        match self {
            Self::Send(stream, header) => {
                // A stream that has ended needs no reset.
                let _ended = lock(stream).reset_at(code, *header);
            }
            Self::Receive(stream) => lock(stream).stop(code),
        }
    }
}

impl SendHalf {
    pub(super) fn new(stream: SendStream, header: u64, state: &Arc<SessionState>) -> Self {
        let outgoing = state.flow.as_ref().map(|flow| flow.begin(&stream, header));
        let (id, stream) = (stream.id(), Arc::new(Mutex::new(stream)));
        state.note(id, Half::Send, OpenHalf::Send(stream.clone(), header));
        Self { stream, id, header, outgoing, state: state.clone() }
    }

    /// The stream's ID.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Sets the priority of what is sent (RFC 9218): the scheduler's advice. Default: urgency 3, not incremental.
    pub fn set_priority(&self, priority: Priority) {
        lock(&self.stream).set_priority(priority);
    }

    /// Sends the first part of `data` that fits, and returns its length. Waits while the limits of the stream, of the session or of
    /// the connection permit nothing.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, StreamError> {
        let (Some(flow), Some(outgoing)) = (&self.state.flow, &self.outgoing) else {
            return self.wait(|stream, context| stream.poll_write_some(context, data)).await;
        };
        loop {
            let written = self.wait(|stream, context| {
                flow.write(outgoing, data.len(), |most| {
                    stream.poll_write_some(context, data.get(..most).unwrap_or(data))
                })
            });
            if let Some(written) = written.await? {
                return Ok(written);
            }
            tokio::select! {
                biased;
                _ = self.state.ended() => return Err(StreamError::SessionEnded),
                // One that the peer stopped does not wait for credit.
                stopped = self.wait(|stream, context| stream.poll_stopped(context)) => {
                    return Err(stopped?.map_or(StreamError::Closed, |code| WriteError::Stopped(code).into()));
                }
                () = flow.raised() => {}
            }
        }
    }

    /// Sends all of `data`.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub async fn write_all(&mut self, mut data: &[u8]) -> Result<(), StreamError> {
        while !data.is_empty() {
            let written = self.write(data).await?;
            data = data.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Ends the stream behind what was written.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub fn finish(&mut self) -> Result<(), StreamError> {
        let finished = lock(&self.stream).finish();
        finished.map_err(|error| self.explain(error))
    }

    /// Abandons the stream, with a code for the peer's application: what it has not got, it will not get.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub fn reset(&mut self, code: u32) -> Result<(), StreamError> {
        // Draft-ietf-webtrans-http3 §4.4: with the header at least, so that the reset reaches the session.
        let reset = lock(&self.stream).reset_at(codes::to_http(code), self.header);
        self.outgoing.iter().for_each(|outgoing| outgoing.end());
        reset.map(drop).map_err(|error| self.explain(error))
    }

    /// Waits until the peer has everything that was written and finished.
    ///
    /// # Errors
    /// [`StreamError::GivenUp`] if it stops reading.
    pub async fn delivered(&mut self) -> Result<(), StreamError> {
        let stopped = self.wait(|stream, context| stream.poll_stopped(context)).await?;
        stopped.map_or(Ok(()), |code| Err(WriteError::Stopped(code).into()))
    }

    async fn wait<T>(
        &self,
        mut poll: impl FnMut(&mut SendStream, &mut Context<'_>) -> Poll<Result<T, WriteError>>,
    ) -> Result<T, StreamError> {
        tokio::select! {
            biased;
            done = poll_fn(|context| poll(&mut lock(&self.stream), context)) => done.map_err(|error| self.explain(error)),
            _ = self.state.ended() => Err(StreamError::SessionEnded),
        }
    }

    fn explain(&self, error: WriteError) -> StreamError {
        if let (WriteError::Stopped(_), Some(outgoing)) = (&error, &self.outgoing) {
            outgoing.end();
        }
        match error {
            WriteError::Closed if self.state.end().is_some() => StreamError::SessionEnded,
            error => error.into(),
        }
    }
}

impl ReceiveHalf {
    pub(super) fn new(stream: RecvStream, begun: Bytes, state: &Arc<SessionState>) -> Self {
        let (id, stream) = (stream.id(), Arc::new(Mutex::new(stream)));
        state.note(id, Half::Receive, OpenHalf::Receive(stream.clone()));
        Self { stream, id, begun, state: state.clone() }
    }

    /// The stream's ID.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// The next bytes of the stream, at most `most`; `None` behind its end.
    ///
    /// # Errors
    /// See [`StreamError`].
    pub async fn read(&mut self, most: usize) -> Result<Option<Bytes>, StreamError> {
        if !self.begun.is_empty() {
            return Ok(Some(self.begun.split_to(most.min(self.begun.len()))));
        }
        let read = poll_fn(|context| lock(&self.stream).poll_read_chunk(context, most));
        tokio::select! {
            biased;
            read = read => {
                self.state.on_read();
                read.map_err(|error| match error {
                    ReadError::Stopped if self.state.end().is_some() => StreamError::SessionEnded,
                    error => error.into(),
                })
            }
            _ = self.state.ended() => Err(StreamError::SessionEnded),
        }
    }

    /// Reads the stream to its end.
    ///
    /// # Errors
    /// See [`StreamError`]; [`StreamError::TooLong`] if it has more than `limit` bytes.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, StreamError> {
        let mut all = Vec::new();
        while let Some(bytes) = self.read(limit.saturating_add(1)).await? {
            if bytes.len() > limit.saturating_sub(all.len()) {
                return Err(StreamError::TooLong);
            }
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }

    /// Asks the peer to send no more, with a code for its application.
    pub fn stop(&mut self, code: u32) {
        self.begun.clear();
        lock(&self.stream).stop(codes::to_http(code));
        self.state.on_stopped();
    }
}
