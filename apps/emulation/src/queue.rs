//! The drop-tail queue in front of the bottleneck.

use std::collections::VecDeque;
use std::time::Duration;

/// The limit of a queue, beyond which it drops arriving packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// A number of packets, the one being sent included.
    Packets(usize),
    /// A number of bytes, per-packet overhead and the packet being sent included.
    Bytes(usize),
    /// Everything, up to the memory guard of the link.
    Unlimited,
}

impl Default for QueueLimit {
    /// 800 packets (DChannel, NSDI 2023, §4.2.2).
    fn default() -> Self {
        Self::Packets(800)
    }
}

/// The queue at the bottleneck: the time at which each packet will have been sent, and its size.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    limit: QueueLimit,
    /// The threshold of congestion marks: packets that are queued beyond it are marked, if they are ECN-capable.
    mark_above: Option<QueueLimit>,
    waiting: VecDeque<(Duration, usize)>,
    bytes: usize,
    busy_until: Duration,
}

impl Queue {
    pub(crate) fn new(limit: QueueLimit, mark_above: Option<QueueLimit>) -> Self {
        Self { limit, mark_above, waiting: VecDeque::new(), bytes: 0, busy_until: Duration::ZERO }
    }

    /// Forgets the packets that have been sent by `now`.
    pub(crate) fn advance(&mut self, now: Duration) {
        while let Some((sent_at, size)) = self.waiting.front() {
            if *sent_at > now {
                break;
            }
            self.bytes -= size;
            self.waiting.pop_front();
        }
    }

    pub(crate) fn takes(&self, size: usize) -> bool {
        self.has_space(self.limit, size)
    }

    /// Returns true if a packet of `size` bytes finds so much queued that it is to be marked.
    pub(crate) fn marks(&self, size: usize) -> bool {
        self.mark_above.is_some_and(|threshold| !self.has_space(threshold, size))
    }

    fn has_space(&self, limit: QueueLimit, size: usize) -> bool {
        match limit {
            QueueLimit::Packets(most) => self.waiting.len() < most,
            QueueLimit::Bytes(most) => self.bytes.saturating_add(size) <= most,
            QueueLimit::Unlimited => true,
        }
    }

    pub(crate) fn push(&mut self, sent_at: Duration, size: usize) {
        self.busy_until = sent_at;
        self.bytes += size;
        self.waiting.push_back((sent_at, size));
    }

    /// Returns the time at which the last packet taken so far will have been sent.
    pub(crate) fn busy_until(&self) -> Duration {
        self.busy_until
    }

    pub(crate) fn packets(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
