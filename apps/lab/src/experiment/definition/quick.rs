//! The part of an experiment that a first look runs.

use super::expected::Selection;
use super::matrix::{Cell, Matrix};
use serde::Deserialize;

/// A part of an experiment: some repetitions, subjects and cells.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quick {
    /// Repetitions.
    pub stretches: u32,
    /// Subjects at most.
    pub subjects: usize,
    /// The cells that have these values; all, if there are none.
    pub at: Selection,
}

impl Default for Quick {
    /// Two pages, one repetition.
    fn default() -> Self {
        Self { stretches: 1, subjects: 2, at: Selection::new() }
    }
}

impl Quick {
    /// Everything, so many times.
    pub fn all(stretches: u32) -> Self {
        Self { stretches, subjects: usize::MAX, at: Selection::new() }
    }

    /// Returns true if `cell` of `matrix` is part of it.
    pub fn has(&self, matrix: &Matrix, cell: Cell) -> bool {
        self.at.iter().all(|(axis, label)| matrix.label(cell, *axis) == label.get_ref())
    }
}
