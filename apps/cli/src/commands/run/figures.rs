//! The statistics of the channels of a run, for people and programs.

use crate::commands::emulate::statistics::{heading, link, row, summary};
use crate::duration::milliseconds;
use hvq_emulation::tun::emulator::{Report, Verdict};
use serde_json::json;

/// A table for people, and whether to believe it.
pub(super) fn table(report: &Report) -> String {
    let mut lines = vec![heading()];
    for channel in &report.channels {
        for (way, link) in [("up", &channel.up), ("down", &channel.down)] {
            lines.push(row(&channel.name, way, report.elapsed, link));
        }
    }
    let lateness = report.lateness;
    lines.push(format!(
        "lateness p50 {} p99 {} max {}: {}",
        milliseconds(lateness.p50),
        milliseconds(lateness.p99),
        milliseconds(lateness.max),
        report.verdict()
    ));
    if report.unlogged > 0 {
        lines.push(format!("{} packets are missing in the packet log", report.unlogged));
    }
    lines.join("\n")
}

/// One object for programs; the command ended with `code`.
pub(super) fn json(report: &Report, code: u8) -> String {
    let channels = report
        .channels
        .iter()
        .map(|channel| json!({ "name": channel.name, "up": link(&channel.up), "down": link(&channel.down) }));
    let reasons = match report.verdict() {
        Verdict::Trusted => Vec::new(),
        Verdict::NotTrusted(reasons) => reasons,
    };
    let object = json!({
        "exit": code,
        "seconds": report.elapsed.as_secs_f64(),
        "channels": channels.collect::<Vec<_>>(),
        "lateness_ms": summary(&report.lateness),
        "trusted": reasons.is_empty(),
        "doubts": reasons,
        "unsent_packets": report.unsent.packets,
        "unread_packets": report.unread,
        "unlogged_packets": report.unlogged,
    });
    format!("{object}\n")
}
