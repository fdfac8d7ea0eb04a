//! The interface that the asynchronous libraries have in common, and the work of their two processes.

use super::{Account, BLOCK, Job, Latency, Line, REQUEST, SMALL, Task, say};
use crate::meter::{Meter, resident};
use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::{JoinSet, spawn_local};
use tokio::time::sleep;

/// Handshakes that a client has under way at a time.
pub const HANDSHAKES_AT_ONCE: u32 = 8;
/// Connections that are opened before memory is measured first.
pub const WARM_UP: u32 = 100;
/// The time for which connections are left alone before memory is measured.
pub const SETTLE: Duration = Duration::from_millis(700);

/// The counters of a connection's sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// System calls that sent them.
    pub send_calls: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
}

/// A library for QUIC on tokio. All that is measured over sockets is written once, against this.
pub trait Stack: Sized + 'static {
    /// Sockets and the connections on them.
    type Endpoint: Clone;
    /// A connection.
    type Connection;
    /// The half of a stream that sends.
    type Send;
    /// The half of a stream that receives.
    type Receive;

    /// A server, and the addresses that it listens at.
    fn listen(task: &Task) -> Result<(Self::Endpoint, Vec<SocketAddr>)>;
    /// An endpoint for connections to a server.
    fn dial(task: &Task) -> Result<Self::Endpoint>;
    /// The next connection of a client.
    async fn accept(endpoint: &Self::Endpoint) -> Result<Self::Connection>;
    /// A new connection, over as many paths as there are addresses.
    async fn connect(endpoint: &Self::Endpoint, task: &Task, to: &[SocketAddr]) -> Result<Self::Connection>;
    /// A new bidirectional stream.
    async fn open(connection: &Self::Connection) -> Result<(Self::Send, Self::Receive)>;
    /// The next stream of the peer; `None` once it closed the connection with code 0.
    async fn accept_stream(connection: &mut Self::Connection) -> Result<Option<(Self::Send, Self::Receive)>>;
    /// Writes all of `data`.
    async fn write(stream: &mut Self::Send, data: Bytes) -> Result<()>;
    /// Ends the stream.
    fn finish(stream: &mut Self::Send) -> Result<()>;
    /// The bytes that arrived; `None` at the end.
    async fn read(stream: &mut Self::Receive) -> Result<Option<Bytes>>;
    /// Closes the connection with code 0.
    fn close(connection: &Self::Connection);
    /// Waits until what was said is on its way.
    async fn drain(endpoint: &Self::Endpoint);
    /// Returns the counters of the traffic that was sent so far.
    fn counters(endpoint: &Self::Endpoint, connection: &Self::Connection) -> Counters;
}

/// A server's process.
pub async fn serve<S: Stack>(task: &Task) -> Result<Account> {
    let (endpoint, addresses) = S::listen(task)?;
    say(&Line::Listening(addresses))?;
    match task.job {
        Job::Bulk { .. } => send::<S>(&endpoint).await,
        Job::Upload { .. } => take::<S>(&endpoint).await,
        Job::Handshakes { count } => greet::<S>(&endpoint, count).await,
        Job::Requests { .. } => answer::<S>(&endpoint).await,
        Job::Many { connections, .. } => send_many::<S>(&endpoint, connections).await,
        Job::Idle { connections } => hold::<S>(&endpoint, connections).await,
    }
}

/// A client's process.
pub async fn fetch<S: Stack>(task: &Task, to: &[SocketAddr]) -> Result<Account> {
    let endpoint = S::dial(task)?;
    let account = match task.job {
        Job::Bulk { bytes } => receive::<S>(&endpoint, task, to, bytes).await,
        Job::Upload { bytes } => give::<S>(&endpoint, task, to, bytes).await,
        Job::Handshakes { count } => shake_hands::<S>(&endpoint, task, to, count).await,
        Job::Requests { count, at_once } => ask::<S>(&endpoint, task, to, (count, at_once)).await,
        Job::Many { connections, bytes } => {
            receive_many::<S>(&endpoint, task, to, (connections, bytes)).await
        }
        Job::Idle { connections } => idle::<S>(&endpoint, task, to, connections).await,
    }?;
    S::drain(&endpoint).await;
    Ok(account)
}

