//! The report on congestion controllers over two unlike channels (HotNets 2023, Fig. 1).

mod compare;
mod method;
mod over_time;
#[cfg(test)]
mod tests;
mod text;
mod throughput;

pub use compare::{ControllerComparison, ControllerVerdict, comparisons};
pub use text::{documentation, markdown};

use super::page::{ReportPage, legend, note, section, table};
use super::svg::escape;
use crate::experiment::controllers::{Arrangement, ControllerOutcome, Milliseconds};

const STYLE: &str = include_str!("style.css");

/// The report on `outcomes`, the first setting being the base.
pub fn html(outcomes: &[ControllerOutcome]) -> String {
    let rows = comparisons(outcomes);
    let base = rows.first().map(|row| row.setting.clone()).unwrap_or_default();
    let drawn: Vec<&ControllerComparison<'_>> = rows.iter().filter(|row| row.setting == base).collect();
    let panels: String = drawn.iter().map(|row| over_time::panel(row)).collect();
    let arrangements = || {
        legend(
            Arrangement::ALL.iter().map(|arrangement| (class(*arrangement), arrangement.label().to_owned())),
        )
    };
    let sections = [
        section(
            &format!("Goodput of each controller, {}", escape(&base)),
            &format!(
                "{}<div class=\"scroll wide\">{}</div>{}",
                arrangements(),
                throughput::draw(&drawn).finish(),
                note(THROUGHPUT)
            ),
        ),
        section(
            &format!("Over time, {}", escape(&base)),
            &format!("{}<div class=\"panels\">{panels}</div>{}", arrangements(), note(OVER_TIME)),
        ),
        section("Queueing and verdicts, every setting", &queues(&rows)),
        section("How it was measured", &method::list(outcomes)),
    ];
    let lead = "A bulk download over eMBB (60 Mbit/s or a trace) and URLLC (2 Mbit/s, 5 ms) in virtual time: eMBB alone, \
                both channels steered packet by packet below a single-path transport, and both as paths of hvq.";
    ReportPage { title: "hvq lab: controllers", lead, style: STYLE, script: "" }.html(&sections.concat())
}

/// The goodput of each controller in the first setting, as a file of SVG.
pub fn figure(outcomes: &[ControllerOutcome]) -> String {
    let rows = comparisons(outcomes);
    let base = rows.first().map(|row| row.setting.clone()).unwrap_or_default();
    let drawn: Vec<&ControllerComparison<'_>> = rows.iter().filter(|row| row.setting == base).collect();
    let mut svg = throughput::draw(&drawn);
    throughput::key(&mut svg);
    svg.file(&format!("{}{STYLE}", super::page::BASE))
}

const THROUGHPUT: &str = "Logarithmic, as in HotNets 2023, Fig. 1a. A diamond is what the paper measured with kernel \
    controllers under DChannel; its eMBB and URLLC are those of the setting 50 ms. The dashed line is both channels together.";

const OVER_TIME: &str = "Above: goodput in steps of 200 ms. Below: round-trip time of data on the path that carries the \
    bulk; the line is the mean of a step, the band reaches from its smallest to its largest sample (Fig. 1b of the paper). Panels differ in scale.";

/// The class of an arrangement's colour.
fn class(arrangement: Arrangement) -> String {
    format!("s{}", arrangement as usize)
}

/// A table with a row for each setting and controller.
fn queues(rows: &[ControllerComparison<'_>]) -> String {
    let heads = [
        "setting",
        "controller",
        "goodput, eMBB alone",
        "steered below",
        "hvq",
        "of CUBIC",
        "eMBB queue p50 / p95 / p99, alone",
        "with hvq",
        "RTT p50 / p99, steered",
        "with hvq",
        "goal",
    ];
    let delays = |times: Option<Milliseconds>| {
        times.map_or_else(String::new, |times| {
            format!("{:.1} / {:.1} / {:.1}", times.p50, times.p95, times.p99)
        })
    };
    let rtts = |outcome: Option<&ControllerOutcome>| {
        outcome.map_or_else(String::new, |outcome| format!("{:.0} / {:.0}", outcome.rtt.p50, outcome.rtt.p99))
    };
    let goodput = |outcome: Option<&ControllerOutcome>| {
        outcome.map_or_else(String::new, |outcome| format!("{:.1}", outcome.goodput))
    };
    let row = |row: &ControllerComparison<'_>| {
        let (good, said) = match row.verdict {
            ControllerVerdict::Met => ("good", "met".to_owned()),
            missed => ("bad", missed.to_string()),
        };
        vec![
            escape(&row.setting),
            escape(&row.controller),
            goodput(row.single),
            goodput(row.steered),
            goodput(row.multipath),
            row.of_cubic.map_or_else(String::new, |share| format!("{:.1} %", share * 100.0)),
            delays(row.single.map(|outcome| outcome.embb_queue.delay)),
            delays(row.multipath.map(|outcome| outcome.embb_queue.delay)),
            rtts(row.steered),
            rtts(row.multipath),
            format!("<span class=\"{good}\">{said}</span>"),
        ]
    };
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    format!("{}{}", table(&heads.map(str::to_owned), &rows), note(compare::GOAL))
}
