//! The programs that play client and server: each is told everything by environment variables, as the runner does it.

use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::File;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The exit code that means that a test case is not supported.
const UNSUPPORTED: i32 = 127;
/// The time that a server may take to start.
const START: Duration = Duration::from_secs(20);
/// The interval at which a process is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// An implementation.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Its name.
    pub(crate) name: String,
    /// The command that starts it, arguments included.
    pub(crate) command: Vec<OsString>,
    /// The sockets on which its server listens.
    pub(crate) sockets: Sockets,
}

/// The sockets on which a server with two addresses listens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sockets {
    /// It listens on both, which it is told.
    Each,
    /// It listens on one, to which the network brings what is sent to either.
    One,
}

/// A process that is ended when this is dropped.
#[derive(Debug)]
pub(crate) struct RunningProgram(Child);

/// The end of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// It did what it was to do.
    Success,
    /// It does not know the test case.
    Unsupported,
}

impl Program {
    /// Starts it with these environment variables, and its output in files of `logs`.
    ///
    /// # Errors
    /// There is no such program.
    pub(crate) fn start(&self, variables: &[(&str, OsString)], logs: &Path) -> Result<RunningProgram> {
        let (program, arguments) = self.command.split_first().context("an empty command")?;
        let mut command = Command::new(program);
        command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
        command.env("SSLKEYLOGFILE", logs.join("keys.log")).env("QLOGDIR", logs.join("qlog"));
        command.stdin(Stdio::null()).stdout(File::create(logs.join("stdout.txt"))?);
        command.stderr(File::create(logs.join("stderr.txt"))?);
        std::fs::create_dir_all(logs.join("qlog"))?;
        let child = command.spawn().with_context(|| format!("cannot start {}", self.name))?;
        Ok(RunningProgram(child))
    }
}

impl RunningProgram {
    /// Waits until it holds the UDP ports at `addresses`.
    ///
    /// # Errors
    /// It ended, or it does not come to that.
    pub(crate) fn wait_for_ports(&mut self, addresses: &[std::net::SocketAddr]) -> Result<Ending> {
        let started = Instant::now();
        while started.elapsed() < START {
            if let Some(status) = self.0.try_wait()? {
                return ending(status);
            }
            if addresses.iter().all(|address| UdpSocket::bind(address).is_err()) {
                return Ok(Ending::Success);
            }
            std::thread::sleep(GLANCE);
        }
        bail!("it does not listen")
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It failed, or it takes longer than `limit`.
    pub(crate) fn wait(&mut self, limit: Duration) -> Result<Ending> {
        let started = Instant::now();
        while started.elapsed() < limit {
            if let Some(status) = self.0.try_wait()? {
                return ending(status);
            }
            std::thread::sleep(GLANCE);
        }
        bail!("not done after {} s", limit.as_secs())
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn ending(status: ExitStatus) -> Result<Ending> {
    match status.code() {
        Some(0) => Ok(Ending::Success),
        Some(UNSUPPORTED) => Ok(Ending::Unsupported),
        _ => bail!("it ended with {status}"),
    }
}
