//! The configuration of a gateway: a file of TOML, and what flags and environment say instead.

mod certificates;
mod file;
mod holder;
mod hosts;
mod https_record;
mod names;
mod proxy;
mod quic_lb;
mod resolve;
mod tcp;
#[cfg(test)]
mod tests;
mod values;

pub use file::{HostHeader, Underscores};
pub use hvq_program::announced::OriginFrame;
pub use hvq_program::configuration::ConfigError;
pub use names::{OriginUrl, Pattern, Protocol};
pub use quic_lb::{Hex, QuicLbOverrides};
pub use values::{Size, Time};

use crate::clients::Clients;
use crate::compression::ContentCoding;
use crate::destination_policy::{Destination, DestinationPolicy};
use crate::keys::TakeOver;
use http::uri::PathAndQuery;
use hvq::balancing::QuicLbConfig;
use hvq::config::MemoryQuota;
use hvq::congestion::Algorithm;
use hvq::tls::ServerCredential;
use hvq::trace::TracerFactory;
use hvq::{ChannelOptions, EarlyData, Identity};
use hvq_program::content::{DotFiles, Files};
use hvq_scheduler::Policy;
use serde::Deserialize;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The address on which a gateway listens by default.
const DEFAULT_LISTEN: &str = "[::]:443";

/// Everything that a gateway is told.
#[derive(Clone)]
pub struct Config {
    /// Addresses to listen on.
    pub listen: Vec<SocketAddr>,
    /// Listening addresses that belong to channels.
    pub channels: Vec<ChannelOptions>,
    /// The certificates of the gateway, the default first; there is at least one. Clients are shown the one that is for the host that
    /// they ask for (RFC 6066 §3).
    pub credentials: Vec<ServerCredential>,
    /// HTTP/1.1 and HTTP/2 over TCP; nothing listens there if it is missing.
    pub tcp: Option<TcpConfig>,
    /// The address for metrics and health, over HTTP/1.1.
    pub admin: Option<SocketAddr>,
    /// Host names by which the admin address may be asked, beside IP addresses and localhost.
    pub admin_hosts: Vec<String>,
    /// The time that requests under way may take once the gateway is to stop.
    pub drain: Duration,
    /// Tells whether requests are taken before the handshake is complete.
    pub early_data: EarlyData,
    /// Tells whether clients hear of the other hosts that they may ask for over their connection.
    pub origin_frame: OriginFrame,
    /// The policy that chooses the path of each frame.
    pub scheduler: Policy,
    /// The congestion controller of paths that name none.
    pub congestion: Algorithm,
    /// Silence after which a connection ends.
    pub connection_idle: Duration,
    /// The largest UDP payload that is tried on each path, in bytes.
    pub largest_datagram: usize,
    /// The factory of tracers for connections, if there is one.
    pub tracer: Option<TracerFactory>,
    /// The access log.
    pub log: LogConfig,
    /// The limits on all that clients may ask for.
    pub limits: Limits,
    /// The timeouts.
    pub timeouts: Timeouts,
    /// Virtual hosts; the first whose names match answers.
    pub hosts: Vec<HostConfig>,
    /// The clients that may go through the gateway, and their destinations; nobody if it is missing.
    pub proxy: Option<ProxyConfig>,
    /// The networks to which IP packets may go; none if it is missing.
    pub tunnel: Option<TunnelConfig>,
    /// Endpoints that share the addresses, each with its own sockets.
    pub workers: NonZeroU16,
    /// The part of connection IDs that a load balancer in front reads, if there is one.
    pub quic_lb: Option<QuicLbConfig>,
    /// The file with the keys of stateless resets, address tokens and session tickets; without it they end with the process.
    pub persistent_keys: Option<PathBuf>,
    /// Tells whether the addresses of a gateway are taken that runs with the same keys.
    pub take_over: TakeOver,
    /// The file that TLS secrets are appended to, for tools that decrypt captures.
    pub key_log: Option<PathBuf>,
}

