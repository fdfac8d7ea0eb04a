//! The report of the demo: one page of HTML that needs nothing else.

mod overview;
#[cfg(test)]
pub(super) mod sample;
mod tables;
#[cfg(test)]
mod tests;
mod traffic;
mod waterfall;

use super::results::{BUCKET_MS, DemoResults, Group, Load, PageFacts};
use super::scheme::{ChannelName, Scheme};
use super::summary;
use hvq_lab::report::page::{ReportPage, legend, note, section};
use hvq_lab::report::svg::escape;
use traffic::Scale;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The repetition that is drawn; the tables count all of them.
const DRAWN: usize = 1;

/// The report on `results`.
pub fn html(results: &DemoResults) -> String {
    let summaries = summary::summaries(results);
    let sections = [
        tables::tiles(&summaries),
        section(
            "Page load times",
            &format!(
                "{}<div class=\"scroll wide\">{}</div>{}",
                scheme_legend(&results.schemes),
                overview::draw(results),
                note(OVERVIEW)
            ),
        ),
        section("Loads side by side", &loads(results)),
        section("Summary", &format!("{}{}", tables::schemes(&summaries), tables::pages(results))),
        section("Frames by kind and channel", &tables::frames(&summaries)),
        section("How it was measured", &method(results)),
    ];
    ReportPage { title: "hvq demo", lead: &lead(results), style: STYLE, script: SCRIPT }
        .html(&sections.concat())
}

const OVERVIEW: &str =
    "Bars are means, dots are single loads. Every scheme loaded a page on the same stretch of the trace.";

fn lead(results: &DemoResults) -> String {
    let pages = results.pages.len();
    format!(
        "{pages} real pages over two emulated channels: eMBB, which follows the 5G trace {}, and URLLC (5 ms, 2 Mbit/s).",
        escape(&results.setup.trace)
    )
}

fn scheme_legend(schemes: &[Scheme]) -> String {
    legend(schemes.iter().enumerate().map(|(place, scheme)| (format!("s{place}"), escape(&scheme.label()))))
}

/// The drawings of all pages, one of which is shown at a time.
fn loads(results: &DemoResults) -> String {
    let button = |page: &PageFacts| {
        format!("<button data-page=\"{0}\">{0} {1}</button>", escape(&page.id), escape(&page.site))
    };
    let buttons: String = results.pages.iter().map(button).collect();
    let kinds = waterfall::KINDS.into_iter().map(|kind| (format!("k-{kind}"), kind.to_owned()));
    let groups =
        Group::ALL.into_iter().map(|group| (format!("g{}", group as usize), group.label().to_owned()));
    let pages: String = results.pages.iter().map(|page| page_loads(results, page)).collect();
    format!(
        "<nav>{buttons}</nav>\n{pages}<h3>Objects</h3>\n{}<h3>Frames</h3>\n{}{}",
        legend(kinds),
        legend(groups),
        note(&format!(
            "Repetition {DRAWN} of each page. A row is an object, pale while it is waited for; the dotted line is the end \
             of the handshake, the solid one the page load. Traffic is in steps of {BUCKET_MS} ms, to the client above the \
             axis and to the server below it. Point at anything for its numbers."
        ))
    )
}

fn page_loads(results: &DemoResults, page: &PageFacts) -> String {
    let drawn: Vec<&Load> =
        results.loads.iter().filter(|load| load.page == page.id && load.repetition == DRAWN).collect();
    let longest = drawn.iter().filter_map(|load| load.load_time()).fold(0.0, f64::max);
    let most_ms = if longest > 0.0 { longest * 1.03 } else { 1_000.0 };
    let scales = ChannelName::ALL.map(|channel| {
        let used = drawn.iter().filter_map(move |load| load.channel(channel));
        (channel, Scale::of(used, most_ms))
    });
    let columns: String = drawn.iter().map(|load| column(load, &scales)).collect();
    format!("<div class=\"page\" id=\"page-{}\">\n{columns}</div>\n", escape(&page.id))
}

fn column(load: &Load, scales: &[(ChannelName, Scale); 2]) -> String {
    let time = load.load_time().map_or_else(|| "failed".to_owned(), |time| format!("{time:.0} ms"));
    let most_ms = scales[0].1.most_ms;
    let traffic = scales.iter().map(|(channel, scale)| {
        let used = load.channel(*channel);
        let bytes = used.map_or(0, |used| used.up_bytes + used.down_bytes);
        let head = format!("{} <span>{}</span>", channel.label(), hvq_program::output::bytes(bytes));
        format!("<h4>{head}</h4>\n{}", traffic::draw(*channel, used, *scale))
    });
    format!(
        "<div class=\"column\">\n<h3>{} <span>{time}</span></h3>\n{}{}</div>\n",
        escape(&load.scheme.label()),
        waterfall::draw(load, most_ms),
        traffic.collect::<String>()
    )
}

fn method(results: &DemoResults) -> String {
    let setup = &results.setup;
    let points = [
        format!("hvq {}, seed {}, {} repetitions of every page and scheme.", results.version, setup.seed, setup.repetitions),
        format!("eMBB: <code>{}</code>. URLLC: <code>{}</code>. Both have a drop-tail queue of 800 packets each way, and are emulated in real time between UDP sockets on this machine.", escape(&setup.embb), escape(&setup.urllc)),
        "Each load starts at a random offset of the trace, the same for every scheme.".to_owned(),
        format!("Both ends are told what a modem would know. Of URLLC: {}. Of eMBB: {} to the client, typical of the whole trace and not what happens next.", escape(&setup.urllc_hints), escape(&setup.embb_hints)),
        "Every load is a fresh connection with a full handshake to one server, which stands for all the servers of the page; there are no name lookups. Its certificate is short, shorter than most.".to_owned(),
        "eMBB only has one path. The other schemes do the handshake over URLLC and open the eMBB path when it is done.".to_owned(),
        format!("Objects have their recorded sizes, dependencies and urgencies (RFC 9218). Recorded thinking times of browser and servers count {} times. Requests carry a cookie that makes them as long as recorded, up to 2 KB.", setup.think_scale),
        format!("Congestion control is {} on each path.", escape(&setup.congestion)),
        "The page load time runs from the first packet of the handshake to the last byte of the last object that the load event waits for. Means are over pages and repetitions that every scheme completed. Improvement is (eMBB only − scheme) / eMBB only of the means.".to_owned(),
        "Bytes of a channel are UDP payload that entered it, both ways, until the page was loaded. Bytes over time are noted where they are sent.".to_owned(),
    ];
    let points: String = points.iter().map(|point| format!("<li>{point}</li>\n")).collect();
    format!("<ul>\n{points}</ul>\n")
}