/// Reads to the end; the number of bytes and the last of them that fit into a request.
async fn read_all<S: Stack>(stream: &mut S::Receive) -> Result<(u64, Vec<u8>)> {
    let (mut length, mut last) = (0, Vec::new());
    while let Some(chunk) = S::read(stream).await? {
        length += chunk.len() as u64;
        if last.len() < REQUEST {
            last.extend_from_slice(&chunk[..chunk.len().min(REQUEST)]);
        }
    }
    Ok((length, last))
}

/// Answers one request with as many bytes as it asks for, and waits until the client closes the connection, as it does as
/// soon as it has everything.
async fn send<S: Stack>(endpoint: &S::Endpoint) -> Result<Account> {
    let mut connection = S::accept(endpoint).await?;
    let meter = send_to::<S>(&mut connection, Bytes::from(vec![0x5a; BLOCK])).await?;
    account(&meter, S::counters(endpoint, &connection))
}

/// Answers the request on `connection` with parts of `block`, and waits until the client closes it. Returns the time since the
/// request.
async fn send_to<S: Stack>(connection: &mut S::Connection, block: Bytes) -> Result<Meter> {
    let (mut send, mut receive) = S::accept_stream(connection).await?.context("no request came")?;
    let (_, request) = read_all::<S>(&mut receive).await?;
    let meter = Meter::start()?;
    let length = u64::from_be_bytes(request.as_slice().try_into().context("a request has eight bytes")?);
    write_all::<S>(&mut send, length, &block).await?;
    ensure!(S::accept_stream(connection).await?.is_none(), "a second request came");
    Ok(meter)
}

/// Writes `length` bytes, parts of `block`, and ends the stream.
async fn write_all<S: Stack>(stream: &mut S::Send, length: u64, block: &Bytes) -> Result<()> {
    let mut left = length;
    while left > 0 {
        let part = block.slice(..BLOCK.min(usize::try_from(left).unwrap_or(BLOCK)));
        left -= part.len() as u64;
        S::write(stream, part).await?;
    }
    S::finish(stream)
}

/// Reads what a client sends on one stream, answers with the number of bytes, and waits until the client closes the connection.
async fn take<S: Stack>(endpoint: &S::Endpoint) -> Result<Account> {
    let mut connection = S::accept(endpoint).await?;
    let meter = Meter::start()?;
    let (mut send, mut receive) = S::accept_stream(&mut connection).await?.context("nothing came")?;
    let (received, _) = read_all::<S>(&mut receive).await?;
    S::write(&mut send, Bytes::copy_from_slice(&received.to_be_bytes())).await?;
    S::finish(&mut send)?;
    let account = account(&meter, S::counters(endpoint, &connection));
    ensure!(S::accept_stream(&mut connection).await?.is_none(), "a second stream came");
    account
}

/// Sends `bytes` bytes on one stream, and waits until the server says that it has them.
async fn give<S: Stack>(
    endpoint: &S::Endpoint,
    task: &Task,
    to: &[SocketAddr],
    bytes: u64,
) -> Result<Account> {
    let connection = S::connect(endpoint, task, to).await?;
    let (mut send, mut receive) = S::open(&connection).await?;
    let meter = Meter::start()?;
    write_all::<S>(&mut send, bytes, &Bytes::from(vec![0x5a; BLOCK])).await?;
    let (_, answer) = read_all::<S>(&mut receive).await?;
    ensure!(answer == bytes.to_be_bytes(), "the server has not got {bytes} bytes");
    let account = account(&meter, S::counters(endpoint, &connection))?;
    S::close(&connection);
    Ok(account)
}

