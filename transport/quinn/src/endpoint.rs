//! Endpoints.

use crate::runtime::{Socket, to_hvq};
use crate::{AsyncUdpSocket, Runtime, default_runtime};
use crate::{ClientConfig, ConnectError, Connecting, EndpointConfig, Incoming, ServerConfig, VarInt};
use hvq::{EndpointOptions, LocalAddress};
use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};

/// A QUIC endpoint: client, server or both. Clones are handles on the same one.
#[derive(Clone)]
pub struct Endpoint {
    endpoint: hvq::Endpoint,
    config: Arc<EndpointConfig>,
    default_client: Option<ClientConfig>,
    /// The address of the socket that connections begin at.
    bound: Arc<Mutex<SocketAddr>>,
}

impl Endpoint {
    /// A client on a socket bound to `addr`.
    ///
    /// # Errors
    /// The socket cannot be bound, or there is no tokio runtime.
    pub fn client(addr: SocketAddr) -> io::Result<Self> {
        Self::start(EndpointConfig::default(), None, UdpSocket::bind(addr)?)
    }

    /// A server on a socket bound to `addr`, which can connect, too.
    ///
    /// # Errors
    /// The socket cannot be bound, or there is no tokio runtime.
    pub fn server(config: ServerConfig, addr: SocketAddr) -> io::Result<Self> {
        Self::start(EndpointConfig::default(), Some(config), UdpSocket::bind(addr)?)
    }

    /// A server on several addresses, for clients with several paths; quinn has none of those.
    ///
    /// # Errors
    /// A socket cannot be bound, or there is no tokio runtime.
    pub fn server_on(config: ServerConfig, addrs: &[SocketAddr]) -> io::Result<Self> {
        let (first, others) =
            addrs.split_first().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let endpoint = Self::server(config, *first)?;
        for addr in others {
            endpoint.endpoint.add_socket(UdpSocket::bind(addr)?)?;
        }
        Ok(endpoint)
    }

    /// An endpoint on a socket of the kernel that the program bound.
    ///
    /// # Errors
    /// The system refuses what the socket is set up with.
    ///
    /// # Panics
    /// Outside of a tokio runtime, if `runtime` is tokio's.
    pub fn new(
        config: EndpointConfig,
        server_config: Option<ServerConfig>,
        socket: UdpSocket,
        runtime: Arc<dyn Runtime>,
    ) -> io::Result<Self> {
        let runtime = to_hvq(runtime);
        let socket = runtime.wrap_udp_socket(socket)?;
        Self::on(config, server_config, socket, runtime)
    }

    /// An endpoint on a socket of the program.
    ///
    /// # Errors
    /// The socket has no address.
    ///
    /// # Panics
    /// Outside of a tokio runtime, if `runtime` is tokio's.
    pub fn new_with_abstract_socket(
        config: EndpointConfig,
        server_config: Option<ServerConfig>,
        socket: Arc<dyn AsyncUdpSocket>,
        runtime: Arc<dyn Runtime>,
    ) -> io::Result<Self> {
        Self::on(config, server_config, Arc::new(Socket::new(socket)?), to_hvq(runtime))
    }

    fn start(config: EndpointConfig, server: Option<ServerConfig>, socket: UdpSocket) -> io::Result<Self> {
        let runtime = default_runtime().ok_or_else(|| io::Error::other("there is no tokio runtime here"))?;
        Self::new(config, server, socket, runtime)
    }

    fn on(
        config: EndpointConfig,
        server: Option<ServerConfig>,
        socket: Arc<dyn hvq::runtime::AsyncUdpSocket>,
        runtime: Arc<dyn hvq::runtime::Runtime>,
    ) -> io::Result<Self> {
        let bound = socket.local_addr()?;
        let options = EndpointOptions {
            server: server.map(|server| server.to_hvq(&config)),
            config: config.to_hvq(),
            sockets: vec![socket],
            runtime: Some(runtime),
            ..EndpointOptions::default()
        };
        let endpoint = hvq::Endpoint::new(options)?;
        let (config, bound) = (Arc::new(config), Arc::new(Mutex::new(bound)));
        Ok(Self { endpoint, config, default_client: None, bound })
    }

