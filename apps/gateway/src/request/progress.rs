//! The progress of a request's body, for those who wait for the response.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The reason for which a request's body cannot go on. It is the client's doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    /// The client gave up.
    Aborted,
    /// It is longer or shorter than it said (RFC 9114 §4.1.2).
    Mismatch,
    /// It is longer than the limit.
    TooLarge,
    /// The client paused for too long.
    TimedOut,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aborted => "the client gave up",
            Self::Mismatch => "the body has another length than it said",
            Self::TooLarge => "the body is too large",
            Self::TimedOut => "the client paused for too long",
        })
    }
}

impl std::error::Error for Trouble {}

/// The progress of a request's body.
#[derive(Debug)]
pub(crate) struct Progress {
    start: Instant,
    /// The time of the latest progress, in microseconds from the start.
    last: AtomicU64,
    /// Bytes that went to the origin.
    bytes: AtomicU64,
    trouble: OnceLock<Trouble>,
}

impl Default for Progress {
    fn default() -> Self {
        let (last, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { start: Instant::now(), last, bytes, trouble: OnceLock::new() }
    }
}

impl Progress {
    /// Notes that `bytes` went on.
    pub(super) fn moved(&self, bytes: usize) {
        let now = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// It cannot go on.
    pub(super) fn fail(&self, trouble: Trouble) {
        // The first cause counts.
        let _later = self.trouble.set(trouble);
    }

    /// Returns the reason for which it cannot go on, if there is one.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        self.trouble.get().copied()
    }

    /// Bytes that went on.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Waits until nothing has moved for `patience`.
    pub(super) async fn still(&self, patience: Duration) {
        loop {
            let until = self.start + Duration::from_micros(self.last.load(Ordering::Relaxed)) + patience;
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }
}
