//! The runs that an estimate is of, and the values of others beside them.

use super::results::Runs;
use std::collections::BTreeMap;
use std::ops::Range;

/// The subject and the repetition of a run.
pub(super) type RunKey<'a> = (&'a str, u32);

/// Runs in order, and the units among them that are independent of each other: those of one subject, or each alone where
/// there is a single subject.
#[derive(Debug, Default)]
pub(super) struct Frame<'a> {
    keys: Vec<RunKey<'a>>,
    units: Vec<Range<usize>>,
}

impl<'a> Frame<'a> {
    /// The frame of `runs`.
    pub(super) fn of(runs: &Runs<'a>) -> Self {
        let keys: Vec<RunKey<'a>> = runs.keys().copied().collect();
        let mut by: BTreeMap<&str, Range<usize>> = BTreeMap::new();
        for (index, (subject, _)) in keys.iter().enumerate() {
            by.entry(subject).or_insert(index..index).end = index + 1;
        }
        let units = match by.len() {
            1 => (0..keys.len()).map(|index| index..index + 1).collect(),
            _ => by.into_values().collect(),
        };
        Self { keys, units }
    }

    /// The units, as ranges of the indices of runs.
    pub(super) fn units(&self) -> &[Range<usize>] {
        &self.units
    }

    /// The results of `value` for each run of the frame.
    pub(super) fn column<T>(&self, value: impl Fn(RunKey<'a>) -> Option<T>) -> Vec<Option<T>> {
        self.keys.iter().map(|key| value(*key)).collect()
    }
}
