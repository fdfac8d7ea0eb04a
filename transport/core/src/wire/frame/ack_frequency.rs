//! The frames with which a sender says how often it wants acknowledgements (draft-ietf-quic-ack-frequency-14 §4, §5).

use super::decode_error::DecodeError;
use super::sink::Sink;
use crate::wire::cursor::Reader;
use std::time::Duration;

/// ACK_FREQUENCY: when acknowledgements shall be sent (draft-ietf-quic-ack-frequency-14 §4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AckFrequency {
    /// Orders the frames: only one with a higher number than all before counts.
    pub sequence: u64,
    /// The number of ack-eliciting packets that may arrive without an acknowledgement; one more asks for it.
    pub threshold: u64,
    /// The delay asked for, in whole microseconds. Its owner checks the limits.
    pub max_delay: Duration,
    /// A gap is reported at once when it is so many numbers old; 1 is every gap, 0 is none.
    pub reordering: u64,
}

impl AckFrequency {
    pub(super) fn read(reader: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self {
            sequence: reader.varint()?,
            threshold: reader.varint()?,
            max_delay: Duration::from_micros(reader.varint()?),
            reordering: reader.varint()?,
        })
    }

    pub(super) fn write(&self, sink: &mut impl Sink) {
        let micros = self.max_delay.as_micros().min(u128::from(crate::wire::varint::MAX)) as u64;
        sink.varints(&[self.sequence, self.threshold, micros, self.reordering]);
    }
}
