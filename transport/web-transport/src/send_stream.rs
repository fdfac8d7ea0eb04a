//! Sending halves of streams.

use crate::Error;
use bytes::Bytes;
use hvq::Priority;
use hvq::scheduler::StreamPriority;
use std::time::Duration;

/// The sending half of a stream. Dropping it before it is finished resets it with code 0, so that a part is not taken for the whole.
#[derive(Debug)]
pub struct SendStream {
    stream: hvq::SendStream,
    /// The peer gets all of it, or was told that it does not.
    is_over: bool,
}

impl SendStream {
    pub(crate) fn new(stream: hvq::SendStream) -> Self {
        Self { stream, is_over: false }
    }

    /// The stream as hvq has it.
    pub fn hvq(&mut self) -> &mut hvq::SendStream {
        &mut self.stream
    }

    /// Marks what was written so far as the end of a message, such as a frame or a group: bytes that are of use only together. The scheduler
    /// tries to have the message complete early, within `deadline` from now if there is one.
    ///
    /// # Errors
    /// The peer reads no more, the stream is closed, or the session ended.
    pub fn end_message(&mut self, deadline: Option<Duration>) -> Result<(), Error> {
        Ok(self.stream.end_message(deadline)?)
    }
}

/// The urgency of RFC 9218 of a stream with this order.
///
/// Protocols rank their streams from the top: 255 is sent first, 254 after it. Policies tell those three apart that come first, the middle
/// has the default of streams without an order, and what ranks below the middle gives way to it. Streams of one urgency are sent in their
/// order all the same.
fn urgency(order: u8) -> u8 {
    match order {
        253.. => 255 - order,
        128..253 => 3,
        64..128 => 4,
        32..64 => 5,
        1..32 => 6,
        0 => 7,
    }
}

impl web_transport_trait::SendStream for SendStream {
    type Error = Error;

    async fn write(&mut self, buf: &[u8]) -> Result<usize, Error> {
        Ok(self.stream.write(buf).await?)
    }

    async fn write_chunk(&mut self, chunk: Bytes) -> Result<(), Error> {
        Ok(self.stream.write_chunk(chunk).await?)
    }

    fn set_priority(&mut self, order: u8) {
        let priority = Priority { urgency: urgency(order), ..Priority::DEFAULT };
        self.stream.set_priority(StreamPriority { priority, order: order.into() });
    }

    fn finish(&mut self) -> Result<(), Error> {
        self.is_over = true;
        Ok(self.stream.finish()?)
    }

    fn reset(&mut self, code: u32) {
        self.is_over = true;
        // It is over already, or the session is.
        let _reset = self.stream.reset(code.into());
    }

    async fn closed(&mut self) -> Result<(), Error> {
        match self.stream.stopped().await {
            // Reset here.
            Ok(None) | Err(hvq::WriteError::Closed) => Ok(()),
            Ok(Some(code)) => Err(Error::Stopped(code)),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if !self.is_over {
            let _reset = self.stream.reset(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_order_is_never_less_urgent() {
        assert_eq!([255, 254, 253, 252].map(urgency), [0, 1, 2, 3]);
        assert_eq!(urgency(0), 7);
        let falling = (0..=254).all(|order| urgency(order) >= urgency(order + 1));
        assert!(falling, "the urgency of RFC 9218 falls as the order rises");
    }
}
