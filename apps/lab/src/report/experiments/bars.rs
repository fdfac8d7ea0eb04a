//! Bars: for each value of the axis a drawing with a bar for each scheme, all on one scale.

use super::panel::{class, published};
use crate::experiment::definition::{Cell, Measure};
use crate::experiment::pages::Scheme;
use crate::experiment::statistics::{Results, number};
use crate::report::svg::{Anchor, Area, Svg};

const WIDTH: f64 = 420.0;
const RIGHT: f64 = 396.0;
const TOP: f64 = 18.0;
const BAR: f64 = 17.0;

/// The width of a letter of a scheme's name, about.
const LETTER: f64 = 5.7;

/// A horizontal scale that may begin below 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    left: f64,
    low: f64,
    high: f64,
}

impl Scale {
    /// From the least to the largest value, and 0, with room for the names of `schemes` at its left. Bars far below 0
    /// are cut off, so that the rest can be seen.
    pub(super) fn new((low, high): (f64, f64), schemes: &[Scheme]) -> Self {
        let high = if high <= 0.0 && low >= 0.0 { 1.0 } else { high };
        let letters = schemes.iter().map(|scheme| scheme.to_string().len()).max().unwrap_or_default();
        Self { left: (letters as f64 * LETTER + 8.0).clamp(60.0, 220.0), low: low.max(-high.max(1.0)), high }
    }

    fn at(self, value: f64) -> f64 {
        let share = (value.max(self.low) - self.low) / (self.high - self.low).max(f64::MIN_POSITIVE);
        self.left + (RIGHT - self.left) * share.min(1.02)
    }

    fn ticks(self) -> Vec<f64> {
        let span = self.high - self.low;
        let rough = span / 4.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(span);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step).floor() as i64;
        (first..=last).map(|index| index as f64 * step).collect()
    }
}

/// The bars of `cell`.
pub(super) fn draw(results: &Results<'_>, cell: Cell, schemes: &[Scheme], scale: Scale) -> String {
    let measure = &results.definition.plot.measure;
    let bottom = TOP + BAR * schemes.len() as f64;
    let label = format!("{measure}, {}", results.definition.matrix.describe(cell, &[]));
    let mut svg = Svg::new(WIDTH, bottom + 6.0, &label);
    for tick in scale.ticks() {
        let x = scale.at(tick);
        svg.line(if tick == 0.0 { "axis" } else { "grid" }, (x, TOP - 2.0), (x, bottom));
        svg.text("tick", (x, TOP - 6.0), Anchor::Middle, &written(measure, tick));
    }
    for (index, scheme) in schemes.iter().enumerate() {
        bar(&mut svg, TOP + BAR * index as f64, results, (cell, *scheme), scale);
    }
    svg.finish()
}

/// A tick's label.
pub(super) fn written(measure: &Measure, tick: f64) -> String {
    let digits = if tick.abs() >= 1.0 || tick == 0.0 { format!("{tick:.0}") } else { format!("{tick:.2}") };
    if measure.is_percent() { format!("{digits} %") } else { digits }
}

fn bar(svg: &mut Svg, top: f64, results: &Results<'_>, (cell, scheme): (Cell, Scheme), scale: Scale) {
    let measure = &results.definition.plot.measure;
    let middle = top + BAR / 2.0;
    svg.text("name", (scale.left - 6.0, middle + 3.5), Anchor::End, &scheme.to_string());
    if let Some(estimate) = results.estimate(measure, cell, scheme) {
        let (zero, end) = (scale.at(0.0), scale.at(estimate.value));
        let area = Area { x: zero.min(end), y: top + 3.0, width: (end - zero).abs(), height: BAR - 6.0 };
        let tip = format!(
            "{scheme}: {} ({} to {})",
            number(measure, estimate.value),
            number(measure, estimate.low),
            number(measure, estimate.high)
        );
        svg.area_with_tip(class(scheme), area, &tip);
        if estimate.value < scale.low {
            // The tip has its interval: a line would cross the number.
            let place = (scale.left + 3.0, middle + 3.5);
            svg.text("value", place, Anchor::Start, &number(measure, estimate.value));
        } else {
            svg.line("whisker", (scale.at(estimate.low), middle), (scale.at(estimate.high), middle));
        }
    }
    if let Some(theirs) = published(results.definition, measure, cell, scheme) {
        let x = scale.at(theirs);
        let corners = [(x, middle - 5.5), (x + 5.5, middle), (x, middle + 5.5), (x - 5.5, middle)];
        svg.polygon("paper", &corners);
    }
}
