//! An endpoint: where connections start and arrive.

use crate::connection::{Connection, Reference};
use crate::driver::Driver;
use crate::incoming::Incoming;
use crate::race;
use crate::runtime;
use crate::runtime::{AsyncUdpSocket, RemoveSocketError, Runtime};
use crate::shared::{IoStats, Shared};
use crate::sockets::{Sockets, Source};
use crate::workers::Neighbours;
use crate::{
    ClientConfig, ConnectError, ConnectOptions, ConnectionError, EndpointConfig, LocalAddress, PathOptions,
    Role, ServerConfig, TransportConfig,
};
use hvq_transport::connection::{DatagramSizing, FourTuple, TransportConfigError};
use hvq_transport::endpoint::{Endpoint as Core, EndpointStats, NetworkPath};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};

/// The bytes of UDP payload that every network has to carry (RFC 9000 §14).
const LEAST_DATAGRAM: usize = 1_200;

/// The options of an endpoint.
#[derive(Clone, Debug, Default)]
pub struct EndpointOptions {
    /// Limits and keys. Unless `epoch` is set, it is the system's time.
    pub config: EndpointConfig,
    /// The configuration of connections that peers start; `None` accepts none.
    pub server: Option<ServerConfig>,
    /// The local addresses to bind, each a UDP socket. A client needs none: sockets are then bound for each connection
    /// and path.
    pub local: Vec<LocalAddress>,
    /// Sockets of the program, which stay as long as the endpoint, behind those of `local`.
    pub sockets: Vec<Arc<dyn AsyncUdpSocket>>,
    /// The runtime that the endpoint runs on; `None` is tokio's, which it is made in.
    pub runtime: Option<Arc<dyn Runtime>>,
}

/// A QUIC endpoint on one or several UDP sockets: client, server or both. Clones are handles on the same endpoint.
///
/// Once the last handle is dropped, the endpoint accepts no more connections, but those that exist go on; sockets and
/// the driver task end with the last of them.
#[derive(Clone)]
pub struct Endpoint {
    presence: Arc<Presence>,
}

/// One for all handles of an endpoint.
struct Presence {
    shared: Arc<Shared>,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.shared.lock().abandon(self.shared.now());
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("local", &self.local_addrs()).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// A client on sockets bound to `local`; `&[]` binds sockets for each connection and path.
    ///
    /// # Errors
    /// A socket cannot be bound, or there is no runtime, as for [`Endpoint::new`].
    pub fn client(local: &[LocalAddress]) -> io::Result<Self> {
        Self::new(EndpointOptions { local: local.to_vec(), ..EndpointOptions::default() })
    }

    /// A server that listens on `local`, one socket each; it can connect too.
    ///
    /// # Errors
    /// A socket cannot be bound, `local` is empty, a setting is out of its range, or there is no runtime, as for
    /// [`Endpoint::new`].
    pub fn server(config: ServerConfig, local: &[LocalAddress]) -> io::Result<Self> {
        Self::new(EndpointOptions {
            server: Some(config),
            local: local.to_vec(),
            ..EndpointOptions::default()
        })
    }

