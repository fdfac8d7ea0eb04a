//! Receiving halves of streams.

use crate::{ClosedStream, ReadError, ReadExactError, ReadToEndError, ResetError, StreamId, VarInt};
use bytes::Bytes;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes of a stream, and where they belong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// The offset of the first byte.
    pub offset: u64,
    /// The bytes.
    pub bytes: Bytes,
}

/// The receiving half of a stream. Dropping it before its end asks the peer to stop.
#[derive(Debug)]
pub struct RecvStream {
    stream: hvq::RecvStream,
    /// Bytes that were read in order.
    offset: u64,
}

impl RecvStream {
    pub(crate) fn new(stream: hvq::RecvStream) -> Self {
        Self { stream, offset: 0 }
    }

    /// Reads what is there; its length in bytes, `None` at the end.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read(&mut self, buf: &mut [u8]) -> Result<Option<usize>, ReadError> {
        let read = self.stream.read(buf).await?;
        self.offset += read.unwrap_or_default() as u64;
        Ok(read)
    }

    /// Fills `buf`.
    ///
    /// # Errors
    /// See [`ReadExactError`].
    pub async fn read_exact(&mut self, buf: &mut [u8]) -> Result<(), ReadExactError> {
        let mut filled = 0;
        while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read(rest).await? {
                Some(read) => filled += read,
                None => return Err(ReadExactError::FinishedEarly(filled)),
            }
        }
        Ok(())
    }

    /// Takes what is there, at most `max_length` bytes; `None` at the end. Unordered, whatever is missing before it; the stream
    /// can be read in no other way then.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read_chunk(&mut self, max_length: usize, ordered: bool) -> Result<Option<Chunk>, ReadError> {
        if !ordered {
            let read = self.stream.read_unordered(max_length).await?;
            return Ok(read.map(|(offset, bytes)| Chunk { offset, bytes }));
        }
        let read = self.stream.read_chunk(max_length).await?;
        Ok(read.map(|bytes| {
            let offset = self.offset;
            self.offset += bytes.len() as u64;
            Chunk { offset, bytes }
        }))
    }

    /// Takes what is there into as many of `bufs` as it fills, the first of them at least; their number, `None` at the end.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read_chunks(&mut self, bufs: &mut [Bytes]) -> Result<Option<usize>, ReadError> {
        let Some((first, others)) = bufs.split_first_mut() else { return Ok(Some(0)) };
        let Some(chunk) = self.read_chunk(usize::MAX, true).await? else { return Ok(None) };
        *first = chunk.bytes;
        let mut filled = 1;
        for place in others {
            // What is there now, and no more.
            let next = poll_fn(|context| match self.stream.poll_read_chunk(context, usize::MAX) {
                Poll::Ready(next) => Poll::Ready(Some(next)),
                Poll::Pending => Poll::Ready(None),
            });
            let Some(Ok(Some(bytes))) = next.await else { break };
            self.offset += bytes.len() as u64;
            *place = bytes;
            filled += 1;
        }
        Ok(Some(filled))
    }

    /// Reads the rest of the stream, which has at most `size_limit` bytes.
    ///
    /// # Errors
    /// See [`ReadToEndError`].
    pub async fn read_to_end(&mut self, size_limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        let read = self.stream.read_to_end(size_limit).await;
        read.map_err(|error| match error {
            hvq::ReadToEndError::Read(error) => ReadToEndError::Read(error.into()),
            hvq::ReadToEndError::TooLong(_) => ReadToEndError::TooLong,
        })
    }

    /// Asks the peer to stop, with the application's code.
    ///
    /// # Errors
    /// The stream ended or was stopped before.
    pub fn stop(&mut self, error_code: VarInt) -> Result<(), ClosedStream> {
        if self.stream.is_over() {
            return Err(ClosedStream);
        }
        self.stream.stop(error_code.into_inner());
        Ok(())
    }

    /// Returns true if some of it came in 0-RTT.
    pub fn is_0rtt(&self) -> bool {
        self.stream.is_early_data()
    }

    /// The ID of the stream.
    pub fn id(&self) -> StreamId {
        StreamId(self.stream.id())
    }

    /// Waits until the peer resets the stream (`Some` of its code), or it ends otherwise. What arrives meanwhile can still be read.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn received_reset(&mut self) -> Result<Option<VarInt>, ResetError> {
        match self.stream.received_reset().await {
            Ok(code) => Ok(code.map(VarInt::carried)),
            Err(hvq::ReadError::ConnectionLost(lost)) => Err(ResetError::ConnectionLost(lost.into())),
            Err(_) => Ok(None),
        }
    }

    /// [`Self::read`] for those who poll; 0 bytes at the end.
    pub fn poll_read(&mut self, context: &mut Context<'_>, buf: &mut [u8]) -> Poll<Result<usize, ReadError>> {
        let read = self.stream.poll_read_chunk(context, buf.len()).map_err(ReadError::from);
        read.map_ok(|bytes| {
            let bytes = bytes.unwrap_or_default();
            buf.iter_mut().zip(&bytes).for_each(|(place, byte)| *place = *byte);
            self.offset += bytes.len() as u64;
            bytes.len()
        })
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(&mut stream.stream).poll_read(context, buf);
        stream.offset += (buf.filled().len() - before) as u64;
        read
    }
}
