//! Steerers below the transport, by name.

use std::fmt;
use std::str::FromStr;

use crate::steer::{
    Always, Asap, Branch, CostReward, DelaySource, Knowledge, PacketSize, PacketState, Pair, Reordering,
    Steered, SteeringPolicy,
};
use crate::{Bandwidth, ChannelSpec, Direction, TraceError};

use crate::tun::emulator::QueuedPacket;

/// A packet of so many bytes or more fills the MTU: with the options that TCP uses, segments of a bulk transfer differ a
/// little.
const FULL: usize = 1400;

/// The policy that chooses the channel of packets. Text form: a name of [`Steerer::NAMES`], `dchannel:ALPHA` for
/// another weight of the cost (NSDI 2023, Table 5), or `best-pkt-size:BYTES`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Steerer {
    /// DChannel's rule (NSDI 2023, Algorithm 1) with this α.
    DChannel(f64),
    /// [`Asap`].
    Asap,
    /// [`PacketState`].
    PacketState,
    /// Packets without data on the low-latency channel (HotMobile 2021, §3).
    PacketControl,
    /// Packets of less than this many bytes there.
    BestPacketSize(usize),
    /// The uplink on the low-latency channel (NSDI 2023, Table 6).
    PacketUplink,
    /// All on the channel with the high bandwidth.
    AllEmbb,
    /// All on the low-latency channel.
    AllUrllc,
}

impl Steerer {
    /// The names.
    pub const NAMES: &'static str = "dchannel[:ALPHA], asap, pkt-state, pkt-control, best-pkt-size[:BYTES], \
                                     pkt-uplink, all-embb, all-urllc";

    /// Channels as `specs` say, with dice from `seed`, steered so both ways. DChannel's rule is told what is typical of the
    /// channels, and measures their delays from then on (NSDI 2023, §3.5).
    ///
    /// # Errors
    /// A trace cannot be used.
    pub fn steer(
        self,
        specs: &Pair<ChannelSpec>,
        seed: u64,
        reordering: Reordering,
    ) -> Result<Steered<QueuedPacket>, TraceError> {
        let [up, down] = [self.policy(specs, Direction::Up)?, self.policy(specs, Direction::Down)?];
        let steered = Steered::new(specs, seed, up, down)?;
        Ok(steered.with_reordering(reordering).without_foresight())
    }

    fn policy(
        self,
        specs: &Pair<ChannelSpec>,
        direction: Direction,
    ) -> Result<Box<dyn SteeringPolicy>, TraceError> {
        Ok(match self {
            Self::DChannel(alpha) => {
                let known = knowledge(specs, direction)?;
                Box::new(CostReward::new(known).with_alpha(alpha).with_delays(DelaySource::Measured))
            }
            Self::Asap => Box::new(Asap::new(direction, None)),
            Self::PacketState => Box::new(PacketState::new(FULL)),
            // Headers of IPv6 and TCP with options.
            Self::PacketControl => Box::new(PacketSize::new(101)),
            Self::BestPacketSize(below) => Box::new(PacketSize::new(below)),
            Self::PacketUplink => Box::new(Always(match direction {
                Direction::Up => Branch::LowLatency,
                Direction::Down => Branch::HighBandwidth,
            })),
            Self::AllEmbb => Box::new(Always(Branch::HighBandwidth)),
            Self::AllUrllc => Box::new(Always(Branch::LowLatency)),
        })
    }
}

fn knowledge(specs: &Pair<ChannelSpec>, direction: Direction) -> Result<Knowledge, TraceError> {
    let (wide, quick) = (specs.high_bandwidth.typical(direction)?, specs.low_latency.typical(direction)?);
    Ok(Knowledge {
        high_bandwidth_delay: wide.delay,
        low_latency_delay: quick.delay,
        // A channel without a limit takes no time, which a rate of a terabit expresses well enough.
        low_latency_rate: quick.rate.unwrap_or(Bandwidth::from_megabits_per_second(1_000_000)),
    })
}

impl FromStr for Steerer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
        let wrong = || format!("{text:?} is no steerer: choose from {}", Self::NAMES);
        match (name, value) {
            ("dchannel", None) => Ok(Self::DChannel(CostReward::ALPHA)),
            ("dchannel", Some(alpha)) => {
                let alpha: Option<f64> = alpha.parse().ok().filter(|alpha| (0.0..=100.0).contains(alpha));
                alpha.map(Self::DChannel).ok_or_else(wrong)
            }
            ("best-pkt-size", None) => Ok(Self::BestPacketSize(FULL)),
            ("best-pkt-size", Some(bytes)) => bytes.parse().map(Self::BestPacketSize).map_err(|_| wrong()),
            ("asap", None) => Ok(Self::Asap),
            ("pkt-state", None) => Ok(Self::PacketState),
            ("pkt-control", None) => Ok(Self::PacketControl),
            ("pkt-uplink", None) => Ok(Self::PacketUplink),
            ("all-embb", None) => Ok(Self::AllEmbb),
            ("all-urllc", None) => Ok(Self::AllUrllc),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Steerer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DChannel(alpha) if (alpha - CostReward::ALPHA).abs() < f64::EPSILON => {
                formatter.write_str("dchannel")
            }
            Self::DChannel(alpha) => write!(formatter, "dchannel:{alpha}"),
            Self::Asap => formatter.write_str("asap"),
            Self::PacketState => formatter.write_str("pkt-state"),
            Self::PacketControl => formatter.write_str("pkt-control"),
            Self::BestPacketSize(bytes) => write!(formatter, "best-pkt-size:{bytes}"),
            Self::PacketUplink => formatter.write_str("pkt-uplink"),
            Self::AllEmbb => formatter.write_str("all-embb"),
            Self::AllUrllc => formatter.write_str("all-urllc"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steerers_are_read_and_printed_back() {
        for text in ["dchannel", "dchannel:1.5", "asap", "pkt-state", "best-pkt-size:300", "all-urllc"] {
            assert_eq!(text.parse::<Steerer>().unwrap().to_string(), text);
        }
        for text in ["", "dchannel:x", "dchannel:-1", "asap:1", "warp"] {
            let error = text.parse::<Steerer>().unwrap_err();
            assert!(error.contains("best-pkt-size"), "{error}");
        }
    }

    #[test]
    fn every_steerer_can_be_built_over_presets_and_traces() {
        let specs = Pair { high_bandwidth: "MM-D".parse().unwrap(), low_latency: ChannelSpec::urllc() };
        for name in ["dchannel", "asap", "pkt-state", "pkt-control", "best-pkt-size", "pkt-uplink"] {
            let steerer: Steerer = name.parse().unwrap();
            steerer.steer(&specs, 1, Reordering::BothSides).unwrap();
        }
    }
}