    /// An endpoint as `options` say. Its driver runs on the runtime that they name, or else on the current one of tokio.
    ///
    /// # Errors
    /// A socket cannot be bound, a server has no address or a setting that is out of its range
    /// ([`TransportConfigError`](crate::config::TransportConfigError)), the system has no randomness, or there is no runtime: the
    /// options name none, and this is called outside of tokio's.
    pub fn new(options: EndpointOptions) -> io::Result<Self> {
        let EndpointOptions { config, server, local, sockets: own, runtime } = options;
        if server.is_some() && local.is_empty() && own.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a server needs an address to listen on",
            ));
        }
        let runtime = runtime.map_or_else(runtime::current, Ok)?;
        let source = if server.is_some() { Source::Pinned } else { Source::Routed };
        let mut sockets = Sockets::new(source, runtime);
        for local in &local {
            sockets.bind_permanent(local)?;
        }
        for socket in own {
            sockets.adopt_abstract(socket)?;
        }
        start(config, server, sockets, None)
    }

    /// An endpoint on sockets of the kernel that the program bound, which stay as long as it: for those that are bound, marked or
    /// inherited in ways of their own. A client may bind further ones for paths.
    ///
    /// # Errors
    /// The system refuses what the sockets are set up with, a server has none, the system has no randomness, or this is called
    /// outside of a tokio runtime.
    pub fn on_sockets(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        bound: Vec<std::net::UdpSocket>,
    ) -> io::Result<Self> {
        if server.is_some() && bound.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a server needs a socket to listen on"));
        }
        let source = if server.is_some() { Source::Pinned } else { Source::Routed };
        let mut sockets = Sockets::new(source, runtime::current()?);
        for socket in bound {
            sockets.adopt(socket)?;
        }
        start(config, server, sockets, None)
    }

    /// Returns the state that the handles share with the driver.
    pub(crate) fn shared(&self) -> &Shared {
        &self.presence.shared
    }

    /// Starts a connection to the server at `remote`, whose certificate must be for `server_name` (a host name or an IP
    /// address). The handshake goes on while the returned future is awaited or not.
    ///
    /// # Errors
    /// See [`ConnectError`]; nothing was sent then.
    pub fn connect(
        &self,
        config: ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        self.connect_with(config, ConnectOptions::new(remote, server_name))
    }

    /// Starts a connection as `options` say, as [`Endpoint::connect`] does.
    ///
    /// # Errors
    /// See [`ConnectError`]; nothing was sent then.
    pub fn connect_with(
        &self,
        mut config: ClientConfig,
        options: ConnectOptions,
    ) -> Result<Connecting, ConnectError> {
        let shared = &self.presence.shared;
        let now = shared.now();
        let mut state = shared.lock();
        if !state.is_open() {
            return Err(ConnectError::EndpointClosed);
        }
        if state.sockets.may_fragment() {
            keep_small(config.transport_mut());
        }
        if !options.alternatives.is_empty() {
            let handle = race::start(&mut state, &config, &options, now)?;
            state.wake_driver();
            return Ok(Connecting {
                connection: Some(Connection::new(Reference::new(shared.clone(), handle))),
            });
        }
        let socket = state.sockets.obtain(options.local.as_ref(), options.remote).map_err(|source| {
            let any = if options.remote.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
            ConnectError::Bind { local: options.local.clone().unwrap_or(LocalAddress::Ip(any)), source }
        })?;
        let tuple = FourTuple { local: socket.source_for(options.remote), remote: options.remote };
        let handle = match state.core.connect(&config, tuple, &options.server_name, now) {
            Ok(handle) => handle,
            Err(error) => {
                state.sockets.release_unused();
                return Err(error.into());
            }
        };
        state.sockets.hold(&socket, handle);
        state.adopt(handle, tuple, &options);
        state.wake_driver();
        Ok(Connecting { connection: Some(Connection::new(Reference::new(shared.clone(), handle))) })
    }

    /// Returns the index of the one of `paths` over which a connection to `remote` had better begin; the others are for
    /// [`Connection::open_path`]. The scheduler of `config` decides: `hvc` takes the narrow channel for the handshake
    /// if that is over there, behind what other connections of this endpoint have queued, before a packet would have
    /// crossed the wide one. It is the first as long as neither hints nor other connections tell the delay of each.
    pub fn first_path(&self, config: &ClientConfig, remote: SocketAddr, paths: &[PathOptions]) -> usize {
        let shared = &self.presence.shared;
        let now = shared.now();
        let mut state = shared.lock();
        let way = |path: &PathOptions| {
            let remote = path.remote.unwrap_or(remote);
            let socket = state.sockets.obtain(Some(&path.local), remote).ok()?;
            Some(NetworkPath {
                tuple: FourTuple { local: socket.source_for(remote), remote },
                hints: path.hints,
            })
        };
        let ways: Option<Vec<NetworkPath>> = paths.iter().map(way).collect();
        let first = ways.map_or(0, |ways| state.core.first_network_path(config, &ways, now));
        state.sockets.release_unused();
        first
    }

    /// The next connection of a peer; `None` once the endpoint is closed. Its handshake is complete, unless 0-RTT was
    /// accepted: see [`Connection::is_early_data`].
    pub async fn accept(&self) -> Option<Connection> {
        let shared = &self.presence.shared;
        poll_fn(|context| {
            let mut state = shared.lock();
            if let Some(handle) = state.take_accepted() {
                return Poll::Ready(Some(Connection::new(Reference::new(shared.clone(), handle))));
            }
            if !state.is_open() {
                return Poll::Ready(None);
            }
            state.accept_wakers.register(context.waker());
            Poll::Pending
        })
        .await
    }

    /// The next client that asks for a connection, for servers whose admission is [deferred](crate::admission::Admission::deferred);
    /// `None` once the endpoint is closed. The application accepts it, has it prove its address, or turns it away.
    pub async fn accept_incoming(&self) -> Option<Incoming> {
        let shared = &self.presence.shared;
        poll_fn(|context| {
            let mut state = shared.lock();
            if !state.is_open() {
                return Poll::Ready(None);
            }
            if let Some(candidate) = state.take_asking() {
                return Poll::Ready(Some(Incoming::new(shared.clone(), candidate)));
            }
            state.accept_wakers.register(context.waker());
            Poll::Pending
        })
        .await
    }

    /// Adds a socket of the kernel that the program bound, which stays as long as the endpoint, or until it is [removed](Self::remove_socket): for
    /// one that is bound, marked or inherited in ways of its own.
    ///
    /// # Errors
    /// The system refuses what the socket is set up with.
    pub fn add_socket(&self, socket: std::net::UdpSocket) -> io::Result<SocketAddr> {
        let mut state = self.presence.shared.lock();
        let local = state.sockets.adopt(socket)?;
        state.wake_driver();
        Ok(local)
    }

    /// Adds a socket of the program, which stays as long as the endpoint, or until it is [removed](Self::remove_socket), and returns
    /// its address: paths that begin there leave through it. See [`runtime`](crate::runtime) for what such sockets do not do.
    ///
    /// # Errors
    /// The socket has no address, or the endpoint has another one with the same.
    pub fn add_abstract_socket(&self, socket: Arc<dyn AsyncUdpSocket>) -> io::Result<SocketAddr> {
        let mut state = self.presence.shared.lock();
        let local = state.sockets.adopt_abstract(socket)?;
        state.wake_driver();
        Ok(local)
    }

    /// Takes away a socket, by the address that it is bound to: one that the program added, or that the endpoint bound. Nothing is
    /// sent or received through it any more; it is closed once the driver had its turn ([`beat`](Self::beat) waits for that),
    /// and its address may be added again.
    ///
    /// The paths that begin there are given up (PATH_ABANDON with PATH_UNSTABLE_OR_POOR, RFC 10069 §3.4) on each connection that has
    /// another path which works, and on others as soon as one works. Until then such a path is like one whose interface vanished:
    /// silent, and alive again if the socket comes back or [`Connection::rebind_path`] moves it.
    ///
    /// # Errors
    /// No socket is bound to the address, it is the endpoint's last one, or workers share it ([`RemoveSocketError`]).
    pub fn remove_socket(&self, local: SocketAddr) -> Result<(), RemoveSocketError> {
        let now = self.presence.shared.now();
        self.presence.shared.lock().remove_socket(local, now)
    }

    /// Replaces what new connections of peers are made from; `None` accepts no more. Existing connections go on.
    ///
    /// # Errors
    /// A setting is out of its range; nothing is replaced then.
    pub fn set_server(&self, config: Option<ServerConfig>) -> Result<(), TransportConfigError> {
        let mut config = config;
        let mut state = self.presence.shared.lock();
        if let Some(config) = &mut config {
            config.transport().check()?;
            if state.sockets.may_fragment() {
                keep_small(config.transport_mut());
            }
        }
        state.core.set_server(config);
        Ok(())
    }

    /// Closes all connections with the application's `code` and a reason for people, and accepts and starts no more.
    pub fn close(&self, code: u64, reason: &[u8]) {
        let now = self.presence.shared.now();
        self.presence.shared.lock().close(code, reason, now);
    }

    /// Waits until no connection is left, closing and draining periods included: peers have been told of every close.
    /// Connections that nobody closes keep it waiting.
    pub async fn wait_idle(&self) {
        poll_fn(|context| {
            let mut state = self.presence.shared.lock();
            if state.is_dead() || state.core.handles().next().is_none() {
                return Poll::Ready(());
            }
            state.idle_wakers.register(context.waker());
            Poll::Pending
        })
        .await;
    }

    /// Waits until nothing moves any more: the endpoint's driver has ended, by a panic or with its runtime. It does not end by
    /// itself while there is a handle such as this.
    pub async fn stopped(&self) {
        poll_fn(|context| {
            let mut state = self.presence.shared.lock();
            if state.is_dead() {
                return Poll::Ready(());
            }
            state.idle_wakers.register(context.waker());
            Poll::Pending
        })
        .await;
    }

    /// Waits until the endpoint's driver has gone through its work once from now on: it is woken for it. A driver that hangs
    /// or has ended has this wait forever, which is what a watchdog wants to know.
    pub async fn beat(&self) {
        let asked = {
            let mut state = self.presence.shared.lock();
            state.wake_driver();
            state.rounds()
        };
        poll_fn(|context| {
            let mut state = self.presence.shared.lock();
            if state.rounds() != asked {
                return Poll::Ready(());
            }
            state.register_round(context.waker());
            Poll::Pending
        })
        .await;
    }

    /// The knowledge of paths that connections left (rates, round trips, windows), as bytes for [`Self::add_knowledge`]: those of
    /// the 64 paths used last. They are as private as session tickets.
    pub fn knowledge(&self) -> Vec<u8> {
        self.presence.shared.lock().core.knowledge()
    }

    /// Adds knowledge of paths that an earlier endpoint left, with which connections begin there
    /// ([`TransportConfig::set_path_memory`](crate::TransportConfig::set_path_memory)). Returns the number of paths; `None` if `bytes` are
    /// damaged or of another version: then none is added.
    pub fn add_knowledge(&self, bytes: &[u8]) -> Option<usize> {
        let now = self.presence.shared.now();
        self.presence.shared.lock().core.add_knowledge(bytes, now)
    }

    /// The addresses that the endpoint's sockets are bound to: first those of the options, in their order, then those
    /// bound for connections and paths.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.presence.shared.lock().sockets.addresses()
    }

    /// The first of [`local_addrs`](Self::local_addrs).
    ///
    /// # Errors
    /// The endpoint has no socket yet.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let first = self.local_addrs().first().copied();
        first.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the endpoint has no socket yet"))
    }

    /// Connections that exist, closing ones and unaccepted ones included.
    pub fn open_connections(&self) -> usize {
        self.presence.shared.lock().core.handles().count()
    }

    /// Returns the counters of datagrams that the protocol ignored, and of those that it sent without a connection.
    pub fn stats(&self) -> EndpointStats {
        self.presence.shared.lock().core.stats().clone()
    }

    /// Returns the counters of the sockets: sent, received, not sent.
    pub fn io_stats(&self) -> IoStats {
        self.presence.shared.lock().io
    }
}

