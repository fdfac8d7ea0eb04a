//! The extent of what was run of an experiment.

use crate::experiment::statistics::Results;

/// The number of runs, and a word if that is less than the file says: a first look must not pass for the experiment.
pub(super) fn extent(results: &Results<'_>) -> String {
    let definition = results.definition;
    let (subjects, all) = (results.subjects(), definition.workload.subjects().len());
    let (repetitions, wanted) = (results.repetitions(), definition.stretches as usize);
    let (cells, whole) = (results.cells(), definition.matrix.cells().len());
    let extent = format!(
        "{} runs: {cells} of {whole} cells, {subjects} of {all} subjects, {repetitions} of {wanted} repetitions.",
        results.len()
    );
    match is_part(results) {
        true => format!("{extent} A part of the experiment, as of --quick: intervals are wide, or points."),
        false => extent,
    }
}

/// Returns true if less was run than the file says.
pub(super) fn is_part(results: &Results<'_>) -> bool {
    let definition = results.definition;
    results.subjects() < definition.workload.subjects().len()
        || results.repetitions() < definition.stretches as usize
        || results.cells() < definition.matrix.cells().len()
}
