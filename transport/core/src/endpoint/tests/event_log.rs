//! An event log of both ends of a connection: the packets that they send, receive, lose and refuse, as their tracers
//! are told.

use crate::PathId;
use crate::connection::{Role, TransportConfig};
use crate::error::Dropped;
use crate::time::Instant;
use crate::trace::{Subject, TraceEvent, TracedPacket, Tracer};
use crate::wire::frame::{Frame, FrameReader};
use crate::wire::grease::QuicBit;
use crate::wire::header::{Incoming, ProtectedPacket, next_packet};
use crate::wire::level::Level;
use bytes::{Bytes, BytesMut};
use std::cell::RefCell;
use std::sync::{Arc, mpsc};

/// The length of the connection IDs of both endpoints, in bytes.
const ID: usize = 8;

/// A packet as one end saw it.
#[derive(Clone, Debug)]
pub(super) struct Packet {
    pub at: Instant,
    pub level: Level,
    pub path: PathId,
    pub number: u64,
    pub frames: Vec<Frame>,
}

impl Packet {
    pub(super) fn has(&self, wanted: impl Fn(&Frame) -> bool) -> bool {
        self.frames.iter().any(wanted)
    }

    pub(super) fn is_ack_eliciting(&self) -> bool {
        self.has(Frame::is_ack_eliciting)
    }

    fn new(at: Instant, packet: &TracedPacket<'_>) -> Self {
        let reader = FrameReader::new(Bytes::copy_from_slice(packet.payload.0));
        let frames =
            reader.map(|frame| frame.expect("it was written or read by this implementation")).collect();
        Self { at, level: packet.level, path: packet.path, number: packet.number, frames }
    }
}

/// An event of one end.
#[derive(Clone, Debug)]
pub(super) enum Note {
    Sent(Packet),
    Received(Packet),
    Lost(Level),
    Dropped(Dropped),
}

/// Notes of all connections that were told to write here, in the order of time.
pub(super) struct EventLog {
    pen: mpsc::Sender<(Role, Note)>,
    written: mpsc::Receiver<(Role, Note)>,
    read: RefCell<Vec<(Role, Note)>>,
}

impl EventLog {
    pub(super) fn new() -> Self {
        let (pen, written) = mpsc::channel();
        Self { pen, written, read: RefCell::default() }
    }

    /// `config` with connections that write here.
    pub(super) fn keep(&self, config: TransportConfig) -> TransportConfig {
        let pen = self.pen.clone();
        let tracer = Arc::new(move |subject: &Subject| {
            let writer: Box<dyn Tracer> = Box::new(Writer { pen: pen.clone(), role: subject.role });
            Some(writer)
        });
        TransportConfig { tracer: Some(tracer), ..config }
    }

    pub(super) fn notes(&self, of: Role) -> Vec<Note> {
        let mut read = self.read.borrow_mut();
        read.extend(self.written.try_iter());
        read.iter().filter(|(role, _)| *role == of).map(|(_, note)| note.clone()).collect()
    }

    pub(super) fn sent(&self, by: Role) -> Vec<Packet> {
        let sent = |note| if let Note::Sent(packet) = note { Some(packet) } else { None };
        self.notes(by).into_iter().filter_map(sent).collect()
    }

    pub(super) fn received(&self, by: Role) -> Vec<Packet> {
        let received = |note| if let Note::Received(packet) = note { Some(packet) } else { None };
        self.notes(by).into_iter().filter_map(received).collect()
    }

    /// Returns the number of packets of `level` that this end declared lost.
    pub(super) fn lost(&self, by: Role, level: Level) -> usize {
        self.notes(by).iter().filter(|note| matches!(note, Note::Lost(of) if *of == level)).count()
    }

    /// Returns the reasons for which this end ignored packets, one each.
    pub(super) fn dropped(&self, by: Role) -> Vec<Dropped> {
        let dropped = |note| if let Note::Dropped(reason) = note { Some(reason) } else { None };
        self.notes(by).into_iter().filter_map(dropped).collect()
    }
}

struct Writer {
    pen: mpsc::Sender<(Role, Note)>,
    role: Role,
}

impl Tracer for Writer {
    fn record(&mut self, now: Instant, event: &TraceEvent<'_>) {
        let note = match event {
            TraceEvent::PacketSent(packet) => Note::Sent(Packet::new(now, packet)),
            TraceEvent::PacketReceived(packet) => Note::Received(Packet::new(now, packet)),
            TraceEvent::PacketLost { level, .. } => Note::Lost(*level),
            TraceEvent::PacketDropped { reason, .. } => Note::Dropped(*reason),
            _ => return,
        };
        self.pen.send((self.role, note)).unwrap();
    }
}

/// Returns the parts of the packets in `datagram` that anybody can read.
pub(super) fn incoming(datagram: &[u8]) -> Vec<Incoming> {
    let mut rest = BytesMut::from(datagram);
    let mut packets = Vec::new();
    while !rest.is_empty()
        && let Ok(packet) = next_packet(&mut rest, ID, QuicBit::Free)
    {
        packets.push(packet);
    }
    packets
}

/// The packets with protection in `datagrams`.
pub(super) fn protected(datagrams: &[Vec<u8>]) -> Vec<ProtectedPacket> {
    let of = |packet| if let Incoming::Protected(packet) = packet { Some(packet) } else { None };
    datagrams.iter().flat_map(|datagram| incoming(datagram)).filter_map(of).collect()
}
