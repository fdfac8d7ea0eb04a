//! A UDP relay for one client that falls silent in the middle: a path that is cut.

use anyhow::Result;
use socket2::{Domain, Socket, Type};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// Bytes that a socket of the relay may hold back while the relay is busy.
const BUFFER: usize = 4 << 20;

/// Carries datagrams both ways until it has carried its limit, and none after that, while its sockets stay open: nobody
/// is told that the path is dead.
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
        let (near, far) = (bind()?, bind()?);
        far.connect(server).await?;
        let address = near.local_addr()?;
        let carried = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(carry(near, far, carried.clone(), limit));
        Ok(Self { address, limit, carried, task })
    }

    /// Where the client is to send.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the limit was reached.
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

async fn carry(near: UdpSocket, far: UdpSocket, carried: Arc<AtomicU64>, limit: u64) {
    let (mut up, mut down) = (vec![0; 65_536], vec![0; 65_536]);
    let mut client = None;
    loop {
        let (length, forwarded) = tokio::select! {
            Ok((length, from)) = near.recv_from(&mut up) => {
                client = Some(from);
                if carried.load(Ordering::Relaxed) >= limit {
                    continue;
                }
                (length, far.send(&up[..length]).await)
            }
            Ok(length) = far.recv(&mut down) => {
                let Some(client) = client else { continue };
                if carried.load(Ordering::Relaxed) >= limit {
                    continue;
                }
                (length, near.send_to(&down[..length], client).await)
            }
            else => continue,
        };
        // What cannot be forwarded is lost, as on any network.
        if forwarded.is_ok() {
            carried.fetch_add(length as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

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
}
