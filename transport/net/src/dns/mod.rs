//! Name resolution with HTTPS records (RFC 9460), which say where a host offers HTTP/3: see [`Resolver`].

mod service;

use crate::dialer::{MOST_ADDRESSES, RESOLUTION_DELAY, interleaved, resolve};
use crate::runtime;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, ResolverBuilder, TokioResolver};
use service::{Answer, Service};
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The time after which a DNS server is not waited for any longer, and the next is asked.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
/// The time that HTTPS records may take if nothing else is known of the host.
const PATIENCE: Duration = Duration::from_secs(5);
/// Aliases that are followed at most.
const MOST_ALIASES: usize = 4;
/// Addresses of services at most, beside which there is room for the host's own.
const MOST_OF_SERVICES: usize = 12;
/// The identifier of HTTP/3 (RFC 9114 §3.1).
const HTTP3: &str = "h3";

/// A resolver of names that looks for HTTPS records (RFC 9460) beside addresses.
///
/// A record that offers HTTP/3 names another host, another port or addresses: they are tried first, in the order of the
/// records' priorities, and the addresses of the host itself after them. The certificate has to be for the name that was asked for all the
/// same. Encrypted Client Hello is not used.
///
/// - Records and addresses are asked for at the same time; what comes first is waited upon by the other for 50 ms.
/// - A host that stands in the hosts file of the system, an address, names below `localhost` and `local`, and a name without a dot have no records.
/// - At most four aliases are followed, four services tried, and sixteen addresses returned.
/// - Answers are kept for as long as they say.
///
/// Clones share what is kept. The resolver has to be used within a tokio runtime.
#[derive(Clone)]
pub struct Resolver {
    servers: TokioResolver,
    hosts: Arc<Hosts>,
    /// The servers were named: they are asked for addresses, too.
    asks_for_addresses: bool,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver")
            .field("asks_for_addresses", &self.asks_for_addresses)
            .finish_non_exhaustive()
    }
}

impl Resolver {
    /// A resolver that asks the DNS servers of the system for HTTPS records. Addresses come from the system's own resolver.
    ///
    /// # Errors
    /// The configuration of the system (`/etc/resolv.conf`) cannot be read, or is wrong.
    pub fn system() -> io::Result<Self> {
        Self::build(TokioResolver::builder_tokio().map_err(io::Error::other)?, false)
    }

