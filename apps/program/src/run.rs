//! Programs behind emulated channels (`hvq run`): they are started, and what the channels did is told to people and programs.

use crate::channels::{heading, link, row, summary};
use crate::duration::milliseconds;
use crate::failure::{Exit, Failure, OrFail};
use crate::output::Console;
use hvq_emulation::tun::emulator::{Confidence, Report};
use hvq_emulation::tun::outside::{self, PortForwards};
use hvq_emulation::tun::program::{self, Program};
use hvq_emulation::tun::shell::{NamespacePair, ShellError};
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::time::Duration;

/// The time that a server may take until it listens.
const SERVER_LIMIT: Duration = Duration::from_secs(10);

/// A table for people, and whether to believe it.
pub fn table(report: &Report) -> String {
    let mut lines = vec![heading()];
    for channel in &report.channels {
        for (way, link) in [("up", &channel.up), ("down", &channel.down)] {
            lines.push(row(&channel.name, way, report.elapsed, link));
        }
    }
    let lateness = report.lateness;
    lines.push(format!(
        "lateness p50 {} p99 {} max {}: {}",
        milliseconds(lateness.p50),
        milliseconds(lateness.p99),
        milliseconds(lateness.max),
        report.confidence()
    ));
    if report.unlogged > 0 {
        lines.push(format!("{} packets are missing in the packet log", report.unlogged));
    }
    lines.join("\n")
}

/// One object for programs; the command ended with `code`.
pub fn json(report: &Report, code: u8) -> String {
    let channels = report
        .channels
        .iter()
        .map(|channel| json!({ "name": channel.name, "up": link(&channel.up), "down": link(&channel.down) }));
    let reasons = match report.confidence() {
        Confidence::Trusted => Vec::new(),
        Confidence::NotTrusted(reasons) => reasons,
    };
    let object = json!({
        "exit": code,
        "seconds": report.elapsed.as_secs_f64(),
        "channels": channels.collect::<Vec<_>>(),
        "lateness_ms": summary(&report.lateness),
        "trusted": reasons.is_empty(),
        "doubts": reasons,
        "unsent_packets": report.unsent.packets,
        "unread_packets": report.unread,
        "unlogged_packets": report.unlogged,
    });
    format!("{object}\n")
}

/// Converts an error of a shell into a failure: the arguments are at fault, or else the system.
pub fn refused(error: &ShellError) -> Failure {
    let exit = match error {
        ShellError::Trace(_) => Exit::Usage,
        ShellError::System(..) => Exit::Runtime,
    };
    Failure::new(exit, error.to_string())
}

/// The programs of a run, and how they meet the channels.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The command at the near end.
    pub command: Vec<OsString>,
    /// A command line for the shell, run at the far end; the command starts when it listens for TCP connections.
    pub server: Option<OsString>,
    /// The ports of addresses outside that the command reaches; none by default.
    pub outside: Vec<u16>,
    /// The connections of the programs.
    pub connections: Connections,
}

/// The connections of programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connections {
    /// They ask for TCP, and get it.
    Tcp,
    /// They ask for TCP, and get MPTCP (by `mptcpize`).
    Mptcp,
}

impl Programs {
    /// Runs the server, if there is one, and the command, and returns the exit code of the command.
    ///
    /// # Errors
    /// A program cannot be started, or the server ends before it listens ([`Exit::Runtime`]).
    pub fn run(&self, namespaces: &NamespacePair, console: Console) -> Result<u8, Failure> {
        let command = self.wrapped(&self.command, console);
        // First, because the forwards listen as well.
        let server = self.server.as_ref().map(|line| self.serve(namespaces, line, console)).transpose()?;
        if !self.outside.is_empty() {
            let forwards = PortForwards::open(namespaces.far(), &self.outside)
                .or_fail(Exit::Runtime, || "--outside".to_owned())?;
            let resolver = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
            std::thread::spawn(move || forward_ports(forwards, outside::resolver_in(&resolver)));
        }
        let program =
            namespaces.run(&command).or_fail(Exit::Runtime, || "cannot start the command".to_owned())?;
        program.pass_signals()?;
        let code = program.wait()?;
        drop(server);
        Ok(code)
    }

    /// Starts the server, and waits until it listens.
    fn serve(&self, namespaces: &NamespacePair, line: &OsStr, console: Console) -> Result<Program, Failure> {
        let command = [OsString::from("sh"), OsString::from("-c"), line.to_owned()];
        let command = self.wrapped(&command, Console::Quiet);
        let server =
            namespaces.serve(&command).or_fail(Exit::Runtime, || "cannot start the server".to_owned())?;
        let listens = program::wait_for_listener(namespaces.far(), &server, SERVER_LIMIT)?;
        match (listens, server.is_running()) {
            (true, _) => {}
            (false, true) => {
                console.say(format!(
                    "hvq: warning: the server listens for no TCP connection after {SERVER_LIMIT:?}"
                ));
            }
            (false, false) => {
                let code = server.wait()?;
                return Err(Failure::new(Exit::Runtime, format!("the server ended with exit code {code}")));
            }
        }
        Ok(server)
    }

    /// The command, with what makes its TCP connections MPTCP connections if they are to be.
    fn wrapped(&self, command: &[OsString], console: Console) -> Vec<OsString> {
        if self.connections == Connections::Tcp {
            return command.to_vec();
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        if std::env::split_paths(&path).any(|folder| folder.join("mptcpize").is_file()) {
            let prefix = ["mptcpize", "run"].map(OsString::from);
            return prefix.into_iter().chain(command.iter().cloned()).collect();
        }
        console.say(
        "without mptcpize only programs that ask for MPTCP themselves use both channels (package mptcpize)",
    );
        command.to_vec()
    }
}

/// Lets connections out until this program ends.
fn forward_ports(forwards: PortForwards, resolver: Option<SocketAddr>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let served = runtime.and_then(|runtime| runtime.block_on(forwards.serve(resolver)));
    if let Err(error) = served {
        tracing::warn!(%error, "nothing outside can be reached");
    }
}
