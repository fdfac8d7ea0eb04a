//! Probes of the datagram size: one datagram at a time, larger than the others (RFC 8899, RFC 9000 §14.3).

use crate::PathId;
use crate::connection::handshake::key_update::TrafficKeys;
use crate::connection::send::Sender;
use crate::connection::send::packet_builder::{DatagramPurpose, PacketBuilder};
use crate::connection::send::transmission_round::foremost;
use crate::connection::{Connection, FourTuple};
use crate::datagram::Asked;
use crate::datagram::Datagrams;
use crate::handshake::Handshake;
use crate::path::mtu::JUMBO;
use crate::path::path::Path;
use crate::path::paths::Paths;
use crate::time::Instant;
use crate::wire::frame::Frame;
use crate::wire::{connection_id, overhead};
use std::time::Duration;

/// The shortest time after which a probe is lost (RFC 8899 §5.1.1).
const LEAST_PATIENCE: Duration = Duration::from_secs(1);

/// The longest round-trip time of a path where datagrams larger than any network's are worth a probe.
const NEARBY: Duration = Duration::from_millis(3);

impl Sender<'_> {
    /// Sends the probe of every path that wants one and has room for it.
    pub(in crate::connection) fn probe_datagram_sizes(&mut self, now: Instant) {
        // RFC 9000 §14.3: nothing large before the handshake is confirmed.
        if !self.lifecycle.is_confirmed() || !self.wants_size_probe(now) {
            return;
        }
        for id in self.paths.ids() {
            if let Some(size) = self.wanted_size(id, now) {
                self.send_size_probe(id, size, now);
            }
        }
    }

    fn wanted_size(&mut self, id: PathId, now: Instant) -> Option<usize> {
        self.paths.remote_ids.current(id)?;
        let asked = self.sizes().asked_of(id);
        let path = self.paths.get_mut(id)?;
        if path.liveness.is_silent() || !path.route.validation.is_validated() {
            return None;
        }
        // One probe at a time adds little to what the window permits, and could wait for ever for room that datagrams
        // of the present size fill up (RFC 8899 §3: probes are limited in number instead).
        let largest = match path.rtt().min() {
            Some(rtt) if rtt <= NEARBY => usize::MAX,
            _ => JUMBO,
        };
        let most = largest.min(path.route.amplification.allowance());
        path.route.mtu.wanted(now, asked).filter(|size| *size <= most)
    }

    fn send_size_probe(&mut self, id: PathId, size: usize, now: Instant) {
        // Without a connection ID of the peer for the path it waits for one.
        let Some(start) = self.next_packet(id) else { return };
        let mut builder = PacketBuilder::new(id, size);
        builder.purpose = DatagramPurpose::SizeProbe;
        builder.start(&start);
        let bytes = builder.put(&Frame::Ping, None);
        self.observer.count_sent(id, Frame::Ping.kind(), bytes);
        builder.pad_to(size);
        if self.seal_packet_of(&mut builder, now).is_none() {
            return;
        }
        let overdue_at = now
            + (self.paths.longest_probe_timeout(self.peer.max_ack_delay(self.lifecycle)) * 3)
                .max(LEAST_PATIENCE);
        if let Some(path) = self.paths.get_mut(id) {
            path.route.mtu.on_probe_sent(start.number, size, overdue_at);
        }
        self.queue_datagrams(builder);
    }

    /// The sizes that packets may have.
    pub(in crate::connection) fn sizes(&self) -> DatagramSizes<'_> {
        DatagramSizes {
            keys: self.keys,
            handshake: self.handshake,
            paths: self.paths,
            datagrams: self.datagrams,
        }
    }
}

/// The sizes of packets and of the datagrams of the application in them.
pub(in crate::connection) struct DatagramSizes<'a> {
    pub keys: &'a TrafficKeys,
    pub handshake: &'a Handshake,
    pub paths: &'a Paths,
    pub datagrams: &'a Datagrams,
}

impl DatagramSizes<'_> {
    /// Returns the most bytes that a packet on path `id` has beside its frames.
    pub(in crate::connection) fn overhead(&self, id: PathId) -> usize {
        if !self.keys.are_installed() {
            return self.handshake.ids.overhead();
        }
        let destination = self.paths.remote_ids.current(id);
        overhead::short(destination.map_or(connection_id::MAX_LENGTH, |destination| destination.len()))
    }

    /// Returns the bytes of the largest datagram that can be sent if packets have the `size` of their path.
    pub fn largest_datagram(&self, size: impl Fn(&Path) -> usize) -> Option<usize> {
        let foremost = foremost(self.paths.open().map(Path::scheduling_state))?;
        let used = self.paths.open().filter(|path| path.scheduling_state() == foremost);
        let room = used.map(|path| size(path).saturating_sub(self.overhead(path.id))).max()?;
        self.datagrams.max_size(room)
    }

    /// Returns the sizes of packets on path `id` that the application has use for.
    pub fn asked_of(&self, id: PathId) -> Option<Asked> {
        let asked = self.datagrams.asked()?;
        let around = self.overhead(id);
        let packet = |frame: usize| frame.saturating_add(around);
        Some(Asked { most: packet(asked.most), latest: packet(asked.latest) })
    }
}

impl Connection {
    /// The system refuses to send datagrams of `size` bytes over `tuple`: its routes use smaller ones from now on.
    /// Returns true if there is such a route.
    pub fn on_refused(&mut self, tuple: FourTuple, size: usize, now: Instant) -> bool {
        let mut concerned = false;
        for id in self.paths.ids() {
            let Some(path) = self.paths.get_mut(id).filter(|path| path.route.tuple == tuple) else {
                continue;
            };
            concerned = true;
            if path.route.mtu.on_refused(size, now) {
                path.route.follow_mtu(now);
            }
        }
        concerned
    }

    /// Announces datagrams of up to `bytes`: paths that are not known to carry them are probed for larger sizes at once,
    /// as soon as the handshake is confirmed. Without that, the first one that is refused has the same effect.
    pub fn expect_datagrams(&mut self, bytes: usize) {
        self.datagrams.expect(bytes);
    }

    /// Returns the bytes of the largest datagram that can be sent now, `None` if the peer accepts none. It is that of the
    /// widest path among those that are to be used, and rises and falls with what they carry.
    pub fn max_datagram_size(&self) -> Option<usize> {
        sizes(self).largest_datagram(|path| path.route.datagram_size)
    }

    /// Returns the bytes of the largest datagram that can be sent once the sizes that are being tried have been carried;
    /// what [`Self::max_datagram_size`] returns when none are.
    pub fn later_max_datagram_size(&self) -> Option<usize> {
        sizes(self).largest_datagram(|path| path.route.mtu.reach(sizes(self).asked_of(path.id)))
    }
}

/// The sizes that packets of a connection may have.
fn sizes(of: &Connection) -> DatagramSizes<'_> {
    DatagramSizes { keys: &of.keys, handshake: &of.handshake, paths: &of.paths, datagrams: &of.datagrams }
}