/// Answers one request on each of `count` connections, and waits for the end of all.
async fn send_many<S: Stack>(endpoint: &S::Endpoint, count: u32) -> Result<Account> {
    let block = Bytes::from(vec![0x5a; BLOCK]);
    let mut connections = JoinSet::new();
    for _ in 0..count {
        let (mut connection, block, endpoint) = (S::accept(endpoint).await?, block.clone(), endpoint.clone());
        connections.spawn_local(async move {
            let meter = send_to::<S>(&mut connection, block).await?;
            anyhow::Ok((meter, S::counters(&endpoint, &connection)))
        });
    }
    let (mut first, mut all) = (None::<Meter>, Counters::default());
    while let Some(end) = connections.join_next().await {
        let (meter, counters) = end??;
        all.datagrams_sent += counters.datagrams_sent;
        all.packets_lost += counters.packets_lost;
        first = Some(first.map_or(meter, |first| first.earlier(meter)));
    }
    account(&first.context("there was no connection")?, all)
}

/// Opens as many connections as there are to be, then asks for `bytes` on all of them at once.
async fn receive_many<S: Stack>(
    endpoint: &S::Endpoint,
    task: &Task,
    to: &[SocketAddr],
    (count, bytes): (u32, u64),
) -> Result<Account> {
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(S::connect(endpoint, task, to).await?);
    }
    let meter = Meter::start()?;
    let mut transfers = JoinSet::new();
    for connection in connections {
        transfers.spawn_local(async move {
            let (mut send, mut receive) = S::open(&connection).await?;
            S::write(&mut send, Bytes::copy_from_slice(&bytes.to_be_bytes())).await?;
            S::finish(&mut send)?;
            let (received, _) = read_all::<S>(&mut receive).await?;
            ensure!(received == bytes, "{received} bytes arrived instead of {bytes}");
            S::close(&connection);
            anyhow::Ok(())
        });
    }
    while let Some(end) = transfers.join_next().await {
        end??;
    }
    account(&meter, Counters::default())
}

async fn receive<S: Stack>(
    endpoint: &S::Endpoint,
    task: &Task,
    to: &[SocketAddr],
    bytes: u64,
) -> Result<Account> {
    let connection = S::connect(endpoint, task, to).await?;
    let (mut send, mut receive) = S::open(&connection).await?;
    let meter = Meter::start()?;
    S::write(&mut send, Bytes::copy_from_slice(&bytes.to_be_bytes())).await?;
    S::finish(&mut send)?;
    let (received, _) = read_all::<S>(&mut receive).await?;
    ensure!(received == bytes, "{received} bytes arrived instead of {bytes}");
    let account = account(&meter, S::counters(endpoint, &connection))?;
    S::close(&connection);
    Ok(account)
}

/// Accepts `count` connections and waits for their end.
async fn greet<S: Stack>(endpoint: &S::Endpoint, count: u32) -> Result<Account> {
    let mut connections = JoinSet::new();
    let mut meter = None;
    for _ in 0..count {
        let mut connection = S::accept(endpoint).await?;
        if meter.is_none() {
            meter = Some(Meter::start()?);
        }
        connections.spawn_local(async move { S::accept_stream(&mut connection).await.map(|_| ()) });
    }
    while let Some(end) = connections.join_next().await {
        end??;
    }
    account(&meter.context("there was no connection")?, Counters::default())
}

async fn shake_hands<S: Stack>(
    endpoint: &S::Endpoint,
    task: &Task,
    to: &[SocketAddr],
    count: u32,
) -> Result<Account> {
    let meter = Meter::start()?;
    let left = Rc::new(Cell::new(count));
    let mut workers = JoinSet::new();
    for _ in 0..HANDSHAKES_AT_ONCE.min(count) {
        let (left, endpoint, task, to) = (left.clone(), endpoint.clone(), task.clone(), to.to_vec());
        workers.spawn_local(async move {
            while let Some(fewer) = left.get().checked_sub(1) {
                left.set(fewer);
                let connection = S::connect(&endpoint, &task, &to).await?;
                S::close(&connection);
            }
            anyhow::Ok(())
        });
    }
    while let Some(end) = workers.join_next().await {
        end??;
    }
    account(&meter, Counters::default())
}

