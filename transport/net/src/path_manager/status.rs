//! The view of the manager for people and programs: what each link is used for, or why not.

use super::budget::Budget;
use crate::links::LinkKind;
use crate::{PathId, PathState};
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

/// The reason for which no path uses a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The link is switched off.
    Down,
    /// Nothing is at its other end.
    NoCarrier,
    /// It has no address that can be used beyond it.
    NoAddress,
    /// It has no route to any address of the peer.
    NoRoute,
    /// It is a tunnel, and no rule permits it.
    Tunnel,
    /// This rule forbids it.
    Rule(String),
    /// The budget of its rule is spent until the next day or month.
    Spent {
        /// The budget.
        budget: Budget,
        /// Bytes spent.
        spent: u64,
    },
    /// Better links use all paths that are permitted.
    Surplus {
        /// The number of paths that are permitted.
        most: usize,
    },
    /// The peer permits no further path yet.
    PeerLimit,
    /// The peer does not speak multipath, and the one path uses another link.
    SinglePath,
    /// Attempts failed; the next one follows.
    Failed {
        /// Attempts that failed in a row.
        failures: u32,
        /// The error of the last one.
        error: String,
    },
    /// It is about to be used.
    Pending,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Down => f.write_str("the link is switched off"),
            Self::NoCarrier => f.write_str("the link is not connected"),
            Self::NoAddress => f.write_str("the link has no address"),
            Self::NoRoute => f.write_str("the link has no route to the peer"),
            Self::Tunnel => f.write_str("the link is a tunnel, and no rule permits it"),
            Self::Rule(rule) => write!(f, "the rule {rule} forbids it"),
            Self::Spent { budget, spent } => write!(f, "{spent} bytes were spent of {budget}"),
            Self::Surplus { most } => write!(f, "other links use the {most} paths that are permitted"),
            Self::PeerLimit => f.write_str("the peer permits no further path yet"),
            Self::SinglePath => f.write_str("the peer does not speak multipath"),
            Self::Failed { failures: 1, error } => write!(f, "an attempt failed: {error}"),
            Self::Failed { failures, error } => write!(f, "{failures} attempts failed: {error}"),
            Self::Pending => f.write_str("it is about to be used"),
        }
    }
}

/// The part that a link plays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LinkUse {
    /// A path uses it.
    Path {
        /// The path.
        id: PathId,
        /// The state of the path.
        state: PathState,
        /// The local address of the path, unless the system chooses it for each packet.
        local: Option<IpAddr>,
    },
    /// No path uses it.
    Unused(Reason),
}

/// A link and the part that it plays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkStatus {
    /// The name of the interface.
    pub name: String,
    /// The number of the interface.
    pub index: u32,
    /// The technology behind the link.
    pub kind: LinkKind,
    /// The part that it plays.
    pub usage: LinkUse,
    /// The rule by which it is used; `None` for the default, and for a link that is of no use.
    pub rule: Option<String>,
}

/// A snapshot of the links and rules as the manager sees them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PathManagerStatus {
    /// The links, by the number of their interface.
    pub links: Vec<LinkStatus>,
    /// The rules that are for none of the links: most likely a name is mistyped.
    pub idle_rules: Vec<String>,
}

impl PathManagerStatus {
    /// The link called `name`.
    pub fn link(&self, name: &str) -> Option<&LinkStatus> {
        self.links.iter().find(|link| link.name == name)
    }
}

/// Something that the manager did, or that befell one of its paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PathManagerEvent {
    /// A path through the link called `link` was opened; `after` is the time since the link became usable, or since the
    /// manager began.
    Opened {
        /// The name of the interface.
        link: String,
        /// The path.
        path: PathId,
        /// The time since the link became usable.
        after: Duration,
    },
    /// The peer answered over a path.
    Validated {
        /// The name of the interface.
        link: String,
        /// The path.
        path: PathId,
    },
    /// A path is moved to another address, of the link called `link`.
    Moved {
        /// The name of the interface.
        link: String,
        /// The path.
        path: PathId,
        /// The address.
        to: IpAddr,
    },
    /// A path was given up because its link is gone or not wanted any more.
    Abandoned {
        /// The name of the interface that it used.
        link: String,
        /// The path.
        path: PathId,
    },
    /// An attempt to use a link failed.
    Failed {
        /// The name of the interface.
        link: String,
        /// The reason.
        error: String,
    },
    /// A path that was in use ended, and not because the manager gave it up.
    Lost {
        /// The name of the interface that it used.
        link: String,
        /// The path.
        path: PathId,
    },
}

impl fmt::Display for PathManagerEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { link, path, .. } => write!(f, "path {path} is opened over {link}"),
            Self::Validated { link, path } => write!(f, "path {path} over {link} is validated"),
            Self::Moved { link, path, to } => write!(f, "path {path} moves to {to} of {link}"),
            Self::Abandoned { link, path } => write!(f, "path {path} over {link} is given up"),
            Self::Failed { link, error } => write!(f, "{link} cannot be used: {error}"),
            Self::Lost { link, path } => write!(f, "path {path} over {link} ended"),
        }
    }
}
