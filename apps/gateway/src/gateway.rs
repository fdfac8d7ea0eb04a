//! A gateway: its sockets, what it serves, and its end.

use crate::acceptor::AcceptorError;
use crate::access::{AccessLog, Entry};
use crate::admin::{Admin, MetricsSource};
use crate::configuration::Config;
use crate::connect_ip::Tunnels;
use crate::connection::Peer;
use crate::health::{Broken, Health};
use crate::keys::{Keys, KeysError};
use crate::listening::{accept, bind, refusing, server, tls};
use crate::metrics::Metrics;
use crate::tcp::{TcpListeners, TcpState};
use crate::virtual_host::VirtualHosts;
use http::Request;
use hvq::config::MemoryQuota;
use hvq::{Endpoint, ServerTls};
use hvq_program::quota::Quota;
use std::future::pending;
use std::mem;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The time that the last connections may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(3);
/// The time after which new keys are tried again that could not be written.
const AGAIN: Duration = Duration::from_secs(60);
/// The share of the memory of connections for which one response may wait between an origin and a client: it holds some 64 KiB there.
const MEMORY_OF_WAITING: usize = 128 << 10;
/// The minimum number of responses that may wait.
const LEAST_WAITING: usize = 64;

/// The reason for which a gateway does not start, or does not take a new configuration.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Nothing can be bound to an address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address, or several.
        address: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Certificate and key do not work.
    #[error("the certificate: {0}")]
    Certificate(#[from] hvq::TlsConfigError),
    /// Certificate and key do not work over TCP.
    #[error("the certificate, over TCP: {0}")]
    Acceptor(#[from] AcceptorError),
    /// A setting of connections is out of its range.
    #[error(transparent)]
    Transport(#[from] hvq::config::TransportConfigError),
    /// The access log cannot be written.
    #[error("cannot write the access log {file}: {source}")]
    Log {
        /// The file.
        file: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The device of tunnels cannot be made.
    #[error("cannot make the device {device} (this needs root, or the capability NET_ADMIN): {source}")]
    Device {
        /// Its name.
        device: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Two gateways cannot have the device of tunnels.
    #[error(
        "a gateway with [tunnel] takes over from none that runs: device and addresses of tunnels are not handed over; stop the other one first, or take [tunnel] out"
    )]
    TunnelTakenOver,
    /// The content that is to be served cannot be.
    #[error("{0}")]
    Content(String),
    /// The file of keys is no good.
    #[error("the keys: {0}")]
    Keys(#[from] KeysError),
    /// TLS secrets cannot be written.
    #[error("cannot write TLS secrets to {file}: {source}")]
    KeyLog {
        /// The file.
        file: String,
        /// The error of the system.
        source: std::io::Error,
    },
}

/// The state that all connections of a gateway share.
pub(crate) struct Shared {
    virtual_hosts: RwLock<Arc<VirtualHosts>>,
    pub(crate) metrics: Arc<Metrics>,
    /// The bound of memory that connections hold together.
    pub(crate) memory: Arc<MemoryQuota>,
    pub(crate) log: AccessLog,
    /// Tunnels for IP packets, if there are any.
    pub(crate) tunnels: Option<Tunnels>,
    /// Requests that are served at a time.
    pub(crate) requests: Arc<Quota>,
    /// Tunnels that are open at a time.
    pub(crate) tunnelling: Arc<Quota>,
    /// Responses of origins that wait for their clients to permit them to be sent.
    pub(crate) waiting: Arc<Quota>,
    pub(crate) tcp: OverTcp,
    pub(crate) health: Arc<Health>,
    drain: RwLock<Duration>,
}

/// Places for clients over TCP, where those of QUIC are the endpoints' affair, and the ports.
pub(crate) struct OverTcp {
    /// Connections at a time.
    pub(crate) connections: Arc<Quota>,
    /// Handshakes of TLS under way.
    pub(crate) handshakes: Arc<Quota>,
    /// The ports over TLS.
    pub(crate) https_ports: Vec<u16>,
}

impl Shared {
    /// Makes the state of a gateway with this configuration, without tunnels.
    fn new(
        config: &Config,
        virtual_hosts: Arc<VirtualHosts>,
        memory: Arc<MemoryQuota>,
        log: AccessLog,
        health: Arc<Health>,
    ) -> Self {
        let metrics = Arc::new(Metrics::default());
        metrics.channels(&config.channels);
        metrics.certificates(&config.certificates());
        Self {
            virtual_hosts: RwLock::new(virtual_hosts),
            metrics,
            memory,
            log,
            tunnels: None,
            requests: Quota::new(config.limits.requests),
            tunnelling: Quota::new(config.limits.tunnels),
            waiting: Quota::new((config.limits.memory / MEMORY_OF_WAITING).max(LEAST_WAITING)),
            tcp: OverTcp {
                connections: Quota::new(config.limits.connections),
                handshakes: Quota::new(config.limits.handshakes),
                https_ports: Vec::new(),
            },
            health,
            drain: RwLock::new(config.drain),
        }
    }

    /// Returns the virtual hosts that are served now.
    pub(crate) fn virtual_hosts(&self) -> Arc<VirtualHosts> {
        self.virtual_hosts.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the gateway is to stop.
    pub(crate) async fn stopping(&self) {
        self.health.stopping().await;
    }

    /// Returns true if the gateway is to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.health.is_stopping()
    }

    /// Returns the time that requests under way may take.
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
    /// One each worker.
    endpoints: Vec<Endpoint>,
    shared: Arc<Shared>,
    accepting: JoinSet<()>,
    admin: Option<Admin>,
    /// The configuration that it was started with.
    config: Config,
    /// The configuration that it serves now, and its identity.
    serving: (Config, ServerTls),
    keys: Option<Keys>,
    /// The ports over TCP, if there are any.
    tcp: Option<TcpState>,
    /// Tasks that wait for the end of drivers.
    watching: JoinSet<()>,
}

/// A pulse for a watchdog, which tells whether a gateway moves. Clones are of the same gateway.
#[derive(Clone, Debug)]
pub struct Pulse {
    endpoints: Vec<Endpoint>,
}

impl Pulse {
    /// Waits until the driver of each worker has gone through its work once. If one hangs, this waits until it goes on.
    pub async fn beat(&self) {
        for endpoint in &self.endpoints {
            endpoint.beat().await;
        }
    }
}

impl Gateway {
    /// Starts what `config` says, on the current tokio runtime.
    ///
    /// # Errors
    /// See [`StartError`]; nothing runs then.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        let keys = config.persistent_keys.as_deref().map(|path| Keys::open(path, SystemTime::now()));
        let mut keys = keys.transpose()?;
        let tls = tls(&config, keys.as_ref())?;
        let virtual_hosts = VirtualHosts::new(&config, tls.names()).map_err(StartError::Content)?;
        let virtual_hosts = Arc::new(virtual_hosts);
        let log = AccessLog::open(&config.log).map_err(|source| no_log(&config, source))?;
        // Where the kernel steers datagrams, others may take over.
        let place = keys.as_ref().filter(|_| cfg!(target_os = "linux"));
        let succession = place.map(|keys| keys.succession(config.take_over)).transpose()?;
        if config.tunnel.is_some() && succession.is_some_and(|succession| succession.before > 0) {
            return Err(StartError::TunnelTakenOver);
        }
        let memory = Arc::new(MemoryQuota::new(config.limits.memory));
        let endpoints = bind(&config, &tls, keys.as_ref(), succession, &memory)?;
        let tcp = TcpListeners::bind(&config, tls.names(), http3_port(&endpoints))?;
        let health = Arc::new(Health::default());
        let tunnels = config.tunnel.as_ref().map(|tunnel| {
            let failed = |source| StartError::Device { device: tunnel.device.clone(), source };
            Tunnels::start(tunnel, health.alarm(Broken::Tunnels)).map_err(failed)
        });
        let tunnels = tunnels.transpose()?;
        let mut shared = Shared::new(&config, virtual_hosts, memory, log, health);
        shared.tcp.https_ports = tcp.as_ref().map(TcpListeners::https_ports).unwrap_or_default();
        let shared = Arc::new(Shared { tunnels, ..shared });
        let admin = match config.admin {
            Some(address) => {
                let source = MetricsSource { shared: shared.clone(), endpoints: endpoints.clone() };
                let hosts = config.admin_hosts.clone();
                let started = Admin::start(address, hosts, source, config.take_over).await;
                Some(started.map_err(|source| StartError::Listen { address: address.to_string(), source })?)
            }
            None => None,
        };
        // Only now nothing can fail any more.
        if let (Some(keys), Some(succession)) = (&mut keys, succession) {
            keys.hold(succession, config.workers.get())?;
        }
        let (mut accepting, mut watching) = (JoinSet::new(), JoinSet::new());
        for (worker, endpoint) in endpoints.iter().enumerate() {
            let alarm = shared.health.alarm(Broken::Accepting(worker));
            accepting.spawn(accept(shared.clone(), endpoint.clone(), alarm));
            let (driven, alarm) = (endpoint.clone(), shared.health.alarm(Broken::Driver(worker)));
            watching.spawn(async move {
                let _alarm = alarm;
                driven.stopped().await;
            });
        }
        shared.virtual_hosts().check();
        let tcp = tcp.map(|tcp| tcp.run(&shared, &config, &mut accepting));
        let serving = (config.clone(), tls);
        Ok(Self { endpoints, shared, accepting, admin, config, serving, keys, tcp, watching })
    }

    /// Waits until something has ended that should not have. Meanwhile keys of session tickets are replaced when it is time,
    /// if they are kept. Cancel-safe, and to be called again after each of the other methods.
    pub async fn attend(&mut self) -> Broken {
        loop {
            let rests = self.keys.as_ref().map(|keys| keys.rests(SystemTime::now()).max(AGAIN));
            let due = async {
                match rests {
                    Some(rests) => sleep(rests).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                broken = self.shared.health.broken() => return broken,
                () = due => if let Err(error) = self.rotate(SystemTime::now()) {
                    tracing::warn!(%error, "the keys of session tickets stay as they are");
                },
            }
        }
    }

    /// Replaces keys of session tickets, if it is time by `now`.
    fn rotate(&mut self, now: SystemTime) -> Result<(), StartError> {
        let Some(keys) = &mut self.keys else { return Ok(()) };
        if keys.rotate(now)? {
            self.serving.1 = tls(&self.serving.0, self.keys.as_ref())?;
            self.serve()?;
        }
        Ok(())
    }

    /// Has new connections made from what is served now.
    fn serve(&self) -> Result<(), StartError> {
        let (config, tls) = &self.serving;
        let bound = self.local_addrs();
        for endpoint in &self.endpoints {
            endpoint.set_server(Some(server(config, tls.clone(), &bound)))?;
        }
        Ok(())
    }

    /// Returns the pulse, which tells whether it moves.
    pub fn pulse(&self) -> Pulse {
        Pulse { endpoints: self.endpoints.clone() }
    }

    /// The addresses that it listens on.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.endpoints.first().map(Endpoint::local_addrs).unwrap_or_default()
    }

    /// The addresses over TCP: those over TLS, then those without.
    pub fn tcp_addrs(&self) -> &[SocketAddr] {
        self.tcp.as_ref().map_or(&[], |tcp| &tcp.addresses)
    }

    /// The address of metrics and health.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Admin::address)
    }

    /// Serves what `config` says from now on, to connections that exist too, and opens the access log anew. Addresses,
    /// limits of connections and the format of the access log stay as they are: what this returns says so.
    ///
    /// # Errors
    /// See [`StartError`]; everything stays as it was then.
    pub fn reload(&mut self, config: Config) -> Result<Vec<&'static str>, StartError> {
        let tls = tls(&config, self.keys.as_ref())?;
        let virtual_hosts = VirtualHosts::new(&config, tls.names()).map_err(StartError::Content)?;
        let virtual_hosts = Arc::new(virtual_hosts);
        if let (Some(tcp), Some(said)) = (&self.tcp, &config.tcp) {
            tcp.reload(&config, said, tls.names())?;
        }
        let before = mem::replace(&mut self.serving, (config.clone(), tls));
        if let Err(error) = self.serve() {
            self.serving = before;
            return Err(error);
        }
        self.shared.log.reopen();
        virtual_hosts.check();
        let mut served = self.shared.virtual_hosts.write().unwrap_or_else(PoisonError::into_inner);
        // Requests under way keep what they began with, whose checks go on for nobody.
        std::mem::replace(&mut *served, virtual_hosts).uncheck();
        drop(served);
        *self.shared.drain.write().unwrap_or_else(PoisonError::into_inner) = config.drain;
        self.shared.metrics.channels(&config.channels);
        self.shared.metrics.certificates(&config.certificates());
        self.shared.requests.resize(config.limits.requests);
        self.shared.tunnelling.resize(config.limits.tunnels);
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
            (ports(&config) != ports(old), "tcp"),
            (config.admin != old.admin || config.admin_hosts != old.admin_hosts, "admin"),
            (config.log != old.log, "log"),
            (config.limits.connections != old.limits.connections, "limits.connections"),
            (config.limits.handshakes != old.limits.handshakes, "limits.handshakes"),
            (config.workers != old.workers, "workers"),
            (config.quic_lb != old.quic_lb, "quic_lb"),
            (config.tunnel != old.tunnel, "tunnel"),
            (config.persistent_keys != old.persistent_keys, "persistent_keys"),
        ];
        Ok(kept.into_iter().filter(|(differs, _)| *differs).map(|(_, name)| name).collect())
    }

    /// Has it stop: new connections and requests are refused at once (CONNECTION_REFUSED; GOAWAY, RFC 9114 §5.2, and
    /// H3_REQUEST_REJECTED); what is under way is finished, as far as the time to drain allows. Returns when everything has
    /// ended.
    pub async fn stop(mut self) {
        let (config, tls) = &self.serving;
        let bound = self.local_addrs();
        for endpoint in &self.endpoints {
            let refused = endpoint.set_server(Some(refusing(server(config, tls.clone(), &bound))));
            // The settings are those that connections were served with until now.
            debug_assert_eq!(refused, Ok(()));
        }
        self.shared.health.stop();
        self.watching.abort_all();
        // The accepting tasks end in time by themselves, unless a connection hangs where nothing is waited for.
        let limit = self.shared.patience() + GOODBYE;
        if timeout(limit, async { while self.accepting.join_next().await.is_some() {} }).await.is_err() {
            self.accepting.abort_all();
        }
        for endpoint in &self.endpoints {
            endpoint.close(hvq_h3::Code::H3_NO_ERROR.value(), b"");
        }
        let all_idle = async {
            for endpoint in &self.endpoints {
                endpoint.wait_idle().await;
            }
        };
        let _late = timeout(GOODBYE, all_idle).await;
        drop(self.admin);
        self.shared.log.finish().await;
    }
}

/// Checks what can only be checked by making it: that the certificate works, and that of each origin.
///
/// # Errors
/// See [`StartError`]. Nothing is bound or written.
pub fn check(config: &Config) -> Result<(), StartError> {
    let tls = tls(config, None)?;
    if let Some(path) = &config.persistent_keys {
        Keys::check(path)?;
    }
    AccessLog::check(&config.log).map_err(|source| no_log(config, source))?;
    VirtualHosts::new(config, tls.names()).map(|_| ()).map_err(StartError::Content)
}

/// The port that HTTP/3 is announced at: that of the first address.
fn http3_port(endpoints: &[Endpoint]) -> Option<u16> {
    endpoints.first()?.local_addrs().first().map(SocketAddr::port)
}

/// The ports over TCP, and what they are for.
fn ports(config: &Config) -> Option<(&[SocketAddr], &[SocketAddr], Option<&Path>)> {
    config.tcp.as_ref().map(|tcp| (&tcp.listen[..], &tcp.http[..], tcp.challenges.as_deref()))
}

fn no_log(config: &Config, source: std::io::Error) -> StartError {
    let file = config.log.file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
    StartError::Log { file, source }
}
