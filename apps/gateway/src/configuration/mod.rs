//! The configuration of a gateway: a file of TOML, and what flags and environment say instead.

mod certificates;
mod error;
mod file;
mod names;
mod proxy;
mod quic_lb;
mod resolve;
#[cfg(test)]
mod tests;
mod values;

pub use error::ConfigError;
pub use file::{HostHeader, Underscores};
pub use names::{OriginUrl, Pattern, Protocol};
pub use quic_lb::{Hex, QuicLbOverrides};
pub use values::{Size, Time};

use crate::clients::Clients;
use crate::content::{DotFiles, Files};
use crate::keys::TakeOver;
use crate::reach::{Destination, Reach};
use hvq::transport::congestion::Algorithm;
use hvq::transport::memory::MemoryQuota;
use hvq::transport::trace::TracerFactory;
use hvq::{ChannelOptions, EarlyData, Identity, QuicLbConfig};
use hvq_scheduler::Policy;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// Where a gateway listens that was not told.
const DEFAULT_LISTEN: &str = "[::]:443";

/// Everything that a gateway is told.
#[derive(Clone)]
pub struct Config {
    /// Addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// Listening addresses that belong to channels.
    pub channels: Vec<ChannelOptions>,
    /// Who the gateway is.
    pub identity: Identity,
    /// Where metrics and health are told, over HTTP/1.1.
    pub admin: Option<SocketAddr>,
    /// Host names by which the admin address may be asked, beside IP addresses and localhost.
    pub admin_hosts: Vec<String>,
    /// How long requests under way may take once the gateway is to stop.
    pub drain: Duration,
    /// Whether requests are taken before the handshake is complete.
    pub early_data: EarlyData,
    /// Which path carries each frame.
    pub scheduler: Policy,
    /// The congestion controller of paths that name none.
    pub congestion: Algorithm,
    /// Silence after which a connection ends.
    pub connection_idle: Duration,
    /// The largest UDP payload that is tried on each path, in bytes.
    pub largest_datagram: usize,
    /// Who watches connections, if anybody.
    pub tracer: Option<TracerFactory>,
    /// The access log.
    pub log: LogConfig,
    /// What clients may ask for at most.
    pub limits: Limits,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Virtual hosts; the first whose names match answers.
    pub hosts: Vec<HostConfig>,
    /// Who may go through the gateway to where; nobody if it is missing.
    pub proxy: Option<ProxyConfig>,
    /// Where IP packets may go; nowhere if it is missing.
    pub tunnel: Option<TunnelConfig>,
    /// Endpoints that share the addresses, each with its own sockets.
    pub workers: NonZeroU16,
    /// What a load balancer in front reads from connection IDs, if there is one.
    pub quic_lb: Option<QuicLbConfig>,
    /// The file with the keys of stateless resets, address tokens and session tickets; without it they end with the process.
    pub persistent_keys: Option<PathBuf>,
    /// Whether the addresses of a gateway are taken that runs with the same keys.
    pub take_over: TakeOver,
    /// The file that TLS secrets are appended to, for tools that decrypt captures.
    pub key_log: Option<PathBuf>,
}

/// The access log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogConfig {
    /// The file, `-` for standard output; `None` logs nothing.
    pub file: Option<PathBuf>,
    /// How a line looks.
    pub format: Format,
}

/// How a line of the access log looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// The Common Log Format of Apache and nginx, with referrer and user agent ("combined").
    #[default]
    Common,
    /// An object of JSON.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "common" => Ok(Self::Common),
            "json" => Ok(Self::Json),
            _ => Err("choose from common, json".to_owned()),
        }
    }
}

/// What clients may ask for at most. Of what is counted over all connections, any client may have all until others need some: the
/// one that holds the most then gives way, by network (a /24 of IPv4, a /56 of IPv6) and address, or by token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a request's header section, names, values and 32 for each field (RFC 9114 §4.2.2).
    pub header: u64,
    /// Bytes of a request's body.
    pub body: u64,
    /// Connections at a time whose handshake is complete.
    pub connections: usize,
    /// Handshakes under way at a time.
    pub handshakes: usize,
    /// Requests that are served at a time, over all connections.
    pub requests: usize,
    /// Requests that a connection may have under way.
    pub requests_per_connection: u64,
    /// Tunnels that are open at a time, over all connections.
    pub tunnels: usize,
    /// Bytes that all connections together may hold of what was not sent, acknowledged or read.
    pub memory: usize,
    /// Bytes that one connection may hold of that.
    pub memory_per_connection: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header: 32 << 10,
            body: 1 << 30,
            connections: 20_000,
            handshakes: 1_000,
            requests: 10_000,
            requests_per_connection: 100,
            tunnels: 1_000,
            memory: MemoryQuota::DEFAULT,
            memory_per_connection: 32 << 20,
        }
    }
}

