//! Events as they wait in the queue, and the tracer that puts them there.

use crate::writer::{Message, Shared};
use hvq_transport::PathId;
use hvq_transport::crypto::keys::Level;
use hvq_transport::error::{ConnectionError, Dropped};
use hvq_transport::time::Instant;
use hvq_transport::trace::{
    PathChange, PathMetrics, Progress, Side, Subject, TraceEvent, TracedPacket, Tracer,
};
use hvq_transport::wire::transport_parameters::TransportParameters;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime};

/// Bytes that a record takes beside its payload, roughly.
const RECORD_BYTES: usize = 192;

/// An event that borrows nothing.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Record {
    Started(Subject),
    Parameters { side: Side, parameters: Box<TransportParameters> },
    Handshake(Progress),
    KeysInstalled(Level),
    KeysUpdated(Side),
    Sent(Packet),
    Received(Packet),
    Ignored { reason: Dropped, bytes: usize },
    Lost { level: Level, path: PathId, number: u64, bytes: usize },
    Rtt { sent_on: PathId, acknowledged_over: PathId, rtt: Duration },
    Metrics { path: PathId, metrics: PathMetrics },
    Path { path: PathId, change: PathChange, addresses: Option<(SocketAddr, SocketAddr)> },
    Closed(ConnectionError),
}

/// A packet whose frames are not taken apart yet: that is work for the writer.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) level: Level,
    pub(crate) path: PathId,
    pub(crate) number: u64,
    pub(crate) bytes: usize,
    pub(crate) payload: Vec<u8>,
}

impl std::fmt::Debug for Packet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packet({:?} {} {})", self.level, self.path, self.number)
    }
}

impl From<&TracedPacket<'_>> for Packet {
    fn from(packet: &TracedPacket<'_>) -> Self {
        let TracedPacket { level, path, number, bytes, payload } = *packet;
        Self { level, path, number, bytes, payload: payload.0.to_vec() }
    }
}

impl Record {
    /// The record of `event`, `None` if files say it in another way.
    fn of(event: &TraceEvent<'_>) -> Option<Self> {
        Some(match event {
            TraceEvent::Started(subject) => Self::Started(**subject),
            TraceEvent::ParametersSet { side, parameters } => {
                Self::Parameters { side: *side, parameters: Box::new((*parameters).clone()) }
            }
            TraceEvent::Handshake(progress) => Self::Handshake(*progress),
            TraceEvent::KeysInstalled(level) => Self::KeysInstalled(*level),
            TraceEvent::KeysUpdated { by } => Self::KeysUpdated(*by),
            // Frames are in the payload of their packet, and qlog has no event for what was expected.
            TraceEvent::FrameSent { .. }
            | TraceEvent::FrameReceived { .. }
            | TraceEvent::StreamPlaced { .. } => return None,
            TraceEvent::PacketSent(packet) => Self::Sent(packet.into()),
            TraceEvent::PacketReceived(packet) => Self::Received(packet.into()),
            TraceEvent::PacketDropped { reason, bytes } => Self::Ignored { reason: *reason, bytes: *bytes },
            TraceEvent::PacketLost { level, path, number, bytes } => {
                Self::Lost { level: *level, path: *path, number: *number, bytes: *bytes }
            }
            TraceEvent::RttSampled { sent_on, acknowledged_over, rtt } => {
                Self::Rtt { sent_on: *sent_on, acknowledged_over: *acknowledged_over, rtt: *rtt }
            }
            TraceEvent::MetricsUpdated { path, metrics } => Self::Metrics { path: *path, metrics: *metrics },
            TraceEvent::PathChanged { path, change, addresses } => {
                Self::Path { path: *path, change: *change, addresses: *addresses }
            }
            TraceEvent::Closed(error) => Self::Closed((*error).clone()),
        })
    }

    /// Bytes that it takes while it waits.
    pub(crate) fn size(&self) -> usize {
        RECORD_BYTES
            + match self {
                Self::Sent(packet) | Self::Received(packet) => packet.payload.len(),
                Self::Parameters { .. } => size_of::<TransportParameters>(),
                _ => 0,
            }
    }
}

/// Copies what one connection does into the queue.
pub(crate) struct LogTracer {
    file: usize,
    sender: Sender<Message>,
    shared: Arc<Shared>,
    /// Cleared by the writer when the file takes no more.
    open: Arc<AtomicBool>,
    dropped: u64,
}

impl LogTracer {
    /// A tracer for `subject` that writes to file number `file`.
    pub(crate) fn new(file: usize, subject: Subject, sender: Sender<Message>, shared: Arc<Shared>) -> Self {
        let open = Arc::new(AtomicBool::new(true));
        // If the writer is gone, so is everybody who could want to know.
        let _gone = sender.send(Message::Open { file, subject, wall: SystemTime::now(), open: open.clone() });
        Self { file, sender, shared, open, dropped: 0 }
    }
}

impl Tracer for LogTracer {
    fn record(&mut self, now: Instant, event: &TraceEvent<'_>) {
        if is_left_out(event) {
            return;
        }
        let is_full = self.shared.queued.load(Ordering::Relaxed) > self.shared.options.queue_bytes;
        if is_full || !self.open.load(Ordering::Relaxed) {
            self.dropped += 1;
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let Some(record) = Record::of(event) else { return };
        let size = record.size();
        self.shared.queued.fetch_add(size, Ordering::Relaxed);
        if self.sender.send(Message::Record { file: self.file, at: now, record, size }).is_err() {
            self.shared.queued.fetch_sub(size, Ordering::Relaxed);
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Whether files say nothing of `event` beside the packet that it belongs to.
fn is_left_out(event: &TraceEvent<'_>) -> bool {
    use TraceEvent::{FrameReceived, FrameSent, StreamPlaced};
    matches!(event, FrameSent { .. } | FrameReceived { .. } | StreamPlaced { .. })
}

impl Drop for LogTracer {
    fn drop(&mut self) {
        let _gone = self.sender.send(Message::Close { file: self.file, dropped: self.dropped });
    }
}
