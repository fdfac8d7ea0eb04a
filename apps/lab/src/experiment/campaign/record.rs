//! The record of one run, as a line of JSON.

use crate::experiment::definition::{Axis, Cell, Definition};
use crate::experiment::pages::Scheme;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The key of a run.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Key {
    /// The label on each axis that is varied.
    pub cell: BTreeMap<Axis, String>,
    /// The subject of the run: a page.
    pub subject: String,
    /// The repetition, counted from 0.
    pub stretch: u32,
    /// The scheme.
    pub scheme: Scheme,
}

impl Key {
    /// The cell of `definition` that it belongs to, if there is one.
    pub fn cell_of(&self, definition: &Definition) -> Option<Cell> {
        let varied = definition.matrix.varied();
        if varied.len() != self.cell.len() {
            return None;
        }
        varied.into_iter().try_fold(Cell::default(), |cell, axis| {
            let label = self.cell.get(&axis)?;
            let index = definition.matrix.labels(axis).iter().position(|known| known == label)?;
            Some(cell.with(axis, index))
        })
    }

    /// Returns the run's place among the runs of `definition`; `None` if it is none of them.
    pub(super) fn place(&self, definition: &Definition, subjects: &[String]) -> Option<RunPlace> {
        let subject = subjects.iter().position(|known| *known == self.subject)?;
        let scheme = definition.schemes.iter().position(|known| *known == self.scheme)?;
        Some((self.cell_of(definition)?, subject, self.stretch, scheme))
    }
}

/// The order of runs: what is compared stands together.
pub(super) type RunPlace = (Cell, usize, u32, usize);

/// The record of a run. All of it follows from the experiment and the key.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The build of the program and the experiment's digest; results of another basis do not count.
    pub basis: String,
    /// The key of the run.
    #[serde(flatten)]
    pub key: Key,
    /// The measured values, by name; the unit is the name's ending.
    pub values: BTreeMap<String, f64>,
    /// The reason for its failure, if it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<String>,
}

/// A hash of the sources of all that results follow from: scheduler, transport, channels, pages and lab.
const BUILD: &str = env!("HVQ_LAB_BUILD");

/// The basis of results of `definition`.
pub(super) fn basis(definition: &Definition) -> String {
    format!("{BUILD}-{:016x}", definition.digest)
}
