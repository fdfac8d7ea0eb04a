//! The specification of a channel: plain data, and its text form (see the crate's documentation for the keys).

mod read;
#[cfg(test)]
mod tests;
mod typical;
mod write;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use read::SpecError;
pub use typical::Typical;

use crate::blackout::Interval;
use crate::delay::{Delay, Reading};
use crate::drx::Drx;
use crate::loss::Burst;
use crate::mobility::{Collapse, Detour};
use crate::quantity::{Bandwidth, Probability};
use crate::queue::QueueLimit;
use crate::rate::Rate;
use crate::trace::{TraceEnd, TraceName, TraceSource};

/// Both directions of a channel. In serde formats it is a string, its text form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChannelSpec {
    /// From the device to the network.
    pub up: LinkSpec,
    /// From the network to the device.
    pub down: LinkSpec,
}

/// One direction of a channel. The default is a perfect link: no delay, no limit but the queue's, no loss.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSpec {
    /// The propagation delay: the time that a packet is under way once it has been sent.
    pub delay: Delay,
    /// The rate at which packets are sent.
    pub rate: Rate,
    /// The place in its traces at which the link starts, and the continuation after their end.
    pub replay: Replay,
    /// The limit on the packets or bytes that wait to be sent.
    pub queue: QueueLimit,
    /// The length of the queue above which packets are marked with congestion experienced (RFC 3168), if any are.
    pub ecn: Option<QueueLimit>,
    /// Independent loss.
    pub loss: Probability,
    /// Loss in bursts.
    pub burst: Option<Burst>,
    /// Reordering, for tests.
    pub reorder: Option<Reorder>,
    /// The chance of a packet to come out twice, for tests.
    pub duplicate: Probability,
    /// The intervals in which nothing passes.
    pub blackouts: Vec<Interval>,
    /// The intervals in which less of the rate is left.
    pub collapses: Vec<Collapse>,
    /// The intervals in which packets are under way for longer.
    pub detours: Vec<Detour>,
    /// A rate beside [`Self::rate`], which no trace and no collapse touches.
    pub extra: Option<Bandwidth>,
    /// Sleep of the receiving device.
    pub drx: Option<Drx>,
    /// The bytes that are added to every packet where capacity and queue space are counted.
    pub overhead: usize,
}

/// The way in which traces are replayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// Time in the trace at the start of the channel.
    pub offset: Duration,
    /// The continuation after the last row.
    pub end: TraceEnd,
}

/// Reordering: some packets are held back while later ones pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// The chance of a packet to be held back.
    pub chance: Probability,
    /// The longest time for which it is held back; the time is drawn uniformly.
    pub by: Duration,
}

impl ChannelSpec {
    /// Makes a channel of the same link both ways.
    pub fn symmetric(link: LinkSpec) -> Self {
        Self { up: link.clone(), down: link }
    }

    /// A constant channel: `rtt`, half of it each way, and `rate` each way.
    pub fn constant(rtt: Duration, rate: Bandwidth) -> Self {
        let (delay, rate) = (Delay::Constant(rtt / 2), Rate::Constant(rate));
        Self::symmetric(LinkSpec { delay, rate, ..LinkSpec::default() })
    }

    /// URLLC: RTT 5 ms, 2 Mbit/s each way (NSDI 2023 §5.1, HotNets 2023 §3.1).
    pub fn urllc() -> Self {
        Self::constant(Duration::from_millis(5), Bandwidth::from_megabits_per_second(2))
    }

    /// A fixed eMBB: RTT 40 ms, 200 Mbit/s each way (NSDI 2023, Table 2).
    pub fn embb() -> Self {
        Self::constant(Duration::from_millis(40), Bandwidth::from_megabits_per_second(200))
    }

    /// An eMBB that follows a named trace: delay, rate and, on the downlink, sleep.
    pub fn trace(name: TraceName) -> Self {
        let source = TraceSource::Named(name);
        let delay = Delay::Trace { source: source.clone(), reading: Reading::RoundTrip };
        let mut spec = Self::symmetric(LinkSpec { delay, rate: Rate::Trace(source), ..LinkSpec::default() });
        spec.down.drx = Some(name.drx());
        spec
    }

    /// Returns the same channel, with its traces started at `offset`.
    #[must_use]
    pub fn starting_at(mut self, offset: Duration) -> Self {
        self.up.replay.offset = offset;
        self.down.replay.offset = offset;
        self
    }
}

impl LinkSpec {
    /// Takes over what a preset sets (delay, rate, sleep) and leaves the rest.
    fn follow(&mut self, preset: LinkSpec) {
        self.delay = preset.delay;
        self.rate = preset.rate;
        self.drx = preset.drx;
    }
}
