//! UDP sockets of the kernel: segmentation offload both ways, ECN, and the addresses of each datagram.

use crate::receive_queue;
use crate::receive_queue::Queue;
use crate::runtime::{Arrivals, AsyncUdpSocket, Dscp, Outgoing};
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSocketState};
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::{Context, Poll};

/// The watch of a runtime on a socket of the kernel.
pub trait Readiness: fmt::Debug + Send + Sync + 'static {
    /// The socket.
    fn socket(&self) -> &UdpSocket;

    /// Ready if there may be something to receive. Otherwise the task is woken then.
    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<()>;

    /// Calls `receive`, unless it is known that nothing arrived since a call last failed with
    /// [`WouldBlock`](io::ErrorKind::WouldBlock).
    ///
    /// # Errors
    /// Those of `receive`, or `WouldBlock`.
    fn try_receive(&self, receive: &mut dyn FnMut(&UdpSocket) -> io::Result<()>) -> io::Result<()>;

    /// Ready if there may be room to send. Otherwise the task is woken then.
    fn poll_writable(&self, context: &mut Context<'_>) -> Poll<()>;

    /// Calls `send`.
    ///
    /// # Errors
    /// Those of `send`.
    fn try_send(&self, send: &mut dyn FnMut(&UdpSocket) -> io::Result<()>) -> io::Result<()> {
        send(self.socket())
    }
}

/// A UDP socket of the kernel that a runtime watches.
#[derive(Debug)]
pub struct KernelSocket<R> {
    io: R,
    pub(crate) features: UdpSocketState,
    local: SocketAddr,
    /// The traffic class that the kernel gives to datagrams sent without one.
    class: AtomicU8,
    /// Datagrams in one call at most that get their class so.
    marked_segments: AtomicUsize,
}

impl<R: Readiness> KernelSocket<R> {
    /// The socket that `readiness` watches, set up for QUIC: among others, it blocks no more.
    ///
    /// # Errors
    /// The system refuses what it is set up with.
    pub fn new(readiness: R) -> io::Result<Self> {
        readiness.socket().set_nonblocking(true)?;
        let local = readiness.socket().local_addr()?;
        //= https://www.rfc-editor.org/rfc/rfc9000#section-14
        //= type=implication
        //= reason=The socket is set to refuse fragmentation where the system permits that.
        //# UDP datagrams MUST NOT be fragmented at the IP layer
        //= https://www.rfc-editor.org/rfc/rfc9000#section-14
        //= type=implication
        //= reason=The socket is set to refuse fragmentation where the system permits that.
        //# In IPv4 [IPv4], the Don't Fragment (DF) bit MUST be set if possible, to prevent fragmentation on
        //# the path.
        let features = UdpSocketState::new(readiness.socket().into())?;
        let most = if cfg!(target_os = "linux") { features.max_gso_segments() } else { 1 };
        let (class, marked_segments) = (AtomicU8::new(0), AtomicUsize::new(most));
        Ok(Self { io: readiness, features, local, class, marked_segments })
    }

    /// Returns true if datagrams get a Differentiated Services codepoint. Whoever pins source addresses sends the ECN bits alone.
    fn marks(&self, batch: &Outgoing<'_>) -> bool {
        batch.dscp != Dscp::DEFAULT && batch.source.is_none()
    }

    fn most_segments(&self, batch: &Outgoing<'_>) -> usize {
        let most = match self.marks(batch) {
            true => self.marked_segments.load(Ordering::Relaxed),
            false => self.features.max_gso_segments(),
        };
        most.max(1)
    }

    /// Sends datagrams with the traffic class of `batch`: that of the socket, for the one that goes along with datagrams
    /// otherwise holds nothing but the ECN bits.
    fn send_marked(
        &self,
        batch: &Outgoing<'_>,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        let class = batch.dscp.traffic_class(batch.ecn.bits());
        if self.class.swap(class, Ordering::Relaxed) != class {
            set_traffic_class(self.io.socket(), self.local, class.into());
        }
        let Some(segment) = segment_size else {
            return self.io.try_send(&mut |socket| socket.send_to(contents, batch.remote).map(drop));
        };
        let result = self.io.try_send(&mut |socket| send_segments(socket, contents, segment, batch.remote));
        let refused = |error: &io::Error| error.raw_os_error() != Some(Errno::MSGSIZE.raw_os_error());
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::WouldBlock
            && refused(error)
        {
            // The driver of the network card cuts nothing up, as below.
            self.marked_segments.store(1, Ordering::Relaxed);
        }
        result
    }

    fn send_part(
        &self,
        batch: &Outgoing<'_>,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<()> {
        if self.marks(batch) {
            return self.send_marked(batch, contents, segment_size);
        }
        let part = quinn_udp::Transmit {
            destination: batch.remote,
            ecn: EcnCodepoint::from_bits(batch.ecn.bits()),
            contents,
            segment_size,
            src_ip: batch.source,
        };
        self.io.try_send(&mut |socket| self.features.try_send(socket.into(), &part))
    }

    /// Receives one batch; how many buffers it filled.
    fn receive(&self, arrivals: &mut Arrivals) -> io::Result<usize> {
        let (mut slices, metas) = arrivals.buffers.slices();
        let mut filled = None;
        let result = self.io.try_receive(&mut |socket| {
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
            Some(address) if self.local.ip().is_unspecified() => SocketAddr::new(address, self.local.port()),
            _ => self.local,
        }
    }
}

impl<R: Readiness> AsyncUdpSocket for KernelSocket<R> {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }

    fn try_send(&self, batch: &Outgoing<'_>) -> io::Result<usize> {
        let segment = batch.segment.max(1);
        loop {
            let most = segment.saturating_mul(self.most_segments(batch));
            let part = batch.contents.get(..most).unwrap_or(batch.contents);
            let is_several = part.len() > segment;
            match self.send_part(batch, part, is_several.then_some(segment)) {
                Ok(()) => return Ok(part.len()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(error),
                // The driver of the network card refused the batch: from here on there are none.
                Err(_) if is_several && self.most_segments(batch) <= 1 => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn poll_send_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        self.io.poll_writable(context)
    }

    fn poll_receive(&self, context: &mut Context<'_>, arrivals: &mut Arrivals) -> Poll<io::Result<()>> {
        loop {
            if self.io.poll_readable(context).is_pending() {
                return Poll::Pending;
            }
            match self.receive(arrivals) {
                Ok(count) => {
                    // A call that leaves room has emptied the socket.
                    let queue = match count {
                        quinn_udp::BATCH_SIZE if arrivals.buffers.is_crowded() => {
                            receive_queue::state(self.io.socket())
                        }
                        _ => Queue::Short,
                    };
                    let Arrivals { datagrams, buffers, local } = arrivals;
                    let known = local.take();
                    let local = |meta: &RecvMeta| known.unwrap_or_else(|| self.arrived_at(meta));
                    buffers.split(count, queue, local, datagrams);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn may_fragment(&self) -> bool {
        self.features.may_fragment()
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
