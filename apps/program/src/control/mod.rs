//! The control socket of a program: other programs of the same user ask there how its paths are.
//!
//! It is a Unix socket, mode 0600, in a folder of the user, mode 0700: `hvq` below `$XDG_RUNTIME_DIR`, or else `/run/hvq` for root and
//! `hvq-UID` in the folder for temporary files for others. A client connects, and reads one line of JSON, a [`ProgramStatus`].

mod folder;
mod status;
mod table;

pub use folder::folder;
pub use status::{BudgetReport, PathReport, ProgramStatus, UnusedLink};
pub use table::text;

use crate::failure::{Exit, Failure, OrFail};
use crate::output::Console;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Clients at a time; others wait.
const CLIENTS: usize = 8;
/// The time that a client may take to read, and that a program may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of an answer at most.
const ANSWER: u64 = 1 << 20;
/// The ending of the names of sockets.
const ENDING: &str = "sock";

/// The control socket of this process; `None`, which people are told of, if there can be none.
///
/// # Panics
/// Outside of a tokio runtime.
pub fn announce(
    program: &str,
    console: Console,
    status: impl Fn() -> ProgramStatus + Send + Sync + 'static,
) -> Option<ControlSocket> {
    let opened = ControlSocket::open(program, status);
    if let Err(error) = &opened {
        console.detail(|| format!("* hvq paths does not see this program: {error}"));
    }
    opened.ok()
}

/// The control socket of this process. Dropping it removes it.
#[derive(Debug)]
pub struct ControlSocket {
    path: PathBuf,
    accepting: JoinHandle<()>,
}

impl ControlSocket {
    /// Answers with `status`, under the name of `program` and the number of this process.
    ///
    /// # Errors
    /// The folder belongs to another user or can be entered by one, or the socket cannot be made.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn open(
        program: &str,
        status: impl Fn() -> ProgramStatus + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let path = folder::own()?.join(format!("{program}-{}.{ENDING}", std::process::id()));
        // A process of the same number that was killed may have left one.
        let _left = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let accepting = tokio::spawn(accept(listener, Arc::new(status)));
        Ok(Self { path, accepting })
    }

    /// The socket's place.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.accepting.abort();
        // Somebody may have removed it.
        let _gone = std::fs::remove_file(&self.path);
    }
}

async fn accept(listener: UnixListener, status: Arc<impl Fn() -> ProgramStatus + Send + Sync + 'static>) {
    let permits = Arc::new(Semaphore::new(CLIENTS));
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Mostly no file descriptors: trying again at once would only burn time.
                tracing::warn!(%error, "cannot accept at the control socket");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let status = status.clone();
        tokio::spawn(async move {
            if let Ok(Err(error)) = tokio::time::timeout(PATIENCE, answer(stream, &*status)).await {
                tracing::debug!(%error, "a client of the control socket");
            }
            drop(permit);
        });
    }
}

async fn answer(mut stream: UnixStream, status: impl Fn() -> ProgramStatus) -> io::Result<()> {
    let mut line = serde_json::to_vec(&status()).map_err(io::Error::other)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    stream.shutdown().await
}

/// The programs of this user that run and have a control socket, by name and number; of process `number` alone, if it is given.
///
/// # Errors
/// There are none, or one does not answer ([`Exit::Runtime`]).
pub fn programs(number: Option<u32>) -> Result<Vec<ProgramStatus>, Failure> {
    let folder = folder();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            let failed: io::Result<Vec<PathBuf>> = Err(error);
            failed.or_fail(Exit::Runtime, || format!("cannot read {}", folder.display()))?
        }
    };
    let mut sockets: Vec<PathBuf> =
        entries.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == ENDING)).collect();
    sockets.sort();
    let mut found = Vec::new();
    for socket in sockets {
        let status =
            ask(&socket).or_fail(Exit::Runtime, || format!("{} does not answer", socket.display()))?;
        found.extend(status.filter(|status| number.is_none_or(|number| status.process == number)));
    }
    if found.is_empty() {
        let place = folder.display();
        let text = match number {
            None => {
                format!("no hvq proxy or tunnel of this user runs (there is no control socket in {place})")
            }
            Some(number) => format!("process {number} is no hvq proxy or tunnel of this user (see {place})"),
        };
        return Err(Failure::new(Exit::Runtime, text));
    }
    Ok(found)
}

/// The status of the program behind `socket`; `None` if it has ended.
fn ask(socket: &Path) -> io::Result<Option<ProgramStatus>> {
    let mut stream = match std::os::unix::net::UnixStream::connect(socket) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound) => {
            // Its program was killed and could not remove it.
            let _gone = std::fs::remove_file(socket);
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut answer = Vec::new();
    stream.by_ref().take(ANSWER).read_to_end(&mut answer)?;
    Ok(Some(serde_json::from_slice(&answer)?))
}
