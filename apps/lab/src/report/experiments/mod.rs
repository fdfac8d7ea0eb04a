//! The report on experiments: goals, then each figure and table with the published values beside ours.

mod bars;
mod extent;
mod goals;
mod lines;
mod overview;
mod panel;
mod section;
mod table;
#[cfg(test)]
mod tests;
mod text;

pub use text::markdown;

use super::page::ReportPage;
use crate::experiment::statistics::{Results, verdicts};

const STYLE: &str = include_str!("style.css");

/// The report on `experiments`, in this order; `missing` are those of which there are no results.
pub fn html(experiments: &[Results<'_>], missing: &[String]) -> String {
    let verdicts: Vec<_> = experiments.iter().flat_map(verdicts).collect();
    let body = [
        overview::contents(experiments, missing),
        goals::section(&verdicts),
        overview::gaps(experiments),
        experiments.iter().map(section::section).collect(),
    ]
    .concat();
    let lead = "The papers' evaluations of two unlike channels run again in virtual time, and our own: every scheme on the \
                same pages and the same stretches of the same traces.";
    ReportPage { title: "hvq lab: report", lead, style: STYLE, script: "" }.html(&body)
}
