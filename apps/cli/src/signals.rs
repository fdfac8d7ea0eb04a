//! The signals that ask a program to end.

use crate::failure::{Exit, Failure, OrFail};
use std::io;

/// SIGINT, as of Ctrl-C, and SIGTERM. From the first one of these on they no longer end the program by themselves.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// From now on signals are taken here.
    pub(crate) fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let taken: io::Result<Self> = (|| {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
            })
        })();
        taken.or_fail(Exit::Runtime, || "cannot wait for signals".to_owned())
    }

    /// Waits for the next one; the exit code that says which.
    pub(crate) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        }
    }
}

/// Ctrl-C, where there is nothing else.
#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// From now on Ctrl-C is taken here.
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self)
    }

    /// Waits for Ctrl-C.
    pub(crate) async fn next(&mut self) -> Exit {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Exit::Interrupted,
            // Without a handler the system's own ends the program.
            Err(_) => std::future::pending().await,
        }
    }
}
