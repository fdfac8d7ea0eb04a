//! A gateway: its sockets, what it serves, and its end.

use crate::access::{AccessLog, Entry};
use crate::admin::Admin;
use crate::configuration::Config;
use crate::connection::{self, Peer};
use crate::metrics::Metrics;
use crate::site::Site;
use http::Request;
use hvq::transport::connection::ChannelHint;
use hvq::transport::stream::StreamLimits;
use hvq::{
    ChannelOptions, Endpoint, EndpointOptions, LocalAddress, ServerConfig, ServerTls, TransportConfig,
};
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

/// The port of HTTP/3, for channels that name none.
const PORT: u16 = 443;
/// How long the last connections may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(3);

/// Why a gateway does not start, or does not take a new configuration.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nothing can be bound to an address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address, or several.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// Certificate and key do not work.
    #[error("the certificate: {0}")]
    Certificate(#[from] hvq::TlsConfigError),
    /// The access log cannot be written.
    #[error("cannot write the access log {file}: {source}")]
    Log {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// What is served cannot be.
    #[error("{0}")]
    Site(String),
}

/// What all connections of a gateway share.
pub(crate) struct Shared {
    site: RwLock<Arc<Site>>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) log: AccessLog,
    /// Requests that may be served at a time.
    pub(crate) permits: Arc<Semaphore>,
    /// How long what is under way may take, once the gateway is to stop.
    stop: watch::Sender<Option<Duration>>,
    drain: RwLock<Duration>,
}

impl Shared {
    /// What is served now.
    pub(crate) fn site(&self) -> Arc<Site> {
        self.site.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the gateway is to stop.
    pub(crate) async fn stopping(&self) {
        let mut stop = self.stop.subscribe();
        // The sender is here, so that waiting cannot fail.
        let _stopped = stop.wait_for(Option::is_some).await;
    }

    /// Whether the gateway is to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.borrow().is_some()
    }

    /// How long what is under way may take.
    pub(crate) fn patience(&self) -> Duration {
        *self.drain.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new entry of the access log and the metrics.
    pub(crate) fn enter(&self, peer: &Peer, request: &Request<()>) -> Entry {
        Entry::new(self.log.clone(), self.metrics.clone(), peer.address(), request)
    }
}

/// A gateway that runs.
pub struct Gateway {
    endpoint: Endpoint,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
    admin: Option<Admin>,
    config: Config,
}

impl Gateway {
    /// Starts what `config` says, on the current tokio runtime.
    ///
    /// # Errors
    /// See [`StartError`]; nothing runs then.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let tls = tls(&config)?;
        let site = Arc::new(Site::new(&config).map_err(StartError::Site)?);
        let log = AccessLog::open(&config.log).map_err(|source| StartError::Log {
            file: config.log.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default(),
            source,
        })?;
        let endpoint = bind(&config, tls)?;
        let metrics = Arc::new(Metrics::default());
        metrics.channels(&config.channels);
        let shared = Arc::new(Shared {
            site: RwLock::new(site),
            metrics,
            log,
            permits: Arc::new(Semaphore::new(config.limits.requests)),
            stop: watch::Sender::new(None),
            drain: RwLock::new(config.drain),
        });
        let admin = match config.admin {
            Some(address) => {
                let started = Admin::start(address, config.admin_hosts.clone(), shared.clone()).await;
                Some(started.map_err(|source| StartError::Listen { address: address.to_string(), source })?)
            }
            None => None,
        };
        let accepting = tokio::spawn(accept(shared.clone(), endpoint.clone()));
        Ok(Self { endpoint, shared, accepting, admin, config })
    }

