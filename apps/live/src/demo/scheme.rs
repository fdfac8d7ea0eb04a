//! The ways of using two channels that are compared.

use hvq_scheduler::Policy;
use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A way of using the channels: eMBB alone, or both under a policy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Scheme(Policy);

impl Scheme {
    /// eMBB alone: what the others are measured against.
    pub(super) const BASELINE: Self = Self(Policy::Single(None));

    /// The policy of client and server.
    pub(super) fn policy(self) -> Policy {
        self.0
    }

    /// Returns true if it uses both channels.
    pub(super) fn is_multipath(self) -> bool {
        self != Self::BASELINE
    }

    /// Its name for people.
    pub fn label(self) -> String {
        if self.is_multipath() { self.to_string() } else { "eMBB only".to_owned() }
    }
}

impl FromStr for Scheme {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name.parse() {
            Ok(Policy::Single(Some(_))) => Err("single is eMBB alone and takes no path".to_owned()),
            Ok(policy) => Ok(Self(policy)),
            Err(error) => Err(format!("{error} (single is eMBB alone)")),
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Scheme {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One of the two channels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ChannelName {
    /// Much bandwidth, much delay.
    Embb,
    /// Little of both.
    Urllc,
}

impl ChannelName {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Embb, Self::Urllc];

    /// Its name for people.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Embb => "eMBB",
            Self::Urllc => "URLLC",
        }
    }

    /// Its name for programs.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Embb => "embb",
            Self::Urllc => "urllc",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_policies_and_single_is_the_baseline() {
        assert_eq!("single".parse(), Ok(Scheme::BASELINE));
        assert_eq!("hvc".parse::<Scheme>().unwrap().label(), "hvc");
        assert_eq!(Scheme::BASELINE.label(), "eMBB only");
        assert!("single:1".parse::<Scheme>().is_err());
        assert!("warp".parse::<Scheme>().unwrap_err().contains("\"warp\""));
    }
}
