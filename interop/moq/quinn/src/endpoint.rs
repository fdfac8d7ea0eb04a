//! Endpoints whose connections take the paths of the environment.

use crate::{ClientConfig, ConnectError, Connecting, EndpointConfig, ServerConfig, TokioRuntime};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The variable of the environment with the further paths.
const PATHS: &str = "HVQ_PATHS";
/// The variable that has the paths reported each second.
const STATISTICS: &str = "HVQ_STATISTICS";
/// The variable that names the policy.
const SCHEDULER: &str = "HVQ_SCHEDULER";

/// hvq-quinn's endpoint; its connections take further paths.
#[derive(Clone, Debug)]
pub struct Endpoint(hvq_quinn::Endpoint);

impl Endpoint {
    /// A client on a socket bound to `addr`.
    pub fn client(addr: SocketAddr) -> io::Result<Self> {
        hvq_quinn::Endpoint::client(addr).map(Self)
    }

    /// A server on a socket bound to `addr`.
    pub fn server(config: ServerConfig, addr: SocketAddr) -> io::Result<Self> {
        hvq_quinn::Endpoint::server(config, addr).map(Self)
    }

    /// An endpoint on a socket of the program.
    pub fn new(
        config: EndpointConfig,
        mut server_config: Option<ServerConfig>,
        socket: UdpSocket,
        runtime: Arc<TokioRuntime>,
    ) -> io::Result<Self> {
        if let Some(config) = &mut server_config {
            take_policy(config.hvq());
        }
        hvq_quinn::Endpoint::new(config, server_config, socket, runtime).map(Self)
    }

    /// Begins a connection to the server at `addr` under its name, with the default configuration.
    pub fn connect(&self, addr: SocketAddr, server_name: &str) -> Result<Connecting, ConnectError> {
        self.0.connect(addr, server_name).inspect(take_further_paths)
    }

    /// Begins a connection to the server at `addr` under its name.
    pub fn connect_with(
        &self,
        mut config: ClientConfig,
        addr: SocketAddr,
        server_name: &str,
    ) -> Result<Connecting, ConnectError> {
        take_policy(config.hvq());
        self.0.connect_with(config, addr, server_name).inspect(take_further_paths)
    }
}

impl Deref for Endpoint {
    type Target = hvq_quinn::Endpoint;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Endpoint {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

/// Has connections schedule as the environment says; hvc, if it says nothing.
fn take_policy(settings: &mut hvq::TransportConfig) {
    let Ok(name) = std::env::var(SCHEDULER) else { return };
    match name.parse::<hvq::Policy>() {
        Ok(policy) => {
            settings.set_scheduler(Arc::new(move || policy.scheduler()));
        }
        Err(error) => eprintln!("hvq: no policy {name}: {error}"),
    }
}

/// Opens the paths of the environment once the handshake is complete; one that cannot be opened is reported, and the others are.
fn take_further_paths(connecting: &Connecting) {
    let Ok(paths) = std::env::var(PATHS) else { return };
    let connection = connecting.hvq().clone();
    tokio::spawn(async move {
        // The program is told why it failed.
        let Ok(()) = connection.handshake_complete().await else { return };
        for text in paths.split_whitespace() {
            let opened = match text.parse::<hvq::PathOptions>() {
                Ok(path) => connection.open_path(path).await.map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            match opened {
                Ok(id) => eprintln!("hvq: path {id} is {text}"),
                Err(error) => eprintln!("hvq: no path {text}: {error}"),
            }
        }
        if std::env::var_os(STATISTICS).is_some() {
            report(&connection).await;
        }
    });
}

/// Says each second what the paths carried, until the connection ends.
async fn report(connection: &hvq::Connection) {
    while connection.close_reason().is_none() {
        for path in connection.stats().paths {
            let (sent, lost) = (path.counters.datagrams_sent, path.counters.packets_lost);
            let (rtt, rate) = (path.rtt, path.rate.map_or(0, |rate| rate.bits_per_second()));
            eprintln!(
                "hvq: path {}: {sent} sent, {lost} lost, {rtt:?}, {rate} bit/s, {:?}",
                path.id, path.state
            );
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}
