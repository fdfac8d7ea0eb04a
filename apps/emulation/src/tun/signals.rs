//! Passing signals on.

use std::io;
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

/// Signals that this process does not take for itself.
pub(crate) struct Signals {
    caught: SignalsInfo<WithOrigin>,
}

impl Signals {
    /// Catches them from now on. Programs that are started are not concerned: handlers end where a program begins.
    pub(crate) fn new() -> io::Result<Self> {
        let signals = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];
        Ok(Self { caught: SignalsInfo::new(signals)? })
    }

    /// Passes them on to `process`, on a thread of its own. Those of a terminal (Ctrl-C) are for all processes in its
    /// foreground, which have them already.
    pub(crate) fn pass_to(mut self, process: Pid) -> io::Result<()> {
        let pass = move || {
            for origin in self.caught.forever() {
                if origin.cause == Cause::Kernel {
                    continue;
                }
                let Ok(signal) = Signal::try_from(origin.signal) else { continue };
                if let Err(error) = kill(process, signal) {
                    tracing::debug!(%error, %signal, "a signal could not be passed on");
                }
            }
        };
        thread::Builder::new().name("hvq-signals".to_owned()).spawn(pass)?;
        Ok(())
    }
}
