//! DChannel's Algorithm 1 (NSDI 2023 §3.4), packet by packet, as it runs below a transport.

use std::time::Duration;

use super::{Channel, Channels, Rule, packet};
use crate::{Content, Item};

/// The paper's α, best for round-trip times of 20 to 60 ms (NSDI 2023, Table 5), in hundredths.
const ALPHA: u32 = 75;

/// From this urgency on a flow is background (RFC 9218 §4.1 names 7 so; 6 is what is left to grade it).
const BACKGROUND: u8 = 6;

/// The flows that the rule serves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Flows {
    /// All of them alike: `dchannel`.
    All,
    /// All but background flows, which stay on the high-bandwidth channel: `dchannel-priority` (HotNets 2023 §3.3,
    /// Table 1).
    Foreground,
}

/// The cost-reward rule on packets: the low-latency channel if the packet completes earlier there by more than α times
/// the time that the channel is busy with it and those before it.
///
/// The connection is one flow, as it is to a steerer below the transport: a packet completes when all before it have.
/// As in the listing, the queue of the high-bandwidth channel is left out: it is hard to measure.
#[derive(Clone, Copy, Debug)]
pub struct CostReward {
    flows: Flows,
    /// The expected completion time of all items so far (C of equation 2), since the connection began.
    completion: Duration,
}

/// The delays and the cost that the two channels offer an item.
struct Estimate {
    high_bandwidth: Duration,
    low_latency: Duration,
    cost: Duration,
}

impl CostReward {
    /// The rule for `flows`.
    pub const fn new(flows: Flows) -> Self {
        Self { flows, completion: Duration::ZERO }
    }

    fn estimate(&self, item: &Item, channels: Channels<'_>) -> Estimate {
        let Channels { high_bandwidth, low_latency } = channels;
        let queue = low_latency.backlog.saturating_add(packet(item, low_latency));
        // Equation 3. A steerer sees its queue grow with each packet that it adds; the transport holds a packet back
        // instead of queueing it, and asks about the same one again: that costs for ever.
        let cost = match (low_latency.can_send(), low_latency.rate) {
            (false, _) => Duration::MAX,
            (true, rate) => rate.map_or(Duration::ZERO, |rate| rate.transmission_time(queue)),
        };
        let at = |delay: Duration| self.completion.max(item.now.saturating_add(delay));
        Estimate {
            high_bandwidth: at(high_bandwidth.delay),
            low_latency: at(low_latency.delay.saturating_add(cost)),
            cost,
        }
    }

    fn is_served(&self, item: &Item) -> bool {
        let data = matches!(item.content, Content::Stream { .. } | Content::Datagram);
        self.flows == Flows::All || !data || item.priority.urgency < BACKGROUND
    }
}

impl Rule for CostReward {
    fn name(&self) -> &'static str {
        match self.flows {
            Flows::All => "dchannel",
            Flows::Foreground => "dchannel-priority",
        }
    }

    fn choose(&self, item: &Item, channels: Channels<'_>) -> Channel {
        let Estimate { high_bandwidth, low_latency, cost } = self.estimate(item, channels);
        let reward = high_bandwidth.saturating_sub(low_latency);
        if self.is_served(item) && reward > cost.saturating_mul(ALPHA) / 100 {
            Channel::LowLatency
        } else {
            Channel::HighBandwidth
        }
    }

    fn note(&mut self, item: &Item, channel: Channel, channels: Channels<'_>) {
        if !self.is_served(item) {
            // Another flow: nothing of this one waits for it.
            return;
        }
        let estimate = self.estimate(item, channels);
        self.completion = match channel {
            Channel::HighBandwidth => estimate.high_bandwidth,
            Channel::LowLatency => estimate.low_latency,
        };
    }
}
