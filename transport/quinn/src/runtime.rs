//! Runtimes and UDP sockets in quinn's shape. Those of hvq are smaller: [`hvq::runtime`].

mod from_quinn;
mod to_quinn;

use hvq::runtime as native;
use quinn_udp::{RecvMeta, Transmit};
use std::fmt::Debug;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

pub(crate) use from_quinn::{Socket, to_hvq};

/// Everything that endpoints ask of a runtime.
pub trait Runtime: Send + Sync + Debug + 'static {
    /// A timer that is set to `deadline`.
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>>;

    /// Runs a task in the background.
    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>);

    /// Watches a socket of the kernel.
    ///
    /// # Errors
    /// The system refuses what the socket is set up with.
    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>>;

    /// The present by the clock of the timers.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// The runtime of hvq that this one stands for, which is used in its place: then nothing is copied between the shapes of both. quinn
    /// has no such method. Default: `None`.
    fn as_hvq(&self) -> Option<Arc<dyn native::Runtime>> {
        None
    }
}

/// A timer.
pub trait AsyncTimer: Send + Debug + 'static {
    /// Sets it to another time.
    fn reset(self: Pin<&mut Self>, deadline: Instant);

    /// Ready once its time is there.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()>;
}

/// A UDP socket of the program.
pub trait AsyncUdpSocket: Send + Sync + Debug + 'static {
    /// A watch for room to send.
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>>;

    /// Sends datagrams, [`max_transmit_segments`](Self::max_transmit_segments) at most.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room now; any other error counts as loss by the network.
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()>;

    /// Receives batches into `bufs`, and says in `meta` what is in each; how many.
    ///
    /// # Errors
    /// Receiving failed: it is polled again.
    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>>;

    /// The address that it is bound to.
    ///
    /// # Errors
    /// It has none.
    fn local_addr(&self) -> io::Result<SocketAddr>;

    /// The largest number of datagrams that one call sends.
    fn max_transmit_segments(&self) -> usize {
        1
    }

    /// The largest number of datagrams in one buffer.
    fn max_receive_segments(&self) -> usize {
        1
    }

    /// Returns true if datagrams may be fragmented on their way: connections look for no larger ones then.
    fn may_fragment(&self) -> bool {
        true
    }
}

/// A watch for room to send.
pub trait UdpPoller: Send + Sync + Debug + 'static {
    /// Ready if there may be room.
    ///
    /// # Errors
    /// The socket failed; the next call to send tells of it.
    fn poll_writable(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// The tokio runtime of the caller.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct TokioRuntime;

impl TokioRuntime {
    /// The runtime of the caller. Panics if there is none, as tokio does.
    fn current() -> native::TokioRuntime {
        native::TokioRuntime::current().expect("a caller within a tokio runtime")
    }
}

impl Runtime for TokioRuntime {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        to_quinn::timer(&Self::current(), deadline)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        native::Runtime::spawn(&Self::current(), future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        to_quinn::wrap(&Self::current(), socket)
    }

    fn as_hvq(&self) -> Option<Arc<dyn native::Runtime>> {
        Some(Arc::new(Self::current()))
    }
}

/// The runtime of smol.
#[cfg(feature = "runtime-smol")]
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SmolRuntime;

#[cfg(feature = "runtime-smol")]
impl Runtime for SmolRuntime {
    fn new_timer(&self, deadline: Instant) -> Pin<Box<dyn AsyncTimer>> {
        to_quinn::timer(&native::SmolRuntime, deadline)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        native::Runtime::spawn(&native::SmolRuntime, future);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        to_quinn::wrap(&native::SmolRuntime, socket)
    }

    fn as_hvq(&self) -> Option<Arc<dyn native::Runtime>> {
        Some(Arc::new(native::SmolRuntime))
    }
}

/// The runtime of the caller: tokio's if it is called in one, else smol's if the feature `runtime-smol` is on.
pub fn default_runtime() -> Option<Arc<dyn Runtime>> {
    if tokio::runtime::Handle::try_current().is_ok() {
        return Some(Arc::new(TokioRuntime));
    }
    #[cfg(feature = "runtime-smol")]
    return Some(Arc::new(SmolRuntime));
    #[cfg(not(feature = "runtime-smol"))]
    None
}