    /// A resolver that asks these DNS servers for everything, the first of them first.
    ///
    /// # Errors
    /// There are no servers.
    pub fn with_servers(servers: &[SocketAddr]) -> io::Result<Self> {
        if servers.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no DNS server"));
        }
        let servers = servers.iter().map(|server| {
            let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
            connections.iter_mut().for_each(|connection| connection.port = server.port());
            NameServerConfig::new(server.ip(), true, connections)
        });
        let config = ResolverConfig::from_name_servers(servers.collect());
        Self::build(TokioResolver::builder_with_config(config, TokioRuntimeProvider::default()), true)
    }

    fn build(
        mut builder: ResolverBuilder<TokioRuntimeProvider>,
        asks_for_addresses: bool,
    ) -> io::Result<Self> {
        let options = builder.options_mut();
        (options.timeout, options.attempts) = (SERVER_TIMEOUT, 1);
        let servers = builder.build().map_err(io::Error::other)?;
        let hosts = Arc::new(Hosts::from_system().unwrap_or_default());
        Ok(Self { servers, hosts, asks_for_addresses })
    }

    /// The addresses at which HTTP/3 of `host` may answer, in the order in which to try them. At most sixteen.
    ///
    /// # Errors
    /// There is none.
    pub(crate) async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let Some(name) = self.with_records(host) else { return self.addresses(host, port).await };
        let own = self.addresses(host, port);
        let services = async { timeout(PATIENCE, self.services(name, port)).await.unwrap_or_default() };
        let (own, services) = both(own, services).await;
        combine(own, services)
    }

    /// The name of `host`, if it may have records.
    fn with_records(&self, host: &str) -> Option<Name> {
        let bare = host.strip_suffix('.').unwrap_or(host);
        let is_local = [".localhost", ".local"].iter().any(|end| bare.to_ascii_lowercase().ends_with(end));
        if bare.parse::<IpAddr>().is_ok() || !bare.contains('.') || is_local {
            return None;
        }
        let mut name = Name::from_utf8(bare).ok()?;
        name.set_fqdn(true);
        let stands_in_hosts = [RecordType::A, RecordType::AAAA]
            .into_iter()
            .any(|kind| self.hosts.lookup_static_host(&Query::query(name.clone(), kind)).is_some());
        (!stands_in_hosts).then_some(name)
    }

    async fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if !self.asks_for_addresses || host.parse::<IpAddr>().is_ok() {
            return resolve(runtime::current, host, port).await;
        }
        let found = self.servers.lookup_ip(host).await.map_err(io::Error::other)?;
        Ok(in_turn(found.iter(), port))
    }

    /// The addresses of the services that offer HTTP/3 for the host `name`; none if it says nothing.
    async fn services(&self, name: Name, port: u16) -> Vec<SocketAddr> {
        // RFC 9460 §9.1: another port than that of the scheme is part of the name.
        let mut asked = match port {
            443 => name,
            other => {
                match name.prepend_label("_https").and_then(|name| name.prepend_label(format!("_{other}"))) {
                    Ok(asked) => asked,
                    Err(_) => return Vec::new(),
                }
            }
        };
        for follows in 0..=MOST_ALIASES {
            let answer = match self.servers.lookup(asked.clone(), RecordType::HTTPS).await {
                Ok(lookup) => service::read(lookup.answers(), HTTP3),
                Err(error) => {
                    log(&asked, &error);
                    Answer::Nothing
                }
            };
            match answer {
                Answer::Alias(target) => asked = target,
                Answer::Services(services) => return self.of_services(services, port).await,
                // RFC 9460 §3: the target of an alias without records of its own has addresses.
                Answer::Nothing if follows > 0 => {
                    return self.addresses(&asked.to_ascii(), port).await.unwrap_or_default();
                }
                Answer::Nothing => return Vec::new(),
            }
        }
        Vec::new()
    }

    /// The addresses of `services`, those of the first one first.
    async fn of_services(&self, services: Vec<Service>, port: u16) -> Vec<SocketAddr> {
        let asking: Vec<_> = services
            .into_iter()
            .map(|service| {
                let resolver = self.clone();
                tokio::spawn(async move { resolver.of_service(&service, port).await })
            })
            .collect();
        let mut all = Vec::new();
        for addresses in asking {
            all.extend(addresses.await.unwrap_or_default());
        }
        all
    }

    /// The addresses of `service`: those of its name, or its hints if these do not come soon (RFC 9460 §7.3).
    async fn of_service(&self, service: &Service, port: u16) -> Vec<SocketAddr> {
        let port = service.port.unwrap_or(port);
        let target = service.target.to_ascii();
        let asked = self.addresses(target.trim_end_matches('.'), port);
        let hints = in_turn(service.hints.iter().copied(), port);
        if hints.is_empty() {
            return asked.await.unwrap_or_default();
        }
        match timeout(RESOLUTION_DELAY, asked).await {
            Ok(Ok(addresses)) if !addresses.is_empty() => addresses,
            _ => hints,
        }
    }
}

/// The addresses with `port`, one of each IP version in turn.
fn in_turn(addresses: impl Iterator<Item = IpAddr>, port: u16) -> Vec<SocketAddr> {
    let (six, four): (Vec<_>, Vec<_>) =
        addresses.map(|ip| SocketAddr::new(ip, port)).partition(SocketAddr::is_ipv6);
    interleaved(&six, &four)
}

fn log(name: &Name, error: &NetError) {
    if !error.is_no_records_found() {
        tracing::debug!(%name, %error, "no HTTPS records");
    }
}

/// Waits for both, for the second one the resolution delay at most if the first is of use.
async fn both(
    own: impl Future<Output = io::Result<Vec<SocketAddr>>>,
    services: impl Future<Output = Vec<SocketAddr>>,
) -> (io::Result<Vec<SocketAddr>>, Vec<SocketAddr>) {
    let (mut own, mut services) = (pin!(own), pin!(services));
    tokio::select! {
        own = &mut own => {
            let services = match &own {
                Ok(addresses) if !addresses.is_empty() => timeout(RESOLUTION_DELAY, services).await.unwrap_or_default(),
                _ => services.await,
            };
            (own, services)
        }
        services = &mut services => {
            let late = || Err(io::ErrorKind::TimedOut.into());
            let own = match services.is_empty() {
                true => own.await,
                false => timeout(RESOLUTION_DELAY, own).await.unwrap_or_else(|_| late()),
            };
            (own, services)
        }
    }
}

/// The addresses of the services, then those of the host itself, each once.
fn combine(own: io::Result<Vec<SocketAddr>>, services: Vec<SocketAddr>) -> io::Result<Vec<SocketAddr>> {
    let mut all: Vec<SocketAddr> = Vec::new();
    let own = match own {
        Err(error) if services.is_empty() => return Err(error),
        own => own.unwrap_or_default(),
    };
    for address in services.into_iter().take(MOST_OF_SERVICES).chain(own) {
        if !all.contains(&address) && all.len() < MOST_ADDRESSES {
            all.push(address);
        }
    }
    Ok(all)
}
