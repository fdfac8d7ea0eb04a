//! Two paths with noq: the client opens the second one, both carry, and one may be cut in the middle.

use crate::content::content;
use crate::identity::{Identity, NAME};
use crate::relay::Relay;
use crate::report::{Exchange, PathUse, locked_version};
use crate::{ours, peer};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use hvq::{ConnectOptions, Endpoint, LocalAddress, PathOptions, Policy};
use noq::{PathStatus, VarInt};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Bytes of content each way.
const CONTENT: usize = 20_000_000;
/// Bytes that a path carries before it is cut.
const BEFORE_CUT: u64 = 1_000_000;
/// Bytes that hvq must send on each path at least: more than opening it takes. noq may choose one for nearly all it sends.
const USED: u64 = 10_000;
/// It uses all paths, whatever they are like.
const POLICY: Policy = Policy::RoundRobin;
const ALPN: &[u8] = b"hvq-interop";
/// Another address of the same host.
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Which path is cut in the middle of the transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// None.
    Nothing,
    /// The one of the handshake.
    First,
    /// The one that is opened after it.
    Second,
}

/// Where the client's paths lead, and the relay on the one that is cut.
struct Route {
    first: SocketAddr,
    second: SocketAddr,
    relay: Option<Relay>,
}

impl Route {
    async fn new(cut: Cut, first: SocketAddr, second: SocketAddr) -> Result<Self> {
        Ok(match cut {
            Cut::Nothing => Self { first, second, relay: None },
            Cut::First => {
                let relay = Relay::start(first, BEFORE_CUT).await?;
                Self { first: relay.address(), second, relay: Some(relay) }
            }
            Cut::Second => {
                let relay = Relay::start(second, BEFORE_CUT).await?;
                Self { first, second: relay.address(), relay: Some(relay) }
            }
        })
    }

    /// That both paths carried data, and that the one to be cut was cut.
    fn exchange(&self, paths: Vec<PathUse>) -> Result<Exchange> {
        ensure!(paths.len() == 2, "{} paths were used: {paths:?}", paths.len());
        let used = |path: &PathUse| path.sent > USED && path.received > 0;
        ensure!(paths.iter().all(used), "a path carried too little: {paths:?}");
        if let Some(relay) = &self.relay {
            ensure!(relay.is_cut(), "the transfer was over before the path was cut: {paths:?}");
        }
        let peer = format!("noq {}", locked_version("noq"));
        Ok(Exchange { bytes: 2 * CONTENT as u64, paths, peer, note: String::new() })
    }
}

fn contents() -> (Bytes, Bytes) {
    (content(CONTENT, 1), content(CONTENT, 2))
}

/// Our client opens a second path to a noq server.
pub async fn client(identity: &Identity, cut: Cut) -> Result<Exchange> {
    let server = peer::noq::server(identity, ALPN)?;
    let address = server.local_addr()?;
    let route = Route::new(cut, address, address).await?;
    let endpoint = Endpoint::client(&[])?;
    let config = ours::client(identity, ALPN, POLICY)?;
    let path = PathOptions::new("first", LocalAddress::Ip(Ipv4Addr::LOCALHOST.into()));
    let connecting = endpoint.connect_with(config, ConnectOptions::new(route.first, NAME).over(&path))?;
    let accepting = async {
        let incoming = server.accept().await.context("noq's endpoint is closed")?;
        incoming.await.context("noq accepts")
    };
    let connected = async { connecting.await.context("hvq connects") };
    let (near, far) = tokio::try_join!(connected, accepting)?;
    ensure!(near.is_multipath() && far.is_multipath_enabled(), "multipath was not negotiated");
    let path = PathOptions::new("second", LocalAddress::Ip(SECOND.into())).to(route.second);
    near.open_path(path).await.context("hvq opens the second path")?;
    let (up, down) = contents();
    let work = async {
        tokio::try_join!(ours::swap(&near, up.clone(), &down), peer::noq::swap(&far, down.clone(), &up))
    };
    let (_, paths) = ours::watched(&near, work).await?;
    near.close(0, b"done");
    // Whatever is left of it ends with the endpoints.
    let _told = tokio::time::timeout(Duration::from_secs(1), far.closed()).await;
    route.exchange(paths)
}

/// A noq client opens a second path to our server.
pub async fn server(identity: &Identity, cut: Cut) -> Result<Exchange> {
    let config = ours::server(identity, ALPN, POLICY)?;
    let listen = [Ipv4Addr::LOCALHOST, SECOND].map(|address| SocketAddr::from((address, 0)).into());
    let endpoint = Endpoint::server(config, &listen)?;
    let bound = endpoint.local_addrs();
    let route = Route::new(cut, bound[0], bound[1]).await?;
    let client = peer::noq::client(identity, ALPN)?;
    let connecting = client.connect(route.first, NAME)?;
    let connected = async { connecting.await.context("noq connects") };
    let accepting = async { endpoint.accept().await.context("hvq's endpoint is closed") };
    let (far, near) = tokio::try_join!(connected, accepting)?;
    ensure!(near.is_multipath() && far.is_multipath_enabled(), "multipath was not negotiated");
    let path = open(&far, route.second).await?;
    let (up, down) = contents();
    let work = async {
        tokio::try_join!(ours::swap(&near, down.clone(), &up), peer::noq::swap(&far, up.clone(), &down))
    };
    let (_, paths) = ours::watched(&near, work).await?;
    drop(path);
    far.close(VarInt::from_u32(0), b"done");
    let _told = tokio::time::timeout(Duration::from_secs(1), near.closed()).await;
    route.exchange(paths)
}

/// Has noq open a path to `remote`, as soon as hvq has given it connection IDs for it.
async fn open(connection: &noq::Connection, remote: SocketAddr) -> Result<noq::Path> {
    let mut attempts = 0;
    loop {
        match connection.open_path(remote, PathStatus::Available).await {
            Err(noq::PathError::RemoteCidsExhausted) if attempts < 100 => {
                attempts += 1;
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            opened => return opened.context("noq opens the second path"),
        }
    }
}
