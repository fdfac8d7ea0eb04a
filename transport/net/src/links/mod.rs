//! Network links of this machine, and their changes: interfaces with their addresses and routes.
//!
//! On Linux the kernel tells of changes over netlink (rtnetlink(7)), which takes no privileges, but the reactor of tokio or of
//! smol. Elsewhere, and where netlink is not permitted, the links are read again each second.

#[cfg(all(target_os = "linux", any(feature = "runtime-tokio", feature = "runtime-smol")))]
mod kind;
#[cfg(all(target_os = "linux", any(feature = "runtime-tokio", feature = "runtime-smol")))]
mod netlink;
mod poll;
#[cfg(all(target_os = "linux", any(feature = "runtime-tokio", feature = "runtime-smol")))]
mod snapshot;
#[cfg(test)]
mod tests;

use crate::runtime;
use crate::runtime::{Runtime, Stop};
use ipnet::IpNet;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Links that a snapshot holds at most; those beyond are left out.
pub(crate) const MOST_LINKS: usize = 256;
/// Addresses, and routes, of each link that a snapshot holds at most.
const MOST_OF_EACH: usize = 64;
/// The interval between two readings where nothing tells of changes.
const POLL: Duration = Duration::from_secs(1);

/// The technology behind a link. Text forms: the names in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LinkKind {
    /// A cable, or a virtual interface that behaves like one: a bridge, a VLAN, a bond, a pair of veth.
    Ethernet,
    /// IEEE 802.11.
    Wifi,
    /// A modem of a mobile network.
    Cellular,
    /// Packets inside of packets: a VPN, TUN, WireGuard, GRE and the like.
    Tunnel,
    /// This machine itself.
    Loopback,
    /// Anything else.
    Other,
}

impl LinkKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Ethernet, Self::Wifi, Self::Cellular, Self::Tunnel, Self::Loopback, Self::Other];

    /// The name that [`FromStr`] takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "ethernet",
            Self::Wifi => "wifi",
            Self::Cellular => "cellular",
            Self::Tunnel => "tunnel",
            Self::Loopback => "loopback",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Text that names no kind of link.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no kind of link: choose from ethernet, wifi, cellular, tunnel, loopback, other")]
pub struct UnknownLinkKind(pub String);

impl FromStr for LinkKind {
    type Err = UnknownLinkKind;

    fn from_str(text: &str) -> Result<Self, UnknownLinkKind> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| UnknownLinkKind(text.to_owned()))
    }
}

/// The state of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkState {
    /// It is switched on and connected.
    Up,
    /// It is switched on, and nothing is at its other end: no cable, no access point, no network.
    NoCarrier,
    /// It is switched off.
    Down,
}

/// A route through a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkRoute {
    /// The addresses behind it; a prefix of length 0 is a default route.
    pub destination: IpNet,
    /// Its metric: of routes to the same destination the system takes the one with the smallest.
    pub metric: u32,
}

/// A network interface, with what makes it usable for paths.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// The name of the interface.
    pub name: String,
    /// The number that the system gave to the interface; one that is removed and made again has another.
    pub index: u32,
    /// The technology behind it.
    pub kind: LinkKind,
    /// The state of the link.
    pub state: LinkState,
    /// The addresses with their prefixes, IPv4 first. Link-local ones, and IPv6 addresses that are tentative or deprecated
    /// (RFC 4862 §5.4, §5.5.4), are left out.
    pub addresses: Vec<IpNet>,
    /// The routes through it, default routes first; those to this machine's own addresses are left out.
    pub routes: Vec<LinkRoute>,
}

impl Link {
    /// Returns true if packets from `from`, an address of this link, have a route through it to `to`.
    pub fn reaches(&self, from: &IpNet, to: IpAddr) -> bool {
        let same_version = from.addr().is_ipv4() == to.is_ipv4();
        // A default route leads anywhere but to this machine itself.
        let same_scope = from.addr().is_loopback() == to.is_loopback();
        same_version
            && same_scope
            && (from.contains(&to) || self.routes.iter().any(|route| route.destination.contains(&to)))
    }

    /// Returns the smallest metric of the default routes of the IP version of `to`; `None` without a default route.
    pub fn default_metric(&self, to: IpAddr) -> Option<u32> {
        let is_default = |route: &&LinkRoute| {
            route.destination.prefix_len() == 0 && route.destination.addr().is_ipv4() == to.is_ipv4()
        };
        self.routes.iter().filter(is_default).map(|route| route.metric).min()
    }

