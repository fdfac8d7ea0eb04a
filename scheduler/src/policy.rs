//! The registry: policies by name.

use std::fmt;
use std::str::FromStr;

use crate::paper::{
    Asap, Channel, CostReward, EarlyArrival, Fixed, Flows, ObjectPriority, ObjectSize, ObjectSteering,
    PacketControl, PacketSize, PacketState, PacketUplink, PaperScheme, PrioritySvc, Rule,
};
use crate::{
    Blest, Duplicating, Ecf, Hvc, MinRtt, PathId, Redundant, RoundRobin, Scheduler, Single, Sttf, Variant,
    Weighted, Xlink,
};

/// A policy that can be asked for by name, in a configuration or on a command line.
///
/// The names are those of [`Policy::NAMES`]; `single:N` fixes the path with id N, `best-pkt-size:BYTES` and
/// `obj-size:BYTES` the size below which a packet or an object is small, `hvc:alpha=NUMBER` and `hvc:price=demand` the price of
/// scarce paths, and `stms` is another name for `sttf`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Policy {
    /// The cost-reward rule for heterogeneous virtual channels: [`Hvc`].
    #[default]
    Hvc,
    /// `hvc` at another price of scarce paths.
    HvcOf(Variant),
    /// [`Hvc`], with copies of what is critical on two paths: [`Duplicating`].
    HvcDuplicate,
    /// [`MinRtt`].
    MinRtt,
    /// [`RoundRobin`].
    RoundRobin,
    /// [`Weighted`].
    Weighted,
    /// [`Redundant`].
    Redundant,
    /// [`Single`], on the path given or on the one of smallest id.
    Single(Option<PathId>),
    /// [`Ecf`].
    Ecf,
    /// [`Blest`].
    Blest,
    /// [`Sttf`].
    Sttf,
    /// [`Xlink`].
    Xlink,
    /// [`Xlink::ALWAYS`].
    XlinkAlways,
    /// [`Fixed`] to the high-bandwidth channel.
    AllEmbb,
    /// [`Fixed`] to the low-latency channel.
    AllUrllc,
    /// [`PacketUplink`].
    PktUplink,
    /// [`PacketControl`].
    PktControl,
    /// [`PacketState`].
    PktState,
    /// [`PacketSize`], below this many bytes.
    BestPktSize(usize),
    /// [`ObjectSize`], below this many bytes.
    ObjSize(usize),
    /// [`ObjectPriority`].
    ObjPriority,
    /// [`ObjectSteering`].
    ObjSteering,
    /// [`Asap`].
    Asap,
    /// [`EarlyArrival`].
    Ians,
    /// [`CostReward`] for all flows.
    DChannel,
    /// [`CostReward`] for foreground flows.
    DChannelPriority,
    /// [`PrioritySvc`].
    PrioritySvc,
}

/// Every policy with its default parameters, by name, the default first.
const ALL: [(&str, Policy); 25] = [
    ("hvc", Policy::Hvc),
    ("hvc-duplicate", Policy::HvcDuplicate),
    ("min-rtt", Policy::MinRtt),
    ("round-robin", Policy::RoundRobin),
    ("weighted", Policy::Weighted),
    ("redundant", Policy::Redundant),
    ("single", Policy::Single(None)),
    ("ecf", Policy::Ecf),
    ("blest", Policy::Blest),
    ("sttf", Policy::Sttf),
    ("xlink", Policy::Xlink),
    ("all-embb", Policy::AllEmbb),
    ("all-urllc", Policy::AllUrllc),
    ("pkt-uplink", Policy::PktUplink),
    ("pkt-control", Policy::PktControl),
    ("pkt-state", Policy::PktState),
    ("best-pkt-size", Policy::BestPktSize(PacketSize::DEFAULT)),
    ("obj-size", Policy::ObjSize(ObjectSize::DEFAULT)),
    ("obj-priority", Policy::ObjPriority),
    ("obj-steering", Policy::ObjSteering),
    ("asap", Policy::Asap),
    ("ians", Policy::Ians),
    ("dchannel", Policy::DChannel),
    ("dchannel-priority", Policy::DChannelPriority),
    ("priority-svc", Policy::PrioritySvc),
];

impl Policy {
    /// Every name, the default first.
    pub const NAMES: [&'static str; ALL.len()] = {
        let mut names = [""; ALL.len()];
        let mut index = 0;
        while index < ALL.len() {
            names[index] = ALL[index].0;
            index += 1;
        }
        names
    };

