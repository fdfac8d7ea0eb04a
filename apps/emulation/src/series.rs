//! Bytes over time, for plots.

use std::time::Duration;

/// The maximum number of buckets: at 100 ms each this is 29 hours; later bytes go into the last one.
const MOST_BUCKETS: usize = 1 << 20;

/// The bytes of one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// Bytes handed in, dropped ones included.
    pub entered: u64,
    /// Bytes handed out.
    pub left: u64,
    /// Bytes dropped.
    pub dropped: u64,
}

/// Bytes in, out and dropped for each stretch of time since the start of the channel.
#[derive(Clone, Debug)]
pub struct Series {
    width: Duration,
    buckets: Vec<Bucket>,
}

impl Series {
    pub(crate) fn new(width: Duration) -> Self {
        Self { width: width.max(Duration::from_micros(1)), buckets: Vec::new() }
    }

    /// Returns the length of each bucket.
    pub fn width(&self) -> Duration {
        self.width
    }

    /// The buckets, without a gap, from the start to the last event.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    pub(crate) fn at(&mut self, now: Duration) -> &mut Bucket {
        let index = now.as_nanos() / self.width.as_nanos();
        let index = usize::try_from(index).unwrap_or(usize::MAX).min(MOST_BUCKETS - 1);
        if index >= self.buckets.len() {
            self.buckets.resize(index + 1, Bucket::default());
        }
        &mut self.buckets[index]
    }
}
