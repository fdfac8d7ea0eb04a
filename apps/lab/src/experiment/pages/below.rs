//! Steerers of sealed packets by name.

use super::scheme::SlowStart;
use crate::world::cross::nowhere;
use crate::world::medium;
use hvq_emulation::Direction;
use hvq_emulation::steer::{
    Always, Asap, Branch, CostReward, DelaySource, Estimate, Flow, Knowledge, PacketSize, PacketState,
    Reordering, SteeringPolicy,
};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Packets without data are smaller than this: an acknowledgement, sealed.
const CONTROL: usize = 80;

/// A steerer of sealed packets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Below {
    /// DChannel's cost-reward rule (NSDI 2023, Algorithm 1).
    DChannel(Rule),
    /// ASAP (Hong and Su 2015; NSDI 2023, §5.3).
    Asap,
    /// HotMobile's `pkt-state` (2021, Algorithm 1).
    PktState,
    /// Packets without data on URLLC (HotMobile 2021, §3).
    PktControl,
    /// The client's packets go on URLLC, those to it on eMBB.
    PktUplink,
    /// Packets of less than so many bytes on URLLC.
    PktSize(usize),
}

/// The knowledge of flows besides their packets.
#[derive(Clone, Debug, Default)]
pub(in crate::experiment) struct Flows {
    /// The flow of name lookups.
    pub(super) resolver: Option<Flow>,
    /// The flows in the background.
    pub(super) background: BTreeSet<Flow>,
}

/// DChannel's knowledge of background flows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum BackgroundKnowledge {
    /// Nothing.
    #[default]
    Alike,
    /// It knows which they are, and keeps them off URLLC (HotNets 2023, Table 1).
    Apart,
}

/// DChannel's rule and what the paper varies of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Rule {
    /// The weight of the cost, in thousandths (NSDI 2023, Table 5).
    pub alpha: u32,
    /// The sides that have a reordering buffer (NSDI 2023, Fig. 5).
    pub reordering: Reordering,
    /// The source of delays (NSDI 2023, §3.5).
    pub delays: DelaySource,
    /// The factor by which eMBB's delay is mistaken, in thousandths (NSDI 2023, Fig. 10).
    pub delay_factor: u32,
    /// The treatment of background flows: told apart in `dchannel-priority`.
    pub background: BackgroundKnowledge,
    /// The end of slow start of the flows above it.
    pub slow_start: SlowStart,
    /// Connections to the gateway, which requests take in turn, domain by domain: a flow waits for nothing of another, and
    /// together they begin with a larger window.
    pub flows: u32,
}

/// More connections to a gateway are no deployment.
const MOST_FLOWS: u32 = 64;

impl Default for Rule {
    /// The published rule: α = 0.75, reordering buffers on both sides, delays measured.
    fn default() -> Self {
        Self {
            alpha: 750,
            reordering: Reordering::BothSides,
            delays: DelaySource::Measured,
            delay_factor: 1000,
            background: BackgroundKnowledge::Alike,
            slow_start: SlowStart::Plain,
            flows: 1,
        }
    }
}

/// A number of thousandths as a number.
fn number(thousandths: u32) -> f64 {
    f64::from(thousandths) / 1e3
}

/// A number as thousandths.
fn thousandths(text: &str) -> Option<u32> {
    let number = text.parse::<f64>().ok().filter(|number| (0.0..=1000.0).contains(number))?;
    Some((number * 1e3).round() as u32)
}

impl Below {
    /// The policy of one direction, for channels as `known` and flows as `flows`. The traffic of others on URLLC stays there.
    pub(in crate::experiment) fn steerer(
        self,
        direction: Direction,
        known: Knowledge,
        flows: &Flows,
    ) -> Box<dyn SteeringPolicy> {
        Box::new(Beside { own: self.rule(direction, known, flows) })
    }

    /// The policy of one direction for the device's own flows.
    fn rule(self, direction: Direction, known: Knowledge, flows: &Flows) -> Box<dyn SteeringPolicy> {
        match (self, direction) {
            (Self::DChannel(rule), _) => {
                let policy = CostReward::new(known).with_alpha(number(rule.alpha)).with_delays(rule.delays);
                let policy = policy.with_delay_error(number(rule.delay_factor));
                match rule.background {
                    BackgroundKnowledge::Alike => Box::new(policy),
                    BackgroundKnowledge::Apart => Box::new(policy.without(flows.background.clone())),
                }
            }
            (Self::Asap, _) => Box::new(Asap::new(direction, flows.resolver)),
            (Self::PktState, _) => Box::new(PacketState::default()),
            (Self::PktControl, _) => Box::new(PacketSize::new(CONTROL)),
            (Self::PktSize(below), _) => Box::new(PacketSize::new(below)),
            (Self::PktUplink, Direction::Up) => Box::new(Always(Branch::LowLatency)),
            (Self::PktUplink, Direction::Down) => Box::new(Always(Branch::HighBandwidth)),
        }
    }

