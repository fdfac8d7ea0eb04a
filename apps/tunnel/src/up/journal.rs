//! The journal of changes of a tunnel: each is written down before it is made, so that it is undone whatever is killed.

use super::change::Change;
use hvq_program::failure::{Exit, Failure, OrFail};
use hvq_program::output::Console;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The folder of journals. It outlives a restart of the system, as the file of name servers does, and no service of another user
/// has it: what it says is done as root.
const FOLDER: &str = "/var/lib/hvq-up";
/// The number of this start of the system.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// The contents of the file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    boot: String,
    changes: Vec<Change>,
}

/// The changes that were made for one tunnel. One process at a time has it; dropping it undoes them.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    record: Record,
    /// Locked, with the number of this process in it.
    lock: File,
}

/// The holder of a journal.
#[derive(Debug)]
pub(super) enum Holder {
    /// This process, from now on.
    Us(Box<Journal>),
    /// The process of this number.
    Other(u32),
}

impl Journal {
    /// Takes the journal of the tunnel `name`, if no other process has it, with what a process that was killed left in it.
    ///
    /// # Errors
    /// The folder cannot be written, which takes root, or the journal cannot be read.
    pub(super) fn take(name: &str) -> Result<Holder, Failure> {
        Self::take_in(Path::new(FOLDER), name)
            .or_fail(Exit::Runtime, || format!("cannot write to {FOLDER} (this needs root)"))
    }

    fn take_in(folder: &Path, name: &str) -> io::Result<Holder> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut options = OpenOptions::new();
        let path = folder.join(format!("{name}.lock"));
        let mut lock = options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut number = String::new();
                lock.read_to_string(&mut number)?;
                return Ok(Holder::Other(number.trim().parse().map_err(io::Error::other)?));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        lock.set_len(0)?;
        lock.rewind()?;
        write!(lock, "{}", std::process::id())?;
        let path = folder.join(format!("{name}.json"));
        let record = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Record::default(),
            Err(error) => return Err(error),
        };
        Ok(Holder::Us(Box::new(Self { path, record, lock })))
    }

    /// The path of a file beside the journal, of the same tunnel and another ending.
    pub(super) fn beside(&self, ending: &str) -> PathBuf {
        self.path.with_extension(ending)
    }

    /// The number of changes that are made and not undone.
    pub(super) const fn len(&self) -> usize {
        self.record.changes.len()
    }

    /// Makes `change`. What exists already is somebody else's, and is not undone later.
    ///
    /// # Errors
    /// The journal cannot be written, or the system refuses.
    pub(super) fn apply(&mut self, change: Change) -> io::Result<()> {
        self.record.boot = boot();
        self.record.changes.push(change);
        let made = self.write().and_then(|()| match self.record.changes.last() {
            Some(change) => change.apply(),
            None => Ok(()),
        });
        if let Err(error) = made {
            let refused = self.record.changes.pop();
            if error.kind() != io::ErrorKind::AlreadyExists
                && let Some(refused) = refused
            {
                // A part of it may be there.
                refused.undo().unwrap_or_else(|error| tracing::debug!(%error, "nothing to undo"));
            }
            self.write()?;
            return Err(error);
        }
        Ok(())
    }

    /// Undoes all changes, the last first, those that a restart of the system undid excepted. What fails is told of, and
    /// stays in the journal.
    pub(super) fn undo(&mut self, console: Console) -> bool {
        let restarted = self.record.boot != boot();
        let mut failed = Vec::new();
        while let Some(change) = self.record.changes.pop() {
            if restarted && !change.is_lasting() {
                continue;
            }
            if let Err(error) = change.undo() {
                console.say(format!("hvq: warning: cannot undo `{change}`: {error}"));
                failed.insert(0, change);
            }
        }
        self.record.changes = failed;
        let kept = if self.record.changes.is_empty() { remove(&self.path) } else { self.write() };
        if let Err(error) = kept {
            console.say(format!("hvq: warning: the journal {}: {error}", self.path.display()));
        }
        self.record.changes.is_empty()
    }

    /// Writes the journal, whole or not at all, to the disk.
    fn write(&self) -> io::Result<()> {
        if self.record.changes.is_empty() {
            return remove(&self.path);
        }
        put(&self.path, &serde_json::to_vec(&self.record)?)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if !self.record.changes.is_empty() {
            self.undo(Console::Normal);
        }
        // An empty file says that nobody has it; removing it would let two have it.
        let _left = self.lock.set_len(0);
    }
}

/// Writes `bytes` to the file at `path`, whole or not at all, and to the disk.
pub(super) fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let aside = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&aside, path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn boot() -> String {
    fs::read_to_string(BOOT).unwrap_or_default().trim().to_owned()
}
