//! The making of connections to origins.

use super::wire::{Attentive, Wire};
use crate::configuration::{OriginUrl, Protocol};
use crate::destination_policy::{DestinationPolicy, host_and_port};
use boring::ssl::{SslConnector, SslMethod, SslVerifyMode};
use boring::x509::X509;
use boring::x509::store::X509StoreBuilder;
use http::Uri;
use hyper_util::rt::TokioIo;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower_service::Service;

type Connecting = Pin<Box<dyn Future<Output = io::Result<Wire>> + Send>>;

/// The files in which systems keep the certificates that they trust: Debian, Fedora, Alpine.
const BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];
/// The port of HTTP (RFC 9110 §4.2.1).
const HTTP: u16 = 80;

/// Connects to one origin, whatever host a request names.
#[derive(Clone)]
pub(crate) struct Direct {
    target: Arc<Target>,
}

struct Target {
    host: String,
    port: u16,
    /// The socket of this machine that is connected to instead.
    socket: Option<PathBuf>,
    tls: Option<SslConnector>,
    patience: Duration,
}

impl fmt::Debug for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target.socket {
            Some(path) => write!(f, "Direct({})", path.display()),
            None => write!(f, "Direct({}:{})", self.target.host, self.target.port),
        }
    }
}

impl Direct {
    /// To the origin at `url`, in `patience`.
    pub(crate) fn new(url: &OriginUrl, ca: Option<&[u8]>, patience: Duration) -> Result<Self, String> {
        let tls = match url.protocol {
            Protocol::Tls => Some(tls(ca).map_err(|error| format!("TLS to {url}: {error}"))?),
            Protocol::Http1 | Protocol::Http2 => None,
        };
        let socket = url.socket.clone();
        let target = Target { host: url.host.clone(), port: url.port, socket, tls, patience };
        Ok(Self { target: Arc::new(target) })
    }

    /// Connects.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if that takes too long, and what the system says.
    pub(crate) async fn connect(&self) -> io::Result<Wire> {
        self.target.connect(None).await
    }

    /// Connects for HTTP/1.1 alone.
    ///
    /// # Errors
    /// Those of [`Direct::connect`].
    pub(crate) async fn connect_http1(&self) -> io::Result<Wire> {
        self.target.connect(Some(b"\x08http/1.1")).await
    }
}

/// TLS with certificates that go back to one in `ca`, or of the system; HTTP/2 if the origin speaks it.
fn tls(ca: Option<&[u8]>) -> Result<SslConnector, boring::error::ErrorStack> {
    // The builder has names verified.
    let mut builder = SslConnector::builder(SslMethod::tls())?;
    if let Some(ca) = ca {
        let mut store = X509StoreBuilder::new()?;
        for certificate in X509::stack_from_pem(ca)? {
            store.add_cert(certificate)?;
        }
        builder.set_cert_store_builder(store);
    } else if let Some(bundle) = BUNDLES.iter().find(|bundle| Path::new(bundle).is_file()) {
        builder.set_ca_file(bundle)?;
    }
    builder.set_verify(SslVerifyMode::PEER);
    builder.set_alpn_protos(b"\x02h2\x08http/1.1")?;
    Ok(builder.build())
}

impl Target {
    /// Connects; with TLS for these protocols, or else those that the configuration has.
    async fn connect(&self, protocols: Option<&[u8]>) -> io::Result<Wire> {
        let connecting = async {
            #[cfg(unix)]
            if let Some(path) = &self.socket {
                let stream = tokio::net::UnixStream::connect(path).await?;
                return Ok(Wire::Local(TokioIo::new(Attentive::new(stream))));
            }
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
            stream.set_nodelay(true)?;
            let stream = Attentive::new(stream);
            let Some(tls) = &self.tls else { return Ok(Wire::Plain(TokioIo::new(stream))) };
            let mut session = tls.configure().map_err(io::Error::other)?;
            if let Some(protocols) = protocols {
                session.set_alpn_protos(protocols).map_err(io::Error::other)?;
            }
            let stream = tokio_boring::connect(session, &self.host, stream)
                .await
                .map_err(|error| io::Error::other(format!("TLS: {error}")))?;
            Ok(Wire::Tls(Box::new(TokioIo::new(stream))))
        };
        timeout(self.patience, connecting).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Service<Uri> for Direct {
    type Response = Wire;
    type Error = io::Error;
    type Future = Connecting;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Connecting {
        let target = self.target.clone();
        Box::pin(async move { target.connect(None).await })
    }
}

/// Connects to the host that a request names, if that may be reached.
#[derive(Clone, Debug)]
pub(crate) struct Filtered {
    reach: Arc<DestinationPolicy>,
    patience: Duration,
}

impl Filtered {
    /// To addresses that `reach` allows, in `patience`.
    pub(crate) fn new(reach: DestinationPolicy, patience: Duration) -> Self {
        Self { reach: Arc::new(reach), patience }
    }

    /// The addresses of `host` that may be reached.
    ///
    /// # Errors
    /// Returns the errors of [`Filtered::connect`].
    pub(crate) async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let resolving = timeout(self.patience, self.reach.resolve(host, port));
        resolving.await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Connects to `host`, trying a few of its addresses in turn.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] if it may not be reached, [`io::ErrorKind::TimedOut`] if that takes too long.
    pub(crate) async fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        self.in_time(async { first_of(&self.reach.resolve(host, port).await?).await }).await
    }

    /// Connects to `address`, which somebody else allowed.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if that takes too long, and what the system says.
    pub(crate) async fn connect_to(&self, address: SocketAddr) -> io::Result<TcpStream> {
        self.in_time(TcpStream::connect(address)).await
    }

    async fn in_time(
        &self,
        connecting: impl Future<Output = io::Result<TcpStream>>,
    ) -> io::Result<TcpStream> {
        let connected = timeout(self.patience, connecting).await;
        let stream = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

async fn first_of(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Service<Uri> for Filtered {
    type Response = Wire;
    type Error = io::Error;
    type Future = Connecting;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        let this = self.clone();
        Box::pin(async move {
            let target = uri.authority().and_then(|authority| host_and_port(authority, Some(HTTP)));
            let (host, port) = target.ok_or(io::ErrorKind::InvalidInput)?;
            let stream = this.connect(&host, port).await?;
            Ok(Wire::Plain(TokioIo::new(Attentive::new(stream))))
        })
    }
}