/// An endpoint on `sockets`, with a driver on the current runtime.
pub(crate) fn start(
    mut config: EndpointConfig,
    mut server: Option<ServerConfig>,
    sockets: Sockets,
    neighbours: Option<Neighbours>,
) -> io::Result<Endpoint> {
    let mut seed = [0; 32];
    sockets.runtime().fill_random(&mut seed)?;
    if config.epoch().is_zero() {
        // A clock from before 1970 only makes tokens of earlier runs useless.
        config.set_epoch(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    }
    if let Some(server) = &server {
        let checked = server.transport().check();
        checked.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    }
    if let Some(server) = &mut server
        && sockets.may_fragment()
    {
        keep_small(server.transport_mut());
    }
    let core = Core::new(config, server, seed);
    let shared = Arc::new(Shared::new(core, sockets));
    shared.runtime().spawn(Box::pin(Driver::new(shared.clone(), neighbours)));
    Ok(Endpoint { presence: Arc::new(Presence { shared }) })
}

/// Has connections look for no larger datagrams than every network carries: one that fragments them would tell of none that it
/// does not (RFC 9000 §14).
fn keep_small(transport: &mut TransportConfig) {
    if let DatagramSizing::Discover { .. } = transport.datagram_size() {
        transport.set_datagram_size(DatagramSizing::Fixed(LEAST_DATAGRAM));
    }
}

/// A connection whose handshake is under way: a future of the connection. Dropping it ends the attempt.
#[derive(Debug)]
#[must_use = "the attempt ends when this is dropped"]
pub struct Connecting {
    connection: Option<Connection>,
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let connection = self.connection.as_ref().expect("a future is not polled again after it is ready");
        match connection.poll_connected(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(self.connection.take().expect("it was there a line ago"))),
        }
    }
}