/// How long things may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// From the start of a request to the end of its headers.
    pub header: Duration,
    /// To connect to an origin.
    pub connect: Duration,
    /// From the end of a request to the headers of the response.
    pub first_byte: Duration,
    /// Between two pieces of a body, in either direction.
    pub idle: Duration,
    /// Silence after which a tunnel ends.
    pub tunnel: Duration,
    /// How long a small file that was read counts as unchanged; zero has it read for each request.
    pub files: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            header: seconds(10),
            connect: seconds(5),
            first_byte: seconds(60),
            idle: seconds(60),
            tunnel: seconds(600),
            files: Files::FRESH,
        }
    }
}

/// A virtual host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// Its names.
    pub names: Vec<Pattern>,
    /// Where its answers come from.
    pub serves: Serves,
}

/// Where answers come from.
#[derive(Clone, Debug)]
pub enum Serves {
    /// An origin.
    Origin {
        /// Its URL.
        url: OriginUrl,
        /// The authorities that its certificate may go back to, in PEM; `None` means the system's.
        ca: Option<Vec<u8>>,
        /// Which host it is asked for.
        host_header: HostHeader,
        /// Whether it gets fields whose names have underscores.
        underscores: Underscores,
    },
    /// The files of a folder.
    Files {
        /// The folder.
        folder: PathBuf,
        /// Whether files are served whose names, or those of their folders, begin with a dot.
        dot_files: DotFiles,
    },
}

impl Serves {
    /// The files of `folder`, without those whose names begin with a dot.
    pub fn files(folder: impl Into<PathBuf>) -> Self {
        Self::Files { folder: folder.into(), dot_files: DotFiles::Hidden }
    }
}

/// Who may go through the gateway, and where.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Hosts and ports that may be asked for.
    pub allow: Vec<Destination>,
    /// Who may go through.
    pub clients: Clients,
    /// Addresses that may be reached.
    pub reach: Reach,
    /// Whether hosts that clients name by `http` URLs get fields whose names have underscores.
    pub underscores: Underscores,
}

/// Tunnels for IP packets, for those who may go through the gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunnelConfig {
    /// What the TUN device is called that packets come out of.
    pub device: String,
    /// Where packets may go.
    pub routes: Vec<ipnet::IpNet>,
    /// Which network 100.64.`network`.0/24 (RFC 6598) the tunnels are in, the gateway at its address 1.
    pub network: u8,
    /// Tunnels that each client may have, those whose addresses rest among them.
    pub addresses_per_client: usize,
    /// The time that an address which was freed is given to no other client.
    pub rest: Duration,
}

/// What flags and environment say of limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LimitOverrides {
    /// In place of `limits.connections`.
    pub connections: Option<NonZeroUsize>,
    /// In place of `limits.handshakes`.
    pub handshakes: Option<NonZeroUsize>,
    /// In place of `limits.requests`.
    pub requests: Option<NonZeroUsize>,
    /// In place of `limits.tunnels`.
    pub tunnels: Option<usize>,
}

/// What flags and environment say, which goes before the file.
#[derive(Clone, Default)]
pub struct Overrides {
    /// In place of `listen`.
    pub listen: Vec<SocketAddr>,
    /// In place of `channel`.
    pub channels: Vec<ChannelOptions>,
    /// In place of `certificate` and `key`.
    pub identity: Option<Identity>,
    /// In place of `admin`.
    pub admin: Option<SocketAddr>,
    /// In place of `drain`.
    pub drain: Option<Duration>,
    /// In place of `transport.scheduler`.
    pub scheduler: Option<Policy>,
    /// In place of `transport.congestion`.
    pub congestion: Option<Algorithm>,
    /// In place of `log.file`.
    pub log_file: Option<PathBuf>,
    /// In place of `log.format`.
    pub log_format: Option<Format>,
    /// A host of all names after those of the file.
    pub fallback: Option<Serves>,
    /// In place of `proxy.allow`.
    pub allow: Vec<Destination>,
    /// In place of `proxy.tokens`.
    pub tokens: Option<PathBuf>,
    /// In place of `proxy.client_ca`.
    pub client_ca: Option<PathBuf>,
    /// In place of `proxy.clients`.
    pub clients: Vec<String>,
    /// In place of `proxy.reach`.
    pub reach: Vec<ipnet::IpNet>,
    /// In place of `tunnel.routes`.
    pub routes: Vec<ipnet::IpNet>,
    /// Who watches connections.
    pub tracer: Option<TracerFactory>,
    /// In place of `workers`.
    pub workers: Option<NonZeroU16>,
    /// In place of `limits`.
    pub limits: LimitOverrides,
    /// In place of `quic_lb`.
    pub quic_lb: QuicLbOverrides,
    /// In place of `persistent_keys`.
    pub persistent_keys: Option<PathBuf>,
    /// Whether the addresses of a gateway are taken that runs with the same keys.
    pub take_over: TakeOver,
    /// The file that TLS secrets are appended to.
    pub key_log: Option<PathBuf>,
}

impl Config {
    /// What the file at `path` says, if there is one, and `overrides` say instead.
    ///
    /// # Errors
    /// Something cannot be read, is wrong or is missing: the error names file, line and field.
    pub fn load(path: Option<&Path>, overrides: &Overrides) -> Result<Self, ConfigError> {
        let (source, file) = match path {
            Some(path) => file::Source::read(path)?,
            None => Default::default(),
        };
        resolve::resolve(&source, file, overrides)
    }
}
