//! One UDP socket with segmentation offload both ways, ECN, and the addresses of each datagram.

mod readiness;

use crate::receive_queue;
use crate::receive_queue::Queue;
use crate::shared::IoStats;
use crate::sockets::Source;
use crate::steering;
use crate::steering::Shares;
use bytes::BytesMut;
use hvq_transport::connection::{Datagram, Dscp, Ecn, FourTuple, Transmit};
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSocketState};
use readiness::WatchedSocket;
use rustix::io::Errno;
use socket2::{Domain, Protocol, Type};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};

/// Bytes of the kernel's buffers that are asked for, each way; it gives what its limits allow.
const BUFFER: usize = 4 << 20;
/// Bytes of the largest datagram, or batch of equal ones, that the kernel hands over.
const LARGEST: usize = 1 << 16;
/// Batches of at least so many bytes are copied into memory that is used again.
const POOLED: usize = 1 << 14;
/// Buffers of [`LARGEST`] bytes that are kept for that: as many batches as one call receives, and as many that are read.
/// Once all are held by somebody, datagrams get memory of their own.
const MOST_POOLED: usize = 2 * quinn_udp::BATCH_SIZE;

/// Tells who else may bind to the address of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Port {
    /// Nobody else.
    Own,
    /// Sockets that come after may share it; nobody did before.
    First,
    /// The socket shares it with those that did before.
    Another,
}

/// A UDP socket.
#[derive(Debug)]
pub(crate) struct Socket {
    io: WatchedSocket,
    features: UdpSocketState,
    local: SocketAddr,
    device: Option<String>,
    source: Source,
    /// The traffic class that the kernel gives to datagrams sent without one.
    class: AtomicU8,
    /// Datagrams in one call at most that get their class so.
    marked_segments: AtomicUsize,
    /// Datagrams that the interface refused as too large, until the driver asks.
    refused: Mutex<Vec<OversizedDatagram>>,
}

/// Datagrams of `size` bytes over `tuple` are larger than what the interface takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OversizedDatagram {
    /// The addresses.
    pub(crate) tuple: FourTuple,
    /// The size in bytes of UDP payload.
    pub(crate) size: usize,
}

/// Refusals that are remembered until the driver asks.
const REFUSALS: usize = 64;

