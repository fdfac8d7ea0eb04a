//! A timer that is late by some ten microseconds, not by a millisecond as tokio's.
//!
//! Pacing and the release of packets on a channel of 5 ms need that. Far deadlines are left to tokio until they are
//! near; near ones go to a timer of the kernel (timerfd, Linux). Elsewhere, near deadlines are as late as tokio is: up
//! to about 2 ms.

use super::AsyncTimer;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::time::Sleep;

/// Deadlines that are farther away are first left to tokio.
const NEAR: Duration = Duration::from_millis(4);

/// The time before the deadline at which tokio is to wake: its own lateness.
const MARGIN: Duration = Duration::from_millis(2);

/// The timer of a driver.
#[derive(Debug)]
pub(super) struct Timer {
    runtime: Handle,
    coarse: Option<Pin<Box<Sleep>>>,
    coarse_at: Option<Instant>,
    fine: Fineness,
    fine_at: Option<Instant>,
}

/// The timer of the kernel: most timers never need one.
#[derive(Debug)]
enum Fineness {
    /// No deadline was near yet.
    Unknown,
    /// It is there.
    Fine(fine::Fine),
    /// The system has none.
    Coarse,
}

impl Timer {
    /// A timer that is not set.
    pub(super) fn new(runtime: Handle) -> Self {
        Self { runtime, coarse: None, coarse_at: None, fine: Fineness::Unknown, fine_at: None }
    }

    /// The kernel's timer, made when it is first asked for.
    fn fine(&mut self) -> Option<&mut fine::Fine> {
        if matches!(self.fine, Fineness::Unknown) {
            let _context = self.runtime.enter();
            self.fine = match fine::Fine::new() {
                Ok(fine) => Fineness::Fine(fine),
                Err(error) => {
                    tracing::debug!(%error, "no timer of the kernel");
                    Fineness::Coarse
                }
            };
        }
        match &mut self.fine {
            Fineness::Fine(fine) => Some(fine),
            _ => None,
        }
    }

    /// Ready when the kernel's timer rang, at `deadline` at the latest.
    fn poll_fine(&mut self, deadline: Instant, now: Instant, context: &mut Context<'_>) -> Poll<()> {
        // Set to an earlier time, it stays so: waking once too often is cheaper than setting it for every packet.
        let is_set = self.fine_at.is_some_and(|at| now < at && at <= deadline);
        let Some(fine) = self.fine() else { return Poll::Ready(()) };
        if !is_set {
            if let Err(error) = fine.set(deadline.saturating_duration_since(now)) {
                tracing::debug!(%error, "the kernel's timer cannot be set");
                self.fine = Fineness::Coarse;
                return Poll::Ready(());
            }
            self.fine_at = Some(deadline);
        }
        if let Fineness::Fine(fine) = &mut self.fine {
            ready!(fine.poll(context));
        }
        self.fine_at = None;
        Poll::Ready(())
    }

    /// Ready when tokio's timer rang, about at `deadline` at the latest.
    fn poll_coarse(&mut self, deadline: Instant, now: Instant, context: &mut Context<'_>) -> Poll<()> {
        let is_set = self.coarse_at.is_some_and(|at| now < at && at <= deadline);
        let sleep = match &mut self.coarse {
            Some(sleep) => sleep,
            none => {
                let _context = self.runtime.enter();
                none.insert(Box::pin(tokio::time::sleep(NEAR)))
            }
        };
        if !is_set {
            sleep.as_mut().reset(tokio::time::Instant::now() + deadline.saturating_duration_since(now));
            self.coarse_at = Some(deadline);
        }
        ready!(sleep.as_mut().poll(context));
        self.coarse_at = None;
        Poll::Ready(())
    }
}

impl AsyncTimer for Timer {
    fn poll(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let now = Instant::now();
            if deadline <= now {
                return Poll::Ready(());
            }
            if deadline.duration_since(now) <= NEAR && self.fine().is_some() {
                ready!(self.poll_fine(deadline, now, context));
            } else {
                let margin = if matches!(self.fine, Fineness::Coarse) { Duration::ZERO } else { MARGIN };
                ready!(self.poll_coarse(deadline.checked_sub(margin).unwrap_or(deadline), now, context));
            }
        }
    }
}

#[cfg(target_os = "linux")]
mod fine {
    //! A timerfd.

    use rustix::fd::OwnedFd;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use std::io;
    use std::task::{Context, Poll, ready};
    use std::time::Duration;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// One timer of the kernel.
    #[derive(Debug)]
    pub(super) struct Fine {
        file: AsyncFd<OwnedFd>,
    }

    impl Fine {
        #[expect(
            deprecated,
            reason = "safe for an OwnedFd, which keeps the safety rules of I/O; the successor is not"
        )]
        pub(super) fn new() -> io::Result<Self> {
            let file =
                timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
            Ok(Self { file: AsyncFd::with_interest(file, Interest::READABLE)? })
        }

        /// Rings once after `delay`, and not at the time that was set before.
        pub(super) fn set(&mut self, delay: Duration) -> io::Result<()> {
            // Zero would mean never.
            let delay = delay.max(Duration::from_nanos(1));
            let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
            let value = Timespec::try_from(delay).map_err(io::Error::other)?;
            let value = Itimerspec { it_interval: zero, it_value: value };
            timerfd_settime(self.file.get_ref(), TimerfdTimerFlags::empty(), &value)?;
            Ok(())
        }

        /// Ready if it has rung since this was ready last.
        pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
            loop {
                let Ok(mut guard) = ready!(self.file.poll_read_ready(context)) else {
                    return Poll::Ready(());
                };
                let mut rings = [0; 8];
                if let Ok(_read) = guard.try_io(|file| Ok(rustix::io::read(file.get_ref(), &mut rings)?)) {
                    return Poll::Ready(());
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod fine {
    //! Not there.

    use std::io;
    use std::task::{Context, Poll};
    use std::time::Duration;

    /// No timer.
    #[derive(Debug)]
    pub(super) struct Fine;

    impl Fine {
        pub(super) fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn set(&mut self, _delay: Duration) -> io::Result<()> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) fn poll(&mut self, _context: &mut Context<'_>) -> Poll<()> {
            Poll::Ready(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    async fn lateness(delay: Duration) -> Duration {
        let mut timer = Timer::new(Handle::current());
        let deadline = Instant::now() + delay;
        poll_fn(|context| timer.poll(deadline, context)).await;
        Instant::now().checked_duration_since(deadline).expect("it is never early")
    }

    #[tokio::test]
    async fn near_and_far_deadlines_are_met_and_never_early() {
        for micros in [1, 300, 1700, 3900, 4100, 12_345] {
            let late = lateness(Duration::from_micros(micros)).await;
            // Generous, because the machine may be busy; typical is 0.1 ms.
            assert!(late < Duration::from_millis(100), "{micros} µs: {late:?} late");
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn most_near_deadlines_are_met_within_a_millisecond() {
        let mut late = Vec::new();
        for _ in 0..51 {
            late.push(lateness(Duration::from_micros(200)).await);
        }
        late.sort();
        assert!(late[25] < Duration::from_millis(1), "median {:?}", late[25]);
    }
}
