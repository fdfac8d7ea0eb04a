//! The virtual hosts of a gateway, and everything else that a new configuration replaces while it runs.

use crate::announced;
use crate::clients::Clients;
use crate::compression::Compression;
use crate::configuration::{Config, HostConfig, Limits, OriginFrame, OriginUrl, Pattern, Serves, Timeouts};
use crate::destination_policy::{Destination, DestinationPolicy};
use crate::origin::{Anywhere, Filtered, Habits, Origin, OriginState, Origins};
use hvq::tls::ServerNames;
use hvq_program::content::Files;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The virtual hosts that a gateway serves, with the limits and times that go for all of them.
#[derive(Debug)]
pub(crate) struct VirtualHosts {
    hosts: Vec<VirtualHost>,
    pub(crate) proxy: Option<ForwardProxy>,
    pub(crate) limits: Limits,
    pub(crate) timeouts: Timeouts,
    /// The names of the certificates.
    pub(crate) names: Arc<ServerNames>,
    /// The hosts that are announced to clients that are shown each certificate.
    announced: Vec<Vec<String>>,
}

#[derive(Debug)]
struct VirtualHost {
    names: Vec<Pattern>,
    route: Route,
}

/// The clients that may go through the gateway, and the connector that they use.
#[derive(Debug)]
pub(crate) struct ForwardProxy {
    pub(crate) allow: Vec<Destination>,
    pub(crate) clients: Clients,
    pub(crate) connector: Filtered,
    /// Addresses that may be reached.
    pub(crate) reach: DestinationPolicy,
    anywhere: Arc<Anywhere>,
}

/// The source of an answer.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// A folder.
    Files(Arc<Files>),
    /// The origins of the host in the configuration.
    Origin(Arc<Origins>),
    /// The host that the request names, if its client may go there.
    Elsewhere(Arc<Anywhere>),
    /// Nobody serves this host.
    Nowhere,
}

impl VirtualHosts {
    /// Makes the virtual hosts that `config` describes, whose certificates have `names`.
    pub(crate) fn new(config: &Config, names: &Arc<ServerNames>) -> Result<Self, String> {
        let (limits, timeouts) = (config.limits, config.timeouts);
        let hosts = config.hosts.iter().map(|host| self::host(host, timeouts)).collect::<Result<_, _>>()?;
        let proxy = config.proxy.as_ref().map(|proxy| {
            let connector = Filtered::new(proxy.reach.clone(), timeouts.connect);
            ForwardProxy {
                allow: proxy.allow.clone(),
                clients: proxy.clients.clone(),
                anywhere: Arc::new(Anywhere::new(connector.clone(), proxy.underscores)),
                connector,
                reach: proxy.reach.clone(),
            }
        });
        let served = config.hosts.iter().flat_map(|host| &host.names);
        let announced = match config.origin_frame {
            OriginFrame::Omitted => Vec::new(),
            OriginFrame::Sent => (0..config.credentials.len())
                .map(|number| announced::hosts(names, number, served.clone()))
                .collect(),
        };
        Ok(Self { hosts, proxy, limits, timeouts, names: names.clone(), announced })
    }

    /// The hosts that a client which was shown the certificate of this number may be told to ask for over its connection.
    pub(crate) fn announced(&self, certificate: usize) -> &[String] {
        self.announced.get(certificate).map_or(&[], Vec::as_slice)
    }

    /// Returns true if a host has origins.
    pub(crate) fn has_origins(&self) -> bool {
        self.origins().next().is_some()
    }

    /// Begins the checks of origins that the configuration asks for, which end with this.
    pub(crate) fn check(&self) {
        self.origins().for_each(Origins::check);
    }

    /// Ends the checks of origins.
    pub(crate) fn uncheck(&self) {
        self.origins().for_each(Origins::uncheck);
    }

    /// The states of all origins by their names: of one that several hosts have, that of the last.
    pub(crate) fn states(&self) -> BTreeMap<String, OriginState> {
        let states = self.origins().flat_map(Origins::states);
        states.map(|state| (state.name.clone(), state)).collect()
    }

    fn origins(&self) -> impl Iterator<Item = &Origins> {
        self.hosts.iter().filter_map(|host| match &host.route {
            Route::Origin(origins) => Some(&**origins),
            _ => None,
        })
    }

    /// Returns the source of the answers to requests for `host` by `scheme`. Hosts that are named go first, then what
    /// clients may go on to (plain HTTP only: for `https` they open a tunnel), then the hosts of all names.
    pub(crate) fn route(&self, host: &str, scheme: Option<&str>) -> Route {
        let host = host.to_ascii_lowercase();
        let of = |any: bool| {
            let matches = |name: &&Pattern| (**name == Pattern::Any) == any && name.matches(&host);
            self.hosts.iter().find(|host| host.names.iter().any(|name| matches(&name)))
        };
        if let Some(named) = of(false) {
            return named.route.clone();
        }
        match (&self.proxy, scheme) {
            (Some(proxy), Some("http")) => Route::Elsewhere(proxy.anywhere.clone()),
            _ => of(true).map_or(Route::Nowhere, |host| host.route.clone()),
        }
    }
}

fn host(config: &HostConfig, timeouts: Timeouts) -> Result<VirtualHost, String> {
    let route = match &config.serves {
        Serves::Files { folder, dot_files } => {
            let files = Files::new(folder, timeouts.files)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
            Route::Files(Arc::new(files.with_dot_files(*dot_files)))
        }
        Serves::Origin { urls, health, ca, host_header, underscores, compress } => {
            let habits = Habits { host_header: *host_header, underscores: *underscores };
            let origin = |url: &OriginUrl| Origin::new(url.clone(), ca.as_deref(), habits, timeouts.connect);
            let origins = urls.iter().map(origin).collect::<Result<_, _>>()?;
            Route::Origin(Arc::new(Origins::new(origins, health.clone(), Compression::new(compress.clone()))))
        }
    };
    Ok(VirtualHost { names: config.names.clone(), route })
}
