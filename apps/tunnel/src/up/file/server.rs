//! The table of a server.

use super::values::Token;
use super::{Source, lane, values};
use crate::TcpLane;
use crate::prefix::Prefix;
use hvq::congestion::Algorithm;
use hvq::path_manager::Budget;
use hvq::{ChannelOptions, Identity};
use hvq_program::configuration::{ConfigError, Text};
use hvq_scheduler::Policy;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use toml::Spanned;

/// The network of clients, 100.64.200.0/24, unless the file says another.
const NETWORK: u8 = 200;

/// The settings of a server.
#[derive(Clone, Debug)]
pub(in crate::up) struct ServerSettings {
    pub(in crate::up) listen: Vec<SocketAddr>,
    pub(in crate::up) channels: Vec<ChannelOptions>,
    pub(in crate::up) identity: Identity,
    pub(in crate::up) device: String,
    pub(in crate::up) network: u8,
    pub(in crate::up) routes: Vec<Prefix>,
    pub(in crate::up) reach: Vec<Prefix>,
    pub(in crate::up) nat: Nat,
    pub(in crate::up) lane: TcpLane,
    pub(in crate::up) users: Vec<User>,
    pub(in crate::up) scheduler: Policy,
    pub(in crate::up) congestion: Algorithm,
}

/// The translation of the addresses of clients to that of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::up) enum Nat {
    /// Hosts see the address of the server.
    On,
    /// Hosts see the addresses of clients, and have a route to them.
    Off,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerTable {
    #[serde(default)]
    listen: Vec<SocketAddr>,
    #[serde(default)]
    channels: Vec<Text<ChannelOptions>>,
    certificate: Spanned<PathBuf>,
    key: Spanned<PathBuf>,
    device: Option<Spanned<String>>,
    network: Option<u8>,
    routes: Vec<Text<Prefix>>,
    #[serde(default)]
    reach: Vec<Text<Prefix>>,
    nat: Option<bool>,
    tcp_lane: Option<bool>,
    #[serde(default)]
    users: Vec<Spanned<UserTable>>,
    scheduler: Option<Text<Policy>>,
    congestion: Option<Text<Algorithm>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UserTable {
    name: String,
    token_file: Spanned<PathBuf>,
    quota: Option<Text<Budget>>,
}

/// A user of a server.
#[derive(Clone, Debug)]
pub(in crate::up) struct User {
    pub(in crate::up) name: String,
    pub(in crate::up) token: Token,
    pub(in crate::up) quota: Option<Budget>,
}

impl Source {
    pub(super) fn server(&self, at: Spanned<ServerTable>) -> Result<ServerSettings, ConfigError> {
        let nobody = self.wrong(&at, "a server needs users: [[server.users]] with name and token_file");
        let nowhere = self.wrong(&at, "a server needs `routes` that it permits, such as [\"0.0.0.0/0\"]");
        let table = at.into_inner();
        self.readable(&table.certificate)?;
        self.readable(&table.key)?;
        let mut users: Vec<User> = Vec::new();
        for user in &table.users {
            let token = self.token(&user.get_ref().token_file)?;
            let name = user.get_ref().name.clone();
            if users.iter().any(|known| known.name == name || known.token == token) {
                return Err(self.wrong(user, format!("the name or the token of {name:?} stands there twice")));
            }
            let quota = user.get_ref().quota.as_ref().map(|quota| quota.0);
            users.push(User { name, token, quota });
        }
        if users.is_empty() {
            return Err(nobody);
        }
        if table.routes.is_empty() {
            return Err(nowhere);
        }
        let (chain, key) = (table.certificate.into_inner(), table.key.into_inner());
        Ok(ServerSettings {
            listen: table.listen,
            channels: values(table.channels),
            identity: Identity::Files { chain, key },
            device: self.device(table.device.as_ref())?,
            network: table.network.unwrap_or(NETWORK),
            routes: values(table.routes),
            reach: values(table.reach),
            nat: if table.nat.unwrap_or(true) { Nat::On } else { Nat::Off },
            lane: lane(table.tcp_lane),
            users,
            scheduler: table.scheduler.map_or(Policy::Hvc, |policy| policy.0),
            congestion: table.congestion.map_or(Algorithm::Cubic, |algorithm| algorithm.0),
        })
    }
}
