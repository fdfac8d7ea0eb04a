//! A socket for each interface, as one: datagrams leave by the interface whose address they come from.

use crate::news::Way;
use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, Runtime, TokioRuntime, UdpSender};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// The interface of each address. Clones share it.
#[derive(Clone, Debug)]
pub struct Table {
    first: Way,
    ways: Arc<Mutex<Vec<Way>>>,
}

impl Table {
    /// A table of `ways`; `None` if there is none.
    pub fn new(ways: &[Way]) -> Option<Self> {
        Some(Self { first: ways.first()?.clone(), ways: Arc::new(Mutex::new(ways.to_vec())) })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Way>> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the ways. An address that is gone keeps its interface.
    pub fn set(&self, ways: &[Way]) {
        let mut known = self.lock();
        known.retain(|old| ways.iter().all(|way| way.address != old.address));
        known.extend_from_slice(ways);
    }

    /// The address of the way that was preferred at the beginning, which the first path takes.
    pub const fn first(&self) -> IpAddr {
        self.first.address
    }

    /// The interface of `address`.
    pub fn link(&self, address: IpAddr) -> Option<String> {
        self.lock().iter().find(|way| way.address == address).map(|way| way.link.clone())
    }
}

/// The sockets of a client.
#[derive(Debug)]
pub struct Sockets {
    sockets: Vec<(String, Box<dyn AsyncUdpSocket>)>,
    table: Table,
    /// The socket that is asked first.
    turn: usize,
}

impl Sockets {
    /// Opens a socket on the interface of each of `ways`.
    pub fn new(ways: &[Way], table: Table) -> io::Result<Self> {
        let mut sockets: Vec<(String, Box<dyn AsyncUdpSocket>)> = Vec::new();
        for way in ways {
            if sockets.iter().all(|(link, _)| *link != way.link) {
                sockets.push((way.link.clone(), TokioRuntime.wrap_udp_socket(way.any()?)?));
            }
        }
        Ok(Self { sockets, table, turn: 0 })
    }
}

impl AsyncUdpSocket for Sockets {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        let senders = self.sockets.iter().map(|(link, socket)| (link.clone(), socket.create_sender()));
        Box::pin(Senders { senders: senders.collect(), table: self.table.clone() })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let count = self.sockets.len();
        for _ in 0..count {
            self.turn = (self.turn + 1) % count;
            if let Poll::Ready(received) = self.sockets[self.turn].1.poll_recv(cx, bufs, meta) {
                return Poll::Ready(received);
            }
        }
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        let first = self.sockets.first().ok_or(io::ErrorKind::NotConnected)?;
        first.1.local_addr()
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        let segments = self.sockets.iter().map(|(_, socket)| socket.max_receive_segments());
        segments.max().unwrap_or(NonZeroUsize::MIN)
    }

    fn may_fragment(&self) -> bool {
        self.sockets.iter().any(|(_, socket)| socket.may_fragment())
    }
}

/// The senders of the sockets.
#[derive(Debug)]
struct Senders {
    senders: Vec<(String, Pin<Box<dyn UdpSender>>)>,
    table: Table,
}

impl UdpSender for Senders {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let address = transmit.src_ip.unwrap_or(self.table.first());
        let link = self.table.link(address);
        match self.senders.iter_mut().find(|(known, _)| Some(known) == link.as_ref()) {
            Some((_, sender)) => sender.as_mut().poll_send(transmit, cx),
            // As if the network had lost it: there is no such interface.
            None => Poll::Ready(Ok(())),
        }
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        let segments = self.senders.iter().map(|(_, sender)| sender.max_transmit_segments());
        segments.min().unwrap_or(NonZeroUsize::MIN)
    }
}
