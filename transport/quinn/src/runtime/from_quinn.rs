//! Runtimes, timers and sockets in quinn's shape as hvq takes them.

use super::{AsyncTimer, AsyncUdpSocket, Runtime, UdpPoller};
use bytes::BytesMut;
use hvq::runtime::{self, Arrivals, Datagram, Ecn, Outgoing};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit};
use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

/// Bytes of the largest datagram, or batch of equal ones.
const LARGEST: usize = 1 << 16;

/// The runtime as hvq takes it.
pub(crate) fn to_hvq(runtime: Arc<dyn Runtime>) -> Arc<dyn runtime::Runtime> {
    runtime.as_hvq().unwrap_or_else(|| Arc::new(Foreign(runtime)))
}

/// A runtime of the program.
#[derive(Debug)]
struct Foreign(Arc<dyn Runtime>);

impl runtime::Runtime for Foreign {
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.0.spawn(task);
    }

    fn new_timer(&self) -> Box<dyn runtime::AsyncTimer> {
        Box::new(Timer { runtime: self.0.clone(), timer: None })
    }

    fn now(&self) -> Instant {
        self.0.now()
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn runtime::AsyncUdpSocket>> {
        Ok(Arc::new(Socket::new(self.0.wrap_udp_socket(socket)?)?))
    }
}

/// A timer, once it was set, and what it is set to.
#[derive(Debug)]
struct Timer {
    runtime: Arc<dyn Runtime>,
    timer: Option<(Pin<Box<dyn AsyncTimer>>, Instant)>,
}

impl runtime::AsyncTimer for Timer {
    fn poll(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if deadline <= self.runtime.now() {
                return Poll::Ready(());
            }
            let (timer, at) = self.timer.get_or_insert_with(|| (self.runtime.new_timer(deadline), deadline));
            if *at != deadline {
                timer.as_mut().reset(deadline);
                *at = deadline;
            }
            ready!(timer.as_mut().poll(context));
            // It rang, perhaps early: another one is set to what is left.
            self.timer = None;
        }
    }
}

/// A socket of the program.
pub(crate) struct Socket {
    socket: Arc<dyn AsyncUdpSocket>,
    local: SocketAddr,
    poller: Mutex<Pin<Box<dyn UdpPoller>>>,
    buffer: Mutex<Box<[u8]>>,
}

impl Socket {
    /// The socket as hvq takes it, whose address is asked for once.
    pub(crate) fn new(socket: Arc<dyn AsyncUdpSocket>) -> io::Result<Self> {
        let local = socket.local_addr()?;
        let poller = Mutex::new(socket.clone().create_io_poller());
        let buffer = Mutex::new(vec![0; LARGEST * BATCH_SIZE].into_boxed_slice());
        Ok(Self { socket, local, poller, buffer })
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.socket.fmt(f)
    }
}

impl runtime::AsyncUdpSocket for Socket {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.local)
    }

    fn try_send(&self, batch: &Outgoing<'_>) -> io::Result<usize> {
        let most = batch.segment.saturating_mul(self.socket.max_transmit_segments().max(1));
        let contents = batch.contents.get(..most).unwrap_or(batch.contents);
        self.socket.try_send(&Transmit {
            destination: batch.remote,
            ecn: EcnCodepoint::from_bits(batch.ecn.bits()),
            contents,
            segment_size: (contents.len() > batch.segment).then_some(batch.segment),
            src_ip: batch.source,
        })?;
        Ok(contents.len())
    }

    fn poll_send_ready(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut poller = self.poller.lock().unwrap_or_else(PoisonError::into_inner);
        poller.as_mut().poll_writable(context).map(|_error_shows_at_the_call| ())
    }

    fn poll_receive(&self, context: &mut Context<'_>, arrivals: &mut Arrivals) -> Poll<io::Result<()>> {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut chunks = buffer.chunks_mut(LARGEST);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let count = ready!(self.socket.poll_recv(context, &mut slices, &mut metas))?;
        for (meta, bytes) in metas.iter().zip(slices.iter()).take(count) {
            let bytes = bytes.get(..meta.len).unwrap_or(bytes);
            let local = meta.dst_ip.map_or(self.local, |address| SocketAddr::new(address, self.local.port()));
            let ecn = Ecn::from_bits(meta.ecn.map_or(0, |ecn| ecn as u8));
            let one = |bytes| Datagram { local, remote: meta.addr, ecn, bytes: BytesMut::from(bytes) };
            arrivals.datagrams().extend(bytes.chunks(meta.stride.max(1)).map(one));
        }
        Poll::Ready(Ok(()))
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}
