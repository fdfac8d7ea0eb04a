//! Runs the program under test.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time that a run that is to end by itself may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The program, with nothing from the environment that changes what it does.
pub fn hvq() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hvq"));
    command.env_remove("NOTIFY_SOCKET").env_remove("WATCHDOG_USEC").env_remove("WATCHDOG_PID");
    command.env_remove("RUST_LOG").env_remove("SSLKEYLOGFILE").env_remove("QLOGDIR").stdin(Stdio::null());
    command
}

/// Runs the program with `arguments` to its end.
pub fn run<A: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = A>) -> Output {
    hvq().args(arguments).output().unwrap()
}

/// The exit code of `output`.
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// Returns the program's messages on standard error.
pub fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Standard output as one object of JSON.
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

/// A run that goes on until it is told to stop.
pub struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
    /// The first line that it printed.
    pub ready: Value,
}

impl Running {
    /// Starts the program with `arguments`, `--json` among them, and waits for its first line.
    pub fn start<A: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self::of(hvq().args(arguments))
    }

    /// Starts `command`, whose first line is of JSON, and waits for that line.
    pub fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        Self { child, output, ready }
    }

    /// A server of the files in `root` with a certificate for localhost, which it writes to `certificate`.
    pub fn serve(root: &Path, certificate: &Path, more: &[&str]) -> Self {
        let (root, certificate) = (root.to_str().unwrap(), certificate.to_str().unwrap());
        let mut arguments =
            vec!["serve", "--json", "--self-signed", "localhost", "--write-cert", certificate];
        arguments.extend(["--root", root]);
        if !more.contains(&"--listen") && !more.contains(&"--channel") {
            arguments.extend(["--listen", "127.0.0.1:0"]);
        }
        arguments.extend(more);
        Self::start(arguments)
    }

    /// The address number `index` that a server listens on.
    pub fn address(&self, index: usize) -> SocketAddr {
        self.ready["listening"][index].as_str().unwrap().parse().unwrap()
    }

    /// The URL of `path` on the first address of a server.
    pub fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address(0).port())
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next line that it prints.
    pub fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Presses Ctrl-C.
    #[cfg(unix)]
    pub fn interrupt(&self) {
        let killed = Command::new("kill").arg("-INT").arg(self.child.id().to_string()).status().unwrap();
        assert!(killed.success());
    }

    /// Waits for the end, and returns the exit code and the rest of standard output.
    pub fn wait(mut self) -> (i32, String) {
        let start = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(start.elapsed() < LIMIT, "the program does not end"),
            }
            sleep(Duration::from_millis(20));
        };
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        (status.code().unwrap(), rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}
