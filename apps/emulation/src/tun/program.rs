//! Programs in a namespace.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::Pid;

use crate::tun::inside::Instructions;
use crate::tun::namespace::Namespace;
use crate::tun::signals::Signals;

/// The exit code for a command that is not there, as shells have it.
pub const NOT_FOUND: u8 = 127;
/// The exit code for a command that cannot be run.
pub const NOT_EXECUTABLE: u8 = 126;
/// The offset that is added to the number of the signal that ended a command, to form its exit status.
pub const SIGNALLED: u8 = 128;

/// The interval at which a program that is to end is looked at.
const STEP: Duration = Duration::from_millis(10);

/// The command that starts the first process of a namespace: this program, with words in front of its instructions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// The words.
    pub words: Vec<OsString>,
}

/// The standard streams of a program: its input and outputs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Streams {
    /// The streams of this process.
    Inherited,
    /// It reads nothing, and writes to this process's standard error.
    Background,
}

/// A running program and all processes that it started, in a namespace. Dropping it ends all of them.
#[derive(Debug)]
pub struct Program {
    process: Pid,
    unwanted: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<ExitStatus>>>,
}

impl Program {
    /// Starts `command` in `namespace` behind the first process that `launcher` makes.
    ///
    /// # Errors
    /// The system does not permit it. A command that does not exist is told by its exit code.
    pub fn start(
        namespace: &Namespace,
        launcher: &Launcher,
        instructions: &Instructions,
        command: &[OsString],
        streams: Streams,
    ) -> io::Result<Self> {
        let mut start = Command::new(&launcher.program);
        start.args(&launcher.words).arg(serde_json::to_string(instructions)?).arg("--").args(command);
        if streams == Streams::Background {
            start.stdin(Stdio::null()).stdout(io::stderr());
        }
        let namespace = Namespace::clone_of(namespace)?;
        let unwanted = Arc::new(AtomicBool::new(false));
        let (tell, told) = sync_channel(1);
        let flag = Arc::clone(&unwanted);
        // The first process is killed when the thread that started it ends, so that this one waits for it.
        let thread = thread::Builder::new().name("hvq-program".to_owned()).spawn(move || {
            let child = spawn(&namespace, &mut start);
            drop(namespace);
            let started = child.as_ref().map(Child::id).map_err(|error| io::Error::from(error.kind()));
            let _heard = tell.send(started);
            attend(child?, &flag)
        })?;
        match process(&told) {
            Ok(process) => Ok(Self { process, unwanted, thread: Some(thread) }),
            Err(general) => Err(thread.join().ok().and_then(Result::err).unwrap_or(general)),
        }
    }

    /// Passes signals that are sent to this process on to it, from now on.
    ///
    /// # Errors
    /// No thread is to be had.
    pub fn pass_signals(&self) -> io::Result<()> {
        Signals::new()?.pass_to(self.process)
    }

    /// Waits for the program to end by itself; returns its exit code. Processes that it left in the background are
    /// ended.
    ///
    /// # Errors
    /// The system fails.
    pub fn wait(mut self) -> io::Result<u8> {
        use std::os::unix::process::ExitStatusExt;
        let Some(thread) = self.thread.take() else { return Err(io::ErrorKind::NotFound.into()) };
        let status = thread.join().map_err(|_| io::Error::other("waiting for a program panicked"))??;
        let code = status.code().map(|code| code as u8);
        Ok(code.unwrap_or_else(|| SIGNALLED.wrapping_add(status.signal().unwrap_or_default() as u8)))
    }

    /// Returns true if it still runs.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.unwanted.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

fn process(told: &Receiver<io::Result<u32>>) -> io::Result<Pid> {
    let id = told.recv().map_err(|_| io::Error::other("starting a program panicked"))??;
    Ok(Pid::from_raw(id.try_into().expect("process numbers are small")))
}

/// Starts a process in `namespace`, as the first of a PID namespace.
fn spawn(namespace: &Namespace, command: &mut Command) -> io::Result<Child> {
    namespace.enter()?;
    unshare(CloneFlags::CLONE_NEWPID)?;
    command.spawn()
}

/// Waits for `child` to end, and ends it if it is unwanted.
fn attend(mut child: Child, unwanted: &AtomicBool) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if unwanted.load(Ordering::Acquire) {
            child.kill()?;
            return child.wait();
        }
        thread::sleep(STEP);
    }
}

/// Waits until some program in `namespace` listens for TCP connections, `limit` at most, or until `program` ends. Returns
/// whether one does.
///
/// # Errors
/// The system fails.
pub fn wait_for_listener(namespace: &Namespace, program: &Program, limit: Duration) -> io::Result<bool> {
    let start = Instant::now();
    while start.elapsed() < limit && program.is_running() {
        if namespace.within(is_listened_in)? {
            return Ok(true);
        }
        thread::sleep(STEP);
    }
    Ok(false)
}

fn is_listened_in() -> bool {
    // proc(5): the fourth column is the state, and 0A is LISTEN.
    let listens = |text: String| {
        text.lines().skip(1).any(|line| line.split_whitespace().nth(3).is_some_and(|state| state == "0A"))
    };
    ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"]
        .into_iter()
        .any(|path| fs::read_to_string(path).is_ok_and(listens))
}

/// Returns the number of packets that the kernel dropped on the way to whoever reads the TUN devices in `namespace`.
///
/// # Errors
/// The system fails.
pub fn dropped_by(namespace: &Namespace, devices: &[&str]) -> io::Result<u64> {
    let text = namespace.within(|| fs::read_to_string("/proc/thread-self/net/dev"))??;
    Ok(devices.iter().filter_map(|device| dropped_in(&text, device)).sum())
}

/// The twelfth figure of a device: packets that were not transmitted.
fn dropped_in(text: &str, device: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix(device)?.strip_prefix(':'))?;
    line.split_whitespace().nth(11)?.parse().ok()
}

/// The program that runs now, with `words` in front.
///
/// # Errors
/// There is no `/proc`.
pub fn this_program(words: &[&OsStr]) -> io::Result<Launcher> {
    // The link itself would be looked up in the namespace of the first process; what it leads to may be replaced while
    // this runs, which is the user's affair.
    Ok(Launcher { program: std::env::current_exe()?, words: words.iter().map(OsString::from).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_dropped_is_found_by_device() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  tun0:1 2 3 4 5 6 \
                    7 8 9 10 11 42 13 14 15 16\n";
        assert_eq!((dropped_in(text, "tun0"), dropped_in(text, "lo")), (Some(42), Some(12)));
        assert_eq!(dropped_in(text, "tun"), None);
    }
}
