//! Multipath TCP of the kernel (RFC 8684), with an endpoint for the address of each link, as mptcpd and NetworkManager keep them.
//!
//! A connection for each load, on a port of its own, without TLS. Datagrams are messages with their length before them, and without
//! Nagle's algorithm: one that is lost holds up those behind it.

mod endpoints;
mod line;
mod subflows;

use crate::arguments::Arguments;
use crate::loads::{self, COUNT, ENDLESS, WRITE};
use crate::news;
use crate::record::{Counter, Record, Said, say};
use anyhow::{Context, Result};
use endpoints::Endpoints;
use hvq::links::Links;
use line::MptcpLine;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use subflows::Subflows;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio::time::sleep;

/// Bytes that are sent back at a time.
const ECHO: usize = 4 << 10;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 16;

/// The ports of the loads: of requests, of the download, of datagrams.
fn ports(server: SocketAddr) -> [SocketAddr; 3] {
    [0, 1, 2].map(|more| SocketAddr::new(server.ip(), server.port().saturating_add(more)))
}

/// A socket with a congestion control, which its subflows and the connections that it accepts take over.
fn socket(address: SocketAddr, congestion: &str) -> Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::MPTCP));
    let socket = socket.context("this kernel has no Multipath TCP, or it is switched off")?;
    let set = socket.set_tcp_congestion(congestion.as_bytes());
    set.with_context(|| format!("cannot make {congestion} the congestion control"))?;
    Ok(socket)
}

/// Serves until it is given up; `sent` is kept at the bytes of TCP that were sent for the download.
pub async fn serve(arguments: &Arguments, congestion: &str, sent: &Counter) -> Result<()> {
    endpoints::permit().await?;
    let mut listeners = Vec::new();
    for address in ports(arguments.server) {
        let socket = socket(address, congestion)?;
        socket.set_reuse_address(true)?;
        socket.bind(&SockAddr::from(address))?;
        socket.listen(BACKLOG)?;
        socket.set_nonblocking(true)?;
        listeners.push(TcpListener::from_std(socket.into())?);
    }
    say(&Said::Ready)?;
    let [asking, loading, talking] = listeners.as_slice() else { unreachable!("there are three ports") };
    let (_, loading, _, counted) = tokio::join!(
        accept(asking, echo),
        accept(loading, pour),
        accept(talking, echo),
        count(ports(arguments.server)[1], sent)
    );
    loading.and(counted)
}

async fn accept<F: Future<Output = ()> + 'static>(
    listener: &TcpListener,
    answer: impl Fn(TcpStream) -> F,
) -> Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        spawn_local(answer(stream));
    }
}

/// Sends back what comes. The client may be gone meanwhile.
async fn echo(stream: TcpStream) {
    let (mut receive, mut send) = stream.into_split();
    let mut block = [0; ECHO];
    while let Ok(bytes @ 1..) = receive.read(&mut block).await {
        if send.write_all(&block[..bytes]).await.is_err() {
            return;
        }
    }
}

/// Sends endless bytes after the first that comes.
async fn pour(mut stream: TcpStream) {
    if stream.read_u8().await.is_ok_and(|first| first == ENDLESS) {
        while stream.write_all(&[0; WRITE]).await.is_ok() {}
    }
}

/// Counts the bytes that are sent from `port`, on subflows that end meanwhile too.
async fn count(port: SocketAddr, sent: &Counter) -> Result<()> {
    let mut subflows = Subflows::open()?;
    let mut all = BTreeMap::new();
    loop {
        for subflow in subflows.of(|local, _| local.port() == port.port())? {
            all.insert((subflow.local, subflow.remote), subflow.sent);
        }
        sent.set(all.values().sum());
        sleep(COUNT).await;
    }
}

/// Plays the loads until it is given up.
pub async fn play(arguments: &Arguments, congestion: &str, record: &Record) -> Result<()> {
    endpoints::permit().await?;
    let server = arguments.server.ip();
    let mut links = Links::watch().await?;
    let mut endpoints = Endpoints::default();
    endpoints.follow(&news::ways(&links.current(), server)).await?;
    let mut lines = Vec::new();
    for address in ports(arguments.server) {
        lines.push(MptcpLine::connect(socket(address, congestion)?, address, &links)?);
    }
    let lines = <[MptcpLine; 3]>::try_from(lines).ok().context("there are three ports")?;
    let following = async {
        loop {
            let links = links.changed().await;
            if let Err(error) = endpoints.follow(&news::ways(&links, server)).await {
                return error;
            }
        }
    };
    tokio::select! {
        played = loads::play(lines, record) => played,
        error = following => Err(error),
    }
}
