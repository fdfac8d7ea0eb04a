//! Signals to a service.

use std::io;
#[cfg(unix)]
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// The request that a signal makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Signal {
    /// SIGHUP: read the configuration again.
    Reload,
    /// SIGTERM or SIGINT: stop.
    Stop,
}

/// The signals of this process.
#[cfg(unix)]
pub(super) struct Signals {
    reload: Stream,
    terminate: Stream,
    interrupt: Stream,
}

#[cfg(unix)]
impl Signals {
    /// From now on signals are taken here.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            reload: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// The next signal.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.reload.recv() => Signal::Reload,
            _ = self.terminate.recv() => Signal::Stop,
            _ = self.interrupt.recv() => Signal::Stop,
        }
    }

    /// Waits for a signal to stop.
    pub(super) async fn second(&mut self) {
        while self.next().await != Signal::Stop {}
    }
}

/// Ctrl-C, where there is nothing else.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    /// From now on Ctrl-C is taken here.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// The next Ctrl-C.
    pub(super) async fn next(&mut self) -> Signal {
        let _pressed = tokio::signal::ctrl_c().await;
        Signal::Stop
    }

    /// Waits for Ctrl-C.
    pub(super) async fn second(&mut self) {
        self.next().await;
    }
}
