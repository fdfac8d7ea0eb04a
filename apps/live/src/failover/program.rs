//! Both ends by the program of rivals, each a process in its namespace, and the lines that they print.
//!
//! The program prints one object of JSON on a line; times are those of CLOCK_MONOTONIC in nanoseconds. A process ends when its
//! standard input does, and then tells what it has seen.

use super::contender::Rival;
use super::observed::{Account, Observed};
use super::{Certificate, NAME, START};
use crate::chaos::event::Line;
use crate::chaos::network::{Network, SERVER};
use crate::error::{LiveError, cannot};
use hvq_emulation::tun::namespace::Namespace;
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// The port of the server.
const PORT: u16 = 4_433;
/// Bytes of a line at most: a thousand times are twenty thousand bytes.
const LONGEST: u64 = 1 << 20;
/// Lines that wait to be read.
const WAITING: usize = 64;

/// A line of the program.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", deny_unknown_fields)]
enum Said {
    /// The server listens.
    Ready,
    /// Each load of the client had an answer.
    Begun,
    /// Something of a load arrived at these times.
    Arrived { load: Load, at: Vec<u64> },
    /// The peer acknowledged something that went over the link at these times.
    Acknowledged { link: String, at: Vec<u64> },
    /// The last line of a client: bytes of the download, and requests that ended without an answer.
    Played { delivered: u64, failures: u64 },
    /// The last line of a server: bytes that it sent for the download.
    Served { sent: u64 },
}

/// A load.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Load {
    Requests,
    Download,
    Datagrams,
}

/// A program that can be run, and which implementation it is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct RivalProgram<'a> {
    pub(super) path: &'a Path,
    pub(super) rival: Rival,
}

impl RivalProgram<'_> {
    /// Runs both ends, and `during` from the time on at which each load had an answer.
    ///
    /// # Errors
    /// One of them does not begin, or fails, or says what nobody understands.
    pub(super) fn play<T>(
        self,
        network: &Network,
        certificate: &Certificate,
        during: impl FnOnce() -> T,
    ) -> Result<(T, Account), LiveError> {
        let folder = tempfile::tempdir().map_err(cannot("make a folder"))?;
        let [chain, key] = ["chain.pem", "key.pem"].map(|name| folder.path().join(name));
        fs::write(&chain, &certificate.chain).map_err(cannot("write a certificate"))?;
        fs::write(&key, &certificate.key).map_err(cannot("write a key"))?;
        let files = ["--chain".as_ref(), chain.as_os_str(), "--key".as_ref(), key.as_os_str()];
        let mut server = self.start("server", network.namespaces().far(), &files)?;
        server.expect(&Said::Ready)?;
        let mut client = self.start("client", network.namespaces().near(), &files)?;
        client.expect(&Said::Begun)?;
        let outcome = during();
        let account = |said: Vec<Said>| Clock::now().observed(said);
        let observed = account(client.end()?).map_err(|says| client.problem(says))?;
        let [Said::Served { sent }] = server.end()?[..] else {
            return Err(server.problem("it does not say what it sent".to_owned()));
        };
        Ok((outcome, Account { observed, sent }))
    }

    fn start(
        &self,
        role: &'static str,
        namespace: &Namespace,
        files: &[&std::ffi::OsStr],
    ) -> Result<Peer, LiveError> {
        let errors = tempfile::tempfile().map_err(cannot("make a file"))?;
        let to = errors.try_clone().map_err(cannot("make a file"))?;
        let mut command = Command::new(self.path);
        command.args(["--implementation", self.rival.name(), "--role", role, "--name", NAME]);
        command.arg("--server").arg(format!("{SERVER}:{PORT}")).args(files);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(to);
        let child = namespace.within(|| command.spawn()).and_then(|child| child);
        let mut child = child.map_err(cannot("start the program of rivals"))?;
        let (sender, said) = sync_channel(WAITING);
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut lines = BufReader::new(output);
                // Nobody listens any more if the trial has failed.
                while let Some(line) = next(&mut lines) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Peer { role, child, said, errors })
    }
}

/// The next line; `None` after the last.
fn next(lines: &mut impl BufRead) -> Option<Result<Said, String>> {
    let mut line = Vec::new();
    match lines.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
        Ok(0) => None,
        Ok(_) if line.ends_with(b"\n") => {
            let said = serde_json::from_slice(&line);
            Some(said.map_err(|error| format!("a line that nobody understands: {error}")))
        }
        Ok(_) => Some(Err("a line without an end".to_owned())),
        Err(error) => Some(Err(error.to_string())),
    }
}