    /// The addresses that it listens on.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.endpoint.local_addrs()
    }

    /// The address of metrics and health.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Admin::address)
    }

    /// Serves what `config` says from now on, to connections that exist too, and opens the access log anew. Addresses,
    /// limits of requests and the format of the access log stay as they are: what this returns says so.
    ///
    /// # Errors
    /// See [`StartError`]; everything stays as it was then.
    pub fn reload(&mut self, config: Config) -> Result<Vec<&'static str>, StartError> {
        let tls = tls(&config)?;
        let site = Arc::new(Site::new(&config).map_err(StartError::Site)?);
        self.shared.log.reopen();
        let bound = self.endpoint.local_addrs();
        self.endpoint.set_server(Some(server(&config, tls, &bound)));
        *self.shared.site.write().unwrap_or_else(PoisonError::into_inner) = site;
        *self.shared.drain.write().unwrap_or_else(PoisonError::into_inner) = config.drain;
        self.shared.metrics.channels(&config.channels);
        let old = &self.config;
        let kept = [
            (config.listen != old.listen, "listen"),
            (
                config
                    .channels
                    .iter()
                    .map(|channel| &channel.local)
                    .ne(old.channels.iter().map(|channel| &channel.local)),
                "channel",
            ),
            (config.admin != old.admin || config.admin_hosts != old.admin_hosts, "admin"),
            (config.log != old.log, "log"),
            (config.limits.requests != old.limits.requests, "limits.requests"),
        ];
        Ok(kept.into_iter().filter(|(differs, _)| *differs).map(|(_, name)| name).collect())
    }

    /// Has it stop: no new connections and requests (GOAWAY, RFC 9114 §5.2); what is under way is finished, as far as the
    /// time to drain allows. Returns when everything has ended.
    pub async fn stop(self) {
        self.shared.stop.send_replace(Some(self.shared.patience()));
        // The accepting task ends in time by itself, unless a connection hangs where nothing is waited for.
        let limit = self.shared.patience() + GOODBYE;
        let abort = self.accepting.abort_handle();
        if timeout(limit, self.accepting).await.is_err() {
            abort.abort();
        }
        self.endpoint.close(h3::error::Code::H3_NO_ERROR.value(), b"");
        let _late = timeout(GOODBYE, self.endpoint.wait_idle()).await;
        if let Some(admin) = self.admin {
            admin.stop();
        }
        self.shared.log.finish().await;
    }
}

/// Checks what can only be checked by making it: that the certificate works, and that of each origin.
///
/// # Errors
/// See [`StartError`]. Nothing is bound or written.
pub fn check(config: &Config) -> Result<(), StartError> {
    tls(config)?;
    Site::new(config).map(|_| ()).map_err(StartError::Site)
}

async fn accept(shared: Arc<Shared>, endpoint: Endpoint) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = endpoint.accept() => match accepted {
                Some(connection) => {
                    connections.spawn(connection::serve(shared.clone(), connection));
                }
                None => break,
            },
            () = shared.stopping() => break,
            Some(_) = connections.join_next() => {}
        }
    }
    endpoint.set_server(None);
    while connections.join_next().await.is_some() {}
}

fn tls(config: &Config) -> Result<ServerTls, StartError> {
    let builder = ServerTls::builder(config.identity.clone()).alpn([hvq_h3::ALPN]);
    Ok(builder.early_data(config.early_data).build()?)
}

fn bind(config: &Config, tls: ServerTls) -> Result<Endpoint, StartError> {
    let mut local: Vec<LocalAddress> = config.listen.iter().copied().map(LocalAddress::Socket).collect();
    for channel in &config.channels {
        if config.listen.iter().any(|bound| channel.hint_for(*bound).is_some()) {
            continue;
        }
        local.push(match &channel.local {
            LocalAddress::Ip(address) => LocalAddress::Socket(SocketAddr::new(*address, PORT)),
            other => other.clone(),
        });
    }
    let options = EndpointOptions {
        server: Some(server(config, tls.clone(), &[])),
        local: local.clone(),
        ..EndpointOptions::default()
    };
    let endpoint = Endpoint::new(options).map_err(|source| {
        let address = local.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        StartError::Listen { address, source }
    })?;
    // Only now are the ports known that the system chose.
    endpoint.set_server(Some(server(config, tls, &endpoint.local_addrs())));
    Ok(endpoint)
}

/// What connections are made from, with what is known of the channels of the sockets that are bound to `bound`.
fn server(config: &Config, tls: ServerTls, bound: &[SocketAddr]) -> ServerConfig {
    let policy = config.scheduler;
    let hint = |bound: &SocketAddr| config.channels.iter().find_map(|channel| channel.hint_for(*bound));
    let channels: Vec<ChannelHint> = bound.iter().filter_map(hint).collect();
    let codepoint = |bound: &SocketAddr| {
        config.channels.iter().find_map(|channel: &ChannelOptions| channel.codepoint_for(*bound))
    };
    let base = TransportConfig::new(Arc::new(move || policy.scheduler()));
    let streams = StreamLimits { max_streams_bidi: config.limits.requests_per_connection, ..base.streams };
    let transport = TransportConfig {
        congestion: config.congestion,
        idle_timeout: config.connection_idle,
        codepoints: bound.iter().filter_map(codepoint).collect(),
        tracer: config.tracer.clone(),
        channels,
        streams,
        ..base
    };
    ServerConfig::new(tls, Arc::new(transport))
}
