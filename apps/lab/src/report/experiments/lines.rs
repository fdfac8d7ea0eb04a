//! Lines: a drawing with a line for each scheme along the axis.

use super::bars::written;
use super::panel::{Panel, class, published};
use crate::experiment::definition::Definition;
use crate::experiment::pages::Scheme;
use crate::experiment::statistics::{Results, number};
use crate::report::svg::{Anchor, LinearAxis, Svg};

const WIDTH: f64 = 520.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 420.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 262.0;

/// The places of values and labels.
#[derive(Debug)]
struct Frame {
    places: Vec<f64>,
    low: f64,
    up: LinearAxis,
}

impl Frame {
    fn new(definition: &Definition, (low, high): (f64, f64)) -> Self {
        let low = low.max(-high.max(1.0));
        let up = LinearAxis { most: (high - low).max(f64::MIN_POSITIVE), origin: BOTTOM, end: TOP };
        Self { places: places(definition), low, up }
    }

    fn y(&self, value: f64) -> f64 {
        self.up.at(value.max(self.low) - self.low)
    }
}

/// Returns the places of the labels on the axis: as far apart as their numbers, if all are numbers, or else evenly.
fn places(definition: &Definition) -> Vec<f64> {
    let labels = definition.matrix.labels(definition.plot.along);
    let leading = |label: &&str| {
        let digits: String =
            label.chars().take_while(|digit| digit.is_ascii_digit() || *digit == '.').collect();
        digits.parse::<f64>().ok()
    };
    let numbers: Option<Vec<f64>> = labels.iter().map(leading).collect();
    let ascending = numbers.filter(|numbers| numbers.is_sorted() && numbers.first() != numbers.last());
    let values = ascending.unwrap_or_else(|| (0..labels.len()).map(|index| index as f64).collect());
    let (first, last) = (values.first().copied().unwrap_or(0.0), values.last().copied().unwrap_or(1.0));
    let span = (last - first).max(f64::MIN_POSITIVE);
    values.iter().map(|value| LEFT + 14.0 + (RIGHT - LEFT - 28.0) * (value - first) / span).collect()
}

/// The lines of `panel`; all drawings of an experiment share `range`.
pub(super) fn draw(results: &Results<'_>, panel: &Panel, schemes: &[Scheme], range: (f64, f64)) -> String {
    let definition = results.definition;
    let frame = Frame::new(definition, range);
    let measure = &definition.plot.measure;
    let mut svg = Svg::new(WIDTH, HEIGHT, &format!("{measure}, {}", panel.title));
    for tick in frame.up.ticks(5) {
        // Ticks count from the least value, which is 0 or below it.
        let value = tick + frame.low;
        svg.line("grid", (LEFT, frame.y(value)), (RIGHT, frame.y(value)));
        svg.text("tick", (LEFT - 4.0, frame.y(value) + 3.0), Anchor::End, &written(measure, value));
    }
    svg.line("axis", (LEFT, frame.y(0.0)), (RIGHT, frame.y(0.0)));
    labels(&mut svg, definition, &frame);
    for scheme in schemes {
        line(&mut svg, results, panel, *scheme, &frame);
    }
    names(&mut svg, results, panel, schemes, &frame);
    svg.finish()
}

fn labels(svg: &mut Svg, definition: &Definition, frame: &Frame) {
    let labels = definition.matrix.labels(definition.plot.along);
    for (label, x) in labels.iter().zip(&frame.places) {
        svg.text("tick", (*x, BOTTOM + 14.0), Anchor::Middle, label);
    }
    let along = definition.plot.along.to_string();
    svg.text("tick", ((LEFT + RIGHT) / 2.0, BOTTOM + 30.0), Anchor::Middle, &along);
}

fn line(svg: &mut Svg, results: &Results<'_>, panel: &Panel, scheme: Scheme, frame: &Frame) {
    let measure = &results.definition.plot.measure;
    let mut points = Vec::new();
    for (cell, x) in panel.cells.iter().zip(&frame.places) {
        if let Some(estimate) = results.estimate(measure, *cell, scheme) {
            let y = frame.y(estimate.value);
            svg.line("whisker", (*x, frame.y(estimate.low)), (*x, frame.y(estimate.high)));
            let tip = format!("{scheme}: {}", number(measure, estimate.value));
            svg.dot(class(scheme), (*x, y), &tip);
            points.push((*x, y));
        }
        if let Some(theirs) = published(results.definition, measure, *cell, scheme) {
            let y = frame.y(theirs);
            svg.polygon("paper", &[(*x, y - 5.5), (x + 5.5, y), (*x, y + 5.5), (x - 5.5, y)]);
        }
    }
    svg.polyline(&format!("line {}", class(scheme)), &points);
}

/// The schemes' names at the right ends of their lines, none over another.
fn names(svg: &mut Svg, results: &Results<'_>, panel: &Panel, schemes: &[Scheme], frame: &Frame) {
    let measure = &results.definition.plot.measure;
    let end = |scheme: &Scheme| {
        let last = panel.cells.iter().rev().find_map(|cell| results.estimate(measure, *cell, *scheme))?;
        Some((frame.y(last.value), *scheme))
    };
    let mut ends: Vec<(f64, Scheme)> = schemes.iter().filter_map(end).collect();
    ends.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut free = TOP - 10.0;
    for (y, scheme) in ends {
        free = y.max(free + 12.0);
        svg.text("name", (RIGHT + 4.0, free + 3.5), Anchor::Start, &scheme.to_string());
    }
}
