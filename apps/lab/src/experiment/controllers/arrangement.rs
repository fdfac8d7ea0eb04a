//! The channels of a run, and how they are arranged.

use crate::experiment::pages::{Below, Rule, Scheme};
use crate::world::Net;
use crate::world::medium::Medium;
use crate::world::wire::Wire;
use hvq_emulation::steer::{CostReward, Knowledge, Pair, Steered, SteeringPolicy};
use hvq_emulation::{Channel, ChannelSpec, Direction, Probability, Rate, TraceError};
use hvq_scheduler::{Bandwidth, Hints, Policy, Sharing};
use hvq_transport::connection::{ChannelHint, FourTuple, Multipath, TransportConfig};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The arrangement of a connection's channels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrangement {
    /// eMBB alone.
    Single,
    /// Both, as one path: DChannel steers packets below a transport without multipath.
    Steered,
    /// Both, as two paths of hvq with the scheduler `hvc`.
    Multipath,
}

impl Arrangement {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Single, Self::Steered, Self::Multipath];

    /// Returns the arrangement of `scheme`, if there is one.
    pub fn of(scheme: Scheme) -> Option<Self> {
        match scheme {
            Scheme::EmbbAlone => Some(Self::Single),
            Scheme::Below(Below::DChannel(rule)) if rule == Rule::default() => Some(Self::Steered),
            Scheme::Paths(Policy::Hvc) => Some(Self::Multipath),
            _ => None,
        }
    }

    /// Its name in tables and drawings.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Single => "eMBB alone",
            Self::Steered => "steered below",
            Self::Multipath => "hvq",
        }
    }

    /// Returns the setting of the transport: two paths, or one.
    pub(super) const fn multipath(self) -> Multipath {
        match self {
            Self::Single | Self::Steered => Multipath::Off,
            Self::Multipath => Multipath::UpTo(hvq_scheduler::PathId(3)),
        }
    }
}

/// The two channels.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name in tables and drawings.
    pub name: String,
    /// The channel with the high bandwidth.
    pub embb: ChannelSpec,
    /// The channel with the low latency.
    pub urllc: ChannelSpec,
}

impl Setting {
    /// The round-trip time of eMBB in HotNets 2023, Fig. 1.
    pub const RTT: Duration = Duration::from_millis(50);

    /// The rate of eMBB there.
    const RATE: hvq_emulation::Bandwidth = hvq_emulation::Bandwidth::from_megabits_per_second(60);

    /// `embb` and URLLC, both with random `loss` each way (NSDI 2023, Table 4).
    pub fn new(name: &str, embb: ChannelSpec, loss: Probability) -> Self {
        let mut setting = Self { name: name.to_owned(), embb, urllc: ChannelSpec::urllc() };
        for link in
            [&mut setting.embb.up, &mut setting.embb.down, &mut setting.urllc.up, &mut setting.urllc.down]
        {
            link.loss = loss;
        }
        setting
    }

    /// An eMBB of 60 Mbit/s with a constant `rtt`.
    pub fn constant(rtt: Duration, loss: Probability) -> Self {
        let milliseconds = rtt.as_secs_f64() * 1e3;
        let name = match loss.share() {
            0.0 => format!("{milliseconds} ms"),
            share => format!("{milliseconds} ms, {} % loss", share * 100.0),
        };
        Self::new(&name, ChannelSpec::constant(rtt, Self::RATE), loss)
    }

    /// Returns true if the channels lose nothing and do not vary.
    pub fn is_steady(&self) -> bool {
        [&self.embb, &self.urllc].into_iter().flat_map(|channel| [&channel.up, &channel.down]).all(|link| {
            link.loss == Probability::NEVER && link.burst.is_none() && matches!(link.rate, Rate::Constant(_))
        })
    }

    /// The rate of both channels together in Mbit/s, of a trace its mean.
    pub fn capacity(&self, arrangement: Arrangement) -> f64 {
        let rate = |channel: &ChannelSpec| {
            let rate = channel.typical(Direction::Down).ok().and_then(|typical| typical.rate);
            rate.map_or(0.0, |rate| rate.bits_per_second() as f64 / 1e6)
        };
        match arrangement {
            Arrangement::Single => rate(&self.embb),
            Arrangement::Steered | Arrangement::Multipath => rate(&self.embb) + rate(&self.urllc),
        }
    }
}

/// The places of the measured channels among the wires of a network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wires {
    /// The path over which the connection starts.
    pub(super) first: FourTuple,
    /// The path that is opened beside it.
    pub(super) second: Option<FourTuple>,
}

/// Tells `config` what an operator guarantees: rate and delay of URLLC. Nobody knows anything of eMBB in advance.
pub(super) fn tell(config: &mut TransportConfig, arrangement: Arrangement, setting: &Setting) {
    if arrangement != Arrangement::Multipath {
        return;
    }
    let FourTuple { local, remote } = Wire::addresses(0);
    let typical = setting.urllc.typical(Direction::Down).ok();
    let hints = Hints {
        rate: typical.and_then(|typical| typical.rate).map(to_scheduler),
        delay: typical.map(|typical| typical.delay),
        shared: Sharing::Dedicated,
        ..Hints::NONE
    };
    config.set_channels([local, remote].map(|local| ChannelHint::new(local, hints)).into());
}

/// Puts the channels of `setting` into `net`.
pub(super) fn connect(
    net: &mut Net,
    arrangement: Arrangement,
    setting: &Setting,
) -> Result<Wires, TraceError> {
    let plain = |spec: &ChannelSpec, dice| Ok(Medium::Plain(Box::new(Channel::new(spec, dice)?)));
    match arrangement {
        Arrangement::Single => {
            let embb = plain(&setting.embb, net.dice())?;
            Ok(Wires { first: net.join(embb), second: None })
        }
        Arrangement::Steered => {
            let specs = Pair { high_bandwidth: setting.embb.clone(), low_latency: setting.urllc.clone() };
            let [up, down] = [Direction::Up, Direction::Down].map(|direction| steerer(setting, direction));
            let steered = Steered::new(&specs, net.dice(), up?, down?)?;
            Ok(Wires { first: net.join(Medium::Steered(Box::new(steered))), second: None })
        }
        Arrangement::Multipath => {
            // The handshake is on URLLC; eMBB opens when it is done.
            let urllc = plain(&setting.urllc, net.dice())?;
            let first = net.join(urllc);
            let embb = plain(&setting.embb, net.dice())?;
            Ok(Wires { first, second: Some(net.join(embb)) })
        }
    }
}

/// DChannel's steerer in `direction`, which knows what is typical of both channels.
fn steerer(setting: &Setting, direction: Direction) -> Result<Box<dyn SteeringPolicy>, TraceError> {
    let (embb, urllc) = (setting.embb.typical(direction)?, setting.urllc.typical(direction)?);
    let unlimited = hvq_emulation::Bandwidth::from_bits_per_second(u64::MAX);
    Ok(Box::new(CostReward::new(Knowledge {
        high_bandwidth_delay: embb.delay,
        low_latency_delay: urllc.delay,
        low_latency_rate: urllc.rate.unwrap_or(unlimited),
    })))
}

fn to_scheduler(rate: hvq_emulation::Bandwidth) -> Bandwidth {
    Bandwidth::from_bits_per_second(rate.bits_per_second())
}
