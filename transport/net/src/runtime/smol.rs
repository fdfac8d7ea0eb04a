//! The runtime of smol, and UDP sockets in its reactor.
//!
//! Its reactor tells of one event for each time that somebody asks. So sockets remember that they were empty or full, and nobody asks
//! the reactor, nor the kernel, as long as they are not.

use super::{AsyncTimer, AsyncUdpSocket, KernelSocket, Readiness, Runtime};
use smol::{Async, Timer};
use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Instant;

/// The global executor of smol, and its reactor.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SmolRuntime;

impl Runtime for SmolRuntime {
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        smol::spawn(task).detach();
    }

    fn new_timer(&self) -> Box<dyn AsyncTimer> {
        Box::new(SmolTimer::default())
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Ok(Arc::new(KernelSocket::new(SmolSocket::new(socket)?)?))
    }
}

/// A timer of smol's reactor.
#[derive(Debug, Default)]
struct SmolTimer {
    timer: Option<Timer>,
    at: Option<Instant>,
}

impl AsyncTimer for SmolTimer {
    fn poll(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = Instant::now();
            if deadline <= now {
                return Poll::Ready(());
            }
            // Set to an earlier time, it stays so: waking once too often is cheaper than setting it for every packet.
            let is_set = self.at.is_some_and(|at| now < at && at <= deadline);
            let timer = self.timer.get_or_insert_with(Timer::never);
            if !is_set {
                timer.set_at(deadline);
                self.at = Some(deadline);
            }
            ready!(Pin::new(timer).poll(context));
            self.at = None;
        }
    }
}

/// A UDP socket in the reactor.
#[derive(Debug)]
struct SmolSocket {
    socket: Async<UdpSocket>,
    /// Nothing was there, and the reactor has not told of anything since.
    is_empty: AtomicBool,
    /// There was no room, and the reactor has not told of any since.
    is_full: AtomicBool,
}

impl SmolSocket {
    fn new(socket: UdpSocket) -> io::Result<Self> {
        Ok(Self {
            socket: Async::new(socket)?,
            is_empty: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
        })
    }
}

/// Calls `call` unless `blocks` says that it would block, and has it say so if it did.
fn unless(
    blocks: &AtomicBool,
    socket: &UdpSocket,
    call: &mut dyn FnMut(&UdpSocket) -> io::Result<()>,
) -> io::Result<()> {
    if blocks.load(Ordering::Relaxed) {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let result = call(socket);
    if matches!(&result, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
        blocks.store(true, Ordering::Relaxed);
    }
    result
}

impl Readiness for SmolSocket {
    fn socket(&self) -> &UdpSocket {
        self.socket.get_ref()
    }

    fn poll_readable(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_empty.load(Ordering::Relaxed) {
            let _error_shows_at_the_call = ready!(self.socket.poll_readable(context));
            self.is_empty.store(false, Ordering::Relaxed);
        }
        Poll::Ready(())
    }

    fn try_receive(&self, receive: &mut dyn FnMut(&UdpSocket) -> io::Result<()>) -> io::Result<()> {
        unless(&self.is_empty, self.socket(), receive)
    }

    fn poll_writable(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.is_full.load(Ordering::Relaxed) {
            let _error_shows_at_the_call = ready!(self.socket.poll_writable(context));
            self.is_full.store(false, Ordering::Relaxed);
        }
        Poll::Ready(())
    }

    fn try_send(&self, send: &mut dyn FnMut(&UdpSocket) -> io::Result<()>) -> io::Result<()> {
        unless(&self.is_full, self.socket(), send)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::time::Duration;

    #[test]
    fn deadlines_are_met_and_never_early_whether_they_move_or_not() {
        smol::block_on(async {
            let mut timer = SmolRuntime.new_timer();
            let started = Instant::now();
            for (first, then) in [(3, 3), (5_000, 4), (20, 60)] {
                let (first, then) = (Duration::from_millis(first), Duration::from_millis(then));
                let begun = Instant::now();
                let _pending = poll_fn(|context| Poll::Ready(timer.poll(begun + first, context))).await;
                poll_fn(|context| timer.poll(begun + then, context)).await;
                assert!(begun.elapsed() >= then);
            }
            // Generous, because the machine may be busy.
            assert!(started.elapsed() < Duration::from_secs(1));
        });
    }

    #[test]
    fn an_empty_socket_is_not_asked_again_before_something_arrives() {
        let (ours, theirs) =
            (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let address = ours.local_addr().unwrap();
        let ours = SmolSocket::new(ours).unwrap();
        let mut calls = 0;
        for _ in 0..3 {
            let blocked = ours.try_receive(&mut |socket| {
                calls += 1;
                socket.recv(&mut [0; 10]).map(drop)
            });
            assert_eq!(blocked.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
        assert_eq!(calls, 1);
        theirs.send_to(b"x", address).unwrap();
        smol::block_on(poll_fn(|context| ours.poll_readable(context)));
        ours.try_receive(&mut |socket| socket.recv(&mut [0; 10]).map(drop)).unwrap();
    }

    #[test]
    fn a_full_socket_is_tried_again_once_there_is_room() {
        let ours = SmolSocket::new(UdpSocket::bind("127.0.0.1:0").unwrap()).unwrap();
        let blocked = ours.try_send(&mut |_| Err(io::ErrorKind::WouldBlock.into()));
        assert_eq!(blocked.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(ours.try_send(&mut |_| Ok(())).is_err(), "nobody said that there is room");
        smol::block_on(poll_fn(|context| ours.poll_writable(context)));
        ours.try_send(&mut |_| Ok(())).unwrap();
    }
}
