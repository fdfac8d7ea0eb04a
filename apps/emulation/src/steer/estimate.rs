//! A steerer's measurements of its channels.

use std::time::Duration;

/// The interval at which the agents at both ends measure (NSDI 2023, §3.5).
pub(super) const INTERVAL: Duration = Duration::from_millis(500);

/// One-way delays without queueing, as a handshake over both channels measures them (NSDI 2023, §3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The delay of the channel with the high bandwidth.
    pub high_bandwidth: Duration,
    /// The delay of the channel with the low latency.
    pub low_latency: Duration,
}
