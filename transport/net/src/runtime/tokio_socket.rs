//! Tokio's runtime, and UDP sockets in its reactor, which wake their task for what is wanted alone.
//!
//! A socket that waits for room to send is told of room each time the kernel frees a datagram: after each transmission, by the
//! network card or by the receiver on the same machine. That wakes a process which sleeps, once a datagram, for nothing. So the
//! socket is watched for input alone, and for room only from a send that found none until there is some.

use super::tokio_timer::Timer;
use super::{AsyncTimer, AsyncUdpSocket, KernelSocket, Readiness, Runtime};
use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::runtime::Handle;

#[cfg(unix)]
pub(super) use unix::WatchedSocket;

#[cfg(not(unix))]
pub(super) use other::WatchedSocket;

/// A runtime of tokio with I/O and time enabled.
#[derive(Clone, Debug)]
pub struct TokioRuntime(Handle);

impl TokioRuntime {
    /// The runtime of this handle.
    pub fn new(handle: Handle) -> Self {
        Self(handle)
    }

    /// The runtime that this is called in, if any.
    pub fn current() -> Option<Self> {
        Handle::try_current().ok().map(Self)
    }
}

impl Runtime for TokioRuntime {
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.0.spawn(task);
    }

    fn new_timer(&self) -> Box<dyn AsyncTimer> {
        Box::new(Timer::new(self.0.clone()))
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        let _context = self.0.enter();
        Ok(Arc::new(KernelSocket::new(WatchedSocket::new(socket)?)?))
    }
}

#[cfg(unix)]
mod unix {
    use super::{Context, Poll, Readiness, UdpSocket, io};
    use std::os::fd::{AsFd, OwnedFd};
    use std::sync::{Mutex, PoisonError};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// A UDP socket in the reactor of tokio's runtime.
    #[derive(Debug)]
    pub(in crate::runtime) struct WatchedSocket {
        socket: AsyncFd<UdpSocket>,
        /// The socket once more, watched for room, while a send waits for some.
        full: Mutex<Option<AsyncFd<OwnedFd>>>,
    }

    impl WatchedSocket {
        /// Watches `socket`, which does not block. To be called within a tokio runtime.
        #[expect(
            deprecated,
            reason = "safe for a UdpSocket, which keeps the safety rules of I/O; the successor is not"
        )]
        pub(in crate::runtime) fn new(socket: UdpSocket) -> io::Result<Self> {
            let socket = AsyncFd::with_interest(socket, Interest::READABLE)?;
            Ok(Self { socket, full: Mutex::default() })
        }

        #[expect(
            deprecated,
            reason = "safe for an OwnedFd, which keeps the safety rules of I/O; the successor is not"
        )]
        fn watch_for_room(&self) -> io::Result<()> {
            let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
            if full.is_none() {
                let copy = self.socket().as_fd().try_clone_to_owned()?;
                *full = Some(AsyncFd::with_interest(copy, Interest::WRITABLE)?);
            }
            Ok(())
        }
    }

    impl Readiness for WatchedSocket {
        fn socket(&self) -> &UdpSocket {
            self.socket.get_ref()
        }

        fn poll_readable(&self, context: &mut Context<'_>) -> Poll<()> {
            self.socket.poll_read_ready(context).map(|_error_shows_at_the_call| ())
        }

        fn try_receive(&self, receive: &mut dyn FnMut(&UdpSocket) -> io::Result<()>) -> io::Result<()> {
            self.socket.try_io(Interest::READABLE, receive)
        }

        fn poll_writable(&self, context: &mut Context<'_>) -> Poll<()> {
            let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
            if full.as_ref().is_some_and(|watched| watched.poll_write_ready(context).is_pending()) {
                return Poll::Pending;
            }
            *full = None;
            Poll::Ready(())
        }

        fn try_send(&self, send: &mut dyn FnMut(&UdpSocket) -> io::Result<()>) -> io::Result<()> {
            let result = send(self.socket());
            if matches!(&result, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
                self.watch_for_room()?;
            }
            result
        }
    }
}

#[cfg(not(unix))]
mod other {
    use super::{Context, Poll, Readiness, UdpSocket, io};
    use tokio::io::Interest;

    /// A UDP socket in the reactor of tokio's runtime.
    #[derive(Debug)]
    pub(in crate::runtime) struct WatchedSocket {
        watched: tokio::net::UdpSocket,
        socket: UdpSocket,
    }

    impl WatchedSocket {
        /// Watches `socket`, which does not block. To be called within a tokio runtime.
        pub(in crate::runtime) fn new(socket: UdpSocket) -> io::Result<Self> {
            Ok(Self { watched: tokio::net::UdpSocket::from_std(socket.try_clone()?)?, socket })
        }
    }

    impl Readiness for WatchedSocket {
        fn socket(&self) -> &UdpSocket {
            &self.socket
        }

        fn poll_readable(&self, context: &mut Context<'_>) -> Poll<()> {
            self.watched.poll_recv_ready(context).map(|_error_shows_at_the_call| ())
        }

        fn try_receive(&self, receive: &mut dyn FnMut(&UdpSocket) -> io::Result<()>) -> io::Result<()> {
            self.watched.try_io(Interest::READABLE, || receive(&self.socket))
        }

        fn poll_writable(&self, context: &mut Context<'_>) -> Poll<()> {
            self.watched.poll_send_ready(context).map(|_error_shows_at_the_call| ())
        }

        fn try_send(&self, send: &mut dyn FnMut(&UdpSocket) -> io::Result<()>) -> io::Result<()> {
            self.watched.try_io(Interest::WRITABLE, || send(&self.socket))
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};
    use std::time::Duration;

    /// A waker that counts how often it was called.
    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn pair() -> (WatchedSocket, UdpSocket) {
        let (ours, theirs) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        ours.set_nonblocking(true).unwrap();
        ours.connect(theirs.local_addr().unwrap()).unwrap();
        theirs.connect(ours.local_addr().unwrap()).unwrap();
        (WatchedSocket::new(ours).unwrap(), theirs)
    }

    #[tokio::test]
    async fn what_leaves_wakes_nobody_and_what_arrives_does() {
        let (ours, theirs) = pair();
        let counter = Arc::new(Counter::default());
        let waker = Waker::from(Arc::clone(&counter));
        let mut context = Context::from_waker(&waker);
        assert!(ours.poll_writable(&mut context).is_ready());
        assert!(ours.poll_readable(&mut context).is_pending());
        for _ in 0..10 {
            ours.try_send(&mut |socket| socket.send(&[1; 1_000]).map(drop)).unwrap();
            theirs.recv(&mut [0; 1_000]).unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(counter.0.load(Ordering::Relaxed), 0);
        theirs.send(&[2]).unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(counter.0.load(Ordering::Relaxed), 1);
        assert!(ours.poll_readable(&mut context).is_ready());
    }

    #[tokio::test]
    async fn a_send_that_finds_no_room_is_told_of_some_once() {
        let (ours, _theirs) = pair();
        let refused = ours.try_send(&mut |_| Err(io::ErrorKind::WouldBlock.into()));
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let mut context = Context::from_waker(Waker::noop());
        assert!(ours.poll_writable(&mut context).is_pending(), "the reactor has not said so yet");
        let ready = std::future::poll_fn(|context| ours.poll_writable(context));
        tokio::time::timeout(Duration::from_secs(5), ready).await.unwrap();
        assert!(ours.poll_writable(&mut context).is_ready(), "watched no more");
    }
}