/// A process of the program; it is killed when this is dropped.
#[derive(Debug)]
struct Peer {
    role: &'static str,
    child: Child,
    said: Receiver<Result<Said, String>>,
    errors: File,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It has ended long since, unless the trial failed.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

impl Peer {
    fn problem(&self, says: String) -> LiveError {
        let mut text = String::new();
        let mut errors = &self.errors;
        // What it says is enough if the file cannot be read.
        let _read = errors.rewind().and_then(|()| errors.read_to_string(&mut text));
        let last = text.lines().last().map(|line| format!(": {line}")).unwrap_or_default();
        LiveError::Program { program: self.role, says: says + &last }
    }

    /// The next line until `deadline`; `None` after the last.
    fn hear(&self, deadline: Instant) -> Result<Option<Said>, LiveError> {
        match self.said.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(said) => said.map(Some).map_err(|says| self.problem(says)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(self.problem("it says nothing".to_owned())),
        }
    }

    fn expect(&self, wanted: &Said) -> Result<(), LiveError> {
        match self.hear(Instant::now() + START)? {
            Some(said) if said == *wanted => Ok(()),
            Some(other) => Err(self.problem(format!("it begins with {other:?}"))),
            None => Err(self.problem("it does not begin".to_owned())),
        }
    }

    /// Has it end, and hears what it says.
    fn end(&mut self) -> Result<Vec<Said>, LiveError> {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + START;
        let mut said = Vec::new();
        while let Some(line) = self.hear(deadline)? {
            said.push(line);
        }
        let status = self.child.wait().map_err(cannot("wait for the program of rivals"))?;
        if status.success() { Ok(said) } else { Err(self.problem(format!("it failed with {status}"))) }
    }
}

/// A reading of CLOCK_MONOTONIC, with the same time as this program knows it.
#[derive(Clone, Copy, Debug)]
struct Clock {
    instant: Instant,
    reading: Duration,
}

impl Clock {
    fn now() -> Self {
        let reading = clock_gettime(ClockId::Monotonic);
        // Neither is negative.
        let seconds = u64::try_from(reading.tv_sec).unwrap_or_default();
        let nanoseconds = u32::try_from(reading.tv_nsec).unwrap_or_default();
        Self { instant: Instant::now(), reading: Duration::new(seconds, nanoseconds) }
    }

    /// The times of readings in nanoseconds, in order.
    ///
    /// # Errors
    /// They are not in order, or not in the past.
    fn instants(self, readings: &[u64]) -> Result<Vec<Instant>, String> {
        let ago = |reading: &u64| self.reading.checked_sub(Duration::from_nanos(*reading));
        let instant = |reading| ago(reading).and_then(|ago| self.instant.checked_sub(ago));
        let instants: Option<Vec<Instant>> = readings.iter().map(instant).collect();
        let instants = instants.ok_or_else(|| "a time that is not in the past".to_owned())?;
        if instants.is_sorted() { Ok(instants) } else { Err("times that are not in order".to_owned()) }
    }

    /// Reads the lines of a client that has ended.
    ///
    /// # Errors
    /// A line of it is missing, or is none of a client that has ended.
    fn observed(self, said: Vec<Said>) -> Result<Observed, String> {
        let mut observed = Observed::default();
        let mut is_complete = false;
        for line in said {
            match line {
                Said::Arrived { load, at } => {
                    let arrivals = match load {
                        Load::Requests => &mut observed.requests,
                        Load::Download => &mut observed.download,
                        Load::Datagrams => &mut observed.datagrams,
                    };
                    arrivals.extend(self.instants(&at)?)?;
                }
                Said::Acknowledged { link, at } => {
                    let line = Line::ALL.into_iter().find(|line| line.device() == link);
                    let line = line.ok_or_else(|| format!("there is no link {link:?}"))?;
                    observed.acknowledged_over_mut(line).extend(self.instants(&at)?)?;
                }
                Said::Played { delivered, failures } if !is_complete => {
                    (observed.delivered, observed.failures) = (delivered, failures);
                    is_complete = true;
                }
                other => return Err(format!("it ends with {other:?}")),
            }
        }
        if is_complete { Ok(observed) } else { Err("it does not say what it received".to_owned()) }
    }
}

/// Checks that `path` is the program of rivals.
///
/// # Errors
/// It cannot be run, or is another program.
pub(super) fn check(path: &Path) -> io::Result<()> {
    let output = Command::new(path).arg("--version").stdin(Stdio::null()).output()?;
    if output.status.success() && output.stdout.starts_with(b"hvq-rivals ") {
        return Ok(());
    }
    Err(io::Error::other("it is not the program of rivals"))
}

#[cfg(test)]
mod tests;
