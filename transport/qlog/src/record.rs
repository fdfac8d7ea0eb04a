//! Events as they wait in the queue, and the tracer that puts them there.

use crate::writer::{Message, Shared};
use hvq_transport::PathId;
use hvq_transport::connection::Role;
use hvq_transport::crypto::keys::Level;
use hvq_transport::error::{ConnectionError, Dropped};
use hvq_transport::time::Instant;
use hvq_transport::trace::{
    HandshakeProgress, PathChange, PathMetrics, ResumePhase, ResumeTrigger, Side, Subject, TraceEvent,
    TracedPacket, Tracer,
};
use hvq_transport::wire::transport_parameters::TransportParameters;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime};

/// Bytes that a record takes beside its payload, roughly.
const RECORD_BYTES: usize = 192;
/// Events of a connection without a file that are kept at most.
const MOST_HELD: usize = 128;

/// An event that borrows nothing.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Record {
    Started(Subject),
    Parameters { side: Side, parameters: Box<TransportParameters> },
    Handshake(HandshakeProgress),
    KeysInstalled(Level),
    KeysUpdated(Side),
    Sent(Packet),
    Received(Packet),
    Ignored { reason: Dropped, bytes: usize },
    Lost { level: Level, path: PathId, number: u64, bytes: usize },
    Rtt { sent_on: PathId, acknowledged_over: PathId, rtt: Duration },
    Metrics { path: PathId, metrics: PathMetrics },
    Resume { path: PathId, phase: ResumePhase, trigger: ResumeTrigger, window: usize },
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
            TraceEvent::ResumeChanged { path, phase, trigger, window } => {
                Self::Resume { path: *path, phase: *phase, trigger: *trigger, window: *window }
            }
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

/// Copies what one connection does into the queue. Nothing of a server's connection gets there before its handshake is
/// complete: those who send Initial packets make no files.
pub(crate) struct LogTracer {
    stage: Stage,
    sender: Sender<Message>,
    shared: Arc<Shared>,
    dropped: u64,
}

/// The stage of a log: before, with or without its file.
enum Stage {
    /// Not yet: its client did not authenticate. The events so far wait, and count against the queue.
    Held(Held),
    /// There is, with this number. The flag is cleared by the writer when it takes no more.
    Open(usize, Arc<AtomicBool>),
    /// There never will be.
    None,
}

/// The records of the time before there was a file.
struct Held {
    subject: Subject,
    wall: SystemTime,
    records: Vec<(Instant, Record)>,
}

impl LogTracer {
    /// A tracer for `subject`.
    pub(crate) fn new(subject: Subject, sender: Sender<Message>, shared: Arc<Shared>) -> Self {
        let held = Held { subject, wall: SystemTime::now(), records: Vec::new() };
        let mut tracer = Self { stage: Stage::Held(held), sender, shared, dropped: 0 };
        if subject.role == Role::Client {
            tracer.open();
        }
        tracer
    }

    /// Asks for a file, for what was held and what follows.
    fn open(&mut self) {
        let Stage::Held(held) = &mut self.stage else { return };
        let records = std::mem::take(&mut held.records);
        let (subject, wall) = (held.subject, held.wall);
        self.stage = Stage::None;
        let Some(file) = self.shared.number() else {
            self.give_up(&records);
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let open = Arc::new(AtomicBool::new(true));
        // If the writer is gone, so is everybody who could want to know.
        let _gone = self.sender.send(Message::Open { file, subject, wall, open: open.clone() });
        for (at, record) in records {
            let size = record.size();
            self.send(Message::Record { file, at, record, size }, size);
        }
        self.stage = Stage::Open(file, open);
    }

    /// Hands on what counts `size` bytes against the queue already.
    fn send(&self, message: Message, size: usize) {
        if self.sender.send(message).is_err() {
            self.shared.queued.fetch_sub(size, Ordering::Relaxed);
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// These records are not written: they wait no more.
    fn give_up(&self, records: &[(Instant, Record)]) {
        let held = records.iter().map(|(_, record)| record.size()).sum();
        self.shared.queued.fetch_sub(held, Ordering::Relaxed);
    }

    /// Returns true if another event can wait.
    fn has_room(&self) -> bool {
        let is_open = match &self.stage {
            Stage::Held(held) => held.records.len() < MOST_HELD,
            Stage::Open(_, open) => open.load(Ordering::Relaxed),
            Stage::None => false,
        };
        is_open && self.shared.queued.load(Ordering::Relaxed) <= self.shared.options.queue_bytes
    }
}

impl Tracer for LogTracer {
    fn record(&mut self, now: Instant, event: &TraceEvent<'_>) {
        if is_left_out(event) {
            return;
        }
        if *event == TraceEvent::Handshake(HandshakeProgress::Complete) {
            self.open();
        }
        if !self.has_room() {
            self.dropped += 1;
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let Some(record) = Record::of(event) else { return };
        let size = record.size();
        self.shared.queued.fetch_add(size, Ordering::Relaxed);
        match &mut self.stage {
            Stage::Held(held) => held.records.push((now, record)),
            Stage::Open(file, _) => {
                let file = *file;
                self.send(Message::Record { file, at: now, record, size }, size);
            }
            Stage::None => {}
        }
    }
}

/// Returns true if files say nothing of `event` beside the packet that it belongs to.
fn is_left_out(event: &TraceEvent<'_>) -> bool {
    use TraceEvent::{FrameReceived, FrameSent, StreamPlaced};
    matches!(event, FrameSent { .. } | FrameReceived { .. } | StreamPlaced { .. })
}

impl Drop for LogTracer {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.stage, Stage::None) {
            Stage::Open(file, _) => {
                let _gone = self.sender.send(Message::Close { file, dropped: self.dropped });
            }
            Stage::Held(held) => self.give_up(&held.records),
            Stage::None => {}
        }
    }
}