/// Answers small requests until the client closes the connection.
async fn answer<S: Stack>(endpoint: &S::Endpoint) -> Result<Account> {
    let mut connection = S::accept(endpoint).await?;
    let meter = Meter::start()?;
    while let Some((mut send, mut receive)) = S::accept_stream(&mut connection).await? {
        spawn_local(async move {
            read_all::<S>(&mut receive).await?;
            S::write(&mut send, Bytes::from_static(&[0x5a; SMALL])).await?;
            S::finish(&mut send)
        });
    }
    account(&meter, S::counters(endpoint, &connection))
}

/// Sends small requests, always so many at once.
async fn ask<S: Stack>(
    endpoint: &S::Endpoint,
    task: &Task,
    to: &[SocketAddr],
    (count, at_once): (u32, u32),
) -> Result<Account> {
    let connection = Rc::new(S::connect(endpoint, task, to).await?);
    let left = Rc::new(Cell::new(count));
    let times = Rc::new(RefCell::new(Vec::with_capacity(usize::try_from(count)?)));
    let meter = Meter::start()?;
    let mut askers = JoinSet::new();
    for _ in 0..at_once {
        let (connection, left, times) = (connection.clone(), left.clone(), times.clone());
        askers.spawn_local(async move {
            while let Some(fewer) = left.get().checked_sub(1) {
                left.set(fewer);
                let started = Instant::now();
                let (mut send, mut receive) = S::open(&connection).await?;
                S::write(&mut send, Bytes::from_static(&[0xa5; SMALL])).await?;
                S::finish(&mut send)?;
                let (length, _) = read_all::<S>(&mut receive).await?;
                ensure!(length == SMALL as u64, "an answer has {length} bytes");
                times.borrow_mut().push(started.elapsed());
            }
            anyhow::Ok(())
        });
    }
    while let Some(end) = askers.join_next().await {
        end??;
    }
    let mut account = account(&meter, S::counters(endpoint, &connection))?;
    account.latency = Some(Latency::of(times.take()));
    S::close(&connection);
    Ok(account)
}

/// Accepts connections, and tells what memory all but the first of them took.
async fn hold<S: Stack>(endpoint: &S::Endpoint, connections: u32) -> Result<Account> {
    let meter = Meter::start()?;
    let mut held = Vec::new();
    for _ in 0..WARM_UP {
        held.push(S::accept(endpoint).await?);
    }
    sleep(SETTLE).await;
    let before = resident()?;
    for _ in 0..connections {
        held.push(S::accept(endpoint).await?);
    }
    sleep(2 * SETTLE).await;
    let mut account = account(&meter, Counters::default())?;
    account.resident = resident()?.saturating_sub(before);
    drop(held);
    Ok(account)
}

/// Opens connections, tells what memory all but the first of them took, and does nothing with them until the server has measured.
async fn idle<S: Stack>(
    endpoint: &S::Endpoint,
    task: &Task,
    to: &[SocketAddr],
    connections: u32,
) -> Result<Account> {
    let meter = Meter::start()?;
    let mut held = Vec::new();
    for _ in 0..WARM_UP {
        held.push(S::connect(endpoint, task, to).await?);
    }
    // The server measures in between, and so does this end.
    sleep(SETTLE).await;
    let before = resident()?;
    sleep(SETTLE).await;
    for _ in 0..connections {
        held.push(S::connect(endpoint, task, to).await?);
    }
    sleep(2 * SETTLE).await;
    let mut account = account(&meter, Counters::default())?;
    account.resident = resident()?.saturating_sub(before);
    sleep(SETTLE).await;
    drop(held);
    Ok(account)
}

fn account(meter: &Meter, counters: Counters) -> Result<Account> {
    let Counters { datagrams_sent, send_calls, packets_lost } = counters;
    let usage = meter.stop()?;
    Ok(Account { usage, datagrams_sent, send_calls, packets_lost, ..Account::default() })
}
