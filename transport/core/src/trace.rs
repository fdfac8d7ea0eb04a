//! Tracing: a tracer is told of the packets that a connection sends, receives and loses, and of its measurements.
//!
//! Events borrow from the connection and are built only if a tracer is there, so that watching nobody costs nothing.

use crate::Role;
use crate::error::{ConnectionError, Dropped};
use crate::time::Instant;
use crate::wire::connection_id::ConnectionId;
use crate::wire::frame::Status;
use crate::wire::level::Level;
use crate::wire::transport_parameters::TransportParameters;
use crate::{Bandwidth, PathId};
use hvq_scheduler::Expectation;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The connection that a tracer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subject {
    /// The role of this end.
    pub role: Role,
    /// The destination of the client's first Initial packet, which both ends know and nobody else chose.
    pub original_destination: ConnectionId,
    /// The local address of path 0.
    pub local: SocketAddr,
    /// The remote address of path 0.
    pub remote: SocketAddr,
}

/// Makes a tracer for a connection that begins; `None` if nobody wants to watch it.
pub type TracerFactory = Arc<dyn Fn(&Subject) -> Option<Box<dyn Tracer>> + Send + Sync>;

/// One of the two ends, seen from here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// This endpoint.
    Local,
    /// The peer.
    Remote,
}

/// The frames of a packet, decrypted. It is not shown in logs: it may hold data of the application and tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Payload<'a>(pub &'a [u8]);

impl fmt::Debug for Payload<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

/// A packet as its sender wrote it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TracedPacket<'a> {
    /// Its encryption level.
    pub level: Level,
    /// Its path; 0 for all levels but 1-RTT.
    pub path: PathId,
    /// Its number in the packet number space of `level` and `path`.
    pub number: u64,
    /// Its size on the wire, header and tag included.
    pub bytes: usize,
    /// Its frames, which a [`FrameReader`](crate::wire::frame::FrameReader) takes apart.
    pub payload: Payload<'a>,
}

/// The metrics of a path at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathMetrics {
    /// The smallest round-trip time, if one was measured.
    pub min_rtt: Option<Duration>,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// The latest round-trip time.
    pub latest_rtt: Duration,
    /// The mean deviation of round-trip times.
    pub rtt_variance: Duration,
    /// Probe timeouts in a row.
    pub pto_count: u32,
    /// The congestion window, in bytes.
    pub window: usize,
    /// Bytes in flight.
    pub in_flight: usize,
    /// The rate that packets are paced to, if they are.
    pub pacing_rate: Option<Bandwidth>,
    /// The growth of the window: slow start or congestion avoidance.
    pub growth: Growth,
}

/// The growth of a congestion window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// Slow start: the window grows by the bytes that are acknowledged.
    SlowStart,
    /// Congestion avoidance: the window grows more slowly.
    CongestionAvoidance,
}

/// A change of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathChange {
    /// It was opened.
    Opened,
    /// The peer answered over it (RFC 9000 §8.2).
    Validated,
    /// Nothing came back.
    ValidationFailed,
    /// It moved to other addresses (RFC 9000 §9).
    Migrated,
    /// It could not move, and is where it was.
    MigrationFailed,
    /// It does not answer any more.
    Silent,
    /// It answers again.
    Answering,
    /// The peer advises how to use it (RFC 10069 §3.3).
    Advised(Status),
    /// It was given up, with this code (RFC 10069 §3.4).
    Abandoned(u64),
}

/// A phase of Careful Resume (RFC 9959 §3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResumePhase {
    /// The path of the initial window is compared with the saved one.
    Reconnaissance,
    /// More is in flight than the controller alone permits.
    Unvalidated,
    /// All of that left, and its acknowledgement is awaited.
    Validating,
    /// Congestion was met: less is in flight until it is resolved.
    SafeRetreat,
    /// Normal congestion control.
    Normal,
}

