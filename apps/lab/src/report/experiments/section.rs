//! The section of an experiment: drawings, tables, what differs and how it was measured.

use super::extent::extent;
use super::panel::{Panel, drawn, legend, panels, range};
use super::{bars, lines, table};
use crate::experiment::definition::{Cell, Definition, Labelled, Measure, PlotKind};
use crate::experiment::pages::Scheme;
use crate::experiment::statistics::Results;
use crate::report::page::{self, note};
use crate::report::svg::escape;
use hvq_emulation::ChannelSpec;

/// The section of `results`.
pub(super) fn section(results: &Results<'_>) -> String {
    let definition = results.definition;
    let panels = panels(definition);
    let schemes = drawn(definition);
    let drawings = drawings(results, &panels, &schemes);
    let diamond = if definition.published.is_empty() { "" } else { DIAMOND };
    let differs = match definition.differs.as_str() {
        "" => String::new(),
        text => format!("<p class=\"differs\">{}</p>\n", escape(text)),
    };
    let what = format!("{}, {}", definition.plot.measure, unit(definition));
    let body = format!(
        "<p class=\"source\">{} · drawn: {}</p>\n{}{diamond}{drawings}{differs}{}{}",
        escape(&definition.source),
        escape(&what),
        page::legend(legend(&schemes)),
        tables(results, &panels),
        note(&method(results)),
    );
    let section = page::section(&escape(&definition.title), &body);
    section.replacen("<section>", &format!("<section id=\"{}\">", definition.name), 1)
}

const DIAMOND: &str = "<p class=\"legend\"><span><svg class=\"key\" viewBox=\"0 0 12 12\"><polygon class=\"paper\" \
    points=\"6,1 11,6 6,11 1,6\"/></svg>published</span><span>thin lines: 95 % intervals</span></p>\n";

/// The unit of what is drawn.
fn unit(definition: &Definition) -> String {
    match &definition.plot.measure {
        measure if measure.is_percent() => "in %".to_owned(),
        Measure::Noted(_) => "mean of all runs".to_owned(),
        _ => definition.workload.measured_in_words().to_owned(),
    }
}

/// The drawings of all panels, on one scale.
fn drawings(results: &Results<'_>, panels: &[Panel], schemes: &[Scheme]) -> String {
    let definition = results.definition;
    let range = range(results, &definition.plot.measure, schemes);
    match definition.plot.kind {
        PlotKind::Lines => {
            let one = |panel: &Panel| {
                let drawing = lines::draw(results, panel, schemes, range);
                format!("<div class=\"panel\">{}{drawing}</div>", heading(&panel.title))
            };
            format!("<div class=\"panels\">{}</div>\n", panels.iter().map(one).collect::<String>())
        }
        PlotKind::Bars => {
            let scale = bars::Scale::new(range, schemes);
            let one = |cell: &Cell| {
                let label = definition.matrix.label(*cell, definition.plot.along);
                let drawing = bars::draw(results, *cell, schemes, scale);
                format!("<div class=\"panel\"><h4>{}</h4>{drawing}</div>", escape(label))
            };
            let row = |panel: &Panel| {
                let drawings: String = panel.cells.iter().map(one).collect();
                format!("{}<div class=\"panels\">{drawings}</div>\n", heading(&panel.title))
            };
            panels.iter().map(row).collect()
        }
    }
}

fn heading(title: &str) -> String {
    if title.is_empty() { String::new() } else { format!("<h3>{}</h3>\n", escape(title)) }
}

/// The table of what is drawn, and those of the other measures to be unfolded.
fn tables(results: &Results<'_>, panels: &[Panel]) -> String {
    let definition = results.definition;
    let of = |measure: &Measure| -> String {
        panels.iter().map(|panel| heading(&panel.title) + &table::of(results, panel, measure)).collect()
    };
    let mut measures = vec![definition.plot.measure.clone()];
    let has = |scheme| definition.schemes.contains(&scheme);
    let noted = definition.workload.noted().iter().map(|name| Measure::Noted((*name).to_owned()));
    let told = definition.published.iter().map(|published| published.measure.clone());
    let usual = [
        (has(Scheme::EmbbAlone), Measure::Gain),
        (has(Scheme::EmbbAlone) && has(Scheme::Ideal), Measure::Gap),
        (true, Measure::Mean),
        (true, Measure::P95),
        (has(Scheme::EmbbAlone), Measure::Worst),
        (has(Scheme::EmbbAlone) && has(Scheme::UrllcAlone), Measure::Single),
        (has(Scheme::EmbbAlone) && has(Scheme::UrllcAlone), Measure::Best),
        (true, Measure::Urllc),
        (true, Measure::Failed),
    ];
    let usual = usual.into_iter().filter(|(is_defined, _)| *is_defined).map(|(_, measure)| measure);
    let also = definition.plot.also.iter().cloned();
    for measure in also.chain(told).chain(usual).chain(noted) {
        if !measures.contains(&measure) && says_something(results, &measure) {
            measures.push(measure);
        }
    }
    let folded = |measure: &Measure| {
        let title = match measure {
            Measure::Mean | Measure::Median | Measure::P95 => {
                format!("{measure} of the {}", definition.workload.measured_in_words())
            }
            other if other.is_percent() => format!("{other}, in %"),
            other => other.to_string(),
        };
        format!("<details><summary>{}</summary>{}</details>\n", escape(&title), of(measure))
    };
    let (first, rest) = measures.split_at(1);
    let first: String = first.iter().map(&of).collect();
    let rest: String = rest.iter().map(folded).collect();
    format!("{first}{rest}")
}

/// Returns true if `measure` is anything but 0 anywhere.
fn says_something(results: &Results<'_>, measure: &Measure) -> bool {
    let definition = results.definition;
    definition.matrix.cells().into_iter().any(|cell| {
        let mut estimates =
            definition.schemes.iter().filter_map(|scheme| results.estimate(measure, cell, *scheme));
        estimates.any(|estimate| estimate.value != 0.0)
    })
}

/// Returns the method of the measurement, as HTML.
fn method(results: &Results<'_>) -> String {
    let definition = results.definition;
    let subjects = definition.workload.subjects();
    let channels = |labelled: &[Labelled<ChannelSpec>]| {
        let named = labelled.iter().map(|one| match one.is.to_string() {
            spec if spec == one.label => spec,
            spec => format!("{} ({spec})", one.label),
        });
        named.map(|text| format!("<code>{}</code>", escape(&text))).collect::<Vec<_>>().join(", ")
    };
    format!(
        "<details><summary>How it was measured: {} runs</summary><ul><li>{}: {}</li><li>eMBB: {}</li><li>URLLC: {}</li>\
         <li>{} stretches of the {} half, from seed {} on; {}</li></ul></details>",
        results.len(),
        escape(definition.workload.measured_in_words()),
        escape(&subjects.join(", ")),
        channels(&definition.matrix.embb),
        channels(&definition.matrix.urllc),
        definition.stretches,
        definition.half,
        definition.seed,
        escape(&extent(results)),
    )
}
