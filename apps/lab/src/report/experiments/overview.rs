//! The contents of the report, and the share of the gap that each scheme closes.

use super::extent::is_part;
use super::panel::panels;
use crate::experiment::definition::{Axis, Cell, Measure};
use crate::experiment::pages::Scheme;
use crate::experiment::statistics::Results;
use crate::report::page::{self, note, table};
use crate::report::svg::escape;

const GAPS: &str = "The gap reaches from the mean with eMBB alone (0 %) to that of the ideal channel (100 %): one channel with \
    URLLC's delay and the sum of both rates. No use of the two channels can close all of it. ± is half the 95 % interval of a \
    bootstrap over pages.";

/// A list of what is in the report, and of what is not.
pub(super) fn contents(experiments: &[Results<'_>], missing: &[String]) -> String {
    let entry = |results: &Results<'_>| {
        let definition = results.definition;
        format!(
            "<li><a href=\"#{}\">{}</a> <small>{}</small></li>\n",
            definition.name,
            escape(&definition.title),
            escape(&definition.source)
        )
    };
    let entries: String = experiments.iter().map(entry).collect();
    let missing = match missing {
        [] => String::new(),
        names => note(&format!("Not run: {}.", names.join(", "))),
    };
    let parts: Vec<&str> = experiments
        .iter()
        .filter(|results| is_part(results))
        .map(|results| results.definition.name.as_str())
        .collect();
    let missing = match parts.as_slice() {
        [] => missing,
        names => {
            let text = format!(
                "A first look, with fewer runs than the experiments ask for (--quick, --seeds or an interrupted run): {}. \
                 Their intervals are wide, or points; no decision about them stands.",
                names.join(", ")
            );
            format!("<p class=\"part\"><strong>{}</strong></p>{missing}", escape(&text))
        }
    };
    let runs: usize = experiments.iter().map(Results::len).sum();
    let title = match experiments.len() {
        1 => format!("1 experiment, {runs} runs"),
        number => format!("{number} experiments, {runs} runs"),
    };
    page::section(&title, &format!("<ol class=\"contents\">\n{entries}</ol>\n{missing}"))
}

/// For the first experiment along eMBB that has the ideal channel, the share of the gap that each scheme closes.
pub(super) fn gaps(experiments: &[Results<'_>]) -> String {
    let first = experiments.iter().find(|results| {
        let definition = results.definition;
        definition.plot.along == Axis::Embb
            && [Scheme::Ideal, Scheme::EmbbAlone].iter().all(|scheme| definition.schemes.contains(scheme))
    });
    let Some(results) = first else { return String::new() };
    let definition = results.definition;
    let mut body = String::new();
    for panel in panels(definition) {
        let labels = panel.cells.iter().map(|cell| definition.matrix.label(*cell, Axis::Embb));
        let heads: Vec<String> =
            std::iter::once("scheme").chain(labels).chain(["mean"]).map(escape).collect();
        let compared = definition.schemes.iter().filter(|scheme| **scheme != Scheme::EmbbAlone);
        let rows: Vec<Vec<String>> = compared.map(|scheme| row(results, &panel.cells, *scheme)).collect();
        body.push_str(&format!("<h3>{}</h3>\n{}", escape(&panel.title), table(&heads, &rows)));
    }
    page::section("Share of the gap that each scheme closes", &format!("{body}{}", note(GAPS)))
}

fn row(results: &Results<'_>, cells: &[Cell], scheme: Scheme) -> Vec<String> {
    let estimates: Vec<_> = cells.iter().map(|cell| results.estimate(&Measure::Gap, *cell, scheme)).collect();
    let written = estimates.iter().map(|estimate| {
        estimate.map_or_else(String::new, |estimate| {
            format!("{:.1} <small>±{:.1}</small>", estimate.value, estimate.half_width())
        })
    });
    let known: Vec<f64> = estimates.iter().flatten().map(|estimate| estimate.value).collect();
    let mean = match known.len() {
        0 => String::new(),
        number => format!("{:.1}", known.iter().sum::<f64>() / number as f64),
    };
    std::iter::once(escape(&scheme.to_string())).chain(written).chain([mean]).collect()
}