/// The reason for a change of phase, by its name in draft-ietf-tsvwg-careful-resume-qlog where that has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResumeTrigger {
    /// An earlier connection's measurements were found.
    Remembered,
    /// There is more to send than the controller permits.
    WindowLimited,
    /// The last packet that may be in flight was sent.
    LastUnvalidatedSent,
    /// The first packet beyond the controller's window was acknowledged.
    FirstUnvalidatedAcknowledged,
    /// The last one was.
    LastUnvalidatedAcknowledged,
    /// More than a round trip has passed.
    RttExceeded,
    /// Too little was sent to learn from.
    RateLimited,
    /// The round-trip time is not the saved one.
    RttNotValidated,
    /// Packets were lost.
    PacketLoss,
    /// Packets were marked.
    EcnCe,
    /// The losses are resolved.
    ExitRecovery,
    /// The losses establish persistent congestion.
    PersistentCongestion,
    /// Other connections use what is remembered.
    InUse,
    /// The controller permits as much by itself.
    WindowReached,
    /// The saved measurements are too old.
    Stale,
}

/// The progress of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandshakeProgress {
    /// TLS is done (RFC 9001 §4.1.1).
    Complete,
    /// The peer is known to be done too (RFC 9001 §4.1.2).
    Confirmed,
}

/// Something worth watching.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum TraceEvent<'a> {
    /// The connection begins. The first event of a tracer that a [`TracerFactory`] made.
    Started(&'a Subject),
    /// An end declared its transport parameters; those of the peer are authenticated.
    ParametersSet {
        /// The end that declared them.
        side: Side,
        /// The parameters that it declared.
        parameters: &'a TransportParameters,
    },
    /// The handshake advanced.
    Handshake(HandshakeProgress),
    /// Keys of a level are there.
    KeysInstalled(Level),
    /// The 1-RTT keys were updated (RFC 9001 §6).
    KeysUpdated {
        /// The end that began.
        by: Side,
    },
    /// A frame was written into a packet.
    FrameSent {
        /// The path of the packet.
        path: PathId,
        /// The frame's name in RFC 9000 or RFC 10069.
        kind: &'static str,
        /// Its size.
        bytes: usize,
    },
    /// The policy placed data of a stream on a path.
    StreamPlaced {
        /// The path that the data is on.
        path: PathId,
        /// The stream's ID.
        stream: u64,
        /// Bytes of data.
        bytes: usize,
        /// The arrivals that the policy expected over either of two paths, if it had weighed two that could both send.
        expectation: Option<Expectation>,
    },
    /// A frame arrived.
    FrameReceived {
        /// The path of the packet.
        path: PathId,
        /// The frame's name.
        kind: &'static str,
    },
    /// A packet is about to be sealed and sent.
    PacketSent(TracedPacket<'a>),
    /// A packet arrived and authenticated; it may still be a duplicate.
    PacketReceived(TracedPacket<'a>),
    /// A packet was ignored.
    PacketDropped {
        /// The reason.
        reason: Dropped,
        /// Its size, coalesced packets after it included if it could not be told from them.
        bytes: usize,
    },
    /// A packet was declared lost.
    PacketLost {
        /// Its encryption level.
        level: Level,
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
    /// Something was acknowledged or lost: what is known of the path changed.
    MetricsUpdated {
        /// The path.
        path: PathId,
        /// The metrics.
        metrics: PathMetrics,
    },
    /// Careful Resume entered another phase on a path (RFC 9959).
    ResumeChanged {
        /// The path.
        path: PathId,
        /// The phase.
        phase: ResumePhase,
        /// The reason.
        trigger: ResumeTrigger,
        /// The congestion window in bytes, as it is then.
        window: usize,
    },
    /// Something became of a path.
    PathChanged {
        /// The path.
        path: PathId,
        /// The change.
        change: PathChange,
        /// Its local and remote address, unless it is gone.
        addresses: Option<(SocketAddr, SocketAddr)>,
    },
    /// The connection ended.
    Closed(&'a ConnectionError),
}

/// Told about every [`TraceEvent`] of one connection. It must not block.
pub trait Tracer: Send {
    /// Takes note of `event`.
    fn record(&mut self, now: Instant, event: &TraceEvent<'_>);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_never_shown() {
        // attacks.md F14: what a tracer prints of an event holds no data of the application.
        let packet = TracedPacket {
            level: Level::OneRtt,
            path: PathId(1),
            number: 7,
            bytes: 40,
            payload: Payload(b"secret"),
        };
        let shown = format!("{:?}", TraceEvent::PacketSent(packet));
        assert!(shown.contains("Payload(6 bytes)"), "{shown}");
        assert!(!shown.contains("115"), "{shown}");
    }
}
