//! Tables of a measure: a row for each scheme, a column for each value of the axis.

use super::panel::{Panel, published};
use crate::experiment::definition::{Cell, Measure};
use crate::experiment::pages::Scheme;
use crate::experiment::statistics::{Results, number};
use crate::report::page;
use crate::report::svg::escape;

/// `measure` of every scheme in `panel`.
pub(super) fn of(results: &Results<'_>, panel: &Panel, measure: &Measure) -> String {
    let definition = results.definition;
    let along = definition.plot.along;
    let labels = panel.cells.iter().map(|cell| escape(definition.matrix.label(*cell, along)));
    let heads: Vec<String> = std::iter::once(escape(&along.to_string())).chain(labels).collect();
    let row = |scheme: &Scheme| -> Vec<String> {
        let cells = panel.cells.iter().map(|cell| entry(results, measure, *cell, *scheme));
        std::iter::once(escape(&scheme.to_string())).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = definition.schemes.iter().map(row).collect();
    page::table(&heads, &rows)
}

/// Ours with its interval, and below it what was published.
fn entry(results: &Results<'_>, measure: &Measure, cell: Cell, scheme: Scheme) -> String {
    let ours = results.estimate(measure, cell, scheme).map(|estimate| {
        let bare = number(measure, estimate.value);
        let interval = match estimate.half_width() {
            width if width > 0.0 => {
                format!(" <small>±{}</small>", number(measure, width).trim_end_matches(" %"))
            }
            _ => String::new(),
        };
        format!("{}{interval}", bare.trim_end_matches(" %"))
    });
    let theirs = published(results.definition, measure, cell, scheme).map(|value| {
        format!("<div class=\"theirs\">paper {}</div>", number(measure, value).trim_end_matches(" %"))
    });
    [ours, theirs].into_iter().flatten().collect()
}
