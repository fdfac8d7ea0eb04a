//! The ports of the gateway over TCP, and who is let in there.

use super::connection::{self, Accepted};
use super::plain::{self, PlainService};
use super::tls::Serving;
use crate::configuration::{Config, TcpConfig};
use crate::connection::ShownCertificate;
use crate::gateway::{Shared, StartError};
use crate::health::{Alarm, Broken};
use boring::ssl::NameType;
use hvq::tls::ServerNames;
use hvq_program::quota::Preemption;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Connections that the system keeps until they are accepted.
const BACKLOG: i32 = 1024;
/// The time after which accepting is tried again that failed, mostly for want of file descriptors.
const AGAIN: Duration = Duration::from_millis(100);

/// The ports of a gateway over TCP.
pub(crate) struct TcpListeners {
    tls: Vec<TcpListener>,
    plain: Vec<TcpListener>,
    state: TcpState,
}

/// The state of the ports that lasts while they are served.
#[derive(Clone)]
pub(crate) struct TcpState {
    serving: Arc<RwLock<Arc<Serving>>>,
    /// The addresses over TLS, then those without.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The port of HTTP/3.
    port: Option<u16>,
}

/// The service behind one port.
#[derive(Clone)]
enum Service {
    Tls(TcpState, Duration),
    Plain(Arc<PlainService>),
}

impl TcpListeners {
    /// Binds what `config` says, if that is anything, for a gateway whose certificates have `names`, and whose port of HTTP/3 is `port`.
    ///
    /// # Errors
    /// Somebody else has an address ([`StartError::Listen`]), or TLS does not take the certificate.
    pub(crate) fn bind(
        config: &Config,
        names: &Arc<ServerNames>,
        port: Option<u16>,
    ) -> Result<Option<Self>, StartError> {
        let Some(tcp) = &config.tcp else { return Ok(None) };
        let serving = Serving::new(config, tcp, names, port)?;
        // A gateway that takes over listens beside the one before until that one has gone.
        let is_shared = config.persistent_keys.is_some();
        let bind = |addresses: &[SocketAddr]| -> Result<Vec<TcpListener>, StartError> {
            addresses.iter().map(|address| bind(*address, addresses, is_shared)).collect()
        };
        let (tls, plain) = (bind(&tcp.listen)?, bind(&tcp.http)?);
        let addresses = tls.iter().chain(&plain).filter_map(|listener| listener.local_addr().ok()).collect();
        let state = TcpState { serving: Arc::new(RwLock::new(Arc::new(serving))), addresses, port };
        Ok(Some(Self { tls, plain, state }))
    }

    /// The ports over TLS.
    pub(crate) fn https_ports(&self) -> Vec<u16> {
        self.state.addresses.iter().take(self.tls.len()).map(SocketAddr::port).collect()
    }

    /// Serves the ports in tasks of `accepting`; returns what lasts.
    pub(crate) fn run(self, shared: &Arc<Shared>, config: &Config, accepting: &mut JoinSet<()>) -> TcpState {
        let port = self.state.addresses.first().map_or(0, SocketAddr::port);
        let challenges = config.tcp.as_ref().and_then(|tcp| tcp.challenges.clone());
        let plain = Arc::new(PlainService { shared: shared.clone(), port, challenges });
        let tls = Service::Tls(self.state.clone(), config.connection_idle);
        let tls = self.tls.into_iter().map(|listener| (listener, tls.clone()));
        let plain = self.plain.into_iter().map(|listener| (listener, Service::Plain(plain.clone())));
        for (listener, service) in tls.chain(plain) {
            let alarm = shared.health.alarm(Broken::Tcp);
            accepting.spawn(accept(shared.clone(), listener, service, alarm));
        }
        self.state
    }
}

impl TcpState {
    /// Has new connections made from what `config` says.
    ///
    /// # Errors
    /// TLS does not take the certificate; everything stays as it was.
    pub(crate) fn reload(
        &self,
        config: &Config,
        tcp: &TcpConfig,
        names: &Arc<ServerNames>,
    ) -> Result<(), StartError> {
        let serving = Arc::new(Serving::new(config, tcp, names, self.port)?);
        *self.serving.write().unwrap_or_else(PoisonError::into_inner) = serving;
        Ok(())
    }

    fn serving(&self) -> Arc<Serving> {
        self.serving.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn bind(address: SocketAddr, all: &[SocketAddr], is_shared: bool) -> Result<TcpListener, StartError> {
    let bound = || -> io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        #[cfg(target_os = "linux")]
        socket.set_reuse_port(is_shared)?;
        #[cfg(not(target_os = "linux"))]
        let _ = is_shared;
        // All addresses of IPv6 are those of IPv4, too, unless these are named themselves.
        let twin = |other: &SocketAddr| other.is_ipv4() && other.port() == address.port();
        if address.is_ipv6() && all.iter().any(twin) {
            socket.set_only_v6(true)?;
        }
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        TcpListener::from_std(socket.into())
    };
    bound().map_err(|source| StartError::Listen { address: format!("{address} (TCP)"), source })
}

/// Accepts connections until the gateway stops, and waits for them then. Ends with `alarm`.
async fn accept(shared: Arc<Shared>, listener: TcpListener, service: Service, alarm: Alarm) {
    let mut connections = JoinSet::new();
    while !shared.is_stopping() {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    connections.spawn(admit(shared.clone(), service.clone(), stream, address));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept over TCP");
                    sleep(AGAIN).await;
                }
            },
            () = shared.stopping() => {}
            Some(_) = connections.join_next() => {}
        }
    }
    // Nobody waits for a connection that is not taken any more.
    drop(listener);
    while connections.join_next().await.is_some() {}
    drop(alarm);
}

/// Serves a connection, unless others need its place.
async fn admit(shared: Arc<Shared>, service: Service, stream: TcpStream, address: SocketAddr) {
    let (address, notice) = (address.ip().to_canonical(), Arc::new(Preemption::default()));
    let Some(_place) = shared.tcp.connections.take(None, address, &notice) else {
        return tracing::debug!("too many connections over TCP");
    };
    let _small = stream.set_nodelay(true);
    let (state, idle) = match service {
        Service::Tls(state, idle) => (state, idle),
        Service::Plain(plain) => {
            return tokio::select! {
                () = plain::serve(plain, stream) => {}
                () = notice.given() => {}
            };
        }
    };
    let serving = state.serving();
    let patience = shared.virtual_hosts().timeouts.header;
    let handshake = async {
        let notice = Arc::new(Preemption::default());
        let _place = shared.tcp.handshakes.take(None, address, &notice)?;
        tokio::select! {
            shaken = timeout(patience, tokio_boring::accept(&serving.acceptor, stream)) => shaken.ok()?.ok(),
            () = notice.given() => None,
        }
    };
    let stream = tokio::select! {
        stream = handshake => stream,
        () = notice.given() => return,
        () = shared.stopping() => return,
    };
    let Some(stream) = stream else { return shared.metrics.tls_failed() };
    let alt_svc = serving.alt_svc.clone();
    let shown = ShownCertificate::to(&serving.names, stream.ssl().servername(NameType::HOST_NAME));
    drop(serving);
    connection::serve(shared, Accepted { stream, address, alt_svc, idle, notice, shown }).await;
}