impl Connecting {
    /// A connection that the application accepted.
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection: Some(connection) }
    }

    /// The connection as it is so far; of an attempt that failed, what is left to be looked at.
    pub fn connection(&self) -> &Connection {
        self.connection.as_ref().expect("it is taken only when it is complete")
    }

    /// The connection at once, if a ticket lets it send 0-RTT, and a future that tells whether the server accepts it. If it
    /// does not, the streams go on all the same: what was sent is sent again when the handshake is complete.
    ///
    /// An attacker that records 0-RTT packets can have them delivered again, so that only what does no harm when it is
    /// done twice may be sent so (RFC 9001 §9.2).
    ///
    /// A server's connection is there at once: it sends in the first flight, to a client that is not authenticated yet, and reads what
    /// 0-RTT brings.
    ///
    /// # Errors
    /// There is no such ticket: the handshake goes on.
    pub fn into_0rtt(mut self) -> Result<(Connection, EarlyDataAccepted), Self> {
        match self
            .connection
            .take_if(|connection| connection.is_early_data() || connection.role() == Role::Server)
        {
            Some(connection) => {
                let accepted = EarlyDataAccepted { connection: connection.clone() };
                Ok((connection, accepted))
            }
            None => Err(self),
        }
    }
}

/// Tells whether a server accepted 0-RTT, when the handshake is complete or the connection ended.
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct EarlyDataAccepted {
    connection: Connection,
}

impl Future for EarlyDataAccepted {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<bool> {
        let connected = self.connection.poll_connected(context);
        connected.map(|connected| connected.is_ok() && self.connection.early_data_accepted() == Some(true))
    }
}
