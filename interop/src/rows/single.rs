//! One path, content both ways, with implementations of QUIC v1 that run in this process.

use crate::content::content;
use crate::identity::{Identity, NAME};
use crate::report::{Exchange, locked_version};
use crate::{ours, peer};
use anyhow::{Context, Result};
use bytes::Bytes;
use hvq::{Connection, Endpoint, Policy};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Bytes of content each way.
const CONTENT: usize = 20_000_000;
const ALPN: &[u8] = b"hvq-interop";

fn contents() -> (Bytes, Bytes) {
    (content(CONTENT, 21), content(CONTENT, 22))
}

/// Our client connects to `remote`.
async fn connect(identity: &Identity, remote: SocketAddr) -> Result<Connection> {
    let endpoint = Endpoint::client(&[])?;
    let config = ours::client(identity, ALPN, Policy::default())?;
    endpoint.connect(config, remote, NAME)?.await.context("hvq connects")
}

/// Our server, and where it listens.
fn listen(identity: &Identity) -> Result<(Endpoint, SocketAddr)> {
    let config = ours::server(identity, ALPN, Policy::default())?;
    let endpoint = Endpoint::server(config, &[SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()])?;
    let address = endpoint.local_addr()?;
    Ok((endpoint, address))
}

/// Both sides send and receive, and hvq tells what it did on its path.
async fn swap(
    near: &Connection,
    far: impl Future<Output = Result<()>>,
    (sent, wanted): (Bytes, Bytes),
    package: &str,
) -> Result<Exchange> {
    let work = async { tokio::try_join!(ours::swap(near, sent, &wanted), far) };
    let (_, paths) = ours::watched(near, work).await?;
    near.close(0, b"done");
    let peer = format!("{package} {}", locked_version(package));
    Ok(Exchange { bytes: 2 * CONTENT as u64, paths, peer, note: String::new() })
}

/// Our client to a quinn server.
pub async fn to_quinn(identity: &Identity) -> Result<Exchange> {
    let server = peer::quinn::server(identity, ALPN)?;
    let address = server.local_addr()?;
    let accepting = async {
        let incoming = server.accept().await.context("quinn's endpoint is closed")?;
        incoming.await.context("quinn accepts")
    };
    let (near, far) = tokio::try_join!(connect(identity, address), accepting)?;
    let (up, down) = contents();
    let exchange =
        swap(&near, peer::quinn::swap(&far, down.clone(), &up), (up.clone(), down.clone()), "quinn").await;
    // The peer is told; whatever is left of it ends with the endpoints.
    let _told = tokio::time::timeout(Duration::from_secs(1), far.closed()).await;
    exchange
}

/// A quinn client to our server.
pub async fn from_quinn(identity: &Identity) -> Result<Exchange> {
    let (endpoint, address) = listen(identity)?;
    let client = peer::quinn::client(identity, ALPN)?;
    let connecting = client.connect(address, NAME)?;
    let connected = async { connecting.await.context("quinn connects") };
    let accepting = async { endpoint.accept().await.context("hvq's endpoint is closed") };
    let (far, near) = tokio::try_join!(connected, accepting)?;
    let (up, down) = contents();
    swap(&near, peer::quinn::swap(&far, up.clone(), &down), (down.clone(), up.clone()), "quinn").await
}

/// Our client to an s2n-quic server.
pub async fn to_s2n(identity: &Identity) -> Result<Exchange> {
    let mut server = peer::s2n::server(identity, ALPN)?;
    let address = server.local_addr()?;
    let accepting = async { server.accept().await.context("s2n-quic's endpoint is closed") };
    let (near, mut far) = tokio::try_join!(connect(identity, address), accepting)?;
    let (up, down) = contents();
    swap(&near, peer::s2n::swap(&mut far, down.clone(), &up), (up.clone(), down.clone()), "s2n-quic").await
}

/// An s2n-quic client to our server.
pub async fn from_s2n(identity: &Identity) -> Result<Exchange> {
    let (endpoint, address) = listen(identity)?;
    let client = peer::s2n::client(identity, ALPN)?;
    let connecting = client.connect(s2n_quic::client::Connect::new(address).with_server_name(NAME));
    let connected = async { connecting.await.context("s2n-quic connects") };
    let accepting = async { endpoint.accept().await.context("hvq's endpoint is closed") };
    let (mut far, near) = tokio::try_join!(connected, accepting)?;
    let (up, down) = contents();
    swap(&near, peer::s2n::swap(&mut far, up.clone(), &down), (down.clone(), up.clone()), "s2n-quic").await
}
