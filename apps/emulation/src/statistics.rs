//! Counters of a link.

use std::ops::AddAssign;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::link::DropReason;
use crate::quantity::nanoseconds;

/// A number of packets and their bytes (sizes as handed in, without overhead).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    /// Counts one packet of `size` bytes.
    pub fn add(&mut self, size: usize) {
        *self += Self { packets: 1, bytes: size as u64 };
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// A distribution of times in a few numbers, quantiles to 0.1 % or a microsecond; all zero if nothing was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of recorded times.
    pub count: u64,
    /// The least.
    pub min: Duration,
    /// The mean.
    pub mean: Duration,
    /// Half of them were no larger.
    pub p50: Duration,
    /// 95 % of them were no larger.
    pub p95: Duration,
    /// 98 % of them were no larger.
    pub p98: Duration,
    /// 99 % of them were no larger.
    pub p99: Duration,
    /// The largest.
    pub max: Duration,
}

/// Times: the extremes and the sum as they are, and a histogram in microseconds.
#[derive(Clone, Debug)]
pub struct Times {
    histogram: Histogram<u64>,
    min: Duration,
    max: Duration,
    total: Duration,
}

/// Times above an hour count as an hour in the quantiles.
const LONGEST_MICROSECONDS: u64 = 3_600_000_000;

impl Default for Times {
    fn default() -> Self {
        Self::new()
    }
}

impl Times {
    /// Nothing recorded yet.
    pub fn new() -> Self {
        // It grows with the times that come: what is never recorded takes no memory.
        let histogram = Histogram::new(3).expect("a histogram offers three significant digits");
        Self { histogram, min: Duration::MAX, max: Duration::ZERO, total: Duration::ZERO }
    }

    /// Records `time`.
    pub fn record(&mut self, time: Duration) {
        let recorded = self.histogram.record((nanoseconds(time) / 1_000).min(LONGEST_MICROSECONDS));
        recorded.expect("it grows as far as to an hour");
        self.min = self.min.min(time);
        self.max = self.max.max(time);
        self.total = self.total.saturating_add(time);
    }

    /// Returns a summary of the recorded times, in a few numbers.
    pub fn summary(&self) -> Summary {
        let count = self.histogram.len();
        if count == 0 {
            return Summary::default();
        }
        let quantile = |quantile| {
            let time = Duration::from_micros(self.histogram.value_at_quantile(quantile));
            time.clamp(self.min, self.max)
        };
        Summary {
            count,
            min: self.min,
            mean: self.total.div_f64(count as f64),
            p50: quantile(0.5),
            p95: quantile(0.95),
            p98: quantile(0.98),
            p99: quantile(0.99),
            max: self.max,
        }
    }
}

/// The counters of a link. At any time
/// `entered + duplicated = left + dropped + held`, in packets and in bytes.
#[derive(Clone, Debug)]
pub struct LinkStatistics {
    /// Packets handed in, dropped ones included.
    pub entered: Count,
    /// Packets handed out, copies included.
    pub left: Count,
    /// Copies made.
    pub duplicated: Count,
    /// Packets handed out that the queue asked to be marked.
    pub congested: Count,
    /// The most packets in the queue at once, the one being sent included.
    pub most_queued_packets: usize,
    /// The most bytes in the queue at once, overhead included.
    pub most_queued_bytes: usize,
    dropped: [Count; DropReason::ALL.len()],
    delays: Times,
    queueing: Times,
}

impl LinkStatistics {
    pub(crate) fn new() -> Self {
        Self {
            entered: Count::default(),
            left: Count::default(),
            duplicated: Count::default(),
            congested: Count::default(),
            most_queued_packets: 0,
            most_queued_bytes: 0,
            dropped: [Count::default(); DropReason::ALL.len()],
            delays: Times::new(),
            queueing: Times::new(),
        }
    }

    /// Returns the count of packets that were dropped for `reason`.
    pub fn dropped(&self, reason: DropReason) -> Count {
        self.dropped[reason as usize]
    }

    /// Returns the count of packets that were dropped for any reason.
    pub fn dropped_in_all(&self) -> Count {
        let mut all = Count::default();
        self.dropped.iter().for_each(|count| all += *count);
        all
    }

    /// Returns the times for which the packets that left were held: queue, sleep, sending and delay.
    pub fn delays(&self) -> Summary {
        self.delays.summary()
    }

    /// Returns the length of the queue that each entering packet found, in time: until everything before it has been
    /// sent.
    pub fn queueing(&self) -> Summary {
        self.queueing.summary()
    }

    pub(crate) fn drop(&mut self, size: usize, reason: DropReason) {
        self.dropped[reason as usize].add(size);
    }

    pub(crate) fn leave(&mut self, size: usize, held_for: Duration) {
        self.left.add(size);
        self.delays.record(held_for);
    }

    pub(crate) fn queued(&mut self, packets: usize, bytes: usize, waits: Duration) {
        self.queueing.record(waits);
        self.most_queued_packets = self.most_queued_packets.max(packets);
        self.most_queued_bytes = self.most_queued_bytes.max(bytes);
    }
}
