//! Goodput and round-trip time of one controller over time (HotNets 2023, Fig. 1b).

use super::class;
use super::compare::ControllerComparison;
use crate::experiment::controllers::{Arrangement, ControllerOutcome};
use crate::report::svg::{Anchor, LinearAxis, Svg, escape};

const WIDTH: f64 = 520.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = 510.0;

/// The place of one of the two plots.
#[derive(Clone, Copy)]
struct Place {
    top: f64,
    bottom: f64,
    unit: &'static str,
}

const GOODPUT: Place = Place { top: 16.0, bottom: 110.0, unit: "Mbit/s" };
const RTT: Place = Place { top: 138.0, bottom: 250.0, unit: "RTT, ms" };

/// A heading, and both plots in one drawing.
pub(super) fn panel(row: &ControllerComparison<'_>) -> String {
    let outcomes: Vec<&ControllerOutcome> =
        [row.single, row.steered, row.multipath].into_iter().flatten().collect();
    let mut svg = Svg::new(WIDTH, 268.0, &format!("{} over time", row.controller));
    let seconds = outcomes.iter().map(|outcome| outcome.seconds).fold(1.0, f64::max);
    let time = LinearAxis { most: seconds, origin: LEFT, end: RIGHT };
    let most_rate = outcomes.iter().flat_map(|outcome| &outcome.series.goodput).copied().fold(1.0, f64::max);
    let rate = frame(&mut svg, time, GOODPUT, most_rate * 1.05);
    let rtt = frame(&mut svg, time, RTT, longest(&outcomes) * 1.05);
    for outcome in &outcomes {
        band(&mut svg, outcome, time, rtt);
    }
    for outcome in &outcomes {
        let line = format!("line {}", class(outcome.arrangement));
        svg.polyline(&line, &goodput(outcome, time, rate));
        svg.polyline(&line, &rtts(outcome, |rtt| rtt[1], time, rtt));
    }
    format!("<div class=\"panel\"><h3>{}</h3>\n{}</div>\n", escape(&row.controller), svg.finish())
}

/// Axes and grid of one plot; the vertical axis, which goes up to `most`.
fn frame(svg: &mut Svg, time: LinearAxis, place: Place, most: f64) -> LinearAxis {
    let axis = LinearAxis { most, origin: place.bottom, end: place.top };
    for value in axis.ticks(4) {
        svg.line("grid", (LEFT, axis.at(value)), (RIGHT, axis.at(value)));
        svg.text("tick", (LEFT - 4.0, axis.at(value) + 3.0), Anchor::End, &value.to_string());
    }
    svg.text("tick", (LEFT, place.top - 6.0), Anchor::Start, place.unit);
    for value in time.ticks(6) {
        svg.text("tick", (time.at(value), place.bottom + 12.0), Anchor::Middle, &format!("{value} s"));
    }
    svg.line("axis", (LEFT, place.bottom), (RIGHT, place.bottom));
    axis
}

/// The longest mean of a step: single long samples would flatten the plot.
fn longest(outcomes: &[&ControllerOutcome]) -> f64 {
    let means = outcomes.iter().flat_map(|outcome| &outcome.series.rtt).flatten().map(|rtt| rtt[1]);
    means.fold(10.0, f64::max)
}

fn goodput(outcome: &ControllerOutcome, time: LinearAxis, rate: LinearAxis) -> Vec<(f64, f64)> {
    let points = outcome.series.goodput.iter().enumerate();
    points.map(|(step, value)| (middle(outcome, step, time), rate.at(*value))).collect()
}

fn rtts(
    outcome: &ControllerOutcome,
    pick: impl Fn(&[f64; 3]) -> f64,
    time: LinearAxis,
    rtt: LinearAxis,
) -> Vec<(f64, f64)> {
    let points = outcome.series.rtt.iter().enumerate();
    points
        .filter_map(|(step, value)| {
            Some((middle(outcome, step, time), rtt.at(pick(value.as_ref()?).min(rtt.most))))
        })
        .collect()
}

/// From the smallest to the largest sample of each step.
fn band(svg: &mut Svg, outcome: &ControllerOutcome, time: LinearAxis, rtt: LinearAxis) {
    if outcome.arrangement == Arrangement::Single {
        // Behind the other two it would be noise: alone, a path has one round-trip time and its queue.
        return;
    }
    let mut points = rtts(outcome, |rtt| rtt[0], time, rtt);
    points.extend(rtts(outcome, |rtt| rtt[2], time, rtt).into_iter().rev());
    svg.polygon(&format!("band {}", class(outcome.arrangement)), &points);
}

fn middle(outcome: &ControllerOutcome, step: usize, time: LinearAxis) -> f64 {
    time.at((step as f64 + 0.5) * outcome.series.step / 1e3)
}
