//! The receiving half of a request: frames in order (RFC 9114 §4.1, §7).

use super::control::Violation;
use super::request::{self, Malformed};
use super::shared::{Shared, TooMuch};
use crate::qpack::{Field, SectionError};
use crate::recv_stream::unwanted;
use bytes::{Buf, Bytes, BytesMut};
use h3::error::Code;
use http::HeaderMap;
use hvq::ReadError;
use hvq::transport::wire::varint;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A field section is no more than so many times as large as it is in the form of the limit: the longest Huffman codes have
/// 30 bits.
const LONGEST_CODE: u64 = 4;

/// The reason for which no more is received.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The client gave up, or the connection ended.
    #[error("the client gave up: {0}")]
    Lost(#[from] ReadError),
    /// The request is malformed: the stream is to be reset with this code.
    #[error("{1}")]
    Malformed(Code, &'static str),
    /// The client broke the protocol: the connection was closed with this code.
    #[error("{1}")]
    Violation(Code, &'static str),
    /// A field section is larger than what was offered.
    #[error("a field section is too large")]
    TooLarge,
}

impl From<Malformed> for ReceiveError {
    fn from(Malformed(reason): Malformed) -> Self {
        Self::Malformed(Code::H3_MESSAGE_ERROR, reason)
    }
}

/// An event on the stream of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Event {
    /// A field section.
    Fields(Bytes),
    /// A piece of the body.
    Data(Bytes),
    /// Its end.
    End,
}

/// The part of the message at which the stream stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Before the header section.
    Head,
    /// Behind it.
    Body,
    /// Behind the trailers.
    Trailers,
    /// At its end.
    End,
}

/// Within which frame it is, and how much of that is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Inside {
    None,
    Data(u64),
    Fields(u64),
    /// One that is not known.
    Other(u64),
}

/// The receiving half of a request's stream. Dropping it before its end asks the peer to stop, from a server with H3_NO_ERROR,
/// which may answer without having read all (RFC 9114 §4.1), from a client with H3_REQUEST_CANCELLED (§4.1.1).
#[derive(Debug)]
pub struct Receiving {
    stream: hvq::RecvStream,
    shared: Arc<Shared>,
    /// The bytes that came and were not parsed.
    buffer: Bytes,
    stage: Stage,
    inside: Inside,
    /// The event that was parsed and not handed on.
    next: Option<Event>,
    /// Bytes of a field section here that was not read yet.
    unread: u64,
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.give_back();
        if self.stage != Stage::End {
            self.stream.stop(unwanted(self.shared.connection.role()).value());
            self.abandon();
        } else if matches!(self.next, Some(Event::Fields(_))) {
            self.abandon();
        }
    }
}

impl Receiving {
    pub(crate) fn new(stream: hvq::RecvStream, shared: Arc<Shared>) -> Self {
        let (buffer, stage, inside) = (Bytes::new(), Stage::Head, Inside::None);
        Self { stream, shared, buffer, stage, inside, next: None, unread: 0 }
    }

    /// Asks the client to stop sending, with `code`.
    pub fn stop(&mut self, code: Code) {
        if self.stage != Stage::End {
            self.abandon();
        }
        (self.stage, self.next) = (Stage::End, None);
        self.stream.stop(code.value());
    }

    /// Field sections that came and were not read are not read any more (RFC 9204 §2.2.2.2).
    fn abandon(&self) {
        self.shared.cancel_sections(self.stream.id().0);
    }

    /// The header section of a request.
    pub(super) fn poll_head(&mut self, context: &mut Context<'_>) -> Poll<Result<Vec<Field>, ReceiveError>> {
        let fields = ready!(self.poll_section(context))?;
        // Most requests end here. What else may have come with the head waits.
        if let Poll::Ready(next) = self.poll_event(context) {
            self.keep(next?)?;
        }
        Poll::Ready(Ok(fields))
    }

