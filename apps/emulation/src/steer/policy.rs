//! The channel that a packet takes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use super::{Estimate, Flow, transmission, weighted};
use crate::quantity::Bandwidth;

/// One of the two channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Branch {
    /// The channel with the high bandwidth (HBC).
    HighBandwidth,
    /// The channel with the low latency (LLC).
    LowLatency,
}

/// Decides for each packet of one direction.
pub trait SteeringPolicy: fmt::Debug + Send {
    /// The channel for a packet of `size` bytes that `flow` sends at `now`.
    fn choose(&mut self, now: Duration, flow: Flow, size: usize) -> Branch;

    /// The seconds that it expected its last packet to gain on the low-latency channel, negative if it loses; `None` if
    /// it expects nothing.
    fn expected_reward(&self) -> Option<f64> {
        None
    }

    /// The delays were measured.
    fn on_estimate(&mut self, _estimate: Estimate) {}
}

/// DChannel's knowledge of the channels (NSDI 2023, §3.5): the operator gives the rate of the low-latency one, and
/// rough delays are enough (Fig. 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knowledge {
    /// One-way delay of the channel with the high bandwidth.
    pub high_bandwidth_delay: Duration,
    /// One-way delay of the channel with the low latency.
    pub low_latency_delay: Duration,
    /// Rate of the channel with the low latency.
    pub low_latency_rate: Bandwidth,
}

/// The source of the delays that a rule uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum DelaySource {
    /// It was told, and keeps to that.
    #[default]
    Told,
    /// It was told, and takes what is measured from then on (NSDI 2023, §3.5).
    Measured,
}

/// DChannel's rule (NSDI 2023, Algorithm 1): the low-latency channel if the packet completes earlier there by more
/// than α times what it costs.
#[derive(Clone, Debug)]
pub struct CostReward {
    known: Knowledge,
    source: DelaySource,
    /// The factor on the measured delay of the channel with the high bandwidth.
    error: f64,
    alpha: f64,
    /// The time at which everything of each flow so far is expected to be there (C of equation 2).
    completion: BTreeMap<Flow, Duration>,
    /// The time until which the low-latency channel sends the packets that it was given (the queue depth of §3.5).
    busy_until: Duration,
    /// The reward expected of the last packet, in seconds.
    reward: f64,
    /// Flows that stay on the channel with the high bandwidth.
    excluded: BTreeSet<Flow>,
}

impl CostReward {
    /// The paper's α, best for round-trip times of 20 to 60 ms (NSDI 2023, §3.4).
    pub const ALPHA: f64 = 0.75;

    /// The rule with [`Self::ALPHA`] for channels as `known`.
    pub fn new(known: Knowledge) -> Self {
        Self {
            known,
            source: DelaySource::Told,
            error: 1.0,
            reward: 0.0,
            excluded: BTreeSet::new(),
            alpha: Self::ALPHA,
            completion: BTreeMap::new(),
            busy_until: Duration::ZERO,
        }
    }

    /// Sets the source of the delays.
    #[must_use]
    pub const fn with_delays(mut self, source: DelaySource) -> Self {
        self.source = source;
        self
    }

    /// Sets the factor by which the delay of the channel with the high bandwidth is mistaken (NSDI 2023, Fig. 10).
    #[must_use]
    pub fn with_delay_error(mut self, factor: f64) -> Self {
        self.error = factor;
        self.known.high_bandwidth_delay = weighted(self.known.high_bandwidth_delay, factor);
        self
    }

    /// Without `flows` on the low-latency channel: those that nobody waits for, where flows have priorities
    /// (HotNets 2023, Table 1).
    #[must_use]
    pub fn without(mut self, flows: BTreeSet<Flow>) -> Self {
        self.excluded = flows;
        self
    }

    /// Sets another weight of the cost (NSDI 2023, Table 5).
    #[must_use]
    pub const fn with_alpha(mut self, alpha: f64) -> Self {
        self.alpha = alpha;
        self
    }
}

impl SteeringPolicy for CostReward {
    fn choose(&mut self, now: Duration, flow: Flow, size: usize) -> Branch {
        let sending = transmission(size, self.known.low_latency_rate.bits_per_second());
        // Equation 3: what waits there and this packet.
        let cost = self.busy_until.saturating_sub(now) + sending;
        let completion = self.completion.entry(flow).or_default();
        let low_latency = (*completion).max(now + self.known.low_latency_delay + cost);
        // The listing omits the queue of the channel with the high bandwidth: it is hard to measure.
        let high_bandwidth = now + self.known.high_bandwidth_delay;
        self.reward = high_bandwidth.as_secs_f64() - low_latency.as_secs_f64();
        let reward = high_bandwidth.saturating_sub(low_latency);
        if reward > weighted(cost, self.alpha) && !self.excluded.contains(&flow) {
            *completion = low_latency;
            self.busy_until = self.busy_until.max(now) + sending;
            Branch::LowLatency
        } else {
            *completion = (*completion).max(high_bandwidth);
            Branch::HighBandwidth
        }
    }

    fn expected_reward(&self) -> Option<f64> {
        Some(self.reward)
    }

    fn on_estimate(&mut self, estimate: Estimate) {
        if self.source == DelaySource::Measured {
            self.known.high_bandwidth_delay = weighted(estimate.high_bandwidth, self.error);
            self.known.low_latency_delay = estimate.low_latency;
        }
    }
}

/// Every packet on one channel. Uplink on the low-latency channel and downlink on the other is the paper's pkt-uplink
/// (NSDI 2023, Table 6).
#[derive(Clone, Copy, Debug)]
pub struct Always(pub Branch);

impl SteeringPolicy for Always {
    fn choose(&mut self, _now: Duration, _flow: Flow, _size: usize) -> Branch {
        self.0
    }
}

/// `pkt-state` (HotMobile 2021, Algorithm 1): the low-latency channel if neither this packet nor the one before it fills
/// the MTU.
#[derive(Clone, Debug)]
pub struct PacketState {
    full: usize,
    /// The size of the last packet of each flow.
    previous: BTreeMap<Flow, usize>,
}

impl PacketState {
    /// A packet of `full` bytes or more fills the MTU.
    pub const fn new(full: usize) -> Self {
        Self { full, previous: BTreeMap::new() }
    }
}

impl Default for PacketState {
    /// For datagrams of 1200 bytes, the smallest that QUIC may fill (RFC 9000 §14).
    fn default() -> Self {
        Self::new(1200)
    }
}

impl SteeringPolicy for PacketState {
    fn choose(&mut self, _now: Duration, flow: Flow, size: usize) -> Branch {
        let previous = self.previous.insert(flow, size).unwrap_or(0);
        let small = size < self.full && previous < self.full;
        if small { Branch::LowLatency } else { Branch::HighBandwidth }
    }
}

/// Packets below a fixed size on the low-latency channel: `best-pkt-size` (NSDI 2023, §5.1) with the best size in
/// hindsight, `pkt-control` (HotMobile 2021, §3) with one that only packets without data are below.
#[derive(Clone, Copy, Debug)]
pub struct PacketSize {
    below: usize,
}

impl PacketSize {
    /// Packets of less than `below` bytes are small.
    pub const fn new(below: usize) -> Self {
        Self { below }
    }
}

impl SteeringPolicy for PacketSize {
    fn choose(&mut self, _now: Duration, _flow: Flow, size: usize) -> Branch {
        if size < self.below { Branch::LowLatency } else { Branch::HighBandwidth }
    }
}