    /// A fresh scheduler of this policy.
    pub fn scheduler(self) -> Box<dyn Scheduler> {
        match self {
            Self::Hvc => Box::new(Hvc::default()),
            Self::HvcOf(variant) => Box::new(Hvc::of(variant)),
            Self::HvcDuplicate => Box::new(Duplicating::default()),
            Self::MinRtt => Box::new(MinRtt),
            Self::RoundRobin => Box::new(RoundRobin::default()),
            Self::Weighted => Box::new(Weighted::default()),
            Self::Redundant => Box::new(Redundant),
            Self::Single(None) => Box::new(Single::default()),
            Self::Single(Some(path)) => Box::new(Single::on(path)),
            Self::Ecf => Box::new(Ecf::default()),
            Self::Blest => Box::new(Blest::default()),
            Self::Sttf => Box::new(Sttf::default()),
            Self::Xlink => Box::new(Xlink::default()),
            Self::XlinkAlways => Box::new(Xlink::ALWAYS),
            Self::AllEmbb => paper(Fixed(Channel::HighBandwidth)),
            Self::AllUrllc => paper(Fixed(Channel::LowLatency)),
            Self::PktUplink => paper(PacketUplink),
            Self::PktControl => paper(PacketControl),
            Self::PktState => paper(PacketState::default()),
            Self::BestPktSize(below) => paper(PacketSize::new(below)),
            Self::ObjSize(below) => paper(ObjectSize::new(below)),
            Self::ObjPriority => paper(ObjectPriority),
            Self::ObjSteering => paper(ObjectSteering::default()),
            Self::Asap => paper(Asap),
            Self::Ians => paper(EarlyArrival::default()),
            Self::DChannel => paper(CostReward::new(Flows::All)),
            Self::DChannelPriority => paper(CostReward::new(Flows::Foreground)),
            Self::PrioritySvc => paper(PrioritySvc),
        }
    }

    /// The policy called `name` with the parameter behind a colon.
    fn with_parameter(name: &str, parameter: &str) -> Option<Self> {
        match name {
            "hvc" => parameter.parse().ok().map(Self::HvcOf),
            "single" => parameter.parse().ok().map(|id| Self::Single(Some(PathId(id)))),
            "best-pkt-size" => parameter.parse().ok().map(Self::BestPktSize),
            "xlink" => (parameter == "always").then_some(Self::XlinkAlways),
            "obj-size" => parameter.parse().ok().map(Self::ObjSize),
            _ => None,
        }
    }
}

fn paper<R: Rule + 'static>(rule: R) -> Box<dyn Scheduler> {
    Box::new(PaperScheme::new(rule))
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let wanted = if name == "stms" { "sttf" } else { name };
        let known = ALL.into_iter().find(|(known, _)| *known == wanted).map(|(_, policy)| policy);
        let parameter = || name.split_once(':').and_then(|(name, value)| Self::with_parameter(name, value));
        known.or_else(parameter).ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = ALL.iter().find(|(_, policy)| policy == self) {
            return f.write_str(name);
        }
        match self {
            Self::HvcOf(variant) => write!(f, "hvc:{variant}"),
            Self::XlinkAlways => f.write_str("xlink:always"),
            Self::Single(Some(path)) => write!(f, "single:{path}"),
            Self::BestPktSize(below) => write!(f, "best-pkt-size:{below}"),
            Self::ObjSize(below) => write!(f, "obj-size:{below}"),
            other => f.write_str(other.scheduler().name()),
        }
    }
}

/// The name that no policy has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownPolicy(pub String);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Policy::NAMES.join(", ");
        write!(
            f,
            "no scheduling policy is called {:?}: choose one of {names}, single:N for path N, best-pkt-size:BYTES \
             or obj-size:BYTES for another threshold, xlink:always for XLINK without control, hvc:alpha=NUMBER or hvc:price=demand for another price of \
             scarce paths, hvc:core for the bare formula, or hvc:without=NAME+NAME for hvc without some amendments",
            self.0
        )?;
        match self.0.strip_prefix("hvc:").map(str::parse::<Variant>) {
            Some(Err(problem)) => write!(f, "; {problem}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for UnknownPolicy {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Amendment, Amendments, Price};

    #[test]
    fn every_name_finds_the_policy_of_that_name() {
        for name in Policy::NAMES {
            let policy: Policy = name.parse().expect("a listed name parses");
            assert_eq!(policy.to_string(), name);
            assert_eq!(policy.scheduler().name(), name);
        }
        assert_eq!("stms".parse(), Ok(Policy::Sttf));
    }

    #[test]
    fn parameters_are_read_and_written_behind_a_colon() {
        let priced = |price| Policy::HvcOf(Variant { price, ..Variant::default() });
        let amendments = Amendments::ALL.without(Amendment::Waiting).without(Amendment::Spare);
        let without = Policy::HvcOf(Variant { amendments, ..Variant::default() });
        for (name, policy) in [
            ("single:7", Policy::Single(Some(PathId(7)))),
            ("best-pkt-size:250", Policy::BestPktSize(250)),
            ("obj-size:6000", Policy::ObjSize(6000)),
            ("xlink:always", Policy::XlinkAlways),
            ("hvc:alpha=1.5", priced(Price::Fixed { hundredths: 150 })),
            ("hvc:price=demand", priced(Price::Demand)),
            ("hvc:core", Policy::HvcOf(Variant { amendments: Amendments::NONE, ..Variant::default() })),
            ("hvc:without=waiting+spare", without),
        ] {
            assert_eq!(name.parse(), Ok(policy));
            assert_eq!(policy.to_string(), name);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        for name in [
            "",
            "HVC",
            "single:",
            "single:-1",
            "single:4294967296",
            "obj-size:x",
            "min-rtt:3",
            "hvc:alpha=x",
            "hvc:without=hope",
            "shortest",
        ] {
            let error = name.parse::<Policy>().expect_err("not a name");
            assert!(error.to_string().contains(name));
            assert!(Policy::NAMES.iter().all(|known| error.to_string().contains(known)));
        }
    }
}
