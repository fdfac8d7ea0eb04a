//! One command in a shell of `hvq run`, and what the channels did meanwhile.

use crate::error::{LiveError, cannot};
use serde::Deserialize;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The interval at which a shell is looked at.
const STEP: Duration = Duration::from_millis(5);

/// A shell that is to be run.
#[derive(Clone, Debug)]
pub struct Shell {
    /// The program `hvq`.
    pub hvq: PathBuf,
    /// Options of `hvq run`: the channels, and how packets get over them.
    pub options: Vec<String>,
    /// The command line at the far end.
    pub server: String,
    /// The command line at the near end.
    pub command: String,
    /// Tells whether a line is written about each packet.
    pub packets: Packets,
}

/// Tells whether packets are logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packets {
    /// A line about each.
    Logged,
    /// None.
    Counted,
}

/// A shell that runs. Dropping it ends everything in it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    folder: PathBuf,
}

/// The results of a shell.
#[derive(Debug)]
pub struct Ended {
    /// The output of the command.
    pub output: String,
    /// The report on the channels.
    pub report: Report,
    /// The log of packets, if there is one.
    pub packets: PathBuf,
}

/// The report of `hvq run --report`.
#[derive(Clone, Debug, Deserialize)]
pub struct Report {
    /// The exit code of the command.
    pub exit: u8,
    /// The channels.
    pub channels: Vec<Channel>,
    /// The lateness of packets that left the model, in milliseconds.
    pub lateness_ms: Lateness,
    /// True if the run is to be trusted.
    pub trusted: bool,
}

/// The report on a channel.
#[derive(Clone, Debug, Deserialize)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// From the near end.
    pub up: Link,
    /// To the near end.
    pub down: Link,
}

/// The report on a channel in one direction.
#[derive(Clone, Debug, Deserialize)]
pub struct Link {
    /// The packets that came out.
    pub left: Count,
}

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The lateness of packets that left the model, in milliseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Lateness {
    /// For 99 of 100.
    pub p99: f64,
    /// For all.
    pub max: f64,
}

impl Report {
    /// Bytes that came out of the channel called `name`, either way.
    pub fn bytes(&self, name: &str) -> u64 {
        let channels = self.channels.iter().filter(|channel| channel.name == name);
        channels.map(|channel| channel.up.left.bytes + channel.down.left.bytes).sum()
    }
}

impl Shell {
    /// Starts it; what it writes goes to files in `folder`, which is empty and lives as long. To be called by a thread that
    /// lives as long as the shell is to: the kernel ends the shell with it.
    ///
    /// # Errors
    /// `hvq` cannot be started. Failures in it are told when it has ended.
    pub fn start(&self, folder: &Path) -> Result<Running, LiveError> {
        let file = |name| File::create(folder.join(name)).map_err(cannot("make a file"));
        let mut command = Command::new(&self.hvq);
        command.arg("run").args(&self.options);
        command.args(["--parent", &std::process::id().to_string()]);
        command.arg("--report").arg(folder.join("report"));
        if self.packets == Packets::Logged {
            command.arg("--packets").arg(folder.join("packets"));
        }
        command.arg("--server").arg(&self.server).args(["--", "sh", "-c"]).arg(&self.command);
        command.stdin(Stdio::null()).stdout(file("output")?).stderr(file("errors")?);
        let child = command.spawn().map_err(cannot("start hvq run"))?;
        Ok(Running { child, folder: folder.to_owned() })
    }

    /// Runs it to its end, for at most `limit`.
    ///
    /// # Errors
    /// Returns the errors of [`Self::start`] and of [`Running::wait`].
    pub fn run(&self, folder: &Path, limit: Duration) -> Result<Ended, LiveError> {
        self.start(folder)?.wait(limit)
    }
}

impl Running {
    /// Returns true if it still runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end, for at most `limit`.
    ///
    /// # Errors
    /// It takes longer, or did not get as far as to run the command.
    pub fn wait(mut self, limit: Duration) -> Result<Ended, LiveError> {
        let start = Instant::now();
        let status: ExitStatus = loop {
            match self.child.try_wait().map_err(cannot("wait for hvq run"))? {
                Some(status) => break status,
                None if start.elapsed() > limit => {
                    return Err(self.failed(&format!("it did not end within {} s", limit.as_secs())));
                }
                None => thread::sleep(STEP),
            }
        };
        let read = |name| fs::read(self.folder.join(name)).unwrap_or_default();
        let report = serde_json::from_slice(&read("report"));
        let report = report.map_err(|_| self.failed(&status.to_string()))?;
        let output = String::from_utf8_lossy(&read("output")).into_owned();
        Ok(Ended { output, report, packets: self.folder.join("packets") })
    }

    /// The failure that `what` says, with the last line that the programs wrote.
    pub fn failed(&self, what: &str) -> LiveError {
        let errors = fs::read(self.folder.join("errors")).unwrap_or_default();
        let errors = String::from_utf8_lossy(&errors);
        let last = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
        LiveError::Program { program: "hvq run", says: format!("{what}: {last}") }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_hvq_run_is_read() {
        let text = r#"{"exit":3,"seconds":1.5,"channels":[{"name":"urllc",
            "up":{"entered":{"packets":2,"bytes":99},"left":{"packets":1,"bytes":60},"delay_ms":{}},
            "down":{"left":{"packets":2,"bytes":40}}}],
            "lateness_ms":{"min":0.0,"p99":0.4,"max":1.5},"trusted":true,"doubts":[]}"#;
        let report: Report = serde_json::from_str(text).unwrap();
        assert_eq!((report.exit, report.bytes("urllc"), report.bytes("embb")), (3, 100, 0));
        assert!(report.trusted && report.lateness_ms.p99 < report.lateness_ms.max);
    }

    #[test]
    fn a_shell_that_cannot_run_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let shell = Shell {
            hvq: "false".into(),
            options: Vec::new(),
            server: "true".to_owned(),
            command: "true".to_owned(),
            packets: Packets::Counted,
        };
        let error = shell.run(folder.path(), Duration::from_secs(10)).unwrap_err();
        assert!(error.to_string().contains("says nothing"), "{error}");
    }
}
