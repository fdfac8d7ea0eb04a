//! Schemes that map an object as a whole: a stream, or a message of which the transport knows the end.
//!
//! Items other than stream data are small and belong to no object; they follow the channel of what they are about:
//! acknowledgements return on the path they acknowledge, the rest takes the high-bandwidth channel, which is the one
//! that these schemes have open first.

use std::time::Duration;

use super::streams::Streams;
use super::{Channel, Channels, Rule};
use crate::{Content, Item, PathView};

/// The stream that the item is of, or the channel of what is of none.
fn stream(item: &Item, channels: Channels<'_>) -> Result<u64, Channel> {
    match item.content {
        Content::Stream { id } => Ok(id),
        Content::Acknowledgement { of } if of == channels.low_latency.id => Err(Channel::LowLatency),
        _ => Err(Channel::HighBandwidth),
    }
}

/// Bytes from the item's first on to the end of its object, as far as the transport knows.
fn size(item: &Item) -> usize {
    item.message.map_or(item.pending, |message| message.remaining).max(item.bytes)
}

/// From now until the last of `bytes` arrives over `path`, with a round trip for each window beyond the first. Each is twice
/// as large as the one before: what is longer than a window is sent in slow start (RFC 9002 §7.3.1).
fn arrival(path: &PathView, bytes: usize) -> Duration {
    let queue = path.backlog.saturating_add(bytes);
    let sending = path.rate.map_or(Duration::ZERO, |rate| rate.transmission_time(queue));
    let window = path.window.max(path.datagram_size).max(1);
    // After n round trips 1 + 2 + … + 2^n windows have left.
    let rounds = bytes.div_ceil(window).max(1).ilog2();
    let windowed = path.rtt.smoothed.saturating_mul(rounds);
    path.delay.saturating_add(path.next_send).saturating_add(sending.max(windowed))
}

/// The channel on which `bytes` arrive first, the high-bandwidth one in a tie.
fn earlier(channels: Channels<'_>, bytes: usize) -> Channel {
    let low_latency = arrival(channels.low_latency, bytes);
    if low_latency < arrival(channels.high_bandwidth, bytes) {
        Channel::LowLatency
    } else {
        Channel::HighBandwidth
    }
}

/// `obj-size` (HotMobile 2021 §3): objects of less than 3 KB or 6 KB on the low-latency channel.
///
/// An object is small if its end is known, as a message's, and near.
#[derive(Clone, Debug)]
pub struct ObjectSize {
    below: usize,
    mapped: Streams<Channel>,
}

impl ObjectSize {
    /// The smaller of the paper's two thresholds, in bytes.
    pub const DEFAULT: usize = 3000;

    /// Objects of less than `below` bytes are small.
    pub fn new(below: usize) -> Self {
        Self { below, mapped: Streams::default() }
    }
}

impl Rule for ObjectSize {
    fn name(&self) -> &'static str {
        "obj-size"
    }

    fn choose(&self, item: &Item, channels: Channels<'_>) -> Channel {
        let id = match stream(item, channels) {
            Ok(id) => id,
            Err(channel) => return channel,
        };
        let small = item.message.is_some() && size(item) < self.below;
        let fresh = if small { Channel::LowLatency } else { Channel::HighBandwidth };
        self.mapped.get(id).unwrap_or(fresh)
    }

    fn note(&mut self, item: &Item, channel: Channel, _channels: Channels<'_>) {
        if let Content::Stream { id } = item.content {
            self.mapped.note(id, channel);
        }
    }
}

/// `obj-priority` (HotMobile 2021 §3): objects of the highest priority, urgency 0, on the low-latency channel.
#[derive(Clone, Copy, Debug, Default)]
pub struct ObjectPriority;

impl Rule for ObjectPriority {
    fn name(&self) -> &'static str {
        "obj-priority"
    }

    fn choose(&self, item: &Item, channels: Channels<'_>) -> Channel {
        match stream(item, channels) {
            Ok(_) if item.priority.urgency == 0 => Channel::LowLatency,
            Ok(_) => Channel::HighBandwidth,
            Err(channel) => channel,
        }
    }
}

/// `obj-steering` (NSDI 2023 §5.1): each object where it would finish sooner, by what is known when its first byte is
/// sent.
#[derive(Clone, Debug, Default)]
pub struct ObjectSteering {
    mapped: Streams<Channel>,
}

impl Rule for ObjectSteering {
    fn name(&self) -> &'static str {
        "obj-steering"
    }

    fn choose(&self, item: &Item, channels: Channels<'_>) -> Channel {
        match stream(item, channels) {
            Ok(id) => self.mapped.get(id).unwrap_or_else(|| earlier(channels, size(item))),
            Err(channel) => channel,
        }
    }

    fn note(&mut self, item: &Item, channel: Channel, _channels: Channels<'_>) {
        if let Content::Stream { id } = item.content {
            self.mapped.note(id, channel);
        }
    }
}

/// `ians`, informed access network selection with the early-arrival-first policy (Enghardt et al., 2020; the Socket
/// Intents prototype that the papers cite): each object on the channel where it is predicted to arrive first, given
/// what was mapped to that channel before and is not yet there.
///
/// It differs from [`ObjectSteering`] in counting the whole of objects whose bytes are still to come, and in taking a
/// decision about small items as well: what is no stream is an object of its own.
#[derive(Clone, Debug, Default)]
pub struct EarlyArrival {
    mapped: Streams<Channel>,
    /// The times at which the objects that were mapped to each channel are through, high bandwidth first.
    busy_until: [Duration; 2],
}

impl EarlyArrival {
    fn predicted(&self, item: &Item, channel: Channel, path: &PathView) -> Duration {
        let [high_bandwidth, low_latency] = self.busy_until;
        let busy_until = if channel == Channel::HighBandwidth { high_bandwidth } else { low_latency };
        let busy = busy_until.saturating_sub(item.now);
        busy.saturating_add(arrival(&PathView { backlog: 0, ..*path }, size(item)))
    }

    fn decide(&self, item: &Item, channels: Channels<'_>) -> Channel {
        let low_latency = self.predicted(item, Channel::LowLatency, channels.low_latency);
        if low_latency < self.predicted(item, Channel::HighBandwidth, channels.high_bandwidth) {
            Channel::LowLatency
        } else {
            Channel::HighBandwidth
        }
    }
}

impl Rule for EarlyArrival {
    fn name(&self) -> &'static str {
        "ians"
    }

    fn choose(&self, item: &Item, channels: Channels<'_>) -> Channel {
        match item.content {
            Content::Acknowledgement { of } if of == channels.low_latency.id => Channel::LowLatency,
            Content::Acknowledgement { .. } => Channel::HighBandwidth,
            Content::Stream { id } => self.mapped.get(id).unwrap_or_else(|| self.decide(item, channels)),
            _ => self.decide(item, channels),
        }
    }

    fn note(&mut self, item: &Item, channel: Channel, channels: Channels<'_>) {
        let Content::Stream { id } = item.content else { return };
        if self.mapped.get(id).is_some() {
            return;
        }
        self.mapped.note(id, channel);
        let (slot, path) = match channel {
            Channel::HighBandwidth => (0, channels.high_bandwidth),
            Channel::LowLatency => (1, channels.low_latency),
        };
        let sending = path.rate.map_or(Duration::ZERO, |rate| rate.transmission_time(size(item)));
        if let Some(busy_until) = self.busy_until.get_mut(slot) {
            *busy_until = (*busy_until).max(item.now).saturating_add(sending);
        }
    }
}
