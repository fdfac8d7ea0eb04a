//! The receiving half of a stream as `h3` wants it.

use super::error::read_error;
use super::send_stream::{stream_id, valid_code};
use crate::Code;
use crate::protocol::receiving::unwanted;
use bytes::Bytes;
use h3::quic::{self, StreamErrorIncoming, StreamId};
use hvq::Role;
use std::task::{Context, Poll};

/// The receiving half of a stream. Dropping it before its end sends STOP_SENDING, from a server with H3_NO_ERROR
/// (RFC 9114 §4.1), from a client with H3_REQUEST_CANCELLED (§4.1.1).
#[derive(Debug)]
pub struct RecvStream {
    stream: hvq::RecvStream,
    /// The code for a peer whose data is not wanted any more.
    unwanted: Code,
}

impl RecvStream {
    pub(crate) fn new(stream: hvq::RecvStream, role: Role) -> Self {
        Self { stream, unwanted: unwanted(role) }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        // Does nothing if the stream has ended.
        self.stream.stop(self.unwanted.value());
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.stream.poll_read_chunk(context, usize::MAX).map_err(read_error)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.stream.stop(valid_code(error_code));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}
