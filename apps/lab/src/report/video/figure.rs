//! Distributions of latency and SSIM, a line for each scheme (HotNets 2023, Fig. 2).

use super::compare::{ReceiverView, Row, quantile, rows};
use crate::experiment::video::VideoOutcome;
use crate::report::svg::{Anchor, Area, Svg};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 330.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 262.0;
/// The left and right ends of the two drawings.
const PANELS: [(f64, f64); 2] = [(44.0, 430.0), (500.0, 886.0)];

/// The axis of latency: logarithmic, in milliseconds.
const LATENCY: (f64, f64) = (10.0, 5000.0);
/// The axis of SSIM begins here; it ends at 1.
const LEAST_SSIM: f64 = 0.85;

/// Styles of lines beyond those of all pages.
const STYLE: &str = "\
.line { fill: none; stroke-width: 1.5; stroke-linejoin: round; }\n\
.line.s0 { stroke: var(--s0); fill: none; } .line.s1 { stroke: var(--s1); fill: none; }\n\
.line.s2 { stroke: var(--s2); fill: none; }\n\
.line.s3 { stroke: var(--s3); fill: none; } .line.s4 { stroke: var(--s4); fill: none; }\n\
.s5 { fill: var(--ink); } .line.s5 { stroke: var(--ink); fill: none; }\n";

/// The schemes that are drawn: more than six lines cannot be told apart.
const DRAWN: [&str; 6] =
    ["udp:embb", "udp:dchannel", "priority-svc+priorities", "xlink+deadlines", "min-rtt", "hvc+deadlines"];

/// The drawing for the first pair of channels, as a file; `None` if no scheme was run that is drawn.
pub fn figure(outcomes: &[VideoOutcome]) -> Option<String> {
    let channels = outcomes.first()?.channels.clone();
    let rows = rows(outcomes, ReceiverView::Paper);
    let drawn: Vec<(usize, &Row)> = (0..)
        .zip(DRAWN)
        .filter_map(|(style, name)| {
            let found = |row: &&Row| row.channels == channels && row.scheme.to_string() == name;
            Some((style, rows.iter().find(found)?))
        })
        .collect();
    if drawn.is_empty() {
        return None;
    }
    let mut svg = Svg::new(WIDTH, HEIGHT, "distributions of frame latency and SSIM for each scheme");
    axes(&mut svg, &channels);
    for (place, (style, row)) in drawn.iter().enumerate() {
        for (panel, values) in row.sorted.iter().enumerate() {
            svg.polyline(&format!("line s{style}"), &curve(panel, values));
        }
        let x = PANELS[0].0 + 290.0 * (place % 3) as f64;
        let y = 292.0 + 18.0 * (place / 3) as f64;
        svg.area_with_tip(&format!("s{style}"), Area { x, y, width: 9.0, height: 9.0 }, "");
        svg.text("name", (x + 13.0, y + 9.0), Anchor::Start, &row.scheme.to_string());
    }
    Some(svg.file(&format!("{}{STYLE}", crate::report::page::BASE)))
}

fn axes(svg: &mut Svg, channels: &str) {
    for (begin, end) in PANELS {
        for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
            let y = height(share);
            svg.line("grid", (begin, y), (end, y));
            svg.text("tick", (begin - 5.0, y + 3.0), Anchor::End, &format!("{share}"));
        }
    }
    let titles = [format!("{channels}: latency of frames (ms)"), format!("{channels}: SSIM")];
    for (panel, title) in titles.iter().enumerate() {
        svg.text("name", (PANELS[panel].0, TOP - 14.0), Anchor::Start, title);
    }
    let ticks = |svg: &mut Svg, panel: usize, values: &[f64]| {
        for value in values {
            let x = across(panel, *value);
            svg.line("grid", (x, TOP), (x, BOTTOM));
            svg.text("tick", (x, BOTTOM + 13.0), Anchor::Middle, &value.to_string());
        }
    };
    ticks(svg, 0, &[10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0]);
    ticks(svg, 1, &[0.85, 0.9, 0.95, 1.0]);
}

/// The share of `values` up to each value, along the axis of a panel.
fn curve(panel: usize, values: &[f64]) -> Vec<(f64, f64)> {
    let steps = 200;
    (0..=steps)
        .map(|step| f64::from(step) / f64::from(steps))
        .map(|share| (across(panel, quantile(values, share)), height(share)))
        .collect()
}

fn across(panel: usize, value: f64) -> f64 {
    let (begin, end) = PANELS[panel];
    let share = match panel {
        0 => (value.clamp(LATENCY.0, LATENCY.1) / LATENCY.0).ln() / (LATENCY.1 / LATENCY.0).ln(),
        _ => (value.clamp(LEAST_SSIM, 1.0) - LEAST_SSIM) / (1.0 - LEAST_SSIM),
    };
    begin + (end - begin) * share
}

fn height(share: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * share
}
