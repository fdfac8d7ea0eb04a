//! Experiments as files of TOML: what is varied, what is run, what was published and what is wanted.

mod axis;
mod builtin;
mod check;
mod choice;
mod expected;
mod half;
mod labelled;
mod matrix;
mod measure;
mod quick;
mod read;
#[cfg(test)]
mod tests;
mod workload;

pub use axis::Axis;
pub use builtin::{amendments, builtin, goals, names};
pub use choice::ChoiceError;
pub use expected::{Bound, Goal, Operand, Plot, PlotKind, Published, Selection, Wanted};
pub use half::Half;
pub use labelled::{AxisValue, Bytes, Labelled};
pub use matrix::{Cell, Matrix};
pub use measure::Measure;
pub use quick::Quick;
pub use workload::{
    Better, DownloadWorkload, FlowWorkload, InteractionWorkload, PageWorkload, UploadWorkload, VideoWorkload,
    Workload,
};

use crate::experiment::pages::{Notes, Scheme};

/// An experiment.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Its name, that of its file too: lower-case letters, digits and hyphens.
    pub name: String,
    /// The subject of the experiment.
    pub title: String,
    /// The figure or table that it runs again, or the goal that it is for.
    pub source: String,
    /// The differences between this measurement and the published one, with their reasons.
    pub differs: String,
    /// Ways of using the channels, all on the same stretches.
    pub schemes: Vec<Scheme>,
    /// Repetitions: each begins on another stretch of a trace and with another seed.
    pub stretches: u32,
    /// The part that a first look runs.
    pub quick: Quick,
    /// The half of pages, stretches and seeds that it is about.
    pub half: Half,
    /// The seed of the first repetition, as it is counted in that half.
    pub seed: u64,
    /// The notes of runs besides times and bytes: those that are drawn or were published.
    pub notes: Notes,
    /// The workload that runs over the channels.
    pub workload: Workload,
    /// The other variations.
    pub matrix: Matrix,
    /// The drawing of results.
    pub plot: Plot,
    /// The published values.
    pub published: Vec<Published>,
    /// The goals that it must meet.
    pub goals: Vec<Goal>,
    /// A hash of what decides the results of its runs besides the scheme: workload, matrix, half, seed and files of traces.
    /// Results with another do not belong to it.
    pub digest: u64,
}
