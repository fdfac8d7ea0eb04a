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

/// The results of `definition` in `folder`, in the order of its runs; none if there is no file.
pub fn read(definition: &Definition, folder: &Path) -> Result<Vec<Record>, StoreError> {
    let path = path(definition, folder);
    let kept = kept(definition, &path)?;
    Ok(sorted(definition, kept))
}

impl Store {
    /// Opens the file in `folder`, or begins it. Results of another experiment or version are dropped, and so is a line that
    /// an interruption cut off.
    pub fn open(definition: &Definition, folder: &Path) -> Result<Self, StoreError> {
        let path = path(definition, folder);
        let failed = |problem| StoreError { path: path.clone(), problem };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let kept = kept(definition, &path)?;
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

    /// Whether a run's result is there.
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

/// What the file at `path` has that belongs to `definition`.
fn kept(definition: &Definition, path: &Path) -> Result<HashMap<Key, Record>, StoreError> {
    let text = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => String::new(),
        Err(problem) => return Err(StoreError { path: path.to_owned(), problem }),
    };
    let (basis, subjects) = (basis(definition), definition.workload.subjects());
    let records = text.lines().filter_map(|line| serde_json::from_str::<Record>(line).ok());
    let own = records.filter(|record| record.basis == basis);
    let placed = own.filter(|record| record.key.place(definition, &subjects).is_some());
    Ok(placed.map(|record| (record.key.clone(), record)).collect())
}

fn sorted(definition: &Definition, kept: HashMap<Key, Record>) -> Vec<Record> {
    let subjects = definition.workload.subjects();
    let mut records: Vec<Record> = kept.into_values().collect();
    records.sort_by_key(|record| record.key.place(definition, &subjects));
    records
}
