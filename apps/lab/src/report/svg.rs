//! A drawing in SVG: shapes with classes, whose colours the style sheet of the report decides.
//!
//! Plotting libraries write fixed colours; a report that follows the reader's light or dark theme needs classes.

use std::fmt::Write;

/// A drawing under construction. Lengths are in units of its own; it is scaled to the width of its place.
#[derive(Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    label: String,
    body: String,
}

/// A rectangle.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// The left edge.
    pub x: f64,
    /// The upper edge.
    pub y: f64,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

/// The place of a text in relation to its position.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

impl Svg {
    /// An empty drawing, described by `label` for those who do not see it.
    pub fn new(width: f64, height: f64, label: &str) -> Self {
        Self { width, height, label: escape(label), body: String::new() }
    }

    /// A rectangle of style `class` that says `tip` when pointed at.
    pub fn area_with_tip(&mut self, class: &str, area: Area, tip: &str) {
        let (attributes, tip) = (attributes(area), escape(tip));
        self.put(format_args!("<rect class=\"{class}\" {attributes}><title>{tip}</title></rect>"));
    }

    /// A straight line of style `class`.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.put(format_args!(
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// A dot of style `class` that says `tip` when pointed at.
    pub fn dot(&mut self, class: &str, at: (f64, f64), tip: &str) {
        let tip = escape(tip);
        self.put(format_args!(
            "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{tip}</title></circle>",
            at.0, at.1
        ));
    }

    /// A line through `points` of style `class`.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let points = coordinates(points);
        self.put(format_args!("<polyline class=\"{class}\" points=\"{points}\"/>"));
    }

    /// The area within `points` in style `class`.
    pub fn polygon(&mut self, class: &str, points: &[(f64, f64)]) {
        let points = coordinates(points);
        self.put(format_args!("<polygon class=\"{class}\" points=\"{points}\"/>"));
    }

    /// A text of style `class`.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escape(text);
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{text}</text>",
            at.0, at.1
        ));
    }

    /// The drawing as an element of HTML.
    pub fn finish(self) -> String {
        let Self { width, height, label, body } = self;
        format!(
            "<svg viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{label}\">\n{body}</svg>\n"
        )
    }

    /// The drawing as a file with `style`, on the ground of a panel.
    pub fn file(self, style: &str) -> String {
        let Self { width, height, label, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{label}\">\n<style>\n{style}\
             .ground {{ fill: var(--panel); }}\n</style>\n\
             <rect class=\"ground\" width=\"{width:.0}\" height=\"{height:.0}\"/>\n{body}</svg>\n"
        )
    }

    fn put(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.body.write_fmt(arguments).expect("writing to a string does not fail");
        self.body.push('\n');
    }
}

fn coordinates(points: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (x, y) in points {
        write!(text, "{x:.1},{y:.1} ").expect("writing to a string does not fail");
    }
    text
}

fn attributes(area: Area) -> String {
    let Area { x, y, width, height } = area;
    // What is there is seen.
    let (width, height) = (width.max(0.4), height.max(0.2));
    format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"")
}

/// `text` as text of HTML and in its attributes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A linear axis from 0.
#[derive(Clone, Copy, Debug)]
pub struct LinearAxis {
    /// The value at the end.
    pub most: f64,
    /// The position of 0.
    pub origin: f64,
    /// The position of the end.
    pub end: f64,
}

impl LinearAxis {
    /// Returns the position of `value`.
    pub fn at(self, value: f64) -> f64 {
        self.origin + (self.end - self.origin) * value / self.most.max(f64::MIN_POSITIVE)
    }

    /// About `count` round values from 0 to the end.
    pub fn ticks(self, count: usize) -> Vec<f64> {
        let step = round_step(self.most / count.max(1) as f64);
        (0..)
            .map(|index| f64::from(index) * step)
            .take_while(|value| *value <= self.most * 1.0001)
            .take(50)
            .collect()
    }
}

/// The smallest of 1, 2, 5, 10, … (and of tenths) that is not smaller than `least`.
fn round_step(least: f64) -> f64 {
    if !least.is_finite() || least <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= least * 0.9999)
        .unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        let axis = |most| LinearAxis { most, origin: 0.0, end: 100.0 };
        assert_eq!(axis(1234.0).ticks(4), [0.0, 500.0, 1000.0]);
        assert_eq!(axis(2.0).ticks(4), [0.0, 0.5, 1.0, 1.5, 2.0]);
        assert_eq!(axis(0.0).ticks(4).first(), Some(&0.0));
        assert_eq!(axis(1000.0).at(250.0), 25.0);
    }

    #[test]
    fn text_cannot_become_markup() {
        let mut svg = Svg::new(10.0, 10.0, "a \"b\"");
        svg.text("t", (0.0, 0.0), Anchor::Start, "<script>'&");
        let drawn = svg.finish();
        assert!(drawn.contains("&lt;script&gt;&#39;&amp;") && drawn.contains("a &quot;b&quot;"), "{drawn}");
    }
}
