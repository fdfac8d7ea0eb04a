//! The true gain of a packet on the low-latency channel, which only the emulator knows.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Branch, Flow};

/// The times at which a packet would arrive over either channel, with the queues and delays of the moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrivals {
    pub(super) high_bandwidth: Duration,
    pub(super) low_latency: Duration,
}

/// Compares the reward that a policy expects for each packet with what it is (NSDI 2023, Fig. 11).
#[derive(Debug, Default)]
pub(super) struct Foresight {
    /// The time at which everything of each flow so far is there.
    completion: BTreeMap<Flow, Duration>,
    errors: Vec<f64>,
}

impl Foresight {
    /// A packet of `flow` takes `branch`, by a policy that expects `reward` seconds.
    pub(super) fn note(&mut self, flow: Flow, arrivals: Arrivals, branch: Branch, reward: f64) {
        let completion = self.completion.entry(flow).or_default();
        let low_latency = arrivals.low_latency.max(*completion);
        let real = arrivals.high_bandwidth.as_secs_f64() - low_latency.as_secs_f64();
        self.errors.push((real - reward) * 1e3);
        *completion = match branch {
            Branch::HighBandwidth => arrivals.high_bandwidth.max(*completion),
            Branch::LowLatency => low_latency,
        };
    }

    /// The real reward of each packet less the expected one, in milliseconds.
    pub(super) fn errors(&self) -> &[f64] {
        &self.errors
    }
}
