//! A QUIC connection as `h3` wants it.

use super::error::{connection_error, connection_lost};
use super::{BidiStream, RecvStream, SendStream};
use crate::Priorities;
use bytes::Buf;
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming};
use hvq::Priority;
use std::task::{Context, Poll, ready};

/// Unidirectional streams that `h3` opens first and without which HTTP/3 cannot go on: the control stream
/// (RFC 9114 §6.2.1) and the two QPACK streams (RFC 9204 §4.2).
const CRITICAL_STREAMS: u8 = 3;

/// A QUIC connection for [`h3::client::new`] or [`h3::server::Connection::new`]. Dropping it closes the connection with
/// H3_NO_ERROR.
#[derive(Debug)]
pub struct Connection {
    opener: OpenStreams,
    /// Critical streams that are not open yet.
    critical: u8,
}

impl Connection {
    /// HTTP/3 on `connection`, whose handshake agreed on the application protocol [`ALPN`](crate::ALPN).
    pub fn new(connection: hvq::Connection) -> Self {
        let opener = OpenStreams { connection, priorities: Priorities::default() };
        Self { opener, critical: CRITICAL_STREAMS }
    }

    /// A handle that sets priorities of this connection's streams; to be taken before `h3` takes the connection.
    pub fn priorities(&self) -> Priorities {
        self.opener.priorities.clone()
    }

    /// The QUIC connection: its paths, statistics and peer.
    pub fn transport(&self) -> &hvq::Connection {
        &self.opener.connection
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // RFC 9114 §6.2.1: the streams that are dropped next must not be seen to end before the connection does.
        self.opener.connection.close(Code::H3_NO_ERROR.value(), b"");
    }
}

impl<B: Buf> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = OpenStreams;

    fn poll_accept_recv(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionErrorIncoming>> {
        let accepted = ready!(self.opener.connection.poll_accept_uni(context));
        let stream = accepted.map_err(connection_error)?;
        Poll::Ready(Ok(RecvStream::new(stream, self.opener.connection.role())))
    }

    fn poll_accept_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, ConnectionErrorIncoming>> {
        let accepted = ready!(self.opener.connection.poll_accept_bi(context));
        Poll::Ready(accepted.map(|halves| self.opener.bidi(halves)).map_err(connection_error))
    }

    fn opener(&self) -> OpenStreams {
        self.opener.clone()
    }
}

impl<B: Buf> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(context)
    }

    fn poll_open_send(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        let stream = ready!(self.opener.poll_open_uni(context))?;
        if self.critical > 0 {
            self.critical -= 1;
            stream.set_priority(Priority { urgency: 0, incremental: false });
        }
        Poll::Ready(Ok(SendStream::new(self.opener.priorities.register(stream))))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.opener.connection.close(code.value(), reason);
    }
}

/// A handle that opens the request streams of a client's connection.
#[derive(Clone, Debug)]
pub struct OpenStreams {
    connection: hvq::Connection,
    priorities: Priorities,
}

impl OpenStreams {
    fn poll_open_uni(&self, context: &mut Context<'_>) -> Poll<Result<hvq::SendStream, StreamErrorIncoming>> {
        self.connection.poll_open_uni(context).map_err(connection_lost)
    }

    fn bidi<B: Buf>(&self, (send, recv): (hvq::SendStream, hvq::RecvStream)) -> BidiStream<B> {
        let send = SendStream::new(self.priorities.register(send));
        BidiStream::new(send, RecvStream::new(recv, self.connection.role()))
    }
}

impl<B: Buf> quic::OpenStreams<B> for OpenStreams {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<B>, StreamErrorIncoming>> {
        let opened = ready!(self.connection.poll_open_bi(context));
        Poll::Ready(opened.map(|halves| self.bidi(halves)).map_err(connection_lost))
    }

    fn poll_open_send(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<SendStream<B>, StreamErrorIncoming>> {
        let opened = ready!(self.poll_open_uni(context));
        Poll::Ready(opened.map(|stream| SendStream::new(self.priorities.register(stream))))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.connection.close(code.value(), reason);
    }
}
