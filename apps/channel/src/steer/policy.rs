//! Which channel a packet takes.

use std::fmt;
use std::time::Duration;

use super::{transmission, weighted};
use crate::quantity::Bandwidth;

/// One of the two channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Branch {
    /// The channel with the high bandwidth (HBC).
    HighBandwidth,
    /// The channel with the low latency (LLC).
    LowLatency,
}

/// Decides for each packet of one direction of a flow.
pub trait SteeringPolicy: fmt::Debug + Send {
    /// The channel for a packet of `size` bytes that is sent at `now`.
    fn choose(&mut self, now: Duration, size: usize) -> Branch;
}

/// What DChannel knows of the channels (NSDI 2023, §3.5): the operator says how fast the low-latency one is, and
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

/// DChannel's rule (NSDI 2023, Algorithm 1): the low-latency channel if the packet completes earlier there by more
/// than α times what it costs.
#[derive(Clone, Debug)]
pub struct CostReward {
    known: Knowledge,
    alpha: f64,
    /// When everything so far is expected to be there (C of equation 2).
    completion: Duration,
    /// Until when the low-latency channel sends what it was given (the queue depth of §3.5).
    busy_until: Duration,
}

impl CostReward {
    /// The paper's α, best for round-trip times of 20 to 60 ms (NSDI 2023, §3.4).
    pub const ALPHA: f64 = 0.75;

    /// The rule with [`Self::ALPHA`] for channels as `known`.
    pub fn new(known: Knowledge) -> Self {
        Self { known, alpha: Self::ALPHA, completion: Duration::ZERO, busy_until: Duration::ZERO }
    }
}

impl SteeringPolicy for CostReward {
    fn choose(&mut self, now: Duration, size: usize) -> Branch {
        let sending = transmission(size, self.known.low_latency_rate.bits_per_second());
        // Equation 3: what waits there and this packet.
        let cost = self.busy_until.saturating_sub(now) + sending;
        let low_latency = self.completion.max(now + self.known.low_latency_delay + cost);
        // The listing omits the queue of the channel with the high bandwidth: it is hard to measure.
        let high_bandwidth = now + self.known.high_bandwidth_delay;
        let reward = high_bandwidth.saturating_sub(low_latency);
        if reward > weighted(cost, self.alpha) {
            self.completion = low_latency;
            self.busy_until = self.busy_until.max(now) + sending;
            Branch::LowLatency
        } else {
            self.completion = self.completion.max(high_bandwidth);
            Branch::HighBandwidth
        }
    }
}

/// Every packet on one channel. Uplink on the low-latency channel and downlink on the other is the paper's pkt-uplink
/// (NSDI 2023, Table 6).
#[derive(Clone, Copy, Debug)]
pub struct Always(pub Branch);

impl SteeringPolicy for Always {
    fn choose(&mut self, _now: Duration, _size: usize) -> Branch {
        self.0
    }
}

/// `pkt-state` (HotMobile 2021, Algorithm 1): the low-latency channel if neither this packet nor the one before it fills
/// the MTU.
#[derive(Clone, Copy, Debug)]
pub struct PacketState {
    full: usize,
    previous: usize,
}

impl PacketState {
    /// A packet of `full` bytes or more fills the MTU.
    pub const fn new(full: usize) -> Self {
        Self { full, previous: 0 }
    }
}

impl Default for PacketState {
    /// For datagrams of 1200 bytes, the smallest that QUIC may fill (RFC 9000 §14).
    fn default() -> Self {
        Self::new(1200)
    }
}

impl SteeringPolicy for PacketState {
    fn choose(&mut self, _now: Duration, size: usize) -> Branch {
        let small = size < self.full && self.previous < self.full;
        self.previous = size;
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
    fn choose(&mut self, _now: Duration, size: usize) -> Branch {
        if size < self.below { Branch::LowLatency } else { Branch::HighBandwidth }
    }
}
