//! The contents of a configuration file.

use super::quic_lb::{First, Hex, Key};
use super::values::{Positive, Size, Text, Time};
use super::{ConfigError, Format, OriginUrl, Pattern, TlsVersion};
use crate::compression::ContentCoding;
use crate::destination_policy::Destination;
use hvq::ChannelOptions;
use hvq::congestion::Algorithm;
use hvq_scheduler::Policy;
use ipnet::IpNet;
use serde::Deserialize;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// A file, as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    pub(super) listen: Vec<SocketAddr>,
    pub(super) channel: Vec<Text<ChannelOptions>>,
    pub(super) certificate: Option<Spanned<PathBuf>>,
    pub(super) key: Option<Spanned<PathBuf>>,
    pub(super) ocsp: Option<Spanned<PathBuf>>,
    pub(super) identity: Vec<Spanned<IdentityTable>>,
    pub(super) tcp: Option<Spanned<TcpTable>>,
    pub(super) admin: Option<SocketAddr>,
    pub(super) admin_hosts: Vec<String>,
    pub(super) drain: Option<Text<Time>>,
    pub(super) early_data: Option<bool>,
    pub(super) origin_frame: Option<bool>,
    pub(super) transport: Transport,
    pub(super) log: Log,
    pub(super) limits: LimitsTable,
    pub(super) timeouts: TimeoutsTable,
    pub(super) host: Vec<Spanned<Host>>,
    pub(super) proxy: Option<Spanned<ProxyTable>>,
    pub(super) tunnel: Option<Spanned<TunnelTable>>,
    pub(super) workers: Option<NonZeroU16>,
    pub(super) persistent_keys: Option<Spanned<PathBuf>>,
    pub(super) quic_lb: Option<Spanned<QuicLb>>,
}

/// A further certificate.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IdentityTable {
    pub(super) certificate: Spanned<PathBuf>,
    pub(super) key: Spanned<PathBuf>,
    pub(super) ocsp: Option<Spanned<PathBuf>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuicLb {
    pub(super) server_id: Option<Text<Hex>>,
    pub(super) nonce: Option<usize>,
    pub(super) rotation: Option<u8>,
    pub(super) key: Option<Text<Key>>,
    #[serde(default)]
    pub(super) first_octet: First,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Transport {
    pub(super) scheduler: Option<Text<Policy>>,
    pub(super) congestion: Option<Text<Algorithm>>,
    pub(super) idle: Option<Text<Time>>,
    pub(super) largest_datagram: Option<Spanned<Text<Size>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TcpTable {
    pub(super) listen: Vec<SocketAddr>,
    pub(super) http: Vec<SocketAddr>,
    pub(super) challenges: Option<Spanned<PathBuf>>,
    pub(super) alt_svc: Option<Text<Time>>,
    pub(super) tls: TlsVersion,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Log {
    pub(super) file: Option<PathBuf>,
    pub(super) format: Option<Text<Format>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LimitsTable {
    pub(super) header: Option<Text<Positive<Size>>>,
    pub(super) body: Option<Text<Size>>,
    pub(super) connections: Option<NonZeroUsize>,
    pub(super) handshakes: Option<NonZeroUsize>,
    pub(super) requests: Option<NonZeroUsize>,
    pub(super) requests_per_connection: Option<NonZeroU32>,
    pub(super) tunnels: Option<usize>,
    pub(super) memory: Option<Text<Positive<Size>>>,
    pub(super) memory_per_connection: Option<Text<Positive<Size>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TimeoutsTable {
    pub(super) header: Option<Text<Positive<Time>>>,
    pub(super) connect: Option<Text<Positive<Time>>>,
    pub(super) first_byte: Option<Text<Positive<Time>>>,
    pub(super) idle: Option<Text<Positive<Time>>>,
    pub(super) tunnel: Option<Text<Positive<Time>>>,
    pub(super) files: Option<Text<Time>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    pub(super) names: Vec<Text<Pattern>>,
    pub(super) origin: Option<Spanned<Text<OriginUrl>>>,
    pub(super) origins: Option<Spanned<Vec<Text<OriginUrl>>>>,
    pub(super) health: Option<Spanned<HealthTable>>,
    pub(super) files: Option<Spanned<PathBuf>>,
    pub(super) ca: Option<Spanned<PathBuf>>,
    #[serde(default)]
    pub(super) host_header: HostHeader,
    pub(super) underscores: Option<Spanned<Underscores>>,
    pub(super) dot_files: Option<Spanned<bool>>,
    pub(super) compress: Option<Spanned<Vec<ContentCoding>>>,
}

/// The health of the origins of a host.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct HealthTable {
    pub(super) failures: Option<NonZeroU32>,
    pub(super) rest: Option<Text<Positive<Time>>>,
    pub(super) most: Option<Spanned<u8>>,
    pub(super) path: Option<Spanned<String>>,
    pub(super) interval: Option<Spanned<Text<Positive<Time>>>>,
    pub(super) timeout: Option<Spanned<Text<Positive<Time>>>>,
}

/// Tells whether origins get fields whose names have underscores.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Underscores {
    /// They are dropped, as nginx drops them: CGI and WSGI take `x_real_ip` for `x-real-ip`.
    #[default]
    Drop,
    /// They go on.
    Keep,
}

/// The host that an origin is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostHeader {
    /// The one that the client asked for.
    #[default]
    Client,
    /// The host of the origin's URL.
    Origin,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProxyTable {
    pub(super) allow: Vec<Text<Destination>>,
    pub(super) tokens: Option<Spanned<PathBuf>>,
    pub(super) client_ca: Option<Spanned<PathBuf>>,
    #[serde(default)]
    pub(super) clients: Vec<String>,
    #[serde(default)]
    pub(super) reach: Vec<IpNet>,
    #[serde(default)]
    pub(super) underscores: Underscores,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TunnelTable {
    pub(super) routes: Vec<IpNet>,
    pub(super) device: Option<Spanned<String>>,
    pub(super) network: Option<u8>,
    pub(super) addresses_per_client: Option<NonZeroUsize>,
    pub(super) rest: Option<Text<Time>>,
    pub(super) tcp_lane: Option<bool>,
}

/// A file that was read, with its text, which errors point into.
#[derive(Debug, Default)]
pub(super) struct SourceText {
    pub(super) name: String,
    pub(super) text: String,
}

impl SourceText {
    /// Reads `path` and what it says.
    pub(super) fn read(path: &Path) -> Result<(Self, File), ConfigError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| ConfigError::Unreadable { file: name.clone(), problem: error.to_string() })?;
        Self::parse(name, text)
    }

    /// Parses `text`, that of a file called `name`.
    pub(super) fn parse(name: String, text: String) -> Result<(Self, File), ConfigError> {
        match toml::from_str(&text) {
            Ok(file) => Ok((Self { name, text }, file)),
            Err(error) => Err(ConfigError::at(&name, &text, error.span(), error.message())),
        }
    }

    /// `problem` with the value `at`.
    pub(super) fn wrong<T>(&self, at: &Spanned<T>, problem: impl Into<String>) -> ConfigError {
        ConfigError::at(&self.name, &self.text, Some(at.span()), problem)
    }
}
