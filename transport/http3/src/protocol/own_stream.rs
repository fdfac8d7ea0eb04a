//! A unidirectional stream of this end that has to last: control, QPACK encoder or QPACK decoder (RFC 9114 §6.2.1, RFC 9204 §4.2).

use super::control::Violation;
use crate::Code;
use hvq::{Priority, SendStream, WriteError};
use std::task::{Context, Poll};

/// The stream, which is opened when there is something to be sent.
#[derive(Debug)]
pub(super) struct OwnStream {
    /// The type of the stream.
    kind: u8,
    //= https://www.rfc-editor.org/rfc/rfc9204#section-4.2
    //= type=implication
    //= reason=Nothing finishes or resets the stream, and `Uni` stops none of these two kinds.
    //# The sender MUST NOT close either of these streams, and the receiver MUST NOT request that the
    //# sender close either of these streams.
    stream: Option<SendStream>,
    /// True once the type was written.
    is_typed: bool,
}

impl OwnStream {
    /// A stream of type `kind` that is not open yet.
    pub(super) fn new(kind: u8) -> Self {
        Self { kind, stream: None, is_typed: false }
    }

    /// A stream whose type was written.
    fn begun(kind: u8, stream: SendStream) -> Self {
        Self { kind, stream: Some(stream), is_typed: true }
    }

    /// Writes what the peer takes of `bytes`, and returns how many that are.
    pub(super) fn send(
        &mut self,
        bytes: &[u8],
        connection: &hvq::Connection,
        context: &mut Context<'_>,
    ) -> Result<usize, Violation> {
        if bytes.is_empty() {
            return Ok(0);
        }
        //= https://www.rfc-editor.org/rfc/rfc9204#section-4.2
        //# Each endpoint MUST initiate, at most, one encoder stream and, at most, one decoder stream.
        if self.stream.is_none()
            && let Poll::Ready(Ok(stream)) = connection.poll_open_uni(context)
        {
            stream.set_priority(MOST_URGENT);
            self.stream = Some(stream);
        }
        let Some(stream) = &mut self.stream else { return Ok(0) };
        if !self.is_typed {
            self.is_typed = written(stream.poll_write_some(context, &[self.kind]))? > 0;
        }
        let mut sent = 0;
        while self.is_typed
            && let Some(rest) = bytes.get(sent..).filter(|rest| !rest.is_empty())
        {
            match written(stream.poll_write_some(context, rest))? {
                0 => break,
                more => sent += more,
            }
        }
        Ok(sent)
    }

    /// Notices a peer that wants none of the stream, now or later.
    pub(super) fn check_wanted(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        match stream.poll_stopped(context) {
            Poll::Ready(Ok(Some(_)) | Err(WriteError::Stopped(_))) => Err(UNWANTED),
            Poll::Ready(Ok(None) | Err(_)) | Poll::Pending => Ok(()),
        }
    }
}

/// Bytes of frames that may wait to be sent, but for those that have to be said.
const MOST_PENDING: usize = 4 << 10;

/// The priority of a stream that others wait for.
pub(super) const MOST_URGENT: Priority = Priority { urgency: 0, incremental: false };

/// RFC 9114 §6.2.1: a peer must not ask for the end of a stream that has to last.
const UNWANTED: Violation =
    Violation(Code::H3_CLOSED_CRITICAL_STREAM, "nobody takes a stream that has to last");

/// The bytes that a write took.
fn written(written: Poll<Result<usize, WriteError>>) -> Result<usize, Violation> {
    match written {
        Poll::Ready(Ok(bytes)) => Ok(bytes),
        Poll::Pending | Poll::Ready(Err(WriteError::ConnectionLost(_))) => Ok(0),
        Poll::Ready(Err(WriteError::Stopped(_) | WriteError::Closed)) => Err(UNWANTED),
    }
}

/// This end's control stream, behind its SETTINGS.
#[derive(Debug)]
pub(super) struct ControlStream {
    stream: OwnStream,
    /// Frames that were not sent: mostly none.
    pending: Box<[u8]>,
}

impl ControlStream {
    /// The control stream on which SETTINGS were said.
    pub(super) fn new(stream: SendStream) -> Self {
        Self { stream: OwnStream::begun(0x00, stream), pending: Box::default() }
    }

    /// Returns true if so much waits that nothing should be added that can be done without.
    pub(super) fn is_behind(&self) -> bool {
        self.pending.len() > MOST_PENDING
    }

    /// Has `frame` sent.
    pub(super) fn push(&mut self, frame: &[u8]) {
        self.pending = [&self.pending, frame].concat().into();
    }

    /// Sends what the peer takes.
    pub(super) fn flush(
        &mut self,
        connection: &hvq::Connection,
        context: &mut Context<'_>,
    ) -> Result<(), Violation> {
        let sent = self.stream.send(&self.pending, connection, context)?;
        if sent > 0 {
            self.pending = self.pending.get(sent..).unwrap_or_default().into();
        }
        Ok(())
    }

    /// Notices a peer that takes nothing any more.
    pub(super) fn check_wanted(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        self.stream.check_wanted(context)
    }
}