    /// Another header section follows: what came was an interim response (RFC 9114 §4.1).
    pub(crate) fn expect_head(&mut self) {
        self.stage = Stage::Head;
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
                let reason = "the stream ended before the header section";
                Poll::Ready(Err(ReceiveError::Malformed(Code::H3_REQUEST_INCOMPLETE, reason)))
            }
        }
    }

    /// The next piece of the body; `None` behind it.
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
                    Poll::Ready(Ok(Some(request::trailers(fields)?)))
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
        self.shared.count_unread(self.unread, now as u64).map_err(|TooMuch| {
            let reason = "more of unread field sections than a connection may have";
            ReceiveError::Malformed(Code::H3_REQUEST_REJECTED, reason)
        })?;
        self.unread = now as u64;
        Ok(())
    }

    /// There is nothing unread here any more.
    fn give_back(&mut self) {
        let less = self.shared.count_unread(std::mem::take(&mut self.unread), 0);
        debug_assert!(less.is_ok(), "to have less is always permitted");
    }

    /// Closes the connection.
    fn violation(&self, code: Code, reason: &'static str) -> ReceiveError {
        self.shared.close(Violation(code, reason));
        ReceiveError::Violation(code, reason)
    }

    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<Event, ReceiveError>> {
        if self.stage == Stage::End {
            return Poll::Ready(Ok(Event::End));
        }
        loop {
            if let Some(event) = self.parse()? {
                return Poll::Ready(Ok(event));
            }
            if matches!(self.inside, Inside::Fields(_)) {
                self.count_unread(self.buffer.len())?;
            }
            match ready!(self.stream.poll_read_chunk(context, usize::MAX))? {
                Some(chunk) => self.buffer = joined(std::mem::take(&mut self.buffer), chunk),
                None if self.inside == Inside::None && self.buffer.is_empty() => {
                    if self.stage != Stage::Head {
                        self.stage = Stage::End;
                    }
                    return Poll::Ready(Ok(Event::End));
                }
                None => {
                    // RFC 9114 §7.1.
                    let reason = "the stream ended within a frame";
                    return Poll::Ready(Err(self.violation(Code::H3_FRAME_ERROR, reason)));
                }
            }
        }
    }

    /// Parses the event at the start of the buffer; `None` if more has to come first.
    fn parse(&mut self) -> Result<Option<Event>, ReceiveError> {
        loop {
            match self.inside {
                Inside::None => match self.header()? {
                    Some(inside) => self.inside = inside,
                    None => return Ok(None),
                },
                Inside::Data(0) | Inside::Other(0) => self.inside = Inside::None,
                Inside::Data(left) => {
                    let data = self.take(left);
                    self.inside = Inside::Data(left - data.len() as u64);
                    return Ok((!data.is_empty()).then_some(Event::Data(data)));
                }
                Inside::Other(left) => {
                    let passed = self.take(left).len() as u64;
                    self.inside = Inside::Other(left - passed);
                    if passed == 0 {
                        return Ok(None);
                    }
                }
                Inside::Fields(length) => {
                    if (self.buffer.len() as u64) < length {
                        return Ok(None);
                    }
                    self.inside = Inside::None;
                    return Ok(Some(Event::Fields(self.take(length))));
                }
            }
        }
    }

    /// Takes at most `most` bytes of the buffer.
    fn take(&mut self, most: u64) -> Bytes {
        let length = usize::try_from(most).unwrap_or(usize::MAX).min(self.buffer.len());
        self.buffer.split_to(length)
    }

    /// The frame that begins now; `None` if more has to come first.
    fn header(&mut self) -> Result<Option<Inside>, ReceiveError> {
        let Some((kind, first)) = varint::get(&self.buffer) else { return Ok(None) };
        let Some((length, second)) = varint::get(self.buffer.get(first..).unwrap_or_default()) else {
            return Ok(None);
        };
        self.buffer.advance(first + second);
        let inside = match (kind, self.stage) {
            (0x00, Stage::Head) => {
                return Err(self.violation(Code::H3_FRAME_UNEXPECTED, "DATA before HEADERS"));
            }
            (0x00, Stage::Body) => Inside::Data(length),
            (0x01, Stage::Head | Stage::Body) => {
                self.stage = if self.stage == Stage::Head { Stage::Body } else { Stage::Trailers };
                if length > self.shared.limit.saturating_mul(LONGEST_CODE) {
                    return Err(ReceiveError::TooLarge);
                }
                Inside::Fields(length)
            }
            // RFC 9114 §4.1: nothing of the message behind the trailers; §7.2: frames of other streams, and of HTTP/2.
            (0x00..=0x09 | 0x0d, _) => {
                return Err(
                    self.violation(Code::H3_FRAME_UNEXPECTED, "not a frame of a request, or not here")
                );
            }
            // §9: what is not known is passed over.
            _ => Inside::Other(length),
        };
        Ok(Some(inside))
    }
}

/// `before` with `chunk` behind it. Chunks may be of a byte each, so that what is there is not copied for every one.
fn joined(before: Bytes, chunk: Bytes) -> Bytes {
    if before.is_empty() {
        return chunk;
    }
    let mut whole = before.try_into_mut().unwrap_or_else(|shared| BytesMut::from(shared.as_ref()));
    whole.extend_from_slice(&chunk);
    whole.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_that_comes_byte_by_byte_is_copied_a_few_times_only() {
        let (mut whole, mut moves) = (Bytes::new(), 0);
        for byte in 0..100_000u32 {
            let before = whole.as_ptr();
            whole = joined(whole, Bytes::copy_from_slice(&byte.to_le_bytes()[..1]));
            moves += u32::from(whole.as_ptr() != before);
        }
        assert_eq!(whole.len(), 100_000);
        assert!(whole.iter().enumerate().all(|(at, byte)| *byte == at as u8));
        assert!(moves <= 40, "{moves} copies");
    }
}
