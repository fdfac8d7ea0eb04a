//! Servers on loopback, on a processor of their own where there are several.

use super::Subject;
use crate::error::{LiveError, cannot};
use crate::nginx::NginxConfig;
use std::fs::{self, File};
use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A server has so long to start.
const START: Duration = Duration::from_secs(10);
/// Clock ticks of processor times in `/proc` (USER_HZ, which is the same on every architecture that Linux has kept).
const TICKS: f64 = 100.0;

/// The files that servers are started with.
pub(super) struct ServerSetup {
    pub(super) hvq: PathBuf,
    pub(super) nginx: PathBuf,
    pub(super) root: PathBuf,
    pub(super) identity: [PathBuf; 2],
    pub(super) folder: PathBuf,
}

/// A running server; dropping it ends it.
pub(super) struct ServerProcess {
    child: Child,
    /// The port on which it answers: TCP for an origin, else UDP.
    pub(super) port: u16,
}

/// The words in front of a command by which it is on processor `index`, and ends with the thread that starts it.
pub(super) fn placed(index: usize) -> Vec<String> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut words: Vec<String> = ["setpriv", "--pdeathsig", "KILL"].map(str::to_owned).into();
    if processors > 1 {
        words.extend(["taskset".to_owned(), "-c".to_owned(), index.to_string()]);
    }
    words
}

impl ServerProcess {
    /// Starts `subject` in front of the origin at this port, or an origin: Nginx with plain HTTP.
    pub(super) fn start(setup: &ServerSetup, subject: Option<(Subject, u16)>) -> Result<Self, LiveError> {
        let port = free_port()?;
        let name = subject.map_or("origin", |(subject, _)| match subject {
            Subject::Nginx => "nginx",
            Subject::Files => "files",
            Subject::Origin => "gateway",
        });
        let folder = setup.folder.join(name);
        fs::create_dir(&folder).map_err(cannot("make a folder"))?;
        let log = folder.join("log");
        let line = match subject {
            None => setup.nginx(&folder, (vec![format!("127.0.0.1:{port} reuseport")], Vec::new()))?,
            Some((Subject::Nginx, _)) => {
                setup.nginx(&folder, (Vec::new(), vec![format!("127.0.0.1:{port}")]))?
            }
            Some((Subject::Files, _)) => setup.gateway(port, &format!("--root '{}'", setup.root.display())),
            Some((Subject::Origin, origin)) => {
                setup.gateway(port, &format!("--origin http://127.0.0.1:{origin}"))
            }
        };
        let words = placed(0);
        let output = File::create(&log).map_err(cannot("make a file"))?;
        let errors = output.try_clone().map_err(cannot("make a file"))?;
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .args(["sh", "-c", &line])
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        let child = command.spawn().map_err(cannot("start a server"))?;
        let mut server = Self { child, port };
        server.wait_until_ready(subject.is_none(), &log)?;
        Ok(server)
    }

    /// Waits until its port is taken.
    fn wait_until_ready(&mut self, tcp: bool, log: &PathBuf) -> Result<(), LiveError> {
        let start = Instant::now();
        loop {
            let free = match tcp {
                true => TcpListener::bind(("127.0.0.1", self.port)).is_ok(),
                false => UdpSocket::bind(("127.0.0.1", self.port)).is_ok(),
            };
            let ended = !matches!(self.child.try_wait(), Ok(None));
            if ended || start.elapsed() > START {
                let log = fs::read_to_string(log).unwrap_or_default();
                let says = log.lines().last().unwrap_or("it does not start").to_owned();
                return Err(LiveError::Program { program: "a server", says });
            }
            if !free {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The processor time that it took so far, all threads together.
    pub(super) fn processor_seconds(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        ticks_in(&stat).unwrap_or_default() / TICKS
    }
}

/// The memory that the process of which `status` is the status has (proc(5): VmRSS), in KiB.
fn memory_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

/// The ticks that the process of which `stat` is the status took (proc(5): utime and stime).
fn ticks_in(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    let [user, system] = [fields.next()?, fields.next()?];
    Some(user.parse::<f64>().ok()? + system.parse::<f64>().ok()?)
}

impl ServerProcess {
    /// Fails if it has ended.
    pub(super) fn lasts(&mut self) -> Result<(), LiveError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            ended => Err(LiveError::Program { program: "a server", says: format!("it ended: {ended:?}") }),
        }
    }

    /// The memory that it has, in KiB; 0 if nobody says.
    pub(super) fn memory_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        memory_in(&status).unwrap_or_default()
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have ended.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}

impl ServerSetup {
    fn nginx(&self, folder: &Path, (plain, secure): (Vec<String>, Vec<String>)) -> Result<String, LiveError> {
        let identity = (!secure.is_empty()).then(|| self.identity.clone());
        let site = NginxConfig { root: self.root.clone(), plain, secure, identity, more: String::new() };
        site.command(&self.nginx, folder)
    }

    fn gateway(&self, port: u16, content: &str) -> String {
        let [chain, key] = self.identity.each_ref().map(|file| file.display().to_string());
        format!(
            "exec '{}' -q gateway --listen 127.0.0.1:{port} --cert '{chain}' --key '{key}' {content}",
            self.hvq.display()
        )
    }
}

/// A port that is free for TCP and UDP.
fn free_port() -> Result<u16, LiveError> {
    loop {
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(cannot("find a port"))?;
        let port = listener.local_addr().map_err(cannot("find a port"))?.port();
        if UdpSocket::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_times_are_read_from_the_status_of_a_process() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 1 0 9999 1 1";
        assert_eq!(ticks_in(stat), Some(300.0));
        assert_eq!(ticks_in("7 (a"), None);
        assert_eq!(memory_in("Name:\ta\nVmRSS:\t   1234 kB\n"), Some(1234));
        assert_eq!(memory_in("Name:\ta\n"), None);
    }

    #[test]
    fn a_command_ends_with_the_thread_that_starts_it() {
        let words = placed(0);
        let begun = Instant::now();
        let started = thread::spawn(move || {
            let child = Command::new(&words[0]).args(&words[1..]).args(["sleep", "60"]).spawn().unwrap();
            let name = format!("/proc/{}/comm", child.id());
            while fs::read_to_string(&name).unwrap().trim() != "sleep" && begun.elapsed() < START {
                thread::sleep(Duration::from_millis(5));
            }
            child
        });
        let mut child = started.join().unwrap();
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() && start.elapsed() < START {
            thread::sleep(Duration::from_millis(10));
        }
        let alive = child.try_wait().unwrap().is_none();
        child.kill().unwrap_or_default();
        child.wait().unwrap();
        assert!(!alive);
    }
}
