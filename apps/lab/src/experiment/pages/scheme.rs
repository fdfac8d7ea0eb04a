//! The ways of using two channels that are compared.

use hvq_channel::Direction;
use hvq_channel::steer::{Always, Branch, CostReward, Knowledge, PacketSize, PacketState, SteeringPolicy};
use hvq_scheduler::Policy;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A way of using the channels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Scheme {
    /// eMBB alone, without multipath: what the others are measured against.
    EmbbAlone,
    /// URLLC alone, without multipath.
    UrllcAlone,
    /// One channel with the delay of URLLC and the sum of both rates: the physical limit.
    Ideal,
    /// Both as one path: packets are steered below a transport that does not know.
    Below(Below),
    /// Both as two paths, frames scheduled by a policy.
    Paths(Policy),
}

/// A steerer of sealed packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Below {
    /// DChannel's cost-reward rule (NSDI 2023, Algorithm 1), with its reordering buffer.
    DChannel,
    /// HotMobile's `pkt-state` (2021, Algorithm 1).
    PktState,
    /// What the client sends on URLLC, what it receives on eMBB.
    PktUplink,
    /// Packets of less than so many bytes on URLLC.
    PktSize(usize),
}

impl Below {
    /// The policy of one direction.
    pub(super) fn steerer(self, direction: Direction, known: Knowledge) -> Box<dyn SteeringPolicy> {
        match (self, direction) {
            (Self::DChannel, _) => Box::new(CostReward::new(known)),
            (Self::PktState, _) => Box::new(PacketState::default()),
            (Self::PktSize(below), _) => Box::new(PacketSize::new(below)),
            (Self::PktUplink, Direction::Up) => Box::new(Always(Branch::LowLatency)),
            (Self::PktUplink, Direction::Down) => Box::new(Always(Branch::HighBandwidth)),
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmbbAlone => f.write_str("embb"),
            Self::UrllcAlone => f.write_str("urllc"),
            Self::Ideal => f.write_str("ideal"),
            Self::Below(Below::DChannel) => f.write_str("below:dchannel"),
            Self::Below(Below::PktState) => f.write_str("below:pkt-state"),
            Self::Below(Below::PktUplink) => f.write_str("below:pkt-uplink"),
            Self::Below(Below::PktSize(below)) => write!(f, "below:best-pkt-size:{below}"),
            Self::Paths(policy) => policy.fmt(f),
        }
    }
}

impl FromStr for Scheme {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let below = |name: &str| match name {
            "dchannel" => Some(Below::DChannel),
            "pkt-state" => Some(Below::PktState),
            "pkt-uplink" => Some(Below::PktUplink),
            _ => name.strip_prefix("best-pkt-size:").and_then(|size| size.parse().ok()).map(Below::PktSize),
        };
        match (name, name.strip_prefix("below:")) {
            ("embb", _) => Ok(Self::EmbbAlone),
            ("urllc", _) => Ok(Self::UrllcAlone),
            ("ideal", _) => Ok(Self::Ideal),
            (_, Some(steerer)) => below(steerer).map(Self::Below).ok_or_else(|| {
                format!(
                    "nothing steers below the transport by the name of {steerer:?}: choose one of dchannel, \
                     pkt-state, pkt-uplink or best-pkt-size:BYTES"
                )
            }),
            (policy, None) => policy.parse().map(Self::Paths).map_err(|error| {
                format!("{error}; or embb, urllc, ideal, or below:NAME for a steerer of packets")
            }),
        }
    }
}

impl From<Scheme> for String {
    fn from(scheme: Scheme) -> Self {
        scheme.to_string()
    }
}

impl TryFrom<String> for Scheme {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_written_as_they_are_read() {
        let names =
            ["embb", "urllc", "ideal", "below:dchannel", "below:best-pkt-size:700", "hvc", "obj-size:6000"];
        for name in names {
            assert_eq!(name.parse::<Scheme>().map(String::from), Ok(name.to_owned()));
        }
        for name in ["", "below:", "below:hvc", "warp"] {
            assert!(name.parse::<Scheme>().is_err(), "{name}");
        }
    }
}
