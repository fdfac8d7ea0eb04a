//! The port that local programs connect to, and which language each speaks there.

use crate::acceptor::{AcceptorError, acceptor};
use crate::proxy::http::{self, LocalService};
use crate::proxy::link::Link;
use crate::proxy::pac::Offer;
use crate::proxy::socks::{self, Ends};
use boring::ssl::{SslAcceptor, SslAcceptorBuilder};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

/// Connections of local programs at a time; others wait.
const CONNECTIONS: usize = 4096;
/// The time that a program may take for its first byte, and for its handshake.
const PATIENCE: Duration = Duration::from_secs(30);
/// The first byte of SOCKS5 (RFC 1928 §3), and of TLS (a handshake record).
const SOCKS: u8 = 5;
const TLS: u8 = 0x16;

/// Certificate chain and key in PEM, for programs that ask over TLS.
#[derive(Clone)]
pub struct TlsIdentity {
    /// The chain.
    pub chain: Vec<u8>,
    /// The key.
    pub key: Vec<u8>,
}

/// The options of a proxy.
pub struct ProxyOptions {
    /// The address to listen on. Anybody who gets there may use the proxy: loopback, as a rule.
    pub listen: SocketAddr,
    /// The proxy's identity over TLS; `None` speaks no TLS.
    pub identity: Option<TlsIdentity>,
    /// The way to the gateway.
    pub link: Arc<Link>,
}

/// The reason for which a proxy does not start.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The address cannot be bound.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// TLS does not take certificate and key.
    #[error(transparent)]
    Identity(#[from] AcceptorError),
}

/// A proxy that runs. Dropping it ends it.
pub struct Proxy {
    address: SocketAddr,
    link: Arc<Link>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Starts what `options` say.
    ///
    /// # Errors
    /// See [`ProxyError`].
    pub async fn start(options: ProxyOptions) -> Result<Self, ProxyError> {
        let acceptor = |identity: &TlsIdentity| acceptor(&identity.chain, &identity.key);
        let tls = options.identity.as_ref().map(acceptor).transpose()?.map(SslAcceptorBuilder::build);
        let unusable = |error| ProxyError::Listen(options.listen, error);
        let listener = TcpListener::bind(options.listen).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let offer = if tls.is_some() { Offer::Tls } else { Offer::Plain };
        let service = LocalService { link: options.link.clone(), address, offer };
        let accepting = tokio::spawn(accept(listener, Arc::new(service), tls));
        Ok(Self { address, link: options.link, accepting })
    }

    /// Returns the address on which it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Ends it, and the connection to the gateway.
    pub async fn stop(self) {
        self.accepting.abort();
        self.link.close().await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, service: Arc<LocalService>, tls: Option<SslAcceptor>) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    // Connections end with the task that accepts them.
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Mostly no file descriptors: trying again at once would only burn time.
                tracing::warn!(%error, "cannot accept");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (service, tls) = (service.clone(), tls.clone());
        connections.spawn(async move {
            if let Err(error) = serve(stream, service, tls).await {
                tracing::debug!(%error, "a local connection");
            }
            drop(permit);
        });
    }
}

async fn serve(stream: TcpStream, service: Arc<LocalService>, tls: Option<SslAcceptor>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut first = [0];
    timeout(PATIENCE, stream.peek(&mut first)).await.map_err(|_| io::ErrorKind::TimedOut)??;
    match (first, tls) {
        ([SOCKS], _) => {
            let ends = Ends { program: stream.peer_addr()?.ip(), here: stream.local_addr()?.ip() };
            socks::serve(stream, ends, &service.link).await
        }
        ([TLS], Some(tls)) => {
            let accepted = timeout(PATIENCE, tokio_boring::accept(&tls, stream)).await;
            let stream = accepted.map_err(|_| io::ErrorKind::TimedOut)?;
            http::serve(stream.map_err(|error| io::Error::other(error.to_string()))?, service).await
        }
        _ => http::serve(stream, service).await,
    }
}
