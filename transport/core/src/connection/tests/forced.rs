//! Hostile peers of tests: what a connection says that it never would by itself, and what it keeps.

use crate::PathId;
use crate::connection::send::packet_builder::{Elicits, PacketBuilder, PacketForm};
use crate::connection::{Connection, FourTuple, Transmit};
use crate::path::dscp::Dscp;
use crate::path::route::MINIMUM_DATAGRAM;
use crate::recovery::ecn::Ecn;
use crate::time::{Deadline, Instant};
use crate::wire::frame::Frame;
use crate::wire::header::{LongHeader, LongKind, ShortHeader, patch_length};
use crate::wire::level::Level;
use crate::wire::overhead::TAG;

impl Connection {
    /// The largest packet number that arrived on path `id`: an acknowledgement of it alone is genuine.
    pub(crate) fn largest_received(&self, id: PathId) -> u64 {
        self.paths.get(id).and_then(|path| path.received.largest()).unwrap_or_default()
    }

    /// Sends a 1-RTT packet with `frames`, whatever they are, on path `id`.
    pub(crate) fn force_on(&mut self, id: PathId, frames: &[Frame], now: Instant) {
        let mut payload = Vec::new();
        frames.iter().for_each(|frame| frame.put(&mut payload));
        self.force_payload(id, &payload, now);
    }

    /// Sends a 1-RTT packet with this payload, whatever it is, on path `id`.
    pub(crate) fn force_payload(&mut self, id: PathId, payload: &[u8], now: Instant) {
        let start = self.sender().next_packet(id).expect("the path can be used");
        let mut builder = PacketBuilder::new(id, MINIMUM_DATAGRAM);
        builder.start(&start);
        builder.bytes.extend_from_slice(payload);
        builder.open.as_mut().expect("it was just started").elicits = Elicits::Acknowledgement;
        self.sender().seal_packet_of(&mut builder, now).expect("there is something in it");
        self.sender().queue_datagrams(builder);
    }

    /// Sends a packet of the handshake's `level` with this payload, in a datagram of 1200 bytes or more.
    pub(crate) fn force_handshake(&mut self, level: Level, payload: &[u8]) {
        self.force_long(level, payload, 0);
    }

    /// Sends a packet of the handshake's `level` with this payload, padded unless it is empty, and `bits` of its first byte
    /// set.
    pub(crate) fn force_long(&mut self, level: Level, payload: &[u8], bits: u8) {
        let version = self.handshake.version();
        let kind = if level == Level::Initial { LongKind::Initial } else { LongKind::Handshake };
        let (destination, source) = (self.handshake.ids.remote(), self.handshake.ids.local);
        let space = self.handshake.space(level).expect("the level is in use");
        let number = space.sent.next_number(self.rng.get());
        let header = LongHeader { kind, version, destination, source, token: &[] };
        let mut bytes = Vec::new();
        let layout = header.put(&mut bytes, number, 4);
        bytes.extend_from_slice(payload);
        if !payload.is_empty() {
            bytes.resize(bytes.len().max(MINIMUM_DATAGRAM - TAG), 0);
        }
        patch_length(&mut bytes, &layout, 0, TAG);
        bytes[0] |= bits;
        let key = space.sealer().expect("the level has keys");
        key.seal(&mut bytes, 0, &layout, PathId::ZERO, number);
        self.force_bytes(bytes);
    }

    /// Sends a 1-RTT packet with this payload and no padding on path 0, with `bits` of its first byte set. It is not in the
    /// books of the path.
    pub(crate) fn force_short(&mut self, payload: &[u8], bits: u8) {
        let start = self.sender().next_packet(PathId::ZERO).expect("the path can be used");
        let PacketForm::OneRtt { phase, spin } = start.form else { panic!("there are 1-RTT keys") };
        let header = ShortHeader { destination: start.destination, key_phase: phase, spin };
        let mut bytes = Vec::new();
        let layout = header.put(&mut bytes, start.number, 4);
        bytes.extend_from_slice(payload);
        bytes[0] |= bits;
        let keys = self.keys.current_mut().expect("there are 1-RTT keys");
        keys.seal(&mut bytes, 0, &layout, PathId::ZERO, start.number);
        self.force_bytes(bytes);
    }

    /// Sends a datagram over the addresses of the handshake.
    fn force_bytes(&mut self, bytes: Vec<u8>) {
        let FourTuple { local, remote } = self.paths.handshake_tuple();
        let (ecn, dscp) = (Ecn::NotEct, Dscp::default());
        self.queue.push(Transmit { local, remote, ecn, dscp, bytes, segment: None });
    }

    /// A client takes the next path into use without a challenge.
    pub(crate) fn force_open(&mut self, tuple: FourTuple, now: Instant) -> PathId {
        let id = self.path_maintenance().start_path(tuple, now).expect("the limits permit it");
        let path = self.paths.get_mut(id).expect("it was just opened");
        path.route.validation.presume();
        path.open_with(0);
        id
    }

    /// Returns the data of the challenges on path `id` that are not answered.
    pub(crate) fn challenges(&self, id: PathId) -> Vec<[u8; 8]> {
        self.paths.get(id).map(|path| path.route.validation.unanswered()).unwrap_or_default()
    }

    /// The state that is kept about paths and connection IDs, in words.
    pub(crate) fn bookkeeping(&self) -> String {
        let paths = &self.paths;
        let shared = (&paths.local_ids, &paths.remote_ids, &paths.limits);
        format!(
            "{shared:?} {:?} {:?} {:?} {:?}",
            paths.status,
            paths.early_hints,
            paths.lifecycles,
            self.path_ids()
        )
    }

    /// Returns the hints about the channel of path `id` that hold for this end, if it is open.
    pub(crate) fn known_hints(&self, id: PathId) -> Option<hvq_scheduler::Hints> {
        self.paths.get(id).map(|path| path.hints)
    }

    /// Returns the number of connection IDs of this endpoint that are recognized.
    pub(crate) fn recognized_ids(&self) -> usize {
        self.paths.local_ids.all().count()
    }

    /// Returns the time at which the connection wants to be polled next.
    pub(crate) fn next_deadline(&self, now: Instant) -> Option<Deadline> {
        crate::connection::timeout::deadline(self, now)
    }

    /// Three probe timeouts of the slowest path: how long an abandoned path is kept (RFC 10069 §3.4).
    pub(crate) fn abandonment(&self) -> std::time::Duration {
        self.paths.longest_probe_timeout(self.peer.max_ack_delay(self.lifecycle)) * 3
    }
}