    /// The endpoint as hvq has it.
    pub fn hvq(&self) -> &hvq::Endpoint {
        &self.endpoint
    }

    /// The next client that asks for a connection; `None` once the endpoint is closed.
    pub async fn accept(&self) -> Option<Incoming> {
        let incoming = self.endpoint.accept_incoming().await?;
        Some(Incoming::new(incoming, Arc::clone(&self.config)))
    }

    /// The configuration of [`Self::connect`].
    pub fn set_default_client_config(&mut self, config: ClientConfig) {
        self.default_client = Some(config);
    }

    /// Begins a connection to the server at `addr` under its name, with the default configuration.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(&self, addr: SocketAddr, server_name: &str) -> Result<Connecting, ConnectError> {
        let config = self.default_client.clone().ok_or(ConnectError::NoDefaultClientConfig)?;
        self.connect_with(config, addr, server_name)
    }

    /// Begins a connection to the server at `addr` under its name.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_with(
        &self,
        config: ClientConfig,
        addr: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        if addr.port() == 0 || addr.ip().is_unspecified() {
            return Err(ConnectError::InvalidRemoteAddress(addr));
        }
        let bound = *self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let mut options = hvq::ConnectOptions::new(addr, server_name);
        // A socket of the other IP version leaves the choice to hvq.
        options.local = (bound.is_ipv4() == addr.is_ipv4()).then_some(LocalAddress::Socket(bound));
        let connecting = self.endpoint.connect_with(config.to_hvq(&self.config), options);
        connecting.map(Connecting::new).map_err(|error| ConnectError::of(&error, addr, server_name))
    }

    /// Moves all connections that this endpoint began to a socket of the program; those whose handshake is not confirmed stay at the
    /// old one (RFC 9000 §9).
    ///
    /// # Errors
    /// The system refuses what the socket is set up with.
    pub fn rebind(&self, socket: UdpSocket) -> io::Result<()> {
        self.move_to(self.endpoint.add_socket(socket)?)
    }

    /// Moves all connections that this endpoint began to another socket of the program, as [`rebind`](Self::rebind) does.
    ///
    /// # Errors
    /// The socket has no address, or the one that an earlier one has.
    pub fn rebind_abstract(&self, socket: Arc<dyn AsyncUdpSocket>) -> io::Result<()> {
        self.move_to(self.endpoint.add_abstract_socket(Arc::new(Socket::new(socket)?))?)
    }

    fn move_to(&self, new: SocketAddr) -> io::Result<()> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *bound, new);
        self.endpoint.rebind(old, &LocalAddress::Socket(new))?;
        Ok(())
    }

    /// Replaces what connections of clients are made from; `None` accepts no more, nor does a configuration with settings out of
    /// their range.
    pub fn set_server_config(&self, server_config: Option<ServerConfig>) {
        let server = server_config.map(|config| config.to_hvq(&self.config));
        if self.endpoint.set_server(server).is_err() {
            // None is in range.
            let _none = self.endpoint.set_server(None);
        }
    }

    /// The address of the socket.
    ///
    /// # Errors
    /// None; quinn's method may have some.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(*self.bound.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Connections that are open.
    pub fn open_connections(&self) -> usize {
        self.endpoint.open_connections()
    }

    /// Closes all connections, and begins and accepts no more.
    pub fn close(&self, error_code: VarInt, reason: &[u8]) {
        self.endpoint.close(error_code.into_inner(), reason);
    }

    /// Waits until no connection is left.
    pub async fn wait_idle(&self) {
        self.endpoint.wait_idle().await;
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.endpoint.fmt(f)
    }
}
