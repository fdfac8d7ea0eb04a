//! The ways of using two channels that are compared.

use super::below::Below;
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

impl Scheme {
    /// Returns true if it uses one channel alone.
    pub const fn is_single(self) -> bool {
        matches!(self, Self::EmbbAlone | Self::UrllcAlone)
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmbbAlone => f.write_str("embb"),
            Self::UrllcAlone => f.write_str("urllc"),
            Self::Ideal => f.write_str("ideal"),
            Self::Below(below) => write!(f, "below:{below}"),
            Self::Paths(policy) => policy.fmt(f),
        }
    }
}

impl FromStr for Scheme {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match (name, name.strip_prefix("below:")) {
            ("embb", _) => Ok(Self::EmbbAlone),
            ("urllc", _) => Ok(Self::UrllcAlone),
            ("ideal", _) => Ok(Self::Ideal),
            (_, Some(steerer)) => steerer.parse().map(Self::Below),
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
        let names = [
            "embb",
            "urllc",
            "ideal",
            "below:dchannel",
            "below:dchannel:alpha=1.5,buffer=client,delays=told,delay=0.2",
            "below:best-pkt-size:700",
            "hvc",
            "obj-size:6000",
        ];
        for name in names {
            assert_eq!(name.parse::<Scheme>().map(String::from), Ok(name.to_owned()));
        }
        for name in ["", "below:", "below:hvc", "below:dchannel:alpha=x", "below:dchannel:beta=1", "warp"] {
            assert!(name.parse::<Scheme>().is_err(), "{name}");
        }
    }
}
