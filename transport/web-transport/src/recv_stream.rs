//! Receiving halves of streams.

use crate::Error;
use bytes::Bytes;

/// The receiving half of a stream. Dropping it before its end asks the peer to stop, with code 0.
#[derive(Debug)]
pub struct RecvStream {
    stream: hvq::RecvStream,
}

impl RecvStream {
    pub(crate) fn new(stream: hvq::RecvStream) -> Self {
        Self { stream }
    }

    /// The stream as hvq has it.
    pub fn hvq(&mut self) -> &mut hvq::RecvStream {
        &mut self.stream
    }
}

impl web_transport_trait::RecvStream for RecvStream {
    type Error = Error;

    async fn read(&mut self, dst: &mut [u8]) -> Result<Option<usize>, Error> {
        if dst.is_empty() {
            // Asking for nothing is not the end of the stream.
            return Ok(Some(0));
        }
        Ok(self.stream.read(dst).await?)
    }

    async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, Error> {
        if max == 0 {
            return Ok(Some(Bytes::new()));
        }
        Ok(self.stream.read_chunk(max).await?)
    }

    fn stop(&mut self, code: u32) {
        self.stream.stop(code.into());
    }

    /// Waits for the end of the stream. What arrives until then can still be read.
    async fn closed(&mut self) -> Result<(), Error> {
        match self.stream.received_reset().await? {
            Some(code) => Err(Error::Reset(code)),
            None => Ok(()),
        }
    }
}
