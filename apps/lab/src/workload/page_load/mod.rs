//! A browser that loads a page, and the servers that have it.
//!
//! Requests and responses are streams: their sizes, order, dependencies and thinking times are the page's, their
//! content is not HTTP. A name lookup is a small exchange too.

mod browser;
mod exchange;
mod interaction;
mod line;
mod progress;
mod servers;
mod single;
mod sockets;

use crate::names::by_name;
use crate::pages::{Loader, Page};
use crate::world::rewards::Rewards;
use crate::world::wire::Wire;
use crate::world::{Application, ConnectionEvent, Net, Side};
use browser::{Browser, Loss};
use hvq_emulation::Direction;
use hvq_transport::connection::{Event, FourTuple, PathMemory};
use hvq_transport::endpoint::ConnectionHandle;
use hvq_transport::error::ConnectionError;
use hvq_transport::time::Instant;
pub use interaction::Interaction;
pub use progress::PARTS;
use servers::Servers;
pub use single::{single, upload};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The place where the browser's connections end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Deployment {
    /// At a gateway, by one connection whose paths are open when the load begins: DChannel's own deployment (NSDI 2023,
    /// §3.1), with the transport at the gateway instead of packets through it.
    Gateway,
    /// At each domain, by a connection that begins with a name lookup and a full handshake.
    Cold,
    /// At each domain, by a connection that begins with a name lookup and then resumes a session: requests go out as
    /// early data (RFC 9001 §4.6).
    Resumed,
    /// Like [`Self::Resumed`], after an earlier visit that loaded all of the page: the endpoints remember what they measured of
    /// the paths (RFC 9959).
    Revisited,
    /// At each domain, by a connection that begins with a name lookup and what TCP and TLS 1.3 take: a round trip of
    /// small packets, and one that brings the certificates. The papers measured this (NSDI 2023, Table 2). The
    /// transport below is QUIC all the same: its own handshake was before the load.
    TcpTls,
    /// At each domain, by up to six connections that begin like those of [`Self::TcpTls`], with one request at a time
    /// on each: HTTP/1.1, which HotMobile 2021 (§4.1) measured with.
    Http1,
}

impl Deployment {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Gateway, Self::Cold, Self::Resumed, Self::Revisited, Self::TcpTls, Self::Http1];

    /// Returns true if connections resume sessions.
    pub const fn resumes(self) -> bool {
        matches!(self, Self::Resumed | Self::Revisited)
    }

    /// The memory that connections leave to later ones: none, unless it is about what an earlier visit left. The other deployments
    /// are first visits, and connections that model TCP know nothing of each other.
    pub const fn path_memory(self) -> PathMemory {
        match self {
            Self::Revisited => PathMemory::For(Duration::from_secs(600)),
            _ => PathMemory::Off,
        }
    }

    /// Returns true if connections begin with the exchanges of TCP and TLS.
    pub const fn greets(self) -> bool {
        matches!(self, Self::TcpTls | Self::Http1)
    }

    /// The time from the start of the world to that of the load, for what is open before it. If that is a connection to
    /// each domain, they are begun one after another, so that no handshake meets the queue of others on URLLC and takes
    /// it for the delay of the channel.
    pub const fn lead(self) -> Duration {
        match self {
            Self::Gateway | Self::Cold => LEAD,
            Self::Resumed | Self::TcpTls | Self::Http1 => Duration::from_secs(12),
            // Less than the idle timeout, after which the resolver's connection would be gone.
            Self::Revisited => Duration::from_secs(24),
        }
    }

    /// The numbers of the servers that have `domain`: a number for each connection.
    pub fn servers(self, domain: u32) -> impl Iterator<Item = u32> {
        let connections = if self == Self::Http1 { sockets::MOST } else { 1 };
        (0..connections).map(move |socket| sockets::server(domain, socket))
    }

    /// The name that [`FromStr`] takes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Cold => "cold",
            Self::Resumed => "resumed",
            Self::Revisited => "revisited",
            Self::TcpTls => "tcp-tls",
            Self::Http1 => "http1",
        }
    }
}

impl fmt::Display for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Deployment {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        by_name(name, "deployment", &Self::ALL, Self::name)
    }
}

/// The information that the application gives the transport.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ApplicationHints {
    /// Nothing but data and the ends of streams.
    Silent,
    /// The priority of each response as well (RFC 9218).
    Priorities,
}

/// The manner in which a page is loaded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Manner {
    /// The place where connections end.
    pub deployment: Deployment,
    /// The information that the servers give the transport.
    pub voice: ApplicationHints,
    /// The factor on recorded thinking times of the browser.
    pub think_scale: f64,
    /// The factor on recorded times that servers take.
    pub wait_scale: f64,
    /// The factor on sizes of responses.
    pub size_scale: f64,
    /// The traffic beside the load.
    pub background: Background,
    /// Connections to the gateway, if there is one; requests take them in turn, domain by domain.
    pub connections: u32,
}

/// Traffic that the load does not wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Background {
    /// A number of flows (HotNets 2023, §4): each sends 5 KB up, gets 10 KB, and begins again, on a connection of its own. With
    /// two paths through a gateway they are streams of the one connection.
    Flows(u32),
    /// Content without end in this direction, on a connection of its own.
    Bulk(Direction),
    /// Packets of others that take this share of URLLC, each way.
    OnUrllc {
        /// The share in per cent of its rate.
        percent: u32,
    },
}