/// The gateway over TCP, for clients that do not come over HTTP/3, or not yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TcpConfig {
    /// Addresses to listen on with TLS.
    pub listen: Vec<SocketAddr>,
    /// Addresses to listen on without TLS, where browsers are sent to https.
    pub http: Vec<SocketAddr>,
    /// The folder above `.well-known/acme-challenge`, whose files are shown without TLS (RFC 8555 §8.3); none if it is missing.
    pub challenges: Option<PathBuf>,
    /// The time for which clients may remember that HTTP/3 is spoken (`alt-svc`, RFC 7838); zero does not announce it. Default: 24 h.
    pub alt_svc: Duration,
    /// The oldest version of TLS that is spoken. Default: 1.2, as servers of browsers have it.
    pub oldest_tls: TlsVersion,
}

impl TcpConfig {
    /// The default time for which clients may remember that HTTP/3 is spoken.
    pub const ALT_SVC: Duration = Duration::from_secs(86_400);
}

/// A version of TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
pub enum TlsVersion {
    /// TLS 1.2, with cipher suites that are forward-secret and authenticated.
    #[default]
    #[serde(rename = "1.2")]
    V1_2,
    /// TLS 1.3.
    #[serde(rename = "1.3")]
    V1_3,
}

/// The access log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogConfig {
    /// The file, `-` for standard output; `None` logs nothing.
    pub file: Option<PathBuf>,
    /// The format of a line.
    pub format: Format,
}

/// The format of a line of the access log.
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

/// The limits on all that clients may ask for. Any client may have all that is counted over all connections until
/// others need some: the one that holds the most then gives way, by network (a /24 of IPv4, a /56 of IPv6) and address,
/// or by token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The maximum size of a request's header section, in bytes: names, values and 32 for each field (RFC 9114 §4.2.2).
    /// Default: 32 KiB.
    pub header: u64,
    /// The maximum size of a request's body, in bytes. Default: 1 GiB.
    pub body: u64,
    /// The maximum number of connections at a time whose handshake is complete. Default: 20,000.
    pub connections: usize,
    /// The maximum number of handshakes under way at a time. Default: 1,000.
    pub handshakes: usize,
    /// The maximum number of requests that are served at a time, over all connections. Default: 10,000.
    pub requests: usize,
    /// The maximum number of requests that a connection may have under way. Default: 100.
    pub requests_per_connection: u64,
    /// The maximum number of tunnels that are open at a time, over all connections. Default: 1,000.
    pub tunnels: usize,
    /// The maximum number of bytes that all connections together may hold of data that was not sent, acknowledged or
    /// read. Default: 256 MiB.
    pub memory: usize,
    /// The maximum number of bytes that one connection may hold of that. Default: 32 MiB.
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

/// The timeouts of clients, origins and files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    /// The time from the start of a request to the end of its headers. Default: 10 s.
    pub header: Duration,
    /// The time to connect to an origin. Default: 5 s.
    pub connect: Duration,
    /// The time from the end of a request to the headers of the response. Default: 60 s.
    pub first_byte: Duration,
    /// The time between two pieces of a body, in either direction. Default: 60 s.
    pub idle: Duration,
    /// The silence after which a tunnel ends. Default: 10 minutes.
    pub tunnel: Duration,
    /// The time for which a small file that was read counts as unchanged; zero has it read for each request. Default: 1
    /// s.
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
    /// The source of its answers.
    pub serves: Serves,
}

/// The rules by which one of several origins gets no requests for a while. One alone always gets them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HealthConfig {
    /// Requests, or checks, that fail in a row until the origin is ejected; at least one. Default: 5.
    pub failures: u32,
    /// The time for which failed requests eject it, twice as long each time in a row, up to five minutes. Default: 10 s.
    pub rest: Duration,
    /// The percentage of the origins of a host that failed requests eject at a time; of several at least one, and never all. Default: 50.
    pub most: u8,
    /// The path that each origin is asked for regularly; `None`, the default, asks for nothing. An answer of 2xx or 3xx is a success.
    pub path: Option<PathAndQuery>,
    /// The time between two checks of an origin. Default: 5 s.
    pub interval: Duration,
    /// The time in which a check has to be answered. Default: 2 s.
    pub timeout: Duration,
}

impl Default for HealthConfig {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            failures: 5,
            rest: seconds(10),
            most: 50,
            path: None,
            interval: seconds(5),
            timeout: seconds(2),
        }
    }
}

