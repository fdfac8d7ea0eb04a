//! Rules that look at the kind of content alone.

use super::{Channel, Channels, Rule};
use crate::{Content, Item, Role};

/// Everything on one channel: `all-embb` and `all-urllc`, the baselines of all three papers.
#[derive(Clone, Copy, Debug)]
pub struct Fixed(pub Channel);

impl Rule for Fixed {
    fn name(&self) -> &'static str {
        match self.0 {
            Channel::HighBandwidth => "all-embb",
            Channel::LowLatency => "all-urllc",
        }
    }

    fn choose(&self, _item: &Item, _channels: Channels<'_>) -> Channel {
        self.0
    }
}

/// ASAP (Hong and Su, GLOBECOM 2015) as HotMobile 2021 §4.2 runs it: handshakes and requests on the low-latency
/// channel, responses and what belongs to them on the other.
///
/// A request is what a client sends on streams; the acknowledgements of a response belong to its phase.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asap;

impl Rule for Asap {
    fn name(&self) -> &'static str {
        "asap"
    }

    fn choose(&self, item: &Item, channels: Channels<'_>) -> Channel {
        match (item.content, item.role) {
            (Content::Handshake | Content::Control, _) => Channel::LowLatency,
            (Content::Stream { .. } | Content::Datagram, Role::Client) => Channel::LowLatency,
            (Content::Stream { .. } | Content::Datagram, Role::Server) => Channel::HighBandwidth,
            (Content::Acknowledgement { of }, _) if of == channels.low_latency.id => Channel::LowLatency,
            (Content::Acknowledgement { .. }, _) => Channel::HighBandwidth,
        }
    }
}

/// Priority-aware steering of scalable video (HotNets 2023 §3.3): the most important messages, layer 0, on the
/// low-latency channel, the other layers on the other.
///
/// Layer 0 is what has urgency 0. Handshake, control and acknowledgements, which the paper's sender does not have on
/// this flow, take the low-latency channel too: they are small.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrioritySvc;

impl Rule for PrioritySvc {
    fn name(&self) -> &'static str {
        "priority-svc"
    }

    fn choose(&self, item: &Item, _channels: Channels<'_>) -> Channel {
        match item.content {
            Content::Stream { .. } | Content::Datagram if item.priority.urgency > 0 => Channel::HighBandwidth,
            _ => Channel::LowLatency,
        }
    }
}
