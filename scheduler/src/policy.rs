//! The registry: policies by name.

use std::fmt;
use std::str::FromStr;

use crate::paper::{
    Asap, Channel, CostReward, EarlyArrival, Fixed, Flows, ObjectPriority, ObjectSize, ObjectSteering,
    PacketControl, PacketSize, PacketState, PacketUplink, PaperScheme, PrioritySvc,
};
use crate::{
    Blest, Duplicating, Ecf, Hvc, MinRtt, PathId, Redundant, RoundRobin, Scheduler, Single, Sttf, Variant,
    Weighted, Xlink,
};

/// Makes the registry of its rows. A row is the description, the variant, its parameter with the default, the name and the scheduler;
/// those of `derived` are variants of others, which [`Policy::with_parameter`] reads.
macro_rules! policies {
    (
        $(#[$about:meta])*
        named {$(
            $(#[$doc:meta])*
            $variant:ident $(($parameter:ident: $type:ty = $default:expr))?, $name:literal => $make:expr;
        )*}
        derived {$(
            $(#[$other_doc:meta])*
            $other:ident $(($other_parameter:ident: $other_type:ty))? => $other_make:expr;
        )*}
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub enum Policy {
            $($(#[$doc])* $variant $(($type))?,)*
            $($(#[$other_doc])* $other $(($other_type))?,)*
        }

        /// Every policy with its default parameters, by name, the default first.
        const ALL: &[(&str, Policy)] = &[$(($name, Policy::$variant $(($default))?)),*];

        impl Policy {
            /// A fresh scheduler of this policy.
            pub fn scheduler(self) -> Box<dyn Scheduler> {
                match self {
                    $(Self::$variant $(($parameter))? => Box::new($make),)*
                    $(Self::$other $(($other_parameter))? => Box::new($other_make),)*
                }
            }
        }
    };
}

policies! {
    /// A policy that can be asked for by name, in a configuration or on a command line.
    ///
    /// The names are those of [`Policy::NAMES`]; `single:N` fixes the path with id N, `best-pkt-size:BYTES` and
    /// `obj-size:BYTES` the size below which a packet or an object is small, `hvc:alpha=NUMBER` and `hvc:price=demand` the price of
    /// scarce paths, and `stms` is another name for `sttf`.
    named {
        /// The cost-reward rule for heterogeneous virtual channels: [`Hvc`].
        #[default]
        Hvc, "hvc" => Hvc::default();
        /// [`Hvc`], with copies of what is critical on two paths: [`Duplicating`].
        HvcDuplicate, "hvc-duplicate" => Duplicating::default();
        /// [`MinRtt`].
        MinRtt, "min-rtt" => MinRtt;
        /// [`RoundRobin`].
        RoundRobin, "round-robin" => RoundRobin::default();
        /// [`Weighted`].
        Weighted, "weighted" => Weighted::default();
        /// [`Redundant`].
        Redundant, "redundant" => Redundant;
        /// [`Single`], on the path given or on the one of smallest id.
        Single(path: Option<PathId> = None), "single" => path.map_or_else(Single::default, Single::on);
        /// [`Ecf`].
        Ecf, "ecf" => Ecf::default();
        /// [`Blest`].
        Blest, "blest" => Blest::default();
        /// [`Sttf`].
        Sttf, "sttf" => Sttf::default();
        /// [`Xlink`].
        Xlink, "xlink" => Xlink::default();
        /// [`Fixed`] to the high-bandwidth channel.
        AllEmbb, "all-embb" => PaperScheme::new(Fixed(Channel::HighBandwidth));
        /// [`Fixed`] to the low-latency channel.
        AllUrllc, "all-urllc" => PaperScheme::new(Fixed(Channel::LowLatency));
        /// [`PacketUplink`].
        PktUplink, "pkt-uplink" => PaperScheme::new(PacketUplink);
        /// [`PacketControl`].
        PktControl, "pkt-control" => PaperScheme::new(PacketControl);
        /// [`PacketState`].
        PktState, "pkt-state" => PaperScheme::new(PacketState::default());
        /// [`PacketSize`], below this many bytes.
        BestPktSize(below: usize = PacketSize::DEFAULT), "best-pkt-size" => PaperScheme::new(PacketSize::new(below));
        /// [`ObjectSize`], below this many bytes.
        ObjSize(below: usize = ObjectSize::DEFAULT), "obj-size" => PaperScheme::new(ObjectSize::new(below));
        /// [`ObjectPriority`].
        ObjPriority, "obj-priority" => PaperScheme::new(ObjectPriority);
        /// [`ObjectSteering`].
        ObjSteering, "obj-steering" => PaperScheme::new(ObjectSteering::default());
        /// [`Asap`].
        Asap, "asap" => PaperScheme::new(Asap);
        /// [`EarlyArrival`].
        Ians, "ians" => PaperScheme::new(EarlyArrival::default());
        /// [`CostReward`] for all flows.
        DChannel, "dchannel" => PaperScheme::new(CostReward::new(Flows::All));
        /// [`CostReward`] for foreground flows.
        DChannelPriority, "dchannel-priority" => PaperScheme::new(CostReward::new(Flows::Foreground));
        /// [`PrioritySvc`].
        PrioritySvc, "priority-svc" => PaperScheme::new(PrioritySvc);
    }
    derived {
        /// `hvc` at another price of scarce paths.
        HvcOf(variant: Variant) => Hvc::of(variant);
        /// [`Xlink::ALWAYS`].
        XlinkAlways => Xlink::ALWAYS;
    }
}

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

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let wanted = if name == "stms" { "sttf" } else { name };
        let known = ALL.iter().find(|(known, _)| *known == wanted).map(|(_, policy)| *policy);
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