impl Background {
    /// Nothing.
    pub const NONE: Self = Self::Flows(0);

    /// Returns the number of connections or streams.
    pub const fn flows(self) -> u32 {
        match self {
            Self::Flows(number) => number,
            Self::Bulk(_) => 1,
            Self::OnUrllc { .. } => 0,
        }
    }
}

/// The paths that each connection opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Paths {
    /// The first.
    pub first: FourTuple,
    /// The second, if there is one.
    pub second: Option<FourTuple>,
}

/// The number of the first server of a background flow among the domains.
const BACKGROUND: u32 = 60_000;

/// The number of the first further address of a gateway among the domains.
const GATEWAYS: u32 = 50_000;

impl Paths {
    /// Starts a connection over the first of them that answers.
    pub fn begin(self, net: &mut Net) -> ConnectionHandle {
        match self.second {
            Some(second) => net.race(&[self.first, second]),
            None => net.connect(self.first),
        }
    }

    /// Returns the paths to the server of background flow `index`.
    pub fn to_background(self, index: u32) -> Self {
        self.to_domain(BACKGROUND.saturating_add(index))
    }

    /// Returns the paths of connection number `index` to the gateway.
    pub fn to_gateway(self, index: u32) -> Self {
        if index == 0 { self } else { self.to_domain(GATEWAYS.saturating_add(index)) }
    }

    /// Returns the paths to the server of `domain`.
    pub fn to_domain(self, domain: u32) -> Self {
        let machine = u16::try_from(domain).unwrap_or(u16::MAX);
        let there = |tuple: FourTuple| FourTuple {
            remote: (Wire::addresses_of(0, machine).remote.ip(), tuple.remote.port()).into(),
            ..tuple
        };
        Self { first: there(self.first), second: self.second.map(there) }
    }
}

/// A page load and what is known of it.
#[derive(Debug)]
pub struct PageLoad {
    browser: Browser,
    servers: Servers,
    /// The direction in which most of the content goes.
    heavy: Direction,
    lead: Duration,
    failure: Option<String>,
    /// The recorder of rewards, which listens to connections, if there is one.
    rewards: Option<Rewards>,
}

/// The usual time from the start of the world to that of the load: for what is open before it.
pub const LEAD: Duration = Duration::from_secs(2);

impl PageLoad {
    /// A load of `page` that begins [`Deployment::lead`] after the world.
    pub fn new(page: &Page, manner: Manner, paths: Paths) -> Self {
        let loader = Loader::new(page, manner.think_scale, manner.size_scale);
        Self {
            browser: Browser::new(loader, page, manner, paths),
            servers: Servers::new(page, manner),
            heavy: heavy(page),
            lead: manner.deployment.lead(),
            failure: None,
            rewards: None,
        }
    }

    /// Sets the recorder of rewards, which is told of the expectations of policies.
    #[must_use]
    pub fn with_rewards(mut self, rewards: Option<Rewards>) -> Self {
        self.rewards = rewards;
        self
    }

    /// From the start of the load to its load event; `None` before that.
    pub fn page_load_time(&self) -> Option<Duration> {
        self.browser.page_load_time()
    }

    /// Returns the times since the start of the load at which the first byte of its content and each of [`PARTS`] equal
    /// parts had arrived, at the end that gets more of it.
    pub fn progress(&self) -> Vec<Duration> {
        let marks = match self.heavy {
            Direction::Down => self.browser.progress(),
            Direction::Up => self.servers.progress(),
        };
        marks.iter().map(|at| at.saturating_sub(self.lead)).collect()
    }

    /// Returns the times since the start of the load at which its objects were complete.
    pub fn ends(&self) -> Vec<Duration> {
        self.browser.ends().iter().map(|at| at.saturating_sub(self.lead)).collect()
    }

    /// Returns the reason for which it cannot go on, if there is one.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

/// Returns the direction in which most of the bytes of `page` go.
fn heavy(page: &Page) -> Direction {
    let (up, down) =
        page.objects.iter().fold((0, 0), |(up, down), object| (up + object.request_size, down + object.size));
    if up > down { Direction::Up } else { Direction::Down }
}

impl Application for PageLoad {
    fn on_connection_event(&mut self, occurred: ConnectionEvent<'_>) {
        let ConnectionEvent { side, handle, event, connection, now } = occurred;
        if let (Event::Connected, Some(rewards)) = (event, &self.rewards) {
            connection.set_tracer(rewards.listener(side));
        }
        match side {
            Side::Client => self.browser.on_event(handle, event, connection, now),
            Side::Server => self.servers.on_event(handle, event, connection, now),
        }
    }

    fn on_connection_closed(&mut self, (side, handle): (Side, ConnectionHandle), error: &ConnectionError) {
        // The server hears of attempts, too, that lost the race for a connection.
        if side == Side::Client && self.browser.on_closed(handle, error) == Loss::Answers {
            self.failure.get_or_insert_with(|| format!("a connection ended: {error}"));
        }
    }

    fn wake(&self) -> Option<Instant> {
        [self.browser.wake(), self.servers.wake()].into_iter().flatten().min()
    }

    fn on_wake(&mut self, net: &mut Net) {
        self.browser.on_wake(net);
        self.servers.on_wake(net);
    }

    fn is_done(&self) -> bool {
        self.failure.is_some() || self.browser.page_load_time().is_some()
    }
}