impl Socket {
    /// A socket bound to `address`, and to the interface `device`. To be called within a tokio runtime.
    pub(crate) fn bind(
        address: SocketAddr,
        device: Option<&str>,
        source: Source,
        port: Port,
    ) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if let Some(device) = device {
            bind_device(&socket, device)?;
        }
        socket.set_nonblocking(true)?;
        if port == Port::Another {
            share_port(&socket)?;
        }
        socket.bind(&address.into())?;
        if port == Port::First {
            // Only now: otherwise it would share an address that another process has already.
            share_port(&socket)?;
        }
        for result in [socket.set_recv_buffer_size(BUFFER), socket.set_send_buffer_size(BUFFER)] {
            if let Err(error) = result {
                tracing::debug!(%address, %error, "the socket keeps its small buffer");
            }
        }
        Self::adopt(UdpSocket::from(socket), device, source)
    }

    /// A socket that is bound already, to the interface `device` if that is named. To be called within a tokio runtime.
    pub(crate) fn adopt(socket: UdpSocket, device: Option<&str>, source: Source) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-14
        //= type=implication
        //= reason=The socket is set to refuse fragmentation where the system permits that.
        //# UDP datagrams MUST NOT be fragmented at the IP layer
        //= https://www.rfc-editor.org/rfc/rfc9000#section-14
        //= type=implication
        //= reason=The socket is set to refuse fragmentation where the system permits that.
        //# In IPv4 [IPv4], the Don't Fragment (DF) bit MUST be set if possible, to prevent fragmentation on
        //# the path.
        let features = UdpSocketState::new((&socket).into())?;
        let io = WatchedSocket::new(socket)?;
        let device = device.map(str::to_owned);
        let most = if cfg!(target_os = "linux") { features.max_gso_segments() } else { 1 };
        let (class, marked_segments) = (AtomicU8::new(0), AtomicUsize::new(most));
        Ok(Self { io, features, local, device, source, class, marked_segments, refused: Mutex::default() })
    }

    /// Has the kernel share out what comes to the address of this socket, the first of those that share it.
    pub(crate) fn steer(&self, shares: &Shares) -> io::Result<()> {
        steering::attach(self.io.socket(), shares)
    }

    /// The address that it is bound to.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// The interface that it is bound to.
    pub(crate) fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// Returns the local address by which the protocol knows a path to `remote`.
    pub(crate) fn source_for(&self, remote: SocketAddr) -> SocketAddr {
        if !self.pins() {
            return self.local;
        }
        let address = route(remote).unwrap_or(self.local.ip());
        SocketAddr::new(address, self.local.port())
    }

    /// Returns true if datagrams from `local` leave through this socket.
    pub(crate) fn sends_from(&self, local: SocketAddr) -> bool {
        self.local == local
            || self.pins() && self.local.port() == local.port() && self.local.is_ipv4() == local.is_ipv4()
    }

    /// Returns true if each datagram has its own local address.
    fn pins(&self) -> bool {
        self.source == Source::Pinned && self.local.ip().is_unspecified()
    }

    /// Ready when the socket may take datagrams again.
    pub(crate) fn poll_send_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        self.io.poll_send_ready(context)
    }

    /// Sends `transmit` from byte `offset` on; returns how far it came if the socket takes no more now. A datagram that
    /// the system refuses otherwise is dropped and counted: to the protocol it is lost by the network, unless it was
    /// too large.
    pub(crate) fn send(
        &self,
        transmit: &Transmit,
        mut offset: usize,
        stats: &mut IoStats,
    ) -> Result<(), usize> {
        while let Some(rest) = transmit.bytes.get(offset..).filter(|rest| !rest.is_empty()) {
            let segment = transmit.segment.unwrap_or(rest.len()).max(1);
            let most = segment.saturating_mul(self.most_segments(transmit));
            let batch = rest.get(..most).unwrap_or(rest);
            let segments = batch.len().div_ceil(segment);
            match self.send_batch(transmit, batch, (segments > 1).then_some(segment)) {
                Ok(()) => {
                    stats.send_calls += 1;
                    stats.datagrams_sent += segments as u64;
                    stats.bytes_sent += batch.len() as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(offset),
                // The driver of the network card refused the batch: from here on there are none.
                Err(_) if segments > 1 && self.most_segments(transmit) <= 1 => continue,
                Err(error) => {
                    stats.send_errors += 1;
                    if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) {
                        self.note_refusal(transmit, segment);
                    }
                    tracing::debug!(local = %transmit.local, remote = %transmit.remote, %error, "not sent");
                }
            }
            offset += batch.len();
        }
        Ok(())
    }

    fn note_refusal(&self, transmit: &Transmit, size: usize) {
        let tuple = FourTuple { local: transmit.local, remote: transmit.remote };
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < REFUSALS && !refused.contains(&OversizedDatagram { tuple, size }) {
            refused.push(OversizedDatagram { tuple, size });
        }
    }

    /// Takes the datagrams that were refused for their size since the last call.
    pub(crate) fn take_refused(&self) -> Vec<OversizedDatagram> {
        std::mem::take(&mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns true if datagrams get a Differentiated Services codepoint. The one that pins source addresses sends the
    /// ECN bits alone.
    fn marks(&self, transmit: &Transmit) -> bool {
        transmit.dscp != Dscp::DEFAULT && !self.pins()
    }

    fn most_segments(&self, transmit: &Transmit) -> usize {
        let most = match self.marks(transmit) {
            true => self.marked_segments.load(Ordering::Relaxed),
            false => self.features.max_gso_segments(),
        };
        most.max(1)
    }

    /// Sends datagrams with the traffic class of `transmit`: that of the socket, for the one that goes along with datagrams
    /// otherwise holds nothing but the ECN bits.
    fn send_marked(
        &self,
        transmit: &Transmit,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        let class = transmit.dscp.traffic_class(transmit.ecn.bits());
        if self.class.swap(class, Ordering::Relaxed) != class {
            set_traffic_class(self.io.socket(), self.local, class.into());
        }
        let Some(segment) = segment_size else {
            return self.io.try_send(|socket| socket.send_to(contents, transmit.remote)).map(drop);
        };
        let result = self.io.try_send(|socket| send_segments(socket, contents, segment, transmit.remote));
        let refused = |error: &io::Error| error.raw_os_error() != Some(Errno::MSGSIZE.raw_os_error());
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::WouldBlock
            && refused(error)
        {
            // The driver of the network card cuts nothing up, as above.
            self.marked_segments.store(1, Ordering::Relaxed);
        }
        result
    }

    fn send_batch(
        &self,
        transmit: &Transmit,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        if self.marks(transmit) {
            return self.send_marked(transmit, contents, segment_size);
        }
        let from = transmit.local.ip();
        let batch = quinn_udp::Transmit {
            destination: transmit.remote,
            ecn: EcnCodepoint::from_bits(transmit.ecn.bits()),
            contents,
            segment_size,
            src_ip: (self.pins() && !from.is_unspecified()).then_some(from),
        };
        self.io.try_send(|socket| self.features.try_send(socket.into(), &batch))
    }

    /// Receives what is there, at most one batch, into `datagrams`. Pending if nothing is there.
    pub(crate) fn poll_receive(
        &self,
        context: &mut Context<'_>,
        buffers: &mut Buffers,
        datagrams: &mut Vec<Datagram>,
    ) -> Poll<()> {
        loop {
            if self.io.poll_receive_ready(context).is_pending() {
                return Poll::Pending;
            }
            match self.receive(buffers) {
                Ok(count) => {
                    // A call that leaves room has emptied the socket.
                    let queue = match count {
                        quinn_udp::BATCH_SIZE if buffers.senders >= receive_queue::CROWD => {
                            receive_queue::state(self.io.socket())
                        }
                        _ => Queue::Short,
                    };
                    buffers.split(count, queue, |meta| self.arrived_at(meta), datagrams);
                    return Poll::Ready(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // An ICMP message about an earlier datagram, for instance: no reason to end anything.
                Err(error) => {
                    tracing::debug!(local = %self.local, %error, "receiving failed");
                    return Poll::Ready(());
                }
            }
        }
    }

    /// Receives one batch; how many buffers it filled.
    fn receive(&self, buffers: &mut Buffers) -> io::Result<usize> {
        let (mut slices, metas) = buffers.slices();
        let mut filled = None;
        let result = self.io.try_receive(|socket| {
            let count = self.features.recv(socket.into(), &mut slices, metas)?;
            filled = Some(count);
            // A batch that leaves room has emptied the socket: the next datagram wakes, and no call is needed to find that
            // there is nothing more.
            if count < slices.len() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        match filled {
            Some(count) => Ok(count),
            None => result.map(|()| 0),
        }
    }

    fn arrived_at(&self, meta: &RecvMeta) -> SocketAddr {
        match meta.dst_ip {
            Some(address) if self.pins() => SocketAddr::new(address, self.local.port()),
            _ => self.local,
        }
    }
}

/// Buffers into which batches are received, before they are copied out in their true size.
pub(crate) struct Buffers {
    bytes: Box<[u8]>,
    metas: [RecvMeta; quinn_udp::BATCH_SIZE],
    pool: Pool,
    /// The number of connections that share the sockets.
    senders: usize,
}

/// Memory for large batches that is used again once nobody holds a part of them: fresh memory of that size would come from
/// the system, and go back to it, page by page.
#[derive(Default)]
struct Pool {
    buffers: Vec<BytesMut>,
    /// The buffer to try next.
    next: usize,
}

impl Pool {
    /// A copy of `batch`, if it is large and there is memory.
    fn copy(&mut self, batch: &[u8]) -> Option<BytesMut> {
        if batch.len() < POOLED {
            return None;
        }
        let count = self.buffers.len();
        let free = (0..count)
            .map(|step| (self.next + step) % count)
            .find(|index| self.buffers.get_mut(*index).is_some_and(|buffer| buffer.try_reclaim(LARGEST)));
        let index = match free {
            Some(index) => index,
            None if count < MOST_POOLED => {
                self.buffers.push(BytesMut::with_capacity(LARGEST));
                count
            }
            None => return None,
        };
        self.next = index + 1;
        let buffer = self.buffers.get_mut(index)?;
        buffer.extend_from_slice(batch);
        Some(buffer.split())
    }
}

impl Buffers {
    /// Room for one batch.
    pub(crate) fn new() -> Self {
        let bytes = vec![0; LARGEST * quinn_udp::BATCH_SIZE].into_boxed_slice();
        Self { bytes, metas: [RecvMeta::default(); quinn_udp::BATCH_SIZE], pool: Pool::default(), senders: 0 }
    }

    /// Takes the number of connections that share the sockets.
    pub(crate) fn set_senders(&mut self, senders: usize) {
        self.senders = senders;
    }

    fn slices(&mut self) -> ([IoSliceMut<'_>; quinn_udp::BATCH_SIZE], &mut [RecvMeta]) {
        let mut chunks = self.bytes.chunks_mut(LARGEST);
        (std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default())), &mut self.metas)
    }

    /// Cuts the first `count` buffers into datagrams, which waited in `queue`.
    fn split(
        &mut self,
        count: usize,
        queue: Queue,
        local: impl Fn(&RecvMeta) -> SocketAddr,
        datagrams: &mut Vec<Datagram>,
    ) {
        for (meta, buffer) in self.metas.iter().zip(self.bytes.chunks(LARGEST)).take(count) {
            let batch = buffer.get(..meta.len).unwrap_or(buffer);
            let stride = meta.stride.max(1);
            let ecn = Ecn::from_bits(meta.ecn.map_or(0, |ecn| ecn as u8));
            let datagram = |bytes| Datagram { local: local(meta), remote: meta.addr, ecn, bytes };
            match self.pool.copy(batch) {
                Some(mut bytes) => {
                    while !bytes.is_empty() {
                        datagrams.push(datagram(bytes.split_to(stride.min(bytes.len()))));
                    }
                }
                // What is kept for long must hold no more than itself: peers choose what comes in a batch.
                None => datagrams.extend(batch.chunks(stride).map(|one| datagram(BytesMut::from(one)))),
            }
            if let Some(last) = datagrams.last_mut() {
                queue.mark(last);
            }
        }
    }
}

/// Sends datagrams of `segment` bytes, the last one of what is left, in one call.
#[cfg(target_os = "linux")]
fn send_segments(io: &UdpSocket, contents: &[u8], segment: usize, remote: SocketAddr) -> io::Result<()> {
    use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg};
    use std::os::fd::AsRawFd;
    let segment = u16::try_from(segment).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let (parts, cut) = ([io::IoSlice::new(contents)], [ControlMessage::UdpGsoSegments(&segment)]);
    let remote = SockaddrStorage::from(remote);
    sendmsg(io.as_raw_fd(), &parts, &cut, MsgFlags::empty(), Some(&remote))?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn send_segments(_: &UdpSocket, _: &[u8], _: usize, _: SocketAddr) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Has the kernel give `class` to what it sends. A socket for both IP versions has one for each.
fn set_traffic_class(io: &UdpSocket, local: SocketAddr, class: u32) {
    let socket = socket2::SockRef::from(io);
    let v4 = socket.set_tos_v4(class);
    let result = if local.is_ipv4() { v4 } else { set_traffic_class_v6(&socket, class) };
    if let Err(error) = result {
        tracing::debug!(%local, class, %error, "the traffic class stays as it is");
    }
}

#[cfg(unix)]
fn set_traffic_class_v6(socket: &socket2::SockRef<'_>, class: u32) -> io::Result<()> {
    socket.set_tclass_v6(class)
}

/// Fails: Windows leaves the class of a socket's packets to its policies.
#[cfg(not(unix))]
fn set_traffic_class_v6(_: &socket2::SockRef<'_>, _: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The local address that the kernel would choose towards `remote`.
pub(crate) fn route(remote: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr =
        if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let probe = UdpSocket::bind(SocketAddr::new(any, 0))?;
    // Connecting a UDP socket sends nothing.
    probe.connect(remote)?;
    Ok(probe.local_addr()?.ip())
}

#[cfg(unix)]
fn share_port(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(unix))]
fn share_port(_socket: &socket2::Socket) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system lets no sockets share a port"))
}

#[cfg(target_os = "linux")]
fn bind_device(socket: &socket2::Socket, device: &str) -> io::Result<()> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("interface {device}: {error}"));
    socket.bind_device(Some(device.as_bytes())).map_err(named)
}

#[cfg(not(target_os = "linux"))]
fn bind_device(_socket: &socket2::Socket, device: &str) -> io::Result<()> {
    let reason =
        format!("interface {device}: only Linux binds sockets to interfaces; give an address of it instead");
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

#[cfg(test)]
mod tests;
