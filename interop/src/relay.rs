//! A UDP relay for one client: a path that falls silent in the middle, or one that takes its time.

use anyhow::Result;
use socket2::{Domain, Socket, Type};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Bytes that a socket of the relay may hold back while the relay is busy.
const BUFFER: usize = 4 << 20;

/// Carries datagrams both ways until it has carried its limit, and none after that, while its sockets stay open: nobody
/// is told that the path is dead. It clears their ECN marks, as some routers do.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    limit: u64,
    carried: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Relay {
    /// A relay to `server` that carries `limit` bytes.
    ///
    /// # Errors
    /// There are no sockets.
    pub async fn start(server: SocketAddr, limit: u64) -> Result<Self> {
        Self::with(server, limit, Duration::ZERO).await
    }

    /// A relay to `server` that keeps each datagram for `delay`.
    ///
    /// # Errors
    /// There are no sockets.
    pub async fn slow(server: SocketAddr, delay: Duration) -> Result<Self> {
        Self::with(server, u64::MAX, delay).await
    }

    async fn with(server: SocketAddr, limit: u64, delay: Duration) -> Result<Self> {
        let (near, far) = (bind()?, bind()?);
        far.connect(server).await?;
        let address = near.local_addr()?;
        let carried = Arc::new(AtomicU64::new(0));
        let carrier = Carrier {
            near,
            far,
            client: None,
            carried: carried.clone(),
            limit,
            delay,
            kept: VecDeque::new(),
        };
        let task = tokio::spawn(carrier.run());
        Ok(Self { address, limit, carried, task })
    }

    /// Returns the address to which the client is to send.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns true if the limit was reached.
    pub fn is_cut(&self) -> bool {
        self.carried.load(Ordering::Relaxed) >= self.limit
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn bind() -> Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    socket.set_recv_buffer_size(BUFFER)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    Ok(UdpSocket::from_std(socket.into())?)
}

/// A datagram on its way.
struct Kept {
    due: Instant,
    is_for_client: bool,
    data: Vec<u8>,
}

/// The state of a relay's task.
struct Carrier {
    near: UdpSocket,
    far: UdpSocket,
    client: Option<SocketAddr>,
    carried: Arc<AtomicU64>,
    limit: u64,
    delay: Duration,
    /// The first is due first.
    kept: VecDeque<Kept>,
}

impl Carrier {
    async fn run(mut self) {
        let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
        loop {
            while self.kept.front().is_some_and(|first| first.due <= Instant::now())
                && let Some(datagram) = self.kept.pop_front()
            {
                self.forward(&datagram).await;
            }
            let next = self.kept.front().map(|first| first.due);
            tokio::select! {
                Ok((length, from)) = self.near.recv_from(&mut up) => {
                    self.client = Some(from);
                    self.keep(false, &up[..length]);
                }
                Ok(length) = self.far.recv(&mut down) => self.keep(true, &down[..length]),
                () = tokio::time::sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
                else => {}
            }
        }
    }

    fn keep(&mut self, is_for_client: bool, data: &[u8]) {
        let due = Instant::now() + self.delay;
        self.kept.push_back(Kept { due, is_for_client, data: data.to_vec() });
    }

    async fn forward(&self, datagram: &Kept) {
        if self.carried.load(Ordering::Relaxed) >= self.limit {
            return;
        }
        let forwarded = match (datagram.is_for_client, self.client) {
            (true, Some(client)) => self.near.send_to(&datagram.data, client).await,
            (true, None) => return,
            (false, _) => self.far.send(&datagram.data).await,
        };
        // What cannot be forwarded is lost, as on any network.
        if forwarded.is_ok() {
            self.carried.fetch_add(datagram.data.len() as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_carries_both_ways_up_to_its_limit() {
        let server = bind().unwrap();
        let relay = Relay::start(server.local_addr().unwrap(), 8).await.unwrap();
        let client = bind().unwrap();
        let mut buffer = [0; 16];
        client.send_to(b"ping", relay.address()).await.unwrap();
        let (length, from) = server.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..length], b"ping");
        assert!(!relay.is_cut());
        server.send_to(b"pong", from).await.unwrap();
        assert_eq!(client.recv(&mut buffer).await.unwrap(), 4);
        client.send_to(b"late", relay.address()).await.unwrap();
        let late = tokio::time::timeout(Duration::from_millis(100), server.recv(&mut buffer));
        assert!(late.await.is_err());
        assert!(relay.is_cut());
    }

    #[tokio::test]
    async fn a_slow_one_keeps_datagrams_in_their_order() {
        const DELAY: Duration = Duration::from_millis(30);
        let server = bind().unwrap();
        let relay = Relay::slow(server.local_addr().unwrap(), DELAY).await.unwrap();
        let client = bind().unwrap();
        let sent = Instant::now();
        for datagram in [b"one", b"two"] {
            client.send_to(datagram, relay.address()).await.unwrap();
        }
        let mut buffer = [0; 16];
        for datagram in [b"one", b"two"] {
            let length = server.recv(&mut buffer).await.unwrap();
            assert_eq!(&buffer[..length], datagram);
        }
        assert!(sent.elapsed() >= DELAY);
        assert!(!relay.is_cut());
    }
}
