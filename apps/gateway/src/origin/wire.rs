//! A connection to an origin, with or without TLS, that never overlooks what has arrived.

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_boring::SslStream;

/// A connection that asks the system itself whether something arrived, where the runtime may not know yet.
///
/// Before a request is written to a connection that was used before, its reader looks for bytes that nobody asked for, which
/// would be taken for the answer. The runtime hears of arrivals only when it waits the next time: what came since is found
/// here.
#[derive(Debug)]
pub(crate) struct Attentive<S = TcpStream> {
    stream: S,
    last: Last,
}

/// The latest operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Last {
    /// Something was written, and the answer takes a while.
    Written,
    /// Something was read: maybe the end of an answer.
    Read,
}

/// A connection that the system can be asked about.
pub(crate) trait AsSocket: AsyncRead + AsyncWrite + Unpin {
    /// The socket.
    fn socket(&self) -> SockRef<'_>;
}

impl AsSocket for TcpStream {
    fn socket(&self) -> SockRef<'_> {
        SockRef::from(self)
    }
}

#[cfg(unix)]
impl AsSocket for tokio::net::UnixStream {
    fn socket(&self) -> SockRef<'_> {
        SockRef::from(self)
    }
}

impl<S: AsSocket> Attentive<S> {
    /// `stream`, over which nothing was written yet.
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, last: Last::Read }
    }

    /// Returns true if the system has something to read, the end of the connection among it.
    fn has_arrivals(&self) -> bool {
        self.stream.socket().peek(&mut [MaybeUninit::uninit()]).is_ok()
    }
}

impl<S: AsSocket> AsyncRead for Attentive<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_read(context, buffer);
        if polled.is_ready() {
            this.last = Last::Read;
            return polled;
        }
        if this.last == Last::Written || !this.has_arrivals() {
            return Poll::Pending;
        }
        let read = io::Read::read(&mut &*this.stream.socket(), buffer.initialize_unfilled())?;
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsSocket> AsyncWrite for Attentive<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.last = Last::Written;
        Pin::new(&mut this.stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.last = Last::Written;
        Pin::new(&mut this.stream).poll_write_vectored(context, pieces)
    }
}

/// A connection to an origin.
pub(crate) enum Wire {
    /// TCP.
    Plain(TokioIo<Attentive>),
    /// TLS over TCP.
    Tls(Box<TokioIo<SslStream<Attentive>>>),
    /// A socket of this machine.
    #[cfg(unix)]
    Local(TokioIo<Attentive<tokio::net::UnixStream>>),
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        match self {
            Self::Plain(_) => Connected::new(),
            #[cfg(unix)]
            Self::Local(_) => Connected::new(),
            Self::Tls(stream) => match stream.inner().ssl().selected_alpn_protocol() {
                Some(b"h2") => Connected::new().negotiated_h2(),
                _ => Connected::new(),
            },
        }
    }
}

impl Read for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            #[cfg(unix)]
            Self::Local(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl Write for Wire {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            #[cfg(unix)]
            Self::Local(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
            #[cfg(unix)]
            Self::Local(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            #[cfg(unix)]
            Self::Local(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }

    fn is_write_vectored(&self) -> bool {
        !matches!(self, Self::Tls(_))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            #[cfg(unix)]
            Self::Local(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
        }
    }
}
