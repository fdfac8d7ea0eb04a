//! The receiving half of a request's stream: a request at a server, a response at a client (RFC 9114 §4.1).

use super::control::{Peer, Violation};
use super::fields::{self, Malformed};
use super::frames::{Event, Fault, MessageReader};
use super::response::Asked;
use super::shared::{Shared, TooMuch};
use crate::Code;
use crate::qpack::{Field, SectionError};
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use hvq::{ReadError, Role};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The reason for which no more is received.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The peer gave up, or the connection ended.
    #[error("the peer gave up: {0}")]
    Lost(#[from] ReadError),
    /// The message is malformed: the stream is to be reset with this code.
    #[error("{1}")]
    Malformed(Code, &'static str),
    /// The peer broke the protocol: the connection was closed with this code.
    #[error("{1}")]
    Violation(Code, &'static str),
    /// A field section is larger than what was offered.
    #[error("a field section is too large")]
    TooLarge,
    /// The body has another length than its `content-length` says: the stream was stopped with H3_MESSAGE_ERROR (RFC 9114
    /// §4.1.2).
    #[error("{received} bytes arrived of {announced} announced")]
    WrongLength {
        /// The length in the header section, in bytes.
        announced: u64,
        /// Bytes in the frames that came; the last of them may not be whole.
        received: u64,
    },
    /// The server goes away and did not process the request: it may be made again on another connection (RFC 9114 §5.2).
    #[error("the server goes away and did not process the request")]
    Refused,
}

impl From<Malformed> for ReceiveError {
    fn from(Malformed(reason): Malformed) -> Self {
        Self::Malformed(Code::H3_MESSAGE_ERROR, reason)
    }
}

/// The receiving half of a request's stream. Dropping it before its end asks the peer to stop, from a server with H3_NO_ERROR,
/// which may answer without having read all (RFC 9114 §4.1), from a client with H3_REQUEST_CANCELLED (§4.1.1).
#[derive(Debug)]
pub struct Receiving {
    stream: hvq::RecvStream,
    shared: Arc<Shared>,
    reader: MessageReader,
    /// The event that was parsed and not handed on.
    next: Option<Event>,
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.give_back();
        if !self.reader.is_over() {
            self.stream.stop(unwanted(self.shared.role()).value());
            self.abandon();
        } else if matches!(self.next, Some(Event::Fields(_))) {
            self.abandon();
        }
        self.shared.end_half(self.stream.id().0);
    }
}

impl Receiving {
    pub(crate) fn new(stream: hvq::RecvStream, shared: Arc<Shared>) -> Self {
        let sender = Peer::of(shared.role());
        let reader = MessageReader::new(sender);
        shared.begin_half();
        Self { stream, shared, reader, next: None }
    }

    /// The same, of which `begun` was read already.
    pub(crate) fn begun(stream: hvq::RecvStream, begun: Bytes, shared: Arc<Shared>) -> Self {
        let mut receiving = Self::new(stream, shared);
        receiving.reader.push(begun);
        receiving
    }

    /// The connection.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The stream's ID.
    pub fn id(&self) -> hvq::StreamId {
        self.stream.id()
    }

    /// Asks the peer to stop sending, with `code`.
    pub fn stop(&mut self, code: Code) {
        if !self.reader.is_over() {
            self.abandon();
        }
        self.reader.close();
        self.next = None;
        self.stream.stop(code.value());
    }

    /// Field sections that came and were not read are not read any more (RFC 9204 §2.2.2.2).
    fn abandon(&self) {
        self.shared.cancel_sections(self.stream.id().0);
    }

    /// Notes the method of the request that the response is for.
    pub(crate) fn asked(&mut self, method: &Method) {
        self.reader.asked = Asked::by(method);
    }

    /// Holds the body to what `head`, the fields of a final response with this `status`, says.
    pub(crate) fn expect_content(&mut self, status: StatusCode, head: &HeaderMap) -> Result<(), Malformed> {
        if self.reader.asked.has_length(status) { self.expect_length(head) } else { Ok(()) }
    }

    /// The server has answered, so that it does not refuse the request any more.
    pub(crate) fn answered(&self) {
        self.shared.forget_refusal(self.stream.id().0);
    }

    /// Parses what came with the head: most messages end here. What else may have come waits.
    pub(crate) fn peek(&mut self, context: &mut Context<'_>) -> Result<(), ReceiveError> {
        match self.poll_event(context) {
            Poll::Ready(next) => next.and_then(|next| self.keep(next)),
            Poll::Pending => Ok(()),
        }
    }

    /// Another header section follows: what came was an interim response (RFC 9114 §4.1).
    pub(crate) fn expect_head(&mut self) {
        self.reader.expect_head();
    }

    /// Holds the body to the `content-length` among `head`, the fields of the header section (RFC 9114 §4.1.2).
    pub(crate) fn expect_length(&mut self, head: &HeaderMap) -> Result<(), Malformed> {
        if let Some(length) = fields::content_length(head)? {
            self.reader.expect_length(length);
        }
        Ok(())
    }

    /// A header section.
    pub(crate) fn poll_section(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Vec<Field>, ReceiveError>> {
        let event = match self.next.take() {
            Some(event) => event,
            None => ready!(self.poll_event(context))?,
        };
        match event {
            Event::Fields(block) => self.poll_fields(block, context),
            Event::Data(_) => {
                Poll::Ready(Err(self.violation(Code::H3_FRAME_UNEXPECTED, "DATA before HEADERS")))
            }
            Event::End => {
                let code = match self.shared.role() {
                    Role::Server => Code::H3_REQUEST_INCOMPLETE,
                    Role::Client => Code::H3_MESSAGE_ERROR,
                };
                let reason = "the stream ended before the header section";
                Poll::Ready(Err(ReceiveError::Malformed(code, reason)))
            }
        }
    }

    /// The next piece of the body; `None` behind it.
    ///
    /// # Errors
    /// See [`ReceiveError`].
    pub async fn data(&mut self) -> Result<Option<Bytes>, ReceiveError> {
        poll_fn(|context| self.poll_data(context)).await
    }

    /// [`data`](Self::data) for those who poll.
    ///
    /// # Errors
    /// See [`ReceiveError`].
    pub fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ReceiveError>> {
        let event = match self.next.take() {
            Some(event) => event,
            None => ready!(self.poll_event(context))?,
        };
        if let Event::Data(data) = event {
            return Poll::Ready(Ok(Some(data)));
        }
        self.keep(event)?;
        Poll::Ready(Ok(None))
    }

    /// The trailers, if there are any; to be asked for behind the body.
    ///
    /// # Errors
    /// See [`ReceiveError`].
    pub async fn trailers(&mut self) -> Result<Option<HeaderMap>, ReceiveError> {
        poll_fn(|context| self.poll_trailers(context)).await
    }

    /// [`trailers`](Self::trailers) for those who poll.
    ///
    /// # Errors
    /// See [`ReceiveError`].
    pub fn poll_trailers(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<HeaderMap>, ReceiveError>> {
        loop {
            if ready!(self.poll_data(context))?.is_some() {
                continue;
            }
            return match self.next.take() {
                Some(Event::Fields(block)) => {
                    let fields = ready!(self.poll_fields(block, context))?;
                    let trailers = fields::trailers(fields).inspect_err(|_| {
                        self.stop(Code::H3_MESSAGE_ERROR);
                    })?;
                    // Nothing of the message may follow (RFC 9114 §4.1).
                    self.peek(context)?;
                    Poll::Ready(Ok(Some(trailers)))
                }
                other => {
                    self.next = other;
                    Poll::Ready(Ok(None))
                }
            };
        }
    }

    /// The lines of a field section, once all that it refers to is there.
    fn poll_fields(
        &mut self,
        block: Bytes,
        context: &mut Context<'_>,
    ) -> Poll<Result<Vec<Field>, ReceiveError>> {
        let Poll::Ready(fields) = self.shared.poll_decompress(self.stream.id().0, &block, context) else {
            self.keep(Event::Fields(block))?;
            return Poll::Pending;
        };
        self.give_back();
        Poll::Ready(fields.map_err(|error| match error {
            SectionError::TooLarge => ReceiveError::TooLarge,
            SectionError::Malformed => {
                self.violation(Code::QPACK_DECOMPRESSION_FAILED, "a field section that is none")
            }
        }))
    }

    /// Hands `event` on later.
    fn keep(&mut self, event: Event) -> Result<(), ReceiveError> {
        if let Event::Fields(block) = &event {
            self.count_unread(block.len())?;
        }
        self.next = Some(event);
        Ok(())
    }

    /// Counts `now` bytes of a field section that is here and was not read.
    fn count_unread(&mut self, now: usize) -> Result<(), ReceiveError> {
        // A section is within a limit that is far below.
        let now = u32::try_from(now).unwrap_or(u32::MAX);
        self.shared.count_unread(self.reader.counted.into(), now.into()).map_err(|TooMuch| {
            let reason = "more of unread field sections than a connection may have";
            //= https://www.rfc-editor.org/rfc/rfc9114#section-4.1.1
            //# Clients MUST NOT use the H3_REQUEST_REJECTED error code, except when a server has requested
            //# closure of the request stream with this error code.
            let code = match self.shared.role() {
                Role::Server => Code::H3_REQUEST_REJECTED,
                Role::Client => Code::H3_REQUEST_CANCELLED,
            };
            ReceiveError::Malformed(code, reason)
        })?;
        self.reader.counted = now;
        Ok(())
    }

    /// There is nothing unread here any more.
    fn give_back(&mut self) {
        let less = self.shared.count_unread(std::mem::take(&mut self.reader.counted).into(), 0);
        debug_assert!(less.is_ok(), "to have less is always permitted");
    }

    /// Closes the connection.
    fn violation(&self, code: Code, reason: &'static str) -> ReceiveError {
        self.shared.close(Violation(code, reason));
        ReceiveError::Violation(code, reason)
    }

    /// The error that `fault` is, with what it takes to end the message or the connection.
    fn fail(&mut self, fault: Fault) -> ReceiveError {
        match fault {
            Fault::Violation(Violation(code, reason)) => self.violation(code, reason),
            Fault::TooLarge => ReceiveError::TooLarge,
            Fault::WrongLength { announced, received } => {
                self.stop(Code::H3_MESSAGE_ERROR);
                ReceiveError::WrongLength { announced, received }
            }
        }
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<Event, ReceiveError>> {
        if self.reader.is_over() {
            return Poll::Ready(Ok(Event::End));
        }
        loop {
            if let Some(event) =
                self.reader.next_event(self.shared.limit).map_err(|fault| self.fail(fault))?
            {
                return Poll::Ready(Ok(event));
            }
            if let Some(unread) = self.reader.unread() {
                self.count_unread(unread)?;
            }
            match self.stream.poll_read_chunk(context, usize::MAX)? {
                Poll::Ready(Some(chunk)) => self.reader.push(chunk),
                Poll::Ready(None) => {
                    return Poll::Ready(self.reader.end().map_err(|fault| self.fail(fault)));
                }
                Poll::Pending if self.is_refused(context) => {
                    self.stop(Code::H3_REQUEST_CANCELLED);
                    return Poll::Ready(Err(ReceiveError::Refused));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Returns true if the server goes away without having looked at the request (RFC 9114 §5.2).
    fn is_refused(&self, context: &Context<'_>) -> bool {
        self.reader.awaits_head() && self.shared.is_refused(self.stream.id().0, context.waker())
    }
}

/// The code for a peer of whose message the rest is not wanted: a server may answer without it (RFC 9114 §4.1), a client gives
/// its request up (§4.1.1).
pub(crate) fn unwanted(role: Role) -> Code {
    match role {
        Role::Server => Code::H3_NO_ERROR,
        Role::Client => Code::H3_REQUEST_CANCELLED,
    }
}
