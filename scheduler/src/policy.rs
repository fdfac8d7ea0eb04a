//! The registry: policies by name.

use std::fmt;
use std::str::FromStr;

use crate::{Hvc, MinRtt, PathId, Redundant, RoundRobin, Scheduler, Single};

/// A policy that can be asked for by name, in a configuration or on a command line.
///
/// The names are those of [`Policy::NAMES`]; `single:N` fixes the path with id N.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Policy {
    /// The cost-reward rule for heterogeneous virtual channels: [`Hvc`].
    #[default]
    Hvc,
    /// [`MinRtt`].
    MinRtt,
    /// [`RoundRobin`].
    RoundRobin,
    /// [`Redundant`].
    Redundant,
    /// [`Single`], on the path given or on the one of smallest id.
    Single(Option<PathId>),
}

impl Policy {
    /// Every name, the default first.
    pub const NAMES: [&'static str; 5] = ["hvc", "min-rtt", "round-robin", "redundant", "single"];

    /// A fresh scheduler of this policy.
    pub fn scheduler(self) -> Box<dyn Scheduler> {
        match self {
            Self::Hvc => Box::new(Hvc::default()),
            Self::MinRtt => Box::new(MinRtt),
            Self::RoundRobin => Box::new(RoundRobin::default()),
            Self::Redundant => Box::new(Redundant),
            Self::Single(None) => Box::new(Single::default()),
            Self::Single(Some(path)) => Box::new(Single::on(path)),
        }
    }
}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        match name {
            "hvc" => Ok(Self::Hvc),
            "min-rtt" => Ok(Self::MinRtt),
            "round-robin" => Ok(Self::RoundRobin),
            "redundant" => Ok(Self::Redundant),
            "single" => Ok(Self::Single(None)),
            _ => name
                .strip_prefix("single:")
                .and_then(|id| id.parse().ok())
                .map(|id| Self::Single(Some(PathId(id))))
                .ok_or_else(|| UnknownPolicy(name.to_owned())),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hvc => "hvc",
            Self::MinRtt => "min-rtt",
            Self::RoundRobin => "round-robin",
            Self::Redundant => "redundant",
            Self::Single(None) => "single",
            Self::Single(Some(path)) => return write!(f, "single:{path}"),
        })
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
            "no scheduling policy is called {:?}: choose one of {names}, or single:N for path N",
            self.0
        )
    }
}

impl std::error::Error for UnknownPolicy {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_the_policy_of_that_name() {
        for name in Policy::NAMES {
            let policy: Policy = name.parse().expect("a listed name parses");
            assert_eq!(policy.to_string(), name);
            assert_eq!(policy.scheduler().name(), name);
        }
        assert_eq!("single:7".parse(), Ok(Policy::Single(Some(PathId(7)))));
        assert_eq!(Policy::Single(Some(PathId(7))).to_string(), "single:7");
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        for name in ["", "HVC", "single:", "single:-1", "single:4294967296", "blest"] {
            let error = name.parse::<Policy>().expect_err("not a name");
            assert!(error.to_string().contains(name));
            assert!(Policy::NAMES.iter().all(|known| error.to_string().contains(known)));
        }
    }
}
