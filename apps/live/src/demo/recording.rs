//! A tracer that notes when bytes of which kind leave on which path.

use super::results::{BUCKET_MS, Group};
use hvq::PathId;
use hvq::stats::FrameCounter;
use hvq::trace::{TraceEvent, Tracer};
use hvq::transport::time::Instant as TransportInstant;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A load that takes longer than this many buckets is not drawn to its end.
const MOST_BUCKETS: usize = 3_000;

/// Bytes over time for each path, as one end of a connection sent them.
#[derive(Clone, Debug)]
pub(super) struct Recording {
    start: Instant,
    paths: Arc<Mutex<HashMap<PathId, PathRecording>>>,
}

#[derive(Clone, Debug, Default)]
struct PathRecording {
    buckets: Vec<[u64; Group::COUNT]>,
    /// Bytes of frames whose packet was not sealed yet.
    open: u64,
}

impl Recording {
    /// Nothing recorded; buckets count from `start`.
    pub(super) fn new(start: Instant) -> Self {
        Self { start, paths: Arc::default() }
    }

    /// Records what `connection` sends from here on, and, as if it were sent now, what it sent so far.
    pub(super) fn attach(&self, connection: &hvq::Connection) {
        let stats = connection.stats();
        self.note(&stats.frames);
        for path in &stats.paths {
            // What no frame accounts for by now are the packets of the handshake and their padding.
            let framed: u64 =
                stats.frames.iter().filter(|frame| frame.path == path.id).map(|frame| frame.sent_bytes).sum();
            self.add(path.id, Group::Handshake, path.counters.bytes_sent.saturating_sub(framed));
        }
        connection.set_tracer(Box::new(self.clone()));
    }

    /// The buckets of `path`.
    pub(super) fn buckets(&self, path: PathId) -> Vec<[u64; Group::COUNT]> {
        self.lock().get(&path).map(|path| path.buckets.clone()).unwrap_or_default()
    }

    fn note(&self, frames: &[FrameCounter]) {
        for frame in frames {
            self.add(frame.path, Group::of(frame.kind), frame.sent_bytes);
        }
    }

    fn add(&self, path: PathId, group: Group, bytes: u64) {
        let index = (self.start.elapsed().as_millis() / u128::from(BUCKET_MS)) as usize;
        if index >= MOST_BUCKETS {
            return;
        }
        let mut paths = self.lock();
        let buckets = &mut paths.entry(path).or_default().buckets;
        if buckets.len() <= index {
            buckets.resize(index + 1, [0; Group::COUNT]);
        }
        buckets[index][group as usize] += bytes;
    }

    /// A frame goes into the packet that is open on `path`.
    fn open(&self, path: PathId, bytes: u64) {
        self.lock().entry(path).or_default().open += bytes;
    }

    /// A packet of `bytes` is sealed on `path`; what no frame accounts for is overhead.
    fn seal(&self, path: PathId, bytes: u64) {
        let framed = std::mem::take(&mut self.lock().entry(path).or_default().open);
        self.add(path, Group::Overhead, bytes.saturating_sub(framed));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PathId, PathRecording>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tracer for Recording {
    fn record(&mut self, _now: TransportInstant, event: &TraceEvent<'_>) {
        match *event {
            TraceEvent::FrameSent { path, kind, bytes } => {
                self.open(path, bytes as u64);
                self.add(path, Group::of(kind), bytes as u64);
            }
            TraceEvent::PacketSent(packet) => self.seal(packet.path, packet.bytes as u64),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hvq::trace::{Payload, TracedPacket};
    use hvq::transport::crypto::keys::Level;
    use hvq::transport::time::Instant as TransportInstant;

    #[test]
    fn bytes_are_noted_by_path_and_group_and_the_rest_of_a_packet_is_overhead() {
        let mut recording = Recording::new(Instant::now());
        let now = TransportInstant::default();
        let (path, bytes) = (PathId(1), 1000);
        recording.record(now, &TraceEvent::FrameSent { path, kind: "stream", bytes });
        recording.record(now, &TraceEvent::FrameSent { path, kind: "path_ack", bytes: 50 });
        let packet = |number, bytes| {
            let (level, payload) = (Level::OneRtt, Payload(&[]));
            TraceEvent::PacketSent(TracedPacket { level, path, number, bytes, payload })
        };
        recording.record(now, &packet(0, 1090));
        recording.record(now, &packet(1, 30));
        let mut sum = [0; Group::COUNT];
        for bucket in recording.buckets(path) {
            sum.iter_mut().zip(bucket).for_each(|(sum, bytes)| *sum += bytes);
        }
        assert_eq!(sum, [1000, 50, 0, 0, 0, 70]);
        assert!(recording.buckets(PathId(0)).is_empty());
    }
}
