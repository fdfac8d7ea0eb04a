//! The page load times of all pages with all schemes in one drawing.

use super::super::results::{DemoResults, Load};
use super::super::summary;
use hvq_lab::report::svg::{Anchor, Area, LinearAxis, Svg};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 230.0;
const RIGHT: f64 = 60.0;
const TOP: f64 = 18.0;
const BAR: f64 = 13.0;
const GAP: f64 = 14.0;

/// A bar for the mean of each page and scheme, and a dot for each load.
pub(super) fn draw(results: &DemoResults) -> String {
    let group = BAR * results.schemes.len() as f64 + GAP;
    let bottom = TOP + group * results.pages.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 4.0, "page load times of all pages with all schemes");
    let most = results.loads.iter().filter_map(Load::load_time).fold(1.0, f64::max);
    let time = LinearAxis { most: most * 1.02, origin: LEFT, end: WIDTH - RIGHT };
    super::waterfall::grid(&mut svg, time, TOP, bottom);
    for (index, (page, (id, times))) in results.pages.iter().zip(summary::by_page(results)).enumerate() {
        let top = TOP + group * index as f64 + GAP / 2.0;
        let middle = top + (group - GAP) / 2.0 + 4.0;
        svg.text("name", (LEFT - 10.0, middle), Anchor::End, &shorten(&format!("{id} {}", page.site)));
        for (place, (scheme, mean)) in results.schemes.iter().zip(times).enumerate() {
            let y = top + BAR * place as f64;
            let Some(mean) = mean else { continue };
            let area = Area { x: LEFT, y, width: time.at(mean) - LEFT, height: BAR - 2.0 };
            svg.area_with_tip(
                &format!("s{place}"),
                area,
                &format!("{id}, {}: mean {mean:.0} ms", scheme.label()),
            );
            let loads = results.loads.iter().filter(|load| load.page == id && load.scheme == *scheme);
            for (load, loaded) in loads.filter_map(|load| Some((load, load.load_time()?))) {
                let tip = format!("{id}, {}, repetition {}: {loaded:.0} ms", scheme.label(), load.repetition);
                svg.dot("dot", (time.at(loaded), y + BAR / 2.0 - 1.0), &tip);
            }
        }
    }
    svg.finish()
}

fn shorten(text: &str) -> String {
    const MOST: usize = 34;
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    text.chars().take(MOST - 1).chain(['…']).collect()
}