    /// Returns true if `address` is one of the link's.
    pub fn has(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|known| known.addr() == address)
    }
}

/// A watcher of the links of the network namespace in which it was made. Clones share it; it ends with the last of them.
///
/// Changes within 20 ms are told together. A snapshot holds at most 256 links with 64 addresses and 64 routes each.
#[derive(Clone, Debug)]
pub struct Links {
    current: watch::Receiver<Arc<[Link]>>,
    _task: Arc<Task>,
}

/// Ends the task with the last watcher.
#[derive(Debug)]
struct Task(Option<Stop>);

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(stop) = self.0.take() {
            stop.stop();
        }
    }
}

impl Links {
    /// Begins to watch, and reads the links.
    ///
    /// # Errors
    /// The system does not tell what links there are, or this is called outside of tokio's runtime and of smol.
    pub async fn watch() -> io::Result<Self> {
        Self::watch_on(runtime::current()?).await
    }

    /// Begins to watch on `runtime`, and reads the links.
    ///
    /// # Errors
    /// The system does not tell what links there are.
    pub async fn watch_on(runtime: Arc<dyn Runtime>) -> io::Result<Self> {
        #[cfg(all(target_os = "linux", any(feature = "runtime-tokio", feature = "runtime-smol")))]
        match netlink::Monitor::new(runtime.clone()).await {
            Ok((monitor, first)) => return Ok(Self::run(&*runtime, first, |sender| monitor.follow(sender))),
            Err(error) => tracing::debug!(%error, "netlink is not permitted: links are read each second"),
        }
        Self::poll_on(runtime, POLL).await
    }

    /// Reads the links each `period`, as [`watch`](Self::watch) does where no system tells of changes. Routes other than
    /// default ones are not read.
    ///
    /// # Errors
    /// The system does not tell what links there are, or this is called outside of tokio's runtime and of smol.
    pub async fn poll(period: Duration) -> io::Result<Self> {
        Self::poll_on(runtime::current()?, period).await
    }

    async fn poll_on(runtime: Arc<dyn Runtime>, period: Duration) -> io::Result<Self> {
        let first = poll::read().await?;
        let clock = runtime.clone();
        Ok(Self::run(&*runtime, first, |sender| poll::follow(clock, period, sender)))
    }

    fn run<F>(
        runtime: &dyn Runtime,
        first: Vec<Link>,
        follow: impl FnOnce(watch::Sender<Arc<[Link]>>) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, current) = watch::channel(first.into());
        let task = runtime::spawn(runtime, follow(sender));
        Self { current, _task: Arc::new(Task(Some(task))) }
    }

    /// The links as they are known now, by index.
    pub fn current(&self) -> Arc<[Link]> {
        self.current.borrow().clone()
    }

    /// Waits until the links are others than at the last call of this method on this watcher, or at its beginning, and
    /// returns them. It waits for ever if the system tells nothing any more.
    pub async fn changed(&mut self) -> Arc<[Link]> {
        if self.current.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        self.current.borrow_and_update().clone()
    }
}

/// Tells those who watch of `links`, if they are news.
fn publish(sender: &watch::Sender<Arc<[Link]>>, links: Vec<Link>) {
    sender.send_if_modified(|known| {
        let is_news = known[..] != links[..];
        if is_news {
            *known = links.into();
        }
        is_news
    });
}

/// Brings `links` into the order and the bounds of a snapshot.
fn bounded(mut links: Vec<Link>) -> Vec<Link> {
    links.sort_by_key(|link| link.index);
    links.truncate(MOST_LINKS);
    for link in &mut links {
        link.addresses.sort_by_key(|address| (address.addr().is_ipv6(), address.addr()));
        link.addresses.dedup();
        link.addresses.truncate(MOST_OF_EACH);
        link.routes.sort_by_key(|route| (route.destination.prefix_len(), route.metric, route.destination));
        link.routes.dedup();
        link.routes.truncate(MOST_OF_EACH);
    }
    links
}

/// Returns true if an address is of use beyond the link: neither unspecified nor link-local.
fn is_routable(address: IpAddr) -> bool {
    let local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !local && !address.is_unspecified() && !address.is_multicast()
}
