//! The ways of using two channels that are compared.

use super::below::Below;
use super::run::is_told;
use crate::world::Side;
use hvq_scheduler::Policy;
use hvq_transport::congestion::Algorithm;
use hvq_transport::connection::QueueBound;
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
    /// eMBB alone with one of both ends of slow start, whatever the deployment.
    EmbbWith(SlowStart),
    /// Both as two paths, frames scheduled by a policy. Those that others published have what their authors have: a window,
    /// and no bound on the queue of the quick path.
    Paths(Policy),
    /// The same with hvq's bound on the queue of the quick path, which `hvc` always has.
    Bound(Policy),
    /// The same with a policy that otherwise measures and is told nothing: it gets the hints that others get.
    Told(Policy),
    /// Both as two paths of a client with `hvc` to a server of somebody else, which knows no hints and places what it sends
    /// by this policy.
    Foreign(Policy),
}

/// The end of slow start of CUBIC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SlowStart {
    /// The first loss (RFC 5681).
    Plain,
    /// The first growth of round trips (HyStart++, RFC 9406).
    Hystart,
}

impl SlowStart {
    /// CUBIC with it.
    pub const fn cubic(self) -> Algorithm {
        match self {
            Self::Plain => Algorithm::PlainCubic,
            Self::Hystart => Algorithm::Cubic,
        }
    }

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Hystart => "hystart",
        }
    }
}

impl FromStr for SlowStart {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "plain" => Ok(Self::Plain),
            "hystart" => Ok(Self::Hystart),
            _ => Err(format!("{name:?} is no end of slow start: choose plain or hystart")),
        }
    }
}

impl Scheme {
    /// Returns true if it uses one channel alone.
    pub const fn is_single(self) -> bool {
        matches!(self, Self::EmbbAlone | Self::UrllcAlone)
    }

    /// Returns true if connections have two paths.
    pub const fn has_paths(self) -> bool {
        matches!(self, Self::Paths(_) | Self::Bound(_) | Self::Told(_) | Self::Foreign(_))
    }

    /// Returns the policy of `side`.
    pub const fn policy(self, side: Side) -> Policy {
        match (self, side) {
            (Self::Paths(policy) | Self::Bound(policy) | Self::Told(policy), _)
            | (Self::Foreign(policy), Side::Server) => policy,
            (Self::Foreign(_), Side::Client) => Policy::Hvc,
            _ => Policy::Single(None),
        }
    }

    /// Returns true if `side` gets the hints about the channels that it is to be told.
    pub(in crate::experiment) fn hears(self, side: Side) -> bool {
        match self {
            Self::Paths(policy) | Self::Bound(policy) => is_told(policy),
            Self::Told(_) => true,
            Self::Foreign(_) => side == Side::Client,
            _ => false,
        }
    }

    /// Tells whether the transport of `side` bounds the queue of a quick path. It does for `hvc`, which counts on it; the
    /// authors of the other policies know no such bound, and neither does a server of somebody else.
    pub(in crate::experiment) const fn queue_bound(self, side: Side) -> QueueBound {
        match (self, self.policy(side)) {
            (Self::Bound(_), _) | (_, Policy::Hvc | Policy::HvcOf(_) | Policy::HvcDuplicate) => {
                QueueBound::On
            }
            _ => QueueBound::Off,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmbbAlone => f.write_str("embb"),
            Self::UrllcAlone => f.write_str("urllc"),
            Self::Ideal => f.write_str("ideal"),
            Self::EmbbWith(slow_start) => write!(f, "embb:{}", slow_start.name()),
            Self::Below(below) => write!(f, "below:{below}"),
            Self::Paths(policy) => policy.fmt(f),
            Self::Bound(policy) => write!(f, "bound:{policy}"),
            Self::Told(policy) => write!(f, "told:{policy}"),
            Self::Foreign(policy) => write!(f, "foreign:{policy}"),
        }
    }
}

impl FromStr for Scheme {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let policy = |name: &str| {
            name.parse::<Policy>().map_err(|error| {
                format!(
                    "{error}; or embb, embb:plain, embb:hystart, urllc, ideal, below:NAME for a steerer of packets, told:NAME \
                     for a policy that is told all the same, bound:NAME for one with hvq's bound on queues, foreign:NAME for that of a foreign server"
                )
            })
        };
        match name.split_once(':') {
            None if name == "embb" => Ok(Self::EmbbAlone),
            None if name == "urllc" => Ok(Self::UrllcAlone),
            None if name == "ideal" => Ok(Self::Ideal),
            Some(("embb", slow_start)) => slow_start.parse().map(Self::EmbbWith),
            Some(("below", steerer)) => steerer.parse().map(Self::Below),
            Some(("bound", name)) => policy(name).map(Self::Bound),
            Some(("told", name)) => policy(name).map(Self::Told),
            Some(("foreign", name)) => policy(name).map(Self::Foreign),
            _ => policy(name).map(Self::Paths),
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
            "below:dchannel:slow-start=hystart,flows=6",
            "embb:hystart",
            "told:min-rtt",
            "bound:min-rtt",
            "foreign:round-robin",
            "hvc",
            "obj-size:6000",
        ];
        for name in names {
            assert_eq!(name.parse::<Scheme>().map(String::from), Ok(name.to_owned()));
        }
        for name in [
            "",
            "embb:fast",
            "told:",
            "bound:embb",
            "foreign:embb",
            "below:",
            "below:hvc",
            "below:dchannel:alpha=x",
            "below:dchannel:beta=1",
            "warp",
        ] {
            assert!(name.parse::<Scheme>().is_err(), "{name}");
        }
    }
}
