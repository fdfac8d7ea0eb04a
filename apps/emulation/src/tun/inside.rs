//! The first process of a namespace: it starts the command, passes signals on, and takes all others along when it ends.
//!
//! It is a program of its own (the command line has a hidden command for it), because a process with threads cannot divide
//! in two safely. It is process 1 of a PID namespace: when it ends, the kernel kills every process in there; and it asks
//! the kernel to be killed when the process that started it ends.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, wait};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::tun::privilege::{User, become_user};
use crate::tun::program::{NOT_EXECUTABLE, NOT_FOUND, SIGNALLED};
use crate::tun::signals::Signals;

/// The instructions for the first process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Instructions {
    /// The process that started it.
    pub parent: Identity,
    /// The user that the command runs as; `None` changes nothing.
    pub user: Option<User>,
    /// The name servers that programs ask.
    pub resolvers: Vec<IpAddr>,
    /// Names that programs know without asking.
    pub hosts: Vec<(IpAddr, String)>,
    /// The variables that are added to the environment.
    pub environment: HashMap<String, String>,
}

/// A process, told from later ones of the same number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Identity {
    pid: u32,
    /// The time of its start, in ticks since the machine's.
    started: u64,
}

impl Identity {
    /// This process.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub fn current() -> io::Result<Self> {
        let pid = std::process::id();
        let started = start_in(&fs::read_to_string(format!("/proc/{pid}/stat"))?);
        Ok(Self { pid, started: started.ok_or(io::ErrorKind::InvalidData)? })
    }

    /// Watches the process, wherever `/proc` is mounted later.
    fn watch(self) -> io::Result<Watch> {
        let watch = Watch { stat: File::open(format!("/proc/{}/stat", self.pid))?, process: self };
        if watch.lives() { Ok(watch) } else { Err(orphaned()) }
    }
}

/// A process that is watched.
#[derive(Debug)]
struct Watch {
    stat: File,
    process: Identity,
}

impl Watch {
    fn lives(&self) -> bool {
        let mut text = [0; 1024];
        // The file of a dead process cannot be read.
        let Ok(size) = self.stat.read_at(&mut text, 0) else { return false };
        let text = String::from_utf8_lossy(text.get(..size).unwrap_or_default());
        start_in(&text) == Some(self.process.started)
    }
}

fn orphaned() -> io::Error {
    io::Error::other("the process that started this one is gone")
}

/// Returns the start of the process of which `stat` is the status; `None` if it is dead.
fn start_in(stat: &str) -> Option<u64> {
    // proc(5): the name, in parentheses, may hold anything; the state is next and the start 19 fields on.
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    fields.next().filter(|state| !matches!(*state, "Z" | "X"))?;
    fields.nth(18)?.parse().ok()
}

/// Does what `instructions` say, runs `command`, and returns the exit code: the command's, 128 and the signal's number if
/// one ended it, or those of shells for what cannot be run.
///
/// # Errors
/// The namespace cannot be set up.
pub fn run(instructions: &Instructions, command: &[OsString]) -> io::Result<u8> {
    let parent = instructions.parent.watch()?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount_all(instructions)?;
    if let Some(user) = instructions.user {
        unshare(CloneFlags::CLONE_NEWUSER)?;
        become_user(user)?;
    }
    // Last, because a change of user clears it.
    set_pdeathsig(Signal::SIGKILL)?;
    if !parent.lives() {
        return Err(orphaned());
    }
    drop(parent);
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
    };
    // From here on signals wait for the command.
    let signals = Signals::new()?;
    let started = Command::new(program).args(arguments).envs(&instructions.environment).spawn();
    let child = match started {
        Ok(child) => child,
        Err(error) => {
            eprintln!("hvq: {}: {error}", program.to_string_lossy());
            return Ok(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE });
        }
    };
    let child = Pid::from_raw(child.id().try_into().expect("process numbers are small"));
    signals.pass_to(child)?;
    reap_until(child)
}

/// Waits for all processes of the namespace whose parents are gone, until `child` ends; returns its exit code.
fn reap_until(child: Pid) -> io::Result<u8> {
    loop {
        match wait() {
            Ok(WaitStatus::Exited(pid, code)) if pid == child => return Ok(code as u8),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => {
                return Ok(SIGNALLED.wrapping_add(signal as u8));
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Gives the processes here a `/proc` of their own, and files about names that fit their network. Nothing is written to a
/// disk: the files are in a memory file system below `/proc`.
fn mount_all(instructions: &Instructions) -> io::Result<()> {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    mount(Some("hvq"), "/proc", Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, none)?;
    let resolvers = instructions.resolvers.iter().map(|address| format!("nameserver {address}\n"));
    replace("/etc/resolv.conf", "/proc/resolv.conf", &resolvers.collect::<String>())?;
    let mut hosts = fs::read_to_string("/etc/hosts").unwrap_or_default();
    for (address, name) in &instructions.hosts {
        hosts.push_str(&format!("{address} {name}\n"));
    }
    replace("/etc/hosts", "/proc/hosts", &hosts)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, none)?;
    Ok(())
}

/// Puts a file with `text`, made at `made`, in the place of the file at `path`, if there is one.
fn replace(path: &str, made: &str, text: &str) -> io::Result<()> {
    let Ok(target) = fs::canonicalize(path) else {
        // A mount needs something to cover.
        tracing::warn!(path, "there is no such file, so that programs here cannot have one");
        return Ok(());
    };
    let source = Path::new(made);
    fs::write(source, text)?;
    fs::set_permissions(source, fs::Permissions::from_mode(0o644))?;
    let none = None::<&str>;
    mount(Some(source), &target, none, MsFlags::MS_BIND, none)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_the_dead_and_from_later_ones() {
        let own = Identity::current().unwrap();
        assert!(own.watch().unwrap().lives());
        let later = Identity { started: own.started + 1, ..own };
        assert!(later.watch().is_err());
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(Identity { pid: child.id(), started: own.started }.watch().is_err());
    }

    #[test]
    fn the_name_of_a_process_may_hold_anything() {
        let fields = "S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4711 9 9";
        assert_eq!(start_in(&format!("12 (a) b) R) {fields}")), Some(4711));
        assert_eq!(start_in(&format!("12 (x) {}", fields.replacen('S', "Z", 1))), None);
        assert_eq!(start_in("12 (x) S 1"), None);
    }
}
