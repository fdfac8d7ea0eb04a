//! Datagrams to the world outside, and the answers.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::relay::{Buffers, RelaySocket};
use bytes::Bytes;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Directory;

/// An exchange that is silent for so long is over (RFC 4787 §4.3 asks for two minutes; these are a test's).
const SILENCE: Duration = Duration::from_secs(120);
/// Exchanges at one time over each port; datagrams of others are dropped.
const MOST: usize = 512;
/// Datagrams of one exchange that wait to be sent.
const WAITING: usize = 256;

/// The two ends of a flow: who asks, and whom.
type Ends = (SocketAddr, IpAddr);
type Exchanges = Arc<Mutex<HashMap<Ends, mpsc::Sender<Bytes>>>>;

/// Passes on what comes to `socket`, for ever.
pub(super) async fn exchange(socket: RelaySocket, directory: Directory) {
    let Ok(port) = socket.local_addr().map(|address| address.port()) else { return };
    let socket = match watch(socket) {
        Ok(socket) => Arc::new(socket),
        Err(error) => return tracing::warn!(%error, port, "datagrams cannot be passed on"),
    };
    let exchanges = Exchanges::default();
    let mut buffers = Buffers::new();
    loop {
        let mut arrived = Vec::new();
        let received = socket.async_io(Interest::READABLE, |socket| {
            socket.receive(&mut buffers, |datagram| arrived.push(datagram))
        });
        if let Err(error) = received.await {
            tracing::debug!(%error, port, "no datagram");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for datagram in arrived {
            let Some(wanted) = datagram.destination else { continue };
            let ends = (datagram.source, wanted);
            let known = lock(&exchanges).get(&ends).cloned();
            let sender = match known {
                Some(sender) => Some(sender),
                None => begin(&exchanges, &socket, ends, directory.target(SocketAddr::new(wanted, port))),
            };
            if let Some(sender) = sender {
                // A queue that is full drops, as queues do.
                let _dropped = sender.try_send(datagram.payload);
            }
        }
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe to call; a socket keeps its descriptor until it is dropped"
)]
fn watch(socket: RelaySocket) -> std::io::Result<AsyncFd<RelaySocket>> {
    AsyncFd::with_interest(socket, Interest::READABLE)
}

/// Begins an exchange with `target`, if it may be reached and there is room.
fn begin(
    exchanges: &Exchanges,
    inside: &Arc<AsyncFd<RelaySocket>>,
    ends: Ends,
    target: Option<SocketAddr>,
) -> Option<mpsc::Sender<Bytes>> {
    let target = target?;
    let mut all = lock(exchanges);
    if all.len() >= MOST {
        return None;
    }
    let (sender, waiting) = mpsc::channel(WAITING);
    all.insert(ends, sender.clone());
    let (exchanges, inside) = (Arc::clone(exchanges), Arc::clone(inside));
    tokio::spawn(async move {
        if let Err(error) = carry(waiting, &inside, ends, target).await {
            tracing::debug!(%error, %target, "an exchange of datagrams ended");
        }
        lock(&exchanges).remove(&ends);
    });
    Some(sender)
}

/// Carries datagrams both ways until there are none for a while.
async fn carry(
    mut waiting: mpsc::Receiver<Bytes>,
    inside: &AsyncFd<RelaySocket>,
    ends: Ends,
    target: SocketAddr,
) -> std::io::Result<()> {
    let (client, wanted) = ends;
    let any: IpAddr = match target {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let outside = UdpSocket::bind(SocketAddr::new(any, 0)).await?;
    outside.connect(target).await?;
    let mut buffer = vec![0; 65_535];
    let mut step = async || -> std::io::Result<()> {
        tokio::select! {
            payload = waiting.recv() => {
                let payload = payload.ok_or(std::io::ErrorKind::BrokenPipe)?;
                outside.send(&payload).await?;
            }
            received = outside.recv(&mut buffer) => {
                let payload = buffer.get(..received?).unwrap_or_default();
                inside.get_ref().send(client, Some(wanted), None, payload)?;
            }
        }
        Ok(())
    };
    while let Ok(result) = timeout(SILENCE, step()).await {
        result?;
    }
    Ok(())
}

fn lock(exchanges: &Exchanges) -> std::sync::MutexGuard<'_, HashMap<Ends, mpsc::Sender<Bytes>>> {
    // The map is whole after every statement.
    exchanges.lock().unwrap_or_else(PoisonError::into_inner)
}
