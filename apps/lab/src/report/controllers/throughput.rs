//! Goodput of each controller in each arrangement, on a logarithmic axis (HotNets 2023, Fig. 1a).

use super::class;
use super::compare::ControllerComparison;
use crate::experiment::controllers::{Arrangement, ControllerOutcome};
use crate::report::svg::{Anchor, Area, Svg};

const HEIGHT: f64 = 330.0;
const LEFT: f64 = 48.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 300.0;
const BAR: f64 = 22.0;
const GAP: f64 = 26.0;

/// The axis, in Mbit/s.
const LEAST: f64 = 0.5;
const MOST: f64 = 100.0;

/// HotNets 2023, §3.1: Mbit/s with packets steered below the transport.
const PUBLISHED: [(&str, f64); 4] = [("cubic", 60.0), ("bbr", 26.5), ("vegas", 2.73), ("vivace", 1.49)];

/// The setting that the paper measured.
const PUBLISHED_SETTING: &str = "50 ms";

/// Returns the paper's value in the place of `row`, in Mbit/s.
pub(super) fn published(row: &ControllerComparison<'_>) -> Option<f64> {
    let is_row = |(name, _): &&(&str, f64)| row.controller == *name && row.setting == PUBLISHED_SETTING;
    PUBLISHED.iter().find(is_row).map(|(_, rate)| *rate)
}

/// Three bars for each controller of one setting.
pub(super) fn draw(rows: &[&ControllerComparison<'_>]) -> Svg {
    let group = BAR * 3.0 + GAP;
    let right = LEFT + group * rows.len() as f64;
    let mut svg =
        Svg::new((right + 70.0).max(900.0), HEIGHT, "goodput of each controller in each arrangement");
    for rate in [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0] {
        svg.line("grid", (LEFT, height(rate)), (right, height(rate)));
        svg.text("tick", (LEFT - 6.0, height(rate) + 3.0), Anchor::End, &rate.to_string());
    }
    svg.text("tick", (LEFT - 6.0, TOP - 10.0), Anchor::Start, "Mbit/s");
    if let Some(capacity) = rows.iter().find_map(|row| row.multipath).map(|outcome| outcome.capacity) {
        svg.line("mark", (LEFT, height(capacity)), (right, height(capacity)));
        svg.text(
            "tick",
            (right + 4.0, height(capacity) + 3.0),
            Anchor::Start,
            &format!("{capacity:.0} in all"),
        );
    }
    for (index, row) in rows.iter().enumerate() {
        bars(&mut svg, LEFT + group * index as f64 + GAP / 2.0, row);
    }
    svg
}

/// Draws the key to the bars' colours.
pub(super) fn key(svg: &mut Svg) {
    for (index, arrangement) in Arrangement::ALL.into_iter().enumerate() {
        let x = LEFT + 90.0 + 110.0 * index as f64;
        let area = Area { x, y: TOP - 18.0, width: 9.0, height: 9.0 };
        svg.area_with_tip(&class(arrangement), area, arrangement.label());
        svg.text("tick", (x + 13.0, TOP - 10.0), Anchor::Start, arrangement.label());
    }
}

fn bars(svg: &mut Svg, left: f64, row: &ControllerComparison<'_>) {
    svg.text("name", (left + BAR * 1.5, BOTTOM + 18.0), Anchor::Middle, &row.controller);
    let arranged = Arrangement::ALL.into_iter().zip([row.single, row.steered, row.multipath]);
    for (place, (arrangement, outcome)) in arranged.enumerate() {
        let x = left + BAR * place as f64;
        if let Some(outcome) = outcome {
            bar(svg, x, arrangement, outcome);
        }
        if arrangement == Arrangement::Steered
            && let Some(rate) = published(row)
        {
            let (x, y) = (x + (BAR - 2.0) / 2.0, height(rate));
            svg.polygon("paper", &[(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)]);
        }
    }
}

fn bar(svg: &mut Svg, x: f64, arrangement: Arrangement, outcome: &ControllerOutcome) {
    let top = height(outcome.goodput);
    let tip = format!(
        "{}, {}: {:.2} Mbit/s of goodput, {:.2} with headers",
        outcome.controller,
        arrangement.label(),
        outcome.goodput,
        outcome.throughput
    );
    let area = Area { x, y: top, width: BAR - 2.0, height: BOTTOM - top };
    svg.area_with_tip(&class(arrangement), area, &tip);
    let said = if outcome.goodput < 9.95 {
        format!("{:.1}", outcome.goodput)
    } else {
        format!("{:.0}", outcome.goodput)
    };
    svg.text("value", (x + (BAR - 2.0) / 2.0, BOTTOM - 5.0), Anchor::Middle, &said);
}

fn height(rate: f64) -> f64 {
    let share = (rate.clamp(LEAST, MOST) / LEAST).ln() / (MOST / LEAST).ln();
    BOTTOM - (BOTTOM - TOP) * share
}
