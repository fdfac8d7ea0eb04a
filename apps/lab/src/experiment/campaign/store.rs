//! The file of an experiment's results: lines of JSON, appended as they come, sorted at the end.

use super::record::{Key, Record, basis};
use crate::experiment::definition::Definition;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct StoreError {
    path: PathBuf,
    problem: io::Error,
}

/// The results of an experiment, on disk.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    kept: HashMap<Key, Record>,
}

/// The contents of a file of results.
#[derive(Debug, Default)]
pub struct Found {
    /// The results that count, in the order of the experiment's runs.
    pub records: Vec<Record>,
    /// The number of those that do not: of another build of the program, or of another form of the experiment.
    pub stale: usize,
}

/// The results of `definition` in `folder`; none if there is no file.
pub fn read(definition: &Definition, folder: &Path) -> Result<Found, StoreError> {
    let (kept, stale) = kept(definition, &path(definition, folder))?;
    Ok(Found { records: sorted(definition, kept), stale })
}

/// Puts the results of `definition` in the folders `from` together with those in `folder`, in the order of its runs: the file is
/// the same whatever share each of them is of. Returns the results that count and the number of those that do not.
pub fn merge(definition: &Definition, from: &[PathBuf], folder: &Path) -> Result<Found, StoreError> {
    let mut store = Store::open(definition, folder)?;
    let mut stale = 0;
    for other in from {
        let (kept, dropped) = kept(definition, &path(definition, other))?;
        stale += dropped;
        store.kept.extend(kept);
    }
    Ok(Found { records: store.finish(definition)?, stale })
}

impl Store {
    /// Opens the file in `folder`, or begins it. Results of another build of the program or another form of the
    /// experiment are dropped, and so is a line that was cut off.
    pub fn open(definition: &Definition, folder: &Path) -> Result<Self, StoreError> {
        let path = path(definition, folder);
        let failed = |problem| StoreError { path: path.clone(), problem };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let (kept, _) = kept(definition, &path)?;
        replace(&path, kept.values().cloned().collect()).map_err(failed)?;
        let file = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        Ok(Self { path, file, kept })
    }

    /// Begins the file anew.
    pub fn afresh(definition: &Definition, folder: &Path) -> Result<Self, StoreError> {
        let path = path(definition, folder);
        match std::fs::remove_file(&path) {
            Err(problem) if problem.kind() != io::ErrorKind::NotFound => Err(StoreError { path, problem }),
            _ => Self::open(definition, folder),
        }
    }

    /// Returns true if a run's result is there.
    pub fn has(&self, key: &Key) -> bool {
        self.kept.contains_key(key)
    }

    /// Adds `record`, on disk at once.
    pub fn add(&mut self, record: Record) -> Result<(), StoreError> {
        let written = line(&record).and_then(|line| self.file.write_all(line.as_bytes()));
        written.map_err(|problem| StoreError { path: self.path.clone(), problem })?;
        self.kept.insert(record.key.clone(), record);
        Ok(())
    }

    /// Sorts the file, so that equal results are equal bytes.
    pub fn finish(self, definition: &Definition) -> Result<Vec<Record>, StoreError> {
        let records = sorted(definition, self.kept);
        match replace(&self.path, records.clone()) {
            Ok(()) => Ok(records),
            Err(problem) => Err(StoreError { path: self.path, problem }),
        }
    }
}

fn path(definition: &Definition, folder: &Path) -> PathBuf {
    folder.join(format!("{}.jsonl", definition.name))
}

fn line(record: &Record) -> io::Result<String> {
    Ok(serde_json::to_string(record)? + "\n")
}

/// Puts `records` in the place of the file at `path`, at once.
fn replace(path: &Path, records: Vec<Record>) -> io::Result<()> {
    let lines: io::Result<String> = records.iter().map(line).collect();
    let aside = path.with_extension("jsonl.new");
    std::fs::write(&aside, lines?)?;
    std::fs::rename(aside, path)
}

/// Returns the results in the file at `path` that belong to `definition`, and the number of those that do not.
fn kept(definition: &Definition, path: &Path) -> Result<(HashMap<Key, Record>, usize), StoreError> {
    let text = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => String::new(),
        Err(problem) => return Err(StoreError { path: path.to_owned(), problem }),
    };
    let (basis, subjects) = (basis(definition), definition.workload.subjects());
    let records = text.lines().filter_map(|line| serde_json::from_str::<Record>(line).ok());
    let counts = |record: &Record| record.basis == basis && record.key.place(definition, &subjects).is_some();
    let (own, stale): (Vec<Record>, Vec<Record>) = records.partition(counts);
    Ok((own.into_iter().map(|record| (record.key.clone(), record)).collect(), stale.len()))
}

fn sorted(definition: &Definition, kept: HashMap<Key, Record>) -> Vec<Record> {
    let subjects = definition.workload.subjects();
    let mut records: Vec<Record> = kept.into_values().collect();
    records.sort_by_key(|record| record.key.place(definition, &subjects));
    records
}
