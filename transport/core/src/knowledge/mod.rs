//! Knowledge of network paths that outlives connections: what one connection measured, for the next one on the same path.
//!
//! A client's path is known by its own interface and the network of the server, for its bottleneck is mostly the client's
//! access; a server's by its own address and the host of the client, for the same reason (RFC 9959 §2.2 calls both together
//! the Remote Endpoint). Knowledge is a belief: it has an age, and Careful Resume
//! (`path/careful_resume.rs`) validates what it allows to send.

mod cache;
mod received;
mod stored;

pub(crate) use cache::Claim;
pub use cache::Knowledge;
pub(crate) use received::Arrival;

use crate::slots::{Prefix, host};
use crate::time::Instant;
use crate::{Bandwidth, Role};
use hvq_scheduler::PerMille;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// The memory of paths that an endpoint has beyond a connection: tells whether a connection adds to it and begins its paths
/// with what it says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathMemory {
    /// The connection neither leaves nor uses any.
    Off,
    /// It does both; what was measured longer ago is forgotten.
    For(Duration),
}

impl Default for PathMemory {
    /// Ten minutes. RFC 9959 §4.3.1 advises minutes where paths change, as those of radios do.
    fn default() -> Self {
        Self::For(Duration::from_secs(600))
    }
}

impl PathMemory {
    /// The age up to which knowledge counts; `None` if none does.
    pub(crate) fn lifetime(self) -> Option<Duration> {
        match self {
            Self::Off => None,
            Self::For(lifetime) => Some(lifetime),
        }
    }
}

/// The near end of a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Link {
    /// The link that the application named.
    Named(Arc<str>),
    /// The local address, where it named none.
    Address(IpAddr),
}

/// The far end of a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Remote {
    /// The network of a server: a /24 of IPv4, a /56 of IPv6.
    Network(Prefix),
    /// A client: its address of IPv4, its /64 of IPv6.
    Host(IpAddr),
}

/// The identity of a path, the same in later connections.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PathKey {
    /// The near end.
    pub link: Link,
    /// The far end.
    pub remote: Remote,
}

/// The longest name of a link that is told from others, in bytes.
const LONGEST_NAME: usize = 64;

impl PathKey {
    /// The key of a path over `link`, or from `local` if that has no name, to `remote`, as `role` sees it. Names beyond 64 bytes
    /// are cut.
    pub fn new(link: Option<&Arc<str>>, local: IpAddr, remote: IpAddr, role: Role) -> Self {
        let link = match link {
            Some(name) if name.len() > LONGEST_NAME => {
                let end = (0..=LONGEST_NAME).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
                Link::Named(name[..end].into())
            }
            Some(name) => Link::Named(name.clone()),
            None => Link::Address(local.to_canonical()),
        };
        let remote = match role {
            Role::Client => Remote::Network(Prefix::of(remote)),
            Role::Server => Remote::Host(host(remote)),
        };
        Self { link, remote }
    }
}

/// The measurements of a path, as a connection left them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathKnowledge {
    /// The rate of the bottleneck, if bursts showed it.
    pub rate: Option<Bandwidth>,
    /// The number of bursts that showed it: the confidence in `rate`.
    pub bursts: u8,
    /// The smallest round-trip time (saved_rtt, RFC 9959 §3.1).
    pub min_rtt: Duration,
    /// The smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Bytes that were delivered in a round trip (saved_cwnd, RFC 9959 §3.1).
    pub window: u64,
    /// The share of packets lost.
    pub loss: PerMille,
    /// The growth of the window when it was measured.
    pub extent: WindowExtent,
    /// The time at which it was measured.
    pub measured_at: Instant,
}

#[cfg(test)]
impl PathKnowledge {
    /// Knowledge of a path that lost nothing and whose rate no burst showed: `window` bytes in a round trip of `rtt`, measured at `at`.
    pub fn of_window(window: u64, rtt: Duration, at: Instant) -> Self {
        Self {
            rate: None,
            bursts: 0,
            min_rtt: rtt,
            smoothed_rtt: rtt,
            window,
            loss: PerMille::ZERO,
            extent: WindowExtent::Whole,
            measured_at: at,
        }
    }
}

/// The extent of what a connection found out about the capacity of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowExtent {
    /// It was still in slow start: the path may carry more.
    AtLeast,
    /// It found the limit.
    Whole,
}

impl PathKnowledge {
    /// Returns what is known after `newer` was measured on the path, where `self` still counts. One that had too little to send
    /// does not refute a larger window (RFC 9959 §4.1).
    fn updated(self, newer: Self) -> Self {
        let (rate, bursts) = match newer.rate {
            Some(_) => (newer.rate, newer.bursts),
            None => (self.rate, self.bursts),
        };
        let window = match newer.extent {
            WindowExtent::AtLeast => newer.window.max(self.window),
            WindowExtent::Whole => newer.window,
        };
        let measured_at = if window > newer.window { self.measured_at } else { newer.measured_at };
        let extent = if window > newer.window { self.extent } else { newer.extent };
        Self { rate, bursts, window, extent, measured_at, ..newer }
    }
}

#[cfg(test)]
mod tests;
