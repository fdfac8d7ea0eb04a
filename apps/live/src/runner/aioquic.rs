//! The 13 checks of aioquic's interop program against `hvq serve` and the endpoint.

use crate::network::RelayNetwork;
use crate::network::condition::{Condition, Trouble};
use crate::play::free_addresses;
use crate::program::{Ending, Program, RunningProgram, Sockets};
use crate::stage::Stage;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// The script that makes the checks.
const SCRIPT: &str = include_str!("../../peers/aioquic_checks.py");
/// Files that it asks for, by their sizes.
const FILES: [(&str, usize); 3] = [("small", 5000), ("5000000", 5_000_000), ("10000000", 10_000_000)];
/// Packets that the slow link holds: it loses none, as the one of TCP does not.
const QUEUE: usize = 1000;

/// The result of a check.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Checked {
    check: String,
    /// The letters that it is worth.
    letters: String,
    /// The letters that hvq earned.
    earned: String,
    /// The reason for which not all letters were earned.
    reason: Option<String>,
    /// A description of the check.
    what: String,
    /// aioquic's version.
    version: String,
}

impl Checked {
    /// Returns true if all letters were earned.
    pub(crate) fn passed(&self) -> bool {
        self.letters == self.earned
    }
}

/// The programs that take part.
#[derive(Clone, Debug)]
pub(crate) struct Cast {
    /// A Python with aioquic.
    pub(crate) python: OsString,
    /// The command hvq.
    pub(crate) hvq: OsString,
    /// The endpoint of the runner.
    pub(crate) endpoint: OsString,
}

/// Makes all checks.
///
/// # Errors
/// A server does not start, or the script fails otherwise than a check.
pub(crate) fn check(cast: &Cast) -> Result<Vec<Checked>> {
    let stage = Stage::empty()?;
    for (name, size) in FILES {
        std::fs::write(stage.path("www").join(name), vec![7; size])?;
    }
    let addresses = free_addresses(std::net::Ipv4Addr::LOCALHOST.into(), 3)?;
    let mut servers = vec![http3(cast, &stage, addresses[0])?];
    for (testcase, address) in [("transfer", addresses[1]), ("retry", addresses[2])] {
        servers.push(endpoint(cast, &stage, testcase, address)?);
    }
    for (server, address) in servers.iter_mut().zip(&addresses) {
        let started = server.wait_for_ports(&[*address])?;
        ensure!(started == Ending::Success, "a server does not know its test case");
    }
    let condition = Condition { queue: QUEUE, ..Condition::usual(Trouble::None) };
    let slow = RelayNetwork::start(&condition, &addresses[..1], 1)?;
    let ports = addresses.iter().chain(&slow.fronts).map(|address| address.port().to_string());
    let output = Command::new(&cast.python)
        .args(["-c", SCRIPT])
        .args(ports)
        .args([stage.path("certs/cert.pem"), stage.path("certs/priv.key")])
        .stdin(Stdio::null())
        .output()
        .context("cannot start Python")?;
    slow.stop();
    ensure!(output.status.success(), "the checks: {}", String::from_utf8_lossy(&output.stderr).trim());
    let text = String::from_utf8(output.stdout)?;
    text.lines().map(|line| serde_json::from_str(line).context(line.to_owned())).collect()
}

fn http3(cast: &Cast, stage: &Stage, address: SocketAddr) -> Result<RunningProgram> {
    let mut command = vec![cast.hvq.clone()];
    command.extend(["serve", "--early-data", "--listen"].map(OsString::from));
    command.push(address.to_string().into());
    for (option, path) in [("--cert", "certs/cert.pem"), ("--key", "certs/priv.key"), ("--root", "www")] {
        command.extend([option.into(), stage.path(path).into_os_string()]);
    }
    let program = Program { name: "hvq serve".to_owned(), command, sockets: Sockets::Each };
    program.start(&[], &stage.path("client"))
}

fn endpoint(cast: &Cast, stage: &Stage, testcase: &str, address: SocketAddr) -> Result<RunningProgram> {
    let variables = [
        ("ROLE", "server".into()),
        ("TESTCASE", testcase.into()),
        ("WWW", stage.path("www").into()),
        ("CERTS", stage.path("certs").into()),
        ("LISTEN", OsString::from(address.to_string())),
    ];
    let command = vec![cast.endpoint.clone()];
    let program = Program { name: "the endpoint".to_owned(), command, sockets: Sockets::Each };
    program.start(&variables, &stage.path("server"))
}

/// A row for each check, in Markdown, and below it why checks failed.
pub(crate) fn table(checks: &[Checked]) -> String {
    let mut text = String::from("| letter | check | what | result |\n| --- | --- | --- | --- |\n");
    for checked in checks {
        let Checked { check, letters, earned, what, .. } = checked;
        let result = match (checked.passed(), earned.as_str()) {
            (true, _) => "ok".to_owned(),
            (false, "") => "**FAIL**".to_owned(),
            (false, earned) => format!("**{earned} only**"),
        };
        writeln!(text, "| {letters} | {check} | {what} | {result} |").expect("a string takes all");
    }
    for Checked { check, reason, .. } in checks {
        if let Some(reason) = reason {
            writeln!(text, "\n{check}: {reason}").expect("a string takes all");
        }
    }
    text
}
