//! Who watches: a tracer is told what a connection sends, receives, loses and measures.

use crate::PathId;
use crate::time::Instant;
use std::time::Duration;

/// Something worth watching.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TraceEvent {
    /// A frame was written into a packet.
    FrameSent {
        /// The path of the packet.
        path: PathId,
        /// The frame's name in RFC 9000 or RFC 10069.
        kind: &'static str,
        /// Its size.
        bytes: usize,
    },
    /// A frame arrived.
    FrameReceived {
        /// The path of the packet.
        path: PathId,
        /// The frame's name.
        kind: &'static str,
    },
    /// A packet was sealed.
    PacketSent {
        /// Its path.
        path: PathId,
        /// Its number.
        number: u64,
        /// Its size.
        bytes: usize,
    },
    /// A packet arrived and authenticated.
    PacketReceived {
        /// Its path.
        path: PathId,
        /// Its number.
        number: u64,
        /// Its size.
        bytes: usize,
    },
    /// A packet was declared lost.
    PacketLost {
        /// Its path.
        path: PathId,
        /// Its number.
        number: u64,
        /// Its size.
        bytes: usize,
    },
    /// A round trip was measured.
    RttSampled {
        /// The path of the packet.
        sent_on: PathId,
        /// The path of its acknowledgement.
        acknowledged_over: PathId,
        /// The sample.
        rtt: Duration,
    },
}

/// Told about every [`TraceEvent`] of one connection. It must not block.
pub trait Tracer: Send {
    /// Takes note of `event`.
    fn record(&mut self, now: Instant, event: &TraceEvent);
}
