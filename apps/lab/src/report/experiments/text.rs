//! Goals and tables of experiments as text, for a terminal or a document.

use super::extent::extent;
use super::panel::{drawn, panels};
use crate::experiment::definition::{Cell, Measure};
use crate::experiment::pages::Scheme;
use crate::experiment::statistics::{Check, Decision, GoalVerdict, Results, verdicts, with_interval};
use std::fmt::Write;

/// Checks of a verdict that are written out at most; the rest is counted.
const MOST_CHECKS: usize = 60;

/// Schemes that have a column each at most.
const MOST_COLUMNS: usize = 12;

/// The goals of `results` with their numbers, and a table of what is drawn and of the mean.
pub fn markdown(results: &Results<'_>) -> String {
    let definition = results.definition;
    let mut text = format!("## {}: {}\n\n{}", definition.name, definition.title, extent(results) + "\n");
    for verdict in verdicts(results) {
        let _ = write!(text, "\n{}", goal(&verdict));
    }
    let mut measures = vec![definition.plot.measure.clone()];
    measures.extend(definition.plot.also.iter().cloned());
    if !measures.contains(&Measure::Mean) {
        measures.push(Measure::Mean);
    }
    for measure in measures {
        let _ = write!(text, "\n{}", table(results, &measure));
    }
    text
}

/// A goal with its decision and its cells, the missed ones first.
fn goal(verdict: &GoalVerdict) -> String {
    let decision = verdict.decision().map_or("not run", Decision::name);
    let count = |decision| verdict.count(decision);
    let [met, undecided, missed] = [Decision::Met, Decision::Undecided, Decision::Missed].map(count);
    let mut text = format!(
        "**Goal {}, {decision}** ({met} met, {undecided} undecided, {missed} missed): {}\n\n",
        verdict.number, verdict.says
    );
    let mut checks: Vec<&Check> =
        verdict.checks.iter().filter(|check| check.decision != Decision::Met).collect();
    checks.sort_by_key(|check| std::cmp::Reverse(check.decision));
    for Check { place, measured, wanted, decision, evidence } in checks.iter().take(MOST_CHECKS) {
        let evidence = if evidence.is_empty() { String::new() } else { format!(" ({evidence})") };
        let _ = writeln!(text, "- {}: {place}: {measured}, wanted {wanted}{evidence}", decision.name());
    }
    if checks.len() > MOST_CHECKS {
        let _ = writeln!(text, "- and {} more", checks.len() - MOST_CHECKS);
    }
    text
}

/// `measure` by cell and scheme; of many schemes each has a row.
fn table(results: &Results<'_>, measure: &Measure) -> String {
    let definition = results.definition;
    let schemes = drawn(definition);
    if schemes.len() > MOST_COLUMNS {
        return by_scheme(results, measure, &schemes);
    }
    let heads: String = schemes.iter().map(|scheme| format!(" {scheme} |")).collect();
    let mut text = format!(
        "{measure}:\n\n| {} |{heads}\n|{}\n",
        definition.matrix.varied().iter().map(|axis| axis.name()).collect::<Vec<_>>().join(", "),
        " --- |".repeat(schemes.len() + 1)
    );
    for cell in panels(definition).into_iter().flat_map(|panel| panel.cells) {
        let entries: String = schemes.iter().map(|scheme| entry(results, measure, cell, *scheme)).collect();
        if entries.contains(|letter: char| letter.is_ascii_digit()) {
            let _ = writeln!(text, "| {} |{entries}", definition.matrix.describe(cell, &[]));
        }
    }
    text
}

/// `measure` by scheme and cell.
fn by_scheme(results: &Results<'_>, measure: &Measure, schemes: &[Scheme]) -> String {
    let matrix = &results.definition.matrix;
    let cells: Vec<Cell> = panels(results.definition).into_iter().flat_map(|panel| panel.cells).collect();
    let heads: String = cells.iter().map(|cell| format!(" {} |", matrix.describe(*cell, &[]))).collect();
    let mut text = format!("{measure}:\n\n| scheme |{heads}\n|{}\n", " --- |".repeat(cells.len() + 1));
    for scheme in schemes {
        let entries: String = cells.iter().map(|cell| entry(results, measure, *cell, *scheme)).collect();
        let _ = writeln!(text, "| {scheme} |{entries}");
    }
    text
}

fn entry(results: &Results<'_>, measure: &Measure, cell: Cell, scheme: Scheme) -> String {
    let estimate = results.estimate(measure, cell, scheme);
    format!(" {} |", estimate.map_or_else(String::new, |estimate| with_interval(measure, estimate)))
}
