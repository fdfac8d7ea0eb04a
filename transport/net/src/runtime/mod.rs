//! Runtimes and UDP sockets of the program: what an endpoint runs on can be replaced.
//!
//! A [`Runtime`] spawns an endpoint's driver, tells the time, wakes at deadlines and watches sockets of the kernel. Endpoints that are
//! made within tokio run on it (feature `runtime-tokio`, on by default), others on smol (feature `runtime-smol`), and
//! [`EndpointOptions::runtime`](crate::EndpointOptions::runtime) names another. A [`Dialer`](crate::Dialer) and a
//! [`PathManager`](crate::PathManager) run on that of their endpoint. Names are looked up by threads. Linux tells of changes of
//! [`links`](crate::links) through the reactor of tokio or of smol; with neither feature links are read each second.
//!
//! An [`AsyncUdpSocket`] sends and receives datagrams in place of a socket of the kernel: through a tunnel, a relay, a network in
//! memory. Endpoints begin with those of [`EndpointOptions::sockets`](crate::EndpointOptions::sockets), and
//! [`Endpoint::add_abstract_socket`](crate::Endpoint::add_abstract_socket) adds one at any time. A path leaves through it that begins
//! at its address: [`PathOptions::local`](crate::PathOptions) is `LocalAddress::Socket` of that.
//!
//! Three things only sockets of the kernel do. Interfaces: a path over [`LocalAddress::Interface`](crate::LocalAddress) or
//! [`LocalAddress::Link`](crate::LocalAddress) never leaves through a socket of the program. Steering: workers
//! ([`Endpoint::workers`](crate::Endpoint::workers)) refuse them. Codepoints (DSCP): they are handed over, and may be ignored.

mod buffers;
mod kernel;
#[cfg(feature = "runtime-smol")]
mod smol;
mod socket;
#[cfg(feature = "runtime-tokio")]
mod tokio_socket;
#[cfg(feature = "runtime-tokio")]
mod tokio_timer;

pub use crate::error::RemoveSocketError;
pub(crate) use buffers::Buffers;
pub use hvq_transport::connection::{Datagram, Dscp, Ecn};
pub use kernel::{KernelSocket, Readiness};
#[cfg(feature = "runtime-smol")]
pub use smol::SmolRuntime;
pub use socket::{Arrivals, AsyncUdpSocket, Outgoing};
#[cfg(feature = "runtime-tokio")]
pub use tokio_socket::TokioRuntime;

use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Everything that an endpoint asks of the runtime that it runs on.
pub trait Runtime: fmt::Debug + Send + Sync + 'static {
    /// Runs `task` until it is ready, beside others.
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>);

    /// A timer that is not set.
    fn new_timer(&self) -> Box<dyn AsyncTimer>;

    /// The present by the clock of the timers.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Watches a socket of the kernel, usually as a [`KernelSocket`].
    ///
    /// # Errors
    /// The system refuses what the socket is set up with, or this runtime has no sockets of the kernel.
    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>>;

    /// A socket of this runtime's own network, bound to `local`; port 0 is any. `None`, the default, if there is no such network: then
    /// one of the kernel is bound and [wrapped](Self::wrap_udp_socket).
    ///
    /// # Errors
    /// `local` is no address of that network, or taken.
    fn bind_udp_socket(&self, local: SocketAddr) -> io::Result<Option<Arc<dyn AsyncUdpSocket>>> {
        let _the_kernel_has_it = local;
        Ok(None)
    }

    /// Fills `bytes` with what nobody can guess, by default from the system. From a seed in tests alone.
    ///
    /// # Errors
    /// There is no randomness.
    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()> {
        let failed = |_| io::Error::other("the system gives no random numbers");
        SystemRandom::new().fill(bytes).map_err(failed)
    }
}

/// A timer of a [`Runtime`].
pub trait AsyncTimer: fmt::Debug + Send {
    /// Ready once the runtime's clock has reached `deadline`. Otherwise the task is woken then, if this is not polled with another
    /// deadline before; it may be woken earlier, too.
    fn poll(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()>;
}

/// The runtime of the caller.
///
/// # Errors
/// It is called in none.
pub(crate) fn current() -> io::Result<Arc<dyn Runtime>> {
    #[cfg(feature = "runtime-tokio")]
    if let Some(runtime) = TokioRuntime::current() {
        return Ok(Arc::new(runtime));
    }
    #[cfg(feature = "runtime-smol")]
    return Ok(Arc::new(SmolRuntime));
    #[cfg(not(feature = "runtime-smol"))]
    Err(io::Error::other("there is no tokio runtime here, and the options name no other one"))
}

/// Waits for so long, by the clock of `runtime`.
pub(crate) async fn sleep(runtime: &dyn Runtime, pause: Duration) {
    let (mut timer, deadline) = (runtime.new_timer(), runtime.now() + pause);
    poll_fn(|context| timer.poll(deadline, context)).await;
}

/// Runs `work`, which may block: on a thread of tokio's within tokio, else on one of its own.
///
/// # Errors
/// There is no thread, or `work` panicked.
pub(crate) async fn unblock<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    #[cfg(feature = "runtime-tokio")]
    if TokioRuntime::current().is_some() {
        return tokio::task::spawn_blocking(work).await.map_err(io::Error::other);
    }
    let (answer, answered) = oneshot::channel();
    // It is no error that nobody waits any more.
    let run = move || drop(answer.send(work()));
    std::thread::Builder::new().name("hvq-blocking".to_owned()).spawn(run)?;
    answered.await.map_err(io::Error::other)
}

/// A way to end a task from outside. Dropping it leaves the task at work.
#[derive(Debug)]
pub(crate) struct Stop(oneshot::Sender<()>);

impl Stop {
    /// Ends the task, if it has not ended.
    pub(crate) fn stop(self) {
        // It is no error that it has.
        let _has_ended = self.0.send(()).is_err();
    }
}

/// Runs `task` on `runtime` until it is ready or stopped.
pub(crate) fn spawn(runtime: &dyn Runtime, task: impl Future<Output = ()> + Send + 'static) -> Stop {
    let (stop, stopped) = oneshot::channel();
    let asked = async {
        if stopped.await.is_err() {
            pending::<()>().await;
        }
    };
    runtime.spawn(Box::pin(async {
        tokio::select! {
            biased;
            () = asked => {}
            () = task => {}
        }
    }));
    Stop(stop)
}

/// Waits for `future` for so long at most; `None` if that was not enough.
pub(crate) async fn within<F: Future>(runtime: &dyn Runtime, most: Duration, future: F) -> Option<F::Output> {
    let (mut future, mut timer) = (pin!(future), runtime.new_timer());
    let deadline = runtime.now() + most;
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => timer.poll(deadline, context).map(|()| None),
    })
    .await
}
