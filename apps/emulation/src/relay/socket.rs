//! A UDP socket that receives in batches, sends at once or not at all, and keeps ECN marks.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use bytes::Bytes;
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};

/// The size of a receive buffer in bytes: the largest datagram, or as many small ones joined by the kernel.
const BUFFER_SIZE: usize = 65_536;
/// Asked of the kernel, which grants what its limits allow.
const SOCKET_BUFFER_SIZE: usize = 4 << 20;

/// A datagram with what belongs to it.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// The address that it came from.
    pub source: SocketAddr,
    /// The local address it was sent to, where the system tells.
    pub destination: Option<IpAddr>,
    /// Its ECN mark.
    pub ecn: Option<EcnCodepoint>,
    /// The bytes that it carries.
    pub payload: Bytes,
}

/// The memory a thread receives into.
pub struct Buffers(Vec<u8>);

impl Default for Buffers {
    fn default() -> Self {
        Self::new()
    }
}

impl Buffers {
    /// Memory for one system call.
    pub fn new() -> Self {
        Self(vec![0; BUFFER_SIZE * BATCH_SIZE])
    }
}

/// A socket of a relay.
#[derive(Debug)]
pub struct RelaySocket {
    socket: UdpSocket,
    state: UdpSocketState,
}

impl RelaySocket {
    /// A socket that is bound to `address`; port 0 picks one. Fails as the system does.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        // Less buffer than asked for costs packets under load, not correctness.
        let _ = socket.set_recv_buffer_size(SOCKET_BUFFER_SIZE);
        let _ = socket.set_send_buffer_size(SOCKET_BUFFER_SIZE);
        socket.bind(&address.into())?;
        let socket = UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, state })
    }

    /// Returns the address that the socket is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Receives what one system call gives, and hands each datagram to `take`. Fails with `WouldBlock` if there is none.
    pub fn receive(&self, buffers: &mut Buffers, mut take: impl FnMut(Datagram)) -> io::Result<()> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut chunks: Vec<IoSliceMut<'_>> =
            buffers.0.chunks_exact_mut(BUFFER_SIZE).map(IoSliceMut::new).collect();
        let received = self.state.recv((&self.socket).into(), &mut chunks, &mut metas)?;
        for (chunk, meta) in chunks.iter().zip(&metas).take(received) {
            let mut joined = chunk.get(..meta.len).unwrap_or_default();
            loop {
                // An empty datagram is a datagram; its stride is zero.
                let length = if meta.stride == 0 { joined.len() } else { meta.stride.min(joined.len()) };
                let (payload, rest) = joined.split_at(length);
                take(Datagram {
                    source: meta.addr,
                    destination: meta.dst_ip,
                    ecn: meta.ecn,
                    payload: Bytes::copy_from_slice(payload),
                });
                if rest.is_empty() {
                    break;
                }
                joined = rest;
            }
        }
        Ok(())
    }

    /// Sends `payload` to `destination`, from the local address `source` if one is given; fails as the system does.
    pub fn send(
        &self,
        destination: SocketAddr,
        source: Option<IpAddr>,
        ecn: Option<EcnCodepoint>,
        payload: &[u8],
    ) -> io::Result<()> {
        let transmit = Transmit { destination, ecn, contents: payload, segment_size: None, src_ip: source };
        self.state.try_send((&self.socket).into(), &transmit)
    }
}

impl AsFd for RelaySocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for RelaySocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
