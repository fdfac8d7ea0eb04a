//! Time as an argument: an instant is a number of nanoseconds since an epoch that the caller chose.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A point in time, in nanoseconds since the caller's epoch. Arithmetic saturates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The caller's epoch.
    pub const ZERO: Self = Self(0);
    /// Later than every instant that a caller can reach.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time since `earlier`, zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, rhs: Self) -> Duration {
        self.since(rhs)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// The reason for which a connection wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimerReason {
    /// An acknowledgement is due (RFC 9000 §13.2.1).
    AckDelay,
    /// A packet will count as lost by time (RFC 9002 §6.1.2).
    LossTime,
    /// A probe is due (RFC 9002 §6.2).
    ProbeTimeout,
    /// A path should have answered by then.
    Silence,
    /// The pacer lets the next packet go (RFC 9002 §7.7).
    Pacing,
    /// The connection was silent for too long (RFC 9000 §10.1).
    Idle,
    /// The handshake takes too long, or one waits for its turn to begin.
    Handshake,
    /// Another attempt at a connection is due (RFC 8305 §5).
    ConnectionAttempt,
    /// The closing or draining period ends (RFC 9000 §10.2).
    Closing,
    /// A path validation is retried or fails (RFC 9000 §8.2.4).
    PathValidation,
    /// It is looked at whether the peer is still to spare a narrow path.
    Relief,
    /// The state of an abandoned path is freed (RFC 10069 §3.4).
    PathAbandoned,
    /// Old keys are dropped (RFC 9001 §6.1).
    KeyDiscard,
    /// A keep-alive is due.
    KeepAlive,
    /// The scheduler asked to be asked again.
    Scheduler,
    /// Nothing was heard for a while: memory that only traffic needs is given up.
    Hibernation,
    /// Memory is short: it is looked at who holds data that nobody reads.
    MemoryPressure,
}

/// The earliest instant at which a component wants to be polled, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline {
    /// The instant.
    pub at: Instant,
    /// The reason.
    pub reason: TimerReason,
}

impl Deadline {
    /// A deadline at `at` for `reason`.
    pub fn new(at: Instant, reason: TimerReason) -> Self {
        Self { at, reason }
    }

    /// The earlier of two optional deadlines.
    pub fn earliest(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (a, b) => a.or(b),
        }
    }
}
