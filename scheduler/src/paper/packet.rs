//! HotMobile's heuristics on packets, and NSDI's best static size: a frame stands for the packet that it would make.

use super::{Channel, Channels, Rule, fills, packet};
use crate::{Content, Item, Role};

/// `pkt-uplink` (HotMobile 2021 §3, NSDI 2023 Table 6): all that the client sends on the low-latency channel, all that
/// the server sends on the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketUplink;

impl Rule for PacketUplink {
    fn name(&self) -> &'static str {
        "pkt-uplink"
    }

    fn choose(&self, item: &Item, _channels: Channels<'_>) -> Channel {
        match item.role {
            Role::Client => Channel::LowLatency,
            Role::Server => Channel::HighBandwidth,
        }
    }
}

/// `pkt-control` (HotMobile 2021 §3): packets without payload on the low-latency channel.
///
/// In QUIC these are packets without STREAM, DATAGRAM and CRYPTO frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketControl;

impl Rule for PacketControl {
    fn name(&self) -> &'static str {
        "pkt-control"
    }

    fn choose(&self, item: &Item, _channels: Channels<'_>) -> Channel {
        match item.content {
            Content::Acknowledgement { .. } | Content::Control => Channel::LowLatency,
            Content::Handshake | Content::Stream { .. } | Content::Datagram => Channel::HighBandwidth,
        }
    }
}

/// `pkt-state` (HotMobile 2021, Algorithm 1): the low-latency channel if neither this packet nor the one before it in
/// the flow fills the MTU.
///
/// The flow is the connection, as it is for a steerer below the transport.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketState {
    previous: Previous,
}

/// The packet before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Previous {
    /// It was small, or there was none.
    #[default]
    Small,
    /// It filled the MTU.
    Full,
}

impl Rule for PacketState {
    fn name(&self) -> &'static str {
        "pkt-state"
    }

    fn choose(&self, item: &Item, channels: Channels<'_>) -> Channel {
        if fills(item, channels.high_bandwidth) || self.previous == Previous::Full {
            Channel::HighBandwidth
        } else {
            Channel::LowLatency
        }
    }

    fn note(&mut self, item: &Item, _channel: Channel, channels: Channels<'_>) {
        let full = fills(item, channels.high_bandwidth);
        self.previous = if full { Previous::Full } else { Previous::Small };
    }
}

/// `best-pkt-size` (NSDI 2023 §5.1): packets below a fixed size on the low-latency channel. The paper takes the size,
/// of 250 to 1400 bytes, that does best in hindsight.
#[derive(Clone, Copy, Debug)]
pub struct PacketSize {
    below: usize,
}

impl PacketSize {
    /// The size that stands for the best where none is said: between an acknowledgement and a full packet.
    pub const DEFAULT: usize = 1000;

    /// Packets of less than `below` bytes of UDP payload are small.
    pub const fn new(below: usize) -> Self {
        Self { below }
    }
}

impl Default for PacketSize {
    fn default() -> Self {
        Self::new(Self::DEFAULT)
    }
}

impl Rule for PacketSize {
    fn name(&self) -> &'static str {
        "best-pkt-size"
    }

    fn choose(&self, item: &Item, channels: Channels<'_>) -> Channel {
        if packet(item, channels.low_latency) < self.below {
            Channel::LowLatency
        } else {
            Channel::HighBandwidth
        }
    }
}
