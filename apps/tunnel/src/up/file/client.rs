//! The table of a client.

use super::values::{ControlGroup, Port, Route, Token};
use super::{Source, lane, values};
use crate::prefix::Prefix;
use crate::{MTU, TcpLane};
use hvq::congestion::Algorithm;
use hvq::path_manager::Rule;
use hvq::{Identity, PathOptions, Verify};
use hvq_program::client::Target;
use hvq_program::configuration::{ConfigError, Text};
use hvq_program::path_choice::{PathChoice, RuleSource};
use hvq_program::tls::Trust;
use hvq_program::transport::check_names;
use hvq_scheduler::Policy;
use serde::Deserialize;
use std::net::IpAddr;
use std::path::PathBuf;
use toml::Spanned;

/// The smallest packet that a link of IPv6 carries (RFC 8200 §5).
const LEAST_MTU: u16 = 1280;

/// The settings of a client.
#[derive(Clone, Debug)]
pub(in crate::up) struct ClientSettings {
    /// The URL of the server.
    pub(in crate::up) server: String,
    pub(in crate::up) token: Option<Token>,
    pub(in crate::up) trust: Trust,
    pub(in crate::up) device: String,
    pub(in crate::up) mtu: u16,
    pub(in crate::up) paths: PathChoice,
    pub(in crate::up) routes: Vec<Route>,
    pub(in crate::up) exclude: Vec<Prefix>,
    pub(in crate::up) dns: Vec<IpAddr>,
    pub(in crate::up) search: Vec<String>,
    pub(in crate::up) kill_switch: KillSwitch,
    pub(in crate::up) only: Split,
    pub(in crate::up) bypass: Split,
    pub(in crate::up) table: u32,
    pub(in crate::up) lane: TcpLane,
    pub(in crate::up) scheduler: Policy,
    pub(in crate::up) congestion: Algorithm,
}

/// The treatment of packets that do not go through the tunnel and should.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::up) enum KillSwitch {
    /// They are rejected.
    On,
    /// They go as if there were no tunnel.
    Off,
}

/// The programs and ports that are treated otherwise than all else.
#[derive(Clone, Debug, Default)]
pub(in crate::up) struct Split {
    pub(in crate::up) ports: Vec<Port>,
    pub(in crate::up) programs: Vec<ControlGroup>,
}

