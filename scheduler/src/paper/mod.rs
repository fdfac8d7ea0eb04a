//! Schemes that steer between a high-bandwidth and a low-latency channel: each is a rule, all share the rest.

mod dchannel;
mod fixed;
mod object;
mod packet;
mod streams;
#[cfg(test)]
mod tests;

use std::fmt;

pub use dchannel::{CostReward, Flows};
pub use fixed::{Asap, Fixed, PrioritySvc};
pub use object::{EarlyArrival, ObjectPriority, ObjectSize, ObjectSteering};
pub use packet::{PacketControl, PacketSize, PacketState, PacketUplink};

use crate::roles::Roles;
use crate::usable::whole_on;
use crate::{History, Item, PathView, Placement, Scheduler, proven, usable};

/// One of the two channels that the papers speak of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Channel {
    /// HBC, eMBB in 5G.
    HighBandwidth,
    /// LLC, URLLC in 5G.
    LowLatency,
}

/// The two channels as a rule sees them; the same path twice where there is no other.
#[derive(Clone, Copy, Debug)]
pub struct Channels<'a> {
    /// The one of greatest rate.
    pub high_bandwidth: &'a PathView,
    /// The one of shortest delay among the others.
    pub low_latency: &'a PathView,
}

/// A rule that chooses the channel of an item.
pub trait Rule: fmt::Debug + Send {
    /// The name of the policy that the rule makes.
    fn name(&self) -> &'static str;

    /// The channel for `item`. An item that has to wait is asked about again, with the same answer unless the channels
    /// changed: what a rule remembers it notes in [`Rule::note`].
    fn choose(&self, item: &Item, channels: Channels<'_>) -> Channel;

    /// `item` goes on `channel` now.
    fn note(&mut self, _item: &Item, _channel: Channel, _channels: Channels<'_>) {}
}

/// The policy of a [`Rule`]: every item on one channel, waiting for it if need be, as packets that are steered into a
/// network interface's queue do.
///
/// More than two paths are no part of these schemes: the others stay idle. A copy of what a silent path may have lost
/// takes the other channel.
#[derive(Clone, Copy, Debug, Default)]
pub struct PaperScheme<R> {
    rule: R,
}

impl<R: Rule> PaperScheme<R> {
    /// Steering by `rule`.
    pub const fn new(rule: R) -> Self {
        Self { rule }
    }
}

impl<R: Rule> Scheduler for PaperScheme<R> {
    fn name(&self) -> &'static str {
        self.rule.name()
    }

    fn place(&mut self, item: &Item, paths: &[PathView]) -> Placement {
        let Some(roles) = Roles::of(paths, proven(paths, usable(paths))) else { return Placement::Wait };
        let channels =
            Channels { high_bandwidth: &paths[roles.high_bandwidth], low_latency: &paths[roles.low_latency] };
        let channel = self.rule.choose(item, channels);
        let (path, other) = match channel {
            Channel::HighBandwidth => (channels.high_bandwidth, channels.low_latency),
            Channel::LowLatency => (channels.low_latency, channels.high_bandwidth),
        };
        if matches!(item.history, History::Unacknowledged { on, .. } if on == path.id) {
            return whole_on(other, item);
        }
        let placement = whole_on(path, item);
        if matches!(placement, Placement::On { .. }) {
            self.rule.note(item, channel, channels);
        }
        placement
    }
}

/// The size of the packet that a frame would make by itself on `path`.
fn packet(item: &Item, path: &PathView) -> usize {
    item.bytes.saturating_add(item.header + path.overhead)
}

/// Returns true if the item fills a packet of `path`: "MTU-sized".
fn fills(item: &Item, path: &PathView) -> bool {
    packet(item, path) >= path.datagram_size
}
