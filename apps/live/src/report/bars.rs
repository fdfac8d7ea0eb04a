//! Bars with the values that they are means of.

use hvq_emulation::samples::Mean;
use hvq_lab::report::svg::{Anchor, Area, LinearAxis, Svg};

const WIDTH: f64 = 720.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 690.0;
const TOP: f64 = 18.0;
const HEIGHT: f64 = 22.0;

/// A bar.
pub(super) struct Bar {
    pub(super) name: String,
    /// `base`, `other` or `ours`.
    pub(super) class: &'static str,
    /// The values of which it is the mean.
    pub(super) values: Vec<f64>,
}

/// Bars from 0 on, with a whisker for the 95 % interval of each mean and a dot for each value; `unit` is behind numbers.
pub(super) fn draw(label: &str, unit: &str, bars: &[Bar]) -> String {
    let bottom = TOP + HEIGHT * bars.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 6.0, label);
    let most = bars.iter().flat_map(|bar| bar.values.iter().copied()).fold(0.0, f64::max);
    let axis = LinearAxis { most, origin: LEFT, end: RIGHT };
    for tick in axis.ticks(6) {
        let x = axis.at(tick);
        svg.line(if tick == 0.0 { "axis" } else { "grid" }, (x, TOP - 2.0), (x, bottom));
        svg.text("tick", (x, TOP - 6.0), Anchor::Middle, &format!("{tick:.0}"));
    }
    for (index, bar) in bars.iter().enumerate() {
        let top = TOP + HEIGHT * index as f64;
        let middle = top + HEIGHT / 2.0;
        svg.text("name", (LEFT - 8.0, middle + 4.0), Anchor::End, &bar.name);
        let Some(mean) = Mean::of(&bar.values) else { continue };
        let area = Area { x: LEFT, y: top + 4.0, width: axis.at(mean.value) - LEFT, height: HEIGHT - 8.0 };
        let tip = format!("{}: {} {unit}", bar.name, mean.written(1));
        svg.area_with_tip(&format!("bar {}", bar.class), area, &tip);
        for value in &bar.values {
            svg.dot("single", (axis.at(*value), middle), &format!("{value:.1} {unit}"));
        }
        if let Some(half) = mean.half_width {
            let [from, to] = [(mean.value - half).max(0.0), (mean.value + half).min(most)];
            svg.line("whisker", (axis.at(from), middle), (axis.at(to), middle));
        }
    }
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_a_dot_beside_the_bar_of_the_mean() {
        let bars = [
            Bar { name: "a & b".to_owned(), class: "ours", values: vec![100.0, 200.0] },
            Bar { name: "none".to_owned(), class: "base", values: Vec::new() },
        ];
        let drawn = draw("PLT", "ms", &bars);
        assert_eq!((drawn.matches("<circle").count(), drawn.matches("class=\"bar ours\"").count()), (2, 1));
        assert!(drawn.contains("a &amp; b") && drawn.contains("none"), "{drawn}");
    }
}
