//! What a steerer measures of its channels.

use std::time::Duration;

/// How often the agents at both ends measure (NSDI 2023, §3.5).
pub(super) const INTERVAL: Duration = Duration::from_millis(500);

/// One-way delays without queueing, as a handshake over both channels measures them (NSDI 2023, §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Of the channel with the high bandwidth.
    pub high_bandwidth: Duration,
    /// Of the channel with the low latency.
    pub low_latency: Duration,
}
