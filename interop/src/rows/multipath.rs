//! Two paths with noq: the client opens the second one, both carry, and one may be cut in the middle.

use crate::content::content;
use crate::identity::{Identity, NAME};
use crate::relay::Relay;
use crate::report::{Exchange, PathUse, locked_version};
use crate::{ours, peer};
use anyhow::{Context, Result, ensure};
use hvq::{
    ClientConfig, ConnectOptions, Connection, Endpoint, LocalAddress, PathOptions, Policy, ServerConfig,
};
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
pub(super) const POLICY: Policy = Policy::RoundRobin;
pub(super) const ALPN: &[u8] = b"hvq-interop";
/// Paths that noq permits at a time: more than there are.
const PATHS: u32 = 4;
/// Another address of the same host.
pub(super) const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The path that is cut in the middle of the transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// None.
    Nothing,
    /// The one of the handshake.
    First,
    /// The one that is opened after it.
    Second,
}

/// The destinations of the client's paths, and the relay on the one that is cut.
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

    /// Checks that both paths carried data, and that the one to be cut was cut.
    fn exchange(&self, paths: Vec<PathUse>) -> Result<Exchange> {
        ensure!(paths.len() == 2, "{} paths were used: {paths:?}", paths.len());
        let used = |path: &PathUse| path.sent > USED && path.received > 0;
        ensure!(paths.iter().all(used), "a path carried too little: {paths:?}");
        if let Some(relay) = &self.relay {
            ensure!(relay.is_cut(), "the transfer was over before the path was cut: {paths:?}");
        }
        Ok(Exchange { paths, ..exchanged() })
    }
}

/// The report of an exchange with noq: all content, and no more.
pub(super) fn exchanged() -> Exchange {
    let peer = format!("noq {}", locked_version("noq"));
    Exchange { bytes: 2 * CONTENT as u64, peer, ..Exchange::default() }
}

/// Sends content both ways, and checks that it arrives as it was sent.
pub(super) async fn swap(near: &Connection, far: &noq::Connection) -> Result<()> {
    let (up, down) = (content(CONTENT, 1), content(CONTENT, 2));
    tokio::try_join!(ours::swap(near, up.clone(), &down), peer::noq::swap(far, down.clone(), &up))?;
    Ok(())
}

/// A connection of hvq at `endpoint` to the noq `server` behind `remote`, as both ends have it.
pub(super) async fn connect(
    endpoint: &Endpoint,
    config: ClientConfig,
    remote: SocketAddr,
    server: &noq::Endpoint,
) -> Result<(Connection, noq::Connection)> {
    let path = PathOptions::new("first", LocalAddress::Ip(Ipv4Addr::LOCALHOST.into()));
    let connecting = endpoint.connect_with(config, ConnectOptions::new(remote, NAME).over(&path))?;
    let accepting = async {
        let incoming = server.accept().await.context("noq's endpoint is closed")?;
        incoming.await.context("noq accepts")
    };
    let connected = async { connecting.await.context("hvq connects") };
    let (near, far) = tokio::try_join!(connected, accepting)?;
    ensure!(near.is_multipath() && far.is_multipath_enabled(), "multipath was not negotiated");
    Ok((near, far))
}

/// A connection of the noq `client` to `remote`.
pub(super) async fn dial(client: &noq::Endpoint, remote: SocketAddr) -> Result<noq::Connection> {
    client.connect(remote, NAME)?.await.context("noq connects")
}

/// The other end of noq's connection `far`, at hvq's `endpoint`.
pub(super) async fn accept(endpoint: &Endpoint, far: &noq::Connection) -> Result<Connection> {
    let near = endpoint.accept().await.context("hvq's endpoint is closed")?;
    ensure!(near.is_multipath() && far.is_multipath_enabled(), "multipath was not negotiated");
    Ok(near)
}

/// A server of hvq at two addresses.
pub(super) fn listen(config: ServerConfig) -> Result<Endpoint> {
    let listen = [Ipv4Addr::LOCALHOST, SECOND].map(|address| SocketAddr::from((address, 0)).into());
    Ok(Endpoint::server(config, &listen)?)
}

/// Our client opens a second path to a noq server.
pub async fn client(identity: &Identity, cut: Cut) -> Result<Exchange> {
    let server = peer::noq::server(identity, ALPN, PATHS)?;
    let address = server.local_addr()?;
    let route = Route::new(cut, address, address).await?;
    let endpoint = Endpoint::client(&[])?;
    let config = ours::client(identity, ALPN, POLICY)?;
    let (near, far) = connect(&endpoint, config, route.first, &server).await?;
    let path = PathOptions::new("second", LocalAddress::Ip(SECOND.into())).to(route.second);
    near.open_path(path).await.context("hvq opens the second path")?;
    let ((), paths) = ours::watched(&near, swap(&near, &far)).await?;
    near.close(0, b"done");
    // Whatever is left of it ends with the endpoints.
    let _told = tokio::time::timeout(Duration::from_secs(1), far.closed()).await;
    route.exchange(paths)
}

/// A noq client opens a second path to our server.
pub async fn server(identity: &Identity, cut: Cut) -> Result<Exchange> {
    let endpoint = listen(ours::server(identity, ALPN, POLICY)?)?;
    let bound = endpoint.local_addrs();
    let route = Route::new(cut, bound[0], bound[1]).await?;
    let client = peer::noq::client(identity, ALPN, PATHS)?;
    let far = dial(&client, route.first).await?;
    let near = accept(&endpoint, &far).await?;
    let path = open(&far, route.second).await?;
    let ((), paths) = ours::watched(&near, swap(&near, &far)).await?;
    drop(path);
    far.close(VarInt::from_u32(0), b"done");
    let _told = tokio::time::timeout(Duration::from_secs(1), near.closed()).await;
    route.exchange(paths)
}

/// Has noq open a path to `remote`, as soon as hvq has given it connection IDs for it.
pub(super) async fn open(connection: &noq::Connection, remote: SocketAddr) -> Result<noq::Path> {
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
