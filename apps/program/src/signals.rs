//! The signals that ask a program to end, or to read its configuration again.

use crate::failure::{Exit, Failure, OrFail};
use std::io;

/// The request that a signal makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGINT, as of Ctrl-C, or SIGTERM: stop. The exit code says which.
    Stop(Exit),
}

/// SIGINT, as of Ctrl-C, and SIGTERM, and SIGHUP for services. From the first one of these on they no longer end the program by
/// themselves.
#[cfg(unix)]
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// Services only: SIGHUP ends other programs.
    reload: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    /// From now on SIGINT and SIGTERM are taken here.
    ///
    /// # Errors
    /// The system permits no handlers ([`Exit::Runtime`]).
    pub fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let taken: io::Result<Self> = (|| {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                reload: None,
            })
        })();
        taken.or_fail(Exit::Runtime, || "cannot wait for signals".to_owned())
    }

    /// From now on SIGINT, SIGTERM and SIGHUP are taken here.
    ///
    /// # Errors
    /// The system permits no handlers ([`Exit::Runtime`]).
    pub fn of_service() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let reload = signal(SignalKind::hangup());
        let reload = reload.or_fail(Exit::Runtime, || "cannot wait for signals".to_owned())?;
        Ok(Self { reload: Some(reload), ..Self::new()? })
    }

    /// Waits for the next signal to stop; the exit code says which.
    pub async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        }
    }

    /// Waits for the next signal.
    pub async fn request(&mut self) -> Request {
        let Some(reload) = &mut self.reload else { return Request::Stop(self.next().await) };
        tokio::select! {
            _ = reload.recv() => Request::Reload,
            _ = self.interrupt.recv() => Request::Stop(Exit::Interrupted),
            _ = self.terminate.recv() => Request::Stop(Exit::Terminated),
        }
    }
}

/// Ctrl-C, where there is nothing else.
#[cfg(not(unix))]
pub struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// From now on Ctrl-C is taken here.
    ///
    /// # Errors
    /// None.
    pub fn new() -> Result<Self, Failure> {
        Ok(Self)
    }

    /// From now on Ctrl-C is taken here.
    ///
    /// # Errors
    /// None.
    pub fn of_service() -> Result<Self, Failure> {
        Self::new()
    }

    /// Waits for Ctrl-C.
    pub async fn next(&mut self) -> Exit {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Exit::Interrupted,
            // Without a handler the system's own ends the program.
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits for Ctrl-C.
    pub async fn request(&mut self) -> Request {
        Request::Stop(self.next().await)
    }
}
