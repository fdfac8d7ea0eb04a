//! Counters of the bytes of several streams, for protocols that limit groups of streams (sessions of WebTransport).

use crate::wire::stream_id::StreamId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of bytes on the streams that it was attached to. Clones count together.
///
/// The counts are those of flow control (RFC 9000 §4.5): of a stream that was reset its final size, whoever gave it up.
#[derive(Clone, Debug, Default)]
pub struct StreamMeter(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    passed: AtomicU64,
    consumed: AtomicU64,
}

impl StreamMeter {
    /// Bytes that were sent for the first time, or received up to the highest offset.
    pub fn passed(&self) -> u64 {
        self.0.passed.load(Ordering::Relaxed)
    }

    /// Bytes received that were read or discarded.
    pub fn consumed(&self) -> u64 {
        self.0.consumed.load(Ordering::Relaxed)
    }

    /// Returns true if no stream is counted any more, and there is no clone.
    pub fn is_detached(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Counts a stream that ended before the meter could be attached to it: `bytes` of it were received, and taken from the transport.
    pub fn add_whole(&self, bytes: u64) {
        self.pass(bytes);
        self.consume(bytes);
    }

    fn pass(&self, bytes: u64) {
        self.0.passed.fetch_add(bytes, Ordering::Relaxed);
    }

    fn consume(&self, bytes: u64) {
        self.0.consumed.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The half of a stream that a meter is attached to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum MeteredHalf {
    /// The receiving half.
    Receive,
    /// The sending half.
    Send,
}

/// A meter at a half of a stream.
#[derive(Debug)]
struct Attached {
    meter: StreamMeter,
    /// Bytes of the header that did not pass yet, and that are not counted.
    header: u64,
}

/// The bytes of a half of a stream up to now.
#[derive(Clone, Copy, Debug)]
pub(super) struct HalfProgress {
    /// Those that were sent, or arrived.
    pub(super) passed: u64,
    /// Those that the application has read.
    pub(super) consumed: u64,
}

/// The meters of a connection's streams, which most connections have none of.
#[derive(Debug, Default)]
pub(super) struct Meters(Option<Box<Table>>);

type Table = BTreeMap<(StreamId, MeteredHalf), Attached>;

impl Meters {
    /// Attaches `meter` to a half of which `so_far` has passed; the first `header` bytes do not count.
    pub(super) fn attach(
        &mut self,
        of: (StreamId, MeteredHalf),
        meter: &StreamMeter,
        header: u64,
        so_far: HalfProgress,
    ) {
        let HalfProgress { passed, consumed } = so_far;
        meter.pass(passed.saturating_sub(header));
        meter.consume(consumed.saturating_sub(header));
        let header = header.saturating_sub(passed);
        self.0.get_or_insert_default().insert(of, Attached { meter: meter.clone(), header });
    }

    #[inline]
    pub(super) fn on_received(&mut self, id: StreamId, bytes: u64) {
        self.on_passed((id, MeteredHalf::Receive), bytes);
    }

    #[inline]
    pub(super) fn on_sent(&mut self, id: StreamId, bytes: u64) {
        self.on_passed((id, MeteredHalf::Send), bytes);
    }

    fn on_passed(&mut self, of: (StreamId, MeteredHalf), bytes: u64) {
        if let Some(table) = &mut self.0
            && let Some(Attached { meter, header }) = table.get_mut(&of)
        {
            let skipped = bytes.min(*header);
            *header -= skipped;
            meter.pass(bytes - skipped);
        }
    }

    #[inline]
    pub(super) fn on_consumed(&self, id: StreamId, bytes: u64) {
        if let Some(table) = &self.0
            && let Some(Attached { meter, .. }) = table.get(&(id, MeteredHalf::Receive))
        {
            meter.consume(bytes);
        }
    }

    /// The stream is gone.
    pub(super) fn detach(&mut self, id: StreamId) {
        if let Some(table) = &mut self.0 {
            table.remove(&(id, MeteredHalf::Receive));
            table.remove(&(id, MeteredHalf::Send));
        }
    }
}
