//! The waterfall of a load: a row for each object, from its request to its last byte.

use super::super::results::{Load, ObjectTiming};
use hvq_lab::report::svg::{Anchor, Area, LinearAxis, Svg};
use hvq_program::output::bytes;

const WIDTH: f64 = 420.0;
const LEFT: f64 = 6.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 16.0;
/// All rows together are about as high as this.
const ROWS: f64 = 300.0;

/// Kinds of objects that have a colour of their own, and the others.
pub(super) const KINDS: [&str; 6] = ["document", "stylesheet", "script", "image", "font", "other"];

fn class_of(kind: &str) -> &str {
    KINDS.into_iter().find(|known| *known == kind).unwrap_or("other")
}

/// The waterfall of `load` on a time axis of `most_ms`, with a row for each of the page's objects.
pub(super) fn draw(load: &Load, most_ms: f64) -> String {
    let count = load.objects.len().max(1) as f64;
    let row = (ROWS / count).clamp(3.0, 14.0);
    let bottom = TOP + row * count;
    let label = format!("waterfall of {} with {}", load.page, load.scheme.label());
    let mut svg = Svg::new(WIDTH, bottom + 6.0, &label);
    let time = LinearAxis { most: most_ms, origin: LEFT, end: WIDTH - RIGHT };
    grid(&mut svg, time, TOP - 4.0, bottom);
    for (index, object) in load.objects.iter().enumerate() {
        let y = TOP + row * index as f64;
        draw_object(&mut svg, object, time, (y, (row - 1.0).max(2.0)));
    }
    if load.connect_ms > 0.0 {
        let x = time.at(load.connect_ms);
        svg.line("mark", (x, TOP - 4.0), (x, bottom));
    }
    if let Some(loaded) = load.load_time() {
        let x = time.at(loaded);
        svg.line("loaded", (x, TOP - 4.0), (x, bottom));
    }
    svg.finish()
}

/// Lines and numbers of a time axis in milliseconds.
pub(super) fn grid(svg: &mut Svg, time: LinearAxis, top: f64, bottom: f64) {
    for tick in time.ticks(5) {
        let x = time.at(tick);
        svg.line("grid", (x, top), (x, bottom));
        let anchor = if tick == 0.0 { Anchor::Start } else { Anchor::Middle };
        let text = if tick == 0.0 { "0 ms".to_owned() } else { format!("{tick:.0}") };
        svg.text("tick", (x, top - 3.0), anchor, &text);
    }
}

fn draw_object(svg: &mut Svg, object: &ObjectTiming, time: LinearAxis, (y, height): (f64, f64)) {
    let Some(requested) = object.requested_ms else { return };
    let first = object.first_byte_ms.unwrap_or(time.most);
    let end = object.end_ms.unwrap_or(time.most);
    let tip = format!(
        "#{} {}, {}: requested {requested:.0} ms, first byte {first:.0} ms, end {end:.0} ms",
        object.id,
        object.kind,
        bytes(object.bytes)
    );
    let area = |from: f64, to: f64| {
        let (from, to) = (from.min(time.most), to.min(time.most));
        Area { x: time.at(from), y, width: time.at(to) - time.at(from), height }
    };
    let class = class_of(&object.kind);
    svg.area_with_tip(&format!("wait k-{class}"), area(requested, first), &tip);
    svg.area_with_tip(&format!("k-{class}"), area(first, end), &tip);
}
