//! The tables of the report.

use super::super::results::DemoResults;
use super::super::scheme::ChannelName;
use super::super::summary::{self, SchemeSummary};
use hvq_lab::report::page::table;
use hvq_lab::report::svg::escape;
use hvq_program::output::bytes;

/// A figure for each scheme, large.
pub(super) fn tiles(summaries: &[SchemeSummary]) -> String {
    let tile = |row: &SchemeSummary| {
        let below = match row.improvement {
            Some(share) if share >= 0.0 => format!("<b class=\"good\">{:.1} % faster</b>", share * 100.0),
            Some(share) => format!("<b class=\"bad\">{:.1} % slower</b>", -share * 100.0),
            None => "the baseline".to_owned(),
        };
        format!(
            "<div class=\"tile\"><span>{}</span><strong>{:.0}<small> ms</small></strong><span>{below}</span>\
             <span>p95 {:.0} ms, {:.1} % of bytes on URLLC</span></div>\n",
            escape(&row.scheme.label()),
            row.mean_ms,
            row.p95_ms,
            row.urllc_share() * 100.0
        )
    };
    format!("<div class=\"tiles\">\n{}</div>\n", summaries.iter().map(tile).collect::<String>())
}

/// The summary of all schemes.
pub(super) fn schemes(summaries: &[SchemeSummary]) -> String {
    let heads = [
        "scheme",
        "loads",
        "mean PLT",
        "p95",
        "improvement",
        "eMBB per load",
        "URLLC per load",
        "on URLLC",
        "failed",
    ];
    let row = |row: &SchemeSummary| {
        let [(_, embb), (_, urllc)] = row.bytes;
        vec![
            escape(&row.scheme.label()),
            row.loads.to_string(),
            format!("{:.0} ms", row.mean_ms),
            format!("{:.0} ms", row.p95_ms),
            row.improvement.map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", share * 100.0)),
            bytes(embb as u64),
            bytes(urllc as u64),
            format!("{:.1} %", row.urllc_share() * 100.0),
            row.failed.to_string(),
        ]
    };
    table(&heads.map(str::to_owned), &summaries.iter().map(row).collect::<Vec<_>>())
}

/// The mean load time of each page with each scheme.
pub(super) fn pages(results: &DemoResults) -> String {
    let mut heads = vec!["page".to_owned(), "objects".to_owned(), "bytes".to_owned()];
    heads.extend(results.schemes.iter().map(|scheme| escape(&scheme.label())));
    let rows = summary::by_page(results).into_iter().zip(&results.pages).map(|((id, times), page)| {
        let name = format!("{} {}", escape(&id), escape(&page.site));
        let mut row = vec![name, page.objects.to_string(), bytes(page.bytes)];
        row.extend(
            times
                .into_iter()
                .map(|time| time.map_or_else(|| "failed".to_owned(), |time| format!("{time:.0} ms"))),
        );
        row
    });
    table(&heads, &rows.collect::<Vec<_>>())
}

/// Frames of each kind on each channel with each scheme, and their bytes.
pub(super) fn frames(summaries: &[SchemeSummary]) -> String {
    let mut heads = vec!["frames sent (bytes)".to_owned()];
    for row in summaries {
        heads.extend(
            ChannelName::ALL.map(|channel| format!("{}<br>{}", escape(&row.scheme.label()), channel.label())),
        );
    }
    let rows = summary::kinds(summaries).into_iter().map(|kind| {
        let mut cells = vec![format!("<code>{}</code>", escape(kind))];
        for row in summaries {
            cells.extend(ChannelName::ALL.map(|channel| match row.frames.get(&(channel, kind)) {
                Some(count) => format!("{} <small>({})</small>", count.frames, bytes(count.bytes)),
                None => "–".to_owned(),
            }));
        }
        cells
    });
    table(&heads, &rows.collect::<Vec<_>>())
}
