//! Timers and sockets of hvq in quinn's shape, for programs that put their own around them.

use super::{AsyncTimer, AsyncUdpSocket, UdpPoller};
use hvq::runtime::{self, Arrivals, Datagram, Dscp, Ecn, Outgoing};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit};
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

/// A timer of `runtime`.
pub(super) fn timer(runtime: &impl runtime::Runtime, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
    Box::pin(Timer { timer: runtime.new_timer(), deadline })
}

/// A socket that `runtime` watches.
pub(super) fn wrap(
    runtime: &impl runtime::Runtime,
    socket: UdpSocket,
) -> io::Result<Arc<dyn AsyncUdpSocket>> {
    Ok(Arc::new(Socket { socket: runtime.wrap_udp_socket(socket)?, read: Mutex::default() }))
}

#[derive(Debug)]
struct Timer {
    timer: Box<dyn runtime::AsyncTimer>,
    deadline: Instant,
}

impl AsyncTimer for Timer {
    fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
        self.deadline = deadline;
    }

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline;
        self.timer.poll(deadline, context)
    }
}

/// A socket, and what was received and not asked for yet.
#[derive(Debug)]
struct Socket {
    socket: Arc<dyn runtime::AsyncUdpSocket>,
    read: Mutex<(Arrivals, VecDeque<Datagram>)>,
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Poller(self))
    }

    /// Sends one batch, as large as it is: what does not fit at once would have to be told.
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let segment = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        let batch = Outgoing {
            remote: transmit.destination,
            source: transmit.src_ip,
            ecn: Ecn::from_bits(transmit.ecn.map_or(0, |ecn| ecn as u8)),
            dscp: Dscp::DEFAULT,
            contents: transmit.contents,
            segment,
        };
        // One datagram, as `max_transmit_segments` says: it goes as a whole.
        self.socket.try_send(&batch).map(drop)
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let (arrivals, waiting) = &mut *read;
        while waiting.is_empty() {
            ready!(self.socket.poll_receive(context, arrivals))?;
            waiting.extend(arrivals.datagrams().drain(..));
        }
        let mut count = 0;
        for (buffer, meta) in bufs.iter_mut().zip(meta) {
            let Some(datagram) = waiting.pop_front() else { break };
            // What is larger than a buffer is cut off, as by a call to the kernel.
            let length = datagram.bytes.len().min(buffer.len());
            buffer[..length].copy_from_slice(&datagram.bytes[..length]);
            (meta.addr, meta.len, meta.stride) = (datagram.remote, length, length.max(1));
            meta.ecn = EcnCodepoint::from_bits(datagram.ecn.bits());
            meta.dst_ip = Some(datagram.local.ip());
            count += 1;
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

/// The watch on a socket for room to send.
#[derive(Debug)]
struct Poller(Arc<Socket>);

impl UdpPoller for Poller {
    fn poll_writable(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.socket.poll_send_ready(context).map(Ok)
    }
}
