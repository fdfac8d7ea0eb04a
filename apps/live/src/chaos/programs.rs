//! The programs at both ends.

use super::event::Line;
use super::network::{Network, SERVER};
use super::stream::Gaps;
use crate::error::{LiveError, cannot};
use crate::nginx::identity_of;
use hvq_emulation::tun::program::Program;
use hvq_scheduler::Policy;
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Programs have so long to start.
pub(super) const START: Duration = Duration::from_secs(20);
/// The interval at which a file is looked at.
const STEP: Duration = Duration::from_millis(5);
/// The port of servers.
const PORT: u16 = 8_443;
/// The address on which the proxy listens.
const PROXY: &str = "127.0.0.1:3128";

/// The C examples, compiled.
#[derive(Clone, Debug)]
pub struct Examples {
    /// The folder with the programs `echo` and `requests`.
    pub folder: PathBuf,
}

/// The programs of a try.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'a> {
    pub(super) hvq: &'a Path,
    pub(super) policy: Policy,
    /// A folder of its own.
    pub(super) folder: &'a Path,
    pub(super) network: &'a Network,
}

/// The C example that asks.
#[derive(Debug)]
pub(super) struct RequestProgram {
    program: Program,
    output: PathBuf,
}

/// The choice of a proxy's paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Paths {
    /// Both are named.
    Named,
    /// They follow the links, unasked.
    Links,
}

/// The end that runs a program.
#[derive(Clone, Copy)]
enum End {
    Near,
    Far,
}

impl Pair<'_> {
    /// Starts a gateway at the far end and a proxy with `paths` at the near end; returns both, and where the proxy listens.
    ///
    /// # Errors
    /// One of them does not start.
    pub(super) fn proxy(&self, paths: Paths) -> Result<([Program; 2], SocketAddr), LiveError> {
        let Self { hvq, policy, folder, .. } = self;
        let hvq = hvq.display();
        let root = folder.join("root");
        fs::create_dir(&root).map_err(cannot("make a folder"))?;
        fs::write(root.join("small"), [b'.'; 100]).map_err(cannot("write a file"))?;
        let [chain, key] = self.identity()?;
        let listen: String = [Line::Wifi.far(), Line::Cell.far(), SERVER]
            .map(|address| format!(" --listen {address}:{PORT}"))
            .concat();
        let gateway = self.start(
            End::Far,
            "gateway",
            &format!(
                "'{hvq}' -q gateway --json --cert '{}' --key '{}' --root '{}' --scheduler {policy}{listen}",
                chain.display(),
                key.display(),
                root.display()
            ),
        )?;
        let path = |line: Line| format!(" --path '{}={}>{}:{PORT}'", line.device(), line.near(), line.far());
        let (paths, server) = match paths {
            Paths::Named => (Line::ALL.map(path).concat(), Line::Wifi.far()),
            Paths::Links => (String::new(), SERVER),
        };
        let proxy = self.start(
            End::Near,
            "proxy",
            &format!(
                "'{hvq}' -q proxy --json --insecure --listen {PROXY} --gateway {server}:{PORT} --scheduler {policy}{paths}"
            ),
        )?;
        Ok(([gateway, proxy], PROXY.parse().expect("an address")))
    }

    /// Starts the C example `echo` at the far end, and `requests` at the near end, which asks for `time`; returns the server, the
    /// client and when the client had its first answer.
    ///
    /// # Errors
    /// One of them does not start.
    pub(super) fn examples(
        &self,
        examples: &Examples,
        time: Duration,
    ) -> Result<(Program, RequestProgram, Instant), LiveError> {
        let [chain, key] = self.identity()?;
        let program = |name: &str| examples.folder.join(name).display().to_string();
        let listen: String = Line::ALL.map(|line| format!(" {}:{PORT}", line.far())).concat();
        let (chain, key) = (chain.display(), key.display());
        let server =
            self.start(End::Far, "echo", &format!("'{}' server '{chain}' '{key}'{listen}", program("echo")))?;
        let paths: String =
            Line::ALL.map(|line| format!(" {}:0 {}:{PORT}", line.near(), line.far())).concat();
        let Self { policy, .. } = self;
        let milliseconds = time.as_millis();
        let command = format!("'{}' '{chain}' {policy} {milliseconds}{paths}", program("requests"));
        let program = self.start(End::Near, "requests", &command)?;
        Ok((server, RequestProgram { program, output: self.folder.join("requests") }, Instant::now()))
    }

    fn identity(&self) -> Result<[PathBuf; 2], LiveError> {
        identity_of("localhost", self.folder).map(|(files, _)| files)
    }

    /// Starts `command` and waits until it has printed something, into the file `name`.
    fn start(&self, end: End, name: &'static str, command: &str) -> Result<Program, LiveError> {
        let (output, errors) = (self.folder.join(name), self.folder.join(format!("{name}.errors")));
        let line = format!("exec {command} > '{}' 2> '{}'", output.display(), errors.display());
        let command = ["sh", "-c", &line].map(OsString::from);
        let namespaces = self.network.namespaces();
        let program = match end {
            End::Near => namespaces.run(&command),
            End::Far => namespaces.serve(&command),
        };
        let program = program.map_err(cannot("start a program"))?;
        let start = Instant::now();
        while fs::metadata(&output).map_or(0, |file| file.len()) == 0 {
            if start.elapsed() > START || !program.is_running() {
                let said = fs::read_to_string(&errors).unwrap_or_default();
                let last = said.lines().last().unwrap_or("it says nothing");
                return Err(LiveError::Program { program: name, says: format!("it did not start: {last}") });
            }
            std::thread::sleep(STEP);
        }
        Ok(program)
    }
}

impl RequestProgram {
    /// Waits for its end, and reads when its answers came.
    ///
    /// # Errors
    /// It failed, or printed something else.
    pub(super) fn gaps(self, time: Duration) -> Result<Gaps, LiveError> {
        self.program.wait().map_err(cannot("wait for a program"))?;
        let text = fs::read_to_string(&self.output).map_err(cannot("read what a program printed"))?;
        let answers: Result<Vec<u64>, _> = text.lines().map(str::parse).collect();
        let answers = answers
            .map_err(|_| LiveError::Program { program: "requests", says: "it prints no times".to_owned() })?;
        let answers: Vec<Duration> = answers.into_iter().map(Duration::from_micros).collect();
        Ok(Gaps::of(&answers, 0, time))
    }
}