    /// Returns the sides that have a reordering buffer: the papers' testbeds have it for every steerer of packets.
    pub(in crate::experiment) const fn reordering(self) -> Reordering {
        match self {
            Self::DChannel(rule) => rule.reordering,
            _ => Reordering::BothSides,
        }
    }
}

/// A policy for one device, beside whose packets those of others take the low-latency channel.
#[derive(Debug)]
struct Beside {
    own: Box<dyn SteeringPolicy>,
}

impl SteeringPolicy for Beside {
    fn choose(&mut self, now: Duration, flow: Flow, size: usize) -> Branch {
        if flow == medium::flow(nowhere()) { Branch::LowLatency } else { self.own.choose(now, flow, size) }
    }

    fn expected_reward(&self) -> Option<f64> {
        self.own.expected_reward()
    }

    fn on_estimate(&mut self, estimate: Estimate) {
        self.own.on_estimate(estimate);
    }
}

impl fmt::Display for Below {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DChannel(rule) => rule.fmt(f),
            Self::Asap => f.write_str("asap"),
            Self::PktState => f.write_str("pkt-state"),
            Self::PktControl => f.write_str("pkt-control"),
            Self::PktUplink => f.write_str("pkt-uplink"),
            Self::PktSize(below) => write!(f, "best-pkt-size:{below}"),
        }
    }
}

impl FromStr for Below {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name.split_once(':') {
            None if name == "dchannel" => Ok(Self::DChannel(Rule::default())),
            Some(("dchannel", options)) => options.parse().map(Self::DChannel),
            None if name == "dchannel-priority" => {
                Ok(Self::DChannel(Rule { background: BackgroundKnowledge::Apart, ..Rule::default() }))
            }
            None if name == "asap" => Ok(Self::Asap),
            None if name == "pkt-state" => Ok(Self::PktState),
            None if name == "pkt-control" => Ok(Self::PktControl),
            None if name == "pkt-uplink" => Ok(Self::PktUplink),
            Some(("best-pkt-size", size)) => {
                size.parse().map(Self::PktSize).map_err(|_| format!("{size:?} is no number of bytes"))
            }
            _ => Err(format!(
                "nothing steers below the transport by the name of {name:?}: choose one of dchannel, \
                 dchannel:OPTIONS, dchannel-priority, asap, pkt-state, pkt-control, pkt-uplink or best-pkt-size:BYTES"
            )),
        }
    }
}

/// `dchannel`, and a colon and what is not as published, if anything is not.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = Self::default();
        let mut options = Vec::new();
        if self.alpha != usual.alpha {
            options.push(format!("alpha={}", number(self.alpha)));
        }
        match self.reordering {
            Reordering::BothSides => {}
            Reordering::ClientSide => options.push("buffer=client".to_owned()),
            Reordering::Nowhere => options.push("buffer=none".to_owned()),
        }
        if self.delays == DelaySource::Told {
            options.push("delays=told".to_owned());
        }
        if self.delay_factor != usual.delay_factor {
            options.push(format!("delay={}", number(self.delay_factor)));
        }
        if self.background == BackgroundKnowledge::Apart {
            options.push("background=apart".to_owned());
        }
        if self.slow_start != usual.slow_start {
            options.push(format!("slow-start={}", self.slow_start.name()));
        }
        if self.flows != usual.flows {
            options.push(format!("flows={}", self.flows));
        }
        f.write_str("dchannel")?;
        if options.is_empty() { Ok(()) } else { write!(f, ":{}", options.join(",")) }
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(options: &str) -> Result<Self, String> {
        let mut rule = Self::default();
        for option in options.split(',') {
            let wrong = || {
                format!(
                    "{option:?} is no option of dchannel: choose alpha=NUMBER, buffer=client, buffer=none, \
                     delays=told, delay=FACTOR, background=apart, slow-start=hystart or flows=NUMBER"
                )
            };
            match option.split_once('=').ok_or_else(wrong)? {
                ("alpha", alpha) => rule.alpha = thousandths(alpha).ok_or_else(wrong)?,
                ("buffer", "client") => rule.reordering = Reordering::ClientSide,
                ("buffer", "none") => rule.reordering = Reordering::Nowhere,
                ("delays", "told") => rule.delays = DelaySource::Told,
                ("background", "apart") => rule.background = BackgroundKnowledge::Apart,
                ("slow-start", end) => rule.slow_start = end.parse()?,
                ("flows", flows) => {
                    let number = flows.parse().ok().filter(|number| (1..=MOST_FLOWS).contains(number));
                    rule.flows = number.ok_or_else(wrong)?;
                }
                ("delay", factor) => rule.delay_factor = thousandths(factor).ok_or_else(wrong)?,
                _ => return Err(wrong()),
            }
        }
        Ok(rule)
    }
}