impl Split {
    pub(in crate::up) const fn is_empty(&self) -> bool {
        self.ports.is_empty() && self.programs.is_empty()
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientTable {
    server: Spanned<String>,
    token_file: Option<Spanned<PathBuf>>,
    certificate: Option<Spanned<PathBuf>>,
    key: Option<PathBuf>,
    ca: Option<Spanned<PathBuf>>,
    device: Option<Spanned<String>>,
    mtu: Option<Spanned<u16>>,
    #[serde(default)]
    paths: Vec<Spanned<String>>,
    #[serde(default)]
    rules: Vec<Text<Rule>>,
    routes: Option<Vec<Text<Route>>>,
    #[serde(default)]
    exclude: Vec<Text<Prefix>>,
    #[serde(default)]
    dns: Vec<IpAddr>,
    #[serde(default)]
    search: Vec<Spanned<String>>,
    #[serde(default)]
    kill_switch: bool,
    #[serde(default)]
    only: SplitTable,
    #[serde(default)]
    bypass: SplitTable,
    table: Option<Spanned<u32>>,
    tcp_lane: Option<bool>,
    scheduler: Option<Text<Policy>>,
    congestion: Option<Text<Algorithm>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SplitTable {
    ports: Vec<Text<Port>>,
    programs: Vec<Text<ControlGroup>>,
}

impl From<SplitTable> for Split {
    fn from(table: SplitTable) -> Self {
        Self { ports: values(table.ports), programs: values(table.programs) }
    }
}

impl Source {
    pub(super) fn client(&self, table: ClientTable) -> Result<ClientSettings, ConfigError> {
        let routes = table.routes.map_or_else(|| vec![Route::All], values);
        let device = self.device(table.device.as_ref())?;
        let number = device.bytes().fold(0, |sum: u32, byte| (sum * 31 + u32::from(byte)) % 10_000);
        let table_number = table.table.as_ref().map_or(Ok(20_000 + number), |table| self.table(table))?;
        let mtu = table.mtu.as_ref().map_or(Ok(MTU), |mtu| self.mtu(mtu))?;
        let token = table.token_file.as_ref().map(|file| self.token(file)).transpose()?;
        let identity = match (&table.certificate, table.key) {
            (Some(chain), Some(key)) => Some(Identity::Files { chain: chain.get_ref().clone(), key }),
            (None, None) => None,
            (Some(at), None) => return Err(self.wrong(at, "a certificate needs its `key`")),
            (None, Some(_)) => return Err(self.missing("a `key` needs its `certificate`")),
        };
        if token.is_none() && identity.is_none() {
            return Err(self.missing("a client needs a `token_file`, or `certificate` and `key`"));
        }
        if let Some(ca) = &table.ca {
            self.readable(ca)?;
        }
        let verify = table.ca.map_or(Verify::SystemRoots, |file| Verify::CaFile(file.into_inner()));
        for domain in &table.search {
            if !matches!(domain.get_ref().parse(), Ok(Route::Host(_))) {
                return Err(self.wrong(domain, "a domain has letters, digits, dots and dashes"));
            }
        }
        let target = Target::parse(table.server.get_ref());
        target.map_err(|failure| self.wrong(&table.server, failure.line()))?;
        Ok(ClientSettings {
            server: table.server.into_inner(),
            token,
            trust: Trust::new(verify, identity),
            device,
            mtu,
            paths: self.paths(&table.paths, values(table.rules))?,
            routes,
            exclude: values(table.exclude),
            dns: table.dns,
            search: table.search.into_iter().map(Spanned::into_inner).collect(),
            kill_switch: if table.kill_switch { KillSwitch::On } else { KillSwitch::Off },
            only: table.only.into(),
            bypass: table.bypass.into(),
            table: table_number,
            lane: lane(table.tcp_lane),
            scheduler: table.scheduler.map_or(Policy::Hvc, |policy| policy.0),
            congestion: table.congestion.map_or(Algorithm::Cubic, |algorithm| algorithm.0),
        })
    }

    fn table(&self, number: &Spanned<u32>) -> Result<u32, ConfigError> {
        match number.get_ref() {
            // Those that the kernel has, and the marks of which are taken from the number.
            0 | 253..=255 => Err(self.wrong(number, "this routing table belongs to the system")),
            1..=0xffff => Ok(*number.get_ref()),
            _ => Err(self.wrong(number, "a routing table has a number from 1 to 65535")),
        }
    }

    fn mtu(&self, mtu: &Spanned<u16>) -> Result<u16, ConfigError> {
        match (LEAST_MTU..=MTU).contains(mtu.get_ref()) {
            true => Ok(*mtu.get_ref()),
            false => Err(self.wrong(mtu, format!("packets have {LEAST_MTU} to {MTU} bytes"))),
        }
    }

    fn paths(&self, named: &[Spanned<String>], given: Vec<Rule>) -> Result<PathChoice, ConfigError> {
        let Some(first) = named.first().filter(|first| first.get_ref() != "auto") else {
            if let Some(second) = named.get(1) {
                return Err(self.wrong(second, "paths that are named do not go with \"auto\""));
            }
            let links = PathChoice::links(RuleSource { given, file: None });
            return links.map_err(|failure| self.missing(&failure.line()));
        };
        if !given.is_empty() {
            return Err(self.wrong(first, "paths that are named do not go with `rules`"));
        }
        let mut paths = Vec::new();
        for path in named {
            let parsed = path.get_ref().parse::<PathOptions>();
            paths.push(parsed.map_err(|error| self.wrong(path, error.to_string()))?);
        }
        check_names(&paths).map_err(|failure| self.wrong(first, failure.line()))?;
        Ok(PathChoice::Named(paths))
    }
}