/// The source of answers.
#[derive(Clone, Debug)]
pub enum Serves {
    /// One origin or several, which share the requests.
    Origin {
        /// Their URLs, at least one.
        urls: Vec<OriginUrl>,
        /// The rules by which one of several gets no requests for a while.
        health: HealthConfig,
        /// The authorities that its certificate may go back to, in PEM; `None` means the system's.
        ca: Option<Vec<u8>>,
        /// The host that it is asked for.
        host_header: HostHeader,
        /// Tells whether it gets fields whose names have underscores.
        underscores: Underscores,
        /// The codings by which their responses are compressed for clients that ask for it, the best first; nothing is compressed if there
        /// are none.
        compress: Vec<ContentCoding>,
    },
    /// The files of a folder.
    Files {
        /// The folder.
        folder: PathBuf,
        /// Tells whether files are served whose names, or those of their folders, begin with a dot.
        dot_files: DotFiles,
    },
}

impl Serves {
    /// The files of `folder`, without those whose names begin with a dot.
    pub fn files(folder: impl Into<PathBuf>) -> Self {
        Self::Files { folder: folder.into(), dot_files: DotFiles::Hidden }
    }
}

/// The clients that may go through the gateway, and their destinations.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Hosts and ports that may be asked for.
    pub allow: Vec<Destination>,
    /// The clients that may go through.
    pub clients: Clients,
    /// Addresses that may be reached.
    pub reach: DestinationPolicy,
    /// Tells whether hosts that clients name by `http` URLs get fields whose names have underscores.
    pub underscores: Underscores,
}

/// Tunnels for IP packets, for those who may go through the gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunnelConfig {
    /// The name of the TUN device that packets come out of.
    pub device: String,
    /// The networks to which packets may go.
    pub routes: Vec<ipnet::IpNet>,
    /// The number of the network 100.64.`network`.0/24 (RFC 6598) that the tunnels are in, the gateway at its address
    /// 1.
    pub network: u8,
    /// Tunnels that each client may have, those whose addresses rest among them.
    pub addresses_per_client: usize,
    /// The time that an address which was freed is given to no other client.
    pub rest: Duration,
    /// Tells whether TCP flows may ride streams: the gateway then connects to hosts from its own address. Default: true.
    pub tcp_lane: bool,
}

/// The limits that flags and environment set.
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

/// The settings of flags and environment, which go before the file.
#[derive(Clone, Default)]
pub struct Overrides {
    /// In place of `listen`.
    pub listen: Vec<SocketAddr>,
    /// In place of `channel`.
    pub channels: Vec<ChannelOptions>,
    /// In place of `certificate`, `key` and `ocsp`.
    pub identity: Option<Identity>,
    /// In place of `tcp.listen`.
    pub listen_tcp: Vec<SocketAddr>,
    /// In place of `tcp.http`.
    pub listen_http: Vec<SocketAddr>,
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
    /// The factory of tracers for connections.
    pub tracer: Option<TracerFactory>,
    /// In place of `workers`.
    pub workers: Option<NonZeroU16>,
    /// In place of `limits`.
    pub limits: LimitOverrides,
    /// In place of `quic_lb`.
    pub quic_lb: QuicLbOverrides,
    /// In place of `persistent_keys`.
    pub persistent_keys: Option<PathBuf>,
    /// Tells whether the addresses of a gateway are taken that runs with the same keys.
    pub take_over: TakeOver,
    /// The file that TLS secrets are appended to.
    pub key_log: Option<PathBuf>,
}

impl Config {
    /// Loads the configuration of the file at `path`, if there is one, with the settings of `overrides` in place of the
    /// file's.
    ///
    /// # Errors
    /// Something cannot be read, is wrong or is missing: the error names file, line and field.
    pub fn load(path: Option<&Path>, overrides: &Overrides) -> Result<Self, ConfigError> {
        let (source, file) = match path {
            Some(path) => file::SourceText::read(path)?,
            None => Default::default(),
        };
        resolve::resolve(&source, file, overrides)
    }

    /// Returns a sentence about each setting that takes effect in part only: routes of tunnels to addresses that may not be reached, a
    /// certificate that has expired or is not for a host.
    pub fn warnings(&self) -> Vec<String> {
        let both = self.tunnel.as_ref().zip(self.proxy.as_ref());
        let mut said = both.map(|(tunnel, proxy)| proxy::warnings(tunnel, &proxy.reach)).unwrap_or_default();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let hosts = self.hosts.iter().flat_map(|host| &host.names);
        said.extend(holder::warnings(&self.certificates(), hosts, now));
        said
    }
}
