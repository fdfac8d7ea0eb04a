//! Runs what is missing of an experiment.

use super::record::Record;
use super::store::{Store, StoreError};
use super::task::{Scope, Shard, Task, tasks};
use crate::experiment::definition::Definition;
use crate::experiment::pool;
use hvq_emulation::TraceError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The reason for which an experiment cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// Results cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// An order to stop: shared with whoever may end a run early, as a handler of signals.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Has no more runs begun. Those that are going on come to their end, and are kept.
    pub fn order(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true if that was ordered.
    pub fn is_ordered(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// An experiment that is about to be run.
#[derive(Debug)]
pub struct Session<'a> {
    definition: &'a Definition,
    store: Store,
    missing: Vec<Task>,
    /// The counts of runs that are there and that are missing.
    pub tally: Tally,
}

/// The number of runs of an experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// In all.
    pub runs: usize,
    /// The runs of these whose results were there already.
    pub kept: usize,
}

impl<'a> Session<'a> {
    /// Makes a session of the runs of `definition` within `scope` that are missing in `store`.
    pub fn new(definition: &'a Definition, scope: Scope, store: Store) -> Self {
        Self::of_shard(definition, (scope, Shard::WHOLE), store)
    }

    /// Makes a session of those runs that are part of a share.
    pub fn of_shard(definition: &'a Definition, (scope, shard): (Scope, Shard), store: Store) -> Self {
        let all = shard.part(tasks(definition, scope));
        let runs = all.len();
        let missing: Vec<Task> = all.into_iter().filter(|task| !store.has(&task.key)).collect();
        let tally = Tally { runs, kept: runs - missing.len() };
        Self { definition, store, missing, tally }
    }

    /// Runs it, up to `jobs` at once, until all is there or `stop` is ordered, and sorts the file. `done` is told each
    /// result as it comes. Returns what is there in the end.
    pub fn run(
        self,
        jobs: usize,
        stop: &Stop,
        done: impl Fn(&Record) + Sync,
    ) -> Result<Vec<Record>, CampaignError> {
        let Self { definition, store, missing, .. } = self;
        let kept: Mutex<(Store, Option<CampaignError>)> = Mutex::new((store, None));
        let lock = || kept.lock().unwrap_or_else(PoisonError::into_inner);
        // After a failure nothing more is run.
        let run = |task: &Task| {
            if stop.is_ordered() || lock().1.is_some() {
                return;
            }
            let result = task.run(definition);
            let mut kept = lock();
            let added = match result {
                Ok(record) => {
                    done(&record);
                    kept.0.add(record).map_err(CampaignError::from)
                }
                Err(error) => Err(error.into()),
            };
            if let Err(error) = added {
                kept.1.get_or_insert(error);
            }
        };
        pool::run(&missing, jobs, run, |()| ());
        let (store, failure) = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        let records = store.finish(definition)?;
        failure.map_or(Ok(records), Err)
    }
}
