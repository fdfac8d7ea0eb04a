//! Frames (RFC 9000 §19, RFC 9221 §4, RFC 10069 §4): one file per family, one table for all.

pub(crate) mod ack;
pub(crate) mod ack_frequency;
pub(crate) mod close;
pub(crate) mod connection_id;
pub(crate) mod crypto;
pub(crate) mod datagram;
mod decode_error;
mod flow;
pub(crate) mod path;
pub(crate) mod path_hints;
mod reader;
#[macro_use]
mod rows;
#[cfg(test)]
pub(crate) mod samples;
mod sink;
pub(crate) mod stream;
mod table;
#[cfg(test)]
mod tests;
mod token;

pub use ack::{Ack, AckRanges, EcnCounts};
pub use ack_frequency::AckFrequency;
pub use close::ConnectionClose;
pub use connection_id::NewConnectionId;
pub use crypto::Crypto;
pub use path::{
    APPLICATION_ABANDON_PATH, NO_CID_AVAILABLE_FOR_PATH, PATH_RESOURCE_LIMIT_REACHED, PATH_UNSTABLE_OR_POOR,
    Status,
};
pub use path_hints::PathHints;
pub use reader::FrameReader;
pub use stream::{ResetStream, ResetStreamAt, StopSending, Stream};
pub(crate) use table::{
    AckingFrame, CloseFrame, DatagramFrame, HandshakeFrame, Owned, PacketFrame, PathFrame, StreamFrame,
};
pub use table::{Frame, types};

use crate::wire::level::Level;
use sink::{Counter, Sink};

/// The packets that may hold a frame (RFC 9000 §12.4 table 3; DATAGRAM as in RFC 9221 §4, frames of the multipath
/// extension in 1-RTT packets only, RFC 10069 §4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Packets {
    /// Initial, Handshake, 0-RTT and 1-RTT packets.
    All,
    /// Initial, Handshake and 1-RTT packets.
    NotZeroRtt,
    /// 0-RTT and 1-RTT packets.
    Application,
    /// 1-RTT packets.
    OneRtt,
}

impl Packets {
    /// Returns true if packets of `level` are among them.
    fn include(self, level: Level) -> bool {
        match self {
            Self::All => true,
            Self::NotZeroRtt => level != Level::ZeroRtt,
            Self::Application => matches!(level, Level::ZeroRtt | Level::OneRtt),
            Self::OneRtt => level == Level::OneRtt,
        }
    }
}

/// The demands of a frame on who receives it (RFC 9000 §9.1, §13.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    /// It asks for an acknowledgement, and moves a path to where it came from.
    Eliciting,
    /// It asks for an acknowledgement, and only probes an address.
    Probing,
    /// It asks for no acknowledgement, and moves a path.
    Quiet,
    /// It asks for no acknowledgement, and only probes an address.
    Padding,
}

/// The use of a frame when the packet with it is lost (RFC 9000 §13.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Recovery {
    /// Its owner offers what it said again, if that is still news, until it is acknowledged.
    Repeated,
    /// Its owner learns of its fate, and repeats nothing.
    Reported,
    /// Nobody learns of it.
    Forgotten,
}

impl Frame {
    /// The name for logs and statistics: the RFC's, in lower case.
    pub fn kind(&self) -> &'static str {
        types::name(self.frame_type())
    }

    /// Returns true if a packet with this frame, and others of which the same holds, only probes an address: it does
    /// not move the path there (RFC 9000 §9.1).
    pub fn is_probing(&self) -> bool {
        matches!(self.class(), Class::Probing | Class::Padding)
    }

    /// Its size in bytes.
    pub fn encoded_size(&self) -> usize {
        let mut counter = Counter::default();
        self.write(&mut counter);
        counter.bytes
    }

    /// Appends the frame. STREAM and DATAGRAM frames are written with their length, so that others can follow.
    pub fn put(&self, buf: &mut Vec<u8>) {
        match self {
            Self::Stream(stream) => stream.put(buf),
            _ => self.write(buf),
        }
    }

    fn write(&self, sink: &mut impl Sink) {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-12.4
        //# To ensure simple and efficient implementations of frame parsing, a frame type MUST use the
        //# shortest possible encoding
        sink.varint(self.frame_type());
        self.write_fields(sink);
    }

    /// Returns true if a packet with this frame asks for an acknowledgement (RFC 9000 §13.2).
    pub fn is_ack_eliciting(&self) -> bool {
        //= https://www.rfc-editor.org/rfc/rfc9000#section-19.21
        //= reason=Class::Quiet
        //# Extension frames MUST be congestion controlled and MUST cause an ACK frame to be sent
        !matches!(self.class(), Class::Padding | Class::Quiet)
    }

    /// Returns true if packets of `level` may carry this frame (RFC 9000 §12.4 table 3). A frame where it is not permitted
    /// is a PROTOCOL_VIOLATION.
    pub fn permitted_in(&self, level: Level) -> bool {
        types::packets(self.frame_type()).is_some_and(|packets| packets.include(level))
    }
}
